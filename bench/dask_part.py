"""Rows a second on Dask's workers, beside anndata's lazy mode, in one run: two processes of two threads.

    bash scripts/wheel --install && scripts/dask-check --bench

A matrix of 20,000 x 10,000 at 3 %, of which all rows are read as CSR and added up. Prints the best of several turns.
"""

import logging
import os
import shutil
import tempfile
import time

import anndata
import h5py
import numpy as np
import scipy.sparse
from distributed import Client, LocalCluster

import pumice

TURNS = 7
WAYS = {"shuffle, zstd": {}, "shuffle, gzip": {"compression": "gzip", "shuffle": True}, "no filter": {"compression": False}}


def sums(block):
    """The sum of each row of a block, as a column."""
    return np.asarray(block.sum(axis=1)).reshape(-1, 1)


def rows_a_second(client, array):
    """How many rows of an array come in a second, and in a second of the workers' processors, and the sums of all."""
    sums_of_rows = array.map_blocks(sums, dtype=array.dtype, chunks=(array.chunks[0], (1,)))
    used = sum(client.run(time.process_time).values())
    begin = time.perf_counter()
    found = sums_of_rows.compute()
    took = time.perf_counter() - begin
    used = sum(client.run(time.process_time).values()) - used
    return array.shape[0] / took, array.shape[0] / used, found[:, 0]


def main():
    """Reads with both, in turn."""
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.random(20_000, 10_000, density=0.03, format="csr", dtype="f4", random_state=rng)
    expected = np.asarray(matrix.sum(axis=1)).reshape(-1)
    cluster = LocalCluster(n_workers=2, threads_per_worker=2, host="127.0.0.1", dashboard_address=None,
                           silence_logs=logging.CRITICAL)  # fmt: skip
    with cluster, Client(cluster) as client, tempfile.TemporaryDirectory(dir=os.environ.get("PUMICE_BENCH")) as folder:
        old, new = f"{folder}/old.h5ad", f"{folder}/new.h5"
        anndata.AnnData(X=matrix).write_h5ad(old, compression="gzip")
        for way, options in WAYS.items():
            with pumice.File(new, "w") as file:
                pumice.from_scipy(file, "m", matrix, **options)
            best = {"first": (0.0, 0.0), "again": (0.0, 0.0), "anndata": (0.0, 0.0)}
            for turn in range(TURNS):
                # Under a new name, no worker has anything of it in memory but the system.
                copy = shutil.copy(new, f"{folder}/{way}{turn}.h5")
                with pumice.File(copy) as file, h5py.File(old) as peer:
                    mine = file["m"].to_dask(form="csr")
                    lazy = {"first": mine, "again": mine, "anndata": anndata.experimental.read_elem_lazy(peer["X"])}
                    for who, array in lazy.items():
                        *rates, found = rows_a_second(client, array)
                        np.testing.assert_allclose(found, expected, rtol=1e-4)
                        best[who] = tuple(map(max, best[who], rates))
            for at, unit in enumerate(("second", "second of processors")):
                first, again, other = (best[who][at] for who in ("first", "again", "anndata"))
                print(f"{way:14} rows a {unit:20}: pumice {first:8,.0f}, again {again:8,.0f}; anndata lazy, gzip {other:8,.0f}: "
                      f"{first / other:.1f}x, {again / other:.1f}x  (aim 3x)")  # fmt: skip


if __name__ == "__main__":
    main()
