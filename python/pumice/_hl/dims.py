"""Dimension scales: labels and datasets for the axes of others."""

import warnings

from ..low import h5ds, h5g
from . import base
from .dataset import Dataset


class DimensionProxy(base.HLObject):
    """An axis of a dataset: its label and its scales."""

    def __init__(self, id_, dimension):
        super().__init__(id_)
        self._dimension = dimension

    @property
    def label(self):
        """The label of the axis."""
        return h5ds.get_label(self._id, self._dimension).decode("utf-8", "surrogateescape")

    @label.setter
    def label(self, text):
        h5ds.set_label(self._id, self._dimension, text)

    def __hash__(self):
        return hash((type(self), self._id, self._dimension))

    def __eq__(self, other):
        return isinstance(other, DimensionProxy) and (self._id, self._dimension) == (other._id, other._dimension)

    def __iter__(self):
        yield from self.keys()

    def __len__(self):
        return h5ds.get_num_scales(self._id, self._dimension)

    def _scales(self):
        return h5ds.scales(self._id, self._dimension)

    def __getitem__(self, item):
        scales = self._scales()
        if isinstance(item, int):
            if not 0 <= item < len(scales):
                raise RuntimeError(f"The axis has no scale {item}")
            return Dataset(scales[item])
        names = [h5ds.get_scale_name(scale).decode() for scale in scales]
        if item not in names:
            raise KeyError(item)
        return Dataset(scales[names.index(item)])

    def attach_scale(self, dset):
        """Gives the axis a scale."""
        h5ds.attach_scale(self._id, dset.id, self._dimension)

    def detach_scale(self, dset):
        """Takes a scale from the axis."""
        h5ds.detach_scale(self._id, dset.id, self._dimension)

    def items(self):
        """The names of the scales with the scales."""
        return [(h5ds.get_scale_name(scale).decode(), Dataset(scale)) for scale in self._scales()]

    def keys(self):
        """The names of the scales."""
        return [key for key, _ in self.items()]

    def values(self):
        """The scales."""
        return [value for _, value in self.items()]

    def __repr__(self):
        if not self._id:
            return "<Dimension of closed HDF5 dataset>"
        return f'<"{self.label}" dimension {self._dimension} of HDF5 dataset at {id(self._id)}>'


class DimensionManager(base.HLObject):
    """The axes of a dataset."""

    def __init__(self, parent):
        super().__init__(parent.id)

    def __getitem__(self, index):
        if index > len(self) - 1:
            raise IndexError("Index out of range")
        return DimensionProxy(self._id, index)

    def __len__(self):
        return self._id.rank

    def __iter__(self):
        for at in range(len(self)):
            yield self[at]

    def __repr__(self):
        if not self._id:
            return "<Dimensions of closed HDF5 dataset>"
        return f"<Dimensions of HDF5 object at {id(self._id)}>"

    def create_scale(self, dset, name=""):
        """The older name of Dataset.make_scale."""
        warnings.warn(
            "other_ds.dims.create_scale(ds, name) is deprecated. Use ds.make_scale(name) instead.",
            _deprecation(),
            stacklevel=2,
        )
        dset.make_scale(name)


def _deprecation():
    from ..h5py_warnings import H5pyDeprecationWarning

    return H5pyDeprecationWarning


__all__ = ["DimensionManager", "DimensionProxy", "h5g"]
