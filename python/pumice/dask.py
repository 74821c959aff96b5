"""Arrays of Dask: reading without a lock in any number of processes, and storing with one commit.

``to_dask`` makes an array of a dataset. ``store`` writes arrays: workers encode chunks, one process stores them.
"""

import math
import os
import pickle
import tempfile
import threading
from contextlib import contextmanager

import numpy as np

from . import _pumice
from ._hl import selections
from ._hl.dataset import Dataset
from ._hl.files import File
from ._hl.group import Group
from ._hl.sparse import is_sparse_value
from ._hl.workers import Handle

__all__ = ["sparse_chunks", "store", "to_dask"]

# Defined cells of a block; bytes of a chunk of a new dataset.
_BLOCK_CELLS, _CHUNK_BYTES = 1 << 20, 1 << 20
# Looks at the number of cells along an axis.
_LOOKS = 4096


# -- reading ---------------------------------------------------------------------------------------------


def to_dask(dataset, chunks="auto", form=None):
    """A dask.array whose blocks are read without a lock, in as many threads and processes as there are.

    Blocks of a sparse dataset hold about a million defined cells each, in whole chunks; they are ``sparse.COO``
    (``form="pydata"``, the default where that library is there), ``csr``, ``csc``, or ``dense``. Each process opens
    the file once, and has one cache.
    """
    import dask.array

    chunks = "auto" if chunks is None else chunks
    if not dataset.is_sparse:
        form = "dense"
    elif form is None:
        form = _usual_form(dataset.ndim)
    if form != "dense" and isinstance(chunks, str) and chunks == "auto":
        chunks = sparse_chunks(dataset)
    handle = Handle(dataset, None if form == "dense" else form)
    return dask.array.from_array(
        handle, chunks=chunks, lock=False, asarray=False, fancy=False, inline_array=True, meta=_meta(handle, form)
    )


def _usual_form(rank):
    try:
        import sparse  # noqa: F401
    except ImportError:
        return "csr" if rank == 2 else "dense"
    return "pydata"


def _meta(handle, form):
    if form == "dense":
        return np.empty((0,) * handle.ndim, handle.dtype)
    if form == "pydata":
        import sparse

        coordinates = np.empty((handle.ndim, 0), np.int64)
        return sparse.COO(coordinates, np.empty(0, handle.dtype), shape=(0,) * handle.ndim,
                          fill_value=handle.dataset.fillvalue)  # fmt: skip
    import scipy.sparse

    return scipy.sparse.csr_array((0, 0), dtype=handle.dtype).asformat(form)


def sparse_chunks(dataset, cells=None):
    """Lengths of blocks along each axis, in whole chunks, so that no block has many more than so many defined cells.

    The first axis is cut first; others only where chunks that lie side by side have more cells than a block may.
    """
    cells, total = _BLOCK_CELLS if cells is None else cells, dataset.nnz
    lengths, share = [], 1.0
    for axis, side in enumerate(dataset.shape):
        if share * total <= 1.5 * cells:
            lengths.append((side,))
            continue
        mine, most = _lengths(dataset, axis, cells / share)
        lengths.append(mine)
        # What the fullest slice along this axis has too much, the next one shares out.
        share *= most / total
    return tuple(lengths)


def _lengths(dataset, axis, cells):
    """Lengths of slices along an axis, and how many cells the fullest has."""
    shape, step = dataset.shape, dataset.chunks[axis]
    lengths, length, held, most = [], 0, 0, 0
    # Few looks where there are many chunks.
    step *= max(1, -(-shape[axis] // step) // _LOOKS)
    for begin in range(0, shape[axis], step):
        end = min(begin + step, shape[axis])
        window = (slice(None),) * axis + (slice(begin, end),)
        found = dataset._ds.count_defined(selections.select(shape, window).native)
        if length and held + found > cells:
            lengths.append(length)
            length = held = 0
        length, held = length + end - begin, held + found
        most = max(most, held)
    return (*lengths, length), most


# -- storing ---------------------------------------------------------------------------------------------


def store(arrays, target, name=None, *, mode="a", region=None, scheduler=None, **options):
    """Stores arrays of Dask with one commit: nothing of them is to be seen before, and all of them after.

    Workers encode their blocks, compression included; this process stores what they send. Blocks of a worker that
    dies are encoded by another. ``target`` is

    - a path: the arrays become new datasets of the file; ``name`` is that of a single array, several are given as a
      dictionary by name. A file that is not there, and any with ``mode="w"``, is made under another name and put in
      its place when it is complete. ``options`` are those of ``create_dataset``.
    - a group or a file that is open for writing, likewise; everything else that has changed in it is committed, too.
    - a dataset, whose cells (or those of ``region``, slices along chunks) the array replaces; or a list of datasets of
      one file, and ``arrays`` a list.

    Blocks that share a chunk are cut anew at borders of chunks. Strings of any length in dense chunks are sent as they
    are, and stored here.
    """
    datasets = _datasets_of(target)
    if datasets is not None:
        if name is not None or options:
            raise TypeError("Datasets that exist have a name, and their options")
        listed = [arrays] if isinstance(target, Dataset) else list(arrays)
        if len(listed) != len(datasets):
            raise ValueError(f"{len(listed)} arrays for {len(datasets)} datasets")
        jobs = [_Job(array, dataset, region) for array, dataset in zip(listed, datasets)]
        _into_open(jobs, datasets[0].file, datasets, scheduler)
        return
    if region is not None:
        raise TypeError("A region is one of a dataset that exists")
    named = _named(arrays, name)
    with File.in_memory() as scratch:
        described = {path: _described(scratch, array, options) for path, array in named.items()}
        jobs = [_Job(array, _create(scratch, path, array, described[path])) for path, array in named.items()]

    def make(group):
        return [_create(group, path, array, described[path]) for path, array in named.items()]

    if isinstance(target, Group):
        _absent(target, named)
        _into_open(jobs, target.file, lambda: make(target), scheduler)
    elif mode == "w" or not os.path.exists(target):
        _into_new(jobs, target, make, scheduler)
    elif mode == "a":
        _into_existing(jobs, target, make, named, scheduler)
    else:
        raise ValueError(f"Invalid mode; must be a or w, not {mode!r}")


def _datasets_of(target):
    if isinstance(target, Dataset):
        return [target]
    if isinstance(target, (list, tuple)):
        if not target or not all(isinstance(one, Dataset) for one in target):
            raise TypeError("A list of targets is one of datasets")
        if any(one.file != target[0].file for one in target):
            raise ValueError("The datasets are in several files, which no one commit changes")
        return list(target)
    return None


def _named(arrays, name):
    if isinstance(arrays, dict):
        if name is not None:
            raise TypeError("Arrays in a dictionary have their names there")
        return arrays
    if name is None:
        raise TypeError("A new dataset needs a name")
    return {name: arrays}


def _absent(group, named):
    for name in named:
        if name in group:
            raise ValueError(f"{name} exists; give the dataset itself as the target to replace its cells")


def _described(scratch, array, options):
    """The options of a new dataset for an array, with chunks that fit its blocks where none are asked for."""
    options = dict(options)
    meta = array._meta
    options.setdefault("sparse", is_sparse_value(meta))
    fill = getattr(meta, "fill_value", 0)
    if options["sparse"] and fill != 0:
        options.setdefault("fillvalue", fill)
    if array.ndim and not options["sparse"] and options.get("chunks", True) is True:
        options["chunks"] = _chunk_of(array) or True
    elif array.ndim and options["sparse"] and options.get("chunks") is None:
        name = f"described-{len(scratch)}"
        guessed = _create(scratch, name, array, options).chunks
        options["chunks"] = tuple(_fitting(side, sides) for side, sides in zip(guessed, array.chunks))
    return options


def _fitting(side, lengths):
    """About the length of a side of chunks, so that blocks of these lengths begin with a chunk."""
    step = math.gcd(*(length for length in lengths[:-1] if length == length)) if len(lengths) > 1 else 0
    fits = [step // count for count in range(1, 2 * step // side + 1) if step % count == 0]
    return min((one for one in fits if side <= 2 * one <= 4 * side), key=lambda one: abs(one - side), default=side)


def _create(group, name, array, options):
    """A new dataset for an array."""
    options = dict(options)
    return group.create_dataset(name, array.shape, options.pop("dtype", array.dtype), **options)


def _chunk_of(array):
    """Chunks that fill blocks; None where these have no common shape."""
    if any(len(set(sides[:-1])) > 1 or sides[-1] > sides[0] for sides in array.chunks):
        return None
    chunk = [sides[0] for sides in array.chunks]
    while all(chunk) and selections.product(chunk) * max(1, array.dtype.itemsize) > _CHUNK_BYTES:
        axis = max((axis for axis, side in enumerate(chunk) if side % 2 == 0), key=chunk.__getitem__, default=None)
        if axis is None:
            return None
        chunk[axis] //= 2
    return tuple(chunk) if all(chunk) else None


class _Job:
    """An array, cut along the chunks of the dataset that it goes to."""

    def __init__(self, array, dataset, region=None):
        shape, chunk = dataset.shape, dataset.chunks
        if chunk is None and shape:
            raise ValueError(f"{dataset.name} is not stored in chunks: half of a new state would be seen there")
        self.start, self.shape = _box(shape, region)
        for start, side, step, end in zip(self.start, self.shape, chunk or (), shape):
            if start % step or (start + side) % step and start + side != end:
                raise ValueError(f"The region's borders are not those of chunks, which are {chunk}")
        if tuple(array.shape) != self.shape:
            raise ValueError(f"An array of shape {array.shape} for cells of shape {self.shape}")
        cut = tuple(_borders(sides, step) for sides, step in zip(array.chunks, chunk or ()))
        self.array = array if cut == array.chunks else array.rechunk(cut)
        try:
            self.template = _pumice.template(dataset._ds)
        except NotImplementedError:
            self.template = None

    def tasks(self):
        """Blocks as delayed values, each with its place in the dataset."""
        ends = [np.cumsum((start, *sides)).tolist() for start, sides in zip(self.start, self.array.chunks)]
        blocks = self.array.to_delayed()
        for at in np.ndindex(blocks.shape):
            yield blocks[at], tuple(slice(end[one], end[one + 1]) for one, end in zip(at, ends))

    def clear(self, dataset):
        """Takes away what was there: it stays in the file until the commit."""
        if self.template is not None:
            _pumice.remove_chunks(dataset._ds, list(self.start), list(self.shape))
        elif dataset.is_sparse:
            dataset.erase(tuple(slice(start, start + side) for start, side in zip(self.start, self.shape)))

    def put(self, dataset, where, found):
        """Stores what a worker has made of a block."""
        if self.template is None:
            _assign(dataset, where, found)
        else:
            _pumice.unpack_chunks(dataset._ds, found)


def _box(shape, region):
    if region is None:
        return (0,) * len(shape), tuple(shape)
    region = region if isinstance(region, tuple) else (region,)
    if any(not isinstance(one, slice) or one.step not in (None, 1) for one in region) or len(region) > len(shape):
        raise TypeError("A region is a tuple of slices without steps")
    region += (slice(None),) * (len(shape) - len(region))
    ranges = [range(*one.indices(side)) for one, side in zip(region, shape)]
    return tuple(one.start for one in ranges), tuple(len(one) for one in ranges)


def _borders(sides, step):
    """Lengths of blocks whose borders are those of chunks, each the next to an old one."""
    if any(side != side for side in sides):
        raise ValueError("The lengths of blocks are not known: call compute_chunk_sizes() on the array")
    length = sum(sides)
    ends = {min(length, int(round(end / step)) * step) for end in np.cumsum(sides).tolist()[:-1]} | {length}
    return tuple(np.diff(sorted(ends | {0})).tolist()) or (0,)


def _assign(dataset, where, block):
    if is_sparse_value(block) and dataset.is_sparse:
        fill = getattr(block, "fill_value", 0)
        if fill != dataset.fillvalue and not (fill != fill and dataset.fillvalue != dataset.fillvalue):
            raise ValueError(f"Cells that are not defined are {fill} in the array, {dataset.fillvalue} in the dataset")
        dataset.sparse[where] = block
    elif hasattr(block, "toarray") or hasattr(block, "todense"):
        dataset[where] = block.toarray() if hasattr(block, "toarray") else block.todense()
    else:
        dataset[where] = block


def _encode(block, template, where):
    """A block as it is stored; what a worker does."""
    if template is None:
        return block
    with File.in_memory(template) as file:
        bench = file["bench"]
        _assign(bench, where, block)
        return _pumice.pack_chunks(bench._ds)


def _encoded(jobs, take, scheduler):
    """Lets workers encode all blocks; gives each, when it comes, to ``take`` with the job's number and its place."""
    import dask.base
    import dask.local
    import dask.threaded

    encode = dask.delayed(_encode, pure=False, traverse=False)
    get = dask.base.get_scheduler(scheduler=scheduler, collections=[job.array for job in jobs])
    get, client = get or dask.threaded.get, getattr(get, "__self__", None)
    blocks = [(at, job.template, block, where) for at, job in enumerate(jobs) for block, where in job.tasks()]
    if client is not None and hasattr(client, "scheduler"):
        _gathered(client, [(at, where, encode(block, template, where)) for at, template, block, where in blocks], take)
    elif get in (dask.threaded.get, dask.local.get_sync):
        lock = threading.Lock()

        def here(block, at, template, where):
            found = _encode(block, template, where)
            with lock:
                take(at, where, found)

        task = dask.delayed(here, pure=False, traverse=False)
        dask.compute(*[task(block, at, template, where) for at, template, block, where in blocks], scheduler=scheduler)
    else:
        found = dask.compute(*[encode(block, template, where) for _, template, block, where in blocks], scheduler=scheduler)
        for (at, _, _, where), one in zip(blocks, found):
            take(at, where, one)


def _gathered(client, tasks, take):
    """Takes the blocks of a cluster's workers in the order in which they are done, and lets workers forget them."""
    from distributed import as_completed

    futures = client.compute([task for _, _, task in tasks])
    waiting = {future.key: (future, at, where) for future, (at, where, _) in zip(futures, tasks)}
    try:
        for done, found in as_completed(futures, with_results=True):
            future, at, where = waiting.pop(done.key)
            take(at, where, found)
            future.release()
    except BaseException:
        client.cancel([future for future, _, _ in waiting.values()])
        raise


def _into_new(jobs, path, make, scheduler):
    """A file that is put in its place when it is complete."""
    path = os.path.abspath(os.fspath(path))
    folder, name = os.path.split(os.fsdecode(path))
    with _spooled(jobs, folder, scheduler) as parts:
        handle, part = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
        os.close(handle)
        try:
            with File(part, "w") as file:
                _enter(jobs, lambda: make(file), parts)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(part, 0o666 & ~mask)
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise


@contextmanager
def _spooled(jobs, folder, scheduler):
    """What workers have made of all blocks, in a file without a name: nothing else is touched before all are there.

    Workers keep what they have made until it is taken, which must not take longer than to make it.
    """
    with tempfile.TemporaryFile(dir=folder) as spool:
        count = 0

        def take(*parts):
            nonlocal count
            pickle.dump(parts, spool, pickle.HIGHEST_PROTOCOL)
            count += 1

        _encoded(jobs, take, scheduler)

        def parts():
            spool.seek(0)
            for _ in range(count):
                yield pickle.load(spool)

        yield parts()


def _into_existing(jobs, path, make, named, scheduler):
    with File(path, "r") as file:
        _absent(file, named)
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    with _spooled(jobs, folder, scheduler) as parts, File(path, "r+") as file:
        _enter(jobs, lambda: make(file), parts)


def _into_open(jobs, file, datasets, scheduler):
    folder = None if file.id.path is None else os.path.dirname(os.path.abspath(file.id.path))
    with _spooled(jobs, folder, scheduler) as parts:
        _enter(jobs, datasets, parts)
        file.flush()


def _enter(jobs, datasets, parts):
    """Stores parts in datasets, which may be yet to make: these are taken away again after an error."""
    new = callable(datasets)
    datasets = datasets() if new else datasets
    try:
        for job, dataset in zip(jobs, datasets):
            if not new:
                job.clear(dataset)
        for at, where, found in parts:
            jobs[at].put(datasets[at], where, found)
    except BaseException:
        for dataset in datasets if new else ():
            del dataset.file[dataset.name]
        raise
