"""HDF5 with h5py's habits, real threads and sparse arrays."""

from . import _pumice
from ._hl import filters
from ._hl.attrs import AttributeManager
from ._hl.base import Empty, HLObject, is_hdf5
from ._hl.cache import Cache, read_many, write_many
from ._hl.dataset import Dataset
from ._hl.datatype import Datatype
from ._hl.dtypes import (
    check_complex_dtype,
    check_dtype,
    check_enum_dtype,
    check_opaque_dtype,
    check_ref_dtype,
    check_string_dtype,
    check_vlen_dtype,
    complex_compat_dtype,
    enum_dtype,
    opaque_dtype,
    ref_dtype,
    regionref_dtype,
    special_dtype,
    string_dtype,
    vlen_dtype,
)
from ._hl.collective import CollectiveDataset, CollectiveFile
from ._hl.files import File, register_driver, registered_drivers, unregister_driver
from ._hl.foreign import SparseGroup, as_sparse, convert
from ._hl.group import ExternalLink, Group, HardLink, SoftLink
from ._hl.loader import Loader
from ._hl.selections import MultiBlockSlice
from ._hl.sparse import Cells, from_scipy
from ._hl.vds import VirtualLayout, VirtualSource
from .low.h5 import get_config
from .low.h5r import Reference, RegionReference
from .low.h5s import UNLIMITED

CollectiveError = _pumice.CollectiveError
__version__ = _pumice.__version__


def __getattr__(name: str) -> object:
    # Dask is looked for when it is asked for.
    if name == "dask":
        import importlib

        return importlib.import_module("pumice.dask")
    raise AttributeError(f"module 'pumice' has no attribute {name!r}")
