"""Loaders, and what becomes of files in other processes."""

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import traceback

import numpy as np
import pytest
import scipy.sparse

import pumice


@pytest.fixture
def stored(path):
    """A sparse matrix whose first column says which row it is, labels, and images."""
    given = scipy.sparse.random_array((103, 40), density=0.1, rng=np.random.default_rng(3), format="lil")
    given[:, 0] = np.arange(1, 104)[:, None]
    given = given.tocsr()
    with pumice.File(path, "w") as file:
        pumice.from_scipy(file, "x", given, chunks=(16, 16))
        file["y"] = np.arange(103) * 10
        file.create_dataset("z", data=np.arange(103 * 6).reshape(103, 2, 3), chunks=(10, 2, 3), compression="gzip")
    return path, given


def seen(batches):
    return [int(row) - 1 for batch in batches for row in batch[:, [0]].toarray().reshape(-1)]


def test_batches_have_the_rows_that_they_should(stored):
    path, given = stored
    with pumice.File(path) as file:
        loader = pumice.Loader(file["x"], file["y"], file["z"], batch=10, seed=5)
        order, batches = loader.order(0), list(loader)
        assert len(batches) == len(loader) == 11
        assert sorted(order) == list(range(103)) and list(order) != sorted(order)
        for at, (x, y, z) in enumerate(batches):
            rows = order[at * 10 : at * 10 + 10]
            np.testing.assert_array_equal(x.toarray(), given.toarray()[rows])
            np.testing.assert_array_equal(y, rows * 10)
            np.testing.assert_array_equal(z, np.arange(103 * 6).reshape(103, 2, 3)[rows])


def test_epochs_and_seeds_decide_about_the_order(stored):
    with pumice.File(stored[0]) as file:
        loader, other = pumice.Loader(file["x"], seed=1), pumice.Loader(file["x"], seed=1)
        first, second = seen(loader), seen(loader)
        assert first != second and sorted(first) == sorted(second)
        other.set_epoch(1)
        assert seen(other) == second
        assert seen(pumice.Loader(file["x"], seed=2)) != first
        assert seen(pumice.Loader(file["x"], shuffle=False, ahead=0)) == list(range(103))
        blocks = seen(pumice.Loader(file["x"], block=8, batch=8))
        assert all(b == a + 1 for a, b in zip(blocks, blocks[1:]) if a % 8 != 7 and a != 102) and blocks != sorted(blocks)
        some = seen(pumice.Loader(file["x"], rows=[5, 7, 100]))
        assert sorted(some) == [5, 7, 100]
        with pytest.raises(ValueError):
            pumice.Loader(file["x"], file["z"][:5])
        with pytest.raises(ValueError):
            pumice.Loader(file["x"], rank=2, world=2)


def test_ranks_share_the_batches(stored):
    with pumice.File(stored[0]) as file:
        loaders = [pumice.Loader(file["x"], batch=8, rank=rank, world=3) for rank in range(3)]
        shares = [seen(loader) for loader in loaders]
        assert sorted(sum(shares, [])) == list(range(103))
        even = [pumice.Loader(file["x"], batch=8, rank=rank, world=5, drop_last=True) for rank in range(5)]
        assert {len(loader) for loader in even} == {2} and {len(seen(loader)) for loader in even} == {16}


def test_somebody_may_stop_in_the_middle_and_errors_arrive(stored):
    with pumice.File(stored[0]) as file:
        loader = pumice.Loader(file["x"], batch=3)
        for _ in range(20):
            next(iter(loader))

        def fail(batch):
            raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            list(pumice.Loader(file["x"], transform=fail))


def _worker(loader, queue):
    queue.put(seen(loader))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_workers_of_both_kinds_read(stored, way):
    context = multiprocessing.get_context(way)
    with pumice.File(stored[0]) as file:
        queue = context.Queue()
        list(pumice.Loader(file["x"]))  # the parent's threads have run
        loaders = [pumice.Loader(file["x"], batch=7, rank=rank, world=2) for rank in range(2)]
        workers = [context.Process(target=_worker, args=(loader, queue)) for loader in loaders]
        [worker.start() for worker in workers]
        found = [queue.get(timeout=60) for _ in workers]
        [worker.join(60) for worker in workers]
        assert [worker.exitcode for worker in workers] == [0, 0]
        assert sorted(sum(found, [])) == list(range(103))
        assert file["x"].nnz > 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_reads_with_a_cache_of_its_own_and_leaves_writers_alone(stored, tmp_path):
    path, given = stored
    own = pumice.Cache(limit=1 << 20, threads=2)
    reader = pumice.File(path, "r", cache=own)
    x, y = reader["x"], reader["y"]
    x[...]
    writer = pumice.File(tmp_path / "w.h5", "w")
    data = writer.create_dataset("d", (1000,), "i8", chunks=(10,), compression="gzip")
    data[:500] = 1
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert np.array_equal(x[...], given.toarray()) and y[3] == 30 and reader["z"].shape == (103, 2, 3)
            assert own.stats()["loads"] > 0
            with pumice.File(path, "r") as again:
                assert again["y"][4] == 40
            for act in (lambda: data[0], lambda: writer.create_group("g"), lambda: writer.flush()):
                try:
                    act()
                except ValueError as error:
                    assert "forks" in str(error)
                else:
                    raise AssertionError("the child has the parent's file")
            writer.close()
            del data, x, y
            import gc

            gc.collect()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os.write(here, b"x")
            os._exit(status)
    os.read(there, 1)
    assert os.waitpid(child, 0)[1] == 0
    data[500:] = 2
    writer.close()
    reader.close()
    with pumice.File(tmp_path / "w.h5") as file:
        assert file["d"][:].tolist() == [1] * 500 + [2] * 500 and list(file) == ["d"]


def test_pickles_are_paths_and_writers_have_none(stored):
    path, given = stored
    with pumice.File(path, "r", locking=False) as file:
        again = pickle.loads(pickle.dumps([file, file["x"], file["z"]]))
        assert again[0]["y"][2] == 20 and again[1].nnz == given.nnz and again[2].shape == (103, 2, 3)
        assert again[1].file == again[2].file
        assert again[0].id.options["locking"] == "false"
        loader = pickle.loads(pickle.dumps(pumice.Loader(file["x"], batch=4, seed=3)))
        assert seen(loader) == seen(pumice.Loader(file["x"], batch=4, seed=3))
        del again, loader
        gc.collect()
    with pumice.File(path, "r+") as file, pytest.raises(TypeError, match="opened for reading"):
        pickle.dumps(file["x"])
    with pumice.File.in_memory() as file, pytest.raises(TypeError):
        pickle.dumps(file)


TORCH = """
import sys, types
torch, utils, data = types.ModuleType("torch"), types.ModuleType("torch.utils"), types.ModuleType("torch.utils.data")
class IterableDataset: pass
data.IterableDataset, data.worker = IterableDataset, None
data.get_worker_info = lambda: data.worker
sys.modules.update({"torch": torch, "torch.utils": utils, "torch.utils.data": data})
import pumice, pickle
with pumice.File(sys.argv[1]) as file:
    loader = pumice.Loader(file["y"], batch=10)
    assert isinstance(loader, IterableDataset) and isinstance(pickle.loads(pickle.dumps(loader)), IterableDataset)
    rows = []
    for worker in range(3):
        data.worker = types.SimpleNamespace(id=worker, num_workers=3)
        loader.set_epoch(4)
        rows += [int(one) for batch in loader for one in batch]
    assert sorted(rows) == [10 * n for n in range(103)], rows
"""


def test_a_loader_asks_torch_which_worker_it_is(stored):
    """With something in torch's place; python/tests/torch_program.py has the real one."""
    done = subprocess.run([sys.executable, "-c", TORCH, stored[0]], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


FORKS = """
import os, sys, threading
import pumice

path, stop = sys.argv[1], threading.Event()

def busy():
    while not stop.is_set():
        with pumice.File(path) as file:
            file["y"][:]

held = pumice.File(path)
y, wrong = held["y"], []
threads = [threading.Thread(target=busy) for _ in range(3)]
[thread.start() for thread in threads]
for turn in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        with pumice.File(path) as file:
            os._exit(0 if file["y"][2] == 20 and y[3] == 30 else 3)
    if os.waitpid(child, 0)[1]:
        wrong.append(turn)
stop.set()
[thread.join() for thread in threads]
sys.exit(bool(wrong))
"""


def test_a_fork_finds_nothing_locked(stored):
    """Other threads are always about to open, close and read files, so that many forks come amid one of these."""
    command = [sys.executable, "-W", "ignore", "-c", FORKS, stored[0], "150"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
