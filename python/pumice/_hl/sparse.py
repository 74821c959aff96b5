"""The defined cells of sparse datasets."""

import threading
from collections import namedtuple

import numpy as np

from .. import _pumice
from . import codec, selections

# Coordinates (an array with a row for each axis), values, and the shape that they are cells of.
Cells = namedtuple("Cells", ["coordinates", "values", "shape"])

FORMS = ("csr", "csc", "coo", "pydata", "cells")

# The numbers that go straight between a file and arrays of scipy.
_KINDS = frozenset(("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"))

# Cells that are written before somebody is told of progress.
_STEP = 4 << 20

# Who lets an axis grow does so alone.
_growing = threading.Lock()


class _Window:
    """Cells that an index means, with the indices along each axis."""

    def __init__(self, shape, args):
        if not isinstance(args, tuple):
            args = (args,)
        items = selections._expanded(args, len(shape))
        self.axes = [selections._axis(item, side, len(shape)) for item, side in zip(items, shape)]
        self.kept = [at for at, axis in enumerate(self.axes) if axis.kind != "scalar"]
        self.shape = tuple(self.axes[at].count for at in self.kept)
        self.whole = self.shape == tuple(shape) and all(axis.slab is not None for axis in self.axes)
        self.empty = any(axis.count == 0 for axis in self.axes)
        if self.empty:
            self.native = _pumice.Selection.none()
        elif all(axis.slab is not None for axis in self.axes) and self.axes:
            self.native = _pumice.Selection.hyperslab(*(list(part) for part in zip(*(a.slab for a in self.axes))))
        elif self.axes:
            self.native = _pumice.Selection.outer([axis.indices() for axis in self.axes])
        else:
            self.native = _pumice.Selection.all()

    def _start(self, axis):
        """Where an axis begins that is a range; None if it is another."""
        slab = self.axes[axis].slab
        return slab[0] if _is_range(slab) else None

    def inside(self, absolute):
        """Coordinates of the dataset (an array for each axis) as those of the window."""
        found = []
        for at in self.kept:
            column = absolute[at]
            if self.empty:
                found.append(np.asarray(column, dtype=np.int64))
                continue
            start = self._start(at)
            if start is None:
                found.append(np.searchsorted(self.axes[at].indices(), column))
            else:
                found.append(column if start == 0 else column - column.dtype.type(start))
        return found

    def outside(self, relative):
        """Coordinates of the window (an array for each axis) as those of the dataset."""
        count = len(relative[0]) if len(self.kept) else 1
        columns = []
        for at, axis in enumerate(self.axes):
            if axis.kind == "scalar":
                columns.append(np.full(count, axis.slab[0], np.uint64))
                continue
            column = np.asarray(relative[self.kept.index(at)])
            if len(column) and (column.min() < 0 or column.max() >= axis.count):
                raise IndexError(f"Coordinates out of range for (0-{axis.count - 1})")
            start = None if self.empty else self._start(at)
            if start == 0 or not len(column):
                columns.append(column)
            elif start is not None:
                columns.append(column.astype(np.uint64) + np.uint64(start))
            else:
                columns.append(axis.indices()[column])
        return columns


def _is_range(slab):
    return slab is not None and (slab[1] == 1 and slab[3] == 1 or slab[2] == 1)


def kind_of(dataset):
    """The name of its numbers, if they go straight into arrays of scipy; None otherwise."""
    if dataset._kind is False:
        dtype = dataset.dtype
        plain = dtype.kind in "iufc" and dtype.metadata is None
        name = dtype.newbyteorder("=").str[1:] if plain else None
        dataset._kind = name if name in _KINDS else None
    return dataset._kind


def _in_line(array, dtype=None):
    """An array whose elements lie one after another, where such elements may lie: messages of Dask have them anywhere."""
    array = np.ascontiguousarray(array, dtype)
    return array if array.flags.aligned else array.copy()


def _numbers(array):
    """Coordinates as the native module takes them, without a copy if they are of scipy's types."""
    array = _in_line(array)
    if array.dtype in (np.int32, np.uint32):
        return array.view(np.uint32)
    if array.dtype in (np.int64, np.uint64):
        return array.view(np.uint64)
    return array.astype(np.uint64)


def matrix_of(form, shape, arrays):
    """An array of scipy.sparse from values, indices and pointers, none of which is copied or looked at."""
    import scipy.sparse

    pointers, indices, values = arrays
    made = scipy.sparse.csr_array if form == "csr" else scipy.sparse.csc_array
    matrix = made(shape, dtype=values.dtype)
    matrix.data, matrix.indices, matrix.indptr = values, indices, pointers
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


class SparseView:
    """The defined cells of a dataset: index it to read them, assign to define them.

    Reading gives an array of scipy.sparse (``form`` csr, csc or coo) where the cells have two axes and are numbers,
    ``sparse.COO`` for the form pydata, and Cells otherwise. A list of rows may be in any order. Assigning takes arrays
    of scipy.sparse, of pydata's sparse, masked arrays, Cells, or a pair of coordinates and values; what was defined
    there before and is not among them is erased.
    """

    def __init__(self, dataset, form="csr"):
        self._dataset = dataset
        self._form = form

    def __call__(self, form):
        """The view that reads another form: csr, csc, coo, pydata or cells."""
        if form not in FORMS:
            raise ValueError(f"{form} is no form; there are {', '.join(FORMS)}")
        return SparseView(self._dataset, form)

    # -- reading

    def cells(self, args=()):
        """Coordinates and values of the defined cells."""
        window = _Window(self._dataset.shape, args)
        columns, values = self._read(window)
        return Cells(np.array(columns, dtype=np.int64).reshape(len(window.kept), -1), values, window.shape)

    def _read(self, window):
        """An array of coordinates for each axis of the window, and the values."""
        dataset = self._dataset
        kind = kind_of(dataset)
        if kind is not None and dataset.ndim and not window.empty:
            try:
                columns, values = _pumice.read_columns(dataset._ds, window.native, kind)
            except TypeError:
                pass  # Numbers of a file that are no numbers here: element by element.
            else:
                return window.inside(columns), values.astype(dataset.dtype, copy=False)
        rank = len(window.axes)
        datatype = dataset._file_type
        if datatype.has_varlen:
            places, elements, heap = dataset._ds.read_defined_heaped(window.native)
        else:
            places, elements = dataset._ds.read_defined(window.native)
            heap = codec.NO_BYTES
        count = len(elements) // datatype.size
        values = codec.decode_all(datatype, elements, heap, dataset.dtype, (count,), dataset.id.owner.group)
        return window.inside(list(places.reshape(-1, rank).T)), values

    def where(self, args=()):
        """Coordinates of the defined cells, an array for each axis; their values are not read."""
        window = _Window(self._dataset.shape, args)
        if window.empty or not self._dataset.ndim:
            return tuple(self.cells(args).coordinates)
        return tuple(window.inside(_pumice.defined_columns(self._dataset._ds, window.native)))

    def at(self, coordinates):
        """The values of cells by their coordinates (a row for each axis), the fill value where none is defined."""
        dataset = self._dataset
        columns, kind = self._columns(coordinates), kind_of(dataset)
        if kind is not None and dataset.ndim:
            found = _pumice.read_points(dataset._ds, [_numbers(column) for column in columns], kind)
            return found.astype(dataset.dtype, copy=False)
        if not dataset.ndim or not len(columns[0]):
            return np.zeros(len(columns[0]) if columns else 1, dataset.dtype)
        flat = np.ascontiguousarray(np.array(columns, dtype=np.uint64).T)
        return dataset[selections.PointSelection(dataset.shape, points=flat)]

    def erase_at(self, coordinates):
        """Makes cells undefined by their coordinates, a row for each axis."""
        _pumice.erase_points(self._dataset._ds, [_numbers(column) for column in self._columns(coordinates)])

    def _columns(self, coordinates):
        """Coordinates (a row for each axis) that lie in the dataset."""
        coordinates = [np.atleast_1d(np.asarray(row)) for row in coordinates]
        if len(coordinates) != self._dataset.ndim:
            raise ValueError(f"{len(coordinates)} rows of coordinates for {self._dataset.ndim} axes")
        return _Window(self._dataset.shape, ()).outside(coordinates)

    def rows(self, rows):
        """Rows of a matrix in any order, also twice, as csr_array."""
        dataset, kind = self._dataset, kind_of(self._dataset)
        if dataset.ndim != 2:
            raise ValueError(f"Rows are those of a matrix, not of an array of rank {dataset.ndim}")
        length = dataset.shape[0]
        rows = np.atleast_1d(np.asarray(rows))
        if rows.dtype == bool:
            if rows.shape != (length,):
                raise IndexError(f"{len(rows)} truth values for {length} rows")
            rows = np.flatnonzero(rows)
        if rows.size == 0:
            rows = rows.astype(np.int64)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise TypeError("Rows are a list of integers")
        if rows.dtype.kind == "i":
            rows = np.where(rows < 0, rows + length, rows)
        if rows.size and (rows.min() < 0 or rows.max() >= length):
            raise IndexError(f"Rows out of range for (0-{length - 1})")
        if kind is None:
            unique, back = np.unique(rows, return_inverse=True)
            return self("csr")._window(_Window(dataset.shape, (unique.astype(np.int64),)))[back]
        arrays = _pumice.read_rows(dataset._ds, rows.astype(np.uint64), kind)
        return matrix_of("csr", (len(rows), dataset.shape[1]), arrays)

    def __getitem__(self, args):
        shape = self._dataset.shape
        if self._form == "csr" and len(shape) == 2 and _is_list_of_rows(args):
            return self.rows(args[0] if isinstance(args, tuple) else args)
        return self._window(_Window(shape, args))

    def _window(self, window):
        dataset, form = self._dataset, self._form
        if form == "pydata":
            return self._pydata(window)
        if form == "cells" or len(window.shape) != 2 or dataset.dtype.kind not in "biufc":
            columns, values = self._read(window)
            return Cells(np.array(columns, dtype=np.int64).reshape(len(window.kept), -1), values, window.shape)
        kind = kind_of(dataset)
        if form != "coo" and kind is not None and dataset.ndim == 2 and not window.empty:
            native = None if window.whole else window.native
            arrays = _pumice.read_compressed(dataset._ds, native, kind, form == "csc")
            return matrix_of(form, window.shape, arrays)
        import scipy.sparse

        columns, values = self._read(window)
        # scipy has no sparse arrays in another order of bytes.
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        narrow = np.int32 if max(window.shape) <= np.iinfo(np.int32).max else np.int64
        columns = tuple(np.asarray(column, dtype=narrow) for column in columns)
        matrix = scipy.sparse.coo_array((values, columns), shape=window.shape)
        return matrix if form == "coo" else matrix.asformat(form)

    def _pydata(self, window):
        import sparse

        columns, values = self._read(window)
        columns = np.array(columns, dtype=np.int64).reshape(len(window.kept), -1)
        fill = self._dataset.fillvalue
        return sparse.COO(columns, values, shape=window.shape, has_duplicates=False, fill_value=fill)

    def masked(self, args=()):
        """The cells as a masked array: what is masked is not defined."""
        dense = np.asarray(self._dataset[args])
        return np.ma.MaskedArray(dense, ~self.defined(args), fill_value=self._dataset.fillvalue)

    def defined(self, args=()):
        """Which of the cells are defined, as an array of truth values."""
        found = self.cells(args)
        mask = np.zeros(found.shape, bool)
        mask[tuple(found.coordinates)] = True
        return mask

    # -- writing

    def __setitem__(self, args, value):
        window = _Window(self._dataset.shape, args)
        compressed = self._compressed(window, value)
        columns, values = (None, None) if compressed is not None else _cells_of(value, window.shape)
        if self._dataset._ds.count_defined(window.native):
            self._dataset._ds.erase(window.native)
        if compressed is not None:
            write_matrix(self._dataset, compressed)
        else:
            self._define(window.outside(columns), values)

    def _compressed(self, window, value):
        """What is assigned, if it is compressed lines of the whole matrix."""
        if not window.whole or getattr(value, "format", None) not in ("csr", "csc"):
            return None
        if value.shape != window.shape or value.dtype.newbyteorder("=").str[1:] not in _KINDS:
            return None
        return without_repeats(value)

    def define(self, coordinates, values, duplicates="last"):
        """Defines cells by their coordinates (a row for each axis); others stay as they are.

        Cells that are named more than once, or are defined already, keep the ``last`` value, the ``first``, the
        ``sum``, or are an ``error``.
        """
        columns, values = self._columns(coordinates), np.asarray(values)
        if values.ndim == 0:
            values = np.broadcast_to(values, len(columns[0]))
        self._define(columns, values, duplicates)

    def _define(self, columns, values, duplicates="last"):
        dataset = self._dataset
        values = np.asarray(values)
        if dataset.ndim and len(columns[0]) == 0:
            return
        kind = values.dtype.newbyteorder("=").str[1:]
        if dataset.ndim and kind in _KINDS and kind_of(dataset) is not None:
            values = _in_line(values, kind)
            _pumice.write_columns(dataset._ds, [_numbers(column) for column in columns], values, kind, duplicates)
            return
        if duplicates != "last":
            raise TypeError("Rules for duplicates other than last are for numbers")
        flat = np.ascontiguousarray(np.array(columns, dtype=np.uint64).T).reshape(-1)
        datatype = dataset._file_type
        elements, heap = codec.encode_all(datatype, values, dataset.id.owner.group, dataset.dtype)
        if heap is None and dataset.ndim:
            dataset._ds.write_at(flat, elements)
        else:
            cells = _pumice.Selection.points(dataset.ndim, flat) if dataset.ndim else _pumice.Selection.all()
            dataset._ds.write_heaped(cells, elements, codec.NO_BYTES if heap is None else heap)


def _is_list_of_rows(args):
    if isinstance(args, tuple):
        if len(args) != 1 and not (len(args) == 2 and isinstance(args[1], slice) and args[1] == slice(None)):
            return False
        args = args[0] if args else ...
    return isinstance(args, (list, np.ndarray)) and np.ndim(args) == 1


def without_repeats(matrix):
    """A matrix in which no cell is named twice: scipy adds up those that are."""
    if getattr(matrix, "has_canonical_format", True):
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    return matrix


def write_matrix(dataset, matrix, duplicates="last", progress=None):
    """Defines the cells of a csr or csc matrix of the dataset's shape; tells ``progress`` how many are done."""
    kind = matrix.dtype.newbyteorder("=").str[1:]
    values = _in_line(matrix.data, kind)
    pointers, indices, columns = _numbers(matrix.indptr), _numbers(matrix.indices), matrix.format == "csc"
    total = int(pointers[-1])
    for first, last in _bands(pointers, total if progress is None else _STEP):
        begin, end = int(pointers[first]), int(pointers[last])
        # Lines before and behind have no cells: lines are counted from the first of the matrix.
        part = pointers if end - begin == total else np.clip(pointers, begin, end) - pointers.dtype.type(begin)
        _pumice.write_compressed(
            dataset._ds, part, indices[begin:end], values[begin:end], kind, columns, duplicates
        )
        if progress is not None:
            progress(end, total)


def _bands(pointers, step):
    """Ranges of lines with about so many cells."""
    first, lines = 0, len(pointers) - 1
    while first < lines:
        last = int(np.searchsorted(pointers, pointers[first] + pointers.dtype.type(max(1, step)), side="right")) - 1
        last = min(lines, max(first + 1, last))
        yield first, last
        first = last


def _cells_of(value, shape):
    """Coordinates (an array for each axis) and values of what is assigned."""
    rank = len(shape)
    if isinstance(value, np.ma.MaskedArray):
        mask = np.broadcast_to(np.ma.getmaskarray(value), shape)
        places = np.nonzero(~mask)
        return list(places), np.broadcast_to(value.data, shape)[places]
    if isinstance(value, tuple) and len(value) in (2, 3):
        coordinates = np.asarray(value[0], dtype=np.int64).reshape(rank, -1)
        values = np.asarray(value[1])
        if values.ndim == 0:
            values = np.broadcast_to(values, coordinates.shape[1])
        if len(values) != coordinates.shape[1]:
            raise ValueError(f"{len(values)} values for {coordinates.shape[1]} cells")
        return list(coordinates), values
    if hasattr(value, "tocoo"):
        if value.shape != shape:
            raise TypeError(f"Can't assign a sparse array of shape {value.shape} to cells of shape {shape}")
        value = without_repeats(value.tocoo())
        coordinates = getattr(value, "coords", None)
        return list((value.row, value.col) if coordinates is None else coordinates), value.data
    if hasattr(value, "coords") and hasattr(value, "data"):
        if tuple(value.shape) != tuple(shape):
            raise TypeError(f"Can't assign a sparse array of shape {value.shape} to cells of shape {shape}")
        return list(np.asarray(value.coords)), np.asarray(value.data)
    raise TypeError(f"{type(value).__name__} is no sparse array; assign dense ones to the dataset itself")


def is_sparse_value(value):
    """Whether something to be written names its cells."""
    return isinstance(value, (np.ma.MaskedArray, Cells)) or hasattr(value, "tocoo") or (
        hasattr(value, "coords") and hasattr(value, "data") and hasattr(value, "nnz")
    )


def append(dataset, value, axis):
    """Lets an axis grow by what a value has along it, and writes the value there; returns the range of indices."""
    if not is_sparse_value(value):
        value = np.asarray(value)
    rank = dataset.ndim
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a dataset of {rank} dimension(s)")
    axis %= rank
    shape = tuple(value.shape)
    if len(shape) == rank - 1 and not is_sparse_value(value):
        shape = (*shape[:axis], 1, *shape[axis:])
        value = value.reshape(shape)
    mine = dataset.shape
    if len(shape) != rank or any(a != b for at, (a, b) in enumerate(zip(shape, mine)) if at != axis):
        raise ValueError(f"Can't append an array of shape {shape} to {mine} along axis {axis}")
    with _growing:
        begin = dataset.shape[axis]
        end = begin + shape[axis]
        dataset.resize(end, axis)
    where = (slice(None),) * axis + (slice(begin, end),)
    try:
        if is_sparse_value(value) and dataset.is_sparse:
            dataset.sparse[where] = value
        elif hasattr(value, "toarray") or hasattr(value, "todense"):
            dataset[where] = value.toarray() if hasattr(value, "toarray") else value.todense()
        elif shape[axis]:
            dataset[where] = value
    except BaseException:
        with _growing:
            if dataset.shape[axis] == end:
                dataset.resize(begin, axis)
        raise
    return range(begin, end)


def from_scipy(group, name, matrix, duplicates="sum", progress=None, **options):
    """Makes a sparse dataset from an array of scipy.sparse; options are those of create_dataset.

    Cells that the matrix names more than once get the ``sum``, the ``first`` or the ``last`` of their values, or are
    an ``error``. ``progress`` is called with the number of cells that are written, and that of all.
    """
    if matrix.format not in ("csr", "csc", "coo"):
        matrix = matrix.tocsr()
    if duplicates == "sum":
        matrix, duplicates = without_repeats(matrix), "last"
    elif duplicates != "last" and getattr(matrix, "has_canonical_format", False):
        duplicates = "last"
    share = matrix.nnz / max(1, selections.product(matrix.shape))
    options.setdefault("density", max(share, 1e-9))
    dataset = group.create_dataset(name, matrix.shape, options.pop("dtype", matrix.dtype), sparse=True, **options)
    try:
        if matrix.format != "coo" and matrix.ndim == 2 and matrix.dtype.newbyteorder("=").str[1:] in _KINDS:
            write_matrix(dataset, matrix, duplicates, progress)
        else:
            coordinates, values = _coordinates(matrix)
            dataset.sparse._define(coordinates, values, duplicates)
            if progress is not None:
                progress(len(values), len(values))
    except BaseException:
        if dataset.name is not None:
            del group[name]
        raise
    return dataset


def _coordinates(matrix):
    """Coordinates and values of a matrix, of which some may repeat."""
    matrix = matrix.tocoo()
    coordinates = getattr(matrix, "coords", None)
    return list((matrix.row, matrix.col) if coordinates is None else coordinates), matrix.data
