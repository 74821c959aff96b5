"""Other libraries on pumice: the real ones, one test each at least."""

import io
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse

import pumice


@pytest.fixture
def stored(path):
    """A dense and a sparse matrix, most of which is in its last rows."""
    dense = np.arange(400 * 60).reshape(400, 60)
    given = scipy.sparse.random_array((400, 60), density=0.05, rng=np.random.default_rng(1), format="lil")
    given[350:] = np.random.default_rng(2).random((50, 60)) + 1
    given = given.tocsr()
    with pumice.File(path, "w") as file:
        file.create_dataset("d", data=dense, chunks=(50, 30), compression="gzip")
        pumice.from_scipy(file, "s", given, chunks=(25, 60))
    return path, dense, given


# -- Dask


def test_dask_reads_without_a_lock(stored):
    dask = pytest.importorskip("dask.array")
    path, dense, _ = stored
    with pumice.File(path) as file:
        for array in (file["d"].to_dask(), dask.from_array(file["d"], chunks=(100, 60), lock=False)):
            assert array.shape == dense.shape and array.dtype == dense.dtype
            np.testing.assert_array_equal((array + 1).sum(axis=0).compute(scheduler="threads"), (dense + 1).sum(axis=0))
            assert not [one for one in array.dask.values() if isinstance(one, type(threading.Lock()))]
        assert all(side % 50 == 0 for side in file["d"].to_dask(chunks=(100, 60)).chunks[0])
        found = file["d"].to_dask(chunks=(100, 60)).sum().compute(scheduler="processes", num_workers=2)
        assert found == dense.sum()


def test_blocks_of_dask_have_about_equally_many_defined_cells(stored, monkeypatch):
    pytest.importorskip("dask.array")
    sparse = pytest.importorskip("sparse")
    from pumice import dask

    monkeypatch.setattr(dask, "_BLOCK_CELLS", 1500)
    path, _, given = stored
    with pumice.File(path) as file:
        lengths, columns = dask.sparse_chunks(file["s"], 1500)
        assert columns == (60,)
        ends = np.cumsum((0, *lengths))
        counts = [given[a:b].nnz for a, b in zip(ends, ends[1:])]
        assert sum(lengths) == 400 and max(counts) <= 1500 and len(counts) >= 3 and max(lengths) > 2 * min(lengths)
        array = file["s"].to_dask()
        assert isinstance(array._meta, sparse.COO)
        total = array.sum(axis=0).compute()
        np.testing.assert_allclose(total.todense(), given.toarray().sum(axis=0))
        csr = file["s"].to_dask(form="csr")
        blocks = csr.to_delayed().reshape(-1)
        assert sum(block.compute().nnz for block in blocks) == given.nnz
        np.testing.assert_array_equal(file["s"].to_dask(form="dense").compute(), given.toarray())


def test_blocks_of_dask_cut_wide_chunks_along_the_next_axis(path):
    pytest.importorskip("dask.array")
    from pumice import dask

    given = scipy.sparse.random_array((20, 4000), density=0.5, rng=np.random.default_rng(1), format="csr")
    with pumice.File(path, "w") as file:
        data = pumice.from_scipy(file, "s", given, chunks=(10, 100))
        rows, columns = dask.sparse_chunks(data, 5000)
        assert rows == (10, 10) and sum(columns) == 4000 and all(side % 100 == 0 for side in columns)
        ends = np.cumsum((0, *columns))
        assert max(given[:10, a:b].nnz for a, b in zip(ends, ends[1:])) <= 1.5 * 5000
        empty = file.create_dataset("e", (10**6, 10**6), "f4", sparse=True)
        assert dask.sparse_chunks(empty) == ((10**6,), (10**6,))


def test_tokens_of_dask_change_with_the_file(stored):
    base = pytest.importorskip("dask.base")
    path = stored[0]
    with pumice.File(path) as file:
        first, again, other = base.tokenize(file["d"]), base.tokenize(file["d"]), base.tokenize(file["s"])
    assert first == again != other
    with pumice.File(path, "r+") as file:
        assert base.tokenize(file["d"]) != base.tokenize(file["d"])
        file["d"][0, 0] = 7
        file["new"] = 1
    with pumice.File(path) as file:
        assert base.tokenize(file["d"]) != first


# -- xarray


@pytest.fixture
def weather(tmp_path):
    """A file that netCDF4 has written."""
    xarray = pytest.importorskip("xarray")
    times = np.array(["2026-01-01", "2026-01-02", "2026-01-04"], dtype="M8[ns]")
    data = {
        "temperature": (("time", "x", "y"), np.random.default_rng(0).random((3, 40, 50)).astype("f4"), {"units": "K"}),
        "count": (("x",), np.arange(40, dtype="i2")),
        "station": (("x",), np.array([f"s{n}" for n in range(40)], dtype=object)),
        "level": ((), 5.0),
    }
    coordinates = {"time": times, "x": np.arange(40) * 2.0}
    made = xarray.Dataset(data, coordinates, {"title": "Weather", "version": 3})
    made["packed"] = ("x", np.linspace(0, 1, 40))
    path = tmp_path / "weather.nc"
    encoding = {"packed": {"dtype": "i2", "scale_factor": 0.001, "_FillValue": -1},
                "temperature": {"zlib": True, "chunksizes": (1, 20, 25)}}  # fmt: skip
    made.to_netcdf(path, engine="netcdf4", format="NETCDF4", encoding=encoding)
    return path


def test_xarray_opens_what_netcdf4_has_written(weather):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    from pumice.xarray_backend import PumiceBackendEntrypoint

    with xarray.open_dataset(weather, engine=PumiceBackendEntrypoint) as mine, \
            xarray.open_dataset(weather, engine="netcdf4") as theirs:  # fmt: skip
        xarray.testing.assert_identical(mine.load(), theirs.load())
    with xarray.open_dataset(weather, engine=PumiceBackendEntrypoint) as mine:
        part = mine["temperature"][::-1, [5, 3, 3], 10:2:-3]
        with xarray.open_dataset(weather, engine="netcdf4") as theirs:
            np.testing.assert_array_equal(part.values, theirs["temperature"][::-1, [5, 3, 3], 10:2:-3].values)
        assert mine["temperature"].encoding["chunksizes"] == (1, 20, 25)
    with xarray.open_dataset(weather, engine=PumiceBackendEntrypoint, chunks={}) as lazy:
        assert lazy["temperature"].chunks == ((1, 1, 1), (20, 20), (25, 25))
        assert float(lazy["temperature"].mean(dtype="f8")) == pytest.approx(float(theirs["temperature"].mean(dtype="f8")))


H5NETCDF = """
import sys
import pumice.compat
pumice.compat.install()
import numpy as np, xarray, h5netcdf
assert h5netcdf.core.h5py.__pumice__
with xarray.open_dataset(sys.argv[1], engine="h5netcdf") as found:
    found.load()
    found.to_netcdf(sys.argv[2], engine="h5netcdf")
"""


def test_h5netcdf_runs_on_pumice(weather, tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    target = tmp_path / "copy.nc"
    done = subprocess.run([sys.executable, "-c", H5NETCDF, weather, target], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    with xarray.open_dataset(target, engine="netcdf4") as copy, xarray.open_dataset(weather, engine="netcdf4") as old:
        xarray.testing.assert_identical(copy.load(), old.load())


# -- Arrow


def test_arrow_gets_cells_and_strings(stored, path):
    arrow = pytest.importorskip("pyarrow")
    with pumice.File(stored[0], "r+") as file:
        table = file["s"].to_arrow(np.s_[10:20])
        assert table.column_names == ["axis0", "axis1", "value"]
        found = scipy.sparse.coo_array((table["value"].to_numpy(), (table["axis0"].to_numpy(), table["axis1"].to_numpy())),
                                       shape=(10, 60))  # fmt: skip
        np.testing.assert_array_equal(found.toarray(), stored[2].toarray()[10:20])
        file["text"] = ["grün", "", "blau" * 100]
        text = file["text"].to_arrow()
        assert text.type == arrow.large_string() and text.to_pylist() == ["grün", "", "blau" * 100]
        assert file["text"].to_arrow(np.s_[1:]).to_pylist() == ["", "blau" * 100]
        file["pairs"] = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", ">f8")])
        pairs = file["pairs"].to_arrow()
        assert pairs["a"].to_pylist() == [1, 3] and pairs["b"].to_pylist() == [2.5, 4.5]
        assert file["d"].to_arrow(np.s_[3]).to_pylist() == stored[1][3].tolist()
        with pytest.raises(ValueError, match="one dimension"):
            file["d"].to_arrow()


# -- notebooks


def test_notebooks_show_facts_and_a_picture(stored):
    with pumice.File(stored[0]) as file:
        shown = file["s"]._repr_html_()
        assert "400" in shown and "data:image/png;base64," in shown and "defined cells" in shown
        assert "<img" not in file["d"]._repr_html_() and "deflate" in file["d"]._repr_html_()
        assert "d</td><td>dataset" in file._repr_html_()
        picture = file["s"].spy(50)
        assert picture.shape == (50, 50)
        # The last eighth of the rows is full.
        assert picture[44:].max() < 150 and picture[:40].mean() > 150
    assert "Closed" in file._repr_html_()


def test_a_picture_is_a_png():
    from pumice._hl.interop import png

    image = pytest.importorskip("matplotlib.image", reason="matplotlib reads PNG")
    picture = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    found = image.imread(io.BytesIO(png(picture)))
    np.testing.assert_array_equal((found * 255).round().astype(np.uint8), picture)


# -- one process


@pytest.mark.parametrize("order", ["h5py netCDF4 tables pumice", "pumice tables netCDF4 h5py", "netCDF4 pumice h5py tables"])
def test_imports_in_any_order(order, tmp_path):
    for name in order.split():
        pytest.importorskip(name)
    program = "\n".join(f"import {name}" for name in order.split()) + (
        "\nimport sys, numpy\n"
        "for number, module in enumerate((h5py, pumice) * 2):\n"
        "    with module.File(f'{sys.argv[1]}/{number}.h5', 'w') as file:\n"
        "        file.create_dataset('d', data=numpy.arange(9), chunks=(3,), compression='gzip')\n"
        "    other = pumice if module is h5py else h5py\n"
        "    with other.File(f'{sys.argv[1]}/{number}.h5') as file:\n"
        "        assert file['d'][:].tolist() == list(range(9))\n"
        "with netCDF4.Dataset(sys.argv[1] + '/n.nc', 'w') as file:\n"
        "    file.createDimension('x', 3)\n"
        "    file.createVariable('v', 'f8', ('x',))[:] = [1, 2, 3]\n"
        "assert pumice.File(sys.argv[1] + '/n.nc')['v'][:].tolist() == [1, 2, 3]\n"
        "with tables.open_file(sys.argv[1] + '/t.h5', 'w') as file:\n"
        "    file.create_array('/', 'a', [1, 2, 3])\n"
        "assert pumice.File(sys.argv[1] + '/t.h5')['a'][:].tolist() == [1, 2, 3]\n"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
