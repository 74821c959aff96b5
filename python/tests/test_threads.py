"""The cache, many datasets in one call, threads, and files that go with their objects."""

import gc
import threading
import time

import h5py
import numpy as np
import leak_program
import pytest

import pumice


def test_a_cache_counts(path):
    cache = pumice.Cache(limit=1 << 20, policy="lru", threads=1)
    with pumice.File(path, "w", cache=cache) as file:
        data = file.create_dataset("d", data=np.arange(10000), chunks=(100,), compression="gzip")
        assert data[5000] == 5000
    with pumice.File(path, "r", cache=cache) as file:
        before = cache.stats()
        file["d"][:100], file["d"][:100]
        after = cache.stats()
        assert after["loads"] == before["loads"] + 1 and after["hits"] > before["hits"]
    with pytest.raises(ValueError, match="lirs"):
        pumice.Cache(policy="best")


def test_many_datasets_in_one_call(path):
    with pumice.File(path, "w") as file:
        given = [np.random.default_rng(seed).random((50, 40)) for seed in range(6)]
        all_ = [file.create_dataset(f"d{n}", (50, 40), "f8", chunks=(10, 10), compression="gzip") for n in range(6)]
        pumice.write_many([(data, ..., value) for data, value in zip(all_, given)])
        file["text"] = ["a", "b"]
        reads = [(data, np.s_[5:20, ::3]) for data in all_] + [(file["text"], 0), (all_[0], np.s_[3, 4])]
        found = pumice.read_many(reads)
        for array, value in zip(found, given):
            np.testing.assert_array_equal(array, value[5:20, ::3])
        assert found[6] == b"a" and found[7] == given[0][3, 4]
        into = [np.zeros((50, 40), "f4") for _ in range(6)]
        assert pumice.read_many([(data, ...) for data in all_], out=into)[0] is into[0]
        np.testing.assert_array_equal(into[3], given[3].astype("f4"))
    with h5py.File(path, "r") as file:
        np.testing.assert_array_equal(file["d2"][...], given[2])


def test_threads_read_and_write_disjoint_windows(path):
    data = np.arange(400 * 300).reshape(400, 300)
    with pumice.File(path, "w") as file:
        dset = file.create_dataset("d", data.shape, data.dtype, chunks=(37, 41), compression="gzip")
        wrong = []

        def work(rows):
            dset[rows] = data[rows]
            for start in range(0, 290, 7):
                if not np.array_equal(dset[rows, start : start + 10], data[rows, start : start + 10]):
                    wrong.append((rows, start))

        threads = [threading.Thread(target=work, args=(slice(n * 50, n * 50 + 50),)) for n in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not wrong
        np.testing.assert_array_equal(dset[...], data)


def test_others_run_while_a_dataset_is_read(path):
    """A call that kept the interpreter would let nobody count while it decodes."""
    with pumice.File(path, "w") as file:
        file.create_dataset("d", data=np.random.default_rng(0).random(4_000_000), chunks=(100_000,), compression="gzip")
    counted, stop = [], threading.Event()

    def count():
        while not stop.is_set():
            counted.append(time.perf_counter())
            time.sleep(0.0005)

    with pumice.File(path, "r", cache=pumice.Cache(limit=1, threads=1)) as file:
        thread = threading.Thread(target=count)
        thread.start()
        begin = time.perf_counter()
        file["d"][...]
        end = time.perf_counter()
        stop.set()
        thread.join()
    assert sum(begin < at < end for at in counted) > 3


def test_a_file_goes_with_its_last_object(path):
    file = pumice.File(path, "w")
    group = file.create_group("g")
    del file
    gc.collect()
    group["x"] = 5
    del group
    gc.collect()
    with h5py.File(path, "r+") as file:
        assert file["g/x"][()] == 5


def test_closing_closes_everything(path):
    file = pumice.File(path, "w")
    group, data = file.create_group("g"), file.create_dataset("d", data=[1, 2])
    file.close()
    assert not file and not group and not data
    for act in (lambda: data[0], lambda: list(group), lambda: file["d"], lambda: data.attrs["x"]):
        with pytest.raises(ValueError):
            act()
    with pumice.File(path, "w") as again:
        assert len(again) == 0


def test_modes_and_their_errors(path):
    with pytest.raises(FileNotFoundError):
        pumice.File(path)
    pumice.File(path, "x").close()
    with pytest.raises(FileExistsError):
        pumice.File(path, "w-")
    with pumice.File(path, "r") as file:
        assert file.mode == "r"
        for act in (lambda: file.create_group("g"), lambda: file.create_dataset("d", data=1)):
            with pytest.raises(ValueError):
                act()
    with pumice.File(path, "a") as file:
        file["d"] = [1]
    with pumice.File(path, "r") as file, pytest.raises(OSError):
        file["d"][0] = 2
    path.write_bytes(b"no file of HDF5")
    with pytest.raises(OSError):
        pumice.File(path, "r")


def test_memory_stays_where_it_was(path):
    """leak_program.py does so a million times."""
    leak_program.make(path)
    leak_program.run(path, 500, lambda *told: None)
    _, before = leak_program.run(path, 500, lambda *told: None)
    _, after = leak_program.run(path, 2000, lambda *told: None)
    assert after - before < 4 << 20
