"""Where plugins are looked for. The list is kept; pumice has its filters built in."""

import os

_paths = [p.encode() for p in os.environ.get("HDF5_PLUGIN_PATH", "/usr/local/hdf5/lib/plugin").split(os.pathsep)]


def append(search_path):
    """One more at the end."""
    _paths.append(bytes(search_path))


def prepend(search_path):
    """One more at the beginning."""
    _paths.insert(0, bytes(search_path))


def insert(search_path, index):
    """One more at a place."""
    _paths.insert(index, bytes(search_path))


def replace(search_path, index):
    """Another at a place."""
    _paths[index] = bytes(search_path)


def remove(index):
    """One less."""
    del _paths[index]


def get(index):
    """The one at a place."""
    return _paths[index]


def size():
    """How many there are."""
    return len(_paths)
