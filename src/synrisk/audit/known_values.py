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
_LEAST_NEAR, _AT_ONCE, _RIDGE = 12, 4096, 1e-6  # of a plane through neighbours
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

    @property
    def in_place(self) -> BoolArray:
        """Whether the nearest row agrees with all that is known."""
        return np.isin(self.classes, (_SAME, _FEW, _MANY))

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


def local_fit(people: Known, rows: Known, values: FloatArray, *, own: bool = False) -> FloatArray:
    """Return what a plane through the values of the nearest rows gives at each person.

    A value that follows from what is known, smoothly and nearly without error, is known to whoever
    knows other people, though no two of them are in the same place. NaN where a cell has too few.

    Parameters
    ----------
    people, rows
        What is known of each.
    values
        Of the rows.
    own
        Whether these are the same people: then nobody is among their own neighbours.
    """
    cells = common_cells(people.codes, rows.codes)
    points, others, n_dimensions = _points(people.numbers, rows.numbers)
    found = np.full(len(people), np.nan)
    n_near = max(_LEAST_NEAR, 4 * (n_dimensions + 1))
    if not n_dimensions or len(rows) <= n_near + own:
        return found
    near = neighbours(points, others, cells, n_others=n_near + own)
    near = _without_self(near) if own else near
    enough = np.flatnonzero(near.n_within >= n_near)
    ridge = _RIDGE * np.eye(n_dimensions + 1)
    for start in range(0, len(enough), _AT_ONCE):
        at = enough[start : start + _AT_ONCE]
        rows_at = near.row[at]
        offset = others[rows_at] - points[at, None, :]
        design = np.concatenate([np.ones((*rows_at.shape, 1)), offset], axis=2)
        y = values[rows_at]
        middle = y.mean(axis=1, keepdims=True)
        gram = np.einsum("nki,nkj->nij", design, design) + ridge
        right = np.einsum("nki,nk->ni", design, y - middle)
        found[at] = middle[:, 0] + np.linalg.solve(gram, right[..., None])[:, 0, 0]
    return found


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
    is_self = found.row == np.arange(len(found.row))[:, None]
    is_self[~is_self.any(axis=1), 0] = True  # crowded out by others in its place
    return found.without(is_self)


def _classes(found: Neighbours, is_nearest: BoolArray, n_dimensions: int) -> IntArray:
    n_tied = is_nearest.sum(axis=1)
    share = found.share ** max(n_dimensions, 1)
    classes = _MANY + 1 + np.searchsorted(_SHARES, share, side="right")
    in_place = found.distance[:, 0] == 0.0
    tied = np.where(n_tied == 1, _SAME, np.where(n_tied <= _FEW_AT, _FEW, _MANY))
    classes = np.where(in_place, tied, classes)
    classes = np.where(~in_place & (found.n_within == 1), _ALONE, classes)
    return np.where(found.n_within == 0, 0, classes).astype(np.int64)
