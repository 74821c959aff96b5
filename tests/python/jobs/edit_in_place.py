"""The counterpart of crates/pumice/examples/edit_in_place.rs: edits a file in place, in h5py."""

import sys

import h5py
import numpy


def make(path):
    """The file that both edit."""
    with h5py.File(path, "w") as file:
        images = numpy.arange(4 * 64, dtype="u2").reshape(4, 8, 8)
        file.create_dataset("raw/images", data=images, maxshape=(None, 8, 8), compression="gzip")
        file.create_dataset("raw/times", data=numpy.arange(4.0), maxshape=(None,))
        file["raw/dark"] = numpy.zeros(64)


if __name__ == "__main__":
    path = sys.argv[1]
    frame = numpy.full((8, 8), 9, "u2")
    # The job.
    with h5py.File(path, "r+") as file:
        images, times = file["raw/images"], file["raw/times"]
        images[2, 3:5] = 7
        images.resize(len(images) + 1, axis=0)
        images[-1] = frame
        times.resize((len(times) + 1,))
        times[-1] = 4.5
        images.attrs["unit"] = "counts"
        times.make_scale()
        images.dims[0].attach_scale(times)
        file.move("raw/images", "calibrated/images")
        del file["raw/dark"]
        print(f"{list(images.shape)}, {images[:].astype('u8').sum()} counts")
