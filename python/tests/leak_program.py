"""Opens, reads and closes files again and again, and tells how much memory the process has.

    python leak_program.py 1000000

Prints resident memory after a tenth, a hundredth, ... of the turns and at the end; the exit code is 1 if the last tenth
to the end has added more than 1 MiB.
"""

import os
import sys
import tempfile
import time

import numpy as np

import pumice


def resident():
    """Bytes of memory that the process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def make(path):
    """A file with one dataset of each kind that is read."""
    with pumice.File(path, "w") as file:
        file.create_dataset("chunked", data=np.arange(1000), chunks=(100,), compression="gzip")
        file["text"] = ["basalt", "pumice"]
        file.create_dataset("sparse", (50, 50), "f4", sparse=True)[3, 4] = 5
        file.attrs["unit"] = "counts"


def turn(path):
    """Opens, reads and closes once."""
    with pumice.File(path, "r") as file:
        file["chunked"][250:260], file["text"][0], file["sparse"][3, 4], file.attrs["unit"]


def run(path, count, tell):
    """Resident memory after a tenth of the turns, and at the end."""
    marks = {max(1, count // 10**power) for power in range(1, 5)}
    tenth, begin = None, time.perf_counter()
    for number in range(1, count + 1):
        turn(path)
        if number in marks:
            tenth = resident() if number == max(marks) else tenth
            tell(number, resident(), time.perf_counter() - begin)
    tell(count, resident(), time.perf_counter() - begin)
    return tenth, resident()


def main():
    """Runs as often as the first argument says."""
    def tell(number, memory, seconds):
        print(f"{number:>9,} opened, read, closed: {memory / 2**20:8.2f} MiB resident, {seconds:7.1f} s", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "leak.h5")
        make(path)
        tenth, last = run(path, int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, tell)
    sys.exit(last - tenth > 1 << 20)


if __name__ == "__main__":
    main()
