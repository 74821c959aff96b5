"""Files of the oldest format stay so, whatever is changed in them, and libhdf5 1.10 reads them."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

import h5py
import numpy as np

from interop import ROOT, InteropCase

# What begins with these came with 1.8 and later; the oldest format has none of it.
NEW = [b"OHDR", b"OCHK", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTIN", b"BTLF", b"FSHD", b"FSSE"]
NEW += [b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EADB", b"SMTB", b"SMLI"]
OLD = [b"TREE", b"SNOD", b"HEAP"]
SIGNATURE = b"\x89HDF\r\n\x1a\n"
FILES = int(os.environ.get("PUMICE_OLD_FILES", "24"))


def make(path):
    """Something of everything, as h5py makes it by default."""
    with h5py.File(path, "w", libver="earliest") as file:
        plain = file.create_dataset("plain", data=np.arange(60, dtype="i4").reshape(6, 10))
        plain.attrs["unit"] = "mm"
        file.create_dataset("packed", data=np.arange(200.0), chunks=(16,), maxshape=(None,),
                            compression="gzip", shuffle=True)
        file.create_dataset("grid", data=np.arange(400, dtype="u2").reshape(20, 20), chunks=(7, 6),
                            maxshape=(None, None), fillvalue=9)
        file["names"] = np.array(["one", "two", "three"], object)
        for number in range(40):
            file.create_group(f"many/g{number}").attrs["number"] = number
        file["type"] = np.dtype([("a", "i2"), ("b", "f8")])
        file["soft"] = h5py.SoftLink("/many/g3")
        file["many/again"] = file["plain"]


class Pumice:
    """Changes by Pumice: operations of a specification."""

    def __init__(self, specification):
        self.spec = specification

    def write(self, name, start, values):
        self.spec.write_block(name, start, values)

    def resize(self, name, *shape):
        self.spec.op("resize", path=name, shape=list(shape))

    def delete(self, name):
        self.spec.op("delete", path=name)

    def group(self, name):
        self.spec.group(name)

    def dataset(self, name, values, **options):
        self.spec.dense(name, values, **options)

    def attribute(self, name, key, value):
        self.spec.attribute(name, key, value)

    def remove_attribute(self, name, key):
        self.spec.op("remove_attribute", path=name, name=key)

    def rename(self, name, to):
        self.spec.op("rename", path=name, to=to)

    def hard_link(self, name, target):
        self.spec.op("hard", path=name, target=target)

    def soft_link(self, name, target):
        self.spec.op("soft", path=name, target=target)

    def copy(self, name, to):
        self.spec.op("copy", path=name, to=to)


class H5py:
    """The same changes by h5py."""

    def __init__(self, file):
        self.file = file

    def write(self, name, start, values):
        where = tuple(slice(a, a + n) for a, n in zip(start, values.shape))
        self.file[name][where] = values

    def resize(self, name, *shape):
        self.file[name].resize(shape)

    def delete(self, name):
        del self.file[name]

    def group(self, name):
        self.file.create_group(name)

    def dataset(self, name, values, **options):
        options = {key: tuple(value) for key, value in options.items()}
        self.file.create_dataset(name, data=values, **options)

    def attribute(self, name, key, value):
        self.file[name].attrs[key] = value

    def remove_attribute(self, name, key):
        del self.file[name].attrs[key]

    def rename(self, name, to):
        self.file.move(name, to)

    def hard_link(self, name, target):
        self.file[name] = self.file[target]

    def soft_link(self, name, target):
        self.file[name] = h5py.SoftLink(target)

    def copy(self, name, to):
        self.file.copy(name, to)


def append(who):
    who.resize("packed", 250)
    who.write("packed", [200], np.arange(50.0))


def shrink_and_grow(who):
    who.resize("grid", 11, 25)
    who.resize("grid", 30, 9)


def delete_groups(who):
    for number in range(35):
        who.delete(f"many/g{number}")


def add_groups(who):
    for number in range(40):
        who.group(f"many/added {number}/inner")


def add_datasets(who):
    who.dataset("new", np.arange(30, dtype=">u4"))
    values = np.arange(90, dtype="f4").reshape(9, 10)
    who.dataset("new chunks", values, chunks=[4, 4], maxshape=[None, 10])


def add_attributes(who):
    for name in ("/", "plain", "many/g38", "type"):
        for number in range(12):
            who.attribute(name, f"added {number}", np.arange(number + 1))


def link(who):
    who.hard_link("hard", "packed")
    who.soft_link("many/soft", "/grid")


EDITS = {
    "overwrite": lambda who: who.write("plain", [1, 4], np.full((2, 3), -5, "i4")),
    "append": append,
    "shrink and grow": shrink_and_grow,
    "add groups": add_groups,
    "delete groups": delete_groups,
    "add datasets": add_datasets,
    "add attributes": add_attributes,
    "remove an attribute": lambda who: who.remove_attribute("plain", "unit"),
    "link": link,
    "rename": lambda who: who.rename("plain", "many/moved"),
    "copy": lambda who: who.copy("many", "copied"),
    "delete a dataset": lambda who: who.delete("packed"),
}


def count(data, signatures):
    return {signature: data.count(signature) for signature in signatures}


class OldFormat(InteropCase):
    def dump(self, path):
        done = subprocess.run(["h5dump", str(path)], capture_output=True, text=True, timeout=240)
        # The first line names the file.
        return done.returncode, done.stdout.split("\n", 1)[-1], done.stderr

    def stays_old(self, path, message):
        data = path.read_bytes()
        self.assertEqual(data[8], 0, f"{message}: superblock")
        self.assertEqual(set(count(data, NEW).values()), {0}, f"{message}: {count(data, NEW)}")
        self.assertGreater(min(count(data, OLD).values()), 0, message)

    def test_every_kind_of_change_leaves_the_oldest_format(self):
        start = self.directory / "start.h5"
        make(start)
        self.stays_old(start, "h5py")
        # One after another in one file, too.
        for name, edits in {**{name: [edit] for name, edit in EDITS.items()},
                            "all": list(EDITS.values())}.items():
            with self.subTest(name):
                ours, theirs = (self.directory / f"{who}-{name}.h5" for who in ("ours", "theirs"))
                shutil.copy(start, ours)
                shutil.copy(start, theirs)
                specification = self.specification(name)
                with h5py.File(theirs, "r+") as file:
                    for edit in edits:
                        edit(Pumice(specification))
                        edit(H5py(file))
                self.edit(specification, ours)
                self.stays_old(ours, name)
                self.same_content(ours, theirs, name)
                if shutil.which("h5dump"):
                    self.assertEqual(self.dump(ours), self.dump(theirs), name)
                    done = subprocess.run(["h5stat", str(ours)], capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                # And h5py goes on in it.
                with h5py.File(ours, "r+") as file:
                    file["later"] = np.arange(5)
                self.stays_old(ours, f"{name}, then h5py")

    def same_content(self, ours, theirs, message):
        with h5py.File(ours) as a, h5py.File(theirs) as b:
            names, others = [], []
            a.visit(names.append)
            b.visit(others.append)
            self.assertEqual(sorted(names), sorted(others), message)
            for name in ["/", *names]:
                self.assertEqual(set(a[name].attrs), set(b[name].attrs), f"{message}: {name}")
                for key in a[name].attrs:
                    np.testing.assert_array_equal(a[name].attrs[key], b[name].attrs[key])
                if isinstance(a[name], h5py.Dataset):
                    np.testing.assert_array_equal(a[name][()], b[name][()], f"{message}: {name}")

    def corpus(self):
        """Files of the oldest formats that nobody here wrote."""
        folder = pathlib.Path(os.environ.get("PUMICE_CORPUS", ROOT / "../shared/corpora"))
        index = folder / "manifest_index.jsonl"
        if not index.is_file():
            self.skipTest("no corpus")
        found = []
        for line in index.read_text().splitlines():
            entry = json.loads(line)
            path = folder / entry["stored"]
            if entry.get("errors") or not entry.get("objects") or not path.is_file():
                continue
            if path.stat().st_size > 1 << 20:
                continue
            data = path.read_bytes()
            if data.startswith(SIGNATURE) and data[8] in (0, 1) and b"SNOD" in data:
                found.append(path)
        found.sort()
        return found[:: max(1, len(found) // FILES)]

    def values(self, path):
        """Checksums would do; files are small."""
        found = {}

        def note(name, node):
            if isinstance(node, h5py.Dataset) and node.size and node.nbytes > 1 << 24:
                found[name] = node.shape
            elif isinstance(node, h5py.Dataset):
                try:
                    found[name] = repr(np.asarray(node[()]).tolist())
                except (OSError, TypeError, ValueError, KeyError) as error:
                    found[name] = type(error).__name__
            else:
                found[name] = sorted(node.attrs) if name else None

        with h5py.File(path) as file:
            file.visititems(note)
            root = sorted(file.attrs)
        return root, found

    def test_old_files_of_other_programs_stay_old(self):
        edited = 0
        for source in self.corpus():
            path = self.directory / source.name
            shutil.copy(source, path)
            try:
                root, before = self.values(path)
            except OSError:
                continue
            with self.subTest(source.name):
                data = path.read_bytes()
                specification = self.specification(f"spec-{source.name}")
                specification.attribute("/", "added by Pumice", np.arange(9))
                for number in range(12):
                    specification.group(f"added by Pumice/g{number}")
                specification.dense("added by Pumice/d", np.arange(500), chunks=[60], maxshape=[None])
                specification.dense("added by Pumice/e", np.arange(500))
                specification.op("flush", path="/")
                specification.op("delete", path="added by Pumice/e")
                specification.op("delete", path="added by Pumice/g3")
                self.edit(specification, path)
                now = path.read_bytes()
                self.assertEqual(now[8], data[8], "superblock")
                self.assertEqual(count(now, NEW), count(data, NEW))
                root_now, after = self.values(path)
                self.assertEqual(root_now, sorted([*root, "added by Pumice"]))
                added = {name for name in after if name.startswith("added by Pumice")}
                self.assertEqual(len(added), 13)
                self.assertEqual({k: v for k, v in after.items() if k not in added}, before)
                with h5py.File(path) as file:
                    self.same_bytes(file["added by Pumice/d"][()], np.arange(500))
                if shutil.which("h5dump") and len(data) < 1 << 17:
                    self.assertEqual(self.dump(path)[0], self.dump(source)[0])
                edited += 1
        self.assertGreater(edited, 10)


if __name__ == "__main__":
    unittest.main()
