"""Variable-length data in structured chunks, between Pumice and the independent decoder."""

import collections
import math

import numpy as np

from hdf5_bytes import DEFLATE, HEAP, LOCATION, SHUFFLE, ZSTD, zstandard
from hdf5_bytes import REFERENCES as references
from interop import InteropCase, Manifest
from structured_decoder import decode
from varlen import unpack_all
from varlen_builder import Variable, VariableBuilder, blank

STRING = {"vlen": "string"}
RECORD = {
    "size": 38,
    "fields": [
        {"name": "id", "offset": 0, "dtype": "<i4"},
        {"name": "name", "offset": 4, "dtype": STRING},
        {"name": "track", "offset": 22, "dtype": {"vlen": ">f8"}},
    ],
}
KINDS = [
    STRING,
    {"vlen": "<i4"},
    {"vlen": ">u2"},
    RECORD,
    {"vlen": STRING},
    {"vlen": {"vlen": "|u1"}},
    {"array": STRING, "dims": [2, 2]},
    {"vlen": RECORD},
]
REFERENCES = [
    [],
    [(DEFLATE, [4])],
    [(SHUFFLE, [16]), (ZSTD, [3])],
    [(references, [])],
    [(references, []), (ZSTD, [3])],
]
HEAPS = [[], [(DEFLATE, [4])], [(HEAP, [])], [(HEAP, []), (ZSTD, [3])], [(HEAP, []), (DEFLATE, [1])]]
LOCATIONS = [[], [(DEFLATE, [6])], [(LOCATION, []), (ZSTD, [3])]]
DATASETS, PER_FILE, BUILT = 240, 24, 240
FILES = 1200


Built = collections.namedtuple("Built", "kind cells shape sparse fill unwritten")


def random_value(rng, kind):
    if isinstance(kind, str):
        return rng.bytes(np.dtype(kind).itemsize)
    if "vlen" in kind:
        if rng.random() < 0.12:
            return None
        if kind["vlen"] == "string":
            length = 2000 if rng.random() < 0.02 else int(rng.integers(0, 20))
            return bytes(rng.integers(1, 256, length).astype("u1"))
        return [random_value(rng, kind["vlen"]) for _ in range(int(rng.integers(0, 5)))]
    if "array" in kind:
        return [random_value(rng, kind["array"]) for _ in range(math.prod(kind["dims"]))]
    return tuple(random_value(rng, field["dtype"]) for field in kind["fields"])


def solid_value(rng, kind):
    """A value without null or empty parts, which a file may spell in several ways."""
    if isinstance(kind, str):
        return rng.bytes(np.dtype(kind).itemsize)
    if "vlen" in kind:
        length = int(rng.integers(1, 9))
        if kind["vlen"] == "string":
            return bytes(rng.integers(1, 256, length).astype("u1"))
        return [solid_value(rng, kind["vlen"]) for _ in range(length)]
    if "array" in kind:
        return [solid_value(rng, kind["array"]) for _ in range(math.prod(kind["dims"]))]
    return tuple(solid_value(rng, field["dtype"]) for field in kind["fields"])


def raw(kind, value):
    """Numbers as their bytes, as the decoder gives them."""
    if isinstance(kind, str):
        return value if isinstance(value, bytes) else np.asarray(value, np.dtype(kind)).tobytes()
    if value is None or isinstance(value, bytes):
        return value
    if "fields" in kind:
        return tuple(raw(f["dtype"], part) for f, part in zip(kind["fields"], value, strict=True))
    return [raw(kind.get("vlen", kind.get("array")), part) for part in value]


def packed(kind, values):
    return b"".join(pack(kind, value) for value in values)


def pack(kind, value):
    """As varlen.pack, for numbers that are bytes already."""
    if isinstance(kind, str):
        return value
    if "vlen" in kind:
        if value is None:
            return b"\xff" * 8
        parts = value if kind["vlen"] == "string" else packed(kind["vlen"], value)
        return len(value).to_bytes(8, "little") + parts
    if "array" in kind:
        return packed(kind["array"], value)
    return b"".join(pack(f["dtype"], part) for f, part in zip(kind["fields"], value, strict=True))


def chain(rng, choices):
    choices = [c for c in choices if zstandard or ZSTD not in dict(c)]
    return choices[rng.integers(len(choices))]


def random_shape(rng):
    """(shape, chunk, maximum): every chunk index comes up."""
    rank = int(rng.integers(1, 5))
    shape = [int(rng.integers(1, {1: 60, 2: 12, 3: 6, 4: 4}[rank])) for _ in range(rank)]
    chunk = [int(rng.integers(1, n + 1)) for n in shape]
    maximum = list(shape)
    kind = int(rng.integers(4))
    if kind == 0:
        chunk = list(shape)
    elif kind == 2:
        maximum[int(rng.integers(rank))] = None
    elif kind == 3:
        maximum = [None] * rank
    return shape, chunk, maximum


class RandomDataset:
    """A dataset with a random shape, datatype and history, and what it must hold."""

    def __init__(self, rng, spec, path):
        self.rng, self.spec, self.path = rng, spec, path
        self.kind = KINDS[rng.integers(len(KINDS))]
        self.sparse = bool(rng.random() < 0.5)
        self.shape, self.chunk, self.maximum = random_shape(rng)
        self.cells = {}
        self.fill = solid_value(rng, self.kind) if rng.random() < 0.4 else None
        filters, choice = None, rng.random()
        if choice < 0.75:
            lists = [chain(rng, REFERENCES), chain(rng, HEAPS)]
            lists = [chain(rng, LOCATIONS), *lists] if self.sparse else lists
            lists = [[] for _ in lists] if choice < 0.35 else lists
            filters = [[{"id": i, "parameters": p} for i, p in one] for one in lists]
        spec.op(
            "sparse" if self.sparse else "variable",
            path=path,
            dtype=self.kind,
            shape=self.shape,
            maxshape=self.maximum,
            chunks=self.chunk,
            filters=filters,
            fill=None if self.fill is None else pack(self.kind, self.fill).hex(),
        )

    @property
    def unwritten(self):
        """What a cell reads as that was never written."""
        return blank(self.kind) if self.fill is None else self.fill

    def step(self):
        if 0 in self.shape:
            return self.resize()
        start = [int(self.rng.integers(0, n)) for n in self.shape]
        count = [int(self.rng.integers(1, min(6, n - s) + 1)) for s, n in zip(start, self.shape)]
        box = np.stack(np.unravel_index(np.arange(math.prod(count)), count), 1) + np.array(start)
        choice = self.rng.random()
        if choice < 0.65:
            values = [random_value(self.rng, self.kind) for _ in box]
            name = self.spec.store(np.frombuffer(packed(self.kind, values), "u1"))
            self.spec.op("write", path=self.path, start=start, count=count, data=name)
            self.cells.update(zip(map(tuple, box.tolist()), values))
        elif choice < 0.85 and self.sparse:
            self.spec.op("erase", path=self.path, start=start, count=count)
            for cell in map(tuple, box.tolist()):
                self.cells.pop(cell, None)
        else:
            self.resize()

    def resize(self):
        shape = [
            int(self.rng.integers(max(0, n - 3), (n + 4 if most is None else most) + 1))
            for n, most in zip(self.shape, self.maximum)
        ]
        self.spec.op("resize", path=self.path, shape=shape)
        self.shape = shape
        self.cells = {c: v for c, v in self.cells.items() if all(x < n for x, n in zip(c, shape))}


class VariableLengthChunks(InteropCase):
    def test_files_of_pumice_decode_to_what_was_written(self):
        rng, kinds = np.random.default_rng(51), set()
        for number in range(DATASETS // PER_FILE):
            spec = self.specification(f"random{number}")
            datasets = []
            for at in range(PER_FILE):
                if at % 8 == 0:
                    spec.group(f"/g{at // 8}")
                datasets.append(RandomDataset(rng, spec, f"/g{at // 8}/d{at}"))
            for _ in range(PER_FILE * 4):
                datasets[rng.integers(len(datasets))].step()
                if rng.random() < 0.03:
                    spec.op("reopen")
            path = self.write(spec, f"random{number}.h5")
            found, manifest = decode(path), self.read(path)
            for dataset in datasets:
                with self.subTest(path=dataset.path, file=number, kind=dataset.kind):
                    decoded = found[dataset.path]
                    self.compare(decoded, dataset)
                    self.assertEqual(decoded.notes, [])
                    self.assertEqual(decoded.shape, tuple(dataset.shape))
                    entry = self.found(manifest, dataset.path)
                    self.compare_own(manifest, entry, dataset)
                    kinds.add((decoded.index, bool(decoded.filters), dataset.sparse))
        self.assertEqual(len(kinds), 16, sorted(kinds))

    def test_thousands_of_small_files_decode_to_what_was_written(self):
        rng, kinds = np.random.default_rng(53), set()
        spec, folder = self.specification(), self.directory / "files"
        folder.mkdir()
        datasets = []
        for number in range(FILES):
            # Lengths of eight bytes in every other file.
            spec.op("file", path=f"f{number}.h5", widths=[8, [8, 4, 8, 2][number % 4]])
            datasets.append(RandomDataset(rng, spec, "/d"))
            for _ in range(int(rng.integers(1, 5))):
                datasets[-1].step()
        self.run_interop("write", spec.save(), folder / "first.h5")
        (folder / "first.h5").unlink()
        out = self.directory / "read"
        self.run_interop("read", folder, out)
        for number, dataset in enumerate(datasets):
            with self.subTest(file=number, kind=dataset.kind):
                decoded = decode(folder / f"f{number}.h5")["/d"]
                self.compare(decoded, dataset)
                self.assertEqual(decoded.notes, [])
                manifest = Manifest(out / f"f{number}")
                entry = self.found(manifest, "/d")
                self.compare_own(manifest, entry, dataset)
                kinds.add((decoded.index, bool(decoded.filters), dataset.sparse))
        self.assertEqual(len(kinds), 16, sorted(kinds))

    def compare(self, decoded, dataset):
        kind, cells, unwritten = dataset.kind, dataset.cells, dataset.unwritten
        fill = None if dataset.fill is None else raw(kind, decoded.fill)
        self.assertEqual(fill, dataset.fill)
        places = map(tuple, decoded.coordinates.tolist())
        values = {place: raw(kind, value) for place, value in zip(places, decoded.values)}
        if not dataset.sparse:
            values = {place: value for place, value in values.items() if value != unwritten}
            cells = {place: value for place, value in cells.items() if value != unwritten}
        self.assertEqual(values, cells)

    def compare_own(self, manifest, entry, dataset):
        kind, cells, shape = dataset.kind, dataset.cells, dataset.shape
        self.assertEqual(entry["dtype"], kind)
        fill = None if dataset.fill is None else pack(kind, dataset.fill).hex()
        self.assertEqual(entry["fill"], fill)
        if entry["kind"] == "sparse":
            data = (manifest.directory / entry["coords"]).read_bytes()
            places = np.frombuffer(data, "<u8").reshape(-1, len(shape)).tolist()
            data = (manifest.directory / entry["values"]).read_bytes()
            values = [raw(kind, value) for value in unpack_all(kind, data)]
            self.assertEqual(dict(zip(map(tuple, places), values, strict=True)), cells)
            return
        data = (manifest.directory / entry["data"]).read_bytes()
        values = [raw(kind, value) for value in unpack_all(kind, data)]
        wanted = [cells.get(place, dataset.unwritten) for place in np.ndindex(*shape)]
        self.assertEqual(values, wanted)

    def test_files_of_the_builder_are_read(self):
        rng, built = np.random.default_rng(52), []
        for number in range(BUILT):
            if number % 24 == 0:
                builder = VariableBuilder()
                built.append((builder, {}))
            kind = KINDS[rng.integers(len(KINDS))]
            shape, chunk, maximum = random_shape(rng)
            places = [p for p in np.ndindex(*shape) if rng.random() < 0.6]
            cells = {place: random_value(rng, kind) for place in places}
            dense = bool(rng.random() < 0.5)
            lists = [chain(rng, REFERENCES), chain(rng, HEAPS)]
            lists = lists if dense else [chain(rng, LOCATIONS), *lists]
            spec = Variable(
                tuple(shape),
                tuple(chunk),
                np.array(places, np.uint64).reshape(len(places), len(shape)),
                list(cells.values()),
                maximum=tuple(maximum),
                filters=dict(enumerate(lists)) if rng.random() < 0.7 else {},
                selection=["v1", "v3"][rng.integers(2)],
                kind=kind,
                dense=dense,
                heap=["plain", "free", "rest", "many"][rng.integers(4)],
            )
            name = f"group{number % 24 // 8}/d{number}"
            builder.variable(name, spec)
            built[-1][1][f"/{name}"] = Built(kind, cells, shape, not dense, None, blank(kind))
        for number, (builder, members) in enumerate(built):
            path = self.directory / f"built{number}.h5"
            builder.save(path)
            manifest, decoded = self.read(path), decode(path)
            for place, dataset in members.items():
                with self.subTest(place, kind=dataset.kind):
                    self.compare(decoded[place], dataset)
                    self.compare_own(manifest, self.found(manifest, place), dataset)

    def test_cells_that_refer_to_one_object_are_read(self):
        rng, builder, members = np.random.default_rng(53), VariableBuilder(), {}
        places = np.arange(1000, dtype=np.uint64).reshape(-1, 1)
        for number, kind in enumerate(KINDS):
            few = [solid_value(rng, kind) for _ in range(3)]
            if kind == STRING:
                few = [b"long" * 1000] * 3
            values = [few[place % 3] for place in range(1000)]
            for dense in (False, True):
                spec = Variable((1000,), (1000,), places, values, kind=kind, dense=dense, heap="shared")
                builder.variable(f"d{number}{dense}", spec)
                cells = {(place,): value for place, value in enumerate(values)}
                built = Built(kind, cells, [1000], not dense, None, blank(kind))
                members[f"/d{number}{dense}"] = built
        path = self.directory / "shared.h5"
        builder.save(path)
        manifest, decoded = self.read(path), decode(path)
        for place, dataset in members.items():
            with self.subTest(place, kind=dataset.kind):
                self.compare(decoded[place], dataset)
                self.compare_own(manifest, self.found(manifest, place), dataset)
