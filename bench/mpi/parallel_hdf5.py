"""The peer of mpi-bench: the same square written by Debian's h5py on parallel HDF5, collectively."""

import os
import resource
import sys
import time

import h5py
import numpy as np
from mpi4py import MPI


def processor_time():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    path = sys.argv[1]
    side = int(sys.argv[2]) if len(sys.argv) > 2 else 8192
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    start, end = side * rank // size, side * (rank + 1) // size
    at = np.arange(start * side, end * side, dtype=np.int64)
    values = np.sin((at % 1000).astype("f4")) * np.float32(100) + (at // side).astype("f4")
    values = values.astype("f4").reshape(end - start, side)
    del at
    comm.Barrier()
    begin, cpu = time.perf_counter(), processor_time()
    with h5py.File(path, "w", driver="mpio", comm=comm) as file:
        dataset = file.create_dataset(
            "d", (side, side), "f4", chunks=(512, 512), shuffle=True, compression="gzip", compression_opts=4
        )
        with dataset.collective:
            dataset[start:end] = values
    wall = time.perf_counter() - begin
    total = comm.allreduce(processor_time() - cpu)
    if rank == 0:
        version = h5py.version.hdf5_version
        print(f"hdf5-{version} ranks={size} wall={wall:.3f} cpu={total:.3f} bytes={os.path.getsize(path)}")


main()
