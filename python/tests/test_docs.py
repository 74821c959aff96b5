"""The examples of the documents run, one after another, in a folder of their own."""

import re
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
