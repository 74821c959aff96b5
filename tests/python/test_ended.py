"""Files of programs that ended in the middle of a commit: libhdf5 refuses them, or reads one commit or the other."""

import shutil
import subprocess
import unittest

import h5py
import numpy as np

from interop import InteropCase, program

KINDS = ["earliest", "user-block", "narrow", "v18", "v110"]


def content(path):
    """Everything in a file, as libhdf5 reads it."""
    found = {}

    def visit(name, item):
        found[name] = ("dataset", item[()].tobytes()) if isinstance(item, h5py.Dataset) else ("group",)
        found.update({f"{name}@{key}": np.asarray(value).tobytes() for key, value in item.attrs.items()})

    with h5py.File(path, "r") as file:
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
                known = [content(folder / f"{after:05}.h5") for _, after in commits]
                self.assertGreater(len(commits), 8)
                refused = read = 0
                for path in sorted(folder.glob("*.h5")):
                    count = int(path.stem.split("-")[0])
                    done = max(n for n, (_, after) in enumerate(commits) if after <= count)
                    allowed = known[done : done + 2]
                    try:
                        found = content(path)
                    except OSError as error:
                        # Only as a whole, and only in the middle of a commit.
                        self.assertIn("open", str(error), path.name)
                        self.assertGreaterEqual(count, commits[done + 1][0], path.name)
                        refused += 1
                        continue
                    read += 1
                    self.assertIn(found, allowed, path.name)
                self.assertGreater(refused, 10)
                self.assertGreater(read, 100)
                shutil.rmtree(folder)

    def test_what_is_refused_is_finished_by_pumice(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                folder, commits = self.cuts(kind)
                known = [content(folder / f"{after:05}.h5") for _, after in commits]
                finished = 0
                for path in sorted(folder.glob("*.h5")):
                    try:
                        h5py.File(path, "r").close()
                    except OSError:
                        count = int(path.stem.split("-")[0])
                        done = max(n for n, (_, after) in enumerate(commits) if after <= count)
                        specification = self.specification(path.stem)
                        specification.group("after")
                        subprocess.run([str(program("PUMICE_INTEROP", "pumice-interop")), "edit",
                                        str(specification.save()), str(path)], check=True, timeout=240)
                        found = content(path)
                        self.assertEqual(found.pop("after"), ("group",))
                        found["names"].remove("after")
                        self.assertEqual(found, known[done + 1], path.name)
                        finished += 1
                        if finished == 6:
                            break
                self.assertEqual(finished, 6)
                shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()
