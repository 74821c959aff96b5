"""Files that h5py wrote, read by Pumice: same objects, same shapes, same bytes."""

import pathlib

import h5py
import numpy as np

from interop import InteropCase, dtype_from_json
from sparse_cases import RECORD, random_values

NUMBERS = [
    order + kind
    for kind in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8")
    for order in "<>"
] + ["i1", "u1"]


def groups_of(names, prefix):
    """Paths with at most eight children in a group."""
    return {name: f"{prefix}{i // 8}/{i}" for i, name in enumerate(names)}


def stored_dtype(dtype):
    """The elements' dtype in the file: h5py's booleans are an enumeration of bytes."""
    return np.dtype("i1") if dtype.kind == "b" else dtype.base


def rng():
    return np.random.default_rng(11)


def contiguous(file):
    paths = groups_of([*NUMBERS, "S1", "S9", RECORD], "group")
    for dtype, path in paths.items():
        file.create_dataset(path, data=random_values(rng(), 60, dtype).reshape(3, 4, 5))


def shapes(file):
    file["scalar"] = np.float64(2.5)
    file["one"] = np.array([7], ">u2")
    file["none"] = np.zeros((0,), "<i4")
    file["flat"] = np.zeros((3, 0, 2), "<f4")
    file["null"] = h5py.Empty("<f4")
    file["deep"] = np.arange(64, dtype="<i2").reshape((2,) * 6)


def special_values(file):
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7976931348623157e308]
    file["f8"] = np.array(values, "<f8")
    file["f4"] = np.array(values[:5], ">f4")


def compact(file):
    for name, array in (("a", np.arange(30, dtype="<i4")), ("b", np.ones((3, 3), ">f8"))):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(array.shape)
        kind = h5py.h5t.py_create(array.dtype)
        made = h5py.h5d.create(file.id, name.encode(), kind, space, plist)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, array)


def implicit(file):
    """Early allocation without filters and with a fixed extent."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((4, 5))
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    space = h5py.h5s.create_simple((18, 22))
    made = h5py.h5d.create(file.id, b"implicit", h5py.h5t.STD_I32LE, space, plist)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(18 * 22, dtype="<i4").reshape(18, 22))


INDEXES = {
    "single": ((20, 15), (20, 15), (20, 15)),
    "fixed": ((40, 35), (40, 35), (6, 7)),
    "fixed below maximum": ((40, 35), (90, 80), (6, 7)),
    "fixed paged": ((2100,), (2100,), (1,)),
    "extensible": ((300, 35), (None, 35), (2, 7)),
    "extensible second axis": ((35, 300), (35, None), (7, 2)),
    "extensible middle axis": ((5, 60, 6), (7, None, 6), (2, 3, 4)),
    "b-tree": ((90, 80), (None, None), (5, 7)),
}


def indexes(file, **options):
    for name, (shape, maximum, chunk) in INDEXES.items():
        data = np.arange(np.prod(shape), dtype="<i4").reshape(shape) * 3
        file.create_dataset(name, data=data, maxshape=maximum, chunks=chunk, **options)


def indexes_plain(file):
    indexes(file)


def indexes_gzip(file):
    indexes(file, compression="gzip", shuffle=True)


def paged_far(file):
    """An extensible array whose data blocks are paged, mostly unset."""
    made = file.create_dataset("far", (140_000,), "<u2", maxshape=(None,), chunks=(1,))
    made[[0, 3, 4, 130, 5000, 135_000, 139_999]] = np.arange(1, 8)


def deep_tree(file):
    """A version 2 B-tree of three levels."""
    made = file.create_dataset("d", (300, 300), "u1", maxshape=(None, None), chunks=(2, 2))
    made[...] = np.arange(90_000, dtype="u1").reshape(300, 300)


def filters(file):
    data = (np.arange(3000) % 97).astype("<f4").reshape(50, 60)
    options = {
        "gzip": {"compression": "gzip", "compression_opts": 9},
        "shuffle": {"shuffle": True},
        "shuffle gzip": {"shuffle": True, "compression": "gzip"},
        "fletcher32": {"fletcher32": True},
        "all three": {"shuffle": True, "compression": "gzip", "fletcher32": True},
    }
    for name, chosen in options.items():
        file.create_dataset(name, data=data, chunks=(16, 16), **chosen)
    odd = np.arange(77).astype("S3")
    file.create_dataset("odd", data=odd, chunks=(10,), shuffle=True, fletcher32=True)
    noise = random_values(rng(), 4096, "u1")
    file.create_dataset("noise", data=noise, chunks=(512,), compression="gzip")


def fill_values(file):
    plain = file.create_dataset("plain", (30, 30), "<i4", fillvalue=-5, chunks=(8, 8))
    plain[10:12, 3:20] = 9
    packed = file.create_dataset(
        "packed", (30, 30), ">f8", fillvalue=2.5, chunks=(8, 8), compression="gzip"
    )
    packed[29, 29] = 1
    file.create_dataset("untouched", (30, 30), "<u2", fillvalue=7, chunks=(8, 8))
    file.create_dataset("never allocated", (5, 5), "<f4")
    file.create_dataset("contiguous", (5, 5), "<f4", fillvalue=1.5)
    grown = file.create_dataset("grown", (4,), "<i2", maxshape=(None,), chunks=(3,), fillvalue=1)
    grown[:] = 8
    grown.resize((20,))


def attributes(file):
    def add(target):
        target.attrs["int"] = np.int32(-3)
        target.attrs["floats"] = np.array([[1.5, -2.0], [0.25, 8.0]])
        target.attrs["big"] = np.arange(4, dtype=">u2")
        target.attrs["text"] = np.bytes_(b"keV")
        target.attrs["texts"] = np.array([b"ab", b"cde"])
        target.attrs["record"] = random_values(rng(), 2, RECORD)
        target.attrs["nothing"] = h5py.Empty("<i4")

    add(file)
    add(file.create_group("group"))
    add(file.create_dataset("dense", data=np.arange(3)))
    add(file.create_dataset("chunked", data=np.arange(30), chunks=(7,)))


def attributes_earliest(file):
    for target in (file, file.create_group("group"), file.create_dataset("d", data=np.arange(3))):
        target.attrs["int"] = np.int32(-3)
        target.attrs["floats"] = np.array([[1.5, -2.0], [0.25, 8.0]])
        target.attrs["big"] = np.arange(4, dtype=">u2")
        target.attrs["text"] = np.bytes_(b"keV")


def nested(file):
    for i in range(6):
        for j in range(3):
            file[f"a{i}/b{j}/c/d/e"] = np.arange(i + j)
    file.create_group("a0/empty")
    file["é/ü"] = np.arange(2)


def many_links(file):
    for i in range(60):
        file[f"group/dataset {i}"] = np.int16(i)


def many_attributes(file):
    for i in range(40):
        file.attrs[f"attribute {i}"] = i


def chunked_earliest(file):
    indexes(file)


def chunked_earliest_gzip(file):
    indexes(file, compression="gzip")


def enumerations(file):
    file["flags"] = np.array([True, False, True])
    file.attrs["flag"] = True


def opaque(file):
    file["bytes"] = np.array([b"abcd", b"\0\1\2\3"], "V4")


def soft_links(file):
    file["real"] = np.arange(3)
    file["soft"] = h5py.SoftLink("/real")
    file["dangling"] = h5py.SoftLink("/nowhere")


def tracked(file):
    group = file.create_group("ordered", track_order=True)
    for i in range(5):
        group[f"x{9 - i}"] = i


def thousands_of_links(file):
    group = file.create_group("group", track_order=True)
    for i in range(3000):
        group[f"a link with a rather long name, to fill blocks of the heap: {i}"] = h5py.SoftLink("/x")
    group["last"] = np.arange(3)


def large_attributes(file):
    for i in range(20):
        file.attrs[f"attribute {i}"] = np.arange(100 * i)
    file.attrs["huge"] = np.arange(30_000)
    file.attrs["huge, too"] = np.arange(20_000, dtype=">f4")


def committed(file):
    file["kind"] = np.dtype("<i4")
    made = file.create_dataset("typed", (3,), dtype=file["kind"])
    made[:] = [1, 2, 3]


def beside(file, name):
    return pathlib.Path(file.filename).with_name(name)


def external_raw(file):
    first, second = str(beside(file, "first.raw")), str(beside(file, "second.raw"))
    np.arange(50, dtype="<i4").tofile(first)
    np.arange(100, 145, dtype="<i4").tofile(second)
    file.create_dataset("whole", (5, 10), "<i4", external=[(first, 0, h5py.h5f.UNLIMITED)])
    parts = [(first, 20, 40), (second, 0, 60), (first, 100, h5py.h5f.UNLIMITED)]
    file.create_dataset("parts", (6, 5), "<i4", external=parts)
    file.create_dataset("short", (100,), "<i4", external=[(second, 0, 400)])


def external_links(file):
    with h5py.File(beside(file, "other.h5"), "w") as other:
        other["group/data"] = np.arange(7)
        other["back"] = h5py.ExternalLink("file.h5", "/here")
    file["here"] = np.arange(3)
    file["there"] = h5py.ExternalLink("other.h5", "/group/data")
    file["missing"] = h5py.ExternalLink("nowhere.h5", "/x")
    file["round"] = h5py.ExternalLink("other.h5", "/back")


def sources(file, count, rows=4):
    for i in range(count):
        with h5py.File(beside(file, f"source-{i}.h5"), "w") as source:
            data = np.arange(rows * 6, dtype="<i4").reshape(rows, 6) + 1000 * i
            source.create_dataset("data", data=data, chunks=(2, 3), maxshape=(None, 6))


def virtual(file):
    sources(file, 3)
    layout = h5py.VirtualLayout((3, 4, 6), "<i8")
    for i in range(3):
        layout[i] = h5py.VirtualSource(f"source-{i}.h5", "data", (4, 6))
    file.create_virtual_dataset("stacked", layout, fillvalue=-5)
    layout = h5py.VirtualLayout((20, 6), "<i4")
    layout[1:13:3] = h5py.VirtualSource("source-0.h5", "data", (4, 6))
    layout[13:15, 2:5] = h5py.VirtualSource("source-1.h5", "data", (4, 6))[1:3, ::2]
    layout[16:18] = h5py.VirtualSource("nowhere.h5", "data", (2, 6))
    layout[18:20] = h5py.VirtualSource("source-2.h5", "no such dataset", (2, 6))
    file.create_virtual_dataset("patched", layout, fillvalue=7)
    file["own"] = np.arange(6, dtype="<f4")
    layout = h5py.VirtualLayout((2, 26), "<f8")
    layout[0, :6] = h5py.VirtualSource(".", "own", (6,))
    layout[1, 3:23] = h5py.VirtualSource(".", "patched", (20, 6))[:, 1]
    file.create_virtual_dataset("nested", layout)
    file.create_virtual_dataset("empty", h5py.VirtualLayout((2, 3), "<u2"), fillvalue=9)


def virtual_dataset(file, name, shape, maxshape, parts):
    """parts: file, dataset, source space, virtual space; both with their selections."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_fill_value(np.array(-1, "<i4"))
    for source_file, source, source_space, virtual_space in parts:
        plist.set_virtual(virtual_space, source_file.encode(), source.encode(), source_space)
    space = h5py.h5s.create_simple(shape, maxshape)
    h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_I32LE, space, plist)


def endless(shape, start, stride, count, block):
    unlimited = h5py.h5s.UNLIMITED
    space = h5py.h5s.create_simple(shape, (unlimited,) + shape[1:])
    space.select_hyperslab(start, count, stride, block)
    return space


def virtual_unlimited(file):
    sources(file, 3, rows=5)
    unlimited = h5py.h5s.UNLIMITED
    source = endless((5, 6), (0, 0), (1, 1), (unlimited, 1), (1, 6))
    target = endless((5, 6), (0, 0), (1, 1), (unlimited, 1), (1, 6))
    virtual_dataset(file, "follows", (1, 6), (unlimited, 6), [("source-0.h5", "data", source, target)])
    # Every other pair of rows of the virtual dataset, from rows of two sources.
    parts = []
    for i in range(2):
        target = endless((10, 6), (2 * i, 0), (4, 1), (unlimited, 1), (2, 6))
        parts.append((f"source-{i}.h5", "data", source, target))
    virtual_dataset(file, "woven", (1, 6), (unlimited, 6), parts)


def virtual_numbered(file):
    sources(file, 3)
    unlimited = h5py.h5s.UNLIMITED
    source = h5py.h5s.create_simple((4, 6))
    target = endless((4, 6), (1, 0), (5, 1), (unlimited, 1), (4, 6))
    virtual_dataset(file, "numbered", (1, 6), (unlimited, 6), [("source-%b.h5", "data", source, target)])
    target = endless((4, 6), (0, 0), (4, 1), (unlimited, 1), (4, 6))
    virtual_dataset(file, "touching", (1, 6), (unlimited, 6), [("source-%b.h5", "data", source, target)])


# name: (maker, version). Variable-length data has a test of its own.
CASES = {
    "contiguous": (contiguous, "latest"),
    "shapes": (shapes, "latest"),
    "special values": (special_values, "latest"),
    "compact": (compact, "latest"),
    "implicit index": (implicit, "latest"),
    "chunk indexes": (indexes_plain, "latest"),
    "chunk indexes with gzip": (indexes_gzip, "latest"),
    "extensible array with pages": (paged_far, "latest"),
    "b-tree of several levels": (deep_tree, "latest"),
    "filters": (filters, "latest"),
    "fill values": (fill_values, "latest"),
    "attributes": (attributes, "latest"),
    "nested groups": (nested, "latest"),
    "contiguous, earliest": (contiguous, "earliest"),
    "attributes, earliest": (attributes_earliest, "earliest"),
    "more than eight links": (many_links, "latest"),
    "more than eight attributes": (many_attributes, "latest"),
    "chunked, earliest": (chunked_earliest, "earliest"),
    "chunked with gzip, earliest": (chunked_earliest_gzip, "earliest"),
    "more than eight links, earliest": (many_links, "earliest"),
    "compact, earliest": (compact, "earliest"),
    "nested groups, earliest": (nested, "earliest"),
    "fill values, earliest": (fill_values, "earliest"),
    "chunk indexes, 1.8": (indexes_plain, "v108"),
    "chunk indexes, 1.10": (indexes_plain, "v110"),
    "chunk indexes, 1.12": (indexes_gzip, "v112"),
    "chunk indexes, 1.14": (indexes_gzip, "v114"),
    "enumerations": (enumerations, "latest"),
    "opaque": (opaque, "latest"),
    "soft links": (soft_links, "latest"),
    "tracked creation order": (tracked, "latest"),
    "thousands of links": (thousands_of_links, "latest"),
    "large attributes": (large_attributes, "latest"),
    "committed datatypes": (committed, "latest"),
    "external raw files": (external_raw, "latest"),
    "external raw files, earliest": (external_raw, "earliest"),
    "external links": (external_links, "latest"),
    "virtual": (virtual, "latest"),
    "virtual, unlimited": (virtual_unlimited, "latest"),
    "virtual, numbered": (virtual_numbered, "latest"),
}


class FilesOfH5py(InteropCase):
    def test_files_are_read_alike(self):
        for name, (maker, version) in CASES.items():
            with self.subTest(name):
                self.check(maker, version)

    def check(self, maker, version):
        path = self.directory / "file.h5"
        with h5py.File(path, "w", libver=version) as file:
            maker(file)
        manifest = self.read(path)
        with h5py.File(path) as file:
            objects = {"/": file}
            file.visititems(lambda name, found: objects.__setitem__("/" + name, found))
            # Committed datatypes are not part of the protocol.
            objects = {k: o for k, o in objects.items() if not isinstance(o, h5py.Datatype)}
            self.assertEqual(set(manifest.objects), set(objects))
            for place, wanted in objects.items():
                self.compare(manifest, place, wanted)

    def compare(self, manifest, place, wanted):
        entry = self.found(manifest, place)
        self.compare_attributes(manifest, place, entry, wanted)
        if isinstance(wanted, h5py.Group):
            self.assertEqual(entry["kind"], "group", place)
            return
        self.assertEqual(entry["kind"], "dense", place)
        self.compare_array(
            manifest, place, entry, wanted, wanted[()] if wanted.shape != () else None
        )
        if wanted.shape is None:
            return
        self.assertEqual(entry["maxshape"], list(wanted.maxshape), place)
        self.assertEqual(entry["chunks"], list(wanted.chunks) if wanted.chunks else None, place)
        plist = wanted.id.get_create_plist()
        if plist.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
            fill = np.array(wanted.fillvalue, wanted.dtype).tobytes().hex()
            self.assertEqual(entry["fill"], fill, place)
        else:
            self.assertIsNone(entry["fill"], place)

    def compare_array(self, manifest, place, entry, wanted, value):
        dtype = wanted.dtype
        self.assertEqual(dtype_from_json(entry["dtype"]), stored_dtype(dtype), place)
        if wanted.shape is None:
            self.assertIsNone(entry["shape"], place)
            return
        self.assertEqual(entry["shape"], list(wanted.shape), place)
        if value is None:
            value = np.empty((), dtype)
            wanted.read_direct(value)
        found = manifest.array(entry)
        if dtype.names:
            for name in dtype.names:
                np.testing.assert_array_equal(found[name], value[name], place)
            return
        self.same_bytes(found, np.asarray(value).astype(stored_dtype(dtype)), place)

    def compare_attributes(self, manifest, place, entry, wanted):
        names = {attribute["name"]: attribute for attribute in entry["attributes"]}
        self.assertEqual(set(names), set(wanted.attrs), place)
        for name, attribute in names.items():
            where = f"{place} @{name}"
            self.assertNotIn("error", attribute, where)
            stored = wanted.attrs.get_id(name)
            value = wanted.attrs[name]
            if isinstance(value, h5py.Empty):
                self.assertIsNone(attribute["shape"], where)
                continue
            self.assertEqual(dtype_from_json(attribute["dtype"]), stored_dtype(stored.dtype), where)
            found = manifest.array(attribute)
            self.assertEqual(found.shape, stored.shape, where)
            np.testing.assert_array_equal(found, np.asarray(value, stored.dtype), where)
