"""What goes wrong outside of Pumice: clear errors, and files as they were at the last commit."""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

import h5py
import numpy as np

from interop import InteropCase, program

NOBODY = 65534


class Errors(InteropCase):
    def setUp(self):
        super().setUp()
        self.path = self.directory / "a.h5"
        with h5py.File(self.path, "w", libver="v110") as file:
            file["x"] = np.arange(1000)
            file.create_dataset("rows", data=np.arange(64.0), chunks=(8,), maxshape=(None,))
            file.attrs["note"] = "as it was"
        self.before = self.path.read_bytes()

    def run_edit(self, specification, path, binary=None, **options):
        binary = binary or program("PUMICE_INTEROP", "pumice-interop")
        command = [str(binary), "edit", str(specification.save()), str(path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, **options)

    def refused(self, done, *reasons):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("panicked", done.stderr)
        for reason in reasons:
            self.assertIn(reason, done.stderr)

    def is_as_it_was(self, path, rows=64):
        with h5py.File(path) as file:
            self.assertEqual(set(file), {"x", "rows"})
            np.testing.assert_array_equal(file["x"][()], np.arange(1000))
            np.testing.assert_array_equal(file["rows"][:64], np.arange(64.0))
            self.assertEqual(file["rows"].shape, (rows,))
            self.assertEqual(dict(file.attrs), {"note": "as it was"})

    def large(self):
        specification = self.specification("large")
        specification.op("resize", path="rows", shape=[100])
        specification.write_block("rows", [64], np.arange(36.0))
        specification.op("flush", path="/")
        specification.attribute("/", "another", np.arange(100))
        specification.op("delete", path="x")
        specification.dense("new", np.random.default_rng(1).integers(0, 99, 200_000), chunks=[1000])
        return specification

    def test_a_file_system_without_room(self):
        """A limit of the file's size, which every file system has: writes fail at some point."""

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        done = self.run_edit(self.large(), self.path, preexec_fn=limit)
        self.refused(done, "File too large")
        self.is_as_it_was(self.path, rows=100)

    def test_a_full_disk(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="pumice-full-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        options = ["-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
        if not shutil.which("mount") or subprocess.run(["mount", *options], capture_output=True).returncode:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", str(folder)], check=False)
        path = folder / "a.h5"
        path.write_bytes(self.before)
        done = self.run_edit(self.large(), path)
        self.refused(done, "No space left on device")
        self.is_as_it_was(path, rows=100)

    def as_nobody(self):
        """A program that anybody may run, and how to be somebody without rights."""
        if os.getuid():
            return program("PUMICE_INTEROP", "pumice-interop"), {}
        folder = tempfile.TemporaryDirectory(prefix="pumice-nobody-")
        self.addCleanup(folder.cleanup)
        binary = shutil.copy(program("PUMICE_INTEROP", "pumice-interop"), folder.name)
        for open_to_all in (folder.name, self.directory, pathlib.Path(folder.name) / binary):
            os.chmod(open_to_all, 0o755)
        return binary, {"user": NOBODY}

    def test_a_file_that_may_not_be_written_or_read(self):
        binary, options = self.as_nobody()
        specification = self.specification("one")
        specification.group("mine")
        spec = specification.save()
        for folder in (spec.parent, self.path.parent):
            os.chmod(folder, 0o755)
        os.chmod(self.path, 0o444)
        self.refused(self.run_edit(specification, self.path, binary, **options), "Permission denied",
                     "open for editing", str(self.path))
        os.chmod(self.path, 0o000)
        command = [str(binary), "read", str(self.path), str(self.directory / "out")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, **options)
        self.refused(done, "Permission denied", str(self.path))
        os.chmod(self.path, 0o644)
        self.assertEqual(self.path.read_bytes(), self.before)

    def test_a_folder_that_may_not_be_written(self):
        binary, options = self.as_nobody()
        spec = self.specification("one").save()
        os.chmod(spec.parent, 0o755)
        folder = self.directory / "closed"
        folder.mkdir()
        os.chmod(folder, 0o555)
        command = [str(binary), "write", str(spec), str(folder / "new.h5")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, **options)
        self.refused(done, "Permission denied", "create", "new.h5")
        self.assertEqual(list(folder.iterdir()), [])

    def test_a_file_that_is_not_there_or_not_hdf5(self):
        specification = self.specification("one")
        specification.group("mine")
        self.refused(self.run_edit(specification, self.directory / "none.h5"), "No such file",
                     "none.h5")
        for name, data in {"empty": b"", "text": b"year,value\n2026,1\n" * 100, "zeros": bytes(9999)}.items():
            with self.subTest(name):
                path = self.directory / name
                path.write_bytes(data)
                self.refused(self.run_edit(specification, path), "HDF5 signature", name)
                self.assertEqual(path.read_bytes(), data)

    def test_a_truncated_file(self):
        specification = self.specification("one")
        specification.group("mine")
        for length in (4, 20, 60, 200, len(self.before) // 2, len(self.before) - 1):
            with self.subTest(length=length):
                path = self.directory / f"cut{length}.h5"
                path.write_bytes(self.before[:length])
                done = self.run_edit(specification, path)
                self.refused(done, path.name)
                if length > 48:
                    self.assertIn("truncated", done.stderr)
                self.assertEqual(path.read_bytes(), self.before[:length])

    def test_a_file_that_h5py_changes_meanwhile(self):
        """Without locks: Pumice notices before its first write, and after a commit of its own."""
        for flushed in (False, True):
            with self.subTest(flushed=flushed):
                path = self.directory / f"changed{flushed}.h5"
                path.write_bytes(self.before)
                os.utime(path, (1e9, 1e9))
                specification = self.specification(f"changed{flushed}")
                if flushed:
                    specification.attribute("/", "mine", 1)
                    specification.op("flush", path="/")
                specification.op("hold", path="/")
                specification.group("group of mine")
                binary = program("PUMICE_INTEROP", "pumice-interop")
                command = [str(binary), "edit", str(specification.save()), str(path)]
                variables = {**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"}
                pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
                with subprocess.Popen(command, text=True, env=variables, **pipes) as ours:
                    self.assertEqual(ours.stdout.readline(), "open\n")
                    with h5py.File(path, "r+", locking=False) as file:
                        file["theirs"] = np.arange(5000)
                    theirs = path.read_bytes()
                    _, errors = ours.communicate("\n", timeout=240)
                self.assertEqual(ours.returncode, 1, errors)
                self.assertIn("changed while it was open", errors)
                self.assertEqual(path.read_bytes(), theirs)


if __name__ == "__main__":
    unittest.main()
