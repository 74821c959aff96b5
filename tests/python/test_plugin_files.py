"""Whole files with the filters of the Python packages hdf5plugin and tables, through the pumice command: checked, dumped,
repacked and exported. What no decoder is built in for is read by hdf5plugin's own plugins, and without these named."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import h5py
import numpy as np

from interop import program

try:
    import hdf5plugin
except ImportError:
    hdf5plugin = None
try:
    import tables
except ImportError:
    tables = None

SHAPE, CHUNK = (50, 61), (16, 33)
FLOATS = np.fromfunction(lambda i, j: np.sin(i / 7) * np.cos(j / 5), SHAPE)


def built_in():
    """Filters that Pumice decodes itself, with the types that they take."""
    any_type = ["u1", "i2", "<i4", ">i4", "u8", "f4", "f8"]
    for codec in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for filters in (0, 1, 2, 3):
            yield hdf5plugin.Blosc2(cname=codec, clevel=5, filters=filters), any_type
    yield hdf5plugin.Blosc2(clevel=0), any_type
    for options in ({"reversible": True}, {"rate": 12}, {"precision": 20}, {"accuracy": 0.001}):
        yield hdf5plugin.Zfp(**options), ["f4", "f8"]
    yield hdf5plugin.Zfp(reversible=True), ["i4", "i8"]
    for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        yield hdf5plugin.Blosc(cname=name), any_type
    yield hdf5plugin.Bitshuffle(cname="lz4"), any_type
    yield hdf5plugin.Bitshuffle(cname="zstd"), any_type
    yield hdf5plugin.BZip2(), any_type
    yield hdf5plugin.LZ4(), any_type
    yield hdf5plugin.Zstd(), any_type


def by_plugin():
    """Filters that only their plugins decode."""
    yield hdf5plugin.SZ(absolute=0.01), "f4", "SZ"
    yield hdf5plugin.SZ3(absolute=0.01), "f8", "SZ3"
    yield hdf5plugin.Sperr(rate=16), "f4", "SPERR"
    yield hdf5plugin.FciDecomp(), "u2", "FCIDECOMP"
    if hasattr(hdf5plugin, "Htj2k"):  # from release 7 on
        yield hdf5plugin.Htj2k(), "u2", "HTJ2K"


class PluginFiles(unittest.TestCase):
    def setUp(self):
        self.binary = program("PUMICE", "pumice")
        if self.binary is None:
            self.skipTest("the pumice command is not built")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="pumice-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def run_pumice(self, *arguments, plugins=None):
        environment = {name: text for name, text in os.environ.items() if "PLUGIN" not in name}
        if plugins:
            environment["HDF5_PLUGIN_PATH"] = str(plugins)
        command = [str(self.binary), *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=False, env=environment
        )

    def pumice(self, *arguments, plugins=None):
        done = self.run_pumice(*arguments, plugins=plugins)
        self.assertEqual((done.returncode, done.stderr), (0, ""), f"{arguments}\n{done.stdout}")
        return done.stdout

    def check_file(self, path, plugins=None):
        """Every way of the command through a file gives what h5py reads."""
        self.assertIn("sound", self.pumice("check", path, plugins=plugins))
        self.pumice("dump", path, plugins=plugins)
        plain = path.with_suffix(".plain.h5")
        self.pumice("repack", "-f", "NONE", path, plain, plugins=plugins)
        kept = path.with_suffix(".kept.h5")
        self.pumice("repack", path, kept, plugins=plugins)
        with h5py.File(path) as made, h5py.File(plain) as repacked, h5py.File(kept) as copied:
            names = []
            made.visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
            self.assertTrue(names)
            for name in names:
                wanted = made[name][()]
                with self.subTest(name):
                    self.assertFalse(repacked[name].id.get_create_plist().get_nfilters())
                    np.testing.assert_array_equal(repacked[name][()], wanted)
                    np.testing.assert_array_equal(copied[name][()], wanted)
                    self.assertEqual(filters_of(copied[name]), filters_of(made[name]))
                    array = path.with_suffix(".npy")
                    array.unlink(missing_ok=True)
                    if wanted.dtype.names is None:
                        self.pumice("export", path, array, "--dataset", name, plugins=plugins)
                        np.testing.assert_array_equal(np.load(array), wanted)

    @unittest.skipIf(hdf5plugin is None, "hdf5plugin is not installed")
    def test_filters_that_are_built_in(self):
        path = self.directory / "built_in.h5"
        with h5py.File(path, "w") as file:
            for number, (options, kinds) in enumerate(built_in()):
                for kind in kinds:
                    scale = 1 if np.dtype(kind).kind == "f" else 100
                    data = (np.abs(FLOATS) * scale).astype(kind)
                    file.create_dataset(f"{number}/{kind}", data=data, chunks=CHUNK, **options)
        self.check_file(path)

    @unittest.skipIf(hdf5plugin is None, "hdf5plugin is not installed")
    def test_filters_that_need_their_plugin(self):
        for options, kind, name in by_plugin():
            with self.subTest(name):
                path = self.directory / f"{name}.h5"
                with h5py.File(path, "w") as file:
                    data = (np.abs(FLOATS) * 100).astype(kind)
                    file.create_dataset("x", data=data, chunks=data.shape, **options)
                self.check_file(path, plugins=hdf5plugin.PLUGIN_PATH)
                # Without the plugin it is told what to get, and a copy as it is stored needs none.
                for command in (("export", path, self.directory / "x.npy"), ("check", path)):
                    done = self.run_pumice(*command)
                    told = done.stdout + done.stderr
                    self.assertEqual(done.returncode, 1, told)
                    for word in (name, "hdf5plugin", "HDF5_PLUGIN_PATH"):
                        self.assertIn(word.lower(), told.lower())
                    self.assertNotIn("--repair", told)
                kept = self.directory / f"{name}.kept.h5"
                self.pumice("repack", "--force", path, kept)
                with h5py.File(path) as made, h5py.File(kept) as copied:
                    np.testing.assert_array_equal(copied["x"][()], made["x"][()])

    @unittest.skipIf(tables is None, "tables is not installed")
    def test_files_of_pytables(self):
        path = self.directory / "tables.h5"
        with tables.open_file(str(path), "w") as file:
            for codec in ("blosc2", "blosc2:lz4", "blosc2:zstd", "blosc2:zlib", "blosc", "bzip2"):
                for shuffle in (0, 1, 2) if "blosc" in codec else (0, 1):
                    name = f"{codec.replace(':', '_')}_{shuffle}"
                    filters = tables.Filters(complevel=5, complib=codec, shuffle=shuffle == 1, bitshuffle=shuffle == 2)
                    file.create_carray("/", name, obj=FLOATS, filters=filters)
                    earray = file.create_earray("/", "e_" + name, tables.Int32Atom(), (0, 7), filters=filters)
                    earray.append(np.arange(7_000, dtype="i4").reshape(-1, 7))
                    rows = np.array([(n, n / 3, b"row") for n in range(1000)], "i4,f8,S5")
                    file.create_table("/", "t_" + name, obj=rows, filters=filters)
            wanted = {node._v_pathname: node.read() for node in file.walk_nodes("/", "Leaf")}
        self.assertIn("sound", self.pumice("check", path))
        plain = self.directory / "plain.h5"
        self.pumice("repack", "-f", "NONE", path, plain)
        with h5py.File(plain) as file:
            for name, values in wanted.items():
                np.testing.assert_array_equal(file[name][()], values)


def filters_of(dataset):
    """The filters of a dataset, by number."""
    pipeline = dataset.id.get_create_plist()
    return [pipeline.get_filter(index)[0] for index in range(pipeline.get_nfilters())]
