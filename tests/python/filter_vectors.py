"""Makes the vectors of the filters that Pumice only reads: chunks as hdf5plugin and PyTables store them.

    python tests/python/filter_vectors.py blosc2 crates/pumice-filter/tests/vectors/blosc2.bin

Needs hdf5plugin and tables. A vector is its name (a length in a byte, then UTF-8), the number of parameters (a byte) and
those (4 bytes each), the length of the content (4 bytes), its FNV-1a sum (8 bytes), the length of the stored chunk (4
bytes), the chunk; little-endian. Contents are what h5py reads, so that losses of precision are part of them.
"""

import struct
import sys
import tempfile
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import tables

DTYPES = ["i1", "u2", "i4", "f4", "f8", ">i8", "V3", "V16", "V300"]


def numbers(shape, dtype):
    """Numbers with a pattern, as elements of any type."""
    at = np.arange(int(np.prod(shape)), dtype=np.int64)
    values = (at * at // 7 + 3 * at) % 100
    dtype = np.dtype(dtype)
    if dtype.kind == "V":
        raw = np.zeros((at.size, dtype.itemsize), dtype="u1")
        raw[:, 0] = values
        raw[:, -1] = at % 7
        return raw.view(dtype).reshape(shape)
    return values.astype(dtype).reshape(shape)


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def vector(name, dataset, number):
    """The first chunk of a dataset, and what it holds; nothing where the plugin cannot write or read it itself."""
    mask, stored = dataset.id.read_direct_chunk((0,) * dataset.ndim)
    if mask:
        return b""
    parameters = dataset.id.get_create_plist().get_filter_by_id(number)[1]
    whole = np.zeros(dataset.chunks, dataset.dtype)
    part = tuple(slice(0, min(size, chunk)) for size, chunk in zip(dataset.shape, dataset.chunks))
    try:
        whole[part] = dataset[part]
    except OSError:
        return b""
    # What lies outside of the dataset has the fill value in a chunk that was written whole.
    content = whole.tobytes()
    text = name.encode()
    head = bytes([len(text)]) + text + bytes([len(parameters)]) + struct.pack(f"<{len(parameters)}I", *parameters)
    return head + struct.pack("<IQI", len(content), fnv(content), len(stored)) + stored


def blosc2(folder):
    codecs = {"blosclz": 0, "lz4": 1, "lz4hc": 2, "zlib": 4, "zstd": 5}
    filters = {"none": 0, "shuffle": 1, "bitshuffle": 2, "delta": 3, "trunc_prec": 4}
    with h5py.File(folder / "blosc2.h5", "w") as file:
        def add(name, data, block, level, kind, codec, chunks):
            options = (0, block, 0, 0, level, kind, codec)
            made = file.create_dataset(name, data=data, chunks=chunks, compression=32026, compression_opts=options)
            return vector(name, made, 32026)

        for codec, code in codecs.items():
            for kind, number in filters.items():
                dtype = "f4" if kind == "trunc_prec" else "i4"
                yield add(f"{codec} {kind}", numbers(700, dtype), 512, 5, number, code, (700,))
        for dtype in DTYPES:
            for kind in ["shuffle", "bitshuffle", "delta"]:
                if dtype == "V300" and kind == "bitshuffle":
                    continue
                yield add(f"{dtype} {kind}", numbers(333, dtype), 512, 5, filters[kind], 1, (333,))
            yield add(f"{dtype} two axes", numbers((13, 29), dtype), 256, 5, 1, 5, (13, 29))
        for kind, number in filters.items():
            yield add(f"three axes {kind}", numbers((7, 9, 11), "f4"), 256, 5, number, 1, (7, 9, 11))
        yield add("four axes", numbers((3, 5, 4, 7), "u2"), 64, 9, 2, 5, (3, 5, 4, 7))
        yield add("edge", numbers((10, 10), "i4"), 64, 5, 1, 5, (6, 8))
        noise = np.frombuffer(np.random.default_rng(1).bytes(600), "u1")
        yield add("stored", noise, 128, 5, 0, 1, (600,))
        yield add("level 0", numbers(300, "i4"), 0, 0, 1, 1, (300,))
        for name, value in [("zeros", 0.0), ("nan", np.nan), ("value", 2.5)]:
            yield add(name, np.full(1000, value), 0, 5, 1, 5, (1000,))
            yield add(f"{name} in two axes", np.full((40, 30), value, "f4"), 256, 5, 1, 5, (40, 30))
        for name in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
            options = hdf5plugin.Blosc2(cname=name, clevel=9, filters=hdf5plugin.Blosc2.BITSHUFFLE)
            made = file.create_dataset(f"plugin {name}", data=numbers((20, 50), "i8"), chunks=(20, 50), **options)
            yield vector(f"plugin {name}", made, 32026)
    with tables.open_file(folder / "tables.h5", "w") as file:
        packed = tables.Filters(complevel=5, complib="blosc2:zstd", shuffle=True)
        file.create_carray("/", "array", obj=numbers((40, 60), "f8"), filters=packed, chunkshape=(20, 32))
        rows = np.zeros(500, dtype=[("a", "i4"), ("b", "f8"), ("c", "S5")])
        rows["a"], rows["b"], rows["c"] = numbers(500, "i4"), numbers(500, "f8"), b"word"
        file.create_table("/", "rows", obj=rows, filters=packed, chunkshape=(500,))
        bits = tables.Filters(complevel=1, complib="blosc2:lz4", bitshuffle=True)
        file.create_earray("/", "grows", obj=numbers((64, 8), "i2"), filters=bits, chunkshape=(16, 8))
    with h5py.File(folder / "tables.h5") as file:
        for name in ["array", "rows", "grows"]:
            yield vector(f"PyTables {name}", file[name], 32026)


def smooth(shape, dtype):
    """Numbers that change slowly, some of them negative."""
    at = np.arange(int(np.prod(shape)), dtype=np.float64)
    values = np.sin(at / 9) * 1000 + at / 3 + np.cos(at * at / 50)
    return values.astype(dtype).reshape(shape)


def zfp(folder):
    modes = {
        "rate 8": {"rate": 8},
        "rate 16": {"rate": 16.5},
        "precision 12": {"precision": 12},
        "precision 30": {"precision": 30},
        "accuracy": {"accuracy": 0.01},
        "rough accuracy": {"accuracy": 100},
        "reversible": {"reversible": True},
        "expert": {"minbits": 20, "maxbits": 400, "maxprec": 40, "minexp": -20},
    }
    shapes = {"one axis": (101,), "two axes": (9, 14), "three axes": (5, 6, 7), "four axes": (3, 5, 4, 6)}
    with h5py.File(folder / "zfp.h5", "w") as file:
        def add(name, data, **options):
            made = file.create_dataset(name, data=data, chunks=data.shape, **hdf5plugin.Zfp(**options))
            return vector(name, made, 32013)

        for axes, shape in shapes.items():
            for dtype in ["i4", "i8", "f4", "f8"]:
                for mode, options in modes.items():
                    # Accuracy is of floats alone.
                    if dtype[0] == "f" or "accuracy" not in mode:
                        yield add(f"{axes} {dtype} {mode}", smooth(shape, dtype), **options)
        for dtype in ["f4", "f8"]:
            odd = smooth(64, dtype)
            odd[3], odd[20], odd[40:48], odd[50] = np.nan, np.inf, 0, np.finfo(dtype).smallest_subnormal
            yield add(f"{dtype} odd values", odd, reversible=True)
            yield add(f"{dtype} zeros", np.zeros((10, 10), dtype), rate=4)
            tiny = smooth((8, 8), dtype) * np.finfo(dtype).tiny
            yield add(f"{dtype} tiny values", tiny.astype(dtype), precision=20)
            yield add(f"{dtype} unit axes", smooth((1, 6, 1, 7, 1), dtype), accuracy=0.1)


def others(folder):
    """One chunk of each plugin that Pumice has nothing of its own for; names begin with the filter's number."""
    smooth_floats = smooth((20, 30), "f4")
    made = {
        32017: (hdf5plugin.SZ(absolute=0.01), smooth_floats),
        32024: (hdf5plugin.SZ3(absolute=0.01), smooth_floats),
        32028: (hdf5plugin.Sperr(rate=16), smooth_floats),
        32018: (hdf5plugin.FciDecomp(), numbers((32, 32), "u2")),
    }
    with h5py.File(folder / "others.h5", "w") as file:
        for number, (options, data) in made.items():
            name = f"{number} {type(options).__name__}"
            dataset = file.create_dataset(name, data=data, chunks=data.shape, **options)
            yield vector(name, dataset, number)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(sys.argv[2]).write_bytes(b"".join(globals()[sys.argv[1]](Path(folder))))
