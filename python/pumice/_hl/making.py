"""New datasets: what was asked for, as options of the native module."""

import os
from typing import Any
from warnings import warn

import numpy as np

from ..h5py_warnings import H5pyDeprecationWarning
from ..low import h5i, h5r, h5s, h5t
from . import base, codec, dtypes, filters
from .base import Empty, array_for_new_object, product
from .datatype import Datatype


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
            warn("create_dataset() without dtype or data makes 32-bit floats; name the dtype",
                 H5pyDeprecationWarning, stacklevel=3)  # fmt: skip
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
    if location_compression is not None:
        if not sparse:
            raise TypeError("location_compression is for sparse datasets")
        options["location_filters"] = filters.of_locations(location_compression)
    if sparse:
        options["sparse"] = True
        if density is not None:
            options["density"] = float(density)
    if external is not None:
        options["external"] = _external(external)
    datatype = tid.datatype if tid is not None else dtypes.datatype_of(dtype, dtypes.sizes_of(group))
    if tid is not None and tid.committed():
        options["committed"] = tid.native
    if fillvalue is not None:
        fill_option(options, fillvalue, dtype, datatype, group)
    access = access_of(parent, rdcc_nslots, rdcc_nbytes, rdcc_w0, efile_prefix, virtual_prefix)
    from .dataset import Dataset

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


def access_of(parent, rdcc_nslots=None, rdcc_nbytes=None, rdcc_w0=None, efile_prefix=None, virtual_prefix=None, **others):
    """How a dataset is used, as its access property list tells."""
    access: dict[str, Any] = {}
    nslots, nbytes, w0 = rdcc_nslots, rdcc_nbytes, rdcc_w0
    if nslots is not None or nbytes is not None or w0 is not None:
        access["chunk_cache"] = (nslots or 8191, nbytes or 8 * 1024 * 1024, 0.75 if w0 is None else w0)
    for key, value in (("efile_prefix", efile_prefix), ("virtual_prefix", virtual_prefix)):
        if value is not None:
            origin = os.path.dirname(os.path.abspath(os.fsdecode(parent.id.owner.name_given)))
            access[key] = os.fsencode(os.fsdecode(value).replace("${ORIGIN}", origin))
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
        given: dict[str, Any] = {}
        chunks_given = chunks if isinstance(chunks, tuple) else None
        if compression is False and not shuffle and not fletcher32:
            options["filters"] = []
        elif compression is not None or shuffle or fletcher32:
            ones = chunks_given or tuple(max(1, side) for side in shape)
            filters.fill(given, shape, dtype, ones, compression, compression_opts, shuffle, fletcher32, maxshape, None,
                         None, allow_unknown_filter)  # fmt: skip
            options["filters"] = given.get("filters", [])
        if chunks_given:
            options["chunk"] = [int(side) for side in chunks_given]
        return
    filters.fill(options, shape, dtype, chunks, compression, compression_opts, shuffle, fletcher32, maxshape,
                 scaleoffset, external, allow_unknown_filter)  # fmt: skip


def _external(external):
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
    from .dataset import Dataset

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
