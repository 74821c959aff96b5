"""What programs assign to datasets, as arrays that have a value for each cell."""

import numpy as np

from . import dtypes


def _sequences_to_write(val, vlen):
    """Sequences that are assigned, as an array of objects."""
    if isinstance(val, np.ndarray) and val.dtype.kind == "O":
        if vlen.kind == "O" and val.ndim and all(isinstance(item, (str, bytes)) for item in val.reshape(-1)):
            # One sequence of strings, or an array of such.
            array = np.empty(val.shape[:-1], object)
            for at in np.ndindex(array.shape):
                array[at] = val[at]
            return array
        return val
    if not isinstance(val, np.ndarray):
        try:
            given = np.asarray(val)
        except ValueError:
            given = None
        if given is None or given.dtype.kind == "O":
            items = list(val)
            array = np.empty(len(items), object)
            for at, item in enumerate(items):
                array[at] = np.asarray(item, dtype=vlen if dtypes.is_plain(vlen) else None)
            return array
        val = given
    if val.ndim == 0:
        raise ValueError("A sequence is needed, not one value")
    val = np.asarray(val, dtype=vlen if dtypes.is_plain(vlen) else object)
    if val.ndim == 1:
        array = np.empty((), object)
        array[()] = val
        return array
    array = np.empty(val.shape[:-1], object)
    for at in np.ndindex(array.shape):
        array[at] = val[at]
    return array


def _strings_to_write(val, string):
    if isinstance(val, np.ndarray) and val.dtype.kind == "U" and string.length is not None:
        raise TypeError(f"No conversion path for dtype: {val.dtype!r}")
    if isinstance(val, np.ndarray) and val.dtype.kind in "STO":
        array = val
    elif isinstance(val, (str, bytes)):
        array = np.empty((), object)
        array[()] = val
    else:
        array = np.asarray(val, dtype=object)
    if string.length is not None and array.dtype.kind in "UTO":
        encoded = [one.encode(string.encoding) if isinstance(one, str) else one for one in array.reshape(-1)]
        array = np.array(encoded, dtype=f"S{string.length}").reshape(array.shape)
    if string.length is None and string.encoding == "ascii":
        for one in array.reshape(-1) if array.dtype.kind in "OT" else ():
            if isinstance(one, str):
                one.encode("ascii")
    if string.length is None and array.dtype.kind not in "SUTO":
        raise TypeError(f"Can't write {array.dtype} to strings")
    return array


def _structs_to_write(val, dtype):
    """Structured values that are assigned; fields in any order, or fewer."""
    if isinstance(val, (np.ndarray, np.void)) and val.dtype.names is not None:
        array = np.asarray(val, order="C")
        if array.dtype.names == dtype.names or set(array.dtype.names) <= set(dtype.names):
            return array
        return array
    if isinstance(val, np.ndarray) and val.dtype.kind == "O":
        return val.astype(dtype)
    return np.asarray(val, dtype=dtype, order="C")
