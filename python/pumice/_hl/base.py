"""What files, groups, datasets and datatypes have in common."""

import os
import posixpath
import weakref
from collections.abc import ItemsView, KeysView, Mapping, MutableMapping, ValuesView
from typing import Any

import numpy as np

from .. import _pumice
from ..low import h5d, h5f, h5g, h5i, h5r, h5t
from .selections import product  # noqa: F401

_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def is_hdf5(fname):
    """Whether a file of that name is there and is one of HDF5."""
    fname = os.path.abspath(os.fspath(fname))
    if not os.path.isfile(fname):
        return False
    with open(fname, "rb") as file:
        place, end = 0, os.fstat(file.fileno()).st_size
        while place + len(_SIGNATURE) <= end:
            file.seek(place)
            if file.read(len(_SIGNATURE)) == _SIGNATURE:
                return True
            place = 512 if place == 0 else place * 2
    return False


def is_empty_dataspace(obj):
    """Whether an object has no elements."""
    return obj.get_space().get_simple_extent_type() == 2


class Empty:
    """A dataset or attribute that has a dtype and no elements."""

    shape = None
    size = None

    def __init__(self, dtype):
        self._dtype = np.dtype(dtype)

    @property
    def dtype(self):
        """The dtype."""
        return self._dtype

    def __eq__(self, other):
        return isinstance(other, Empty) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self._dtype)

    def __repr__(self):
        return f"Empty(dtype={self.dtype!r})"


def guess_dtype(data):
    """The dtype of a value where numpy's answer would be of no use; None where it is."""
    if isinstance(data, h5r.RegionReference):
        return h5t.regionref_dtype
    if isinstance(data, h5r.Reference):
        return h5t.ref_dtype
    if type(data) is bytes:
        return h5t.string_dtype(encoding="ascii")
    if type(data) is str:
        return h5t.string_dtype()
    return None


def is_float16_np_array(data):
    """Whether something is an array of half numbers."""
    return isinstance(data, np.ndarray) and data.dtype == np.float16


def find_item_type(data):
    """The one type of the items of nested lists; None if there is none or more than one."""
    if not isinstance(data, (list, tuple)):
        return type(data)
    if len(data) == 0:
        return None
    types = {find_item_type(item) for item in data}
    return types.pop() if len(types) == 1 else None


def array_for_new_object(data, specified_dtype=None):
    """An array from what a new dataset or attribute is to hold."""
    dtype = specified_dtype
    if dtype is not None and dtype.subdtype is not None:
        # The axes of the elements are the last of the array.
        return np.asarray(data, order="C", dtype=dtype.subdtype[0])
    if dtype is None:
        guessed = guess_dtype(data)
        if guessed is None and (isinstance(data, (list, tuple)) or _is_object_array(data)):
            item = find_item_type(data if isinstance(data, (list, tuple)) else data.reshape(-1).tolist())
            if item is bytes:
                guessed = h5t.string_dtype(encoding="ascii")
            elif item is str:
                guessed = h5t.string_dtype()
            elif item is h5r.Reference:
                guessed = h5t.ref_dtype
            elif item is h5r.RegionReference:
                guessed = h5t.regionref_dtype
        dtype = guessed
    elif dtype.kind == "S" and dtype.itemsize == 0:
        dtype = None
    vlen = h5t.check_vlen_dtype(dtype) if dtype is not None else None
    if vlen is not None and vlen not in (str, bytes):
        return array_of_sequences(data, dtype, vlen)
    as_dtype = dtype
    if dtype is not None and (dtype.kind == "O" or dtype.kind == "T"):
        as_dtype = np.dtype("O") if dtype.kind == "O" else dtype
    if isinstance(data, np.ndarray) and data.dtype.kind in "SUT" and as_dtype is not None and as_dtype.kind == "O":
        return np.asarray(data, order="C")
    array = np.asarray(data, order="C", dtype=as_dtype)
    if dtype is None:
        return array
    if array.dtype.kind == "O" and dtype.kind == "O" and h5t.check_dtype(vlen=array.dtype) is None:
        return array.view(dtype) if array.flags.c_contiguous else array.astype(dtype)
    return array


def _is_object_array(data):
    return isinstance(data, np.ndarray) and data.dtype.kind == "O" and data.dtype.metadata is None


def array_of_sequences(data, dtype, base):
    """An array of objects, each of which is a sequence."""
    if isinstance(data, np.ndarray) and data.dtype.kind == "O":
        return data
    base = np.dtype(base)
    if isinstance(data, np.ndarray) and data.dtype == base or not _nested(data):
        # One sequence.
        array = np.empty((), object)
        array[()] = np.asarray(data, dtype=base)
        return array.view(dtype) if array.ndim else array
    items = [np.asarray(item, dtype=None if base.hasobject else base) for item in data]
    found = np.empty(len(items), object)
    for at, item in enumerate(items):
        found[at] = item
    return found


def _nested(data):
    if isinstance(data, np.ndarray):
        return data.ndim > 1
    try:
        return any(hasattr(item, "__len__") and not isinstance(item, (str, bytes)) for item in data)
    except TypeError:
        return False


class HLObject:
    """An object of a file."""

    def __init__(self, oid):
        self._id = oid

    @property
    def id(self):
        """The low-level handle."""
        return self._id

    @property
    def file(self):
        """The file that it is in."""
        from .files import File

        fid = h5i.get_file_id(self.id)
        mine, other = fid.path, self.id.native.file_path
        if other is not None and mine != other:
            fid = h5f.FileID.of(self.id.native.file())
        return File(fid)

    @property
    def name(self):
        """The path in the file; None if nothing leads there."""
        name = self.id.name
        return None if name is None else name.decode("utf-8", "surrogateescape")

    @property
    def parent(self):
        """The group that it is in."""
        if self.name is None:
            raise ValueError("Parent of an anonymous object is undefined")
        return self.file[posixpath.dirname(self.name)]

    @property
    def ref(self):
        """A reference to it."""
        return h5r.Reference(self.id.owner.group.reference(self.name))

    @property
    def regionref(self):
        """References to its cells: index it."""
        from .dataset import RegionProxy

        return RegionProxy(self)

    @property
    def attrs(self):
        """Its attributes."""
        from .attrs import AttributeManager

        return AttributeManager(self)

    def __hash__(self):
        return hash(self.id)

    def __eq__(self, other):
        if hasattr(other, "id"):
            return self.id == other.id
        return NotImplemented

    def __bool__(self):
        return bool(self.id)

    def __reduce__(self):
        """By path: opened again, for reading and once in each process. What can be changed stays where it is."""
        fid = self.id.owner if self.id is not None else None
        if not self.id or fid is None or fid.path is None or fid.get_intent() & h5f.ACC_RDWR:
            raise TypeError("h5py objects cannot be pickled (only those of files that are opened for reading can)")
        kept = {key: value for key, value in fid.options.items() if key in ("locking", "swmr")}
        return _reopened, (os.path.abspath(fid.path), self.name, kept)


class _Closed:
    """How the view of something closed looks."""


def _has(mapping, key):
    """Whether there is a name, wherever it leads."""
    has = getattr(mapping, "_has_link", None)
    return key in mapping if has is None else has(key)


class KeysViewHDF5(KeysView):
    """The names of members or attributes."""

    _mapping: Any

    def __str__(self):
        return f"<{type(self).__name__} {list(self)}>"

    def __contains__(self, key):
        return _has(self._mapping, key)

    def __reversed__(self):
        yield from reversed(self._mapping)

    __repr__ = __str__


class ValuesViewHDF5(ValuesView):
    """The members or values."""

    _mapping: Any

    def __contains__(self, value):
        return any(value == self._mapping.get(key) for key in self._mapping)

    def __iter__(self):
        for key in self._mapping:
            yield self._mapping.get(key)

    def __reversed__(self):
        for key in reversed(self._mapping):
            yield self._mapping.get(key)


class ItemsViewHDF5(ItemsView):
    """The names with what they lead to."""

    _mapping: Any

    def __contains__(self, item):
        key, value = item
        return _has(self._mapping, key) and self._mapping.get(key) == value

    def __iter__(self):
        for key in self._mapping:
            yield (key, self._mapping.get(key))

    def __reversed__(self):
        for key in reversed(self._mapping):
            yield (key, self._mapping.get(key))


class MappingHDF5(Mapping):
    """The mapping protocol with h5py's views."""

    def keys(self):
        """The names."""
        return KeysViewHDF5(self)

    def values(self):
        """What the names lead to."""
        return ValuesViewHDF5(self)

    def items(self):
        """Both."""
        return ItemsViewHDF5(self)

    def _ipython_key_completions_(self):
        return sorted(self.keys())


class MutableMappingHDF5(MappingHDF5, MutableMapping):
    """The mapping protocol with changes."""


# The files that were opened for objects from other processes, by process and path.
_files: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


def _reopened(path, name, options):
    """An object from another process."""
    from . import workers
    from .files import File

    file = workers.again(path, options)
    if file is not None:
        return file if name == "/" else file[name]
    key = (os.getpid(), path, *sorted(options.items()))
    fid = _files.get(key)
    if fid is None or not fid:
        fid = _files[key] = File(path, "r", **options).id
    file = File(fid)
    return file if name == "/" else file[name]


def translated(error, kind, what):
    """An error of the native module as another class of exception, as h5py raises it in that place."""
    return kind(f"{what} ({error.args[-1] if error.args else error})")


__all__ = ["Empty", "HLObject", "is_hdf5", "_pumice", "h5d", "h5g"]
