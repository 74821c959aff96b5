"""Files whose addresses and lengths are not eight bytes long: Pumice edits them, h5py reads them."""

import unittest

import h5py
import numpy as np

from interop import InteropCase
from varlen import pack_all, to_json

STRING = h5py.string_dtype()
RECORD = np.dtype([("id", "<i2"), ("name", STRING), ("last", "<u1")])
# Bytes of an address, and of a length.
WIDTHS = [(8, 4), (4, 8), (4, 4), (2, 8), (8, 2), (4, 2), (2, 4), (2, 2)]
BOUNDS = {"earliest": 0, "v110": 2}
LATEST = 5
FEW, MANY = 4, 14


class Widths(InteropCase):
    def make(self, widths, bound):
        """An empty file by h5py."""
        path = self.directory / f"{widths[0]}-{widths[1]}-{bound}.h5"
        creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        creation.set_sizes(*widths)
        access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        access.set_libver_bounds(BOUNDS[bound], LATEST)
        access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
        h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, creation, access)).close()
        return path

    def in_every_file(self, check):
        for widths in WIDTHS:
            for bound in BOUNDS:
                with self.subTest(widths=widths, bound=bound):
                    check(self.make(widths, bound))

    def texts(self, specification, kind, values):
        packed = np.frombuffer(pack_all(to_json(kind), values), "u1")
        return specification.store(packed)

    def check_strings(self, path):
        with h5py.File(path, "r+") as file:
            file["theirs"] = ["a", "bc"]
        specification = self.specification(path.stem)
        records = [(1, "one", 3), (2, "", 4)]
        for name, kind, values in [("ours", STRING, ["x", "yy"]), ("records", RECORD, records)]:
            data, kind = self.texts(specification, kind, values), to_json(kind)
            specification.op("dense", path=name, dtype=kind, shape=[2])
            specification.op("write", path=name, data=data)
            specification.op("attribute", path="/", name=name, dtype=kind, shape=[2], data=data)
        data = self.texts(specification, STRING, ["later", ""])
        specification.op("write", path="theirs", data=data)
        self.edit(specification, path)
        with h5py.File(path) as file:
            self.assertEqual(file["theirs"].asstr()[:].tolist(), ["later", ""])
            self.assertEqual(file["ours"].asstr()[:].tolist(), ["x", "yy"])
            self.assertEqual(list(file.attrs["ours"]), ["x", "yy"])
            for found in (file["records"][:], file.attrs["records"]):
                texts = [b.decode() if isinstance(b, bytes) else b for b in found["name"]]
                self.assertEqual(texts, ["one", ""])
                self.assertEqual((*found["id"], *found["last"]), (1, 2, 3, 4))

    def test_strings_and_records_of_strings(self):
        self.in_every_file(self.check_strings)

    def check_groups(self, path):
        specification = self.specification(path.stem)
        specification.group("a")
        specification.group("b")
        self.edit(specification, path)
        # What h5py gives back of a group is what it had, and no byte of its neighbour.
        values = {f"x{at}": np.arange(5 + at) for at in range(6)}
        with h5py.File(path, "r+") as file:
            del file["a"]
            for name, value in values.items():
                file["b"].attrs[name] = value
            for at in range(3):
                file.create_group(f"n{at}").attrs["y"] = np.arange(4)
        with h5py.File(path) as file:
            self.assertEqual(sorted(file), ["b", "n0", "n1", "n2"])
            for name, value in values.items():
                np.testing.assert_array_equal(file["b"].attrs[name], value)
        self.found(self.read(path), "/b")

    def test_groups_that_h5py_deletes(self):
        self.in_every_file(self.check_groups)

    def check_growing(self, path):
        specification = self.specification(path.stem)
        specification.dense("d", np.arange(5, dtype="<i4"), chunks=[2], maxshape=[None])
        self.edit(specification, path)
        with h5py.File(path, "r+") as file:
            # Lengths of two bytes leave libhdf5 that much of an axis without an end.
            file["d"].resize((9,))
            file["d"][5:] = 7
        with h5py.File(path) as file:
            self.assertEqual(file["d"][:].tolist(), [0, 1, 2, 3, 4, 7, 7, 7, 7])

    def test_one_axis_without_an_end(self):
        self.in_every_file(self.check_growing)

    def check_attributes(self, path):
        if path.stem.endswith("-2-v110"):
            # libhdf5 reads none of its own: the size of a heap's largest block does not fit.
            return
        large = 5_000 if path.stem.startswith("2-") else 20_000
        sizes = {f"a{at}": 8 for at in range(MANY)} | {"medium": 3_000, "large": large}
        specification = self.specification(path.stem)
        for name, size in sizes.items():
            specification.attribute("/", name, np.arange(size, dtype="u1"))
        self.edit(specification, path)
        with h5py.File(path) as file:
            for name, size in sizes.items():
                np.testing.assert_array_equal(file.attrs[name], np.arange(size, dtype="u1"))
        specification = self.specification(path.stem + "-less")
        for name in list(sizes)[FEW:]:
            specification.op("remove_attribute", path="/", name=name)
        self.edit(specification, path)
        with h5py.File(path, "r+") as file:
            self.assertEqual(sorted(file.attrs), sorted(list(sizes)[:FEW]))
            file.attrs["theirs"] = np.arange(300)

    def test_attributes_of_any_number_and_size(self):
        self.in_every_file(self.check_attributes)

    def full(self, path, fill):
        """Fills a file with two-byte addresses: an error, and the file has what was done before."""
        with h5py.File(path, "r+") as file:
            file["keep"] = np.arange(100)
        specification = self.specification(path.stem + "-full")
        fill(specification)
        with self.assertRaisesRegex(AssertionError, "the file is full"):
            self.edit(specification, path)
        with h5py.File(path, "r+") as file:
            np.testing.assert_array_equal(file["keep"][:], np.arange(100))
            for name, found in file.items():
                if name != "keep" and isinstance(found, h5py.Dataset):
                    self.assertFalse(found[:].any(), "it was made, and nothing was written")
        self.assertLess(path.stat().st_size, 1 << 16)

    def test_a_file_without_addresses_is_full(self):
        fills = {
            "contiguous": lambda spec: spec.dense("d", np.arange(12_500)),
            "chunks": lambda spec: spec.dense("d", np.arange(12_500), chunks=[1000]),
            "groups": lambda spec: [spec.group(f"g{at}") for at in range(400)],
            "attribute": lambda spec: spec.attribute("/", "a", np.arange(7_000)),
        }
        for bound in BOUNDS:
            for name, fill in fills.items():
                with self.subTest(bound=bound, name=name):
                    self.full(self.make((2, 8), bound), fill)

    def test_a_file_of_four_byte_addresses_ends_at_4_gib(self):
        path = self.make((4, 8), "v110")
        specification = self.specification("vast")
        options = {"allocation": "early", "fill_time": "never"}
        specification.create("dense", "d", "<u1", [5 << 30], **options)
        with self.assertRaisesRegex(AssertionError, "the file is full"):
            self.edit(specification, path)
        self.assertLess(path.stat().st_size, 1 << 20)


if __name__ == "__main__":
    unittest.main()
