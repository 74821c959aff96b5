"""Loaders with PyTorch's DataLoader: run by hand where torch is installed, which takes gigabytes.

    PYTHONPATH=python python python/tests/torch_program.py
"""

import tempfile

import numpy as np
import torch.utils.data

import pumice


def rows(batch):
    """A batch for torch."""
    return torch.from_numpy(batch)


def main():
    """Every row once, with no, two forked and two spawned workers."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.h5"
        with pumice.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(1000), chunks=(64,), compression="gzip")
        with pumice.File(path) as file:
            loader = pumice.Loader(file["x"], batch=32, transform=rows)
            assert isinstance(loader, torch.utils.data.IterableDataset)
            for workers, way in ((0, None), (2, "fork"), (2, "spawn")):
                data = torch.utils.data.DataLoader(loader, batch_size=None, num_workers=workers, multiprocessing_context=way)
                for _ in range(2):
                    seen = torch.cat(list(data))
                    assert sorted(seen.tolist()) == list(range(1000))
                print(f"{workers} workers by {way}: every row once")


if __name__ == "__main__":
    main()
