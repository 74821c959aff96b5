"""Thousands of datasets that h5py made and Pumice changed, and the other way round: h5py reads the
result."""

import os
import shutil
import subprocess

import h5py
import numpy as np

from interop import InteropCase
from matrix import FILTERS, TOOLS_FILTERS, Case

BOUNDS = ["v108", "v110", "v112", "latest", "earliest"]
RELEASES = ["v110", "earliest", "v108"]
PER_FILE = 40
FILES = int(os.environ.get("PUMICE_MATRIX_FILES", "16"))


class EditMatrix(InteropCase):
    def check(self, path, cases):
        with h5py.File(path, "r") as file:
            for case in cases:
                with self.subTest(case.describe(), file=path.name):
                    found = file[case.path][()]
                    self.same_bytes(np.asarray(found, case.dtype), case.array, case.describe())

    def test_pumice_changes_what_h5py_wrote(self):
        """Append, overwrite, resize and delete in files of every version."""
        for bound in BOUNDS:
            spec = self.specification(bound)
            files = []
            for number in range(FILES):
                path = self.directory / f"{bound}-{number}.h5"
                rng = np.random.default_rng([number, BOUNDS.index(bound)])
                cases = [Case(rng, f"g{i // 8}/d{i}") for i in range(PER_FILE)]
                with h5py.File(path, "w", libver=bound) as file:
                    for case in cases:
                        dataset = case.h5py_create(file)
                        # libhdf5 forgets to empty a single chunk when an axis becomes empty, and
                        # gives its space away all the same.
                        for step in case.steps(int(rng.integers(0, 3)), least=1):
                            case.h5py_apply(dataset, step)
                spec.op("edit", path=path.name)
                kept = []
                for case in cases:
                    if rng.random() < 0.1:
                        spec.op("delete", path=case.path)
                        continue
                    kept.append(case)
                    for step in case.steps(int(rng.integers(1, 5))):
                        case.pumice_apply(spec, step)
                        if rng.random() < 0.02:
                            spec.op("reopen")
                files.append((path, kept))
            self.write(spec, f"unused-{bound}.h5")
            for path, kept in files:
                self.check(path, kept)
                self.go_on(path, kept, 2)

    def go_on(self, path, cases, count):
        """h5py goes on where Pumice left off."""
        # libhdf5 cannot resize an empty dataset with unfiltered edge chunks.
        cases = [case for case in cases if not case.unfiltered_edge]
        with h5py.File(path, "r+") as file:
            for case in cases:
                for step in case.steps(count, least=1):
                    with self.subTest(case.describe(), file=path.name, step=step[:2]):
                        case.h5py_apply(file[case.path], step)
        self.check(path, cases)

    def test_h5py_reads_what_pumice_wrote(self):
        """Every layout, index, filter, allocation and fill time; the HDF5 tools take the files, too."""
        spec, files = self.specification(), []
        for number in range(FILES):
            path = self.directory / f"made-{number}.h5"
            rng = np.random.default_rng([number, 99])
            filters = FILTERS if number % 5 else TOOLS_FILTERS
            cases = [Case(rng, f"g{i // 8}/d{i}", filters) for i in range(PER_FILE)]
            spec.op("file", path=path.name, libver=RELEASES[number % 3])
            for case in cases:
                case.pumice_create(spec)
                for step in case.steps(int(rng.integers(0, 4))):
                    case.pumice_apply(spec, step)
            spec.op("reopen")
            for case in cases[::3]:
                for step in case.steps(2):
                    case.pumice_apply(spec, step)
            files.append((path, cases))
        self.write(spec, "unused.h5")
        for number, (path, cases) in enumerate(files):
            self.check(path, cases)
            if number % 5 == 0:
                self.tools_accept(path, cases)
            self.go_on(path, cases, 1)

    def tools_accept(self, path, cases):
        """h5dump, h5stat and h5repack, where they are installed."""
        copy = path.with_suffix(".repacked")
        for command in (["h5dump", path], ["h5stat", path], ["h5repack", path, copy]):
            if shutil.which(command[0]) is None:
                continue
            done = subprocess.run(
                [str(part) for part in command], capture_output=True, timeout=60, check=False
            )
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr[-500:]}")
        if copy.exists():
            self.check(copy, cases)
