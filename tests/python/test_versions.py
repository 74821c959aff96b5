"""Which versions of structures Pumice chooses: those that libhdf5 chooses for the same bounds."""

import itertools
import unittest

import h5py
import numpy as np
from h5py import h5d, h5o

from interop import InteropCase

BOUNDS = ["earliest", "v108", "v110", "v112", "v114", "v200"]
SIGNATURES = [b"OHDR", b"TREE", b"SNOD", b"HEAP", b"FRHP", b"BTHD", b"FAHD", b"EAHD"]
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
}


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
