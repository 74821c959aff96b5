"""Files that others lead to: edited through external links, beside h5py, and copied to and from files with
addresses of another width."""

import subprocess

import h5py
import numpy as np

from interop import InteropCase, program

FORMATS = ["earliest", "v110"]
CHANGES = {
    "group": dict(op="group", path="e/new"),
    "groups on the way": dict(op="group", path="e/p/q/r"),
    "dataset": dict(op="dense", path="e/numbers", dtype="<i4", shape=[3]),
    "soft link": dict(op="soft", path="e/soft", target="/x"),
    "copy": dict(op="copy", path="l", to="e/l"),
    "datatype": dict(op="commit", path="e/t", dtype="<i4"),
    "new name": dict(op="rename", path="e/d", to="e/d2"),
    "no name": dict(op="delete", path="e/d"),
    "elements": dict(op="write", path="e/d", data="0.bin"),
    "attribute": dict(op="attribute", path="e", name="a", dtype="<i8", shape=[], data="1.bin"),
}
H5PY = {
    "group": lambda f: f.create_group("e/new"),
    "groups on the way": lambda f: f.create_group("e/p/q/r"),
    "dataset": lambda f: f.create_dataset("e/numbers", (3,), "<i4"),
    "soft link": lambda f: f["e"].__setitem__("soft", h5py.SoftLink("/x")),
    "copy": lambda f: f.copy("l", f["e"], "l"),
    "datatype": lambda f: f["e"].__setitem__("t", np.dtype("<i4")),
    "new name": lambda f: f["e"].move("d", "d2"),
    "no name": lambda f: f["e"].__delitem__("d"),
    "elements": lambda f: f["e/d"].__setitem__(..., np.arange(5) + 10),
    "attribute": lambda f: f["e"].attrs.__setitem__("a", 7),
}


def content(path):
    """What a file has: kinds of all links, elements and attributes."""
    found = {}
    with h5py.File(path) as file:
        def visit(name):
            link = file.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                found[name] = type(link).__name__
                return
            thing = file[name]
            elements = thing[()].tolist() if isinstance(thing, h5py.Dataset) else None
            attributes = {key: str(value) for key, value in thing.attrs.items()}
            found[name] = type(thing).__name__, elements, attributes

        file.visit_links(visit)
    return found


class Links(InteropCase):
    def pair(self, folder, libver):
        folder = self.directory / folder
        folder.mkdir()
        for name in ("a.h5", "b.h5"):
            with h5py.File(folder / name, "w", libver=libver) as file:
                if name == "a.h5":
                    # Objects of the two lie at other addresses.
                    file.create_group("pad").attrs["x"] = np.arange(100)
                    file["e"] = h5py.ExternalLink("b.h5", "/g")
                file["g/d"], file["l/d"], file["x"] = np.arange(5), np.arange(3), 1
        return folder / "a.h5", folder / "b.h5"

    def test_changes_through_a_link_are_those_that_h5py_makes(self):
        for libver in FORMATS:
            for name, change in CHANGES.items():
                with self.subTest(libver=libver, change=name):
                    a, b = self.pair(f"{libver} {name}", libver)
                    theirs = self.pair(f"{libver} {name} h5py", libver)
                    specification = self.specification(f"spec {libver} {name}")
                    specification.store(np.arange(5) + 10)
                    specification.store(np.array(7))
                    change = dict(change)
                    specification.op(change.pop("op"), **change)
                    self.edit(specification, a)
                    with h5py.File(theirs[0], "r+", libver=libver) as file:
                        H5PY[name](file)
                    self.assertEqual(content(a), content(theirs[0]))
                    self.assertEqual(content(b), content(theirs[1]))
                    for path in (a, b):
                        check = [str(program("PUMICE", "pumice")), "check", str(path)]
                        done = subprocess.run(check, capture_output=True, text=True, timeout=60)
                        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Widths(InteropCase):
    def make(self, path, width):
        creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        creation.set_sizes(width, width)
        h5py.File(h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, creation)).close()

    def fill(self, path):
        text = h5py.string_dtype()
        with h5py.File(path, "r+") as file:
            names = np.array(["a", "", "granite"], dtype=object)
            file.create_dataset("plain", data=names, dtype=text).attrs["word"] = "tuff"
            file.create_dataset("chunked", data=names, dtype=text, chunks=(2,), compression="gzip")
            lists = file.create_dataset("lists", (2,), h5py.vlen_dtype("<i2"))
            lists[0] = [1, -2, 3]
            record = np.dtype([("id", "<i4"), ("name", text), ("last", "u1")])
            file["records"] = np.array([(1, "one", 5), (2, "two", 6)], record)
            file.create_dataset("links", data=[file["plain"].ref], dtype=h5py.ref_dtype)

    def check(self, path, prefix=""):
        with h5py.File(path) as file:
            self.assertEqual(list(file[prefix + "plain"][()]), [b"a", b"", b"granite"])
            self.assertEqual(file[prefix + "plain"].attrs["word"], "tuff")
            self.assertEqual(list(file[prefix + "chunked"][()]), [b"a", b"", b"granite"])
            self.assertEqual(file[prefix + "lists"][0].tolist(), [1, -2, 3])
            self.assertEqual(file[prefix + "records"][()].tolist(), [(1, b"one", 5), (2, b"two", 6)])
            self.assertEqual(file[file[prefix + "links"][0]].name, f"/{prefix}plain")

    def pumice(self, *arguments):
        command = [str(program("PUMICE", "pumice")), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_file_with_narrow_addresses_is_repacked(self):
        narrow, wide = self.directory / "narrow.h5", self.directory / "wide.h5"
        self.make(narrow, 4)
        self.fill(narrow)
        self.pumice("repack", narrow, wide)
        self.check(wide)
        self.pumice("check", wide)

    def test_objects_are_copied_in_both_directions(self):
        for one, other in ((4, 8), (8, 4)):
            with self.subTest(source=one, target=other):
                source = self.directory / f"from{one}.h5"
                target = self.directory / f"to{other}.h5"
                self.make(source, one)
                self.fill(source)
                self.make(target, other)
                for name in ("plain", "chunked", "lists", "records"):
                    self.pumice("copy", "-i", source, "-o", target, "-s", f"/{name}", "-d", f"/{name}")
                with h5py.File(target) as file:
                    self.assertEqual(list(file["plain"][()]), [b"a", b"", b"granite"])
                    self.assertEqual(list(file["chunked"][()]), [b"a", b"", b"granite"])
                    self.assertEqual(file["lists"][0].tolist(), [1, -2, 3])
                    self.assertEqual(file["records"][1].tolist(), (2, b"two", 6))
                    self.assertEqual(file["plain"].attrs["word"], "tuff")
                self.pumice("check", target)
