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
# Bounds of new files, and whether the HDF5 tools of 1.10 are to read them.
RELEASES = {"earliest": True, "v108": True, "v110": True, "v112": False, "v114": False, "v200": False}
PER_FILE = 40
FILES = int(os.environ.get("PUMICE_MATRIX_FILES", "16"))
INDEXES = {"single", "implicit", "fixed array", "extensible array", "B-tree 2"}


class EditMatrix(InteropCase):
    def check(self, path, cases):
        with h5py.File(path, "r") as file:
            for case in cases:
                with self.subTest(case.describe(), file=path.name):
                    found = file[case.path][()]
                    self.same_bytes(np.asarray(found, case.dtype), case.array, case.describe())
                    if case.added is not None:
                        self.same_bytes(file[case.path].attrs["added"], case.added)
                        self.assertEqual(file[case.link], file[case.path])

    def add(self, spec, case, rng):
        """An attribute and a link, hard or soft."""
        case.added = np.arange(int(rng.integers(1, 9)) ** 3, dtype="<f8")
        spec.attribute(case.path, "added", case.added)
        case.link = f"{case.path} again"
        kind = str(rng.choice(["hard", "soft"]))
        spec.op(kind, path=case.link, target=f"/{case.path}")

    def covers(self, cases):
        """Every index was met, with filters and without, the extensible array along any axis."""
        chunked = [case for case in cases if case.chunks]
        met = {(case.index()[0], bool(case.filters)) for case in chunked}
        wanted = {(name, some) for name in INDEXES for some in (False, True)} - {("implicit", True)}
        self.assertEqual(met, wanted)
        axes = {(len(case.shape), *case.index()) for case in chunked}
        for rank in range(1, 5):
            for axis in range(rank):
                self.assertIn((rank, "extensible array", axis), axes)

    def test_pumice_changes_what_h5py_wrote(self):
        """Append, overwrite, resize, delete, attribute and link, in files of every version."""
        everything = []
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
                    if rng.random() < 0.5:
                        self.add(spec, case, rng)
                files.append((path, kept))
                everything.extend(kept)
            self.write(spec, f"unused-{bound}.h5")
            for path, kept in files:
                self.check(path, kept)
                self.go_on(path, kept, 2)
        self.covers(everything)

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
        everything = []
        for bound, tools in RELEASES.items():
            everything.extend(self.make(bound, tools))
        self.covers(everything)

    def make(self, bound, tools):
        spec, files = self.specification(f"made-{bound}"), []
        for number in range(FILES):
            path = self.directory / f"made-{bound}-{number}.h5"
            rng = np.random.default_rng([number, 99, *bound.encode()])
            filters = TOOLS_FILTERS if tools else FILTERS
            cases = [Case(rng, f"g{i // 8}/d{i}", filters) for i in range(PER_FILE)]
            spec.op("file", path=path.name, libver=bound)
            for case in cases:
                case.pumice_create(spec)
                for step in case.steps(int(rng.integers(0, 4))):
                    case.pumice_apply(spec, step)
            spec.op("reopen")
            for case in cases[::3]:
                for step in case.steps(2):
                    case.pumice_apply(spec, step)
                self.add(spec, case, rng)
            files.append((path, cases))
        self.write(spec, f"unused-{bound}.h5")
        for path, cases in files:
            self.check(path, cases)
            self.as_asked(path, cases)
            if tools:
                self.tools_accept(path, cases)
            self.go_on(path, cases, 1)
        return [case for _, cases in files for case in cases]

    def as_asked(self, path, cases):
        """libhdf5 finds the properties that were asked for."""
        with h5py.File(path) as file:
            for case in cases:
                with self.subTest(case.describe(), file=path.name):
                    self.assertEqual(case.stored_properties(file[case.path]), case.properties())
                    if case.maxshape:
                        self.assertEqual(file[case.path].maxshape, case.maxshape)
                    if case.fill is not None:
                        found = np.asarray(file[case.path].fillvalue, case.dtype)
                        self.assertEqual(found.tobytes(), np.asarray(case.fill, case.dtype).tobytes())

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
