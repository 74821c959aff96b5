"""What the tests of the Python package share."""

import h5py
import pytest

import pumice


@pytest.fixture
def path(tmp_path):
    """A path for a file."""
    return tmp_path / "file.h5"


@pytest.fixture(params=["pumice to h5py", "h5py to pumice", "pumice to pumice"])
def ways(request):
    """Who writes and who reads."""
    names = {"pumice": pumice, "h5py": h5py}
    writer, reader = request.param.split(" to ")
    return names[writer], names[reader]
