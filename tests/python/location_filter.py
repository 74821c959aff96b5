"""The location filter undone: from its compact form to the plain section 0.

Written from docs/format/location-filter.md alone. Every rule of that page is
verified. Sets of cells are edges, as canonical_space.py explains.
"""

import math

import numpy as np

from canonical_space import MOST_PIECES, edges_of, expanded, odd_ones, pieces, plain_form
from hdf5_bytes import Cursor, FormatError, Unsupported, require, unsealed

WHAT = "location filter"
VERBATIM, COMPACT = 0, 1
BITMAP, CELLS, RUNS, COMPLEMENT = 0, 1, 2, 4
CONSTANT, PACKED, BYTES = 0, 1, 2
NUMBERS_BELOW, BLOCK, MOST_RUNS = 1 << 48, 256, 1 << 22


def location_decode(data, limit):
    """The bytes that the filter was given; `limit` bounds their number."""
    require(len(data) > 0, f"{WHAT}: no mode")
    if data[0] == VERBATIM:
        require(len(data) <= limit + 1, f"{WHAT}: more than {limit} bytes")
        return bytes(data[1:])
    require(data[0] == COMPACT, f"{WHAT}: mode {data[0]}")
    dims, edges = decode_cells(data)
    # A set with too many runs, or one that gets twice as long, must go verbatim.
    require(len(edges) <= 2 * MOST_RUNS, f"{WHAT}: {len(edges) // 2} runs")
    plain = plain_form(dims, edges)
    require(len(plain) <= limit, f"{WHAT}: more than {limit} bytes")
    require(len(data) < 2 * len(plain), f"{WHAT}: {len(plain)} bytes became {len(data)}")
    return plain


def decode_cells(data):
    """Shape and edges of a compact form."""
    cursor = Cursor(unsealed(data, WHAT), WHAT, position=1)
    kind, rank = cursor.u8(), cursor.u8()
    require(kind & ~COMPLEMENT <= RUNS, f"{WHAT}: kind {kind}")
    require(1 <= rank <= 32, f"{WHAT}: rank {rank}")
    dims = [varint(cursor) for _ in range(rank)]
    require(all(dims), f"{WHAT}: dimensions {dims}")
    cells = math.prod(dims)
    require(cells <= NUMBERS_BELOW, f"{WHAT}: {cells} cells")
    axes = varint(cursor)
    require(axes >> (rank - 1) == 0, f"{WHAT}: axes {axes:#b} of rank {rank}")
    read = {BITMAP: read_bitmap, CELLS: read_cells, RUNS: read_runs}[kind & ~COMPLEMENT]
    edges = read(cursor, cells)
    require(cursor.left() == 0, f"{WHAT}: {cursor.left()} bytes after the body")
    if kind & COMPLEMENT:
        edges = odd_ones(np.concatenate([edges, [0, cells]]))
    for axis in range(rank - 1):
        if axes >> axis & 1:
            edges = undo_difference(edges, dims[axis], math.prod(dims[axis + 1 :]))
    return dims, edges


def undo_difference(edges, size, slice_cells):
    """Each slice becomes its symmetric difference with the restored one before it.

    So a place in a slice has an edge if that place had an odd number of edges in
    this slice and those before it: from the first to the second, and so on.
    """
    if len(edges) == 0:
        return edges
    number, first, last = pieces(edges, slice_cells)
    number, place = np.tile(number, 2), np.concatenate([first, last + 1])
    group, number = np.divmod(number, size)
    order = np.lexsort((number, place, group))
    group, number, place = group[order], number[order], place[order]
    fresh = (np.diff(group, prepend=-1) != 0) | (np.diff(place, prepend=-1) != 0)
    heads = np.flatnonzero(fresh)
    even = (np.arange(len(place)) - heads[np.cumsum(fresh) - 1]) % 2 == 0
    until = np.where(np.append(fresh[1:], True), size, np.append(number[1:], 0))
    group, number, place = group[even], number[even], place[even]
    item, step = expanded(until[even] - number)
    slices = group[item] * size + number[item] + step
    return odd_ones(slices * slice_cells + place[item])


def varint(cursor):
    """Seven bits a byte, lowest first; at most 63 bits, no zero byte at the end."""
    number = 0
    for shift in range(0, 63, 7):
        byte = cursor.u8()
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            require(byte > 0 or shift == 0, f"{WHAT}: a number with a zero byte at its end")
            return number
    raise FormatError(f"{WHAT}: a number of more than 63 bits")


def bits_of(raw):
    """Bits as 0 and 1, lowest of the first byte first."""
    return np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")


def read_bitmap(cursor, cells):
    bits = bits_of(cursor.take(-(-cells // 8)))
    require(not bits[cells:].any(), f"{WHAT}: bits beyond the last cell")
    return edges_of(bits[:cells].astype(bool))


def read_cells(cursor, cells):
    gaps = read_stream(cursor, counted(cursor, cells), cells)
    places = np.cumsum(gaps + 1) - 1
    require(places.max(initial=0) < cells, f"{WHAT}: a cell outside the chunk")
    return odd_ones(np.concatenate([places, places + 1]))


def read_runs(cursor, cells):
    count = counted(cursor, cells)
    gaps = read_stream(cursor, count, cells)
    lengths = read_stream(cursor, count, cells) + 1
    gaps[1:] += 1
    ends = np.cumsum(gaps + lengths)
    require(ends.max(initial=0) <= cells, f"{WHAT}: a run beyond the chunk")
    return np.stack([ends - lengths, ends], axis=1).reshape(-1)


def counted(cursor, cells):
    count = varint(cursor)
    require(count <= cells, f"{WHAT}: {count} cells or runs in a chunk of {cells}")
    if count > MOST_PIECES:
        raise Unsupported(f"{WHAT}: {count} cells or runs")
    return count


def read_stream(cursor, count, cells):
    """`count` numbers below 2^48 whose sum stays in the chunk."""
    form = cursor.u8()
    if form == CONSTANT:
        number = varint(cursor)
        require(number < NUMBERS_BELOW, f"{WHAT}: number {number}")
        numbers = np.full(count, number, np.uint64)
    else:
        require(form in (PACKED, BYTES), f"{WHAT}: stream form {form}")
        numbers = (read_packed if form == PACKED else read_bytes)(cursor, count)
        largest = int(numbers.max(initial=0))
        require(largest < NUMBERS_BELOW, f"{WHAT}: number {largest}")
    # A double counts exactly up to 2^53, and does not wrap beyond.
    total = numbers.sum(dtype=np.float64)
    require(total <= cells, f"{WHAT}: cells up to {total} in a chunk of {cells}")
    return numbers.astype(np.int64)


def read_packed(cursor, count):
    """Rice codes: a k per block, all quotients in unary, then the low bits by block."""
    widths = cursor.take(-(-count // BLOCK))
    require(max(widths, default=0) <= 48, f"{WHAT}: k {max(widths, default=0)}")
    ones = np.flatnonzero(bits_of(cursor.take(varint(cursor))))
    require(len(ones) == count, f"{WHAT}: {len(ones)} ones for {count} numbers")
    high = np.diff(ones, prepend=-1).astype(np.uint64) - np.uint64(1)
    numbers = np.zeros(count, np.uint64)
    for block, k in enumerate(widths):
        part = slice(block * BLOCK, min(count, (block + 1) * BLOCK))
        size = part.stop - part.start
        bits = bits_of(cursor.take(-(-size * k // 8)))
        require(not bits[size * k :].any(), f"{WHAT}: bits beyond the last number")
        weights = np.uint64(1) << np.arange(k, dtype=np.uint64)
        low = bits[: size * k].reshape(size, k) @ weights
        require(int(high[part].max()) << k < NUMBERS_BELOW, f"{WHAT}: a number above 2^48")
        numbers[part] = (high[part] << np.uint64(k)) + low.astype(np.uint64)
    return numbers


def read_bytes(cursor, count):
    """A byte each; what 255 or more exceeds 255 by follows, plane by plane."""
    numbers = np.frombuffer(cursor.take(count), np.uint8).astype(np.uint64)
    large = np.flatnonzero(numbers == 255)
    width = cursor.u8()
    require(width <= 6 and (width == 0) == (len(large) == 0), f"{WHAT}: large width {width}")
    for plane in range(width):
        part = np.frombuffer(cursor.take(len(large)), np.uint8).astype(np.uint64)
        numbers[large] += part << np.uint64(8 * plane)
    return numbers
