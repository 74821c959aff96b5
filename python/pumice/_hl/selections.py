"""Which cells an index means: the rules of h5py."""

import operator

import numpy as np

from .. import _pumice
from ..low import h5r
from ..low.h5s import SpaceID


def product(numbers):
    """The product of numbers; 1 for none."""
    result = 1
    for number in numbers:
        result *= number
    return result


class MultiBlockSlice:
    """Blocks at equal distances along an axis: start, stride, count and block of a hyperslab."""

    def __init__(self, start=0, stride=1, count=None, block=1):
        if start < 0:
            raise ValueError("Start can't be negative")
        if stride < 1 or (count is not None and count < 1) or block < 1:
            raise ValueError("Stride, count and block can't be 0 or negative")
        if block > stride:
            raise ValueError("Blocks will overlap if block > stride")
        self.start = start
        self.stride = stride
        self.count = count
        self.block = block

    def indices(self, length):
        """Start, stride, count and block that fit into an axis."""
        if self.start >= length:
            raise ValueError(f"Start index {self.start} out of range (0-{length - 1})")
        count = self.count
        if count is None:
            count = (length - self.start - self.block) // self.stride + 1
            if count < 1:
                raise ValueError("No full blocks can be selected using " f"{self._repr()} on dimension of length {length}")
        end = self.start + self.block + (count - 1) * self.stride
        if end - 1 >= length:
            raise ValueError(f"{self._repr(count)} range ({self.start} - {end - 1}) extends beyond maximum index ({length - 1})")
        return self.start, self.stride, count, self.block

    def _repr(self, count=None):
        count = self.count if count is None else count
        return f"{type(self).__name__}(start={self.start}, stride={self.stride}, count={count}, block={self.block})"

    def __repr__(self):
        return self._repr()


class Selection:
    """Cells of an array; the base class is for those without a shape of their own."""

    def __init__(self, shape, spaceid=None, native=None):
        if spaceid is not None:
            self._shape = tuple(spaceid.shape)
            native = spaceid.selection
        else:
            self._shape = tuple(shape)
        self.native = _pumice.Selection.all() if native is None else native

    @property
    def id(self):
        """The dataspace with the cells."""
        return SpaceID(self._shape, selection=self.native)

    @property
    def shape(self):
        """The shape of the array."""
        return self._shape

    @property
    def nselect(self):
        """How many cells there are."""
        return self.native.count(self._shape)

    @property
    def mshape(self):
        """The shape of the cells."""
        return (self.nselect,)

    @property
    def array_shape(self):
        """The shape of the array to read or write."""
        return self.mshape

    def expand_shape(self, source_shape):
        """The shape that an array to be written has, axis by axis of the cells."""
        if product(source_shape) != self.nselect:
            raise TypeError("Broadcasting is not supported for point-wise selections")
        return source_shape

    def fitted(self, array):
        """An array with a value for each cell, from one that is to be written."""
        if array.ndim == 0 or array.size == 1 and self.nselect != 1:
            return np.broadcast_to(array.reshape(()), self.array_shape)
        self.expand_shape(array.shape)
        return array

    def broadcast(self, source_shape):
        """The dataspace with the cells, once."""
        self.expand_shape(source_shape)
        yield self.id

    def __getitem__(self, args):
        raise NotImplementedError("This class does not support indexing")


class PointSelection(Selection):
    """Cells one by one, in any order."""

    def __init__(self, shape, spaceid=None, points=None):
        super().__init__(shape, spaceid)
        if points is not None:
            self.set(points)

    @classmethod
    def from_mask(cls, mask, spaceid=None):
        """The cells where an array is true."""
        if not (isinstance(mask, np.ndarray) and mask.dtype.kind == "b"):
            raise TypeError("PointSelection.from_mask only works with bool arrays")
        return cls(mask.shape, spaceid, points=np.transpose(mask.nonzero()))

    def _points(self):
        found = self.native.coordinates()
        rank = len(self._shape)
        return np.empty((0, rank), np.uint64) if found is None else found.reshape(-1, rank)

    def _take(self, points):
        points = np.ascontiguousarray(points, dtype=np.uint64)
        if len(points) == 0:
            self.native = _pumice.Selection.none()
        else:
            self.native = _pumice.Selection.points(len(self._shape), points.reshape(-1))

    def _given(self, points):
        return np.atleast_2d(np.asarray(points, order="C", dtype="u8")).reshape(-1, len(self._shape))

    def set(self, points):
        """These points alone."""
        self._take(self._given(points))

    def append(self, points):
        """These points behind the others."""
        self._take(np.concatenate([self._points(), self._given(points)]))

    def prepend(self, points):
        """These points before the others."""
        self._take(np.concatenate([self._given(points), self._points()]))


class SimpleSelection(Selection):
    """A box, perhaps with steps: integers and slices."""

    def __init__(self, shape, spaceid=None, hyperslab=None, native=None):
        super().__init__(shape, spaceid, native)
        if hyperslab is None:
            hyperslab = (self._shape, (False,) * len(self._shape))
        self._counts, self._scalars = hyperslab

    @property
    def mshape(self):
        return tuple(self._counts)

    @property
    def array_shape(self):
        return tuple(count for count, scalar in zip(self._counts, self._scalars) if not scalar)

    @property
    def nselect(self):
        return product(self._counts)

    def expand_shape(self, source_shape):
        left = list(source_shape)
        expanded = []
        for count, scalar in zip(reversed(self._counts), reversed(self._scalars)):
            if not left or scalar:
                expanded.append(1)
                continue
            size = left.pop()
            if size != 1 and size != count:
                raise TypeError(f"Can't broadcast {tuple(source_shape)} -> {self.array_shape}")
            expanded.append(size)
        if any(size > 1 for size in left):
            raise TypeError(f"Can't broadcast {tuple(source_shape)} -> {self.array_shape}")
        return tuple(reversed(expanded))

    def fitted(self, array):
        if array.shape == self.array_shape:
            return array
        expanded = array.reshape(self.expand_shape(array.shape))
        return np.broadcast_to(expanded, self.mshape).reshape(self.array_shape)


class FancySelection(Selection):
    """A list of indices or a mask along one axis, and slices along the others."""

    def __init__(self, shape, spaceid=None, mshape=None, array_shape=None, native=None):
        super().__init__(shape, spaceid, native)
        self._mshape = self._shape if mshape is None else tuple(mshape)
        self._array_shape = self._mshape if array_shape is None else tuple(array_shape)

    @property
    def mshape(self):
        return self._mshape

    @property
    def array_shape(self):
        return self._array_shape

    def expand_shape(self, source_shape):
        if tuple(source_shape) != self._array_shape:
            raise TypeError("Broadcasting is not supported for complex selections")
        return source_shape

    def fitted(self, array):
        if array.ndim == 0 and self._array_shape:
            # One value for all cells.
            return np.broadcast_to(array, self._array_shape)
        self.expand_shape(array.shape)
        return array


# -- indices -------------------------------------------------------------------------------------------


def _is_mask(item):
    return isinstance(item, np.ndarray) and item.dtype.kind == "b"


def _listed(item, length):
    """A list, mask or array of one axis as ascending indices."""
    if isinstance(item, range) or isinstance(item, (list, tuple)):
        item = np.asarray(item)
        if item.size == 0 and item.dtype.kind == "f":
            item = item.astype(np.int64)
        if item.ndim > 1:
            return None
    if not isinstance(item, np.ndarray):
        return None
    if item.ndim != 1:
        raise TypeError("Only 1D arrays allowed for fancy indexing")
    if item.dtype.kind == "b":
        if len(item) != length:
            raise TypeError("boolean index did not match indexed array")
        return item.nonzero()[0].astype(np.uint64)
    if item.dtype.kind not in "iu":
        raise TypeError("Indexing arrays must have integer dtypes")
    if item.dtype.kind == "i" and len(item) and item.min() < 0:
        item = np.where(item < 0, item + length, item)
    if len(item) and (item.min() < 0 or item.max() >= length):
        raise IndexError(f"Fancy indexing out of range for (0-{length - 1})")
    if len(item) > 1 and not (item[1:] > item[:-1]).all():
        raise TypeError("Indexing elements must be in increasing order")
    return item.astype(np.uint64)


class _Axis:
    """What one item of an index means along its axis."""

    __slots__ = ("count", "kind", "listed", "slab")

    def __init__(self, kind, count, slab=None, listed=None):
        self.kind, self.count, self.slab, self.listed = kind, count, slab, listed

    def indices(self):
        """Every index."""
        if self.listed is not None:
            return self.listed
        start, stride, count, block = self.slab
        starts = start + stride * np.arange(count, dtype=np.uint64)
        return np.add.outer(starts, np.arange(block, dtype=np.uint64)).reshape(-1).astype(np.uint64)


def _axis(item, length, rank):
    if isinstance(item, slice):
        start, stop, step = item.indices(length)
        if step < 1:
            raise ValueError(f"Step must be >= 1 (got {step})")
        count = max(0, -(-(stop - start) // step))
        return _Axis("slice", count, (start if count else 0, step if count > 1 else 1, count, 1))
    if isinstance(item, MultiBlockSlice):
        start, stride, count, block = item.indices(length)
        return _Axis("slice", count * block, (start, stride, count, block))
    if item is None:
        raise TypeError("Indexing with None (or np.newaxis) is not supported")
    try:
        index = operator.index(item)
    except TypeError:
        pass
    else:
        if index < 0:
            index += length
        if not 0 <= index < length:
            if length == 0:
                raise IndexError(f"Index ({index}) out of range for empty dimension")
            raise IndexError(f"Index ({index}) out of range for (0-{length - 1})")
        return _Axis("scalar", 1, (index, 1, 1, 1))
    listed = _listed(item, length)
    if listed is None:
        raise TypeError(f"Selection can't process {item!r}")
    return _Axis("list", len(listed), listed=listed)


def _expanded(args, rank):
    """The index with an item for each axis."""
    places = [at for at, item in enumerate(args) if item is Ellipsis]
    if len(places) > 1:
        raise ValueError("Only one ellipsis may be used.")
    given = len(args) - len(places)
    if given > rank:
        raise ValueError(f"{given} indexing arguments for {rank} dimensions")
    at = places[0] if places else len(args)
    behind = args[at + 1 :] if places else ()
    return (*args[:at], *[slice(None)] * (rank - given), *behind)


def _select_axes(shape, args):
    if any(item is None for item in args):
        raise TypeError("Indexing with None (or np.newaxis) is not supported")
    items = _expanded(args, len(shape))
    axes = [_axis(item, length, len(shape)) for item, length in zip(items, shape)]
    lists = sum(axis.kind == "list" for axis in axes)
    if lists > 1:
        raise TypeError("Only one indexing vector or array is currently allowed for fancy indexing")
    counts = tuple(axis.count for axis in axes)
    scalars = tuple(axis.kind == "scalar" for axis in axes)
    if 0 in counts:
        native = _pumice.Selection.none()
    elif not axes:
        native = _pumice.Selection.all()
    elif lists:
        native = _pumice.Selection.outer([axis.indices() for axis in axes])
    else:
        native = _pumice.Selection.hyperslab(*(list(part) for part in zip(*(axis.slab for axis in axes))))
    if lists:
        inner = tuple(count for count, scalar in zip(counts, scalars) if not scalar)
        return FancySelection(shape, mshape=counts, array_shape=inner, native=native)
    return SimpleSelection(shape, hyperslab=(counts, scalars), native=native)


def select(shape, args, dataset=None):
    """The cells that an index means in an array of a shape."""
    if not isinstance(args, tuple):
        args = (args,)
    simple = _pumice.simple_index(shape, args)
    if simple is not None:
        native, counts, scalars = simple
        return SimpleSelection(shape, hyperslab=(counts, scalars), native=native)
    if len(args) == 1:
        arg = args[0]
        if isinstance(arg, Selection):
            if arg.shape != tuple(shape):
                raise TypeError("Mismatched selection shape")
            return arg
        if _is_mask(arg):
            if arg.shape == tuple(shape):
                return PointSelection.from_mask(arg)
            if arg.shape != tuple(shape)[:1]:
                raise TypeError("Boolean indexing array has incompatible shape")
        elif isinstance(arg, h5r.RegionReference):
            if dataset is None:
                raise TypeError("Cannot apply a region reference without a dataset")
            space = h5r.get_region(arg, dataset.id)
            if tuple(shape) != space.shape:
                raise TypeError("Reference shape does not match dataset shape")
            found = guess_shape(space)
            return FancySelection(shape, mshape=found, native=space.selection)
    return _select_axes(tuple(shape), args)


def guess_shape(space):
    """The shape of the cells of a dataspace; of one dimension where they form no array; None for nothing."""
    from ..low import h5s

    extent = space.get_simple_extent_type()
    if extent == h5s.NULL:
        return None
    kind = space.get_select_type()
    if extent == h5s.SCALAR:
        return None if kind == h5s.SEL_NONE else ()
    count = space.get_select_npoints()
    if kind == h5s.SEL_NONE or count == 0 and kind == h5s.SEL_HYPERSLABS:
        return (0,) * len(space.shape)
    if kind == h5s.SEL_ALL:
        return space.shape
    if kind == h5s.SEL_POINTS:
        return (count,)
    lengths = space.selection.shape(list(space.shape))
    return tuple(lengths) if product(lengths) == count else (count,)
