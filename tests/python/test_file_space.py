"""Free space and its strategies: h5py and Pumice take turns with one file, each uses the room that the
other left, and both find everything that is there."""

import faulthandler
import itertools
import random
import shutil
import subprocess
import unittest

import h5py
import numpy as np

from interop import InteropCase

STRATEGIES = {
    "managers": {"fs_strategy": "fsm", "fs_persist": True},
    "managers with a threshold": {"fs_strategy": "fsm", "fs_persist": True, "fs_threshold": 100},
    "pages": {"fs_strategy": "page", "fs_persist": True, "fs_page_size": 4096},
    "small pages": {"fs_strategy": "page", "fs_persist": True, "fs_page_size": 1024},
    "forgotten pages": {"fs_strategy": "page", "fs_persist": False, "fs_page_size": 4096},
    "aggregation": {"fs_strategy": "aggregate"},
    "none": {"fs_strategy": "none"},
}


class Steady:
    """Draws that always give contiguous datasets."""

    def random(self):
        return 0.9


class FileSpace(InteropCase):
    def setUp(self):
        super().setUp()
        # libhdf5 may never come to the end of closing a file of small pages (docs/writing.md): that is
        # a failure, not a wait.
        faulthandler.dump_traceback_later(300, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def check(self, path, model, options, message):
        """Everything is there, for h5py (through a buffer of pages, if there are any) and the tools."""
        buffered = {"page_buf_size": 64 * 4096} if options["fs_strategy"] == "page" else {}
        with h5py.File(path, **buffered) as file:
            self.assertEqual(set(file), set(model), message)
            for name, array in model.items():
                self.same_bytes(file[name][...], array, f"{message}: {name}")
        for tool in (["h5stat", "-S"], ["h5dump", "-H"]):
            if shutil.which(tool[0]):
                done = subprocess.run([*tool, str(path)], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, f"{message}: {tool}: {done.stderr[-500:]}")

    def turn(self, draw, model):
        """What is deleted and what comes in its place."""
        gone = draw.sample(sorted(model), min(len(model), draw.randint(0, 4)))
        new = {}
        for number in range(draw.randint(1, 5)):
            size = draw.choice([3, 40, 500, 1500, 6000])
            values = np.array([draw.randrange(2**31) for _ in range(size)], "i4")
            new[f"d{draw.randrange(10**6)}-{number}"] = values
        return gone, new

    def with_pumice(self, path, gone, new, draw):
        specification = self.specification(f"spec{draw.random()}")
        for name in gone:
            specification.op("delete", path=name)
        for name, values in new.items():
            if draw.random() < 0.3:
                specification.op("flush", path="/")
            if draw.random() < 0.5 and len(values) > 100:
                specification.dense(name, values, chunks=[100], maxshape=[None])
            else:
                specification.dense(name, values)
            specification.attribute(name, "sum", values.sum())
        self.edit(specification, path)

    def with_h5py(self, path, gone, new, draw):
        with h5py.File(path, "r+") as file:
            for name in gone:
                del file[name]
            for name, values in new.items():
                chunks = (100,) if draw.random() < 0.5 and len(values) > 100 else None
                file.create_dataset(name, data=values, chunks=chunks)
                file[name].attrs["sum"] = values.sum()

    def new_file(self, path, options, libver, by_pumice):
        if by_pumice:
            specification = self.specification(f"new-{path.name}")
            specification.op("file", path=path.name, libver=libver, **options)
            self.write(specification, "other.h5")
        else:
            h5py.File(path, "w", libver=libver, **options).close()

    def test_both_use_the_room_that_the_other_left(self):
        for name, options in STRATEGIES.items():
            for by_pumice in (False, True):
                for libver in ("earliest", "latest"):
                    with self.subTest(strategy=name, by_pumice=by_pumice, libver=libver):
                        self.take_turns(name, options, libver, by_pumice)

    def take_turns(self, name, options, libver, by_pumice):
        draw = random.Random(f"{name}{libver}{by_pumice}")
        path = self.directory / f"{name}-{libver}-{by_pumice}.h5".replace(" ", "_")
        self.new_file(path, options, libver, by_pumice)
        model = {}
        for step in range(6):
            gone, new = self.turn(draw, model)
            writer = self.with_pumice if step % 2 else self.with_h5py
            writer(path, gone, new, draw)
            for old in gone:
                del model[old]
            model |= new
            self.check(path, model, options, f"{name}, {libver}, step {step}")
            if options["fs_strategy"] == "page":
                self.assertEqual(path.stat().st_size % options["fs_page_size"], 0)

    def replaced_size(self, path, writer, values):
        """The file's sizes as datasets of one size are deleted and written again."""
        draw, sizes = Steady(), []
        writer(path, [], {"keep": values[:10], "a": values}, draw)
        writer(path, [], {"b": values}, draw)
        for step in range(6):
            writer(path, ["ab"[step % 2]], {}, draw)
            writer(path, [], {"ab"[step % 2]: values}, draw)
            sizes.append(path.stat().st_size)
        return sizes

    def test_a_dataset_in_place_of_one_of_the_same_size_does_not_grow_the_file(self):
        values = np.arange(20000, dtype="i4")
        for name in ("managers", "pages"):
            for by_pumice in (False, True):
                for writer in (self.with_pumice, self.with_h5py):
                    with self.subTest(strategy=name, by_pumice=by_pumice, writer=writer.__name__):
                        path = self.directory / f"{name}-{by_pumice}-{writer.__name__}.h5"
                        self.new_file(path, STRATEGIES[name], "latest", by_pumice)
                        sizes = self.replaced_size(path, writer, values)
                        # Lists of free sections come and go.
                        self.assertLess(max(sizes), 2 * values.nbytes + 40000, sizes)
                        self.assertLess(max(sizes) - min(sizes), values.nbytes / 8, sizes)

    def test_libhdf5_counts_the_free_space_that_pumice_remembers(self):
        for name in ("managers", "pages"):
            with self.subTest(strategy=name):
                path = self.directory / f"{name}.h5"
                self.new_file(path, STRATEGIES[name], "latest", True)
                values = np.arange(20000, dtype="i4")
                specification = self.specification(f"count-{name}")
                for dataset in "abc":
                    specification.dense(dataset, values)
                specification.op("flush", path="/")
                specification.op("delete", path="b")
                self.edit(specification, path)
                with h5py.File(path, "r+") as file:
                    self.assertGreaterEqual(file.id.get_freespace(), values.nbytes)
                    before = path.stat().st_size
                    file["b"] = values
                # libhdf5's own list of free sections may take a little.
                self.assertLess(path.stat().st_size, before + 4096)
                with h5py.File(path) as file:
                    for dataset in "abc":
                        self.same_bytes(file[dataset][...], values)

    def test_room_in_pages_of_any_size_is_used_after_reopening(self):
        values = np.arange(20000, dtype="i4")
        for page in (512, 600, 1024, 2048, 65536):
            with self.subTest(page=page):
                path = self.directory / f"{page}.h5"
                options = {"fs_strategy": "page", "fs_persist": True, "fs_page_size": page}
                self.new_file(path, options, "latest", True)
                sizes = self.replaced_size(path, self.with_pumice, values)
                self.assertLess(max(sizes) - min(sizes), values.nbytes / 8 + page, sizes)
                self.with_pumice(path, ["a"], {}, Steady())
                with h5py.File(path) as file:
                    self.assertGreaterEqual(file.id.get_freespace(), values.nbytes)

    def heaps_growth(self, path, libver, remove, add):
        """Bytes by which a file grows as links and attributes come in place of removed ones."""
        names = [f"a link whose name takes some room in the heap, {number:03}" for number in range(200)]
        attributes = [f"attribute {number}" for number in range(60)]
        with h5py.File(path, "w", libver=libver) as file:
            for name in names:
                file[name] = h5py.SoftLink("/nowhere")
            for name in attributes:
                file.attrs[name] = np.arange(30)
        remove(path, names[::2], attributes[::2])
        before = path.stat().st_size
        add(path, libver, names[::2], attributes[::2])
        grown = path.stat().st_size - before
        self.remove_with_pumice(path, names[:1], attributes[:1])
        with h5py.File(path) as file:
            self.assertEqual(set(file), set(names[1:]))
            self.assertEqual(set(file.attrs), set(attributes[1:]))
            for number, name in enumerate(names[1:], 1):
                target = "/nowhere" if number % 2 else "/elsewhere"
                self.assertEqual(file.get(name, getlink=True).path, target)
            for number, name in enumerate(attributes[1:], 1):
                self.same_bytes(file.attrs[name], np.arange(30) + (number + 1) % 2)
        return grown

    def remove_with_pumice(self, path, links, attributes):
        specification = self.specification(f"{path.name}-{len(links)}")
        for name in links:
            specification.op("unlink", path=name)
        for name in attributes:
            specification.op("remove_attribute", path="/", name=name)
        self.edit(specification, path)

    def remove_with_h5py(self, path, links, attributes):
        with h5py.File(path, "r+") as file:
            for name in links:
                del file[name]
            for name in attributes:
                del file.attrs[name]

    def add_with_h5py(self, path, libver, links, attributes):
        with h5py.File(path, "r+", libver=libver) as file:
            for name in links:
                file[name] = h5py.SoftLink("/elsewhere")
            for name in attributes:
                file.attrs[name] = np.arange(30) + 1

    def add_with_pumice(self, path, _libver, links, attributes):
        specification = self.specification(f"{path.name}-added")
        for name in links:
            specification.op("soft", path=name, target="/elsewhere")
        for name in attributes:
            specification.attribute("/", name, np.arange(30) + 1)
        self.edit(specification, path)

    def test_both_use_the_room_that_the_other_left_in_heaps(self):
        for libver in ("v108", "latest"):
            alone = self.heaps_growth(self.directory / f"alone-{libver}.h5", libver,
                                      self.remove_with_h5py, self.add_with_h5py)
            for remove, add in ((self.remove_with_pumice, self.add_with_h5py),
                                (self.remove_with_h5py, self.add_with_pumice),
                                (self.remove_with_pumice, self.add_with_pumice)):
                with self.subTest(libver=libver, remove=remove.__name__, add=add.__name__):
                    path = self.directory / f"{remove.__name__}-{add.__name__}-{libver}.h5"
                    # Who does not find the room adds blocks: three times as much.
                    self.assertLess(self.heaps_growth(path, libver, remove, add), alone * 1.2)

    def file_of_widths(self, path, offset, length, strategy):
        creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        creation.set_sizes(offset, length)
        creation.set_file_space_strategy(strategy, True, 1)
        access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        access.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
        access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
        identifier = h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, creation, access)
        return h5py.File(identifier)

    def test_free_space_is_kept_with_addresses_and_lengths_of_any_width(self):
        # libhdf5 writes lists for short lengths that it misreads: it is not asked to edit.
        values = np.arange(1000, dtype="i4")
        strategies = (h5py.h5f.FSPACE_STRATEGY_FSM_AGGR, h5py.h5f.FSPACE_STRATEGY_PAGE)
        for offset, length, strategy in itertools.product((2, 4, 8), (2, 4, 8), strategies):
            for by_h5py in (False, True):
                with self.subTest(offset=offset, length=length, strategy=strategy, by_h5py=by_h5py):
                    path = self.directory / f"{offset}-{length}-{strategy}-{by_h5py}.h5"
                    with self.file_of_widths(path, offset, length, strategy) as file:
                        for name in "abc":
                            file[name] = values
                        if by_h5py:
                            del file["b"]
                    if not by_h5py:
                        self.with_pumice(path, ["b"], {}, Steady())
                        with h5py.File(path) as file:
                            self.assertGreaterEqual(file.id.get_freespace(), values.nbytes)
                    before = path.stat().st_size
                    self.with_pumice(path, [], {"d": values + 1}, Steady())
                    self.assertLessEqual(path.stat().st_size, before + 4096)
                    self.with_pumice(path, ["a"], {}, Steady())
                    self.with_pumice(path, [], {"e": values + 2}, Steady())
                    self.assertLessEqual(path.stat().st_size, before + 4096)
                    with h5py.File(path) as file:
                        self.assertEqual(sorted(file), ["c", "d", "e"])
                        for number, name in enumerate("cde"):
                            self.same_bytes(file[name][...], values + number)


if __name__ == "__main__":
    unittest.main()
