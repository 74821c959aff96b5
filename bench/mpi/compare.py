"""Compares the square that mpi-bench wrote with that of parallel HDF5: both are read by h5py."""

import sys

import h5py
import numpy as np

with h5py.File(sys.argv[1]) as one, h5py.File(sys.argv[2]) as two:
    for start in range(0, one["d"].shape[0], 1024):
        rows = slice(start, start + 1024)
        if not np.allclose(one["d"][rows], two["d"][rows], rtol=1e-5, atol=1e-3):
            sys.exit(f"rows from {start} on differ")
print("h5py reads the same values from both")
