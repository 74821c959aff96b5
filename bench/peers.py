"""Pumice and its peers. Each operation opens the file, works, and closes it.

An operation returns (seconds, values): the clock runs inside, so that Pumice,
which works in a process of its own, is measured like the others. `values` is an
array, or (count, sum) where the array stays in the other process.
"""

import os
import pathlib
import shutil
import subprocess
import time

os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

import h5py
import hdf5plugin
import numpy as np
import scipy.sparse
import tiledb

HERE = pathlib.Path(__file__).resolve().parent
GZIP = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
BLOSC = dict(hdf5plugin.Blosc(cname="zstd", clevel=3, shuffle=hdf5plugin.Blosc.SHUFFLE))
LIST_CHUNK = 65536


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def stored_bytes(path):
    """Bytes of a file, or of all files in a directory."""
    if path.is_dir():
        return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    return path.stat().st_size


class Peer:
    """A file of one library; subclasses define the operations as methods."""

    def __init__(self, data, path):
        self.data, self.path = data, path

    def run(self, operation):
        method = getattr(self, operation.replace(" ", "_").replace("128_", "").replace("500_", ""))
        if operation == "write":
            remove(self.path)
        start = time.perf_counter()
        values = method()
        return time.perf_counter() - start, values

    def size(self):
        return stored_bytes(self.path)


class Program:
    """The Rust program; one process for the whole run."""

    def __init__(self, binary):
        self.process = subprocess.Popen(
            [binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"pumice-bench {words[0]}: {answer or 'no answer'}")
        return answer

    def measure(self, *words):
        seconds, count, total = self.ask(*words).split()
        return float(seconds), (int(count), float(total))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class PumiceSparse(Peer):
    def __init__(self, data, path, program, filtered):
        super().__init__(data, path)
        self.program, self.filtered = program, filtered

    def run(self, operation):
        d, edge = self.data, self.data.edge
        if operation == "write":
            remove(self.path)
            return self.program.measure("sparse-write", self.path, int(self.filtered))
        if operation == "read all":
            return self.program.measure("sparse-all", self.path)
        box = {
            "window": (*d.corner, d.box, d.box),
            "row": (d.row, 0, 1, edge),
            "column": (0, d.column, edge, 1),
        }[operation]
        return self.program.measure("sparse-box", self.path, *box)


class Csr(Peer):
    """Compressed sparse rows in three datasets, the layout of anndata and 10x."""

    def __init__(self, data, path, options):
        super().__init__(data, path)
        self.options = options

    def write(self):
        d = self.data
        parts = {"data": d.values, "indices": d.columns, "indptr": d.pointers}
        with h5py.File(self.path, "w", libver="latest") as file:
            for name, array in parts.items():
                options = self.options
                if options:
                    options = {**options, "chunks": (min(LIST_CHUNK, len(array)),)}
                file.create_dataset(name, data=array, **options)

    def read_all(self):
        with h5py.File(self.path) as file:
            parts = file["data"][:], file["indices"][:], file["indptr"][:]
        matrix = scipy.sparse.csr_array(parts, shape=(self.data.edge,) * 2)
        # Coordinates are asked for: row numbers have to be spelt out.
        np.repeat(np.arange(self.data.edge, dtype=np.int32), np.diff(matrix.indptr))
        return matrix.data

    def window(self):
        (row, column), box = self.data.corner, self.data.box
        with h5py.File(self.path) as file:
            pointers = file["indptr"][row : row + box + 1]
            low, high = pointers[0], pointers[-1]
            columns = file["indices"][low:high]
            inside = (columns >= column) & (columns < column + box)
            np.repeat(np.arange(box), np.diff(pointers))[inside]
            return file["data"][low:high][inside]

    def row(self):
        with h5py.File(self.path) as file:
            low, high = file["indptr"][self.data.row : self.data.row + 2]
            file["indices"][low:high]
            return file["data"][low:high]

    def column(self):
        with h5py.File(self.path) as file:
            inside = file["indices"][:] == self.data.column
            np.searchsorted(file["indptr"][:], np.flatnonzero(inside), "right")
            return file["data"][:][inside]


class TileDb(Peer):
    """A sparse TileDB array."""

    def __init__(self, data, path, compressed):
        super().__init__(data, path)
        zstd = tiledb.ZstdFilter(level=3)
        self.dimension = [tiledb.DoubleDeltaFilter(), zstd] if compressed else []
        self.attribute = [tiledb.ByteShuffleFilter(), zstd] if compressed else []
        self.context = tiledb.Ctx(tiledb.Config({"sm.memory_budget": str(4 << 30)}))

    def write(self):
        d, filters = self.data, tiledb.FilterList(self.dimension)
        dimensions = [
            tiledb.Dim(name=n, domain=(0, d.edge - 1), tile=500, dtype=np.int32, filters=filters)
            for n in ("row", "column")
        ]
        attribute = tiledb.Attr(
            name="value", dtype=np.float32, filters=tiledb.FilterList(self.attribute)
        )
        schema = tiledb.ArraySchema(
            domain=tiledb.Domain(*dimensions),
            attrs=[attribute],
            sparse=True,
            capacity=50_000,
            coords_filters=filters,
            ctx=self.context,
        )
        tiledb.Array.create(str(self.path), schema, ctx=self.context)
        with tiledb.open(str(self.path), "w", ctx=self.context) as array:
            array[d.rows, d.columns] = d.values

    def get(self, key):
        with tiledb.open(str(self.path), ctx=self.context) as array:
            return array[key]["value"]

    def read_all(self):
        return self.get(slice(None))

    def window(self):
        (row, column), box = self.data.corner, self.data.box
        return self.get((slice(row, row + box), slice(column, column + box)))

    def row(self):
        return self.get((self.data.row, slice(None)))

    def column(self):
        return self.get((slice(None), self.data.column))


class PumiceDense(Peer):
    """Reads the file that h5py wrote; writes one of its own."""

    def __init__(self, data, path, program, own):
        super().__init__(data, path)
        self.program, self.own = program, own

    def run(self, operation):
        d = self.data
        if operation == "write":
            remove(self.own)
            return self.program.measure("dense-write", self.own, d.chunk, 4)
        words = {
            "read all": ("dense-all", self.path),
            "128 rows": ("dense-rows", self.path, *d.lines),
            "128 columns": ("dense-columns", self.path, *d.lines),
            "500 windows": ("dense-windows", self.path, d.window),
        }[operation]
        return self.program.measure(*words)

    def size(self):
        return stored_bytes(self.own)


class H5pyDense(Peer):
    def write(self):
        chunks = (self.data.chunk,) * 2
        with h5py.File(self.path, "w", libver="v110") as file:
            file.create_dataset("d", data=self.data.values, chunks=chunks, **GZIP)

    def read_all(self):
        with h5py.File(self.path) as file:
            return file["d"][:]

    def rows(self):
        first, count = self.data.lines
        with h5py.File(self.path) as file:
            d = file["d"]
            return np.array([d[i][0] for i in range(first, first + count)])

    def columns(self):
        first, count = self.data.lines
        with h5py.File(self.path) as file:
            d = file["d"]
            return np.array([d[:, i][0] for i in range(first, first + count)])

    def windows(self):
        size = self.data.window
        with h5py.File(self.path) as file:
            d = file["d"]
            return np.array(
                [d[r : r + size, c : c + size][0, 0] for r, c in self.data.corners.tolist()]
            )
