"""Files that Pumice wrote or changed, and that h5py changes next: nothing of them is lost."""

import subprocess

import h5py
import numpy as np

from interop import InteropCase, program

FORMATS = ["earliest", "v108", "v110"]
# Two of these in one header are more than libhdf5 can have unused side by side.
LARGE = 4200


class ForeignEdits(InteropCase):
    def sound(self, path):
        command = program("PUMICE", "pumice")
        if command is None:
            self.skipTest("pumice is not built")
        done = subprocess.run([command, "check", path], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def names_left(self, path, names):
        """h5py changes the header of `d`, and finds its attributes again."""
        with h5py.File(path, "r+") as file:
            file["another link"] = file["d"]
        with h5py.File(path, "r+") as file:
            file["d"].attrs["late"] = 1
            messages = h5py.h5o.get_info(file["d"].id).hdr.nmesgs
            self.assertLess(messages, 20, "zeros taken for messages")
        with h5py.File(path) as file:
            self.assertEqual(set(file["d"].attrs), {*names, "late"})
            for name in names:
                np.testing.assert_array_equal(file["d"].attrs[name], np.arange(LARGE))
        self.sound(path)

    def removing(self, names, removed):
        for libver in FORMATS:
            with self.subTest(libver=libver, names=names):
                specification = self.specification(f"{libver}-{len(names)}")
                specification.op("file", path="made.h5", libver=libver)
                specification.group("d")
                for name in names:
                    specification.attribute("d", name, np.arange(LARGE))
                for name in removed:
                    specification.op("reopen")
                    specification.op("remove_attribute", path="d", name=name)
                self.write(specification)
                path = specification.directory.parent / "made.h5"
                self.names_left(path, [name for name in names if name not in removed])

    def test_room_that_removed_attributes_leave(self):
        self.removing("AB", "B")
        self.removing("ABCDE", "AE")
        self.removing("ABCDE", "BCD")

    def test_first_blocks_that_become_too_long(self):
        spaces = [{}, {"fs_strategy": "page", "fs_persist": True, "fs_page_size": 4096}]
        for libver in FORMATS:
            for space in spaces:
                with self.subTest(libver=libver, **space):
                    path = self.directory / f"{libver}-{len(space)}.h5"
                    with h5py.File(path, "w", libver=libver, **space) as file:
                        group = file.create_group("from")
                        for name in "ABCDE":
                            group.attrs[name] = np.arange(LARGE)
                        # libhdf5 gives a copy one block for all of it.
                        file.copy("from", "d")
                        del file["from"]
                    for name in "CBE":
                        specification = self.specification(f"{path.stem}-{name}")
                        specification.op("remove_attribute", path="d", name=name)
                        self.edit(specification, path)
                    self.names_left(path, "AD")

    def test_links_with_long_names(self):
        for length in (30_000, 65_400):
            specification = self.specification(str(length))
            specification.op("file", path="links.h5", libver="v110")
            specification.group("x" * length)
            specification.group("b")
            specification.op("soft", path="s", target="t" * length)
            self.write(specification)
            path = specification.directory.parent / "links.h5"
            with h5py.File(path, "r+") as file:
                file["late"] = 1
            with h5py.File(path) as file:
                self.assertEqual(sorted(map(len, file)), [1, 1, 4, length])

    def test_copies_of_filters_without_names(self):
        specification = self.specification()
        nameless = {"id": 32000, "parameters": [4, 261, 80]}
        specification.dense("d", np.arange(100), chunks=[10], filters=[nameless])
        path = self.write(specification)
        with h5py.File(path, "r+") as file:
            file.copy("d", "copy")
        with h5py.File(path) as file:
            np.testing.assert_array_equal(file["copy"][:], np.arange(100))

    def test_copies_of_what_is_too_large_to_be_anywhere(self):
        path = self.directory / "vast.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("d", (2**40, 2**40), "i4")
        specification = self.specification()
        specification.op("copy", path="d", to="copy")
        self.edit(specification, path)
        with h5py.File(path) as file:
            self.assertEqual(file["copy"].shape, (2**40, 2**40))
            self.assertEqual(file["copy"].id.get_storage_size(), 0)
