"""Claims the bytes of dense datasets, so that nothing else may lie on them.

Contiguous data, and chunked data of layout versions 4 and 5 under every index.
The data itself is not decoded: h5py does that in the tests.
"""

import math

from hdf5_bytes import UNDEFINED, Cursor, Unsupported, require
from structured_index import (
    BTree,
    ExtensibleArray,
    Geometry,
    Record,
    fixed_array,
    scaled_from_slot,
)
from structured_space import UNLIMITED

SINGLE, IMPLICIT, FIXED_ARRAY, EXTENSIBLE_ARRAY, B_TREE = range(1, 6)


def claim_dense(file, data, shape, maximum, dtype, filtered):
    """Claim a dataset's raw data; {scaled coordinate: Record} of its chunks."""
    cursor = Cursor(data, "layout message")
    version, kind = cursor.u8(), cursor.u8()
    if kind == 1:
        address, size = file.address(cursor), cursor.uint(file.length_size)
        if address != UNDEFINED:
            file.claim(address, size, "contiguous data")
        return {}
    if version < 4:
        raise Unsupported(f"chunked layout version {version}")
    flags, dimensions, width = cursor.u8(), cursor.u8(), cursor.u8()
    *chunk, element = cursor.uints(dimensions, width)
    require(element == dtype.itemsize and len(chunk) == len(shape), "layout message: dimensions")
    counts = [None if m == UNLIMITED else -(-m // c) for m, c in zip(maximum, chunk)]
    geometry = Geometry(len(shape), counts, 0, filtered)
    chunks = read_chunks(file, cursor, flags, geometry, shape, chunk)
    plain = math.prod(chunk) * element
    for scaled, record in chunks:
        file.claim(record.address, record.size or plain, f"chunk {list(scaled)}")
    return dict(chunks)


def read_chunks(file, cursor, flags, geometry, shape, chunk):
    index = cursor.u8()
    single = None
    parameters = []
    if index == SINGLE and flags & 0x02:
        single = cursor.uint(file.length_size), cursor.u32()
    elif index == B_TREE:
        parameters = [cursor.u32(), *cursor.uints(2, 1)]
    elif index in (FIXED_ARRAY, EXTENSIBLE_ARRAY):
        parameters = cursor.uints(1 if index == FIXED_ARRAY else 5, 1)
    address = file.address(cursor)
    if address == UNDEFINED:
        return []
    if index == SINGLE:
        return [
            ((0,) * geometry.rank, Record(address, single[0] if single else 0, [0], None, None))
        ]
    if index == IMPLICIT:
        raise Unsupported("implicit chunk index")
    if index == B_TREE:
        return BTree(file, address, geometry, parameters[1:]).records()
    if index == FIXED_ARRAY:
        slots = fixed_array(file, address, geometry, parameters[0])[1]
    else:
        slots = ExtensibleArray(file, address, geometry, parameters).slots()
    return [(scaled_from_slot(slot, geometry.counts), record) for slot, record in slots]
