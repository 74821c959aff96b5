"""Filters in both directions: what h5py (with hdf5plugin) writes Pumice reads, and the reverse;
both store the same parameters for the same wish."""

import h5py
import hdf5plugin  # noqa: F401  (registers the filters)
import numpy as np

from interop import InteropCase

LZF, LZ4, BZIP2, BITSHUFFLE, ZSTD = 32000, 32004, 307, 32008, 32015
DEFLATE, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALEOFFSET = 1, 2, 3, 4, 5, 6

NUMBERS = ["|i1", "|u1"] + [
    order + kind
    for kind in ("i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")
    for order in "<>"
]
RECORD = np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "S3")])

# (shape, chunk): whole chunks, edge chunks, one cell, lengths that no block divides.
SHAPES = [
    ((64, 64), (32, 64)),
    ((50, 61), (16, 33)),
    ((1,), (1,)),
    ((7,), (7,)),
    ((10_007,), (3_331,)),
    ((3, 1, 129), (2, 1, 129)),
]

# Filters that take any element: what Pumice is asked for.
ANY = {
    "deflate": [(DEFLATE, [4])],
    "lzf": [(LZF, [])],
    "lz4": [(LZ4, [0])],
    "lz4 blocks": [(LZ4, [1000])],
    "bzip2": [(BZIP2, [9])],
    "bitshuffle": [(BITSHUFFLE, [0, 0])],
    "bitshuffle lz4": [(BITSHUFFLE, [0, 2])],
    "bitshuffle lz4 blocks": [(BITSHUFFLE, [64, 2])],
    "bitshuffle zstd": [(BITSHUFFLE, [0, 3, 5])],
    "zstd": [(ZSTD, [3])],
    "shuffle lzf fletcher32": [(SHUFFLE, []), (LZF, []), (FLETCHER32, [])],
}


def values(kind, shape, dtype):
    """Data of several characters, as bytes of the type."""
    generator, dtype = np.random.default_rng(len(kind) + len(shape)), np.dtype(dtype)
    count = int(np.prod(shape))
    if kind == "noise" or dtype.names:
        raw = generator.integers(0, 256, count * dtype.itemsize, "u1").tobytes()
        if dtype.kind == "f":
            return generator.normal(size=count).astype(dtype).reshape(shape)
        return np.frombuffer(raw, dtype).reshape(shape)
    if kind == "zeros":
        return np.zeros(shape, dtype)
    if kind == "steps":
        return (np.arange(count) // 3 % 100).astype(dtype).reshape(shape)
    low = 0 if dtype.kind == "u" else -50
    return np.cumsum(generator.integers(-2, 3, count)).clip(low, 100).astype(dtype).reshape(shape)


def create(file, name, data, chunk, filters, tid=None):
    """A dataset through the low-level interface: filters with exactly these wishes."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunk)
    for number, wish in filters:
        if number == SHUFFLE:
            plist.set_shuffle()
        elif number == FLETCHER32:
            plist.set_fletcher32()
        elif number == SZIP:
            plist.set_szip(*wish)
        else:
            plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, tuple(wish))
    tid = tid or h5py.h5t.py_create(data.dtype)
    space = h5py.h5s.create_simple(data.shape)
    *groups, name = name.split("/")
    parent = file.require_group("/".join(groups)) if groups else file
    made = h5py.h5d.create(parent.id, name.encode(), tid, space, plist)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data), mtype=tid)


def stored(dataset):
    """Ids and parameters of a dataset's filters."""
    plist = dataset.id.get_create_plist()
    return [plist.get_filter(i)[::2][:2] for i in range(plist.get_nfilters())]


def wishes(filters):
    return [{"id": number, "parameters": list(wish)} for number, wish in filters]


class Filters(InteropCase):
    def both_ways(self, name, filters, arrays, tolerance=None):
        """Every array through these filters, written by each side and read by the other."""
        spec, path = self.specification(name), self.directory / f"{name}.h5"
        with h5py.File(path, "w", libver="latest") as file:
            for place, (array, chunk) in arrays.items():
                create(file, place, array, chunk, filters)
                spec.dense(f"/{place}", array, chunks=list(chunk), filters=wishes(filters))
        theirs, ours = self.read(path), self.write(spec, f"{name}-ours.h5")
        with h5py.File(path) as from_h5py, h5py.File(ours) as from_pumice:
            for place, (array, _) in arrays.items():
                with self.subTest(filters=name, array=place):
                    wanted = from_h5py[place][()]
                    entry = self.found(theirs, f"/{place}")
                    self.same_bytes(theirs.array(entry), wanted, "h5py to Pumice")
                    self.assertEqual(stored(from_pumice[place]), stored(from_h5py[place]))
                    found = from_pumice[place][()]
                    if tolerance is None:
                        self.same_bytes(wanted, array, "h5py to h5py")
                        self.same_bytes(found, array, "Pumice to h5py")
                    else:
                        np.testing.assert_allclose(found, array, rtol=0, atol=tolerance)
                        self.same_bytes(found, wanted, "both lose the same")

    def matrix(self, types, kinds, shapes=SHAPES):
        arrays = {}
        for dtype in types:
            label = np.dtype(dtype).str[1:] if not np.dtype(dtype).names else "record"
            order = ">" if np.dtype(dtype).str[0] == ">" else "<"
            for number, (shape, chunk) in enumerate(shapes):
                kind = kinds[number % len(kinds)]
                array = values(kind, shape, dtype)
                # At most eight members a group: such groups are read by every reader.
                group = f"{len(arrays) // 64}/{len(arrays) // 8}"
                arrays[f"{group}/{order}{label} {kind} {number}"] = (array, chunk)
        return arrays

    def test_filters_of_any_element(self):
        types = ["|u1", "<i2", ">i4", "<u8", ">f8", "<f4", "S5", RECORD]
        arrays = self.matrix(types, ["walk", "steps", "zeros", "noise"])
        for name, filters in ANY.items():
            self.both_ways(name, filters, arrays)

    def test_noise_skips_an_optional_compressor_on_both_sides(self):
        noise = {"noise": (values("noise", (4096,), "u1"), (512,))}
        for name in ("deflate", "lzf", "lz4", "bzip2", "bitshuffle lz4", "zstd"):
            self.both_ways(f"noise {name}", ANY[name], noise)
