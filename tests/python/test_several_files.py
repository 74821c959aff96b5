"""Files that consist of several (family, split), written by h5py, read by Pumice."""

import subprocess

import h5py
import numpy as np

from interop import InteropCase


def fill(file):
    rng = np.random.default_rng(3)
    file["contiguous"] = rng.integers(0, 1000, (40, 50), dtype="<i4")
    packed = rng.integers(0, 9, (60, 70), dtype="<i2")
    file.create_dataset("group/chunked", data=packed, chunks=(16, 16), compression="gzip")
    file["group"].attrs["numbers"] = np.arange(20)
    file["words"] = np.array([b"pumice", b"is", b"light"])


class SeveralFiles(InteropCase):
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

    def test_a_missing_member_is_named(self):
        path = self.directory / "split"
        with h5py.File(path, "w", driver="split") as file:
            fill(file)
        (self.directory / "split-r.h5").unlink()
        manifest = self.read(path)
        self.assertEqual(manifest.objects["/contiguous"]["kind"], "error")
        self.assertIn("split-r.h5", manifest.objects["/contiguous"]["message"])


if __name__ == "__main__":
    import unittest

    unittest.main()
