"""Data transforms: what Pumice reads through an expression is what libhdf5 gives.

h5py has no call for them; the copy of libhdf5 that it has loaded does.
"""

import ctypes
import json

import h5py
import numpy as np

from interop import InteropCase

EXPRESSIONS = [
    "x",
    "x+2",
    "2-x",
    "x*3",
    "x/2",
    "10/(x*x+1)",
    "-x",
    "+x",
    "1.5*x",
    "x/4.0",
    "(5/9)*(x-32)",
    "(5/9.0)*(x-32)",
    "(x-32)*5/9",
    "x*x-3*x+1",
    "2*(x+(x-1)*3)/4",
    "((((x))))",
    "3*(x-2)*(x+2)",
    "x - 1e1",
    ".5*x+2.",
    "1+2*3+x",
    "(1+2)*3",
]
MEMORY = ["i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"]


class Tracked:
    """A number that remembers whether it, or one on the way to it, left a type's range: libhdf5 works
    in the type of the memory, step by step, and what C does then is nobody's rule."""

    def __init__(self, value, dtype, inside=True):
        dtype = np.dtype(dtype)
        info = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
        self.value, self.dtype = value, dtype
        self.inside = inside and info.min <= value <= info.max

    def with_other(self, other, operation):
        inside = self.inside
        if isinstance(other, Tracked):
            other, inside = other.value, inside and other.inside
        return Tracked(operation(self.value, other), self.dtype, inside)

    def __add__(self, other):
        return self.with_other(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self.with_other(other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self.with_other(other, lambda a, b: b - a)

    def __mul__(self, other):
        return self.with_other(other, lambda a, b: a * b)

    def __truediv__(self, other):
        return self.with_other(other, lambda a, b: a / b)

    def __rtruediv__(self, other):
        return self.with_other(other, lambda a, b: b / a)

    def __neg__(self):
        return Tracked(-self.value, self.dtype, self.inside)

    def __pos__(self):
        return self

    __radd__, __rmul__ = __add__, __mul__


def stays_inside(expression, values, dtype):
    for value in values.astype(dtype):
        result = eval(expression, {"x": Tracked(value.item(), dtype)})
        if isinstance(result, Tracked) and not result.inside:
            return False
    return True


def libhdf5():
    """The library that h5py uses, not another copy of it."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if "libhdf5" in line and "_hl" not in line}
    library = ctypes.CDLL(min(paths))
    library.H5Pset_data_transform.argtypes = [ctypes.c_int64, ctypes.c_char_p]
    return library


class Transforms(InteropCase):
    def read_with_libhdf5(self, dataset, dtype, expression):
        transfer = h5py.h5p.create(h5py.h5p.DATASET_XFER)
        done = libhdf5().H5Pset_data_transform(transfer.id, expression.encode())
        self.assertGreaterEqual(done, 0)
        out = np.empty(dataset.shape, dtype)
        dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, out, dxpl=transfer)
        return out

    def test_expressions_of_integers_and_floats(self):
        path = self.directory / "file.h5"
        sources = {
            "integers": np.array([0, 1, 2, 3, 5, 7, 10, 11], "<i4"),
            "floats": np.array([0.0, 0.5, 1.25, 2.75, 3.5, 6.0, 9.9, 11.0], "<f8"),
            "big": np.array([1, 4, 9, 10], ">i2"),
        }
        with h5py.File(path, "w") as file:
            for name, values in sources.items():
                file.create_dataset(name, data=values, chunks=(3,), compression="gzip")
        wishes = [
            {"path": name, "dtype": np.dtype(dtype).str, "transform": expression}
            for name in sources
            for dtype in MEMORY
            for expression in EXPRESSIONS
            if stays_inside(expression, sources[name], dtype)
        ]
        (self.directory / "wishes.jsonl").write_text("\n".join(map(json.dumps, wishes)))
        out = self.directory / "out"
        self.run_interop("as", path, self.directory / "wishes.jsonl", out)
        different = []
        with h5py.File(path) as file:
            for number, wish in enumerate(wishes):
                wanted = self.read_with_libhdf5(file[wish["path"]], wish["dtype"], wish["transform"])
                raw = out / f"{number}.bin"
                found = np.frombuffer(raw.read_bytes(), wish["dtype"]) if raw.exists() else None
                if found is None or found.tobytes() != wanted.tobytes():
                    different.append(f"{wish}: {wanted}, not {found}")
        self.assertGreater(len(wishes), 400)
        self.assertEqual(different, [], f"{len(different)} of {len(wishes)}:\n" + "\n".join(different[:30]))


if __name__ == "__main__":
    import unittest

    unittest.main()
