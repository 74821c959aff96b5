"""Chunk indexes of structured datasets: where each chunk is and how it is cut.

Fixed array, extensible array and version 2 B-tree, with every block's
signature, version, owner and checksum verified. The single-chunk index lives
in the layout message itself. Each walk yields (scaled coordinate, Record).

Dense datasets use the same structures with shorter records; they are walked
too (a geometry of 0 sections), so that these walks can be held against files
that libhdf5 wrote.
"""

import dataclasses

from hdf5_bytes import UNDEFINED, Cursor, require, unsealed


@dataclasses.dataclass
class Record:
    """One stored chunk: its place, its total size, and its sections."""

    address: int
    size: int
    offsets: list
    unfiltered: list | None
    masks: list | None


@dataclasses.dataclass
class Geometry:
    """What the layout message and the dataspace say about the chunks."""

    rank: int
    counts: list  # chunks along each axis at the maximum extent, None if unlimited
    sections: int  # 0 for dense chunks
    filtered: bool

    def client(self):
        """Client of an array index; 10 more is the type of a B-tree."""
        return (2 if self.sections else 0) + (1 if self.filtered else 0)

    def widths(self):
        """Possible widths of the chunk-size field; dense plain chunks have none."""
        return range(1, 9) if self.sections or self.filtered else range(0, 1)


def width_of_size(chunk_bytes, sections):
    """Bytes of a record's chunk-size field, as the format prescribes them."""
    if sections == 3:
        return 8
    return min(8, 1 + (chunk_bytes.bit_length() - 1 + 8) // 8)


def tail_bytes(geometry):
    """Bytes of a record after its size (and coordinate)."""
    n = geometry.sections
    if n == 0:
        return 4 if geometry.filtered else 0
    return 8 * (n - 1) + (12 * n if geometry.filtered else 0)


def decode_tail(cursor, geometry, address, size):
    """The sections' part of a record."""
    n = geometry.sections
    if n == 0:
        return Record(address, size, [0], None, cursor.uints(1, 4) if geometry.filtered else None)
    offsets = [0, *cursor.uints(n - 1, 8)]
    unfiltered = cursor.uints(n, 8) if geometry.filtered else None
    masks = cursor.uints(n, 4) if geometry.filtered else None
    return Record(address, size, offsets, unfiltered, masks)


class ArrayElements:
    """Elements of a fixed or extensible array."""

    def __init__(self, file, geometry, entry_size, what):
        self.file, self.geometry, self.entry_size, self.what = file, geometry, entry_size, what
        self.width = entry_size - file.offset_size - tail_bytes(geometry)
        require(self.width in geometry.widths(), f"{what}: entries of {entry_size} bytes")

    def decode(self, cursor, count, first):
        """`count` elements from slot `first` on; yields (slot, Record)."""
        for slot in range(first, first + count):
            address = self.file.address(cursor)
            size = cursor.uint(self.width)
            record = decode_tail(cursor, self.geometry, address, size)
            if address == UNDEFINED:
                blank = [size, *record.offsets, *(record.unfiltered or []), *(record.masks or [])]
                require(not any(blank), f"{self.what}: slot {slot} is unset but not zero")
                continue
            yield slot, record


def page_set(bitmap, page):
    """Whether a page is initialised; bit 0 is the highest of the first byte."""
    return bool(bitmap[page // 8] & 0x80 >> page % 8)


def fixed_array(file, address, geometry, page_bits):
    """Slots of a fixed array; yields (slot, Record)."""
    what = f"fixed array at {address}"
    offset, length = file.offset_size, file.length_size
    header = Cursor(file.sealed(address, 8 + length + offset + 4, what), what)
    header.expect(b"FAHD")
    file.version(header, "FAHD", written=1)
    require(header.u8() == geometry.client(), f"{what}: client")
    elements = ArrayElements(file, geometry, header.u8(), what)
    require(header.u8() == page_bits, f"{what}: page bits differ from the layout message")
    count = header.uint(length)
    expected = 1
    for along in geometry.counts:
        expected *= along
    require(count == expected, f"{what}: {count} entries for {expected} chunks")
    block = file.address(header)
    if block == UNDEFINED:
        return elements.width, []
    return elements.width, list(fixed_block(file, block, address, elements, count, page_bits))


def fixed_block(file, address, owner, elements, count, page_bits):
    what = f"fixed array data block at {address}"
    page = 1 << page_bits
    paged = count > page
    pages = -(-count // page) if paged else 0
    body = -(-pages // 8) if paged else count * elements.entry_size
    prefix = 6 + file.offset_size
    cursor = Cursor(file.sealed(address, prefix + body + 4, what), what)
    cursor.expect(b"FADB")
    file.version(cursor, "FADB", written=1)
    require(cursor.u8() == elements.geometry.client(), f"{what}: client")
    require(file.address(cursor) == owner, f"{what}: owner")
    if not paged:
        yield from elements.decode(cursor, count, 0)
        return
    bitmap = cursor.take(body)
    start = address + prefix + body + 4
    for number in range(pages):
        held = min(page, count - number * page)
        size = held * elements.entry_size + 4
        place = start + number * (page * elements.entry_size + 4)
        file.claim(place, size, f"{what}, page {number}")
        if page_set(bitmap, number):
            data = unsealed(file.bytes(place, size, what), f"{what}, page {number}")
            yield from elements.decode(Cursor(data, what), held, number * page)


@dataclasses.dataclass
class ExtensibleShape:
    """How an extensible array's slots fall into blocks."""

    max_bits: int
    index_elements: int
    min_pointers: int
    min_elements: int
    page_bits: int

    def super_blocks(self):
        """(first slot, data blocks, elements in each) of every super block."""
        slot = self.index_elements
        for u in range(1 + self.max_bits - (self.min_elements.bit_length() - 1)):
            blocks = 1 << u // 2
            held = (1 << (u + 1) // 2) * self.min_elements
            yield slot, blocks, held
            slot += blocks * held

    def inlined(self):
        """Super blocks whose data blocks the index block points at itself."""
        return 2 * (self.min_pointers.bit_length() - 1)


class ExtensibleArray:
    """Walks one extensible array."""

    def __init__(self, file, address, geometry, parameters):
        self.file, self.geometry, self.address = file, geometry, address
        self.what = f"extensible array at {address}"
        offset, length = file.offset_size, file.length_size
        header = Cursor(file.sealed(address, 12 + 6 * length + offset + 4, self.what), self.what)
        header.expect(b"EAHD")
        file.version(header, "EAHD", written=1)
        require(header.u8() == geometry.client(), f"{self.what}: client")
        self.elements = ArrayElements(file, geometry, header.u8(), self.what)
        max_bits, in_index, min_elements, min_pointers, page_bits = header.uints(5, 1)
        self.shape = ExtensibleShape(max_bits, in_index, min_pointers, min_elements, page_bits)
        found = [max_bits, in_index, min_pointers, min_elements, page_bits]
        require(found == parameters, f"{self.what}: {found}, the layout message has {parameters}")
        statistics = header.uints(6, length)
        self.super_count, self.super_bytes, self.data_count, self.data_bytes = statistics[:4]
        self.max_set, self.realised = statistics[4:]
        self.index_block = file.address(header)
        self.seen_super = self.seen_data = self.seen_elements = 0
        self.seen_super_bytes = self.seen_data_bytes = 0

    def slots(self):
        if self.index_block == UNDEFINED:
            return []
        found = list(self.walk_index_block())
        require(all(slot < self.max_set for slot, _ in found), f"{self.what}: max index set")
        self.check_statistics()
        return found

    def check_statistics(self):
        seen = [self.seen_super, self.seen_super_bytes, self.seen_data, self.seen_data_bytes]
        stored = [self.super_count, self.super_bytes, self.data_count, self.data_bytes]
        if seen != stored:
            self.file.note(f"EAHD statistics {stored}, counted {seen}")
        if self.realised != self.seen_elements:
            self.file.note(f"EAHD realised {self.realised}, counted {self.seen_elements}")

    def walk_index_block(self):
        file, shape = self.file, self.shape
        blocks = list(shape.super_blocks())
        direct = sum(count for _, count, _ in blocks[: shape.inlined()])
        supers = len(blocks) - shape.inlined()
        body = shape.index_elements * self.elements.entry_size
        size = 6 + file.offset_size + body + (direct + supers) * file.offset_size + 4
        cursor = self.open(self.index_block, size, b"EAIB")
        yield from self.elements.decode(cursor, shape.index_elements, 0)
        self.seen_elements += shape.index_elements
        earlier = 0
        for first, count, held in blocks[: shape.inlined()]:
            for number in range(count):
                address = file.address(cursor)
                if address != UNDEFINED:
                    slot = first + number * held
                    yield from self.walk_data_block(address, slot, held, None, earlier * held)
            earlier += count
        for first, count, held in blocks[shape.inlined() :]:
            address = file.address(cursor)
            if address != UNDEFINED:
                yield from self.walk_super_block(address, first, count, held)

    def open(self, address, size, signature):
        what = f"{signature.decode()} at {address}"
        cursor = Cursor(self.file.sealed(address, size, what), what)
        cursor.expect(signature)
        self.file.version(cursor, signature.decode(), written=0)
        require(cursor.u8() == self.geometry.client(), f"{what}: client")
        require(self.file.address(cursor) == self.address, f"{what}: owner")
        return cursor

    def slot_width(self):
        return -(-self.shape.max_bits // 8)

    def pages(self, held):
        """Pages of a data block with so many elements; 0 when it is not paged."""
        page = 1 << self.shape.page_bits
        return held // page if held > page else 0

    def walk_super_block(self, address, first, count, held):
        pages = self.pages(held)
        each = -(-pages // 8)
        prefix = 6 + self.file.offset_size + self.slot_width()
        size = prefix + each * count + count * self.file.offset_size + 4
        cursor = self.open(address, size, b"EASB")
        self.check_offset(cursor, first)
        self.seen_super += 1
        self.seen_super_bytes += size
        # Room for whole bytes per data block, but the bits follow each other.
        bitmap = cursor.take(each * count)
        for number in range(count):
            block = self.file.address(cursor)
            if block != UNDEFINED:
                slot = first + number * held
                flags = [page_set(bitmap, number * pages + page) for page in range(pages)]
                yield from self.walk_data_block(block, slot, held, flags)

    def check_offset(self, cursor, slot, excess=0):
        """libhdf5 counts the earlier blocks of the index block twice: `excess`."""
        stored = cursor.uint(self.slot_width())
        right = slot - self.shape.index_elements
        require(
            stored in (right, right + excess),
            f"{cursor.what}: block offset {stored} for slot {slot}",
        )

    def walk_data_block(self, address, slot, held, set_pages, excess=0):
        pages = self.pages(held)
        prefix = 6 + self.file.offset_size + self.slot_width()
        entry = self.elements.entry_size
        body = 0 if pages else held * entry
        cursor = self.open(address, prefix + body + 4, b"EADB")
        self.check_offset(cursor, slot, excess)
        self.seen_data += 1
        self.seen_elements += held
        self.seen_data_bytes += prefix + held * entry + 4 + pages * 4
        if not pages:
            yield from self.elements.decode(cursor, held, slot)
            return
        require(set_pages is not None, f"{cursor.what}: paged without a bitmap")
        page = 1 << self.shape.page_bits
        size = page * entry + 4
        for number in range(pages):
            what = f"{cursor.what}, page {number}"
            place = address + prefix + 4 + number * size
            self.file.claim(place, size, what)
            if set_pages[number]:
                data = unsealed(self.file.bytes(place, size, what), what)
                yield from self.elements.decode(Cursor(data, what), page, slot + number * page)


class BTree:
    """Walks one version 2 B-tree of structured chunk records, in order."""

    def __init__(self, file, address, geometry, percentages):
        self.file, self.geometry = file, geometry
        self.what = f"B-tree at {address}"
        offset, length = file.offset_size, file.length_size
        header = Cursor(file.sealed(address, 22 + offset + length, self.what), self.what)
        header.expect(b"BTHD")
        file.version(header, "BTHD", written=1)
        self.type = header.u8()
        require(self.type == 10 + geometry.client(), f"{self.what}: type {self.type}")
        self.node_size, self.record_size = header.u32(), header.u16()
        self.depth = header.u16()
        require(header.uints(2, 1) == percentages, f"{self.what}: split and merge percentages")
        self.root = file.address(header)
        self.root_records, self.total = header.u16(), header.uint(length)
        self.width = self.record_size - offset - 8 * geometry.rank - tail_bytes(geometry)
        require(self.width in geometry.widths(), f"{self.what}: {self.record_size}-byte records")
        require(self.depth < 32, f"{self.what}: depth {self.depth}")
        self.measure()

    def measure(self):
        """Widths of the counts in child pointers, level by level."""
        capacity = (self.node_size - 10) // self.record_size
        require(capacity > 0, f"{self.what}: nodes of {self.node_size} bytes")
        self.count_width = (capacity.bit_length() + 7) // 8
        self.capacity, self.total_widths = [capacity], [0]
        most = capacity
        for _ in range(self.depth):
            pointer = self.file.offset_size + self.count_width + self.total_widths[-1]
            held = (self.node_size - 10 - pointer) // (self.record_size + pointer)
            require(held > 0, f"{self.what}: nodes of {self.node_size} bytes")
            self.capacity.append(held)
            most = (held + 1) * most + held
            self.total_widths.append((most.bit_length() + 7) // 8)

    def records(self):
        if self.root == UNDEFINED:
            require(self.total == 0, f"{self.what}: records without a root")
            return []
        found = list(self.walk(self.root, self.root_records, self.depth))
        require(len(found) == self.total, f"{self.what}: {len(found)} records, not {self.total}")
        keys = [scaled for scaled, _ in found]
        require(keys == sorted(set(keys)), f"{self.what}: records out of order")
        return found

    def walk(self, address, count, depth):
        what = f"{self.what}, node at {address}"
        require(count <= self.capacity[depth], f"{what}: {count} records")
        pointer = self.file.offset_size + self.count_width
        if depth > 1:
            pointer += self.total_widths[depth - 1]
        children = count + 1 if depth else 0
        used = 6 + count * self.record_size + children * pointer + 4
        self.file.claim(address, self.node_size, what)
        cursor = Cursor(unsealed(self.file.bytes(address, used, what), what), what)
        signature = b"BTIN" if depth else b"BTLF"
        cursor.expect(signature)
        self.file.version(cursor, signature.decode(), written=0)
        require(cursor.u8() == self.type, f"{what}: type")
        own = [self.decode(cursor) for _ in range(count)]
        if depth == 0:
            yield from own
            return
        for number in range(children):
            child, held = self.file.address(cursor), cursor.uint(self.count_width)
            total = cursor.uint(self.total_widths[depth - 1]) if depth > 1 else held
            below = list(self.walk(child, held, depth - 1))
            require(len(below) == total, f"{what}: child {number} has {len(below)} records")
            yield from below
            if number < count:
                yield own[number]

    def decode(self, cursor):
        address, size = self.file.address(cursor), cursor.uint(self.width)
        require(address != UNDEFINED, f"{cursor.what}: record without an address")
        if self.geometry.sections == 0:
            record = decode_tail(cursor, self.geometry, address, size)
            return tuple(cursor.uints(self.geometry.rank, 8)), record
        scaled = tuple(cursor.uints(self.geometry.rank, 8))
        return scaled, decode_tail(cursor, self.geometry, address, size)


def scaled_from_slot(slot, counts):
    """A slot's chunk coordinate; an unlimited axis is the slowest of all."""
    axes = list(range(len(counts)))
    if None in counts:
        unlimited = counts.index(None)
        axes.remove(unlimited)
        axes.insert(0, unlimited)
    scaled = [0] * len(counts)
    for axis in reversed(axes[1:]):
        slot, scaled[axis] = divmod(slot, counts[axis])
    scaled[axes[0]] = slot
    return tuple(scaled)
