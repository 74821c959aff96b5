"""A seeded matrix of datasets: types, layouts, indexes, filters, bounds, ranks and edge shapes, and
what is done to them, with the array that must come out."""

import h5py
import numpy as np

RECORD = np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "S3")])
NESTED = np.dtype([("in", [("x", "<f4"), ("y", ">u2")]), ("grid", "<i2", (2, 3))])
COLOUR = h5py.enum_dtype({"RED": -1, "GREEN": 0, "BLUE": 77}, basetype="<i2")
TYPES = ["<i1", "<u2", ">i4", "<u8", "<f4", ">f8", "<f2", "S5", RECORD, NESTED, COLOUR, "<c16", ">c8"]
FILL_TIMES = {"ifset": h5py.h5d.FILL_TIME_IFSET, "alloc": h5py.h5d.FILL_TIME_ALLOC}
ALLOCATIONS = {
    "early": h5py.h5d.ALLOC_TIME_EARLY,
    "late": h5py.h5d.ALLOC_TIME_LATE,
    "incremental": h5py.h5d.ALLOC_TIME_INCR,
}
FILTERS = [
    [],
    [],
    ["gzip"],
    ["shuffle", "gzip"],
    ["lzf"],
    ["fletcher32"],
    ["shuffle", "lzf", "fletcher32"],
    ["scaleoffset"],
]


TOOLS_FILTERS = [names for names in FILTERS if "lzf" not in names]


def values(rng, shape, dtype):
    """Random elements: runs of equal ones among them, so that filters have work."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.names:
        out = np.zeros(count, dtype)
        for name in dtype.names:
            out[name] = values(rng, (count,), dtype[name])
        return out.reshape(shape)
    if dtype.subdtype:
        base, inner = dtype.subdtype
        return values(rng, (*shape, *inner), base)
    if h5py.check_enum_dtype(dtype):
        return rng.choice([-1, 0, 77], count).astype(dtype).reshape(shape)
    if dtype.kind == "c":
        return (rng.normal(size=count) + 1j * rng.normal(size=count)).astype(dtype).reshape(shape)
    if dtype.kind == "S":
        letters = rng.integers(97, 123, (count, dtype.itemsize), "u1")
        return letters.reshape(-1).view(dtype)[:count].reshape(shape)
    if dtype.kind == "f":
        return rng.normal(size=count).astype(dtype).reshape(shape)
    limit = np.iinfo(dtype)
    low, high = max(limit.min, -40), min(limit.max, 100)
    return rng.integers(low, high, count, dtype.newbyteorder("=")).astype(dtype).reshape(shape)


class Case:
    """One dataset: how it is made, its array, and what is done to it."""

    def __init__(self, rng, path, filters=FILTERS):
        self.rng, self.path = rng, path
        self.dtype = np.dtype(TYPES[rng.integers(len(TYPES))])
        rank = int(rng.integers(0, 5))
        self.shape = tuple(int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 14, rank))
        self.layout = str(rng.choice(["chunked", "chunked", "chunked", "contiguous", "compact"]))
        if rank == 0 and self.layout == "chunked":
            self.layout = "contiguous"
        # h5py takes the fill value of strings for a pointer, and has none for complex numbers.
        plain = self.dtype.kind not in "Sc"
        too_large = np.prod(self.shape) * self.dtype.itemsize > 60_000
        if self.layout == "compact" and too_large:
            self.layout = "contiguous"
        self.fill = values(rng, (1,), self.dtype)[0] if plain and rng.random() < 0.5 else None
        # Without a fill value of its own, what libhdf5 does not write is anything.
        self.fill_time = "alloc" if self.fill is None else str(rng.choice(list(FILL_TIMES)))
        self.allocation = str(rng.choice(list(ALLOCATIONS))) if rng.random() < 0.5 else None
        self.filters, self.chunks, self.maxshape, self.unfiltered_edge = [], None, None, False
        self.optional = bool(rng.integers(2))
        self.added, self.link = None, None
        if self.layout == "chunked":
            self.make_chunks(filters)
        elif self.layout == "compact":
            self.allocation = None
        self.array = np.full(self.shape, self.blank(), self.dtype)

    def make_chunks(self, filters):
        rng = self.rng
        kind = rng.choice(["fixed", "single", "limited", "one", "all"])
        limit = [n if kind == "fixed" else max(n, int(rng.integers(1, 20))) for n in self.shape]
        self.maxshape = tuple(limit)
        if kind == "fixed" or kind == "single":
            self.maxshape = self.shape = tuple(max(n, 1) for n in self.shape)
        if kind == "one":
            axis = int(rng.integers(len(limit)))
            self.maxshape = tuple(None if i == axis else n for i, n in enumerate(limit))
        if kind == "all":
            self.maxshape = (None,) * len(limit)
        room = [20 if m is None else m for m in self.maxshape]
        self.chunks = tuple(int(rng.integers(1, min(n, 9) + 1)) for n in room)
        if kind == "single":
            self.chunks = self.shape
        self.filters = list(filters[rng.integers(len(filters))])
        number = self.dtype.kind in "iu" and not h5py.check_enum_dtype(self.dtype)
        if "scaleoffset" in self.filters and (not number or self.dtype.itemsize > 4):
            self.filters = ["gzip"]
        self.unfiltered_edge = bool(self.filters) and rng.random() < 0.25

    def blank(self):
        return np.zeros((), self.dtype) if self.fill is None else self.fill

    def h5py_create(self, file):
        """Make it with h5py."""
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_fill_time(FILL_TIMES[self.fill_time])
        # All at once, at the first write: if that covers the extent, libhdf5 writes anything beyond.
        if self.allocation and not (self.chunks and self.allocation == "late"):
            plist.set_alloc_time(ALLOCATIONS[self.allocation])
        if self.fill is not None:
            plist.set_fill_value(np.array(self.fill, self.dtype))
        if self.layout == "compact":
            plist.set_layout(h5py.h5d.COMPACT)
        if self.chunks:
            plist.set_chunk(self.chunks)
        for name in self.filters:
            if name == "gzip":
                plist.set_deflate(3)
            elif name == "shuffle":
                plist.set_shuffle()
            elif name == "lzf":
                plist.set_filter(h5py.h5z.FILTER_LZF, h5py.h5z.FLAG_OPTIONAL)
            elif name == "fletcher32":
                plist.set_fletcher32()
            elif name == "scaleoffset":
                plist.set_scaleoffset(h5py.h5z.SO_INT, 0)
        unlimited = h5py.h5s.UNLIMITED
        limits = self.maxshape and tuple(unlimited if n is None else n for n in self.maxshape)
        space = (
            h5py.h5s.create_simple(self.shape, limits) if self.shape else h5py.h5s.create(h5py.h5s.SCALAR)
        )
        kind = h5py.h5t.py_create(self.dtype, logical=True)
        file.require_group(self.path.rsplit("/", 1)[0])
        made = h5py.h5d.create(file.id, self.path.encode(), kind, space, plist)
        return h5py.Dataset(made)

    def pumice_create(self, spec):
        """Make it with Pumice."""
        options = {"fill_time": self.fill_time, "allocation": self.allocation}
        if self.chunks:
            options.update(chunks=list(self.chunks), maxshape=list(self.maxshape))
            options["filters"] = [self.filter(name) for name in self.filters] or None
            options["dont_filter_partial"] = self.unfiltered_edge or None
        if self.layout == "compact":
            options["compact"] = True
        spec.create("dense", self.path, self.dtype, self.shape, fill=self.fill, **options)

    def index(self):
        """The index that libhdf5 gives it from 1.10 on, and the axis without end."""
        unlimited = [axis for axis, most in enumerate(self.maxshape) if most is None]
        if len(unlimited) > 1:
            return "B-tree 2", None
        if unlimited:
            return "extensible array", unlimited[0]
        if self.chunks == self.maxshape:
            return "single", None
        early = self.allocation == "early" and not self.filters
        return ("implicit" if early else "fixed array"), None

    def properties(self):
        """What a creation property list must say; None where h5py does not tell."""
        filters = [self.filter(name) for name in self.filters]
        return {
            "chunks": self.chunks,
            "fill time": FILL_TIMES[self.fill_time],
            "allocation": ALLOCATIONS.get(self.allocation),
            "filters": [(one["id"], int(one.get("optional", True))) for one in filters],
        }

    def stored_properties(self, dataset):
        plist = dataset.id.get_create_plist()
        filters = [plist.get_filter(number)[:2] for number in range(plist.get_nfilters())]
        return {
            "chunks": dataset.chunks,
            "fill time": plist.get_fill_time(),
            "allocation": plist.get_alloc_time() if self.allocation else None,
            "filters": [(number, flags & 1) for number, flags in filters],
        }

    def filter(self, name):
        if name == "gzip":
            return {"id": 1, "parameters": [3], "optional": self.optional}
        if name == "shuffle":
            return {"id": 2, "parameters": [self.dtype.itemsize], "optional": self.optional}
        if name == "fletcher32":
            return {"id": 3, "parameters": []}
        if name == "lzf":
            return {"id": 32000, "parameters": [], "optional": True}
        return {"id": 6, "parameters": [2, 0]}

    def block(self):
        """Start and count of a random block."""
        start = [int(self.rng.integers(0, n + 1)) if n else 0 for n in self.array.shape]
        count = [
            int(self.rng.integers(0, n - s + 1)) for n, s in zip(self.array.shape, start)
        ]
        return start, count

    def slices(self, start, count):
        return tuple(slice(s, s + c) for s, c in zip(start, count))

    def resized(self, shape):
        """The array with another shape: what is new has the fill value."""
        out = np.full(shape, self.blank(), self.dtype)
        common = tuple(slice(0, min(a, b)) for a, b in zip(shape, self.array.shape))
        out[common] = self.array[common]
        return out

    def new_shape(self, least):
        shape = []
        for now, most in zip(self.array.shape, self.maxshape):
            limit = now + 12 if most is None else most
            shape.append(int(self.rng.integers(min(least, limit), limit + 1)) if self.rng.random() < 0.6 else now)
        return tuple(shape)

    def steps(self, count, least=0):
        """What is done, with the array after each step; no axis gets shorter than `least`."""
        for _ in range(count):
            what = self.rng.random()
            if self.chunks and what < 0.4:
                shape = self.new_shape(least)
                self.array = self.resized(shape)
                yield "resize", shape, None
            elif self.array.ndim and what < 0.8:
                start, count = self.block()
                data = values(self.rng, count, self.dtype)
                self.array[self.slices(start, count)] = data
                yield "block", start, data
            else:
                self.array = values(self.rng, self.array.shape, self.dtype)
                yield "all", None, self.array

    def h5py_apply(self, dataset, step):
        what, where, data = step
        if what == "resize":
            dataset.resize(where)
        elif what == "all":
            dataset[...] = data
        elif data.size:
            dataset[self.slices(where, data.shape)] = data

    def pumice_apply(self, spec, step):
        what, where, data = step
        if what == "resize":
            spec.op("resize", path=self.path, shape=list(where))
        elif what == "all":
            spec.op("write", path=self.path, data=spec.store(data))
        else:
            spec.write_block(self.path, where, data)

    def describe(self):
        keys = "path dtype shape maxshape chunks filters layout fill fill_time allocation".split()
        return ", ".join(f"{key}={getattr(self, key)}" for key in keys)
