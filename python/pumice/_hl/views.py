"""Datasets in another form: as other dtypes, as text, some members, chunk by chunk; references to cells."""

import numpy as np

from ..low import h5d, h5r
from . import selections


class AbstractView:
    """Something that reads like a dataset, in another form."""

    def __init__(self, dset):
        self._dset = dset

    def __len__(self):
        return len(self._dset)

    @property
    def ndim(self):
        """How many axes there are."""
        return self._dset.ndim

    @property
    def shape(self):
        """The size along each axis."""
        return self._dset.shape

    @property
    def size(self):
        """How many elements there are."""
        return self._dset.size

    def __array__(self, dtype=None, copy=True):
        if copy is False:
            raise ValueError(f"{type(self).__name__}.__array__ received copy=False, but memory allocation cannot be avoided")
        array = self[()]
        array = np.asarray(array)
        return array if dtype is None else array.astype(dtype)


class AstypeWrapper(AbstractView):
    """A dataset that is read as another dtype."""

    def __init__(self, dset, dtype):
        super().__init__(dset)
        self._dtype = np.dtype(dtype)

    @property
    def dtype(self):
        """The dtype."""
        return self._dtype

    def __getitem__(self, args):
        return self._dset.__getitem__(args, new_dtype=self._dtype)


class AsStrView(AbstractView):
    """A dataset of strings that is read as str."""

    def __init__(self, dset, encoding, errors="strict"):
        super().__init__(dset)
        self.encoding = encoding
        self.errors = errors

    @property
    def dtype(self):
        """The dtype."""
        return np.dtype(object)

    def __getitem__(self, args):
        if self.errors == "strict":
            found = self._dset._read_text(args, self.encoding)
            if found is not None:
                return found
        found = self._dset[args]
        if isinstance(found, (bytes, np.bytes_)):
            return bytes(found).decode(self.encoding, self.errors)
        if np.isscalar(found):
            return found.decode(self.encoding, self.errors)
        decoded = [item.decode(self.encoding, self.errors) for item in found.reshape(-1)]
        result = np.empty(len(decoded), dtype=object)
        result[:] = decoded
        return result.reshape(found.shape)


class FieldsView(AbstractView):
    """Some members of a dataset of compounds."""

    def __init__(self, dset, prior_dtype, names):
        super().__init__(dset)
        self.extract_field = None
        if isinstance(names, str):
            self.extract_field = names
            names = [names]
        self.read_dtype = readtime_dtype(prior_dtype, names)

    @property
    def dtype(self):
        """The dtype."""
        field = self.extract_field
        return self.read_dtype if field is None else self.read_dtype.fields[field][0]

    def __getitem__(self, args):
        found = self._dset.__getitem__(args, new_dtype=self.read_dtype)
        return found if self.extract_field is None else found[self.extract_field]


def readtime_dtype(basetype, names):
    """The part of a structured dtype that has some of its fields."""
    if len(names) == 0:
        return basetype
    if basetype.names is None:
        raise ValueError("Field names only allowed for compound types")
    for name in names:
        if name not in basetype.names:
            raise ValueError(f"Field {name} does not appear in this type.")
    return np.dtype([(name, basetype.fields[name][0]) for name in names])


class ChunkIterator:
    """The chunks of a dataset, or of a part of it, as tuples of slices."""

    def __init__(self, dset, source_sel=None):
        self._shape = dset.shape
        rank = len(dset.shape)
        if not dset.chunks:
            raise TypeError("Chunked dataset required")
        self._layout = dset.chunks
        if source_sel is None:
            self._sel = tuple(slice(0, side, 1) for side in self._shape)
        else:
            items = source_sel if isinstance(source_sel, tuple) else (source_sel,)
            self._sel = tuple(item if isinstance(item, slice) else slice(item, item + 1) for item in items)
            if len(self._sel) != rank:
                raise ValueError("Invalid selection - selection region must have same rank as dataset")
        self._bounds = []
        for item, side in zip(self._sel, self._shape):
            start, stop, step = item.indices(side)
            if step != 1:
                raise ValueError("Invalid selection - step must be 1")
            self._bounds.append((start, min(stop, side)))
        self._at = [start // chunk for (start, _), chunk in zip(self._bounds, self._layout)]
        self._done = any(start >= stop for start, stop in self._bounds)

    def __iter__(self):
        return self

    def __next__(self):
        if self._done:
            raise StopIteration()
        slices = []
        for at, chunk, (start, stop) in zip(self._at, self._layout, self._bounds):
            slices.append(slice(max(at * chunk, start), min((at + 1) * chunk, stop), 1))
        for axis in reversed(range(len(self._at))):
            self._at[axis] += 1
            if self._at[axis] * self._layout[axis] < self._bounds[axis][1]:
                return tuple(slices)
            self._at[axis] = self._bounds[axis][0] // self._layout[axis]
        self._done = True
        return tuple(slices)


class RegionProxy:
    """References to cells: index it."""

    def __init__(self, obj):
        self.obj = obj
        self.id = obj.id

    def __getitem__(self, args):
        if not isinstance(self.id, h5d.DatasetID):
            raise TypeError("Region references can only be made to datasets")
        selection = selections.select(self.id.shape, args, dataset=None)
        return h5r.RegionReference(self.id.owner.group.region(self.obj.name, selection.native))

    def shape(self, ref):
        """The shape of the dataset of a reference."""
        if not ref:
            return None
        return h5r.get_region(ref, self.id).shape

    def selection(self, ref):
        """The shape of the cells of a reference."""
        if not ref:
            return None
        return selections.guess_shape(h5r.get_region(ref, self.id))
