"""Variable-length data that Pumice writes into the global heap: h5py reads it, the tools take it, and
the space of what is overwritten is used again."""

import shutil
import subprocess

import h5py
import numpy as np

from interop import InteropCase
from varlen import pack_all, to_json

STRING = h5py.string_dtype()
NUMBERS = h5py.vlen_dtype(np.dtype("<i4"))
RECORD = np.dtype([("id", "<i4"), ("name", STRING), ("track", h5py.vlen_dtype(np.dtype("<f8")))])
LAYOUTS = {
    "contiguous": {},
    "compact": {"compact": True},
    "chunked": {"chunks": [7], "maxshape": [None]},
    "compressed": {"chunks": [16], "filters": [{"id": 1, "parameters": [4]}]},
}


def words(rng, count, longest=40):
    lengths = rng.integers(0, longest, count)
    return ["".join(map(chr, rng.integers(97, 123, length))) for length in lengths]


def sequences(rng, count):
    return [rng.integers(0, 99, rng.integers(0, 9)).astype("<i4") for _ in range(count)]


def records(rng, count):
    names = words(rng, count)
    return [(i, name, rng.normal(size=i % 4)) for i, name in enumerate(names)]


MAKERS = {"words": (STRING, words), "numbers": (NUMBERS, sequences), "records": (RECORD, records)}


class VarlenToH5py(InteropCase):
    def store(self, spec, kind, data):
        return spec.store(np.frombuffer(pack_all(kind, data), "u1"))

    def put(self, spec, path, kind, start, data):
        where = {"start": [start], "count": [len(data)]}
        spec.op("write", path=path, data=self.store(spec, kind, data), **where)

    def check(self, path, wanted):
        with h5py.File(path) as file:
            for name, (dtype, data) in wanted.items():
                with self.subTest(name):
                    self.same(file[name][()], dtype, data)

    def same(self, found, dtype, data):
        self.assertEqual(len(found), len(data))
        for one, other in zip(found, data):
            if dtype is STRING:
                self.assertEqual(one, other.encode())
            elif dtype is NUMBERS:
                np.testing.assert_array_equal(one, other)
            else:
                self.assertEqual((one["id"], one["name"]), (other[0], other[1].encode()))
                np.testing.assert_array_equal(one["track"], other[2])

    def test_h5py_reads_what_pumice_wrote_in_every_layout(self):
        rng = np.random.default_rng(5)
        spec, wanted = self.specification(), {}
        for layout, options in LAYOUTS.items():
            for name, (dtype, make) in MAKERS.items():
                path, kind, data = f"{layout} {name}", to_json(dtype), make(rng, 60)
                spec.op("dense", path=path, dtype=kind, shape=[60], **options)
                self.put(spec, path, kind, 0, data)
                data[10:30] = make(rng, 20)
                self.put(spec, path, kind, 10, data[10:30])
                wanted[path] = (dtype, data)
        path = self.write(spec)
        self.check(path, wanted)
        for tool in ("h5dump", "h5stat"):
            if shutil.which(tool):
                done = subprocess.run([tool, str(path)], capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr[-300:])

    def test_what_h5py_wrote_is_overwritten(self):
        rng = np.random.default_rng(6)
        for bound in ("v108", "latest"):
            path, wanted = self.directory / f"{bound}.h5", {}
            with h5py.File(path, "w", libver=bound) as file:
                for name, (dtype, make) in MAKERS.items():
                    made = file.create_dataset(name, (50,), dtype, chunks=(8,))
                    data = make(rng, 50)
                    for at, value in enumerate(data):
                        made[at] = value
                    wanted[name] = (dtype, data)
            spec = self.specification(bound)
            spec.op("edit", path=path.name)
            for name, (dtype, data) in wanted.items():
                data[5:40] = MAKERS[name][1](rng, 35)
                self.put(spec, name, to_json(dtype), 5, data[5:40])
            self.write(spec, f"unused-{bound}.h5")
            self.check(path, wanted)
            with h5py.File(path, "r+") as file:
                file["words"][7] = "h5py again"
            wanted["words"][1][7] = "h5py again"
            self.check(path, wanted)

    def test_overwritten_strings_give_their_space_back(self):
        rng = np.random.default_rng(7)
        sizes = []
        for rounds in (2, 30):
            spec = self.specification(f"rounds-{rounds}")
            kind = to_json(STRING)
            spec.op("dense", path="words", dtype=kind, shape=[500])
            for _ in range(rounds):
                data = words(rng, 500, 80)
                self.put(spec, "words", kind, 0, data)
                spec.op("flush", path="/")
            path = self.write(spec, f"rounds-{rounds}.h5")
            self.check(path, {"words": (STRING, data)})
            sizes.append(path.stat().st_size)
        self.assertLess(sizes[1], sizes[0] * 2.5, "thirty times as many strings, the same space")
