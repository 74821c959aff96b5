from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from . import Dataset, Group

__all__ = ["sparse_chunks", "store", "to_dask"]

def to_dask(dataset: Dataset, chunks: Any = "auto", form: str | None = None) -> Any: ...
def sparse_chunks(dataset: Dataset, cells: int | None = None) -> tuple[tuple[int, ...], ...]: ...
def store(
    arrays: Any | Mapping[str, Any] | Sequence[Any],
    target: str | bytes | PathLike[str] | Group | Dataset | Sequence[Dataset],
    name: str | None = None,
    *,
    mode: str = "a",
    region: Any = None,
    scheduler: Any = None,
    **options: Any,
) -> None: ...
