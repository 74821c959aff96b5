"""Part D: a million strings of 5 to 40 bytes."""

import gc
import os
import statistics
import time

import h5py
import numpy as np
import peers


def make_strings(count):
    rng = np.random.default_rng(11)
    letters = [rng.integers(97, 123, rng.integers(2, 9)) for _ in range(3000)]
    words = [bytes(word.astype("u1")).decode() for word in letters]
    chosen, lengths = rng.zipf(1.3, (count, 6)) % 3000, rng.integers(5, 41, count)
    texts = []
    for numbers, length in zip(chosen, lengths):
        text = " ".join(words[k] for k in numbers)
        texts.append((text + " " + text)[:length])
    return texts


class H5py:
    def __init__(self, path, array, **options):
        self.path, self.array, self.options = path, array, options

    def write(self):
        with h5py.File(self.path, "w", libver="latest") as file:
            kind = h5py.string_dtype()
            file.create_dataset("s", data=self.array, dtype=kind, chunks=(10_000,), **self.options)

    def overwrite(self):
        with h5py.File(self.path, "r+") as file:
            file["s"][:] = self.array

    def read(self):
        with h5py.File(self.path) as file:
            return file["s"][:]

    def run(self, operation):
        start, processor = time.perf_counter(), time.process_time()
        getattr(self, operation)()
        return time.perf_counter() - start, time.process_time() - processor


class Pumice:
    def __init__(self, path, program, verb):
        self.path, self.program, self.verb = path, program, verb

    def run(self, operation):
        verb = self.verb if operation == "write" else f"strings-{operation}"
        wall, processor = self.program.ask(verb, self.path).split()
        return float(wall), float(processor)


def strings_part(arguments, program, work):
    texts = make_strings(100_000 if arguments.quick else 1_000_000)
    raw = [text.encode() for text in texts]
    np.array([len(text) for text in raw], "<u4").tofile(work / "lengths.bin")
    (work / "text.bin").write_bytes(b"".join(raw))
    program.ask("load-strings", work)
    array = np.array(texts, object)
    gzip = {"compression": "gzip", "compression_opts": 4}
    entrants = {
        "Pumice": Pumice(work / "s1.h5", program, "strings-write"),
        "Pumice, no filters": Pumice(work / "s2.h5", program, "strings-write-plain"),
        "h5py": H5py(work / "s3.h5", array),
        "h5py, gzip": H5py(work / "s4.h5", array, **gzip),
    }
    print(f"\n## D. {len(texts):,} strings, {sum(map(len, raw)) / 1e6:.1f} MB of text\n")
    print("| | " + " | ".join(entrants) + " | Pumice against h5py |")
    print("|---" * (len(entrants) + 2) + "|", flush=True)
    for operation in ("write", "read", "overwrite"):
        found = {name: [] for name in entrants}
        for _ in range(1 if operation == "overwrite" else arguments.rounds):
            for name, peer in entrants.items():
                if operation == "write":
                    peers.remove(peer.path)
                # A hundred megabytes that the one before has left to be written must not take processors from this one.
                os.sync()
                gc.collect()
                found[name].append(peer.run(operation))
        if operation == "write":
            sizes = {name: os.path.getsize(peer.path) for name, peer in entrants.items()}
        for column, clock in enumerate(("wall", "processor")):
            medians = {n: statistics.median(t[column] for t in times) for n, times in found.items()}
            cells = [f"{1e3 * medians[name]:.0f}" for name in entrants]
            ratio = medians["h5py"] / max(medians["Pumice"], 1e-9)
            label = f"{operation}, ms {clock}"
            print(f"| {label} | " + " | ".join(cells) + f" | {ratio:.1f}x as fast |", flush=True)
    cells = [f"{sizes[name] / 1e6:.2f}" for name in entrants]
    ratio = sizes["h5py"] / sizes["Pumice"]
    print("| MB | " + " | ".join(cells) + f" | {ratio:.1f}x smaller |", flush=True)
