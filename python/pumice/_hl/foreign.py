"""Sparse matrices that other programs keep as groups of arrays: AnnData, 10x Genomics, Binsparse, MATLAB."""

import json
import os
import shutil
import uuid
from typing import Any

import numpy as np

from .. import _pumice
from . import filters, making


class SparseGroup:
    """A sparse matrix in a group of arrays, where it is: index it to read rows or columns as scipy.sparse."""

    def __init__(self, group, kind, form, shape, arrays, dtype, cast=None):
        self.group = group
        self.kind = kind
        self.format = form
        self.shape = tuple(int(side) for side in shape)
        self.dtype = np.dtype(dtype)
        # Names of the arrays: pointers (None for coordinates), indices, values.
        self.arrays = arrays
        self._cast = cast
        self._pointers = None

    ndim = 2

    @property
    def nnz(self):
        """How many cells are stored."""
        return len(self.group[self.arrays[1][-1]])

    @property
    def pointers(self):
        """Where each line begins, and where the last ends."""
        if self._pointers is None:
            self._pointers = self.group[self.arrays[0]][...].astype(np.int64)
        return self._pointers

    def _values(self, begin, end):
        found = self.group[self.arrays[2]]
        if self._cast is None:
            return found[begin:end]
        return self._cast(found, begin, end)

    def lines(self, first, last):
        """Compressed lines: rows of csr, columns of csc."""
        begin, end = int(self.pointers[first]), int(self.pointers[last])
        count, width = last - first, self.shape[1 if self.format == "csr" else 0]
        shape = (count, width) if self.format == "csr" else (width, count)
        indices = self.group[self.arrays[1][0]][begin:end]
        arrays = (self._values(begin, end), indices.astype(np.int64), self.pointers[first : last + 1] - begin)
        import scipy.sparse

        made = scipy.sparse.csr_array if self.format == "csr" else scipy.sparse.csc_array
        return made(arrays, shape=shape)

    def _coordinates(self):
        import scipy.sparse

        columns = [self.group[name][...].astype(np.int64) for name in self.arrays[1]]
        return scipy.sparse.coo_array((self._values(0, self.nnz), tuple(columns)), shape=self.shape)

    def _all(self):
        if self.format == "coo":
            return self._coordinates()
        return self.lines(0, len(self.pointers) - 1)

    def __getitem__(self, args):
        args = args if isinstance(args, tuple) else (args,)
        if any(item is Ellipsis for item in args):
            at = [item is Ellipsis for item in args].index(True)
            args = (*args[:at], *[slice(None)] * (3 - len(args)), *args[at + 1 :])
        args = (*args, *[slice(None)] * (2 - len(args)))
        axis = 0 if self.format == "csr" else 1
        if self.format != "coo" and isinstance(args[axis], slice):
            first, last, step = args[axis].indices(self.shape[axis])
            if step == 1:
                part = self.lines(first, max(first, last))
                rest = (slice(None), args[1]) if axis == 0 else (args[0], slice(None))
                return part if args[1 - axis] == slice(None) else part[rest]
        return self._all().asformat("csr" if self.format == "coo" else self.format)[args]

    def to_csr(self):
        """All cells as scipy.sparse.csr_array."""
        return self._all().tocsr()

    def to_csc(self):
        """All cells as scipy.sparse.csc_array."""
        return self._all().tocsc()

    def to_coo(self):
        """All cells as scipy.sparse.coo_array."""
        return self._all().tocoo()

    def __repr__(self):
        return f"<sparse matrix of {self.kind} in {self.group.name!r}: shape {self.shape}, {self.format}, type {self.dtype.str!r}>"


def _text(value):
    return value.decode() if isinstance(value, bytes) else value


def _anndata(group):
    attrs = group.attrs
    form = attrs.get("encoding-type", attrs.get("h5sparse_format"))
    form = {"csr_matrix": "csr", "csc_matrix": "csc", "csr": "csr", "csc": "csc"}.get(_text(form))
    shape = attrs.get("shape", attrs.get("h5sparse_shape"))
    if form is None or shape is None or not all(name in group for name in ("data", "indices", "indptr")):
        return None
    return SparseGroup(group, "AnnData", form, shape, ("indptr", ("indices",), "data"), group["data"].dtype)


def _tenx(group):
    if not all(name in group for name in ("data", "indices", "indptr", "shape", "barcodes")):
        return None
    shape = group["shape"][...]
    return SparseGroup(group, "10x", "csc", shape, ("indptr", ("indices",), "data"), group["data"].dtype)


def _matlab(group):
    rows = group.attrs.get("MATLAB_sparse")
    if rows is None or "jc" not in group:
        return None
    shape = (int(rows), len(group["jc"]) - 1)
    if "data" not in group:
        # A matrix without cells.
        return SparseGroup(group, "MATLAB", "csc", shape, ("jc", ("jc",), "jc"), "f8", lambda *_: np.empty(0))
    dtype, cast = group["data"].dtype, None
    if _text(group.attrs.get("MATLAB_class")) == "logical":
        dtype, cast = np.dtype(bool), lambda found, begin, end: found[begin:end].astype(bool)
    elif dtype.names == ("real", "imag"):
        dtype = np.result_type(dtype["real"], np.complex64)

        def cast(found, begin, end):
            part = found[begin:end]
            return (part["real"] + 1j * part["imag"]).astype(dtype)

    return SparseGroup(group, "MATLAB", "csc", shape, ("jc", ("ir",), "data"), dtype, cast)


_BINSPARSE = {
    "CSR": ("csr", ("pointers_to_1", ("indices_1",), "values")),
    "CSC": ("csc", ("pointers_to_1", ("indices_1",), "values")),
    "COO": ("coo", (None, ("indices_0", "indices_1"), "values")),
    "COOR": ("coo", (None, ("indices_0", "indices_1"), "values")),
    "COOC": ("coo", (None, ("indices_1", "indices_0"), "values")),
}


def _binsparse(group):
    text = group.attrs.get("binsparse")
    if text is None:
        return None
    told = json.loads(_text(text))
    told = told.get("binsparse", told)
    if told.get("format") not in _BINSPARSE or told.get("structure", "general") != "general":
        raise NotImplementedError(
            f"{group.name}: {told.get('format')} {told.get('structure', '')} of Binsparse; `pumice convert` knows more"
        )
    form, arrays = _BINSPARSE[told["format"]]
    value = told.get("data_types", {}).get("values", "")
    dtype, cast = group["values"].dtype, None
    count = told["number_of_stored_values"]
    if value.startswith("iso["):
        cast = lambda found, begin, end: np.full(end - begin, found[0])  # noqa: E731
    elif value.startswith("complex["):
        dtype = np.dtype(f"c{2 * dtype.itemsize}")
        cast = lambda found, begin, end: found[2 * begin : 2 * end].view(dtype)  # noqa: E731
    elif "bint8" in value:
        dtype, cast = np.dtype(bool), lambda found, begin, end: found[begin:end].astype(bool)
    found = SparseGroup(group, "Binsparse", form, told["shape"], arrays, dtype, cast)
    if found.nnz != count:
        raise ValueError(f"{group.name}: {found.nnz} indices for {count} values")
    return found


_KINDS = (_anndata, _matlab, _binsparse, _tenx)


def as_sparse(group):
    """A sparse matrix of AnnData, 10x Genomics, Binsparse or MATLAB, where it is; or the view of a sparse dataset."""
    if hasattr(group, "is_sparse"):
        return group.sparse
    for known in _KINDS:
        found = known(group)
        if found is not None:
            return found
    raise ValueError(f"{group.name!r} is no sparse matrix of AnnData, 10x, Binsparse or MATLAB")


# -- converting ----------------------------------------------------------------------------------------


def convert(source, target=None, objects=None, dense=(), progress=None, **options):
    """Makes sparse datasets of the sparse matrices of other programs in a file; everything else stays as it is.

    Matrices are found and read by the code of the shell's ``pumice convert``. A dataset takes the place and the attributes
    of the group where this has nothing but the matrix, and the place of the values otherwise. The file is changed where
    it is, in one step at the end, or copied to ``target`` first. ``objects`` are paths of the groups that are meant
    (all that are known), ``dense`` those of dense datasets that shall be sparse (zeros are undefined), ``progress`` is
    called with the number of cells that are done and that of all, other options are those of create_dataset. Returns
    the paths of the new datasets.
    """
    from .files import File

    source, options = os.fspath(source), _storing(**options)
    # A copy takes the place of the file only when everything is done.
    final = source if target is None else os.fspath(target)
    partial = f"{final}.{uuid.uuid4().hex[:8]}.partial"
    shutil.copyfile(source, partial)
    try:
        with File(partial, "r+") as file:
            made = _pumice.converted(source, file.id.file_native, list(objects or ()), list(dense),
                                     f"pumice-{uuid.uuid4().hex}-", options, progress)  # fmt: skip
            for one in made:
                _put_in_place(file, *one)
        shutil.copystat(source, partial)
        os.replace(partial, final)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
    return [path for _, path, *_ in made]


def _storing(chunks=None, compression=None, compression_opts=None, shuffle=None, fletcher32=None, density=None,
             location_compression=None):  # fmt: skip
    """Options of sparse datasets of any shape and datatype, as the native module has them."""
    options: dict[str, Any] = {}
    making._storage(options, (1, 1), np.dtype("f8"), None, compression, compression_opts, shuffle, fletcher32, None, None,
                    None, False, True)  # fmt: skip
    if chunks is not None and chunks is not True:
        options["chunk"] = [int(side) for side in chunks]
    if density is not None:
        options["density"] = float(density)
    if location_compression is not None:
        options["location_filters"] = filters.of_locations(location_compression)
    return options


def _put_in_place(file, name, path, group, arrays, taken):
    """Lets a new dataset take the place of a group or a dataset, by all of its names, or of some arrays of a group."""
    new = file[name]
    if taken:
        others = _other_names(file, file[path])
        del file[path]
        for other in others:
            del file[other]
            file[other] = new
    else:
        for array in arrays:
            del file[group][array]
    file.move(name, path)


def _other_names(file, group):
    """Hard links to a group by other names."""
    names, seen = [], set()

    def look(place):
        if place.id in seen:
            return
        seen.add(place.id)
        for name in list(place):
            if not place.get(name, getlink=True).__class__.__name__ == "HardLink":
                continue
            found = place[name]
            path = f"{place.name.rstrip('/')}/{name}"
            if found == group:
                if path != group.name:
                    names.append(path)
            elif hasattr(found, "keys"):
                look(found)

    look(file["/"])
    return names
