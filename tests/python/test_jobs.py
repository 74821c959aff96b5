"""Six jobs as an example of the Rust library and as a script of h5py: equal results, and fewer lines.

One of them, arrays, also as a program of hdf5-metno. It is compared if it has been built, for which libhdf5 is needed:
`cargo build --manifest-path tests/python/jobs/metno/Cargo.toml` (Debian's libhdf5-dev).
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import interop
import numpy

from jobs import edit_in_place

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
METNO = HERE / "jobs" / "metno"
JOBS = ["arrays", "detector_stream", "edit_in_place", "rayon_threads", "single_cell_batches", "table"]


def job_lines(source, comment):
    """The lines of code behind the mark, up to the end of that block."""
    lines = source.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.strip() == f"{comment} The job.")
    counted = 0
    for line in lines[at + 1 :]:
        if line == "}":
            break
        counted += bool(line.strip()) and not line.strip().startswith(comment)
    return counted


class Jobs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_both(self, name):
        """The files of both, and what they printed."""
        example = interop.program("PUMICE", "pumice").parent / "examples" / name
        if not example.exists():
            self.skipTest(f"{example} is not built: cargo build -p pumice --examples")
        ours, theirs = self.folder / f"{name}.ours.h5", self.folder / f"{name}.theirs.h5"
        for path in (ours, theirs) if name == "edit_in_place" else ():
            edit_in_place.make(path)
        run = dict(capture_output=True, text=True, check=True, timeout=300)
        printed = subprocess.run([example, ours], **run).stdout
        expected = subprocess.run([sys.executable, HERE / "jobs" / f"{name}.py", theirs], **run).stdout
        self.assertTrue(expected)
        self.assertEqual(printed, expected)
        return ours, theirs

    def test_results_are_equal(self):
        for name in JOBS:
            with self.subTest(name):
                self.run_both(name)

    def test_h5py_reads_the_dense_files_as_its_own(self):
        for name in ["arrays", "edit_in_place", "rayon_threads", "table"]:
            with self.subTest(name):
                ours, theirs = self.run_both(name)
                with h5py.File(ours) as one, h5py.File(theirs) as other:
                    names = []
                    other.visit(names.append)
                    for member in names:
                        if isinstance(other[member], h5py.Dataset):
                            self.assertEqual(one[member].dtype, other[member].dtype, member)
                            numpy.testing.assert_array_equal(one[member][()], other[member][()])
                    found = []
                    one.visit(found.append)
                    self.assertEqual(found, names)
                    if name == "edit_in_place":
                        images = one["calibrated/images"]
                        self.assertEqual(images.attrs["unit"], "counts")
                        self.assertEqual(images.dims[0][0], one["raw/times"])

    def test_arrays_of_metno_are_equal(self):
        program = METNO / "target/debug/arrays"
        if not program.exists():
            self.skipTest("hdf5-metno's program is not built")
        ours, _ = self.run_both("arrays")
        theirs = self.folder / "arrays.metno.h5"
        run = dict(capture_output=True, text=True, check=True, timeout=300)
        expected = subprocess.run([sys.executable, HERE / "jobs/arrays.py", self.folder / "again.h5"], **run).stdout
        self.assertEqual(subprocess.run([program, theirs], **run).stdout, expected)
        with h5py.File(ours) as one, h5py.File(theirs) as other:
            numpy.testing.assert_array_equal(one["film"][()], other["film"][()])

    def test_jobs_take_fewer_lines_than_elsewhere(self):
        for name in JOBS:
            with self.subTest(name):
                ours = job_lines(ROOT / "crates/pumice/examples" / f"{name}.rs", "//")
                theirs, other = job_lines(HERE / "jobs" / f"{name}.py", "#"), "h5py"
                if name == "arrays":
                    # numpy is at home in h5py, ndarray in hdf5-metno.
                    theirs, other = job_lines(METNO / "src/bin" / f"{name}.rs", "//"), "hdf5-metno"
                print(f"{name}: {ours} lines, {other} {theirs}")
                self.assertLess(ours, theirs)


if __name__ == "__main__":
    unittest.main()
