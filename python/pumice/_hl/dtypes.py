"""numpy's dtypes and HDF5's datatypes.

What numpy cannot say (strings of any length, sequences, enumerations, references) is in the metadata of a dtype,
under the keys that h5py uses: ``vlen``, ``enum``, ``ref``, ``h5py_encoding``, ``h5py_opaque``.
"""

from collections import namedtuple
from functools import lru_cache

import numpy as np

from .. import _pumice
from ..low.h5r import Reference, RegionReference

string_info = namedtuple("string_info", ["encoding", "length"])

# Bytes of a reference to data of variable length, to an object and to a region, where addresses have 8 bytes.
VLEN_SIZE = 16
NATIVE = "<" if np.little_endian else ">"


# -- dtypes with a meaning of their own ----------------------------------------------------------------


def string_dtype(encoding="utf-8", length=None):
    """A dtype of strings: of any length, or of a fixed number of bytes."""
    encoding = encoding.lower() if isinstance(encoding, str) else encoding
    if encoding not in ("ascii", "utf-8"):
        raise ValueError(f"Invalid encoding ({encoding!r}); 'utf-8' or 'ascii' allowed")
    if isinstance(length, (int, np.integer)) and not isinstance(length, bool):
        return np.dtype(f"|S{int(length)}", metadata={"h5py_encoding": encoding})
    if length is None:
        return np.dtype("O", metadata={"vlen": str if encoding == "utf-8" else bytes})
    raise TypeError(f"length must be integer or None (got {length!r})")


def vlen_dtype(basetype):
    """A dtype of sequences of any length."""
    return np.dtype("O", metadata={"vlen": basetype})


def enum_dtype(values_dict, basetype=np.uint8):
    """A dtype of integers with names."""
    dtype = np.dtype(basetype)
    if not np.issubdtype(dtype, np.integer):
        raise TypeError("Only integers can be used as enums")
    return np.dtype(dtype, metadata={"enum": values_dict})


ref_dtype = np.dtype("O", metadata={"ref": Reference})
regionref_dtype = np.dtype("O", metadata={"ref": RegionReference})


def opaque_dtype(np_dtype):
    """A dtype that is stored as bytes without a meaning, and read as it was."""
    np_dtype = np.dtype(np_dtype)
    if np.issubdtype(np_dtype, np.object_):
        raise TypeError("Cannot store numpy object arrays as opaque data")
    if np_dtype.names is not None:
        raise TypeError("Cannot store numpy structured arrays as opaque data")
    if np_dtype.subdtype is not None:
        raise TypeError("Cannot store numpy sub-array dtype as opaque data")
    if np_dtype.itemsize == 0:
        raise TypeError("dtype for opaque data must have explicit size")
    return np.dtype(np_dtype, metadata={"h5py_opaque": True})


def complex_compat_dtype(dtype="complex128", names=("r", "i")):
    """A structured dtype for complex numbers as a compound of two numbers."""
    dtype = np.dtype(dtype)
    if dtype.kind != "c":
        raise TypeError("complex_compat_dtype() needs a complex dtype")
    part = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
    return np.dtype([(names[0], part), (names[1], part)])


def _meta(dtype, key):
    metadata = getattr(dtype, "metadata", None)
    return None if metadata is None else metadata.get(key)


def check_vlen_dtype(dtype):
    """The type of the items of sequences; None if the dtype is another."""
    return _meta(dtype, "vlen")


def check_string_dtype(dtype):
    """Encoding and length of strings; None if the dtype is another."""
    vlen = check_vlen_dtype(dtype)
    if vlen is str:
        return string_info("utf-8", None)
    if vlen is bytes:
        return string_info("ascii", None)
    kind = getattr(dtype, "kind", None)
    if kind == "S":
        return string_info(_meta(dtype, "h5py_encoding") or "ascii", dtype.itemsize)
    if kind == "T":
        return string_info("utf-8", None)
    return None


def check_enum_dtype(dtype):
    """The names of an enumeration and their numbers; None if the dtype is another."""
    return _meta(dtype, "enum")


def check_ref_dtype(dtype):
    """The class of references; None if the dtype is another."""
    return _meta(dtype, "ref")


def check_opaque_dtype(dtype):
    """Whether the dtype is stored as bytes without a meaning."""
    return bool(_meta(dtype, "h5py_opaque"))


def check_complex_dtype(dtype, names=("r", "i")):
    """The dtype of complex numbers that a dtype means; None if it means something else."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return dtype
    if dtype.names is None or len(dtype.names) != 2:
        return None
    if names is not None and dtype.names != tuple(names):
        return None
    first, second = (dtype.fields[name] for name in dtype.names)
    size = first[0].itemsize
    together = first[0] == second[0] and first[1] == 0 and second[1] == size
    if first[0].kind != "f" or not together or dtype.itemsize != 2 * size or size < 4:
        return None
    return np.dtype(f"{first[0].byteorder}c{2 * size}")


def special_dtype(**kwds):
    """The older name of vlen_dtype, string_dtype, enum_dtype and ref_dtype."""
    if len(kwds) != 1:
        raise TypeError("Exactly one keyword may be provided")
    name, value = kwds.popitem()
    if name not in ("vlen", "enum", "ref"):
        raise TypeError(f'Unknown special type "{name}"')
    if name == "vlen":
        return np.dtype("O", metadata={"vlen": value})
    if name == "enum":
        try:
            basetype, values = value
        except TypeError:
            raise TypeError("Enums must be created from a 2-tuple (basetype, values_dict)") from None
        return enum_dtype(values, basetype)
    if value not in (Reference, RegionReference):
        raise ValueError("Ref class must be Reference or RegionReference")
    return np.dtype("O", metadata={"ref": value})


def check_dtype(**kwds):
    """The older name of check_vlen_dtype, check_enum_dtype and check_ref_dtype."""
    if len(kwds) != 1:
        raise TypeError("Exactly one keyword may be provided")
    name, dtype = kwds.popitem()
    if name not in ("vlen", "enum", "ref"):
        raise TypeError(f'Unknown special type "{name}"')
    return _meta(dtype, name)


# -- from numpy to HDF5 --------------------------------------------------------------------------------


def _integer_tree(size, order, signed):
    return ("integer", size, order, bool(signed), 0, size * 8, 0, 0)


def _float_tree(size, order, exponent, mantissa):
    bias = (1 << (exponent - 1)) - 1
    fields = (exponent + mantissa, mantissa, exponent, bias)
    return ("float", size, order, 0, size * 8, (0, 0, 0), 2, fields, (0, mantissa))


def _long_double_tree(dtype):
    info = np.finfo(np.longdouble)
    order = _order(dtype)
    if info.nmant == 63:
        fields = (79, 64, 15, 16383)
        return ("float", dtype.itemsize, order, 0, 80, (0, 0, 0), 0, fields, (0, 64))
    if info.nmant == 112:
        return _float_tree(16, order, 15, 112)
    raise TypeError(f"No conversion path for dtype: {dtype!r}")


def _order(dtype):
    if dtype.byteorder in "<>":
        return dtype.byteorder
    return NATIVE


_FLOATS = {2: (5, 10), 4: (8, 23), 8: (11, 52)}
# Floating-point numbers of the package ml_dtypes: bytes, exponent, mantissa.
_ML_FLOATS = {"bfloat16": (2, 8, 7), "float8_e4m3": (1, 4, 3), "float8_e5m2": (1, 5, 2), "float8_e3m4": (1, 3, 4)}
BOOL_TREE = ("enum", _integer_tree(1, NATIVE, True), [("FALSE", b"\0"), ("TRUE", b"\1")])


class _Sizes:
    """How wide references of a file are."""

    def __init__(self, vlen=VLEN_SIZE):
        self.vlen = vlen
        self.object = vlen - 8
        self.region = vlen - 4


USUAL = _Sizes()


def _tree_of_object(dtype, sizes):
    vlen = check_vlen_dtype(dtype)
    if vlen is not None:
        if vlen is str:
            return ("vlen-string", sizes.vlen, 0, 1)
        if vlen is bytes:
            return ("vlen-string", sizes.vlen, 0, 0)
        return ("vlen", sizes.vlen, tree_of(np.dtype(vlen), sizes))
    kind = check_ref_dtype(dtype)
    if kind is not None:
        if issubclass(kind, RegionReference):
            return ("reference", sizes.region, "region", 0)
        return ("reference", sizes.object, "object", 0)
    raise TypeError(f"Object dtype {dtype!r} has no native HDF5 equivalent")


def _tree_of_enum(dtype, values, sizes):
    base = _integer_tree(dtype.itemsize, _order(dtype), dtype.kind == "i")
    names = sorted(values.items(), key=lambda item: (int(item[1]), item[0]))
    members = []
    for name, value in names:
        if isinstance(name, bytes):
            name = name.decode("utf-8")
        members.append((name, np.array(value).astype(dtype).tobytes()))
    return ("enum", base, members)


def _tree_of_struct(dtype, sizes):
    members = []
    wide = False
    for name in dtype.names:
        field = dtype.fields[name]
        tree = tree_of(field[0], sizes)
        wide = wide or field[0].hasobject or field[0].kind == "T"
        members.append((name, field[1], tree))
    if not wide:
        return ("compound", dtype.itemsize, members)
    # Python's pointers have another width than what a file has in their place: without gaps.
    place, packed = 0, []
    for name, _, tree in members:
        packed.append((name, place, tree))
        place += _pumice.Datatype(tree).size
    return ("compound", place, packed)


def tree_of(dtype, sizes=USUAL):
    """The tree of the datatype that a dtype is stored as."""
    kind = dtype.kind
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return ("array", tuple(shape), tree_of(base, sizes))
    if kind == "O":
        return _tree_of_object(dtype, sizes)
    if check_opaque_dtype(dtype):
        return ("opaque", dtype.itemsize, "NUMPY:" + dtype.descr[0][1])
    if kind in "iu":
        values = check_enum_dtype(dtype)
        if values is not None:
            return _tree_of_enum(dtype, values, sizes)
        return _integer_tree(dtype.itemsize, _order(dtype), kind == "i")
    if kind == "b":
        return BOOL_TREE
    if dtype.name in _ML_FLOATS:
        size, exponent, mantissa = _ML_FLOATS[dtype.name]
        return _float_tree(size, _order(dtype), exponent, mantissa)
    if kind == "f":
        if dtype.itemsize in _FLOATS:
            return _float_tree(dtype.itemsize, _order(dtype), *_FLOATS[dtype.itemsize])
        return _long_double_tree(dtype)
    if kind == "c":
        half = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
        part = tree_of(half, sizes)
        return ("compound", dtype.itemsize, [("r", 0, part), ("i", half.itemsize, part)])
    if kind == "S":
        charset = 1 if _meta(dtype, "h5py_encoding") == "utf-8" else 0
        if dtype.itemsize == 0:
            raise ValueError("Strings of a fixed length need at least one byte")
        return ("string", dtype.itemsize, 1, charset)
    if kind == "T":
        return ("vlen-string", sizes.vlen, 0, 1)
    if kind == "V":
        if dtype.names is not None:
            return _tree_of_struct(dtype, sizes)
        return ("opaque", dtype.itemsize, "")
    raise TypeError(f"No conversion path for dtype: {dtype!r}")


@lru_cache(maxsize=256)
def _plain_datatype(kind, size, order):
    return _pumice.Datatype(tree_of(np.dtype(f"{order}{kind}{size}")))


def datatype_of(dtype, sizes=USUAL):
    """The datatype that a dtype is stored as."""
    if dtype.kind in "iuf" and dtype.metadata is None and dtype.itemsize <= 8 and dtype.char != "g":
        if dtype.isbuiltin == 1 or dtype.isbuiltin == 0 and dtype.name not in _ML_FLOATS:
            return _plain_datatype(dtype.kind, dtype.itemsize, _order(dtype))
    return _pumice.Datatype(tree_of(dtype, sizes))


# -- from HDF5 to numpy --------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def dtype_of(datatype):
    """The dtype that elements of a datatype are read as."""
    return dtype_of_tree(datatype.tree)


def _fits(tree, exponent, mantissa):
    """Whether every number of a type is one of those with such an exponent and mantissa."""
    bias, most = tree[7][3], (1 << (exponent - 1)) - 1
    largest = (1 << tree[7][2]) - 2 - bias
    return largest <= most and 1 - bias >= 1 - most and tree[8][1] <= mantissa


def _dtype_of_float(tree):
    order = tree[2] if tree[2] in "<>" else NATIVE
    for size, (exponent, mantissa) in _FLOATS.items():
        if tree[1] <= size and _fits(tree, exponent, mantissa):
            return np.dtype(f"{order}f{size}")
    if _fits(tree, 15, 113) and np.dtype(np.longdouble).itemsize > 8:
        return np.dtype(np.longdouble).newbyteorder(order)
    raise ValueError("Insufficient precision in available types to represent " + repr(tree[7:]))


def _dtype_of_opaque(tree):
    tag = tree[2]
    if tag.startswith("NUMPY:"):
        dtype = np.dtype(tag[len("NUMPY:"):])
        if dtype.itemsize == tree[1]:
            return np.dtype(dtype, metadata={"h5py_opaque": True})
    return np.dtype(f"V{tree[1]}")


def _dtype_of_enum(tree):
    base = dtype_of_tree(tree[1])
    values = {name: np.frombuffer(value, base)[0].item() for name, value in tree[2]}
    if base.itemsize == 1 and values == {"FALSE": 0, "TRUE": 1}:
        return np.dtype("bool")
    return enum_dtype(values, base)


def _dtype_of_compound(tree):
    names = [member[0] for member in tree[2]]
    if len(names) == 2 and names == ["r", "i"]:
        parts = [member[2] for member in tree[2]]
        size = parts[0][1] if parts[0][0] == "float" else 0
        together = tree[2][0][1] == 0 and tree[2][1][1] == size and tree[1] == 2 * size
        if parts[0][0] == parts[1][0] == "float" and parts[0] == parts[1] and together:
            part = dtype_of_tree(parts[0])
            if part.itemsize == size and size >= 4:
                return np.dtype(f"{part.byteorder}c{2 * size}")
    formats = [dtype_of_tree(member[2]) for member in tree[2]]
    offsets = [member[1] for member in tree[2]]
    same = all(form.itemsize == _pumice.Datatype(member[2]).size for form, member in zip(formats, tree[2]))
    if not same or any(form.hasobject for form in formats):
        # Elements in memory are wider or narrower than those of the file.
        return np.dtype({"names": names, "formats": formats}) if names else np.dtype([])
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": tree[1]})


def dtype_of_tree(tree):
    """The dtype that elements of the datatype of a tree are read as."""
    kind = tree[0]
    if kind in ("integer", "bitfield"):
        signed = "i" if kind == "integer" and tree[3] else "u"
        order = tree[2] if tree[2] in "<>" else NATIVE
        if tree[1] not in (1, 2, 4, 8):
            raise TypeError(f"numpy has no integers of {tree[1]} bytes")
        return np.dtype(f"{order}{signed}{tree[1]}")
    if kind == "float":
        return _dtype_of_float(tree)
    if kind == "string":
        return string_dtype("utf-8" if tree[3] else "ascii", tree[1])
    if kind == "opaque":
        return _dtype_of_opaque(tree)
    if kind == "compound":
        return _dtype_of_compound(tree)
    if kind == "enum":
        return _dtype_of_enum(tree)
    if kind == "vlen":
        return vlen_dtype(dtype_of_tree(tree[2]))
    if kind == "vlen-string":
        return string_dtype("utf-8" if tree[3] else "ascii")
    if kind == "array":
        return np.dtype((dtype_of_tree(tree[2]), tuple(tree[1])))
    if kind == "complex":
        part = dtype_of_tree(tree[1])
        return np.dtype(f"{part.byteorder}c{2 * part.itemsize}")
    if kind == "reference":
        return regionref_dtype if tree[2] == "region" else ref_dtype
    raise TypeError(f"No NumPy equivalent for the HDF5 class {kind} exists")


def is_plain(dtype):
    """Whether elements in memory are bytes, and no objects of Python."""
    return not dtype.hasobject and dtype.kind != "T"


def sizes_of(group):
    """How wide the references of a file are."""
    width = group.reference_size
    return USUAL if width == VLEN_SIZE else _Sizes(width)
