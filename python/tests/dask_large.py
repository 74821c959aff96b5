"""A file larger than the memory of a worker, on Dask: equal to scipy's results, also when a worker is killed in the middle.

    python python/tests/dask_large.py [megabytes]       or scripts/dask-check
"""

import logging
import os
import signal
import sys
import tempfile
import threading
import time

import numpy as np
import scipy.sparse
from distributed import Client, LocalCluster

import pumice

LIMIT = 512 << 20


def large(megabytes):
    """A matrix of so many bytes as values alone."""
    rng, columns = np.random.default_rng(0), 20_000
    count = megabytes * 2**20 // 8
    steps = rng.integers(1, 40, count, dtype=np.int32)
    places = np.cumsum(steps, dtype=np.int64)
    rows = int(places[-1]) // columns + 1
    starts = np.searchsorted(places, np.arange(rows + 1, dtype=np.int64) * columns)
    matrix = scipy.sparse.csr_array((rng.random(count), (places % columns).astype(np.int32), starts), shape=(rows, columns))
    matrix.has_canonical_format = True
    return matrix


def sums_of_rows(block):
    """The sum of each row of a block, as a column."""
    return np.asarray(block.sum(axis=1)).reshape(-1, 1)


def sums_of_columns(block):
    """The sum of each column of a block, as a row."""
    return np.asarray(block.sum(axis=0)).reshape(1, -1)


def peak():
    """The most memory that a worker has had."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


def marked(folder):
    """A function that leaves a mark in a folder for each block that it is given."""

    def mark(block):
        os.close(tempfile.mkstemp(dir=folder)[0])
        return block

    return mark


def killed_meanwhile(client, marks, act):
    """What ``act`` returns, while a worker is killed after the first blocks, for which there are marks in a folder."""
    before = client.run(os.getpid)
    killed, begun = [], len(os.listdir(marks))

    def kill():
        while len(os.listdir(marks)) < begun + 8:
            time.sleep(0.01)
        killed.append(len(os.listdir(marks)) - begun)
        os.kill(next(iter(before.values())), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = act()
    killer.join(60)
    client.wait_for_workers(2, timeout=60)
    assert set(client.run(os.getpid).values()) != set(before.values())
    print(f"a worker was killed after {killed[0]} blocks")
    return found


def check(client, folder, marks, matrix):
    """Reductions, slices and storing, each beside scipy."""
    path = f"{folder}/large.h5"
    with pumice.File(path, "w") as file:
        pumice.from_scipy(file, "m", matrix, compression=False, shuffle=False)
    size = os.path.getsize(path)
    print(f"{matrix.nnz:,} cells, a file of {size >> 20} MiB, workers of {LIMIT >> 20} MiB")
    assert size > LIMIT
    with pumice.File(path) as file:
        lazy = file["m"].to_dask(form="csr")
        small = file["m"].to_dask(pumice.dask.sparse_chunks(file["m"], 1 << 18), form="csr")
    print(f"{lazy.npartitions} blocks")
    rows = lazy.map_blocks(sums_of_rows, dtype=float, chunks=(lazy.chunks[0], (1,)))
    columns = lazy.map_blocks(sums_of_columns, dtype=float, chunks=((1,) * lazy.numblocks[0], lazy.chunks[1]))
    assert lazy.numblocks[1] == 1
    begin = time.perf_counter()
    np.testing.assert_allclose(rows.compute()[:, 0], matrix.sum(axis=1))
    print(f"sums of rows in {time.perf_counter() - begin:.2f} s, most memory of a worker {max(client.run(peak).values()) >> 20} MiB")
    np.testing.assert_allclose(columns.sum(axis=0).compute(), matrix.sum(axis=0))
    middle = matrix.shape[0] // 2
    assert (lazy[middle - 700 :: 31].compute() != matrix[middle - 700 :: 31]).nnz == 0

    watched = lazy.map_blocks(marked(marks))
    rows = watched.map_blocks(sums_of_rows, dtype=float, chunks=(lazy.chunks[0], (1,)))
    found = killed_meanwhile(client, marks, lambda: rows.compute()[:, 0])
    np.testing.assert_allclose(found, matrix.sum(axis=1))
    print("reduced: equal")

    begin = time.perf_counter()
    # Little memory is left to workers: they encode smaller blocks.
    doubled, twice = small.map_blocks(marked(marks)).map_blocks(lambda block: block * 2), f"{folder}/twice.h5"
    pumice.dask.store(doubled, twice, "m", density=0.05, compression=False)
    print(f"stored in {time.perf_counter() - begin:.2f} s, {os.path.getsize(twice) >> 20} MiB")
    os.unlink(twice)
    killed_meanwhile(client, marks, lambda: pumice.dask.store(doubled, twice, "m", density=0.05, compression=False))
    with pumice.File(f"{folder}/twice.h5") as file:
        twice = file["m"].to_csr()
    assert twice.nnz == matrix.nnz and (twice != matrix * 2).nnz == 0
    assert sorted(os.listdir(folder)) == ["large.h5", "twice.h5"]
    print(f"stored: equal; most memory of a worker {max(client.run(peak).values()) >> 20} MiB")


def main():
    """Runs everything on two workers of two threads each."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 560
    cluster = LocalCluster(n_workers=2, threads_per_worker=2, host="127.0.0.1", dashboard_address=None, memory_limit=LIMIT,
                           silence_logs=logging.CRITICAL)  # fmt: skip
    with cluster, Client(cluster) as client, tempfile.TemporaryDirectory() as marks, \
            tempfile.TemporaryDirectory(dir=os.environ.get("PUMICE_BENCH")) as folder:  # fmt: skip
        check(client, folder, marks, large(megabytes))


if __name__ == "__main__":
    main()
