"""Pumice in h5py's place, for programs that import h5py.

``pumice.compat.install()`` before such a program is imported, or ``python -m pumice.compat script.py``.
"""

import importlib
import sys
import types

_HL = ("attrs", "base", "compat", "dataset", "datatype", "dims", "files", "filters", "group", "selections",
       "selections2", "vds")  # fmt: skip
# What has another name here.
_CALLED = {"selections2": "scalars"}
_LOW = ("h5", "h5a", "h5ac", "h5d", "h5ds", "h5f", "h5fd", "h5g", "h5i", "h5l", "h5o", "h5p", "h5pl", "h5r", "h5s",
        "h5t", "h5z")  # fmt: skip

_PLACES = {"AttributeManager": "attrs", "Dataset": "dataset", "Datatype": "datatype", "File": "files", "Group": "group"}

# The version of h5py whose interface this is.
H5PY_VERSION = "3.16.0"


def install():
    """Makes ``import h5py`` give pumice. An h5py that is there already stays with those who have it."""
    if getattr(sys.modules.get("h5py"), "__pumice__", False):
        return
    for name in [name for name in sys.modules if name == "h5py" or name.startswith("h5py.")]:
        del sys.modules[name]
    pumice = importlib.import_module("pumice")
    module = types.ModuleType("h5py", "pumice in h5py's place")
    module.__dict__.update({name: value for name, value in vars(pumice).items() if not name.startswith("__")})
    module.__pumice__ = True
    module.__path__ = []
    module.__version__ = H5PY_VERSION
    sys.modules["h5py"] = module
    for name in _LOW:
        _place(module, name, importlib.import_module(f"pumice.low.{name}"))
    hl = types.ModuleType("h5py._hl")
    hl.__path__ = []
    _place(module, "_hl", hl)
    for name in _HL:
        below = importlib.import_module(f"pumice._hl.{_CALLED.get(name, name)}")
        setattr(hl, name, below)
        sys.modules[f"h5py._hl.{name}"] = below
    # Programs look at where classes come from.
    for name, place in _PLACES.items():
        getattr(module, name).__module__ = f"h5py._hl.{place}"
    _place(module, "version", _version())
    _place(module, "h5py_warnings", importlib.import_module("pumice.h5py_warnings"))
    _place(module, "_selector", _selector())
    _place(module, "_objects", _objects())
    _place(module, "_errors", _errors())
    module.enable_ipython_completer = lambda: None
    module.run_tests = lambda args="": 0


def _place(parent, name, module):
    setattr(parent, name, module)
    sys.modules[f"h5py.{name}"] = module


def _version():
    import numpy

    module = types.ModuleType("h5py.version")
    module.version = H5PY_VERSION
    module.version_tuple = namedtuple_version(*(int(part) for part in H5PY_VERSION.split(".")), "", "", "")
    module.hdf5_version = "2.0.0"
    module.hdf5_version_tuple = (2, 0, 0)
    module.hdf5_built_version_tuple = (2, 0, 0)
    module.api_version = "1.8"
    module.api_version_tuple = (1, 8)
    pumice = importlib.import_module("pumice")
    module.info = (
        f"pumice {pumice.__version__} as h5py {H5PY_VERSION}\nPython {sys.version}\n"
        f"sys.platform {sys.platform}\nnumpy {numpy.__version__}"
    )
    return module


def namedtuple_version(*parts):
    """A version as h5py has it."""
    from collections import namedtuple

    return namedtuple("_H5PY_VERSION_CLS", "major minor bugfix pre post dev")(*parts)


def _selector():
    from ._hl.selections import MultiBlockSlice, select

    module = types.ModuleType("h5py._selector")
    module.MultiBlockSlice = MultiBlockSlice

    class Selector:
        """Selections of a dataspace."""

        def __init__(self, space):
            self.space = space

        def make_selection(self, args):
            """The cells that an index means."""
            found = select(self.space.shape, args)
            self.space.selection = found.native
            return found

    module.Selector = Selector
    return module


def _objects():
    import os
    import threading

    class Identifier:
        """A number for something."""

        __hash__ = None

        def __init__(self, id=0):
            self.id = id

        def __eq__(self, other):
            return isinstance(other, Identifier) and self.id == other.id

    module = types.ModuleType("h5py._objects")

    class FastRLock:
        """A lock that one thread may take several times."""

        def __init__(self):
            self._lock = threading.RLock()

        def acquire(self, blocking=True):
            """Takes it."""
            return self._lock.acquire(blocking)

        def release(self):
            """Gives it back."""
            self._lock.release()

        def renew(self):
            """A new one, after a fork: the threads that held it are not there."""
            self._lock = threading.RLock()

        def __enter__(self):
            self._lock.acquire()
            return self

        def __exit__(self, *args):
            self._lock.release()

    module.FastRLock = FastRLock
    module.phil = FastRLock()
    module.with_phil = lambda function: function
    module.ObjectID = Identifier
    os.register_at_fork(after_in_child=module.phil.renew)
    module.nonlocal_close = lambda: None
    module.print_reg = lambda: None
    return module


def _errors():
    module = types.ModuleType("h5py._errors")
    module.silence_errors = lambda: None
    module.unsilence_errors = lambda: None
    return module


def _main():
    import runpy

    if len(sys.argv) < 2:
        sys.exit("usage: python -m pumice.compat script.py [arguments]\n       python -m pumice.compat -m module [arguments]")
    # The module that runs is called __main__: the one that is imported installs.
    importlib.import_module("pumice.compat").install()
    if sys.argv[1] == "-m":
        sys.argv[:] = sys.argv[2:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    _main()
