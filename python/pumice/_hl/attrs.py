"""Attributes of groups, datasets and datatypes."""

import numpy as np

from ..low import h5a, h5r, h5t
from . import base, codec, dtypes
from .base import Empty, MutableMappingHDF5, array_for_new_object
from .datatype import Datatype


def _text(name):
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    if not isinstance(name, str):
        raise TypeError(f"A name must be str or bytes, not {type(name).__name__}")
    return name


class AttributeManager(MutableMappingHDF5):
    """The attributes of an object, by name."""

    def __init__(self, parent):
        self._id = parent.id

    @property
    def _attributes(self):
        return self._id.native.attributes()

    def __getitem__(self, name):
        name = _text(name)
        try:
            found = self._attributes.get(name)
        except KeyError:
            raise KeyError(f"Can't open attribute (can't locate attribute: '{name}')") from None
        if type(found) is not tuple:
            return found
        datatype, shape, elements, heap, _ = found
        dtype = dtypes.dtype_of(datatype)
        if shape is None:
            return Empty(dtype)
        array = codec.decode_all(datatype, elements, heap, dtype, shape, self._id.owner.group)
        return _told(array, dtype, datatype)

    def get_id(self, name):
        """The low-level handle of an attribute."""
        try:
            return h5a.open(self._id, _text(name))
        except KeyError:
            raise KeyError(f"Can't open attribute (can't locate attribute: '{_text(name)}')") from None

    def __setitem__(self, name, value):
        if type(value) is float or type(value) is int and -(2**63) <= value < 2**63:
            self._attributes.write_number(_text(name), value)
            return
        self.create(name, data=value)

    def __delitem__(self, name):
        name = _text(name)
        try:
            self._attributes.remove(name)
        except KeyError:
            raise KeyError(f"Can't delete attribute (can't locate attribute: '{name}')") from None
        except OSError as error:
            raise base.translated(error, KeyError, "Can't delete attribute") from None

    def create(self, name, data, shape=None, dtype=None):
        """Makes an attribute, or replaces it, of a shape and dtype of one's own choice."""
        name = _text(name)
        committed = None
        if isinstance(dtype, Datatype):
            committed, dtype = dtype.id, dtype.dtype
        elif isinstance(dtype, h5t.TypeID):
            committed, dtype = dtype, dtype.dtype
        if dtype is not None:
            dtype = np.dtype(dtype)
        if isinstance(data, Empty) or isinstance(shape, Empty):
            self._create_empty(name, data, dtype, committed)
            return
        array = array_for_new_object(data, specified_dtype=dtype)
        if shape is None:
            shape = array.shape
        elif isinstance(shape, (int, np.integer)):
            shape = (int(shape),)
        if dtype is None:
            dtype = h5t.string_dtype() if array.dtype.kind == "T" else array.dtype
            guessed = base.guess_dtype(data)
            dtype = guessed if guessed is not None else dtype
            dtype = _strings_of(data, array, dtype)
        if dtype.subdtype is not None:
            array, shape = _with_inner(array, shape, dtype)
        elif base.product(shape) != base.product(array.shape):
            raise ValueError("Shape of new attribute conflicts with shape of data")
        self._write(name, array, tuple(shape), dtype, committed)

    def _create_empty(self, name, data, dtype, committed):
        dtype = data.dtype if dtype is None else dtype
        datatype = self._stored(dtype, committed)
        self._put(name, datatype, None, b"", None, committed)

    def _stored(self, dtype, committed):
        if committed is not None:
            return committed.datatype
        return dtypes.datatype_of(dtype, dtypes.sizes_of(self._id.owner.group))

    def _write(self, name, array, shape, dtype, committed):
        datatype = self._stored(dtype, committed)
        inner = dtype.subdtype[1] if dtype.subdtype is not None else ()
        array = array.reshape(shape + tuple(inner))
        elements, heap = codec.encode_all(datatype, array, self._id.owner.group, dtype)
        heap = None if heap is None else heap.tobytes()
        self._put(name, datatype, [int(side) for side in shape], elements.tobytes(), heap, committed)

    def _put(self, name, datatype, shape, elements, heap, committed):
        native = committed.native if committed is not None and committed.committed() else None
        self._attributes.write(name, datatype, shape, elements, heap, native)

    def modify(self, name, value):
        """Another value for an attribute whose shape and type stay; makes one that is not there."""
        name = _text(name)
        if not self._attributes.has(name):
            self[name] = value
            return
        datatype, shape = self._attributes.describe(name)
        dtype = dtypes.dtype_of(datatype)
        if shape is None:
            raise OSError("Can't write attribute (it has no value: replace it)")
        array = array_for_new_object(value, specified_dtype=dtype)
        shape = tuple(shape)
        inner = dtype.subdtype[1] if dtype.subdtype is not None else ()
        if array.shape != shape + tuple(inner) and not (base.product(shape) == 1 and array.size == 1):
            raise TypeError("Shape of data is incompatible with existing attribute")
        array = array.reshape(shape + tuple(inner))
        elements, heap = codec.encode_all(datatype, array, self._id.owner.group, dtype)
        self._put(name, datatype, list(shape), elements.tobytes(), None if heap is None else heap.tobytes(), None)

    def rename(self, old_name, new_name):
        """Gives an attribute another name."""
        self._attributes.rename(_text(old_name), _text(new_name))

    def __len__(self):
        return len(self._attributes.names())

    def __iter__(self):
        return iter(self._attributes.names())

    def __reversed__(self):
        return reversed(self._attributes.names())

    def __contains__(self, name):
        return self._attributes.has(_text(name))

    def __repr__(self):
        if not self._id:
            return "<Attributes of closed HDF5 object>"
        return f"<Attributes of HDF5 object at {id(self._id)}>"


def _strings_of(data, array, dtype):
    """The dtype of lists of strings."""
    if dtype.kind == "O" and dtype.metadata is None and isinstance(data, (list, tuple)):
        item = base.find_item_type(data)
        if item is str:
            return h5t.string_dtype()
        if item is bytes:
            return h5t.string_dtype(encoding="ascii")
        if item is h5r.Reference:
            return h5t.ref_dtype
        if item is h5r.RegionReference:
            return h5t.regionref_dtype
    if dtype.kind == "O" and dtype.metadata is None and array.size:
        if all(isinstance(item, str) for item in array.reshape(-1)):
            return h5t.string_dtype()
    return dtype


def _with_inner(array, shape, dtype):
    inner = tuple(dtype.subdtype[1])
    if tuple(shape[-len(inner):]) == inner and array.shape[-len(inner):] == inner and array.shape == tuple(shape):
        return array, tuple(shape[: len(shape) - len(inner)])
    if array.shape[-len(inner):] != inner:
        raise ValueError(f"Array dtype shape {inner} is incompatible with data shape {array.shape}")
    if base.product(shape) * base.product(inner) != array.size:
        raise ValueError("Shape of new attribute conflicts with shape of data")
    return array, tuple(shape)


def _told(array, dtype, datatype):
    """What a program gets for an attribute: strings as str, scalars as scalars."""
    string = h5t.check_string_dtype(dtype)
    if string is not None and string.length is None:
        decoded = [_decoded(item, string.encoding) for item in array.reshape(-1)]
        if array.shape == ():
            return decoded[0]
        result = np.empty(len(decoded), dtype=object)
        result[:] = decoded
        return result.reshape(array.shape)
    if array.ndim == 0:
        return array[()]
    return array


def _decoded(item, encoding):
    return item.decode("utf-8", "surrogateescape")
