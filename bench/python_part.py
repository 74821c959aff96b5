"""Pumice beside h5py, in one run: ratios of the best of several turns. Times depend on the machine, ratios less.

    bash scripts/wheel --install && python bench/python_part.py [name ...]

PUMICE_H5AD names a real file for the loader, PUMICE_PLOT a picture of its memory.
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
    path, rows = f"{folder}/large.h5", 32_768
    data = np.cumsum(np.random.default_rng(0).integers(-3, 4, rows * 8192, dtype="i4"), dtype="i4").reshape(rows, 8192)
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=data, chunks=(256, 1024), compression="gzip", shuffle=True)
    del data

    def act(module):
        with module.File(path, "r") as file:
            file["d"][...]

    beside("1 GiB, compressed, read whole", 3.5, {who: lambda m=m: act(m) for who, m in BOTH.items()}, 3)

    def threads(module, count, **options):
        with module.File(path, "r", **options) as file:
            dataset, step = file["d"], rows // count

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
    count = 100_000

    def write(who, module):
        with module.File(f"{folder}/attrs_{who}.h5", "w", libver="latest") as file:
            attrs = file.create_group("g").attrs
            for at in range(count):
                attrs[f"attribute {at}"] = at

    def read(who, module):
        with module.File(f"{folder}/attrs_{who}.h5", "r") as file:
            attrs = file["g"].attrs
            for at in range(count):
                attrs[f"attribute {at}"]

    for name, act in (("written", write), ("read", read)):
        beside(f"{count:,} attributes {name}", 5, {who: lambda w=who, m=m: act(w, m) for who, m in BOTH.items()}, 2)


def matrix(rows=20_000, columns=10_000):
    """A matrix of 3 %."""
    import scipy.sparse

    rng = np.random.default_rng(0)
    return scipy.sparse.random(rows, columns, density=0.03, format="csr", dtype="f4", random_state=rng)


def sparse(folder):
    """A matrix of 3 %, read and written whole."""
    import anndata

    given, path, old = matrix(), f"{folder}/sparse.h5", f"{folder}/sparse.h5ad"

    def write():
        with pumice.File(path, "w") as file:
            pumice.from_scipy(file, "m", given)

    def write_old():
        anndata.AnnData(X=given).write_h5ad(old, compression="gzip")

    beside("6 million cells, write CSR", "-", {"pumice": write, "h5py": write_old}, 2)
    with pumice.File(path, "r") as file, h5py.File(old, "r") as peer:
        data, backed = file["m"], anndata.io.sparse_dataset(peer["X"])
        beside("6 million cells, read as CSR", "-", {"pumice": data.to_csr, "h5py": backed.to_memory}, 3)
        beside("6 million cells, read as CSC", "-", {"pumice": data.to_csc, "h5py": lambda: backed.to_memory().tocsc()}, 2)


def resident():
    """MiB of memory that the process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def rows_a_second(batches, seconds=4.0):
    """How many rows of batches somebody gets in a second, for so many seconds at most."""
    count, begin = 0, time.perf_counter()
    for batch in batches:
        count += batch.shape[0]
        if time.perf_counter() - begin > seconds:
            break
    return count / (time.perf_counter() - begin)


def loader(folder):
    """Random batches of 256 rows as CSR beside anndata's backed and lazy modes; memory over ten epochs."""
    import anndata
    import dask

    given = matrix()
    real = os.environ.get("PUMICE_H5AD")  # raw/X of a real file, repeated
    cases = {"3 %": given}
    if real:
        import scipy.sparse

        with h5py.File(real) as file:
            one = anndata.io.sparse_dataset(file["raw/X"]).to_memory()
        cases["real"] = scipy.sparse.vstack([one] * (20_000 // one.shape[0] + 1)).tocsr()
    for name, rows in cases.items():
        path, old = f"{folder}/loader.h5", f"{folder}/loader.h5ad"
        with pumice.File(path, "w") as file:
            pumice.from_scipy(file, "m", rows)
        for way in ("gzip", None):
            anndata.AnnData(X=rows).write_h5ad(old, compression=way)
            order = np.random.default_rng(0).permutation(rows.shape[0])
            batches = [np.sort(order[at : at + 256]) for at in range(0, len(order) - 255, 256)]
            with pumice.File(path, "r") as file:
                mine = rows_a_second(batch for _ in range(50) for batch in pumice.Loader(file["m"], batch=256))
            with h5py.File(old, "r") as peer:
                backed = anndata.io.sparse_dataset(peer["X"])
                theirs = rows_a_second(backed[part] for part in batches)
            lazy = anndata.experimental.read_lazy(old).X
            with dask.config.set(scheduler="threads", num_workers=2):
                later = rows_a_second(lazy[part].compute() for part in batches)
            head = f"rows a second, batches of 256, {name}, {way or 'no'} filter"
            print(f"{head:44} {mine:13,.0f} {theirs:13,.0f} {mine / theirs:7.1f}x  (aim 20x)")
            print(f"{'  anndata lazy, two threads':44} {'':13} {later:13,.0f} {mine / later:7.1f}x  (aim 3x)")
    with pumice.File(path, "r") as file:
        batches, marks = pumice.Loader(file["m"], batch=256), []
        for _ in range(10):
            for batch in batches:
                pass
            marks.append(resident())
    print("MiB resident after each of ten epochs: " + ", ".join(f"{mark:.0f}" for mark in marks))
    draw = os.environ.get("PUMICE_PLOT")
    if draw:
        with open(draw, "w") as file:
            file.write(picture(marks))


def picture(marks):
    """A line of memory over epochs, as SVG."""
    top = 1.2 * max(marks)
    at = [(60 + 40 * number, 200 - 160 * mark / top) for number, mark in enumerate(marks)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#2a6f97"/>' for x, y in at)
    labels = "".join(f'<text x="{x:.1f}" y="218" text-anchor="middle">{number + 1}</text>' for number, (x, _) in enumerate(at))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="480" height="250" font-family="sans-serif" font-size="12">'
        '<rect width="480" height="250" fill="white"/>'
        '<text x="240" y="20" text-anchor="middle">Memory of a process that reads batches of 256 rows, MiB</text>'
        f'<line x1="50" y1="200" x2="440" y2="200" stroke="#888"/><polyline points="{line}" fill="none" stroke="#2a6f97"/>'
        f'{dots}{labels}<text x="240" y="238" text-anchor="middle">epoch</text>'
        f'<text x="440" y="{at[-1][1] - 10:.1f}" text-anchor="end">{marks[-1]:.0f}</text></svg>\n'
    )


ALL = [windows, opening, large, strings, scattered, attributes, sparse, loader]


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
