"""Rows of a release at or near a confidential record's continuous values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import bdtrc

from synrisk.base.arrays import FloatArray
from synrisk.base.chunks import chunks
from synrisk.base.workers import Executor
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_RADIUS = 1e-3  # in standard deviations of each variable
_BEYOND = 1.001  # of it, so that rounding leaves no candidate out
_MOST_CANDIDATES = 16  # a row; where there are more, a tree is faster
_CHANCE = 4.0  # standard deviations of a difference of counts
_MORE_COPIES = 0.01  # share of rows beyond what the confidential data have among themselves
_NEARLY_ALL = 0.9  # of the rows
_BY_CHANCE = 1e-3  # that nearly all rows repeat a record as records repeat one another


@dataclass(frozen=True)
class Copies:
    """How many rows of a dataset are at or near a confidential record.

    Attributes
    ----------
    exact, near
        Rows that hold a record's values in all continuous synthesized variables, and such within
        a thousandth of a standard deviation.
    exact_own, near_own
        As many are to be expected by what confidential records do among themselves.
    """

    dataset: int
    n_rows: int
    exact: int
    near: int
    exact_own: float
    near_own: float

    @property
    def are_too_many(self) -> bool:
        """Whether more rows are near confidential records than should."""
        return (
            _all_copied(self.exact, self.exact_own, self.n_rows)
            or _too_many(self.exact, self.exact_own, self.n_rows)
            or _too_many(self.near, self.near_own, self.n_rows)
        )

    @property
    def failure(self) -> str | None:
        """What is wrong, in plain words."""
        if not self.are_too_many:
            return None
        return (
            f"{self.exact:,} of {self.n_rows:,} rows of dataset {self.dataset} are copies of "
            f"confidential records, {self.near:,} nearly so. The risk does not see copies."
        )


def _too_many(found: float, own: float, n_rows: float) -> bool:
    """Tell whether there are more near rows than among confidential records, and than by chance."""
    return bool(found - own > _MORE_COPIES * n_rows + _CHANCE * np.sqrt(found + own))


def _all_copied(exact: float, own: float, n_rows: float) -> bool:
    """Tell whether nearly all rows are copies, however few, though records seldom repeat."""
    share = min(own / n_rows, 1.0)
    seldom = share < 0.5 or bdtrc(exact - 1, n_rows, share) < _BY_CHANCE
    return bool(exact >= max(_NEARLY_ALL * n_rows, 1.0) and seldom)


def count_copies(
    synthesizer: Synthesizer, release: Sequence[Released], executor: Executor
) -> tuple[Copies, ...]:
    """Count synthetic rows at or near a confidential record's continuous synthesized values."""
    names = [
        regression.response
        for regression in synthesizer.plan.regressions
        if regression.distribution.is_continuous
    ]
    if not names:
        return ()
    own = synthesizer.memory.recall(
        "neighbours", lambda: _Neighbours.of(synthesizer, names, executor)
    )
    rows = []
    for number, dataset in enumerate(release, 1):
        values = np.column_stack([dataset.columns[name] for name in names])
        exact, near = own.count(values, 1, executor)
        share = len(values) / own.columns.shape[1]
        rows.append(
            Copies(number, len(values), exact, near, share * own.n_exact, share * own.n_near)
        )
    return tuple(rows)


@dataclass(frozen=True, eq=False, repr=False)
class _Neighbours:
    """The confidential records by their place, and how many lie at or near another.

    Attributes
    ----------
    columns
        ``(column, record)``, in units of `spread`, sorted by the column `by`, which parts them
        best.
    """

    columns: FloatArray
    spread: FloatArray
    by: int
    n_exact: int = 0
    n_near: int = 0

    @classmethod
    def of(cls, synthesizer: Synthesizer, names: Sequence[str], executor: Executor) -> _Neighbours:
        values = np.column_stack([synthesizer.columns[name] for name in names])
        with np.errstate(over="ignore"):
            spread = values.std(axis=0)
        spread = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
        columns = (values / spread).T
        by = int(np.argmin([_n_repeated(column) for column in columns]))
        made = cls(np.ascontiguousarray(columns[:, np.argsort(columns[by])]), spread, by)
        # A record's first is itself.
        n_exact, n_near = made._among_neighbours() or made.count(values, 2, executor)
        return replace(made, n_exact=n_exact, n_near=n_near)

    def _among_neighbours(self) -> tuple[int, int] | None:
        """Count records at, and near, another one; None where many are near in the sorted column.

        Those that are lie next to one another, or two, three, … places apart.
        """
        n_records = self.columns.shape[1]
        exact, near = np.zeros(n_records, dtype=bool), np.zeros(n_records, dtype=bool)
        for lag in range(1, n_records):
            candidates = np.flatnonzero(
                self.columns[self.by, lag:] - self.columns[self.by, :-lag] <= _RADIUS
            )
            if not len(candidates):
                break
            if lag > _MOST_CANDIDATES:
                return None
            apart = self.columns[:, candidates + lag] - self.columns[:, candidates]
            distance = np.abs(apart).max(axis=0)
            for found, limit in ((exact, 0.0), (near, _RADIUS)):
                rows = candidates[distance <= limit]
                found[rows] = found[rows + lag] = True
        return int(exact.sum()), int(near.sum())

    @cached_property
    def tree(self) -> cKDTree:
        # Without balance it is made faster, and a search so near hardly needs it.
        return cKDTree(self.columns.T, compact_nodes=False, balanced_tree=False)

    def count(self, values: FloatArray, k: int, executor: Executor) -> tuple[int, int]:
        """Return how many rows have k records at their place, and how many have k near it."""

        def in_part(rows: slice) -> tuple[int, int]:
            points = values[rows] / self.spread
            found = self._among_candidates(points, k)
            return self._by_tree(points, k) if found is None else found

        counts = list(executor.map(in_part, chunks(len(values))))
        return sum(exact for exact, _ in counts), sum(near for _, near in counts)

    def _among_candidates(self, points: FloatArray, k: int) -> tuple[int, int] | None:
        """Count among records that are near in the sorted column; None where these are many."""
        columns = np.ascontiguousarray(points[np.argsort(points[:, self.by])].T)
        place = columns[self.by]
        first = np.searchsorted(self.columns[self.by], place - _BEYOND * _RADIUS)
        after = np.searchsorted(self.columns[self.by], place + _BEYOND * _RADIUS, side="right")
        n_found = after - first
        ends = np.cumsum(n_found)
        if ends[-1] > _MOST_CANDIDATES * len(points):
            return None
        rows = np.repeat(np.arange(len(points)), n_found)
        records = np.arange(len(rows)) + np.repeat(first - ends + n_found, n_found)
        distance = np.zeros(len(rows))
        # The sorted column comes last: it parts no candidates.
        for column in sorted(range(len(columns)), key=lambda one: one == self.by):
            apart = np.abs(columns[column][rows] - self.columns[column][records])
            distance = np.maximum(distance, apart)
            near = distance <= _RADIUS
            rows, records, distance = rows[near], records[near], distance[near]
        exact = np.bincount(rows[distance == 0])
        return int((exact >= k).sum()), int((np.bincount(rows) >= k).sum())

    def _by_tree(self, points: FloatArray, k: int) -> tuple[int, int]:
        bound = np.nextafter(_RADIUS, 1.0)  # what is found is nearer than that
        found = self.tree.query(points, k=[k], p=np.inf, distance_upper_bound=bound)
        nearest = np.asarray(found[0])
        return int((nearest == 0).sum()), int((nearest <= _RADIUS).sum())


def _n_repeated(column: FloatArray) -> int:
    """Return how many values stand before."""
    return len(column) - len(np.unique(column))
