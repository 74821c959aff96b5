"""The counterpart of crates/pumice/examples/arrays.rs: arrays to and from a dataset, in h5py."""

import sys

import h5py
import numpy

path = sys.argv[1]
t, y, x = numpy.ogrid[:20, :30, :40]
film = (t * y + x).astype("i4")
# The job.
with h5py.File(path, "w") as file:
    film = file.create_dataset("film", data=film, shuffle=True, compression="gzip")
    image = film[3].astype("f8")
    # h5py takes steps and a list of indices, but only one list at a time.
    thinned = film[0:20:5, :10, [0, 39]]
    pixel = film[:, 7, 9]
    film[4] = image * 2
    print(f"{image.sum():.0f} {list(thinned.shape)} {pixel.sum()}")
    print(film[...].astype("i8").sum(axis=0).sum())
