"""What Pumice writes from memory, beside the same writes by libhdf5: any selection of memory to any
selection of a dataset, with conversion; values of any type; structs and arrays of Rust; datasets whose
elements are elsewhere."""

import random
import subprocess
import unittest

import h5py
import numpy as np
from h5py import h5d, h5o, h5s, h5t

from interop import InteropCase
from varlen import pack_all

OPERATORS = {
    "or": h5s.SELECT_OR,
    "and": h5s.SELECT_AND,
    "xor": h5s.SELECT_XOR,
    "not_b": h5s.SELECT_NOTB,
}
SHAPES = [(40,), (9, 11), (5, 6, 7), (3, 4, 5, 4), (1, 30), (17, 1)]
FILE_TYPES = ["<i2", ">i4", "<u1", ">f4", "<f8", "<i8"]
MEMORY_TYPES = ["<i4", "<f8", ">i2", "<u2", "<f4", ">i8"]


def space_of(shape):
    return h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)


def slab(draw, shape):
    """A regular hyperslab."""
    out = {"start": [], "stride": [], "count": [], "block": []}
    for side in shape:
        start, block = draw.randrange(side), draw.choice([1, 1, 2, 3])
        block = min(block, side - start)
        stride = block + draw.randrange(4)
        most = (side - start - block) // stride + 1
        for key, value in zip(out, (start, stride, draw.randrange(1, most + 1), block)):
            out[key].append(value)
    return out


def select(space, what):
    """The selection of a specification in a dataspace of libhdf5."""
    if what == "all":
        space.select_all()
    elif "points" in what:
        points = np.array(what["points"], "u8").reshape(-1, len(space.shape))
        space.select_elements(points)
    else:
        for number, part in enumerate(what):
            operator = OPERATORS[part["op"]] if number else h5s.SELECT_SET
            fields = [tuple(part[key]) for key in ("start", "count", "stride", "block")]
            space.select_hyperslab(*fields, operator)
    return space


def factors(draw, count):
    """Two numbers whose product it is."""
    found = [n for n in range(1, count + 1) if count % n == 0]
    first = draw.choice(found)
    return first, count // first


def cells(draw, shape):
    """Cells of a dataset."""
    kind = draw.choice(["all", "slab", "slab", "slabs", "slabs", "points"])
    if kind == "all":
        return "all"
    if kind == "points":
        total = int(np.prod(shape))
        chosen = draw.choices(range(total), k=draw.randrange(1, 40))
        if draw.random() < 0.7:
            chosen = list(dict.fromkeys(chosen))
        points = np.stack(np.unravel_index(chosen, shape), -1).reshape(-1)
        return {"points": [int(n) for n in points]}
    parts = [slab(draw, shape)]
    while kind == "slabs" and len(parts) < 4:
        parts.append({**slab(draw, shape), "op": draw.choice(list(OPERATORS))})
    return parts


def places(draw, count, repeat):
    """As many places of a memory of any rank, and its shape."""
    kind = draw.choice(["all", "line", "grid", "rows", "points"])
    if kind == "all":
        return "all", list(draw.choice([(count,), factors(draw, count), (1, count, 1)]))
    if kind == "line":
        stride, start = draw.randrange(1, 4), draw.randrange(5)
        part = {"start": [start], "stride": [stride], "count": [count], "block": [1]}
        return [part], [start + stride * count + 2]
    if kind == "grid":
        sides = factors(draw, count)
        stride = [draw.randrange(1, 3), draw.randrange(1, 4)]
        part = {"start": [1, 2], "stride": stride, "count": list(sides), "block": [1, 1]}
        return [part], [1 + stride[0] * sides[0], 3 + stride[1] * sides[1]]
    if kind == "rows":
        # Two rows of different lengths.
        first = draw.randrange(1, count) if count > 1 else 1
        parts = [{"start": [3, 1], "stride": [1, 1], "count": [1, first], "block": [1, 1]}]
        if count > 1:
            rest = {"start": [1, 0], "stride": [1, 2], "count": [1, count - first], "block": [1, 1]}
            parts.append({**rest, "op": "or"})
        return parts, [4, 2 * count + 2]
    shape = [count + 3, draw.randrange(1, 4)]
    total = shape[0] * shape[1]
    chosen = draw.choices(range(total), k=count) if repeat else draw.sample(range(total), count)
    points = np.stack(np.unravel_index(chosen, shape), -1).reshape(-1)
    return {"points": [int(n) for n in points]}, shape


def layouts(folder, who, shape):
    """Options of datasets by name: for h5py and for Pumice."""
    half = tuple((side + 1) // 2 for side in shape)
    raw = folder / f"{who}.bin"
    return {
        "contiguous": ({}, {}),
        "chunks": ({"chunks": half}, {"chunks": list(half)}),
        "packed": (
            {"chunks": half, "compression": "gzip", "maxshape": (None,) * len(shape)},
            {"chunks": list(half), "maxshape": [None] * len(shape), "filters": [{"id": 1, "parameters": [4]}]},
        ),
        "compact": ({"compact": True}, {"compact": True}),
        "external": (
            {"external": [(str(raw), 16, h5py.h5f.UNLIMITED)]},
            {"external": [{"file": str(raw), "offset": 16}]},
        ),
    }


def compact(file, name, shape, dtype):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5d.COMPACT)
    kind = h5t.py_create(np.dtype(dtype), logical=True)
    return h5py.Dataset(h5d.create(file.id, name.encode(), kind, space_of(shape), plist))


class Pairs(InteropCase):
    STEPS = 60

    def test_any_selection_of_memory_goes_to_any_selection_of_a_dataset(self):
        for number, shape in enumerate(SHAPES):
            for name in layouts(self.directory, "x", shape):
                with self.subTest(layout=name, shape=shape):
                    self.one(f"{name}{number}", name, shape)

    def one(self, label, name, shape):
        draw = random.Random(label)
        dtype = draw.choice(FILE_TYPES)
        theirs, ours = (self.directory / f"{who}-{label}.h5" for who in ("theirs", "ours"))
        specification = self.specification(label)
        specification.op("file", path=ours.name)
        options = layouts(self.directory, f"ours-{label}", shape)[name][1]
        specification.create("dense", "d", dtype, shape, **options)
        options = layouts(self.directory, f"theirs-{label}", shape)[name][0]
        reads = []
        with h5py.File(theirs, "w", libver="v110") as file:
            if name == "compact":
                dataset = compact(file, "d", shape, dtype)
            else:
                dataset = file.create_dataset("d", shape, dtype, **options)
            for step in range(self.STEPS):
                self.step(draw, specification, dataset, step, reads)
            wanted = dataset[()]
        self.write(specification, f"other-{label}.h5")
        with h5py.File(ours) as file:
            self.same_bytes(file["d"][()], wanted, label)
        for out, buffer in reads:
            found = (specification.directory / out).read_bytes()
            self.assertEqual(found, buffer.tobytes(), f"{label}: {out}")

    def step(self, draw, specification, dataset, step, reads):
        file_space = select(space_of(dataset.shape), where := cells(draw, dataset.shape))
        count = file_space.get_select_npoints()
        if count == 0:
            return
        reading = draw.random() < 0.25
        target, memory_shape = places(draw, count, repeat=not reading)
        memory_space = select(space_of(tuple(memory_shape)), target)
        memory_type = np.dtype(draw.choice(MEMORY_TYPES))
        rng = np.random.default_rng(draw.randrange(1 << 30))
        # Beyond what some of the datasets hold: integers are clipped.
        limit = 120 if dataset.dtype.kind == "f" or memory_type.kind == "f" else 30_000
        memory = rng.integers(0, limit, memory_shape).astype(memory_type)
        fields = {"path": "d", "cells": where, "places": target, "memory_shape": memory_shape}
        fields |= {"dtype": memory_type.str, "data": specification.store(memory)}
        if reading:
            out = f"read{step}.bin"
            specification.op("read_pair", out=out, **fields)
            dataset.id.read(memory_space, file_space, memory)
            reads.append((out, memory))
        else:
            specification.op("write_pair", **fields)
            dataset.id.write(memory_space, file_space, memory)


def bit_field(file, name):
    kind = h5t.STD_B16LE
    made = h5d.create(file.id, name.encode(), kind, h5s.create_simple((5,)))
    made.write(h5s.ALL, h5s.ALL, np.array([1, 2, 3, 0xFFFF, 5], "<u2"), h5t.STD_B16LE)


def strange_number(file, name):
    kind = h5t.STD_I32BE.copy()
    kind.set_precision(19)
    kind.set_offset(4)
    made = h5d.create(file.id, name.encode(), kind, h5s.create_simple((2, 3)))
    made.write(h5s.ALL, h5s.ALL, np.arange(6, dtype="i4").reshape(2, 3))


TEXT = h5py.string_dtype()


def every_type(file):
    """A dataset of every kind of type, and the names."""
    file["half"] = np.arange(4, dtype="<f2")
    file["big"] = np.arange(6, dtype=">i8").reshape(2, 3)
    file["extended"] = np.arange(3, dtype="longdouble")
    file["complex"] = np.array([1 + 2j, 3 - 4j])
    file["small complex"] = np.array([1 + 2j, 3 - 4j], "complex64")
    file["true or false"] = np.array([True, False, True])
    colours = h5py.enum_dtype({"RED": -1, "GREEN": 0, "BLUE": 300}, basetype="<i2")
    file.create_dataset("colours", data=np.array([-1, 300, 0], "<i2"), dtype=colours)
    file["opaque"] = np.array([b"abcd", b"\0\1\2\3"], "V4")
    moments = np.array(["2026-11-16", "1999-01-01"], "datetime64[s]")
    file["moments"] = moments.astype(h5py.opaque_dtype(moments.dtype))
    file["fixed"] = np.array([b"one", b"three"], "S7")
    file.create_dataset("utf-8", data="grün".encode(), dtype=h5py.string_dtype("utf-8", 12))
    nested = np.dtype([("a", "<i2"), ("in", [("x", ">f4"), ("y", "u1", (2, 2))]), ("s", "S3")])
    values = np.zeros((3,), nested)
    values["a"], values["in"]["y"][:, 1, 0], values["s"] = [1, 2, 3], 7, b"xy"
    file["nested"] = values
    file["arrays"] = np.arange(24, dtype="<i2").view([("m", "<i2", (2, 3))])
    file["strings"] = np.array(["a", "", "long " * 40], object)
    rows = file.create_dataset("sequences", (3,), h5py.vlen_dtype("<f4"))
    for number in range(3):
        rows[number] = np.arange(2 * number, dtype="<f4")
    pair = np.dtype([("id", "<i4"), ("name", TEXT), ("more", TEXT)])
    file["pairs"] = np.array([(1, "one", ""), (2, "two", "more")], pair)
    file["nothing"] = h5py.Empty("<f8")
    file["scalar"] = np.float32(2.5)
    file["none"] = np.zeros((0, 4), "i2")
    bit_field(file, "bits")
    strange_number(file, "strange")
    return list(file)


class Types(InteropCase):
    def test_values_of_every_type_become_datasets_and_attributes(self):
        for libver in ("earliest", "v110", "latest"):
            path = self.directory / f"{libver}.h5"
            with h5py.File(path, "w", libver=libver) as file:
                names = every_type(file)
            specification = self.specification(libver)
            specification.group("copies")
            for name in names:
                if name != "nothing":
                    specification.op("dataset_from", path=f"copies/{name}", source=name)
                specification.op("attribute_from", path="copies", name=name, source=name)
            self.edit(specification, path)
            with h5py.File(path) as file:
                for name in names:
                    with self.subTest(libver, type=name):
                        self.same(file, name)

    def same(self, file, name):
        source, attribute = file[name], file["copies"].attrs.get_id(name)
        self.assertTrue(attribute.get_type().equal(source.id.get_type()), "type of the attribute")
        self.assertEqual(attribute.get_space().get_simple_extent_type(),
                         source.id.get_space().get_simple_extent_type())
        if source.shape is None:
            self.assertEqual(file["copies"].attrs[name], h5py.Empty("<f8"))
            return
        copy = file["copies"][name]
        self.assertTrue(copy.id.get_type().equal(source.id.get_type()), "type of the dataset")
        self.assertEqual((copy.shape, attribute.shape), (source.shape, source.shape))
        self.assertEqual(self.values(copy.id, h5d), self.values(source.id, h5d))
        self.assertEqual(self.values(attribute, None), self.values(source.id, h5d))

    def values(self, item, dataset):
        """Elements as libhdf5 gives them, whatever numpy has for them."""
        kind, shape = item.get_type(), item.get_space().shape
        if kind.get_class() == h5t.BITFIELD or not isinstance(kind.dtype, np.dtype):
            memory, given = np.zeros(shape, f"V{kind.get_size()}"), kind
        else:
            memory, given = np.zeros(shape, kind.dtype), None
        if not memory.size:
            return []
        if dataset:
            item.read(h5s.ALL, h5s.ALL, memory, given)
        else:
            item.read(memory, given)
        return repr(memory.tolist())


class Committed(InteropCase):
    DTYPE = np.dtype([("x", "<f4"), ("y", "<f4")])

    def count(self, path):
        with h5py.File(path) as file:
            return h5o.get_info(file["type"].id).rc

    def test_datasets_and_attributes_share_a_committed_datatype(self):
        for libver in ("earliest", "v108", "v110"):
            with self.subTest(libver):
                ours, theirs = self.make(libver)
                with h5py.File(ours, "r+") as file:
                    kind = file["type"].id
                    for name in ("plain", "chunks", "filled"):
                        self.assertTrue(file[name].id.get_type().committed(), name)
                        self.assertTrue(file[name].id.get_type().equal(kind))
                    stored = file["g"].attrs.get_id("typed").get_type()
                    self.assertTrue(stored.committed() and stored.equal(kind))
                    self.assertEqual(file["plain"][()].tolist(), [(1.0, 2.0)] * 3)
                    self.assertEqual(file["filled"][1].tolist(), (1.0, 2.0))
                    self.assertEqual(file["g"].attrs["typed"].tolist(), [(1.0, 2.0)] * 2)
                self.assertEqual(self.count(ours), 5)
                self.assertEqual(self.count(ours), self.count(theirs))
                # Links to it go with what shares it.
                specification = self.specification(f"gone-{libver}")
                specification.op("delete", path="plain")
                specification.op("remove_attribute", path="g", name="typed")
                self.edit(specification, ours)
                self.assertEqual(self.count(ours), 3)
                with h5py.File(ours, "r+") as file:
                    del file["chunks"], file["filled"]
                self.assertEqual(self.count(ours), 1)

    def make(self, libver):
        ones = np.array([(1.0, 2.0)] * 3, self.DTYPE)
        ours, theirs = (self.directory / f"{who}-{libver}.h5" for who in ("ours", "theirs"))
        specification = self.specification(libver)
        specification.op("file", path=ours.name, libver=libver)
        kind = {"dtype": {"size": 8, "fields": [
            {"name": name, "offset": 4 * place, "dtype": "<f4"} for place, name in enumerate("xy")]}}
        specification.op("commit", path="type", **kind)
        specification.group("g")
        specification.op("dense", path="plain", shape=[3], committed="type")
        specification.op("write", path="plain", data=specification.store(ones))
        specification.op("dense", path="chunks", shape=[3], chunks=[2], committed="type")
        fill = ones[0].tobytes().hex()
        specification.op("dense", path="filled", shape=[3], committed="type", fill=fill)
        specification.op("attribute", path="g", name="typed", shape=[2], committed="type",
                         data=specification.store(ones[:2]), **kind)
        self.write(specification, "other.h5")
        with h5py.File(theirs, "w", libver=libver) as file:
            file["type"] = self.DTYPE
            for name in ("plain", "chunks", "filled"):
                file.create_dataset(name, (3,), file["type"])
            file.create_group("g").attrs.create("typed", ones[:2], dtype=file["type"])
        return ours, theirs

    def test_null_dataspaces(self):
        for libver in ("earliest", "v110"):
            specification = self.specification(f"null-{libver}")
            specification.op("file", path=f"null-{libver}.h5", libver=libver)
            specification.op("dense", path="empty", dtype="<f4", shape=[], null=True)
            data = specification.store(np.zeros(0))
            specification.op("attribute", path="empty", name="a", dtype=">i2", shape=[], null=True, data=data)
            self.write(specification, "other.h5")
            with h5py.File(self.directory / f"null-{libver}.h5", "r+") as file:
                self.assertEqual(file["empty"][()], h5py.Empty("<f4"))
                self.assertEqual(file["empty"].attrs["a"], h5py.Empty(">i2"))
                file["empty"].attrs["b"] = 1


class RustTypes(InteropCase):
    def test_derived_structs_and_enumerations(self):
        specification = self.specification()
        specification.op("structs", path="/s")
        with h5py.File(self.write(specification)) as file:
            records = file["s/records"][()]
            place = np.dtype([("row", "<i2"), ("column", "<u2")])
            expected = np.dtype([("time", "<f8"), ("where", place), ("samples", "<f4", (3, 2)),
                                 ("label", "S8"), ("count", "<u4")])
            self.assertEqual(records.dtype, expected)
            numbers = np.arange(12).reshape(3, 4)
            np.testing.assert_array_equal(records["time"], numbers / 4)
            np.testing.assert_array_equal(records["where"]["row"], -numbers)
            np.testing.assert_array_equal(records["where"]["column"], numbers)
            np.testing.assert_array_equal(records["samples"][..., 2, 1], numbers + 0.25)
            np.testing.assert_array_equal(records["count"], numbers * 1000)
            self.assertEqual(records["label"].reshape(-1)[11], b"r11")
            attributes = file["s/records"].attrs
            self.assertEqual(attributes["one"].shape, ())
            self.assertEqual(attributes["one"], records.reshape(-1)[5])
            np.testing.assert_array_equal(attributes["some"], records.reshape(-1)[:2])
            marks = file["s/marks"]
            self.assertEqual(h5py.check_enum_dtype(marks.dtype), {"Good": 1, "not so good": 7})
            self.assertEqual(marks[()].tolist(), [1, 7, 7])
            part = file["s/part"][()]
            np.testing.assert_array_equal(part["count"], np.arange(12) * 1000)
            np.testing.assert_array_equal(part["time"], np.arange(12, dtype="f4") / 4)

    def test_arrays_of_ndarray(self):
        specification = self.specification()
        specification.op("arrays", path="/a")
        with h5py.File(self.write(specification)) as file:
            at = np.indices((4, 5, 6), "i4")
            whole = at[0] * 100 + at[1] * 10 + at[2]
            np.testing.assert_array_equal(file["a/rows"][()], whole)
            np.testing.assert_array_equal(file["a/columns"][()], whole)
            np.testing.assert_array_equal(file["a/floats"][()], whole.astype("f4"))
            part, row = np.full_like(whole, -1), np.full_like(whole, -1)
            part[1:3] = whole[::-2]
            row[2, 3] = whole[1, 4]
            np.testing.assert_array_equal(file["a/part"][()], part)
            np.testing.assert_array_equal(file["a/row"][()], row)


class Elsewhere(InteropCase):
    """Datasets whose elements are in other datasets or files."""

    def make(self, who):
        """Two sources, one of them of another type, and a dataset that shows parts of them."""
        folder = self.directory / who
        folder.mkdir()
        with h5py.File(folder / "a.h5", "w", libver="v110") as file:
            file["x"] = np.arange(40, dtype="i4").reshape(8, 5)
            file["text"] = np.array([f"text {n}" for n in range(6)], object)
        with h5py.File(folder / "b.h5", "w", libver="v110") as file:
            file.create_dataset("y", data=np.zeros((10, 10)), chunks=(3, 4), compression="gzip",
                                maxshape=(None, 10))
        layout = h5py.VirtualLayout((12, 5), "i4")
        layout[1:5] = h5py.VirtualSource("a.h5", "x", (8, 5))[::2]
        layout[6:11] = h5py.VirtualSource("b.h5", "y", (10, 10))[5:10, 5:10]
        layout[11] = h5py.VirtualSource(".", "own", (5,))
        texts = h5py.VirtualLayout((3,), TEXT)
        texts[:] = h5py.VirtualSource("a.h5", "text", (6,), dtype=TEXT)[1:6:2]
        with h5py.File(folder / "v.h5", "w", libver="v110") as file:
            file["own"] = np.arange(5, dtype="i4")
            file.create_virtual_dataset("v", layout, fillvalue=-1)
            file.create_virtual_dataset("t", texts)
        return folder

    def everything(self, folder):
        found = {}
        for name, paths in {"v.h5": ["v", "own"], "a.h5": ["x"], "b.h5": ["y"]}.items():
            with h5py.File(folder / name) as file:
                found |= {path: file[path][()].tolist() for path in paths}
        return found

    def test_writes_to_virtual_datasets_reach_the_sources(self):
        ours, theirs = self.make("ours"), self.make("theirs")
        draw, rng = random.Random(4), np.random.default_rng(4)
        for step in range(12):
            start = [draw.choice([1, 6, 8]), draw.randrange(5)]
            rows = draw.randrange(1, {1: 5, 6: 7, 8: 5}[start[0]])
            if step % 3 == 0:
                start[0], rows = draw.choice([(0, 2), (4, 3), (5, 2)])
            block = rng.integers(0, 99, (rows, draw.randrange(1, 6 - start[1])), "i4")
            place = tuple(slice(a, a + n) for a, n in zip(start, block.shape))
            specification = self.specification(f"step{step}")
            specification.write_block("v", start, block)
            refused = False
            with h5py.File(theirs / "v.h5", "r+") as file:
                try:
                    file["v"][place] = block
                except (OSError, ValueError):
                    refused = True
            if refused:
                before = self.everything(ours)
                with self.assertRaisesRegex(AssertionError, "no source"):
                    self.edit(specification, ours / "v.h5")
                self.assertEqual(self.everything(ours), before)
            else:
                self.edit(specification, ours / "v.h5")
            self.assertEqual(self.everything(ours), self.everything(theirs), f"step {step}")

    def test_writes_to_virtual_strings(self):
        folder = self.make("texts")
        specification = self.specification("texts")
        data = specification.store(np.frombuffer(pack_all({"vlen": "string"}, ["new", "", "x" * 99]), "u1"))
        specification.op("write", path="t", data=data)
        self.edit(specification, folder / "v.h5")
        with h5py.File(folder / "a.h5") as file:
            found = file["text"].asstr()[()].tolist()
        self.assertEqual(found, ["text 0", "new", "text 2", "", "text 4", "x" * 99])

    def test_a_flush_reaches_the_sources(self):
        folder = self.make("flushed")
        specification = self.specification("flushed")
        specification.write_block("v", [6, 0], np.full((2, 5), 7, "i4"))
        specification.op("flush", path="/")
        specification.op("hold", path="/")
        command = [str(self.binary), "edit", str(specification.save()), str(folder / "v.h5")]
        pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        with subprocess.Popen(command, text=True, **pipes) as process:
            self.assertEqual(process.stdout.readline(), "open\n")
            # What was not written by now never will be.
            process.kill()
        with h5py.File(folder / "b.h5") as file:
            self.assertTrue((file["y"][5:7, 5:10] == 7).all())

    def test_a_source_that_may_only_be_read_is_named(self):
        folder = self.make("refused")
        specification = self.specification("refused")
        specification.write_block("v", [1, 0], np.ones((2, 2), "i4"))
        before = self.everything(folder)
        with h5py.File(folder / "a.h5", "r", locking=True):
            with self.assertRaisesRegex(AssertionError, "a.h5|no source"):
                self.edit(specification, folder / "v.h5")
        self.assertEqual(self.everything(folder), before)

    def test_external_data_grow_and_shrink(self):
        folder, first = self.directory, np.arange(12.0).reshape(3, 4)
        later = -np.arange(20.0).reshape(5, 4)
        raw = [folder / "a.bin", folder / "b.bin"]
        pieces = [{"file": str(raw[0]), "offset": 8, "size": 80}, {"file": str(raw[1])}]
        specification = self.specification("external")
        specification.create("dense", "d", "<f8", (3, 4), maxshape=[None, 4], external=pieces)
        specification.op("write", path="d", data=specification.store(first))
        specification.op("resize", path="d", shape=[8, 4])
        specification.op("reopen")
        specification.write_block("d", [3, 0], later)
        specification.op("resize", path="d", shape=[7, 4])
        path = self.write(specification)
        wanted = np.vstack([first, later])
        with h5py.File(path, "r+") as file:
            self.assertEqual(file["d"].maxshape, (None, 4))
            np.testing.assert_array_equal(file["d"][()], wanted[:7])
            file["d"].id.set_extent((8, 4))
            np.testing.assert_array_equal(file["d"][()], wanted)
            file["d"].id.set_extent((10, 4))
            file["d"][9] = 5
        self.assertEqual(raw[0].read_bytes()[8:88] + raw[1].read_bytes()[:176], wanted.tobytes())
        manifest = self.read(path)
        self.assertTrue((manifest.array(self.found(manifest, "/d"))[9] == 5).all())

    def test_virtual_datasets_change_their_extent(self):
        folder = self.make("resized")
        layout = h5py.VirtualLayout((4, 5), "i4", maxshape=(9, 5))
        layout[:4] = h5py.VirtualSource("a.h5", "x", (8, 5))[:4]
        with h5py.File(folder / "v.h5", "r+") as file:
            file.create_virtual_dataset("r", layout, fillvalue=-3)
        specification = self.specification("resized")
        specification.op("resize", path="r", shape=[6, 5])
        self.edit(specification, folder / "v.h5")
        wanted = np.full((6, 5), -3)
        wanted[:4] = np.arange(20).reshape(4, 5)
        with h5py.File(folder / "v.h5", "r+") as file:
            np.testing.assert_array_equal(file["r"][()], wanted)
            file["r"].id.set_extent((5, 5))
            np.testing.assert_array_equal(file["r"][()], wanted[:5])
            # All parts must stay inside.
            with self.assertRaises(RuntimeError):
                file["r"].id.set_extent((2, 5))
        specification = self.specification("too small")
        specification.op("resize", path="r", shape=[2, 5])
        with self.assertRaisesRegex(AssertionError, "does not contain all parts"):
            self.edit(specification, folder / "v.h5")


if __name__ == "__main__":
    unittest.main()
