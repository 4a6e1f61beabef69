"""A number of every record, read a piece at a time: its mean, quantiles and counts.

What comes out does not depend on the pieces, to the last bit: sums are exact before they are
rounded, and quantiles are those of all numbers. No more of them is held than a piece, or what
a quantile is looked for among at last.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import BoolArray, FloatArray, IntArray

_MOST_SORTED = 1 << 20  # numbers that are held and sorted to find a quantile
_BINS = 1 << 12  # that numbers are counted in where they are more
_MOST_THRESHOLDS = 1 << 16
_SIGN = np.int64(-(2**63))
_SAME = 1e-6  # of a number: what all have, but for rounding


@dataclass(frozen=True)
class Ends:
    """How many numbers there are, and how far they go; NaN where one is NaN."""

    n: int
    smallest: float
    largest: float


class Spread:
    """A number of every record.

    Parameters
    ----------
    pieces
        Yields the numbers, those of some records after those of others; may be called again.
    """

    def __init__(self, pieces: Callable[[], Iterable[npt.NDArray[np.generic]]]) -> None:
        self._pieces = pieces

    @classmethod
    def of(cls, values: npt.NDArray[np.generic]) -> Spread:
        """Return that of numbers in memory."""
        return cls(lambda: [values])

    def pieces(self) -> Iterable[FloatArray]:
        """Yield the numbers again."""
        for piece in self._pieces():
            if len(piece):
                yield np.asarray(piece, dtype=np.float64)

    @cached_property
    def ends(self) -> Ends:
        """How many there are, and how far they go."""
        found = [(len(piece), piece.min(), piece.max()) for piece in self.pieces()]
        sizes, low, high = zip(*found, strict=True) if found else ((), (math.nan,), (math.nan,))
        return Ends(sum(sizes), float(np.min(low)), float(np.max(high)))

    @cached_property
    def mean(self) -> float:
        """Their mean; NaN of none."""
        numbers = itertools.chain.from_iterable(piece.tolist() for piece in self.pieces())
        try:
            total = math.fsum(numbers)
        except (OverflowError, ValueError):  # beyond what a number can be, or both infinities
            with np.errstate(over="ignore", invalid="ignore"):
                total = float(sum(float(piece.sum()) for piece in self.pieces()))
        return total / self.ends.n if self.ends.n else math.nan

    def n_where(self, chosen: Callable[[FloatArray], BoolArray]) -> int:
        """Return for how many something holds."""
        return sum(int(chosen(piece).sum()) for piece in self.pieces())

    def where(self, chosen: Callable[[FloatArray], BoolArray]) -> Spread:
        """Return those for which something holds."""
        return Spread(lambda: (piece[chosen(piece)] for piece in self.pieces()))

    def counts(self, edges: FloatArray) -> IntArray:
        """Return how many lie between edges; those beyond an end count in the outer bins."""
        total = np.zeros(len(edges) - 1, dtype=np.int64)
        for piece in self.pieces():
            total += np.histogram(np.clip(piece, edges[0], edges[-1]), edges)[0]
        return total

    def same(self) -> float | None:
        """Return the number that all have but for rounding, or None."""
        ends, middle = self.ends, self.quantile(0.5)
        furthest = max(abs(ends.smallest - middle), abs(ends.largest - middle))
        return middle if furthest <= _SAME * abs(middle) else None

    def quantile(self, share: float) -> float:
        """Return a quantile as `numpy.quantile` has it, of all numbers."""
        n = self.ends.n
        if not n or math.isnan(self.ends.smallest):
            return math.nan
        place = share * (n - 1)
        first = math.floor(place)
        # Between two neighbours in order; NumPy's own rounding.
        pair = [self._in_order(first), self._in_order(min(first + 1, n - 1))]
        return float(np.quantile(pair, place - first))

    def over(self) -> tuple[FloatArray, FloatArray]:
        """Return thresholds, and beside each the share of the numbers over the one before it.

        Every number is a threshold where they are few enough to be sorted; else thresholds are at
        most a hundredth of themselves apart, and the shares at them are exact.
        """
        n = self.ends.n
        if n <= _MOST_SORTED:
            values = self._sorted
            return np.append(values, values[-1:]), np.append(1.0, 1.0 - np.arange(1, n + 1) / n)
        low, high = _keys(np.array([self.ends.smallest, self.ends.largest])).tolist()
        step = -(-(high - low + 1) // _MOST_THRESHOLDS)
        counts = np.zeros(_MOST_THRESHOLDS, dtype=np.int64)
        for keys in self._keys_between(low, high):
            counts += np.bincount(_bins(keys, low, step), minlength=_MOST_THRESHOLDS)
        filled = np.flatnonzero(counts)
        last = [min(low + (k + 1) * step - 1, high) for k in filled.tolist()]
        thresholds = np.array([self.ends.smallest, *map(_number, [*last, last[-1]])])
        over = 1.0 - np.cumsum(counts[filled]) / n
        return thresholds, np.concatenate([[1.0, 1.0], over])

    def _in_order(self, place: int) -> float:
        """Return the number at a place in order, from 0."""
        if self.ends.n <= _MOST_SORTED:
            return float(self._sorted[place])
        low, high = _keys(np.array([self.ends.smallest, self.ends.largest])).tolist()
        while True:
            step = max(1, -(-(high - low + 1) // _BINS))
            counts = np.zeros(_BINS, dtype=np.int64)
            for keys in self._keys_between(low, high):
                counts += np.bincount(_bins(keys, low, step), minlength=_BINS)
            below = np.cumsum(counts)
            chosen = int(np.searchsorted(below, place, side="right"))
            place -= int(below[chosen] - counts[chosen])
            low, high = low + chosen * step, min(high, low + (chosen + 1) * step - 1)
            if low == high:
                return _number(low)
            if counts[chosen] <= _MOST_SORTED:
                found = np.sort(np.concatenate(list(self._keys_between(low, high))))
                return _number(int(found[place]))

    @cached_property
    def _sorted(self) -> FloatArray:
        return np.sort(np.concatenate(list(self.pieces())))

    def _keys_between(self, low: int, high: int) -> Iterable[IntArray]:
        for piece in self.pieces():
            keys = _keys(piece)
            yield keys[(keys >= low) & (keys <= high)]


def _keys(values: FloatArray) -> IntArray:
    """Return whole numbers in the order of the values: equal where these are."""
    bits = np.ascontiguousarray(values + 0.0).view(np.int64)  # no −0
    return np.where(bits < 0, _SIGN - bits, bits)


def _bins(keys: IntArray, low: int, step: int) -> IntArray:
    """Return the numbers of the bins of so many keys each, from `low` on."""
    above = keys.astype(np.uint64) - np.uint64(low % 2**64)  # around, where that is negative
    return (above // np.uint64(step)).astype(np.int64)


def _number(key: int) -> float:
    bits = key if key >= 0 else int(_SIGN) - key
    return float(np.array([bits], dtype=np.int64).view(np.float64)[0])
