"""What datasets have beyond h5py's: defined cells, batches, and forms for other libraries."""

from typing import Any

from .. import _pumice
from . import selections


class DefinedCells:
    """The part of a dataset that knows which cells are defined."""

    # The kind of its numbers for sparse arrays; False until somebody has looked.
    _kind: str | bool | None = False

    # What the dataset itself has.
    _ds: _pumice.Dataset
    shape: Any
    size: Any

    @property
    def sparse(self):
        """The defined cells of a sparse dataset."""
        from .sparse import SparseView

        return SparseView(self)

    def to_csr(self):
        """All defined cells as scipy.sparse.csr_array."""
        return self.sparse("csr")[...]

    def to_csc(self):
        """All defined cells as scipy.sparse.csc_array."""
        return self.sparse("csc")[...]

    def to_coo(self):
        """All defined cells as scipy.sparse.coo_array."""
        return self.sparse("coo")[...]

    def write_cells(self, coordinates, values, duplicates="last"):
        """Defines cells by their coordinates (a row for each axis); others stay as they are.

        Cells that are named more than once, or are defined already, keep the ``last`` value, the ``first``, the
        ``sum``, or are an ``error``.
        """
        self.sparse.define(coordinates, values, duplicates)

    def read_cells(self, coordinates):
        """The values of cells by their coordinates (a row for each axis), the fill value where none is defined."""
        return self.sparse.at(coordinates)

    def erase_cells(self, coordinates):
        """Makes cells undefined by their coordinates, a row for each axis."""
        self.sparse.erase_at(coordinates)

    def append(self, value, axis=0):
        """Lets an axis grow and writes a batch there: an array, a masked one, a sparse one; returns its range.

        Several threads may append to one dataset.
        """
        from .sparse import append

        return append(self, value, axis)

    def to_dask(self, chunks="auto", form=None):
        """A dask.array, read without a lock; blocks of a sparse dataset have about equally many defined cells."""
        from ..dask import to_dask

        return to_dask(self, chunks, form)

    def to_arrow(self, args=()):
        """A table of Arrow with coordinates and values of a sparse dataset; an array or a table of another."""
        from .interop import to_arrow

        return to_arrow(self, args)

    def spy(self, size=256):
        """A picture of the defined cells of a matrix: grey values, darker where more are defined."""
        from .interop import spy

        return spy(self, size)

    def __dask_tokenize__(self):
        from .workers import token_of

        return token_of(self)

    def _repr_html_(self):
        from .interop import dataset_html

        return dataset_html(self)

    def defined(self, args=()):
        """Which cells are defined, as an array of truth values."""
        return self.sparse.defined(args)

    def is_defined(self, *point):
        """Whether a cell is defined."""
        return self._ds.count_defined(selections.select(self.shape, tuple(point), dataset=self).native) > 0

    def erase(self, args=()):
        """Makes cells undefined, which is not the same as zero."""
        self._ds.erase(selections.select(self.shape, args, dataset=self).native)

    @property
    def nnz(self):
        """How many cells are defined."""
        return self._ds.count_defined(_pumice.Selection.all())

    @property
    def density(self):
        """The share of cells that are defined."""
        return self.nnz / self.size if self.size else 0.0

    @property
    def is_sparse(self):
        """Whether only defined cells take space."""
        return self._ds.layout == "sparse"
