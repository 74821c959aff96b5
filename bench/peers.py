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

try:
    import pumice
except ImportError:
    pumice = None

HERE = pathlib.Path(__file__).resolve().parent
GZIP = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
BLOSC = dict(hdf5plugin.Blosc(cname="zstd", clevel=3, shuffle=hdf5plugin.Blosc.SHUFFLE))
LIST_CHUNK = 65536
METHODS = {
    "128 rows": "rows",
    "128 columns": "columns",
    "500 windows": "windows",
    "10,000 points": "points",
    "update 1 %": "update",
    "erase 1 %": "erase",
}


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def set_aside(path):
    """A copy to put back later."""
    copy = path.with_name(path.name + ".original")
    remove(copy)
    (shutil.copytree if path.is_dir() else shutil.copyfile)(path, copy)
    return copy


def put_back(copy, path):
    remove(path)
    copy.rename(path)


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
        method = getattr(self, METHODS.get(operation, operation.replace(" ", "_")))
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
        whole = {
            "read all": "sparse-all",
            "where": "sparse-where",
            "10,000 points": "sparse-points",
            "update 1 %": "sparse-update",
            "erase 1 %": "sparse-erase",
        }.get(operation)
        if whole:
            return self.program.measure(whole, self.path)
        box = {
            "window": (*d.corner, d.box, d.box),
            "row": (d.row, 0, 1, edge),
            "column": (0, d.column, edge, 1),
        }[operation]
        return self.program.measure("sparse-box", self.path, *box)


class PumicePython(Peer):
    """The Python package, where it is installed: what `PumiceSparse` does, through numpy."""

    def __init__(self, data, path, filtered):
        super().__init__(data, path)
        self.filtered = filtered

    def write(self):
        d = self.data
        options = {} if self.filtered else {"compression": False, "location_compression": True}
        matrix = scipy.sparse.csr_array((d.values, d.columns, d.pointers), (d.edge, d.edge))
        matrix.has_canonical_format = True
        with pumice.File(self.path, "w") as file:
            pumice.from_scipy(file, "d", matrix, **options)

    def get(self, key):
        with pumice.File(self.path) as file:
            return file["d"].sparse("coo")[key].data

    def read_all(self):
        return self.get(())

    def where(self):
        with pumice.File(self.path) as file:
            rows, _ = file["d"].sparse.where()
        return len(rows), float(len(rows))

    def window(self):
        (row, column), box = self.data.corner, self.data.box
        return self.get((slice(row, row + box), slice(column, column + box)))

    def row(self):
        return self.get((slice(self.data.row, self.data.row + 1), slice(None)))

    def column(self):
        return self.get((slice(None), slice(self.data.column, self.data.column + 1)))

    def points(self):
        with pumice.File(self.path) as file:
            return file["d"].read_cells(np.divmod(self.data.points, self.data.edge))

    def update(self):
        d = self.data
        with pumice.File(self.path, "r+") as file:
            file["d"].write_cells((d.rows[d.changed], d.columns[d.changed]), np.float32(1))

    def erase(self):
        d = self.data
        with pumice.File(self.path, "r+") as file:
            file["d"].erase_cells((d.rows[d.erased], d.columns[d.erased]))


class Csr(Peer):
    """Compressed sparse rows in three datasets, the layout of anndata and 10x."""

    def __init__(self, data, path, options):
        super().__init__(data, path)
        self.options = options

    def write(self):
        d = self.data
        self.store(d.values, d.columns, d.pointers)

    def store(self, values, columns, pointers):
        parts = {"data": values, "indices": columns, "indptr": pointers}
        with h5py.File(self.path, "w", libver="latest") as file:
            for name, array in parts.items():
                options = self.options
                if options:
                    options = {**options, "chunks": (min(LIST_CHUNK, len(array)),)}
                file.create_dataset(name, data=array, **options)

    def load(self):
        """Values, columns, pointers."""
        with h5py.File(self.path) as file:
            return file["data"][:], file["indices"][:], file["indptr"][:]

    def spelt_out(self, pointers):
        """The row of each cell: coordinates are asked for."""
        return np.repeat(np.arange(self.data.edge, dtype=np.int32), np.diff(pointers))

    def read_all(self):
        values, _, pointers = self.load()
        self.spelt_out(pointers)
        return values

    def where(self):
        with h5py.File(self.path) as file:
            columns = file["indices"][:]
            self.spelt_out(file["indptr"][:])
        return len(columns), float(len(columns))

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

    def found(self, columns, pointers, cells):
        """Where cells are, or would be, in the lists."""
        linear = self.spelt_out(pointers).astype(np.int64) * self.data.edge + columns
        at = np.searchsorted(linear, cells)
        at[at == len(linear)] = 0
        return at, linear[at] == cells

    def points(self):
        values, columns, pointers = self.load()
        at, hit = self.found(columns, pointers, self.data.points)
        return np.where(hit, values[at], np.float32(0))

    def update(self):
        """Positions are found by search; then the values are rewritten in place."""
        values, columns, pointers = self.load()
        at, _ = self.found(columns, pointers, self.data.cells[self.data.changed])
        values[at] = 1
        with h5py.File(self.path, "r+") as file:
            file["data"][:] = values

    def erase(self):
        """Lists shift: everything is rewritten."""
        values, columns, pointers = self.load()
        at, _ = self.found(columns, pointers, self.data.cells[self.data.erased])
        keep = np.ones(len(values), bool)
        keep[at] = False
        rows = self.spelt_out(pointers)[keep]
        counts = np.cumsum(np.bincount(rows, minlength=self.data.edge))
        pointers = np.concatenate([[0], counts]).astype(np.int32)
        self.store(values[keep], columns[keep], pointers)


class Npz(Csr):
    """scipy's own files, compressed. Everything is loaded for every operation."""

    def __init__(self, data, path):
        super().__init__(data, path, {})

    def store(self, values, columns, pointers):
        shape = (self.data.edge,) * 2
        matrix = scipy.sparse.csr_array((values, columns, pointers), shape=shape)
        scipy.sparse.save_npz(self.path, matrix, compressed=True)

    def matrix(self):
        return scipy.sparse.load_npz(self.path)

    def load(self):
        matrix = self.matrix()
        return matrix.data, matrix.indices, matrix.indptr

    def where(self):
        _, columns, pointers = self.load()
        self.spelt_out(pointers)
        return len(columns), float(len(columns))

    def window(self):
        (row, column), box = self.data.corner, self.data.box
        return self.matrix()[row : row + box, column : column + box].data

    def row(self):
        return self.matrix()[[self.data.row], :].data

    def column(self):
        return self.matrix()[:, [self.data.column]].data

    def update(self):
        values, columns, pointers = self.load()
        at, _ = self.found(columns, pointers, self.data.cells[self.data.changed])
        values[at] = 1
        self.store(values, columns, pointers)


class DenseChunks(Peer):
    """Dense 256 x 256 chunks with gzip: every cell is stored, undefined ones as zero."""

    def write(self):
        d, side = self.data, 256
        with h5py.File(self.path, "w", libver="latest") as file:
            shape = (d.edge, d.edge)
            dataset = file.create_dataset("d", shape, "f4", chunks=(side, side), **GZIP)
            for top in range(0, d.edge, side):
                low, high = d.pointers[top], d.pointers[min(top + side, d.edge)]
                band = np.zeros((min(side, d.edge - top), d.edge), np.float32)
                band[d.rows[low:high] - top, d.columns[low:high]] = d.values[low:high]
                dataset[top : top + side] = band

    def bands(self):
        with h5py.File(self.path) as file:
            for top in range(0, self.data.edge, 256):
                band = file["d"][top : top + 256]
                yield (*np.nonzero(band), band)

    def read_all(self):
        return np.concatenate([band[rows, columns] for rows, columns, band in self.bands()])

    def where(self):
        count = sum(len(rows) for rows, _, _ in self.bands())
        return count, float(count)

    def defined(self, key):
        with h5py.File(self.path) as file:
            part = file["d"][key]
        return part[np.nonzero(part)]

    def window(self):
        (row, column), box = self.data.corner, self.data.box
        return self.defined((slice(row, row + box), slice(column, column + box)))

    def row(self):
        return self.defined(self.data.row)

    def column(self):
        return self.defined((slice(None), self.data.column))

    def chosen(self, dataset, cells):
        """libhdf5's own selection of points."""
        space = dataset.id.get_space()
        pairs = np.stack(np.divmod(cells, self.data.edge), 1)
        space.select_elements(np.ascontiguousarray(pairs.astype(np.uint64)))
        return h5py.h5s.create_simple((len(cells),)), space

    def points(self):
        values = np.empty(len(self.data.points), np.float32)
        with h5py.File(self.path) as file:
            file["d"].id.read(*self.chosen(file["d"], self.data.points), values)
        return values

    def put(self, cells, value):
        values = np.full(len(cells), value, np.float32)
        with h5py.File(self.path, "r+") as file:
            file["d"].id.write(*self.chosen(file["d"], cells), values)

    def update(self):
        self.put(self.data.cells[self.data.changed], 1)

    def erase(self):
        self.put(self.data.cells[self.data.erased], 0)


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

    def where(self):
        with tiledb.open(str(self.path), ctx=self.context) as array:
            found = array.query(attrs=[], dims=["row", "column"])[:]
        return len(found["row"]), float(len(found["row"]))

    def points(self):
        """There is no query for scattered cells: read all, sort, search."""
        with tiledb.open(str(self.path), ctx=self.context) as array:
            found = array[:]
        linear = found["row"].astype(np.int64) * self.data.edge + found["column"]
        order = np.argsort(linear)
        linear, values = linear[order], found["value"][order]
        at = np.searchsorted(linear, self.data.points)
        at[at == len(linear)] = 0
        return np.where(linear[at] == self.data.points, values[at], np.float32(0))

    def update(self):
        """Adds a fragment beside the others, which later reads have to merge."""
        d = self.data
        with tiledb.open(str(self.path), "w", ctx=self.context) as array:
            ones = np.ones(len(d.changed), np.float32)
            array[d.rows[d.changed], d.columns[d.changed]] = ones


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
