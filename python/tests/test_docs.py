"""The examples of the documents run, one after another, in a folder of their own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pumice

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="the documents are not here")
def test_the_examples_of_the_guide_run(tmp_path, monkeypatch):
    pytest.importorskip("dask")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(examples) >= 6
    names = {}
    for example in examples:
        exec(compile(example, str(GUIDE), "exec"), names)
    with pumice.File("matrix.h5") as file:
        assert names["total"].shape == (800,) and names["table"].num_rows == file["matrix"].nnz > 5000


def test_the_reference_says_what_everything_does(tmp_path):
    page = tmp_path / "api.html"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, root / "scripts/python-api", page], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    empty = re.findall(r"<dt><code>([^<]*)</code></dt><dd></dd>", page.read_text())
    assert {name.split("(")[0] for name in empty} <= {"__getitem__", "__setitem__"}, empty
