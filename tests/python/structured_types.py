"""Datatype messages as numpy dtypes."""

import numpy as np

from hdf5_bytes import Unsupported, require

FIXED, FLOAT, TIME, STRING, BITFIELD, OPAQUE, COMPOUND = range(7)
REFERENCE, ENUM, VARIABLE, ARRAY = range(7, 11)

# Bit fields (sign, exponent place and size, mantissa place and size, bias) by size.
IEEE = {2: (15, 10, 5, 0, 10, 15), 4: (31, 23, 8, 0, 23, 127), 8: (63, 52, 11, 0, 52, 1023)}


def decode_datatype(cursor):
    """One datatype, nested ones included."""
    head = cursor.u8()
    version, kind = head >> 4, head & 0x0F
    bits, size = cursor.uint(3), cursor.u32()
    require(1 <= version <= 5, f"{cursor.what}: datatype version {version}")
    require(size > 0, f"{cursor.what}: datatype of no bytes")
    if kind == FIXED:
        return decode_fixed(cursor, bits, size)
    if kind == FLOAT:
        return decode_float(cursor, bits, size)
    if kind == STRING:
        return np.dtype(f"S{size}")
    if kind == OPAQUE:
        cursor.take(bits & 0xFF)
        return np.dtype(f"V{size}")
    if kind == COMPOUND:
        return decode_compound(cursor, version, bits & 0xFFFF, size)
    if kind == ENUM:
        return decode_enum(cursor, version, bits & 0xFFFF)
    if kind == ARRAY:
        return decode_array(cursor, version)
    if kind == VARIABLE:
        base = decode_datatype(cursor)
        require(bits & 0x0F in (0, 1), f"{cursor.what}: variable-length type {bits & 0x0F}")
        return np.dtype(f"V{size}", metadata={"vlen": "string" if bits & 0x0F else base})
    raise Unsupported(f"{cursor.what}: datatype class {kind}")


def kind_of(dtype):
    """A dtype in the notation of varlen.py; None if it has no variable-length parts."""
    return notation(dtype) if has_variable(dtype) else None


def has_variable(dtype):
    if dtype.metadata and "vlen" in dtype.metadata:
        return True
    if dtype.subdtype:
        return has_variable(dtype.subdtype[0])
    return any(has_variable(dtype.fields[name][0]) for name in dtype.names or ())


def notation(dtype):
    if dtype.metadata and "vlen" in dtype.metadata:
        base = dtype.metadata["vlen"]
        return {"vlen": base if isinstance(base, str) else notation(base)}
    if dtype.subdtype:
        return {"array": notation(dtype.subdtype[0]), "dims": list(dtype.subdtype[1])}
    if dtype.names:
        fields = [
            {"name": name, "offset": offset, "dtype": notation(member)}
            for name, (member, offset) in ((n, dtype.fields[n][:2]) for n in dtype.names)
        ]
        return {"size": dtype.itemsize, "fields": fields}
    return dtype.str


def decode_fixed(cursor, bits, size):
    offset, precision = cursor.u16(), cursor.u16()
    if offset or precision != 8 * size:
        raise Unsupported(f"{cursor.what}: integer of {precision} bits in {size} bytes")
    return np.dtype(f"{'>' if bits & 1 else '<'}{'i' if bits & 8 else 'u'}{size}")


def decode_float(cursor, bits, size):
    offset, precision = cursor.u16(), cursor.u16()
    exponent, exponent_size, mantissa, mantissa_size = cursor.uints(4, 1)
    bias = cursor.u32()
    order = (bits & 1) | (bits >> 5 & 2)
    require(order in (0, 1), f"{cursor.what}: float byte order {order}")
    found = (bits >> 8 & 0xFF, exponent, exponent_size, mantissa, mantissa_size, bias)
    if offset or precision != 8 * size or IEEE.get(size) != found:
        raise Unsupported(f"{cursor.what}: float {found}")
    require(bits >> 4 & 3 == 2, f"{cursor.what}: mantissa normalisation")
    return np.dtype(f"{'>' if order else '<'}f{size}")


def decode_name(cursor, padded):
    name = bytearray()
    while (byte := cursor.u8()) != 0:
        name.append(byte)
    if padded:
        cursor.take(-(len(name) + 1) % 8)
    return name.decode("utf-8")


def decode_compound(cursor, version, members, size):
    names, formats, offsets = [], [], []
    for _ in range(members):
        names.append(decode_name(cursor, version < 3))
        offsets.append(cursor.uint(4 if version < 3 else (size.bit_length() + 7) // 8))
        shape = ()
        if version == 1:
            rank = cursor.u8()
            cursor.take(11)
            shape = tuple(cursor.uints(4, 4)[:rank])
        member = decode_datatype(cursor)
        formats.append(np.dtype((member, shape)) if shape else member)
        end = offsets[-1] + formats[-1].itemsize
        require(end <= size, f"{cursor.what}: member {names[-1]} ends at {end} of {size}")
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


def decode_enum(cursor, version, members):
    base = decode_datatype(cursor)
    for _ in range(members):
        decode_name(cursor, version < 3)
    cursor.take(members * base.itemsize)
    return base


def decode_array(cursor, version):
    rank = cursor.u8()
    if version < 3:
        cursor.take(3)
    shape = tuple(cursor.uints(rank, 4))
    if version < 3:
        cursor.take(4 * rank)
    return np.dtype((decode_datatype(cursor), shape))
