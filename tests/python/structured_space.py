"""Dataspaces as bytes: extents, and selections in every serialised form.

A selection becomes the sorted linear (row-major) indices of its cells in the
extent, as an array of unsigned 64-bit integers.
"""

import dataclasses
import math

import numpy as np

from hdf5_bytes import Cursor, FormatError, require

UNLIMITED = 0xFFFF_FFFF_FFFF_FFFF
NONE, POINTS, HYPERSLABS, ALL = 0, 1, 2, 3


@dataclasses.dataclass
class Extent:
    """A dataspace's shape; `dims` is None for a null dataspace."""

    dims: list | None
    maximum: list | None = None
    version: int = 1


@dataclasses.dataclass
class Selection:
    """The cells of a selection, and how it was written down."""

    cells: np.ndarray
    kind: int
    version: int
    blocks: int = 0
    regular: bool = False
    smallest: bool = True


def decode_extent(cursor, length_size):
    """A dataspace message of version 1 or 2."""
    version, rank, flags = cursor.u8(), cursor.u8(), cursor.u8()
    require(version in (1, 2), f"{cursor.what}: dataspace version {version}")
    require(rank <= 32, f"{cursor.what}: rank {rank}")
    kind = 1
    if version == 1:
        cursor.take(5)
        require(flags & ~0x03 == 0, f"{cursor.what}: dataspace flags {flags:#x}")
        require(flags & 0x02 == 0, f"{cursor.what}: permutation indices are not implemented")
    else:
        kind = cursor.u8()
        require(flags & ~0x01 == 0, f"{cursor.what}: dataspace flags {flags:#x}")
        require(kind in (0, 1, 2), f"{cursor.what}: dataspace type {kind}")
        require(kind == 1 or rank == 0, f"{cursor.what}: a scalar of rank {rank}")
    dims = cursor.uints(rank, length_size)
    maximum = None
    if flags & 0x01:
        unlimited = (1 << 8 * length_size) - 1
        maximum = [UNLIMITED if m == unlimited else m for m in cursor.uints(rank, length_size)]
        for size, most in zip(dims, maximum):
            require(size <= most, f"{cursor.what}: size {size} above its maximum {most}")
    return Extent(None if kind == 2 else dims, maximum, version)


def strides(dims):
    """Cells between neighbours along each axis."""
    result = [1] * len(dims)
    for axis in range(len(dims) - 2, -1, -1):
        result[axis] = result[axis + 1] * dims[axis + 1]
    return result


def product_cells(axes, dims):
    """Linear indices of the product of per-axis coordinate arrays."""
    cells = np.zeros(1, np.uint64)
    for coordinates, stride in zip(axes, strides(dims)):
        part = coordinates.astype(np.uint64) * np.uint64(stride)
        cells = (cells[:, None] + part[None, :]).reshape(-1)
    return cells


def block_cells(start, end, dims):
    """Linear indices of the box from `start` to `end`, both inclusive."""
    axes = [np.arange(low, high + 1, dtype=np.uint64) for low, high in zip(start, end)]
    return product_cells(axes, dims)


def row_cells(start, end, dims):
    """Linear indices of many blocks that each lie in one row."""
    first = start @ np.array(strides(dims), np.uint64)
    lengths = (end[:, -1] - start[:, -1] + np.uint64(1)).astype(np.int64)
    before = np.cumsum(lengths) - lengths
    step = np.arange(lengths.sum(), dtype=np.int64) - np.repeat(before, lengths)
    return np.repeat(first, lengths) + step.astype(np.uint64)


def regular_axis(start, stride, count, block, size, unlimited, what):
    """Coordinates that a regular hyperslab selects along one axis."""
    require(stride > 0 or count == 1, f"{what}: stride 0")
    if block == unlimited:
        require(count == 1, f"{what}: unlimited block with count {count}")
        block = max(0, size - start)
    endless = count == unlimited
    if endless:
        count = max(0, -(-(size - start) // stride)) if size > start else 0
    require(count <= 1 or block <= stride, f"{what}: blocks overlap")
    starts = start + stride * np.arange(count, dtype=np.uint64)
    axis = (starts[:, None] + np.arange(block, dtype=np.uint64)[None, :]).reshape(-1)
    if endless:
        axis = axis[axis < size]
    require(len(axis) == 0 or int(axis[-1]) < size, f"{what}: hyperslab outside the extent")
    return axis


def decode_points(cursor, version, dims):
    width = 4
    if version == 1:
        cursor.take(8)
    else:
        require(version == 2, f"{cursor.what}: points version {version}")
        width = cursor.u8()
        require(width in (2, 4, 8), f"{cursor.what}: encoding width {width}")
    rank = cursor.u32()
    require(rank == len(dims), f"{cursor.what}: points of rank {rank}, extent {list(dims)}")
    count = cursor.uint(width)
    require(count * rank * width <= cursor.left(), f"{cursor.what}: {count} points do not fit")
    raw = np.frombuffer(cursor.take(count * rank * width), f"<u{width}")
    coordinates = raw.reshape(count, rank).astype(np.uint64)
    require(bool((coordinates < np.array(dims, np.uint64)).all()), f"{cursor.what}: point outside")
    cells = coordinates @ np.array(strides(dims), np.uint64)
    return Selection(np.unique(cells), POINTS, version, count)


def irregular_blocks(cursor, dims, width, version):
    count = cursor.uint(width)
    rank = len(dims)
    require(count * 2 * rank * width <= cursor.left(), f"{cursor.what}: {count} blocks do not fit")
    raw = np.frombuffer(cursor.take(count * 2 * rank * width), f"<u{width}")
    corners = raw.reshape(count, 2, rank).astype(np.uint64)
    start, end = corners[:, 0], corners[:, 1]
    fits = ((start <= end) & (end < np.array(dims, np.uint64))).all()
    require(bool(fits), f"{cursor.what}: a block outside {list(dims)}")
    flat = (start[:, :-1] == end[:, :-1]).all(axis=1)
    pieces = [row_cells(start[flat], end[flat], dims)]
    pieces += [block_cells(s, e, dims) for s, e in zip(start[~flat], end[~flat])]
    return Selection(np.unique(np.concatenate(pieces)), HYPERSLABS, version, count)


def regular_blocks(cursor, dims, width, version):
    unlimited = (1 << 8 * width) - 1
    axes, blocks = [], 1
    for size in dims:
        start, stride, count, block = cursor.uints(4, width)
        axis = regular_axis(start, stride, count, block, size, unlimited, cursor.what)
        axes.append(axis)
        blocks *= count
    return Selection(product_cells(axes, dims), HYPERSLABS, version, blocks, True)


def decode_hyperslab(cursor, version, dims):
    require(version in (1, 2, 3), f"{cursor.what}: hyperslab version {version}")
    regular, width = False, 4
    if version == 1:
        cursor.take(8)
    else:
        flags = cursor.u8()
        require(flags & ~0x01 == 0, f"{cursor.what}: hyperslab flags {flags:#x}")
        regular = bool(flags & 0x01)
        if version == 2:
            width = 8
            require(regular, f"{cursor.what}: version 2 is for regular hyperslabs")
            cursor.take(4)
        else:
            width = cursor.u8()
            require(width in (2, 4, 8), f"{cursor.what}: encoding width {width}")
    rank = cursor.u32()
    require(rank == len(dims), f"{cursor.what}: hyperslab of rank {rank}, extent {list(dims)}")
    read = regular_blocks if regular else irregular_blocks
    return read(cursor, dims, width, version)


def decode_selection(cursor, dims):
    """A serialised selection over an extent of shape `dims`."""
    kind, version = cursor.u32(), cursor.u32()
    if kind in (ALL, NONE):
        require(version == 1, f"{cursor.what}: selection version {version}")
        cursor.take(8)
        count = math.prod(dims) if kind == ALL else 0
        return Selection(np.arange(count, dtype=np.uint64), kind, version)
    if kind == POINTS:
        return decode_points(cursor, version, dims)
    if kind == HYPERSLABS:
        return decode_hyperslab(cursor, version, dims)
    raise FormatError(f"{cursor.what}: selection type {kind}")


def decode_dataspace(data, what):
    """Extent and selection in the form of H5Sencode, as section 0 holds them."""
    cursor = Cursor(data, what)
    require(cursor.u8() == 1, f"{what}: not a dataspace")
    require(cursor.u8() == 0, f"{what}: encoding version")
    require(cursor.u8() == 8, f"{what}: size of lengths")
    body = Cursor(cursor.take(cursor.u32()), what)
    extent = decode_extent(body, 8)
    require(extent.dims is not None, f"{what}: null dataspace")
    start = cursor.position
    selection = decode_selection(cursor, extent.dims)
    require(cursor.left() == 0, f"{what}: {cursor.left()} bytes after the selection")
    selection.smallest = cursor.position - start <= smallest_form(selection, extent.dims)
    return extent, selection


def smallest_form(selection, dims):
    """Bytes of the smallest form: ALL, or of the versions that hold these blocks."""
    rank = len(dims)
    if len(selection.cells) in (0, math.prod(dims)):
        return 16
    if selection.kind != HYPERSLABS:
        return 0
    largest = max(*dims, selection.blocks)
    width = 2 if largest <= 0xFFFF else 4 if largest <= 0xFFFF_FFFF else 8
    if selection.regular:
        return min(17 + 32 * rank, 14 + 4 * width * rank)
    listed = 14 + width + 2 * width * rank * selection.blocks
    return min(24 + 8 * rank * selection.blocks, listed) if width < 8 else listed
