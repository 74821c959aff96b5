"""Batches of rows in random order, for programs that learn from them."""

import functools
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .. import _pumice
from . import cache, sparse


class Loader:
    """Batches of rows of datasets, shuffled anew in each epoch.

    ``datasets`` have equally many rows. A batch is the rows of each: a csr_array of a sparse matrix, an array of others;
    a tuple if there are several datasets, else the one. Iterating gives one epoch; the next begins with the next
    iteration, or with the one that ``set_epoch`` names.

    All processes that share ``seed`` see the same order: ``rank`` of ``world`` takes its share of the batches, and so does
    each worker of a PyTorch DataLoader. ``drop_last`` leaves out the last batch if it is short, and batches that not
    every process would get. ``block`` rows stay together, which reads faster from compressed chunks. ``ahead`` batches
    are read while one is used.

    Where torch is imported already, loaders are IterableDatasets.
    """

    def __new__(cls, *args, **options):
        if cls is Loader and "torch.utils.data" in sys.modules:
            cls = _torch_loader()
        return object.__new__(cls)

    def __init__(self, *datasets, batch=256, shuffle=True, seed=0, rank=0, world=1, drop_last=False, block=1, ahead=2,
                 rows=None, transform=None):  # fmt: skip
        if not datasets:
            raise TypeError("Loader() needs a dataset")
        lengths = {len(dataset) for dataset in datasets}
        if len(lengths) != 1:
            raise ValueError(f"Datasets of {sorted(lengths)} rows have no batches in common")
        if batch < 1 or block < 1 or ahead < 0 or not 0 <= rank < world:
            raise ValueError("batch and block are 1 or more, ahead 0 or more, and rank is one of world")
        self.datasets = datasets
        self.batch, self.shuffle, self.seed, self.block, self.ahead = batch, shuffle, seed, block, ahead
        self.rank, self.world, self.drop_last, self.transform = rank, world, drop_last, transform
        self.rows = None if rows is None else np.asarray(rows)
        self.length = lengths.pop() if self.rows is None else len(self.rows)
        self.epoch = 0

    def set_epoch(self, epoch):
        """Names the epoch that the next iteration is."""
        self.epoch = epoch

    def order(self, epoch):
        """The rows in the order of an epoch."""
        if not self.shuffle:
            order = np.arange(self.length)
        else:
            random = np.random.default_rng([self.seed, epoch])
            blocks = random.permutation(-(-self.length // self.block))
            order = (blocks[:, None] * self.block + np.arange(self.block)).reshape(-1)
            order = order[order < self.length]
        return order if self.rows is None else self.rows[order]

    def _share(self):
        """Which process this is, and of how many."""
        data = sys.modules.get("torch.utils.data")
        worker = data.get_worker_info() if data is not None else None
        if worker is None:
            return self.rank, self.world
        return self.rank * worker.num_workers + worker.id, self.world * worker.num_workers

    def _starts(self, share, shares):
        """Where the batches of one process begin."""
        count = self.length // self.batch if self.drop_last else -(-self.length // self.batch)
        if self.drop_last:
            count -= count % self.world
        return range(share * self.batch, count * self.batch, shares * self.batch)

    def __len__(self):
        return len(self._starts(self.rank, self.world))

    def read(self, rows):
        """The rows of each dataset, in their order."""
        found = [None] * len(self.datasets)
        alone: list[int] = []
        dense: list[int] = []
        for at, dataset in enumerate(self.datasets):
            matrix = dataset.is_sparse and dataset.ndim == 2 and sparse.kind_of(dataset) is not None
            (alone if matrix else dense).append(at)
        wanted = np.asarray(rows).astype(np.uint64)
        for kind in {sparse.kind_of(self.datasets[at]) for at in alone}:
            mine = [at for at in alone if sparse.kind_of(self.datasets[at]) == kind]
            lines = _pumice.read_many_rows([(self.datasets[at]._ds, wanted) for at in mine], kind)
            for at, arrays in zip(mine, lines):
                found[at] = sparse.matrix_of("csr", (len(rows), self.datasets[at].shape[1]), arrays)
        if dense:
            unique, back = np.unique(np.asarray(rows), return_inverse=True)
            arrays = cache.read_many([(self.datasets[at], unique) for at in dense])
            for at, array in zip(dense, arrays):
                found[at] = array[back]
        return found[0] if len(found) == 1 else tuple(found)

    def _made(self, rows):
        found = self.read(rows)
        return found if self.transform is None else self.transform(found)

    def __iter__(self):
        epoch, self.epoch = self.epoch, self.epoch + 1
        order = self.order(epoch)
        batches = (order[start : start + self.batch] for start in self._starts(*self._share()))
        if self.ahead == 0:
            yield from map(self._made, batches)
            return
        with ThreadPoolExecutor(1, "pumice-loader") as pool:
            waiting: deque[Any] = deque()
            try:
                for rows in batches:
                    waiting.append(pool.submit(self._made, rows))
                    if len(waiting) > self.ahead:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def __reduce__(self):
        return _again, (self.__dict__,)


def _again(state):
    """A loader from another process."""
    made = Loader.__new__(Loader)
    made.__dict__.update(state)
    return made


@functools.cache
def _torch_loader():
    from torch.utils.data import IterableDataset

    class TorchLoader(Loader, IterableDataset):
        """A loader that PyTorch knows."""

    TorchLoader.__name__ = TorchLoader.__qualname__ = "Loader"
    return TorchLoader
