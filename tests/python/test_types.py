"""Values of types of Rust: h5py reads what Pumice wrote of them, and Pumice what h5py wrote."""

import h5py
import numpy as np

from interop import InteropCase

KIND = h5py.enum_dtype({"Rock": -1, "soft stone": 5}, basetype="i1")
TEXT = h5py.string_dtype()
PADDED = np.dtype([("small", "u1"), ("large", "<f8"), ("last", "<u2")])
SAMPLE = np.dtype([
    ("name", TEXT),
    ("code", h5py.string_dtype("utf-8", 4)),
    ("kind", KIND),
    ("valid", "?"),
    ("wave", "<c8"),
    ("grid", "<i2", (3, 2)),
    ("names", TEXT, (2,)),
    ("place", PADDED),
    ("peaks", h5py.vlen_dtype("<f8")),
    ("tags", h5py.vlen_dtype(TEXT)),
])
ROW = np.dtype([("object", h5py.ref_dtype), ("part", h5py.regionref_dtype), ("label", TEXT)])


def sample(number):
    def name(text):
        return f"{text} {number}"

    one = np.zeros(1, SAMPLE)
    one["name"] = "" if number == 1 else name("größe")
    one["code"] = f"c{number}".encode()
    one["kind"] = 5 if number % 2 else -1
    one["valid"] = number % 3 == 0
    one["wave"] = number - 0.5j
    one["grid"] = [[1, 2], [3, 4], [5, number]]
    one["names"][0] = [name("one"), name("two")]
    one["place"] = (number, number / 4, 7)
    one["peaks"][0] = np.arange(number) + 0.5
    one["tags"][0] = np.array([name("tag")] * number, object)
    return one[0]


def same(found, wanted):
    """Whether elements of compounds with anything in them are equal."""
    if isinstance(wanted, (bytes, str)):
        text = found.decode() if isinstance(found, bytes) else found
        return text == (wanted.decode() if isinstance(wanted, bytes) else wanted)
    if getattr(wanted, "dtype", None) is not None and wanted.dtype.names:
        return all(same(found[name], wanted[name]) for name in wanted.dtype.names)
    if getattr(wanted, "dtype", None) is not None and wanted.dtype.hasobject and wanted.shape:
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, np.ndarray) and wanted.dtype.hasobject:
        return same(found, wanted[()])
    return np.array_equal(found, wanted)


class Types(InteropCase):
    def setUp(self):
        super().setUp()
        self.path = self.directory / "types.h5"

    def test_h5py_reads_them(self):
        self.run_interop("write-types", self.path)
        with h5py.File(self.path) as file:
            for name in ("samples", "chunked"):
                dataset = file[name]
                self.assertEqual(dataset.dtype.names, SAMPLE.names)
                # libhdf5 has strings as pointers of 8 bytes, sequences as 16.
                self.assertEqual(dataset.id.get_type().get_size(), 93, "padding is left out")
                for field in ("valid", "wave", "grid", "place"):
                    self.assertEqual(dataset.dtype[field], SAMPLE[field])
                self.assertEqual(h5py.check_enum_dtype(dataset.dtype["kind"]),
                                 h5py.check_enum_dtype(KIND))
                code = h5py.check_string_dtype(dataset.dtype["code"])
                self.assertEqual((code.encoding, code.length), ("utf-8", 4))
                self.assertEqual(h5py.check_string_dtype(dataset.dtype["name"]).length, None)
                for number, found in enumerate(dataset[()]):
                    self.assertTrue(same(found, sample(number)), f"{found} of {number}")
            self.assertEqual(file["flags"].dtype, np.dtype("?"))
            self.assertEqual(file["flags"][()].tolist(), [True, False, True])
            self.assertEqual(file["waves"][()].tolist(), [1.5 - 2j, 1j])
            self.assertEqual(file["texts"].asstr()[()].tolist(), ["tuff", "", "größe"])
            self.assertEqual(file["kinds"][()].tolist(), [5, -1])
            self.assertEqual([walk.tolist() for walk in file["walks"]], [[1, 2, 3], [], [-1]])
            self.assertEqual(file["padded"].dtype, PADDED)
            self.assertEqual(file["padded"][()].tolist(), [(2, 0.5, 7), (3, 0.75, 7)])
            both, none = file["rows"][()]
            self.assertEqual(file[both["object"]].name, "/flags")
            part = both["part"]
            self.assertEqual(h5py.h5r.get_name(part, file.id), b"/walks")
            self.assertEqual([walk.tolist() for walk in file["walks"][part]], [[], [-1]])
            self.assertFalse(none["object"] or none["part"])
            self.check_attributes(file.attrs)

    def check_attributes(self, attributes):
        self.assertEqual(attributes["title"], "größe")
        self.assertIsInstance(attributes["title"], str)
        self.assertEqual(attributes["code"], b"abc")
        self.assertEqual(attributes["names"].tolist(), ["tuff", "basalt"])
        self.assertIs(attributes["flag"].dtype.type, np.bool_)
        self.assertTrue(attributes["flag"])
        self.assertEqual(attributes["flags"].tolist(), [True, False])
        self.assertEqual(attributes["wave"], 1 + 2j)
        self.assertTrue(same(attributes["sample"], sample(2)))

    def test_pumice_reads_h5pys(self):
        with h5py.File(self.path, "w") as file:
            samples = np.array([sample(number) for number in range(4)], SAMPLE)
            file.create_dataset("samples", data=samples, dtype=SAMPLE)
            chunked = file.create_dataset("chunked", (4,), SAMPLE, chunks=(3,), compression="gzip")
            chunked[...] = samples
            file["flags"] = np.array([True, False, True])
            file["numbers as flags"] = np.array([3, 0, 256], ">i4")
            file["waves"] = np.array([1.5 - 2j, 1j])
            file.create_dataset("texts", data=["tuff", "", "größe"], dtype=TEXT)
            fixed = [text.encode() for text in ("tuff", "", "größe")]
            file["fixed"] = np.array(fixed, h5py.string_dtype("utf-8", 9))
            file.create_dataset("kinds", data=[5, -1], dtype=KIND)
            walks = file.create_dataset("walks", (3,), h5py.vlen_dtype("<i4"))
            for at, walk in enumerate(([1, 2, 3], [], [-1])):
                walks[at] = walk
            padded = np.array([(2, 0.5, 7), (3, 0.75, 7)], np.dtype(PADDED.descr, align=True))
            file["padded"] = padded
            rows = np.zeros(2, ROW)
            rows[0] = (file["flags"].ref, walks.regionref[1:3], "both")
            rows[1] = (h5py.Reference(), h5py.RegionReference(), "none")
            file.create_dataset("rows", data=rows, dtype=ROW)
            file.attrs["title"] = "größe"
            file.attrs["names"] = ["tuff", "basalt"]
            file.attrs["flag"] = True
            file.attrs["flags"] = [True, False]
            file.attrs["wave"] = np.complex64(1 + 2j)
            file.attrs.create("sample", sample(2), dtype=SAMPLE)
        self.run_interop("read-types", self.path)


if __name__ == "__main__":
    import unittest

    unittest.main()
