"""Singling out: does a predicate that fits one row of the release fit one person?

Predicates of anonymeter (Giomi, Boenisch, Wehmeyer & Tasnádi, A unified framework for quantifying
privacy risk in synthetic data, 2023), all that there are in place of a random sample of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from synrisk.audit.board_measure import share_of
from synrisk.audit.box_counts import count_in_boxes
from synrisk.audit.fresh_sample import in_fresh_sample
from synrisk.audit.key_counts import Cells, Found
from synrisk.base.arrays import BoolArray, FloatArray, IntArray

ANONYMETER = "anonymeter: Giomi, Boenisch, Wehmeyer & Tasnádi 2023"
MOST_NUMBERS = 2  # in predicates of several columns: more are not counted by sorting
_PAIRS = 1 << 22

# Of a file: numbers by column, with NaN for a gap.
_Both = tuple[FloatArray, FloatArray]


def univariate(
    levels: Mapping[str, tuple[IntArray, IntArray]], numbers: Mapping[str, _Both]
) -> Found:
    """Return how many predicates of one column single somebody out.

    A value that occurs once in a column of the release (a gap too), and of numbers all from the
    largest on and up to the smallest, where one row has it.

    Parameters
    ----------
    levels
        Codes of every column in both files, from −1.
    numbers
        Those that are numbers.
    """
    own, other = next(iter(levels.values()))
    hit = np.zeros(len(own), dtype=bool)
    n_tried, n_right, expected, variance = 0, 0, 0.0, 0.0
    for codes in levels.values():
        cells = Cells.of(codes[0] + 1, codes[1] + 1)
        rare, met = cells.n_other == 1, (cells.n_other == 1) & (cells.n_own == 1)
        n_tried, n_right = n_tried + int(rare.sum()), n_right + int(met.sum())
        n_single = int((cells.n_own == 1).sum())
        if n_single:
            fresh = in_fresh_sample(cells.n_own[cells.own] - 1, 1.0)
            expected += fresh.once * rare.sum()
            variance += fresh.once * (1.0 - fresh.once) * rare.sum()
            variance += (fresh.n_once_error * rare.sum() / n_single) ** 2
        hit |= met[cells.own]
    n, n_rows = len(own), len(other)
    # The extreme one of all is a record's and the next a row's, in either file's terms.
    at_end = n * n_rows / ((n + n_rows) * (n + n_rows - 1.0))
    for columns in numbers.values():
        for sign in (1.0, -1.0):
            theirs = sign * columns[1][~np.isnan(columns[1])]
            if not len(theirs) or (theirs == theirs.max()).sum() != 1:
                continue
            beyond = np.flatnonzero(sign * columns[0] >= theirs.max())
            n_tried, n_right = n_tried + 1, n_right + int(len(beyond) == 1)
            expected, variance = expected + at_end, variance + at_end * (1.0 - at_end)
            if len(beyond) == 1:
                hit[beyond] = True
    return Found(
        "singling out, univariate", share_of(n_right, n_tried), share_of(expected, n_tried),
        share_of(np.sqrt(variance), n_tried), hit, ANONYMETER,
        "Of the predicates of one column that fit one row of the release (a value that occurs "
        "once; the largest and the smallest number), the share that fit one record; chance: of a "
        "fresh sample (Good–Turing; at the ends by order alone). anonymeter tries a random part of "
        "these.",
    )  # fmt: skip


def multivariate(cells: tuple[IntArray, IntArray], numbers: Sequence[_Both]) -> Found:
    """Return how many predicates of all keys together single somebody out.

    Of each row: its levels, and of each number all from it on where it is above the median of the
    release, else all up to it. anonymeter takes random sets of columns; here it is all keys.

    Parameters
    ----------
    cells
        Of the levels among the keys, in both files.
    numbers
        Of the numbers among them, at most two.
    """
    own = _points([one for one, _ in numbers], len(cells[0]))
    rows = _points([one for _, one in numbers], len(cells[1]))
    middle = np.median(rows, axis=0) if len(rows) else np.zeros(rows.shape[1])
    low, high = _half_lines(rows, middle)
    alone = np.flatnonzero(count_in_boxes(cells[1], rows, cells[1], low, high) == 1)
    asked = (cells[1][alone], low[alone], high[alone])
    right = count_in_boxes(cells[0], own, *asked) == 1
    among = count_in_boxes(cells[0], own, cells[0], *_half_lines(own, middle))
    return Found(
        "singling out, multivariate", share_of(right.sum(), len(alone)),
        in_fresh_sample(among - 1, 1.0).once, np.nan,
        _who(cells[0], own, *(part[right] for part in asked)), ANONYMETER,
        "Of the predicates made of all keys of a row (its levels, and numbers at least or at most "
        "its own) that fit no other row of the release, the share that fit one record; chance: of "
        "a fresh sample (Good–Turing). anonymeter tries random sets of columns.",
    )  # fmt: skip


def _points(columns: Sequence[FloatArray], n_rows: int) -> FloatArray:
    return np.stack(columns, axis=1) if columns else np.empty((n_rows, 0))


def _half_lines(points: FloatArray, middle: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the open boxes that hold all from a number on above the middle, else all up to it."""
    above = points > middle
    low = np.where(above, np.nextafter(points, -np.inf), -np.inf)
    return low, np.where(above, np.inf, np.nextafter(points, np.inf))


def _who(
    cell: IntArray, points: FloatArray, of_box: IntArray, low: FloatArray, high: FloatArray
) -> BoolArray:
    """Tell which records are in some box."""
    hit = np.zeros(len(cell), dtype=bool)
    size = max(1, _PAIRS // max(len(cell), 1))
    for first in range(0, len(of_box), size):
        part = slice(first, first + size)
        inside = of_box[part, None] == cell
        for k in range(points.shape[1]):
            inside &= (low[part, k, None] < points[:, k]) & (points[:, k] < high[part, k, None])
        hit |= inside.any(axis=0)
    return hit
