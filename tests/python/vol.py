"""What tests of the VOL connector share: programs of their own with the connector in their environment."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

from interop import program

# What every program begins with: a way to ask the connector how often it was called.
HEAD = '''
import ctypes, os, sys
import h5py
import numpy as np

def libhdf5(part):
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "libhdf5-" in line and part in line}
    return ctypes.CDLL(min(paths))

class Arguments(ctypes.Structure):
    _fields_ = [("op", ctypes.c_int), ("args", ctypes.c_void_p)]

def calls(file):
    """The connector's counter, by its operation on files."""
    library, number, counter = libhdf5("h5py"), ctypes.c_int(), ctypes.c_uint64()
    assert library.H5VLfind_opt_operation(6, b"pumice.calls", ctypes.byref(number)) >= 0
    arguments = Arguments(number.value, ctypes.addressof(counter))
    ask = library.H5VLfile_optional_op
    ask.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_int64, ctypes.c_void_p,
                    ctypes.c_int64, ctypes.c_int64]
    assert ask(b"", b"", 0, file.id.id, ctypes.addressof(arguments), 0, 0) >= 0
    return counter.value

def rfc():
    """The functions of the sparse RFC, which are in the connector."""
    functions = ctypes.CDLL(os.path.join(os.environ["HDF5_PLUGIN_PATH"], "libpumice_vol.so"))
    for name in ("H5Dget_defined",):
        getattr(functions, name).restype = ctypes.c_int64
    return functions

path = sys.argv[1]
'''


class Connector(unittest.TestCase):
    """A test with a directory of its own and the connector at hand."""

    def setUp(self):
        built = program("PUMICE_VOL", "libpumice_vol.so")
        if built is None:
            self.skipTest("the VOL connector is not built")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="pumice-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.plugins = self.directory / "plugins"
        self.plugins.mkdir()
        # Alone: libhdf5 opens all that is in the folder.
        shutil.copy(built, self.plugins / "libpumice_vol.so")
        self.path = self.directory / "a.h5"

    def run_program(self, text, *arguments, head="", connector="pumice", fails=False):
        """Runs a program, behind `head` if there is one, with the connector or natively.

        Gives what it printed, or its errors if it must fail.
        """
        environment = {**os.environ, "HDF5_PLUGIN_PATH": str(self.plugins)}
        if connector:
            environment["HDF5_VOL_CONNECTOR"] = connector
        text = HEAD + textwrap.dedent(head) + textwrap.dedent(text)
        done = subprocess.run([sys.executable, "-c", text, str(self.path), *map(str, arguments)], env=environment,
                              capture_output=True, text=True, timeout=240)
        if fails:
            self.assertNotEqual(done.returncode, 0)
            return done.stderr
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stdout.strip()
