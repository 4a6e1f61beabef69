"""Where the rows of a table lie: ends, sums and outcomes, by one pass over its chunks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.kept import called
from synrisk.base.workers import Executor
from synrisk.fitting.standardise import Chunk, Chunks, Rows
from synrisk.models.families import Family


@dataclass(frozen=True, repr=False)
class Ends:
    """The smallest and the largest values; ∞ and −∞ of none."""

    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Ends:
        """Return those of values along their first axis."""
        return cls(
            values.min(axis=0, initial=np.inf),
            values.max(axis=0, initial=-np.inf),
        )

    def joined(self, other: Ends) -> Ends:
        """Return those of both."""
        return Ends(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    @property
    def size(self) -> FloatArray:
        """The largest absolute value; 0 of none."""
        found = np.maximum(np.abs(self.low), np.abs(self.high))
        return np.where(self.low > self.high, 0.0, found)


@dataclass(frozen=True, repr=False)
class Placed:
    """What of a response tells where linear predictors lie: how many values, and their sums.

    Attributes
    ----------
    n, total, size
        How many there are, their sum, and the largest absolute one.
    """

    n: int
    total: float
    size: float


@dataclass(frozen=True, repr=False)
class Extent:
    """Where rows lie, the response on the model's scale.

    Attributes
    ----------
    n_rows, columns, total
        Of all rows: how many, the ends of the design's columns, and their sums.
    y
        The ends of the response.
    n_counting, counting, total_counting
        Of the rows that have a weight and a response: how many, and the response's ends and sum.
    outcomes
        Of classes the values that occur among rows that have a weight, and NaN where some are
        missing: what events are told by.
    placed
        What tells where linear predictors lie; None where the link fixes it.
    """

    n_rows: int
    columns: Ends
    total: FloatArray
    y: Ends
    n_counting: int
    counting: Ends
    total_counting: float
    outcomes: FloatArray
    placed: Placed | None

    @classmethod
    def of(cls, family: Family, rows: Chunks, executor: Executor) -> Extent:
        """Return it of rows."""
        return reduce(add, executor.map(partial(_extent_in, family), rows))

    def __add__(self, other: Extent) -> Extent:
        """Return that of two parts."""
        placed = None
        if self.placed is not None and other.placed is not None:
            placed = Placed(
                self.placed.n + other.placed.n,
                self.placed.total + other.placed.total,
                max(self.placed.size, other.placed.size),
            )
        return Extent(
            self.n_rows + other.n_rows,
            self.columns.joined(other.columns),
            self.total + other.total,
            self.y.joined(other.y),
            self.n_counting + other.n_counting,
            self.counting.joined(other.counting),
            self.total_counting + other.total_counting,
            np.unique(np.concatenate([self.outcomes, other.outcomes])),
            placed,
        )

    @property
    def has_gaps(self) -> bool:
        """Whether some row lacks a response."""
        return bool(np.isnan(self.y.low))


def counting(rows: Rows) -> BoolArray:
    """Tell which rows have a weight, and a response."""
    return np.asarray((rows.omega > 0) & ~np.isnan(rows.y))


def squares_of_placed(family: Family, rows: Chunks, centre: float, executor: Executor) -> float:
    """Return the sum of squared distances to a centre of what tells where predictors lie."""
    return float(sum(executor.map(partial(_squares_in, family, centre), rows)))


@called("fitting", "Extent of the data")
def _extent_in(family: Family, chunk: Chunk) -> Extent:
    rows = chunk.read()
    own = rows.y[counting(rows)]
    with_weight = rows.y[rows.omega > 0]
    if family.is_classification:
        outcomes = np.unique(with_weight)
    else:
        outcomes = np.full(int(np.isnan(with_weight).any()), np.nan)
    placed = family.on_link_scale(rows.y)
    return Extent(
        len(rows.y),
        Ends.of(rows.matrix),
        rows.matrix.sum(axis=0),
        Ends.of(rows.y),
        len(own),
        Ends.of(own),
        float(own.sum()),
        outcomes,
        None
        if placed is None
        else Placed(len(placed), float(placed.sum()), float(np.abs(placed).max(initial=0.0))),
    )


@called("fitting", "Spread of the response")
def _squares_in(family: Family, centre: float, chunk: Chunk) -> float:
    placed = family.on_link_scale(chunk.read().y)
    return 0.0 if placed is None else float(((placed - centre) ** 2).sum())
