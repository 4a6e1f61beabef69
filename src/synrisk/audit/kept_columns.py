"""Columns that a release holds as they are in the confidential file, in any order of rows.

A column with few levels may have the same counts by chance: of 200 fair coins and 200 others one
time in eighteen. So it counts as kept only where that is improbable. Fresh values with the same
shares p have counts c again with the multinomial probability n!/Πc! Πp^c. Beside columns that are
kept they must have them in each cell of these: with the product of such probabilities over cells.
Where values are the same in every row as it stands, that is Πp^c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, xlogy

from synrisk.audit.compared_files import bits
from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.risk.neighbours import common_cells

FALSE_KEPT = 0.001  # of releases none of whose columns is kept, at most


def kept_columns(people: FloatArray, release: Sequence[FloatArray]) -> BoolArray:
    """Tell which columns are in every dataset as they are.

    Parameters
    ----------
    people, release
        The compared columns of the confidential file, and of each dataset.
    """
    n_columns = people.shape[1]
    kept = np.zeros(n_columns, dtype=bool)
    if any(len(one) != len(people) for one in release):
        return kept
    least = math.log(FALSE_KEPT / max(n_columns, 1))
    chances = {}  # of the columns that may be kept, by themselves
    for k in range(n_columns):
        cells = _cells_if_same(people[:, [k]], [one[:, [k]] for one in release])
        if cells is None:
            continue
        chances[k] = _log_chance(cells, np.zeros_like(cells))
        in_place = all(np.array_equal(bits(people[:, k]), bits(one[:, k])) for one in release)
        if in_place and len(release) * _log_chance_in_place(cells) < least:
            kept[k] = True
    for k in sorted(chances, key=chances.__getitem__):  # the most telling first
        more = kept | (np.arange(n_columns) == k)
        if kept[k] or not _is_same(people, release, more):
            continue
        chance = _log_chance(_cells(people[:, [k]]), _cells(people[:, kept]))
        if len(release) * chance < least:
            kept = more
    return kept


def _cells_if_same(own: FloatArray, theirs: Sequence[FloatArray]) -> IntArray | None:
    """Return the cells of records; None where a dataset has other ones, or not as often."""
    found = None
    for one in theirs:
        found, rows = common_cells(bits(own), bits(one))
        if not np.array_equal(np.sort(found), np.sort(rows)):
            return None
    return found


def _is_same(people: FloatArray, release: Sequence[FloatArray], columns: BoolArray) -> bool:
    theirs = [one[:, columns] for one in release]
    return _cells_if_same(people[:, columns], theirs) is not None


def _cells(columns: FloatArray) -> IntArray:
    """Return the cell of each record by columns; one for all without any."""
    if not columns.shape[1]:
        return np.zeros(len(columns), dtype=np.int64)
    return common_cells(bits(columns), bits(columns))[0]


def _log_chance(levels: IntArray, beside: IntArray) -> float:
    """Return the log probability that fresh levels have the same counts in each cell of others."""
    n_cells = np.bincount(beside)
    both = np.unique(beside * (int(levels.max()) + 1) + levels, return_counts=True)[1]
    orders = gammaln(n_cells + 1).sum() - gammaln(both + 1).sum()
    return float(orders) + _log_chance_in_place(levels)


def _log_chance_in_place(levels: IntArray) -> float:
    """Return the log probability that fresh levels are the same in every row."""
    counts = np.bincount(levels)
    return float(xlogy(counts, counts / len(levels)).sum())
