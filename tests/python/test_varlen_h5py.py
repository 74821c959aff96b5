"""Variable-length data between h5py and Pumice."""

import pathlib

import h5py
import numpy as np

from interop import InteropCase
from varlen import pack_all, to_json, unpack_all

STRING = h5py.string_dtype()
ASCII = h5py.string_dtype("ascii")


def words(rng, count):
    return ["".join(map(chr, rng.integers(33, 1000, n))) for n in rng.integers(0, 40, count)]


def sequences(rng, count, dtype):
    found = np.empty(count, object)
    for i, length in enumerate(rng.integers(0, 30, count)):
        found[i] = rng.integers(0, 100, length).astype(dtype)
    return found


def records(rng, count):
    dtype = np.dtype([("id", "<i4"), ("name", STRING), ("track", h5py.vlen_dtype("<f8"))])
    found = np.empty(count, dtype)
    found["id"] = np.arange(count)
    found["name"] = words(rng, count)
    found["track"] = sequences(rng, count, "<f8")
    return found


def put(file, name, data, dtype=None, shape=None, **options):
    shape = len(data) if shape is None else shape
    made = file.create_dataset(name, shape, dtype or data.dtype, **options)
    made[...] = np.asarray(data, made.dtype).reshape(made.shape) if dtype is not None else data
    return made


def contiguous(file, rng):
    put(file, "words", words(rng, 500), STRING)
    put(file, "ascii", ["one", "two", "", "three" * 5000], ASCII)
    # Big-endian sequences are left out: h5py reads them back with their bytes reversed.
    for dtype in ("<i4", "<f8", "u1"):
        made = file.create_dataset(f"sequences {dtype}", 200, h5py.vlen_dtype(np.dtype(dtype)))
        for i, sequence in enumerate(sequences(rng, 200, dtype)):
            made[i] = sequence
    file.create_dataset("unwritten", 30, STRING)
    file["scalar"] = "alone"
    file.create_dataset("records", data=records(rng, 40))


def chunked(file, rng):
    options = {
        "plain": {"chunks": (7, 9)},
        "gzip": {"chunks": (7, 9), "compression": "gzip", "shuffle": True},
        "growing": {"chunks": (7, 9), "maxshape": (None, 30)},
        "growing both": {"chunks": (7, 9), "maxshape": (None, None), "compression": "gzip"},
    }
    for name, chosen in options.items():
        put(file, name, words(rng, 600), STRING, (20, 30), **chosen)
    part = file.create_dataset("part", (20, 30), STRING, chunks=(7, 9))
    part[3:5, 2:20] = np.array(words(rng, 36), object).reshape(2, 18)
    file.create_dataset("records", data=records(rng, 100), chunks=(30,), compression="gzip")


def compact(file, rng):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((20,))
    h5py.h5d.create(file.id, b"compact", h5py.h5t.py_create(STRING, logical=True), space, plist)
    file["compact"][...] = words(rng, 20)


def virtual(file, rng):
    """Strings and records of three sources; a fourth is missing."""
    kinds = {"strings": STRING, "records": records(rng, 1).dtype}
    for i in range(3):
        with h5py.File(pathlib.Path(file.filename).with_name(f"source-{i}.h5"), "w") as source:
            put(source, "strings", words(rng, 12), STRING, (12,), chunks=(5,))
            source.create_dataset("records", data=records(rng, 12))
    for name, dtype in kinds.items():
        layout = h5py.VirtualLayout((4, 12), dtype)
        for i in range(4):
            layout[i, ::2] = h5py.VirtualSource(f"source-{i}.h5", name, (12,))[3:9]
        file.create_virtual_dataset(name, layout)


def attributes(file, rng):
    for target in (file, file.create_group("group"), file.create_dataset("d", data=np.arange(3))):
        target.attrs["title"] = "an ä title"
        target.attrs["words"] = words(rng, 5)
        target.attrs.create("ascii", "plain", dtype=ASCII)
        target.attrs.create("record", records(rng, 2))


class VariableLength(InteropCase):
    def test_strings_and_sequences_of_h5py_are_read(self):
        for maker in (contiguous, chunked, compact, virtual, attributes):
            for version in ("latest", "earliest"):
                if version == "earliest" and maker is chunked:
                    continue
                with self.subTest(maker.__name__, version=version):
                    self.check(maker, version)

    def check(self, maker, version):
        path = self.directory / "file.h5"
        with h5py.File(path, "w", libver=version) as file:
            maker(file, np.random.default_rng(5))
        manifest = self.read(path)
        with h5py.File(path) as file:
            objects = {"/": file}
            file.visititems(lambda name, found: objects.__setitem__("/" + name, found))
            self.assertEqual(set(manifest.objects), set(objects))
            for place, wanted in objects.items():
                entry = self.found(manifest, place)
                if isinstance(wanted, h5py.Dataset):
                    self.same(manifest, entry, wanted.dtype, wanted[()], wanted.shape)
                named = {found["name"]: found for found in entry["attributes"]}
                self.assertEqual(set(named), set(wanted.attrs))
                for name, found in named.items():
                    dtype = wanted.attrs.get_id(name).dtype
                    value = wanted.attrs[name]
                    self.same(manifest, found, dtype, value, np.shape(value))

    def same(self, manifest, entry, dtype, value, shape):
        kind = to_json(dtype)
        self.assertEqual(entry["dtype"], kind)
        self.assertEqual(entry["shape"], list(shape))
        if dtype.kind == "O":
            flat = [value] if shape == () else np.asarray(value, object).reshape(-1)
        else:
            flat = np.asarray(value, dtype).reshape(-1)
        found = (manifest.directory / entry["data"]).read_bytes()
        self.assertEqual(self.nulls(found, kind), pack_all(kind, flat, True), entry)

    def nulls(self, found, kind):
        """h5py does not tell null from empty."""
        return pack_all(kind, unpack_all(kind, found), True)
