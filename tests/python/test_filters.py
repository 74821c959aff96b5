"""Filters in both directions: what h5py (with hdf5plugin) writes Pumice reads, and the reverse;
both store the same parameters for the same wish."""

import h5py
import hdf5plugin  # noqa: F401  (registers the filters)
import numpy as np

from interop import InteropCase

LZF, BLOSC, LZ4, BZIP2, BITSHUFFLE, ZSTD = 32000, 32001, 32004, 307, 32008, 32015
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
    "blosc": [(BLOSC, [0, 0, 0, 0, 5, 1, 0])],
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
    """What Pumice is asked for. libhdf5's function for szip adds two options."""
    def parameters(number, wish):
        return [wish[0] | 129, wish[1]] if number == SZIP else list(wish)

    return [{"id": number, "parameters": parameters(number, wish)} for number, wish in filters]


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

    def test_blosc(self):
        """Every codec with every kind of shuffling, as far as the plugin has the codec."""
        arrays = self.matrix([">i2", "<f8", RECORD], ["walk", "steps", "noise"], SHAPES[1:5])
        arrays["large"] = (values("walk", (300_001,), "<i4"), (150_000,))
        for codec in range(6):
            for shuffle in range(3):
                level = [5, 9, 1][shuffle]
                wish = [0, 0, 0, 0, level, shuffle, codec]
                self.both_ways(f"blosc {codec} {shuffle}", [(BLOSC, wish)], arrays)

    def test_noise_skips_an_optional_compressor_on_both_sides(self):
        noise = {"noise": (values("noise", (4096,), "u1"), (512,))}
        for name in ("deflate", "lzf", "lz4", "bzip2", "bitshuffle lz4", "zstd", "blosc"):
            self.both_ways(f"noise {name}", ANY[name], noise)

    def test_szip(self):
        types = [name for name in NUMBERS if name[1:] != "f2"]
        arrays = self.matrix(types, ["walk", "steps", "zeros", "noise"])
        for name, options, block in (("ec", 4, 8), ("nn", 32, 16), ("nn 32", 32, 32), ("ec 10", 4, 10)):
            fitting = {
                place: both for place, both in arrays.items() if np.prod(both[1]) >= block
            }
            self.both_ways(f"szip {name}", [(SZIP, (options, block))], fitting)

    def test_scaleoffset_of_integers(self):
        types = [name for name in NUMBERS if name[1] in "iu"]
        arrays = self.matrix(types, ["walk", "steps", "zeros"])
        self.both_ways("scaleoffset", [(SCALEOFFSET, (2, 0))], arrays)
        small = {place: (array % 100, chunk) for place, (array, chunk) in arrays.items()}
        self.both_ways("scaleoffset 7", [(SCALEOFFSET, (2, 7))], small)
        noise = self.matrix(types, ["noise"], SHAPES[:2])
        self.both_ways("scaleoffset noise", [(SCALEOFFSET, (2, 0))], noise)

    def test_scaleoffset_of_floats(self):
        arrays = self.matrix(["<f4", ">f4", "<f8", ">f8"], ["walk", "steps", "zeros", "noise"])
        for digits in (0, 2, 4):
            name = f"scaleoffset {digits} digits"
            self.both_ways(name, [(SCALEOFFSET, (0, digits))], arrays, tolerance=10.0**-digits)

    def partial_types(self):
        """Types with fewer bits than bytes hold, for both sides: (h5py's, Pumice's, numpy's)."""
        types = []
        for dtype, precision, offset in (
            ("<i4", 17, 5), (">i4", 17, 5), ("<u2", 3, 0), (">u2", 9, 7), ("<i8", 51, 0),
            (">u8", 63, 1), ("|i1", 5, 2), ("|u1", 1, 7), ("<i2", 16, 0),
        ):
            tid = h5py.h5t.py_create(np.dtype(dtype)).copy()
            tid.set_precision(precision)
            tid.set_offset(offset)
            wish = {"dtype": dtype, "precision": precision, "offset": offset}
            types.append((tid, wish, np.dtype(dtype)))
        for dtype in ("<f4", ">f4"):
            tid = h5py.h5t.py_create(np.dtype(dtype)).copy()
            tid.set_fields(26, 20, 6, 7, 13)
            tid.set_offset(7)
            tid.set_precision(20)
            tid.set_size(4)
            tid.set_ebias(31)
            wish = {"dtype": dtype, "precision": 20, "offset": 7, "sign": 26, "exponent": 20,
                    "exponent size": 6, "bias": 31, "mantissa": 7, "mantissa size": 13}
            types.append((tid, wish, np.dtype(dtype)))
        (first, wish_1, _), (second, wish_2, _), (third, wish_3, _) = types[0], types[3], types[9]
        array, wish_array = h5py.h5t.array_create(second, (2, 3)), {"array": wish_2, "dims": [2, 3]}
        compound = h5py.h5t.create(h5py.h5t.COMPOUND, 40)
        fields = []
        text = h5py.h5t.py_create(np.dtype("S3"))
        for name, offset, tid, wish in (
            ("a", 1, first, wish_1), ("b", 8, array, wish_array), ("c", 24, third, wish_3),
            ("d", 30, text, "|S3"),
        ):
            compound.insert(name.encode(), offset, tid)
            fields.append({"name": name, "offset": offset, "dtype": wish})
        types.append((array, wish_array, np.dtype("V12")))
        types.append((compound, {"size": 40, "fields": fields}, np.dtype("V40")))
        return types

    def test_nbit_of_partial_types(self):
        """Raw bytes go in and out as the type itself: only significant bits survive."""
        spec, path = self.specification(), self.directory / "nbit.h5"
        types, count = self.partial_types(), 1003
        generator = np.random.default_rng(5)
        with h5py.File(path, "w", libver="latest") as file:
            for number, (tid, wish, dtype) in enumerate(types):
                raw = generator.integers(0, 256, count * dtype.itemsize, "u1").view(dtype)
                place = f"{number // 8}/{number}"
                create(file, place, raw, (250,), [(NBIT, [])], tid)
                options = {"chunks": [250], "filters": wishes([(NBIT, [])])}
                spec.op("dense", path=f"/{place}", dtype=wish, shape=[count], **options)
                spec.op("write", path=f"/{place}", data=spec.store(raw))
        ours, out = self.write(spec, "ours.h5"), self.directory / "bytes"
        with h5py.File(path) as from_h5py, h5py.File(ours) as from_pumice:
            for number, (tid, _, dtype) in enumerate(types):
                with self.subTest(number):
                    place = f"{number // 8}/{number}"
                    self.assertEqual(stored(from_pumice[place]), stored(from_h5py[place]))
                    wanted, found = np.empty(count, dtype), np.empty(count, dtype)
                    for file, to in ((from_h5py, wanted), (from_pumice, found)):
                        file[place].id.read(h5py.h5s.ALL, h5py.h5s.ALL, to, mtype=tid)
                    self.same_bytes(found, wanted, "Pumice to h5py")
                    self.run_interop("bytes", path, f"/{place}", out)
                    self.same_bytes(np.fromfile(out, dtype), wanted, "h5py to Pumice")

    def test_nbit_of_full_types(self):
        arrays = self.matrix([*NUMBERS, "S5", RECORD], ["walk", "noise"], SHAPES[1:5])
        self.both_ways("nbit", [(NBIT, [])], arrays)
