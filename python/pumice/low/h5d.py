"""Datasets."""

from collections import namedtuple

import numpy as np

from .._hl import codec, dtypes
from .h5g import text, unnamed
from .h5i import DATASET, ObjectID, wrap
from .h5s import ALL as _ALL
from .h5s import UNLIMITED, SpaceID
from .h5t import wrap_type

COMPACT, CONTIGUOUS, CHUNKED, VIRTUAL = 0, 1, 2, 3
ALLOC_TIME_DEFAULT, ALLOC_TIME_EARLY, ALLOC_TIME_LATE, ALLOC_TIME_INCR = 0, 1, 2, 3
SPACE_STATUS_NOT_ALLOCATED, SPACE_STATUS_PART_ALLOCATED, SPACE_STATUS_ALLOCATED = 0, 1, 2
FILL_TIME_ALLOC, FILL_TIME_NEVER, FILL_TIME_IFSET = 0, 1, 2
FILL_VALUE_UNDEFINED, FILL_VALUE_DEFAULT, FILL_VALUE_USER_DEFINED = 0, 1, 2

StoreInfo = namedtuple("StoreInfo", "chunk_offset filter_mask byte_offset size")


class DatasetID(ObjectID):
    """A handle of a dataset."""

    kind = DATASET

    def __init__(self, native, owner):
        super().__init__(native, owner)
        self.ds = native.as_dataset()

    @property
    def group(self):
        """The root group of its file, from where references are followed."""
        return self.owner.group

    def close(self):
        self.native.close()
        self.ds.object().close()

    _close = close

    @property
    def dtype(self):
        """The dtype that elements are read as."""
        return dtypes.dtype_of(self.ds.datatype)

    @property
    def shape(self):
        """The size along each axis."""
        shape = self.ds.shape
        return None if shape is None else tuple(shape)

    @property
    def rank(self):
        """How many axes there are."""
        return len(self.ds.shape or ())

    def get_space(self):
        """The dataspace."""
        shape = self.shape
        if shape is None:
            return SpaceID(None)
        return SpaceID(shape, [UNLIMITED if side is None else side for side in self.ds.max_shape])

    def get_space_status(self):
        """Whether room was found for elements."""
        if self.ds.layout == "chunked":
            count = self.ds.chunk_count()
            grid = 1
            for side, chunk in zip(self.shape, self.ds.chunk):
                grid *= -(-side // chunk)
            if count == 0:
                return SPACE_STATUS_NOT_ALLOCATED
            return SPACE_STATUS_ALLOCATED if count >= grid else SPACE_STATUS_PART_ALLOCATED
        return SPACE_STATUS_ALLOCATED if self.ds.storage_size() else SPACE_STATUS_NOT_ALLOCATED

    def get_type(self):
        """The datatype."""
        address = self.ds.committed
        if address is not None:
            path = self.owner.group.path_of(address)
            if path is not None:
                found = self.owner.group.open(path)
                return wrap_type(self.ds.datatype, found, self.owner)
        return wrap_type(self.ds.datatype)

    def get_offset(self):
        """Where the elements begin in the file; None if they do not lie in one piece, or nowhere."""
        if self.owner._intent & 1:
            self.owner.flush()
        return self.ds.address() or None

    def get_storage_size(self):
        """How many bytes the elements take."""
        return self.ds.storage_size()

    def get_create_plist(self):
        """How it was made."""
        from .h5p import PropDCID

        return PropDCID(self)

    def get_access_plist(self):
        """How it is used."""
        from .h5p import PropDAID

        return PropDAID(self)

    def set_extent(self, shape):
        """Another size."""
        self.ds.resize([int(side) for side in shape])

    extend = set_extent

    def flush(self):
        """Writes what has changed."""
        self.ds.flush()

    def refresh(self):
        """Takes notice of what others have written."""
        self.ds.refresh()

    def get_num_chunks(self, space=None):
        """How many chunks are stored."""
        self._need_chunks()
        return self.ds.chunk_count()

    def _need_chunks(self):
        if self.ds.chunk is None:
            raise TypeError("Not a chunked dataset")

    def get_chunk_info(self, index, space=None):
        """Where a chunk is stored, by its number."""
        return StoreInfo(*_stored(self._chunks()[index]))

    def _chunks(self):
        self._need_chunks()
        return self.ds.chunks()

    def get_chunk_info_by_coord(self, coord):
        """Where the chunk with a cell is stored."""
        self._need_chunks()
        chunk = self.ds.chunk
        offset = [at - at % side for at, side in zip(coord, chunk)]
        found = self.ds.chunk_info(offset)
        return StoreInfo(tuple(offset), 0, None, 0) if found is None else StoreInfo(*_stored(found))

    def chunk_iter(self, func):
        """Calls a function with each stored chunk until it returns something."""
        for chunk in self._chunks():
            result = func(StoreInfo(*_stored(chunk)))
            if result is not None:
                return result
        return None

    def read_direct_chunk(self, offsets, dxpl=None, out=None):
        """A chunk as it is stored: which filters were skipped, and its bytes."""
        self._need_chunks()
        found = self.ds.read_chunk([int(at) for at in offsets])
        if found is None:
            raise OSError("Chunk is not stored")
        raw, mask = found
        if out is None:
            return mask, raw
        view = memoryview(out)
        if not view.c_contiguous:
            raise ValueError("out is not in one piece")
        if view.readonly:
            raise BufferError("out is read-only")
        if view.nbytes < len(raw):
            raise ValueError(f"out buffer is only {view.nbytes} bytes, {len(raw)} bytes required")
        flat = view.cast("B") if view.format != "B" or view.ndim != 1 else view
        flat[: len(raw)] = raw
        return mask, flat[: len(raw)]

    def write_direct_chunk(self, offsets, data, filter_mask=0, dxpl=None):
        """Stores a chunk as it is."""
        self._need_chunks()
        raw = data.tobytes() if isinstance(data, np.ndarray) else bytes(data)
        # Bits for filters that are not there say nothing.
        mask = filter_mask & ((1 << len(self.ds.filters)) - 1)
        self.ds.write_chunk([int(at) for at in offsets], raw, mask)

    def _cells(self, space):
        if space is None or space is _ALL or isinstance(space, int):
            return SpaceID(self.shape).selection
        return space.selection

    def read(self, mspace, fspace, arr, mtype=None, dxpl=None):
        """Reads cells into an array."""
        datatype = self.ds.datatype
        memory = codec.memory_datatype(arr.dtype, datatype) if mtype is None else mtype.datatype
        self.ds.read(self._cells(fspace), memory, codec.as_bytes(arr), _memory(mspace))

    def write(self, mspace, fspace, arr, mtype=None, dxpl=None):
        """Writes an array to cells."""
        if not dtypes.is_plain(arr.dtype):
            elements, heap = codec.encode_all(self.ds.datatype, np.asarray(arr), self.owner.group)
            cells = self._cells(fspace)
            self.ds.write_heaped(cells, elements, codec.NO_BYTES if heap is None else heap)
            return
        memory = codec.memory_datatype(arr.dtype, self.ds.datatype) if mtype is None else mtype.datatype
        arr = np.ascontiguousarray(arr)
        self.ds.write(self._cells(fspace), memory, codec.as_bytes(arr), _memory(mspace))


def _stored(chunk):
    offset, mask, address, size = chunk
    return tuple(offset), mask, address, size


def _memory(space):
    if space is None or isinstance(space, int) or space.selection.kind == "all":
        return None
    return space.selection, list(space.shape)


def open(loc, name, dapl=None):
    """The dataset at a path."""
    found = wrap(loc.group.open(text(name)), loc)
    if not isinstance(found, DatasetID):
        raise KeyError("Not a dataset")
    return found


def create(loc, name, tid, space, dcpl=None, lcpl=None, dapl=None, gcpl=None):
    """Makes a dataset."""
    options = {} if dcpl is None else dict(dcpl.options)
    shape = space.shape
    if shape is None:
        options["null"] = True
    else:
        options["shape"] = list(shape)
        most = space.get_simple_extent_dims(True)
        if tuple(most) != tuple(shape):
            options["max_shape"] = [None if side == UNLIMITED else side for side in most]
    if tid.committed():
        options["committed"] = tid.native
    if options.pop("early_fill", False):
        options["allocation"] = "early"

    def make(path):
        return loc.group.create_dataset(path, tid.datatype, options)

    native = unnamed(loc, make) if name is None else make(text(name))
    return wrap(native, loc)
