"""Whether a release keeps the limits on what it tells of who was in the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from synrisk.base.errors import OptionError, listed
from synrisk.core.measures import RecordMeasures
from synrisk.risk.release_checks import ReleaseChecks
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.reasons import CALLED, FAILED, Reason
from synrisk.verdict.verdict import Verdict, judge

_IN_THE_DATA = "right answer to who was in the data"


@dataclass(frozen=True)
class RowsReason(Reason):
    """Columns that the models do not make: their rows may be those of who was in the data."""

    kind = "rows"
    is_check = True
    columns: tuple[str, ...]

    @property
    def voids_limits(self) -> bool:
        """Whether limits tell nothing of the release, as what they assume does not hold."""
        return True

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - the same for everybody
        """Return it in words."""
        return (
            f"Released, and not made by the models: {listed(self.columns)}. Where these are the "
            "people's own, in whatever order, whoever knows everybody else finds the row that is "
            "left, and so who was in the data; the limits are of what the synthesized values tell "
            "beside that."
        )

    def _for_anyone(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}


def judge_membership(
    criteria: Criteria,
    measures: RecordMeasures,
    labels: pd.Index[Any],
    checks: ReleaseChecks,
    not_made: tuple[str, ...] = (),
    rows: str = CALLED,
) -> Verdict:
    """Return whether what a release tells of who was in the data keeps the criteria.

    Parameters
    ----------
    criteria
        The limits.
    measures
        The probability that each record was in the data, ½ before.
    labels
        Of the records.
    checks
        What was found about the release.
    not_made
        Columns of the release that no model makes.
    rows
        What records are called.
    """
    if isinstance(criteria, Criteria):
        if not criteria.limits:
            raise OptionError(
                "Membership is of a whole record: the criteria need a limit beside variables=, "
                "such as Criteria(gain=0.1)."
            )
        if "log_odds_range" in criteria.limits:
            raise OptionError(
                "A membership risk has no log_odds_range; limit gain, probability or lift."
            )
    verdict = judge(criteria, measures, labels, checks, len(labels), rows=rows, sought=_IN_THE_DATA)
    if not not_made:
        return verdict
    others = tuple(one for one in verdict.reasons if one.kind != "as is")
    return replace(verdict, reasons=(*others, RowsReason(FAILED, not_made)))
