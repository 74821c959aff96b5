"""One writer, many readers (SWMR): h5py and Pumice as either, both running at the same time."""

import os
import signal
import subprocess
import sys
import time
import unittest

import h5py
import numpy as np

from interop import InteropCase, program

# Of superblocks of version 3: where the flags are, and those of a file that is written beside readers.
FLAGS, SWMR_MARKS = 11, 5

# Shapes, maximum shapes, chunks and filters, for each chunk index that libhdf5 lets grow beside readers.
KINDS = {
    "extensible array": ((0,), (None,), (10,), {}),
    "extensible array, deflate": ((0,), (None,), (10,), {"compression": "gzip"}),
    "extensible array, two axes": ((0, 4), (None, 4), (7, 3), {"compression": "gzip", "shuffle": True}),
    "extensible array, second axis unfiltered": ((0, 4), (None, 4), (7, 3), {}),
    "fixed array": ((0, 4), (1200, 4), (7, 3), {}),
    "fixed array, Fletcher-32": ((0, 4), (1200, 4), (2, 2), {"fletcher32": True}),
    "version 2 B-tree": ((0, 4), (None, None), (7, 3), {}),
    "version 2 B-tree, deflate": ((0, 4), (None, None), (2, 2), {"compression": "gzip"}),
}
TIMES, ROWS = 300, 3
# An upper bound of time, in seconds, for what takes a few.
PATIENCE = 40


def cells(shape):
    """What cells of this shape are: a thousand a row, one a column."""
    rows = np.arange(shape[0]) * 1000
    return rows if len(shape) == 1 else rows[:, None] + np.arange(shape[1])


class Swmr(InteropCase):
    def setUp(self):
        super().setUp()
        self.path = self.directory / "a.h5"

    def make(self, kind, libver="latest", name="d"):
        shape, most, chunks, filters = KINDS[kind]
        self.path.unlink(missing_ok=True)
        file = h5py.File(self.path, "w", libver=libver)
        file.create_dataset(name, shape, "i8", maxshape=most, chunks=chunks, **filters)
        return file

    def begin(self, *arguments, **options):
        command = [str(self.binary), *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def appending(self, times=TIMES, rows=ROWS, how="swmr", paths="d"):
        """A Pumice process that appends, after its first flush."""
        writer = self.begin("append", self.path, paths, times, rows, how)
        self.addCleanup(writer.communicate)
        self.addCleanup(writer.kill)
        self.assertEqual(writer.stdout.readline(), f"{rows}\n", "nothing was written")
        return writer

    def check(self, array):
        wanted = cells(array.shape)
        if not np.array_equal(array, wanted):
            self.fail(f"{array.shape}: wrong at {np.argwhere(array != wanted)[:3]}")

    def read_by_h5py(self, rows, opened=None):
        """Reads until there are so many rows. How many lengths were seen."""
        until, seen = time.monotonic() + PATIENCE, {0}
        with opened or h5py.File(self.path, "r", libver="latest", swmr=True) as file:
            dataset = file["d"]
            while max(seen) < rows:
                self.assertLess(time.monotonic(), until, f"{max(seen)} of {rows} rows")
                dataset.refresh()
                array = dataset[...]
                self.check(array)
                self.assertGreaterEqual(array.shape[0], max(seen), "the dataset became smaller")
                seen.add(array.shape[0])
        return len(seen) - 1

    def end(self, process):
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, err)
        return out

    def test_h5py_reads_what_pumice_appends(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.make(kind).close()
                writer = self.appending()
                self.assertGreater(self.read_by_h5py(TIMES * ROWS), 1)
                self.end(writer)
                self.assertEqual(self.path.read_bytes()[FLAGS], 0)
                # Afterwards it is a file like others.
                with h5py.File(self.path, "r+") as file:
                    self.check(file["d"][...])
                    file["d"].resize(TIMES * ROWS // 2, 0)
                    file["more"] = 1

    def test_h5py_reads_what_grows_along_two_axes(self):
        with h5py.File(self.path, "w", libver="latest") as file:
            file.create_dataset("d", (0, 1), "i8", maxshape=(None, None), chunks=(5, 5))
        writer = self.appending(times=80, how="swmr-wide")
        self.assertGreater(self.read_by_h5py(80 * ROWS), 1)
        self.end(writer)

    def test_pumice_reads_what_h5py_appends(self):
        for kind in KINDS:
            for how in ["swmr", "swmr-file"]:
                with self.subTest(kind, how=how), self.make(kind) as file:
                    dataset = file["d"]
                    file.swmr_mode = True
                    reader = self.begin("follow", self.path, "d", TIMES * ROWS, how)
                    self.addCleanup(reader.communicate)
                    self.addCleanup(reader.kill)
                    self.append_by_h5py(dataset)
                    lengths, _ = map(int, self.end(reader).split())
                    self.assertGreater(lengths, 1)

    def append_by_h5py(self, dataset):
        for number in range(TIMES):
            shape = (number * ROWS + ROWS, *dataset.shape[1:])
            dataset.resize(shape)
            dataset[number * ROWS :] = cells(shape)[number * ROWS :]
            dataset.flush()
            if number % 5 == 0:
                # The reader is to see some of it on the way.
                time.sleep(0.002)

    def test_pumice_reads_what_pumice_appends(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.make(kind).close()
                writer = self.appending()
                readers = [self.begin("follow", self.path, "d", TIMES * ROWS, "swmr") for _ in range(2)]
                for reader in readers:
                    self.assertGreaterEqual(int(self.end(reader).split()[0]), 1)
                self.end(writer)

    def test_sparse_datasets_are_followed(self):
        specification = self.specification()
        for name, maxshape in [("d", [None, 4]), ("e", [None, None]), ("f", [2000, 4])]:
            specification.create("sparse", name, "i8", (0, 4), maxshape=maxshape, chunks=[7, 3])
        self.write(specification, self.path)
        writer = self.appending(paths="d,e,f")
        readers = [self.begin("follow", self.path, name, TIMES * ROWS, "swmr") for name in "def"]
        for reader in readers:
            self.end(reader)
        self.end(writer)

    def test_readers_come_early_and_late_and_stay(self):
        self.make("extensible array, deflate").close()
        writer = self.appending(times=400)
        opened = h5py.File(self.path, "r", libver="latest", swmr=True)
        self.end(writer)
        # It has seen nothing of the middle, and the writer is gone.
        self.assertEqual(self.read_by_h5py(400 * ROWS, opened), 1)
        self.end(self.begin("follow", self.path, "d", 400 * ROWS, "swmr"))

    def test_others_are_kept_out_meanwhile(self):
        self.make("extensible array").close()
        writer = self.appending(times=2000)
        with self.assertRaises(OSError):
            h5py.File(self.path, "r+")
        with self.assertRaises(OSError):
            h5py.File(self.path, "r")
        second = self.begin("append", self.path, "d", 1, 1, "swmr")
        self.assertIn("locked", second.communicate()[1])
        plain = self.begin("bytes", self.path, "d", self.directory / "out")
        self.assertIn("swmr(true)", plain.communicate()[1])
        writer.kill()
        writer.communicate()

    def test_a_second_writer_without_locks_is_refused_by_the_mark(self):
        self.make("extensible array").close()
        self.appending(times=2000)
        environment = {**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"}
        second = self.begin("append", self.path, "d", 1, 1, "swmr", env=environment)
        self.assertIn("ended without closing", second.communicate()[1])

    def test_killed_writers_leave_what_readers_saw(self):
        pumice = program("PUMICE", "pumice")
        if pumice is None:
            self.skipTest("pumice is not built")
        kinds, cut = list(KINDS), 0
        for number in range(24):
            kind = kinds[number % len(kinds)]
            with self.subTest(kind, number=number):
                self.make(kind).close()
                writer = self.appending(times=100_000, rows=1)
                reached = 1
                for _ in range(5 + 7 * number):
                    reached = int(writer.stdout.readline())
                writer.send_signal(signal.SIGKILL)
                rest, _ = writer.communicate()
                reached = int((rest.split() or [reached])[-1])
                self.assertEqual(self.path.read_bytes()[FLAGS], SWMR_MARKS)
                # As it is, to readers of either.
                reader = self.begin("follow", self.path, "d", reached, "swmr")
                _, said = reader.communicate(timeout=PATIENCE)
                if reader.returncode and "page of chunk records" in said and "checksum" in said:
                    # The system ends a program between two pages of memory of one write: a block of the index that
                    # lies in both is cut in two, whoever writes it.
                    cut += 1
                    continue
                self.assertEqual(reader.returncode, 0, said)
                self.read_by_h5py(reached)
                # With the mark removed, by either.
                if number % 2:
                    subprocess.run([pumice, "recover", "--clear", self.path], check=True, capture_output=True)
                else:
                    self.clear_mark()
                self.assertEqual(self.path.read_bytes()[FLAGS], 0)
                with h5py.File(self.path, "r+") as file:
                    self.check(file["d"][...])
                    self.assertGreaterEqual(file["d"].shape[0], reached)
                    file["more"] = 1
                checked = subprocess.run([pumice, "check", self.path], capture_output=True, text=True)
                self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertLessEqual(cut, 2, "that is rare")

    def clear_mark(self):
        """As `h5clear -s` does it, which not every system has."""
        import shutil

        tool = shutil.which("h5clear")
        if tool is None:
            self.skipTest("h5clear is not installed")
        subprocess.run([tool, "-s", self.path], check=True, capture_output=True)

    def test_files_of_killed_h5py_writers_are_read_and_recovered(self):
        pumice = program("PUMICE", "pumice")
        if pumice is None:
            self.skipTest("pumice is not built")
        self.make("extensible array").close()
        script = f"""
import h5py, numpy, os, signal
file = h5py.File({str(self.path)!r}, "r+", libver="latest")
dataset = file["d"]
file.swmr_mode = True
for number in range(500):
    dataset.resize((number + 1,))
    dataset[number] = 1000 * number
    dataset.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
        subprocess.run([sys.executable, "-c", script], capture_output=True)
        self.assertEqual(self.path.read_bytes()[FLAGS], SWMR_MARKS)
        self.end(self.begin("follow", self.path, "d", 500, "swmr"))
        for command in ["ls", "stat", "dump"]:
            shown = subprocess.run([pumice, command, self.path], capture_output=True, text=True)
            self.assertEqual(shown.returncode, 0, shown.stderr)
        recovered = subprocess.run([pumice, "recover", self.path], capture_output=True, text=True)
        self.assertIn("--clear", recovered.stdout + recovered.stderr)
        self.assertEqual(self.path.read_bytes()[FLAGS], SWMR_MARKS, "nobody asked for it")
        subprocess.run([pumice, "recover", "--clear", self.path], check=True, capture_output=True)
        with h5py.File(self.path, "r+") as file:
            self.check(file["d"][...])
            self.assertEqual(file["d"].shape, (500,))
            file["more"] = np.arange(1000)
        with h5py.File(self.path, "r") as file:
            self.check(file["d"][...])

    def test_readers_without_locks_see_committed_states(self):
        environment = {**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"}
        for kind, how in [("extensible array", "plain-slow"), ("version 2 B-tree, deflate", "plain-wide-slow")]:
            with self.subTest(kind):
                self.make(kind).close()
                writer = self.appending(times=60, how=how)
                readers = [
                    self.begin("follow", self.path, "d", 60 * ROWS, "plain", env=environment) for _ in range(2)
                ]
                for reader in readers:
                    lengths, _ = map(int, self.end(reader).split())
                    self.assertGreater(lengths, 1)
                self.end(writer)

    def test_readers_without_locks_of_what_is_written_all_the_time_have_states_or_errors(self):
        environment = {**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"}
        self.make("version 2 B-tree, deflate").close()
        writer = self.appending(times=40, how="plain-wide")
        reader = self.begin("follow", self.path, "d", 40 * ROWS, "plain", env=environment)
        self.end(reader)
        self.end(writer)

    def test_readers_with_locks_are_refused_meanwhile(self):
        self.make("extensible array").close()
        writer = self.appending(times=60, how="plain-slow")
        refused = self.begin("bytes", self.path, "d", self.directory / "out").communicate()[1]
        self.assertIn("locked", refused)
        self.end(writer)

    def test_the_shell_reads_files_that_are_written(self):
        pumice = program("PUMICE", "pumice")
        if pumice is None:
            self.skipTest("pumice is not built")
        self.make("extensible array, deflate").close()
        writer = self.appending(times=100_000)
        for command in [["ls"], ["ls", "-r"], ["stat"], ["dump", "-d", "/d[0;;3]"], ["check"], ["read"]]:
            arguments = [pumice, *command, self.path] + (["/d"] if command[0] == "read" else [])
            shown = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(shown.returncode, 0, (command, shown.stderr, shown.stdout))
        edited = subprocess.run([pumice, "recover", "--clear", self.path], capture_output=True, text=True)
        self.assertNotEqual(edited.returncode, 0)
        self.assertIn("locked", edited.stderr)
        writer.kill()
        writer.communicate()


if __name__ == "__main__":
    unittest.main()
