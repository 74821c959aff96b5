"""Builds files with variable-length data in structured chunks, dense and sparse.

Written from the format documents; see structured_builder.py.
"""

import dataclasses
import math
import struct

import numpy as np

from builder_index import write_index
from builder_space import encode_dataspace, encode_extent
from hdf5_bytes import filter_encode, sealed
from structured_builder import Chunk, FileBuilder, Sparse, encode_datatype, encode_filters, pack
from structured_heap import HeapWriter
from varlen import size_of


@dataclasses.dataclass
class Variable(Sparse):
    """A dataset of a datatype as in varlen.py. Sparse, or dense: then `values` has all cells."""

    kind: object = None
    dense: bool = False
    heap: str = "plain"  # see structured_heap.HeapWriter

    @property
    def sections(self):
        return 2 if self.dense else 3

    def dtype(self):
        return np.dtype(f"V{size_of(self.kind)}")


class VariableBuilder(FileBuilder):
    def variable(self, name, spec):
        chunks = [self.variable_chunk(spec, *piece) for piece in pieces(spec)]
        filtered = any(spec.filters.values())
        index = write_index(self, spec, chunks, filtered)
        messages = [
            (0x01, 0, encode_extent(spec.shape, spec.maximum, 2)),
            (0x03, 1, encode_kind(spec.kind)),
            (0x05, 1, bytes([3, 0x0B])),
            (0x08, 0, encode_layout(spec, filtered, index)),
        ]
        if filtered:
            messages.append((spec.pipeline_message, 1, encode_filters(spec)))
        self.add(name, messages)

    def variable_chunk(self, spec, scaled, cells, values):
        heap = HeapWriter(spec.heap)
        references = b"".join(heap.element(spec.kind, value) for value in values)
        image = heap.image()
        sections = [sealed(references), sealed(image) if image else b""]
        if not spec.dense:
            space = encode_dataspace(spec.selection, cells, spec.chunk, spec.extent_version, None)
            sections.insert(0, sealed(space))
        unfiltered = [len(section) for section in sections]
        for number, chain in spec.filters.items():
            for identifier, parameters in chain:
                if sections[number]:
                    sections[number] = filter_encode(identifier, parameters, sections[number])
        data = b"".join(sections)
        offsets = [sum(map(len, sections[:n])) for n in range(1, len(sections))]
        masks = [0] * len(sections)
        return Chunk(scaled, self.append(data), len(data), offsets, unfiltered, masks)


def pieces(spec):
    """(scaled, cells, values) of every stored chunk; a dense chunk has all its cells."""
    found = {}
    for place, value in zip(np.asarray(spec.coordinates).tolist(), spec.values):
        scaled = tuple(x // c for x, c in zip(place, spec.chunk))
        cell = 0
        for x, c in zip(place, spec.chunk):
            cell = cell * c + x % c
        found.setdefault(scaled, {})[cell] = value
    for scaled, cells in sorted(found.items()):
        if spec.dense:
            cells = {n: cells.get(n, blank(spec.kind)) for n in range(math.prod(spec.chunk))}
        order = sorted(cells)
        yield scaled, np.array(order, np.uint64), [cells[cell] for cell in order]


def blank(kind):
    """What a cell holds that was never written."""
    if isinstance(kind, str):
        return bytes(size_of(kind))
    if "vlen" in kind:
        return None
    if "array" in kind:
        return [blank(kind["array"])] * math.prod(kind["dims"])
    return tuple(blank(field["dtype"]) for field in kind["fields"])


def encode_layout(spec, filtered, index):
    """Layout message version 5, class 4; all sections have a checksum."""
    kind, parameters, address = index
    flags = 0x02 if kind == 1 and filtered else 0
    dims = [*spec.chunk, size_of(spec.kind)]
    width = max((d.bit_length() + 7) // 8 for d in dims)
    type_field = 2 if spec.dense else 3
    message = struct.pack("<BBBHBBB", 5, 4, 0, type_field, flags, len(dims), width)
    message += b"".join(pack(d, width) for d in dims)
    sections = list(range(spec.sections))
    message += bytes([8, len(sections), len(sections), *sections, kind])
    return message + parameters + pack(address, 8)


def encode_kind(kind):
    """A datatype message of version 3."""
    size = struct.pack("<I", size_of(kind))
    if isinstance(kind, str):
        return encode_datatype(np.dtype(kind), 3)
    if kind.get("vlen") == "string":
        return bytes([0x39, 0x01, 0x01, 0]) + size + encode_datatype(np.dtype("u1"), 3)
    if "vlen" in kind:
        return bytes([0x39, 0, 0, 0]) + size + encode_kind(kind["vlen"])
    if "array" in kind:
        dims = kind["dims"]
        head = bytes([0x3A, 0, 0, 0]) + size + bytes([len(dims)])
        return head + struct.pack(f"<{len(dims)}I", *dims) + encode_kind(kind["array"])
    message = bytes([0x36]) + pack(len(kind["fields"]), 3) + size
    width = (kind["size"].bit_length() + 7) // 8
    for field in kind["fields"]:
        message += field["name"].encode() + b"\0" + pack(field["offset"], width)
        message += encode_kind(field["dtype"])
    return message
