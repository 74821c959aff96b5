"""Dense reads with one thread: Pumice beside h5py, rust-hdf5 and hdf5-reader, in one run.

    python bench/readers.py [--edge 8192] [--rounds 5] [--gib 1]

Writes, with h5py, float32 in 256 x 256 chunks with shuffle and deflate 4, and a contiguous dataset of
--gib GiB; every measurement is a process of its own that opens the file, reads and ends. Peers take
turns; the table gives medians in milliseconds.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE / "readers" / "target" / "release" / "pumice-bench-readers"
LINES = 128


def write(path, edge):
    rng = np.random.default_rng(1)
    data = np.cumsum(rng.normal(size=(edge, edge)).astype("f4"), axis=1).round(2)
    with h5py.File(path, "w", libver="latest") as file:
        options = {"shuffle": True, "compression": "gzip", "compression_opts": 4}
        file.create_dataset("d", data=data, chunks=(256, 256), **options)


def write_contiguous(path, gib):
    edge = int((gib * 2**28) ** 0.5)
    with h5py.File(path, "w", libver="latest") as file:
        made = file.create_dataset("d", (edge, edge), "f4")
        line = np.arange(edge, dtype="f4")
        for row in range(0, edge, 512):
            made[row : row + 512] = line


def with_h5py(operation, path):
    began = time.perf_counter()
    with h5py.File(path) as file:
        dataset = file["d"]
        middle = dataset.shape[0] // 2
        if operation == "all":
            total = sum_of(dataset[...])
        elif operation == "rows":
            total = sum(sum_of(dataset[row]) for row in range(middle, middle + LINES))
        else:
            total = sum(sum_of(dataset[:, column]) for column in range(middle, middle + LINES))
    print(time.perf_counter() - began, total)


def sum_of(values):
    return float(values.ravel()[::4099].astype("f8").sum())


def measure(reader, operation, path):
    if reader == "h5py":
        command = [sys.executable, __file__, "--h5py", operation, str(path)]
    else:
        command = [str(PROGRAM), operation, reader, str(path)]
    seconds, total = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.split()
    return float(seconds), float(total)


def table(title, path, operations, readers, rounds):
    print(f"| {title} | " + " | ".join(readers) + " |")
    print("|---" * (len(readers) + 1) + "|")
    for operation in operations:
        times, totals = {reader: [] for reader in readers}, {}
        for _ in range(rounds):
            for reader in readers:
                seconds, totals[reader] = measure(reader, operation, path)
                times[reader].append(seconds)
        wanted = totals["h5py" if "h5py" in totals else readers[0]]
        for reader, total in totals.items():
            if reader != "pread" and abs(total - wanted) > 1e-6 * abs(wanted):
                raise SystemExit(f"{reader} read something else: {total}, not {wanted}")
        medians = [f"{1000 * statistics.median(times[reader]):.0f}" for reader in readers]
        print(f"| {operation} | " + " | ".join(medians) + " |", flush=True)


def main():
    if sys.argv[1:2] == ["--h5py"]:
        return with_h5py(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edge", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--folder", help="where the files are kept between runs")
    options = parser.parse_args()
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=HERE / "readers", check=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.folder or temporary)
        chunked, contiguous = folder / f"{options.edge}.h5", folder / f"{options.gib}.h5"
        if not chunked.exists():
            write(chunked, options.edge)
        if not contiguous.exists():
            write_contiguous(contiguous, options.gib)
        readers = ["pumice", "h5py", "rust-hdf5", "hdf5-reader"]
        table("chunked, ms", chunked, ["all", "rows", "columns"], readers, options.rounds)
        print()
        table("contiguous, ms", contiguous, ["all"], ["pumice", "pread", "h5py"], options.rounds)


if __name__ == "__main__":
    main()
