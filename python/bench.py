"""Pumice beside h5py, in one run: ratios of the best of several turns. Times depend on the machine, ratios less.

    PYTHONPATH=python python python/bench.py [name ...]

The package must be built for speed: `scripts/wheel --install`, not `--dev`.
"""

import os
import sys
import tempfile
import threading
import time

import h5py
import numpy as np

import pumice

BOTH = {"pumice": pumice, "h5py": h5py}
TURNS = 5


def best(act, turns=TURNS):
    """The shortest of several turns."""
    times = []
    for _ in range(turns):
        begin = time.perf_counter()
        act()
        times.append(time.perf_counter() - begin)
    return min(times)


def beside(name, aim, acts, turns=TURNS):
    """Measures what both do, turn by turn, and prints how many times as fast pumice is."""
    times = {who: float("inf") for who in acts}
    for _ in range(turns):
        for who, act in acts.items():
            times[who] = min(times[who], best(act, 1))
    ratio = times["h5py"] / times["pumice"]
    print(f"{name:44} {times['pumice'] * 1e3:10.2f} ms {times['h5py'] * 1e3:10.2f} ms {ratio:7.2f}x  (aim {aim}x)")


def windows(folder):
    """Windows of a compressed dataset that is cached."""
    path = f"{folder}/windows.h5"
    data = np.random.default_rng(0).integers(0, 1000, (2048, 2048)).astype("f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=data, chunks=(256, 256), compression="gzip")
    places = np.random.default_rng(1).integers(0, 448, (2000, 2)).tolist()
    files = {who: module.File(path, "r", rdcc_nbytes=1 << 26) for who, module in BOTH.items()}
    sets = {who: file["d"] for who, file in files.items()}

    def act(dataset):
        for row, column in places:
            dataset[row : row + 64, column : column + 64]

    beside("2,000 windows of 64 x 64, cached", 2.5, {who: lambda d=d: act(d) for who, d in sets.items()})
    [file.close() for file in files.values()]


def opening(folder):
    """Opening a file and reading an attribute."""
    path = f"{folder}/opening.h5"
    with h5py.File(path, "w") as file:
        file.attrs["answer"] = 42

    def act(module):
        for _ in range(500):
            with module.File(path, "r") as file:
                file.attrs["answer"]

    beside("500 times: open, one scalar attribute", 2, {who: lambda m=m: act(m) for who, m in BOTH.items()})


def large(folder):
    """All of a compressed dataset, and two threads that read disjoint windows."""
    path = f"{folder}/large.h5"
    data = np.cumsum(np.random.default_rng(0).integers(-3, 4, 1 << 26), dtype="i4").reshape(8192, 8192)
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=data, chunks=(256, 1024), compression="gzip", shuffle=True)
    del data

    def act(module):
        with module.File(path, "r", **({"cache": pumice.Cache(limit=1 << 28)} if module is pumice else {})) as file:
            file["d"][...]

    beside("256 MiB, compressed, read whole", 3.5, {who: lambda m=m: act(m) for who, m in BOTH.items()}, 3)

    def threads(module, count, **options):
        with module.File(path, "r", **options) as file:
            dataset, step = file["d"], 8192 // count

            def part(at):
                for row in range(at * step, at * step + step, 256):
                    dataset[row : row + 256]

            running = [threading.Thread(target=part, args=(at,)) for at in range(count)]
            [thread.start() for thread in running]
            [thread.join() for thread in running]

    def alone(count):
        # One thread of its own for each call: the second thread of the program brings the second processor.
        threads(pumice, count, cache=pumice.Cache(limit=1 << 20, threads=1))

    one, two = best(lambda: alone(1), 3), best(lambda: alone(2), 3)
    print(f"{'two threads of one':44} {two * 1e3:10.2f} ms {one * 1e3:10.2f} ms {one / two:7.2f}x  (aim 1.7x)")
    acts = {"pumice": lambda: threads(pumice, 2), "h5py": lambda: threads(h5py, 2)}
    beside("two threads, disjoint windows", 3, acts, 3)


def strings(folder):
    """A million strings, as StringDType and as objects."""
    words = [f"sample {n} of {n % 97}" for n in range(1_000_000)]
    forms = {"objects": np.array(words, dtype=object), "StringDType": np.array(words, dtype=np.dtypes.StringDType())}
    for form, array in forms.items():
        def write(who, module):
            with module.File(f"{folder}/{who}.h5", "w") as file:
                file.create_dataset("s", data=array, dtype=h5py.string_dtype() if form == "objects" else None)

        def read(who, module):
            with module.File(f"{folder}/{who}.h5", "r") as file:
                file["s"][...] if form == "objects" else file["s"].astype("T")[...]

        beside(f"a million strings, {form}, write", 4, {who: lambda w=who, m=m: write(w, m) for who, m in BOTH.items()}, 3)
        beside(f"a million strings, {form}, read", 4, {who: lambda w=who, m=m: read(w, m) for who, m in BOTH.items()}, 3)


def scattered(folder):
    """Many indices on one axis."""
    path = f"{folder}/scattered.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=np.arange(5_000_000), chunks=(50_000,), compression="gzip")
    places = np.sort(np.random.default_rng(0).choice(5_000_000, 644_742, replace=False))
    with pumice.File(path, "r") as file:
        took = best(lambda: file["d"][places], 3)
        assert np.array_equal(file["d"][places], places)
    print(f"{'644,742 scattered indices':44} {took * 1e3:10.2f} ms {'':13} {'':8}  (aim below 1,000 ms)")


def attributes(folder):
    """Many attributes, written and read."""
    count = 20_000

    def write(who, module):
        with module.File(f"{folder}/attrs_{who}.h5", "w", libver="latest") as file:
            attrs = file.create_group("g", track_order=True).attrs
            for at in range(count):
                attrs[f"attribute {at}"] = at

    def read(who, module):
        with module.File(f"{folder}/attrs_{who}.h5", "r") as file:
            attrs = file["g"].attrs
            for at in range(count):
                attrs[f"attribute {at}"]

    for name, act in (("written", write), ("read", read)):
        beside(f"{count:,} attributes {name}", 5, {who: lambda w=who, m=m: act(w, m) for who, m in BOTH.items()}, 2)


def sparse(folder):
    """A matrix of 3 %, as CSR, beside anndata's way of reading one."""
    import anndata
    import scipy.sparse

    rng = np.random.default_rng(0)
    matrix = scipy.sparse.random(20_000, 10_000, density=0.03, format="csr", dtype="f4", random_state=rng)
    path, old = f"{folder}/sparse.h5", f"{folder}/sparse.h5ad"
    begin = time.perf_counter()
    with pumice.File(path, "w") as file:
        pumice.from_scipy(file, "m", matrix)
    print(f"{'6 million cells, write CSR':44} {(time.perf_counter() - begin) * 1e3:10.2f} ms")
    anndata.AnnData(X=matrix).write_h5ad(old, compression="gzip")
    order = rng.permutation(20_000)
    with pumice.File(path, "r") as file, h5py.File(old, "r") as peer:
        data, backed = file["m"], anndata.io.sparse_dataset(peer["X"])
        beside("6 million cells, read as CSR", "-", {"pumice": data.to_csr, "h5py": backed.to_memory}, 3)
        took = best(data.to_csc, 3)
        print(f"{'6 million cells, read as CSC':44} {took * 1e3:10.2f} ms")
        loader = pumice.Loader(data, batch=256, drop_last=True)
        begin = time.perf_counter()
        count = sum(batch.shape[0] for _ in range(3) for batch in loader)
        mine = count / (time.perf_counter() - begin)
        begin = time.perf_counter()
        for at in range(4):
            backed[np.sort(order[at * 256 : at * 256 + 256])]
        theirs = 4 * 256 / (time.perf_counter() - begin)
        print(f"{'random rows a second, batches of 256':44} {mine:13,.0f} {theirs:13,.0f} {mine / theirs:7.1f}x  (aim 20x)")


ALL = [windows, opening, large, strings, scattered, attributes, sparse]


def main():
    """Runs all, or those that are named."""
    wanted = sys.argv[1:]
    print(f"{'':44} {'pumice':>13} {'h5py':>13}")
    with tempfile.TemporaryDirectory(dir=os.environ.get("PUMICE_BENCH")) as folder:
        for act in ALL:
            if not wanted or act.__name__ in wanted:
                act(folder)


if __name__ == "__main__":
    main()
