"""The part of h5py's low-level interface that programs use, under h5py's names."""
