"""Virtual datasets: the cells of other datasets under one name."""

import os
from collections import namedtuple
from copy import deepcopy

import numpy as np

from .. import _pumice
from ..low import h5s
from . import selections
from .base import product  # noqa: F401
from .dtypes import datatype_of, is_plain

vds_support = True

VDSmap = namedtuple("VDSmap", ("vspace", "file_name", "dset_name", "src_space"))


class VirtualSource:
    """Cells of a dataset of some file, which need not be there yet."""

    def __init__(self, path_or_dataset, name=None, shape=None, dtype=None, maxshape=None):
        from .dataset import Dataset

        if isinstance(path_or_dataset, Dataset):
            failed = {k: v for k, v in {"name": name, "shape": shape, "dtype": dtype, "maxshape": maxshape}.items()
                      if v is not None}  # fmt: skip
            if failed:
                raise TypeError(
                    f"If a Dataset is passed as the first argument then no other arguments may be passed. "
                    f"You passed {failed}"
                )
            dataset = path_or_dataset
            path, name = dataset.file.filename, dataset.name
            shape, maxshape, dtype = dataset.shape, dataset.maxshape, dataset.dtype
        else:
            path = os.fspath(path_or_dataset)
            if name is None:
                raise TypeError("The name parameter is required when specifying a source by path")
            if shape is None:
                raise TypeError("The shape parameter is required when specifying a source by path")
            if isinstance(shape, int):
                shape = (shape,)
            if isinstance(maxshape, int):
                maxshape = (maxshape,)
        self.path = path
        self.name = name
        self.dtype = dtype
        self.maxshape = tuple(shape) if maxshape is None else tuple(h5s.UNLIMITED if m is None else m for m in maxshape)
        self.sel = selections.SimpleSelection(tuple(shape))
        self._all_selected = True

    @property
    def shape(self):
        """The shape of the cells."""
        return self.sel.array_shape

    def __getitem__(self, key):
        if not self._all_selected:
            raise RuntimeError(
                "VirtualSource objects can only be sliced once."
            )
        made = deepcopy_source(self)
        made.sel = selections.select(self.sel.shape, key)
        made.sel = _unlimited(made.sel, self.sel.shape, self.maxshape, key)
        made._all_selected = False
        return made


def deepcopy_source(source):
    """A source like another."""
    made = object.__new__(VirtualSource)
    made.__dict__.update(source.__dict__)
    return made


def _unlimited(selection, shape, maxshape, key):
    """The selection with an axis without end where a slice has none and the axis can grow without end."""
    if h5s.UNLIMITED not in maxshape:
        return selection
    regular = selection.native.regular() if selection.native.kind == "hyperslab" else None
    if regular is None:
        return selection
    keys = key if isinstance(key, tuple) else (key,)
    items = selections._expanded(keys, len(shape))
    start, stride, count, block = (list(part) for part in regular)
    changed = False
    for axis, (item, most) in enumerate(zip(items, maxshape)):
        if most == h5s.UNLIMITED and isinstance(item, slice) and item.stop == h5s.UNLIMITED:
            step = item.step or 1
            stride[axis], count[axis], block[axis] = step, h5s.UNLIMITED, 1
            changed = True
    if changed:
        selection.native = _pumice.Selection.hyperslab(start, stride, count, block)
        selection._endless = True
    return selection


class VirtualLayout:
    """What a virtual dataset is made of: assign sources to its cells."""

    def __init__(self, shape, dtype, maxshape=None, filename=None):
        self._shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype) if not hasattr(dtype, "id") else dtype
        self._maxshape = (maxshape,) if isinstance(maxshape, int) else maxshape
        self._filename = filename
        self.sources = []

    @property
    def shape(self):
        """The shape."""
        return self._shape

    @property
    def maxshape(self):
        """How large it can become."""
        return self._maxshape

    def __setitem__(self, key, source):
        sel = selections.select(self._shape, key)
        most = self._shape if self._maxshape is None else [h5s.UNLIMITED if m is None else m for m in self._maxshape]
        sel = _unlimited(sel, self._shape, most, key)
        theirs = source.sel
        endless = getattr(sel, "_endless", False) or getattr(theirs, "_endless", False)
        if not endless and sel.nselect != theirs.nselect:
            raise ValueError("The cells of the layout and of the source are of different number")
        self.sources.append(VDSmap(sel.native, source.path, source.name, source.sel.native))

    def parts(self, filename):
        """The parts as the native module takes them; a source in the file itself is called ``.``."""
        found = []
        for part in self.sources:
            path = part.file_name
            own = filename is not None and _same(path, filename)
            found.append((_whole(part.vspace, self._shape), "." if own else path, part.dset_name, part.src_space))
        return found


def _same(path, filename):
    return path == filename or os.path.abspath(path) == os.path.abspath(filename)


def _whole(selection, shape):
    return selection


__all__ = ["VDSmap", "VirtualLayout", "VirtualSource", "datatype_of", "is_plain", "deepcopy", "vds_support"]
