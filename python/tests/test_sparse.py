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


def test_rows_come_in_any_order(path):
    given = matrix(11)
    with pumice.File(path, "w") as file:
        data = pumice.from_scipy(file, "m", given, chunks=(8, 16))
        rows = [59, 3, 3, -1, 0]
        np.testing.assert_array_equal(data.sparse[rows].toarray(), given.toarray()[rows])
        np.testing.assert_array_equal(data.sparse[np.array(rows), :].toarray(), given.toarray()[rows])
        mask = np.arange(60) % 7 == 0
        np.testing.assert_array_equal(data.sparse[mask].toarray(), given.toarray()[mask])
        assert data.sparse[[]].shape == (0, 45)
        with pytest.raises(IndexError):
            data.sparse[[60]]


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("dtype", ["i1", "u8", "f4", "c8", "c16", "f2", "?"])
def test_every_type_of_number_comes_back_in_place(path, dtype, form):
    given = matrix(12, (30, 40)).toarray() if dtype != "?" else matrix(12, (30, 40)).toarray() != 0
    given = given.astype(dtype)
    with pumice.File(path, "w") as file:
        data = file.create_dataset("m", given.shape, dtype, sparse=True, chunks=(7, 9))
        data.sparse[...] = scipy.sparse.csr_array(given) if dtype != "f2" else np.ma.masked_equal(given, 0)
        if dtype == "f2":
            assert data.nnz == np.count_nonzero(given)
            return
        found = data.sparse(form)[...]
        assert found.format == form and found.dtype == given.dtype and found.indices.dtype == np.int32
        np.testing.assert_array_equal(found.toarray(), given)
        found.sum_duplicates()
        found.check_format(full_check=True)
        window = data.sparse(form)[3:20, 5:31:2]
        np.testing.assert_array_equal(window.toarray(), given[3:20, 5:31:2])


def test_duplicates_follow_the_rule_that_is_named(path):
    twice = [[1, 1, 2], [3, 3, 0]]
    for rule, expected in (("last", 5), ("first", 4), ("sum", 9)):
        with pumice.File(path, "w") as file:
            data = file.create_dataset("d", (4, 5), "i8", sparse=True)
            data.write_cells(twice, [4, 5, 6], duplicates=rule)
            assert data.nnz == 2 and data[1, 3] == expected and data[2, 0] == 6
            data.write_cells([[2], [0]], [1], duplicates=rule)
            assert data[2, 0] == {"last": 1, "first": 6, "sum": 7}[rule]
    with pumice.File(path, "w") as file:
        data = file.create_dataset("d", (4, 5), "i8", sparse=True)
        with pytest.raises(ValueError, match="more than once"):
            data.write_cells(twice, [4, 5, 6], duplicates="error")
        assert data.nnz == 0
        with pytest.raises(ValueError, match="no rule"):
            data.write_cells(twice, [4, 5, 6], duplicates="best")
        with pytest.raises(IndexError):
            data.write_cells([[4], [0]], [1])
        given = scipy.sparse.coo_array(([1, 2, 4], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
        assert pumice.from_scipy(file, "sums", given)[...].tolist() == given.toarray().tolist()
        assert pumice.from_scipy(file, "firsts", given, duplicates="first")[0, 1] == 1
        with pytest.raises(ValueError):
            pumice.from_scipy(file, "none", given, duplicates="error")
        assert "none" not in file


def test_batches_are_appended(path):
    batches = [matrix(seed, (10, 30)) for seed in range(4)]
    with pumice.File(path, "w") as file:
        data = file.create_dataset("d", (0, 30), "f8", sparse=True, maxshape=(None, 30), chunks=(16, 16))
        assert [data.append(batch) for batch in batches] == [range(0, 10), range(10, 20), range(20, 30), range(30, 40)]
        np.testing.assert_array_equal(data[...], scipy.sparse.vstack(batches).toarray())
        assert data.nnz == sum(batch.nnz for batch in batches)
        data.append(np.ma.masked_equal(batches[0].toarray(), 0))
        assert data.shape == (50, 30) and data.nnz == sum(batch.nnz for batch in batches) + batches[0].nnz
        with pytest.raises(ValueError):
            data.append(np.zeros((3, 29)))
        assert data.shape == (50, 30)
        dense = file.create_dataset("dense", (2, 0), "i4", maxshape=(2, None), chunks=(2, 4))
        assert dense.append(np.array([[1, 2, 3], [4, 5, 6]]), axis=1) == range(0, 3)
        assert dense.append([7, 8], axis=1) == range(3, 4)
        assert dense[...].tolist() == [[1, 2, 3, 7], [4, 5, 6, 8]]


def test_threads_append_without_losing_any(path):
    from concurrent.futures import ThreadPoolExecutor

    with pumice.File(path, "w") as file:
        data = file.create_dataset("d", (0, 8), "i8", sparse=True, maxshape=(None, 8), chunks=(16, 8))
        with ThreadPoolExecutor(4) as pool:
            places = list(pool.map(lambda n: data.append(np.full((3, 8), n)), range(40)))
        for number, place in enumerate(places):
            assert (data[place.start : place.stop] == number).all()
        assert data.shape == (120, 8)


def test_long_work_tells_how_far_it_is(path, monkeypatch):
    from pumice._hl import sparse as module

    monkeypatch.setattr(module, "_STEP", 50)
    for form in ("csr", "csc"):
        given, told = matrix(5).asformat(form), []
        with pumice.File(path, "w") as file:
            data = pumice.from_scipy(file, "m", given, progress=lambda done, total: told.append((done, total)))
            np.testing.assert_array_equal(data[...], given.toarray())
        assert len(told) > 2 and told[-1] == (given.nnz, given.nnz) and sorted(told) == told


def test_arrays_of_pydata_go_in_and_out(path):
    sparse = pytest.importorskip("sparse")
    given = sparse.random((7, 8, 9), density=0.1, random_state=1)
    with pumice.File(path, "w") as file:
        data = file.create_dataset("d", given.shape, "f8", sparse=True, chunks=(3, 3, 3))
        data.sparse[...] = given
        assert data.nnz == given.nnz
        found = data.sparse("pydata")[2:, :, 1::2]
        assert isinstance(found, sparse.COO)
        np.testing.assert_array_equal(found.todense(), given.todense()[2:, :, 1::2])


@pytest.mark.parametrize("dtype", ["f4", ">i2", bool])
def test_single_cells_are_read_and_erased(path, dtype):
    given = matrix(11).toarray().astype(dtype)
    rows, columns = np.nonzero(given)
    with pumice.File(path, "w") as file:
        data = file.create_dataset("m", given.shape, dtype, sparse=True, chunks=(16, 16))
        data.write_cells((rows, columns), given[rows, columns])
        some = np.random.default_rng(0).integers(0, [60, 45], (500, 2)).T
        np.testing.assert_array_equal(data.read_cells(some), given[tuple(some)])
        assert data.read_cells(some).dtype == dtype
        data.erase_cells((rows[::3], columns[::3]))
        given[rows[::3], columns[::3]] = 0
        np.testing.assert_array_equal(data[...], given)
        for window in (np.s_[...], np.s_[5:30, 10:], np.s_[[3, 7, 50]]):
            found = data.sparse.where(window)
            assert set(zip(*map(list, found))) == set(zip(*map(list, np.nonzero(given[window]))))
        with pytest.raises(IndexError):
            data.read_cells([[60], [0]])
        with pytest.raises(ValueError):
            data.erase_cells([[1]])


def test_sections_have_filters_of_their_own(path):
    with pumice.File(path, "w") as file:
        def made(**options):
            data = file.create_dataset(f"d{len(file)}", (40, 40), "f4", sparse=True, **options)
            return [number for number, *_ in data._ds.filters], [number for number, *_ in data._ds.location_filters]

        usual, locations = made()
        assert usual and 302 in locations
        assert made(compression=False) == ([], locations)
        assert made(compression="gzip") == ([1], locations)
        assert made(location_compression=True) == (usual, [302])
        assert made(location_compression=False) == (usual, [])
        assert made(compression=False, location_compression="gzip") == ([], [302, 1])
        with pytest.raises(TypeError):
            file.create_dataset("dense", (3,), location_compression=True)


def test_arrays_may_lie_anywhere_in_memory(path):
    def shifted(array):
        room = np.empty(array.nbytes + 1, np.uint8)
        found = room[1:].view(array.dtype)
        found[:] = array
        assert not found.flags.aligned
        return found

    given = scipy.sparse.random_array((50, 40), density=0.2, format="csr", rng=np.random.default_rng(0))
    parts = (shifted(given.data), shifted(given.indices), shifted(given.indptr))
    with pumice.File(path, "w") as file:
        assert (pumice.from_scipy(file, "a", scipy.sparse.csr_array(parts, shape=(50, 40))).to_csr() != given).nnz == 0
        data = file.create_dataset("b", (50, 40), "f8", sparse=True)
        coo = given.tocoo()
        data.write_cells([shifted(column) for column in coo.coords], shifted(coo.data))
        assert (data.to_csr() != given).nnz == 0
        np.testing.assert_array_equal(data.read_cells([shifted(column) for column in coo.coords]), coo.data)
        dense = file.create_dataset("c", (50, 40), "f8", chunks=(7, 9))
        dense[...] = shifted(given.toarray().reshape(-1)).reshape(50, 40)
        np.testing.assert_array_equal(dense[:], given.toarray())
