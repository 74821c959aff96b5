"""References of HDF5 1.12 (H5R_ref_t) to objects, regions and attributes, made and followed through the connector and natively."""

import unittest

import h5py
import numpy as np

from vol import Connector

# libhdf5's functions for references, which h5py does not have.
FUNCTIONS = '''
    library = libhdf5("h5py")
    Id, Reference = ctypes.c_int64, ctypes.c_char * 64
    library.H5Ropen_region.restype = library.H5Ropen_object.restype = Id
    library.H5Rget_attr_name.restype = Id
    ANY = Id(Id.in_dll(library, "H5T_STD_REF_g").value)

    def done(answer):
        assert answer >= 0
        return answer

    def write(dataset, references):
        done(library.H5Dwrite(Id(dataset), ANY, Id(0), Id(0), Id(0), references))

    def told(reference):
        kind = library.H5Rget_type(reference)
        if kind not in (2, 3, 4):
            return "nothing"
        opened = done(library.H5Ropen_object(reference, Id(0), Id(0)))
        name = ctypes.create_string_buffer(100)
        library.H5Iget_name(Id(opened), name, ctypes.c_size_t(100))
        library.H5Oclose(Id(opened))
        text = name.value.decode()
        if kind == 3:
            space = h5py.h5s.SpaceID(done(library.H5Ropen_region(reference, Id(0), Id(0))))
            text += f" {space.get_select_npoints()} {space.get_select_bounds()}"
        if kind == 4:
            library.H5Rget_attr_name(reference, name, ctypes.c_size_t(100))
            text += " " + name.value.decode()
        return text

    def read(source, count):
        references = (Reference * count)()
        if isinstance(source, h5py.h5a.AttrID):
            done(library.H5Aread(Id(source.id), ANY, references))
        else:
            done(library.H5Dread(Id(source.id.id), ANY, Id(0), Id(0), Id(0), references))
        found = [told(one) for one in references]
        for one in references:
            library.H5Rdestroy(one)
        return found
'''

WRITE = FUNCTIONS + '''
    with h5py.File(path, "w", libver="latest") as file:
        data = file.create_dataset("group/data", data=np.arange(100).reshape(10, 10))
        data.attrs["unit"] = "m"
        references = (Reference * 4)()
        where, name = Id(file.id.id), b"group/data"
        space = h5py.h5s.create_simple((10, 10))
        space.select_hyperslab((2, 3), (4, 5))
        done(library.H5Rcreate_object(where, name, Id(0), references[0]))
        done(library.H5Rcreate_region(where, name, Id(space.id), Id(0), references[1]))
        done(library.H5Rcreate_attr(where, name, b"unit", Id(0), references[2]))
        shape = h5py.h5s.create_simple((4,))
        library.H5Dcreate2.restype = library.H5Acreate2.restype = Id
        made = done(library.H5Dcreate2(where, b"references", ANY, Id(shape.id), Id(0), Id(0), Id(0)))
        write(made, references)
        attribute = done(library.H5Acreate2(where, b"references", ANY, Id(shape.id), Id(0), Id(0)))
        done(library.H5Awrite(Id(attribute), ANY, references))
        done(library.H5Aclose(Id(attribute)))
        done(library.H5Dclose(Id(made)))
        for one in references:
            library.H5Rdestroy(one)
'''

READ = FUNCTIONS + '''
    with h5py.File(path) as file:
        print(read(file["references"], 4))
        print(read(h5py.h5a.open(file.id, b"references"), 4))
'''

EXPECTED = str(["/group/data", "/group/data 20 ((2, 3), (5, 7))", "/group/data unit", "nothing"])


class References(Connector):
    def test_what_the_connector_wrote_is_followed_natively_and_by_itself(self):
        self.run_program(WRITE)
        for connector in (None, "pumice"):
            self.assertEqual(self.run_program(READ, connector=connector).splitlines(), [EXPECTED] * 2, connector)

    def test_what_libhdf5_wrote_is_followed_by_the_connector(self):
        self.run_program(WRITE, connector=None)
        self.assertEqual(self.run_program(READ).splitlines(), [EXPECTED] * 2)

    def test_older_references_are_read_in_the_new_form(self):
        with h5py.File(self.path, "w") as file:
            data = file.create_dataset("group/data", data=np.arange(100).reshape(10, 10))
            file["objects"] = np.array([data.ref, None], dtype=h5py.ref_dtype)
            regions = file.create_dataset("regions", (2,), dtype=h5py.regionref_dtype)
            regions[0] = data.regionref[2:6, 3:8]
        program = FUNCTIONS + '''
    with h5py.File(path) as file:
        print(read(file["objects"], 2), read(file["regions"], 2))
'''
        expected = "['/group/data', 'nothing'] ['/group/data 20 ((2, 3), (5, 7))', 'nothing']"
        for connector in (None, "pumice"):
            self.assertEqual(self.run_program(program, connector=connector), expected, connector)

    def test_older_references_to_regions_are_refused_by_name(self):
        with h5py.File(self.path, "w") as file:
            file["data"] = np.arange(10)
            file["data"].attrs["region"] = file["data"].regionref[2:4]
        self.run_program("""
            with h5py.File(path) as file:
                try:
                    file["data"].attrs["region"]
                except OSError as error:
                    assert "references to regions" in str(error), error
                else:
                    raise AssertionError("it was read")
            """)


if __name__ == "__main__":
    unittest.main()
