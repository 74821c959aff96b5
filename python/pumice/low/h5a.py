"""Attributes."""

import numpy as np

from .._hl import codec, dtypes
from .h5g import text
from .h5i import ATTR
from .h5s import SpaceID
from .h5t import wrap_type


class AttrID:
    """A handle of an attribute."""

    kind = ATTR

    def __init__(self, holder, name):
        self._holder, self._name = holder, name
        self._attributes = holder.native.attributes()
        self.datatype, shape = self._attributes.describe(name)
        self.shape = None if shape is None else tuple(shape)

    @property
    def name(self):
        """The name, as bytes."""
        return self._name.encode("utf-8", "surrogateescape")

    @property
    def dtype(self):
        """The dtype that elements are read as."""
        return dtypes.dtype_of(self.datatype)

    @property
    def rank(self):
        """How many axes there are."""
        return len(self.shape or ())

    def __bool__(self):
        return bool(self._holder)

    def close(self):
        """Nothing to do."""

    def get_name(self):
        """The name, as bytes."""
        return self.name

    def get_space(self):
        """The dataspace."""
        return SpaceID(self.shape)

    def get_type(self):
        """The datatype."""
        address = self._attributes.read(self._name)[4]
        path = None if address is None else self._holder.owner.group.path_of(address)
        if path is None:
            return wrap_type(self.datatype)
        return wrap_type(self.datatype, self._holder.owner.group.open(path), self._holder.owner)

    def get_storage_size(self):
        """How many bytes the elements take."""
        count = 0 if self.shape is None else int(np.prod(self.shape))
        return count * self.datatype.size

    def read(self, arr, mtype=None):
        """Reads the elements into an array."""
        datatype, shape, elements, heap, _ = self._attributes.read(self._name)
        dtype = arr.dtype if mtype is None else mtype.dtype
        inner = dtype.subdtype[1] if dtype.subdtype is not None else ()
        found = codec.decode_all(datatype, elements, heap, dtype, shape, self._holder.owner.group)
        arr[...] = found.reshape(arr.shape) if not inner else found

    def write(self, arr, mtype=None):
        """Writes an array."""
        elements, heap = codec.encode_all(self.datatype, np.asarray(arr), self._holder.owner.group)
        heap = None if heap is None else heap.tobytes()
        shape = None if self.shape is None else list(self.shape)
        self._attributes.write(self._name, self.datatype, shape, elements.tobytes(), heap)


def open(loc, name=None, index=-1, **kwds):
    """The attribute of a name or of a place."""
    if name is None:
        names = loc.native.attributes().names()
        name = names[index]
    return AttrID(loc, text(name))


def exists(loc, name, **kwds):
    """Whether an object has an attribute of a name."""
    return loc.native.attributes().has(text(name))


def create(loc, name, tid, space, **kwds):
    """Makes an attribute."""
    if exists(loc, name):
        raise ValueError("Unable to create attribute (attribute already exists)")
    shape = None if space.shape is None else list(space.shape)
    count = 0 if shape is None else int(np.prod(shape))
    heap = b"" if tid.datatype.has_varlen else None
    loc.native.attributes().write(text(name), tid.datatype, shape, bytes(count * tid.datatype.size), heap)
    return AttrID(loc, text(name))


def delete(loc, name=None, index=-1, **kwds):
    """Takes an attribute away."""
    loc.native.attributes().remove(text(name))


def rename(loc, name, new_name, **kwds):
    """Gives an attribute another name."""
    loc.native.attributes().rename(text(name), text(new_name))


def get_num_attrs(loc):
    """How many attributes an object has."""
    return len(loc.native.attributes().names())


def iterate(loc, func, index=0, **kwds):
    """Calls a function with the name of each attribute until it returns something."""
    for name in loc.native.attributes().names()[index:]:
        result = func(name.encode("utf-8", "surrogateescape"))
        if result is not None:
            return result
    return None
