"""The counterpart of crates/pumice/examples/rayon_threads.rs: threads on one dataset, in h5py."""

import concurrent.futures
import sys

import h5py
import numpy


def line(row):
    return row * numpy.arange(1000) % 1009


path = sys.argv[1]
# The job.
with h5py.File(path, "w") as file, concurrent.futures.ThreadPoolExecutor() as pool:
    grid = file.create_dataset("grid", (1000, 1000), "u4", chunks=(100, 100), compression="gzip")

    def write(row):
        grid[row] = line(row)

    def add_up(column):
        return int(grid[:, column].astype("u8").sum())

    list(pool.map(write, range(1000)))
    sums = list(pool.map(add_up, range(1000)))
    print(f"{sums[:3]} {sum(sums)}")
