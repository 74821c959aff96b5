"""Part F: batches of rows, columns and boxes of a sparse matrix, as compressed rows and as columns of cells.

What a loader asks for again and again: the file stays open. "Cold" is the first pass after opening, with the system's
page cache warm; "warm" is the median of the passes after it. All peers read the same windows, and what they read is
compared by number and sum.
"""

import os
import statistics
import sys
import time

os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

import h5py
import numpy as np
import peers
import scipy.sparse
import tiledb

ROWS, COLUMNS = 20_000, 5_000
DENSITIES = (1, 5, 20)


class Matrix:
    """Rows of cells, scattered evenly."""

    def __init__(self, rows, columns, density):
        rng = np.random.default_rng(606)
        self.shape, self.density = (rows, columns), density
        counts = rng.binomial(columns, density, rows)
        self.pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        picked = [np.sort(rng.choice(columns, n, replace=False)) for n in counts]
        self.indices = np.concatenate(picked).astype(np.int32)
        energy = np.clip(rng.exponential(400, len(self.indices)), 1, 4095).astype(np.int32)
        self.values = energy.astype(np.float32) / 4

    def csr(self):
        return scipy.sparse.csr_matrix((self.values, self.indices, self.pointers), self.shape)


class Windows:
    """A list of windows of one kind: rows in batches, columns, or boxes."""

    def __init__(self, name, kind, starts, size, rng, shape):
        self.name, self.kind, self.size = name, kind, size
        # Rows of each batch, the column, or the corner of a box.
        self.asked = list(starts)
        if kind == "rows":
            self.asked = [np.arange(start, start + size) for start in starts]
        elif kind == "scattered":
            self.asked = [rng.permutation(shape[0])[:size] for _ in starts]

    def numbers(self):
        """What the Rust side is told."""
        return np.concatenate([np.atleast_1d(one) for one in self.asked])

    def count(self):
        return len(self.asked)

    def words(self, path):
        if self.kind in ("rows", "scattered"):
            return "rows", path, self.size
        return ("columns", path) if self.kind == "columns" else ("boxes", path, self.size)


def windows(shape, count):
    rng = np.random.default_rng(707)
    rows, columns = shape
    made = []
    for size in (32, 128, 1024):
        number = max(2, count * 128 // max(size, 128))
        starts = rng.integers(0, rows - size, number)
        made.append(Windows(f"{size} rows", "rows", starts, size, rng, shape))
        made.append(Windows(f"{size} rows, scattered", "scattered", starts, size, rng, shape))
    made.append(Windows("a column", "columns", rng.integers(0, columns, count // 10 + 1), 1, rng, shape))
    edge = min(1000, columns // 2)
    corners = rng.integers(0, [rows - edge, columns - edge], (count // 10 + 1, 2))
    made.append(Windows(f"{edge} x {edge}", "boxes", corners, edge, rng, shape))
    return made


class Pumice:
    def __init__(self, program, path, form):
        self.program, self.path, self.form = program, path, form

    def open(self):
        self.program.ask("windows-open", self.path)

    def close(self):
        self.program.ask("windows-close")

    def read(self, batch, listed):
        return self.program.measure("windows-read", self.form, *batch.words(listed))


class H5pyCsr:
    """Three datasets; rows are sliced, anything else goes through scipy or all of it."""

    def __init__(self, path, matrix, options):
        self.path, self.shape = path, matrix.shape
        with h5py.File(path, "w", libver="latest") as file:
            length = min(peers.LIST_CHUNK, len(matrix.values))
            chunks = {"chunks": (length,)} if options else {}
            file.create_dataset("values", data=matrix.values, **chunks, **options)
            file.create_dataset("indices", data=matrix.indices, **chunks, **options)
            file.create_dataset("pointers", data=matrix.pointers)

    def open(self):
        self.file = h5py.File(self.path, "r")
        self.values, self.indices = self.file["values"], self.file["indices"]
        self.pointers = self.file["pointers"][:]

    def close(self):
        self.file.close()

    def rows(self, start, end):
        begin, stop = self.pointers[start], self.pointers[end]
        return self.values[begin:stop], self.indices[begin:stop], self.pointers[start : end + 1] - begin

    def batch(self, rows):
        if rows[-1] - rows[0] == len(rows) - 1 and np.all(np.diff(rows) == 1):
            return self.rows(rows[0], rows[-1] + 1)[0]
        parts = [self.rows(row, row + 1) for row in rows]
        indices = np.concatenate([part[1] for part in parts])
        pointers = np.concatenate([[0], np.cumsum([len(part[0]) for part in parts])])
        assert pointers[-1] == len(indices)
        return np.concatenate([part[0] for part in parts])

    def column(self, column):
        return self.values[:][self.indices[:] == column]

    def box(self, corner, edge):
        values, indices, _ = self.rows(corner[0], corner[0] + edge)
        return values[(indices >= corner[1]) & (indices < corner[1] + edge)]

    def read(self, batch, _listed):
        found, seconds = [], 0.0
        act = {"columns": self.column, "boxes": lambda corner: self.box(corner, batch.size)}
        act = act.get(batch.kind, self.batch)
        for one in batch.asked:
            start = time.perf_counter()
            values = act(one)
            seconds += time.perf_counter() - start
            found.append((len(values), float(values.sum(dtype=np.float64))))
        return seconds, (sum(n for n, _ in found), sum(s for _, s in found))


class Anndata(H5pyCsr):
    """anndata's backed matrix, if the package is there."""

    def __init__(self, path, matrix):
        import anndata

        self.anndata, self.path = anndata, path
        anndata.AnnData(matrix.csr()).write_h5ad(path)

    def open(self):
        self.table = self.anndata.read_h5ad(self.path, backed="r")

    def close(self):
        self.table.file.close()

    def batch(self, rows):
        return self.table.X[rows].data

    def column(self, column):
        return self.table.X[:, [column]].data

    def box(self, corner, edge):
        return self.table.X[corner[0] : corner[0] + edge, corner[1] : corner[1] + edge].data


class TileDb(H5pyCsr):
    def __init__(self, path, matrix):
        self.path = str(path)
        rows, columns = matrix.shape
        zstd = tiledb.FilterList([tiledb.ZstdFilter(3)])
        domain = tiledb.Domain(
            tiledb.Dim("r", (0, rows - 1), min(rows, 500), filters=zstd, dtype=np.int64),
            tiledb.Dim("c", (0, columns - 1), min(columns, 500), filters=zstd, dtype=np.int64),
        )
        schema = tiledb.ArraySchema(
            domain, [tiledb.Attr("v", dtype=np.float32, filters=zstd)], sparse=True, capacity=100_000
        )
        tiledb.Array.create(self.path, schema)
        down = np.repeat(np.arange(rows), np.diff(matrix.pointers))
        with tiledb.open(self.path, "w") as array:
            array[down, matrix.indices.astype(np.int64)] = matrix.values

    def open(self):
        self.array = tiledb.open(self.path)

    def close(self):
        self.array.close()

    def batch(self, rows):
        if np.all(np.diff(rows) == 1):
            return self.array[rows[0] : rows[-1] + 1]["v"]
        return self.array.multi_index[list(map(int, rows)), :]["v"]

    def column(self, column):
        return self.array.multi_index[:, int(column)]["v"]

    def box(self, corner, edge):
        return self.array[corner[0] : corner[0] + edge, corner[1] : corner[1] + edge]["v"]


def entrants(arguments, program, work, matrix):
    matrix.pointers.astype("<u4").tofile(work / "pointers.bin")
    matrix.indices.astype("<u4").tofile(work / "columns.bin")
    matrix.values.tofile(work / "values.bin")
    program.ask("load-rows", work)
    ours = work / "windows.h5"
    program.ask("windows-write", ours, matrix.shape[1])
    made = {
        "Pumice, CSR": Pumice(program, ours, "csr"),
        "Pumice, CSR, memory kept": Pumice(program, ours, "csr-kept"),
        "Pumice, columns": Pumice(program, ours, "columns"),
        "Pumice, points": Pumice(program, ours, "defined"),
        "Pumice, dense": Pumice(program, ours, "dense"),
        "CSR in h5py": H5pyCsr(work / "w0.h5", matrix, {}),
        "gzip": H5pyCsr(work / "w1.h5", matrix, peers.GZIP),
        "blosc-zstd": H5pyCsr(work / "w2.h5", matrix, peers.BLOSC),
        "TileDB": TileDb(work / "w3", matrix),
    }
    try:
        made["anndata"] = Anndata(work / "w4.h5ad", matrix)
    except ImportError:
        print("  anndata is not installed: left out", file=sys.stderr)
    if arguments.peers:
        words = ["pumice", *arguments.peers.lower().split(",")]
        made = {name: it for name, it in made.items() if any(w in name.lower() for w in words)}
    return made


def measure(arguments, made, batch, listed):
    """{name: (cold, warm)} in seconds for all windows of a kind."""
    result, wanted = {}, None
    for name, peer in made.items():
        peer.open()
        times = []
        for _ in range(1 + arguments.rounds):
            seconds, found = peer.read(batch, listed)
            if name != "Pumice, dense":
                wanted = wanted or found
                if found[0] != wanted[0] or abs(found[1] - wanted[1]) > 1e-6 * max(1.0, wanted[1]):
                    sys.exit(f"{name}, {batch.name}: got {found}, expected {wanted}")
            times.append(seconds)
            if sum(times) > arguments.patience and len(times) > 1:
                break
        peer.close()
        result[name] = times[0], statistics.median(times[1:])
    return result


def windows_part(arguments, program, work):
    shape = (2_000, 500) if arguments.quick else (ROWS, COLUMNS)
    listed = work / "windows.bin"
    for density in (percent / 100 for percent in arguments.density or DENSITIES):
        matrix = Matrix(*shape, density)
        made = entrants(arguments, program, work, matrix)
        print(f"\n## F. Windows of a sparse {shape[0]:,} x {shape[1]:,} float32 matrix, {density:.0%}\n")
        names, rows = list(made), []
        for batch in windows(shape, 20 if arguments.quick else 200):
            batch.numbers().astype("<u8").tofile(listed)
            rows.append((batch, measure(arguments, made, batch, listed)))
            print(f"  {density:.0%}, {batch.name}: done", file=sys.stderr)
        for state, title in enumerate(("cold", "warm")):
            print(f"\nMilliseconds a window, {title}:\n")
            print("| | " + " | ".join(names) + " |")
            print("|---" * (len(names) + 1) + "|")
            for batch, times in rows:
                cells = [f"{times[name][state] * 1e3 / batch.count():.3g}" for name in names]
                print(f"| {batch.name} | " + " | ".join(cells) + " |", flush=True)
        for peer in made.values():
            peers.remove(work / os.path.basename(str(peer.path)))
