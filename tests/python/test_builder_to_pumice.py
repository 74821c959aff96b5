"""Sparse files of the independent builder, read by Pumice cell by cell."""

import numpy as np

from interop import InteropCase, Manifest, dtype_from_json
from sparse_cases import all_cases, inside, older_cases, random_spelling
from structured_builder import FileBuilder, Sparse


FILES = 1500


class FilesOfTheBuilder(InteropCase):
    def test_thousands_of_random_spellings_are_read(self):
        rng = np.random.default_rng(9)
        folder, out = self.directory / "files", self.directory / "read"
        folder.mkdir()
        specs = [random_spelling(rng) for _ in range(FILES)]
        for number, spec in enumerate(specs):
            builder = FileBuilder(superblock=2 + number % 2)
            builder.sparse("d", spec)
            builder.save(folder / f"f{number}.h5")
        self.run_interop("read", folder, out)
        for number, spec in enumerate(specs):
            with self.subTest(file=number, spec=spec):
                self.compare(Manifest(out / f"f{number}"), "/d", spec)

    def test_every_spelling_of_a_sparse_dataset_is_read(self):
        cases = all_cases() | dict(older_cases(np.random.default_rng(8)))
        manifests = {}
        for number, (name, spec) in enumerate(cases.items()):
            # Eight to a file: few runs of the program, few links in a group.
            if number % 8 == 0:
                builder, path = FileBuilder(superblock=2 + number // 8 % 2), f"file{number}.h5"
                builder.dense("plain", np.arange(10.0))
                manifests[path] = (builder, [])
            builder.sparse(f"group/d{number}", spec)
            manifests[path][1].append((name, f"/group/d{number}", spec))
        for path, (builder, members) in manifests.items():
            builder.save(self.directory / path)
            manifest = self.read(self.directory / path)
            np.testing.assert_array_equal(
                manifest.array(self.found(manifest, "/plain")), np.arange(10.0)
            )
            for name, place, spec in members:
                with self.subTest(name):
                    self.compare(manifest, place, spec)

    def test_cells_beyond_the_extent_do_not_come_back_when_it_grows(self):
        """Other writers leave them in chunks at the edge."""
        rng, whole = np.random.default_rng(10), np.indices((8, 8)).reshape(2, -1).T
        # By turns along one axis and along both, and back in between.
        steps = [[(8, 7), (8, 8)], [(5, 8), (8, 8)], [(8, 8)], [(3, 8), (8, 8)], [(6, 7), (8, 8)]]
        for number, extents in enumerate(steps * 4):
            chosen = whole[np.sort(rng.choice(64, 40, replace=False))]
            values = np.arange(len(chosen), dtype="<i4") + 1
            spec = Sparse((5, 7), (4, 4), chosen, values, maximum=(None, None))
            builder, path = FileBuilder(), self.directory / f"beyond{number}.h5"
            builder.sparse("d", spec)
            builder.save(path)
            edit = self.specification(f"beyond{number}")
            smallest = np.minimum((5, 7), np.min(extents, axis=0))
            for extent in extents:
                edit.op("resize", path="/d", shape=list(extent))
                if number % 2:
                    edit.op("reopen", path="/")
            self.edit(edit, path)
            manifest = self.read(path)
            with self.subTest(extents=extents):
                found = manifest.cells(self.found(manifest, "/d"))
                kept = (chosen < smallest).all(axis=1)
                np.testing.assert_array_equal(found[0], chosen[kept])
                np.testing.assert_array_equal(found[1], values[kept])

    def compare(self, manifest, place, spec):
        entry = self.found(manifest, place)
        self.assertEqual(entry["kind"], "sparse")
        self.assertEqual(entry["shape"], list(spec.shape))
        self.assertEqual(entry["maxshape"], list(spec.maximum or spec.shape))
        self.assertEqual(entry["chunks"], list(spec.chunk))
        self.assertEqual(dtype_from_json(entry["dtype"]), spec.dtype())
        coordinates, values = manifest.cells(entry)
        wanted_coordinates, wanted_values = inside(spec)
        np.testing.assert_array_equal(coordinates, wanted_coordinates)
        self.same_bytes(values, wanted_values)
        if spec.fill is not None:
            fill = np.array(spec.fill, spec.dtype()).tobytes().hex()
            self.assertEqual(entry["fill"], fill)
        attributes = {attribute["name"]: attribute for attribute in entry["attributes"]}
        self.assertEqual(set(attributes), set(spec.attributes))
        for name, value in spec.attributes.items():
            np.testing.assert_array_equal(manifest.array(attributes[name]), value)
