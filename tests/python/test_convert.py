"""`pumice convert`: sparse matrices become sparse datasets, everything else is as it was.

h5py reads both files, anndata and SciPy say what the matrices are."""

import collections
import gzip
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import h5py
import numpy as np
import scipy.sparse

from interop import program

try:
    import anndata
except ImportError:
    anndata = None

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = pathlib.Path(os.environ.get("PUMICE_CORPUS", HERE / "../../../shared/corpora")) / "sparse/h5"
# Names of arrays that are a sparse matrix together.
ARRAYS = {"data", "indices", "indptr", "ir", "jc"}


def equal(one, other):
    """Whether two values of h5py are the same; references cannot be compared between files."""
    if isinstance(one, h5py.Empty) or isinstance(other, h5py.Empty):
        return one == other
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if h5py.check_ref_dtype(one.dtype):
        return True
    if one.dtype.kind == "O":
        return all(np.array_equal(a, b) for a, b in zip(one.ravel(), other.ravel()))
    if one.dtype.hasobject:
        return one.tolist() == other.tolist()
    return one.tobytes() == other.tobytes()


def names_of(group):
    """All objects below a group by path."""
    return {path: group[path] for path in paths(group)}


def paths(group, prefix=""):
    """All paths below a group; sparse datasets, which h5py cannot open, among them."""
    for name in group:
        path = f"{prefix}{name}"
        yield path
        if isinstance(group.get(name, getlink=True), h5py.HardLink):
            try:
                inside = isinstance(group[name], h5py.Group)
            except (RuntimeError, KeyError):
                continue
            if inside:
                yield from paths(group[name], path + "/")


class Convert(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = pathlib.Path(self.folder.name)
        self.pumice = program("PUMICE", "pumice")

    def run_pumice(self, *words, code=0):
        done = subprocess.run([self.pumice, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, f"{words}: {done.stderr}")
        return done.stderr if code else done.stdout

    def convert(self, source, *options):
        """Converts a file; gives the new one and the paths of its sparse datasets."""
        target = self.at / "converted.h5"
        told = self.run_pumice("convert", "-f", source, target, *options).splitlines()
        return target, [line.split(": ")[0].strip("/") for line in told[:-1]]

    def same_but(self, old, new, matrices):
        """Compares everything that is no part of a matrix; gives how many objects that was."""
        gone = set()
        for matrix in matrices:
            inside = matrix.rpartition("/")[0] if matrix not in old or not isinstance(
                old[matrix], h5py.Group) else None
            gone |= {matrix} | {f"{matrix}/{name}" for name in ARRAYS}
            if inside is not None:
                gone |= {f"{inside}/{name}" for name in ARRAYS}
        count = 0
        self.attributes(old, new, "/")
        for path, one in names_of(old).items():
            if path in gone:
                continue
            other = new[path]
            self.assertIs(type(one), type(other), path)
            self.attributes(one, other, path)
            count += 1
            if isinstance(one, h5py.Dataset):
                facts = ["dtype", "shape", "maxshape", "chunks", "compression", "shuffle"]
                for fact in facts:
                    self.assertEqual(getattr(one, fact), getattr(other, fact), (path, fact))
                self.assertTrue(equal(one[()], other[()]), path)
        left = set(paths(new)) - set(paths(old)) - set(matrices)
        self.assertEqual(left, set())
        return count

    def attributes(self, one, other, path):
        self.assertEqual(list(one.attrs), list(other.attrs), path)
        for name in one.attrs:
            self.assertTrue(equal(one.attrs[name], other.attrs[name]), (path, name))

    def cells(self, file, path):
        """The defined cells of a sparse dataset, as SciPy has them."""
        target = self.at / "matrix.npz"
        self.run_pumice("export", "-f", file, target, "--dataset", path, "--form", "csr")
        return scipy.sparse.load_npz(target)

    def test_everything_else_in_the_files_of_other_programs_is_kept(self):
        if not CORPUS.exists():
            self.skipTest(f"no {CORPUS}")
        done = collections.Counter()
        for source in sorted(CORPUS.iterdir()):
            if source.suffix not in {".h5ad", ".h5mu", ".mat", ".h5"}:
                continue
            new, matrices = self.convert(source)
            self.assertGreater(len(matrices), 0, source)
            with h5py.File(source) as one, h5py.File(new) as other:
                done["objects"] += self.same_but(one, other, matrices)
            self.run_pumice("check", new)
            done["matrices"] += len(matrices)
            done["files"] += 1
        print(f"convert: {dict(done)}")
        self.assertGreater(done["objects"], 100)

    def test_matrices_are_equal_and_keep_their_attributes(self):
        if anndata is None:
            self.skipTest("no anndata")
        rng = np.random.default_rng(4)
        matrix = scipy.sparse.random(50, 30, 0.1, "csr", rng=rng)
        layer = scipy.sparse.random(50, 30, 0.2, "csc", rng=rng, dtype=np.float32)
        data = anndata.AnnData(matrix, layers={"counts": layer, "dense": layer.toarray()})
        data.obs["age"] = np.arange(50.0)
        data.obs["kind"] = np.array(["a", "b"] * 25)
        data.strings_to_categoricals()
        data.uns["deep"] = {"list": np.arange(7), "text": "ä"}
        source = self.at / "cells.h5ad"
        data.write_h5ad(source)
        told = self.run_pumice("import", source, self.at / "imported.h5")
        for left in ["/obs/age", "/obs/kind (2 datasets)", "/uns (2 datasets)"]:
            self.assertIn(f"left out: {left}\n", told)
        new, matrices = self.convert(source)
        self.assertEqual(sorted(matrices), ["X", "layers/counts"])
        with h5py.File(source) as one, h5py.File(new) as other:
            self.same_but(one, other, matrices)
        for path, wanted in [("X", matrix), ("layers/counts", layer)]:
            found = self.cells(new, path)
            self.assertEqual((found != wanted).nnz, 0)
            self.assertEqual(found.dtype, wanted.dtype)
            shown = self.run_pumice("dump", "-A", "-d", path, new)
            for name in ["encoding-type", "encoding-version", "shape", "axis0_index"]:
                self.assertIn(f'ATTRIBUTE "{name}"', shown)
        # Only what was asked for.
        new, matrices = self.convert(source, "--object", "X")
        self.assertEqual(matrices, ["X"])
        with h5py.File(source) as one, h5py.File(new) as other:
            self.same_but(one, other, matrices)
            self.assertIsInstance(other["layers/counts"], h5py.Group)
        message = self.run_pumice("convert", "-f", source, new, "--object", "Y", code=1)
        self.assertIn("no sparse matrix Y", message)

    def test_dense_datasets_become_sparse_if_asked(self):
        source, new = self.at / "cells.loom", self.at / "cells.h5"
        values = np.where(np.arange(3000).reshape(60, 50) % 7 == 0, 1.5, 0.0)
        with h5py.File(source, "w") as file:
            file.create_dataset("matrix", data=values, chunks=(20, 20), compression="gzip")
            file["matrix"].attrs["kind"] = "counts"
            file["row_attrs/Gene"] = [f"g{n}" for n in range(60)]
            file.attrs["LOOM_SPEC_VERSION"] = "3.0.0"
        message = self.run_pumice("convert", source, new, code=1)
        self.assertIn("--dense", message)
        self.assertFalse(new.exists())
        self.run_pumice("convert", source, new, "--dense", "matrix")
        with h5py.File(source) as one, h5py.File(new) as other:
            self.assertEqual(self.same_but(one, other, ["matrix"]), 2)
        np.testing.assert_array_equal(self.cells(new, "matrix").toarray(), values)
        self.assertEqual(self.cells(new, "matrix").nnz, np.count_nonzero(values))

    def test_packed_files_are_unpacked(self):
        source, packed = self.at / "counts.h5", self.at / "counts.h5.gz"
        matrix = scipy.sparse.random(40, 20, 0.2, "csc", rng=np.random.default_rng(1))
        with h5py.File(source, "w") as file:
            group = file.create_group("matrix")
            for name in ["data", "indices", "indptr"]:
                group[name] = getattr(matrix, name)
            group["shape"] = [40, 20]
            group["barcodes"] = [f"b{n}" for n in range(20)]
            group["features/id"] = [f"f{n}" for n in range(40)]
        with open(source, "rb") as plain, gzip.open(packed, "wb") as out:
            shutil.copyfileobj(plain, out)
        new, matrices = self.convert(packed)
        self.assertEqual(matrices, ["matrix/data"])
        with h5py.File(source) as one, h5py.File(new) as other:
            self.assertEqual(self.same_but(one, other, matrices), 5)
        self.assertEqual((self.cells(new, "matrix/data") != matrix.tocsr()).nnz, 0)


if __name__ == "__main__":
    unittest.main()
