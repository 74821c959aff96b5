"""A program with types: ``mypy --strict`` checks it, nobody runs it."""

import numpy as np
from numpy.typing import NDArray

import pumice


def sums(path: str) -> dict[str, float]:
    """The sums of all datasets, and a few other calls."""
    found: dict[str, float] = {}
    with pumice.File(path, "r", cache=pumice.Cache(limit=1 << 20)) as file:

        def visit(name: str, member: object) -> None:
            if isinstance(member, pumice.Dataset):
                found[name] = float(np.asarray(member).sum())

        file.visititems(visit)
        matrix: pumice.Dataset = file["matrix"]
        mask: NDArray[np.bool_] = matrix.defined(np.s_[:10])
        place: range = matrix.append(mask, axis=0)
        matrix.write_cells([[place.start], [0]], [1.0], duplicates="sum")
        for batch in pumice.Loader(matrix, batch=32, seed=7):
            found["batches"] = found.get("batches", 0.0) + float(batch.sum())
        title: str = file.attrs["title"]
        found[title] = matrix.density
    return found
