"""Files that ranks write together: ranks that are threads or processes of Python, without MPI."""

import hashlib
import multiprocessing
import os
import queue
import threading
import time

import h5py
import numpy as np
import pytest

import pumice

LIMIT = 30


class ThreadComm:
    """One of several ranks, with the methods of mpi4py that are needed: messages in queues."""

    def __init__(self, rank, boxes):
        self.rank, self.size, self._boxes, self._seen = rank, len(boxes), boxes, []

    def send(self, message, dest, tag):
        """Puts a message into the receiver's box."""
        self._boxes[dest].put((self.rank, tag, message))

    def _find(self, source, tag):
        while True:
            try:
                self._seen.append(self._boxes[self.rank].get_nowait())
            except queue.Empty:
                break
        return next((at for at, (one, other, _) in enumerate(self._seen) if (one, other) == (source, tag)), None)

    def iprobe(self, source, tag):
        """Whether there is a message."""
        return self._find(source, tag) is not None

    def recv(self, source, tag):
        """The next message."""
        return self._seen.pop(self._find(source, tag))[2]


def as_threads(size, program, *args):
    """What each rank's program returns, or raises."""
    boxes, found = [queue.Queue() for _ in range(size)], [None] * size

    def run(rank):
        try:
            found[rank] = program(ThreadComm(rank, boxes), *args)
        except BaseException as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    [thread.start() for thread in threads]
    [thread.join(2 * LIMIT) for thread in threads]
    assert not any(thread.is_alive() for thread in threads), "a rank hangs"
    return found


def shares(rank, size, length):
    """A rank's part of an axis."""
    return slice(length * rank // size, length * (rank + 1) // size)


def write(comm, path, commits=True):
    """Everything that ranks can write."""
    rank, size = comm.rank, comm.size
    values = np.arange(101 * 64, dtype="f4").reshape(101, 64) % 97 / 3
    with pumice.File(path, "w", comm=comm, time_limit=LIMIT) as file:
        assert (file.rank, file.size) == (rank, size)
        dense = file.create_dataset("g/dense", (101, 64), "f4", chunks=(10, 16), compression="gzip", shuffle=True)
        sparse = file.create_dataset("sparse", (50, 50), "i4", sparse=True, chunks=(8, 8), maxshape=(None, 50))
        text = file.create_dataset("text", (20,), pumice.string_dtype(), chunks=(6,))
        pairs = file.create_dataset("pairs", (7,), [("a", "i2"), ("b", "f8")], chunks=(2,))
        plain = file.create_dataset("plain", data=np.arange(12).reshape(3, 4))
        scalar = file.create_dataset("scalar", data="stone")
        mine = shares(rank, size, 101)
        dense[mine] = values[mine]
        dense[100 if rank == size - 1 else slice(0, 0)] = 7
        # Rank r defines cells (k, k) with k % size == r; integers become the dataset's.
        diagonal = np.arange(rank, 50, size)
        sparse.write_cells([diagonal, diagonal], diagonal.astype("u1"))
        words = shares(rank, size, 20)
        text[words] = [f"wörd {n}" for n in range(20)][words]
        few = shares(rank, size, 7)
        pairs[few] = np.array([(n, n / 2) for n in range(7)], [("a", "i2"), ("b", "f8")])[few]
        if commits:
            file.flush()
        sparse.resize(60, axis=0)
        sparse.erase(np.s_[:10] if rank == 0 else np.s_[:0])
        np.testing.assert_array_equal(dense[mine.start : mine.start + 3, ::7], expected(values)[mine.start : mine.start + 3, ::7])
        assert plain.shape == (3, 4) and scalar.shape == () and sparse.shape == (60, 50)
        file.create_group("empty")
        file.attrs["year"] = 2026
        dense.attrs["unit"] = "counts"
        assert dense.attrs["unit"] == "counts"
    return expected(values)


def expected(values):
    """What is in the dense dataset at the end."""
    values = values.copy()
    values[100] = 7
    return values


def check(path, values):
    """What h5py and pumice read in the file."""
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["g/dense"][:], values)
        assert file["text"].asstr()[:].tolist() == [f"wörd {n}" for n in range(20)]
        assert file["pairs"]["b"].tolist() == [n / 2 for n in range(7)]
        assert file["plain"][:].tolist() == np.arange(12).reshape(3, 4).tolist() and file["scalar"][()] == b"stone"
        assert file.attrs["year"] == 2026 and file["g/dense"].attrs["unit"] == "counts" and "empty" in file
    with pumice.File(path) as file:
        rows, columns = file["sparse"].sparse.where()
        assert rows.tolist() == columns.tolist() == list(range(10, 50)) and file["sparse"].nnz == 40
        assert file["sparse"][20, 20] == 20


def test_files_are_the_same_for_any_number_of_ranks(tmp_path):
    seen = set()
    for size in (1, 2, 3, 4, 7):
        path = tmp_path / f"{size}.h5"
        found = as_threads(size, write, path)
        errors = [one for one in found if isinstance(one, BaseException)]
        assert not errors, errors
        check(path, found[0])
        seen.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(seen) == 1


def edit(comm, path):
    """Opens what is there, and writes by itself."""
    with pumice.File(path, "r+", comm=comm, time_limit=LIMIT) as file:
        dense = file["g/dense"]
        if comm.rank == 0:
            dense.write_alone(np.s_[:10, :16], np.full((10, 16), 5.0))
        part = dense[0 if comm.rank else slice(9, 11), :2]
        reader = file.reader()
        assert reader["sparse"].nnz == 40
        return part.tolist(), dense.reader()[3, 3]


def test_a_file_is_opened_again_by_other_ranks(path):
    values = as_threads(2, write, path)[0]
    found = as_threads(3, edit, path)
    assert found == [([[5, 5], values[10, :2].tolist()], 5), ([5, 5], 5), ([5, 5], 5)]


def fail(comm, path, step):
    """Rank 1 fails in some step; the others say what they learn."""
    learned = None
    with pumice.File(path, "w", comm=comm, time_limit=LIMIT) as file:
        data = file.create_dataset("d", (8, 8), "f4", chunks=(2, 8))
        data[:] = 1 if comm.rank == 0 else 2
        file.flush()
        bad = comm.rank == 1
        try:
            if step == "shape":
                data[:2] = np.ones((3, 8) if bad else (2, 8))
            elif step == "type":
                data[:2] = "text" if bad else 0
            elif step == "bounds":
                data.write_cells([[99 if bad else 0], [0]], [0])
            elif step == "dtype":
                file.create_dataset("e", (4,), "no type" if bad else "f4")
            elif step == "read":
                data["no member" if bad else slice(0, 2)]
            elif step == "change":
                file.change(lambda found: found["nothing"])
            elif step == "exists":
                file.create_dataset("d", (4,), "f4")
        except Exception as error:
            learned = error
        # The file is of use as before.
        data[4] = 5
    return learned


@pytest.mark.parametrize("step", ["shape", "type", "bounds", "dtype", "read", "change", "exists"])
def test_an_error_of_one_rank_is_one_of_all_and_they_go_on(path, step):
    found = as_threads(3, fail, path, step)
    assert all(isinstance(error, Exception) for error in found), found
    own = 0 if step in ("change", "exists") else 1
    others = [error for rank, error in enumerate(found) if rank != own]
    assert not isinstance(found[own], pumice.CollectiveError), found
    assert all(isinstance(error, pumice.CollectiveError) and f"rank {own}" in str(error) for error in others), found
    with h5py.File(path) as file:
        assert file["d"][:, 0].tolist() == [2, 2, 2, 2, 5, 2, 2, 2] and list(file) == ["d"]


def leave(comm, path):
    """Rank 1 leaves by an exception after the commit."""
    with pumice.File(path, "w", comm=comm, time_limit=LIMIT) as file:
        data = file.create_dataset("d", (4,), "i4", chunks=(2,))
        data[:] = 1
        file.flush()
        data[:] = 2
        if comm.rank == 1:
            raise ZeroDivisionError
        file.flush()


def test_a_rank_that_leaves_ends_the_others_and_the_file_is_as_at_the_commit(path):
    found = as_threads(3, leave, path)
    assert isinstance(found[1], ZeroDivisionError)
    assert all(isinstance(found[rank], pumice.CollectiveError) and "rank 1" in str(found[rank]) for rank in (0, 2)), found
    with h5py.File(path) as file:
        assert file["d"][:].tolist() == [1] * 4


def test_a_silent_rank_is_waited_for_no_longer_than_the_limit(path):
    def program(comm):
        with pumice.File(path, "w", comm=comm, time_limit=0.2) as file:
            if comm.rank == 1:
                time.sleep(0.8)
            file.flush()

    found = as_threads(2, program)
    assert isinstance(found[0], pumice.CollectiveError) and "200" in str(found[0]), found
    assert isinstance(found[1], pumice.CollectiveError)


def test_modes_are_those_of_all_ranks(path):
    def program(comm, mode):
        with pumice.File(path, mode, comm=comm, driver="mpio", time_limit=LIMIT) as file:
            return bool(file)

    assert as_threads(2, program, "x") == [True, True]
    assert all(isinstance(one, FileExistsError) for one in as_threads(2, program, "x"))
    assert as_threads(2, program, "a") == [True, True]
    os.unlink(path)
    assert all(isinstance(one, OSError) for one in as_threads(2, program, "r+"))
    assert as_threads(2, program, "a") == [True, True] and path.exists()
    assert as_threads(2, program, "r") == [True, True]


class ProcessComm(ThreadComm):
    """A rank that is a process."""


def run_process(rank, boxes, path, ends):
    """The program of a rank's process."""
    comm = ProcessComm(rank, boxes)
    write(comm, path)
    if ends is not None:
        with pumice.File(path, "r+", comm=comm, time_limit=2) as file:
            data = file["g/dense"]
            data[:] = 1
            if rank == ends:
                os._exit(9)
            file.flush()


@pytest.mark.parametrize("ends", [None, 1])
def test_ranks_that_are_processes(path, ends):
    context = multiprocessing.get_context("spawn")
    boxes = [context.Queue() for _ in range(2)]
    running = [context.Process(target=run_process, args=(rank, boxes, path, ends)) for rank in range(2)]
    [one.start() for one in running]
    [one.join(2 * LIMIT) for one in running]
    assert [one.exitcode for one in running] == ([0, 0] if ends is None else [1, 9])
    # As at the last commit.
    check(path, expected(np.arange(101 * 64, dtype="f4").reshape(101, 64) % 97 / 3))
