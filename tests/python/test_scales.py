"""Dimension scales: those that Pumice attaches are h5py's, those of h5py and netCDF are Pumice's."""

import unittest

import h5py
import numpy as np

from interop import InteropCase

NAMES = ("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS")


def make(path):
    """What `pumice-interop write-scales` makes, by h5py."""
    with h5py.File(path, "w") as file:
        image = file.create_dataset("image", (2, 3), "f4")
        other = file.create_dataset("other", (3,), "f4")
        for name, length in (("x", 2), ("y", 3), ("y2", 3), ("gone", 3)):
            file.create_dataset(name, (length,), "f8")
        file["x"].make_scale("height in mm")
        file["y"].make_scale("")
        image.dims[0].attach_scale(file["x"])
        image.dims[1].attach_scale(file["y"])
        file["y2"].make_scale("second")
        image.dims[1].attach_scale(file["y2"])
        other.dims[0].attach_scale(file["y"])
        file["gone"].make_scale("gone")
        other.dims[0].attach_scale(file["gone"])
        other.dims[0].detach_scale(file["gone"])
        image.dims[1].label = "column"


class Scales(InteropCase):
    def setUp(self):
        super().setUp()
        self.ours, self.theirs = self.directory / "ours.h5", self.directory / "theirs.h5"
        make(self.theirs)

    def test_attributes_are_those_of_libhdf5(self):
        self.run_interop("write-scales", self.ours)
        with h5py.File(self.ours) as ours, h5py.File(self.theirs) as theirs:
            for path in theirs:
                for name in NAMES:
                    with self.subTest(path=path, name=name):
                        self.compare(ours, theirs, path, name)

    def compare(self, ours, theirs, path, name):
        self.assertEqual(name in ours[path].attrs, name in theirs[path].attrs)
        if name not in theirs[path].attrs:
            return
        mine, other = (h5py.h5a.open(file[path].id, name.encode()) for file in (ours, theirs))
        self.assertEqual(mine.shape, other.shape)
        self.assertTrue(mine.get_type().equal(other.get_type()), f"{path} {name}")
        self.assertEqual(mine.get_type().get_size(), other.get_type().get_size())

        def shown(file):
            value = file[path].attrs[name]
            if name == "DIMENSION_LIST":
                return [[file[one].name for one in axis] for axis in value]
            if name == "REFERENCE_LIST":
                return [(file[one].name, int(axis)) for one, axis in value]
            return value.tolist() if isinstance(value, np.ndarray) else value

        self.assertEqual(shown(ours), shown(theirs))

    def test_h5py_goes_on_with_ours(self):
        self.run_interop("write-scales", self.ours)
        with h5py.File(self.ours, "r+") as file:
            image = file["image"]
            self.assertEqual([scale.name for scale in image.dims[1].values()], ["/y", "/y2"])
            self.assertEqual(image.dims[0].keys(), ["height in mm"])
            self.assertEqual([axis.label for axis in image.dims], ["", "column"])
            image.dims[1].detach_scale(file["y"])
            image.dims[0].attach_scale(file["gone"])
            self.assertEqual([scale.name for scale in image.dims[0].values()], ["/x", "/gone"])

    def test_pumice_reads_those_of_h5py(self):
        self.run_interop("read-scales", self.theirs)

    def test_pumice_reads_its_own(self):
        self.run_interop("write-scales", self.ours)
        self.run_interop("read-scales", self.ours)

    def test_pumice_reads_those_of_netcdf(self):
        try:
            import netCDF4
        except ImportError:
            self.skipTest("netCDF4 is not installed")
        path = self.directory / "netcdf.nc"
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("x", 2)
            file.createDimension("y", None)
            file.createVariable("x", "f8", ("x",))
            file.createVariable("image", "f4", ("x", "y"))
        self.run_interop("read-netcdf-scales", path)


if __name__ == "__main__":
    unittest.main()
