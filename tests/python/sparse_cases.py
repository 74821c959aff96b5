"""Sparse datasets for tests: named specifications for the builder, and random cells."""

import itertools
import math

import numpy as np

from hdf5_bytes import DEFLATE, FLETCHER32, LOCATION, NBIT, SCALEOFFSET, SHUFFLE, ZSTD
from structured_builder import Sparse

RECORD = np.dtype([("charge", "<i2"), ("energy", ">f8"), ("tag", "S3")])


def random_values(rng, count, dtype):
    """Values whose bytes are all significant, NaN-free so that they compare."""
    dtype = np.dtype(dtype)
    if dtype.names:
        values = np.zeros(count, dtype)
        for name in dtype.names:
            values[name] = random_values(rng, count, dtype.fields[name][0])
        return values
    if dtype.kind == "S":
        letters = rng.integers(97, 123, (count, dtype.itemsize), dtype=np.uint8)
        return letters.view(dtype).reshape(count)
    if dtype.kind == "f":
        return (rng.integers(-4000, 4000, count) / 8).astype(dtype)
    limits = np.iinfo(dtype)
    native = dtype.newbyteorder("=")
    return rng.integers(limits.min, limits.max, count, native, endpoint=True).astype(dtype)


def random_cells(rng, shape, count):
    """Distinct coordinates in row-major order."""
    total = math.prod(shape)
    count = min(count, total)
    if total <= 1 << 22:
        cells = np.sort(rng.choice(total, count, replace=False))
    else:
        cells = np.unique(rng.integers(0, total, count))
    return np.stack(np.unravel_index(cells, shape), 1).astype(np.uint64).reshape(-1, len(shape))


def clustered_cells(rng, shape, count):
    """Coordinates that come in runs along the last axis."""
    starts = random_cells(rng, shape, max(1, count // 4))
    runs = []
    for start in starts:
        for step in range(int(rng.integers(1, 8))):
            cell = start.copy()
            cell[-1] += np.uint64(step)
            if cell[-1] < shape[-1]:
                runs.append(cell)
    return np.unique(np.array(runs, np.uint64), axis=0)


def patterned_cells(shape, chunk, pattern):
    """The same regular pattern (start, stride, count, block per axis) in each chunk."""
    axes = []
    for size, edge, (start, stride, count, block) in zip(shape, chunk, pattern):
        inner = [start + k * stride + b for k in range(count) for b in range(block)]
        axes.append([o + i for o in range(0, size, edge) for i in inner])
    return np.array(list(itertools.product(*axes)), np.uint64).reshape(-1, len(shape))


def sparse(rng, shape, chunk, cells, dtype="<i4", **options):
    return Sparse(shape, chunk, cells, random_values(rng, len(cells), dtype), **options)


GZIP = {1: [(DEFLATE, [6])]}
BOTH = {0: [(DEFLATE, [4])], 1: [(SHUFFLE, [4]), (DEFLATE, [9])]}


def selection_cases(rng):
    """Every form of a selection, in one to three dimensions."""
    for form in ("v1", "v3", "points1", "points2", "overlap"):
        for rank in (1, 2, 3):
            shape, chunk = (
                ((40,), (20, 17), (9, 8, 10))[rank - 1],
                ((15,), (7, 6), (4, 4, 4))[rank - 1],
            )
            cells = random_cells(rng, shape, 60 if rank > 1 else 25)
            yield f"selection {form} rank {rank}", sparse(rng, shape, chunk, cells, selection=form)
    boxes = np.unique(
        np.concatenate([patterned_cells((20, 16), (10, 8), ((2, 5, 2, 3), (1, 9, 1, 4)))]), axis=0
    )
    yield "selection boxes", sparse(rng, (20, 16), (10, 8), boxes, selection="boxes")
    pattern = ((1, 3, 3, 2), (0, 4, 2, 1))
    regular = patterned_cells((20, 16), (10, 8), pattern)
    for form in ("v2", "v3-regular"):
        yield f"selection {form} regular", sparse(rng, (20, 16), (10, 8), regular, selection=form)
    line = patterned_cells((64,), (16,), ((2, 4, 3, 2),))
    for form in ("v2", "v3-regular"):
        yield f"selection {form} line", sparse(rng, (64,), (16,), line, selection=form)
    endless = patterned_cells((24, 16), (12, 8), ((0, 12, 1, 5), (1, 2, 4, 1)))
    yield "selection unlimited", sparse(rng, (24, 16), (12, 8), endless, selection="unlimited")
    full = random_cells(rng, (12, 8), 96)
    for form in ("all", "empty", "v1", "v3-regular"):
        yield f"selection {form} full", sparse(rng, (12, 8), (6, 4), full, selection=form)
    wide = random_cells(rng, (3, 70_000), 40)
    yield "selection v3 of 4 bytes", sparse(rng, (3, 70_000), (2, 66_000), wide)
    yield (
        "selection points of 4 bytes",
        sparse(rng, (3, 70_000), (2, 66_000), wide, selection="points2"),
    )


def index_cases(rng):
    """Every chunk index, plain and filtered, with and without paging."""
    for label, filters in (("plain", {}), ("filtered", BOTH)):
        grid = random_cells(rng, (60, 50), 150)
        yield (
            f"index single {label}",
            sparse(rng, (10, 12), (10, 12), random_cells(rng, (10, 12), 30), filters=filters),
        )
        yield f"index fixed {label}", sparse(rng, (60, 50), (7, 9), grid, filters=filters)
        yield (
            f"index fixed below maximum {label}",
            sparse(rng, (60, 50), (7, 9), grid, filters=filters, maximum=(100, 80)),
        )
        yield (
            f"index fixed paged {label}",
            sparse(
                rng, (60, 50), (3, 4), random_cells(rng, (60, 50), 40), filters=filters, page_bits=4
            ),
        )
        yield (
            f"index fixed of 2500 {label}",
            sparse(rng, (2500,), (1,), random_cells(rng, (2500,), 30), filters=filters),
        )
        yield (
            f"index extensible {label}",
            sparse(rng, (60, 50), (3, 9), grid, filters=filters, maximum=(None, 50)),
        )
        yield (
            f"index extensible second axis {label}",
            sparse(rng, (60, 50), (9, 3), grid, filters=filters, maximum=(80, None)),
        )
        yield (
            f"index extensible middle axis {label}",
            sparse(
                rng,
                (5, 40, 6),
                (2, 3, 4),
                random_cells(rng, (5, 40, 6), 100),
                filters=filters,
                maximum=(7, None, 6),
            ),
        )
        far = np.unique(np.concatenate([rng.integers(0, 300, 40), [5000, 140_000]]))
        yield (
            f"index extensible far {label}",
            sparse(
                rng,
                (140_001,),
                (1,),
                far[:, None].astype(np.uint64),
                filters=filters,
                maximum=(None,),
            ),
        )
        yield (
            f"index extensible small pages {label}",
            sparse(
                rng,
                (3000,),
                (1,),
                random_cells(rng, (3000,), 60),
                filters=filters,
                maximum=(None,),
                extensible=(20, 2, 2, 4, 3),
            ),
        )
        yield (
            f"index b-tree {label}",
            sparse(rng, (60, 50), (7, 9), grid, filters=filters, maximum=(None, None)),
        )
        for size in (512, 256):
            yield (
                f"index b-tree of {size} {label}",
                sparse(
                    rng,
                    (60, 50),
                    (2, 3),
                    random_cells(rng, (60, 50), 300),
                    filters=filters,
                    maximum=(None, None),
                    node_size=size,
                ),
            )


def number_filter_cases(rng, shape, chunk):
    """Filters of numbers over values whose number varies from chunk to chunk."""
    for dtype, low, high, precision, offset in (
        ("<i4", 0, 1 << 12, 12, 0),
        ("<u2", 0, 1 << 9, 9, 0),
        ("<u8", 0, 1 << 40, 40, 0),
        ("<u4", 0, 1 << 10, 10, 3),
    ):
        cells = clustered_cells(rng, shape, 120)
        values = (rng.integers(low, high, len(cells)) << offset).astype(dtype)
        size = values.dtype.itemsize
        nbit = [8, 0, 0, 1, size, 0, precision, offset]
        for chain in ([(NBIT, nbit)], [(NBIT, nbit), (DEFLATE, [6])]):
            options = {"filters": {1: chain}}
            yield f"filter nbit {dtype} {len(chain)}", Sparse(shape, chunk, cells, values, **options)
    for dtype, low, high in (("<i4", -500, 900), ("<u2", 7, 8), ("<i8", -(1 << 50), 1 << 50)):
        cells = clustered_cells(rng, shape, 120)
        values = rng.integers(low, high, len(cells)).astype(dtype)
        signed = int(values.dtype.kind == "i")
        scale = [2, 0, 0, 0, values.dtype.itemsize, signed, *[0] * 14]
        for chain in ([(SCALEOFFSET, scale)], [(SCALEOFFSET, scale), (ZSTD, [1])]):
            options = {"filters": {1: chain}}
            yield f"filter scaleoffset {dtype} {len(chain)}", Sparse(shape, chunk, cells, values, **options)


def filter_cases(rng):
    """Filters on either section, skipped filters, and unfiltered edges."""
    shape, chunk = (30, 22), (8, 8)

    def case(**options):
        return sparse(rng, shape, chunk, clustered_cells(rng, shape, 120), **options)

    yield "filter section 0", case(filters={0: [(DEFLATE, [6])]})
    yield "filter section 1", case(filters=GZIP)
    yield "filter both", case(filters=BOTH)
    yield "filter fletcher32", case(filters={0: [(FLETCHER32, [])], 1: [(FLETCHER32, [])]})
    yield "filter three", case(filters={1: [(SHUFFLE, [4]), (DEFLATE, [1]), (FLETCHER32, [])]})
    yield "filter zstd", case(filters={0: [(ZSTD, [3])], 1: [(SHUFFLE, [4]), (ZSTD, [1])]})
    yield "filter skipped", case(filters=BOTH, skip={1: 0b10})
    yield "filter all skipped", case(filters=BOTH, skip={0: 0b1, 1: 0b11})
    yield from number_filter_cases(rng, shape, chunk)
    yield "filter plain edges", case(filters=BOTH, plain_edges=True)
    yield "filter plain edges without filters", case(plain_edges=True)


def location_cases(rng):
    """The location filter in every form a writer may choose, and where it cannot help."""
    shapes = ((3600,), (300,)), ((45, 60), (15, 20)), ((16, 12, 21), (8, 6, 7))
    chains = ("alone", []), ("deflate", [(DEFLATE, [6])]), ("zstd", [(ZSTD, [3])])
    for (shape, chunk), (label, chain) in itertools.product(shapes, chains):
        filters = {0: [(LOCATION, []), *chain]}
        for density in (0.02, 0.4, 0.97):
            cells = random_cells(rng, shape, int(math.prod(shape) * density))
            name = f"location {label} rank {len(shape)} density {density}"
            yield name, sparse(rng, shape, chunk, cells, filters=filters, selection="canonical")
    filters = {0: [(LOCATION, [])]}
    boxes = patterned_cells((24, 30, 28), (8, 10, 7), ((1, 3, 2, 2), (2, 9, 1, 5), (1, 9, 1, 4)))
    yield (
        "location boxes",
        sparse(rng, (24, 30, 28), (8, 10, 7), boxes, filters=filters, selection="canonical"),
    )
    cells = random_cells(rng, (30, 22), 200)
    for form in ("v1", "points1", "overlap"):
        yield (
            f"location verbatim {form}",
            sparse(rng, (30, 22), (8, 8), cells, filters=filters, selection=form),
        )
    yield (
        "location verbatim extent",
        sparse(rng, (30, 22), (8, 8), cells, filters=filters, extent_version=2),
    )


def type_cases(rng):
    """Element types, fill values and attributes."""
    cells = random_cells(rng, (25, 12), 60)
    for dtype in "i1 <i2 >i2 <i4 >i4 <i8 >i8 u1 <u2 >u4 <u8 <f2 <f4 >f4 <f8 >f8 S1 S7".split():
        yield f"type {dtype}", sparse(rng, (25, 12), (10, 5), cells, dtype)
    yield "type record", sparse(rng, (25, 12), (10, 5), cells, RECORD)
    yield "fill value", sparse(rng, (25, 12), (10, 5), cells, "<f8", fill=-1.5)
    yield "fill value big-endian", sparse(rng, (25, 12), (10, 5), cells, ">i4", fill=77)
    attributes = {"answer": np.int32(42), "axis": np.arange(3.0), "unit": np.bytes_(b"keV")}
    yield "attributes", sparse(rng, (25, 12), (10, 5), cells, attributes=attributes)


def tolerance_cases(rng):
    """Older and unusual spellings that a reader must accept."""
    shape, chunk = (30, 22), (8, 8)

    def case(**options):
        return sparse(rng, shape, chunk, random_cells(rng, shape, 90), **options)

    yield "header versions 0", case(header_version=0)
    yield "block versions 1", case(block_version=1, maximum=(None, 22))
    yield "b-tree versions 0 and 1", case(header_version=0, block_version=1, maximum=(None, None))
    yield "extensible header version 0", case(header_version=0, maximum=(None, 22))
    yield "type field 0", case(type_field=0)
    yield "trailing bytes", case(trailing=2)
    yield (
        "trailing bytes single",
        sparse(rng, (9, 9), (9, 9), random_cells(rng, (9, 9), 20), trailing=8),
    )
    yield "filters in 0x0B", case(filters=BOTH, pipeline_message=0x0B)
    yield "sections reversed", case(filters=BOTH, reversed_sections=True)
    yield "b-tree node size 0", case(maximum=(None, None), declared_node_size=0)
    yield "extent version 2", case(extent_version=2)
    yield "extent with maximum", case(extent_maximum=True)
    yield "extent with no end", case(extent_maximum=True, maximum=(None, 22))
    yield "extent version 2 with maximum", case(extent_version=2, extent_maximum=True)
    yield "continuation block", case(continuation=True, attributes={"a": np.arange(5)})
    yield "nothing written", sparse(rng, shape, chunk, np.zeros((0, 2), np.uint64))
    yield (
        "nothing written single",
        sparse(rng, (8, 8), (8, 8), np.zeros((0, 2), np.uint64), filters=GZIP),
    )
    yield (
        "nothing written b-tree",
        sparse(rng, shape, chunk, np.zeros((0, 2), np.uint64), maximum=(None, None)),
    )
    # Cells beyond the extent, left by a writer that shrank the dataset.
    yield "stale cells", sparse(rng, (29, 19), (8, 8), random_cells(rng, (32, 24), 400))
    yield (
        "extent of zero",
        sparse(rng, (0, 22), (8, 8), np.zeros((0, 2), np.uint64), maximum=(None, 22)),
    )


def older_cases(rng):
    """The composition after the address, with every index."""
    shape, chunk = (30, 22), (8, 8)
    for label, filters in (("plain", {}), ("filtered", BOTH)):
        for maximum in (None, (None, 22), (None, None)):
            cells = random_cells(rng, shape, 90)
            name = f"composition last {maximum} {label}"
            yield (
                name,
                sparse(
                    rng, shape, chunk, cells, composition_last=True, maximum=maximum, filters=filters
                ),
            )
        single = random_cells(rng, (9, 9), 20)
        yield (
            f"composition last single {label}",
            sparse(rng, (9, 9), (9, 9), single, composition_last=True, filters=filters),
        )


def random_spelling(rng):
    """A small dataset with a random shape, and everything that may be spelt in several ways."""
    rank = int(rng.integers(1, 5))
    shape = [int(rng.integers(1, (50, 12, 7, 4)[rank - 1] + 1)) for _ in range(rank)]
    chunk = [int(rng.integers(1, n + 1)) for n in shape]
    kind = int(rng.integers(5))
    maximum = list(shape)
    if kind == 0:
        chunk = list(shape)
    elif kind == 1:
        maximum = [n + int(rng.integers(0, 5)) for n in shape]
    elif kind == 2:
        maximum[int(rng.integers(rank))] = None
    elif kind == 3:
        maximum = [None] * rank
    # Some writers leave cells of edge chunks beyond the extent.
    stale = kind and rng.random() < 0.3
    held = [-(-n // c) * c for n, c in zip(shape, chunk)] if stale else shape
    cells = random_cells(rng, held, int(rng.integers(0, 40)))
    dtype = ("i1", "<i2", ">i4", "<f4", ">f8", "S3", RECORD)[rng.integers(7)]
    size = np.dtype(dtype).itemsize
    coin = lambda: bool(rng.random() < 0.3)
    options = {
        "selection": ("v1", "v3", "points1", "points2", "overlap")[rng.integers(5)],
        "header_version": int(rng.integers(2)),
        "block_version": int(rng.integers(2)),
        "type_field": int(rng.integers(4)),
        "trailing": int(rng.integers(3)),
        "node_size": (2048, 512)[rng.integers(2)],
        "declared_node_size": (None, 0)[rng.integers(2)],
        "page_bits": (10, 2)[rng.integers(2)],
        "extent_version": int(rng.integers(1, 3)),
        "extent_maximum": coin(),
        "continuation": coin(),
        "reversed_sections": coin(),
        "composition_last": coin(),
        "plain_edges": coin(),
    }
    if rng.random() < 0.6:
        chains = (
            ([], [(DEFLATE, [4])], [(ZSTD, [1])], [(FLETCHER32, [])], [(LOCATION, [])]),
            ([], [(SHUFFLE, [size]), (DEFLATE, [6])], [(DEFLATE, [1]), (FLETCHER32, [])]),
        )
        options["filters"] = {s: list(c[rng.integers(len(c))]) for s, c in enumerate(chains)}
        options["pipeline_message"] = (0x19, 0x0B)[rng.integers(2)]
        skip = {s: int(rng.integers(1 << len(f))) for s, f in options["filters"].items()}
        options["skip"] = {s: mask for s, mask in skip.items() if coin()}
        if options["filters"][0] == [(LOCATION, [])]:
            options["selection"] = "canonical"
            options["extent_version"], options["extent_maximum"] = 1, False
    return sparse(rng, shape, chunk, cells, dtype, maximum=tuple(maximum), **options)


def all_cases(seed=7):
    """{name: Sparse} of everything above, the same in every run."""
    rng = np.random.default_rng(seed)
    makers = (
        selection_cases,
        index_cases,
        filter_cases,
        location_cases,
        type_cases,
        tolerance_cases,
    )
    return {name: spec for maker in makers for name, spec in maker(rng)}


def inside(spec):
    """The cells that a reader must report: those inside the extent."""
    keep = (spec.coordinates < np.array(spec.shape, np.uint64)).all(axis=1)
    place, values = spec.coordinates[keep], spec.values[keep]
    order = np.lexsort(place.T[::-1])
    return place[order], values[order]
