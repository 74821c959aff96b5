"""Writing: Pumice beside h5py, and beside plain pwrite, in one run.

    cargo build --release --manifest-path bench/writers/Cargo.toml
    python bench/writers.py [--count 100000] [--rows 1000000] [--gib 1] [--rounds 3] [--cpu]

Objects in one group and attributes on one object are created, found and deleted, --count of them
and a quarter of that, so that what is not linear shows; rows are appended one at a time; a contiguous
dataset of --gib GiB is written in pieces of 8 MiB. Every measurement is a process of its own. Peers
take turns; the tables give medians in seconds: those of the clock or, with --cpu, those that the
process was computing, system calls included, which other programs on the machine disturb less.
"""

import argparse
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE / "writers" / "target" / "release" / "pumice-bench-writers"
COLUMNS = 8
# The most bytes of a file without objects or attributes.
LEFT = 2048


def scattered(count):
    step = int(count * 0.618) | 1
    while math.gcd(step, count) != 1:
        step += 1
    return (number * step % count for number in range(count))


def objects(count, path):
    laps = [time.perf_counter()]
    with h5py.File(path, "w", libver="v110") as file:
        for number in range(count):
            file.create_group(f"group {number}")
    laps.append(time.perf_counter())
    with h5py.File(path, "r+", libver="v110") as file:
        for number in scattered(count):
            file[f"group {number}"]
        laps.append(time.perf_counter())
        for number in scattered(count):
            del file[f"group {number}"]
    laps.append(time.perf_counter())
    return laps


def attributes(count, path):
    laps = [time.perf_counter()]
    with h5py.File(path, "w", libver="v110") as file:
        named = file.create_group("group").attrs
        for number in range(count):
            named[f"attribute {number}"] = number
    laps.append(time.perf_counter())
    with h5py.File(path, "r+", libver="v110") as file:
        named = file["group"].attrs
        for number in scattered(count):
            assert named[f"attribute {number}"] == number
        laps.append(time.perf_counter())
        for number in scattered(count):
            del named[f"attribute {number}"]
    laps.append(time.perf_counter())
    return laps


def append(count, path):
    laps = [time.perf_counter()]
    with h5py.File(path, "w", libver="v110") as file:
        shape, most = (0, COLUMNS), (None, COLUMNS)
        made = file.create_dataset("rows", shape, "f8", maxshape=most, chunks=(1024, COLUMNS))
        for row in range(count):
            made.resize(row + 1, axis=0)
            made[row] = np.full(COLUMNS, row, "f8")
    laps.append(time.perf_counter())
    return laps


def contiguous(gib, path):
    piece = np.arange(2**21, dtype="f4")
    laps = [time.perf_counter()]
    with h5py.File(path, "w", libver="v110") as file:
        made = file.create_dataset("d", (gib * 128, piece.size), "f4")
        for row in range(gib * 128):
            made[row] = piece
    laps.append(time.perf_counter())
    return laps


def computed():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(writer, operation, count, folder, cpu):
    path = pathlib.Path(folder) / f"{writer}.h5"
    if writer == "h5py":
        command = [sys.executable, __file__, "--h5py", operation, str(count), str(path)]
    else:
        operation = "pwrite" if writer == "pwrite" else operation
        command = [str(PROGRAM), operation, str(count), str(path)]
    before = computed()
    done = subprocess.run(command, capture_output=True, text=True)
    used = computed() - before
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    size = path.stat().st_size
    path.unlink()
    return [used] if cpu else [float(text) for text in done.stdout.split()], size


def medians(writers, operation, count, rounds, folder, cpu):
    times, sizes = {writer: [] for writer in writers}, {}
    for number in range(rounds):
        # Nobody is always the first to touch memory that the last one gave back.
        first = number % len(writers)
        for writer in writers[first:] + writers[:first]:
            laps, sizes[writer] = measure(writer, operation, count, folder, cpu)
            times[writer].append(laps)
    middle = {
        writer: [statistics.median(step) for step in zip(*laps)] for writer, laps in times.items()
    }
    return middle, sizes


def many(count, *settings):
    print("| | h5py | Pumice | times as fast | four times as many take |")
    print("|---|---|---|---|---|")
    for operation in ("objects", "attributes"):
        small, _ = medians(["h5py", "Pumice"], operation, count // 4, *settings)
        large, sizes = medians(["h5py", "Pumice"], operation, count, *settings)
        verbs = ["create", "find", "delete"]
        if len(large["h5py"]) == 1:
            verbs = ["create, find and delete"]
        for step, verb in enumerate(verbs):
            theirs, ours = large["h5py"][step], large["Pumice"][step]
            growth = f"{ours / small['Pumice'][step]:.1f} (h5py {theirs / small['h5py'][step]:.1f})"
            print(
                f"| {verb} {count:,} {operation} | {theirs:.2f} | {ours:.2f} | "
                f"{theirs / ours:.1f} | {growth} times as long |",
                flush=True,
            )
        print(
            f"| bytes of the file when all {operation} are deleted | "
            f"{sizes['h5py']:,} | {sizes['Pumice']:,} | | |"
        )
        if sizes["Pumice"] > LEFT:
            sys.exit(f"the file is not cut when all {operation} are deleted")
    print()


def rows(count, *settings):
    found, _ = medians(["h5py", "Pumice"], "append", count, *settings)
    (theirs,), (ours,) = found["h5py"], found["Pumice"]
    print("| | h5py | Pumice | times as fast |")
    print("|---|---|---|---|")
    print(f"| append {count:,} rows | {theirs:.2f} | {ours:.2f} | {theirs / ours:.1f} |\n")


def large(gib, *settings):
    found, _ = medians(["pwrite", "Pumice", "h5py"], "contiguous", gib, *settings)
    plain = found["pwrite"][0]
    print("| | pwrite | Pumice | h5py |")
    print("|---|---|---|---|")
    seconds = [found[writer][0] for writer in ("pwrite", "Pumice", "h5py")]
    print(f"| {gib} GiB contiguous | " + " | ".join(f"{value:.2f}" for value in seconds) + " |")
    speeds = " | ".join(f"{plain / value * 100:.0f} %" for value in seconds)
    print(f"| speed of pwrite reached | {speeds} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--gib", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="seconds of computing, not of the clock")
    parser.add_argument("--folder", help="where files are written; a temporary folder unless given")
    parser.add_argument("--h5py", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.h5py:
        operation, count, path = options.h5py
        laps = globals()[operation](int(count), path)
        print(*(after - before for before, after in zip(laps, laps[1:])))
        return
    if not PROGRAM.exists():
        sys.exit(f"build it first: cargo build --release --manifest-path {HERE}/writers/Cargo.toml")
    folder = options.folder or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        settings = (options.rounds, scratch, options.cpu)
        if options.count:
            many(options.count, *settings)
        if options.rows:
            rows(options.rows, *settings)
        if options.gib:
            large(options.gib, *settings)


if __name__ == "__main__":
    main()
