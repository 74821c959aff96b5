"""Errors in the connector's callbacks reach programs as those of HDF5; the file is as at its last flush."""

import unittest

import h5py
import numpy as np

from vol import Connector

# What these programs begin with: a list of things that must fail, each with an error of HDF5's.
MUST_FAIL = '''
    import resource

    def fails(*actions):
        for at, action in enumerate(actions):
            try:
                action()
            except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
                assert str(error), at
                continue
            raise AssertionError(f"number {at} did not fail")
'''


def make(path):
    """A file with an object of each kind."""
    with h5py.File(path, "w", libver="latest") as file:
        file.attrs["title"] = "a title"
        group = file.create_group("group", track_order=True)
        group.create_dataset("chunked", data=np.arange(5000).reshape(50, 100), chunks=(10, 10), compression="gzip",
                             shuffle=True, fletcher32=True, maxshape=(None, 100))
        group.create_dataset("compact", data=[1, 2, 3])
        file["texts"] = ["one", "two", "a longer one"]
        file["texts"].attrs.create("list", ["x", "y"], dtype=h5py.string_dtype())
        file["compound"] = np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])
        file["type"] = np.dtype("i2")
        file["soft"] = h5py.SoftLink("/group/chunked")
        file["reference"] = file["group"].ref
        for number in range(40):
            file.create_group(f"many/{number:03}").attrs["number"] = number


class Errors(Connector):
    def setUp(self):
        super().setUp()
        make(self.path)

    def run_checks(self, text, *arguments):
        return self.run_program(text, *arguments, head=MUST_FAIL)

    def test_a_file_that_is_not_there(self):
        self.run_checks("""
            absent = path + ".absent"
            access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
            fails(lambda: h5py.File(absent, "r"), lambda: h5py.File(absent, "r+"), lambda: h5py.h5f.is_hdf5(absent.encode()),
                  lambda: h5py.File(os.path.join(absent, "a.h5"), "w"), lambda: h5py.File(path, "x"),
                  lambda: h5py.File(os.path.dirname(path), "r"), lambda: h5py.File(os.path.dirname(path), "w"))
            library = libhdf5("h5py")
            assert library.H5Fdelete(absent.encode(), ctypes.c_int64(access.id)) < 0
            with h5py.File(path, "r+") as file:
                file["outside"] = h5py.ExternalLink(absent, "/x")
                file["nowhere"] = h5py.SoftLink("/no/where")
                fails(lambda: file["outside"], lambda: file["nowhere"], lambda: file["group"]["absent"],
                      lambda: file.attrs["absent"], lambda: file["group"].move("absent", "x"),
                      lambda: file.__delitem__("absent"), lambda: file.copy("absent", "x"),
                      lambda: file.attrs.__delitem__("absent"), lambda: h5py.h5o.open(file.id, b"absent"),
                      lambda: h5py.h5g.get_objinfo(file.id, b"absent"), lambda: file.id.links.get_info(b"absent"),
                      lambda: h5py.h5a.rename(file.id, b"absent", b"x"), lambda: h5py.h5t.open(file.id, b"group"))
            """)

    def test_nothing_is_changed_through_a_file_that_is_open_for_reading(self):
        before = self.path.read_bytes()
        self.run_checks("""
            with h5py.File(path, "r") as file:
                chunked, group = file["group/chunked"], file["group"]
                fails(lambda: file.create_group("x"), lambda: file.create_dataset("x", data=1),
                      lambda: file.__setitem__("x", np.dtype("f4")), lambda: file.__setitem__("x", h5py.SoftLink("/")),
                      lambda: file.__setitem__("x", h5py.ExternalLink("x", "/")), lambda: file.__setitem__("x", group),
                      lambda: file.__delitem__("group"), lambda: file.move("group", "x"), lambda: file.copy("group", "x"),
                      lambda: file.attrs.__setitem__("x", 1), lambda: file.attrs.__delitem__("title"),
                      lambda: file.attrs.modify("title", "other"), lambda: h5py.h5a.rename(file.id, b"title", b"x"),
                      lambda: chunked.__setitem__((0, 0), 5), lambda: chunked.resize((60, 100)),
                      lambda: chunked.id.write_direct_chunk((0, 0), b"x"), lambda: file["texts"].__setitem__(0, "x"),
                      lambda: h5py.h5o.set_comment(file.id, b"x"), lambda: file.id.start_swmr_write())
                file.flush()
                assert int(chunked[1, 1]) == 101
            """)
        self.assertEqual(self.path.read_bytes(), before)

    def test_what_a_limit_does_not_let_through_leaves_the_file_as_at_its_last_flush(self):
        for durability in ("process", "power"):
            make(self.path)
            self.run_checks("""
                file = h5py.File(path, "r+")
                file["group/chunked"][0, 0] = 77
                file.flush()
                limit = os.path.getsize(path) + (64 << 10)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                def write():
                    made = file.create_dataset("large", shape=(64, 1 << 14), chunks=(1, 1 << 14), dtype="f8")
                    for row in range(64):
                        made[row] = np.random.default_rng(row).random(1 << 14)
                    file.flush()
                fails(write)
                fails(file.flush)
                # Reading goes on.
                assert int(file["group/chunked"][0, 0]) == 77
                library = libhdf5("h5py")
                first, second = (library.H5Fclose(ctypes.c_int64(file.id.id)) for _ in range(2))
                os._exit(0)
                """)
            with h5py.File(self.path, "r") as file:
                self.assertNotIn("large", file, durability)
                self.assertEqual(int(file["group/chunked"][0, 0]), 77)
                self.assertEqual(file["group/chunked"][1:].sum(), np.arange(100, 5000).sum())

    def test_damaged_files_give_errors_and_no_crash(self):
        found = self.run_checks("""
            original = open(path, "rb").read()
            random = np.random.default_rng(11)

            def look(file):
                file.attrs.items()
                dict(file.attrs)
                def visit(name, node):
                    list(node.attrs.items())
                    if isinstance(node, h5py.Dataset):
                        node.shape, node.dtype, node.chunks, node.compression, node.id.get_storage_size()
                        node[()]
                        if node.chunks:
                            node.id.get_num_chunks() and node.id.get_chunk_info(0)
                    else:
                        len(node), [node.get(one, getlink=True) for one in node]
                file.visititems(visit)
                for name in ("soft", "reference", "group/chunked", "texts", "type", "many/007"):
                    h5py.h5o.get_info(file[name].id)
                file[file["reference"][()]]

            failed = opened = 0
            for trial in range(int(sys.argv[2])):
                bytes_ = bytearray(original)
                for _ in range(1 + trial % 3):
                    at = int(random.integers(len(bytes_)))
                    bytes_[at] = int(random.integers(256))
                if trial % 10 == 9:
                    del bytes_[int(random.integers(len(bytes_))):]
                with open(path, "wb") as changed:
                    changed.write(bytes_)
                try:
                    with h5py.File(path, "r") as file:
                        opened += 1
                        look(file)
                except (OSError, ValueError, KeyError, RuntimeError, TypeError, UnicodeDecodeError) as error:
                    assert str(error)
                    assert "a defect" not in str(error), error
                    failed += 1
            print(failed, opened)
            """, 400)
        failed, opened = map(int, found.split())
        self.assertTrue(failed > 40 and opened > 100, found)


if __name__ == "__main__":
    unittest.main()
