"""What a dataset is: type, shape, storage, filters, fill value."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _pumice
from ..low import h5t
from . import codec, dtypes, filters
from .base import product


# Filters that h5py has names for.
_KNOWN = frozenset(("gzip", "lzf", "szip", "shuffle", "fletcher32", "scaleoffset"))


class DatasetFacts:
    """The part of a dataset that tells what it is."""

    # What the dataset itself has.
    _ds: _pumice.Dataset
    id: Any
    resize: Callable[..., None]

    # The datatype and the dtype, once somebody has asked.
    _datatype: _pumice.Datatype | None = None
    _dtype: Any = None

    @property
    def _file_type(self):
        if self._datatype is None:
            self._datatype = self._ds.datatype
        return self._datatype

    @property
    def dtype(self):
        """The dtype that elements are read as."""
        if self._dtype is None:
            self._dtype = dtypes.dtype_of(self._file_type)
        return self._dtype

    @property
    def shape(self):
        """The size along each axis; None for a dataset without elements. Assigning resizes."""
        shape = self._ds.shape
        return None if shape is None else tuple(shape)

    @shape.setter
    def shape(self, shape):
        self.resize(shape)

    @property
    def ndim(self):
        """How many axes there are."""
        return self.id.rank

    @property
    def size(self):
        """How many elements there are; None for a dataset without."""
        shape = self._ds.shape
        return None if shape is None else product(shape)

    @property
    def nbytes(self):
        """How many bytes the elements take in memory."""
        if self._is_empty:
            return 0
        return self.size * self.dtype.itemsize

    @property
    def maxshape(self):
        """How large it can become along each axis; None for any size."""
        return None if self._is_empty else tuple(self._ds.max_shape)

    @property
    def _is_empty(self):
        return self._ds.shape is None

    @property
    def chunks(self):
        """The shape of chunks; None if it has none."""
        chunk = self._ds.chunk
        return None if chunk is None else tuple(chunk)

    @property
    def _filters(self):
        return filters.get_filters(self.id.get_create_plist())

    @property
    def filter_ids(self):
        """The numbers of its filters."""
        return tuple(number for number, _, _, _ in self._ds.filters)

    @property
    def filter_names(self):
        """The names of its filters."""
        plist = self.id.get_create_plist()
        return tuple(plist.get_filter(at)[3].decode() for at in range(plist.get_nfilters()))

    @property
    def compression(self):
        """The name of its compression; None if it has none."""
        for name in ("gzip", "lzf", "szip"):
            if name in self._filters:
                return name
        return "unknown" if set(self._filters) - _KNOWN else None

    @property
    def compression_opts(self):
        """The options of its compression."""
        return self._filters.get(self.compression)

    @property
    def shuffle(self):
        """Whether bytes of equal weight are stored together."""
        return "shuffle" in self._filters

    @property
    def fletcher32(self):
        """Whether chunks have a checksum."""
        return "fletcher32" in self._filters

    @property
    def scaleoffset(self):
        """The parameter of the scale-offset filter; None if it has none."""
        found = self._filters.get("scaleoffset")
        return None if found is None else found[1]

    @property
    def external(self):
        """The files that hold its elements; None if its own does."""
        if self._ds.layout != "external":
            return None
        return [(name, offset, size) for name, offset, size in self._ds.external()]

    @property
    def fillvalue(self):
        """What cells hold that nobody has written."""
        dtype = self.dtype
        found = self._ds.fill()
        if found is None:
            if dtype.subdtype is not None:
                return np.zeros(dtype.subdtype[1], dtype.subdtype[0])
            string = h5t.check_string_dtype(dtype)
            if string is not None and string.length is None:
                return b""
            return np.zeros((), dtype)[()]
        elements, heap = found
        return codec.decode_all(self._file_type, elements, heap, dtype, (), self.id.owner.group)[()]

    @property
    def is_virtual(self):
        """Whether its cells are those of other datasets."""
        return self._ds.layout == "virtual"

    def virtual_sources(self):
        """The parts of a virtual dataset."""
        from .vds import VDSmap

        if not self.is_virtual:
            raise RuntimeError("Not a virtual dataset")
        plist = self.id.get_create_plist()
        return [
            VDSmap(plist.get_virtual_vspace(at), plist.get_virtual_filename(at), plist.get_virtual_dsetname(at),
                   plist.get_virtual_srcspace(at))
            for at in range(plist.get_virtual_count())
        ]  # fmt: skip

    @property
    def dims(self):
        """Its axes: labels and scales."""
        from .dims import DimensionManager

        return DimensionManager(self)

    @property
    def is_scale(self):
        """Whether it is a dimension scale."""
        return self._ds.is_scale()

    def make_scale(self, name=""):
        """Makes it a dimension scale."""
        self._ds.make_scale(name.decode() if isinstance(name, bytes) else name)
