"""Talks to pumice-interop (see README.md): writes specifications, reads manifests."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program(variable, name):
    """A built program: the one the variable names, else one in target/debug."""
    if variable in os.environ:
        path = pathlib.Path(os.environ[variable])
        path = path if path.is_absolute() else ROOT / path
        if not path.is_file():
            raise FileNotFoundError(f"{variable} names {path}, which is not there")
        return path
    path = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug" / name
    return path if path.is_file() else None


def dtype_to_json(dtype):
    dtype = np.dtype(dtype)
    names = h5py.check_enum_dtype(dtype)
    if names:
        return {"enum": names, "base": dtype.str}
    if dtype.subdtype:
        return {"array": dtype_to_json(dtype.subdtype[0]), "dims": list(dtype.subdtype[1])}
    if dtype.kind == "c":
        part = f"{dtype.str[0]}f{dtype.itemsize // 2}"
        fields = [{"name": n, "offset": i * dtype.itemsize // 2, "dtype": part} for i, n in enumerate("ri")]
        return {"size": dtype.itemsize, "fields": fields}
    if not dtype.names:
        return dtype.str
    fields = [
        {
            "name": name,
            "offset": dtype.fields[name][1],
            "dtype": dtype_to_json(dtype.fields[name][0]),
        }
        for name in dtype.names
    ]
    return {"size": dtype.itemsize, "fields": fields}


def dtype_from_json(text):
    if isinstance(text, str):
        return np.dtype(text)
    fields = text["fields"]
    return np.dtype(
        {
            "names": [f["name"] for f in fields],
            "formats": [dtype_from_json(f["dtype"]) for f in fields],
            "offsets": [f["offset"] for f in fields],
            "itemsize": text["size"],
        }
    )


class Specification:
    """A list of operations and the raw files they name."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.operations = []
        self.files = 0

    def op(self, kind, **fields):
        self.operations.append({"op": kind, **{k: v for k, v in fields.items() if v is not None}})

    def store(self, array):
        """Put an array's bytes into a new file and return its name."""
        name = f"{self.files}.bin"
        self.files += 1
        (self.directory / name).write_bytes(np.ascontiguousarray(array).tobytes())
        return name

    def group(self, path):
        self.op("group", path=path)

    def create(self, kind, path, dtype, shape, **options):
        fill = options.pop("fill", None)
        if fill is not None:
            options["fill"] = np.array(fill, dtype).tobytes().hex()
        self.op(kind, path=path, dtype=dtype_to_json(dtype), shape=list(map(int, shape)), **options)

    def dense(self, path, array, **options):
        array = np.asarray(array)
        self.create("dense", path, array.dtype, array.shape, **options)
        self.op("write", path=path, data=self.store(array))

    def attribute(self, path, name, value):
        array = np.asarray(value)
        self.op(
            "attribute",
            path=path,
            name=name,
            dtype=dtype_to_json(array.dtype),
            shape=list(array.shape),
            data=self.store(array),
        )

    def write_block(self, path, start, array):
        self.op(
            "write",
            path=path,
            start=list(map(int, start)),
            count=list(array.shape),
            data=self.store(array),
        )

    def write_points(self, path, coordinates, values):
        coords = self.store(np.asarray(coordinates, "<u8"))
        self.op("write_points", path=path, coords=coords, values=self.store(values))

    def save(self):
        path = self.directory / "spec.jsonl"
        path.write_text("".join(json.dumps(op) + "\n" for op in self.operations))
        return path


class Manifest:
    """What Pumice read from a file: {path: object}, arrays loaded on demand."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        lines = (self.directory / "manifest.jsonl").read_text().splitlines()
        self.objects = {}
        for line in lines:
            entry = json.loads(line)
            if entry["path"] in self.objects:
                raise AssertionError(f"{entry['path']} is listed twice")
            self.objects[entry["path"]] = entry

    def array(self, entry, key="data"):
        """The raw data of a dataset or attribute as an array of its shape."""
        dtype = dtype_from_json(entry["dtype"])
        raw = (self.directory / entry[key]).read_bytes()
        return np.frombuffer(raw, dtype).reshape(entry["shape"] if key == "data" else -1)

    def cells(self, entry):
        """(coordinates, values) of a sparse dataset, in row-major order."""
        raw = (self.directory / entry["coords"]).read_bytes()
        coordinates = np.frombuffer(raw, "<u8").reshape(-1, len(entry["shape"]))
        order = np.lexsort(coordinates.T[::-1])
        return coordinates[order], self.array(entry, "values")[order]


class InteropCase(unittest.TestCase):
    """A test with a directory of its own and Pumice at hand."""

    def setUp(self):
        self.binary = program("PUMICE_INTEROP", "pumice-interop")
        if self.binary is None:
            self.skipTest("pumice-interop is not built")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="pumice-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def run_interop(self, *arguments):
        command = [str(self.binary), *map(str, arguments)]
        quiet = {**os.environ, "RUST_BACKTRACE": "0"}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, env=quiet
        )
        self.assertEqual(done.returncode, 0, f"{' '.join(command)}\n{done.stderr[-2000:]}")

    def specification(self, name="spec"):
        return Specification(self.directory / name)

    def write(self, specification, name="out.h5"):
        path = self.directory / name
        self.run_interop("write", specification.save(), path)
        return path

    def edit(self, specification, path):
        self.run_interop("edit", specification.save(), path)
        return path

    def read(self, path):
        out = pathlib.Path(tempfile.mkdtemp(prefix="read-", dir=self.directory))
        self.run_interop("read", path, out)
        return Manifest(out)

    def found(self, manifest, path):
        """A manifest's entry, which must not be an error."""
        self.assertIn(path, manifest.objects)
        entry = manifest.objects[path]
        self.assertNotEqual(entry["kind"], "error", entry.get("message"))
        return entry

    def same_bytes(self, found, wanted, message=None):
        """Equal shape, dtype and bytes (so NaN and signed zero count too)."""
        self.assertEqual(found.shape, wanted.shape, message)
        self.assertEqual(found.dtype, wanted.dtype, message)
        if found.tobytes() != np.ascontiguousarray(wanted).tobytes():
            np.testing.assert_array_equal(found, wanted, message or "")
            self.fail(f"{message or ''}: equal values, different bytes")
