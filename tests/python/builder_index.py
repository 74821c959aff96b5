"""Writes chunk indexes of structured datasets: all chunks at once.

`write_index` returns (index type, index-specific bytes of the layout message,
address) for a dataset whose chunks are already in the file.
"""

import math
import struct

from hdf5_bytes import UNDEFINED, sealed

UNSET = (1 << 64) - 1


def pack(value, width):
    return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def size_width(spec):
    """Bytes of the chunk-size field: one more than the dense chunk needs."""
    if hasattr(spec, "kind"):
        return 8  # Variable-length data may have any size.
    dense = math.prod(spec.chunk) * spec.dtype().itemsize
    return min(8, 1 + (int(math.log2(dense)) + 8) // 8)


def tail_size(spec, filtered):
    """Bytes of a record behind the size."""
    sections = getattr(spec, "sections", 2)
    return 8 * (sections - 1) + (12 * sections if filtered else 0)


def encode_tail(chunk, filtered):
    tail = b"".join(pack(o, 8) for o in chunk.offsets)
    if filtered:
        tail += b"".join(pack(u, 8) for u in chunk.unfiltered)
        tail += b"".join(pack(m, 4) for m in chunk.masks)
    return tail


def write_index(file, spec, chunks, filtered):
    writers = {
        "single": write_single,
        "fixed": write_fixed,
        "extensible": write_extensible,
        "b-tree": write_b_tree,
    }
    return writers[spec.chosen_index()](file, spec, chunks, filtered)


def write_single(file, spec, chunks, filtered):
    width = size_width(spec)
    if not chunks:
        return 1, bytes(width + tail_size(spec, filtered)), UNDEFINED
    (chunk,) = chunks
    return 1, pack(chunk.size, width) + encode_tail(chunk, filtered), chunk.address


class Entries:
    """Array elements by slot, unset ones included."""

    def __init__(self, spec, chunks, filtered, slots):
        self.width = size_width(spec)
        self.filtered = filtered
        self.by_slot = dict(zip(slots, chunks))
        self.size = 8 + self.width + tail_size(spec, filtered)
        self.client = 3 if filtered else 2

    def encode(self, first, count):
        return b"".join(self.one(slot) for slot in range(first, first + count))

    def one(self, slot):
        chunk = self.by_slot.get(slot)
        if chunk is None:
            return pack(UNSET, 8) + bytes(self.size - 8)
        return (
            pack(chunk.address, 8)
            + pack(chunk.size, self.width)
            + encode_tail(chunk, self.filtered)
        )

    def any(self, first, count):
        return any(first <= slot < first + count for slot in self.by_slot)


def slot_numbers(spec, chunks):
    """Row-major chunk numbers; an unlimited axis counts as the slowest."""
    maximum = spec.maximum or spec.shape
    axes = sorted(range(len(maximum)), key=lambda axis: maximum[axis] is not None)
    numbers = []
    for chunk in chunks:
        number = 0
        for axis in axes:
            along = 1 if maximum[axis] is None else -(-maximum[axis] // spec.chunk[axis])
            number = number * along + chunk.scaled[axis]
        numbers.append(number)
    return numbers


def bitmap(flags):
    data = bytearray(-(-len(flags) // 8))
    for i, flag in enumerate(flags):
        if flag:
            data[i // 8] |= 0x80 >> i % 8
    return bytes(data)


def write_fixed(file, spec, chunks, filtered):
    parameters = bytes([spec.page_bits])
    if not chunks:
        return 3, parameters, UNDEFINED
    count = math.prod(-(-m // c) for m, c in zip(spec.maximum or spec.shape, spec.chunk))
    entries = Entries(spec, chunks, filtered, slot_numbers(spec, chunks))
    header = file.append(bytes(28))
    version = spec.header_version
    block = b"FADB" + bytes([version, entries.client]) + pack(header, 8)
    page = 1 << spec.page_bits
    if count <= page:
        block = sealed(block + entries.encode(0, count))
    else:
        starts = range(0, count, page)
        held = [entries.any(first, page) for first in starts]
        block = sealed(block + bitmap(held))
        for first, set_ in zip(starts, held):
            inside = min(page, count - first)
            # Pages that nothing was written to hold whatever was there before.
            blank = b"\x5a" * (inside * entries.size + 4)
            block += sealed(entries.encode(first, inside)) if set_ else blank
    address = file.append(block)
    head = b"FAHD" + bytes([version, entries.client, entries.size, spec.page_bits])
    file.image[header : header + 28] = sealed(head + pack(count, 8) + pack(address, 8))
    return 3, parameters, header


class Extensible:
    """One extensible array being written."""

    def __init__(self, file, spec, entries):
        self.file, self.spec, self.entries = file, spec, entries
        bits, in_index, pointers, least, page_bits = spec.extensible
        self.bits, self.in_index, self.pointers = bits, in_index, pointers
        self.least, self.page = least, 1 << page_bits
        self.statistics = [0, 0, 0, 0]
        self.realised = in_index
        self.header = file.append(bytes(72))

    def prefix(self, signature):
        version = self.spec.block_version
        return signature + bytes([version, self.entries.client]) + pack(self.header, 8)

    def offset(self, slot):
        return pack(slot - self.in_index, -(-self.bits // 8))

    def blocks(self):
        """(first slot, data blocks, slots in each) of the super blocks."""
        slot = self.in_index
        for u in range(1 + self.bits - int(math.log2(self.least))):
            count, held = 2 ** (u // 2), 2 ** ((u + 1) // 2) * self.least
            yield slot, count, held
            slot += count * held

    def data_block(self, slot, held):
        """Write a data block if anything is in it; (address, page flags)."""
        if not self.entries.any(slot, held):
            return UNDEFINED, []
        head = self.prefix(b"EADB") + self.offset(slot)
        flags = []
        if held <= self.page:
            block = sealed(head + self.entries.encode(slot, held))
        else:
            block = sealed(head)
            for first in range(slot, slot + held, self.page):
                flags.append(self.entries.any(first, self.page))
                blank = b"\x5a" * (self.page * self.entries.size + 4)
                block += sealed(self.entries.encode(first, self.page)) if flags[-1] else blank
        self.statistics[2] += 1
        self.statistics[3] += len(block)
        self.realised += held
        return self.file.append(block), flags

    def super_block(self, first, count, held):
        if not self.entries.any(first, count * held):
            return UNDEFINED
        addresses, page_flags = b"", []
        pages = held // self.page if held > self.page else 0
        for number in range(count):
            address, flags = self.data_block(first + number * held, held)
            addresses += pack(address, 8)
            page_flags += flags or [False] * pages
        # The bits are packed; the room is whole bytes per data block.
        maps = bitmap(page_flags).ljust(count * -(-pages // 8), b"\0")
        block = sealed(self.prefix(b"EASB") + self.offset(first) + maps + addresses)
        self.statistics[0] += 1
        self.statistics[1] += len(block)
        return self.file.append(block)

    def write(self):
        body = self.prefix(b"EAIB") + self.entries.encode(0, self.in_index)
        direct = 2 * int(math.log2(self.pointers))
        for number, (first, count, held) in enumerate(self.blocks()):
            if number >= direct:
                body += pack(self.super_block(first, count, held), 8)
                continue
            for k in range(count):
                body += pack(self.data_block(first + k * held, held)[0], 8)
        index_block = self.file.append(sealed(body))
        bits, in_index, pointers, least, page_bits = self.spec.extensible
        head = b"EAHD" + bytes([self.spec.header_version, self.entries.client, self.entries.size])
        head += bytes([bits, in_index, least, pointers, page_bits])
        top = max(self.entries.by_slot) + 1
        numbers = [*self.statistics, top, self.realised, index_block]
        self.file.image[self.header : self.header + 72] = sealed(
            head + struct.pack("<7Q", *numbers)
        )
        return self.header


def write_extensible(file, spec, chunks, filtered):
    parameters = bytes(spec.extensible)
    if not chunks:
        return 4, parameters, UNDEFINED
    entries = Entries(spec, chunks, filtered, slot_numbers(spec, chunks))
    return 4, parameters, Extensible(file, spec, entries).write()


class Tree:
    """A version 2 B-tree written in one go from sorted records."""

    def __init__(self, file, spec, records, filtered):
        self.file, self.spec, self.records = file, spec, records
        self.kind = 13 if filtered else 12
        self.record_size = len(records[0])
        self.capacity = [(spec.node_size - 10) // self.record_size]
        self.most = [self.capacity[0]]
        self.count_width = self.bytes_for(self.capacity[0])
        while self.most[-1] < len(records):
            pointer = self.pointer_size(len(self.most))
            held = (spec.node_size - 10 - pointer) // (self.record_size + pointer)
            self.capacity.append(held)
            self.most.append((held + 1) * self.most[-1] + held)

    @staticmethod
    def bytes_for(number):
        return int(math.log2(number)) // 8 + 1

    def pointer_size(self, depth):
        total = self.bytes_for(self.most[depth - 1]) if depth > 1 else 0
        return 8 + self.count_width + total

    def node(self, records, depth):
        """Write a subtree; (address, records in its root, records in all)."""
        head = bytes([self.spec.block_version, self.kind])
        if depth == 0:
            body = b"BTLF" + head + b"".join(records)
            return self.place(body), len(records), len(records)
        # As many children as the records need, sharing them evenly.
        children = max(2, -(-(len(records) + 1) // (self.most[depth - 1] + 1)))
        inner = len(records) - (children - 1)
        own, pointers, start = [], b"", 0
        for number in range(children):
            size = inner // children + (number < inner % children)
            part = records[start : start + size]
            address, held, total = self.node(part, depth - 1)
            pointers += pack(address, 8) + pack(held, self.count_width)
            if depth > 1:
                pointers += pack(total, self.bytes_for(self.most[depth - 1]))
            start += size
            if number < children - 1:
                own.append(records[start])
                start += 1
        body = b"BTIN" + head + b"".join(own) + pointers
        return self.place(body), len(own), len(records)

    def place(self, body):
        data = sealed(body)
        if len(data) > self.spec.node_size:
            raise ValueError("node too small for its records")
        return self.file.append(data + bytes(self.spec.node_size - len(data)))

    def write(self):
        depth = len(self.most) - 1
        address, held, total = self.node(self.records, depth)
        head = b"BTHD" + bytes([self.spec.header_version, self.kind])
        head += struct.pack("<IHHBB", self.spec.node_size, self.record_size, depth, 100, 40)
        return self.file.append(sealed(head + struct.pack("<QHQ", address, held, total)))


def write_b_tree(file, spec, chunks, filtered):
    declared = spec.node_size if spec.declared_node_size is None else spec.declared_node_size
    parameters = struct.pack("<IBB", declared, 100, 40)
    if not chunks:
        return 5, parameters, UNDEFINED
    width = size_width(spec)
    records = [
        pack(chunk.address, 8)
        + pack(chunk.size, width)
        + b"".join(pack(s, 8) for s in chunk.scaled)
        + encode_tail(chunk, filtered)
        for chunk in sorted(chunks, key=lambda chunk: chunk.scaled)
    ]
    return 5, parameters, Tree(file, spec, records, filtered).write()
