"""Datatypes."""

from typing import Any

import numpy as np

from .. import _pumice
from .._hl import dtypes
from .._hl.dtypes import (  # noqa: F401
    check_complex_dtype,
    check_dtype,
    check_enum_dtype,
    check_opaque_dtype,
    check_ref_dtype,
    check_string_dtype,
    check_vlen_dtype,
    complex_compat_dtype,
    enum_dtype,
    opaque_dtype,
    ref_dtype,
    regionref_dtype,
    special_dtype,
    string_dtype,
    string_info,
    vlen_dtype,
)
from .h5g import text
from .h5i import DATATYPE, ObjectID, wrap

NO_CLASS, INTEGER, FLOAT, TIME, STRING, BITFIELD = -1, 0, 1, 2, 3, 4
OPAQUE, COMPOUND, REFERENCE, ENUM, VLEN, ARRAY, COMPLEX = 5, 6, 7, 8, 9, 10, 11
ORDER_LE, ORDER_BE, ORDER_VAX, ORDER_MIXED, ORDER_NONE = 0, 1, 2, 3, 4
ORDER_NATIVE = ORDER_LE if np.little_endian else ORDER_BE
SGN_NONE, SGN_2 = 0, 1
CSET_ASCII, CSET_UTF8 = 0, 1
STR_NULLTERM, STR_NULLPAD, STR_SPACEPAD = 0, 1, 2
NORM_IMPLIED, NORM_MSBSET, NORM_NONE = 0, 1, 2
PAD_ZERO, PAD_ONE, PAD_BACKGROUND = 0, 1, 2
VARIABLE = 2**64 - 1
DIR_DEFAULT, DIR_ASCEND, DIR_DESCEND = 0, 1, 2

_ORDERS = {"<": ORDER_LE, ">": ORDER_BE, "vax": ORDER_VAX}
_SIGNS = {ORDER_LE: "<", ORDER_BE: ">", ORDER_VAX: "vax"}
_NORMS = {0: NORM_NONE, 1: NORM_MSBSET, 2: NORM_IMPLIED}


class TypeID(ObjectID):
    """A datatype, of its own or committed to a file."""

    kind = DATATYPE

    def __init__(self, datatype, native=None, owner=None):
        self.datatype = datatype
        self.native = native
        self.owner = owner

    @property
    def valid(self):
        return self.native is None or self.native.is_open

    def __bool__(self):
        return self.valid

    def close(self):
        if self.native is not None:
            self.native.close()

    _close = close

    @property
    def tree(self):
        """What the datatype consists of."""
        return self.datatype.tree

    def _become(self, tree):
        self.datatype = _pumice.Datatype(tree)

    def __eq__(self, other):
        return isinstance(other, TypeID) and self.datatype == other.datatype

    def __hash__(self):
        return hash(self.datatype)

    def __copy__(self):
        return self.copy()

    @property
    def dtype(self):
        """The dtype that elements are read as."""
        return self.py_dtype()

    def py_dtype(self):
        """The dtype that elements are read as."""
        return dtypes.dtype_of(self.datatype)

    def copy(self):
        """A datatype like this one, of its own."""
        return wrap_type(self.datatype)

    def equal(self, other):
        """Whether two datatypes are the same."""
        return self.datatype == other.datatype

    def get_class(self):
        """The class."""
        return self.datatype.class_number

    def get_size(self):
        """Bytes of an element."""
        return self.datatype.size

    def set_size(self, size):
        """Another number of bytes."""
        tree = self.tree
        if tree[0] in ("string", "opaque"):
            self._become((tree[0], size, *tree[2:]))
        elif tree[0] == "integer":
            self._become(dtypes._integer_tree(size, tree[2], tree[3]))
        elif tree[0] in ("compound", "float"):
            self._become((tree[0], size, *tree[2:]))
        else:
            raise TypeError(f"The size of {tree[0]} cannot be changed")

    def get_super(self):
        """The datatype that it is made from."""
        tree = self.tree
        below = {"array": 2, "vlen": 2, "enum": 1, "complex": 1}
        if tree[0] not in below:
            raise TypeError("The datatype is made from no other")
        return wrap_type(_pumice.Datatype(tree[below[tree[0]]]))

    def detect_class(self, number):
        """Whether there is something of a class in it."""
        return _detect(self.tree, number)

    def committed(self):
        """Whether it is stored in a file under a name."""
        return self.native is not None

    def commit(self, group, name, lcpl=None):
        """Stores it in a file under a name."""
        try:
            made = group.group.commit(text(name), self.datatype)
        except ValueError:
            if not group.group.leads(text(name)):
                raise
            raise KeyError("Unable to commit datatype synchronously (name already exists)") from None
        self.native, self.owner = made, group.owner

    def encode(self):
        """The datatype as bytes."""
        return repr(self.tree).encode()

    def lock(self):
        """Nothing to do: a datatype that is in use is never changed."""

    def __reduce__(self):
        return _unpickled, (self.tree,)

    @property
    def name(self):
        return None if self.native is None else super().name

    @property
    def id(self):
        return 0 if self.native is None else self.native.address


def _unpickled(tree):
    return wrap_type(_pumice.Datatype(tree))


_CLASSES = {
    "integer": INTEGER, "float": FLOAT, "time": TIME, "string": STRING, "bitfield": BITFIELD, "opaque": OPAQUE,
    "compound": COMPOUND, "reference": REFERENCE, "enum": ENUM, "vlen": VLEN, "vlen-string": STRING, "array": ARRAY,
    "complex": COMPLEX,
}  # fmt: skip


def _detect(tree, number):
    if _CLASSES[tree[0]] == number:
        return True
    if tree[0] == "compound":
        return any(_detect(member[2], number) for member in tree[2])
    below = {"array": 2, "vlen": 2, "enum": 1}
    return tree[0] in below and _detect(tree[below[tree[0]]], number)


class TypeAtomicID(TypeID):
    """Numbers and the like."""

    def get_order(self):
        """The order of bytes."""
        order = self.tree[2]
        return _ORDERS[order] if isinstance(order, str) else ORDER_NONE

    def set_order(self, order):
        """Another order of bytes."""
        tree = self.tree
        self._become((*tree[:2], _SIGNS[order], *tree[3:]))

    def _place(self):
        return {"integer": 4, "bitfield": 3, "float": 3}[self.tree[0]]

    def get_offset(self):
        """The first bit that counts."""
        return self.tree[self._place()]

    def get_precision(self):
        """How many bits count."""
        return self.tree[self._place() + 1]

    def set_precision(self, precision):
        """Another number of bits."""
        tree, at = list(self.tree), self._place() + 1
        tree[at] = precision
        self._become(tuple(tree))

    def set_offset(self, offset):
        """Another first bit."""
        tree, at = list(self.tree), self._place()
        tree[at] = offset
        self._become(tuple(tree))


class TypeIntegerID(TypeAtomicID):
    """Integers."""

    def get_sign(self):
        """Whether there are negative ones."""
        return SGN_2 if self.tree[3] else SGN_NONE

    def set_sign(self, sign):
        """With or without negative ones."""
        tree = self.tree
        self._become((*tree[:3], sign == SGN_2, *tree[4:]))


class TypeBitfieldID(TypeAtomicID):
    """Bits."""


class TypeTimeID(TypeAtomicID):
    """Times."""


class TypeReferenceID(TypeAtomicID):
    """References."""


class TypeFloatID(TypeAtomicID):
    """Floating-point numbers."""

    def get_fields(self):
        """Place of the sign, place and bits of the exponent, place and bits of the mantissa."""
        fields, mantissa = self.tree[7:9]
        return (*fields[:3], *mantissa)

    def set_fields(self, spos, epos, esize, mpos, msize):
        """Other places."""
        tree = list(self.tree)
        tree[7], tree[8] = (spos, epos, esize, tree[7][3]), (mpos, msize)
        self._become(tuple(tree))

    def get_ebias(self):
        """What is added to the exponent."""
        return self.tree[7][3]

    def set_ebias(self, ebias):
        """Another number to add to the exponent."""
        tree = list(self.tree)
        tree[7] = (*tree[7][:3], ebias)
        self._become(tuple(tree))

    def get_norm(self):
        """What the highest bit of the mantissa is."""
        return _NORMS[self.tree[6]]


class TypeStringID(TypeAtomicID):
    """Strings of a fixed or any length."""

    def is_variable_str(self):
        """Whether they have any length."""
        return self.tree[0] == "vlen-string"

    def get_cset(self):
        """The character set."""
        return self.tree[3]

    def set_cset(self, cset):
        """Another character set."""
        self._become((*self.tree[:3], cset))

    def get_strpad(self):
        """How they end."""
        return self.tree[2]

    def set_strpad(self, pad):
        """Another end."""
        tree = self.tree
        self._become((*tree[:2], pad, tree[3]))

    def set_size(self, size):
        tree = self.tree
        if size == VARIABLE:
            self._become(("vlen-string", dtypes.VLEN_SIZE, tree[2], tree[3]))
        else:
            self._become(("string", size, tree[2], tree[3]))

    def get_order(self):
        return ORDER_NONE


class TypeOpaqueID(TypeID):
    """Bytes without a meaning."""

    def get_tag(self):
        """What they are for, as bytes."""
        return self.tree[2].encode("utf-8", "surrogateescape")

    def set_tag(self, tag):
        """Another tag."""
        self._become((*self.tree[:2], text(tag)))


class TypeCompositeID(TypeID):
    """Datatypes with members."""

    def _names(self):
        return [member[0] for member in self.tree[2]]

    def get_nmembers(self):
        """How many members there are."""
        return len(self.tree[2])

    def get_member_name(self, index):
        """The name of a member, as bytes."""
        if index < 0:
            raise ValueError("Member index must be non-negative.")
        return self._names()[index].encode("utf-8", "surrogateescape")

    def get_member_index(self, name):
        """The place of a member."""
        return self._names().index(text(name))


class TypeCompoundID(TypeCompositeID):
    """Compounds."""

    def get_member_offset(self, index):
        """Where a member begins."""
        return self.tree[2][index][1]

    def get_member_type(self, index):
        """The datatype of a member."""
        if index < 0:
            raise ValueError("Member index must be non-negative.")
        return wrap_type(_pumice.Datatype(self.tree[2][index][2]))

    def get_member_class(self, index):
        """The class of a member."""
        return _CLASSES[self.tree[2][index][2][0]]

    def insert(self, name, offset, member):
        """One more member."""
        tree = self.tree
        self._become(("compound", tree[1], [*tree[2], (text(name), offset, member.tree)]))

    def pack(self):
        """No gaps between members."""
        place, members = 0, []
        for name, _, tree in sorted(self.tree[2], key=lambda member: member[1]):
            members.append((name, place, tree))
            place += _pumice.Datatype(tree).size
        self._become(("compound", place, members))


class TypeEnumID(TypeCompositeID):
    """Integers with names."""

    def _base(self):
        return dtypes.dtype_of_tree(self.tree[1])

    def enum_insert(self, name, value):
        """One more name."""
        tree = self.tree
        stored = np.array(value).astype(self._base()).tobytes()
        self._become(("enum", tree[1], [*tree[2], (text(name), stored)]))

    def enum_nameof(self, value):
        """The name of a number, as bytes."""
        stored = np.array(value).astype(self._base()).tobytes()
        for name, one in self.tree[2]:
            if one == stored:
                return name.encode("utf-8", "surrogateescape")
        raise ValueError(f"The enumeration has no name for {value}")

    def enum_valueof(self, name):
        """The number of a name."""
        return self.get_member_value(self.get_member_index(name))

    def get_member_value(self, index):
        """The number of a member."""
        return int(np.frombuffer(self.tree[2][index][1], self._base())[0])


class TypeVlenID(TypeID):
    """Sequences of any length."""


class TypeArrayID(TypeID):
    """Arrays of a fixed shape."""

    def get_array_ndims(self):
        """How many axes there are."""
        return len(self.tree[1])

    def get_array_dims(self):
        """The size along each axis."""
        return tuple(self.tree[1])


class TypeComplexID(TypeID):
    """Complex numbers."""

    def get_order(self):
        """The order of bytes."""
        return _ORDERS[self.tree[1][2]]


_IDS = {
    "integer": TypeIntegerID, "float": TypeFloatID, "time": TypeTimeID, "string": TypeStringID,
    "bitfield": TypeBitfieldID, "opaque": TypeOpaqueID, "compound": TypeCompoundID, "reference": TypeReferenceID,
    "enum": TypeEnumID, "vlen": TypeVlenID, "vlen-string": TypeStringID, "array": TypeArrayID,
    "complex": TypeComplexID,
}  # fmt: skip


def wrap_type(datatype, native=None, owner=None):
    """A datatype as the class of its kind."""
    return _IDS[datatype.tree[0]](datatype, native, owner)


def committed(native, owner):
    """The handle of a datatype that is stored under a name."""
    return wrap_type(native.datatype(), native, owner)


def py_create(dtype, logical=False, aligned=False):
    """The datatype that a dtype is stored as."""
    return wrap_type(dtypes.datatype_of(np.dtype(dtype)))


def open(group, name, tapl=None):
    """The datatype at a path."""
    found = wrap(group.group.open(text(name)), group)
    if not isinstance(found, TypeID):
        raise TypeError("Not a datatype")
    return found


def create(kind, size):
    """A datatype of a class."""
    if kind == COMPOUND:
        return wrap_type(_pumice.Datatype(("compound", size, [])))
    if kind == OPAQUE:
        return wrap_type(_pumice.Datatype(("opaque", size, "")))
    if kind == STRING:
        made = C_S1.copy()
        made.set_size(size)
        return made
    raise ValueError(f"Unable to create a datatype of class {kind}")


def enum_create(base):
    """An enumeration without names."""
    return wrap_type(_pumice.Datatype(("enum", base.tree, [])))


def vlen_create(base):
    """Sequences of a datatype."""
    return wrap_type(_pumice.Datatype(("vlen", dtypes.VLEN_SIZE, base.tree)))


def array_create(base, dims):
    """Arrays of a datatype."""
    return wrap_type(_pumice.Datatype(("array", tuple(dims), base.tree)))


def complex_create(base):
    """Complex numbers of a datatype."""
    return wrap_type(_pumice.Datatype(("complex", base.tree)))


def decode(buf):
    """A datatype from its bytes."""
    import ast

    return wrap_type(_pumice.Datatype(ast.literal_eval(buf.decode())))


def _numbers():
    made = {}
    for size in (1, 2, 4, 8):
        for sign, kind in (("I", True), ("U", False)):
            for order in "<>":
                name = f"STD_{sign}{size * 8}{'LE' if order == '<' else 'BE'}"
                made[name] = dtypes._integer_tree(size, order, kind)
            made[f"NATIVE_{'' if kind else 'U'}INT{size * 8}"] = dtypes._integer_tree(size, dtypes.NATIVE, kind)
        for order in "<>":
            name = f"STD_B{size * 8}{'LE' if order == '<' else 'BE'}"
            made[name] = ("bitfield", size, order, 0, size * 8, 0, 0)
    for size, shape in dtypes._FLOATS.items():
        for order in "<>":
            name = f"IEEE_F{size * 8}{'LE' if order == '<' else 'BE'}"
            made[name] = dtypes._float_tree(size, order, *shape)
            made[name.replace("IEEE_F", "COMPLEX_IEEE_F")] = ("complex", made[name])
    made["NATIVE_B8"] = made["STD_B8LE"]
    made["FLOAT_BFLOAT16LE"] = dtypes._float_tree(2, "<", 8, 7)
    made["FLOAT_BFLOAT16BE"] = dtypes._float_tree(2, ">", 8, 7)
    made["NATIVE_FLOAT16"] = dtypes._float_tree(2, dtypes.NATIVE, 5, 10)
    made["NATIVE_FLOAT"] = dtypes._float_tree(4, dtypes.NATIVE, 8, 23)
    made["NATIVE_DOUBLE"] = dtypes._float_tree(8, dtypes.NATIVE, 11, 52)
    made["NATIVE_LDOUBLE"] = dtypes.tree_of(np.dtype(np.longdouble))
    for name in ("FLOAT", "DOUBLE", "LDOUBLE"):
        made[f"NATIVE_{name}_COMPLEX"] = ("complex", made[f"NATIVE_{name}"])
    made["STD_REF_OBJ"] = ("reference", 8, "object", 0)
    made["STD_REF_DSETREG"] = ("reference", 12, "region", 0)
    made["C_S1"] = ("string", 1, 0, 0)
    made["FORTRAN_S1"] = ("string", 1, 2, 0)
    made["UNIX_D32LE"] = ("time", 4, "<", 32)
    made["UNIX_D64LE"] = ("time", 8, "<", 64)
    return made


# Named for checkers of types; the others are found when they are asked for.
C_S1: Any
NATIVE_INT8: Any
NATIVE_UINT8: Any

for _name, _tree in _numbers().items():
    globals()[_name] = wrap_type(_pumice.Datatype(_tree))

NATIVE_CHAR, NATIVE_UCHAR = NATIVE_INT8, NATIVE_UINT8
PYTHON_BOOLEAN = wrap_type(_pumice.Datatype(dtypes.BOOL_TREE))


def find(src, dst):
    """Whether elements of one datatype can become those of another."""
    return () if src.datatype.converts_to(dst.datatype) else None
