"""What a guess strategy asks of everybody's values: a few numbers, found in passes over a column.

A column is read by slices alone, so it may lie in memory or be stored, larger than that. Pieces are
fixed by the rows' positions and sums are added in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.chunks import ROWS
from synrisk.base.errors import GuessError
from synrisk.risk.grid_size import MOST_CELLS
from synrisk.synthesis.relations import SDS_BETWEEN_TENTHS

_PIECE = 16 * ROWS  # rows that are looked at together
_DIGIT, _N_DIGITS = 16, 4  # bits of a number that a pass settles, and how many passes settle all
FEW_VALUES = 50  # values of a continuous variable that are worth listing
_OUTER = 0.1, 0.9


@dataclass(frozen=True, eq=False, repr=False)
class Everybody:
    """The values of one variable of all confidential records but those who have none, in short.

    Attributes
    ----------
    n_records
        How many have a value.
    smallest, largest
        The ends.
    spread
        The standard deviation; 0 where it is no number.
    steady_spread
        A standard deviation that a few far values do not make.
    median, middle
        The median, and the upper one of the values about it.
    column, gap
        Where they stand, and the number that stands for none there.
    """

    n_records: int
    smallest: float
    largest: float
    spread: float
    steady_spread: float
    median: float
    middle: float
    column: Any
    gap: float | None
    _distinct: tuple[FloatArray, IntArray] | None

    @classmethod
    def of(cls, column: Any, gap: float | None = None, *, is_whole: bool = False) -> Everybody:
        """Look through a column.

        Parameters
        ----------
        column
            An array, or what has a length and gives arrays for slices.
        gap
            The number that stands for a missing value.
        is_whole
            Whether values are whole numbers, which all may be asked for; of others a few.
        """
        n, low, high, total = 0, np.inf, -np.inf, 0.0
        distinct = _Distinct(MOST_CELLS if is_whole else FEW_VALUES)
        with np.errstate(over="ignore", invalid="ignore"):
            for values in _pieces(column, gap):
                n, total = n + len(values), total + float(values.sum())
                low, high = min(low, float(values.min())), max(high, float(values.max()))
                distinct.add(values)
            mean, squares = total / max(n, 1), 0.0
            for values in _pieces(column, gap):
                squares += float(np.square(values - mean).sum())
            sd = float(np.sqrt(squares / (n - 1))) if n > 1 else 0.0
        median, middle, steady = _order(column, gap, n)
        return cls(
            n,
            low,
            high,
            sd if np.isfinite(sd) else 0.0,
            steady or float(np.sqrt(squares / max(n, 1))),
            median,
            middle,
            column,
            gap,
            distinct.found,
        )

    @property
    def has_few_values(self) -> bool:
        """Whether there are so few different values that they can be listed."""
        return self._distinct is not None

    @property
    def observed(self) -> FloatArray:
        """Every value that occurs, sorted."""
        return self._known[0]

    @property
    def n_people(self) -> IntArray:
        """How many records have each of these."""
        return self._known[1]

    @property
    def _known(self) -> tuple[FloatArray, IntArray]:
        if self._distinct is None:
            raise GuessError(
                f"More than {MOST_CELLS:,} different values occur, too many to guess every one of "
                "them. Use Range, or list the guesses."
            )
        return self._distinct

    def n_with(self, values: FloatArray) -> IntArray:
        """Return how many records have each of some values that occur."""
        return np.asarray(self.n_people[np.searchsorted(self.observed, values)])

    def n_outside(self, low: float, high: float) -> int:
        """Return how many values lie outside two ends."""
        if low <= self.smallest and self.largest <= high:
            return 0
        pieces = _pieces(self.column, self.gap)
        return sum(int(((values < low) | (values > high)).sum()) for values in pieces)

    @property
    def furthest(self) -> float:
        """How far the furthest value lies from 0."""
        return max(abs(self.smallest), abs(self.largest))


class _Distinct:
    """Different values with how often they occur, as long as they are no more than `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.found: tuple[FloatArray, IntArray] | None = (np.empty(0), np.empty(0, dtype=np.int64))

    def add(self, values: FloatArray) -> None:
        if self.found is None:
            return
        own, n_own = np.unique(values, return_counts=True)
        both, place = np.unique(np.concatenate([self.found[0], own]), return_inverse=True)
        counts = np.zeros(len(both), dtype=np.int64)
        np.add.at(counts, place, np.concatenate([self.found[1], n_own]))
        self.found = (both, counts) if len(both) <= self.most else None


def _pieces(column: Any, gap: float | None) -> Iterator[FloatArray]:
    """Yield the values that there are, a fixed number of rows at a time."""
    for start in range(0, len(column), _PIECE):
        values = np.asarray(column[start : start + _PIECE], dtype=np.float64)
        values = values if gap is None else values[values != gap]
        if len(values):
            yield values


def _order(column: Any, gap: float | None, n: int) -> tuple[float, float, float]:
    """Return the median, the upper middle value, and the spread that far values do not make."""
    if not n:
        return np.nan, np.nan, np.nan
    places = [(n - 1) * share for share in _OUTER]
    ranks = [int(np.floor(place)) for place in places]
    wanted = [*ranks, *(min(rank + 1, n - 1) for rank in ranks), (n - 1) // 2, n // 2]
    low, high, next_low, next_high, lower, middle = _order_statistics(column, gap, wanted)
    # By NumPy itself, of two numbers: as of all of them, to the last bit.
    outer = [
        float(np.quantile([one, following], place - rank))
        for one, following, place, rank in zip(
            (low, high), (next_low, next_high), places, ranks, strict=True
        )
    ]
    steady = float((outer[1] - outer[0]) / SDS_BETWEEN_TENTHS)
    return float(np.mean([lower, middle])), middle, steady


def _order_statistics(column: Any, gap: float | None, ranks: Sequence[int]) -> list[float]:
    """Return the values that have these places in order, from 0."""
    if len(column) <= _PIECE:
        (values,) = _pieces(column, gap)
        return [float(value) for value in np.partition(values, sorted(set(ranks)))[list(ranks)]]
    heads, left = [0] * len(ranks), list(ranks)  # the digits that are settled, and ranks within
    for step in range(_N_DIGITS):
        shift = np.uint64(_DIGIT * (_N_DIGITS - 1 - step))
        counts = {head: np.zeros(1 << _DIGIT, dtype=np.int64) for head in heads}
        for values in _pieces(column, gap):
            leading = _keys(values) >> shift
            above = leading >> np.uint64(_DIGIT)
            digits = (leading & np.uint64((1 << _DIGIT) - 1)).astype(np.int64)
            for head, own in counts.items():
                own += np.bincount(digits[above == np.uint64(head)], minlength=1 << _DIGIT)
        for k, head in enumerate(heads):
            upto = np.cumsum(counts[head])
            digit = int(np.searchsorted(upto, left[k], side="right"))
            left[k] -= int(upto[digit - 1]) if digit else 0
            heads[k] = (head << _DIGIT) | digit
    return [float(value) for value in _values_of(np.array(heads, dtype=np.uint64))]


_SIGN = np.uint64(1 << 63)


def _keys(values: FloatArray) -> npt.NDArray[np.uint64]:
    """Return whole numbers in the order of the values."""
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # no −0
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _values_of(keys: npt.NDArray[np.uint64]) -> FloatArray:
    return np.where(keys & _SIGN, keys & ~_SIGN, ~keys).view(np.float64)
