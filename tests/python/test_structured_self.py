"""The decoder and the builder against each other, against libhdf5, and against damage."""

import pathlib
import tempfile
import unittest
import zlib

import h5py
import numpy as np

import structured_decoder
from hdf5_bytes import FormatError, Unsupported, lookup3, sealed
from sparse_cases import all_cases, inside, random_cells, sparse
from structured_builder import FileBuilder, Sparse
from structured_decoder import decode


class TemporaryDirectory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def path(self, name="file.h5"):
        return self.directory / name


class WorkedExample(TemporaryDirectory):
    """The example of the format document, byte for byte."""

    def test_lookup3_gives_the_published_values(self):
        self.assertEqual(lookup3(b""), 0xDEADBEEF)
        self.assertEqual(lookup3(b"Four score and seven years ago"), 0x17770551)

    def test_chunk_and_layout_are_the_documented_bytes(self):
        values = np.array([0x11, 0x22, 0x33], "<i4")
        cells = np.array([[2], [3], [7]], np.uint64)
        spec = Sparse((20,), (10,), cells, values, selection="v1", extent_maximum=True)
        builder = FileBuilder()
        builder.sparse("d", spec)
        chunk = bytes.fromhex(
            "01000818000000 0101010000000000 0a00000000000000 1400000000000000"
            "02000000 01000000 00000000 18000000 01000000 02000000"
            "02000000 03000000 07000000 07000000 bc0e61d7 11000000 22000000 33000000"
        )
        self.assertEqual(len(chunk), 87)
        self.assertIn(chunk, builder.image)
        self.assertIn(bytes.fromhex("050400 0100 00 02 01 0a 04 08 02 01 00 03 0a"), builder.image)

    def test_index_blocks_have_the_documented_checksums(self):
        header = bytes.fromhex("4641484401 02 12 0a 0200000000000000 1c07000000000000")
        self.assertEqual(sealed(header)[-4:], bytes.fromhex("1688bb9a"))
        block = bytes.fromhex(
            "4641444201 02 0007000000000000 0008000000000000 5700 4b00000000000000"
            "ffffffffffffffff 0000 0000000000000000"
        )
        self.assertEqual(sealed(block)[-4:], bytes.fromhex("739604d7"))


class BuiltFiles(TemporaryDirectory):
    def test_every_built_dataset_decodes_to_its_cells(self):
        for name, spec in all_cases().items():
            with self.subTest(name):
                builder = FileBuilder(superblock=2 + len(name) % 2)
                builder.sparse("group/d", spec)
                builder.save(self.path())
                found = decode(self.path())["/group/d"]
                place, values = inside(spec)
                np.testing.assert_array_equal(found.coordinates, place)
                self.assertEqual(found.values.tobytes(), values.tobytes())
                self.assertEqual(found.dtype, spec.dtype())
                self.assertEqual(found.shape, tuple(spec.shape))
                self.assertEqual(found.chunk, tuple(spec.chunk))
                self.assertEqual(set(found.attributes), set(spec.attributes))

    def test_h5py_reads_the_dense_dataset_and_refuses_the_sparse_one(self):
        rng = np.random.default_rng(1)
        dense = rng.normal(size=(7, 9))
        for name, spec in all_cases().items():
            with self.subTest(name):
                builder = FileBuilder()
                builder.dense("plain", dense, {"unit": np.bytes_(b"m")})
                builder.sparse("holes", spec)
                builder.dense("after/plain", np.arange(5, dtype=">i2"))
                builder.save(self.path())
                with h5py.File(self.path()) as file:
                    np.testing.assert_array_equal(file["plain"][:], dense)
                    self.assertEqual(file["plain"].attrs["unit"], b"m")
                    np.testing.assert_array_equal(file["after/plain"][:], np.arange(5))
                    with self.assertRaises((OSError, KeyError, RuntimeError)):
                        file["holes"][:]

    def test_damage_to_metadata_is_noticed(self):
        rng = np.random.default_rng(2)
        cells = random_cells(rng, (40, 30), 120)
        for maximum in ((40, 30), (None, 30), (None, None)):
            builder = FileBuilder()
            builder.sparse("d", sparse(rng, (40, 30), (8, 8), cells, maximum=maximum))
            builder.save(self.path())
            image = bytearray(self.path().read_bytes())
            checked = self.checksummed_bytes(image)
            for position in rng.choice(checked, 60, replace=False):
                damaged = bytearray(image)
                damaged[position] ^= 1 << int(rng.integers(8))
                self.path().write_bytes(damaged)
                with self.assertRaises((FormatError, Unsupported), msg=str(position)):
                    decode(self.path())

    def checksummed_bytes(self, image):
        file = structured_decoder.File(bytes(image))
        found = {}
        structured_decoder.walk(file, file.root, "/", set(), found)
        places = []
        for start, end, what in file.claims:
            if what.startswith("chunk"):
                record = next(r for r in found["/d"].chunks.values() if r.address == start)
                end = start + record.offsets[1]
            if "node at" in what:
                end = start + 10
            places.extend(range(start, end))
        return places


class DenseIndexes(TemporaryDirectory):
    """The index walks on files that libhdf5 wrote: same structures, shorter records."""

    SHAPES = {
        "fixed": ((60, 50), (60, 50), (7, 9)),
        "fixed paged": ((3000,), (3000,), (1,)),
        "extensible": ((60, 50), (None, 50), (3, 9)),
        "extensible second axis": ((50, 60), (50, None), (9, 3)),
        "extensible paged": ((136_000,), (None,), (1,)),
        "b-tree": ((90, 80), (None, None), (2, 3)),
        "single": ((20, 20), (20, 20), (20, 20)),
    }

    def test_walks_find_the_chunks_of_libhdf5(self):
        for (name, (shape, maximum, chunk)), gzip in (
            (item, gzip) for item in self.SHAPES.items() for gzip in (False, True)
        ):
            with self.subTest(name, gzip=gzip):
                data = np.arange(1, np.prod(shape) + 1, dtype="<i4").reshape(shape)
                options = {"compression": "gzip"} if gzip else {}
                with h5py.File(self.path(), "w", libver="latest") as file:
                    made = file.create_dataset(
                        "d", shape, "<i4", None, maxshape=maximum, chunks=chunk, **options
                    )
                    if np.prod(shape) > 100_000:
                        made[::7000] = data[::7000]
                    else:
                        made[...] = data
                self.compare(data, chunk, gzip)

    def compare(self, data, chunk, gzip):
        image = self.path().read_bytes()
        found = decode(self.path())["/d"]
        self.assertGreater(len(found.chunks), 0)
        for scaled, record in found.chunks.items():
            size = record.size or 4 * int(np.prod(chunk))
            raw = image[record.address : record.address + size]
            stored = np.frombuffer(zlib.decompress(raw) if gzip else raw, "<i4").reshape(chunk)
            box = tuple(slice(s * c, (s + 1) * c) for s, c in zip(scaled, chunk))
            wanted = data[box]
            np.testing.assert_array_equal(stored[tuple(slice(n) for n in wanted.shape)], wanted)


if __name__ == "__main__":
    unittest.main()
