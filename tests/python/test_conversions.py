"""Conversions of elements: a dataset read by Pumice as another datatype holds what libhdf5 gives."""

import json

import h5py
import numpy as np

from interop import InteropCase, dtype_to_json

INTEGERS = ["|i1", "|u1"] + [o + k for k in ("i2", "u2", "i4", "u4", "i8", "u8") for o in "<>"]
FLOATS = [o + k for k in ("f2", "f4", "f8") for o in "<>"]
PARTIAL = [("<i4", 17, 5), (">i4", 9, 0), ("<u2", 11, 3), (">u8", 40, 8), ("<i8", 63, 0)]


def edges(dtype):
    """Edge values of a number type, and random ones."""
    dtype, generator = np.dtype(dtype), np.random.default_rng(3)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        near = [0, 1, 2, 100, 127, 128, 255, 256, 32767, 65535, 2**24 + 1, 2**31 - 1, 2**53 + 1]
        values = [info.min, info.min + 1, info.max, info.max - 1]
        values += [n for n in near if n <= info.max] + [-n for n in near if -n >= info.min]
        raw = generator.integers(0, 256, 200 * dtype.itemsize, "u1").tobytes()
        return np.concatenate([np.array(values, dtype), np.frombuffer(raw, dtype)]).astype(dtype)
    info = np.finfo(dtype.newbyteorder("="))
    values = [0.0, -0.0, 0.5, -0.5, 0.999, 1.5, 2.5, -1.5, -2.5, 127.9, 128, 255.5, 256, -128.9]
    values += [65504, 65520, 32767.5, 65535.9, -32768.9, 2147483648.0, -2147483649.0, 4294967296.0]
    values += [9.3e18, -9.3e18, 1.9e19, 1e30, -1e30, 1e38, 3.5e38, 1e300, -1e300]
    values += [float(info.max), float(info.min), float(info.tiny), float(info.tiny) / 4]
    values += [np.inf, -np.inf, 5e-324, 1e-45, 6e-8, 2.0**-24, 2.0**-25, 1 + 2.0**-11, 1 + 3 * 2.0**-11]
    with np.errstate(over="ignore"):
        numbers = np.array(values).astype(dtype)
        scaled = generator.normal(size=100) * 10.0 ** generator.integers(-10, 11, 100)
        return np.concatenate([numbers, scaled.astype(dtype)]).astype(dtype)


def partial(dtype, precision, offset):
    tid = h5py.h5t.py_create(np.dtype(dtype)).copy()
    tid.set_precision(precision)
    tid.set_offset(offset)
    return tid, {"dtype": dtype, "precision": precision, "offset": offset}


def odd_float(order):
    """Sign, exponent and mantissa in unusual places."""
    tid = h5py.h5t.py_create(np.dtype(order + "f4")).copy()
    tid.set_fields(26, 20, 6, 7, 13)
    tid.set_offset(7)
    tid.set_precision(20)
    tid.set_size(4)
    tid.set_ebias(31)
    wish = {"dtype": order + "f4", "precision": 20, "offset": 7, "sign": 26, "exponent": 20,
            "exponent size": 6, "bias": 31, "mantissa": 7, "mantissa size": 13}
    return tid, wish


def is_sound(source, target):
    """Whether libhdf5 follows its own rules here. It does not everywhere:

    * Integers of one size in opposite byte orders only have their bytes swapped, whatever their
      signs and precisions.
    * Unless both are this machine's, floats between -1 and 0 become the smallest integer, and a
      bit offset is forgotten; those of 16 bits are cast as C leaves it open.
    * Unless both are this machine's, numbers beyond a narrow float do not round up to infinity.
    """
    (kind, size, order, *bits), (to_kind, to_size, to_order, *to_bits) = source, target
    if kind in "iu" and to_kind in "iu" and size == to_size and order != to_order:
        return kind == to_kind and bits == to_bits == []
    if kind == "f" and to_kind in "iu":
        return order == to_order == "<" and size > 2 and bits == to_bits == []
    if kind == "f" and to_kind == "f" and to_size == 2:
        return size == 2 or (order == to_order == "<" and bits == [])
    return not (kind in "iu" and size == 8 and to_kind == "f" and to_bits)


def shape_of(wish):
    """Kind, size, byte order and, where it does not fill its bytes, bits of a number."""
    dtype = np.dtype(wish if isinstance(wish, str) else wish["dtype"])
    order = ">" if dtype.str[0] == ">" else "<"
    return (dtype.kind, dtype.itemsize, order, *([] if isinstance(wish, str) else [1]))


def is_open(value):
    """Whether a float is just beyond an integer type: C leaves the cast open."""
    powers = (7, 8, 15, 16, 31, 32, 63, 64)
    return value.dtype.kind == "f" and any(abs(float(value)) == 2.0**power for power in powers)


class Conversions(InteropCase):
    def setUp(self):
        super().setUp()
        self.path = self.directory / "values.h5"
        self.sources, self.targets = {}, []

    def source(self, file, data, tid=None, shape=None):
        """Stores packed elements of a type under a new name."""
        tid = tid or h5py.h5t.py_create(data.dtype)
        count = len(self.sources)
        group = file.require_group(f"{count // 64}/{count // 8}")
        space = h5py.h5s.create_simple(data.shape)
        made = h5py.h5d.create(group.id, str(count).encode(), tid, space)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, data, mtype=tid)
        self.sources[f"/{count // 64}/{count // 8}/{count}"] = (data, tid, shape)

    def target(self, wish, tid, size):
        self.targets.append((wish, tid, size))

    def compare(self):
        """Every source as every target: equal bytes, or both refuse."""
        pairs = [
            (path, target)
            for path, (_, _, shape) in self.sources.items()
            for target in self.targets
            if shape is None or is_sound(shape, shape_of(target[0]))
        ]
        listing = self.directory / "list.jsonl"
        lines = [json.dumps({"path": path, "dtype": wish}) + "\n" for path, (wish, _, _) in pairs]
        listing.write_text("".join(lines))
        out = self.directory / "out"
        self.run_interop("as", self.path, listing, out)
        wrong, compared = [], 0
        with h5py.File(self.path) as file:
            for number, (path, (wish, tid, size)) in enumerate(pairs):
                data = self.sources[path][0]
                wanted = np.full(data.size * size, 0xA5, "u1")
                try:
                    raw = wanted.view(f"V{size}")
                    file[path].id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=tid)
                except (OSError, TypeError) as error:
                    refused = (out / f"{number}.error").exists()
                    if not refused:
                        wrong.append(f"{path} as {wish}: only libhdf5 refuses ({error})")
                    continue
                if (out / f"{number}.error").exists():
                    text = (out / f"{number}.error").read_text()
                    wrong.append(f"{path} as {wish}: only Pumice refuses ({text})")
                    continue
                compared += 1
                found = np.fromfile(out / f"{number}.bin", "u1").reshape(-1, size)
                differ = (found != wanted.reshape(-1, size)).any(axis=1).nonzero()[0]
                differ = [at for at in differ if not is_open(data[at])]
                if differ:
                    at = differ[0]
                    wrong.append(
                        f"{path} ({data.dtype}) as {wish}: {len(differ)} differ, first {data[at]!r}: "
                        f"{found[at].tobytes().hex()} instead of {wanted.reshape(-1, size)[at].tobytes().hex()}"
                    )
        self.maxDiff = None
        self.assertEqual(wrong[:100], [], f"{len(wrong)} of {len(pairs)}")
        return compared

    def test_numbers(self):
        with h5py.File(self.path, "w", libver="latest") as file:
            for dtype in INTEGERS + FLOATS:
                self.source(file, edges(dtype), None, shape_of(dtype))
            for dtype, *bits in PARTIAL:
                generator = np.random.default_rng(4)
                raw = generator.integers(0, 256, 300 * np.dtype(dtype).itemsize, "u1").view(dtype)
                tid, wish = partial(dtype, *bits)
                self.source(file, raw, tid, shape_of(wish))
            for order in "<>":
                tid, wish = odd_float(order)
                raw = np.empty(200, order + "f4")
                values = np.random.default_rng(5).normal(size=200) * 1000
                values[:6] = [0, -0.0, np.inf, -np.inf, 1e9, 1e-9]
                space = h5py.h5s.create_simple((200,))
                with h5py.File(f"odd{order}", "w", driver="core", backing_store=False) as memory:
                    made = h5py.h5d.create(memory.id, b"x", tid, space)
                    made.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
                    made.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=tid)
                self.source(file, raw, tid, shape_of(wish))
        for dtype in INTEGERS + FLOATS:
            self.target(dtype, h5py.h5t.py_create(np.dtype(dtype)), np.dtype(dtype).itemsize)
        for dtype, *bits in PARTIAL:
            tid, wish = partial(dtype, *bits)
            self.target(wish, tid, np.dtype(dtype).itemsize)
        for order in "<>":
            tid, wish = odd_float(order)
            self.target(wish, tid, 4)
        self.assertGreater(self.compare(), 400)

    def test_extended_floats_become_doubles(self):
        values = np.array([0, -0.0, 1.5, -2.25, 1e300, 1e-300, np.inf, -np.inf], np.longdouble)
        values = np.concatenate([values, np.random.default_rng(6).normal(size=50).astype(np.longdouble)])
        with h5py.File(self.path, "w", libver="latest") as file:
            self.source(file, values)
        for dtype in ("<f8", ">f4", "<i4"):
            self.target(dtype, h5py.h5t.py_create(np.dtype(dtype)), np.dtype(dtype).itemsize)
        self.assertEqual(self.compare(), 3)

    def test_strings(self):
        texts = [b"", b"a", b"ab", b"abc", b"abcd", b"abcdefgh", b"a b  ", b"  x"]
        paddings = [h5py.h5t.STR_NULLTERM, h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD]
        with h5py.File(self.path, "w", libver="latest") as file:
            for padding in paddings:
                tid = h5py.h5t.C_S1.copy()
                tid.set_size(8)
                tid.set_strpad(padding)
                fill = b" " if padding == h5py.h5t.STR_SPACEPAD else b"\0"
                raw = b"".join(text.ljust(8, fill) for text in texts)
                self.source(file, np.frombuffer(raw, "S8"), tid)
        for size in (1, 3, 8, 12):
            tid = h5py.h5t.C_S1.copy()
            tid.set_size(size)
            tid.set_strpad(h5py.h5t.STR_NULLPAD)
            self.target(f"|S{size}", tid, size)
        self.assertEqual(self.compare(), 12)

    def test_compounds_arrays_and_enumerations(self):
        wide = np.dtype([("a", "<i4"), ("b", ">f8"), ("c", "S3"), ("d", "<u2", (2, 3)), ("e", "u1")])
        data = np.zeros(50, wide)
        generator = np.random.default_rng(7)
        data["a"], data["b"] = generator.integers(-500, 500, 50), generator.normal(size=50) * 300
        data["c"], data["d"] = b"xyz", generator.integers(0, 70_000, (50, 2, 3)) % 65536
        with h5py.File(self.path, "w", libver="latest") as file:
            self.source(file, data)
        narrow = np.dtype({"names": ["b", "a"], "formats": ["<i2", ">i8"], "offsets": [3, 8], "itemsize": 20})
        more = np.dtype([("missing", "<i4"), ("e", "<f4"), ("a", "i1"), ("other", "S5")])
        for dtype in (narrow, more):
            self.target(dtype_to_json(dtype), h5py.h5t.py_create(dtype), dtype.itemsize)
        array = np.dtype([("d", ">f4", (2, 3))])
        wish = {"size": 24, "fields": [{"name": "d", "offset": 0, "dtype": {"array": ">f4", "dims": [2, 3]}}]}
        self.target(wish, h5py.h5t.py_create(array), 24)
        self.assertEqual(self.compare(), 3)
