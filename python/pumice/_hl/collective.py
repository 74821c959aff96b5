"""Files that several ranks write and read together: processes of MPI (mpi4py), or whatever else carries messages.

All ranks make the same calls in the same order. What fails on one rank fails on all.
"""

import os
import time

import numpy as np

from .. import _pumice
from ..low import h5f
from ..low.h5g import text
from . import base, codec, dtypes, selections
from .making import _dtype_for, make_new_dset

# Tags of messages and of the last word of a rank that gives up; bytes of a message that are sent at once.
_MESSAGE, _ABORT, _PIECE = 1, 2, 1 << 30


class Messages:
    """What the native module asks of a communicator, by way of mpi4py's methods of the same names.

    A communicator has ``rank`` and ``size`` (or ``Get_rank()``, ``Get_size()``), ``isend(object, dest, tag)``, or
    ``send`` if that does not wait for the receiver, ``iprobe(source, tag)`` and ``recv(source=, tag=)``. Its own
    collective calls are not used: they wait for ever for a rank that has failed.
    """

    def __init__(self, comm, limit):
        if hasattr(comm, "Dup"):
            comm = comm.Dup()
        self.comm, self.limit = comm, float(limit)
        self.rank = comm.rank if hasattr(comm, "rank") else comm.Get_rank()
        self.size = comm.size if hasattr(comm, "size") else comm.Get_size()
        self._requests, self._aborted = [], None

    def _post(self, to, message, tag):
        if hasattr(self.comm, "isend"):
            self._requests.append(self.comm.isend(message, dest=to, tag=tag))
        else:
            self.comm.send(message, dest=to, tag=tag)

    def _tidy(self):
        """Lets go of sends that are done."""
        self._requests = [one for one in self._requests if hasattr(one, "test") and not one.test()[0]]

    def send(self, to, message):
        """Sends bytes without waiting for the receiver."""
        self._tidy()
        if len(message) <= _PIECE:
            self._post(to, message, _MESSAGE)
            return
        self._post(to, -(-len(message) // _PIECE), _MESSAGE)
        for at in range(0, len(message), _PIECE):
            self._post(to, message[at : at + _PIECE], _MESSAGE)

    def receive(self, source):
        """The next bytes of a rank; None after the time limit, a rank and a reason if one has given up."""
        found = self._next(source)
        if not isinstance(found, int):
            return found
        pieces = []
        for _ in range(found):
            pieces.append(self._next(source))
            if not isinstance(pieces[-1], bytes):
                return pieces[-1]
        return b"".join(pieces)

    def _next(self, source):
        end, turns = time.monotonic() + self.limit, 0
        while not self.comm.iprobe(source=source, tag=_MESSAGE):
            if self._gave_up():
                return self._aborted
            if time.monotonic() > end:
                return None
            self._tidy()
            turns += 1
            # Not at all at first, then up to a fifth of a millisecond; others run meanwhile.
            time.sleep(0 if turns < 100 else min(2e-4, turns * 1e-6))
        return self.comm.recv(source=source, tag=_MESSAGE)

    def _gave_up(self):
        for rank in range(self.size) if self._aborted is None else ():
            if rank != self.rank and self.comm.iprobe(source=rank, tag=_ABORT):
                self._aborted = (rank, self.comm.recv(source=rank, tag=_ABORT))
                break
        return self._aborted

    def abort(self, reason):
        """Tells the others that this rank gives up, once."""
        if self._aborted is None:
            self._aborted = (self.rank, reason)
            for rank in range(self.size):
                if rank != self.rank:
                    self._post(rank, reason, _ABORT)

    def settle(self):
        """Waits a little for what is still on its way."""
        end = time.monotonic() + min(self.limit, 5)
        while self._requests and time.monotonic() < end:
            self._tidy()
            time.sleep(1e-4)


class CollectiveFile:
    """A file that several ranks have open together: ``pumice.File(path, mode, comm=comm)``.

    All methods are collective unless they say otherwise: every rank calls them, in the same order. Leaving its ``with``
    by an exception gives the file up: it stays as at the last flush, and the other ranks get an error.
    """

    def __init__(self, name, mode, comm, time_limit=600, options=None):
        self.filename = os.fsdecode(os.fspath(name))
        self._messages = Messages(comm, time_limit)
        self.rank, self.size = self._messages.rank, self._messages.size
        self._native = _pumice.CollectiveFile(self._messages, self.filename, mode, options or {})

    def __bool__(self):
        return self._native.is_open

    def _together(self, act):
        """What ``act`` returns, if it raises nothing on any rank."""
        try:
            made = act()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            try:
                self._native.agree(reason)
            except (OSError, ValueError):
                pass  # The others have it; this rank says it in its own words.
            raise
        self._native.agree(None)
        return made

    def create_dataset(self, name, shape=None, dtype=None, data=None, **options):
        """Creates a dataset; options are those of ``Group.create_dataset``, on all ranks the same.

        ``data`` is written by rank 0.
        """
        path = text(name)
        datatype, made, like, array = self._together(lambda: _described(shape, dtype, data, options))
        native = self._native.create_dataset(path, datatype, made)
        dataset = CollectiveDataset(self, native, like)
        if array is not None:
            dataset._put(_pumice.Selection.all() if self.rank == 0 else _pumice.Selection.none(),
                         array if self.rank == 0 else array.reshape(-1)[:0])  # fmt: skip
        return dataset

    def __getitem__(self, name):
        """Opens a dataset; what is not stored yet is flushed before."""
        path = text(name)
        native = self._native.dataset(path)
        return CollectiveDataset(self, native, self.reader()[path])

    def change(self, act):
        """Lets rank 0 call ``act`` with the file, for groups, links and attributes; the others learn of its outcome.

        It must not change the cells of datasets that are open collectively.
        """
        from .files import File

        self._native.change(lambda native: act(File(h5f.FileID.of(native))) and None)

    def create_group(self, name):
        """Creates a group."""
        self.change(lambda file: file.create_group(name) and None)

    def require_group(self, name):
        """Creates a group if there is none."""
        self.change(lambda file: file.require_group(name) and None)

    @property
    def attrs(self):
        """The attributes of the root group."""
        return CollectiveAttributes(self, "/")

    def reader(self):
        """The file as all ranks' changes leave it, for reading by this rank alone; of use until the next flush."""
        from .files import File

        return File(h5f.FileID.of(self._native.reader()))

    def flush(self):
        """Stores everything in one commit."""
        self._native.flush()

    def close(self):
        """Stores everything and closes the file."""
        try:
            self._native.close()
        finally:
            self._messages.settle()

    def abandon(self, reason="the file was given up"):
        """Leaves the file as it was at the last flush; the other ranks get an error. Not a collective call."""
        self._native.abandon(reason)
        self._messages.settle()

    def __enter__(self):
        return self

    def __exit__(self, kind, value=None, trace=None):
        if kind is not None:
            self.abandon(f"{kind.__name__}: {value}")
        elif self:
            self.close()

    def __repr__(self):
        state = f'"{os.path.basename(self.filename)}" (rank {self.rank} of {self.size})' if self else "(closed)"
        return f"<Collective HDF5 file {state}>"


class CollectiveAttributes:
    """Attributes of an object that several ranks have open. All ranks give the same; rank 0 writes."""

    def __init__(self, file, path):
        self._file, self._path = file, path

    def __setitem__(self, name, value):
        self._file.change(lambda file: file[self._path].attrs.__setitem__(name, value))

    def __delitem__(self, name):
        self._file.change(lambda file: file[self._path].attrs.__delitem__(name))

    def __getitem__(self, name):
        return self._file.reader()[self._path].attrs[name]


class _Recorder:
    """A group of the native module that remembers what datasets were made with."""

    def __init__(self, group):
        self._group, self.made = group, None

    def __getattr__(self, name):
        return getattr(self._group, name)

    def create_dataset(self, path, datatype, options):
        """Makes the dataset, too."""
        self.made = datatype, options
        return self._group.create_dataset(path, datatype, options)


def _described(shape, dtype, data, options):
    """Datatype and native options of a new dataset, one in memory that is like it, and what is to be written."""
    from .files import File

    scratch, array = File.in_memory(), None
    recorder = scratch.id.group = _Recorder(scratch.id.group)
    if data is not None:
        array = base.array_for_new_object(data, specified_dtype=None if dtype is None else np.dtype(dtype))
        dtype = _dtype_for(data, array) if dtype is None else dtype
        shape = array.shape if shape is None else shape
    like = make_new_dset(scratch, shape, dtype, None, "like", **options)
    datatype, made = recorder.made
    if "committed" in made or made.get("parts") is not None or made.get("external"):
        raise TypeError("Committed datatypes, virtual and external datasets are not made collectively")
    return datatype, made, like, None if array is None else array.reshape(like.shape)


class CollectiveDataset:
    """A dataset that several ranks have open. All methods are collective unless they say otherwise.

    A rank that has nothing to do assigns an empty array to an empty slice.
    """

    def __init__(self, file, native, like):
        self.file, self._native, self._like = file, native, like
        self.dtype, self.chunks, self.ndim, self.is_sparse = like.dtype, like.chunks, like.ndim, like.is_sparse
        self._datatype = like._file_type

    @property
    def name(self):
        """The path. Not a collective call."""
        path = self._native.path
        return path if path.startswith("/") else "/" + path

    @property
    def shape(self):
        """The shape. Not a collective call."""
        return tuple(self._native.shape)

    @property
    def size(self):
        """The number of cells. Not a collective call."""
        return selections.product(self.shape)

    @property
    def attrs(self):
        """The attributes."""
        return CollectiveAttributes(self.file, self.name)

    def _prepared(self, args, value):
        """Selection, and what to hand to the native module."""
        names = [one for one in (args if isinstance(args, tuple) else (args,)) if isinstance(one, str)]
        if names:
            raise TypeError("Members of compounds are not written collectively")
        array = self._like._array_to_write(value, self.dtype)
        shape = self.shape
        selection = selections.select(shape, args) if shape else selections.SimpleSelection(())
        if self.dtype.subdtype is not None:
            array = np.broadcast_to(array, (*selection.array_shape, *self.dtype.subdtype[1]))
        elif selection.nselect:
            array = selection.fitted(array)
        else:
            selection.expand_shape(array.shape)
            return _pumice.Selection.none(), np.empty(0, self.dtype)
        return selection.native, np.ascontiguousarray(array)

    def _write(self, cells, array):
        datatype = self._datatype
        if datatype.refers_to_objects:
            raise TypeError("References are not written collectively")
        if datatype.has_varlen or not dtypes.is_plain(array.dtype):
            elements, heap = codec.encode_all(datatype, array, None, self.dtype)
            heap = codec.NO_BYTES if heap is None else heap
            return lambda: self._native.write_heaped(cells, elements, heap)
        kind = array.dtype
        if self.dtype.subdtype is not None:
            kind = np.dtype((kind, self.dtype.subdtype[1]))
        if kind.kind in "b" and self.dtype.kind in "iuf" or kind.kind in "iu" and self.dtype.kind == "b":
            array = array.astype(self.dtype)
            kind = array.dtype
        memory = codec.memory_datatype(kind, datatype)
        return lambda: self._native.write(cells, memory, codec.as_bytes(array))

    def __setitem__(self, args, value):
        self.file._together(lambda: self._write(*self._prepared(args, value)))()

    def _put(self, cells, array):
        self.file._together(lambda: self._write(cells, np.ascontiguousarray(array)))()

    def write_cells(self, coordinates, values):
        """Defines this rank's cells by their coordinates, a row for each axis; of one cell the last rank's value stays."""

        def prepared():
            columns = [np.atleast_1d(np.asarray(row)) for row in coordinates]
            if len(columns) != self.ndim:
                raise ValueError(f"{len(columns)} rows of coordinates for {self.ndim} axes")
            flat = np.ascontiguousarray(np.array(columns, dtype=np.uint64).reshape(self.ndim, -1).T).reshape(-1)
            count = len(flat) // max(1, self.ndim)
            array = np.broadcast_to(np.asarray(values, dtype=self.dtype if dtypes.is_plain(self.dtype) else None), (count,))
            cells = _pumice.Selection.points(self.ndim, flat) if count else _pumice.Selection.none()
            cells.check(list(self.shape))
            return self._write(cells, np.ascontiguousarray(array))

        self.file._together(prepared)()

    def write_alone(self, args, value):
        """Writes to chunks that no other rank changes before the next flush. Not a collective call.

        The next flush fails on all ranks if another rank has changed one of the chunks.
        """
        cells, array = self._prepared(args, value)
        datatype = self._datatype
        if datatype.has_varlen or not dtypes.is_plain(array.dtype):
            raise TypeError("Values of any length are written collectively")
        self._native.write_alone(cells, codec.memory_datatype(array.dtype, datatype), codec.as_bytes(array))

    def erase(self, args=()):
        """Makes this rank's cells undefined, in others than sparse datasets the fill value."""
        cells = self.file._together(lambda: selections.select(self.shape, args).native)
        self._native.erase(cells)

    def resize(self, size, axis=None):
        """Changes the size, of all axes or of one, after a flush, and commits that."""
        size = [int(side) for side in (size if axis is None else (*self.shape[:axis], size, *self.shape[axis + 1 :]))]
        self._native.resize(size)

    def reader(self):
        """The dataset as all ranks' changes leave it, for reading by this rank alone; of use until the next flush."""
        return self.file.reader()[self.name]

    def __getitem__(self, args):
        """Reads this rank's cells, after all that was written before is flushed."""
        reader = self.reader()
        return self.file._together(lambda: reader[args])

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return f'<Collective HDF5 dataset "{self.name}": shape {self.shape}, type "{self.dtype.str}">'
