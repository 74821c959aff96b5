"""h5diff beside the HDF5 tools' own on two files with everything in them that can be compared: values of every
class, shapes and kinds that cannot be compared, references, links that lead on, and nowhere, and in circles,
attributes. Every object, with every way of telling: the same exit code and the same bytes on standard output."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import h5py
import numpy as np

PUMICE = os.environ.get("PUMICE")
REFERENCE = pathlib.Path(os.environ.get("HDF5_TOOLS", "/usr/bin"))
OPTIONS = """
 | -v | -r -n 2 | -v -d 1 | -v1 -p 0.3 | -v -N | -c | -v2 --follow-symlinks | -q
--follow-symlinks -v --no-dangling-links
"""


def numbers(group, other):
    for name in "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8 >i4 >f8 f2".split():
        values = np.arange(12).reshape(3, 4).astype(name)
        if other:
            values[0, 1] += 3
            values[2, 2], values[1, 0] = 0, 100
        group[name.replace(">", "be")] = values
    special = [[1.5, np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, 1e30, np.nan, 0],
               [1.5, np.nan, np.inf, np.inf, -0.0, 0.0, 2e-30, 1.1e30, 1.0, np.nan]][other]
    group["special"], group["special4"] = special, np.array(special, "f4")
    group["least"] = np.array([[-128, 127], [127, -128]][other], "i1")
    group["u4big"] = np.array([[0, 2**32 - 1, 7], [2**32 - 1, 0, 5]][other], "u4")
    group["scalar"], group["real"] = 5 + other, 5.125 + other
    group["null"] = h5py.Empty("i4")
    group.create_dataset("none", shape=(0, 3), dtype="i4", maxshape=(None, 3))
    group.create_dataset("never", shape=(4,), dtype="i4")
    group["long"] = np.arange(2000) + (np.arange(2000) % 7 == 0) * other


def texts(group, other):
    words = [[b"abd", b"defg", b"x"], [b"abc", b"defgh", b""]][other]
    group["fixed"], group["sizes"] = np.array(words, "S6"), np.array(words, ["S8", "S6"][other])
    group["variable"] = np.array([word.decode() for word in words], h5py.string_dtype())
    group["one"], group["fixed one"] = ["help", "hello"][other], np.bytes_([b"helpx", b"hello"][other])
    group["mixed"] = [np.array(["abc"], h5py.string_dtype()), np.array([b"abc"], "S4")][other]
    group["table"] = np.array([["a", "bb"], ["ccc", "ed"[other]]], h5py.string_dtype())
    group["marks"] = np.array([[b'ab"c\\'], [b"ab\tc\n"]][other], "S6")


def records():
    record = np.dtype([("a", "i4"), ("b", "f8"), ("c", "S4")])
    values = np.zeros(4, record)
    values["a"], values["b"], values["c"] = range(4), [0.5, 1, 2, 3], b"xy"
    return record, values


def composed(group, other):
    record, values = records()
    nested = np.zeros(3, [("p", record), ("q", "i2", (3,)), ("r", "f4", (2, 2))])
    nested["p"], nested["q"], nested["r"] = values[:3], np.arange(9).reshape(3, 3), 1.25
    cube = np.arange(18).reshape(3, 2, 3)
    if other:
        values["a"][1], values["b"][2], values["c"][3] = 9, 7.5, b"xz"
        nested["q"][1, 2], nested["r"][2, 1, 1], cube[1, 1, 1], cube[2, 0, 0] = 77, 3, 99, 98
    group["flat"], group["nested"], group["record"] = values, nested, values[1]
    group["order"] = np.zeros(2, [[("b", "f8"), ("a", "i4")], [("a", "i4"), ("b", "f8")]][other])
    group["count"] = np.zeros(2, [[("b", "f8")], [("a", "i4"), ("b", "f8")]][other])
    group["names"] = np.ones(2, [[("c", "i4"), ("d", "f8")], [("a", "i4"), ("b", "f8")]][other])
    group.create_dataset("array", shape=(3,), dtype=np.dtype(("i4", (2, 3))))[...] = cube
    lists = group.create_dataset("lists", shape=(3,), dtype=h5py.vlen_dtype("i4"))
    for at, numbers in enumerate([[[1, 2, 4], [5], []], [[1, 2, 3], [4], []]][other]):
        lists[at] = np.array(numbers, "i4")
    colours = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, basetype="i1")
    group.create_dataset("colours", data=np.array([[0, 2, 2, 0], [0, 1, 2, 1]][other], "i1"), dtype=colours)
    signs = h5py.enum_dtype({"A": 0, "B": 1}, basetype=["i1", "u1"][other])
    group.create_dataset("signs", data=np.zeros(2, ["i1", "u1"][other]), dtype=signs)
    group["complex"] = np.array([1 + 2j, 3 + (5 - other) * 1j])

    def low(name, datatype, values):
        made = h5py.h5d.create(group.id, name.encode(), datatype, h5py.h5s.create_simple(values.shape))
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, values, datatype)

    for name, tags in ("opaque", [b"tag", b"tag"]), ("tags", [b"tag", b"gat"]):
        opaque = h5py.h5t.create(h5py.h5t.OPAQUE, 5)
        opaque.set_tag(tags[other])
        low(name, opaque, np.array([b"abcde", [b"fghxy", b"fghij"][other]], "V5"))
    for width, bits in (1, h5py.h5t.STD_B8LE), (2, h5py.h5t.STD_B16LE), (8, h5py.h5t.STD_B64BE):
        low(f"bits{width}", bits, np.arange(6, dtype=f"u{width}") * (5 - 2 * other))


def references(group, other):
    one, two = group.create_dataset("one", data=np.arange(10) + other), group.create_group("sub")
    flat = group.create_dataset("flat", data=np.arange(20).reshape(4, 5) * (1 + other))
    objects = group.create_dataset("objects", shape=(4,), dtype=h5py.ref_dtype)
    objects[0], objects[1] = one.ref, flat.ref
    if other:
        objects[2] = one.ref
    kinds = group.create_dataset("kinds", shape=(1,), dtype=h5py.ref_dtype)
    kinds[0] = (two if other else one).ref
    regions = group.create_dataset("regions", shape=(4,), dtype=h5py.regionref_dtype)
    regions[0], regions[1] = one.regionref[2:5], flat.regionref[1:3 + other, 2:4]
    regions[2] = flat.regionref[0:4:2, 0:5:2 + other]
    if other:
        regions[3] = one.regionref[0:1]
    points = group.create_dataset("points", shape=(2,), dtype=h5py.regionref_dtype)
    for at in 0, 1:
        mask = np.zeros((4, 5), bool)
        mask[1, 2] = mask[3, 4] = mask[at * other, other] = True
        points[at] = flat.regionref[mask]
    pairs = group.create_dataset("pairs", shape=(2,), dtype=np.dtype([("r", h5py.ref_dtype), ("i", "i4")]))
    pairs[0] = (one.ref, other)
    lists = group.create_dataset("lists", shape=(1,), dtype=h5py.vlen_dtype(h5py.ref_dtype))
    lists[0] = np.array([one.ref, flat.ref], h5py.ref_dtype)


def shapes(group, other):
    group["rank"], group["dims"] = np.zeros([(6,), (2, 3)][other]), np.zeros([(3, 2), (2, 3)][other])
    group["scalar"], group["null"] = [np.ones(1), 1][other], [3, h5py.Empty("i4")][other]
    group.create_dataset("most", maxshape=[(9,), (None,)][other], chunks=(3,), data=[1, 2, 3])
    group["class"], group["sign"] = [1.5, 1][other], np.array([1, 2], ["u4", "i4"][other])
    group["size"] = np.array([1, 3 - other], ["i8", "i4"][other])
    group["type"], group["same"] = np.dtype(["f4", "i4"][other]), np.dtype("i4")
    if other:
        group.create_group("kind")
    else:
        group["kind"] = 3
    if other:
        group["kind2"] = np.dtype("i4")
    else:
        group.create_group("kind2")


def links(group, other):
    soft, external = h5py.SoftLink, h5py.ExternalLink
    group["soft"], group["same"] = soft(["/numbers/i2", "/numbers/i4"][other]), soft("/numbers/i4")
    group["nowhere"], group["half"] = soft("/nowhere"), soft(["/numbers/i4", "/nowhere"][other])
    group["group"], group["again"], group["circle"] = soft("/composed"), soft("/composed"), soft("/links")
    group["out"], group["out data"] = external("target.h5", "/g"), external("target.h5", "/g/d")
    group["out soft"], group["no file"] = external("target.h5", "/g/soft"), external("no.h5", "/g")
    group["no object"] = external("target.h5", ["/none", "/no"][other])
    group["differ"] = external("target.h5", ["/g/e", "/g/d"][other])
    group["kinds"] = [external("target.h5", "/g"), soft("/numbers")][other]
    group["mixed"] = [np.arange(12, dtype="i4").reshape(3, 4), soft("/numbers/i4")][other]
    group["hard"], group["hard group"] = group.file["numbers/i4"], group.file["numbers"]
    around = group.create_group("around")
    around["back"], around["me"] = group, around


def attributes(group, other):
    own = group.attrs
    own["same"], own["differ"], own["text"] = 1, np.arange(3) + other, ["abd", "abc"][other]
    own["fixed"], own["real"] = np.bytes_([b"abd", b"abc"][other]), 1.5 + other
    own["shape"], own["type"], own["class"] = np.zeros(4 - other), [1.0, 1][other], [1, "x"][other]
    own["null"], own["record"], own[f"only{other}"] = h5py.Empty("f4"), records()[1], 3
    own["reference"], own["truth"] = group.file["numbers/i4"].ref, np.bool_(other)
    data = group.create_dataset("data", data=np.arange(3))
    data.attrs["x"] = np.arange(4).reshape(2, 2) * (1 + other)
    data.attrs["words"] = np.array(["a", "cb"[other]], h5py.string_dtype())
    group["type"] = np.dtype("i4")
    group["type"].attrs["q"] = 5 + other


def make(path, other):
    """One of the two files, in the form that the oldest HDF5 programs read."""
    with h5py.File(path, "w", libver="earliest") as file:
        for part in numbers, texts, composed, references, shapes, links, attributes:
            part(file.create_group(part.__name__), other)
        file.attrs["root"] = 1 + other
        file[f"only{other}"] = 3


def objects(place):
    """The paths of all objects and links of the two files."""
    paths = {}

    def visit(group, path):
        for name in group:
            paths[f"{path}/{name}"] = None
            if group.get(name, getclass=True, getlink=True) is h5py.HardLink and name not in ("back", "me"):
                if isinstance(group[name], h5py.Group) and name != "hard group":
                    visit(group[name], f"{path}/{name}")

    for name in "a.h5", "b.h5":
        with h5py.File(place / name) as file:
            visit(file, "")
    return list(paths)


@unittest.skipUnless(PUMICE, "PUMICE names no program")
@unittest.skipUnless((REFERENCE / "h5diff").exists(), "no HDF5 tools")
class Diff(unittest.TestCase):
    def test_all_objects_with_all_options(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            make(place / "a.h5", 0)
            make(place / "b.h5", 1)
            with h5py.File(place / "target.h5", "w", libver="earliest") as file:
                group = file.create_group("g/in").parent
                group["d"], group["e"], group["soft"] = np.arange(5), np.arange(5) + 1, h5py.SoftLink("/g/d")
                group["back"], group["bad"] = h5py.ExternalLink("a.h5", "/shapes"), h5py.SoftLink("none")
                group["circle"] = group
            (place / "links").mkdir()
            subprocess.run([PUMICE, "install-links", place / "links"], check=True, capture_output=True)

            def run(tool, words):
                done = subprocess.run([tool / "h5diff", *words], cwd=place, stdin=subprocess.DEVNULL,
                                      capture_output=True, timeout=60)
                # Release 1.10 forgets the name here.
                text = re.sub(rb"(types referenced: )<.*> and <.*>", rb"\1", done.stdout)
                return done.returncode, text

            def wrong(words):
                ours, theirs = run(place / "links", words), run(REFERENCE, words)
                return None if ours == theirs else (" ".join(words), ours, theirs)

            lines = [line.split() for row in OPTIONS.strip("\n").splitlines() for line in row.split("|")]
            jobs = [[*line, "a.h5", "b.h5", path] for line in lines for path in objects(place)]
            self.assertGreater(len(jobs), 900)
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
                found = [one for one in pool.map(wrong, jobs) if one]
            self.assertEqual(found[:3], [], f"{len(found)} of {len(jobs)} differ")


if __name__ == "__main__":
    unittest.main()
