"""How many points lie in each of many boxes, by sorting: no pair is looked at.

A box is a cell of levels and an open interval of each coordinate. One coordinate takes a sort and a
binary search. Two take a wavelet matrix: the points in the order of the first coordinate, their
ranks in the second told apart bit by bit, so that a range of places and a range of ranks are
counted in as many steps as a rank has bits. Of more coordinates, the points that the first leaves
are looked at one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import FloatArray, IntArray

_PAIRS = 1 << 22  # boxes with points that are compared at once
_BY_RANKS = 2  # coordinates


def count_in_boxes(
    cell: IntArray, points: FloatArray, of_box: IntArray, low: FloatArray, high: FloatArray
) -> IntArray:
    """Return how many points of its cell lie in each open box.

    Parameters
    ----------
    cell, points
        Of each point its cell, a number from 0, and its coordinates, ``(point, axis)``.
    of_box, low, high
        The same of each box: low < coordinate < high, ``(box, axis)``.

    Examples
    --------
    >>> cell, at = np.array([0, 0, 1]), np.array([[1.0], [2.0], [1.0]])
    >>> print(count_in_boxes(cell, at, np.array([0]), np.array([[0.5]]), np.array([[2.0]])))
    [1]
    """
    if not points.shape[1]:
        n_cells = 1 + int(max(cell.max(initial=0), of_box.max(initial=0)))
        counts: IntArray = np.bincount(cell, minlength=n_cells)[of_box].astype(np.int64)
        return counts
    ranks, first, last = zip(
        *(_ranked(points[:, k], low[:, k], high[:, k]) for k in range(points.shape[1])),
        strict=True,
    )
    n_ranks = 1 + int(max(ranks[0].max(initial=0), last[0].max(initial=0)))
    places = cell * n_ranks + ranks[0]
    order = np.argsort(places, kind="stable")
    ordered, start = places[order], of_box * n_ranks + first[0]
    boxes = np.argsort(start, kind="stable")  # in the order of the points: near ones stay in cache
    begin = np.searchsorted(ordered, start[boxes], side="left")
    end = np.searchsorted(ordered, (start + np.maximum(last[0] - first[0], 0))[boxes], side="left")
    if len(ranks) == 1:
        found = end - begin
    elif len(ranks) == _BY_RANKS:
        found = _count_ranks(ranks[1][order], begin, end, first[1][boxes], last[1][boxes])
    else:
        rest = np.stack([own[order] for own in ranks[1:]], axis=1)
        ends = (np.stack(of_axis[1:], axis=1)[boxes] for of_axis in (first, last))
        found = _count_pairs(rest, begin, end, *ends)
    counts = np.empty(len(boxes), dtype=np.int64)
    counts[boxes] = found
    return counts


def _ranked(
    values: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return values as ranks, and of each interval its first rank and the one after its last."""
    distinct, ranks = np.unique(values, return_inverse=True)
    first = np.searchsorted(distinct, low, side="right")
    last = np.searchsorted(distinct, high, side="left")
    return ranks.astype(np.int64), first.astype(np.int64), last.astype(np.int64)


def _count_ranks(
    ranks: IntArray, begin: IntArray, end: IntArray, first: IntArray, last: IntArray
) -> IntArray:
    """Return how many ranks from `first` to before `last` stand at places from begin to end."""
    n_bits = max(int(ranks.max(initial=0)), int(last.max(initial=0)), 1).bit_length()
    below = np.concatenate([np.maximum(first, last), first]).astype(np.int32)
    places = [np.concatenate([own, own]).astype(np.int32) for own in (begin, end)]
    counts = _count_below(ranks.astype(np.int32), n_bits, places[0], places[1], below)
    return np.asarray(counts[: len(first)] - counts[len(first) :])


def _count_below(
    ranks: npt.NDArray[np.int32],
    n_bits: int,
    begin: npt.NDArray[np.int32],
    end: npt.NDArray[np.int32],
    bound: npt.NDArray[np.int32],
) -> IntArray:
    """Return how many ranks below `bound` stand at places from begin to end."""
    total = np.zeros(len(bound), dtype=np.int64)
    for bit in reversed(range(n_bits)):
        is_one = (ranks >> bit & 1).astype(bool)
        zeros = np.concatenate([[0], np.cumsum(~is_one)]).astype(np.int32)
        at_begin, at_end = zeros[begin], zeros[end]
        above = (bound >> bit & 1).astype(bool)
        total += np.where(above, at_end - at_begin, 0)
        begin = np.where(above, zeros[-1] + begin - at_begin, at_begin)
        end = np.where(above, zeros[-1] + end - at_end, at_end)
        ranks = np.concatenate([ranks[~is_one], ranks[is_one]])
    return total


def _count_pairs(
    rest: IntArray, begin: IntArray, end: IntArray, first: IntArray, last: IntArray
) -> IntArray:
    """Return how many points at places from begin to end lie within all further intervals."""
    counts = np.zeros(len(begin), dtype=np.int64)
    sizes = end - begin
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start] - sizes[start]
        stop = max(start + 1, int(np.searchsorted(ends, before + _PAIRS, side="right")))
        box = np.repeat(np.arange(start, stop), sizes[start:stop])
        within = np.arange(len(box)) - np.repeat(
            ends[start:stop] - sizes[start:stop] - before, sizes[start:stop]
        )
        point = rest[begin[box] + within]
        inside = ((point >= first[box]) & (point < last[box])).all(axis=1)
        counts[start:stop] = np.bincount(box[inside] - start, minlength=stop - start)
        start = stop
    return counts
