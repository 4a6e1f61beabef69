"""How many records have too near a row: among all, and among those that stand out, at thresholds.

Each way of looking gives a record a number that is uniform for an honest release. How many are
small is binomial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.risk.neighbours import Nearness

_THRESHOLDS = (1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.2)
_OUTLYING = (5, 10, 20, 40, 80, 160)  # records that stand out most, looked at by themselves


@dataclass(frozen=True)
class Count:
    """How many of some records have a row nearer than a threshold.

    Attributes
    ----------
    part, threshold, most
        Which way was looked at, below which probability, among how many records that stand out.
    n_ways
        In which the same was looked for.
    """

    part: int
    threshold: float
    most: int
    n_ways: int
    found: int
    n_compared: int

    @property
    def p(self) -> float:
        """The probability of as many, times the number of ways."""
        return self.tail(self.threshold)

    @property
    def expected(self) -> float:
        """How many there would be by chance."""
        return self.n_compared * self.threshold

    @property
    def excess(self) -> float:
        """How many there are beyond chance."""
        return self.found - 2.0 * self.expected  # one named by chance weighs as much

    def tail(self, probability: float) -> float:
        """Return the probability of as many, by the probability of each."""
        if not self.found:
            return 1.0
        tail = float(bdtrc(self.found - 1, self.n_compared, min(probability, 1.0)))
        return min(self.n_ways * tail, 1.0)


def counts(group: Sequence[Sequence[Nearness]]) -> list[Count]:
    """Count at every threshold, among all records and those that stand out, in every way."""
    n_parts = min(map(len, group))
    found = []
    for part in range(n_parts):
        near = [of[part] for of in group]
        hits = [hits_of(one) for one in near]
        n_records = max(len(one.p) for one in near)
        sizes = [size for size in _OUTLYING if 2 * size <= n_records] + [n_records]
        n_ways = n_parts * len(sizes) * len(_THRESHOLDS)
        for size in sizes:
            n = sum(min(size, len(one.p)) for one in near)
            p = np.sort(np.concatenate([of.p[of.place < size] for of in hits]))
            for threshold, n_found in zip(
                _THRESHOLDS, np.searchsorted(p, _THRESHOLDS).tolist(), strict=True
            ):
                found.append(Count(part, threshold, size, n_ways, n_found, n))
    return found


class Hits(NamedTuple):
    """Records with a near row: how improbable that is, and their place in the order."""

    p: FloatArray
    place: IntArray

    def below(self, threshold: float, size: int) -> BoolArray:
        """Tell which are less probable than a threshold, among those that stand out most."""
        return (self.p < threshold) & (self.place < size)


def hits_of(near: Nearness) -> Hits:
    """Return the records with a near row; of several with the same row, the nearest."""
    place = np.flatnonzero(near.p < _THRESHOLDS[-1])
    place = place[np.argsort(near.p[place], kind="stable")]
    _, first = np.unique(near.row[place], return_index=True)
    place = place[first]
    return Hits(near.p[place], place)


def found_by(best: Count, group: Sequence[Sequence[Nearness]]) -> IntArray:
    """Return the positions of the records that were counted."""
    positions = []
    for near in (of[best.part] for of in group):
        hits = hits_of(near)
        positions.append(near.position[hits.place[hits.below(best.threshold, best.most)]])
    return np.concatenate(positions)
