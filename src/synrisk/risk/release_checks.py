"""Checks that stand beside the risk, which assumes that the release came from these models.

A plain copy of the confidential data looks safest of all, since only sufficient statistics enter; a
release that has nothing to do with the models looks worst (METHOD §6). So each dataset is compared
with what its models predict, copied rows are looked for, and rows are compared with the record that
they stand for. Together they warn of one honest release in a hundred at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TypeAlias, TypeVar

import pandas as pd

from synrisk.base.workers import Executor
from synrisk.risk.fit_distances import Distance, Total, compare_fits
from synrisk.risk.linked_rows import Agreement, Residuals, compare_rows
from synrisk.risk.near_copies import Copies, count_copies
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

__all__ = [
    "Agreement",
    "Copies",
    "Distance",
    "ReleaseChecks",
    "Residuals",
    "Total",
    "check_release",
]

_Check: TypeAlias = Distance | Total | Copies | Agreement | Residuals
_Row = TypeVar("_Row", Distance, Copies, Agreement, Residuals)


@dataclass(frozen=True)
class ReleaseChecks:
    """What was found about a release."""

    distances: tuple[Distance, ...]
    copied_rows: tuple[Copies, ...]
    agreements: tuple[Agreement, ...] = ()
    residual_correlations: tuple[Residuals, ...] = ()
    total: Total | None = None

    @property
    def distance(self) -> pd.DataFrame:
        """A row a model and dataset: D² of the dataset from the model; see `Distance`."""
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

    @property
    def residuals(self) -> pd.DataFrame:
        """A row a variable of numbers or counts and a dataset whose rows stand for records.

        See `Residuals`.
        """
        return _table(Residuals, self.residual_correlations, ["variable", "dataset"])

    @cached_property
    def failures(self) -> tuple[str, ...]:
        """What is wrong, in plain words."""
        checks: tuple[_Check, ...] = (
            *self.distances,
            *self._together,
            *self.copied_rows,
            *self.agreements,
            *self.residual_correlations,
        )
        failures = (check.failure for check in checks)
        return tuple(failure for failure in failures if failure is not None)

    @property
    def unchecked(self) -> tuple[tuple[str, int], ...]:
        """The variables and datasets that could not be compared with their model."""
        return tuple((one.variable, one.dataset) for one in self.distances if not one.is_known)

    def status(self, variable: str | None = None) -> str:
        """Return "passed", "failed" or "not known" for a variable, or for the whole release.

        Copies are looked for in all continuous variables at once, and D² is added up over all
        models: they count for the whole.
        """
        distances = [one for one in self.distances if variable in (None, one.variable)]
        about: list[_Check] = [
            *distances,
            *(one for one in self.agreements if variable in (None, one.variable)),
            *(one for one in self.residual_correlations if variable in (None, one.variable)),
            *(self.copied_rows if variable is None else ()),
            *(self._together if variable is None else ()),
        ]
        if any(check.failure is not None for check in about):
            return "failed"
        return "passed" if distances and all(one.is_known for one in distances) else "not known"

    @property
    def _together(self) -> tuple[Total, ...]:
        """What all datasets tell together, where none tells it alone."""
        alone = any(distance.is_too_near for distance in self.distances)
        return () if self.total is None or alone else (self.total,)


def _table(kind: type[_Row], rows: Sequence[_Row], index: list[str]) -> pd.DataFrame:
    columns = [field.name for field in fields(kind)]
    return pd.DataFrame([vars(row) for row in rows], columns=columns).set_index(index)


def check_release(
    synthesizer: Synthesizer, release: Sequence[Released], executor: Executor
) -> ReleaseChecks:
    """Compare each dataset with what the models predict and with the records."""
    distances, total = compare_fits(synthesizer, release, executor)
    copies = count_copies(synthesizer, release, executor)
    agreements, residuals = compare_rows(synthesizer, release)
    return ReleaseChecks(distances, copies, agreements, residuals, total)
