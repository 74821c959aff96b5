"""Datasets that other processes read: workers of Dask, pools.

A process opens a file once, without a lock, and keeps it, with its cache. The *stamp* of a file tells whether it is
still the one that an array was made of; reads of a file that is changed meanwhile fail by themselves.
"""

import os
import sys
import threading
import uuid
from collections import OrderedDict
from typing import Any

from ..low import h5f

# Files that a process keeps open for others' objects.
_MOST = 32

_files: OrderedDict[Any, Any] = OrderedDict()
_caches: dict[int, Any] = {}
_lock = threading.Lock()


def _after_fork():
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _dask_workers():
    """The workers of Dask in this process."""
    module = sys.modules.get("distributed.worker")
    return [] if module is None else list(getattr(module.Worker, "_instances", ()))


def _cache():
    """In a worker of Dask a cache that leaves room for its other work; else the one that all files share."""
    from .cache import Cache

    workers = _dask_workers()
    if not workers:
        return None
    made = _caches.get(os.getpid())
    if made is None:
        managers = [getattr(worker, "memory_manager", None) for worker in workers]
        limits = [manager.memory_limit for manager in managers if getattr(manager, "memory_limit", None)]
        threads = sum(worker.state.nthreads for worker in workers)
        made = _caches[os.getpid()] = Cache(limit=min(limits) // 8 if limits else None, threads=threads)
    return made


class _Kept:
    """A file that a process keeps open, and the datasets of it that were asked for."""

    def __init__(self, stamp, file):
        self.stamp, self.file, self._datasets = stamp, file, {}

    def dataset(self, name):
        """A dataset of the file."""
        found = self._datasets.get(name)
        if found is None or not found:
            found = self._datasets[name] = self.file[name]
        return found


def opened(path, stamp, options):
    """The file at a path, opened once in this process; an error if it is not the one with the stamp."""
    from .files import File

    key = (os.getpid(), path, *sorted(options.items()))
    with _lock:
        kept = _files.get(key)
        if kept is not None and kept.stamp == stamp and kept.file:
            _files.move_to_end(key)
            return kept
        _check(path, stamp)
        file = File(path, "r", **{**options, "locking": False}, cache=_cache())
        # Who has the file still open as it was before a change shares that view of it, which reads no more.
        file.id.file_native.refresh()
        # It could have been replaced between the look and the opening.
        _check(path, stamp)
        kept = _files[key] = _Kept(stamp, file)
        while len(_files) > _MOST:
            _files.popitem(last=False)
        return kept


def _check(path, stamp):
    if stamp is not None and h5f.stamp_of(path) != stamp:
        raise OSError(f"{path} was changed or replaced after the array was made of it: open it again, and make the array anew")


def again(path, options):
    """The file at a path as it is now, if this process is a worker of Dask, which keeps it."""
    return opened(path, h5f.stamp_of(path), options).file if _dask_workers() else None


class Handle:
    """A dataset that can be read in other processes: as arrays, or as sparse arrays of a form."""

    def __init__(self, dataset, form=None):
        fid = dataset.id.owner
        self._dataset, self.form, self.name = dataset, form, dataset.name
        self.shape, self.ndim, self.chunks = dataset.shape, dataset.ndim, dataset.chunks
        self.dtype = dataset.dtype if form is None else dataset.dtype.newbyteorder("=")
        self.path = self.stamp = None
        self.options = {key: value for key, value in fid.options.items() if key == "swmr"}
        if fid.path is not None and not fid.get_intent() & h5f.ACC_RDWR:
            self.path = os.path.abspath(fid.path)
            self.stamp = None if self.options else fid.stamp

    @property
    def dataset(self):
        """The dataset, in this process; opened again by its path if its file was closed."""
        if self.path is None or self._dataset is not None and self._dataset:
            return self._dataset
        # Asked for each time: the file may have been opened anew for another state of it.
        return opened(self.path, self.stamp, self.options).dataset(self.name)

    def __getitem__(self, args):
        return self.dataset[args] if self.form is None else self.dataset.sparse(self.form)[args]

    def __getstate__(self):
        if self.path is None:
            raise TypeError("Datasets of files that can be changed, or have no path, cannot be read in other processes")
        return {**self.__dict__, "_dataset": None}

    def __dask_tokenize__(self):
        return (*token(self.path, self.stamp, self.name), self.form)


def token(path, stamp, name):
    """What changes when the cells of a dataset may have changed."""
    if path is None or stamp is None:
        # What can be changed meanwhile has another token each time.
        return ("pumice", uuid.uuid4().hex)
    return ("pumice", str(path), name, *stamp)


def token_of(dataset):
    """The token of a dataset, without its form."""
    handle = Handle(dataset)
    return token(handle.path, handle.stamp, handle.name)
