"""The defined cells of sparse datasets."""

from collections import namedtuple

import numpy as np

from .. import _pumice
from . import codec, selections

# Coordinates (an array with a row for each axis), values, and the shape that they are cells of.
Cells = namedtuple("Cells", ["coordinates", "values", "shape"])


class _Window:
    """Cells that an index means, with the indices along each axis."""

    def __init__(self, shape, args):
        if not isinstance(args, tuple):
            args = (args,)
        items = selections._expanded(args, len(shape))
        self.axes = [selections._axis(item, side, len(shape)) for item, side in zip(items, shape)]
        self.indices = [axis.indices() if axis.count else np.empty(0, np.uint64) for axis in self.axes]
        self.kept = [at for at, axis in enumerate(self.axes) if axis.kind != "scalar"]
        self.shape = tuple(self.axes[at].count for at in self.kept)
        if any(axis.count == 0 for axis in self.axes):
            self.native = _pumice.Selection.none()
        elif all(axis.slab is not None for axis in self.axes) and self.axes:
            self.native = _pumice.Selection.hyperslab(*(list(part) for part in zip(*(a.slab for a in self.axes))))
        else:
            self.native = _pumice.Selection.outer(self.indices) if self.axes else _pumice.Selection.all()

    def inside(self, absolute):
        """Coordinates of the dataset as those of the window."""
        found = [np.searchsorted(self.indices[at], absolute[at]) for at in self.kept]
        return np.array(found, dtype=np.int64).reshape(len(self.kept), -1)

    def outside(self, relative):
        """Coordinates of the window as those of the dataset."""
        relative = np.asarray(relative)
        count = relative.shape[1] if len(self.kept) else 1
        rows = []
        for at, axis in enumerate(self.axes):
            if axis.kind == "scalar":
                rows.append(np.full(count, axis.slab[0], np.uint64))
                continue
            row = relative[self.kept.index(at)]
            if len(row) and (row.min() < 0 or row.max() >= axis.count):
                raise IndexError(f"Coordinates out of range for (0-{axis.count - 1})")
            rows.append(self.indices[at][row])
        return np.array(rows, dtype=np.uint64).reshape(len(self.axes), count)


class SparseView:
    """The defined cells of a dataset: index it to read them, assign to define them.

    Reading gives an array of scipy.sparse (``form`` csr, csc or coo) where the cells have two axes, and Cells
    otherwise. Assigning takes arrays of scipy.sparse, masked arrays, Cells, or a pair of coordinates and values; what
    was defined there before and is not among them is erased.
    """

    def __init__(self, dataset, form="csr"):
        self._dataset = dataset
        self._form = form

    def __call__(self, form):
        """The view that reads another form: csr, csc, coo or cells."""
        if form not in ("csr", "csc", "coo", "cells"):
            raise ValueError(f"{form} is no form; there are csr, csc, coo and cells")
        return SparseView(self._dataset, form)

    def cells(self, args=()):
        """Coordinates and values of the defined cells."""
        window = _Window(self._dataset.shape, args)
        return self._read(window)

    def _read(self, window):
        dataset = self._dataset
        rank = len(window.axes)
        datatype = dataset._file_type
        if datatype.has_varlen:
            places, elements, heap = dataset._ds.read_defined_heaped(window.native)
        else:
            places, elements = dataset._ds.read_defined(window.native)
            heap = codec.NO_BYTES
        count = len(elements) // datatype.size
        values = codec.decode_all(datatype, elements, heap, dataset.dtype, (count,), dataset.id.owner.group)
        absolute = places.reshape(-1, rank).T
        return Cells(window.inside(absolute), values, window.shape)

    def __getitem__(self, args):
        found = self.cells(args)
        if self._form == "cells" or len(found.shape) != 2:
            return found
        import scipy.sparse

        # scipy has no sparse arrays in another order of bytes.
        values = found.values.astype(found.values.dtype.newbyteorder("="), copy=False)
        matrix = scipy.sparse.coo_array((values, tuple(found.coordinates)), shape=found.shape)
        return matrix if self._form == "coo" else matrix.asformat(self._form)

    def __setitem__(self, args, value):
        window = _Window(self._dataset.shape, args)
        coordinates, values = _cells_of(value, window.shape)
        if self._dataset._ds.count_defined(window.native):
            self._dataset._ds.erase(window.native)
        self._define(window.outside(coordinates), values)

    def define(self, coordinates, values):
        """Defines cells by their coordinates (a row for each axis); others stay as they are."""
        window = _Window(self._dataset.shape, ())
        self._define(window.outside(np.atleast_2d(coordinates)), np.asarray(values))

    def _define(self, absolute, values):
        dataset = self._dataset
        flat = np.ascontiguousarray(absolute.T).reshape(-1)
        if len(flat) == 0 and dataset.ndim:
            return
        datatype = dataset._file_type
        elements, heap = codec.encode_all(datatype, np.asarray(values), dataset.id.owner.group, dataset.dtype)
        if heap is None:
            dataset._ds.write_at(flat, elements)
        else:
            dataset._ds.write_heaped(_pumice.Selection.points(dataset.ndim, flat), elements, heap)

    def masked(self, args=()):
        """The cells as a masked array: what is masked is not defined."""
        dense = np.asarray(self._dataset[args])
        return np.ma.MaskedArray(dense, ~self.defined(args))

    def defined(self, args=()):
        """Which of the cells are defined, as an array of truth values."""
        found = self.cells(args)
        mask = np.zeros(found.shape, bool)
        mask[tuple(found.coordinates)] = True
        return mask


def _cells_of(value, shape):
    """Coordinates and values of what is assigned."""
    if isinstance(value, np.ma.MaskedArray):
        value = np.ma.MaskedArray(np.broadcast_to(value.data, shape), np.broadcast_to(np.ma.getmaskarray(value), shape))
        places = np.nonzero(~np.ma.getmaskarray(value))
        return np.array(places, dtype=np.int64).reshape(len(shape), -1), value.data[places]
    if isinstance(value, tuple) and len(value) in (2, 3):
        coordinates = np.asarray(value[0], dtype=np.int64).reshape(len(shape), -1)
        values = np.asarray(value[1])
        if values.ndim == 0:
            values = np.broadcast_to(values, coordinates.shape[1])
        if len(values) != coordinates.shape[1]:
            raise ValueError(f"{len(values)} values for {coordinates.shape[1]} cells")
        return coordinates, values
    if hasattr(value, "tocoo"):
        value = value.tocoo()
        if value.shape != shape:
            raise TypeError(f"Can't assign a sparse array of shape {value.shape} to cells of shape {shape}")
        if not getattr(value, "has_canonical_format", True):
            value = value.copy()
            value.sum_duplicates()
        coordinates = getattr(value, "coords", None)
        coordinates = (value.row, value.col) if coordinates is None else coordinates
        return np.array(coordinates, dtype=np.int64).reshape(len(shape), -1), value.data
    if hasattr(value, "coords") and hasattr(value, "data"):
        return np.asarray(value.coords, dtype=np.int64).reshape(len(shape), -1), np.asarray(value.data)
    raise TypeError(f"{type(value).__name__} is no sparse array; assign dense ones to the dataset itself")


def from_scipy(group, name, matrix, **options):
    """Makes a sparse dataset from an array of scipy.sparse; options are those of create_dataset."""
    share = matrix.nnz / max(1, selections.product(matrix.shape))
    options.setdefault("density", max(share, 1e-9))
    dataset = group.create_dataset(name, matrix.shape, matrix.dtype, sparse=True, **options)
    dataset.sparse[...] = matrix
    return dataset
