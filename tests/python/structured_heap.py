"""Heaps of structured chunks with variable-length data, both ways.

Written from the format documents and not from the library. Values are plain
Python: strings and null as in varlen.py, sequences as lists, compounds as tuples.
"""

import struct

from hdf5_bytes import Cursor, require, sealed, unsealed
from varlen import size_of

WHAT = "heap"
FULL = 65535


def decode_heap(data, width=8):
    """{(slot, index): bytes} of a heap set without its checksum, every rule checked.

    `width` is that of lengths in the file.
    """
    if not data:
        return {}
    cursor = Cursor(data, WHAT)
    cursor.expect(b"HGLS")
    require(cursor.u8() == 1 and cursor.take(3) == bytes(3), f"{WHAT}: version")
    count = cursor.u32()
    require(1 <= count <= 65536, f"{WHAT}: {count} slots")
    slots = [(cursor.uint(width), cursor.uint(width)) for _ in range(count)]
    require(slots[-1] != (0, 0), f"{WHAT}: a trailing unused slot")
    objects, at = {}, cursor.position
    for slot, (offset, length) in enumerate(slots):
        if (offset, length) == (0, 0):
            continue
        require(offset == at, f"{WHAT}: slot {slot} begins at {offset}, not {at}")
        at += length
        require(at <= len(data), f"{WHAT}: slot {slot} ends behind the heap")
        for index, value in decode_collection(data[offset:at], length, width):
            require((slot, index) not in objects, f"{WHAT}: object {slot}, {index} twice")
            objects[slot, index] = value
    require(at == len(data), f"{WHAT}: {len(data) - at} bytes behind the last collection")
    return objects


def decode_collection(data, length, width=8):
    cursor = Cursor(data, "collection")
    cursor.expect(b"GCOL")
    require(cursor.u8() == 1 and cursor.take(3) == bytes(3), "collection: version")
    require(cursor.uint(width) == length, "collection: size")
    cursor.take(8 - width)
    while cursor.left() >= 16:
        index = cursor.u16()
        cursor.take(6)
        size = cursor.uint(width)
        cursor.take(8 - width)
        if index == 0:
            require(size <= cursor.left() + 16, "collection: free space")
            return
        yield index, bytes(cursor.take(size))
        cursor.take(min(-size % 8, cursor.left()))


def follow(kind, element, objects, used):
    """One element of a datatype (as in varlen.py) with its references followed."""
    if isinstance(kind, str):
        return element
    if "vlen" in kind:
        count, slot, index = struct.unpack("<IHH", element[:8])
        require(element[8:] == bytes(len(element) - 8), f"{WHAT}: bytes behind a reference")
        if index == 0:
            require((count, slot) == (0, 0), f"{WHAT}: null with {count}, {slot}")
            return None
        require((slot, index) in objects, f"{WHAT}: no object {slot}, {index}")
        used.append((slot, index))
        value = objects[slot, index]
        if kind["vlen"] == "string":
            require(len(value) == count, f"{WHAT}: {len(value)} bytes, not {count}")
            return value
        size = size_of(kind["vlen"])
        require(len(value) == count * size, f"{WHAT}: {len(value)} bytes, not {count} of {size}")
        return [
            follow(kind["vlen"], value[i : i + size], objects, used)
            for i in range(0, len(value), size)
        ]
    if "array" in kind:
        size = size_of(kind["array"])
        return [
            follow(kind["array"], element[i : i + size], objects, used)
            for i in range(0, len(element), size)
        ]
    return tuple(
        follow(f["dtype"], element[f["offset"] : f["offset"] + size_of(f["dtype"])], objects, used)
        for f in kind["fields"]
    )


def follow_in_file(kind, element, file):
    """As `follow`, of an element whose references lead to the global heap: a fill value's."""
    if isinstance(kind, str):
        return element
    if "vlen" in kind:
        cursor = Cursor(element, "global heap reference")
        count, address, index = cursor.u32(), file.address(cursor), cursor.u32()
        if (address, index) == (0, 0):
            require(count == 0, f"global heap reference: null with {count}")
            return None
        width = file.length_size
        size = int.from_bytes(file.bytes(address + 8, width, "collection"), "little")
        objects = dict(decode_collection(file.bytes(address, size, "collection"), size, width))
        require(index in objects, f"global heap: no object {index} at {address}")
        value = objects[index]
        each = 1 if kind["vlen"] == "string" else size_of(kind["vlen"])
        require(len(value) == count * each, f"global heap: {len(value)} bytes, not {count}")
        if kind["vlen"] == "string":
            return value
        parts = (value[i : i + each] for i in range(0, len(value), each))
        return [follow_in_file(kind["vlen"], part, file) for part in parts]
    if "array" in kind:
        size = size_of(kind["array"])
        parts = (element[i : i + size] for i in range(0, len(element), size))
        return [follow_in_file(kind["array"], part, file) for part in parts]
    fields = ((f["dtype"], f["offset"]) for f in kind["fields"])
    return tuple(
        follow_in_file(part, element[offset : offset + size_of(part)], file)
        for part, offset in fields
    )


class HeapWriter:
    """Objects and the references to them, spelt in one of several ways."""

    def __init__(self, style="plain", width=8):
        self.style, self.width, self.objects = style, width, []

    def element(self, kind, value):
        """An element's bytes; what it refers to goes to the heap."""
        if isinstance(kind, str):
            return bytes(value)
        if "vlen" in kind:
            if value is None:
                return bytes(16)
            count = len(value)
            if kind["vlen"] != "string":
                value = b"".join(self.element(kind["vlen"], part) for part in value)
            value = bytes(value)
            if self.style == "shared" and value in self.objects:
                slot, index = self.place(self.objects.index(value))
            else:
                slot, index = self.place(len(self.objects))
                self.objects.append(value)
            return struct.pack("<IHHQ", count, slot, index, 0)
        if "array" in kind:
            return b"".join(self.element(kind["array"], part) for part in value)
        data = bytearray(kind["size"])
        for field, part in zip(kind["fields"], value, strict=True):
            raw = self.element(field["dtype"], part)
            data[field["offset"] : field["offset"] + len(raw)] = raw
        return bytes(data)

    def place(self, number):
        """Slot and index of an object."""
        if self.style == "many":
            return 2 * (number % 3), 7 + number // 3
        return number // FULL, number % FULL + 1

    def image(self):
        """The heap set without checksum."""
        if not self.objects:
            return b""
        slots = {}
        for number, value in enumerate(self.objects):
            slot, index = self.place(number)
            slots.setdefault(slot, []).append((index, value))
        images = {}
        for slot, objects in slots.items():
            if self.style == "many":
                objects.reverse()
            body = b"".join(
                struct.pack("<HHIQ", index, 0, 0, len(value)) + value + bytes(-len(value) % 8)
                for index, value in objects
            )
            if self.style == "free":
                body += struct.pack("<HHIQ", 0, 0, 0, 64) + bytes(48)
            if self.style == "rest":
                body += bytes(8)
            images[slot] = b"GCOL\1\0\0\0" + struct.pack("<Q", 16 + len(body)) + body
        count = max(images) + 1
        head = b"HGLS\1\0\0\0" + struct.pack("<I", count)
        at, members = len(head) + 2 * self.width * count, b""
        for slot in range(count):
            image = images.get(slot, b"")
            for number in (at + len(members) if image else 0, len(image)):
                head += number.to_bytes(self.width, "little")
            members += image
        return head + members


def heap_filter_width(parameters):
    """Bytes of a length in the plain form."""
    require(parameters in ([], [2], [4]), f"heap filter: parameters {parameters}")
    return parameters[0] if parameters else 8


def heap_filter_decode(data, limit, parameters=()):
    """The heap filter undone: docs/format/heap-filter.md."""
    what = "heap filter"
    require(len(data) > 0, f"{what}: no mode")
    if data[-1] == 0:
        require(len(data) <= limit + 1, f"{what}: more than {limit} bytes")
        return bytes(data[:-1])
    require(data[-1] == 1, f"{what}: mode {data[-1]}")
    body, lengths = split_numbers(data[:-1], what)
    require(lengths, f"{what}: no objects")
    start = len(body)
    require(sum(lengths) == start, f"{what}: {sum(lengths)} bytes of objects, found {start}")
    writer, at = HeapWriter(width=heap_filter_width(list(parameters))), 0
    for length in lengths:
        writer.objects.append(body[at : at + length])
        at += length
    plain = sealed(writer.image())
    require(len(plain) <= limit, f"{what}: more than {limit} bytes")
    return plain


def heap_filter_encode(data, parameters=()):
    """The heap filter: a list of objects where the input is canonical, else verbatim."""
    width = heap_filter_width(list(parameters))
    try:
        objects = decode_heap(unsealed(data, WHAT), width)
    except Exception:  # Anything that is no heap.
        return data + b"\0"
    writer = HeapWriter(width=width)
    writer.objects = list(objects.values())
    if not writer.objects or sealed(writer.image()) != data:
        return data + b"\0"
    lengths = [len(value) for value in writer.objects]
    return put_numbers(b"".join(writer.objects), lengths) + b"\1"


def split_numbers(data, what):
    """(what stands before them, numbers) of numbers in planes."""
    body = unsealed(data, what)
    require(len(body) >= 9, f"{what}: no list")
    width, count = body[-1], int.from_bytes(body[-9:-1], "little")
    require(1 <= width <= 4, f"{what}: numbers of {width} bytes")
    start = len(body) - 9 - width * count
    require(start >= 0, f"{what}: {count} numbers")
    planes = body[start : len(body) - 9]
    numbers = [
        sum(planes[plane * count + i] << 8 * plane for plane in range(width)) for i in range(count)
    ]
    least = max(1, (max(numbers, default=0).bit_length() + 7) // 8)
    require(width == least, f"{what}: width {width}, not {least}")
    return body[:start], numbers


def put_numbers(before, numbers):
    width = max(1, (max(numbers).bit_length() + 7) // 8)
    planes = b"".join(bytes(n >> 8 * plane & 0xFF for n in numbers) for plane in range(width))
    return sealed(before + planes + struct.pack("<QB", len(numbers), width))


def references_of(numbers):
    """The references that numbers stand for: one more than a count, or 0 for null."""
    data, place = b"", 0
    for number in numbers:
        if number == 0:
            data += bytes(16)
            continue
        data += struct.pack("<IHHQ", number - 1, place // FULL, place % FULL + 1, 0)
        place += 1
    return sealed(data)


def references_filter_decode(data, limit):
    """The references filter undone: docs/format/references-filter.md."""
    what = "references filter"
    require(len(data) > 0, f"{what}: no mode")
    if data[-1] == 0:
        require(len(data) <= limit + 1, f"{what}: more than {limit} bytes")
        return bytes(data[:-1])
    require(data[-1] == 1, f"{what}: mode {data[-1]}")
    body, numbers = split_numbers(data[:-1], what)
    require(not body and numbers, f"{what}: {len(body)} bytes before {len(numbers)} numbers")
    require(16 * len(numbers) + 4 <= limit, f"{what}: more than {limit} bytes")
    return references_of(numbers)


def references_filter_encode(data):
    """The references filter: counts where the input is canonical, else verbatim."""
    if len(data) > 4 and len(data) % 16 == 4:
        parts = [data[i : i + 16] for i in range(0, len(data) - 4, 16)]
        numbers = [0 if p == bytes(16) else struct.unpack("<I", p[:4])[0] + 1 for p in parts]
        if references_of(numbers) == data:
            return put_numbers(b"", numbers) + b"\1"
    return data + b"\0"
