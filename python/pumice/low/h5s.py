"""Dataspaces: shapes and selections."""

import json

from .. import _pumice

UNLIMITED = 2**64 - 1
NO_CLASS, SCALAR, SIMPLE, NULL = -1, 0, 1, 2
SEL_ERROR, SEL_NONE, SEL_POINTS, SEL_HYPERSLABS, SEL_ALL = -1, 0, 1, 2, 3
SELECT_NOOP, SELECT_SET, SELECT_OR, SELECT_AND, SELECT_XOR = -1, 0, 1, 2, 3
SELECT_NOTB, SELECT_NOTA, SELECT_APPEND, SELECT_PREPEND = 4, 5, 6, 7
ALL = 0
MAX_RANK = 32

_KINDS = {"all": SEL_ALL, "none": SEL_NONE, "points": SEL_POINTS, "hyperslab": SEL_HYPERSLABS}
_WAYS = {SELECT_OR: "or", SELECT_AND: "and", SELECT_XOR: "xor", SELECT_NOTB: "notb", SELECT_NOTA: "nota"}


def _numbers(value, rank, default):
    if value is None:
        return [default] * rank
    return [UNLIMITED if int(number) < 0 else int(number) for number in value]


class SpaceID:
    """A dataspace: no elements, one, or an array of them, of which some are selected."""

    def __init__(self, shape, maxshape=None, selection=None):
        self._shape = None if shape is None else tuple(int(side) for side in shape)
        if maxshape is None:
            maxshape = self._shape
        self._max = None if maxshape is None else tuple(UNLIMITED if side is None else int(side) for side in maxshape)
        self.selection = _pumice.Selection.all() if selection is None else selection

    @property
    def shape(self):
        """The size along each axis."""
        return self._shape if self._shape is not None else None

    @property
    def rank(self):
        """How many axes there are."""
        return 0 if self._shape is None else len(self._shape)

    def copy(self):
        """A dataspace like this one."""
        return SpaceID(self._shape, self._max, self.selection)

    def close(self):
        """Nothing to do."""

    def get_simple_extent_type(self):
        """NULL, SCALAR or SIMPLE."""
        if self._shape is None:
            return NULL
        return SCALAR if self._shape == () else SIMPLE

    def is_simple(self):
        """Whether it has a shape."""
        return self._shape is not None

    def get_simple_extent_ndims(self):
        """How many axes there are."""
        return self.rank

    def get_simple_extent_dims(self, maxdims=False):
        """The size along each axis, now or at most."""
        return self._max if maxdims else self._shape

    def get_simple_extent_npoints(self):
        """How many elements there are."""
        if self._shape is None:
            return 0
        count = 1
        for side in self._shape:
            count *= side
        return count

    def set_extent_simple(self, dims, max_dims=None):
        """Another shape."""
        self.__init__(dims, max_dims)

    def set_extent_none(self):
        """No elements."""
        self.__init__(None)

    def extent_copy(self, source):
        """The shape of another dataspace."""
        self.__init__(source._shape, source._max)

    def extent_equal(self, other):
        """Whether shapes are equal."""
        return self._shape == other._shape and self._max == other._max

    def get_select_type(self):
        """How elements are selected."""
        return _KINDS[self.selection.kind]

    def get_select_npoints(self):
        """How many elements are selected."""
        return 0 if self._shape is None else self.selection.count(self._shape)

    def get_select_bounds(self):
        """The first and the last corner of the box around the selected elements."""
        found = self.selection.bounds(self._shape)
        if found is None:
            raise ValueError("Can't get the bounds of a selection of nothing")
        return tuple(found[0]), tuple(found[1])

    def select_all(self):
        """Every element."""
        self.selection = _pumice.Selection.all()

    def select_none(self):
        """No element."""
        self.selection = _pumice.Selection.none()

    def select_valid(self):
        """Whether the selection fits into the shape."""
        try:
            self.selection.check(self._shape)
        except (ValueError, IndexError):
            return False
        return True

    def select_hyperslab(self, start, count, stride=None, block=None, op=SELECT_SET):
        """Blocks at equal distances, alone or together with what is selected."""
        rank = self.rank
        start, count = _numbers(start, rank, 0), _numbers(count, rank, 1)
        block = _numbers(block, rank, 1)
        stride = _numbers(stride, rank, 1) if stride is not None else [max(1, one) for one in block]
        if not len(start) == len(count) == len(stride) == len(block) == rank:
            raise TypeError(f"Start, count, stride and block must be given for each of {rank} dimensions")
        if 0 in count or 0 in block:
            new = _pumice.Selection.none()
        else:
            new = _pumice.Selection.hyperslab(start, stride, count, block)
        self._take(new, op)

    def _take(self, new, op):
        if op in (SELECT_SET, SELECT_NOOP):
            self.selection = new
        elif op in _WAYS:
            self.selection = self.selection.combine(_WAYS[op], new, self._shape)
        else:
            raise ValueError(f"{op} is no way to combine hyperslabs")

    def select_elements(self, coords, op=SELECT_SET):
        """Elements one by one."""
        import numpy as np

        coords = np.ascontiguousarray(coords, dtype=np.uint64)
        if coords.ndim != 2 or coords.shape[1] != self.rank:
            raise ValueError(f"Coordinate array must have shape (<npoints>, {self.rank})")
        old = self.selection.coordinates()
        if op != SELECT_SET and old is not None:
            old = old.reshape(-1, self.rank)
            coords = np.concatenate([old, coords] if op == SELECT_APPEND else [coords, old])
        self.selection = _pumice.Selection.points(self.rank, coords.reshape(-1))

    def get_select_elem_npoints(self):
        """How many elements were selected one by one."""
        return self.get_select_npoints()

    def get_select_elem_pointlist(self):
        """Their coordinates."""
        return self.selection.coordinates().reshape(-1, self.rank)

    def get_select_hyper_nblocks(self):
        """How many boxes are selected."""
        return len(self.selection.blocks(self._shape))

    def get_select_hyper_blocklist(self):
        """The boxes: first and last corners."""
        import numpy as np

        blocks = self.selection.blocks(self._shape)
        corners = [(start, [first + side - 1 for first, side in zip(start, count)]) for start, count in blocks]
        return np.array(corners, dtype=np.uint64).reshape(-1, 2, self.rank)

    def is_regular_hyperslab(self):
        """Whether the selection is blocks at equal distances."""
        return self.selection.kind == "hyperslab" and self.selection.regular() is not None

    def get_regular_hyperslab(self):
        """Start, stride, count and block."""
        found = self.selection.regular()
        if found is None:
            raise TypeError("The selection is no regular hyperslab")
        return tuple(tuple(part) for part in found)

    def select_copy(self, source):
        """The selection of another dataspace."""
        self.selection = source.selection

    def combine_select(self, other, op):
        """A dataspace with the selections of both."""
        made = self.copy()
        made._take(other.selection, op)
        return made

    def modify_select(self, other, op):
        """The selections of both."""
        self._take(other.selection, op)

    def select_shape_same(self, other):
        """Whether the selected elements of both have the same shape."""
        from .._hl.selections import guess_shape

        return guess_shape(self) == guess_shape(other)

    def offset_simple(self, offset=None):
        """Not there: selections have no offset."""
        if offset is not None and any(offset):
            raise NotImplementedError("Offsets of selections are not supported; select what is meant")

    def encode(self):
        """The dataspace as bytes."""
        regular = self.selection.regular() if self.selection.kind == "hyperslab" else None
        points = self.selection.coordinates()
        points = None if points is None else points.tolist()
        return json.dumps([self._shape, self._max, self.selection.kind, regular, points]).encode()

    def __eq__(self, other):
        return isinstance(other, SpaceID) and self.encode() == other.encode()

    def __hash__(self):
        return hash((self._shape, self._max))

    def __getitem__(self, args):
        from .._hl.selections import select

        return select(self._shape, args)

    def __reduce__(self):
        return decode, (self.encode(),)


def create(kind):
    """A dataspace of a class."""
    if kind == NULL:
        return SpaceID(None)
    if kind == SCALAR or kind == SIMPLE:
        return SpaceID(())
    raise ValueError(f"{kind} is no class of dataspaces")


def create_simple(dims_tpl, max_dims_tpl=None):
    """A dataspace of a shape."""
    return SpaceID(dims_tpl, max_dims_tpl)


def decode(buf):
    """A dataspace from its bytes."""
    import numpy as np

    shape, most, kind, regular, points = json.loads(buf)
    if kind == "points":
        selection = _pumice.Selection.points(len(shape), np.array(points, dtype=np.uint64))
    elif regular is not None:
        selection = _pumice.Selection.hyperslab(*regular)
    else:
        selection = _pumice.Selection.none() if kind == "none" else _pumice.Selection.all()
    return SpaceID(shape, most, selection)
