"""A program that knows only h5py and anndata: writes a file, reads it in memory and backed, prints what it found."""

import sys

import anndata
import h5py
import numpy as np
import pandas as pd
import scipy.sparse as sp


def made():
    rng = np.random.default_rng(0)
    matrix = sp.random(50, 30, 0.2, format="csr", random_state=0, dtype="f4")
    obs = pd.DataFrame({"kind": pd.Categorical(rng.choice(["a", "b"], 50)), "n": rng.integers(0, 9, 50)},
                       index=[f"cell{n}" for n in range(50)])  # fmt: skip
    data = anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=[f"gene{n}" for n in range(30)]))
    data.obsm["pca"] = rng.random((50, 3))
    data.layers["dense"] = rng.random((50, 30))
    data.uns["title"] = "some cells"
    data.uns["nested"] = {"list": np.array(["x", "y"], dtype=object), "number": 3}
    return data


def main(path, act):
    if act == "write":
        made().write_h5ad(path, compression="gzip")
        return
    expected = made()
    found = anndata.read_h5ad(path)
    assert (found.X != expected.X).nnz == 0
    assert found.obs.equals(expected.obs) and found.var_names.equals(expected.var_names)
    np.testing.assert_array_equal(found.obsm["pca"], expected.obsm["pca"])
    np.testing.assert_array_equal(found.layers["dense"], expected.layers["dense"])
    assert found.uns["title"] == "some cells" and list(found.uns["nested"]["list"]) == ["x", "y"]
    backed = anndata.read_h5ad(path, backed="r")
    assert (backed.X[3:20] != expected.X[3:20]).nnz == 0
    assert (backed[[1, 7, 40]].to_memory().X != expected.X[[1, 7, 40]]).nnz == 0
    backed.file.close()
    print("read by", "pumice" if hasattr(h5py, "__pumice__") else "h5py")


main(*sys.argv[1:])
