"""Files of SciPy, NumPy, anndata, 10x, Binsparse and MATLAB through `pumice import` and `export`.

What a library wrote is imported, exported again, read by the library, and compared: values, types,
shape, and which cells are there, explicit zeros too."""

import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

import h5py
import numpy as np
import scipy.io
import scipy.sparse

from interop import program

try:
    import anndata
except ImportError:
    anndata = None

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = pathlib.Path(os.environ.get("PUMICE_CORPUS", HERE / "../../../shared/corpora")) / "sparse"


def cells(matrix):
    """Coordinates in order and values, explicit zeros among them."""
    coo = scipy.sparse.coo_array(matrix)
    order = np.lexsort(coo.coords[::-1])
    return [axis[order] for axis in coo.coords], coo.data[order]


def example(rng, shape, dtype, density=0.2):
    """A matrix with explicit zeros and no duplicates."""
    count = int(shape[0] * shape[1] * density)
    places = rng.choice(shape[0] * shape[1], size=count, replace=False) if count else []
    rows, columns = np.divmod(np.asarray(places, dtype=np.int64), max(shape[1], 1))
    values = rng.integers(0, 4, count).astype(dtype)
    if np.dtype(dtype).kind in "fc":
        values = values * dtype(0.1)
    return scipy.sparse.coo_array((values, (rows, columns)), shape=shape)


class Formats(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = pathlib.Path(self.folder.name)
        self.pumice = program("PUMICE", "pumice")

    def run_pumice(self, *words, code=0):
        done = subprocess.run([self.pumice, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, f"{words}: {done.stderr}")
        return done.stderr if code else done.stdout

    def through(self, source, target, *options, **more):
        """Imports a file and exports it again."""
        middle = self.at / "middle.h5"
        self.run_pumice("import", "-f", source, middle, *more.get("import_options", ()))
        self.run_pumice("export", "-f", middle, target, *options)
        return target

    def same(self, found, wanted, dtype=True):
        self.assertEqual(found.shape, wanted.shape)
        (found_at, found_values), (wanted_at, wanted_values) = cells(found), cells(wanted)
        for one, other in zip(found_at, wanted_at):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(found_values, wanted_values)
        if dtype:
            self.assertEqual(found_values.dtype, wanted_values.dtype)

    SHAPES = [(7, 11), (40, 3), (1, 1), (5, 0), (300, 200)]
    TYPES = [np.float64, np.float32, np.int8, np.int32, np.int64, np.uint8, np.uint16, np.complex128]

    def test_scipy_archives_come_back(self):
        rng = np.random.default_rng(1)
        for number, dtype in enumerate(self.TYPES):
            matrix = example(rng, self.SHAPES[number % len(self.SHAPES)], dtype)
            for form in ("csr", "csc", "coo"):
                for compressed in (True, False):
                    with self.subTest(dtype=dtype, form=form, compressed=compressed):
                        path = self.at / "in.npz"
                        scipy.sparse.save_npz(path, matrix.asformat(form), compressed=compressed)
                        out = self.through(path, self.at / "out.npz", "--form", form)
                        back = scipy.sparse.load_npz(out)
                        self.assertEqual(back.format, form)
                        self.same(back, matrix)

    def test_archives_of_blocks_and_diagonals_become_entries(self):
        """Blocks whole, diagonals without zeros: as SciPy makes coordinates of them."""
        rng = np.random.default_rng(11)
        for dtype in (np.float64, np.int16, np.complex64):
            dense = example(rng, (12, 20), dtype).toarray()
            for form in (scipy.sparse.bsr_array(dense, blocksize=(3, 4)), scipy.sparse.bsr_array(dense, blocksize=(1, 5)),
                         scipy.sparse.bsr_array(dense, blocksize=(12, 20)), scipy.sparse.dia_array(dense),
                         scipy.sparse.dia_array((rng.integers(0, 3, (3, 9)).astype(dtype), [-7, 0, 4]), shape=(12, 20)),
                         scipy.sparse.bsr_array((12, 20), blocksize=(4, 4), dtype=dtype),
                         scipy.sparse.dia_array((12, 20), dtype=dtype)):
                with self.subTest(dtype=dtype, form=repr(form)):
                    scipy.sparse.save_npz(self.at / "in.npz", form)
                    back = scipy.sparse.load_npz(self.through(self.at / "in.npz", self.at / "out.npz"))
                    self.same(back, form.tocoo())
        # Values that begin lines elsewhere than SciPy would put them.
        scipy.sparse.save_npz(self.at / "in.npz", scipy.sparse.bsr_array(dense, blocksize=(3, 4)))
        arrays = dict(np.load(self.at / "in.npz"))
        for change in ({"data": np.asfortranarray(arrays["data"])}, {"data": arrays["data"][:, :, :3]},
                       {"indices": arrays["indices"] + 50}, {"indptr": arrays["indptr"][:-1]}):
            np.savez(self.at / "bad.npz", **{**arrays, **change})
            self.run_pumice("import", "-f", self.at / "bad.npz", self.at / "out.h5", code=1)

    def test_duplicates_follow_the_rule(self):
        matrix = scipy.sparse.coo_array(([1.5, 2.5, 4.0], ([0, 2, 0], [1, 1, 1])), shape=(3, 3))
        scipy.sparse.save_npz(self.at / "in.npz", matrix)
        for rule, value in (("sum", 5.5), ("first", 1.5), ("last", 4.0)):
            options = ("--duplicates", rule)
            out = self.through(self.at / "in.npz", self.at / "out.npz", import_options=options)
            self.assertEqual(scipy.sparse.load_npz(out).toarray()[0, 1], value)
        self.run_pumice("import", self.at / "in.npz", self.at / "e.h5", "--duplicates", "error", code=1)

    def test_entries_in_no_order_take_little_memory(self):
        """More entries than the program may hold, several for some cells, in two orders."""
        rng, count, side = np.random.default_rng(9), 3_000_000, 100_000
        rows, columns = rng.integers(0, side, (2, count), dtype=np.int32)
        rows[count // 2 :: 7], columns[count // 2 :: 7] = rows[: count // 2 : 7], columns[: count // 2 : 7]
        values = rng.integers(1, 100, count).astype(np.float64)
        shape = np.array([side, side])
        np.savez(self.at / "in.npz", row=rows, col=columns, data=values, shape=shape, format=np.array(b"coo"))
        wanted = scipy.sparse.coo_array((values, (rows, columns)), shape=(side, side)).tocsc()
        np.savez(self.at / "csc.npz", indptr=wanted.indptr, indices=wanted.indices, data=wanted.data,
                 shape=shape, format=np.array(b"csc"))
        for name, options in (("in.npz", ()), ("csc.npz", ("--chunk", f"100,{side}"))):
            with self.subTest(name):
                words = [self.pumice, "import", "-f", self.at / name, self.at / "out.h5", *options]
                # A process begins with the size of the one that starts it: a small one does.
                watch = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
                         "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
                done = subprocess.run([sys.executable, "-S", "-c", watch, *words], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                peak = int(done.stdout.split()[-1])
                # Chunks in the cache are most of it; the entries themselves would take 48 MB more.
                self.assertLess(peak, 150_000, "kilobytes")
                self.assertEqual(sorted(p.name for p in self.at.iterdir() if "sorted" in p.name), [])
                self.assertIn(f"{wanted.nnz:,} entries", done.stdout)
                if options:
                    continue
                self.run_pumice("export", "-f", self.at / "out.h5", self.at / "out.npz", "--form", "csr")
                found, rows = scipy.sparse.load_npz(self.at / "out.npz"), wanted.tocsr()
                np.testing.assert_array_equal(found.indptr, rows.indptr)
                np.testing.assert_array_equal(found.indices, rows.indices)
                np.testing.assert_array_equal(found.data, rows.data)

    def test_dense_arrays_come_back(self):
        rng = np.random.default_rng(2)
        arrays = {
            "c": rng.normal(size=(13, 17)),
            "fortran": np.asfortranarray(rng.integers(-9, 9, (6, 5, 4)).astype(">i2")),
            "flags": rng.integers(0, 2, 50).astype(bool),
            "complex": (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))).astype(np.complex64),
            "half": rng.normal(size=9).astype(np.float16),
            "scalar": np.float32(7.5),
            "empty": np.zeros((0, 3), np.uint8),
            "large": rng.integers(0, 255, (3000, 2000)).astype(np.uint8),
        }
        for name, array in arrays.items():
            with self.subTest(name):
                np.save(self.at / "in.npy", array)
                options = ("--dataset", "array")
                back = np.load(self.through(self.at / "in.npy", self.at / "out.npy", *options))
                np.testing.assert_array_equal(back, array)
                self.assertEqual(back.dtype, np.asarray(array).dtype)
        arrays.pop("scalar")
        for save in (np.savez, np.savez_compressed):
            save(self.at / "in.npz", **arrays)
            back = np.load(self.through(self.at / "in.npz", self.at / "out.npz"))
            self.assertEqual(set(back), set(arrays))
            for name, array in arrays.items():
                np.testing.assert_array_equal(back[name], array)

    def test_matrix_market_comes_back(self):
        rng = np.random.default_rng(3)
        for dtype in (np.float64, np.int64, np.uint64, np.complex128):
            for ending in (".mtx", ".mtx.gz"):
                for symmetry in ("general", "symmetric"):
                    with self.subTest(dtype=dtype, ending=ending, symmetry=symmetry):
                        matrix = example(rng, (31, 31), dtype)
                        if symmetry == "symmetric":
                            matrix = scipy.sparse.coo_array(matrix + matrix.T)
                        path = self.at / "in.mtx"
                        scipy.io.mmwrite(path, matrix, symmetry=symmetry, precision=17)
                        if ending.endswith("gz"):
                            packed = self.at / "in.mtx.gz"
                            packed.write_bytes(gzip.compress(path.read_bytes()))
                            path = packed
                        out = self.through(path, self.at / f"out{ending}")
                        self.same(scipy.io.mmread(out), scipy.io.mmread(path))
        square = example(rng, (31, 31), np.complex128).toarray()
        real = square.real
        for symmetry, wanted in (("skew-symmetric", real - real.T), ("skew-symmetric", square - square.T),
                                 ("hermitian", square + square.conj().T), ("pattern", real)):
            with self.subTest(symmetry):
                wanted = scipy.sparse.coo_array(wanted)
                options = {"field": "pattern"} if symmetry == "pattern" else {"symmetry": symmetry}
                scipy.io.mmwrite(self.at / "in.mtx", wanted, precision=17, **options)
                out = self.through(self.at / "in.mtx", self.at / "out.mtx")
                self.assertIn(b"general", out.read_bytes().split(b"\n")[0])
                self.same(scipy.io.mmread(out), scipy.io.mmread(self.at / "in.mtx"), dtype=False)
        dense = rng.normal(size=(7, 5))
        scipy.io.mmwrite(self.at / "dense.mtx", dense, precision=17)
        back = scipy.io.mmread(self.through(self.at / "dense.mtx", self.at / "out.mtx"))
        np.testing.assert_array_equal(back, dense)

    def test_text_comes_back(self):
        rng = np.random.default_rng(4)
        for dtype in (np.float64, np.float32, np.int16, np.uint64):
            for ending in (".csv", ".tsv", ".csv.gz"):
                with self.subTest(dtype=dtype, ending=ending):
                    matrix = example(rng, (20, 30), dtype)
                    scipy.sparse.save_npz(self.at / "in.npz", matrix)
                    text = self.through(self.at / "in.npz", self.at / f"text{ending}")
                    back = self.through(text, self.at / "out.npz")
                    self.same(scipy.sparse.load_npz(back), matrix)
        (self.at / "plain.tsv").write_text("i\tj\tv\n0\t2\t5\n3\t1\t0\n")
        back = self.through(self.at / "plain.tsv", self.at / "plain.npz")
        self.same(scipy.sparse.load_npz(back),
                  scipy.sparse.coo_array(([5, 0], ([0, 3], [2, 1])), shape=(4, 3)))

    def test_text_of_many_kinds_is_read(self):
        wanted = scipy.sparse.coo_array(([5.5, 0.0, -1.0], ([0, 3, 3], [2, 1, 2])), shape=(4, 3))
        kinds = {
            "comma.csv": "0,2,5.5\n3,1,0\n3,2,-1\n",
            "tab.tsv": "i\tj\tv\n0\t2\t5.5\n3\t1\t0\n3\t2\t-1\n",
            "semicolon.csv": "row; column; value\n0; 2; 5.5\n3; 1; 0\n3; 2; -1\n",
            "blanks.csv": "0  2 5.5\n3  1 0\n3  2 -1\n",
            "quotes.csv": '"i","j","x"\n"0","2",5.5\n"3","1",0\n"3","2",-1\n',
            "comments.csv": "# made by hand\n% and more\n0,2,5.5\n\n# inside\n3,1,0\n3,2,-1",
            "lines.csv": "i,j,v\r\n0,2,5.5\r\n3,1,0\r\n3,2,-1\r\n",
            "exponents.csv": "0,2,55e-1\n3,1,0.0\n3,2,-1.0E0\n",
        }
        for name, text in kinds.items():
            with self.subTest(name):
                (self.at / name).write_bytes(text.encode())
                self.same(scipy.sparse.load_npz(self.through(self.at / name, self.at / "out.npz")), wanted)
        (self.at / "one.tsv").write_text("i\tj\tx\n1\t3\t5.5\n4\t2\t0\n4\t3\t-1\n")
        back = self.through(self.at / "one.tsv", self.at / "out.npz", import_options=("--one-based",))
        self.same(scipy.sparse.load_npz(back), wanted)
        (self.at / "zero.tsv").write_text("0\t3\t5.5\n")
        error = self.run_pumice("import", self.at / "zero.tsv", self.at / "e.h5", "--one-based", code=1)
        self.assertIn("a coordinate from 1", error)

    @unittest.skipUnless(anndata, "anndata is not installed")
    def test_anndata_before_variables_were_chosen_comes_back(self):
        rng = np.random.default_rng(12)
        whole = anndata.AnnData(scipy.sparse.csr_matrix(example(rng, (20, 40), np.float32)))
        whole.var_names = [f"gene {number}" for number in range(40)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = whole[:, 5:15].copy()
            given.raw = whole
            given.layers["twice"] = given.X * 2
            given.write_h5ad(self.at / "in.h5ad")
            back = anndata.read_h5ad(self.through(self.at / "in.h5ad", self.at / "out.h5ad"))
        self.same(back.X, given.X)
        self.same(back.raw.X, given.raw.X)
        self.same(back.layers["twice"], given.layers["twice"])
        self.assertEqual(list(back.raw.var_names), list(given.raw.var_names))
        self.assertEqual(list(back.var_names), list(given.var_names))

    def test_matlab_truth_values_and_complex_numbers_come_back(self):
        pair = np.dtype([("real", "f8"), ("imag", "f8")])
        matrix = scipy.sparse.csc_array(example(np.random.default_rng(13), (9, 7), np.complex128))
        matrix.sort_indices()
        for kind in ("logical", "double", "complex"):
            with self.subTest(kind), h5py.File(self.at / "in.mat", "w", userblock_size=512) as file:
                group = file.create_group("m")
                group.attrs["MATLAB_class"] = np.bytes_("logical" if kind == "logical" else "double")
                group.attrs["MATLAB_sparse"] = np.uint64(9)
                if kind == "logical":
                    group.attrs["MATLAB_int_decode"] = np.int32(1)
                values = {"logical": np.ones(matrix.nnz, "u1"), "double": matrix.data.real,
                          "complex": matrix.data.view("f8").view(pair).ravel()}[kind]
                group["data"], group["ir"] = values, matrix.indices.astype("u8")
                group["jc"] = matrix.indptr.astype("u8")
            out = self.through(self.at / "in.mat", self.at / "out.mat")
            with h5py.File(out) as file, h5py.File(self.at / "in.mat") as given:
                for name in ("data", "ir", "jc"):
                    np.testing.assert_array_equal(file["m"][name][()], given["m"][name][()])
                    self.assertEqual(file["m"][name].dtype, given["m"][name].dtype)
                self.assertEqual(file["m"].attrs["MATLAB_class"], given["m"].attrs["MATLAB_class"])
                self.assertEqual(set(file["m"].attrs), set(given["m"].attrs))

    @unittest.skipUnless(anndata, "anndata is not installed")
    def test_anndata_comes_back(self):
        rng = np.random.default_rng(5)
        for form in ("csr", "csc"):
            for dtype in (np.float32, np.int64):
                with self.subTest(form=form, dtype=dtype), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    kind = getattr(scipy.sparse, f"{form}_matrix")
                    given = anndata.AnnData(kind(example(rng, (50, 30), dtype)))
                    given.layers["counts"] = kind(example(rng, (50, 30), dtype))
                    given.layers["dense"] = rng.normal(size=(50, 30))
                    given.obsm["X_pca"] = rng.normal(size=(50, 4))
                    given.obsp["distances"] = kind(example(rng, (50, 50), np.float64))
                    given.obs_names = [f"cell {number}" for number in range(50)]
                    given.var_names = [f"gène{number}" for number in range(30)]
                    given.write_h5ad(self.at / "in.h5ad")
                    out = self.through(self.at / "in.h5ad", self.at / "out.h5ad", "--form", form)
                    back = anndata.read_h5ad(out)
                    self.same(back.X, given.X)
                    self.assertEqual(back.X.format, form)
                    self.same(back.layers["counts"], given.layers["counts"])
                    self.same(back.obsp["distances"], given.obsp["distances"])
                    np.testing.assert_array_equal(back.layers["dense"], given.layers["dense"])
                    np.testing.assert_array_equal(back.obsm["X_pca"], given.obsm["X_pca"])
                    self.assertEqual(list(back.obs_names), list(given.obs_names))
                    self.assertEqual(list(back.var_names), list(given.var_names))

    def ten_x(self, path, matrix, groups):
        with h5py.File(path, "w") as file:
            for group in groups:
                columns = scipy.sparse.csc_array(matrix)
                group = file.create_group(group)
                group["data"], group["indices"] = columns.data, columns.indices.astype("i8")
                group["indptr"] = columns.indptr.astype("i8")
                group["shape"] = np.array(matrix.shape, "i4")
                group["barcodes"] = np.array([b"c%d" % n for n in range(matrix.shape[1])])
                group["genes"] = np.array([b"ENSG%d" % n for n in range(matrix.shape[0])])
                group["gene_names"] = np.array([b"g%d" % n for n in range(matrix.shape[0])])

    def test_counts_of_10x_come_back(self):
        matrix = example(np.random.default_rng(6), (60, 25), np.int32)
        self.ten_x(self.at / "in.h5", matrix, ["matrix"])
        out = self.through(self.at / "in.h5", self.at / "out.h5", "--to", "10x")
        with h5py.File(out) as file:
            group = file["matrix"]
            arrays = [group[name][:] for name in ("data", "indices", "indptr")]
            self.same(scipy.sparse.csc_array(tuple(arrays), shape=tuple(group["shape"][:])), matrix)
            self.assertEqual(list(group["barcodes"][:]), [b"c%d" % n for n in range(25)])
            self.assertEqual(list(group["features/id"][:]), [b"ENSG%d" % n for n in range(60)])
            self.assertEqual(list(group["features/name"][:]), [b"g%d" % n for n in range(60)])
            self.assertEqual(set(group["features/feature_type"][:]), {b"Gene Expression"})
        self.ten_x(self.at / "v2.h5", matrix, ["hg19", "mm10"])
        told = self.run_pumice("import", "-f", self.at / "v2.h5", self.at / "two.h5")
        self.assertIn("/hg19: 60 x 25", told)
        self.assertIn("/mm10: 60 x 25", told)

    def binsparse(self, path, descriptor, **arrays):
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
            file.attrs["binsparse"] = json.dumps({"binsparse": {"version": "0.1", **descriptor}})

    def read_binsparse(self, path):
        """An independent reader of what is written."""
        with h5py.File(path) as file:
            about = json.loads(file.attrs["binsparse"])["binsparse"]
            load = lambda name: file[name][:]
            values, kind = load("values"), about["data_types"]["values"]
            for name, dtype in about["data_types"].items():
                if "[" not in dtype and dtype != "bint8":
                    self.assertEqual(file[name].dtype, np.dtype(dtype))
            if kind.startswith("complex"):
                values = values.view(np.complex128 if kind == "complex[float64]" else np.complex64)
            if kind == "bint8":
                values = values.astype(bool)
            shape, form = tuple(about["shape"]), about["format"]
            if kind.startswith("iso["):
                self.assertEqual(len(values), 1)
                values = np.repeat(values, about["number_of_stored_values"])
            if form in ("DCSR", "DCSC"):
                lines, counts = load("indices_0"), np.diff(load("pointers_to_1").astype(np.int64))
                self.assertTrue((counts > 0).all(), "empty lines")
                self.assertEqual(len(lines), len(counts))
                first, second = np.repeat(lines, counts), load("indices_1")
                pair = (first, second) if form == "DCSR" else (second, first)
                return scipy.sparse.coo_array((values, pair), shape=shape)
            if form in ("CSR", "CSC"):
                kind = {"CSR": scipy.sparse.csr_array, "CSC": scipy.sparse.csc_array}[form]
                return kind((values, load("indices_1"), load("pointers_to_1")), shape=shape)
            if form == "COO":
                return scipy.sparse.coo_array((values, (load("indices_0"), load("indices_1"))), shape=shape)
            if form == "CVEC":
                return scipy.sparse.coo_array((values, (load("indices_0"),)), shape=shape)
            return values.reshape(shape)

    def test_binsparse_comes_back_in_every_form(self):
        rng = np.random.default_rng(7)
        matrix = example(rng, (12, 9), np.float32, 0.1)
        rows, columns = matrix.tocsr(), matrix.tocsc()
        kinds = {"pointers_to_1": "uint64", "indices_1": "uint64", "values": "float32"}
        def doubly(lines):
            full = np.flatnonzero(np.diff(lines.indptr))
            pointers = np.append(lines.indptr[full], lines.nnz)
            return dict(indices_0=full.astype("u8"), pointers_to_1=pointers.astype("u8"))
        coo = matrix
        order = np.lexsort(coo.coords[::-1])
        forms = {
            "CSR": dict(pointers_to_1=rows.indptr, indices_1=rows.indices, values=rows.data),
            "CSC": dict(pointers_to_1=columns.indptr, indices_1=columns.indices, values=columns.data),
            "DCSR": dict(doubly(rows), indices_1=rows.indices, values=rows.data),
            "DCSC": dict(doubly(columns), indices_1=columns.indices, values=columns.data),
            "COO": dict(indices_0=coo.coords[0][order], indices_1=coo.coords[1][order], values=coo.data[order]),
            "COOC": dict(indices_0=coo.coords[1], indices_1=coo.coords[0], values=coo.data),
        }
        for form, arrays in forms.items():
            with self.subTest(form):
                about = dict(format=form, shape=[12, 9], number_of_stored_values=matrix.nnz, data_types=kinds)
                self.binsparse(self.at / "in.bsp.h5", about, **arrays)
                for out in ("csr", "csc", "coo", "dcsr", "dcsc"):
                    back = self.through(self.at / "in.bsp.h5", self.at / "out.bsp.h5", "--form", out)
                    self.same(self.read_binsparse(back), matrix)
                back = self.through(self.at / "in.bsp.h5", self.at / "out.bsp.h5")
                self.same(self.read_binsparse(back), matrix)
                with h5py.File(back) as file:
                    kept = json.loads(file.attrs["binsparse"])["binsparse"]["format"]
                self.assertEqual(kept, "COO" if form == "COOC" else form)

    def test_binsparse_has_vectors_dense_arrays_iso_and_complex(self):
        about = lambda form, shape, kind, **more: dict(
            format=form, shape=shape, number_of_stored_values=2, data_types={"values": kind}, **more)
        place = self.at / "in.bsp.h5"
        def back(form, shape, kind, arrays, **more):
            self.binsparse(place, about(form, shape, kind, **more), **arrays)
            return self.read_binsparse(self.through(place, self.at / "out.bsp.h5"))
        found = back("CVEC", [9], "int64", dict(indices_0=[2, 7], values=[5, 0]))
        self.same(found, scipy.sparse.coo_array(([5, 0], ([2, 7],)), shape=(9,)))
        dense = np.arange(6.0)
        np.testing.assert_array_equal(back("DVEC", [6], "float64", dict(values=dense)), dense)
        np.testing.assert_array_equal(
            back("DMATR", [2, 3], "float64", dict(values=dense)), dense.reshape(2, 3))
        np.testing.assert_array_equal(
            back("DMATC", [2, 3], "float64", dict(values=dense)), dense.reshape(3, 2).T)
        pair = dict(indices_0=[0, 2], indices_1=[1, 0])
        iso = back("COO", [3, 3], "iso[int8]", dict(pair, values=np.array([7], "i1")))
        self.same(iso, scipy.sparse.coo_array((np.array([7, 7], "i1"), ([0, 2], [1, 0])), shape=(3, 3)))
        with h5py.File(self.at / "out.bsp.h5") as file:
            self.assertEqual(len(file["values"]), 1, "one value for all, as before")
        self.binsparse(place, about("CSR", [4, 5], "float64", fill=False) | {"number_of_stored_values": 0})
        nothing = self.read_binsparse(self.through(place, self.at / "out.bsp.h5"))
        self.same(nothing, scipy.sparse.csr_array((4, 5)))
        parts = np.array([1.0, 2.0, 3.0, 4.0])
        found = back("COO", [3, 3], "complex[float64]", dict(pair, values=parts))
        self.same(found, scipy.sparse.coo_array(([1 + 2j, 3 + 4j], ([0, 2], [1, 0])), shape=(3, 3)))
        found = back("COO", [3, 3], "bint8", dict(pair, values=np.array([1, 0], "u1")))
        self.same(found, scipy.sparse.coo_array(([True, False], ([0, 2], [1, 0])), shape=(3, 3)))

    def test_binsparse_keeps_symmetry(self):
        """Six structures in five forms: one triangle again, of the same cells, until the matrix changes."""
        rng = np.random.default_rng(10)
        for structure in ("symmetric", "skew_symmetric", "hermitian"):
            for side in ("lower", "upper"):
                full = example(rng, (14, 14), np.complex128 if structure == "hermitian" else np.int32).toarray()
                if structure == "hermitian":
                    full = full + 1j * np.triu(full.real, 1)
                half = {"lower": np.tril, "upper": np.triu}[side](full, 0)
                if structure == "skew_symmetric":
                    np.fill_diagonal(half, 0)
                if structure == "hermitian":
                    np.fill_diagonal(half, half.diagonal().real)
                mirror = {"symmetric": half.T, "skew_symmetric": -half.T, "hermitian": half.conj().T}[structure]
                whole = half + mirror - np.diag(half.diagonal())
                for form in ("CSR", "CSC", "COO", "DCSR", "DCSC"):
                    with self.subTest(structure=structure, side=side, form=form):
                        self.check_symmetry(f"{structure}_{side}", form, half, whole)

    def check_symmetry(self, structure, form, half, whole):
        triangle = scipy.sparse.coo_array(half)
        kind = "complex[float64]" if half.dtype.kind == "c" else "int32"
        by_column = form.endswith("CSC")
        order = np.lexsort((triangle.row, triangle.col) if by_column else (triangle.col, triangle.row))
        rows, columns = triangle.row[order], triangle.col[order]
        values = triangle.data[order]
        first, second = (columns, rows) if by_column else (rows, columns)
        values = values.view(np.float64) if kind != "int32" else values
        arrays = dict(indices_1=second.astype("u8"), values=values)
        types = {"indices_1": "uint64", "values": kind}
        if form == "COO":
            arrays["indices_0"] = first.astype("u8")
        else:
            lines = np.unique(first) if form.startswith("D") else np.arange(14)
            arrays["pointers_to_1"] = np.searchsorted(first, np.append(lines, 14)).astype("u8")
            if form.startswith("D"):
                arrays["indices_0"] = lines.astype("u8")
        place, middle, out = self.at / "in.bsp.h5", self.at / "middle.h5", self.at / "out.bsp.h5"
        self.binsparse(place, dict(format=form, shape=[14, 14], number_of_stored_values=len(rows),
                                   structure=structure, data_types=types), **arrays)
        self.run_pumice("import", "-f", place, middle)
        self.run_pumice("export", "-f", middle, self.at / "full.npz")
        np.testing.assert_array_equal(scipy.sparse.load_npz(self.at / "full.npz").toarray(), whole)
        self.run_pumice("export", "-f", middle, out)
        with h5py.File(out) as file:
            about = json.loads(file.attrs["binsparse"])["binsparse"]
        self.assertEqual((about["structure"], about["format"], about["number_of_stored_values"]),
                         (structure, form, len(rows)))
        self.same(self.read_binsparse(out), triangle)
        # Without one of its cells it is no longer so, and written in full.
        off = np.flatnonzero(rows != columns)[0]
        row, column = rows[off], columns[off]
        self.run_pumice("erase", middle, "matrix", "--window", f"{row}:{row + 1},{column}:{column + 1}")
        self.run_pumice("export", "-f", middle, out)
        with h5py.File(out) as file:
            self.assertNotIn("structure", json.loads(file.attrs["binsparse"])["binsparse"])
        whole = whole.copy()
        whole[row, column] = 0
        np.testing.assert_array_equal(self.read_binsparse(out).toarray(), whole)

    def matlab(self, path, name):
        with h5py.File(path) as file:
            group = file[name]
            rows, pointers = int(group.attrs["MATLAB_sparse"]), group["jc"][:]
            data = group["data"][:] if "data" in group else np.zeros(0)
            if data.dtype.names:
                data = data["real"] + 1j * data["imag"]
            indices = group["ir"][:] if "ir" in group else np.zeros(0, "u8")
            return scipy.sparse.csc_array((data, indices, pointers), shape=(rows, len(pointers) - 1))

    def test_matlab_files_of_others_come_back(self):
        files = sorted(CORPUS.glob("h5/*.mat"))
        if not files:
            self.skipTest("no corpus")
        count = 0
        for path in files:
            with h5py.File(path) as file:
                names = []
                file.visititems(lambda name, o: names.append(name) if "MATLAB_sparse" in o.attrs else None)
            for name in names:
                with self.subTest(file=path.name, matrix=name):
                    wanted = self.matlab(path, name)
                    out = self.through(path, self.at / "out.mat", import_options=("--object", name, "--dataset", "m"))
                    self.same(self.matlab(out, "m"), wanted, dtype=False)
                    self.assertTrue(out.read_bytes().startswith(b"MATLAB 7.3 MAT-file"))
                    count += 1
        self.assertGreater(count, 10)

    def test_matrix_market_files_of_others_come_back(self):
        files = sorted(CORPUS.glob("mm/*.m*"))
        if not files:
            self.skipTest("no corpus")
        for path in files:
            with self.subTest(path.name):
                # Duplicates are added, as `pumice import` adds them.
                wanted = scipy.sparse.coo_array(scipy.io.mmread(path)).tocsr().tocoo()
                found = scipy.io.mmread(self.through(path, self.at / "out.mtx"))
                self.same(found, wanted, dtype=False)
        for path in sorted(CORPUS.glob("mm/*.npz")):
            out = self.through(path, self.at / "out.npz")
            self.same(scipy.sparse.load_npz(out), scipy.sparse.load_npz(path))

    @unittest.skipUnless(anndata, "anndata is not installed")
    def test_anndata_files_of_others_come_back(self):
        files = sorted(CORPUS.glob("h5/*.h5ad"))
        if not files:
            self.skipTest("no corpus")
        for path in files:
            with self.subTest(path.name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = anndata.read_h5ad(path)
                out = self.through(path, self.at / "out.h5ad", "--dataset", "/X", import_options=("--object", "X"))
                back = anndata.read_h5ad(out)
                if scipy.sparse.issparse(given.X):
                    self.same(back.X, given.X)
                else:
                    np.testing.assert_array_equal(back.X, given.X)

    def test_counts_of_others_come_back(self):
        files = [p for p in sorted(CORPUS.glob("h5/*.h5")) if "10x" in p.name or "matrix" in p.name or "genomes" in p.name]
        if not files:
            self.skipTest("no corpus")
        for path in files:
            with h5py.File(path) as file:
                names = [name for name in file if "indptr" in file[name]]
            for name in names:
                with self.subTest(file=path.name, matrix=name):
                    out = self.through(path, self.at / "out.h5", "--to", "10x", import_options=("--object", name))
                    with h5py.File(path) as one, h5py.File(out) as other:
                        np.testing.assert_array_equal(one[name]["indptr"], other["matrix"]["indptr"])
                        load = lambda g: scipy.sparse.csc_array(
                            (g["data"][:], g["indices"][:], g["indptr"][:]), shape=tuple(g["shape"][:]))
                        self.same(load(other["matrix"]), load(one[name]))

    def dumped(self, path, *options, name="again"):
        """What h5dump prints, imported, compared by h5diff; gives what was left out."""
        text, again = self.at / f"{name}.txt", self.at / f"{name}.h5"
        with open(text, "wb") as out:
            subprocess.run(["h5dump", "-m", "%.17g", *options, path], stdout=out, check=True, timeout=60)
        told = self.run_pumice("import", "-f", text, again)
        left = [line for line in told.splitlines() if line.startswith("left out")]
        done = subprocess.run(["h5diff", path, again], capture_output=True, text=True)
        return left, done.returncode, done.stdout

    @unittest.skipUnless(shutil.which("h5dump"), "h5dump is not installed")
    def test_what_h5dump_prints_becomes_the_file_again(self):
        path = self.at / "in.h5"
        with h5py.File(path, "w") as file:
            pair = np.dtype([("x", "<i4"), ("y", ">f8", (2, 3)), ("name", "S6")])
            data = np.zeros(5, pair)
            data["x"], data["y"], data["name"] = range(5), 0.1, [b"a", b"", b"b c", b'q"q', b"123456"]
            file.create_dataset("deep/er/compound", data=data)
            file["strings"] = np.array(["", "plain", "two\nlines", "ünïcode", 'a "quote" inside'], dtype=h5py.string_dtype())
            file["fixed"] = np.array([[b"ab", b"c"], [b"", b"d" * 30]])
            file["enum"] = np.array([2, 0, 1], dtype=h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, "i1"))
            sequences = file.create_dataset("sequences", 3, h5py.vlen_dtype("u2"))
            sequences[0], sequences[2] = [1, 2, 3], [7]
            file["opaque"] = np.array([b"\x01\x02\x03", b"abc"], dtype="V3")
            file["scalar"], file["numbers"] = 1.5, np.array([np.nan, np.inf, -np.inf, 1e300, -0.0])
            file["large"] = np.arange(200_000, dtype="u8").reshape(400, 500) * 10**13
            file.create_dataset("growing", data=np.arange(12).reshape(3, 4), maxshape=(None, 4), chunks=(2, 2), compression="gzip", shuffle=True)
            file["committed"] = np.dtype([("a", "i4"), ("b", "f4")])
            file.create_dataset("of committed", 2, file["committed"])[...] = np.array([(1, 2), (3, 4)], [("a", "i4"), ("b", "f4")])
            file["soft"], file["external"] = h5py.SoftLink("/scalar"), h5py.ExternalLink("other.h5", "/x")
            file["hard"] = file["scalar"]
            file["deep"].attrs["title"], file["numbers"].attrs["units"] = "many words", np.bytes_(b"m/s")
            file["numbers"].attrs["list"] = ["a", "bc"]
            file.attrs["matrix"] = np.arange(6).reshape(2, 3)
        for options in ((), ("-p",)):
            with self.subTest(options=options):
                left, code, told = self.dumped(path, *options)
                self.assertEqual((left, code, told), ([], 0, ""))
        plain = self.at / "plain.h5"
        with h5py.File(plain, "w") as file:
            file["cube"] = np.arange(60.0).reshape(3, 4, 5)
            sequences = file.create_dataset("sequences", 2, h5py.vlen_dtype("i4"))
            sequences[0], sequences[1] = [1, 2], [3]
        self.assertEqual(self.dumped(plain, "-y"), ([], 0, ""), "without positions")
        self.dumped(path, "-p")
        with h5py.File(self.at / "again.h5") as file:
            growing = file["growing"]
            self.assertEqual((growing.chunks, growing.maxshape, growing.compression, growing.shuffle),
                             ((2, 2), (None, 4), "gzip", True))
            self.assertEqual(file.get("external", getlink=True).filename, "other.h5")
            self.assertEqual(file["hard"], file["scalar"])
            self.assertEqual(file["strings"].asstr()[2:].tolist(), ["two\nlines", "ünïcode", 'a "quote" inside'])

    @unittest.skipUnless(shutil.which("h5dump"), "h5dump is not installed")
    def test_what_h5dump_prints_of_others_files_becomes_them_again(self):
        root = CORPUS.parent
        if not (root / "manifest_index.jsonl").exists():
            self.skipTest("no corpus")
        files = [root / json.loads(line)["stored"] for line in open(root / "manifest_index.jsonl")]
        files = [path for path in files if path.exists() and path.stat().st_size < 20_000]
        def outcome(numbered):
            number, path = numbered
            try:
                left, code, told = self.dumped(path, *(("-p",) if number % 2 else ()), name=f"again{number}")
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
                return "h5dump itself cannot"
            except AssertionError as error:
                return f"{path.name}: {error}"
            if code == 0 or left:
                return "left out" if code else "equal"
            # Elements that were never written and are never filled are anything; h5diff shows memory.
            about = subprocess.run(["h5dump", "-pH", path], capture_output=True, text=True).stdout
            return "never filled" if "H5D_FILL_TIME_NEVER" in about else f"{path.name}: {code} {told[:200]}"
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            found = collections.Counter(pool.map(outcome, enumerate(files[::4])))
        print(dict(found))
        self.assertGreater(found["equal"], 80)
        self.assertEqual(set(found) - {"equal", "left out", "h5dump itself cannot", "never filled"}, set())

    @unittest.skipUnless(shutil.which("h5dump"), "h5dump is not installed")
    def test_fill_values_filters_and_layouts_survive_h5dump(self):
        path = self.at / "in.h5"
        pair = np.dtype([("a", "<i4"), ("b", ">f8")])
        with h5py.File(path, "w") as file:
            make = lambda name, **more: file.create_dataset(name, **{"shape": (6, 8), "dtype": "i4", "chunks": (3, 4), **more})
            make("number", fillvalue=-7)
            make("compound", dtype=pair, fillvalue=np.array((3, 0.5), pair))
            make("text", dtype="S5", fillvalue=b"ab c")
            make("filled early", chunks=None, fillvalue=9)
            make("lzf", compression="lzf", data=np.arange(48, dtype="i4").reshape(6, 8))
            make("sums", fletcher32=True, compression=9, shuffle=True)
            make("offsets", scaleoffset=0, data=np.arange(48, dtype="i4").reshape(6, 8))
            szip = h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP)
            if szip:
                make("szip", compression="szip", compression_opts=("nn", 4))
            for dtype, name in (("i4", "nbit"), ("f4", "digits")):
                how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                how.set_chunk((3, 4))
                if name == "nbit":
                    how.set_filter(h5py.h5z.FILTER_NBIT)
                else:
                    how.set_scaleoffset(h5py.h5z.SO_FLOAT_DSCALE, 2)
                kind, space = h5py.h5t.py_create(np.dtype(dtype)), h5py.h5s.create_simple((6, 8))
                h5py.h5d.create(file.id, name.encode(), kind, space, how)
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            how.set_layout(h5py.h5d.COMPACT)
            h5py.h5d.create(file.id, b"compact", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((6,)), how)
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            how.set_chunk((2,))
            how.set_fill_time(h5py.h5d.FILL_TIME_ALLOC)
            how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            h5py.h5d.create(file.id, b"early", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((6,)), how)
            file.attrs["/slash"] = 5
            file["number"].attrs["a/b"] = 6
        # h5diff compares no datasets that were never written.
        left, _, _ = self.dumped(path, "-p")
        self.assertEqual(left, ["left out: /digits: scaleoffset, whose digits are not told"])
        with h5py.File(path) as one, h5py.File(self.at / "again.h5") as other:
            self.assertEqual((other.attrs["/slash"], other["number"].attrs["a/b"]), (5, 6))
            for name in one:
                with self.subTest(name):
                    was, now = (file[name].id.get_create_plist() for file in (one, other))
                    self.assertEqual(one[name].dtype, other[name].dtype)
                    np.testing.assert_array_equal(one[name][...], other[name][...])
                    np.testing.assert_array_equal(one[name].fillvalue, other[name].fillvalue)
                    self.assertEqual(was.get_fill_time(), now.get_fill_time())
                    self.assertEqual(was.get_alloc_time(), now.get_alloc_time())
                    self.assertEqual(was.get_layout(), now.get_layout())
                    if name != "digits":
                        filters = lambda list_: [list_.get_filter(n)[0] for n in range(list_.get_nfilters())]
                        self.assertEqual(filters(was), filters(now))

    def test_broken_matrices_are_refused(self):
        files = sorted(CORPUS.glob("mm_bad/*"))
        if not files:
            self.skipTest("no corpus")
        for path in files:
            done = subprocess.run([self.pumice, "import", "-f", path, self.at / "x.h5"],
                                  capture_output=True, text=True, timeout=20)
            with self.subTest(path.name):
                self.assertIn(done.returncode, (0, 1))
                self.assertEqual(done.stderr.count("\n"), done.returncode)

    def test_pointers_that_lie_are_refused(self):
        matrix = example(np.random.default_rng(8), (6, 6), np.float64).tocsr()
        for change in (lambda p: p.__setitem__(2, 99), lambda p: p.__setitem__(1, -1),
                       lambda p: p.__setitem__(-1, p[-1] - 1)):
            pointers = matrix.indptr.copy()
            change(pointers)
            np.savez(self.at / "in.npz", indptr=pointers, indices=matrix.indices, data=matrix.data,
                     shape=np.array([6, 6]), format=np.array("csr".encode()))
            error = self.run_pumice("import", "-f", self.at / "in.npz", self.at / "o.h5", code=1)
            self.assertIn("indptr", error)


if __name__ == "__main__":
    unittest.main()
