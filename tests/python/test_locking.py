"""Files that another program has open: the locks and marks of h5py and Pumice keep each other out."""

import os
import shutil
import subprocess
import unittest

import h5py

from interop import InteropCase, program

# Of superblocks of version 3: where the flags are, and the one of a file open for writing.
FLAGS, OPEN_FOR_WRITING = 11, 1


class Open(InteropCase):
    def setUp(self):
        super().setUp()
        self.path = self.directory / "a.h5"
        with h5py.File(self.path, "w", libver="v110") as file:
            file["x"] = range(10)

    def pumice(self, *arguments, locking=None):
        """A Pumice process; its result once it has ended."""
        done = subprocess.run(self.command(arguments), env=self.environment(locking), text=True,
                              capture_output=True, timeout=240)
        return done.returncode, done.stderr

    def command(self, arguments):
        return [str(program("PUMICE_INTEROP", "pumice-interop")), *map(str, arguments)]

    def environment(self, locking):
        variables = {k: v for k, v in os.environ.items() if k != "HDF5_USE_FILE_LOCKING"}
        return variables if locking is None else {**variables, "HDF5_USE_FILE_LOCKING": locking}

    def edit_arguments(self, **options):
        specification = self.specification(f"spec{len(list(self.directory.iterdir()))}")
        specification.op("edit", path=self.path.name, **options)
        specification.op("hold", path="/")
        specification.attribute("/", "mine", 1)
        specification.op("flush", path="/")
        specification.op("hold", path="/")
        # The file that the specification begins with is another.
        return "write", specification.save(), self.directory / "other.h5"

    def hold(self, *arguments, locking=None):
        """A Pumice process that has the file open."""
        pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        process = subprocess.Popen(self.command(arguments), env=self.environment(locking), text=True,
                                   **pipes)
        self.addCleanup(self.end, process)
        self.wait_for(process)
        return process

    def wait_for(self, process):
        self.assertEqual(process.stdout.readline(), "open\n")

    def go_on(self, process):
        process.stdin.write("\n")
        process.stdin.flush()

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def h5py_opens(self, mode):
        try:
            h5py.File(self.path, mode, locking=True).close()
        except OSError as error:
            self.assertRegex(str(error), "lock")
            return False
        return True


class Locking(Open):
    def read(self, locking=None):
        return self.pumice("read", self.path, self.directory / "out", locking=locking)

    def edit_once(self, locking=None):
        specification = self.specification("once")
        specification.attribute("/", "a", 1)
        return self.pumice("edit", specification.save(), self.path, locking=locking)

    def test_a_file_that_h5py_writes_is_refused_with_the_reason(self):
        with h5py.File(self.path, "r+", locking=True):
            for setting in (None, "TRUE", "1", "BEST_EFFORT"):
                for use in (self.read, self.edit_once):
                    status, errors = use(setting)
                    self.assertEqual(status, 1, (setting, errors))
                    self.assertIn("locked", errors)
                    self.assertIn(f"process {os.getpid()}", errors)
                    self.assertIn("HDF5_USE_FILE_LOCKING=FALSE", errors)
            for setting in ("FALSE", "0"):
                self.assertEqual(self.read(setting)[0], 0, setting)
        self.assertEqual(self.read()[0], 0)

    def test_a_file_that_h5py_reads_is_read_and_not_changed(self):
        with h5py.File(self.path, "r", locking=True):
            for setting in (None, "TRUE", "1", "BEST_EFFORT", "FALSE", "0"):
                self.assertEqual(self.read(setting)[0], 0, setting)
                refused = setting not in ("FALSE", "0")
                self.assertEqual(self.edit_once(setting)[0], int(refused), setting)

    def test_h5py_does_not_open_what_pumice_edits(self):
        for setting, locked in ((None, True), ("TRUE", True), ("BEST_EFFORT", True), ("FALSE", False)):
            with self.subTest(setting):
                process = self.hold(*self.edit_arguments(), locking=setting)
                self.assertEqual(self.h5py_opens("r"), not locked)
                self.assertEqual(self.h5py_opens("r+"), not locked)
                self.end(process)
                self.assertTrue(self.h5py_opens("r+"), "a killed process holds no lock")

    def test_h5py_reads_but_does_not_change_what_pumice_reads(self):
        process = self.hold("hold", self.path)
        self.assertTrue(self.h5py_opens("r"))
        self.assertFalse(self.h5py_opens("r+"))
        self.end(process)
        self.assertTrue(self.h5py_opens("r+"))

    def test_the_command_says_who_has_a_file(self):
        binary = program("PUMICE", "pumice")
        if binary is None:
            self.skipTest("the pumice command is not built")
        with h5py.File(self.path, "r+", locking=True):
            done = subprocess.run([str(binary), "ls", str(self.path)], capture_output=True, text=True,
                                  env=self.environment(None), timeout=240)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"process {os.getpid()}", done.stderr)


class Marks(Open):
    """The flag of superblocks of version 3 that says that a file is open for writing."""

    def flags(self):
        return self.path.read_bytes()[FLAGS]

    def h5py_takes(self, mode="r+"):
        try:
            h5py.File(self.path, mode, locking=False).close()
        except OSError as error:
            self.assertRegex(str(error), "already open|consistency|flag")
            return False
        return True

    def leave_marked(self):
        """h5py ends without closing the file."""
        child = os.fork()
        if child == 0:
            file = h5py.File(self.path, "r+", libver="latest")
            file["y"] = range(5)
            file.flush()
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(self.flags() & OPEN_FOR_WRITING, OPEN_FOR_WRITING)

    def edit_marked(self, **options):
        specification = self.specification(f"marked{len(options)}")
        specification.op("edit", path=self.path.name, **options)
        return self.pumice("write", specification.save(), self.directory / "other.h5")

    def test_a_file_that_h5py_left_marked_is_read_but_not_edited(self):
        self.leave_marked()
        self.assertEqual(self.pumice("read", self.path, self.directory / "out")[0], 0)
        before = self.path.read_bytes()
        status, errors = self.edit_marked()
        self.assertEqual(status, 1)
        self.assertIn("marked as open for writing", errors)
        self.assertIn("h5clear -s", errors)
        self.assertEqual(self.path.read_bytes(), before)

    def test_the_mark_can_be_ignored_and_goes_even_if_nothing_changes(self):
        self.leave_marked()
        self.assertEqual(self.edit_marked(ignore_mark=True), (0, ""))
        self.assertEqual(self.flags(), 0)
        self.assertTrue(self.h5py_takes())

    def test_h5clear_removes_the_mark_for_pumice(self):
        if shutil.which("h5clear") is None:
            self.skipTest("no h5clear")
        self.leave_marked()
        subprocess.run(["h5clear", "-s", str(self.path)], check=True, capture_output=True)
        self.assertEqual(self.edit_marked()[0], 0)

    def test_pumice_marks_a_file_as_long_as_it_is_open_if_asked_to(self):
        process = self.hold(*self.edit_arguments(mark_open=True))
        self.assertEqual(self.flags(), OPEN_FOR_WRITING)
        self.assertFalse(self.h5py_takes())
        self.go_on(process)
        self.wait_for(process)
        self.assertEqual(self.flags(), OPEN_FOR_WRITING, "after a commit")
        self.go_on(process)
        process.communicate(timeout=240)
        self.assertEqual((process.returncode, self.flags()), (0, 0))
        self.assertTrue(self.h5py_takes())

    def test_a_killed_program_leaves_its_mark_and_h5clear_removes_it(self):
        process = self.hold(*self.edit_arguments(mark_open=True))
        self.end(process)
        self.assertEqual(self.flags(), OPEN_FOR_WRITING)
        self.assertFalse(self.h5py_takes())
        self.assertEqual(self.edit_marked()[0], 1)
        if shutil.which("h5clear"):
            subprocess.run(["h5clear", "-s", str(self.path)], check=True, capture_output=True)
            self.assertTrue(self.h5py_takes())

    def test_without_being_asked_a_killed_program_leaves_a_file_that_opens(self):
        process = self.hold(*self.edit_arguments())
        self.go_on(process)
        self.wait_for(process)
        self.end(process)
        self.assertEqual(self.flags(), 0)
        self.assertTrue(self.h5py_takes())
        with h5py.File(self.path, locking=False) as file:
            self.assertEqual(dict(file.attrs), {"mine": 1})


if __name__ == "__main__":
    unittest.main()
