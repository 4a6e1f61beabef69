"""Checks that stand beside the risk, which assumes that the release came from these models.

A plain copy of the confidential data looks safest of all, since only sufficient statistics enter; a
release that has nothing to do with the models looks worst (METHOD §6). So the fits to the
confidential and to the synthetic data are compared, copied rows are looked for, and levels and
counts are compared with those of the record that a row stands for.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.special import bdtrc, chdtr

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.chunks import chunks
from synrisk.base.errors import SynriskError
from synrisk.base.workers import Executor
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

TAIL = 1e-3  # of χ², on either side
_RADIUS = 1e-3  # in standard deviations of each variable
_BEYOND = 1.001  # of it, so that rounding leaves no candidate out
_MOST_CANDIDATES = 16  # a row; where there are more, a tree is faster
_CHANCE = 4.0  # standard deviations of a difference of counts
_MORE_COPIES = 0.01  # share of rows beyond what the confidential data have among themselves
_NEARLY_ALL = 0.9  # of the rows
_N_CHANCES = 20  # draws over which chance agreement is averaged


@dataclass(frozen=True)
class Distance:
    """How far the fits of a model to the confidential data and to a dataset are apart.

    Attributes
    ----------
    d2, df
        D² and its degrees of freedom.
    p_smaller
        The probability of a smaller D² if the release came from the model; NaN where draws made
        elsewhere are too few, or of the synthetic rows no fit can be made.
    """

    variable: str
    dataset: int
    d2: float
    df: float
    p_smaller: float

    @property
    def is_known(self) -> bool:
        """Whether the fits could be compared."""
        return not math.isnan(self.p_smaller)

    @property
    def is_too_far(self) -> bool:
        """Whether the fits differ by more than chance."""
        return self.p_smaller > 1.0 - TAIL

    @property
    def is_too_near(self) -> bool:
        """Whether the fits differ by less than chance."""
        return self.p_smaller < TAIL

    @property
    def failure(self) -> str | None:
        """What is wrong, in plain words."""
        if self.is_too_far:
            return (
                f"Dataset {self.dataset} does not look as if it came from the model of "
                f"{self.variable}: the fits differ by D² = {self.d2:.1f} with {self.df:.0f} "
                "degrees of freedom. The risk assumes that it did."
            )
        if self.is_too_near:
            return (
                f"Dataset {self.dataset} follows the confidential data of {self.variable} more "
                f"closely than its model would (D² = {self.d2:.3f} with {self.df:.0f} degrees of "
                "freedom): was it copied or adjusted? The risk does not see that."
            )
        return None


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


@dataclass(frozen=True)
class Agreement:
    """How many rows of a dataset hold the level or count of the record that they stand for.

    Attributes
    ----------
    agree
        So many do.
    expected, sd
        So many would if the model had drawn them, and the standard deviation of that.
    """

    variable: str
    dataset: int
    n_rows: int
    agree: int
    expected: float
    sd: float

    @property
    def is_too_often(self) -> bool:
        """Whether more rows hold their record's value than the model would draw."""
        beyond = self.agree - self.expected > _CHANCE * self.sd
        # Of few rows the count is not normal.
        chance = min(self.expected / self.n_rows, 1.0)
        return bool(beyond and bdtrc(self.agree - 1, self.n_rows, chance) < TAIL)

    @property
    def failure(self) -> str | None:
        """What is wrong, in plain words."""
        if not self.is_too_often:
            return None
        return (
            f"{self.agree:,} of {self.n_rows:,} rows of dataset {self.dataset} hold the "
            f"{self.variable} of the confidential record that they stand for; the model would give "
            f"about {self.expected:,.0f}: was it copied? The risk does not see that."
        )


@dataclass(frozen=True)
class ReleaseChecks:
    """What was found about a release."""

    distances: tuple[Distance, ...]
    copied_rows: tuple[Copies, ...]
    agreements: tuple[Agreement, ...] = ()

    @property
    def distance(self) -> pd.DataFrame:
        """A row a model and dataset: D² between the fits; see `Distance`."""
        return _table(Distance, self.distances, ["variable", "dataset"])

    @property
    def copies(self) -> pd.DataFrame:
        """A row a dataset: how many synthetic rows are copies; see `Copies`."""
        return _table(Copies, self.copied_rows, ["dataset"])

    @property
    def agreement(self) -> pd.DataFrame:
        """A row a variable of levels or counts and a dataset whose rows stand for records.

        See `Agreement`.
        """
        return _table(Agreement, self.agreements, ["variable", "dataset"])

    @cached_property
    def failures(self) -> tuple[str, ...]:
        """What is wrong, in plain words."""
        rows: tuple[Distance | Copies | Agreement, ...] = (
            *self.distances,
            *self.copied_rows,
            *self.agreements,
        )
        failures = (row.failure for row in rows)
        return tuple(one for one in failures if one is not None)

    @property
    def unchecked(self) -> tuple[tuple[str, int], ...]:
        """The variables and datasets whose fits could not be compared."""
        return tuple((one.variable, one.dataset) for one in self.distances if not one.is_known)

    def status(self, variable: str | None = None) -> str:
        """Return "passed", "failed" or "not known" for a variable, or for the whole release.

        Copies are looked for in all continuous variables at once: they count for the whole.
        """
        distances = [one for one in self.distances if variable in (None, one.variable)]
        about: list[Distance | Copies | Agreement] = [
            *distances,
            *(one for one in self.agreements if variable in (None, one.variable)),
            *(self.copied_rows if variable is None else ()),
        ]
        if any(one.failure is not None for one in about):
            return "failed"
        return "passed" if distances and all(one.is_known for one in distances) else "not known"


_Row = TypeVar("_Row", Distance, Copies, Agreement)


def _table(kind: type[_Row], rows: Sequence[_Row], index: list[str]) -> pd.DataFrame:
    columns = [one.name for one in fields(kind)]
    return pd.DataFrame([vars(row) for row in rows], columns=columns).set_index(index)


def _too_many(found: float, own: float, n_rows: float) -> bool:
    """Tell whether there are more near rows than among confidential records, and than by chance."""
    return bool(found - own > _MORE_COPIES * n_rows + _CHANCE * np.sqrt(found + own))


def _all_copied(exact: float, own: float, n_rows: float) -> bool:
    """Tell whether nearly all rows are copies, however few, though records seldom repeat."""
    share = min(own / n_rows, 1.0)
    seldom = share < 0.5 or bdtrc(exact - 1, n_rows, share) < TAIL
    return bool(exact >= max(_NEARLY_ALL * n_rows, 1.0) and seldom)


def check_release(
    synthesizer: Synthesizer, release: Sequence[Released], executor: Executor
) -> ReleaseChecks:
    """Compare the fits to the confidential and to each synthetic dataset, and look for copies."""
    rows = []
    for model in synthesizer.models:
        own, df = synthesizer.refits.moments(model, None, executor), len(model.posterior.names)
        for number, dataset in enumerate(release, 1):
            alone = None
            # Too few or too odd rows have no fit of their own: nothing to compare. Fewer rows than
            # parameters have one by the prior alone.
            if own is not None and len(dataset.columns[model.regression.response]) >= df:
                with contextlib.suppress(SynriskError):
                    alone = synthesizer.refits.moments(model, dataset, executor)
            d2 = _distance(own, alone)
            name = model.regression.response
            rows.append(Distance(name, number, d2, float(df), float(chdtr(df, d2))))
    return ReleaseChecks(
        tuple(rows), _copies(synthesizer, release, executor), _agreements(synthesizer, release)
    )


def _distance(
    one: tuple[FloatArray, FloatArray] | None, other: tuple[FloatArray, FloatArray] | None
) -> float:
    """Return Δ'(V + V')⁻¹Δ of two posteriors; NaN where one is not known."""
    if one is not None and other is not None:
        apart = one[0] - other[0]
        with contextlib.suppress(np.linalg.LinAlgError):
            return float(apart @ np.linalg.solve(one[1] + other[1], apart))
    return float("nan")


def _copies(
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


def _agreements(synthesizer: Synthesizer, release: Sequence[Released]) -> tuple[Agreement, ...]:
    """Count rows with the level or count of their record, beside what the model would give."""
    discrete = [m for m in synthesizer.models if not m.regression.distribution.is_continuous]
    rows = []
    for number, dataset in enumerate(release if discrete else (), 1):
        mine, theirs = _linked(synthesizer, dataset)
        for model in discrete if len(mine) else ():
            name = model.regression.response
            truth = synthesizer.columns[name][mine]
            expected, sd = _chance(synthesizer, model, dataset, truth.astype(np.float64), theirs)
            agree = int((dataset.columns[name][theirs] == truth).sum())
            rows.append(Agreement(name, number, len(mine), agree, expected, sd))
    return tuple(rows)


def _linked(synthesizer: Synthesizer, dataset: Released) -> tuple[IntArray, IntArray]:
    """Return the records, and the rows that stand for them.

    By columns that are not synthesized, where these name most rows' record; else by place, where
    there are as many rows as records; else there are none.
    """
    kept = [n for n in synthesizer.plan.columns if n not in synthesizer.plan.synthesized]
    n_rows = len(dataset.columns[synthesizer.plan.synthesized[0]])
    if kept:
        keys = [f"key{k}" for k in range(len(kept))]
        own, released = (
            pd.DataFrame({key: of[name] for key, name in zip(keys, kept, strict=True)})
            for of in (synthesizer.columns, dataset.columns)
        )
        own = own.assign(place=np.arange(len(own))).drop_duplicates(keys, keep=False)
        places = released.merge(own, how="left", on=keys)["place"].fillna(-1).to_numpy(np.int64)
        rows = np.flatnonzero(places >= 0)
        if 2 * len(rows) >= n_rows:
            return places[rows], rows
    places = np.arange(n_rows if n_rows == synthesizer.n_records else 0)
    return places, places


def _chance(
    synthesizer: Synthesizer, model: Model, dataset: Released, truth: FloatArray, rows: IntArray
) -> tuple[float, float]:
    """Return how many rows the model would give `truth`, and the standard deviation of that."""
    regression, draws = model.regression, model.posterior
    log_density = regression.distribution.log_density
    matrix = synthesizer.refits.design(model, dataset)[rows]
    y = regression.on_model_scale(truth)
    # Draws by their weight, the parameters being as uncertain as they are.
    steps = (np.arange(_N_CHANCES) + 0.5) / _N_CHANCES
    chosen = np.searchsorted(np.cumsum(np.exp(draws.log_weights)), steps)
    means, variances = [], []
    for h in np.minimum(chosen, draws.n_draws - 1):
        auxiliary = np.broadcast_to(draws.auxiliary[h], (len(y), draws.auxiliary.shape[1]))
        eta = matrix @ draws.coefficients[h]
        with np.errstate(over="ignore"):  # rates beyond all numbers
            p = np.exp(log_density(y, eta, auxiliary))
        means.append(p.sum())
        variances.append((p * (1.0 - p)).sum())
    return float(np.mean(means)), float(np.sqrt(np.mean(variances) + np.var(means)))
