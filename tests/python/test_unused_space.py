"""Space of what was deleted in earlier openings, in files that do not remember it: Pumice uses it again, and h5py finds
everything that is there."""

import shutil
import subprocess

import h5py
import numpy as np

from interop import InteropCase

OPENINGS = 50


class UnusedSpace(InteropCase):
    def furnish(self, path, libver, user_block=0):
        """A file of h5py with everything that can refer to something else."""
        options = {"userblock_size": user_block} if user_block else {}
        with h5py.File(path, "w", libver=libver, track_order=libver != "earliest", **options) as file:
            kept = file.create_group("kept")
            kept["contiguous"] = np.arange(1000)
            kept.create_dataset("packed", data=np.arange(5000), chunks=(128,), compression="gzip")
            kept.create_dataset("grown", data=np.arange(300), chunks=(7,), maxshape=(None,))
            kept.create_dataset("both", data=np.ones((20, 20)), chunks=(3, 3), maxshape=(None, None))
            kept["strings"] = [f"word {number}" * number for number in range(60)]
            kept["scale"] = np.arange(1000)
            kept["scale"].make_scale("x")
            kept["contiguous"].dims[0].attach_scale(kept["scale"])
            kept["type"] = np.dtype([("a", "i4"), ("b", "f8")])
            typed = kept.create_dataset("typed", (10,), dtype=kept["type"])
            typed.attrs["units"] = "metres"
            typed.attrs.create("record", np.zeros(3, kept["type"].dtype), dtype=kept["type"])
            # The type has no link any more, and those who use it keep it.
            del kept["type"]
            for number in range(30):
                kept.attrs[f"attribute {number}"] = f"value {number}" * number
                many = kept.create_group(f"groups/{number:04}/inside")
                many.attrs["list"] = np.arange(number)
            # An object that only a reference leads to: it holds itself.
            ring = file.create_group("ring")
            ring["itself"] = ring
            ring["data"] = np.arange(500)
            pair = [ring["data"].ref, kept.ref]
            kept.create_dataset("references", data=pair, dtype=h5py.ref_dtype)
            regions = kept.create_dataset("regions", (2,), dtype=h5py.regionref_dtype)
            regions[0] = kept["packed"].regionref[10:20]
            del file["ring"]
            kept["soft"] = h5py.SoftLink("/kept/packed")
            kept["outside"] = h5py.ExternalLink("elsewhere.h5", "/x")
            if libver != "earliest":
                layout = h5py.VirtualLayout((1000,), "i8")
                layout[:] = h5py.VirtualSource(".", "/kept/contiguous", (1000,))
                file.create_virtual_dataset("kept/virtual", layout)

    def check(self, path, libver, message):
        with h5py.File(path) as file:
            kept = file["kept"]
            np.testing.assert_array_equal(kept["contiguous"], np.arange(1000), message)
            np.testing.assert_array_equal(kept["packed"], np.arange(5000), message)
            np.testing.assert_array_equal(kept["grown"], np.arange(300), message)
            np.testing.assert_array_equal(kept["both"], np.ones((20, 20)), message)
            words = [f"word {number}" * number for number in range(60)]
            self.assertEqual(list(kept["strings"].asstr()), words, message)
            scale = kept["contiguous"].dims[0][0]
            np.testing.assert_array_equal(scale, np.arange(1000), message)
            self.assertEqual(kept["typed"].dtype.names, ("a", "b"), message)
            self.assertEqual(len(kept["typed"].attrs["record"]), 3, message)
            for number in range(30):
                text = f"value {number}" * number
                self.assertEqual(kept.attrs[f"attribute {number}"], text, message)
                group = kept[f"groups/{number:04}/inside"]
                np.testing.assert_array_equal(group.attrs["list"], np.arange(number), message)
            first, second = kept["references"]
            np.testing.assert_array_equal(file[first], np.arange(500), message)
            self.assertEqual(file[second], kept, message)
            region = kept["regions"][0]
            np.testing.assert_array_equal(file[region][region], np.arange(10, 20), message)
            if libver != "earliest":
                np.testing.assert_array_equal(kept["virtual"], np.arange(1000), message)
        # Debian's tool reads the older form.
        if libver == "earliest" and shutil.which("h5dump"):
            done = subprocess.run(["h5dump", str(path)], capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, f"{message}: {done.stderr[-300:]}")

    def test_files_do_not_grow_over_openings(self):
        for libver in ("earliest", "latest"):
            for user_block in (0, 1024):
                with self.subTest(libver=libver, user_block=user_block):
                    path = self.directory / f"{libver}-{user_block}.h5"
                    self.furnish(path, libver, user_block)
                    sizes = []
                    for step in range(OPENINGS):
                        if step:
                            gone = self.specification(f"{path.stem}-gone{step}")
                            gone.op("delete", path=f"d{step - 1}")
                            self.edit(gone, path)
                        new = self.specification(f"{path.stem}-new{step}")
                        values = np.arange(4000 + step * 131 % 1000, dtype="i4") * step
                        chunks = {"chunks": [500]} if step % 2 else {}
                        new.dense(f"d{step}", values, **chunks)
                        self.edit(new, path)
                        with h5py.File(path) as file:
                            np.testing.assert_array_equal(file[f"d{step}"], values)
                        if step % 10 == 9:
                            self.check(path, libver, f"{libver}, step {step}")
                        sizes.append(path.stat().st_size)
                    self.assertLess(max(sizes), sizes[0] + 40_000, sizes)
                    self.assertLess(sizes[-1], max(sizes[:10]) + 8_000, sizes)

    def test_what_h5py_deleted_is_used(self):
        for libver in ("earliest", "latest"):
            with self.subTest(libver=libver):
                path = self.directory / f"deleted-{libver}.h5"
                with h5py.File(path, "w", libver=libver) as file:
                    file["hole"] = np.arange(1_000_000, dtype="i4")
                    file["last"] = np.arange(10)
                with h5py.File(path, "r+") as file:
                    del file["hole"]
                size = path.stat().st_size
                new = self.specification(f"new-{libver}")
                new.dense("new", np.arange(990_000, dtype="i4"))
                self.edit(new, path)
                self.assertLess(path.stat().st_size, size + 2000)
                with h5py.File(path) as file:
                    np.testing.assert_array_equal(file["new"], np.arange(990_000))
                    np.testing.assert_array_equal(file["last"], np.arange(10))
