"""Datasets: arrays in a file."""

import posixpath
from functools import cached_property  # noqa: F401
from warnings import warn

import numpy as np

from .. import _pumice
from ..low import h5, h5d, h5i, h5r, h5s, h5t
from . import base, codec, dtypes, filters, selections
from .base import Empty, HLObject, array_for_new_object, product
from .datatype import Datatype

_LEGACY_GZIP_COMPRESSION_VALS = frozenset(range(10))
MPI = False


# -- making --------------------------------------------------------------------------------------------


def fill_option(options, fillvalue, dtype, datatype, group):
    """Puts a fill value into the options of a new dataset."""
    string = h5t.check_string_dtype(dtype)
    if string is not None and string.length is None:
        value = np.array(fillvalue, dtype=object)
    elif dtype.subdtype is not None:
        value = np.asarray(fillvalue, dtype=dtype.subdtype[0])
        value = np.broadcast_to(value, dtype.subdtype[1])
    elif string is not None and isinstance(fillvalue, str):
        value = np.array(fillvalue.encode("utf-8"), dtype=dtype)
    else:
        value = np.asarray(fillvalue, dtype=dtype)
    if dtype.names is not None and not isinstance(fillvalue, (np.void, np.ndarray, tuple)):
        raise ValueError("The fill value of a compound is a tuple or a structured value")
    if dtype.subdtype is None and value.ndim:
        raise ValueError("A fill value is one element")
    elements, heap = codec.encode_all(datatype, value, group, dtype)
    if heap is None:
        options["fill"] = (datatype, elements.tobytes())
    else:
        options["fill_heaped"] = (elements.tobytes(), heap.tobytes())


def _given_type(dtype, data):
    """The dtype that was asked for, and the committed datatype if it was one."""
    if isinstance(dtype, Datatype):
        return dtype.dtype, dtype.id
    if isinstance(dtype, h5t.TypeID):
        return dtype.dtype, dtype
    return (None if dtype is None else np.dtype(dtype)), None


def _shape_of(shape, data, array):
    if shape is None:
        if data is None:
            raise TypeError("One of data, shape or dtype must be specified")
        return array.shape
    shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if data is not None and product(shape) != product(array.shape):
        raise ValueError("Shape tuple is incompatible with data")
    return shape


def make_new_dset(parent, shape=None, dtype=None, data=None, name=None, chunks=None, compression=None, shuffle=None,
                  fletcher32=None, maxshape=None, compression_opts=None, fillvalue=None, scaleoffset=None,
                  track_times=False, external=None, track_order=None, dcpl=None, dapl=None, efile_prefix=None,
                  virtual_prefix=None, allow_unknown_filter=False, rdcc_nslots=None, rdcc_nbytes=None, rdcc_w0=None, *,
                  fill_time=None, sparse=False, density=None, location_compression=None):  # fmt: skip
    """Makes a dataset and writes what it is to hold."""
    group = parent.id.group
    dtype, tid = _given_type(dtype, data)
    if isinstance(data, (tuple, list)) and dtype is not None and dtype.kind == "T":
        data = np.array(data, dtype=dtype)
    if shape is None and data is None:
        if dtype is None:
            raise TypeError("One of data, shape or dtype must be specified")
        data = Empty(dtype)
    if isinstance(shape, Empty) or isinstance(data, Empty):
        return _make_empty(parent, name, shape, data, dtype, tid, track_order,
                           (chunks, compression, maxshape, shuffle, fletcher32, scaleoffset))  # fmt: skip
    array = None
    if data is not None:
        array = array_for_new_object(data, specified_dtype=dtype)
    inner = dtype.subdtype[1] if dtype is not None and dtype.subdtype is not None else ()
    if inner and array is not None:
        outer = array.shape[: array.ndim - len(inner)]
        shape = tuple(outer) if shape is None else _shape_of(shape, None, None)
        if product(shape) * product(inner) != array.size:
            raise ValueError("Shape tuple is incompatible with data")
    else:
        shape = _shape_of(shape, data, array)
    if dtype is None:
        if array is None:
            dtype = np.dtype("=f4")
        else:
            dtype = _dtype_for(data, array)
    if not isinstance(track_times, (bool, np.bool_)) and track_times is not None:
        raise TypeError("track_times must be either True or False")
    if any(side < 0 for side in shape):
        raise ValueError("Shape dimensions must be non-negative")
    if isinstance(maxshape, (int, np.integer)):
        maxshape = (int(maxshape),)
    if maxshape is True:
        maxshape = (None,) * len(shape)
    if maxshape is not None:
        maxshape = tuple(None if side is None or side == h5s.UNLIMITED else int(side) for side in maxshape)
        if len(maxshape) != len(shape):
            raise ValueError("\"maxshape\" must have same rank as dataset shape")
        if any(most is not None and most < side for most, side in zip(maxshape, shape)):
            raise ValueError("\"maxshape\" must be at least as large as the shape")
    if isinstance(chunks, (int, np.integer)) and not isinstance(chunks, bool):
        chunks = (int(chunks),)
    if isinstance(chunks, list):
        chunks = tuple(chunks)
    if isinstance(chunks, tuple) and any(isinstance(side, (float, np.floating)) for side in chunks):
        chunks = tuple(int(side) for side in chunks)
    options = {} if dcpl is None else dict(dcpl.options)
    options.update(shape=[int(side) for side in shape], track_times=bool(track_times), track_order=bool(track_order))
    if maxshape is not None:
        options["max_shape"] = list(maxshape)
    if fill_time is not None:
        if fill_time not in ("alloc", "never", "ifset"):
            raise ValueError("fill_time must be one of: 'alloc', 'never', 'ifset'")
        options["fill_time"] = fill_time
    if dcpl is None or any(one is not None for one in (chunks, compression, shuffle, fletcher32, scaleoffset)):
        _storage(options, shape, dtype, chunks, compression, compression_opts, shuffle, fletcher32, maxshape,
                 scaleoffset, external, allow_unknown_filter, sparse)  # fmt: skip
    if sparse:
        options["sparse"] = True
        if density is not None:
            options["density"] = float(density)
    if external is not None:
        options["external"] = _external(external, efile_prefix, parent)
    datatype = tid.datatype if tid is not None else dtypes.datatype_of(dtype, dtypes.sizes_of(group))
    if tid is not None and tid.committed():
        options["committed"] = tid.native
    if fillvalue is not None:
        fill_option(options, fillvalue, dtype, datatype, group)
    access = _dataset_access(rdcc_nslots, rdcc_nbytes, rdcc_w0, efile_prefix, virtual_prefix)
    dataset = Dataset(_created(parent, name, datatype, options))
    dataset.id.access = access
    if array is not None:
        _write_new(dataset, array, shape, tuple(inner))
    return dataset


def _write_new(dataset, array, shape, inner):
    if dataset.size == 0:
        return
    try:
        dataset._write_all(array.reshape(shape + inner))
    except BaseException:
        path = dataset.name
        if path is not None:
            dataset.id.owner.group.unlink(path)
        raise


def _dataset_access(nslots, nbytes, w0, efile_prefix, virtual_prefix):
    access = {}
    if nslots is not None or nbytes is not None or w0 is not None:
        access["chunk_cache"] = (nslots or 8191, nbytes or 8 * 1024 * 1024, 0.75 if w0 is None else w0)
    for key, value in (("efile_prefix", efile_prefix), ("virtual_prefix", virtual_prefix)):
        if value is not None:
            access[key] = str(value).encode("utf-8") if not isinstance(value, bytes) else value
    return access


def _dtype_for(data, array):
    if isinstance(data, (h5r.Reference, str, bytes)):
        guessed = base.guess_dtype(data)
        if guessed is not None:
            return guessed
    listed = isinstance(data, (list, tuple))
    if listed and array.dtype.kind in "OSU" or array.dtype.kind == "O" and array.dtype.metadata is None:
        item = base.find_item_type(data if listed else array.reshape(-1).tolist())
        if item is str:
            return h5t.string_dtype()
        if item is bytes:
            return h5t.string_dtype(encoding="ascii")
        if item is h5r.Reference:
            return h5t.ref_dtype
        if item is h5r.RegionReference:
            return h5t.regionref_dtype
    if array.dtype.kind == "T":
        return h5t.string_dtype()
    return array.dtype


def _storage(options, shape, dtype, chunks, compression, compression_opts, shuffle, fletcher32, maxshape, scaleoffset,
             external, allow_unknown_filter, sparse):  # fmt: skip
    if sparse:
        given, chunks_given = {}, chunks if isinstance(chunks, tuple) else None
        if compression is not None or shuffle or fletcher32:
            ones = chunks_given or tuple(max(1, side) for side in shape)
            filters.fill(given, shape, dtype, ones, compression, compression_opts, shuffle, fletcher32, maxshape, None,
                         None, allow_unknown_filter)  # fmt: skip
            options["filters"] = given.get("filters", [])
        if chunks_given:
            options["chunk"] = [int(side) for side in chunks_given]
        return
    filters.fill(options, shape, dtype, chunks, compression, compression_opts, shuffle, fletcher32, maxshape,
                 scaleoffset, external, allow_unknown_filter)  # fmt: skip


def _external(external, prefix, parent):
    import os

    if isinstance(external, (str, bytes, os.PathLike)):
        external = [(external, 0, h5s.UNLIMITED)]
    found = []
    try:
        external = list(external)
        if any(not isinstance(entry, (tuple, list)) for entry in external):
            raise TypeError
        entries = [tuple(entry) for entry in external]
    except TypeError:
        raise TypeError(f"external must be a list of (name, offset, size), not {external!r}") from None
    for entry in entries:
        if len(entry) != 3:
            raise ValueError("External entries must be (name, offset, size)")
        name = os.fsdecode(os.fspath(entry[0]))
        offset, size = entry[1], entry[2]
        if not isinstance(offset, (int, np.integer)) or not (size is None or isinstance(size, (int, np.integer))):
            raise TypeError("Offset and size of external entries must be integers")
        found.append((name, offset, None if size in (h5s.UNLIMITED, None) else int(size)))
    return found


def _make_empty(parent, name, shape, data, dtype, tid, track_order, others):
    if any(one for one in others):
        raise TypeError("Empty datasets don't support chunk/filter options")
    if dtype is None:
        dtype = data.dtype if isinstance(data, Empty) else shape.dtype
    datatype = tid.datatype if tid is not None else dtypes.datatype_of(dtype, dtypes.sizes_of(parent.id.group))
    return Dataset(_created(parent, name, datatype, {"null": True, "track_order": bool(track_order)}))


def _created(parent, name, datatype, options):
    from ..low.h5g import unnamed

    def make(path):
        return parent.id.group.create_dataset(path, datatype, options)

    if name is None:
        native = unnamed(parent.id, make)
    else:
        if isinstance(name, bytes):
            name = name.decode("utf-8", "surrogateescape")
        native = make(name)
    return h5i.wrap(native, parent.id)


# -- views ---------------------------------------------------------------------------------------------


class AbstractView:
    """Something that reads like a dataset, in another form."""

    def __init__(self, dset):
        self._dset = dset

    def __len__(self):
        return len(self._dset)

    @property
    def ndim(self):
        """How many axes there are."""
        return self._dset.ndim

    @property
    def shape(self):
        """The size along each axis."""
        return self._dset.shape

    @property
    def size(self):
        """How many elements there are."""
        return self._dset.size

    def __array__(self, dtype=None, copy=True):
        if copy is False:
            raise ValueError(f"{type(self).__name__}.__array__ received copy=False, but memory allocation cannot be avoided")
        array = self[()]
        array = np.asarray(array)
        return array if dtype is None else array.astype(dtype)


class AstypeWrapper(AbstractView):
    """A dataset that is read as another dtype."""

    def __init__(self, dset, dtype):
        super().__init__(dset)
        self._dtype = np.dtype(dtype)

    @property
    def dtype(self):
        """The dtype."""
        return self._dtype

    def __getitem__(self, args):
        return self._dset.__getitem__(args, new_dtype=self._dtype)


class AsStrView(AbstractView):
    """A dataset of strings that is read as str."""

    def __init__(self, dset, encoding, errors="strict"):
        super().__init__(dset)
        self.encoding = encoding
        self.errors = errors

    @property
    def dtype(self):
        """The dtype."""
        return np.dtype(object)

    def __getitem__(self, args):
        found = self._dset[args]
        if isinstance(found, (bytes, np.bytes_)):
            return bytes(found).decode(self.encoding, self.errors)
        if np.isscalar(found):
            return found.decode(self.encoding, self.errors)
        decoded = [item.decode(self.encoding, self.errors) for item in found.reshape(-1)]
        result = np.empty(len(decoded), dtype=object)
        result[:] = decoded
        return result.reshape(found.shape)


class FieldsView(AbstractView):
    """Some members of a dataset of compounds."""

    def __init__(self, dset, prior_dtype, names):
        super().__init__(dset)
        self.extract_field = None
        if isinstance(names, str):
            self.extract_field = names
            names = [names]
        self.read_dtype = readtime_dtype(prior_dtype, names)

    @property
    def dtype(self):
        """The dtype."""
        field = self.extract_field
        return self.read_dtype if field is None else self.read_dtype.fields[field][0]

    def __getitem__(self, args):
        found = self._dset.__getitem__(args, new_dtype=self.read_dtype)
        return found if self.extract_field is None else found[self.extract_field]


def readtime_dtype(basetype, names):
    """The part of a structured dtype that has some of its fields."""
    if len(names) == 0:
        return basetype
    if basetype.names is None:
        raise ValueError("Field names only allowed for compound types")
    for name in names:
        if name not in basetype.names:
            raise ValueError(f"Field {name} does not appear in this type.")
    return np.dtype([(name, basetype.fields[name][0]) for name in names])


class ChunkIterator:
    """The chunks of a dataset, or of a part of it, as tuples of slices."""

    def __init__(self, dset, source_sel=None):
        self._shape = dset.shape
        rank = len(dset.shape)
        if not dset.chunks:
            raise TypeError("Chunked dataset required")
        self._layout = dset.chunks
        if source_sel is None:
            self._sel = tuple(slice(0, side, 1) for side in self._shape)
        else:
            items = source_sel if isinstance(source_sel, tuple) else (source_sel,)
            self._sel = tuple(item if isinstance(item, slice) else slice(item, item + 1) for item in items)
            if len(self._sel) != rank:
                raise ValueError("Invalid selection - selection region must have same rank as dataset")
        self._bounds = []
        for item, side in zip(self._sel, self._shape):
            start, stop, step = item.indices(side)
            if step != 1:
                raise ValueError("Invalid selection - step must be 1")
            self._bounds.append((start, min(stop, side)))
        self._at = [start // chunk for (start, _), chunk in zip(self._bounds, self._layout)]
        self._done = any(start >= stop for start, stop in self._bounds)

    def __iter__(self):
        return self

    def __next__(self):
        if self._done:
            raise StopIteration()
        slices = []
        for at, chunk, (start, stop) in zip(self._at, self._layout, self._bounds):
            slices.append(slice(max(at * chunk, start), min((at + 1) * chunk, stop), 1))
        for axis in reversed(range(len(self._at))):
            self._at[axis] += 1
            if self._at[axis] * self._layout[axis] < self._bounds[axis][1]:
                return tuple(slices)
            self._at[axis] = self._bounds[axis][0] // self._layout[axis]
        self._done = True
        return tuple(slices)


class RegionProxy:
    """References to cells: index it."""

    def __init__(self, obj):
        self.obj = obj
        self.id = obj.id

    def __getitem__(self, args):
        if not isinstance(self.id, h5d.DatasetID):
            raise TypeError("Region references can only be made to datasets")
        selection = selections.select(self.id.shape, args, dataset=None)
        return h5r.RegionReference(self.id.owner.group.region(self.obj.name, selection.native))

    def shape(self, ref):
        """The shape of the dataset of a reference."""
        if not ref:
            return None
        return h5r.get_region(ref, self.id).shape

    def selection(self, ref):
        """The shape of the cells of a reference."""
        if not ref:
            return None
        return selections.guess_shape(h5r.get_region(ref, self.id))


# -- the dataset ---------------------------------------------------------------------------------------


class Dataset(HLObject):
    """An array in a file: index it to read, assign to write."""

    def __init__(self, bind, *, readonly=False):
        if not isinstance(bind, h5d.DatasetID):
            raise ValueError(f"{bind} is not a DatasetID")
        super().__init__(bind)
        self._ds = bind.ds
        self._readonly = readonly
        self._datatype = self._dtype = None

    # -- facts

    @property
    def _file_type(self):
        if self._datatype is None:
            self._datatype = self._ds.datatype
        return self._datatype

    @property
    def dtype(self):
        """The dtype that elements are read as."""
        if self._dtype is None:
            self._dtype = dtypes.dtype_of(self._file_type)
        return self._dtype

    @property
    def shape(self):
        """The size along each axis; None for a dataset without elements. Assigning resizes."""
        shape = self._ds.shape
        return None if shape is None else tuple(shape)

    @shape.setter
    def shape(self, shape):
        self.resize(shape)

    @property
    def ndim(self):
        """How many axes there are."""
        return self.id.rank

    @property
    def size(self):
        """How many elements there are; None for a dataset without."""
        shape = self._ds.shape
        return None if shape is None else product(shape)

    @property
    def nbytes(self):
        """How many bytes the elements take in memory."""
        if self._is_empty:
            return 0
        return self.size * self.dtype.itemsize

    @property
    def maxshape(self):
        """How large it can become along each axis; None for any size."""
        return None if self._is_empty else tuple(self._ds.max_shape)

    @property
    def _is_empty(self):
        return self._ds.shape is None

    @property
    def chunks(self):
        """The shape of chunks; None if it has none."""
        chunk = self._ds.chunk
        return None if chunk is None else tuple(chunk)

    @property
    def _filters(self):
        return filters.get_filters(self.id.get_create_plist())

    @property
    def filter_ids(self):
        """The numbers of its filters."""
        return tuple(number for number, _, _, _ in self._ds.filters)

    @property
    def filter_names(self):
        """The names of its filters."""
        plist = self.id.get_create_plist()
        return tuple(plist.get_filter(at)[3].decode() for at in range(plist.get_nfilters()))

    @property
    def compression(self):
        """The name of its compression; None if it has none."""
        for name in ("gzip", "lzf", "szip"):
            if name in self._filters:
                return name
        return None

    @property
    def compression_opts(self):
        """The options of its compression."""
        return self._filters.get(self.compression)

    @property
    def shuffle(self):
        """Whether bytes of equal weight are stored together."""
        return "shuffle" in self._filters

    @property
    def fletcher32(self):
        """Whether chunks have a checksum."""
        return "fletcher32" in self._filters

    @property
    def scaleoffset(self):
        """The parameter of the scale-offset filter; None if it has none."""
        found = self._filters.get("scaleoffset")
        return None if found is None else found[1]

    @property
    def external(self):
        """The files that hold its elements; None if its own does."""
        if self._ds.layout != "external":
            return None
        return [(name, offset, size) for name, offset, size in self._ds.external()]

    @property
    def fillvalue(self):
        """What cells hold that nobody has written."""
        dtype = self.dtype
        found = self._ds.fill()
        if found is None:
            if dtype.subdtype is not None:
                return np.zeros(dtype.subdtype[1], dtype.subdtype[0])
            string = h5t.check_string_dtype(dtype)
            if string is not None and string.length is None:
                return b""
            return np.zeros((), dtype)[()]
        elements, heap = found
        return codec.decode_all(self._file_type, elements, heap, dtype, (), self.id.owner.group)[()]

    @property
    def is_virtual(self):
        """Whether its cells are those of other datasets."""
        return self._ds.layout == "virtual"

    def virtual_sources(self):
        """The parts of a virtual dataset."""
        from .vds import VDSmap

        if not self.is_virtual:
            raise RuntimeError("Not a virtual dataset")
        plist = self.id.get_create_plist()
        return [
            VDSmap(plist.get_virtual_vspace(at), plist.get_virtual_filename(at), plist.get_virtual_dsetname(at),
                   plist.get_virtual_srcspace(at))
            for at in range(plist.get_virtual_count())
        ]  # fmt: skip

    @property
    def dims(self):
        """Its axes: labels and scales."""
        from .dims import DimensionManager

        return DimensionManager(self)

    @property
    def is_scale(self):
        """Whether it is a dimension scale."""
        return self._ds.is_scale()

    def make_scale(self, name=""):
        """Makes it a dimension scale."""
        self._ds.make_scale(name.decode() if isinstance(name, bytes) else name)

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
                return self._read(selections.Selection((), native=_pumice.Selection.none()), (0,), dtype)
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
            found = self._ds.read_strings(selection.native, dtype.kind == "T")
            if dtype.kind == "T":
                return np.array(found, dtype=dtype).reshape(shape)
            return codec.objects(found, len(found), dtype).reshape(shape)
        elements, heap = self._ds.read_heaped(selection.native)
        return codec.decode_all(datatype, elements, heap, dtype, shape, self.id.owner.group)

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
        except ValueError as error:
            if "opened for reading" in str(error):
                raise OSError(f"Can't synchronously write data ({error})") from None
            raise
        except TypeError as error:
            if "no conversion from" in str(error):
                raise base.translated(error, OSError, "Can't synchronously write data") from None
            raise

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
            self._ds.write_strings(selection.native, array.reshape(-1).tolist())
            return
        if tree[0] == "compound" and array.dtype.names is not None and datatype.has_varlen:
            missing = {member[0] for member in tree[2]} - set(array.dtype.names)
            if missing:
                self._merge(selection, array, datatype)
                return
        elements, heap = codec.encode_all(datatype, array, group, self.dtype)
        self._ds.write_heaped(selection.native, elements, codec.NO_BYTES if heap is None else heap)

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

    @property
    def sparse(self):
        """The defined cells of a sparse dataset."""
        from .sparse import SparseView

        return SparseView(self)

    def to_csr(self):
        """All defined cells as scipy.sparse.csr_array."""
        return self.sparse("csr")[...]

    def to_csc(self):
        """All defined cells as scipy.sparse.csc_array."""
        return self.sparse("csc")[...]

    def to_coo(self):
        """All defined cells as scipy.sparse.coo_array."""
        return self.sparse("coo")[...]

    def write_cells(self, coordinates, values, duplicates="last"):
        """Defines cells by their coordinates (a row for each axis); others stay as they are.

        Cells that are named more than once, or are defined already, keep the ``last`` value, the ``first``, the
        ``sum``, or are an ``error``.
        """
        self.sparse.define(coordinates, values, duplicates)

    def append(self, value, axis=0):
        """Lets an axis grow and writes a batch there: an array, a masked one, a sparse one; returns its range.

        Several threads may append to one dataset.
        """
        from .sparse import append

        return append(self, value, axis)

    def defined(self, args=()):
        """Which cells are defined, as an array of truth values."""
        return self.sparse.defined(args)

    def is_defined(self, *point):
        """Whether a cell is defined."""
        return self._ds.count_defined(selections.select(self.shape, tuple(point), dataset=self).native) > 0

    def erase(self, args=()):
        """Makes cells undefined, which is not the same as zero."""
        self._ds.erase(selections.select(self.shape, args, dataset=self).native)

    @property
    def nnz(self):
        """How many cells are defined."""
        return self._ds.count_defined(_pumice.Selection.all())

    @property
    def density(self):
        """The share of cells that are defined."""
        return self.nnz / self.size if self.size else 0.0

    @property
    def is_sparse(self):
        """Whether only defined cells take space."""
        return self._ds.layout == "sparse"


class _Reader:
    """What reads a dataset by an index."""

    def __init__(self, dataset):
        self._dataset = dataset

    def read(self, args):
        """The cells that an index means."""
        return self._dataset[args]


def _sequences_to_write(val, vlen):
    """Sequences that are assigned, as an array of objects."""
    if isinstance(val, np.ndarray) and val.dtype.kind == "O":
        if vlen.kind == "O" and val.ndim and all(isinstance(item, (str, bytes)) for item in val.reshape(-1)):
            # One sequence of strings, or an array of such.
            array = np.empty(val.shape[:-1], object)
            for at in np.ndindex(array.shape):
                array[at] = val[at]
            return array
        return val
    if not isinstance(val, np.ndarray):
        try:
            given = np.asarray(val)
        except ValueError:
            given = None
        if given is None or given.dtype.kind == "O":
            items = list(val)
            array = np.empty(len(items), object)
            for at, item in enumerate(items):
                array[at] = np.asarray(item, dtype=vlen if dtypes.is_plain(vlen) else None)
            return array
        val = given
    if val.ndim == 0:
        raise ValueError("A sequence is needed, not one value")
    val = np.asarray(val, dtype=vlen if dtypes.is_plain(vlen) else object)
    if val.ndim == 1:
        array = np.empty((), object)
        array[()] = val
        return array
    array = np.empty(val.shape[:-1], object)
    for at in np.ndindex(array.shape):
        array[at] = val[at]
    return array


def _strings_to_write(val, string):
    if isinstance(val, np.ndarray) and val.dtype.kind == "U":
        raise TypeError(f"No conversion path for dtype: {val.dtype!r}")
    if isinstance(val, np.ndarray) and val.dtype.kind in "STO":
        array = val
    elif isinstance(val, (str, bytes)):
        array = np.empty((), object)
        array[()] = val
    else:
        array = np.asarray(val, dtype=object)
    if string.length is not None and array.dtype.kind in "UTO":
        encoded = [one.encode(string.encoding) if isinstance(one, str) else one for one in array.reshape(-1)]
        array = np.array(encoded, dtype=f"S{string.length}").reshape(array.shape)
    if string.length is None and string.encoding == "ascii":
        for one in array.reshape(-1) if array.dtype.kind in "OT" else ():
            if isinstance(one, str):
                one.encode("ascii")
    if string.length is None and array.dtype.kind not in "SUTO":
        raise TypeError(f"Can't write {array.dtype} to strings")
    return array


def _structs_to_write(val, dtype):
    """Structured values that are assigned; fields in any order, or fewer."""
    if isinstance(val, (np.ndarray, np.void)) and val.dtype.names is not None:
        array = np.asarray(val, order="C")
        if array.dtype.names == dtype.names or set(array.dtype.names) <= set(dtype.names):
            return array
        return array
    if isinstance(val, np.ndarray) and val.dtype.kind == "O":
        return val.astype(dtype)
    return np.asarray(val, dtype=dtype, order="C")


__all__ = ["Dataset", "h5", "make_new_dset", "warn"]
