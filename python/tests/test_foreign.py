"""Sparse matrices of other programs: read where they are, and converted."""

import json
import os

import anndata
import h5py
import numpy as np
import pandas
import pytest
import scipy.sparse

import pumice


def matrix(form="csr", shape=(40, 30), dtype="f4"):
    return (scipy.sparse.random_array(shape, density=0.1, rng=np.random.default_rng(1), format=form) * 9).astype(dtype)


def written(path, kind):
    """A file of a program, and what its matrix is."""
    if kind.startswith("anndata"):
        given = matrix(kind[-3:])
        obs = pandas.DataFrame({"n": range(40)}, index=[f"cell{n}" for n in range(40)])
        anndata.AnnData(X=scipy.sparse.csr_matrix(given) if kind[-3:] == "csr" else scipy.sparse.csc_matrix(given),
                        obs=obs).write_h5ad(path)  # fmt: skip
        return given, "X"
    with h5py.File(path, "w") as file:
        file["kept"] = ["a", "b"]
        if kind == "10x":
            given = matrix("csc", dtype="i4")
            group = file.create_group("matrix")
            group["data"], group["indices"], group["indptr"] = given.data, given.indices, given.indptr
            group["shape"], group["barcodes"] = given.shape, [b"A"] * 30
            return given, "matrix"
        if kind == "matlab":
            given = matrix("csc", dtype="f8")
            group = file.create_group("M")
            group.attrs["MATLAB_sparse"], group.attrs["MATLAB_class"] = np.uint64(40), np.bytes_("double")
            group["data"], group["ir"], group["jc"] = given.data, given.indices.astype("u8"), given.indptr.astype("u8")
            return given, "M"
        given = matrix("csr", dtype="f8")
        form = kind.split()[1]
        group = file.create_group("B")
        types = {"values": "float64"}
        told = {"version": "0.1", "format": form, "shape": given.shape, "number_of_stored_values": given.nnz}
        group.attrs["binsparse"] = json.dumps({"binsparse": {**told, "data_types": types}})
        if form == "COO":
            coo = given.tocoo()
            group["indices_0"], group["indices_1"], group["values"] = coo.coords[0], coo.coords[1], coo.data
        else:
            group["pointers_to_1"], group["indices_1"], group["values"] = given.indptr, given.indices, given.data
        return given, "B"


KINDS = ["anndata csr", "anndata csc", "10x", "matlab", "binsparse CSR", "binsparse COO"]


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_read_where_they_are(path, kind):
    given, name = written(path, kind)
    with pumice.File(path, "r") as file:
        found = pumice.as_sparse(file[name])
        assert found.shape == given.shape and found.nnz == given.nnz and found.dtype == given.dtype
        for form in ("to_csr", "to_csc", "to_coo"):
            np.testing.assert_array_equal(getattr(found, form)().toarray(), given.toarray())
        for where in (np.s_[3:9], np.s_[:, 4:7], np.s_[5:20, 2:30:3], np.s_[...], np.s_[[3, 1], :]):
            np.testing.assert_array_equal(found[where].toarray(), given.toarray()[where])
        with pytest.raises(ValueError, match="no sparse matrix"):
            pumice.as_sparse(file["/"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("in_place", [True, False])
def test_files_are_converted_and_keep_the_rest(path, tmp_path, kind, in_place):
    given, name = written(path, kind)
    before, told = path.read_bytes(), []
    target = None if in_place else tmp_path / "new.h5"
    made = pumice.convert(path, target, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (given.nnz, given.nnz)
    if not in_place:
        assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == (["file.h5"] if in_place else ["file.h5", "new.h5"])
    with pumice.File(target or path, "r") as file:
        assert made == ["/" + name if kind != "10x" else "/matrix/data"]
        data = file[made[0]]
        assert data.is_sparse and data.nnz == given.nnz
        np.testing.assert_array_equal(data[...], given.toarray())
        if kind == "10x":
            assert set(file["matrix"]) == {"data", "shape", "barcodes"}
        if kind == "matlab":
            assert data.attrs["MATLAB_sparse"] == 40
        if "anndata" in kind:
            assert data.attrs["encoding-type"] == name_of(kind) and file["obs/n"][3] == 3
        else:
            assert file["kept"].asstr()[...].tolist() == ["a", "b"]


def name_of(kind):
    return f"{kind[-3:]}_matrix"


def test_other_names_of_a_group_lead_to_the_dataset(path):
    given, _ = written(path, "matlab")
    with h5py.File(path, "r+") as file:
        file["other/name"], file["soft"] = file["M"], h5py.SoftLink("/M")
    assert pumice.convert(path) == ["/M"]
    with pumice.File(path, "r") as file:
        assert file["other/name"] == file["M"] == file["soft"] and file["M"].nnz == given.nnz


def test_dense_datasets_become_sparse_if_named(path):
    given = matrix(dtype="i4").toarray()
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=given, chunks=(7, 9), maxshape=(None, 30)).attrs["unit"] = "K"
        file["text"] = "x"
    with pytest.raises(ValueError, match="dense="):
        pumice.convert(path)
    with pytest.raises(ValueError, match="no dense array"):
        pumice.convert(path, dense=["text"])
    assert pumice.convert(path, dense=["d"]) == ["/d"]
    with pumice.File(path, "r") as file:
        assert file["d"].is_sparse and file["d"].nnz == np.count_nonzero(given) and file["d"].attrs["unit"] == "K"
        np.testing.assert_array_equal(file["d"][...], given)
        assert file["d"].maxshape == (None, 30)


def test_symmetric_matrices_are_converted_whole(path):
    lower = scipy.sparse.tril(matrix("coo", (30, 30), "f8"), format="coo")
    with h5py.File(path, "w") as file:
        group = file.create_group("B")
        told = {"version": "0.1", "format": "COO", "shape": [30, 30], "number_of_stored_values": lower.nnz,
                "structure": "symmetric_lower", "data_types": {"values": "float64"}}  # fmt: skip
        group.attrs["binsparse"] = json.dumps({"binsparse": told})
        # In no order.
        mixed = np.random.default_rng(0).permutation(lower.nnz)
        group["indices_0"], group["indices_1"], group["values"] = (
            part[mixed] for part in (lower.coords[0], lower.coords[1], lower.data)
        )
    pumice.convert(path, chunks=(7, 7), compression="lzf")
    with pumice.File(path) as file:
        data = file["B"]
        np.testing.assert_array_equal(data[...], (lower + scipy.sparse.tril(lower, -1).T).toarray())
        assert data.chunks == (7, 7) and "lzf" in data.filter_names and data.attrs["source_file"] == "file.h5"


def test_what_hears_of_progress_can_end_the_work(path):
    written(path, "matlab")
    before = path.read_bytes()

    def enough(done, total):
        raise InterruptedError(f"{done} of {total}")

    with pytest.raises(InterruptedError):
        pumice.convert(path, progress=enough)
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]
