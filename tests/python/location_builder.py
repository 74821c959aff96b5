"""Writes the location filter's compact form in any way the format allows.

A writer chooses kind, complement, differences and the form of each stream; here
the caller does, so that readers meet all of them, also those that no good writer
would choose. Slow and plain: a set is one truth value per cell.
"""

import dataclasses

import numpy as np

from canonical_space import edges_of, plain_form
from hdf5_bytes import lookup3, sealed, unsealed
from location_filter import BITMAP, BLOCK, BYTES, CELLS, COMPACT, COMPLEMENT, CONSTANT, VERBATIM
from structured_space import decode_dataspace


@dataclasses.dataclass
class Choice:
    """What a writer decides; a constant stream that is not constant is packed."""

    kind: int
    complement: bool = False
    axes: int = 0
    form: int = CONSTANT

    @staticmethod
    def of(number, rank):
        """One of all choices, so that different numbers make different ones."""
        number, kind = divmod(number, 3)
        number, complement = divmod(number, 2)
        number, form = divmod(number, 3)
        return Choice(kind, bool(complement), number % (1 << (rank - 1)), form)


def location_encode(data, choice=None):
    """Compact if the bytes are canonical and do not get twice as long, else verbatim."""
    verbatim = bytes([VERBATIM]) + data
    if not data:
        return verbatim
    extent, selection = decode_dataspace(unsealed(data, "section 0"), "section 0")
    defined = np.zeros(int(np.prod(extent.dims)), bool)
    defined[selection.cells.astype(np.int64)] = True
    if data != plain_form(extent.dims, edges_of(defined)):
        return verbatim
    choice = choice or Choice.of(lookup3(data), len(extent.dims))
    compact = compact_form(defined.reshape(extent.dims), choice)
    return compact if len(compact) < 2 * len(data) else verbatim


def compact_form(defined, choice):
    """The compact form of a set, an array of the chunk's shape."""
    head = bytes([COMPACT, choice.kind + COMPLEMENT * choice.complement, defined.ndim])
    head += b"".join(varint(size) for size in defined.shape) + varint(choice.axes)
    for axis in reversed(range(defined.ndim - 1)):
        if choice.axes >> axis & 1:
            slices = np.moveaxis(defined, axis, 0)
            changed = np.concatenate([slices[:1], slices[1:] ^ slices[:-1]])
            defined = np.moveaxis(changed, 0, axis)
    bits = defined.reshape(-1) ^ choice.complement
    return sealed(head + body(bits, choice))


def body(bits, choice):
    if choice.kind == BITMAP:
        return np.packbits(bits, bitorder="little").tobytes()
    if choice.kind == CELLS:
        cells = np.flatnonzero(bits)
        return varint(len(cells)) + stream(np.diff(cells, prepend=-1) - 1, choice.form)
    starts, ends = edges_of(bits).reshape(-1, 2).T
    gaps = starts - np.concatenate([[-1], ends])[: len(starts)] - 1
    streams = [stream(numbers, choice.form) for numbers in (gaps, ends - starts - 1)]
    return varint(len(starts)) + b"".join(streams)


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def stream(numbers, form):
    numbers = [int(n) for n in numbers]
    if form == CONSTANT and len(set(numbers)) <= 1:
        return bytes([CONSTANT]) + varint(numbers[0] if numbers else 0)
    return bytes_stream(numbers) if form == BYTES else packed_stream(numbers)


def bytes_stream(numbers):
    large = [n - 255 for n in numbers if n >= 255]
    width = max(1, (max(large).bit_length() + 7) // 8) if large else 0
    planes = [bytes(n >> 8 * plane & 0xFF for n in large) for plane in range(width)]
    small = bytes(min(n, 255) for n in numbers)
    return bytes([BYTES]) + small + bytes([width]) + b"".join(planes)


def packed_stream(numbers):
    blocks = [numbers[i : i + BLOCK] for i in range(0, len(numbers), BLOCK)]
    means = [sum(block) // len(block) for block in blocks]
    widths = [max(0, mean.bit_length() - 1) for mean in means]
    unary = "".join("0" * (n >> k) + "1" for k, block in zip(widths, blocks) for n in block)
    low = [
        "".join(format(n & ~(-1 << k), f"0{k}b")[::-1] for n in block) if k else ""
        for k, block in zip(widths, blocks)
    ]
    high = packed_bits(unary)
    rest = b"".join(map(packed_bits, low))
    return bytes([1, *widths]) + varint(len(high)) + high + rest


def packed_bits(text):
    """A string of 0 and 1, lowest bit of the first byte first."""
    return np.packbits(np.array(list(text), np.uint8), bitorder="little").tobytes()
