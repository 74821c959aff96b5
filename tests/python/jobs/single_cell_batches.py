"""The counterpart of crates/pumice/examples/single_cell_batches.rs: batches of compressed rows, in h5py."""

import sys

import h5py
import numpy


def counts():
    pointers, indices, values = [0], [], []
    for cell in range(2000):
        for gene in range(cell % 20, 500, 20):
            indices.append(gene)
            values.append(cell * gene % 7)
        pointers.append(len(indices))
    return numpy.array(pointers), numpy.array(indices), numpy.array(values, "f4")


def shuffled(rows, epoch):
    return [(row * 7919 + epoch * 31) % rows for row in range(rows)]


path = sys.argv[1]
pointers, indices, values = counts()
# The job.
with h5py.File(path, "w") as file:
    matrix = file.create_group("X")
    matrix.attrs["shape"] = (2000, 500)
    matrix.create_dataset("indptr", data=pointers)
    matrix.create_dataset("indices", data=indices, chunks=(8192,), compression="gzip")
    matrix.create_dataset("data", data=values, chunks=(8192,), compression="gzip")
    starts = matrix["indptr"][:]
    for epoch in range(2):
        order = shuffled(2000, epoch)
        for first in range(0, 2000, 256):
            rows = order[first : first + 256]
            parts = [slice(starts[row], starts[row + 1]) for row in rows]
            batch_pointers = numpy.cumsum([0] + [part.stop - part.start for part in parts])
            batch_indices = numpy.concatenate([matrix["indices"][part] for part in parts])
            batch_values = numpy.concatenate([matrix["data"][part] for part in parts])
            print(f"{rows[0]} {len(batch_indices)} {batch_values.sum()}")
