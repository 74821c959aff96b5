"""The pumice command on the matrix in data/, checked without the library."""

import gzip
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import scipy.io

from interop import ROOT, program
from structured_decoder import decode

MATRIX = ROOT / "data" / "debian-dependencies.mtx.gz"


class Command(unittest.TestCase):
    def setUp(self):
        self.binary = program("PUMICE", "pumice")
        if self.binary is None:
            self.skipTest("the pumice command is not built")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="pumice-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def pumice(self, *arguments):
        command = [str(self.binary), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, f"{' '.join(command)}\n{done.stderr}")
        return done.stdout

    def sparse_dataset(self, path):
        found = {p: d for p, d in decode(path).items() if d.layout == "sparse"}
        self.assertEqual(len(found), 1, list(found))
        return next(iter(found.items()))

    def test_imported_matrix_equals_what_scipy_reads(self):
        out = self.directory / "out.h5"
        self.pumice("import", MATRIX, out)
        path, dataset = self.sparse_dataset(out)
        with gzip.open(MATRIX) as file:
            wanted = scipy.io.mmread(file).tocsr()
        wanted.sort_indices()
        wanted = wanted.tocoo()
        self.assertEqual(dataset.shape, wanted.shape)
        cells = np.stack([wanted.row, wanted.col], 1).astype(np.uint64)
        np.testing.assert_array_equal(dataset.coordinates, cells)
        np.testing.assert_array_equal(dataset.values, wanted.data)
        self.check_erase(out, path, dataset)

    def check_erase(self, out, path, before):
        self.pumice("erase", out, path, "--window", "30000:36000,100:40000")
        after = self.sparse_dataset(out)[1]
        low, high = np.array([30_000, 100]), np.array([36_000, 40_000])
        gone = ((before.coordinates >= low) & (before.coordinates < high)).all(axis=1)
        self.assertGreater(gone.sum(), 1000)
        np.testing.assert_array_equal(after.coordinates, before.coordinates[~gone])
        np.testing.assert_array_equal(after.values, before.values[~gone])
