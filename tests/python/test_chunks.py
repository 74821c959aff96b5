"""Stored chunks past the filters, and partial edge chunks without filters, both ways with h5py."""

import ctypes
import json
import pathlib
import unittest
import zlib

import h5py
import numpy as np

from hdf5_bytes import DEFLATE, FLETCHER32, SHUFFLE
from interop import InteropCase
from test_h5py_to_pumice import INDEXES

DONT_FILTER_PARTIAL_CHUNKS = 2
GZIP = [{"id": DEFLATE, "parameters": [4]}]
ALL_THREE = [{"id": SHUFFLE, "parameters": [4]}, *GZIP, {"id": FLETCHER32, "parameters": []}]
# libhdf5 lists the chunks of an extensible array as if the unlimited axis were the first.
LISTED_WRONG = ("extensible second axis", "extensible middle axis")


def libhdf5():
    """The very library that h5py uses, for calls that h5py lacks."""
    folder = pathlib.Path(h5py.__file__).parent.parent / "h5py.libs"
    found = [path for path in folder.glob("libhdf5-*.so*")]
    return ctypes.CDLL(str(found[0])) if found else None


def unfiltered_edges(plist):
    """Asks for partial edge chunks without filters."""
    call = libhdf5().H5Pset_chunk_opts
    call.argtypes = [ctypes.c_int64, ctypes.c_uint]
    if call(plist.id, DONT_FILTER_PARTIAL_CHUNKS) < 0:
        raise RuntimeError("H5Pset_chunk_opts")


def create_with_edges(file, name, shape, maximum, chunk):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunk)
    plist.set_deflate(4)
    plist.set_fill_value(np.array(-3, "<i4"))
    unfiltered_edges(plist)
    limits = tuple(h5py.h5s.UNLIMITED if axis is None else axis for axis in maximum)
    space = h5py.h5s.create_simple(shape, limits)
    kind = h5py.h5t.py_create(np.dtype("<i4"))
    return h5py.Dataset(h5py.h5d.create(file.id, name.encode(), kind, space, plist))


def stored_chunks(dataset):
    """{offset: (address, size, mask)} as libhdf5 says."""
    infos = []
    dataset.id.chunk_iter(infos.append)
    return {tuple(i.chunk_offset): (i.byte_offset, i.size, i.filter_mask) for i in infos}


def is_partial(dataset, offset):
    return any(a + c > n for a, c, n in zip(offset, dataset.chunks, dataset.shape))


class Chunks(InteropCase):
    def chunks(self, path):
        """{dataset: {offset: (address, size, mask, bytes)}} as Pumice says."""
        out = self.directory / f"chunks of {path.name}"
        self.run_interop("chunks", path, out)
        found, raw = {}, (out / "data.bin").read_bytes()
        self.storage = {}
        for line in (out / "manifest.jsonl").read_text().splitlines():
            entry = json.loads(line)
            place = entry["address"], entry["size"], entry["mask"]
            self.storage[entry["path"][1:]] = entry["storage"], entry["count"]
            chunk, raw = raw[: entry["size"]], raw[entry["size"] :]
            found.setdefault(entry["path"][1:], {})[tuple(entry["offset"])] = (*place, chunk)
        return found

    def agree(self, path):
        """Same chunks, same places, same bytes."""
        found = self.chunks(path)
        with h5py.File(path) as file:
            for name, dataset in file.items():
                mine, listed = found.get(name, {}), stored_chunks(dataset)
                stored = dataset.id.get_storage_size(), dataset.id.get_num_chunks()
                self.assertEqual(self.storage.get(name, (0, 0)), stored, name)
                if name.endswith(LISTED_WRONG):
                    places = sorted(place[:3] for place in mine.values())
                    self.assertEqual(places, sorted(listed.values()), name)
                else:
                    self.assertEqual({k: v[:3] for k, v in mine.items()}, listed, name)
                for offset, place in mine.items():
                    mask, raw = dataset.id.read_direct_chunk(offset)
                    self.assertEqual((mask, raw), place[2:], (name, offset))

    def test_stored_chunks_of_h5py_are_the_same_to_pumice(self):
        for options in ({}, {"compression": "gzip", "shuffle": True}):
            path = self.directory / f"of h5py {len(options)}.h5"
            with h5py.File(path, "w", libver="latest", userblock_size=512) as file:
                for name, (shape, maximum, chunk) in INDEXES.items():
                    made = file.create_dataset(
                        name, shape, "<i4", maxshape=maximum, chunks=chunk, **options
                    )
                    half = tuple(slice(0, axis // 2 + 1) for axis in shape)
                    made[half] = np.arange(made[half].size).reshape(made[half].shape) % 50
            self.agree(path)

    def test_stored_chunks_of_pumice_are_the_same_to_h5py(self):
        spec = self.specification()
        for name, (shape, maximum, chunk) in INDEXES.items():
            data = np.arange(np.prod(shape), dtype="<i4").reshape(shape) % 50
            limits = {"maxshape": list(maximum), "chunks": list(chunk)}
            spec.dense("/" + name, data, filters=ALL_THREE, **limits)
            spec.dense("/plain " + name, data, **limits)
        self.agree(self.write(spec))

    def test_pages_of_an_array_that_nobody_has_written_yet(self):
        """Fixed and extensible arrays of many pages, of which an edit makes one after another."""
        for name, maximum, filters in (("fixed", (6000,), {}), ("fixed packed", (6000,), {"compression": "gzip"}),
                                       ("extensible", (None,), {}), ("extensible packed", (None,), {"compression": "gzip"})):
            with self.subTest(name):
                path = self.directory / f"pages {name}.h5"
                with h5py.File(path, "w", libver="v110") as file:
                    made = file.create_dataset("x", (6000,), "<i4", maxshape=maximum, chunks=(1,), **filters)
                    made[5] = 1
                wanted = np.zeros(6000, "<i4")
                wanted[5] = 1
                for step, cell in enumerate((2500, 5999, 2501, 1500)):
                    specification = self.specification(f"{name} {step}")
                    specification.write_block("x", [cell], np.array([step + 2], "<i4"))
                    self.edit(specification, path)
                    wanted[cell] = step + 2
                    with h5py.File(path, "r+") as file:
                        self.same_bytes(file["x"][()], wanted, f"{name}, {cell}")
                        # libhdf5 goes on in a page of its own.
                        file["x"][4000 + step] = wanted[4000 + step] = -1

    def test_chunks_that_pumice_wrote_past_the_filters_are_read_by_h5py(self):
        spec, generator = self.specification(), np.random.default_rng(31)
        wanted = {}
        for name, (shape, maximum, chunk) in INDEXES.items():
            data = generator.integers(0, 99, shape, "<i4")
            spec.dense("/" + name, data, maxshape=list(maximum), chunks=list(chunk), filters=GZIP)
            counts = [axis // side for axis, side in zip(shape, chunk)]
            for mask in (0, 1):
                offset = [int(generator.integers(0, n)) * side for n, side in zip(counts, chunk)]
                block = generator.integers(0, 99, chunk, "<i4")
                raw = block.tobytes() if mask else zlib.compress(block.tobytes())
                stored = spec.store(np.frombuffer(raw, "u1"))
                spec.op("write_chunk", path="/" + name, offset=offset, mask=mask, data=stored)
                data[tuple(slice(a, a + c) for a, c in zip(offset, chunk))] = block
            wanted[name] = data
        with h5py.File(self.write(spec)) as file:
            for name, data in wanted.items():
                self.same_bytes(file[name][...], data, name)

    @unittest.skipIf(libhdf5() is None, "h5py brings no library of its own")
    def test_partial_edge_chunks_without_filters_of_h5py(self):
        path = self.directory / "edges.h5"
        wanted = {}
        with h5py.File(path, "w", libver="latest") as file:
            for name, (shape, maximum, chunk) in INDEXES.items():
                made = create_with_edges(file, name, shape, maximum, chunk)
                wanted[name] = np.arange(np.prod(shape), dtype="<i4").reshape(shape)
                made[...] = wanted[name]
        manifest = self.read(path)
        for name, data in wanted.items():
            self.same_bytes(manifest.array(self.found(manifest, "/" + name)), data, name)

    def test_h5py_reads_edge_chunks_of_pumice_through_any_resize(self):
        for seed in range(6):
            generator = np.random.default_rng(seed)
            spec, wanted = self.specification(f"edges {seed}"), {}
            for name, (shape, maximum, chunk) in INDEXES.items():
                if name == "fixed paged":
                    continue
                wanted[name] = self.resized(spec, generator, "/" + name, shape, maximum, chunk)
            path = self.write(spec, f"edges {seed}.h5")
            with h5py.File(path) as file:
                for name, data in wanted.items():
                    self.same_bytes(file[name][...], data, (seed, name))
                    whole = 4 * int(np.prod(file[name].chunks))
                    listed = {} if name in LISTED_WRONG else stored_chunks(file[name])
                    for offset, (_, size, _) in listed.items():
                        if is_partial(file[name], offset):
                            self.assertEqual(size, whole, (name, offset))

    def resized(self, spec, generator, path, shape, maximum, chunk):
        """Writes and resizes at random; returns what must be there at the end."""
        limits = {"maxshape": list(maximum), "chunks": list(chunk), "fill": -3}
        limits |= {"dont_filter_partial": True, "filters": GZIP}
        spec.create("dense", path, "<i4", shape, **limits)
        array = np.full(shape, -3, "<i4")
        for step in range(8):
            if array.size:
                start = [int(generator.integers(0, n)) for n in array.shape]
                stop = [int(generator.integers(a, n)) + 1 for a, n in zip(start, array.shape)]
                place = tuple(map(slice, start, stop))
                array[place] = generator.integers(0, 99, array[place].shape, "<i4")
                spec.write_block(path, start, array[place])
            if step % 3 == 2:
                spec.op("reopen")
            most = [axis or now + 9 for axis, now in zip(maximum, array.shape)]
            after = [int(generator.integers(max(0, m - 14), m + 1)) for m in most]
            spec.op("resize", path=path, shape=after)
            grown = np.full(after, -3, "<i4")
            kept = tuple(slice(0, min(a, b)) for a, b in zip(array.shape, after))
            grown[kept] = array[kept]
            array = grown
        return array

    def test_the_only_chunk_may_be_stored_in_any_size(self):
        for size in (1, 65_535, 65_536, 100_000):
            specification = self.specification(f"only-{size}")
            specification.create("dense", "d", "<i4", [4], chunks=[4], filters=GZIP)
            data = specification.store(np.zeros(size, "u1"))
            specification.op("write_chunk", path="d", offset=[0], mask=0, data=data)
            with h5py.File(self.write(specification)) as file:
                self.assertEqual(file["d"].id.get_chunk_info(0).size, size)

    def test_what_libhdf5_cannot_read_is_not_written(self):
        specification = self.specification("level")
        usual = [{"id": DEFLATE, "parameters": []}]
        specification.dense("d", np.arange(50), chunks=[50], filters=usual)
        with h5py.File(self.write(specification)) as file:
            np.testing.assert_array_equal(file["d"][:], np.arange(50))
        empty = specification.store(np.zeros(0, "u1"))
        specification.op("write_chunk", path="d", offset=[0], mask=0, data=empty)
        with self.assertRaisesRegex(AssertionError, "at least one byte"):
            self.write(specification)
        specification = self.specification("enumeration")
        kind = {"enum": {}, "base": "<i4"}
        specification.op("dense", path="d", dtype=kind, shape=[3])
        with self.assertRaisesRegex(AssertionError, "without members"):
            self.write(specification)
