"""The chunk cache and its threads; many datasets in one call."""

import numpy as np

from .. import _pumice
from . import codec, dtypes, selections


class Cache:
    """A chunk cache with threads of its own, for files that are opened with it.

    ``limit`` is in bytes; ``policy`` is lirs, lru, two-stage, weighted-lru, tiny-lfu or random. Files that are opened
    without a cache share one.
    """

    def __init__(self, limit=None, policy=None, threads=None):
        self.native = _pumice.Context(limit, policy, threads)

    @classmethod
    def shared(cls):
        """The one that files have that were opened without another."""
        made = object.__new__(cls)
        made.native = _pumice.Context.shared()
        return made

    def stats(self):
        """What it has done so far."""
        return self.native.stats()

    def set_limit(self, limit):
        """Another limit in bytes."""
        self.native.set_limit(limit)

    def evict(self):
        """Lets everything go that can be read again."""
        self.native.evict()


def _plain(dataset):
    datatype = dataset._file_type
    return dtypes.is_plain(dataset.dtype) and not datatype.has_varlen and not datatype.refers_to_objects


def read_many(reads, out=None):
    """Reads many selections of datasets at the same time, on all threads.

    ``reads`` is a list of pairs of a dataset and an index; ``out`` may be a list of arrays to read into. Returns the
    list of arrays.
    """
    native, arrays, late = [], [], []
    for at, (dataset, args) in enumerate(reads):
        selection = selections.select(dataset.shape, args, dataset=dataset)
        given = None if out is None else out[at]
        if not _plain(dataset) or selection.nselect == 0 or dataset.dtype.subdtype is not None:
            late.append((at, dataset, args))
            arrays.append(given)
            continue
        array = np.empty(selection.array_shape, dataset.dtype) if given is None else given
        if array.shape != tuple(selection.array_shape) or not array.flags.c_contiguous:
            raise TypeError(f"An array in one piece of shape {selection.array_shape} is needed, not {array.shape}")
        arrays.append(array)
        memory = codec.memory_datatype(array.dtype, dataset._file_type)
        native.append((dataset._ds, selection.native, memory, codec.as_bytes(array)))
    _pumice.read_many(native)
    for at, dataset, args in late:
        found = np.asarray(dataset[args])
        if arrays[at] is None:
            arrays[at] = found
        else:
            arrays[at][...] = found
    return arrays


def write_many(writes):
    """Writes many arrays to selections of datasets at the same time, on all threads.

    ``writes`` is a list of triples of a dataset, an index and an array.
    """
    native = []
    for dataset, args, value in writes:
        array = np.asarray(value)
        if not _plain(dataset) or array.dtype.kind not in "iufbc" or dataset.dtype.subdtype is not None:
            dataset[args] = value
            continue
        selection = selections.select(dataset.shape, args, dataset=dataset)
        if selection.nselect == 0:
            continue
        array = np.ascontiguousarray(selection.fitted(array))
        memory = codec.memory_datatype(array.dtype, dataset._file_type)
        native.append((dataset._ds, selection.native, memory, codec.as_bytes(array)))
    _pumice.write_many(native)
