"""Elements as a file has them, and arrays of numpy.

Numbers go straight between a file and the memory of an array. This module is for the rest: strings and sequences of
any length, references, and compounds that have such.
"""

from typing import Any

import numpy as np

from .. import _pumice
from ..low.h5r import Reference, RegionReference
from . import dtypes

NO_BYTES = np.empty(0, np.uint8)


def as_bytes(array):
    """The memory of an array that lies in one piece, as bytes."""
    return array.reshape(-1).view(np.uint8)


# -- which datatype elements have in memory ------------------------------------------------------------


def memory_tree(dtype, tree):
    """The tree of a plain dtype in memory, where elements are or become those of a file's tree."""
    kind = tree[0]
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return ("array", tuple(shape), memory_tree(base, tree[2] if kind == "array" else tree))
    if kind == "opaque" and dtype.kind not in "iufcbS" or kind == "opaque" and dtypes.check_opaque_dtype(dtype):
        return ("opaque", dtype.itemsize, tree[2])
    if kind == "bitfield" and dtype.kind in "ub" and dtype.itemsize == tree[1]:
        return ("bitfield", tree[1], dtypes._order(dtype), 0, tree[1] * 8, 0, 0)
    if kind == "complex" and dtype.kind == "c":
        return ("complex", dtypes.tree_of(np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")))
    if kind == "string" and dtype.kind == "S":
        return ("string", dtype.itemsize, 1, tree[3])
    if kind == "compound" and dtype.names is not None:
        known = {member[0]: member[2] for member in tree[2]}
        members = []
        for name in dtype.names:
            field, offset = dtype.fields[name][:2]
            below = known.get(name)
            members.append((name, offset, dtypes.tree_of(field) if below is None else memory_tree(field, below)))
        return ("compound", dtype.itemsize, members)
    return dtypes.tree_of(dtype)


def memory_datatype(dtype, datatype):
    """The datatype of a plain dtype in memory, where elements are or become those of a file's datatype."""
    if dtype.kind in "iuf" and dtype.metadata is None and datatype.class_number in (0, 1):
        return dtypes.datatype_of(dtype)
    return _pumice.Datatype(memory_tree(dtype, datatype.tree))


# -- from a file ---------------------------------------------------------------------------------------


def objects(items, count, dtype=None):
    """A list as an array of objects, whatever the objects are."""
    array = np.fromiter(items, dtype=object, count=count)
    return array if dtype is None or dtype.kind != "O" else array.view(dtype)


def _decode_plain(tree, elements, dtype):
    datatype = _pumice.Datatype(tree)
    memory = _pumice.Datatype(memory_tree(dtype, tree))
    raw = elements.tobytes()
    if datatype != memory:
        raw = datatype.convert(memory, raw)
    if dtype.itemsize == 0:
        return np.zeros(len(elements), dtype)
    return np.frombuffer(raw, dtype, count=len(elements)).copy()


def _decode_sequences(tree, elements, heap, dtype, group):
    base = dtypes.check_vlen_dtype(dtype)
    base = np.dtype(base)
    size = _pumice.Datatype(tree[2]).size
    counts, places = _pumice.heap_places(elements.reshape(-1), tree[1])
    found = []
    for count, place in zip(counts.tolist(), places.tolist()):
        raw = heap[place : place + count * size].reshape(count, size) if count else np.empty((0, size), np.uint8)
        found.append(decode(tree[2], raw, heap, base, group))
    return objects(found, len(found), dtype)


def _references(tree, elements, group, dtype):
    kind = RegionReference if tree[2] == "region" else Reference
    found = group.references(_pumice.Datatype(tree), np.ascontiguousarray(elements).reshape(-1))
    return objects((kind(one) for one in found), len(found), dtype)


def _decode_struct(tree, elements, heap, dtype, group):
    known = {member[0]: member for member in tree[2]}
    result = np.zeros(len(elements), dtype)
    for name in dtype.names:
        if name not in known:
            continue
        _, offset, below = known[name]
        size = _pumice.Datatype(below).size
        part = np.ascontiguousarray(elements[:, offset : offset + size])
        result[name] = decode(below, part, heap, dtype.fields[name][0], group)
    return result


def decode(tree, elements, heap, dtype, group):
    """Elements of a file (as rows of bytes) as a one-dimensional array of a dtype."""
    count = len(elements)
    if tree[0] == "array" and dtype.subdtype is not None:
        base, shape = dtype.subdtype
        size = _pumice.Datatype(tree[2]).size
        rows = np.ascontiguousarray(elements).reshape(-1, size) if size else elements.reshape(count, 0)
        return decode(tree[2], rows, heap, base, group).reshape((count, *shape))
    if tree[0] == "vlen-string":
        text = dtype.kind in "TU"
        found = _pumice.heap_strings(np.ascontiguousarray(elements).reshape(-1), tree[1], heap, text)
        if dtype.kind in "SUT":
            return np.array(found, dtype=dtype).reshape(count)
        return objects(found, count, dtype)
    if dtypes.is_plain(dtype):
        return _decode_plain(tree, elements, dtype)
    if tree[0] == "vlen":
        return _decode_sequences(tree, elements, heap, dtype, group)
    if tree[0] == "reference":
        return _references(tree, elements, group, dtype)
    if tree[0] == "compound" and dtype.names is not None:
        return _decode_struct(tree, elements, heap, dtype, group)
    if tree[0] == "string":
        plain = _decode_plain(tree, elements, np.dtype(f"S{tree[1]}")).tolist()
        if dtype.kind == "T":
            return np.array([one.decode("utf-8", "surrogateescape") for one in plain], dtype=dtype).reshape(count)
        return objects(plain, count)
    raise TypeError(f"Can't read elements of the HDF5 class {tree[0]} as {dtype!r}")


def decode_all(datatype, elements, heap, dtype, shape, group):
    """Elements of a file, as bytes, as an array of a dtype and a shape."""
    rows = elements.reshape(-1, datatype.size)
    found = decode(datatype.tree, rows, heap, dtype, group)
    inner = dtype.subdtype[1] if dtype.subdtype is not None else ()
    return found.reshape(tuple(shape) + tuple(inner))


# -- to a file -----------------------------------------------------------------------------------------


class Heap:
    """What elements refer to, piece after piece."""

    def __init__(self, begin=NO_BYTES):
        self.pieces = [begin] if len(begin) else []
        self.length = len(begin)

    def add(self, piece):
        """Adds bytes; returns where they are."""
        place = self.length
        if len(piece):
            self.pieces.append(piece)
            self.length += len(piece)
        return place

    def bytes(self):
        """Everything, one after another."""
        return np.concatenate(self.pieces) if self.pieces else NO_BYTES


def _encode_strings(tree, array, heap):
    offsets, raw = _pumice.pack_strings(array.tolist())
    place = heap.add(raw)
    counts = np.diff(offsets)
    return _pumice.heap_references(counts, offsets[:-1] + np.uint64(place), tree[1]).reshape(-1, tree[1])


def _encode_sequences(tree, array, heap, group, dtype):
    base = dtypes.check_vlen_dtype(dtype)
    if base is None or base in (str, bytes):
        base = dtypes.dtype_of_tree(tree[2])
    base = np.dtype(base)
    counts = np.empty(len(array), np.uint64)
    places = np.empty(len(array), np.uint64)
    for at, item in enumerate(array):
        if item is None or isinstance(item, (int, float)) and item == 0:
            # What numpy's own empty arrays of objects have in them.
            item = ()
        item = np.asarray(item, dtype=object if base.kind == "O" else base)
        if item.ndim != 1:
            raise ValueError("A sequence of a dataset of sequences must have one dimension")
        counts[at] = len(item)
        rows = encode(tree[2], item, heap, group, base)
        places[at] = heap.add(rows.reshape(-1))
    return _pumice.heap_references(counts, places, tree[1]).reshape(-1, tree[1])


def _fixed_strings(array, size):
    """Any strings as bytes of a fixed length."""
    items = array.tolist()
    raw = [item.encode("utf-8", "surrogateescape") if isinstance(item, str) else bytes(item or b"") for item in items]
    return np.array(raw, dtype=f"S{size}").reshape(len(items))


def _encode_plain(tree, array, dtype):
    if array.dtype.kind in "OUT":
        if tree[0] == "string":
            array = _fixed_strings(array, tree[1])
        else:
            array = array.astype(dtype if dtypes.is_plain(dtype) else dtypes.dtype_of_tree(tree))
    memory = _pumice.Datatype(memory_tree(array.dtype, tree))
    datatype = _pumice.Datatype(tree)
    raw = np.ascontiguousarray(array).tobytes()
    if memory != datatype:
        raw = memory.convert(datatype, raw)
    return np.frombuffer(raw, np.uint8).reshape(len(array), datatype.size)


def _encode_references(tree, array, group):
    natives: list[Any] = []
    for item in array.reshape(-1):
        if not isinstance(item, Reference):
            if item is None or isinstance(item, int) and item == 0:
                natives.append(None)
                continue
            raise TypeError("Can't convert incompatible object to HDF5 object reference")
        if (tree[2] == "region") != isinstance(item, RegionReference):
            kind = "region" if tree[2] == "region" else "object"
            raise TypeError(f"Can't convert incompatible object to HDF5 {kind} reference")
        natives.append(item.native)
    elements = group.reference_elements(tree[2], natives)
    return elements.reshape(len(natives), tree[1])


def _encode_struct(tree, array, heap, group, dtype, onto):
    size = _pumice.Datatype(tree).size
    rows = np.zeros((len(array), size), np.uint8) if onto is None else onto
    names = array.dtype.names
    if names is None:
        raise TypeError(f"Can't write {array.dtype!r} to a compound type")
    for name, offset, below in tree[2]:
        if name not in names:
            continue
        field = array.dtype.fields[name][0]
        meant = dtype.fields[name][0] if dtype.names is not None and name in dtype.names else field
        width = _pumice.Datatype(below).size
        rows[:, offset : offset + width] = encode(below, array[name], heap, group, meant)
    return rows


def encode(tree, array, heap, group, dtype, onto=None):
    """An array (its first axis is the elements) as elements of a file: rows of bytes."""
    kind = tree[0]
    if kind == "array":
        count = len(array)
        base = dtype.subdtype[0] if dtype.subdtype is not None else dtype
        flat = np.ascontiguousarray(array).reshape(-1)
        return encode(tree[2], flat, heap, group, base).reshape(count, _pumice.Datatype(tree).size)
    if kind == "vlen-string":
        return _encode_strings(tree, array, heap)
    if kind == "vlen":
        return _encode_sequences(tree, array, heap, group, dtype)
    if kind == "reference":
        return _encode_references(tree, array, group)
    if kind == "compound" and array.dtype.names is not None and (onto is not None or not dtypes.is_plain(array.dtype)):
        return _encode_struct(tree, array, heap, group, dtype, onto)
    return _encode_plain(tree, array, dtype)


def encode_all(datatype, array, group, dtype=None):
    """An array as elements of a file and what they refer to; no heap if they refer to nothing."""
    heap = Heap()
    dtype = array.dtype if dtype is None else dtype
    tree = datatype.tree
    inner = len(dtype.subdtype[1]) if dtype.subdtype is not None else 0
    if tree[0] == "array" and not inner:
        inner = len(tree[1])
    outer = array.shape[: array.ndim - inner]
    flat = array.reshape((int(np.prod(outer)), *array.shape[array.ndim - inner :]))
    rows = encode(tree, flat, heap, group, dtype)
    elements = np.ascontiguousarray(rows).reshape(-1)
    return elements, (heap.bytes() if datatype.has_varlen else None)
