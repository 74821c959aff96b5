"""How fast a thread counts while another reads a compressed dataset, beside how fast it counts alone.

    python counter_program.py [h5py]

The counter takes a processor; so the reader decodes with one thread of its own where there are two processors.
"""

import os
import sys
import tempfile
import threading
import time

import numpy as np

SECONDS = 2.0


def pace(beside=None):
    """Counts a second of a thread, while the main thread does something again and again, or waits."""
    stop, counted = threading.Event(), [0, 0.0]

    def count():
        number, begin = 0, time.perf_counter()
        while not stop.is_set():
            number += 1
        counted[:] = number, time.perf_counter() - begin

    thread = threading.Thread(target=count)
    thread.start()
    until = time.perf_counter() + SECONDS
    if beside is None:
        time.sleep(SECONDS)
    else:
        while time.perf_counter() < until:
            beside()
    stop.set()
    thread.join()
    return counted[0] / counted[1]


def main():
    """Prints the counts a second of both, and their ratio."""
    peer = sys.argv[1:] == ["h5py"]
    module = __import__("h5py" if peer else "pumice")
    options = {} if peer else {"cache": module.Cache(limit=1 << 20, threads=1)}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "counter.h5")
        data = np.cumsum(np.random.default_rng(0).integers(-3, 4, 1 << 25), dtype="i4").reshape(4096, 8192)
        with module.File(path, "w") as file:
            file.create_dataset("d", data=data, chunks=(256, 1024), compression="gzip", shuffle=True)
        with module.File(path, "r", **options) as file:
            dataset = file["d"]
            into = np.zeros(dataset.shape, dataset.dtype)
            dataset.read_direct(into)
            alone = max(pace(), pace())
            beside = pace(lambda: dataset.read_direct(into))
    print(f"{module.__name__}: {alone:,.0f} counts a second alone, {beside:,.0f} while a dataset is read: "
          f"{beside / alone:.0%}")  # fmt: skip


if __name__ == "__main__":
    main()
