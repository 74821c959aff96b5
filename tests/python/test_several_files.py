"""Files that consist of several: families, split and multi files, which h5py and Pumice make, read and edit
in turns."""

import glob
import os
import pathlib
import shutil
import subprocess
import sys

import h5py
import numpy as np

from interop import InteropCase, program
from varlen import pack_all, to_json


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

    def test_checks_find_nothing_wrong_with_them(self):
        command = program("PUMICE", "pumice")
        if command is None:
            self.skipTest("pumice is not built")
        with h5py.File(self.directory / "split", "w", driver="split") as file:
            fill(file)
        done = subprocess.run(
            [command, "check", self.directory / "split"], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("beyond the end", done.stdout)

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


def used(path, first):
    """What the file says is in use of its members, in their order, and their names."""
    stored = b"".join(pathlib.Path(path + ending).read_bytes() for ending in first)
    place = stored.rindex(b"NCSAmult")
    # A block has the size before the name, a message behind it.
    data = stored[place + 8 :]
    data = data if stored[place - 8 : place - 4] == bytes(4) else data[2:]
    kinds = [mapped or kind for kind, mapped in enumerate(data[:6], 1)]
    count = len(set(kinds))
    numbers = np.frombuffer(data[8 : 8 + 16 * count], "<u8")
    names = data[8 + 16 * count :].split(b"%s")[1 : count + 1]
    return dict(zip((name.split(b"\0")[0].decode() for name in names), numbers[1::2].tolist()))


class ByKind(Several):
    """Split and multi files, made by one, edited by the other, and so forth."""

    SPLIT = ("-m.h5", "-r.h5")
    META_RAW = (".meta", ".raw")
    MULTI = ("-s.h5", "-b.h5", "-r.h5", "-g.h5", "-l.h5", "-o.h5")

    def check_members(self, path, endings):
        """Every member is as long as what is in use of it."""
        found = {ending: pathlib.Path(path + ending).stat().st_size for ending in endings}
        self.assertEqual(found, used(path, [endings[0], endings[-1]]))
        return found

    def make(self, path, by_kind, **options):
        name = pathlib.Path(path).name
        specification = self.specification("new-" + name)
        specification.op("file", path=name, by_kind=by_kind, **options)
        self.write(specification, "other.h5")

    def opened(self, path, mode, endings, **options):
        meta, raw = (ending.encode() for ending in endings)
        return h5py.File(path, mode, driver="split", meta_ext=meta, raw_ext=raw, **options)

    def dumped(self, driver, path):
        if shutil.which("h5dump"):
            done = subprocess.run(["h5dump", "-f", driver, path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr[-500:])
            return done.stdout.split("\n", 1)[1]
        return None

    def test_split_files_in_turns(self):
        wanted = self.reference()
        kinds = [("earliest", {}), ("v108", {}), ("latest", {}), ("earliest", {"userblock_size": 1024})]
        for by_pumice in (False, True):
            for number, (libver, options) in enumerate(kinds):
                for naming, endings in enumerate((self.SPLIT, self.META_RAW)):
                    with self.subTest(by_pumice=by_pumice, kind=number, endings=endings):
                        path = str(self.directory / f"split{by_pumice}{number}{naming}")
                        if by_pumice:
                            kind = "split" if endings is self.SPLIT else "meta-raw"
                            self.make(path, kind, libver=libver, **options)
                        else:
                            self.opened(path, "w", endings, libver=libver, **options).close()
                        self.check_members(path, endings)
                        self.in_turns(path, endings, wanted)

    def in_turns(self, path, endings, wanted):
        with self.opened(path, "r+", endings) as file:
            fill(file)
            text = h5py.string_dtype()
            file.create_dataset("strings", data=["a", "bb" * 50, "ccc"] * 300, dtype=text)
        more = self.changes(path, pathlib.Path(path).name)
        lengths = self.check_members(path, endings)
        self.assertGreater(lengths[endings[1]], 80_000, "elements are with elements")
        self.assertLess(lengths[endings[0]], 60_000)
        with self.opened(path, "r+", endings) as file:
            self.check_changed(file, wanted, more)
            self.assertEqual(list(file["strings"].asstr()[:3]), ["a", "bb" * 50, "ccc"])
            file["later"] = more[:50]
        self.check_members(path, endings)
        self.strings(path, endings)
        if endings is self.SPLIT:
            self.assertIn("later", self.dumped("split", path) or "later")
        entry = self.found(manifest := self.read(path), "/later")
        self.same_bytes(manifest.array(entry), more[:50])
        self.empty(path, endings, ["later", "more", "group", "words", "strings"])

    def strings(self, path, endings):
        """Strings that are overwritten, and others that are new."""
        specification = self.specification("strings-" + pathlib.Path(path).name)
        words = [f"word {number}" for number in range(500)]
        kind = to_json(h5py.string_dtype())
        specification.op("dense", path="new strings", dtype=kind, shape=[500], chunks=[100])
        data = specification.store(np.frombuffer(pack_all(kind, words), "u1"))
        specification.op("write", path="new strings", data=data, start=[0], count=[500])
        self.edit(specification, path)
        self.check_members(path, endings)
        with self.opened(path, "r", endings) as file:
            self.assertEqual(list(file["new strings"].asstr()[...]), words)
        specification = self.specification("no-strings-" + pathlib.Path(path).name)
        specification.op("delete", path="new strings")
        self.edit(specification, path)

    def empty(self, path, endings, names):
        """Members are cut to what is left in them."""
        before = self.check_members(path, endings)
        specification = self.specification("empty" + pathlib.Path(path).name)
        for name in names:
            specification.op("delete", path=name)
        self.edit(specification, path)
        after = self.check_members(path, endings)
        self.assertLess(after[endings[1]], before[endings[1]] - 60_000)
        with self.opened(path, "r+", endings) as file:
            self.assertEqual(list(file), [])
            file["again"] = np.arange(7)
        entry = self.found(manifest := self.read(path), "/again")
        self.same_bytes(manifest.array(entry), np.arange(7))

    def test_a_split_file_whose_names_end_otherwise(self):
        wanted, endings = self.reference(), ("-metadata", "-elements.bin")
        for libver in ("earliest", "latest"):
            with self.subTest(libver=libver):
                path = str(self.directory / f"other-{libver}")
                self.opened(path, "w", endings, libver=libver).close()
                self.in_turns(path, endings, wanted)

    def as_multi(self, action, path, *arguments):
        """Lets h5py do something with its driver for multi files, which only the environment can choose."""
        environment = {**os.environ, "HDF5_DRIVER": "multi"}
        command = [sys.executable, __file__, action, str(path), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])

    def test_multi_files_in_turns(self):
        wanted = self.reference()
        for by_pumice in (False, True):
            for libver in ("earliest", "latest"):
                with self.subTest(by_pumice=by_pumice, libver=libver):
                    path = str(self.directory / f"multi{by_pumice}{libver}")
                    if by_pumice:
                        self.make(path, "multi", libver=libver)
                    else:
                        self.as_multi("make", path, libver)
                    self.check_members(path, self.MULTI)
                    self.as_multi("fill", path)
                    more = self.changes(path, pathlib.Path(path).name)
                    lengths = self.check_members(path, self.MULTI)
                    self.assertGreater(lengths["-r.h5"], 70_000)
                    self.assertGreater(lengths["-o.h5"], lengths["-s.h5"])
                    self.as_multi("copy", path, self.directory / "copy.h5")
                    with h5py.File(self.directory / "copy.h5") as file:
                        self.check_changed(file, wanted, more)
                        self.same_bytes(file["later"][...], np.arange(77))
                    entry = self.found(manifest := self.read(path), "/later")
                    self.same_bytes(manifest.array(entry), np.arange(77))
                    self.assertIn("later", self.dumped("multi", path) or "later")

    def test_files_of_the_hdf5_tools_are_edited(self):
        folder = os.environ.get("PUMICE_CORPUS")
        folder = folder and pathlib.Path(folder) / "stage/h5dump/testfiles/std"
        if not folder or not folder.exists() or not shutil.which("h5dump"):
            self.skipTest("no files of the HDF5 tools")
        for driver, name, endings in (
            ("multi", "tmulti", self.MULTI),
            ("split", "tsplit_file", self.SPLIT),
        ):
            with self.subTest(name=name):
                path = str(self.directory / name)
                for ending in endings:
                    shutil.copy(folder / (name + ending), path + ending)
                before = self.dumped(driver, path)
                specification = self.specification("edit-" + name)
                specification.dense("pumice/more", np.arange(5000, dtype="<i4"), chunks=[100])
                self.edit(specification, path)
                self.check_members(path, endings)
                self.assertIn("pumice", self.dumped(driver, path))
                specification = self.specification("undo-" + name)
                specification.op("delete", path="pumice")
                self.edit(specification, path)
                self.assertEqual(self.dumped(driver, path), before)

    def test_a_split_file_that_h5py_has_open_is_refused_with_the_reason(self):
        path = str(self.directory / "held")
        with h5py.File(path, "w", driver="split", locking=True) as file:
            fill(file)
            file.flush()
            specification = self.specification("edit-held")
            specification.attribute("/", "a", 1)
            command = [str(self.binary), "edit", str(specification.save()), path]
            environment = {**os.environ, "HDF5_USE_FILE_LOCKING": "TRUE"}
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"process {os.getpid()}", done.stderr)

    def test_members_that_are_missing_or_short_are_named_and_nothing_is_changed(self):
        for number, cut in enumerate((None, 100)):
            path = str(self.directory / f"short{number}")
            with h5py.File(path, "w", driver="split") as file:
                fill(file)
            raw = pathlib.Path(path + "-r.h5")
            raw.unlink() if cut is None else os.truncate(raw, cut)
            before = pathlib.Path(path + "-m.h5").read_bytes()
            specification = self.specification(f"edit-short{number}")
            specification.attribute("/", "a", 1)
            command = [str(self.binary), "edit", str(specification.save()), path]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("-r.h5", done.stderr)
            self.assertEqual(before, pathlib.Path(path + "-m.h5").read_bytes())

    def test_pages_are_refused_as_by_libhdf5(self):
        specification = self.specification("new-pages")
        specification.op("file", path="pages", by_kind="split", fs_strategy="page")
        command = [str(self.binary), "write", str(specification.save()), str(self.directory / "other.h5")]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("space_strategy", done.stderr)
        with self.assertRaises(OSError):
            h5py.File(self.directory / "other", "w", driver="split", fs_strategy="page")


def with_multi_driver(action, path, *arguments):
    """What `as_multi` asks for, in a process of its own."""
    if action == "make":
        h5py.File(path, "w", libver=arguments[0]).close()
    elif action == "fill":
        with h5py.File(path, "r+") as file:
            fill(file)
    elif action == "copy":
        with h5py.File(path, "r+") as file:
            file["later"] = np.arange(77)
        with h5py.File(path, "r") as file, h5py.File(arguments[0], "w", driver="sec2") as copy:
            for name in file:
                file.copy(name, copy)


if __name__ == "__main__":
    if os.environ.get("HDF5_DRIVER") == "multi":
        with_multi_driver(*sys.argv[1:])
        sys.exit()
    import unittest

    unittest.main()
