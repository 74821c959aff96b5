"""Free space and its strategies: h5py and Pumice take turns with one file, each uses the room that the
other left, and both find everything that is there."""

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
    "small pages": {"fs_strategy": "page", "fs_persist": True, "fs_page_size": 512},
    "forgotten pages": {"fs_strategy": "page", "fs_persist": False, "fs_page_size": 4096},
    "aggregation": {"fs_strategy": "aggregate"},
    "none": {"fs_strategy": "none"},
}


class Steady:
    """Draws that always give contiguous datasets."""

    def random(self):
        return 0.9


class FileSpace(InteropCase):
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


if __name__ == "__main__":
    unittest.main()
