"""Variable-length data for the tests: the packed form of README.md, and types to try."""

import h5py
import numpy as np

NULL = 2**64 - 1


def to_json(dtype):
    """A dtype of h5py, variable-length parts included, in the notation of README.md."""
    dtype = np.dtype(dtype)
    base = h5py.check_vlen_dtype(dtype)
    if h5py.check_string_dtype(dtype) is not None and dtype.kind == "O":
        return {"vlen": "string"}
    if base is not None:
        return {"vlen": to_json(base)}
    if dtype.subdtype is not None:
        return {"array": to_json(dtype.subdtype[0]), "dims": list(dtype.subdtype[1])}
    if dtype.names:
        fields, offset = [], 0
        for name in dtype.names:
            kind = to_json(dtype.fields[name][0])
            fields.append({"name": name, "offset": offset, "dtype": kind})
            offset += size_of(kind)
        return {"size": offset, "fields": fields}
    return dtype.str


def size_of(kind):
    """Bytes of an element in the file."""
    if isinstance(kind, str):
        return np.dtype(kind).itemsize
    if "vlen" in kind:
        return 16
    if "array" in kind:
        return size_of(kind["array"]) * int(np.prod(kind["dims"]))
    return kind["size"]


def pack(kind, value, null_is_empty=False):
    """One element in the packed form; None is null."""
    if isinstance(kind, str):
        return np.asarray(value, np.dtype(kind)).tobytes()
    if "vlen" in kind:
        if value is None:
            return (0 if null_is_empty else NULL).to_bytes(8, "little")
        if kind["vlen"] == "string":
            value = value.encode() if isinstance(value, str) else bytes(value)
            return len(value).to_bytes(8, "little") + value
        parts = b"".join(pack(kind["vlen"], part, null_is_empty) for part in value)
        return len(value).to_bytes(8, "little") + parts
    if "array" in kind:
        flat = value if isinstance(value, list) else np.asarray(value, object).reshape(-1)
        return b"".join(pack(kind["array"], part, null_is_empty) for part in flat)
    fields = kind["fields"]
    parts = (value[f["name"]] if not isinstance(value, tuple) else None for f in fields)
    if isinstance(value, tuple):
        parts = value
    return b"".join(
        pack(f["dtype"], part, null_is_empty) for f, part in zip(fields, parts, strict=True)
    )


def pack_all(kind, values, null_is_empty=False):
    return b"".join(pack(kind, value, null_is_empty) for value in values)


def unpack(kind, data, at=0):
    """(value, position behind it): plain Python values, strings as bytes, null as None."""
    if isinstance(kind, str):
        dtype = np.dtype(kind)
        return np.frombuffer(data, dtype, 1, at)[0], at + dtype.itemsize
    if "vlen" in kind:
        count = int.from_bytes(data[at : at + 8], "little")
        at += 8
        if count == NULL:
            return None, at
        if kind["vlen"] == "string":
            return data[at : at + count], at + count
        return unpack_many(kind["vlen"], data, at, count)
    if "array" in kind:
        return unpack_many(kind["array"], data, at, int(np.prod(kind["dims"])))
    parts = []
    for field in kind["fields"]:
        part, at = unpack(field["dtype"], data, at)
        parts.append(part)
    return tuple(parts), at


def unpack_many(kind, data, at, count):
    parts = []
    for _ in range(count):
        part, at = unpack(kind, data, at)
        parts.append(part)
    return parts, at


def unpack_all(kind, data):
    values, at = [], 0
    while at < len(data):
        value, at = unpack(kind, data, at)
        values.append(value)
    return values
