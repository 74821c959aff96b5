"""Which versions of structures Pumice chooses: those that libhdf5 chooses for the same bounds."""

import itertools
import struct
import unittest

import h5py
import numpy as np
from h5py import h5d, h5o

from interop import InteropCase

BOUNDS = ["earliest", "v108", "v110", "v112", "v114", "v200"]
SIGNATURES = [b"OHDR", b"TREE", b"SNOD", b"HEAP", b"FRHP", b"BTHD", b"FAHD", b"EAHD"]
DATATYPE, LAYOUT, OLD_FILL, SYMBOL_TABLE = 3, 8, 4, 0x11
UNVERSIONED = {OLD_FILL, SYMBOL_TABLE}
RECORD = np.dtype([("a", "<i2"), ("m", "<f4", (2, 3))])
PLAIN = np.dtype([("first", "<i2"), ("second field", ">f8")])
ROWS = np.arange(60.0).reshape(12, 5)

# Datasets by what decides their index: chunk, maximum shape.
DATASETS = {
    "contiguous": {},
    "one chunk": {"chunks": (12, 5)},
    "fixed": {"chunks": (3, 2)},
    "one unlimited": {"chunks": (3, 2), "maxshape": (None, 5)},
    "the other unlimited": {"chunks": (3, 2), "maxshape": (12, None)},
    "both unlimited": {"chunks": (3, 2), "maxshape": (None, None)},
}

BLOCK = {"start": [0], "count": [4]}
PARTS = [{"target": BLOCK, "source": BLOCK, "file": "source.h5", "dataset": "x"}]
# What earlier releases do not know: since when, and how it is made.
LATER = {
    "view": ("v110", {"op": "dense", "dtype": "<i4", "shape": [4], "parts": PARTS}),
    "any": ("v112", {"op": "references", "meaning": "any", "targets": [{"path": "x"}]}),
    "sparse": ("v200", {"op": "sparse", "dtype": "<i4", "shape": [40], "chunks": [10]}),
    "words": ("v200", {"op": "variable", "dtype": {"vlen": "string"}, "shape": [40], "chunks": [10]}),
    "vast chunks": (
        "v200",
        {"op": "dense", "dtype": "<i4", "shape": [5], "maxshape": [None], "chunks": [1 << 30]},
    ),
}


def blocks_of(data, address):
    """(version, bytes of a message's head, begin and end of the first block) of an object header."""
    if data[address : address + 4] != b"OHDR":
        return 1, 8, address + 16, address + 16 + int.from_bytes(data[address + 8 : address + 12], "little")
    flags, at = data[address + 5], address + 6
    at += 16 * bool(flags & 0x20) + 4 * bool(flags & 0x10)
    width = 1 << (flags & 3)
    begin = at + width
    return 2, 6 if flags & 4 else 4, begin, begin + int.from_bytes(data[at:begin], "little")


def messages(data, address):
    """(kind, flags, body) of all messages of an object."""
    version, head, *first = blocks_of(data, address)
    blocks = [first]
    for at, end in blocks:
        while at + head <= end:
            if version == 1:
                kind, length, flags = struct.unpack("<HHB", data[at : at + 5])
            else:
                kind, length, flags = struct.unpack("<BHB", data[at : at + 4])
            body = data[at + head : at + head + length]
            at += head + length
            if kind == 0x10:
                start, length = struct.unpack("<QQ", body[:16])
                blocks.append([start, start + length] if version == 1 else [start + 4, start + length - 4])
            elif kind:
                yield kind, flags, body


def versions_of(path, name):
    """{kind: {(version, flags)}} of the messages of an object, where they have a version."""
    with h5py.File(path) as file:
        address = h5o.get_info(file[name].id).addr
    found = {}
    for kind, flags, body in messages(path.read_bytes(), address):
        version = body[0] >> 4 if kind == DATATYPE else body[0]
        found.setdefault(kind, set()).add((None if kind in UNVERSIONED else version, flags))
    return found


class Versions(InteropCase):
    def make_both(self, bound, fill):
        """A file by each, of which `fill` makes the content with operations that both know."""
        ours, theirs = (self.directory / f"{who}-{bound}.h5" for who in ("ours", "theirs"))
        specification = self.specification(f"made-{bound}")
        specification.op("file", path=ours.name, libver=bound)
        with h5py.File(theirs, "w", libver=(bound, "latest")) as file:
            fill(specification, file)
        self.write(specification, "other.h5")
        return ours, theirs

    def facts(self, path, names):
        data = path.read_bytes()
        found = {"superblock": data[8]}
        with h5py.File(path) as file:
            for name in ["/", *names]:
                found[name] = h5o.get_info(file[name].id).hdr.version
        return found

    def found(self, path):
        data = path.read_bytes()
        return {signature for signature in SIGNATURES if signature in data}

    def available(self):
        names = h5py.version.hdf5_version_tuple
        return [bound for bound in BOUNDS if bound != "v200" or names >= (2, 0, 0)]

    def test_superblocks_headers_and_groups(self):
        def fill(specification, file):
            for number in range(3):
                specification.group(f"few/{number}")
                file.create_group(f"few/{number}")
            for number in range(30):
                specification.group(f"many/{number}")
                file.create_group(f"many/{number}")
            specification.dense("x", ROWS)
            file["x"] = ROWS

        for bound in self.available():
            with self.subTest(bound):
                ours, theirs = self.make_both(bound, fill)
                names = ["few", "many", "many/7", "x"]
                self.assertEqual(self.facts(ours, names), self.facts(theirs, names))
                self.assertEqual(self.found(ours), self.found(theirs))

    def test_chunk_indexes(self):
        for bound in self.available():
            for name, options in DATASETS.items():
                def fill(specification, file, options=options):
                    given = {key: list(value) for key, value in options.items()}
                    specification.dense("x", ROWS, **given)
                    file.create_dataset("x", data=ROWS, **options)

                with self.subTest(bound, dataset=name):
                    ours, theirs = self.make_both(bound, fill)
                    # Local heaps are the groups' business.
                    self.assertEqual(self.found(ours), self.found(theirs))
                    self.assertEqual(self.facts(ours, ["x"]), self.facts(theirs, ["x"]))

    def test_messages(self):
        gzip = [{"id": 1, "parameters": [3]}, {"id": 3, "parameters": [], "optional": False}]
        datasets = {
            "plain": (ROWS, {}, {}),
            "scalar": (np.float32(3), {}, {}),
            "filled": (ROWS, {"fill": 3.0}, {"fillvalue": 3.0}),
            "chunks": (ROWS, {"chunks": [3, 2], "maxshape": [None, 5]}, {"chunks": (3, 2), "maxshape": (None, 5)}),
            "packed": (ROWS, {"chunks": [3, 2], "filters": gzip},
                       {"chunks": (3, 2), "compression": "gzip", "compression_opts": 3, "fletcher32": True}),
            "record": (np.zeros(3, PLAIN), {}, {}),
            "arrays": (np.zeros(3, RECORD), {}, {}),
            "text": (np.array([b"abc"]), {}, {}),
        }

        def fill(specification, file):
            for name, (values, ours, theirs) in datasets.items():
                specification.dense(name, values, **ours)
                file.create_dataset(name, data=values, **theirs)
            specification.group("group")
            file.create_group("group")
            for place in ("group", "plain"):
                for name, value in {"x": np.arange(3), "r": np.zeros(2, RECORD)}.items():
                    specification.attribute(place, name, value)
                    file[place].attrs[name] = value

        for bound in self.available():
            ours, theirs = self.make_both(bound, fill)
            for name in ["/", "group", *datasets]:
                with self.subTest(bound, name=name):
                    found, wanted = versions_of(ours, name), versions_of(theirs, name)
                    if bound not in ("earliest", "v108", "v110"):
                        # Later ones say the same; Pumice keeps to what 1.10 reads.
                        for later in (DATATYPE, LAYOUT):
                            found.pop(later, None), wanted.pop(later, None)
                    self.assertEqual(found, wanted)

    def refused(self, make):
        """Whether making something fails."""
        try:
            make()
        except (AssertionError, OSError, ValueError, RuntimeError):
            return True
        return False

    def test_every_pair_of_bounds_allows_what_libhdf5_allows(self):
        bounds = self.available()
        for low, high in itertools.combinations_with_replacement(bounds, 2):
            if high == "earliest":
                continue
            layout = h5py.VirtualLayout((4,), "i4")
            layout[:] = h5py.VirtualSource("source.h5", "x", (4,))
            ours, theirs = (self.directory / f"{who}-{low}-{high}.h5" for who in ("ours", "theirs"))

            def plain(specification, file):
                specification.group("group")
                file.create_group("group")
                specification.dense("x", ROWS, chunks=[3, 2], maxshape=[None, 5])
                file.create_dataset("x", data=ROWS, chunks=(3, 2), maxshape=(None, 5))

            with self.subTest(low=low, high=high):
                specification = self.specification(f"{low}-{high}")
                specification.op("file", path=ours.name, libver=low, newest=high)
                with h5py.File(theirs, "w", libver=(low, high)) as file:
                    plain(specification, file)
                    view = self.refused(lambda: file.create_virtual_dataset("view", layout))
                self.write(specification, "other.h5")
                self.assertEqual(self.found(ours), self.found(theirs))
                names = ["group", "x"]
                self.assertEqual(self.facts(ours, names), self.facts(theirs, names))
                for name, (first, operation) in LATER.items():
                    specification.operations.append({**operation, "path": name})
                    refused = self.refused(lambda: self.write(specification, "other.h5"))
                    specification.operations.pop()
                    self.assertEqual(refused, bounds.index(high) < bounds.index(first), name)
                self.assertEqual(view, high == "v108")

    def test_chunks_of_4_gib_are_of_a_version_of_their_own(self):
        for chunk in (1 << 30, (1 << 30) - 1):
            def fill(specification, file):
                options = {"maxshape": [None], "chunks": [chunk]}
                specification.create("dense", "x", "<i4", [5], **options)
                file.create_dataset("x", (5,), "<i4", chunks=(chunk,), maxshape=(None,))

            ours, theirs = self.make_both("v110", fill)
            self.assertEqual(versions_of(ours, "x"), versions_of(theirs, "x"))
            with h5py.File(ours) as file:
                self.assertEqual(file["x"].chunks, (chunk,))

    def test_compact_data_may_fill_a_message(self):
        most = 65_524
        for bound in ("earliest", "v110"):
            data = np.arange(most, dtype="u1")
            specification = self.specification(f"compact-{bound}")
            path = self.directory / f"compact-{bound}.h5"
            specification.op("file", path=path.name, libver=bound)
            specification.dense("full", data, compact=True)
            self.write(specification, "other.h5")
            with h5py.File(path) as file:
                np.testing.assert_array_equal(file["full"][:], data)
            specification.create("dense", "more", "u1", [most + 1], compact=True)
            self.assertTrue(self.refused(lambda: self.write(specification, "other.h5")))

    def test_a_user_block_is_left_to_the_user(self):
        for bound in ("earliest", "v110"):
            for size in (512, 4096):
                with self.subTest(bound, size=size):
                    path = self.directory / f"{bound}{size}.h5"
                    specification = self.specification(f"block{bound}{size}")
                    specification.op("file", path=path.name, libver=bound, userblock_size=size)
                    specification.dense("x", ROWS, chunks=[3, 2], maxshape=[None, 5])
                    self.write(specification, "other.h5")
                    words = b"what the user has to say"
                    with open(path, "r+b") as file:
                        file.write(words)
                    specification = self.specification(f"again{bound}{size}")
                    specification.op("resize", path="x", shape=[20, 5])
                    specification.write_block("x", [12, 0], np.full((8, 5), 7.0))
                    self.edit(specification, path)
                    self.assertTrue(path.read_bytes().startswith(words))
                    with h5py.File(path, "r+") as file:
                        self.assertEqual(file.userblock_size, size)
                        expected = np.vstack([ROWS, np.full((8, 5), 7.0)])
                        np.testing.assert_array_equal(file["x"][()], expected)
                        file["y"] = ROWS
                    self.assertTrue(path.read_bytes().startswith(words))


class Forms(InteropCase):
    """Where links and attributes are stored as they come and go, and when space is taken."""

    def dense(self, path):
        with h5py.File(path) as file:
            info = h5o.get_info(file["g"].id)
            return info.meta_size.obj.heap_size > 0, info.meta_size.attr.heap_size > 0

    def test_links_and_attributes_become_dense_and_compact_as_with_libhdf5(self):
        ours, theirs = self.directory / "ours.h5", self.directory / "theirs.h5"
        for path in (ours, theirs):
            with h5py.File(path, "w", libver="v110") as file:
                file.create_group("g")
        seen = set()
        for step, count in enumerate([*range(1, 12), *range(10, -1, -1)]):
            specification = self.specification(f"step{step}")
            with h5py.File(theirs, "r+", libver=("v110", "latest")) as file:
                group = file["g"]
                if len(group) < count:
                    group.create_group(f"m{count}")
                    group.attrs[f"a{count}"] = count
                    specification.group(f"g/m{count}")
                    specification.attribute("g", f"a{count}", count)
                else:
                    del group[f"m{count + 1}"], group.attrs[f"a{count + 1}"]
                    specification.op("delete", path=f"g/m{count + 1}")
                    specification.op("remove_attribute", path="g", name=f"a{count + 1}")
            self.edit(specification, ours)
            self.assertEqual(self.dense(ours), self.dense(theirs), f"step {step}: {count} members")
            seen.add(self.dense(ours))
        self.assertEqual(seen, {(True, True), (False, False)})

    def test_early_space_is_taken_when_a_dataset_grows(self):
        for libver, maxshape in itertools.product(("earliest", "v110"), ((20, 9), (None, 9), (None, None))):
            for packed in (False, True):
                with self.subTest(libver, maxshape=maxshape, packed=packed):
                    stored = []
                    for who in ("ours", "theirs"):
                        path = self.directory / f"early-{who}.h5"
                        with h5py.File(path, "w", libver=libver) as file:
                            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                            plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
                            plist.set_chunk((3, 2))
                            plist.set_fill_value(np.array(9.0))
                            if packed:
                                plist.set_deflate(3)
                            space = h5py.h5s.create_simple((7, 5), tuple(
                                h5py.h5s.UNLIMITED if n is None else n for n in maxshape))
                            h5d.create(file.id, b"x", h5py.h5t.IEEE_F64LE, space, plist)
                        if who == "ours":
                            specification = self.specification("early")
                            specification.op("resize", path="x", shape=[20, 8])
                            self.edit(specification, path)
                        else:
                            with h5py.File(path, "r+", libver=libver) as file:
                                file["x"].resize((20, 8))
                        with h5py.File(path) as file:
                            np.testing.assert_array_equal(file["x"][()], np.full((20, 8), 9.0))
                            stored.append(file["x"].id.get_num_chunks())
                    self.assertEqual(stored, [28, 28])

    def test_late_space_is_taken_by_the_first_write(self):
        for libver in ("earliest", "v110"):
            for maxshape in ((12, 5), (None, 5)):
                with self.subTest(libver, maxshape=maxshape):
                    ours, theirs = (self.directory / f"{who}.h5" for who in ("ours", "theirs"))
                    chunks = []
                    for path in (ours, theirs):
                        with h5py.File(path, "w", libver=libver) as file:
                            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                            plist.set_alloc_time(h5d.ALLOC_TIME_LATE)
                            plist.set_chunk((3, 2))
                            plist.set_fill_value(np.array(9.0))
                            space = h5py.h5s.create_simple((12, 5), tuple(
                                h5py.h5s.UNLIMITED if n is None else n for n in maxshape))
                            h5d.create(file.id, b"x", h5py.h5t.IEEE_F64LE, space, plist)
                    specification = self.specification("late")
                    specification.write_block("x", [4, 4], np.array([[1.0]]))
                    self.edit(specification, ours)
                    with h5py.File(theirs, "r+", libver=libver) as file:
                        file["x"][4, 4] = 1.0
                    for path in (ours, theirs):
                        with h5py.File(path) as file:
                            chunks.append(file["x"].id.get_num_chunks())
                            expected = np.full((12, 5), 9.0)
                            expected[4, 4] = 1.0
                            np.testing.assert_array_equal(file["x"][()], expected)
                    self.assertEqual(chunks, [12, 12])


if __name__ == "__main__":
    unittest.main()
