"""Sparse datasets against scipy and a naive model."""

import numpy as np
import pytest
import scipy.sparse

import pumice


def matrix(seed, shape=(60, 45), density=0.05, dtype="f8"):
    found = scipy.sparse.random_array(shape, density=density, rng=np.random.default_rng(seed), format="csr")
    return (found * 100).astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i2"])
@pytest.mark.parametrize("options", [{}, {"chunks": (7, 11)}, {"compression": "gzip"}, {"chunks": (20, 45), "shuffle": True}])
def test_a_matrix_comes_back(path, dtype, options):
    given = matrix(1, dtype=dtype)
    with pumice.File(path, "w") as file:
        pumice.from_scipy(file, "m", given, **options)
    with pumice.File(path, "r") as file:
        found = file["m"]
        assert found.is_sparse and found.nnz == given.nnz
        assert found.density == given.nnz / (60 * 45)
        for form in ("to_csr", "to_csc", "to_coo"):
            back = getattr(found, form)()
            assert back.format == form[3:]
            np.testing.assert_array_equal(back.toarray(), given.toarray())
        np.testing.assert_array_equal(found[...], given.toarray())


def test_the_order_of_bytes_of_a_file_does_not_matter(path):
    given = matrix(9, dtype="f4")
    with pumice.File(path, "w") as file:
        data = file.create_dataset("m", given.shape, ">f4", sparse=True)
        data.sparse[...] = given
        np.testing.assert_array_equal(data.to_csr().toarray(), given.toarray())


@pytest.mark.parametrize("where", [np.s_[...], np.s_[3:20, 5:], np.s_[::7, 1:40:3], np.s_[[1, 5, 50]], np.s_[:, [0, 44]], np.s_[4:5]])
def test_windows_are_those_of_scipy(path, where):
    given = matrix(2)
    with pumice.File(path, "w") as file:
        data = pumice.from_scipy(file, "m", given, chunks=(10, 10))
        found = data.sparse[where]
        np.testing.assert_array_equal(found.toarray(), given.toarray()[where])
        assert found.nnz == np.count_nonzero(given.toarray()[where])
        np.testing.assert_array_equal(data.defined(where), given.toarray()[where] != 0)


def test_assignment_replaces_what_was_there(path):
    first, second = matrix(3), matrix(4)
    with pumice.File(path, "w") as file:
        data = pumice.from_scipy(file, "m", first, chunks=(16, 16))
        data.sparse[10:50, 3:30] = second[10:50, 3:30]
        expected = first.toarray()
        expected[10:50, 3:30] = second.toarray()[10:50, 3:30]
        np.testing.assert_array_equal(data[...], expected)
        assert data.nnz == np.count_nonzero(expected)


def test_defined_is_not_the_same_as_zero(path):
    with pumice.File(path, "w") as file:
        data = file.create_dataset("d", (5, 6), "i4", sparse=True, fillvalue=-1)
        data[1, 2:4] = [0, 7]
        assert data.nnz == 2 and data.is_defined(1, 2) and not data.is_defined(0, 0)
        assert data[1].tolist() == [-1, -1, 0, 7, -1, -1]
        data.erase(np.s_[1, 3])
        assert data.nnz == 1 and data[1, 3] == -1
        data.sparse.define([[4, 0], [5, 0]], [8, 9])
        assert data[4, 5] == 8 and data[0, 0] == 9


def test_masked_arrays_go_in_and_out(path):
    mask = np.arange(12).reshape(3, 4) % 3 == 0
    given = np.ma.MaskedArray(np.arange(12.0).reshape(3, 4), mask)
    with pumice.File(path, "w") as file:
        data = file.create_dataset("d", (3, 4), "f8", sparse=True, fillvalue=np.nan)
        data[...] = 5.0
        data[...] = given
        found = data.sparse.masked()
        np.testing.assert_array_equal(found.mask, mask)
        np.testing.assert_array_equal(found.compressed(), given.compressed())


def test_any_rank_gives_coordinates_and_values(path):
    with pumice.File(path, "w") as file:
        data = file.create_dataset("d", (4, 5, 6), "f4", sparse=True, chunks=(2, 2, 2))
        data.sparse[...] = (np.array([[0, 3], [1, 4], [2, 5]]), np.array([1.5, 2.5]))
        found = data.sparse[1:]
        assert found.shape == (3, 5, 6)
        assert found.coordinates.tolist() == [[2], [4], [5]] and found.values.tolist() == [2.5]


def test_strings_can_be_sparse(path):
    with pumice.File(path, "w") as file:
        data = file.create_dataset("s", (1000, 1000), pumice.string_dtype(), sparse=True)
        data[7, 1:3] = ["new", "old"]
        found = data.sparse.cells()
        assert found.values.tolist() == [b"new", b"old"] and found.coordinates.tolist() == [[7, 7], [1, 2]]
        assert data.asstr()[7, 0:3].tolist() == ["", "new", "old"]


@pytest.mark.parametrize("seed", range(8))
def test_random_operations_agree_with_a_model(path, seed):
    rng = np.random.default_rng(seed)
    values, known = np.zeros((17, 23)), np.zeros((17, 23), bool)
    with pumice.File(path, "w") as file:
        data = file.create_dataset("d", values.shape, "f8", sparse=True, chunks=(5, 7))
        for _ in range(40):
            (a, b), (c, d) = np.sort(rng.integers(0, 18, 2)), np.sort(rng.integers(0, 24, 2))
            where = np.s_[a:b, c:d]
            match rng.integers(0, 3):
                case 0:
                    new = rng.random((b - a, d - c))
                    data[where], values[where], known[where] = new, new, True
                case 1:
                    data.erase(where)
                    values[where], known[where] = 0, False
                case 2:
                    new = matrix(int(rng.integers(1000)), (b - a, d - c), 0.2) if b > a and d > c else None
                    if new is not None:
                        data.sparse[where] = new
                        values[where], known[where] = new.toarray(), new.toarray() != 0
            np.testing.assert_array_equal(data[...], values)
            np.testing.assert_array_equal(data.defined(), known)
            assert data.nnz == known.sum()
