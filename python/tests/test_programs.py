"""Programs that know only h5py, with pumice in its place; objects that go to other processes."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pumice

HERE = Path(__file__).parent


def run(*arguments, pumice_in_place):
    way = ["-m", "pumice.compat"] if pumice_in_place else []
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    done = subprocess.run([sys.executable, "-W", "ignore", *way, *map(str, arguments)], capture_output=True, text=True,
                          env=environment)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("writes, reads", [(True, True), (True, False), (False, True)])
def test_anndata_runs_on_pumice(tmp_path, writes, reads):
    pytest.importorskip("anndata")
    program, path = HERE / "anndata_program.py", tmp_path / "cells.h5ad"
    run(program, path, "write", pumice_in_place=writes)
    assert run(program, path, "read", pumice_in_place=reads) == f"read by {'pumice' if reads else 'h5py'}"


@pytest.mark.parametrize("order", [("h5py", "pumice"), ("pumice", "h5py")])
def test_h5py_and_pumice_live_together(tmp_path, order):
    script = tmp_path / "both.py"
    script.write_text(
        f"import {order[0]}, {order[1]}\n"
        "with pumice.File('x.h5', 'w') as file: file['a'] = [1, 2]\n"
        "with h5py.File('x.h5', 'r') as file: assert file['a'][1] == 2\n"
        "assert h5py.File is not pumice.File\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    subprocess.run([sys.executable, script], check=True, cwd=tmp_path, env=environment)


def test_what_is_read_can_be_pickled(path):
    with pumice.File(path, "w") as file:
        file["g/d"] = np.arange(5)
        for thing in (file, file["g"], file["g/d"]):
            with pytest.raises(TypeError):
                pickle.dumps(thing)
    with pumice.File(path, "r") as file:
        group, data = pickle.loads(pickle.dumps((file["g"], file["g/d"])))
        assert group.name == "/g" and data[...].tolist() == [0, 1, 2, 3, 4]
        assert pickle.loads(pickle.dumps(file)).filename == str(path)


def total(data):
    return int(data[...].sum())


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_datasets_go_to_other_processes(path, method):
    with pumice.File(path, "w") as file:
        for name in "abc":
            file.create_dataset(name, data=np.arange(1000), chunks=(100,), compression="gzip")
    with pumice.File(path, "r") as file, multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(total, [file[name] for name in "abc"]) == [499500] * 3
