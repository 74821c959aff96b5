"""Section 0 as Pumice writes it, from a set of cells: the canonical form.

Written from docs/format/location-filter.md. A set of cells is held as its
*edges*: the ascending numbers of the cells that are in the set while the cell
before is not, or the other way round, and the end if the last cell is in.
"""

import itertools
import math
import struct

import numpy as np

from hdf5_bytes import Unsupported, sealed

MOST_PIECES = 1 << 26  # in memory; the format itself has no such limit


def plain_form(dims, edges):
    """Dataspace and checksum as a canonical section 0 has them."""
    rank = len(dims)
    extent = bytes([1, rank, 0]) + bytes(5) + struct.pack(f"<{rank}Q", *dims)
    head = bytes([1, 0, 8]) + struct.pack("<I", len(extent)) + extent
    if len(edges) == 0:
        selection = struct.pack("<IIII", 0, 1, 0, 0)
    elif edges[1] - edges[0] == math.prod(dims):
        selection = struct.pack("<IIII", 3, 1, 0, 0)
    else:
        blocks = span_blocks(dims, edges)
        forms = [*listed_forms(*blocks), *regular_forms(*blocks)]
        selection = min(forms, key=lambda form: (len(form), form[4]))
    return sealed(head + selection)


def span_blocks(dims, edges):
    """Corners of the blocks: equal neighbouring slices joined, from the inside out."""
    outer, first, last = pieces(edges, dims[-1])
    starts, ends = first[:, None], last[:, None]
    for size in reversed(dims[:-1]):
        heads = np.flatnonzero(np.diff(outer, prepend=-1))
        counts = np.diff(heads, append=len(outer))
        before = np.maximum(np.arange(len(outer)) - np.repeat(np.roll(counts, 1), counts), 0)
        equal = ((starts == starts[before]) & (ends == ends[before])).all(axis=1)
        parent, place = np.divmod(outer[heads], size)
        joined = np.logical_and.reduceat(equal, heads) & (counts == np.roll(counts, 1))
        joined &= (place > 0) & (np.diff(outer[heads], prepend=-1) == 1)
        joined[0] = False
        until = place[np.append(~joined[1:], True)]
        kept, group = np.repeat(~joined, counts), np.repeat(np.cumsum(~joined) - 1, counts)
        outer = np.repeat(parent, counts)[kept]
        begin = np.repeat(place, counts)[kept]
        starts = np.column_stack([begin, starts[kept]])
        ends = np.column_stack([until[group[kept]], ends[kept]])
    return starts, ends


def width_for(largest):
    return next(width for width in (2, 4, 8) if largest < 1 << 8 * width)


def listed_forms(starts, ends):
    """Hyperslab versions 1 and 3 with a list of blocks."""
    count, rank = starts.shape
    corners = np.concatenate([starts, ends], axis=1)
    width = width_for(max(count, int(corners.max())))
    if width <= 4:
        head = struct.pack("<IIIIII", 2, 1, 0, 8 + 8 * rank * count, rank, count)
        yield head + corners.astype("<u4").tobytes()
    head = struct.pack("<IIBBI", 2, 3, 0, width, rank) + count.to_bytes(width, "little")
    yield head + corners.astype(f"<u{width}").tobytes()


def regular_forms(starts, ends):
    """Hyperslab versions 2 and 3 of a regular set, nothing for another."""
    count, rank = starts.shape
    axes = [np.unique(np.stack(pair, axis=1), axis=0) for pair in zip(starts.T, ends.T)]
    pattern = [regular_axis(*axis.T) for axis in axes]
    if None in pattern or math.prod(map(len, axes)) != count:
        return
    numbers = list(itertools.chain(*pattern))
    yield struct.pack(f"<IIBII{4 * rank}Q", 2, 2, 1, 4 + 32 * rank, rank, *numbers)
    # All ones would mean "unlimited" in a count or a block.
    width = width_for(max(max(s, t, c + 1, b + 1) for s, t, c, b in pattern))
    letter = {2: "H", 4: "I", 8: "Q"}[width]
    yield struct.pack(f"<IIBBI{4 * rank}{letter}", 2, 3, 1, width, rank, *numbers)


def regular_axis(starts, ends):
    """(start, stride, count, block), or None; a single block has its own size for a stride."""
    steps, blocks = np.unique(np.diff(starts)), np.unique(ends - starts + 1)
    if len(steps) > 1 or len(blocks) > 1:
        return None
    stride = steps[0] if len(steps) else blocks[0]
    return int(starts[0]), int(stride), len(starts), int(blocks[0])


def edges_of(defined):
    """The edges of a set that is given as one truth value per cell."""
    return np.flatnonzero(np.diff(defined.reshape(-1), prepend=False, append=False))


def odd_ones(numbers):
    """What occurs an odd number of times, ascending: edges that meet cancel out."""
    found, counts = np.unique(numbers, return_counts=True)
    return found[counts % 2 == 1]


def pieces(edges, slice_cells):
    """Runs cut where slices meet: slice, first and last place in it."""
    start, last = edges[0::2], edges[1::2] - 1
    slices = start // slice_cells
    run, step = expanded(last // slice_cells - slices + 1)
    number = slices[run] + step
    first = np.maximum(start[run] - number * slice_cells, 0)
    last = np.minimum(last[run] - number * slice_cells, slice_cells - 1)
    return number, first, last


def expanded(counts):
    """For all items in turn: the item `count` times, beside 0, 1, 2 and so on."""
    if counts.sum(dtype=np.float64) > MOST_PIECES:
        raise Unsupported(f"a set of more than {MOST_PIECES} pieces")
    item = np.repeat(np.arange(len(counts)), counts)
    return item, np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)
