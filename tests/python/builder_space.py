"""Writes extents and selections, each selection in a form of the caller's choice."""

import math
import struct

import numpy as np

from canonical_space import edges_of, plain_form

UNDEFINED = (1 << 64) - 1


def encode_extent(dims, maximum, version):
    """A dataspace message; None in `maximum` means unlimited."""
    flags = 0 if maximum is None else 1
    if version == 1:
        message = bytes([1, len(dims), flags]) + bytes(5)
    else:
        message = bytes([2, len(dims), flags, 1 if len(dims) else 0])
    message += struct.pack(f"<{len(dims)}Q", *dims)
    if maximum is not None:
        most = [UNDEFINED if m is None else m for m in maximum]
        message += struct.pack(f"<{len(most)}Q", *most)
    return message


def encode_dataspace(form, cells, dims, extent_version, maximum):
    """Section 0 before its checksum; form "empty" gives no bytes at all.

    Form "canonical" is the one that the location filter can make compact.
    """
    if form == "empty":
        if len(cells) != math.prod(dims):
            raise ValueError("an empty section 0 defines every cell")
        return b""
    if form == "canonical":
        defined = np.zeros(math.prod(dims), bool)
        defined[np.asarray(cells, np.int64)] = True
        return plain_form(dims, edges_of(defined))[:-4]
    extent = encode_extent(dims, maximum, extent_version)
    return (
        bytes([1, 0, 8])
        + struct.pack("<I", len(extent))
        + extent
        + encode_selection(form, cells, dims)
    )


def encode_selection(form, cells, dims):
    """The cells in the named form.

    all, points1, points2, v1 (corner pairs), v2 (regular), v3 (irregular),
    v3-regular, overlap (v1 with every block twice), boxes (v1 with blocks that
    span rows), unlimited (v3 regular whose last axis has no end).
    """
    rank = len(dims)
    if form == "all":
        if len(cells) != math.prod(dims):
            raise ValueError("not every cell is selected")
        return struct.pack("<IIII", 3, 1, 0, 0)
    if form in ("points1", "points2"):
        return encode_points(form, coordinates(cells, dims))
    if form in ("v1", "overlap", "boxes"):
        blocks = boxes(cells, dims) if form == "boxes" else rows(cells, dims)
        if form == "overlap":
            blocks = [block for block in blocks for _ in range(2)]
        body = b"".join(struct.pack(f"<{2 * rank}I", *start, *end) for start, end in blocks)
        head = struct.pack("<IIIIII", 2, 1, 0, 8 + len(body), rank, len(blocks))
        return head + body
    if form == "v3":
        blocks = rows(cells, dims)
        numbers = [x for start, end in blocks for x in (*start, *end)]
        letter, width = width_for(max([len(blocks), *numbers]))
        head = struct.pack("<IIBBI", 2, 3, 0, width, rank)
        return head + struct.pack(f"<{1 + len(numbers)}{letter}", len(blocks), *numbers)
    pattern = regular(cells, dims)
    numbers = [x for axis in pattern for x in axis]
    if form == "v2":
        head = struct.pack("<IIBII", 2, 2, 1, 4 + 32 * rank, rank)
        return head + struct.pack(f"<{len(numbers)}Q", *numbers)
    if form in ("v3-regular", "unlimited"):
        needs = [max(c + 1, b + 1, s, t) for s, t, c, b in pattern]
        letter, width = width_for(max(needs))
        if form == "unlimited":
            start, stride, count, block = pattern[-1]
            if start + stride * count < dims[-1]:
                raise ValueError("the last axis ends before the extent")
            numbers[-2] = (1 << 8 * width) - 1
        head = struct.pack("<IIBBI", 2, 3, 1, width, rank)
        return head + struct.pack(f"<{len(numbers)}{letter}", *numbers)
    raise ValueError(f"no selection form {form}")


def encode_points(form, points):
    count, rank = points.shape
    if form == "points1":
        head = struct.pack("<IIIIII", 1, 1, 0, 8 + 4 * rank * count, rank, count)
        return head + points.astype("<u4").tobytes()
    letter, width = width_for(max(count, int(points.max(initial=0))))
    head = struct.pack("<IIBI", 1, 2, width, rank) + struct.pack(f"<{letter}", count)
    return head + points.astype(f"<u{width}").tobytes()


def width_for(largest):
    """struct letter and bytes of the narrowest of 2, 4 and 8 that holds it."""
    for letter, width in (("H", 2), ("I", 4)):
        if largest < 1 << 8 * width:
            return letter, width
    return "Q", 8


def coordinates(cells, dims):
    unraveled = np.unravel_index(np.asarray(cells, np.int64), dims)
    return np.stack(unraveled, 1).astype(np.uint64).reshape(len(cells), len(dims))


def rows(cells, dims):
    """Blocks of one row each: runs along the last axis, inclusive corners."""
    blocks = []
    for point in coordinates(cells, dims).tolist():
        if blocks:
            start, end = blocks[-1]
            if end[:-1] == point[:-1] and end[-1] + 1 == point[-1]:
                end[-1] = point[-1]
                continue
        blocks.append((point, list(point)))
    return blocks


def boxes(cells, dims):
    """The rows, with equal ones of neighbouring lines joined."""
    if len(dims) == 1:
        return rows(cells, dims)
    joined, open_boxes = [], {}
    for start, end in rows(cells, dims):
        key = (tuple(start[:-2]), start[-1], end[-1])
        box = open_boxes.get(key)
        if box and box[1][-2] + 1 == start[-2]:
            box[1][-2] = start[-2]
            continue
        open_boxes[key] = (start, end)
        joined.append((start, end))
    return joined


def regular(cells, dims):
    """(start, stride, count, block) of each axis; the cells must be regular."""
    points = coordinates(cells, dims)
    axes = [np.unique(points[:, axis]).astype(np.int64) for axis in range(len(dims))]
    if math.prod(len(a) for a in axes) != len(cells):
        raise ValueError("not a regular selection")
    return [regular_axis(axis) for axis in axes]


def regular_axis(places):
    breaks = np.flatnonzero(np.diff(places) > 1)
    block = int(breaks[0]) + 1 if len(breaks) else len(places)
    if len(places) % block:
        raise ValueError("not a regular selection")
    count = len(places) // block
    start = int(places[0])
    stride = int(places[block]) - start if count > 1 else block
    again = (start + stride * np.arange(count)[:, None] + np.arange(block)[None, :]).reshape(-1)
    if not np.array_equal(again, places):
        raise ValueError("not a regular selection")
    return start, stride, count, block
