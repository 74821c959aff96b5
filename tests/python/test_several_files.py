"""Files that consist of several: families, which h5py and Pumice make, read and edit in turns, and split
files, which h5py wrote and Pumice reads."""

import glob
import os
import pathlib
import shutil
import subprocess

import h5py
import numpy as np

from interop import InteropCase


def fill(file):
    rng = np.random.default_rng(3)
    file["contiguous"] = rng.integers(0, 1000, (40, 50), dtype="<i4")
    packed = rng.integers(0, 9, (60, 70), dtype="<i2")
    file.create_dataset("group/chunked", data=packed, chunks=(16, 16), compression="gzip")
    file["group"].attrs["numbers"] = np.arange(20)
    file["words"] = np.array([b"pumice", b"is", b"light"])


class Several(InteropCase):
    def check(self, path, wanted):
        manifest = self.read(path)
        for name in ("contiguous", "group/chunked", "words"):
            entry = self.found(manifest, "/" + name)
            self.same_bytes(manifest.array(entry), wanted[name], name)

    def refusal(self, path):
        command = [str(self.binary), "read", str(path), str(self.directory / "refused")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def reference(self):
        with h5py.File(self.directory / "whole.h5", "w") as file:
            fill(file)
            return {name: file[name][()] for name in ("contiguous", "group/chunked", "words")}


class SeveralFiles(Several):
    def test_families_of_all_member_sizes_and_versions(self):
        wanted = self.reference()
        for libver in ("earliest", "latest"):
            for size in (512, 4096, 1 << 20):
                with self.subTest(libver=libver, size=size):
                    pattern = str(self.directory / f"{libver}-{size}-%03d.h5")
                    with h5py.File(
                        pattern, "w", driver="family", memb_size=size, libver=libver
                    ) as file:
                        fill(file)
                    self.check(pattern, wanted)
                    refusal = self.refusal(pattern % 0)
                    self.assertIn(pattern, refusal)

    def test_a_family_whose_first_member_is_short(self):
        pattern = str(self.directory / "one-%d.h5")
        with h5py.File(pattern, "w", driver="family", memb_size=1 << 30) as file:
            file["numbers"] = np.arange(10)
        entry = self.found(manifest := self.read(pattern), "/numbers")
        self.same_bytes(manifest.array(entry), np.arange(10))

    def test_split_files_of_both_namings(self):
        wanted = self.reference()
        for libver in ("earliest", "latest"):
            for meta, raw in ((b"-m.h5", b"-r.h5"), (b".meta", b".raw")):
                with self.subTest(libver=libver, meta=meta):
                    path = str(self.directory / f"{libver}{len(meta)}{len(raw)}")
                    with h5py.File(
                        path, "w", driver="split", meta_ext=meta, raw_ext=raw, libver=libver
                    ) as file:
                        fill(file)
                    self.check(path, wanted)
                    self.assertIn(f'"{path}"', self.refusal(path + meta.decode()))

    def test_a_missing_member_is_named(self):
        path = self.directory / "split"
        with h5py.File(path, "w", driver="split") as file:
            fill(file)
        (self.directory / "split-r.h5").unlink()
        manifest = self.read(path)
        self.assertEqual(manifest.objects["/contiguous"]["kind"], "error")
        self.assertIn("split-r.h5", manifest.objects["/contiguous"]["message"])


class Families(Several):
    """Made by one, edited by the other, and so forth."""

    def opened(self, pattern, mode, size):
        return h5py.File(pattern, mode, driver="family", memb_size=size)

    def lengths(self, pattern):
        """Bytes of all members, which must be full but for the last."""
        lengths = [path.stat().st_size for path in self.members(pattern)]
        return [length for length in lengths if length]

    def members(self, pattern):
        number, paths = 0, []
        while (path := pathlib.Path(pattern % number)).exists():
            paths.append(path)
            number += 1
        others = glob.glob(pattern.replace("%03d", "*"))
        self.assertEqual(len(others), len(paths), "a member that belongs to nothing")
        return paths

    def check_members(self, pattern, size):
        lengths = self.lengths(pattern)
        self.assertTrue(all(length == size for length in lengths[:-1]), lengths)
        self.assertLessEqual(lengths[-1], size)

    def changes(self, pattern, name):
        """What Pumice changes in a file of fill()."""
        specification = self.specification("edit-" + name)
        specification.op("delete", path="contiguous")
        specification.op("flush", path="/")
        more = np.arange(9000, dtype="<f8").reshape(90, 100)
        specification.dense("more", more, chunks=[8, 9], maxshape=[None, 100])
        specification.op("resize", path="more", shape=[100, 100])
        specification.write_block("group/chunked", (3, 4), np.full((30, 20), 77, "<i2"))
        specification.attribute("group", "numbers", np.arange(3000))
        specification.op("hard", path="group/same", target="/words")
        self.edit(specification, pattern)
        return np.concatenate([more, np.zeros((10, 100))])

    def check_changed(self, file, wanted, more):
        self.assertNotIn("contiguous", file)
        self.same_bytes(file["more"][...], more)
        packed = wanted["group/chunked"].copy()
        packed[3:33, 4:24] = 77
        self.same_bytes(file["group/chunked"][...], packed)
        self.same_bytes(file["group"].attrs["numbers"], np.arange(3000))
        self.same_bytes(file["group/same"][...], wanted["words"])

    def test_families_of_h5py_are_edited_and_of_pumice_read(self):
        wanted = self.reference()
        pages = {"fs_strategy": "page", "fs_persist": True, "fs_page_size": 4096}
        kinds = [("earliest", {}), ("v108", {}), ("latest", {}), ("latest", pages)]
        for by_pumice in (False, True):
            for number, (libver, options) in enumerate(kinds):
                for size in (1000, 4096, 1 << 20):
                    with self.subTest(by_pumice=by_pumice, kind=number, size=size):
                        name = f"family-{by_pumice}-{number}-{size}-%03d.h5"
                        self.in_turns(name, libver, options, size, by_pumice, wanted)

    def in_turns(self, name, libver, options, size, by_pumice, wanted):
        pattern = str(self.directory / name)
        if by_pumice:
            specification = self.specification("new-" + name)
            specification.op("file", path=name, libver=libver, memb_size=size, **options)
            self.write(specification, "other.h5")
        else:
            h5py.File(pattern, "w", driver="family", memb_size=size, libver=libver, **options).close()
        with self.opened(pattern, "r+", size) as file:
            fill(file)
        more = self.changes(pattern, name)
        self.check_members(pattern, size)
        with self.opened(pattern, "r+", size) as file:
            self.check_changed(file, wanted, more)
            file["later"] = more[:50]
        if shutil.which("h5dump"):
            command = ["h5dump", "-H", "--filedriver=family", pattern]
            done = subprocess.run(command, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr[-500:])
        self.empty(pattern, size, ["later", "more", "group", "words"])

    def empty(self, pattern, size, names):
        """Members of what is deleted go, those at the end where free space is not remembered."""
        before = sum(self.lengths(pattern))
        specification = self.specification("empty" + pathlib.Path(pattern).name)
        for name in names:
            specification.op("delete", path=name)
        self.edit(specification, pattern)
        self.check_members(pattern, size)
        self.assertLess(sum(self.lengths(pattern)), before - 30_000)
        with self.opened(pattern, "r", size) as file:
            self.assertEqual(list(file), [])

    def test_a_family_made_anew_has_no_members_of_the_old_one(self):
        pattern = str(self.directory / "again-%03d.h5")
        with self.opened(pattern, "w", 1024) as file:
            fill(file)
        self.assertGreater(len(self.members(pattern)), 5)
        specification = self.specification("again")
        specification.op("file", path="again-%03d.h5", memb_size=4096)
        specification.dense("new", np.arange(2000, dtype="<i4"))
        self.write(specification, "other.h5")
        self.check_members(pattern, 4096)
        with self.opened(pattern, "r", 4096) as file:
            self.same_bytes(file["new"][...], np.arange(2000, dtype="<i4"))

    def test_a_family_that_h5py_has_open_is_refused_with_the_reason(self):
        pattern = str(self.directory / "held-%03d.h5")
        with h5py.File(pattern, "w", driver="family", memb_size=1024, locking=True) as file:
            fill(file)
            file.flush()
            specification = self.specification("held")
            specification.attribute("/", "a", 1)
            command = [str(self.binary), "edit", str(specification.save()), pattern]
            environment = {**os.environ, "HDF5_USE_FILE_LOCKING": "TRUE"}
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"process {os.getpid()}", done.stderr)

    def test_split_files_say_what_to_do_instead(self):
        path = str(self.directory / "split")
        with h5py.File(path, "w", driver="split") as file:
            fill(file)
        before = [pathlib.Path(path + ending).read_bytes() for ending in ("-m.h5", "-r.h5")]
        specification = self.specification("split-edit")
        specification.attribute("/", "a", 1)
        command = [str(self.binary), "edit", str(specification.save()), path]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("repack", done.stderr)
        after = [pathlib.Path(path + ending).read_bytes() for ending in ("-m.h5", "-r.h5")]
        self.assertEqual(before, after)


if __name__ == "__main__":
    import unittest

    unittest.main()
