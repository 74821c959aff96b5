"""Sparse files of the independent builder, read by Pumice cell by cell."""

import numpy as np

from interop import InteropCase, Manifest, dtype_from_json
from sparse_cases import all_cases, inside, older_cases, random_spelling
from structured_builder import FileBuilder


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
