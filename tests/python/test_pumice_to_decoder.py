"""Random sparse files of Pumice, decoded by the independent decoder cell by cell."""

import math

import numpy as np

from hdf5_bytes import DEFLATE, FLETCHER32, LOCATION, SHUFFLE, ZSTD
from interop import InteropCase, Manifest
from sparse_cases import RECORD, clustered_cells, random_cells, random_values
from structured_decoder import decode

TYPES = [
    "i1",
    "u1",
    "<i2",
    ">i2",
    "<i4",
    ">u4",
    "<i8",
    ">i8",
    "<f2",
    "<f4",
    ">f4",
    "<f8",
    "S5",
    RECORD,
]
# A filter that nobody has: optional, so it is skipped and the mask says so.
UNKNOWN = 77
LOCATIONS = [
    [],
    [(DEFLATE, [6])],
    [(ZSTD, [3])],
    [(SHUFFLE, [4]), (DEFLATE, [1])],
    [(UNKNOWN, []), (ZSTD, [3])],
    [(LOCATION, [])],
    [(LOCATION, []), (ZSTD, [3])],
    [(LOCATION, []), (DEFLATE, [6])],
]
DATASETS, PER_FILE = 320, 32
FILES = 2000


def reserved(chain):
    return [{"id": i, "parameters": p} for i, p in chain]


class Model:
    """What a sparse dataset must hold, kept as {cell: value bytes}."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.cells = tuple(shape), np.dtype(dtype), {}

    def write(self, coordinates, values):
        raw, size = values.tobytes(), self.dtype.itemsize
        for number, cell in enumerate(map(tuple, coordinates.tolist())):
            self.cells[cell] = raw[number * size : (number + 1) * size]

    def erase(self, start, count):
        box = list(zip(start, (s + c for s, c in zip(start, count))))
        self.cells = {
            cell: value
            for cell, value in self.cells.items()
            if not all(low <= x < high for x, (low, high) in zip(cell, box))
        }

    def resize(self, shape):
        self.shape = tuple(shape)
        self.cells = {
            cell: value
            for cell, value in self.cells.items()
            if all(x < size for x, size in zip(cell, shape))
        }

    def arrays(self):
        order = sorted(self.cells)
        coordinates = np.array(order, np.uint64).reshape(len(order), len(self.shape))
        raw = b"".join(self.cells[cell] for cell in order)
        return coordinates, np.frombuffer(raw, self.dtype)


class RandomDataset:
    """One dataset with a random shape, spelling and history."""

    def __init__(self, rng, spec, path, tops=(4000, 80, 22, 11)):
        self.rng, self.spec, self.path = rng, spec, path
        self.rank = int(rng.integers(1, 5))
        self.dtype = np.dtype(TYPES[rng.integers(len(TYPES))])
        top = tops[self.rank - 1]
        self.shape = [int(rng.integers(1, top)) for _ in range(self.rank)]
        self.chunk = [int(rng.integers(1, max(2, n * 2 // 3 + 2))) for n in self.shape]
        self.chunk = [min(c, n) for c, n in zip(self.chunk, self.shape)]
        self.limit_chunks()
        self.choose_maximum()
        self.filters = self.choose_filters()
        self.model = Model(self.shape, self.dtype)
        spec.create(
            "sparse",
            path,
            self.dtype,
            self.shape,
            maxshape=self.maximum,
            chunks=self.chunk,
            filters=self.filters,
        )

    def limit_chunks(self):
        """A few hundred chunks at most, so that the suite stays quick."""
        while math.prod(-(-n // c) for n, c in zip(self.shape, self.chunk)) > 300:
            axis = int(np.argmax([n / c for n, c in zip(self.shape, self.chunk)]))
            self.chunk[axis] = min(self.shape[axis], self.chunk[axis] * 2)

    def choose_maximum(self):
        """Fixed, one unlimited axis, several, or one chunk for everything."""
        kind = int(self.rng.integers(5))
        self.maximum = list(self.shape)
        if kind == 0:
            self.chunk = list(self.shape)
        elif kind == 1:
            self.maximum = [n + int(self.rng.integers(0, n + 1)) for n in self.shape]
        elif kind == 2:
            self.maximum[int(self.rng.integers(self.rank))] = None
        elif kind == 3:
            self.maximum = [None] * self.rank

    def choose_filters(self):
        kind = self.rng.random()
        if kind < 0.2:
            return None
        if kind < 0.35:
            return [[], []]
        size = self.dtype.itemsize
        values = [
            [],
            [(DEFLATE, [4])],
            [(SHUFFLE, [size]), (DEFLATE, [6])],
            [(SHUFFLE, [size]), (ZSTD, [3])],
            [(SHUFFLE, [size]), (DEFLATE, [1]), (FLETCHER32, [])],
            [(UNKNOWN, []), (DEFLATE, [1])],
            [(DEFLATE, [9]), (UNKNOWN, []), (FLETCHER32, [])],
        ]
        chains = (LOCATIONS, values)
        return [reserved(chain[self.rng.integers(len(chain))]) for chain in chains]

    def step(self):
        """One random change, to the file and to the model."""
        kind = self.rng.random()
        if kind < 0.55:
            self.write_points()
        elif kind < 0.7:
            self.write_block()
        elif kind < 0.9:
            self.erase()
        else:
            self.resize()

    def write_points(self):
        if 0 in self.model.shape:
            return
        make = random_cells if self.rng.random() < 0.6 else clustered_cells
        cells = make(self.rng, self.model.shape, int(self.rng.integers(1, 200)))
        if self.rng.random() < 0.3:
            cells = self.rng.permutation(cells)
        values = random_values(self.rng, len(cells), self.dtype)
        self.spec.write_points(self.path, cells, values)
        self.model.write(cells, values)

    def block(self):
        start = [int(self.rng.integers(0, n)) for n in self.model.shape]
        most = {1: 300, 2: 16, 3: 7, 4: 4}[self.rank]
        count = [
            int(self.rng.integers(1, min(most, n - s) + 1)) for s, n in zip(start, self.model.shape)
        ]
        return start, count

    def write_block(self):
        if 0 in self.model.shape:
            return
        start, count = self.block()
        values = random_values(self.rng, math.prod(count), self.dtype)
        self.spec.write_block(self.path, start, values.reshape(count))
        cells = np.stack(np.unravel_index(np.arange(len(values)), count), 1)
        self.model.write(cells + np.array(start), values)

    def erase(self):
        if 0 in self.model.shape:
            return
        start, count = self.block()
        if self.rng.random() < 0.2:
            start, count = [0] * self.rank, list(self.model.shape)
        self.spec.op("erase", path=self.path, start=start, count=count)
        self.model.erase(start, count)

    def resize(self):
        shape = []
        for size, most in zip(self.model.shape, self.maximum):
            limit = size + 6 if most is None else most
            shape.append(int(self.rng.integers(max(0, size - 5), limit + 1)))
        self.spec.op("resize", path=self.path, shape=shape)
        self.model.resize(shape)


class SparseFilesOfPumice(InteropCase):
    def make_file(self, rng, name):
        """A file of many datasets whose changes are interleaved."""
        spec = self.specification(name)
        datasets = []
        for number in range(PER_FILE):
            if number % 8 == 0:
                group = f"/g{number // 8}"
                spec.group(group)
            datasets.append(RandomDataset(rng, spec, f"{group}/d{number}"))
        for _ in range(PER_FILE * 4):
            datasets[rng.integers(len(datasets))].step()
            if rng.random() < 0.03:
                spec.op("reopen")
        return self.write(spec, f"{name}.h5"), datasets

    def test_random_sparse_files_decode_to_what_was_written(self):
        rng = np.random.default_rng(31)
        kinds = set()
        for number in range(DATASETS // PER_FILE):
            path, datasets = self.make_file(rng, f"random{number}")
            errors = {}
            found = decode(path, errors)
            manifest = self.read(path)
            for dataset in datasets:
                with self.subTest(path=dataset.path, file=number, dtype=str(dataset.dtype)):
                    if dataset.path in errors:
                        self.fail(f"{type(errors[dataset.path]).__name__}: {errors[dataset.path]}")
                    self.compare(found[dataset.path], dataset)
                    self.compare_own(manifest, dataset)
                    kinds.add((found[dataset.path].index, bool(found[dataset.path].filters)))
        self.assertEqual(len(kinds), 8, f"index kinds met: {sorted(kinds)}")

    def test_thousands_of_small_files_decode_to_what_was_written(self):
        rng = np.random.default_rng(33)
        spec = self.specification()
        folder = self.directory / "files"
        folder.mkdir()
        datasets = []
        for number in range(FILES):
            spec.op("file", path=f"f{number}.h5")
            dataset = RandomDataset(rng, spec, "/d", tops=(60, 12, 6, 4))
            for _ in range(int(rng.integers(1, 6))):
                dataset.step()
            datasets.append(dataset)
        self.run_interop("write", spec.save(), folder / "first.h5")
        (folder / "first.h5").unlink()
        out = self.directory / "read"
        self.run_interop("read", folder, out)
        kinds = set()
        for number, dataset in enumerate(datasets):
            found = decode(folder / f"f{number}.h5")["/d"]
            with self.subTest(file=number, dtype=str(dataset.dtype)):
                self.compare(found, dataset)
                self.compare_own(Manifest(out / f"f{number}"), dataset)
            kinds.add((found.index, bool(found.filters)))
        self.assertEqual(len(kinds), 8, f"index kinds met: {sorted(kinds)}")

    def compare(self, found, dataset):
        self.assertEqual(found.layout, "sparse")
        self.assertEqual(found.dtype, dataset.dtype)
        self.assertEqual(found.shape, dataset.model.shape)
        self.assertEqual(found.chunk, tuple(dataset.chunk))
        coordinates, values = dataset.model.arrays()
        np.testing.assert_array_equal(found.coordinates, coordinates)
        self.same_bytes(found.values, values)
        self.assertEqual(found.notes, [])

    def compare_own(self, manifest, dataset):
        entry = self.found(manifest, dataset.path)
        coordinates, values = manifest.cells(entry)
        wanted_coordinates, wanted_values = dataset.model.arrays()
        np.testing.assert_array_equal(coordinates, wanted_coordinates)
        self.same_bytes(values, wanted_values)

    def test_defaults_decode_too(self):
        rng = np.random.default_rng(32)
        spec = self.specification()
        cells = random_cells(rng, (3000, 2000), 20_000)
        values = random_values(rng, len(cells), "<f4")
        spec.create("sparse", "/d", "<f4", (3000, 2000))
        spec.write_points("/d", cells, values)
        found = decode(self.write(spec))["/d"]
        np.testing.assert_array_equal(found.coordinates, cells)
        self.same_bytes(found.values, values)
        self.assertEqual(found.notes, [])

    def test_far_corners_of_vast_shapes_with_more_chunks_than_can_be_counted(self):
        side = 2**64 - 2
        for rank in (1, 2, 3):
            with self.subTest(rank=rank):
                spec = self.specification(f"vast{rank}")
                corners = np.array(list(np.ndindex((2,) * rank)), np.uint64) * np.uint64(side - 1)
                values = np.arange(1, len(corners) + 1, dtype="<i4")
                spec.create("sparse", "/d", "<i4", [side] * rank)
                spec.write_points("/d", corners[::-1], values[::-1])
                spec.op("reopen")
                # Another value for one of them.
                values[-1] = 77
                spec.write_points("/d", corners[-1:], values[-1:])
                path = self.write(spec, f"vast{rank}.h5")
                errors = {}
                found = decode(path, errors)
                self.assertEqual(errors, {})
                expected = dict(zip(map(tuple, corners.tolist()), values.tolist()))
                self.assertEqual(found["/d"].cells(), expected)
