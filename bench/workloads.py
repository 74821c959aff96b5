"""The data that is measured, made the same way in every run."""

import dataclasses

import numpy as np


@dataclasses.dataclass
class SparseMatrix:
    """A square matrix of float32 whose defined cells are scattered evenly or in clusters."""

    edge: int
    density: float
    clustered: bool = False

    def __post_init__(self):
        rng = np.random.default_rng(101)
        self.cells = self.clusters(rng) if self.clustered else self.scatter(rng)
        count = len(self.cells)
        self.rows = (self.cells // self.edge).astype(np.int32)
        self.columns = (self.cells % self.edge).astype(np.int32)
        # Like a detector's energies: 12 bits, exponential, never zero.
        energy = np.clip(rng.exponential(400, count), 1, 4095).astype(np.int32)
        self.values = energy.astype(np.float32) / 4
        self.pointers = np.concatenate(
            [[0], np.cumsum(np.bincount(self.rows, minlength=self.edge))]
        ).astype(np.int32)
        self.box = min(1000, self.edge // 2)
        self.corner = (self.edge // 3, self.edge // 4)
        self.row = int(self.rows[count // 2])
        self.column = int(np.bincount(self.columns).argmax())
        # Half of the points are defined, the others anywhere.
        hits = rng.choice(self.cells, 5000)
        self.points = np.concatenate([hits, rng.integers(0, self.edge**2, 5000)])
        order = rng.permutation(count)
        self.changed = np.sort(order[: count // 100])
        self.erased = np.sort(order[count // 100 : count // 50])

    def scatter(self, rng):
        cells = self.edge * self.edge
        count = int(cells * self.density)
        # Draw a few too many, drop repetitions, then thin out evenly at random.
        drawn = np.unique(rng.integers(0, cells, int(count * (1.05 + self.density))))
        return np.sort(rng.choice(drawn, count, replace=False))

    def clusters(self, rng):
        """Filled rectangles of 2 to 12 cells a side, 60 % of them around 20 bright spots."""
        edge, target = self.edge, int(self.edge**2 * self.density)
        number = int(target / 49 * (1.3 + 4 * self.density)) + 10
        height, width = rng.integers(2, 13, (2, number))
        top, left = rng.integers(0, edge - 13, (2, number))
        spots = rng.integers(edge // 10, edge - edge // 10, (20, 2))
        spot = spots[rng.integers(0, 20, number)]
        spread = edge / (40 if self.density < 0.05 else 12)
        near = np.clip(spot + rng.normal(0, spread, spot.shape), 0, edge - 14).astype(np.int64)
        bright = rng.random(number) < 0.6
        top, left = np.where(bright, near[:, 0], top), np.where(bright, near[:, 1], left)
        area = height * width
        which = np.repeat(np.arange(number), area)
        within = np.arange(area.sum()) - np.repeat(np.cumsum(area) - area, area)
        row = top[which] + within // width[which]
        cells = row * edge + left[which] + within % width[which]
        # Whole rectangles, as they come, until there are enough cells.
        first = np.unique(cells, return_index=True)[1]
        fresh = np.zeros(len(cells), bool)
        fresh[first] = True
        end = np.searchsorted(np.cumsum(fresh), target) + 1
        return np.unique(cells[:end])

    def expected(self, operation):
        """(count, sum) of the values an operation must return."""
        low, left = self.corner
        every = np.ones(len(self.cells), bool)
        if operation == "where":
            return len(self.cells), float(len(self.cells))
        if operation == "10,000 points":
            at = np.minimum(np.searchsorted(self.cells, self.points), len(self.cells) - 1)
            found = np.where(self.cells[at] == self.points, self.values[at], 0)
            return len(self.points), float(found.sum(dtype=np.float64))
        inside = {
            "read all": every,
            "window": (self.rows >= low)
            & (self.rows < low + self.box)
            & (self.columns >= left)
            & (self.columns < left + self.box),
            "row": self.rows == self.row,
            "column": self.columns == self.column,
        }[operation]
        return int(inside.sum()), float(self.values[inside].sum(dtype=np.float64))

    def after(self, operation):
        """(count, sum) of all values after a change."""
        values = self.values.astype(np.float64)
        if operation == "update 1 %":
            values[self.changed] = 1.0
        else:
            values = np.delete(values, self.erased)
        return len(values), float(values.sum())

    def entropy(self):
        """Bytes per element that values and uniform positions need at least."""
        _, counts = np.unique(self.values, return_counts=True)
        p = counts / counts.sum()
        value_bits = float(-(p * np.log2(p)).sum())
        d = self.density
        position_bits = -(d * np.log2(d) + (1 - d) * np.log2(1 - d)) / d
        return (value_bits + position_bits) / 8


@dataclasses.dataclass
class DenseImage:
    """A smooth square field with a little noise, in steps of 1/64, as an instrument gives it."""

    edge: int

    def __post_init__(self):
        rng = np.random.default_rng(202)
        axis = np.linspace(0, 40, self.edge, dtype=np.float32)
        field = np.zeros((self.edge, self.edge), np.float32)
        for _ in range(4):
            down, across, phase = rng.uniform(0.2, 2, 3).astype(np.float32)
            field += np.outer(np.sin(down * axis + phase), np.cos(across * axis))
        field *= 50
        field += rng.normal(0, 0.05, field.shape).astype(np.float32)
        self.values = (np.round(field * 64) / 64).astype(np.float32)
        self.chunk = 256
        self.lines = (min(1000, self.edge // 4), 128)
        self.window = 64
        self.corners = rng.integers(0, self.edge - self.window, (500, 2)).astype("<u8")

    def expected(self, operation):
        """(count, sum) of the values an operation must return."""
        first, count = self.lines
        chosen = {
            "read all": self.values,
            "128 rows": self.values[first : first + count, 0],
            "128 columns": self.values[0, first : first + count],
            "500 windows": self.values[self.corners[:, 0], self.corners[:, 1]],
        }[operation]
        return chosen.size, float(chosen.sum(dtype=np.float64))
