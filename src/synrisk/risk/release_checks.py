"""Checks that stand beside the risk, which assumes that the release came from these models.

A plain copy of the confidential data looks safest of all, since only sufficient statistics enter; a
release that has nothing to do with the models looks worst (METHOD §6). So each dataset is compared
with what its models predict, rows that are too close to a record are looked for, and rows are
compared with the record that they stand for. Together they warn of one honest release in a hundred
at most. And the seeds that people choose are tried: whoever guesses one has all that the models
kept to themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, TypeAlias, TypeVar

import pandas as pd

from synrisk.base.kept import called
from synrisk.base.workers import Executor, here
from synrisk.data.archive import unpack
from synrisk.risk.closeness import Closeness, all_together, comparisons
from synrisk.risk.fit_distances import Distance, Total, compare_fits
from synrisk.risk.guessed_seeds import SeedTrial, try_seeds
from synrisk.risk.linked_rows import Agreement, Residuals, compare_rows
from synrisk.synthesis.leaks import columns_as_is
from synrisk.synthesis.relations import Relation
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

__all__ = [
    "Agreement",
    "Closeness",
    "Distance",
    "ReleaseChecks",
    "Residuals",
    "SeedTrial",
    "Total",
    "check_release",
]

_Check: TypeAlias = Distance | Total | Closeness | Agreement | Residuals | SeedTrial
_Row = TypeVar("_Row", Distance, Closeness, Agreement, Residuals, SeedTrial)


@dataclass(frozen=True)
class ReleaseChecks:
    """What was found about a release.

    `as_is` are the columns that it holds as they are in the confidential data, `relations` what
    these tell of synthesized variables without giving them away. Files of earlier versions have
    neither.
    """

    distances: tuple[Distance, ...]
    agreements: tuple[Agreement, ...] = ()
    residual_correlations: tuple[Residuals, ...] = ()
    total: Total | None = None
    close: tuple[Closeness, ...] = ()
    seed_trials: tuple[SeedTrial, ...] = ()
    as_is: tuple[str, ...] | None = None
    relations: tuple[Relation, ...] = ()

    @classmethod
    def from_file(cls, packed: Any, arrays: Mapping[str, Any]) -> ReleaseChecks:
        """Return what a file holds; copies, which earlier versions counted, as closeness."""
        checks = unpack(cls, packed, arrays)
        before = tuple(_from_copies(one) for one in packed.get("copied_rows", ()))
        return replace(checks, close=(*checks.close, *before))

    @property
    def distance(self) -> pd.DataFrame:
        """A row a model and dataset: D² of the dataset from the model; see `Distance`."""
        return _table(Distance, self.distances, ["variable", "dataset"])

    @property
    def closeness(self) -> pd.DataFrame:
        """A row a comparison of rows with records and a dataset; see `Closeness`.

        Its smallest ``p`` times the number of its rows is one p-value for all of them.
        """
        return _table(Closeness, self.close, ["compared", "dataset"]).drop(columns="records")

    @property
    def close_records(self) -> pd.DataFrame:
        """A row a record that looks copied, and how that was seen: for inside use only."""
        rows = [
            (record, one.compared, one.dataset)
            for one in self.close
            if one.is_too_close
            for record in one.records
        ]
        return pd.DataFrame(rows, columns=["record", "compared", "dataset"])

    @property
    def agreement(self) -> pd.DataFrame:
        """A row a variable of levels or counts and a dataset whose rows stand for records.

        See `Agreement`.
        """
        return _table(Agreement, self.agreements, ["variable", "dataset"])

    @property
    def residuals(self) -> pd.DataFrame:
        """A row a variable of numbers or counts and a dataset whose rows stand for records.

        See `Residuals`.
        """
        return _table(Residuals, self.residual_correlations, ["variable", "dataset"])

    @property
    def seeds(self) -> pd.DataFrame:
        """A row a dataset: how far a seed that people choose gives it again; see `SeedTrial`."""
        return _table(SeedTrial, self.seed_trials, ["dataset"])

    @cached_property
    def failures(self) -> tuple[str, ...]:
        """What is wrong, in plain words."""
        checks: tuple[_Check, ...] = (
            *self.distances,
            *self._together,
            *self._closest,
            *self.agreements,
            *self.residual_correlations,
            *self.seed_trials,
        )
        failures = (check.failure for check in checks)
        return tuple(failure for failure in failures if failure is not None)

    @property
    def discloses(self) -> bool:
        """Whether rows follow the records, or a seed gives them again: that is a disclosure."""
        rows: tuple[_Check, ...] = (*self.close, *self.agreements, *self.residual_correlations)
        return any(check.failure is not None for check in (*rows, *self.seed_trials))

    @property
    def unchecked(self) -> tuple[tuple[str, int], ...]:
        """The variables and datasets that could not be compared with their model."""
        return tuple((one.variable, one.dataset) for one in self.distances if not one.is_known)

    def status(self, variable: str | None = None) -> str:
        """Return "passed", "failed" or "not known" for a variable, or for the whole release.

        Rows are held against records in all variables at once, D² is added up over all models, and
        a seed is the whole release's: they count for the whole.
        """
        distances = [one for one in self.distances if variable in (None, one.variable)]
        about: list[_Check] = [
            *distances,
            *(one for one in self.agreements if variable in (None, one.variable)),
            *(one for one in self.residual_correlations if variable in (None, one.variable)),
            *(self.close if variable is None else ()),
            *(self._together if variable is None else ()),
            *(self.seed_trials if variable is None else ()),
        ]
        if any(check.failure is not None for check in about):
            return "failed"
        return "passed" if distances and all(one.is_known for one in distances) else "not known"

    @property
    def _closest(self) -> tuple[Closeness, ...]:
        """The plainest sign that a dataset is too close; all datasets, where none is alone."""
        first: dict[int, Closeness] = {}
        for one in self.close:
            if one.is_too_close:
                first.setdefault(one.dataset, one)
        alone = tuple(one for number, one in sorted(first.items()) if number)
        return alone or tuple(first.values())

    @property
    def _together(self) -> tuple[Total, ...]:
        """What all datasets tell together, where none tells it alone."""
        alone = any(distance.is_too_near for distance in self.distances)
        return () if self.total is None or alone else (self.total,)


def _from_copies(packed: Mapping[str, Any]) -> Closeness:
    """Return near copies beside as many as records have among themselves, by the level of old.

    Too many were those beyond 1 % of the rows and four standard deviations, or nearly all.
    """
    near, own, n = int(packed["near"]), float(packed["near_own"]), int(packed["n_rows"])
    excess = near - own > 0.01 * n + 4.0 * math.sqrt(near + own)
    p = 0.0 if excess or (int(packed["exact"]) >= 0.9 * n and own < 0.5 * n) else 1.0
    return Closeness("nearest", int(packed["dataset"]), n, near, own, p, 0.5)


def _table(kind: type[_Row], rows: Sequence[_Row], index: list[str]) -> pd.DataFrame:
    columns = [field.name for field in fields(kind)]
    return pd.DataFrame([vars(row) for row in rows], columns=columns).set_index(index)


def check_release(
    synthesizer: Synthesizer,
    release: Sequence[Released],
    executor: Executor,
    relations: tuple[Relation, ...] = (),
) -> ReleaseChecks:
    """Compare each dataset with what the models predict and with the records."""
    distances, total = compare_fits(synthesizer, release, executor)
    tasks: list[Callable[[], Any]] = [
        partial(try_seeds, synthesizer, release),
        partial(compare_rows, synthesizer, release),
        *comparisons(synthesizer, release),
    ]
    seeds, (agreements, residuals), *found = here(executor).map(_run, tasks)
    close, as_is = all_together(found), columns_as_is(synthesizer.confidential, release)
    return ReleaseChecks(distances, agreements, residuals, total, close, seeds, as_is, relations)


@called("checking", "Checking the release")
def _run(task: Callable[[], Any]) -> Any:
    return task()
