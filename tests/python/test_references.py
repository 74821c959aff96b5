"""References that h5py wrote, followed by Pumice."""

import json

import h5py
import numpy as np

from interop import InteropCase


class References(InteropCase):
    def followed(self, path, name):
        out = self.directory / "references.json"
        self.run_interop("references", path, name, out)
        return json.loads(out.read_text())

    def write(self, libver):
        path = self.directory / f"{libver}.h5"
        with h5py.File(path, "w", libver=libver) as file:
            rng = np.random.default_rng(5)
            data = file.create_dataset("group/data", data=rng.normal(size=(12, 9)), chunks=(5, 4))
            line = file.create_dataset("line", data=np.arange(30.0))
            file["alias"] = data
            file["kind"] = np.dtype("<f4")
            objects = [data.ref, file.ref, file["group"].ref, None, file["kind"].ref, line.ref]
            made = file.create_dataset("objects", (len(objects),), dtype=h5py.ref_dtype)
            for place, reference in enumerate(objects):
                if reference is not None:
                    made[place] = reference
            regions = [
                data.regionref[2:7, 1:9:3],
                data.regionref[...],
                data.regionref[np.arange(108).reshape(12, 9) % 7 == 0],
                None,
                line.regionref[3:20:4],
                data.regionref[:, [1, 2, 6]],
            ]
            made = file.create_dataset("regions", (len(regions),), dtype=h5py.regionref_dtype)
            for place, reference in enumerate(regions):
                if reference is not None:
                    made[place] = reference
        return path

    def test_objects(self):
        for libver in ("earliest", "latest"):
            with self.subTest(libver=libver):
                path = self.write(libver)
                found = self.followed(path, "objects")
                with h5py.File(path) as file:
                    for entry, reference in zip(found, file["objects"][...], strict=True):
                        if not reference:
                            self.assertIsNone(entry)
                            continue
                        self.assertEqual(file[entry["path"]], file[reference])
                kinds = [entry and entry["kind"] for entry in found]
                wanted = ["dataset", "group", "group", None, "datatype", "dataset"]
                self.assertEqual(kinds, wanted)

    def test_regions(self):
        for libver in ("earliest", "latest"):
            with self.subTest(libver=libver):
                path = self.write(libver)
                found = self.followed(path, "regions")
                with h5py.File(path) as file:
                    for entry, reference in zip(found, file["regions"][...], strict=True):
                        if not reference:
                            self.assertIsNone(entry)
                            continue
                        dataset = file[reference]
                        self.assertEqual(file[entry["path"]], dataset)
                        space = h5py.h5r.get_region(reference, file.id)
                        self.assertEqual(len(entry["cells"]), space.get_select_npoints())
                        whole = dataset[...]
                        selected = np.zeros(whole.shape, bool)
                        selected.flat[entry["cells"]] = True
                        wanted = np.zeros(whole.shape, bool)
                        for cell in self.cells(space, whole.shape):
                            wanted[cell] = True
                        np.testing.assert_array_equal(selected, wanted)
                        np.testing.assert_array_equal(entry["values"], whole[wanted])

    def cells(self, space, shape):
        kind = space.get_select_type()
        if kind == h5py.h5s.SEL_ALL:
            return list(np.ndindex(*shape))
        if kind == h5py.h5s.SEL_POINTS:
            return [tuple(point) for point in space.get_select_elem_pointlist()]
        cells = []
        for low, high in space.get_select_hyper_blocklist():
            axes = [range(a, b + 1) for a, b in zip(low, high, strict=True)]
            grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
            cells += [tuple(cell) for cell in grid.reshape(-1, len(shape))]
        return cells


if __name__ == "__main__":
    import unittest

    unittest.main()
