"""Parts B (large), C and E: what the shared chunk cache is for."""

import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import peers

os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

import h5py

HERE = pathlib.Path(__file__).resolve().parent
DATASETS, ROWS, COLUMNS, CHUNK_ROWS, PIECE = 2000, 1000, 64, 100, 10
ACCESSES = 20_000
LIMIT = 64 << 20


# ---------------------------------------------------------------- C: many datasets
def create_many(path, count):
    rng = np.random.default_rng(303)
    data = np.round(np.cumsum(rng.normal(0, 1, (ROWS, COLUMNS)), 0), 2)
    with h5py.File(path, "w", libver="latest") as file:
        for i in range(count):
            file.create_dataset(
                f"d{i:04d}", data=data + i, chunks=(CHUNK_ROWS, COLUMNS), **peers.GZIP
            )


def accesses(count, total):
    """Dataset and first row of each access: 95 in 100 go to one dataset in fifty."""
    rng = np.random.default_rng(404)
    hot = rng.integers(0, max(1, count // 50), total) * 50
    chosen = np.where(rng.random(total) < 0.95, hot, rng.integers(0, count, total))
    return np.stack([chosen, rng.integers(0, ROWS - PIECE, total)], 1).astype("<u8")


def memory_kb(name):
    status = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith(name))


def h5py_worker(path, list_path, count, write, cache, share):
    """The same as the Rust side does, in a process of its own; prints the figures."""
    write, share = write == "write", int(share)
    steps = np.fromfile(list_path, "<u8").reshape(-1, 2).tolist()
    steps = steps[: len(steps) // share]
    options = {} if cache == "default" else {"rdcc_nbytes": int(cache), "rdcc_nslots": 521}
    base, start = memory_kb("VmRSS"), time.perf_counter()
    file = h5py.File(path, "r+" if write else "r", libver="latest", **options)
    datasets = [file["d0000"]]
    one = memory_kb("VmRSS")
    datasets += [file[f"d{i:04d}"] for i in range(1, int(count))]
    opening, opened = time.perf_counter() - start, memory_kb("VmRSS")
    total, passes, ones = 0.0, [], np.ones((PIECE, COLUMNS))
    # Without a cache that holds a chunk, the second pass costs what the first did.
    for number in range(2 if share == 1 else 1):
        start = time.perf_counter()
        for dataset, row in steps:
            if write:
                datasets[dataset][row : row + PIECE] = ones
            else:
                total += datasets[dataset][row : row + PIECE][0, 0]
        if write and (number == 1 or share > 1):
            file.close()
        passes.append((time.perf_counter() - start) * share)
    memory = [base, one, opened, memory_kb("VmHWM")]
    print(json.dumps([opening, passes[0], passes[-1], total, *memory]))


def ask_h5py(path, listed, count, mode, cache, share):
    command = [sys.executable, __file__, path, listed, count, mode, cache, share]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def ask_pumice(binary, path, listed, count, mode):
    program = peers.Program(binary)
    answer = program.ask("many", path, listed, count, mode, LIMIT)
    program.close()
    return [float(word) for word in answer.split()]


def many_part(arguments, work):
    count = 200 if arguments.quick else DATASETS
    total = ACCESSES // 10 if arguments.quick else ACCESSES
    path, listed = work / "many.h5", work / "accesses.bin"
    create_many(path, count)
    accesses(count, total).tofile(listed)
    # Bounded to the same total, h5py has less than a chunk for each dataset: it keeps nothing,
    # and a fifth of the accesses tells the rest.
    bounded = LIMIT // DATASETS
    print(f"\n## C. {count:,} datasets open, {total:,} accesses of {PIECE} rows, 64 MiB in all\n")
    head = "open, s | first pass, s | second pass, s | KB per open dataset | peak over the start, MiB"
    print(f"| | {head} |\n|---|---|---|---|---|---|")
    for mode in ("read", "write"):
        copy = work / "many-changed.h5"
        figures = {}
        for name in ("Pumice", "h5py, same total", "h5py, default"):
            if mode == "write":
                copy.write_bytes(path.read_bytes())
            place = copy if mode == "write" else path
            if name == "Pumice":
                figures[name] = ask_pumice(arguments.program, place, listed, count, mode)
            elif name == "h5py, default":
                figures[name] = ask_h5py(place, listed, count, mode, "default", 1)
            else:
                figures[name] = ask_h5py(place, listed, count, mode, bounded, 5)
            opening, first, second, _, base, one, opened, peak = figures[name]
            per, over = (opened - one) / (count - 1), (peak - base) / 1024
            cells = [f"{opening:.2f}", f"{first:.3f}", f"{second:.3f}", f"{per:.1f}", f"{over:.0f}"]
            print(f"| {name}, {mode} | " + " | ".join(cells) + " |", flush=True)
        mine, other = figures["Pumice"], figures["h5py, same total"]
        ratios = ", ".join(f"{other[i] / mine[i]:.1f}x" for i in (1, 2))
        print(f"| Pumice against h5py with the same total, {mode}: {ratios} | | | | | |")
        if mode == "read" and abs(mine[3] - figures["h5py, default"][3]) > 1e-3 * abs(mine[3]):
            sys.exit("Pumice and h5py read different values")


# ---------------------------------------------------------------- E: the second thread
def threads_part(arguments, program, path, data):
    print("\n## E. The second thread on a compressed full read\n")
    print("| | one thread, ms | two threads, ms | gain |\n|---|---|---|---|")
    count, total = data.expected("read all")
    gains = {}
    for name, verb in (("Pumice", "threads"), ("control without locks", "threads-control")):
        best = {}
        for threads in (1, 2):
            times = []
            for _ in range(arguments.rounds):
                seconds, found = program.measure(verb, path, threads)
                if found[0] != count or abs(found[1] - total) > 1e-6 * max(1.0, abs(total)):
                    sys.exit(f"{name} read {found}, not {(count, total)}")
                times.append(seconds)
            # The best: what the machine can do when it is left alone.
            best[threads] = min(times) * 1e3
        gains[name] = best[1] / best[2]
        print(f"| {name} | {best[1]:.0f} | {best[2]:.0f} | {gains[name]:.2f}x |", flush=True)
    ratio = gains["Pumice"] / gains["control without locks"]
    print(f"\nPumice's gain is {ratio:.2f} of the control's.")


if __name__ == "__main__":
    h5py_worker(*sys.argv[1:])
