"""Datasets: arrays in a file."""

import posixpath
from warnings import warn

import numpy as np

from .. import _pumice
from ..low import h5, h5d, h5r, h5t
from . import base, codec, dtypes, selections
from .base import Empty, HLObject
from .defined import DefinedCells
from .facts import DatasetFacts
from .making import fill_option, make_new_dset
from .views import AbstractView, AsStrView, AstypeWrapper, ChunkIterator, FieldsView, RegionProxy, readtime_dtype
from .writing import _sequences_to_write, _strings_to_write, _structs_to_write

_LEGACY_GZIP_COMPRESSION_VALS = frozenset(range(10))
MPI = False

# Numbers of which the native module makes arrays.
_QUICK = frozenset(("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"))


class Dataset(DatasetFacts, DefinedCells, HLObject):
    """An array in a file: index it to read, assign to write."""

    def __init__(self, bind, *, readonly=False):
        if not isinstance(bind, h5d.DatasetID):
            raise ValueError(f"{bind} is not a DatasetID")
        super().__init__(bind)
        self._ds = bind.ds
        self._get = bind.ds.get
        self._readonly = readonly
        # The kind of its numbers, if whole arrays of them are made natively; False until somebody has looked.
        self._quick: str | bool | None = False

    def _quick_kind(self):
        dtype, datatype = self.dtype, self._file_type
        plain = dtype.kind in "iuf" and dtype.isnative and dtype.metadata is None and datatype.class_number in (0, 1)
        self._quick = dtype.str[1:] if plain and dtype.str[1:] in _QUICK else None
        return self._quick

    # -- other forms

    def astype(self, dtype):
        """The dataset as another dtype: index the result."""
        if np.dtype(dtype).kind == "T" and h5t.check_string_dtype(self.dtype) is None:
            raise TypeError("dset.astype('T') can only be used on datasets with an HDF5 string datatype")
        return AstypeWrapper(self, dtype)

    def asstr(self, encoding=None, errors="strict"):
        """The dataset with its strings as str: index the result."""
        string = h5t.check_string_dtype(self.dtype)
        if string is None:
            raise TypeError("dset.asstr() can only be used on datasets with an HDF5 string datatype")
        return AsStrView(self, encoding or string.encoding, errors)

    def fields(self, names, *, _prior_dtype=None):
        """Some members of a dataset of compounds: index the result."""
        return FieldsView(self, self.dtype if _prior_dtype is None else _prior_dtype, names)

    # -- reading

    @property
    def _fast_reader(self):
        return _Reader(self)

    def __getitem__(self, args, new_dtype=None):
        if new_dtype is None:
            kind = self._quick
            if kind is False:
                kind = self._quick_kind()
            if kind is not None:
                found = self._get(args, kind)
                if found is not None:
                    return found
        if not isinstance(args, tuple):
            args = (args,)
        names = tuple(one for one in args if isinstance(one, str))
        if names:
            return self._getitem_fields(args, names, new_dtype)
        dtype = self.dtype if new_dtype is None else new_dtype
        shape = self._ds.shape
        if shape is None:
            if args == () or len(args) == 1 and args[0] is Ellipsis:
                return Empty(self.dtype)
            raise ValueError("Empty datasets cannot be sliced")
        if len(shape) == 0:
            return self._getitem_scalar(args, dtype)
        selection = selections.select(tuple(shape), args, dataset=self)
        array = self._read(selection, selection.array_shape, dtype)
        return array[()] if array.ndim == 0 else array

    def _getitem_fields(self, args, names, new_dtype):
        rest = tuple(one for one in args if not isinstance(one, str))
        if new_dtype is not None and new_dtype.names is None:
            found = self.fields(list(names))[rest]
            found = found[names[0]] if len(names) == 1 else found
            return found.astype(new_dtype)
        view = self.fields(names if len(names) > 1 else names[0], _prior_dtype=new_dtype or self.dtype)
        return view[rest]

    def _getitem_scalar(self, args, dtype):
        if args == ():
            return self._read(selections.SimpleSelection(()), (), dtype)[()]
        if len(args) == 1 and args[0] is Ellipsis:
            return self._read(selections.SimpleSelection(()), (), dtype)
        if len(args) == 1 and isinstance(args[0], h5r.RegionReference):
            space = h5r.get_region(args[0], self.id)
            if space.get_select_npoints() == 0:
                return Empty(self.dtype)
            return self._read(selections.SimpleSelection(()), (), dtype)[()]
        raise ValueError("Illegal slicing argument for scalar dataspace")

    def _read(self, selection, shape, dtype):
        """Cells as an array of a shape and a dtype."""
        inner = ()
        if dtype.subdtype is not None:
            inner = tuple(dtype.subdtype[1])
        if selection.nselect == 0:
            return np.zeros(shape, dtype)
        datatype = self._file_type
        if dtypes.is_plain(dtype) and not datatype.has_varlen and not datatype.refers_to_objects:
            array = np.empty(tuple(shape) + inner, dtype.subdtype[0] if inner else dtype)
            if array.dtype.itemsize:
                self._into(selection.native, array, dtype)
            return array
        return self._read_objects(selection, shape, dtype)

    def _into(self, native, array, dtype, memory=None):
        try:
            self._ds.read(native, codec.memory_datatype(dtype, self._file_type), codec.as_bytes(array), memory)
        except TypeError as error:
            raise base.translated(error, TypeError, "Can't synchronously read data") from None

    def _read_objects(self, selection, shape, dtype):
        datatype = self._file_type
        string = datatype.class_number == 9 and datatype.tree[0] == "vlen-string"
        if string and dtype.kind in "OT":
            array = np.empty(shape, dtype)
            read = self._ds.read_static_texts(selection.native, array) if dtype.kind == "T" else (
                self._ds.read_texts(selection.native, array, "bytes")
            )
            if read:
                return array
        elements, heap = self._ds.read_heaped(selection.native)
        return codec.decode_all(datatype, elements, heap, dtype, shape, self.id.owner.group)

    def _read_text(self, args, encoding):
        """Strings of any length as an array of str; None if there are others, or if they are no text of the encoding."""
        datatype, shape = self._file_type, self._ds.shape
        if not shape or encoding not in ("utf-8", "ascii") or datatype.class_number != 9 or datatype.tree[0] != "vlen-string":
            return None
        selection = selections.select(tuple(shape), args, dataset=self)
        array = np.empty(selection.array_shape, object)
        if selection.nselect == 0 or not self._ds.read_texts(selection.native, array, encoding):
            return None
        return array if array.ndim else array[()]

    def read_direct(self, dest, source_sel=None, dest_sel=None):
        """Reads cells straight into cells of an array."""
        if self._is_empty:
            raise TypeError("Empty datasets have no numpy representation")
        shape = self.shape
        source = selections.select(shape, () if source_sel is None else source_sel, dataset=self) if shape else (
            selections.SimpleSelection(())
        )
        target = selections.select(dest.shape, () if dest_sel is None else dest_sel) if dest.shape else (
            selections.SimpleSelection(())
        )
        if not dest.flags.c_contiguous:
            raise TypeError("Array must be C-contiguous")
        if source.nselect != target.nselect or source.nselect == 0 and source.array_shape != target.array_shape:
            raise TypeError(f"Can't broadcast {source.array_shape} -> {target.array_shape}")
        if source.nselect == 0:
            return
        plain = dtypes.is_plain(dest.dtype) and dest.flags.c_contiguous and dest.flags.writeable
        if plain and not self._file_type.has_varlen and not self._file_type.refers_to_objects and dest.ndim:
            self._into(source.native, dest, dest.dtype, (target.native, list(dest.shape)))
            return
        found = self._read(source, source.array_shape, dest.dtype if dtypes.is_plain(dest.dtype) else self.dtype)
        if dest_sel is None:
            dest[...] = found.reshape(dest.shape)
        else:
            dest[dest_sel] = found

    def write_direct(self, source, source_sel=None, dest_sel=None):
        """Writes cells of an array straight to cells."""
        if self._is_empty:
            raise TypeError("Empty datasets cannot be written to")
        if not source.flags.c_contiguous:
            raise TypeError("Array must be C-contiguous")
        part = source if source_sel is None else source[source_sel]
        target = selections.select(self.shape, () if dest_sel is None else dest_sel, dataset=self) if self.shape else (
            selections.SimpleSelection(())
        )
        part = np.asarray(part)
        if part.size != target.nselect:
            part = target.fitted(part)
        self._write(target, part.reshape(target.array_shape))

    # -- writing

    def __setitem__(self, args, val):
        if self._readonly:
            raise ValueError("Cannot set item: the dataset is read-only")
        if not isinstance(args, tuple):
            args = (args,)
        names = tuple(one for one in args if isinstance(one, str))
        args = tuple(one for one in args if not isinstance(one, str))
        dtype = self.dtype
        if isinstance(val, np.ma.MaskedArray) and self.is_sparse and not names:
            self.sparse[args] = val
            return
        if self._is_empty:
            raise OSError("Can't synchronously write data (the dataset has no elements)")
        if names:
            self._set_fields(names, args, val)
            return
        array = self._array_to_write(val, dtype)
        if dtype.subdtype is not None:
            self._set_arrays(args, array, dtype)
            return
        shape = self.shape
        selection = selections.select(shape, args, dataset=self)
        if selection.nselect == 0:
            selection.expand_shape(array.shape)
            return
        self._write(selection, selection.fitted(array))

    def _array_to_write(self, val, dtype):
        """What is assigned, as an array."""
        vlen = h5t.check_vlen_dtype(dtype)
        string = h5t.check_string_dtype(dtype)
        if vlen is not None and vlen not in (str, bytes):
            return _sequences_to_write(val, np.dtype(vlen))
        if string is not None:
            return _strings_to_write(val, string)
        if dtype.kind == "O":
            if isinstance(val, np.ndarray):
                return val
            array = np.empty((), object)
            if isinstance(val, h5r.Reference) or val is None:
                array[()] = val
                return array
            return np.asarray(val, dtype=object)
        if dtype.subdtype is not None:
            return np.asarray(val, dtype=dtype.subdtype[0], order="C")
        if dtype.names is not None:
            return _structs_to_write(val, dtype)
        if isinstance(val, np.ndarray) and val.dtype.kind not in "OUT":
            return np.asarray(val, order="C")
        if not isinstance(val, np.ndarray) and hasattr(val, "dtype") and getattr(val.dtype, "kind", "O") in "iufbcV":
            return np.asarray(val, order="C")
        if dtype.kind == "V":
            return np.asarray(val, order="C")
        return np.asarray(val, dtype=dtype if dtype.metadata is None else dtype.newbyteorder("="), order="C")

    def _set_arrays(self, args, array, dtype):
        inner = tuple(dtype.subdtype[1])
        selection = selections.select(self.shape, args, dataset=self)
        if array.shape[array.ndim - len(inner):] != inner:
            raise TypeError(f"When writing to array types, last N dimensions must match (got {array.shape}, but should be {inner})")
        outer = selection.array_shape
        mine = array.shape[: array.ndim - len(inner)]
        if mine != outer:
            selection.expand_shape(mine)
            array = np.broadcast_to(array, tuple(outer) + inner)
        self._write(selection, array)

    def _set_fields(self, names, args, val):
        dtype = self.dtype
        if dtype.names is None:
            raise ValueError("Field names only allowed for compound types")
        for name in names:
            if name not in dtype.names:
                raise ValueError(f"No such field for indexing: {name}")
        part = np.dtype([(name, dtype.fields[name][0]) for name in names])
        selection = selections.select(self.shape, args, dataset=self)
        if len(names) == 1:
            field = part.fields[names[0]][0]
            if isinstance(val, np.ndarray) and val.dtype.names is not None and names[0] in val.dtype.names:
                val = val[names[0]]
            if not dtypes.is_plain(field):
                given = self._array_to_write_as(val, field)
            else:
                given = np.asarray(val, dtype=field if field.subdtype is None else field.subdtype[0])
            inner = () if field.subdtype is None else tuple(field.subdtype[1])
            array = np.zeros(given.shape[: given.ndim - len(inner)], part)
            array[names[0]] = given
        else:
            array = np.asarray(val)
            if array.dtype.names is None:
                array = np.asarray(val, dtype=part)
            else:
                array = _structs_to_write(array, part)
        if selection.nselect == 0:
            return
        self._write(selection, selection.fitted(array))

    def _array_to_write_as(self, val, dtype):
        string = h5t.check_string_dtype(dtype)
        if string is not None:
            return _strings_to_write(val, string)
        vlen = h5t.check_vlen_dtype(dtype)
        if vlen is not None:
            return _sequences_to_write(val, np.dtype(vlen))
        return np.asarray(val, dtype=object)

    def _write_all(self, array):
        self._write(selections.SimpleSelection(self.shape), array)

    def _write(self, selection, array):
        """Writes an array that has a value for each cell."""
        datatype = self._file_type
        plain = dtypes.is_plain(array.dtype) and array.dtype.kind != "U"
        try:
            if plain and not datatype.has_varlen and not datatype.refers_to_objects:
                self._write_plain(selection, array, datatype)
            else:
                self._write_objects(selection, array, datatype)
        except _pumice.ConversionError as error:
            raise base.translated(error, OSError, "Can't synchronously write data") from None

    def _write_plain(self, selection, array, datatype):
        dtype = self.dtype
        kind = array.dtype
        if dtype.subdtype is not None and kind.subdtype is None:
            kind = np.dtype((kind, dtype.subdtype[1]))
        if array.dtype.kind == "b" and dtype.kind in "iuf":
            array = array.astype(dtype if dtype.metadata is None else np.dtype(dtype.str))
            kind = array.dtype
        if array.dtype.kind in "iu" and dtype.kind == "b":
            array = array.astype(bool)
            kind = array.dtype
        memory = codec.memory_datatype(kind, datatype)
        array = np.ascontiguousarray(array)
        self._ds.write(selection.native, memory, codec.as_bytes(array))

    def _write_objects(self, selection, array, datatype):
        tree = datatype.tree
        group = self.id.owner.group
        if tree[0] == "vlen-string":
            self._write_strings(selection, np.ascontiguousarray(array))
            return
        if tree[0] == "compound" and array.dtype.names is not None and datatype.has_varlen:
            missing = {member[0] for member in tree[2]} - set(array.dtype.names)
            if missing:
                self._merge(selection, array, datatype)
                return
        elements, heap = codec.encode_all(datatype, array, group, self.dtype)
        self._ds.write_heaped(selection.native, elements, codec.NO_BYTES if heap is None else heap)

    def _write_strings(self, selection, array):
        if array.dtype.kind == "O":
            self._ds.write_texts(selection.native, array)
        elif array.dtype.kind != "T" or not self._ds.write_static_texts(selection.native, array):
            self._ds.write_strings(selection.native, array.reshape(-1).tolist())

    def _merge(self, selection, array, datatype):
        """Writes some members of compounds, the others of which have parts of any length."""
        elements, old = self._ds.read_heaped(selection.native)
        heap = codec.Heap(old)
        rows = elements.reshape(-1, datatype.size).copy()
        rows = codec.encode(datatype.tree, array.reshape(-1), heap, self.id.owner.group, self.dtype, onto=rows)
        self._ds.write_heaped(selection.native, np.ascontiguousarray(rows).reshape(-1), heap.bytes())

    # -- the rest

    def resize(self, size, axis=None):
        """Changes the size, of all axes or of one."""
        if self.chunks is None:
            raise TypeError("Only chunked datasets can be resized")
        if axis is not None:
            if not 0 <= axis < self.ndim:
                raise ValueError(f"Invalid axis ({axis}); must be an integer 0-{self.ndim - 1}")
            try:
                new = int(size)
            except TypeError:
                raise TypeError("Argument must be a single int if axis is specified") from None
            size = list(self.shape)
            size[axis] = new
        if isinstance(size, (int, np.integer)):
            size = (int(size),)
        size = [int(side) for side in size]
        if len(size) != self.ndim:
            raise TypeError(f"New shape must have {self.ndim} dimensions, not {len(size)}")
        self._ds.resize(size)

    def __len__(self):
        size = self.len()
        import sys

        if size > sys.maxsize:
            raise OverflowError("Value too big for Python's __len__; use Dataset.len() instead.")
        return size

    def len(self):
        """The size of the first axis, which may be larger than Python's len() allows."""
        shape = self.shape
        if shape is None:
            raise TypeError("object of type 'NoneType' has no len()")
        if len(shape) == 0:
            raise TypeError("Attempt to take len() of scalar dataset")
        return shape[0]

    def __iter__(self):
        shape = self.shape
        if shape is None or len(shape) == 0:
            raise TypeError("Can't iterate over a scalar dataset")
        for at in range(shape[0]):
            yield self[at]

    def iter_chunks(self, sel=None):
        """The chunks, or those of a part, as tuples of slices."""
        return ChunkIterator(self, sel)

    def __array__(self, dtype=None, copy=True):
        if copy is False:
            raise ValueError("Dataset.__array__ received copy=False, but memory allocation cannot be avoided on read")
        if self._is_empty:
            raise TypeError("Empty datasets have no numpy representation")
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        array = self._read(selections.SimpleSelection(self.shape), self.shape, dtype) if self.size else np.zeros(
            self.shape, dtype
        )
        return array

    def flush(self):
        """Writes what has changed."""
        self._ds.flush()

    def refresh(self):
        """Takes notice of what others have written."""
        self._ds.refresh()

    def prefetch(self, args=()):
        """Loads the chunks of cells ahead."""
        return self._ds.prefetch(selections.select(self.shape, args, dataset=self).native)

    def __repr__(self):
        if not self:
            return "<Closed HDF5 dataset>"
        if self.name is None:
            named = "(anonymous)"
        else:
            named = f'"{posixpath.basename(self.name) or "/"}"'
        if self._is_empty:
            return f'<HDF5 dataset {named}: Empty, type "{self.dtype.str}">'
        return f'<HDF5 dataset {named}: shape {self.shape}, type "{self.dtype.str}">'


class _Reader:
    """What reads a dataset by an index."""

    def __init__(self, dataset):
        self._dataset = dataset

    def read(self, args):
        """The cells that an index means."""
        return self._dataset[args]

__all__ = ["AbstractView", "AsStrView", "AstypeWrapper", "ChunkIterator", "Dataset", "FieldsView", "RegionProxy",
           "fill_option", "h5", "make_new_dset", "readtime_dtype", "warn"]  # fmt: skip
