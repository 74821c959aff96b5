"""The C library, called as C programs call it: what it writes h5py reads, and the other way round."""

import ctypes
import pathlib
import shutil
import tempfile
import unittest

import h5py
import numpy as np

from interop import program
from structured_decoder import decode

READ, EDIT, CREATE = 0, 1, 2
TYPES = {name: at + 1 for at, name in enumerate("i1 i2 i4 i8 u1 u2 u4 u8 f4 f8".split())}


class Options(ctypes.Structure):
    _fields_ = [("sparse", ctypes.c_bool), ("shuffle", ctypes.c_bool), ("checksum", ctypes.c_bool),
                ("deflate", ctypes.c_uint32), ("plain", ctypes.c_bool), ("chunk", ctypes.c_void_p),
                ("max_shape", ctypes.c_void_p), ("fill", ctypes.c_void_p)]


def numbers(*values):
    """An array of C's uint64_t."""
    return (ctypes.c_uint64 * len(values))(*values)


def data(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Library(unittest.TestCase):
    def setUp(self):
        built = program("PUMICE_C", "libpumice_c.so")
        if built is None:
            self.skipTest("the C library is not built")
        self.library = ctypes.CDLL(str(built))
        self.library.pumice_error_message.restype = ctypes.c_char_p
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="pumice-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.path = self.directory / "a.h5"

    def do(self, name, *arguments):
        """Calls a function that must succeed."""
        wide = [ctypes.c_size_t(one) if isinstance(one, int) else one for one in arguments]
        status = getattr(self.library, "pumice_" + name)(*wide)
        self.assertEqual(status, 0, self.library.pumice_error_message())

    def open(self, mode):
        file = ctypes.c_void_p()
        self.do("open", str(self.path).encode(), mode, ctypes.byref(file))
        return file

    def create(self, file, name, kind, shape, options=None):
        dataset = ctypes.c_void_p()
        options = options and ctypes.byref(options)
        self.do("dataset_create", file, name, TYPES[kind], len(shape), numbers(*shape), options, ctypes.byref(dataset))
        return dataset

    def test_h5py_reads_what_c_wrote(self):
        file = self.open(CREATE)
        for kind, number in TYPES.items():
            values = np.arange(42).astype(kind).reshape(6, 7)
            chunk = numbers(4, 3)
            options = Options(deflate=5, shuffle=True, chunk=ctypes.addressof(chunk))
            dataset = self.create(file, kind.encode(), kind, (6, 7), options)
            self.do("write", dataset, None, number, 42, data(values))
            self.do("attribute_set", file, kind.encode(), b"values", number, 2, numbers(6, 7), data(values))
            self.library.pumice_dataset_close(dataset)
        self.do("attribute_set_text", file, b"/", b"title", "Bimsstein, größer".encode())
        self.do("close", file)
        with h5py.File(self.path) as file:
            self.assertEqual(file.attrs["title"], "Bimsstein, größer")
            for kind in TYPES:
                expected = np.arange(42).astype(kind).reshape(6, 7)
                self.assertEqual(file[kind].dtype, expected.dtype)
                np.testing.assert_array_equal(file[kind][...], expected)
                np.testing.assert_array_equal(file[kind].attrs["values"], expected)
                self.assertEqual((file[kind].chunks, file[kind].compression), ((4, 3), "gzip"))

    def test_c_reads_what_h5py_wrote(self):
        values = np.arange(60, dtype=">i4").reshape(10, 6)
        with h5py.File(self.path, "w") as file:
            file.create_dataset("x", data=values, chunks=(3, 4), compression="lzf")
            file.attrs["title"] = "of h5py"
            file.attrs["scale"] = np.float32(0.5)
        file, dataset, found = self.open(READ), ctypes.c_void_p(), np.zeros(60, "f8")
        self.do("dataset_open", file, b"x", ctypes.byref(dataset))
        self.do("read", dataset, None, TYPES["f8"], 60, data(found))
        np.testing.assert_array_equal(found.reshape(10, 6), values)
        text, scale = ctypes.create_string_buffer(20), np.zeros(1)
        self.do("attribute_get_text", file, b"/", b"title", 20, text, None)
        self.do("attribute_get", file, b"/", b"scale", TYPES["f8"], 1, data(scale))
        self.assertEqual((text.value, scale[0]), (b"of h5py", 0.5))
        self.library.pumice_dataset_close(dataset)
        self.do("close", file)

    def test_sparse_cells_are_what_the_decoder_finds(self):
        file, cells = self.open(CREATE), np.array([[7, 9], [70, 8], [7, 10]], "u8")
        dataset = self.create(file, b"hits", "f8", (100, 100), Options(sparse=True))
        self.do("write_cells", dataset, 3, data(cells), TYPES["f8"], data(np.array([1.5, 2.5, 3.5])))
        self.library.pumice_dataset_close(dataset)
        self.do("close", file)
        found = decode(self.path)["/hits"]
        got = {tuple(map(int, cell)): value for cell, value in zip(found.coordinates, found.values)}
        self.assertEqual(got, {(7, 9): 1.5, (70, 8): 2.5, (7, 10): 3.5})


if __name__ == "__main__":
    unittest.main()
