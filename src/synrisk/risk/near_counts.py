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


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """How many records have a near row, below every threshold: it adds up over blocks of records.

    Attributes
    ----------
    n_records
        How many were compared, by part.
    found
        ``(part, size, threshold)``: the sizes are those of `_OUTLYING`, and all.
    n_compared
        ``(part, size)``.
    hits
        By part, those with a near row, or the least probable of them.
    """

    n_records: IntArray
    found: IntArray
    n_compared: IntArray
    hits: tuple[Hits, ...]

    @classmethod
    def of(
        cls, parts: Sequence[Nearness], labels: IntArray | None = None, most: int | None = None
    ) -> Tally:
        """Count what was found in every way of looking.

        `labels` are the positions of a block's records in the whole table; `most` is how many of
        those with a near row are kept by name.
        """
        found, n_compared, all_hits = [], [], []
        for near in parts:
            hits = hits_of(near)
            sizes = [min(size, len(near.p)) for size in _OUTLYING] + [len(near.p)]
            p_of = [np.sort(hits.p[hits.place < size]) for size in sizes]
            found.append([np.searchsorted(p, _THRESHOLDS) for p in p_of])
            n_compared.append(sizes)
            all_hits.append(hits.named(labels, most))
        return cls(
            np.array([len(near.p) for near in parts]),
            np.array(found),
            np.array(n_compared),
            tuple(all_hits),
        )


def counts(tallies: Sequence[Tally], n_looks: int = 1) -> list[Count]:
    """Count at every threshold, among all records and those that stand out, in every way.

    Of several tallies together; `n_looks` is at how many such sums is looked.
    """
    n_parts = min(len(one.found) for one in tallies)
    found = []
    for part in range(n_parts):
        n_records = max(int(one.n_records[part]) for one in tallies)
        sizes = [size for size in _OUTLYING if 2 * size <= n_records] + [n_records]
        n_ways = n_looks * n_parts * len(sizes) * len(_THRESHOLDS)
        for place, size in enumerate(sizes):
            row = place if place + 1 < len(sizes) else len(_OUTLYING)
            n = sum(int(one.n_compared[part, row]) for one in tallies)
            n_found = np.sum([one.found[part, row] for one in tallies], axis=0)
            for threshold, n_below in zip(_THRESHOLDS, n_found.tolist(), strict=True):
                found.append(Count(part, threshold, size, n_ways, n_below, n))
    return found


class Hits(NamedTuple):
    """Records with a near row: how improbable that is, their place in the order, their position."""

    p: FloatArray
    place: IntArray
    position: IntArray

    def below(self, threshold: float, size: int) -> BoolArray:
        """Tell which are less probable than a threshold, among those that stand out most."""
        return (self.p < threshold) & (self.place < size)

    def named(self, labels: IntArray | None, most: int | None) -> Hits:
        """Return the first so many, which are the least probable, by their labels."""
        position = self.position[:most]
        own = position if labels is None else labels[position]
        return Hits(self.p[:most], self.place[:most], own)


def hits_of(near: Nearness) -> Hits:
    """Return the records with a near row; of several with the same row, the nearest."""
    place = np.flatnonzero(near.p < _THRESHOLDS[-1])
    place = place[np.argsort(near.p[place], kind="stable")]
    _, first = np.unique(near.row[place], return_index=True)
    place = place[np.sort(first)]
    return Hits(near.p[place], place, near.position[place])


def found_by(best: Count, tallies: Sequence[Tally]) -> IntArray:
    """Return the positions of the records that were counted."""
    hits = [one.hits[best.part] for one in tallies]
    return np.concatenate([of.position[of.below(best.threshold, best.most)] for of in hits])


def found_in(best: Count, tallies: Sequence[Tally]) -> tuple[int, int]:
    """Return how many others were found in the same way, and among how many."""
    n_found, n = 0, 0
    for one in tallies:
        if best.part >= len(one.found):
            continue
        sizes = (*_OUTLYING, None)
        row = sizes.index(best.most) if best.most in _OUTLYING else len(_OUTLYING)
        n_found += int(one.found[best.part, row, _THRESHOLDS.index(best.threshold)])
        n += int(one.n_compared[best.part, row])
    return n_found, n
