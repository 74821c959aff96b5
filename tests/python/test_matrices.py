"""Sparse matrices of scipy through Pumice: CSR, CSC and COO in, CSR, CSC and COO out."""

import numpy as np
import scipy.sparse

from interop import InteropCase
from sparse_cases import random_cells


def matrix(rng, shape, count):
    """A matrix with explicit zeros, in canonical compressed rows."""
    cells = random_cells(rng, shape, count).astype(np.int64)
    values = rng.integers(-3, 4, len(cells)).astype("<f8")
    rows = scipy.sparse.csr_array((values, (cells[:, 0], cells[:, 1])), shape=shape)
    rows.sort_indices()
    return rows


class MatricesOfScipy(InteropCase):
    def block(self, spec, lines, compressed, first, last):
        """Lines `first` to `last` of a matrix, in arrays as Pumice takes them."""
        start, stop = compressed.indptr[first], compressed.indptr[last]
        store = lambda array: spec.store(np.asarray(array, "<u8"))
        return {
            "lines": lines,
            "first": first,
            "pointers": store(compressed.indptr[first : last + 1] - start),
            "indices": store(compressed.indices[start:stop]),
            "values": spec.store(np.asarray(compressed.data[start:stop], "<f8")),
        }

    def test_matrices_come_back_in_every_form(self):
        rng = np.random.default_rng(41)
        spec = self.specification()
        wanted = {}
        for number in range(40):
            shape = tuple(int(n) for n in rng.integers(1, 90, 2))
            rows = matrix(rng, shape, int(rng.integers(0, shape[0] * shape[1] + 1)))
            lines = ("rows", "columns")[number % 2]
            given = rows if lines == "rows" else rows.tocsc()
            chunks = [int(rng.integers(1, n + 1)) for n in shape]
            name = f"d{number}"
            spec.create("sparse", f"/{name}", "<f8", shape, chunks=chunks)
            count = len(given.indptr) - 1
            cuts = sorted({0, count, *map(int, rng.integers(0, count + 1, 3))})
            blocks = [self.block(spec, lines, given, a, b) for a, b in zip(cuts, cuts[1:])]
            spec.op("write_lines", path=f"/{name}", blocks=blocks, duplicates="error")
            wanted[name] = rows
        path = self.write(spec)
        out = self.directory / "lines"
        self.run_interop("lines", path, out)
        for name, rows in wanted.items():
            with self.subTest(name, shape=rows.shape, cells=rows.nnz):
                self.compare(out, name, rows)

    def compare(self, out, name, rows):
        load = lambda form, dtype="<u8": np.frombuffer((out / f"{name}.{form}").read_bytes(), dtype)
        columns = rows.tocsc()
        columns.sort_indices()
        for form, given in (("rows", rows), ("columns", columns)):
            np.testing.assert_array_equal(load(f"{form}.pointers"), given.indptr)
            np.testing.assert_array_equal(load(f"{form}.indices"), given.indices)
            np.testing.assert_array_equal(load(f"{form}.values", "<f8"), given.data)
        coo = rows.tocoo()
        np.testing.assert_array_equal(load("coo.0"), coo.coords[0])
        np.testing.assert_array_equal(load("coo.1"), coo.coords[1])
        np.testing.assert_array_equal(load("coo.values", "<f8"), coo.data)

    def test_repeated_cells_are_added_up_as_scipy_does(self):
        rng = np.random.default_rng(42)
        spec = self.specification()
        wanted = {}
        for number in range(10):
            shape = (int(rng.integers(1, 9)), int(rng.integers(1, 9)))
            count = int(rng.integers(1, 120))
            cells = np.stack([rng.integers(0, n, count) for n in shape], 1)
            values = rng.integers(-5, 6, count).astype("<f8")
            spec.create("sparse", f"/d{number}", "<f8", shape, chunks=[1, shape[1]])
            cuts = [0, count // 3, count // 2, count]
            blocks = [
                {
                    "coords": spec.store(np.asarray(cells[a:b], "<u8")),
                    "values": spec.store(values[a:b]),
                }
                for a, b in zip(cuts, cuts[1:])
                if a < b
            ]
            spec.op("write_coo", path=f"/d{number}", blocks=blocks, duplicates="sum")
            coo = scipy.sparse.coo_array((values, (cells[:, 0], cells[:, 1])), shape=shape)
            rows = coo.tocsr()
            rows.sum_duplicates()
            wanted[f"d{number}"] = rows
        out = self.directory / "lines"
        self.run_interop("lines", self.write(spec), out)
        for name, rows in wanted.items():
            with self.subTest(name):
                self.compare(out, name, rows)

    def test_arrays_of_higher_rank_keep_explicit_zeros(self):
        rng = np.random.default_rng(43)
        spec = self.specification()
        shape = (9, 7, 5, 6)
        cells = random_cells(rng, shape, 300)
        values = rng.integers(0, 3, len(cells)).astype("<f8")
        spec.create("sparse", "/d", "<f8", shape, chunks=[4, 4, 2, 3])
        shuffled = rng.permutation(len(cells))
        block = {"coords": spec.store(cells[shuffled]), "values": spec.store(values[shuffled])}
        spec.op("write_coo", path="/d", blocks=[block], duplicates="error")
        out = self.directory / "lines"
        self.run_interop("lines", self.write(spec), out)
        for axis in range(4):
            column = np.frombuffer((out / f"d.coo.{axis}").read_bytes(), "<u8")
            np.testing.assert_array_equal(column, cells[:, axis])
        found = np.frombuffer((out / "d.coo.values").read_bytes(), "<f8")
        np.testing.assert_array_equal(found, values)
