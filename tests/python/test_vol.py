"""The VOL connector: stock h5py, netCDF4 and PyTables on Pumice's engine.

Each program runs in a process of its own with the connector in its environment, and shows by the connector's counter
that the connector did the work. What it wrote is read by libhdf5 here, and the other way round.
"""

import unittest

import h5py
import numpy as np

from structured_decoder import decode
from vol import Connector


class Writing(Connector):
    def test_what_the_connector_wrote_is_read_by_libhdf5(self):
        self.run_program("""
            with h5py.File(path, "w") as file:
                file["contiguous"] = np.arange(12.0).reshape(3, 4)
                chunked = file.create_dataset("group/chunked", shape=(100, 70), chunks=(10, 10), dtype="i4",
                                              maxshape=(None, 70), compression="gzip", shuffle=True, fillvalue=-1)
                chunked[5:50:3, ::7] = 9
                chunked.resize((120, 70))
                file["texts"] = ["a", "", "longer"]
                file["group"].attrs["unit"] = "counts"
                file["group"].attrs["list"] = np.arange(5, dtype="u2")
                file["soft"] = h5py.SoftLink("/contiguous")
                file["outside"] = h5py.ExternalLink("b.h5", "/x")
                file["hard"] = file["contiguous"]
                file["pointer"] = file["contiguous"].ref
                file["type"] = np.dtype([("a", "i4"), ("b", "f8", 3)])
                file.create_dataset("typed", shape=(2,), dtype=file["type"])
                assert calls(file) > 30
            """)
        with h5py.File(self.path) as file:
            self.assertEqual(sorted(file), ["contiguous", "group", "hard", "outside", "pointer", "soft", "texts",
                                            "type", "typed"])
            np.testing.assert_array_equal(file["soft"][()], np.arange(12.0).reshape(3, 4))
            expected = np.full((120, 70), -1, "i4")
            expected[5:50:3, ::7] = 9
            chunked = file["group/chunked"]
            np.testing.assert_array_equal(chunked[()], expected)
            self.assertEqual((chunked.chunks, chunked.compression, chunked.shuffle), ((10, 10), "gzip", True))
            self.assertEqual(file["texts"].asstr()[()].tolist(), ["a", "", "longer"])
            self.assertEqual(file["group"].attrs["unit"], "counts")
            np.testing.assert_array_equal(file["group"].attrs["list"], np.arange(5))
            self.assertEqual(file["hard"], file["contiguous"])
            self.assertEqual(file[file["pointer"][()]], file["contiguous"])
            self.assertTrue(file["typed"].id.get_type().committed())
            self.assertEqual(file.get("outside", getlink=True).filename, "b.h5")

    def test_numbered_sources_are_told_as_they_were_given(self):
        source = h5py.h5s.create_simple((5, 10, 10))
        blocks = h5py.h5s.create_simple((0, 10, 10), (h5py.h5s.UNLIMITED, 10, 10))
        blocks.select_hyperslab((0, 0, 0), (h5py.h5s.UNLIMITED, 1, 1), (5, 1, 1), (5, 10, 10))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_virtual(blocks, b"f-%b.h5", b"A", source)
        with h5py.File(self.path, "w", libver="v110") as file:
            h5py.h5d.create(file.id, b"stack", h5py.h5t.NATIVE_INT32, blocks, plist)
        self.run_program("""
            with h5py.File(path) as file:
                plist = file["stack"].id.get_create_plist()
                named = (plist.get_virtual_count(), plist.get_virtual_filename(0))
                assert named == (1, "f-%b.h5"), named
                slab = plist.get_virtual_vspace(0).get_regular_hyperslab()
                assert slab == ((0, 0, 0), (5, 1, 1), (h5py.h5s.UNLIMITED, 1, 1), (5, 10, 10)), slab
                assert calls(file) > 0
            """)

    def test_objects_that_never_get_a_name_leave_nothing(self):
        self.run_program("""
            with h5py.File(path, "w") as file:
                for _ in range(20):
                    file.create_dataset(None, data=np.zeros(1000))
                file["kept"] = np.ones(10)
            """)
        self.assertLess(self.path.stat().st_size, 10_000)
        with h5py.File(self.path) as file:
            self.assertEqual(file["kept"][()].sum(), 10)


class Reading(Connector):
    def test_the_connector_reads_what_libhdf5_wrote(self):
        with h5py.File(self.path, "w", track_order=True) as file:
            for name in "zxy":
                file.create_group(name)
            file["x/numbers"] = np.arange(1000).reshape(10, 100)
            file["x/lists"] = np.array([np.arange(3), np.arange(0), np.arange(5)], h5py.vlen_dtype("i4"))
            file["x"].attrs["names"] = ["one", "two"]
            file["x/enumeration"] = np.array([1, 0], h5py.enum_dtype({"OFF": 0, "ON": 1}, "u1"))
        found = self.run_program("""
            with h5py.File(path) as file:
                print(list(file))
                print(file["x/numbers"][3, 7:10].tolist(), file["x/numbers"][[1, 5], 2].tolist())
                print([one.tolist() for one in file["x/lists"][()]])
                print(list(file["x"].attrs["names"]), h5py.check_enum_dtype(file["x/enumeration"].dtype))
                names = []
                file.visit(names.append)
                print(names)
                print(calls(file) > 10)
            """).splitlines()
        self.assertEqual(found, [
            "['z', 'x', 'y']",
            "[307, 308, 309] [102, 502]",
            "[[0, 1, 2], [], [0, 1, 2, 3, 4]]",
            "['one', 'two'] {'OFF': 0, 'ON': 1}",
            "['x', 'x/enumeration', 'x/lists', 'x/numbers', 'y', 'z']",
            "True",
        ])


class Refusing(Connector):
    def test_errors_reach_the_program_as_those_of_hdf5(self):
        self.run_program("""
            def raises(kind, function, *arguments):
                try:
                    function(*arguments)
                except kind as error:
                    return str(error)
                raise AssertionError(f"{function} raised nothing")

            raises(FileNotFoundError, h5py.File, path, "r")
            with h5py.File(path, "w") as file:
                raises(KeyError, lambda: file["absent"])
                file.create_group("group")
                raises(ValueError, file.create_group, "group")
            """)

    def test_a_file_that_is_none_is_refused(self):
        self.path.write_bytes(b"no HDF5 at all" * 100)
        self.run_program("""
            try:
                h5py.File(path, "r")
            except OSError:
                pass
            else:
                raise AssertionError("it was opened")
            assert not h5py.is_hdf5(path)
            """)

    def test_a_file_that_is_open_for_reading_is_not_changed(self):
        with h5py.File(self.path, "w") as file:
            file["x"] = [1, 2]
        self.run_program("""
            with h5py.File(path, "r") as file:
                for change in (lambda: file.create_group("y"), lambda: file["x"].__setitem__(0, 5),
                               lambda: file.__delitem__("x"), lambda: file.attrs.__setitem__("a", 1)):
                    try:
                        change()
                    except (ValueError, KeyError, OSError, RuntimeError):
                        continue
                    raise AssertionError("it was changed")
            """)
        with h5py.File(self.path) as file:
            self.assertEqual((list(file), file["x"][()].tolist()), (["x"], [1, 2]))


class Sparse(Connector):
    PROGRAM = """
        functions = rfc()
        dims = (ctypes.c_uint64 * 2)(4, 5)
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        assert functions.H5Pset_struct_chunk(ctypes.c_int64(dcpl.id), 2, dims, 1) >= 0
        dcpl.set_deflate(6)
        assert functions.H5Pget_nfilter2(ctypes.c_int64(dcpl.id), ctypes.c_uint64(0)) == 1
        assert functions.H5Pget_nfilter2(ctypes.c_int64(dcpl.id), ctypes.c_uint64(1)) == 1
        with h5py.File(path, "w", libver="latest") as file:
            space = h5py.h5s.create_simple((13, 10))
            made = h5py.h5d.create(file.id, b"matrix", h5py.h5t.STD_I32LE, space, dcpl)
            matrix = h5py.Dataset(made)
            matrix[0, 3] = 66
            matrix[7:9, 2:4] = [[1, 2], [3, 4]]
            matrix[12, 9] = 5
            def defined(selected=0):
                found = functions.H5Dget_defined(ctypes.c_int64(made.id), ctypes.c_int64(selected), ctypes.c_int64(0))
                assert found > 0
                return h5py.h5s.SpaceID(found)
            assert defined().get_select_npoints() == 6
            part = h5py.h5s.create_simple((13, 10))
            part.select_hyperslab((7, 0), (1, 10))
            assert defined(part.id).get_select_bounds() == ((7, 2), (7, 3))
            assert functions.H5Derase(ctypes.c_int64(made.id), ctypes.c_int64(part.id), ctypes.c_int64(0)) >= 0
            assert defined().get_select_npoints() == 4
            assert matrix[7:9, 2:4].tolist() == [[0, 0], [3, 4]]
            flag, sides = ctypes.c_uint(), (ctypes.c_uint64 * 2)()
            again = made.get_create_plist()
            assert functions.H5Pget_struct_chunk(ctypes.c_int64(again.id), 2, sides, ctypes.byref(flag)) == 2
            assert (list(sides), flag.value) == ([4, 5], 1)
            assert functions.H5Pget_nfilter2(ctypes.c_int64(again.id), ctypes.c_uint64(1)) == 1
        """

    def test_functions_of_the_rfc_make_sparse_datasets(self):
        self.run_program(self.PROGRAM)
        found = decode(self.path)["/matrix"]
        cells = dict(zip(map(tuple, found.coordinates.tolist()), found.values.tolist()))
        self.assertEqual(cells, {(0, 3): 66, (8, 2): 3, (8, 3): 4, (12, 9): 5})

    def test_what_they_made_is_read_again(self):
        self.run_program(self.PROGRAM)
        found = self.run_program("""
            with h5py.File(path) as file:
                matrix = file["matrix"]
                print(int(matrix[()].sum()), np.count_nonzero(matrix[()]), matrix.chunks)
            """)
        self.assertEqual(found, "78 4 (4, 5)")

    def test_a_library_that_does_not_know_structured_chunks_refuses_them(self):
        self.run_program(self.PROGRAM)
        with h5py.File(self.path) as file, self.assertRaises((KeyError, OSError, RuntimeError)):
            file["matrix"][()]


class OtherLibraries(Connector):
    def test_several_libhdf5_in_one_process_are_kept_apart(self):
        self.run_program("""
            import netCDF4, tables
            first, second = path + ".nc", path + ".tables"
            with netCDF4.Dataset(first, "w") as file:
                file.createDimension("x", 4)
                file.createVariable("values", "f8", ("x",))[:] = [1, 2, 3, 4]
                with h5py.File(path, "w") as other:
                    other["x"] = [5, 6]
                    with tables.open_file(second, "w") as third:
                        third.create_array("/", "values", [7, 8, 9])
                        assert calls(other) > 20
            with netCDF4.Dataset(first) as file:
                assert file["values"][:].tolist() == [1, 2, 3, 4]
            with tables.open_file(second) as third:
                assert third.root.values.read() == [7, 8, 9]
            """)
        with h5py.File(f"{self.path}.nc") as file:
            self.assertEqual(file["values"][()].tolist(), [1, 2, 3, 4])
        with h5py.File(f"{self.path}.tables") as file:
            self.assertEqual(file["values"][()].tolist(), [7, 8, 9])
        with h5py.File(self.path) as file:
            self.assertEqual(file["x"][()].tolist(), [5, 6])


if __name__ == "__main__":
    unittest.main()
