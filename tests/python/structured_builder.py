"""Builds small HDF5 files with sparse (structured) datasets, byte by byte.

For tests that a reader must pass: every chunk index, every form of a
selection, filters per section, and the older or unusual spellings that readers
must accept. Written from the format documents; shares only the checksum and the
filters with the decoder beside it. Dense data is written contiguous.

    file = FileBuilder()
    file.dense("plain", np.arange(4))
    file.sparse("holes", Sparse((10, 10), (5, 5), coordinates, values))
    file.save("out.h5")
"""

import dataclasses
import struct

import numpy as np

from builder_index import write_index
from builder_space import encode_dataspace, encode_extent
from hdf5_bytes import UNDEFINED, filter_encode, sealed

UNLIMITED = None


@dataclasses.dataclass
class Sparse:
    """A sparse dataset to be built, and how its bytes are to be spelt."""

    shape: tuple
    chunk: tuple
    coordinates: np.ndarray  # n x rank, row-major order, unique
    values: np.ndarray
    maximum: tuple | None = None  # None in it: unlimited
    fill: object = None
    attributes: dict = dataclasses.field(default_factory=dict)
    filters: dict = dataclasses.field(default_factory=dict)  # {section: [(id, parameters)]}
    skip: dict = dataclasses.field(default_factory=dict)  # {section: filter mask}
    selection: str = "v3"  # see builder_space.encode_selection
    index: str = ""  # "single", "fixed", "extensible", "b-tree"; empty: by the rules
    header_version: int = 1  # FAHD, EAHD, BTHD, FADB
    block_version: int = 0  # other index blocks
    page_bits: int = 10
    extensible: tuple = (32, 4, 4, 16, 10)  # in the layout message's order
    node_size: int = 2048
    declared_node_size: int | None = None
    type_field: int = 1
    trailing: int = 0  # spare bytes at the layout message's end
    composition_last: bool = False  # after the address, as until September 2025
    pipeline_message: int = 0x19
    reversed_sections: bool = False  # section 1's filters before section 0's
    extent_version: int = 1
    extent_maximum: bool = False
    plain_edges: bool = False  # partial edge chunks are not filtered
    continuation: bool = False  # part of the object header in a second block

    def dtype(self):
        return self.values.dtype

    def chosen_index(self):
        if self.index:
            return self.index
        maximum = self.maximum or self.shape
        unlimited = sum(m is UNLIMITED for m in maximum)
        if unlimited:
            return "b-tree" if unlimited > 1 else "extensible"
        return "single" if tuple(self.shape) == tuple(self.chunk) == tuple(maximum) else "fixed"


@dataclasses.dataclass
class Chunk:
    """One chunk as it goes into an index."""

    scaled: tuple
    address: int
    size: int
    offsets: list
    unfiltered: list
    masks: list


class FileBuilder:
    """A file image that grows; the superblock is filled in last."""

    def __init__(self, superblock=3):
        self.superblock = superblock
        self.image = bytearray(48)
        self.tree = {}

    def append(self, data, gap=0):
        """Place bytes at the end, 8-aligned, and return their address."""
        self.image += bytes(-len(self.image) % 8 + gap)
        address = len(self.image)
        self.image += data
        return address

    def dense(self, name, array, attributes=None):
        array = np.ascontiguousarray(array)
        address = self.append(array.tobytes()) if array.size else UNDEFINED
        layout = struct.pack("<BBQQ", 4, 1, address, array.nbytes)
        messages = [
            (0x01, 0, encode_extent(array.shape, None, 2)),
            (0x03, 1, encode_datatype(array.dtype)),
            (0x05, 1, bytes([3, 0x0A])),
            (0x08, 0, layout),
        ]
        self.add(name, messages + encode_attributes(attributes or {}))

    def sparse(self, name, spec):
        chunks = [self.write_chunk(spec, *piece) for piece in split(spec)]
        filtered = any(spec.filters.values())
        index = write_index(self, spec, chunks, filtered)
        messages = [
            (0x01, 0, encode_extent(spec.shape, spec.maximum, 2)),
            (0x03, 1, encode_datatype(spec.dtype())),
            (0x05, 1, encode_fill(spec)),
            (0x08, 0, encode_layout(spec, filtered, index)),
        ]
        if filtered:
            messages.append((spec.pipeline_message, 1, encode_filters(spec)))
        self.add(name, messages + encode_attributes(spec.attributes), spec.continuation)

    def write_chunk(self, spec, scaled, cells, values):
        # A maximum, where one is written, is the dataset's, as other writers do.
        maximum = (spec.maximum or spec.shape) if spec.extent_maximum else None
        space = encode_dataspace(spec.selection, cells, spec.chunk, spec.extent_version, maximum)
        sections = [sealed(space) if space else b"", values.tobytes()]
        unfiltered = [len(s) for s in sections]
        masks = [0, 0]
        partial = any((s + 1) * c > n for s, c, n in zip(scaled, spec.chunk, spec.shape))
        if not (spec.plain_edges and partial):
            for number, chain in spec.filters.items():
                masks[number] = spec.skip.get(number, 0)
                for position, (identifier, parameters) in enumerate(chain):
                    if not masks[number] >> position & 1:
                        sections[number] = filter_encode(identifier, parameters, sections[number])
        data = b"".join(sections)
        address = self.append(data)
        return Chunk(scaled, address, len(data), [len(sections[0])], unfiltered, masks)

    def add(self, name, messages, continuation=False):
        """Write an object header and link it under a path."""
        *groups, leaf = name.strip("/").split("/")
        here = self.tree
        for group in groups:
            here = here.setdefault(group, {})
        here[leaf] = self.object_header(messages, continuation)

    def object_header(self, messages, continuation=False):
        encoded = [struct.pack("<BHB", k, len(d), f) + d for k, f, d in messages]
        if continuation:
            rest = sealed(b"OCHK" + b"".join(encoded[2:]))
            where = struct.pack("<QQ", self.append(rest), len(rest))
            encoded = encoded[:2] + [struct.pack("<BHB", 0x10, 16, 0) + where]
        body = b"".join(encoded)
        return self.append(sealed(b"OHDR" + struct.pack("<BBI", 2, 0x02, len(body)) + body))

    def group(self, tree):
        links = []
        for name, child in tree.items():
            address = self.group(child) if isinstance(child, dict) else child
            raw = name.encode()
            links.append((0x06, 0, struct.pack("<BBB", 1, 0, len(raw)) + raw + pack(address, 8)))
        info = bytes([0, 0]) + pack(UNDEFINED, 8) + pack(UNDEFINED, 8)
        return self.object_header([(0x02, 0, info), (0x0A, 1, bytes([0, 0])), *links])

    def save(self, path):
        root = self.group(self.tree)
        head = b"\x89HDF\r\n\x1a\n" + bytes([self.superblock, 8, 8, 0])
        head += struct.pack("<QQQQ", 0, UNDEFINED, len(self.image), root)
        self.image[:48] = sealed(head)
        with open(path, "wb") as file:
            file.write(self.image)


def pack(value, width):
    return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def split(spec):
    """(scaled, linear cells, values) of every chunk that has a defined cell."""
    chunk = np.array(spec.chunk, np.uint64)
    coordinates = np.asarray(spec.coordinates, np.uint64).reshape(len(spec.values), len(chunk))
    scaled, inner = coordinates // chunk, coordinates % chunk
    cells = np.zeros(len(coordinates), np.uint64)
    for axis, size in enumerate(spec.chunk):
        cells = cells * np.uint64(size) + inner[:, axis]
    for key in sorted(set(map(tuple, scaled.tolist()))):
        here = np.flatnonzero((scaled == np.array(key, np.uint64)).all(axis=1))
        here = here[np.argsort(cells[here], kind="stable")]
        yield key, cells[here], spec.values[here]


def encode_layout(spec, filtered, index):
    """Layout message version 5, class 4, for two sections."""
    kind, parameters, address = index
    flags = (0x01 if spec.plain_edges else 0) | (0x02 if kind == 1 and filtered else 0)
    dims = [*spec.chunk, spec.dtype().itemsize]
    width = max((d.bit_length() + 7) // 8 for d in dims)
    message = struct.pack("<BBBHBBB", 5, 4, 0, spec.type_field, flags, len(dims), width)
    message += b"".join(pack(d, width) for d in dims)
    composition, index = bytes([8, 2, 1, 0]), bytes([kind]) + parameters + pack(address, 8)
    message += index + composition if spec.composition_last else composition + index
    return message + b"\xa5" * spec.trailing


def encode_filters(spec):
    """Per-section filters; the list holds the version 2 descriptions."""
    sections = sorted(s for s, chain in spec.filters.items() if chain)
    if spec.reversed_sections:
        sections.reverse()
    message = bytes([1 if spec.pipeline_message == 0x19 else 3, len(sections)])
    for section in sections:
        chain = spec.filters[section]
        body = b"".join(encode_filter(*item) for item in chain)
        message += struct.pack("<BBH", section, len(chain), len(body)) + body
    return message


def encode_filter(identifier, parameters):
    name = b"a filter with a name\0" if identifier >= 256 else b""
    length = struct.pack("<H", len(name)) if identifier >= 256 else b""
    fixed = struct.pack("<HH", 1, len(parameters))
    values = struct.pack(f"<{len(parameters)}I", *parameters)
    return struct.pack("<H", identifier) + length + fixed + name + values


def encode_fill(spec):
    if spec.fill is None:
        return bytes([3, 0x0B])
    value = np.array(spec.fill, spec.dtype()).tobytes()
    return bytes([3, 0x2B]) + struct.pack("<I", len(value)) + value


def encode_datatype(dtype, version=1):
    """A datatype message from a numpy dtype."""
    size = dtype.itemsize
    big = dtype.byteorder == ">"

    def head(kind, bits, version=version):
        return bytes([version << 4 | kind]) + pack(bits, 3) + struct.pack("<I", size)

    if dtype.names:
        width = (size.bit_length() + 7) // 8
        message = head(6, len(dtype.names), 3)
        for name in dtype.names:
            member, offset = dtype.fields[name][:2]
            message += name.encode() + b"\0" + pack(offset, width) + encode_datatype(member, 3)
        return message
    if dtype.kind in "iu":
        bits = (1 if big else 0) | (8 if dtype.kind == "i" else 0)
        return head(0, bits) + struct.pack("<HH", 0, 8 * size)
    if dtype.kind == "f":
        exponent = {2: 5, 4: 8, 8: 11}[size]
        mantissa = 8 * size - 1 - exponent
        bits = (1 if big else 0) | 0x20 | (8 * size - 1) << 8
        bias = (1 << (exponent - 1)) - 1
        return head(1, bits) + struct.pack(
            "<HHBBBBI", 0, 8 * size, mantissa, exponent, 0, mantissa, bias
        )
    if dtype.kind == "S":
        return head(3, 1)
    raise ValueError(f"no datatype message for {dtype}")


def encode_attributes(attributes):
    messages = []
    for name, value in attributes.items():
        array = np.asarray(value)
        raw = name.encode() + b"\0"
        dtype = encode_datatype(array.dtype)
        space = encode_extent(array.shape, None, 2)
        sizes = struct.pack("<BBHHHB", 3, 0, len(raw), len(dtype), len(space), 1)
        messages.append((0x0C, 0, sizes + raw + dtype + space + array.tobytes()))
    return messages
