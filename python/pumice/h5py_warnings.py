"""Warnings under h5py's names."""


class H5pyWarning(UserWarning):
    """Something that works and may not be meant."""


class H5pyDeprecationWarning(H5pyWarning):
    """Something that has a newer name."""
