#!/usr/bin/env python3
"""Compares HDF5's tools natively and through the VOL connector, on every file of a folder.

    vol_tools.py --run "PREFIX OF A COMMAND" --plugins FOLDER CORPUS [--largest BYTES] [--every N] [--only TOOL] [--differences]

h5dump, h5ls -r -v, h5diff (a file and what h5repack made of it) and h5repack (dumped afterwards) run twice: with
--vol-name=native and with --vol-name=pumice, which does not fall back. Files that the native run fails on do not count. The
connector's counter shows for each run that it did the work.
"""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

# What tells where things are, or names the file: not the same in two files of the same content.
PLACES = re.compile(rb'^\s*(Location|Links|Modified|Storage|Chunks):.*$|OFFSET \d+|@ ?\d+|"/?#\d+', re.M)


def run(options, words, connector=True):
    """Exit code, what was printed, and how often the connector was called."""
    with tempfile.NamedTemporaryFile() as counter:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_")}
        environment |= {"HDF5_PLUGIN_PATH": options.plugins, "PUMICE_VOL_CALLS": counter.name}
        try:
            done = subprocess.run([*shlex.split(options.run), *words], env=environment, capture_output=True, timeout=60)
        except subprocess.TimeoutExpired:
            return "timeout", b"", 0
        calls = sum(int(line) for line in counter.read().split())
        return done.returncode, done.stdout, calls


def twice(options, words_of, good=(0,)):
    """Whether both runs say the same; None if the native one fails. `words_of` makes a command for a connector."""
    native = run(options, words_of("native"))
    pumice = run(options, words_of("pumice"))
    if native[0] == "timeout":
        return None
    if isinstance(pumice[0], int) and pumice[0] < 0 or pumice[0] == "timeout":
        return f"ended with {pumice[0]}"
    if native[0] not in good:
        return None
    if pumice[2] == 0:
        return "the connector was not called"
    if pumice[0] != native[0]:
        return f"exit code {pumice[0]}"
    clean = [PLACES.sub(b"", found[1]) for found in (native, pumice)]
    return True if clean[0] == clean[1] else "differs"


def h5dump(options, path, folder):
    return twice(options, lambda name: ["h5dump", f"--vol-name={name}", path])


def h5ls(options, path, folder):
    return twice(options, lambda name: ["h5ls", "-r", "-v", f"--vol-name={name}", path])


def h5diff(options, path, folder):
    other = f"{folder}/other.h5"
    run(options, ["h5repack", path, other], (0, 1))
    return twice(options, lambda name: ["h5diff", "-r", f"--vol-name-1={name}", f"--vol-name-2={name}", path, other], (0, 1))


def h5repack(options, path, folder):
    made = {name: f"{folder}/{name}.h5" for name in ("native", "pumice")}

    def words(name):
        return ["h5repack", f"--src-vol-name={name}", f"--dst-vol-name={name}", path, made[name]]

    found = twice(options, words)
    if found is not True or not os.path.exists(made["native"]):
        return found
    dumps = [run(options, ["h5dump", "--vol-name=native", made[name]])[:2] for name in made]
    if dumps[0][0] != 0:
        return None
    # Committed datatypes without a name are called by their addresses.
    names = [PLACES.sub(b"", found[1].replace(made[name].encode(), b"")) for found, name in zip(dumps, made)]
    return True if dumps[0][0] == dumps[1][0] and names[0] == names[1] else "differs in what it wrote"


TOOLS = {"h5dump": h5dump, "h5ls": h5ls, "h5diff": h5diff, "h5repack": h5repack}


def one(options, path):
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, tool in TOOLS.items():
            if options.only in (None, name):
                found[name] = tool(options, str(path), folder)
    return path, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--run", default="env", help="what a tool's name follows: env, or a program that runs it")
    parser.add_argument("--plugins", required=True)
    parser.add_argument("--largest", type=int, default=1 << 20)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", choices=TOOLS)
    parser.add_argument("--differences", action="store_true", help="name the files")
    options = parser.parse_args()
    files = sorted(path for path in options.corpus.rglob("*.h5") if 0 < path.stat().st_size <= options.largest)
    files = files[:: options.every]
    counts = {name: [0, 0] for name in TOOLS}
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        for path, answers in pool.map(lambda path: one(options, path), files):
            for name, answer in answers.items():
                if answer is not None:
                    counts[name][0] += answer is True
                    counts[name][1] += 1
                    if options.differences and answer is not True:
                        print(f"  {name}: {path.name}: {answer}", flush=True)
    for name, (equal, all_) in counts.items():
        if all_:
            print(f"{name}: {equal} of {all_} equal ({100 * equal / all_:.1f} %)")


if __name__ == "__main__":
    main()
