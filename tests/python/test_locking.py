"""Files that another program has open: h5py's locks keep the command out, as they should."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import h5py

from interop import program


class Locking(unittest.TestCase):
    def setUp(self):
        self.binary = program("PUMICE", "pumice")
        if self.binary is None:
            self.skipTest("the pumice command is not built")
        folder = tempfile.TemporaryDirectory(prefix="pumice-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "a.h5"
        with h5py.File(self.path, "w") as file:
            file["x"] = range(10)

    def list(self, **variables):
        command = [str(self.binary), "ls", str(self.path)]
        environment = {**os.environ, **variables}
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)

    def test_a_file_that_h5py_writes_is_refused_with_the_reason(self):
        with h5py.File(self.path, "r+", locking=True):
            done = self.list()
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("locked", done.stderr)
            self.assertIn(f"process {os.getpid()}", done.stderr)
            self.assertEqual(self.list(HDF5_USE_FILE_LOCKING="FALSE").returncode, 0)
        self.assertEqual(self.list().returncode, 0)

    def test_a_file_that_h5py_reads_is_read(self):
        with h5py.File(self.path, "r", locking=True):
            self.assertEqual(self.list().returncode, 0)
