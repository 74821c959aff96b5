"""The counterpart of crates/pumice/examples/detector_stream.rs: hits of frames, in h5py."""

import sys

import h5py
import numpy


def exposure(number):
    frame = numpy.zeros(64 * 64, "u2")
    for hit in range(20):
        frame[(number * 7919 + hit * 104_729) % (64 * 64)] = (number + hit) % 100 + 1
    return frame


path = sys.argv[1]
# The job.
with h5py.File(path, "w") as file:
    starts = file.create_dataset("starts", (1,), "u8", maxshape=(None,), chunks=(512,))
    cells = file.create_dataset("cells", (0,), "u2", maxshape=(None,), chunks=(8192,), compression="gzip")
    values = file.create_dataset("values", (0,), "u2", maxshape=(None,), chunks=(8192,), compression="gzip")
    for number in range(500):
        frame = exposure(number)
        hit = numpy.flatnonzero(frame)
        begin, end = len(cells), len(cells) + len(hit)
        cells.resize((end,))
        cells[begin:end] = hit
        values.resize((end,))
        values[begin:end] = frame[hit]
        starts.resize((number + 2,))
        starts[number + 1] = end
    print(f"{len(cells)} hits in {len(starts) - 1} frames")
    place = cells[:]
    corner = values[:].astype("u8")[(place // 64 < 8) & (place % 64 < 8)]
    print(f"{corner.sum()} counts in the corner")
    begin, end = starts[400], starts[401]
    print(f"frame 400: {values[begin:end].tolist()}")
