"""How often libhdf5, alone, does not come to an end when it closes a file with free space in small pages.

    python bench/page_hangs.py [RUNS] [SECONDS]

h5py makes a file of the paged strategy that remembers its free space, opens it again, deletes half of what
is in it at random and closes it, RUNS times (20) for each size of a page; a run that takes more than SECONDS
(10, where others take less than one) counts as one without end. Pumice has no part in it: docs/writing.md
says what it does about such files."""

import pathlib
import random
import subprocess
import sys
import tempfile

PAGES = (512, 1024, 2048, 4096)


def one(kind, page, seed):
    """A file of some groups or datasets, half of which go again."""
    import h5py
    import numpy as np

    draw = random.Random(f"{kind} {seed}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.h5"
        space = {"fs_strategy": "page", "fs_persist": True, "fs_page_size": page}
        count = draw.randrange(50, 400)
        with h5py.File(path, "w", libver="latest", **space) as file:
            for number in range(count):
                if kind == "groups":
                    file.create_group(f"{number}").attrs["x"] = np.arange(draw.randrange(1, 20))
                else:
                    file[f"{number}"] = np.arange(draw.randrange(1, 3000))
        for _ in range(3):
            with h5py.File(path, "r+", libver="latest") as file:
                for name in list(file):
                    if draw.random() < 0.5:
                        del file[name]


def main(runs="20", seconds="10"):
    import h5py

    print(f"HDF5 {h5py.version.hdf5_version}: runs of {runs} that took more than {seconds} s")
    print("| page | groups | datasets |\n|---|---|---|")
    for page in PAGES:
        endless = []
        for kind in ("groups", "datasets"):
            found = 0
            for seed in range(int(runs)):
                command = [sys.executable, __file__, "--one", kind, str(page), str(seed)]
                try:
                    subprocess.run(command, check=True, timeout=float(seconds), capture_output=True)
                except subprocess.TimeoutExpired:
                    found += 1
            endless.append(found)
        print(f"| {page:,} | {endless[0]} | {endless[1]} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main(*sys.argv[1:])
