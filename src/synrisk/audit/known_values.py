"""The row nearest to each person by what an intruder knows of them, and in which class that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.risk.neighbours import (
    N_AROUND,
    Neighbours,
    common_cells,
    middle_spread,
    neighbours,
    whitening,
)

_SHARES = (1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.2)  # of the volume about a record
_ALONE, _SAME, _FEW, _MANY = 1, 2, 3, 4  # classes of nearness; 0 is nobody in the cell
_FEW_AT = 3  # rows in the same place
N_CLASSES = 5 + len(_SHARES) + 1


@dataclass(frozen=True, eq=False, repr=False)
class Known:
    """What is known of people: levels and counts, which agree or not, and numbers.

    Attributes
    ----------
    codes
        A column each for levels and for numbers of few values.
    numbers
        A column each for the others.
    """

    codes: FloatArray
    numbers: FloatArray

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, eq=False, repr=False)
class Nearest:
    """The nearest rows of each person.

    Attributes
    ----------
    rows
        Those in the same place as the nearest, and others: see `is_nearest`.
    is_nearest
        Which of them are as near as the nearest, and in the person's own cell.
    classes
        Of nearness, the same for every table: 0 where no row has the person's levels.
    """

    rows: IntArray
    is_nearest: BoolArray
    classes: IntArray

    def told(self, values: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return which share of the nearest rows has a value within each person's interval."""
        own = values[self.rows]
        inside = (own >= low[:, None]) & (own <= high[:, None]) & self.is_nearest
        return np.asarray(inside.sum(axis=1) / np.maximum(self.is_nearest.sum(axis=1), 1))


def nearest(people: Known, rows: Known, *, own: bool = False) -> Nearest:
    """Return the nearest rows of each person.

    Parameters
    ----------
    people, rows
        What is known of each.
    own
        Whether these are the same people: then nobody is the nearest of themselves.
    """
    cells = common_cells(people.codes, rows.codes)
    points, others, n_dimensions = _points(people.numbers, rows.numbers)
    found = neighbours(points, others, cells, n_others=N_AROUND + 1 + own)
    if own:
        found = _without_self(found)
    inside = np.arange(found.row.shape[1]) < found.n_within[:, None]
    is_nearest = inside & (found.distance <= found.distance[:, :1])
    return Nearest(found.row, is_nearest, _classes(found, is_nearest, n_dimensions))


def _points(people: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Return numbers as points among which those of the rows lie evenly, and their dimension."""
    if not people.shape[1]:
        return np.zeros((len(people), 1)), np.zeros((len(rows), 1)), 0
    middle, spread = np.median(people, axis=0), middle_spread(people)
    bent = [np.arcsinh((of - middle) / spread) for of in (people, rows)]
    white = whitening(bent[0])
    return bent[0] @ white, bent[1] @ white, white.shape[1]


def _without_self(found: Neighbours) -> Neighbours:
    """Return the neighbours but for the point itself, or but for one in its place."""
    n, k = found.row.shape
    is_self = found.row == np.arange(n)[:, None]
    is_self[~is_self.any(axis=1), 0] = True  # crowded out by others in its place
    shape = (n, k - 1)
    distance, row = found.distance[~is_self].reshape(shape), found.row[~is_self].reshape(shape)
    return Neighbours(distance, row, found.n_within - 1)


def _classes(found: Neighbours, is_nearest: BoolArray, n_dimensions: int) -> IntArray:
    n_tied = is_nearest.sum(axis=1)
    share = found.share ** max(n_dimensions, 1)
    classes = _MANY + 1 + np.searchsorted(_SHARES, share, side="right")
    in_place = found.distance[:, 0] == 0.0
    tied = np.where(n_tied == 1, _SAME, np.where(n_tied <= _FEW_AT, _FEW, _MANY))
    classes = np.where(in_place, tied, classes)
    classes = np.where(~in_place & (found.n_within == 1), _ALONE, classes)
    return np.where(found.n_within == 0, 0, classes).astype(np.int64)
