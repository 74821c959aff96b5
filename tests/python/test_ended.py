"""Files of programs that ended in the middle of a commit: libhdf5 refuses them, or reads one commit or the other."""

import shutil
import subprocess
import unittest

import h5py
import numpy as np

from interop import InteropCase, program

KINDS = ["earliest", "user-block", "narrow", "v18", "v110", "split", "split-earliest", "family", "family-earliest"]


def opened(kind, folder, name):
    """What a state is opened by, and how."""
    if kind.startswith("family"):
        return folder / f"{name}-%d.h5", {"driver": "family", "memb_size": 2048}
    if kind.startswith("split"):
        return folder / name, {"driver": "split"}
    return folder / f"{name}.h5", {}


def content(kind, folder, name):
    """Everything in a file, as libhdf5 reads it."""
    path, how = opened(kind, folder, name)
    found = {}

    def visit(name, item):
        found[name] = ("dataset", item[()].tobytes()) if isinstance(item, h5py.Dataset) else ("group",)
        found.update({f"{name}@{key}": np.asarray(value).tobytes() for key, value in item.attrs.items()})

    with h5py.File(path, "r", **how) as file:
        visit("/", file)
        file.visititems(visit)
        found["names"] = sorted(file)
    return found


class Ended(InteropCase):
    def cuts(self, kind):
        folder = self.directory / kind
        folder.mkdir()
        command = [str(program("PUMICE_INTEROP", "pumice-interop")), "cuts", kind, str(folder)]
        subprocess.run(command, check=True, timeout=240)
        commits = [tuple(map(int, line.split())) for line in (folder / "commits").read_text().splitlines()]
        return folder, commits

    def test_libhdf5_sees_one_commit_or_the_other_or_refuses(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                folder, commits = self.cuts(kind)
                known = [content(kind, folder, f"{after:05}") for _, after in commits]
                self.assertGreater(len(commits), 8)
                refused = read = 0
                # Of several files, some of the states are enough: each takes several openings.
                step = 1 if opened(kind, folder, "")[1] == {} else 3
                for name in (folder / "states").read_text().split()[::step]:
                    count = int(name.split("-")[0])
                    done = max(n for n, (_, after) in enumerate(commits) if after <= count)
                    allowed = known[done : done + 2]
                    try:
                        found = content(kind, folder, name)
                    except OSError as error:
                        # Only as a whole, and only in the middle of a commit.
                        self.assertIn("open", str(error), name)
                        self.assertGreaterEqual(count, commits[done + 1][0], name)
                        refused += 1
                        continue
                    read += 1
                    self.assertIn(found, allowed, name)
                self.assertGreater(refused * step, 10)
                self.assertGreater(read * step, 100)
                shutil.rmtree(folder)

    def test_what_is_refused_is_finished_by_pumice(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                folder, commits = self.cuts(kind)
                known = [content(kind, folder, f"{after:05}") for _, after in commits]
                finished = 0
                for name in (folder / "states").read_text().split():
                    path, how = opened(kind, folder, name)
                    try:
                        h5py.File(path, "r", **how).close()
                    except OSError:
                        count = int(name.split("-")[0])
                        done = max(n for n, (_, after) in enumerate(commits) if after <= count)
                        specification = self.specification(name)
                        specification.group("after")
                        subprocess.run([str(program("PUMICE_INTEROP", "pumice-interop")), "edit",
                                        str(specification.save()), str(path)], check=True, timeout=240)
                        found = content(kind, folder, name)
                        self.assertEqual(found.pop("after"), ("group",))
                        found["names"].remove("after")
                        self.assertEqual(found, known[done + 1], name)
                        finished += 1
                        if finished == 6:
                            break
                self.assertEqual(finished, 6)
                shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()
