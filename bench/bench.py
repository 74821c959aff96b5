"""Measures Pumice and its peers in one run and prints Markdown tables.

Times are wall-clock medians of interleaved runs: in each round every peer does
the operation once, in an order that is drawn anew, so that all share the machine's
moods and nobody always follows the same neighbour. Files are in the page cache, the
libraries' own caches are cold. Every result is checked.
"""

import argparse
import gc
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys

import h5py
import hdf5plugin
import numpy as np
import parts
import peers
import strings_part
import tiledb
import windows_part
from workloads import DenseImage, SparseMatrix

HERE = pathlib.Path(__file__).resolve().parent
SPARSE = ["write", "read all", "where", "window", "row", "column", "10,000 points"]
CHANGES = ["update 1 %", "erase 1 %"]
CASES = {
    f"{density:g}{'c' if clustered else ''}": (density / 100, clustered)
    for density in (0.1, 1, 10)
    for clustered in (False, True)
}
DENSE = ["write", "read all", "128 rows", "128 columns", "500 windows"]


def check(name, operation, data, values):
    """A fast wrong answer is no answer."""
    if operation == "write":
        return
    if not isinstance(values, tuple):
        values = values.size, float(np.sum(values, dtype=np.float64))
    compare(name, operation, values, data.expected(operation))


def compare(name, operation, values, wanted):
    close = abs(values[1] - wanted[1]) <= 1e-6 * max(1.0, abs(wanted[1]))
    if values[0] != wanted[0] or not close:
        sys.exit(f"{name}, {operation}: got (count, sum) {values}, expected {wanted}")


def turns(entrants, times, arguments):
    """All entrants in each round, in an order that is the same in every run but not in every round.

    Whoever follows a peer that leaves pages to be written, or a processor to be woken, is slower.
    Those that have taken long enough in all do not come again.
    """
    order = random.Random(20_000)
    for _ in range(arguments.rounds):
        for name, peer in order.sample(list(entrants.items()), len(entrants)):
            if sum(times[name]) < arguments.patience:
                yield name, peer


def measure(entrants, operations, data, arguments):
    """{operation: {name: median seconds}}; rounds go around all entrants."""
    result = {}
    for operation in operations:
        times = {name: [] for name in entrants}
        for name, peer in turns(entrants, times, arguments):
            gc.collect()
            seconds, values = peer.run(operation)
            times[name].append(seconds)
            check(name, operation, data, values)
        if operation == "write":
            # What the system still has to write must not take processors from reads.
            os.sync()
        result[operation] = {name: statistics.median(t) for name, t in times.items()}
        print(f"  {operation}: done", file=sys.stderr)
    return result


def milliseconds(seconds):
    value = seconds * 1e3
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def print_table(title, names, rows):
    print(f"\n### {title}\n")
    print("| | " + " | ".join(names) + " | Pumice against the best other |")
    print("|---" * (len(names) + 2) + "|")
    for label, cells, ratio in rows:
        print(f"| {label} | " + " | ".join(cells) + f" | {ratio} |")


def rivals(names):
    """All but Pumice and other builds of it."""
    return [name for name in names[1:] if not name.startswith("Pumice")]


def time_rows(medians, names):
    ours, others = names[0], rivals(names)
    for operation, times in medians.items():
        best = min((times[name] for name in others if name in times), default=None)
        cells = [milliseconds(times[name]) if name in times else "-" for name in names]
        ratio = f"{best / times[ours]:.2f}x as fast" if best else "-"
        yield f"{operation}, ms", cells, ratio


def size_row(label, sizes, names, form):
    best = min(sizes[name] for name in rivals(names) or names[1:])
    ratio = f"{sizes[names[0]] / best:.2f} of the size"
    return label, [form(sizes[name]) for name in names], ratio


def measure_changes(entrants, data, arguments, wanted):
    """As `measure`, for operations that change the file: each begins with a fresh copy.

    What an update leaves to whoever reads next is seen if the next reader's time is added.
    """
    result = {}
    for operation in (operation for operation in CHANGES if operation in wanted):
        able = {n: p for n, p in entrants.items() if hasattr(p, peers.METHODS[operation]) or n.startswith("Pumice")}
        times = {name: [] for name in able}
        with_reading = {name: [] for name in able}
        for name, peer in turns(able, times, arguments):
            original = peers.set_aside(peer.path)
            os.sync()
            gc.collect()
            seconds, _ = peer.run(operation)
            times[name].append(seconds)
            reading, values = peer.run("read all")
            with_reading[name].append(seconds + reading)
            if not isinstance(values, tuple):
                values = values.size, float(np.sum(values, dtype=np.float64))
            compare(name, operation, values, data.after(operation))
            peers.put_back(original, peer.path)
        result[operation] = {name: statistics.median(t) for name, t in times.items()}
        if operation == "update 1 %":
            medians = {name: statistics.median(t) for name, t in with_reading.items()}
            result["update 1 %, then read all"] = medians
        print(f"  {operation}: done", file=sys.stderr)
    return result


def sparse_part(arguments, program, work):
    builds = {"": program} | {
        f", {os.path.basename(binary)}": peers.Program(binary) for binary in arguments.beside or []
    }
    for case in arguments.case or ["1"]:
        density, clustered = CASES[case]
        sparse_case(arguments, builds, work, density, clustered)
    for name, other in builds.items():
        if name:
            other.close()


def pumice_files(data, builds, work, kind, filtered):
    """One entrant for each build of the program; the first is the one that is compared."""
    files = {
        f"Pumice, {kind}{name}": peers.PumiceSparse(
            data, work / f"p{int(filtered)}-{number}.h5", program, filtered
        )
        for number, (name, program) in enumerate(builds.items())
    }
    if peers.pumice is not None:
        path = work / f"p{int(filtered)}-python.h5"
        files[f"Pumice in Python, {kind}"] = peers.PumicePython(data, path, filtered)
    return files


def sparse_case(arguments, builds, work, density, clustered):
    edge = arguments.edge or (4000 if arguments.quick else 20_000)
    data = SparseMatrix(edge, density, clustered)
    parts = {
        "pointers": data.pointers,
        "columns": data.columns,
        "points": np.concatenate(np.divmod(data.points, edge)),
        "changed": np.concatenate([data.rows[data.changed], data.columns[data.changed]]),
        "erased": np.concatenate([data.rows[data.erased], data.columns[data.erased]]),
    }
    for name, array in parts.items():
        array.astype("<u4").tofile(work / f"{name}.bin")
    data.values.tofile(work / "values.bin")
    for program in builds.values():
        program.ask("load-sparse", data.edge, work)
    classes = {
        "compressed": {
            **pumice_files(data, builds, work, "default", True),
            "CSR in h5py, gzip": peers.Csr(data, work / "c1.h5", peers.GZIP),
            "CSR in h5py, blosc-zstd": peers.Csr(data, work / "c2.h5", peers.BLOSC),
            "TileDB, zstd": peers.TileDb(data, work / "t1", True),
        },
        "values without filters": {
            **pumice_files(data, builds, work, "plain values", False),
            "CSR in h5py": peers.Csr(data, work / "c0.h5", {}),
            "TileDB": peers.TileDb(data, work / "t0", False),
        },
    }
    if arguments.all_peers or arguments.peers:
        classes["compressed"]["scipy npz"] = peers.Npz(data, work / "s.npz")
        classes["compressed"]["dense gzip in h5py"] = peers.DenseChunks(data, work / "d.h5")
    if arguments.kind:
        title = {"compressed": "compressed", "plain": "values without filters"}[arguments.kind]
        classes = {title: classes[title]}
    if arguments.peers:
        wanted = ["pumice", *arguments.peers.lower().split(",")]
        for title, group in classes.items():
            chosen = {n: p for n, p in group.items() if any(w in n.lower() for w in wanted)}
            classes[title] = chosen
        classes = {title: group for title, group in classes.items() if rivals(list(group))}
    count = len(data.cells)
    entrants = {name: peer for group in classes.values() for name, peer in group.items()}
    kind = "clustered" if clustered else "uniform"
    print(f"sparse: {count:,} cells, {density:.1%} {kind}", file=sys.stderr)
    words = arguments.operations.split(",") if arguments.operations else [""]
    wanted = [name for name in [*SPARSE, *CHANGES] if any(word in name for word in words)]
    # Whatever else is wanted, there must be something to read.
    operations = [name for name in SPARSE if name == "write" or name in wanted]
    medians = measure(entrants, operations, data, arguments)
    sizes = {name: peer.size() / count for name, peer in entrants.items()}
    medians |= measure_changes(entrants, data, arguments, wanted)
    print(
        f"\n## A. Sparse {data.edge:,} x {data.edge:,} float32, {density:.1%} {kind}, "
        f"{count:,} cells"
    )
    print(f"\nThe window is {data.box} x {data.box}.", end=" ")
    if not clustered:
        print(f"Values and positions have an entropy of {data.entropy():.2f} bytes per cell.")
    for title, group in classes.items():
        names = list(group)
        rows = list(time_rows(medians, names))
        rows.append(size_row("bytes per cell", sizes, names, lambda n: f"{n:.2f}"))
        print_table(f"A, {title}", names, rows)
    for peer in entrants.values():
        peers.remove(peer.path)


def dense_part(arguments, program, work):
    data = DenseImage(2048 if arguments.quick else 8192)
    data.values.tofile(work / "dense.bin")
    data.corners.tofile(work / "corners.bin")
    program.ask("load-dense", data.edge, work / "dense.bin", work / "corners.bin")
    shared = work / "h.h5"
    entrants = {
        "Pumice": peers.PumiceDense(data, shared, program, work / "p.h5"),
        "h5py": peers.H5pyDense(data, shared),
    }
    print(f"dense: {data.values.nbytes >> 20} MiB", file=sys.stderr)
    medians = measure(entrants, DENSE, data, arguments)
    with h5py.File(work / "p.h5") as file:
        if not np.array_equal(file["d"][:], data.values):
            sys.exit("h5py reads something else than Pumice wrote")
    print(
        f"\n## B. Dense {data.edge:,} x {data.edge:,} float32, 256 x 256 chunks, shuffle, deflate 4"
    )
    print("\nBoth read the file that h5py wrote. Rows, columns and windows are one call each.")
    names = list(entrants)
    rows = list(time_rows(medians, names))
    sizes = {name: peer.size() / (1 << 20) for name, peer in entrants.items()}
    rows.append(size_row("file, MiB", sizes, names, lambda n: f"{n:.1f}"))
    print_table("B", names, rows)
    contiguous_rows(arguments, program, work, data)
    if "e" in (arguments.only or "e"):
        parts.threads_part(arguments, program, shared, data)


def contiguous_rows(arguments, program, work, data):
    """A contiguous read beside what the system itself needs."""
    path = work / "contiguous.h5"
    with h5py.File(path, "w", libver="v110") as file:
        file["d"] = data.values
        offset = file["d"].id.get_offset()
    times = {"Pumice": [], "h5py": [], "plain read": []}
    for _ in range(arguments.rounds):
        times["Pumice"].append(program.measure("dense-all", path)[0])
        times["plain read"].append(program.measure("plain-read", path, offset)[0])
        times["h5py"].append(peers.H5pyDense(data, path).run("read all")[0])
    best = {name: min(seconds) for name, seconds in times.items()}
    listed = ", ".join(f"{name} {seconds * 1e3:.0f} ms" for name, seconds in best.items())
    share = best["plain read"] / best["Pumice"]
    print(f"\nRead all, contiguous, best of {arguments.rounds}: {listed}; {share:.2f} of a plain read.")


def large_part(arguments, program, work):
    """Rows and columns of an array of which a row of chunks exceeds h5py's default cache."""
    data = DenseImage(4096 if arguments.quick else 16_384)
    path = work / "large.h5"
    entrants = {
        "Pumice": peers.PumiceDense(data, path, program, work / "unused.h5"),
        "h5py": peers.H5pyDense(data, path),
    }
    entrants["h5py"].run("write")
    rounds, arguments.rounds = arguments.rounds, 1 if not arguments.quick else arguments.rounds
    medians = measure(entrants, ["128 rows", "128 columns"], data, arguments)
    arguments.rounds = rounds
    print(f"\n## B. The same, {data.edge:,} x {data.edge:,}")
    print_table("B, large", list(entrants), list(time_rows(medians, list(entrants))))


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def describe(arguments):
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    print("# Pumice and its peers")
    print(
        f"\n{model}, {os.cpu_count()} processors, {memory} GiB, Linux {platform.release()}. "
        f"Medians of {arguments.rounds} interleaved rounds, wall clock, page cache warm; "
        f"fewer where an operation took more than {arguments.patience:g} s in all."
    )
    if "MALLOC_TRIM_THRESHOLD_" in os.environ:
        print("Freed memory stays with its process.")
    print(
        f"\nPumice at {output_of('git', 'rev-parse', '--short', 'HEAD')}, "
        f"{output_of('rustc', '--version')}; h5py {h5py.__version__} "
        f"(HDF5 {h5py.version.hdf5_version}), hdf5plugin {hdf5plugin.version}, "
        f"tiledb {tiledb.__version__} (core {'.'.join(map(str, tiledb.libtiledb.version()))}), "
        f"numpy {np.__version__}, Python {platform.python_version()}."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--rounds", type=int, default=None, help="interleaved rounds")
    parser.add_argument(
        "--patience",
        type=float,
        default=60,
        metavar="SECONDS",
        help="in parts A, B and F, who took this long for an operation in all is asked no more: 60",
    )
    parser.add_argument("--only", help="only these parts: letters among a, b, l (large b), c, d, e, f")
    parser.add_argument(
        "--case",
        action="append",
        choices=CASES,
        help="density of part A in per cent, c for clustered; 1 if not given; may be repeated",
    )
    parser.add_argument("--edge", type=int, help="edge of the matrix of part A")
    parser.add_argument(
        "--density",
        action="append",
        type=float,
        help="density of part F in per cent; 1, 5 and 20 if not given; may be repeated",
    )
    parser.add_argument("--all-peers", action="store_true", help="also those that take minutes")
    parser.add_argument("--peers", help="only these in parts A and F: parts of names, as in csr,tiledb")
    parser.add_argument(
        "--operations", help="only these in part A, and writing: parts of names, as in where,points"
    )
    parser.add_argument(
        "--fresh-memory",
        action="store_true",
        help="let freed memory go back to the system (`run` does the rest)",
    )
    parser.add_argument(
        "--beside",
        action="append",
        metavar="PROGRAM",
        help="another build of pumice-bench that takes its turns in part A; may be repeated",
    )
    parser.add_argument(
        "--class",
        dest="kind",
        choices=["compressed", "plain"],
        help="only this class of part A",
    )
    parser.add_argument("--keep", action="store_true", help="keep the files in bench/work")
    parser.add_argument("--program", default=HERE / "target/release/pumice-bench")
    arguments = parser.parse_args()
    if arguments.patience <= 0:
        parser.error("--patience has to be above 0")
    arguments.rounds = arguments.rounds or (3 if arguments.quick else 5)
    work = HERE / "work"
    work.mkdir(exist_ok=True)
    program = peers.Program(arguments.program)
    describe(arguments)
    try:
        wanted = arguments.only or "ablcdef"
        if "a" in wanted:
            sparse_part(arguments, program, work)
        if "b" in wanted or "e" in wanted:
            dense_part(arguments, program, work)
        if "l" in wanted:
            large_part(arguments, program, work)
        if "d" in wanted:
            strings_part.strings_part(arguments, program, work)
        if "c" in wanted:
            parts.many_part(arguments, work)
        if "f" in wanted:
            windows_part.windows_part(arguments, program, work)
    finally:
        program.close()
        if not arguments.keep:
            peers.remove(work)


if __name__ == "__main__":
    main()
