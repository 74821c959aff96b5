"""What an index means for a scalar dataset, and which dtype a selection of fields has."""

import numpy as np

from ..low import h5s


def read_dtypes(dataset_dtype, names):
    """The dtype that is returned, and the dtype that is read."""
    if len(names) == 0:
        return dataset_dtype, dataset_dtype
    if dataset_dtype.names is None:
        raise ValueError("Field names only allowed for compound types")
    for name in names:
        if name not in dataset_dtype.names:
            raise ValueError(f"Field {name} does not appear in this type.")
    read = np.dtype([(name, dataset_dtype.fields[name][0]) for name in names])
    return (read.fields[names[0]][0] if len(names) == 1 else read), read


def _scalar_shape(args):
    if args == ():
        return None
    if args == (Ellipsis,):
        return ()
    raise ValueError("Illegal slicing argument for scalar dataspace")


def read_selections_scalar(dsid, args):
    """The shape that is returned (None for a scalar of numpy), and the dataspace."""
    if dsid.shape != ():
        raise RuntimeError("Illegal selection function for non-scalar dataset")
    return _scalar_shape(args), dsid.get_space()


class ScalarReadSelection:
    """The one cell of a scalar dataset."""

    def __init__(self, fspace, args):
        self.mshape = _scalar_shape(args)
        self.mspace = h5s.create(h5s.SCALAR)
        self.fspace = fspace

    def __iter__(self):
        yield self.fspace, self.mspace


def select_read(fspace, args):
    """The cells of a scalar dataset."""
    if fspace.shape != ():
        raise NotImplementedError("only for scalar datasets")
    return ScalarReadSelection(fspace, args)
