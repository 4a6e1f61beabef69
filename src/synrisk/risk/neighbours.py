"""Points and those about them: coordinates in which rows lie evenly, and the nearest in a cell.

Arrays in, arrays out: neither models nor labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree
from scipy.special import betainc

from synrisk.base.arrays import BoolArray, FloatArray, IntArray

NumericArray: TypeAlias = npt.NDArray[Any]

N_AROUND = 5  # rows, of which the first is compared with the volume that the next one bounds
_APART = 1e6  # between cells, in units of the spread of all points
_LEAST_VARIANCE = 1e-12  # of a direction, relative to the largest


class Nearness(NamedTuple):
    """Of each record: the probability of a row as near, the row, and the record's position."""

    p: FloatArray
    row: IntArray
    position: IntArray


class Neighbours(NamedTuple):
    """Of each point: the nearest others of its cell, nearest first.

    Attributes
    ----------
    distance, row
        Of each neighbour, those of another cell among them: see `n_within`.
    n_within
        How many are of the point's own cell.
    """

    distance: FloatArray
    row: IntArray
    n_within: IntArray

    def and_of(self, other: Neighbours) -> Neighbours:
        """Return as many as the larger has, among other points too, all of one cell."""
        distance = np.column_stack([self.distance, other.distance])
        row = np.column_stack([self.row, other.row])
        n = max(self.distance.shape[1], other.distance.shape[1])
        order = np.argsort(distance, axis=1, kind="stable")[:, :n]
        nearest = np.take_along_axis(distance, order, axis=1)
        return Neighbours(
            nearest, np.take_along_axis(row, order, axis=1), np.isfinite(nearest).sum(axis=1)
        )

    def without(self, is_self: BoolArray) -> Neighbours:
        """Return the neighbours but for one of each point, by default the farthest."""
        n, k = self.row.shape
        there = is_self.any(axis=1)
        left_out = is_self.copy()
        left_out[~there, -1] = True
        shape = (n, k - 1)
        n_within = np.where(there, self.n_within - 1, np.minimum(self.n_within, k - 1))
        distance, row = self.distance[~left_out], self.row[~left_out]
        return Neighbours(distance.reshape(shape), row.reshape(shape), n_within)

    @property
    def share(self) -> FloatArray:
        """The nearest one's distance over the farthest's in the cell; 1 where there is no other."""
        last = self.distance[np.arange(len(self.row)), np.maximum(self.n_within - 1, 0)]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(last > 0, self.distance[:, 0] / last, 1.0)

    def probability(self, n_dimensions: int, faces: FloatArray | None = None) -> FloatArray:
        """Return how probable it is that the nearest is as near as it is.

        Of K points that lie evenly about another the first is within the share t of the volume
        that the next one bounds with the probability 1 − (1 − t)^K. Where points lie between two
        planes alone, `faces` are the distances to these, ``(point, plane)``, and volumes what is
        between them.
        """
        share = self.share**n_dimensions
        if faces is not None:
            last = self.distance[np.arange(len(self.row)), np.maximum(self.n_within - 1, 0)]
            inner, outer = (
                part_between(radius, faces, n_dimensions) for radius in (self.distance[:, 0], last)
            )
            share = np.where(self.n_within < 2, 1.0, share * inner / outer)
        with np.errstate(divide="ignore", invalid="ignore"):
            p = -np.expm1((self.n_within - 1) * np.log1p(-np.minimum(share, 1.0)))
        return np.where(self.n_within < 2, 1.0, p)


def neighbours(
    points: FloatArray,
    others: FloatArray,
    cells: tuple[IntArray, IntArray] | None = None,
    *,
    n_others: int = N_AROUND + 1,
) -> Neighbours:
    """Return the nearest others of each point, of its own cell where there are cells.

    Parameters
    ----------
    points, others
        A row a point.
    cells
        The cells of both, from 0.
    n_others
        How many are looked for.
    """
    if cells is not None:
        pairs = zip((points, others), cells, strict=True)
        points, others = (np.column_stack([of, _APART * cell]) for of, cell in pairs)
    k = min(n_others, len(others))
    tree = cKDTree(others, compact_nodes=False, balanced_tree=False)
    found = tree.query(points, k=range(1, k + 1))
    distance, row = np.asarray(found[0]), np.asarray(found[1])
    return Neighbours(distance, row, (distance < 0.5 * _APART).sum(axis=1))


def part_between(radius: FloatArray, faces: FloatArray, n_dimensions: int) -> FloatArray:
    """Return which part of a ball lies between two planes, at such distances from its centre.

    A plane at the distance h cuts off the part ½ I(1 − h²/r², (d + 1)/2, ½) of a ball's volume.

    Examples
    --------
    >>> part_between(np.array([1.0]), np.array([[0.0, 2.0]]), 3)
    array([0.5])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.maximum(faces, 0.0) / radius[:, None]
    cut = np.where(away < 1.0, 1.0 - np.minimum(away, 1.0) ** 2, 0.0)
    return np.asarray(1.0 - 0.5 * betainc((n_dimensions + 1) / 2.0, 0.5, cut).sum(axis=1))


def common_cells(records: NumericArray, rows: NumericArray) -> tuple[IntArray, IntArray]:
    """Return a number for each record and row, the same where all of its columns are."""
    both = np.concatenate([records, rows])
    cell = np.zeros(len(both), dtype=np.int64)
    for column in both.T:
        codes = np.unique(column, return_inverse=True)[1]
        cell = np.unique(cell * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    return cell[: len(records)].astype(np.int64), cell[len(records) :].astype(np.int64)


def whitening(points: FloatArray) -> FloatArray:
    """Return the map after which points are uncorrelated with variance one."""
    size, directions = np.linalg.eigh(np.atleast_2d(np.cov(points, rowvar=False)))
    if not size[-1] > 0.0:
        return np.eye(points.shape[1])
    kept = size > _LEAST_VARIANCE * size[-1]
    return np.asarray(directions[:, kept] / np.sqrt(size[kept]))


def middle_spread(values: FloatArray) -> FloatArray:
    """Return the middle half's width in normal standard deviations; where it has none, the sd."""
    low, high = np.quantile(values, [0.25, 0.75], axis=0)
    with np.errstate(over="ignore"):
        sd = values.std(axis=0)
    spread = np.where(high > low, (high - low) / 1.349, sd)
    return np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
