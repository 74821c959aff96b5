#!/usr/bin/env python3
"""Measures stock h5py natively and through the VOL connector, side by side: the same program and libhdf5, other environment.

    cargo build --release -p pumice-vol
    python bench/vol.py [--rounds 5] [--quick] [--connector target/release/libpumice_vol.so]

Needs h5py, and prints a Markdown table. Each measurement is a process of its own; natively and through the connector take
turns, and the best of all rounds counts. Files are in the page cache. Through the connector each process shows by the
connector's counter that the connector did the work.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SIDE, CHUNK = 4096, 256
WINDOWS, DATASETS = 2000, 2000


def values(side):
    """Numbers as a detector gives them: small, smooth, a little noisy."""
    import numpy as np

    random = np.random.default_rng(7)
    rows = np.sin(np.arange(side) / 50)[:, None] * 1000 + np.cos(np.arange(side) / 70)[None, :] * 500
    return (rows + random.integers(0, 16, (side, side))).astype("i4")


def made(file, name, data):
    return file.create_dataset(name, data=data, chunks=(CHUNK, CHUNK), compression="gzip", compression_opts=4, shuffle=True)


def timed(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def read_whole(path, side):
    import h5py
    import numpy as np

    place = np.empty((side, side), "i4")
    with h5py.File(path) as file:
        seconds = timed(lambda: file["x"].read_direct(place))
    assert place[1, 1] != place[-1, -1]
    return seconds


def read_windows(path, side, spread):
    """Windows of 16 x 16, all over the array or in the 64 chunks around its middle."""
    import h5py
    import numpy as np

    low, high = (0, side - 16) if spread else (side // 2 - 4 * CHUNK, side // 2 + 4 * CHUNK - 16)
    corners = np.random.default_rng(3).integers(max(low, 0), min(high, side - 16), (WINDOWS, 2)).tolist()
    place = np.empty((16, 16), "i4")
    memory = h5py.h5s.create_simple((16, 16))
    with h5py.File(path, rdcc_nbytes=64 << 20) as file:
        dataset = file["x"].id
        space = dataset.get_space()

        def read():
            for corner in corners:
                space.select_hyperslab(tuple(corner), (16, 16))
                dataset.read(memory, space, place)

        if not spread:
            read()
        return timed(read)


def write(path, side):
    import h5py

    data = values(side)

    def all_of_it():
        with h5py.File(path + ".written", "w") as file:
            made(file, "x", data)

    seconds = timed(all_of_it)
    os.remove(path + ".written")
    return seconds


def memory(name):
    """What the system says of this process's memory, in MiB."""
    text = pathlib.Path("/proc/self/status").read_text()
    return int(text.split(f"{name}:")[1].split()[0]) / 1024


def many(path, side):
    """One chunk of each of many datasets, all of them kept open."""
    import h5py

    with h5py.File(path + ".many") as file:
        # From here on the peak counts.
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        before, kept = memory("VmRSS"), []

        def read():
            for number in range(DATASETS):
                kept.append(file[f"{number:04}"])
                assert kept[-1][0, 0] == number

        seconds = timed(read)
        return seconds, memory("VmHWM") - before


def calls():
    """The connector's counter."""
    import ctypes

    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "libpumice_vol" in line}
    count = ctypes.CDLL(paths.pop()).pumice_vol_calls
    count.restype = ctypes.c_uint64
    return count()


WORK = {
    "whole": read_whole,
    "spread": lambda path, side: read_windows(path, side, True),
    "near": lambda path, side: read_windows(path, side, False),
    "write": write,
    "many": many,
}
NAMES = {
    "whole": "full read, gzip and shuffle",
    "spread": f"{WINDOWS:,} windows of 16 x 16, first touch",
    "near": f"{WINDOWS:,} windows of 16 x 16 in chunks that are in memory",
    "write": "full write, gzip and shuffle, with close",
    "many": f"a chunk of each of {DATASETS:,} datasets, all kept open",
}


def measure(work, path, side, plugins):
    """One process; seconds, and for some work more."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_")}
    if plugins:
        environment |= {"HDF5_PLUGIN_PATH": str(plugins), "HDF5_VOL_CONNECTOR": "pumice"}
    command = [sys.executable, __file__, "--work", work, "--path", str(path), "--side", str(side)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def prepare(path, side):
    import h5py
    import numpy as np

    with h5py.File(path, "w") as file:
        made(file, "x", values(side))
    with h5py.File(f"{path}.many", "w", libver="latest") as file:
        for number in range(DATASETS):
            data = np.full((CHUNK, CHUNK), number, "i4")
            file.create_dataset(f"{number:04}", data=data, chunks=(CHUNK, CHUNK), compression="gzip")
    for name in (path, f"{path}.many"):
        pathlib.Path(name).read_bytes()


def report(results, work):
    native, pumice = (min(one["seconds"] for one in results[kind]) for kind in ("native", "pumice"))
    line = f"| {NAMES[work]} | {native * 1000:.0f} ms | {pumice * 1000:.0f} ms | {native / pumice:.1f}"
    if work == "many":
        native, pumice = (max(one["megabytes"] for one in results[kind]) for kind in ("native", "pumice"))
        line += f"; memory {native:.0f} and {pumice:.0f} MiB"
    print(line + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connector", type=pathlib.Path, default=pathlib.Path("target/release/libpumice_vol.so"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a quarter of the size")
    parser.add_argument("--only", choices=WORK)
    for hidden in ("--work", "--path", "--side"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        found = WORK[options.work](options.path, int(options.side))
        seconds, megabytes = found if isinstance(found, tuple) else (found, None)
        if "HDF5_VOL_CONNECTOR" in os.environ:
            assert calls() > 2, "the connector was not called"
        print(json.dumps({"seconds": seconds, "megabytes": megabytes}))
        return
    side = SIDE // 2 if options.quick else SIDE
    with tempfile.TemporaryDirectory() as folder:
        plugins = pathlib.Path(folder) / "plugins"
        plugins.mkdir()
        shutil.copy(options.connector, plugins / "libpumice_vol.so")
        path = f"{folder}/a.h5"
        prepare(path, side)
        print("| | libhdf5 | connector | times as fast |\n|---|---|---|---|", flush=True)
        for work in [options.only] if options.only else WORK:
            results = {"native": [], "pumice": []}
            for _ in range(options.rounds):
                results["native"].append(measure(work, path, side, None))
                results["pumice"].append(measure(work, path, side, plugins))
            report(results, work)


if __name__ == "__main__":
    main()
