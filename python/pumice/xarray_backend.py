"""Files of netCDF-4 for xarray: ``xarray.open_dataset(path, engine="pumice")``.

Variables are datasets, dimensions are their scales; no lock is held while they are read.
"""

import os

import numpy as np
import xarray
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.core import indexing
from xarray.core.utils import FrozenDict

from . import File, check_enum_dtype, check_string_dtype, is_hdf5

# Attributes that netCDF-4 and dimension scales have for themselves.
_HIDDEN = frozenset(("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid",
                     "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"))  # fmt: skip
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable."


class PumiceArray(BackendArray):
    """A dataset that is read when its cells are asked for."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.shape = dataset.shape
        string = check_string_dtype(dataset.dtype)
        self.text = string is not None and string.length is None
        self.dtype = np.dtype(object) if self.text else dataset.dtype
        if check_enum_dtype(dataset.dtype) is not None and dataset.dtype.kind != "b":
            self.dtype = np.dtype(dataset.dtype.str)

    def __getitem__(self, key):
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key):
        # Lists in any order become ascending ones; steps backwards become forward ones.
        asked, after = [], []
        for item, side in zip(key, self.shape):
            if isinstance(item, slice):
                if item.step is not None and item.step < 0:
                    picked = np.arange(side)[item]
                    asked.append(slice(picked[-1], picked[0] + 1, -item.step) if len(picked) else slice(0, 0))
                    after.append(slice(None, None, -1))
                else:
                    asked.append(item)
                    after.append(slice(None))
            elif isinstance(item, np.ndarray):
                unique, back = np.unique(item, return_inverse=True)
                asked.append(unique)
                after.append(back)
            else:
                asked.append(item)
        source = self.dataset.asstr() if self.text else self.dataset
        found = np.asarray(source[tuple(asked)])
        for axis, item in enumerate(after):
            if not isinstance(item, slice) or item != slice(None):
                found = found[(slice(None),) * axis + (item,)]
        return found.astype(self.dtype, copy=False)


class PumiceStore(AbstractDataStore):
    """A group of a file."""

    def __init__(self, file, group):
        self.file = file
        self.group = file if group in (None, "", "/") else file[group]

    def _dimensions(self, name, dataset):
        if dataset.is_scale and dataset.ndim == 1:
            return (name,)
        found = []
        for axis in range(dataset.ndim):
            scales = list(dataset.dims[axis].values())
            found.append(scales[0].name.rsplit("/", 1)[-1] if scales else f"phony_dim_{name}_{axis}")
        return tuple(found)

    def _variable(self, name, dataset):
        attrs = {key: _plain(value) for key, value in dataset.attrs.items() if key not in _HIDDEN}
        encoding = {"chunksizes": dataset.chunks, "source": self.file.filename, "original_shape": dataset.shape}
        if dataset.chunks is not None:
            encoding["preferred_chunks"] = dict(zip(self._dimensions(name, dataset), dataset.chunks))
            encoding.update(zlib=dataset.compression == "gzip", shuffle=dataset.shuffle, fletcher32=dataset.fletcher32)
        data = indexing.LazilyIndexedArray(PumiceArray(dataset))
        return xarray.Variable(self._dimensions(name, dataset), data, attrs, encoding)

    def get_variables(self):
        """The variables by name."""
        found = {}
        for name, dataset in self.group.items():
            if not hasattr(dataset, "dims") or dataset.shape is None:
                continue
            if dataset.is_scale and bytes(dataset.attrs.get("NAME", b"")).startswith(_NO_VARIABLE):
                continue
            found[name] = self._variable(name, dataset)
        return FrozenDict(found)

    def get_attrs(self):
        """The attributes of the group."""
        return FrozenDict({key: _plain(value) for key, value in self.group.attrs.items() if key not in _HIDDEN})

    def get_dimensions(self):
        """The lengths of dimensions by name."""
        return FrozenDict({name: len(data) for name, data in self.group.items() if getattr(data, "is_scale", False)})

    def close(self):
        """Closes the file."""
        self.file.close()


def _plain(value):
    """An attribute as netCDF has it: text, or a number where there is but one."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


class PumiceBackendEntrypoint(BackendEntrypoint):
    """How xarray opens files with pumice."""

    description = "Open netCDF-4 and other HDF5 files with pumice"
    supports_groups = False
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "group")

    def guess_can_open(self, filename_or_obj):
        """Whether a file is one of HDF5."""
        return isinstance(filename_or_obj, (str, os.PathLike)) and is_hdf5(filename_or_obj)

    def open_dataset(self, filename_or_obj, *, mask_and_scale=True, decode_times=True, concat_characters=True,
                     decode_coords=True, drop_variables=None, use_cftime=None, decode_timedelta=None, group=None):  # fmt: skip
        """A dataset of xarray."""
        store = PumiceStore(File(filename_or_obj, "r"), group)
        made = StoreBackendEntrypoint().open_dataset(
            store, mask_and_scale=mask_and_scale, decode_times=decode_times, concat_characters=concat_characters,
            decode_coords=decode_coords, drop_variables=drop_variables, use_cftime=use_cftime,
            decode_timedelta=decode_timedelta)  # fmt: skip
        made.set_close(store.close)
        return made
