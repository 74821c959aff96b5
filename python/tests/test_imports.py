"""pumice beside libraries that have libhdf5, in one process."""

import importlib.util
import itertools
import subprocess
import sys

import pytest

PROGRAM = """
import sys
names = sys.argv[1].split(",")
modules = {name: __import__(name) for name in names}
import numpy as np
pumice, h5py = modules["pumice"], modules["h5py"]
path = sys.argv[2]
with pumice.File(path, "w") as file:
    file.create_dataset("d", data=np.arange(100), chunks=(10,), compression="gzip")
with h5py.File(path, "r") as file:
    assert file["d"][50] == 50
if "netCDF4" in modules:
    with modules["netCDF4"].Dataset(path) as file:
        assert file["d"][50] == 50
if "tables" in modules:
    with modules["tables"].open_file(path) as file:
        assert file.root.d[50] == 50
with pumice.File(path, "r") as file:
    assert file["d"][50] == 50
"""

OTHERS = [name for name in ("netCDF4", "tables") if importlib.util.find_spec(name) is not None]

# Each comes first once, each last, and each behind each other.
ORDERS = [order for number, order in enumerate(itertools.permutations(["pumice", "h5py", *OTHERS])) if number % 5 == 0]


@pytest.mark.skipif(not OTHERS, reason="neither netCDF4 nor tables is installed")
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_libraries_are_imported_in_any_order(order, path):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, ",".join(order), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
