"""Bytes under an HDF5 file: a bounded cursor, the lookup3 checksum, and filters.

Written from the public format specification for the tests alone, so that the
decoder and the builder beside it share nothing with the library under test.
"""

import struct
import zlib

try:
    import zstandard
except ImportError:  # zstd sections then raise when met
    zstandard = None

UNDEFINED = 0xFFFF_FFFF_FFFF_FFFF

DEFLATE, SHUFFLE, FLETCHER32, LOCATION, HEAP, REFERENCES, ZSTD = 1, 2, 3, 302, 303, 304, 32015
NBIT, SCALEOFFSET = 5, 6


class FormatError(Exception):
    """The bytes break a rule of the format."""


class Unsupported(Exception):
    """The bytes may be right, but this reader does not know the feature."""


def require(condition, message):
    """Raise a FormatError unless the rule holds."""
    if not condition:
        raise FormatError(message)


class Cursor:
    """Reads little-endian fields from a slice and never past its end."""

    def __init__(self, data, what, position=0):
        self.data, self.what, self.position = data, what, position

    def take(self, count):
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise FormatError(
                f"{self.what}: {count} bytes wanted at {self.position}, "
                f"{len(self.data) - self.position} left"
            )
        piece = self.data[self.position : end]
        self.position = end
        return bytes(piece)

    def uint(self, width):
        return int.from_bytes(self.take(width), "little")

    def u8(self):
        return self.uint(1)

    def u16(self):
        return self.uint(2)

    def u32(self):
        return self.uint(4)

    def u64(self):
        return self.uint(8)

    def uints(self, count, width):
        return [self.uint(width) for _ in range(count)]

    def left(self):
        return len(self.data) - self.position

    def expect(self, wanted):
        found = self.take(len(wanted))
        require(found == wanted, f"{self.what}: expected {wanted!r}, found {found!r}")


def lookup3(data):
    """Jenkins' lookup3 hash with initial value 0, HDF5's metadata checksum."""
    mask = 0xFFFF_FFFF
    length = len(data)
    a = b = c = (0xDEADBEEF + length) & mask
    if length == 0:
        return c
    words = struct.unpack(f"<{-(-length // 12) * 3}I", data + bytes(-length % 12))

    def rotate(x, k):
        return ((x << k) & mask) | (x >> (32 - k))

    for i in range(0, len(words) - 3, 3):
        a, b, c = (a + words[i]) & mask, (b + words[i + 1]) & mask, (c + words[i + 2]) & mask
        a = ((a - c) & mask) ^ rotate(c, 4)
        c = (c + b) & mask
        b = ((b - a) & mask) ^ rotate(a, 6)
        a = (a + c) & mask
        c = ((c - b) & mask) ^ rotate(b, 8)
        b = (b + a) & mask
        a = ((a - c) & mask) ^ rotate(c, 16)
        c = (c + b) & mask
        b = ((b - a) & mask) ^ rotate(a, 19)
        a = (a + c) & mask
        c = ((c - b) & mask) ^ rotate(b, 4)
        b = (b + a) & mask
    a, b, c = (a + words[-3]) & mask, (b + words[-2]) & mask, (c + words[-1]) & mask
    c = ((c ^ b) - rotate(b, 14)) & mask
    a = ((a ^ c) - rotate(c, 11)) & mask
    b = ((b ^ a) - rotate(a, 25)) & mask
    c = ((c ^ b) - rotate(b, 16)) & mask
    a = ((a ^ c) - rotate(c, 4)) & mask
    b = ((b ^ a) - rotate(a, 14)) & mask
    return ((c ^ b) - rotate(b, 24)) & mask


def sealed(data):
    """The bytes followed by their lookup3 checksum."""
    return data + struct.pack("<I", lookup3(data))


def unsealed(data, what):
    """The bytes without their trailing checksum, which must be right."""
    require(len(data) >= 4, f"{what}: no room for a checksum")
    body, (stored,) = bytes(data[:-4]), struct.unpack("<I", data[-4:])
    found = lookup3(body)
    require(found == stored, f"{what}: checksum {stored:#010x} stored, {found:#010x} computed")
    return body


def fletcher32(data):
    """HDF5's Fletcher-32: big-endian 16-bit words, an odd last byte is high."""
    padded = data + bytes(len(data) % 2)
    words = struct.unpack(f">{len(padded) // 2}H", padded)
    first = second = 0
    for word in words:
        first += word
        second += first

    def fold(total):
        # Repeated end-around carry reaches 0 only from 0.
        return total % 65535 or (65535 if total else 0)

    return fold(second) << 16 | fold(first)


def shuffle(data, size):
    """Byte k of every element together; a rest shorter than an element stays."""
    count = len(data) // size
    if size <= 1 or count <= 1:
        return data
    whole = data[: count * size]
    return b"".join(whole[k::size] for k in range(size)) + data[count * size :]


def unshuffle(data, size):
    count = len(data) // size
    if size <= 1 or count <= 1:
        return data
    whole = bytearray(count * size)
    for k in range(size):
        whole[k::size] = data[k * count : (k + 1) * count]
    return bytes(whole) + data[count * size :]


def put_bits(numbers, width):
    """Numbers of `width` bits as a stream, most significant bit first."""
    stream = 0
    for number in numbers:
        stream = stream << width | number
    bits = width * len(numbers)
    length = (bits + 7) // 8
    return (stream << 8 * length - bits).to_bytes(length, "big")


def take_bits(stream, count, width):
    require(len(stream) * 8 >= count * width, f"{count} numbers of {width} bits in {len(stream)} bytes")
    whole = int.from_bytes(stream, "big")
    bits = 8 * len(stream)
    return [whole >> bits - (at + 1) * width & (1 << width) - 1 for at in range(count)]


def elements(data, size, signed=False):
    require(len(data) % size == 0, f"{len(data)} bytes of elements of {size}")
    parts = range(0, len(data), size)
    return [int.from_bytes(data[at : at + size], "little", signed=signed) for at in parts]


def take_count(data):
    """In sections of values the number of elements varies; it stands behind the output."""
    require(len(data) >= 8, "the number of elements is missing")
    return data[:-8], int.from_bytes(data[-8:], "little")


def nbit_number(parameters):
    """Little-endian numbers only: size, precision, offset."""
    number, plain, count, kind, size, order, precision, offset = parameters
    if (plain, count, kind, order) != (0, 0, 1, 0) or number != 8:
        raise Unsupported(f"nbit {parameters}")
    require(0 < precision and precision + offset <= 8 * size, f"nbit {parameters}")
    return size, precision, offset


def nbit_encode(parameters, data):
    size, precision, offset = nbit_number(parameters)
    numbers = [number >> offset & (1 << precision) - 1 for number in elements(data, size)]
    return put_bits(numbers, precision) + b"\0" + struct.pack("<Q", len(numbers))


def nbit_decode(parameters, data):
    size, precision, offset = nbit_number(parameters)
    stream, count = take_count(data)
    numbers = take_bits(stream, count, precision)
    return b"".join((number << offset).to_bytes(size, "little") for number in numbers)


def scaled_integers(parameters):
    """Little-endian integers without a fill value: size, signed."""
    method, _, count, kind, size, signed, big, filled = parameters[:8]
    if (method, count, kind, big, filled) != (2, 0, 0, 0, 0):
        raise Unsupported(f"scaleoffset {parameters}")
    return size, bool(signed)


def scaleoffset_encode(parameters, data):
    size, signed = scaled_integers(parameters)
    numbers = elements(data, size, signed)
    least = min(numbers)
    width = (max(numbers) - least).bit_length()
    header = struct.pack("<IBQ8x", width, 8, least & (1 << 64) - 1)
    if width == 8 * size:
        return header + data + struct.pack("<Q", len(numbers))
    stream = put_bits([number - least for number in numbers], width)
    return header + stream + struct.pack("<Q", len(numbers))


def scaleoffset_decode(parameters, data):
    size, signed = scaled_integers(parameters)
    data, count = take_count(data)
    require(len(data) >= 21, "scaleoffset: header")
    width, least = int.from_bytes(data[:4], "little"), int.from_bytes(data[5:13], "little")
    require(width <= 8 * size, f"scaleoffset: {width} bits")
    if width == 8 * size:
        return data[21 : 21 + size * count]
    mask = (1 << 8 * size) - 1
    numbers = take_bits(data[21:], count, width) if width else [0] * count
    return b"".join((number + least & mask).to_bytes(size, "little") for number in numbers)


def filter_encode(identifier, parameters, data):
    """One filter's forward direction."""
    if identifier == DEFLATE:
        return zlib.compress(data, parameters[0])
    if identifier == SHUFFLE:
        return shuffle(data, parameters[0])
    if identifier == FLETCHER32:
        return data + struct.pack("<I", fletcher32(data))
    if identifier == NBIT:
        return nbit_encode(parameters, data)
    if identifier == SCALEOFFSET:
        return scaleoffset_encode(parameters, data)
    if identifier == ZSTD and zstandard:
        return zstandard.ZstdCompressor(level=parameters[0] if parameters else 3).compress(data)
    if identifier == LOCATION:
        # Imported here because those files need this one first.
        from location_builder import location_encode

        return location_encode(data)
    if identifier == HEAP:
        from structured_heap import heap_filter_encode

        return heap_filter_encode(data, parameters)
    if identifier == REFERENCES:
        from structured_heap import references_filter_encode

        return references_filter_encode(data)
    raise Unsupported(f"filter {identifier}")


def filter_decode(identifier, parameters, data, limit):
    """One filter undone; `limit` bounds the bytes that may come out."""
    if identifier == DEFLATE:
        inflater = zlib.decompressobj()
        plain = inflater.decompress(data, limit + 1)
        require(inflater.eof and not inflater.unused_data, "deflate: not one whole stream")
        return plain
    if identifier == SHUFFLE:
        require(len(parameters) == 1 and parameters[0] > 0, "shuffle: element size missing")
        return unshuffle(data, parameters[0])
    if identifier == FLETCHER32:
        require(len(data) >= 4, "fletcher32: no room for a checksum")
        body, (stored,) = data[:-4], struct.unpack("<I", data[-4:])
        require(fletcher32(body) == stored, "fletcher32: wrong checksum")
        return body
    if identifier == NBIT:
        return nbit_decode(parameters, data)
    if identifier == SCALEOFFSET:
        return scaleoffset_decode(parameters, data)
    if identifier == ZSTD and zstandard:
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=limit + 1)
    if identifier == LOCATION:
        from location_filter import location_decode

        require(not parameters, "location filter: it has no parameters")
        return location_decode(data, limit)
    if identifier == HEAP:
        from structured_heap import heap_filter_decode

        return heap_filter_decode(data, limit, parameters)
    if identifier == REFERENCES:
        from structured_heap import references_filter_decode

        require(not parameters, "references filter: it has no parameters")
        return references_filter_decode(data, limit)
    raise Unsupported(f"filter {identifier}")
