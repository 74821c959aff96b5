"""Files that several ranks have written together, read by h5py."""

import pathlib
import subprocess
import tempfile
import unittest

import h5py
import interop
import numpy as np


class Collective(unittest.TestCase):
    def test_h5py_reads_what_any_number_of_ranks_has_written(self):
        example = interop.program("PUMICE", "pumice").parent / "examples" / "ranks"
        if not example.is_file():
            self.skipTest(f"{example} is not built: cargo build -p pumice-collective --examples")
        with tempfile.TemporaryDirectory() as folder:
            for count in (1, 2, 5):
                path = pathlib.Path(folder, f"{count}.h5")
                subprocess.run([example, path, str(count)], check=True, timeout=120)
                with h5py.File(path) as file:
                    expected = np.arange(50 * 30, dtype="f4").reshape(50, 30)
                    np.testing.assert_array_equal(file["runs/matrix"][...], expected)
                    self.assertEqual(file["runs/matrix"].compression_opts, 4)
                    names = [f"rank {rank}".encode() for rank in range(count)]
                    self.assertEqual(list(file["names"][...]), names)
                    self.assertEqual(file.attrs["ranks"], count)


if __name__ == "__main__":
    unittest.main()
