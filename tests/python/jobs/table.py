"""The counterpart of crates/pumice/examples/table.rs: a table with text and an enumeration, in h5py."""

import sys

import h5py
import numpy

ROW = numpy.dtype(
    [
        ("name", h5py.string_dtype()),
        ("quality", h5py.enum_dtype({"Good": 0, "Doubtful": 1}, "u1")),
        ("position", "f4", 3),
        ("valid", "?"),
    ]
)


def sample(number):
    position = (number, 0.5, -1.5)
    return f"sample {number} \u03b1", int(number % 3 == 0), position, number % 2 == 0


path = sys.argv[1]
rows = [sample(number) for number in range(100)]
# The job.
with h5py.File(path, "w") as file:
    samples = file.create_dataset("samples", (0,), ROW, maxshape=(None,))
    samples.resize((len(rows),))
    samples[:] = numpy.array(rows, ROW)
    names = {number: name for name, number in h5py.check_enum_dtype(ROW["quality"]).items()}
    for row in samples[0:100:25]:
        name, quality = row["name"].decode(), names[row["quality"]]
        position = [float(part) for part in row["position"]]
        valid = str(bool(row["valid"])).lower()
        print(f"{name} {quality} {position} {valid}")
    print(f"{(samples['quality'] == 1).sum()} doubtful")
