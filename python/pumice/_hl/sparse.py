"""The defined cells of sparse datasets."""

import numpy as np

from . import codec, dtypes, selections


class SparseView:
    """The defined cells of a dataset: index it to read them, assign to define them."""

    def __init__(self, dataset, form="coo"):
        self._dataset = dataset
        self._form = form
