"""Names of files."""

import os


def filename_encode(filename):
    """The name of a file as bytes."""
    return os.fsencode(os.fspath(filename))


def filename_decode(filename):
    """The name of a file as str."""
    return os.fsdecode(filename)
