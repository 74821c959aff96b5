"""Files that Pumice wrote, read by h5py and the HDF5 command-line tools."""

import re
import shutil
import subprocess

import h5py
import numpy as np

from hdf5_bytes import DEFLATE, FLETCHER32, SHUFFLE
from interop import InteropCase
from sparse_cases import RECORD, random_cells, random_values
from structured_decoder import decode
from test_h5py_to_pumice import INDEXES, NUMBERS, groups_of

SHUFFLE_GZIP = [{"id": SHUFFLE, "parameters": [4]}, {"id": DEFLATE, "parameters": [4]}]


def rng():
    return np.random.default_rng(21)


def contiguous(spec, wanted):
    paths = groups_of([*NUMBERS, "S1", "S9", RECORD], "/group")
    for group in sorted({path.rsplit("/", 1)[0] for path in paths.values()}):
        spec.group(group)
    for dtype, path in paths.items():
        wanted[path] = random_values(rng(), 60, dtype).reshape(3, 4, 5)
        spec.dense(path, wanted[path])


def shapes(spec, wanted):
    wanted["/scalar"] = np.array(2.5)
    wanted["/one"] = np.array([7], ">u2")
    wanted["/none"] = np.zeros((0,), "<i4")
    wanted["/deep"] = np.arange(64, dtype="<i2").reshape((2,) * 6)
    for path, array in wanted.items():
        spec.dense(path, array)


def indexes(spec, wanted, filters=None):
    for name, (shape, maximum, chunk) in INDEXES.items():
        path = "/" + name
        wanted[path] = np.arange(np.prod(shape), dtype="<i4").reshape(shape) * 3
        spec.dense(path, wanted[path], maxshape=list(maximum), chunks=list(chunk), filters=filters)


def indexes_plain(spec, wanted):
    indexes(spec, wanted)


def indexes_filtered(spec, wanted):
    indexes(spec, wanted, SHUFFLE_GZIP)


def filters(spec, wanted):
    chains = {
        "gzip": [(DEFLATE, [9])],
        "shuffle": [(SHUFFLE, [4])],
        "shuffle gzip": [(SHUFFLE, [4]), (DEFLATE, [4])],
        "fletcher32": [(FLETCHER32, [])],
        "all three": [(SHUFFLE, [4]), (DEFLATE, [1]), (FLETCHER32, [])],
    }
    data = (np.arange(3000) % 97).astype("<f4").reshape(50, 60)
    for name, chain in chains.items():
        chosen = [{"id": identifier, "parameters": p} for identifier, p in chain]
        wanted["/" + name] = data
        spec.dense("/" + name, data, chunks=[16, 16], filters=chosen)
    noise = random_values(rng(), 4096, "u1")
    wanted["/noise"] = noise
    spec.dense("/noise", noise, chunks=[512], filters=[{"id": DEFLATE, "parameters": [6]}])


def parts(spec, wanted):
    """Blocks written one by one, unwritten rest, growth, and a second session."""
    for name, chunks, chain in (
        ("contiguous", None, None),
        ("plain", [8, 8], None),
        ("packed", [8, 8], SHUFFLE_GZIP),
    ):
        path = "/" + name
        array = np.full((30, 26), -5, "<i4")
        spec.create("dense", path, "<i4", (30, 26), chunks=chunks, filters=chain, fill=-5)
        generator = rng()
        for session in range(3):
            for _ in range(4):
                start = generator.integers(0, (20, 20))
                block = random_values(generator, 30, "<i4").reshape(5, 6)
                array[start[0] : start[0] + 5, start[1] : start[1] + 6] = block
                spec.write_block(path, start, block)
            if session < 2:
                spec.op("reopen")
        wanted[path] = array
    spec.create("dense", "/grown", "<i2", (4,), maxshape=[None], chunks=[3], fill=1)
    spec.write_block("/grown", [0], np.full(4, 8, "<i2"))
    spec.op("resize", path="/grown", shape=[20])
    spec.op("reopen")
    spec.op("resize", path="/grown", shape=[18])
    wanted["/grown"] = np.array([8] * 4 + [1] * 14, "<i2")


CASES = {
    "contiguous": contiguous,
    "shapes": shapes,
    "chunk indexes": indexes_plain,
    "chunk indexes, filtered": indexes_filtered,
    "filters": filters,
    "parts": parts,
}


class FilesOfPumice(InteropCase):
    def tools_accept(self, path):
        for command in (["h5dump", "-H"], ["h5ls", "-r"]):
            if shutil.which(command[0]) is None:
                continue
            done = subprocess.run([*command, path], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{command[0]}: {done.stderr}")
            self.assertNotIn("ERROR", done.stdout, command[0])

    def test_h5py_and_the_tools_read_dense_data(self):
        for name, maker in CASES.items():
            with self.subTest(name):
                spec, wanted = self.specification(name), {}
                maker(spec, wanted)
                path = self.write(spec)
                with h5py.File(path) as file:
                    for place, array in wanted.items():
                        found = np.empty(file[place].shape, file[place].dtype)
                        file[place].read_direct(found) if found.size else None
                        self.same_bytes(found, array, place)
                self.tools_accept(path)
                self.assertEqual(set(decode(path)), set(wanted))

    def test_chunks_maximum_and_fill_are_what_was_asked_for(self):
        spec = self.specification()
        chain = [*SHUFFLE_GZIP, {"id": FLETCHER32, "parameters": []}]
        spec.create(
            "dense",
            "/d",
            "<f4",
            (10, 12),
            maxshape=[None, 40],
            chunks=[4, 5],
            filters=chain,
            fill=2.5,
        )
        with h5py.File(self.write(spec)) as file:
            made = file["d"]
            self.assertEqual(made.maxshape, (None, 40))
            self.assertEqual(made.chunks, (4, 5))
            self.assertEqual(made.fillvalue, 2.5)
            self.assertEqual(
                (made.shuffle, made.compression, made.compression_opts), (True, "gzip", 4)
            )
            self.assertTrue(made.fletcher32)
            np.testing.assert_array_equal(made[:], np.full((10, 12), 2.5))

    def test_attributes_and_groups_are_read_by_h5py(self):
        spec = self.specification()
        spec.group("/a")
        spec.group("/a/b")
        spec.dense("/a/b/d", np.arange(5))
        spec.create("sparse", "/a/s", "<f4", (9, 9))
        values = {
            "int": np.int32(-3),
            "floats": np.array([[1.5, -2.0], [0.25, 8.0]]),
            "big": np.arange(4, dtype=">u2"),
            "text": np.bytes_(b"keV"),
            "record": random_values(rng(), 2, RECORD),
        }
        for target in ("/", "/a", "/a/b/d", "/a/s"):
            for name, value in values.items():
                spec.attribute(target, name, value)
        path = self.write(spec)
        with h5py.File(path) as file:
            for target in ("/", "/a", "/a/b/d"):
                self.assertEqual(set(file[target].attrs), set(values))
                for name, value in values.items():
                    found = file[target].attrs[name]
                    np.testing.assert_array_equal(found, value)
                    self.assertEqual(file[target].attrs.get_id(name).dtype, np.asarray(value).dtype)
        sparse = decode(path)["/a/s"]
        for name, value in values.items():
            np.testing.assert_array_equal(sparse.attributes[name], value)

    def test_h5py_reads_dense_beside_sparse_and_refuses_the_sparse(self):
        spec, generator = self.specification(), rng()
        dense = generator.normal(size=(20, 30))
        spec.dense("/before", dense, chunks=[6, 7], filters=[{"id": DEFLATE, "parameters": [4]}])
        maxima = ([40, 50], [None, 50], [None, None], None)
        for number, maximum in enumerate(maxima):
            path = f"/sparse{number}"
            cells = random_cells(generator, (40, 50), 100)
            chunks = [9, 9] if maximum else [40, 50]
            spec.create("sparse", path, "<i4", (40, 50), maxshape=maximum, chunks=chunks)
            spec.write_points(path, cells, random_values(generator, len(cells), "<i4"))
        spec.dense("/after", dense[::-1])
        written = self.write(spec)
        with h5py.File(written) as file:
            self.assertEqual(len(file), 6)
            np.testing.assert_array_equal(file["before"][:], dense)
            np.testing.assert_array_equal(file["after"][:], dense[::-1])
            for number in range(len(maxima)):
                with self.assertRaises((OSError, KeyError, RuntimeError)):
                    file[f"sparse{number}"][:]
        # An older library, in h5ls: dense data is listed and read, sparse data an error. (h5dump of
        # that version opens every object first, and so refuses the whole file.)
        if shutil.which("h5ls") is None:
            return
        listed = self.tool("h5ls", written).stdout
        for name in ("before", "after"):
            self.assertRegex(listed, rf"{name} +Dataset {{20, 30}}")
            done = self.tool("h5ls", "-d", f"{written}/{name}")
            self.assertEqual(done.returncode, 0, done.stderr)
            data = re.sub(r"\([0-9, ]+\)", " ", done.stdout.split("Data:")[1])
            found = np.array(re.findall(r"-?[0-9][-+.e0-9]*", data), float).reshape(20, 30)
            wanted = dense if name == "before" else dense[::-1]
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
        for number in range(len(maxima)):
            self.assertRegex(listed, rf"sparse{number} +Dataset \*ERROR\*")
            done = self.tool("h5dump", "-d", f"/sparse{number}", written)
            self.assertEqual(done.returncode, 1, "refused, and not by a crash")

    def tool(self, *command):
        return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
