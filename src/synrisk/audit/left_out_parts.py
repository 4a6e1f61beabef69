"""Conditional distributions of a column given others, from trees on random parts of a table.

A record is predicted by the trees of parts that it is not in, so that its own value never speaks
for itself. A leaf holds the values of the rows in it: the probability of any interval is the share
of these that lie in it, on average over trees. Extremely randomised trees need a fifth of the time
of boosted ones or less, predict as well on the built-in sample, and need no binning of amounts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.seeds import stream

_MANY = 2000  # rows, of which a half is enough to learn from
_N_REPEATS, _N_REPEATS_OF_FEW = 6, 4  # of dividing the rows in parts
_N_TREES = 4  # of each part
_N_CLASSES = 8  # quantiles of a number by which trees are grown
_N_LEAVES = (512, 128, 32)  # that rows are enough for: those are taken that predict best
_LEAST_LEAF, _MOST_LEAF = 3, 200  # rows
_MOST_ROWS = 20_000  # a tree is grown on
_BACKGROUND = 0.01  # by which everybody's distribution stands for what no leaf has seen
_LEAST_PROBABILITY = 1e-6
_N_ASKED = 2  # other people's values that each record is asked for, to find the scale
_N_STEPS, _HELD = 8, 20.0  # of Newton's method; as much as so many records hold the scale
_BENDS = (0.25, 0.5, 0.75)  # quantiles of the log odds at which the scale may bend
_SLOPES = (0.05, 4.0)  # of the scale


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


class Scale(NamedTuple):
    """What trees were found to be right: how large their leaves are, and how to read them.

    Attributes
    ----------
    leaf
        The least number of rows in a leaf.
    bends
        Log odds at which the way to read them changes.
    coefficients
        Of 1, of the log odds and of what they are beyond each bend: after that probabilities come
        true as often as they say.
    """

    leaf: int
    bends: tuple[float, ...] = ()
    coefficients: tuple[float, ...] = (0.0, 1.0)

    def of(self, p: FloatArray) -> FloatArray:
        """Return probabilities on this scale."""
        return np.asarray(expit(_bent(p, self.bends) @ np.array(self.coefficients)))


def _bent(p: FloatArray, bends: Sequence[float]) -> FloatArray:
    """Return 1, the log odds of probabilities, and what these are beyond each bend."""
    x = logit(np.clip(p, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY))
    return np.column_stack([np.ones_like(x), x, *(np.maximum(x - bend, 0.0) for bend in bends)])


@dataclass(frozen=True, eq=False, repr=False)
class Predicted:
    """The probability of each record's interval, its error over parts of the table, and its scale.

    Attributes
    ----------
    probability, error
        By record.
    scale
        That it was brought to.
    """

    probability: FloatArray
    error: FloatArray
    scale: Scale


def predicted_left_out(
    table: Table, intervals: Intervals, seed: int, name: str, *, asked: Intervals | None = None
) -> Predicted:
    """Return the probability of intervals of a table's own rows, each by parts without it.

    How often other people's intervals come true for them tells the scale.

    Parameters
    ----------
    table
        The rows.
    intervals
        What counts as the truth of each.
    seed, name
        Of the random numbers: the user's, and the column.
    asked
        The intervals to return the probability of; by default those of the truths.
    """
    rng = stream(seed, "asked", variable=name)
    orders = [rng.permutation(len(table)) for _ in range(_N_ASKED)]
    tried = [Intervals(intervals.low[order], intervals.high[order]) for order in orders]
    all_asked = [intervals if asked is None else asked, *tried]
    leaf = _best_leaf(table, intervals, seed, name)
    mean, error = _averaged(table, table.given, all_asked, seed, name, len(table), leaf, own=True)
    hits = [(table.value >= one.low) & (table.value <= one.high) for one in tried]
    scale = _scale(np.concatenate(mean[1:]), np.concatenate(hits), leaf)
    return Predicted(scale.of(mean[0]), error, scale)


def _best_leaf(table: Table, intervals: Intervals, seed: int, name: str) -> int:
    """Return the size of leaves by which the truths that are left out are most probable."""
    sizes = [max(len(table) // n_leaves, _LEAST_LEAF) for n_leaves in _N_LEAVES]
    sizes = sorted({min(size, _MOST_LEAF) for size in sizes})
    scores = []
    for leaf in sizes:
        tried = _averaged(
            table, table.given, [intervals], seed, name, len(table), leaf, own=True, n_repeats=1
        )
        scores.append(float(np.log(np.maximum(tried[0][0], _LEAST_PROBABILITY)).mean()))
    return sizes[int(np.argmax(scores))]


def predicted(
    table: Table,
    given: FloatArray,
    intervals: Intervals,
    seed: int,
    name: str,
    *,
    n_rows: int | None = None,
    scale: Scale,
) -> Predicted:
    """Return the probability of intervals of others, by the distribution that a table has.

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
    n_rows
        How many rows parts are taken of; by default all.
    scale
        Of trees on records of the same kind.
    """
    n_used = n_rows or len(table)
    mean, error = _averaged(table, given, [intervals], seed, name, n_used, scale.leaf, own=False)
    return Predicted(scale.of(mean[0]), error, scale)


def _averaged(
    table: Table,
    given: FloatArray,
    asked: Sequence[Intervals],
    seed: int,
    name: str,
    n_rows: int,
    leaf: int,
    *,
    own: bool,
    n_repeats: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return probabilities on average over parts, a row for each of `asked`; errors of the first.

    Where the records are the table's `own` rows, each is predicted by parts without it.
    """
    totals = np.zeros((len(asked), len(given)))
    n, squares = np.zeros(len(given)), np.zeros(len(given))
    everybody = np.arange(len(given))
    parts = _parts(len(table), n_rows, seed, name, n_repeats)
    for number, (chosen, left_out) in enumerate(parts):
        at = left_out if own else everybody
        part = Table(table.given[chosen], table.value[chosen])
        wanted = [Intervals(one.low[at], one.high[at]) for one in asked]
        p = _of_part(
            part, given[at], wanted, leaf, stream(seed, "trees", variable=name, chunk=number)
        )
        totals[:, at] += p
        n[at] += 1.0
        squares[at] += p[0] * p[0]
    n = np.maximum(n, 1.0)
    mean = totals / n
    variance = np.maximum(squares / n - mean[0] ** 2, 0.0) / np.maximum(n - 1.0, 1.0)
    ordered = np.sort(table.value)
    background = np.array([_shares(ordered, one) for one in asked])
    return (1.0 - _BACKGROUND) * mean + _BACKGROUND * background, np.sqrt(variance)


def _scale(p: FloatArray, hit: BoolArray, leaf: int) -> Scale:
    """Return the scale on which probabilities come true as often as they say, by likelihood.

    A little of what is already right is mixed in, so that few records change little. One slope for
    all would not do: leaves spread what is improbable too much, and what is probable too little.
    """
    odds = logit(np.clip(p, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY))
    bends = tuple(float(one) for one in np.unique(np.quantile(odds, _BENDS)))
    design = _bent(p, bends)
    beta = np.zeros(design.shape[1])
    beta[1] = 1.0
    start = beta.copy()
    for _ in range(_N_STEPS):
        fitted = expit(design @ beta)
        weight = fitted * (1.0 - fitted)
        slope = design.T @ (hit - fitted) - _HELD * (beta - start)
        held = _HELD * np.eye(len(beta))
        beta = beta + np.linalg.solve((design * weight[:, None]).T @ design + held, slope)
        slopes = np.clip(np.cumsum(beta[1:]), *_SLOPES)  # what is more probable stays so
        beta = np.concatenate([np.clip(beta[:1], -2.0, 2.0), np.diff(slopes, prepend=0.0)])
    return Scale(leaf, bends, tuple(beta))


def _parts(
    n: int, n_used: int, seed: int, name: str, at_most: int | None
) -> Iterator[tuple[BoolArray, IntArray]]:
    """Yield which rows are learnt from, and which of those used are not; each is left out as often.

    Of few rows more are learnt from at a time.
    """
    n_folds, n_repeats = (2, _N_REPEATS) if n_used >= _MANY else (5, _N_REPEATS_OF_FEW)
    for repeat in range(min(n_repeats, at_most or n_repeats)):
        order = stream(seed, "parts", variable=name, chunk=repeat).permutation(n)[:n_used]
        for left_out in np.array_split(order, n_folds):
            chosen = np.zeros(n, dtype=bool)
            chosen[order] = True
            chosen[left_out] = False
            at = np.flatnonzero(chosen)
            chosen[at[_MOST_ROWS:]] = False
            yield chosen, np.sort(left_out)


def _shares(ordered: FloatArray, intervals: Intervals) -> FloatArray:
    below = np.searchsorted(ordered, intervals.low, side="left")
    upto = np.searchsorted(ordered, intervals.high, side="right")
    return np.asarray((upto - below) / max(len(ordered), 1))


def _of_part(
    part: Table,
    given: FloatArray,
    asked: Sequence[Intervals],
    leaf: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the probability of intervals by the trees of one part."""
    from sklearn.tree import ExtraTreeClassifier

    classes = _classes(part.value)
    if classes.max(initial=0) == 0 or not part.given.shape[1]:
        ordered = np.sort(part.value)
        return np.array([_shares(ordered, one) for one in asked])
    own, others = part.given.astype(np.float32), given.astype(np.float32)
    values, place = np.unique(part.value, return_inverse=True)
    ends = [
        (np.searchsorted(values, one.low, "left"), np.searchsorted(values, one.high, "right"))
        for one in asked
    ]
    width = len(values) + 1
    total = np.zeros((len(asked), len(given)))
    for _ in range(_N_TREES):
        tree = ExtraTreeClassifier(
            min_samples_leaf=leaf,
            max_features=None,
            random_state=int(rng.integers(2**31)),
        )
        tree.fit(own, classes, check_input=False)
        # Values in the order of their leaves: an interval within a leaf is a stretch of them.
        ordered = np.sort(tree.tree_.apply(own) * width + place)
        start = tree.tree_.apply(others) * width
        n_there = np.searchsorted(ordered, start + width) - np.searchsorted(ordered, start)
        for row, (low, high) in enumerate(ends):
            first, last = (np.searchsorted(ordered, start + end) for end in (low, high))
            total[row] += (last - first) / n_there
    return total / _N_TREES


def _classes(values: FloatArray) -> IntArray:
    """Return levels as they are, and numbers of many values by their quantiles."""
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) <= 2 * _N_CLASSES:
        return codes.astype(np.int64)
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, _N_CLASSES + 1)[1:-1]))
    return np.searchsorted(cuts, values, side="right").astype(np.int64)
