"""An independent decoder of sparse (structured) datasets in HDF5 files.

Python's standard library and numpy only, written from the format documents and
not from the library: what it reads is what the bytes say. Superblock 2 and 3,
version 2 object headers, compact links and attributes; the layout message
(version 5, class 4), per-section filters, every chunk index, every form of a
selection. Elements of fixed size and of variable length. Every rule is verified: checksums, owners,
offsets in order, counts against sizes, no two structures on the same bytes.

    decode("file.h5")["/group/dataset"].coordinates, .values

`Dataset.notes` lists what a reader must accept but a careful writer would not
write (`python structured_decoder.py FILE` prints them).
"""

import dataclasses
import math
import pathlib
import sys

import numpy as np

from dense_index import claim_dense
from hdf5_bytes import (
    UNDEFINED,
    Cursor,
    FormatError,
    Unsupported,
    filter_decode,
    require,
    unsealed,
)
from structured_index import (
    BTree,
    ExtensibleArray,
    Geometry,
    Record,
    fixed_array,
    scaled_from_slot,
    width_of_size,
)
from structured_space import UNLIMITED, decode_dataspace, decode_extent
from structured_heap import decode_heap, follow, follow_in_file
from structured_types import decode_datatype, kind_of

DATASPACE, LINK_INFO, DATATYPE, FILL_VALUE, LINK, LAYOUT = 0x01, 0x02, 0x03, 0x05, 0x06, 0x08
PIPELINE, ATTRIBUTE, CONTINUATION, SYMBOL_TABLE = 0x0B, 0x0C, 0x10, 0x11
ATTRIBUTE_INFO, SECTION_PIPELINE = 0x15, 0x19

SINGLE, FIXED_ARRAY, EXTENSIBLE_ARRAY, B_TREE = 1, 3, 4, 5
INDEX_NAMES = {1: "single", 3: "fixed array", 4: "extensible array", 5: "b-tree"}
LAYOUT_NAMES = {0: "compact", 1: "contiguous", 2: "chunked", 3: "virtual", 4: "sparse"}


@dataclasses.dataclass
class Dataset:
    """A dataset; what follows `layout` is filled in for sparse ones."""

    shape: tuple
    maximum: tuple
    dtype: np.dtype
    fill: object
    layout: str
    attributes: dict
    chunk: tuple = ()
    index: str = ""
    filters: dict = dataclasses.field(default_factory=dict)
    chunks: dict = dataclasses.field(default_factory=dict)
    coordinates: np.ndarray = None
    values: np.ndarray = None
    notes: list = dataclasses.field(default_factory=list)

    def cells(self):
        """{coordinate: value} of the defined cells."""
        return {tuple(map(int, c)): v for c, v in zip(self.coordinates, self.values.tolist())}


@dataclasses.dataclass
class Layout:
    """The layout message of a structured dataset."""

    type: int
    flags: int
    chunk: list
    element_size: int
    sections: int
    checked: list
    index: int
    parameters: list
    single: Record | None
    address: int


class File:
    """The image of a file, and who claimed which of its bytes."""

    def __init__(self, data):
        self.data = data
        self.claims = []
        self.notes = []
        self.read_superblock()

    def read_superblock(self):
        cursor = Cursor(self.data, "superblock")
        cursor.expect(b"\x89HDF\r\n\x1a\n")
        version = cursor.u8()
        if version not in (2, 3):
            raise Unsupported(f"superblock version {version}")
        self.offset_size, self.length_size = cursor.u8(), cursor.u8()
        for size in (self.offset_size, self.length_size):
            require(size in (2, 4, 8), f"superblock: sizes of {size} bytes")
        require(cursor.u8() & ~0x07 == 0, "superblock: unknown flags")
        self.base = 0
        require(self.address(cursor) == 0, "superblock: base address")
        self.extension, self.end, self.root = (self.address(cursor) for _ in range(3))
        size = cursor.position + 4
        unsealed(self.data[:size], "superblock")
        self.claim(0, size, "superblock")
        require(self.end <= len(self.data), f"superblock: end {self.end} of {len(self.data)}")

    def address(self, cursor):
        value = cursor.uint(self.offset_size)
        return UNDEFINED if value == (1 << 8 * self.offset_size) - 1 else value

    def bytes(self, address, size, what):
        require(address + size <= self.end, f"{what}: {size} bytes at {address} end after the file")
        return self.data[address : address + size]

    def claim(self, address, size, what):
        self.bytes(address, size, what)
        if size:
            self.claims.append((address, address + size, what))

    def sealed(self, address, size, what):
        """A checksummed block's body, claimed."""
        self.claim(address, size, what)
        return unsealed(self.bytes(address, size, what), what)

    def version(self, cursor, what, written):
        found = cursor.u8()
        require(found in (0, 1), f"{cursor.what}: version {found}")
        if found != written:
            self.note(f"{what} version {found}, {written} is written today")

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def check_claims(self):
        """No byte may belong to two structures."""
        last_end, last_what = 0, ""
        for start, end, what in sorted(self.claims):
            require(start >= last_end, f"{what} at {start} lies on {last_what}, ends {last_end}")
            last_end, last_what = end, what


def read_messages(file, address):
    """The messages of a version 2 object header: (type, flags, bytes) each."""
    what = f"object header at {address}"
    cursor = Cursor(file.bytes(address, 6, what), what)
    cursor.expect(b"OHDR")
    version, flags = cursor.u8(), cursor.u8()
    require(version == 2, f"{what}: version {version}")
    require(flags & ~0x3F == 0, f"{what}: flags {flags:#x}")
    prefix = 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    head = file.bytes(address, prefix + width, what)
    size = int.from_bytes(head[prefix:], "little")
    body = file.sealed(address, prefix + width + size + 4, what)
    ordered = bool(flags & 0x04)
    messages, blocks = [], [Cursor(body, what, prefix + width)]
    while blocks:
        for message in split_messages(blocks.pop(0), ordered):
            if message[0] == CONTINUATION:
                blocks.append(continuation(file, message[2]))
            else:
                messages.append(message)
    return messages


def split_messages(cursor, ordered):
    head = 6 if ordered else 4
    while cursor.left() >= head:
        kind, size, flags = cursor.u8(), cursor.u16(), cursor.u8()
        if ordered:
            cursor.u16()
        yield kind, flags, cursor.take(size)


def continuation(file, data):
    where = Cursor(data, "continuation message")
    address, size = file.address(where), where.uint(file.length_size)
    what = f"continuation block at {address}"
    cursor = Cursor(file.sealed(address, size, what), what)
    cursor.expect(b"OCHK")
    return cursor


def read_link(file, data):
    """(name, address) of a hard link, None for any other."""
    cursor = Cursor(data, "link message")
    require(cursor.u8() == 1, "link message: version")
    flags = cursor.u8()
    kind = cursor.u8() if flags & 0x08 else 0
    if flags & 0x04:
        cursor.u64()
    if flags & 0x10:
        require(cursor.u8() in (0, 1), "link message: character set")
    name = cursor.take(cursor.uint(1 << (flags & 3))).decode("utf-8")
    return (name, file.address(cursor)) if kind == 0 else None


def read_attribute(file, data):
    """(name, array) of an attribute message."""
    cursor = Cursor(data, "attribute message")
    version, flags = cursor.u8(), cursor.u8()
    require(version in (1, 2, 3), f"attribute message: version {version}")
    if version > 1 and flags:
        raise Unsupported("attribute with shared parts")
    sizes = cursor.uints(3, 2)
    if version == 3:
        cursor.u8()
    padding = 8 if version == 1 else 1
    parts = []
    for size in sizes:
        parts.append(cursor.take(size))
        cursor.take(-size % padding)
    name = parts[0].rstrip(b"\0").decode("utf-8")
    dtype = decode_datatype(Cursor(parts[1], f"attribute {name}"))
    extent = decode_extent(Cursor(parts[2], f"attribute {name}"), file.length_size)
    if extent.dims is None:
        return name, None
    count = math.prod(extent.dims)
    raw = cursor.take(count * dtype.itemsize)
    return name, np.frombuffer(raw, dtype, count).reshape(extent.dims)


def read_fill(file, data, dtype):
    """The fill value of message 0x05, None when undefined or default."""
    cursor = Cursor(data, "fill value message")
    version = cursor.u8()
    require(version in (1, 2, 3), f"fill value message: version {version}")
    if version == 3:
        defined = cursor.u8() & 0x20
    else:
        cursor.take(2)
        defined = cursor.u8()
    size = cursor.u32() if defined or version == 1 else 0
    if size == 0:
        return None
    require(size == dtype.itemsize, f"fill value message: {size} bytes for {dtype}")
    if kind := kind_of(dtype):
        return follow_in_file(kind, cursor.take(size), file)
    return np.frombuffer(cursor.take(size), dtype, 1)[0]


def read_layout(file, data):
    """The structured layout message, every field checked."""
    cursor = Cursor(data, "layout message")
    require(cursor.take(2) == b"\x05\x04", "layout message: not structured")
    require(cursor.u8() == 0, "layout message: property version")
    kind, flags = cursor.u16(), cursor.u8()
    require(flags & ~0x03 == 0, f"layout message: flags {flags:#x}")
    dimensions, width = cursor.u8(), cursor.u8()
    require(2 <= dimensions <= 33, f"layout message: dimensionality {dimensions}")
    require(1 <= width <= 8, f"layout message: {width} bytes a dimension")
    *chunk, element = cursor.uints(dimensions, width)
    require(all(chunk) and element, "layout message: a dimension of 0")
    require(cursor.u8() == 8, "layout message: offset size")
    sections, checked_count = cursor.u8(), cursor.u8()
    require(1 <= sections <= 3, f"layout message: {sections} sections")
    require(checked_count <= sections, "layout message: too many metadata sections")
    checked = cursor.uints(checked_count, 1)
    require(all(s < sections for s in checked), f"layout message: metadata sections {checked}")
    layout = Layout(kind, flags, chunk, element, sections, checked, cursor.u8(), [], None, 0)
    read_index_parameters(layout, cursor)
    layout.address = file.address(cursor)
    note_layout(file, layout, width, cursor.left())
    return layout


def read_index_parameters(layout, cursor):
    if layout.index == SINGLE:
        n = layout.sections
        # Where all sections have a checksum, there is variable-length data of any size.
        wide = 3 if layout.checked == list(range(n)) and n > 1 else n
        size = cursor.uint(width_of_size(math.prod(layout.chunk) * layout.element_size, wide))
        offsets = [0, *cursor.uints(n - 1, 8)]
        filtered = layout.flags & 0x02
        unfiltered = cursor.uints(n, 8) if filtered else None
        masks = cursor.uints(n, 4) if filtered else None
        layout.single = Record(0, size, offsets, unfiltered, masks)
        return
    counts = {FIXED_ARRAY: [1], EXTENSIBLE_ARRAY: [1] * 5, B_TREE: [4, 1, 1]}
    require(layout.index in counts, f"layout message: index type {layout.index}")
    layout.parameters = [cursor.uint(width) for width in counts[layout.index]]
    if layout.index == B_TREE:
        require(all(1 <= p <= 100 for p in layout.parameters[1:]), "layout message: percentages")
    else:
        require(all(layout.parameters), "layout message: an index parameter of 0")


def note_layout(file, layout, width, left):
    """What a writer of today does otherwise."""
    wanted = max((d.bit_length() + 7) // 8 for d in [*layout.chunk, layout.element_size])
    if width != wanted:
        file.note(f"layout message: {width} bytes a dimension, {wanted} suffice")
    if left:
        file.note(f"layout message: {left} bytes after the address")
    variable = layout.sections > 1 and layout.checked == list(range(layout.sections))
    if layout.type != ({2: 2, 3: 3} if variable else {2: 1}).get(layout.sections):
        file.note(f"layout message: type {layout.type:#06x}")
    if layout.sections == 2 and not variable and layout.checked != [0]:
        file.note(f"layout message: metadata sections {layout.checked}")
    if layout.index == B_TREE and layout.parameters[0] == 0:
        file.note("layout message: B-tree node size 0")


def read_filters(file, messages):
    """{section: [(id, optional, parameters)]} from message 0x19, else 0x0B version 3."""
    for kind, version in ((SECTION_PIPELINE, 1), (PIPELINE, 3)):
        for found, flags, data in messages:
            if found != kind:
                continue
            cursor = Cursor(data, f"section filters ({kind:#04x})")
            require(cursor.u8() == version, f"{cursor.what}: version")
            if kind == PIPELINE:
                file.note("section filters in message 0x0B")
            elif flags != 0x01:
                file.note(f"message 0x19 has flags {flags:#04x}")
            return read_section_filters(file, cursor)
    return {}


def read_section_filters(file, cursor):
    sections = {}
    for _ in range(cursor.u8()):
        section, count, size = cursor.u8(), cursor.u8(), cursor.u16()
        require(section < 3 and section not in sections, f"{cursor.what}: section {section}")
        require(count <= 32, f"{cursor.what}: {count} filters")
        if sections and section < max(sections):
            file.note("section filters not in ascending order")
        start = cursor.position
        sections[section] = [read_filter(cursor) for _ in range(count)]
        require(cursor.position - start == size, f"{cursor.what}: list of {size} bytes")
    if cursor.left():
        file.note(f"section filters: {cursor.left()} bytes after the last list")
    return {section: filters for section, filters in sections.items() if filters}


def read_filter(cursor):
    identifier = cursor.u16()
    name_size = cursor.u16() if identifier >= 256 else 0
    flags, count = cursor.u16(), cursor.u16()
    name = cursor.take(name_size)
    require(not name_size or name.endswith(b"\0"), f"{cursor.what}: filter name")
    return identifier, bool(flags & 1), cursor.uints(count, 4)


def chunk_counts(shape, maximum, chunk):
    """Chunks along each axis at the maximum extent, None where unlimited."""
    return [None if most == UNLIMITED else -(-most // size) for most, size in zip(maximum, chunk)]


def read_chunks(file, layout, geometry, dataset):
    """[(scaled coordinate, Record)] of every stored chunk."""
    if layout.address == UNDEFINED:
        if layout.single:
            record = layout.single
            blank = [
                record.size,
                *record.offsets,
                *(record.unfiltered or []),
                *(record.masks or []),
            ]
            require(not any(blank), "layout message: no chunk, but a size")
        return []
    if layout.index == SINGLE:
        layout.single.address = layout.address
        return [((0,) * geometry.rank, layout.single)]
    wide = 3 if kind_of(dataset.dtype) else layout.sections
    wanted = width_of_size(math.prod(layout.chunk) * layout.element_size, wide)
    if layout.index == B_TREE:
        tree = BTree(file, layout.address, geometry, layout.parameters[1:])
        if layout.parameters[0] not in (0, tree.node_size):
            file.note(f"layout message: node size {layout.parameters[0]}, not {tree.node_size}")
        width, found = tree.width, tree.records()
    elif layout.index == FIXED_ARRAY:
        width, slots = fixed_array(file, layout.address, geometry, layout.parameters[0])
        found = [(scaled_from_slot(s, geometry.counts), r) for s, r in slots]
    else:
        array = ExtensibleArray(file, layout.address, geometry, layout.parameters)
        width = array.elements.width
        found = [(scaled_from_slot(s, geometry.counts), r) for s, r in array.slots()]
    if width != wanted:
        file.note(f"chunk size in {width} bytes, {wanted} by the formula")
    return found


def is_partial(scaled, chunk, shape):
    return any((s + 1) * c > size for s, c, size in zip(scaled, chunk, shape))


def read_sections(file, layout, filters, scaled, record, dataset):
    """The chunk's sections, filters undone, checksums still on."""
    what = f"chunk {list(scaled)}"
    ends = [*record.offsets[1:], record.size]
    require(record.offsets == sorted(record.offsets), f"{what}: offsets {record.offsets}")
    require(ends[-1] >= record.offsets[-1], f"{what}: size {record.size}, {record.offsets}")
    file.claim(record.address, record.size, what)
    raw = file.bytes(record.address, record.size, what)
    unfilter = not (layout.flags & 0x01 and is_partial(scaled, layout.chunk, dataset.shape))
    sections = []
    for number, (start, end) in enumerate(zip(record.offsets, ends)):
        data = bytes(raw[start:end])
        if record.unfiltered is not None:
            wanted, mask = record.unfiltered[number], record.masks[number]
            chain = filters.get(number, [])
            require(mask >> len(chain) == 0, f"{what}: filter mask {mask:#x} of section {number}")
            # An empty heap has no filters and no checksum.
            if unfilter and (data or not kind_of(dataset.dtype)):
                data = undo(chain, mask, data, wanted, f"{what}, section {number}")
            require(len(data) == wanted, f"{what}: section {number} has {len(data)} of {wanted}")
        sections.append(data)
    return sections


def undo(chain, mask, data, wanted, what):
    for position in reversed(range(len(chain))):
        identifier, optional, parameters = chain[position]
        if mask >> position & 1:
            require(optional, f"{what}: mandatory filter {identifier} skipped")
            continue
        # A later filter may have added its own few bytes.
        data = filter_decode(identifier, parameters, data, wanted + 1024)
    return data


def read_chunk(file, layout, filters, scaled, record, dataset):
    """(linear cells in the chunk, values) of one chunk."""
    what = f"chunk {list(scaled)}"
    sections = read_sections(file, layout, filters, scaled, record, dataset)
    if kind_of(dataset.dtype):
        return read_variable(file, layout, sections, what, dataset)
    if layout.sections != 2:
        raise Unsupported(f"{layout.sections} sections")
    if 1 in layout.checked:
        raise Unsupported("a checksum on section 1 of 2")
    cells = read_cells(file, layout, sections[0], what)
    size = layout.element_size
    require(len(sections[1]) == len(cells) * size, f"{what}: values for {len(cells)} cells")
    return cells, np.frombuffer(sections[1], dataset.dtype, len(cells))


def read_variable(file, layout, sections, what, dataset):
    """(linear cells in the chunk, values) of a chunk with variable-length data."""
    require(layout.checked == list(range(layout.sections)), f"{what}: checksums {layout.checked}")
    require(layout.sections in (2, 3), f"{what}: {layout.sections} sections")
    *first, references, heap = sections
    if first:
        cells = read_cells(file, layout, first[0], what)
    else:
        cells = np.arange(math.prod(layout.chunk), dtype=np.uint64)
    references = unsealed(references, f"{what}, references")
    heap = unsealed(heap, f"{what}, heap") if heap else b""
    objects = decode_heap(heap, file.length_size)
    size, kind = layout.element_size, kind_of(dataset.dtype)
    require(len(references) == len(cells) * size, f"{what}: references for {len(cells)} cells")
    values, used = np.empty(len(cells), object), []
    for number in range(len(cells)):
        element = references[number * size : (number + 1) * size]
        values[number] = follow(kind, element, objects, used)
    if sorted(used) != sorted(objects):
        file.note(f"{what}: {len(objects)} objects, {len(used)} references")
    return cells, values


def read_cells(file, layout, section, what):
    """The defined cells that section 0 tells."""
    if section:
        body = unsealed(section, f"{what}, section 0") if 0 in layout.checked else section
        extent, selection = decode_dataspace(body, f"{what}, section 0")
        require(extent.dims == layout.chunk, f"{what}: extent {extent.dims}")
        cells = selection.cells
        if extent.version != 1 or extent.maximum is not None:
            file.note("section 0: extent of version 2 or with a maximum")
        if not selection.smallest:
            file.note(f"section 0: version {selection.version} is not the smallest form")
    else:
        file.note("section 0 is empty")
        cells = np.arange(math.prod(layout.chunk), dtype=np.uint64)
    if len(cells) == 0:
        file.note("a chunk without a defined cell")
    return cells


def read_sparse(file, messages, dataset, layout):
    """Fill in a sparse dataset."""
    rank = len(dataset.shape)
    require(len(layout.chunk) == rank, "layout message: rank")
    require(layout.element_size == dataset.dtype.itemsize, "layout message: element size")
    for size, most in zip(layout.chunk, dataset.maximum):
        require(size <= most, f"chunk {layout.chunk} above maximum {dataset.maximum}")
    filters = read_filters(file, messages)
    counts = chunk_counts(dataset.shape, dataset.maximum, layout.chunk)
    geometry = Geometry(rank, counts, layout.sections, bool(filters))
    check_index_choice(file, layout, geometry, dataset)
    dataset.chunk, dataset.index = tuple(layout.chunk), INDEX_NAMES[layout.index]
    dataset.filters = filters
    coordinates, values = [], []
    for scaled, record in read_chunks(file, layout, geometry, dataset):
        cells, data = read_chunk(file, layout, filters, scaled, record, dataset)
        place = np.stack(np.unravel_index(cells, layout.chunk), 1).astype(np.uint64)
        place = place.reshape(len(cells), rank) + np.array(scaled, np.uint64) * np.array(
            layout.chunk, np.uint64
        )
        inside = (place < np.array(dataset.shape, np.uint64)).all(axis=1)
        if not inside.all() and (layout.sections == 3 or not kind_of(dataset.dtype)):
            file.note(f"chunk {list(scaled)}: {(~inside).sum()} cells outside the extent")
        dataset.chunks[scaled] = record
        coordinates.append(place[inside])
        values.append(data[inside])
    gather(dataset, coordinates, values, rank)


def gather(dataset, coordinates, values, rank):
    """All cells of all chunks in row-major order."""
    place = np.concatenate([np.zeros((0, rank), np.uint64), *coordinates])
    dtype = np.dtype(object) if kind_of(dataset.dtype) else dataset.dtype
    data = np.concatenate([np.zeros(0, dtype), *values]).astype(dtype)
    order = np.lexsort(place.T[::-1])
    dataset.coordinates, dataset.values = place[order], data[order]


def check_index_choice(file, layout, geometry, dataset):
    """The rules that choose a chunk index, and the flags that follow."""
    unlimited = geometry.counts.count(None)
    # Where lengths are short, libhdf5 would find no axis for an extensible array.
    most = 1 if file.length_size == 8 else 0
    wanted = B_TREE if unlimited > most else EXTENSIBLE_ARRAY if unlimited else FIXED_ARRAY
    if tuple(layout.chunk) == dataset.maximum and (
        layout.index == SINGLE or dataset.shape == dataset.maximum
    ):
        wanted = SINGLE  # The extent may have shrunk since.
    if layout.index != wanted:
        file.note(f"index {INDEX_NAMES[layout.index]}, {INDEX_NAMES[wanted]} by the rules")
    if layout.index == EXTENSIBLE_ARRAY:
        require(unlimited == 1, "extensible array needs one unlimited dimension")
    if layout.index in (SINGLE, FIXED_ARRAY):
        require(unlimited == 0, f"{INDEX_NAMES[layout.index]} with an unlimited dimension")
    if layout.index == SINGLE:
        require(all(c <= 1 for c in geometry.counts), "single index for several chunks")
    single_filtered = layout.index == SINGLE and geometry.filtered
    require(bool(layout.flags & 0x02) == single_filtered, f"layout flags {layout.flags:#x}")


def read_dataset(file, messages):
    first = {}
    for kind, flags, data in messages:
        if flags & 0x02:
            raise Unsupported(f"shared message {kind:#04x}")
        first.setdefault(kind, data)
    extent = decode_extent(Cursor(first[DATASPACE], "dataspace message"), file.length_size)
    dtype = decode_datatype(Cursor(first[DATATYPE], "datatype message"))
    fill = read_fill(file, first[FILL_VALUE], dtype) if FILL_VALUE in first else None
    attributes = dict(read_attribute(file, d) for k, _, d in messages if k == ATTRIBUTE)
    version, kind = first[LAYOUT][:2]
    shape = tuple(extent.dims) if extent.dims is not None else None
    maximum = tuple(extent.maximum) if extent.maximum else shape
    dataset = Dataset(shape, maximum, dtype, fill, "", attributes)
    if version < 3:
        raise Unsupported(f"layout message version {version}")
    dataset.layout = LAYOUT_NAMES[kind]
    if kind in (1, 2):
        filtered = PIPELINE in first
        dataset.chunks = claim_dense(file, first[LAYOUT], shape, maximum, dtype, filtered)
    if (version, kind) == (5, 4):
        require(shape, "a sparse dataset must be an array")
        file.notes = []
        read_sparse(file, messages, dataset, read_layout(file, first[LAYOUT]))
        dataset.notes = file.notes
    return dataset


def walk(file, address, path, seen, found, errors=None):
    """Collect the datasets below one object; see `decode` for `errors`."""
    if address in seen:
        return
    seen.add(address)
    messages = read_messages(file, address)
    kinds = {kind for kind, _, _ in messages}
    if LAYOUT in kinds:
        try:
            found[path] = read_dataset(file, messages)
        except (FormatError, Unsupported) as error:
            if errors is None:
                raise type(error)(f"{path}: {error}") from error
            errors[path] = error
        return
    for kind, _, data in messages:
        if kind == SYMBOL_TABLE:
            raise Unsupported("old-style group")
        if kind == LINK_INFO:
            flags = data[1]
            heap = Cursor(data, "link info message", 2 + (8 if flags & 1 else 0))
            if file.address(heap) != UNDEFINED:
                raise Unsupported("dense link storage")
        if kind == LINK and (link := read_link(file, data)):
            walk(file, link[1], f"{path.rstrip('/')}/{link[0]}", seen, found, errors)


def decode(path, errors=None):
    """{path: Dataset} of a file.

    With a dictionary for `errors`, a dataset that breaks a rule goes there as
    {path: exception} and the others are decoded all the same.
    """
    file = File(pathlib.Path(path).read_bytes())
    found = {}
    walk(file, file.root, "/", set(), found, errors)
    file.check_claims()
    return found


def main():
    for name in sys.argv[1:]:
        for path, dataset in decode(name).items():
            print(f"{name}{path}: {dataset.layout} {dataset.shape} {dataset.dtype}", end="")
            if dataset.layout == "sparse":
                print(
                    f", chunk {dataset.chunk}, {dataset.index}, {len(dataset.chunks)} chunks, "
                    f"{len(dataset.values)} cells, filters {dataset.filters}",
                    end="",
                )
            print()
            for note in dataset.notes:
                print(f"    note: {note}")


if __name__ == "__main__":
    main()
