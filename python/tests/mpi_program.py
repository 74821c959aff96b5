"""Ranks of MPI write a file together, through mpi4py: ``mpiexec -n N python python/tests/mpi_program.py FOLDER [fail]``.

``scripts/python-mpi-check`` runs it on 1, 2, 3 and 4 ranks, and compares the files. With ``fail`` a rank raises an exception
in the middle, and every rank must end with an error.
"""

import sys
import time
from pathlib import Path

from mpi4py import MPI
from test_collective import check, write

import pumice


def main():
    """Writes, and lets one rank check; or fails."""
    comm, folder = MPI.COMM_WORLD, Path(sys.argv[1])
    if "fail" in sys.argv:
        fail(comm, folder / f"failed{comm.size}.h5")
        return
    path = folder / f"{comm.size}.h5"
    values = write(comm, path)
    if comm.rank == 0:
        check(path, values)
        print(f"{comm.size} rank(s): the file is right")


def fail(comm, path):
    """The last rank fails; who does not learn of it prints nothing."""
    begin = time.monotonic()
    try:
        with pumice.File(path, "w", comm=comm, time_limit=60) as file:
            data = file.create_dataset("d", (8,), "i4", chunks=(2,))
            data[:] = 1
            file.flush()
            data[:] = 2
            if comm.rank == comm.size - 1:
                raise ZeroDivisionError("this rank cannot go on")
            file.flush()
    except (ZeroDivisionError, pumice.CollectiveError) as error:
        # Much less than the time limit: the rank could still say so.
        assert time.monotonic() - begin < 50
        sys.stdout.write(f"rank {comm.rank}: {type(error).__name__}: {error}\n")
        sys.stdout.flush()
    comm.Barrier()
    if comm.rank == 0:
        with pumice.File(path) as file:
            assert file["d"][:].tolist() == [1] * 8
        print(f"{comm.size} rank(s): all have ended, the file is as at the commit")


if __name__ == "__main__":
    main()
