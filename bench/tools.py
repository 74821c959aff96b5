#!/usr/bin/env python3
"""The tools beside HDF5's: dump, repack and diff of a float64 dataset, and dump's memory.

    bench/tools.py [--size MIB] [--pumice target/release/pumice] [--folder /tmp]

Each pair runs one after the other on the same file, which is in the system's cache. Prints seconds,
ratios and the most memory that pumice took."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def peak(pid, most):
    """Keeps the most memory that a process had, in MiB, while it runs."""
    while most["running"]:
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            found = re.search(r"VmHWM:\s*(\d+)", status)
            most["memory"] = max(most["memory"], int(found.group(1)) / 1024 if found else 0)
        except OSError:
            pass
        time.sleep(0.02)


def run(words, out):
    """Seconds and MiB of a command; its standard output goes to `out`."""
    with open(out, "wb") as stream:
        began = time.perf_counter()
        process = subprocess.Popen(words, stdout=stream, stderr=subprocess.PIPE)
        most = {"running": True, "memory": 0}
        watcher = threading.Thread(target=peak, args=(process.pid, most))
        watcher.start()
        error = process.stderr.read()
        code = process.wait()
        took = time.perf_counter() - began
        most["running"] = False
        watcher.join()
    if code != 0:
        sys.exit(f"{' '.join(map(str, words))}: {error.decode()}")
    return took, most["memory"]


def compare(name, ours, theirs, wanted, out="/dev/null"):
    first, memory = run(ours, out)
    other, _ = run(theirs, out)
    ratio = other / first
    verdict = "" if ratio >= wanted else f"  (wanted: {wanted})"
    print(f"| {name} | {first:.2f} | {other:.2f} | {ratio:.1f}{verdict} | {memory:.0f} |", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--size", type=int, default=1024, help="MiB of the dataset")
    arguments.add_argument("--pumice", default=ROOT / "target/release/pumice")
    arguments.add_argument("--folder", default=tempfile.gettempdir())
    arguments.add_argument("--only", default="", help="dump, repack, diff or large")
    options = arguments.parse_args()
    import h5py
    import numpy

    wanted = lambda name: not options.only or name in options.only.split(",")
    pumice = options.pumice
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        one, other, packed = (pathlib.Path(folder) / name for name in ("a.h5", "b.h5", "c.h5"))
        rows = options.size * (1 << 20) // 8 // 1024
        random = numpy.random.default_rng(1)
        for path in (one, other):
            with h5py.File(path, "w") as file:
                data = file.create_dataset("d", (rows, 1024), "f8")
                random = numpy.random.default_rng(1)
                for start in range(0, rows, 4096):
                    count = min(4096, rows - start)
                    # Noise of a measuring device: some bits of each value say something.
                    values = random.normal(100, 20, (count, 1024)).round(3)
                    data[start:start + count] = values
        print(f"{options.size} MiB of float64\n")
        print("| | pumice, s | HDF5's, s | times as fast | pumice, MiB |")
        print("|---|---|---|---|---|")
        if wanted("diff"):
            compare("diff", [pumice, "diff", one, other], ["h5diff", one, other], 5)
        if wanted("dump"):
            compare("dump", [pumice, "dump", one], ["h5dump", one], 5)
        if wanted("repack"):
            filters = ["-l", "CHUNK=64x1024", "-f", "SHUF", "-f", "GZIP=6"]
            compare("repack", [pumice, "repack", *filters, one, packed],
                    ["h5repack", *filters, one, other], 3)
        if wanted("large"):
            large = pathlib.Path(folder) / "large.h5"
            with h5py.File(large, "w") as file:
                file.create_dataset("d", (10 << 27,), "f8", chunks=(1 << 20,))
            took, memory = run([pumice, "dump", "-y", "-w", "0", large], "/dev/null")
            print(f"\ndump of 10 GiB: {took:.0f} s, {memory:.0f} MiB of memory")


main()
