"""Dask on a cluster of processes: reading, storing, files that change, workers that are killed."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse

import pumice

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


# What pydata's sparse compiles takes a quarter of a minute in each worker.
thorough = pytest.mark.skipif("PUMICE_THOROUGH" not in os.environ, reason="for scripts/dask-check")


@pytest.fixture(scope="module")
def client():
    """Two worker processes with two threads each."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, host="127.0.0.1", dashboard_address=None, memory_limit="700MiB"
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        yield client


@pytest.fixture(scope="module")
def matrix():
    """A matrix, most of which is in its last rows."""
    rng = np.random.default_rng(1)
    given = scipy.sparse.random_array((3000, 500), density=0.02, rng=rng, format="lil")
    given[2900:] = rng.random((100, 500)) + 1
    return given.tocsr()


@pytest.fixture
def stored(path, matrix):
    """A file with the matrix, and a dense one."""
    with pumice.File(path, "w") as file:
        pumice.from_scipy(file, "s", matrix, chunks=(100, 100))
        file.create_dataset("d", data=matrix.toarray(), chunks=(200, 125), compression="gzip")
    return path


def workers(client):
    """Two workers, however many were killed before."""
    client.wait_for_workers(2, timeout=60)
    return client.run(os.getpid)


def kill_one(client):
    """Ends one worker's process; its nanny starts another."""
    victim = next(iter(workers(client).values()))
    os.kill(victim, signal.SIGKILL)
    return victim


# -- reading


def opened_files():
    """The files that a worker keeps open, and how many openings of them the system knows."""
    from pumice._hl import workers

    paths = [key[1] for key in workers._files if workers._files[key].file]
    links = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
    return {path: links.count(path) for path in paths}


def forget():
    """Lets a worker open its files anew."""
    from pumice._hl import workers

    workers._files.clear()


@thorough
def test_sparse_blocks_are_reduced_and_sliced(client, stored, matrix, monkeypatch):
    monkeypatch.setattr(pumice.dask, "_BLOCK_CELLS", 4000)
    with pumice.File(stored) as file:
        lazy = file["s"].to_dask()
    assert len(lazy.chunks[0]) > 5 and type(lazy._meta).__name__ == "COO"
    np.testing.assert_allclose(lazy.sum(axis=0).compute().todense(), matrix.sum(axis=0))
    np.testing.assert_allclose(lazy.max(axis=1).compute().todense(), matrix.max(axis=1).toarray().reshape(-1))
    part = lazy[2990:40:-7, ::3].compute()
    np.testing.assert_array_equal(part.todense(), matrix.toarray()[2990:40:-7, ::3])


def test_workers_reduce_slice_and_map(client, stored, matrix):
    with pumice.File(stored) as file:
        dense = file["d"].to_dask(chunks=(600, 500))
        rows = file["s"].to_dask(form="csr", chunks=(500, 500))
        again = file["s"].to_dask(form="csr", chunks=(500, 500))
    # The file is closed here; the workers open it by its path.
    assert rows.name == again.name
    np.testing.assert_array_equal(dense[2990:40:-7, ::3].compute(), matrix.toarray()[2990:40:-7, ::3])
    np.testing.assert_array_equal(dense[[5, 2, 5]].compute(), matrix.toarray()[[5, 2, 5]])
    np.testing.assert_allclose(dense.mean(axis=0).compute(), matrix.mean(axis=0))
    sums = rows.map_blocks(lambda block: np.asarray(block.sum(axis=1)).reshape(-1, 1), dtype=float,
                           chunks=(rows.chunks[0], (1,)))  # fmt: skip
    np.testing.assert_allclose(sums.compute()[:, 0], matrix.sum(axis=1))
    # Every worker that was asked has one opening of the file, and no lock keeps a writer away.
    found = client.run(opened_files)
    counts = [count for one in found.values() for count in one.values()]
    assert any(str(stored) in one for one in found.values()) and set(counts) == {1}, found
    with pumice.File(stored, "r+") as file:
        file.attrs["written"] = True


def test_a_replaced_file_has_another_token_and_is_never_mixed(client, path, tmp_path):
    def write(place, value):
        with pumice.File(place, "w") as file:
            file.create_dataset("d", data=np.full((100, 100), value), chunks=(10, 100))

    def array():
        with pumice.File(path) as file:
            return file["d"].to_dask(chunks=(50, 100))

    write(path, 1)
    first, old = array(), os.stat(path)
    assert first.sum().compute() == 10_000 and array().name == first.name
    other = tmp_path / "other.h5"
    write(other, 2)
    # Of the same length, of the same time.
    os.utime(other, ns=(old.st_atime_ns, old.st_mtime_ns))
    os.replace(other, path)
    assert os.stat(path).st_size == old.st_size and os.stat(path).st_mtime_ns == old.st_mtime_ns
    second = array()
    assert second.name != first.name and second.sum().compute() == 20_000
    # The array of the old file is not made of the new one, by whoever has not opened the old one.
    client.run(forget)
    with pytest.raises(OSError, match="changed or replaced"):
        first.sum().compute()
    # A file that is changed in its place.
    write(path, 3)
    client.run(forget)
    with pytest.raises(OSError, match="changed or replaced"):
        second.max().compute()
    assert array().sum().compute() == 30_000


def test_a_worker_killed_while_it_reduces(client, stored, matrix):
    with pumice.File(stored) as file:
        lazy = file["d"].to_dask(chunks=(200, 500))

    def slow(block):
        time.sleep(0.2)
        return block

    pending = client.compute(lazy.map_blocks(slow, dtype=lazy.dtype).sum(axis=0))
    time.sleep(0.5)
    victim = kill_one(client)
    np.testing.assert_allclose(pending.result(timeout=60), matrix.sum(axis=0))
    assert victim not in workers(client).values()


def test_xarray_reads_chunks_on_workers(client, tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    from pumice.xarray_backend import PumiceBackendEntrypoint

    values = np.random.default_rng(0).random((6, 40, 50))
    path = tmp_path / "weather.nc"
    made = xarray.Dataset({"t": (("time", "x", "y"), values), "name": (("x",), np.array([f"s{n}" for n in range(40)], object))})
    made.to_netcdf(path, engine="netcdf4", encoding={"t": {"zlib": True, "chunksizes": (1, 20, 25)}})
    with xarray.open_dataset(path, engine=PumiceBackendEntrypoint, chunks={}) as lazy:
        assert lazy["t"].chunks == ((1,) * 6, (20, 20), (25, 25))
        np.testing.assert_allclose(lazy["t"].mean("time").compute().values, values.mean(0))
        assert lazy["name"].compute().values.tolist() == [f"s{n}" for n in range(40)]


# -- storing


def slowly(block, seconds=0.1):
    """A block that takes its time."""
    time.sleep(seconds)
    return block


def random_array(seed=0, shape=(700, 300), chunks=(130, 300)):
    """An array that is the same whenever and wherever it is computed."""
    values = np.random.default_rng(seed).integers(0, 9, shape, dtype="i4")
    return values, da.from_array(values, chunks=chunks)


def test_workers_store_what_h5py_reads(client, path):
    import h5py

    values, array = random_array()
    text = np.array([f"s{n}" for n in range(50)], object)
    options = {"compression": "gzip", "shuffle": True}
    pumice.dask.store({"a": array, "g/b": array.astype("f8")[:, :77] / 3}, path, chunks=(100, 50), **options)
    # Into a file that is there, with one commit.
    pumice.dask.store(da.from_array(text, chunks=20), path, "text", dtype=pumice.string_dtype())
    pumice.dask.store(array.sum(), path, "scalar")
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["a"][:], values)
        np.testing.assert_array_equal(file["g/b"][:], values[:, :77] / 3)
        assert file["a"].chunks == (100, 50) and file["a"].compression == "gzip" and file["a"].shuffle
        assert file["text"].asstr()[:].tolist() == text.tolist() and file["scalar"][()] == values.sum()
    with pytest.raises(ValueError, match="exists"):
        pumice.dask.store(array, path, "a")


def test_workers_encode_and_the_client_does_not(client, path, monkeypatch):
    values, array = random_array(1)

    def complain(*args):
        raise AssertionError("The client encodes")

    monkeypatch.setattr(pumice.dask, "_assign", complain)
    pumice.dask.store(array, path, "a", compression="gzip", chunks=(100, 50))
    with pumice.File(path) as file:
        np.testing.assert_array_equal(file["a"][:], values)


def test_rows_are_read_changed_and_stored_on_workers(client, stored, matrix, tmp_path):
    with pumice.File(stored) as file:
        rows = file["s"].to_dask(form="csr", chunks=(500, 500))
    other = tmp_path / "other.h5"
    pumice.dask.store(rows.map_blocks(lambda block: block * 2), other, "s", density=0.02)
    with pumice.File(other) as file:
        assert file["s"].is_sparse and file["s"].nnz == matrix.nnz
        assert (file["s"].to_csr() != matrix * 2).nnz == 0


@thorough
def test_sparse_blocks_are_stored_and_replace_what_was_there(client, path, matrix):
    sparse = pytest.importorskip("sparse")
    given = sparse.COO.from_scipy_sparse(matrix)
    blocks = da.from_array(given, chunks=(700, 500), asarray=False)
    pumice.dask.store(blocks, path, "s", density=0.02, chunks=(100, 100))
    with pumice.File(path, "r+") as file:
        data = file["s"]
        assert data.is_sparse and (data.to_csr() != matrix).nnz == 0 and data.nnz == matrix.nnz
        # Rows 1000 to 1499 become others, and emptier.
        part = given[1000:1500] * (given[1000:1500] > 0.5)
        pumice.dask.store(da.from_array(part, chunks=(130, 500), asarray=False), data, region=np.s_[1000:1500])
        rows = matrix.tolil()
        rows[1000:1500] = part.to_scipy_sparse().tolil()
        np.testing.assert_array_equal(data.to_csr().toarray(), rows.toarray())
        with pytest.raises(ValueError, match="borders"):
            pumice.dask.store(blocks[:150], data, region=np.s_[:150])


READER = """
import sys, pumice
with pumice.File(sys.argv[1], "r", locking=False) as file:
    print(sorted(file), file["d"][:].sum())
"""


def seen(path):
    """What another process sees in a file that somebody may be writing."""
    return subprocess.run([sys.executable, "-c", READER, path], capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("compression", ["gzip", None])
def test_nothing_is_to_be_seen_before_the_commit(client, path, compression, monkeypatch):
    values, array = random_array(2)
    with pumice.File(path, "w") as file:
        file.create_dataset("d", data=np.ones((700, 300), "i4"), chunks=(100, 50), compression=compression)
    before, looks = seen(path), []
    put = pumice.dask._Job.put

    def look(job, dataset, where, found):
        put(job, dataset, where, found)
        if not looks:
            time.sleep(0.05)
            looks.append(seen(path))

    monkeypatch.setattr(pumice.dask._Job, "put", look)
    with pumice.File(path, "r+", locking=False) as file:
        pumice.dask.store(array, file["d"])
        assert looks == [before]
        assert seen(path) == f"['d'] {values.sum()}\n"


def test_an_error_in_a_block_leaves_everything_as_it_was(client, path):
    def fail(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 3:
            raise ArithmeticError("block 3")
        return block

    values, array = random_array(3)
    pumice.dask.store(array, path, "d")
    before = path.read_bytes()
    failing = array.map_blocks(fail, dtype=array.dtype)
    for target, name, mode in ((path, "e", "a"), (path, "e", "w")):
        with pytest.raises(ArithmeticError):
            pumice.dask.store(failing, target, name, mode=mode)
        assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]
    with pumice.File(path, "r+") as file:
        with pytest.raises(ArithmeticError):
            pumice.dask.store(failing, file["d"])
        np.testing.assert_array_equal(file["d"][:], values)


def test_blocks_of_a_killed_worker_are_stored_by_another(client, path):
    import threading

    values, array = random_array(4, (2000, 300), (50, 300))
    pids = set(workers(client).values())
    killer = threading.Timer(0.5, kill_one, (client,))
    killer.start()
    pumice.dask.store(array.map_blocks(slowly, dtype=array.dtype), path, "d", compression="gzip")
    killer.join()
    assert len(pids & set(workers(client).values())) == 1
    with pumice.File(path) as file:
        np.testing.assert_array_equal(file["d"][:], values)


@pytest.mark.parametrize("scheduler", ["threads", "sync", "processes"])
def test_other_schedulers_store_too(path, scheduler):
    values, array = random_array(5)
    pumice.dask.store(array, path, "d", scheduler=scheduler, compression="lzf")
    with pumice.File(path) as file:
        np.testing.assert_array_equal(file["d"][:], values)


def test_chunks_fit_blocks():
    fitting = pumice.dask._fitting
    assert fitting(339, (1032, 1032, 688, 100)) == 344
    assert fitting(339, (700,)) == 339 and fitting(339, (1000, 1001, 5)) == 339
    assert fitting(339, (500, 500, 500)) == 250 or fitting(339, (500, 500, 500)) == 500
    assert fitting(10, (7, 7, 7)) == 7 and fitting(10, (3, 3, 1)) == 10
