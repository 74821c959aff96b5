"""References and attributes of variable length that Pumice writes, read by h5py."""

import h5py
import numpy as np
from h5py import h5o

from interop import InteropCase
from varlen import pack_all, to_json

TEXT = h5py.string_dtype()


class WrittenReferences(InteropCase):
    def base(self):
        spec = self.specification()
        spec.dense("data", np.arange(60, dtype="<i4").reshape(6, 10))
        spec.group("group/inner")
        spec.attribute("group", "mark", np.array(3))
        return spec

    def test_references_to_objects_and_regions(self):
        spec = self.base()
        objects = [{"path": "data"}, {}, {"path": "group"}, {"path": "/"}, {"path": "group/inner"}]
        regions = [
            {"path": "data", "start": [1, 2], "count": [3, 4]},
            {},
            {"path": "data", "start": [0, 0], "count": [6, 10]},
        ]
        spec.op("references", path="objects", meaning="object", targets=objects)
        spec.op("references", path="regions", meaning="region", targets=regions)
        spec.op("reference_attribute", path="group", name="objects", targets=objects)
        spec.op("reference_attribute", path="data", name="regions", targets=regions)
        path = self.write(spec)
        values = np.arange(60).reshape(6, 10)
        with h5py.File(path, "r") as file:
            for found in (file["objects"][()], file["group"].attrs["objects"]):
                names = [file[reference].name if reference else None for reference in found]
                self.assertEqual(names, ["/data", None, "/group", "/", "/group/inner"])
            for found in (file["regions"][()], file["data"].attrs["regions"]):
                self.assertFalse(found[1])
                self.assertEqual(file["data"][found[0]].tolist(), values[1:4, 2:6].tolist())
                self.assertEqual(file["data"][found[2]].size, 60)

    def test_libhdf5_follows_references_of_the_newer_type(self):
        """h5py cannot show them, but libhdf5 copies what they lead to."""
        spec = self.base()
        targets = [
            {"path": "group"},
            {},
            {"path": "data", "start": [1, 2], "count": [3, 4]},
            {"path": "group", "attribute": "mark"},
        ]
        spec.op("references", path="any", meaning="any", targets=targets)
        spec.op("reference_attribute", path="data", name="any", targets=targets)
        path, into = self.write(spec), self.directory / "into.h5"
        plist = h5py.h5p.create(h5py.h5p.OBJECT_COPY)
        plist.set_copy_object(h5o.COPY_EXPAND_REFERENCE_FLAG)
        for name in (b"any", b"data"):
            with h5py.File(path, "r") as file, h5py.File(into, "w") as target:
                h5o.copy(file.id, name, target.id, b"copy", plist)
            with h5py.File(into, "r") as target:
                found = {key: target[key] for key in target if key != "copy"}
                groups = [item for item in found.values() if isinstance(item, h5py.Group)]
                self.assertEqual([list(group) for group in groups], [["inner"]])
                self.assertEqual(groups[0].attrs["mark"], 3)

    def test_attributes_of_variable_length(self):
        pair = np.dtype([("id", "<i4"), ("name", TEXT)])
        cases = {
            "text": (TEXT, "grün", ()),
            "empty": (TEXT, "", ()),
            "texts": (TEXT, ["a", "", "ccc" * 50], (3,)),
            "rows": (h5py.vlen_dtype("<i2"), [np.arange(3), np.arange(0), np.arange(7)], (3,)),
            "pairs": (pair, [(1, "one"), (2, "two")], (2,)),
            "many": (TEXT, [f"text number {n}" for n in range(3000)], (3000,)),
        }
        spec = self.specification()
        spec.group("g")
        for round_ in range(3):
            for name, (dtype, value, shape) in cases.items():
                kind = to_json(dtype)
                data = pack_all(kind, value if shape else [value])
                raw = spec.store(np.frombuffer(data, "u1"))
                spec.op("attribute", path="g", name=name, dtype=kind, shape=list(shape), data=raw)
            spec.op("reopen" if round_ else "flush", path="/")
        path = self.write(spec)
        with h5py.File(path, "r+") as file:
            attributes = file["g"].attrs
            self.assertEqual(attributes["text"], "grün")
            self.assertEqual(attributes["empty"], "")
            self.assertEqual(list(attributes["texts"]), cases["texts"][1])
            self.assertEqual(list(attributes["many"]), cases["many"][1])
            rows = [row.tolist() for row in attributes["rows"]]
            self.assertEqual(rows, [row.tolist() for row in cases["rows"][1]])
            self.assertEqual([p["id"] for p in attributes["pairs"]], [1, 2])
            self.assertEqual([bytes(p["name"]) for p in attributes["pairs"]], [b"one", b"two"])
            attributes["text"] = "by h5py"
            del attributes["many"]
        with h5py.File(path, "r") as file:
            self.assertEqual(file["g"].attrs["text"], "by h5py")
            self.assertEqual(list(file["g"].attrs["texts"]), cases["texts"][1])


class Layouts(InteropCase):
    def test_external_and_virtual_datasets(self):
        spec = self.specification()
        values = np.arange(24, dtype="<f8").reshape(4, 6)
        raw = [self.directory / "a.bin", self.directory / "b.bin"]
        pieces = [{"file": str(raw[0]), "offset": 16, "size": 64}, {"file": str(raw[1])}]
        spec.create("dense", "external", "<f8", (4, 6), external=pieces)
        spec.op("write", path="external", data=spec.store(values))
        spec.dense("own", values[0])

        def part(target, file, dataset, source):
            block = [{"start": s, "count": c} for s, c in (target, source)]
            return {"target": block[0], "file": file, "dataset": dataset, "source": block[1]}

        parts = [
            part(([0, 0], [1, 6]), ".", "own", ([0], [6])),
            part(([2, 1], [2, 4]), "out.h5", "external", ([1, 0], [2, 4])),
            part(([5, 0], [1, 6]), "missing.h5", "nothing", ([0], [6])),
        ]
        spec.create("dense", "virtual", "<f8", (6, 6), parts=parts, fill=-1.0)
        path = self.write(spec)
        wanted = np.full((6, 6), -1.0)
        wanted[0] = values[0]
        wanted[2:4, 1:5] = values[1:3, :4]
        with h5py.File(path, "r") as file:
            self.assertEqual(file["external"][()].tolist(), values.tolist())
            self.assertEqual([entry[1] for entry in file["external"].external], [16, 0])
            self.assertTrue(file["virtual"].is_virtual)
            self.assertEqual(file["virtual"][()].tolist(), wanted.tolist())
        self.assertEqual(raw[0].read_bytes()[16:], values.tobytes()[:64])
        self.assertEqual(raw[1].read_bytes(), values.tobytes()[64:])
        manifest = self.read(path)
        for name, array in (("/external", values), ("/virtual", wanted)):
            found = manifest.array(self.found(manifest, name))
            self.assertEqual(found.tolist(), array.tolist())

    def test_files_for_older_releases_have_older_indexes(self):
        for version, layout in (("earliest", 3), ("v108", 3), ("v110", 4)):
            spec = self.specification(version)
            spec.op("file", path=f"{version}.h5", libver=version)
            values = np.arange(600, dtype="<i4").reshape(20, 30)
            gzip = [{"id": 1, "parameters": [3]}]
            for name, options in {
                "plain": {},
                "filtered": {"filters": gzip},
                "grows": {"maxshape": [None, 30], "filters": gzip},
                "early": {"allocation": "early"},
            }.items():
                spec.dense(name, values, chunks=[7, 8], **options)
            spec.op("resize", path="grows", shape=[40, 30])
            spec.op("reopen", path="/")
            spec.write_block("grows", (20, 0), values)
            spec.dense("timed", values, track_times=True)
            self.write(spec, f"unused-{version}.h5")
            with h5py.File(self.directory / f"{version}.h5", "r+") as file:
                for name in ("plain", "filtered", "early", "timed"):
                    self.assertEqual(file[name][()].tolist(), values.tolist())
                self.assertEqual(file["grows"][20:].tolist(), values.tolist())
                # Older headers have a message for it, which this does not tell.
                tracked = file["timed"].id.get_create_plist().get_obj_track_times()
                self.assertTrue(tracked or version == "earliest")
                file["grows"].resize((50, 30))
                file["grows"][40:] = 7
            raw = (self.directory / f"{version}.h5").read_bytes()
            self.assertEqual(b"TREE" in raw, layout == 3)
            self.assertEqual(b"EAHD" in raw, layout == 4)
            manifest = self.read(self.directory / f"{version}.h5")
            found = manifest.array(self.found(manifest, "/grows"))
            self.assertTrue((found[40:] == 7).all())

    def test_one_value_for_all_selected_cells(self):
        spec = self.specification()
        spec.create("dense", "d", "<f4", (50, 60), chunks=[7, 9])
        spec.op("write_scalar", path="d", start=[3, 4], count=[20, 30], value=2.5)
        path = self.write(spec)
        wanted = np.zeros((50, 60), "<f4")
        wanted[3:23, 4:34] = 2.5
        with h5py.File(path, "r") as file:
            np.testing.assert_array_equal(file["d"][()], wanted)
