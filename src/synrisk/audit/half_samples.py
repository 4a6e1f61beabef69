"""Conditional distributions of a column given others, from trees on random halves of a table.

A record is predicted by the trees of halves that it is not in, so that its own value never speaks
for itself. A leaf holds the values of the rows in it: the probability of any interval is the share
of these that lie in it, on average over trees. Extremely randomised trees need a twentieth of the
time of boosted ones here, and no binning of amounts; on the built-in sample their log score is as
good (``benchmarks/audit.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.seeds import stream

_N_HALVES = 12  # pairs of a half and its complement: six
_N_TREES = 4  # of each half
_N_CLASSES = 8  # quantiles of a number by which trees are grown
_LEAVES = 64  # of a half, about: more make leaves of chance
_LEAST_LEAF, _MOST_LEAF = 5, 100  # rows
_MOST_ROWS = 20_000  # a tree is grown on
_BACKGROUND = 0.01  # by which everybody's distribution stands for what no leaf has seen
_LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """What trees see: a row a record.

    Attributes
    ----------
    given
        The predictors, levels as codes.
    value
        The column that is predicted.
    """

    given: FloatArray
    value: FloatArray

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """An interval of values for each record: those that count as its truth, or any other."""

    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Predicted:
    """The probability of each record's interval, and its error over halves of the table."""

    probability: FloatArray
    error: FloatArray


def predicted(
    table: Table,
    given: FloatArray,
    intervals: Intervals,
    seed: int,
    name: str,
    *,
    own: bool,
    n_rows: int | None = None,
) -> Predicted:
    """Return the probability of intervals, by the distribution that a table has.

    Parameters
    ----------
    table
        What is learnt from.
    given
        The predictors of the records that are predicted.
    intervals
        Of the predicted column, one for each of these.
    seed, name
        Of the random numbers: the user's, and the column.
    own
        Whether the records are the table's own rows: then each is predicted by halves without it.
    n_rows
        How many rows halves are taken of; by default all.
    """
    totals = np.zeros((3, len(given)))  # of halves, their probabilities and squares of these
    for number, chosen in enumerate(_halves(len(table), n_rows or len(table), seed, name)):
        at = np.flatnonzero(~chosen) if own else np.arange(len(given))
        half = Table(table.given[chosen], table.value[chosen])
        p = _of_half(half, given[at], _at(intervals, at), seed, name, number)
        totals[:, at] += (np.ones(len(at)), p, p * p)
    n, total, squares = totals
    n = np.maximum(n, 1.0)
    mean = total / n
    variance = np.maximum(squares / n - mean * mean, 0.0) / np.maximum(n - 1.0, 1.0)
    background = _shares(np.sort(table.value), intervals)
    mean = (1.0 - _BACKGROUND) * mean + _BACKGROUND * background
    return Predicted(np.clip(mean, _LEAST_PROBABILITY, 1.0), np.sqrt(variance))


def _halves(n: int, n_used: int, seed: int, name: str) -> Iterator[BoolArray]:
    """Yield random halves of `n_used` rows each with its complement among them."""
    for pair in range(_N_HALVES // 2):
        order = stream(seed, "halves", variable=name, chunk=pair).permutation(n)[:n_used]
        middle = len(order) // 2
        for part in (order[:middle], order[middle:]):
            chosen = np.zeros(n, dtype=bool)
            chosen[part[:_MOST_ROWS]] = True
            yield chosen


def _at(intervals: Intervals, rows: IntArray) -> Intervals:
    return Intervals(intervals.low[rows], intervals.high[rows])


def _shares(ordered: FloatArray, intervals: Intervals) -> FloatArray:
    below = np.searchsorted(ordered, intervals.low, side="left")
    upto = np.searchsorted(ordered, intervals.high, side="right")
    return np.asarray((upto - below) / max(len(ordered), 1))


def _of_half(
    half: Table, given: FloatArray, intervals: Intervals, seed: int, name: str, number: int
) -> FloatArray:
    """Return the probability of intervals by the trees of one half."""
    from sklearn.tree import ExtraTreeClassifier

    classes = _classes(half.value)
    if classes.max(initial=0) == 0 or not half.given.shape[1]:
        return _shares(np.sort(half.value), intervals)
    rng = stream(seed, "trees", variable=name, chunk=number)
    own, asked = half.given.astype(np.float32), given.astype(np.float32)
    values, place = np.unique(half.value, return_inverse=True)
    low = np.searchsorted(values, intervals.low, side="left")
    high = np.searchsorted(values, intervals.high, side="right")
    width = len(values) + 1
    total = np.zeros(len(given))
    for _ in range(_N_TREES):
        tree = ExtraTreeClassifier(
            min_samples_leaf=int(np.clip(len(half) // _LEAVES, _LEAST_LEAF, _MOST_LEAF)),
            max_features=None,
            random_state=int(rng.integers(2**31)),
        )
        tree.fit(own, classes, check_input=False)
        # Values in the order of their leaves: an interval within a leaf is a stretch of them.
        ordered = np.sort(tree.tree_.apply(own) * width + place)
        start = tree.tree_.apply(asked) * width
        edges = (start + low, start + high, start, start + width)
        first, last, begin, end = (np.searchsorted(ordered, edge) for edge in edges)
        total += (last - first) / (end - begin)
    return total / _N_TREES


def _classes(values: FloatArray) -> IntArray:
    """Return levels as they are, and numbers of many values by their quantiles."""
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) <= 2 * _N_CLASSES:
        return codes.astype(np.int64)
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, _N_CLASSES + 1)[1:-1]))
    return np.searchsorted(cuts, values, side="right").astype(np.int64)
