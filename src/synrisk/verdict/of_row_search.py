"""Whether rows of a release can be told to be people's own, by counting and by models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from synrisk.base.errors import OptionError, listed
from synrisk.core.measures import JOINT, RecordMeasures
from synrisk.risk.release_checks import ReleaseChecks
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.reasons import CALLED, PASSED, Reason
from synrisk.verdict.verdict import Verdict, judge

_RIGHT_ROW = "right row"


@dataclass(frozen=True)
class KnownReason(Reason):
    """How many are found by what is released as it is, to which limits on a gain are blind.

    Attributes
    ----------
    columns
        The known ones.
    n_found, n_records
        How many records are alone with their values in these.
    rows
        What records are called.
    """

    kind = "known columns"
    columns: tuple[str, ...]
    n_found: int
    n_records: int
    rows: str = CALLED

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "warning" if self.n_found else "note"

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without a count."""
        text = (
            f"Released as they are, and known to the intruder: {listed(self.columns)}. What these "
            "tell alone is no gain"
        )
        if sharing or not self.n_found:
            return f"{text}."
        return (
            f"{text}: by them {self.n_found:,} of {self.n_records:,} {self.rows} are found for "
            "certain."
        )

    def _for_anyone(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}

    def _for_inside(self) -> dict[str, Any]:
        return {"n_found": self.n_found}


@dataclass(frozen=True)
class MatchesReason(Reason):
    """What counting matches tells, where models say how probable a row is.

    Attributes
    ----------
    n_over, n_records
        How many records exceed a limit by counting.
    linking
        The columns that are released as they are, are not known, and predict what is.
    rows
        What records are called.
    """

    kind = "matches"
    is_shared = False
    n_over: int
    n_records: int
    linking: tuple[str, ...] = ()
    rows: str = CALLED

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "note"

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - it is not shared
        """Return it in words."""
        over = f"{self.n_over:,} of {self.n_records:,}" if self.n_over else "no"
        return (
            f"The limits are held to the probability that the models give the right row. "
            f"{self._whence()} Counting the rows that match by value (match_risk) would put {over} "
            f"{self.rows} beyond them; where the models made the release such matches are chance, "
            "as they draw a row's values whatever its own record's are."
        )

    def _whence(self) -> str:
        if not self.linking:
            return (
                "It is that of the known values alone: these have all that the models predict by."
            )
        return (
            "What is known of the synthesized values raises it by what they tell about columns "
            f"that are released as they are: {listed(self.linking)}."
        )

    def _for_inside(self) -> dict[str, Any]:
        return {"n_over": self.n_over, "linking": list(self.linking)}


def judge_rows(
    criteria: Criteria,
    by_counting: RecordMeasures,
    by_models: RecordMeasures | None,
    labels: pd.Index[Any],
    known: tuple[str, ...],
    checks: ReleaseChecks | None,
    linking: tuple[str, ...] = (),
    rows: str = CALLED,
) -> Verdict:
    """Return whether records' own rows keep the criteria.

    Parameters
    ----------
    criteria
        The limits.
    by_counting, by_models
        The probability of the right row among those that match, and by the models if there are any:
        then these are judged.
    labels
        Of the records.
    known
        The variables that are released as they are, and known.
    checks
        What was found about the release, where there are models.
    linking
        The columns that are released as they are, are not known, and predict what is.
    rows
        What records are called.
    """
    if isinstance(criteria, Criteria):
        if not criteria.limits:
            raise OptionError(
                "An identification is of all variables together: the criteria need a limit "
                "beside variables=, such as Criteria(gain=0.1)."
            )
        if "log_odds_range" in criteria.limits:
            raise OptionError(
                "An identification risk has no log_odds_range; limit gain, probability or lift."
            )
    n = len(labels)
    n_found = int((by_counting[JOINT, "gain"].before == 1.0).sum())
    found = KnownReason(PASSED, known, n_found, n, rows)

    def judged(measures: RecordMeasures, about: tuple[Reason, ...] | None) -> Verdict:
        return judge(
            criteria, measures, labels, checks, n, rows=rows, sought=_RIGHT_ROW, about_release=about
        )

    counted_ = judged(by_counting, (found,))
    if by_models is None:
        return counted_
    n_over = int((counted_.records == "over").any(axis=1).sum()) if len(counted_.records) else 0
    verdict = judged(by_models, None)
    matches = MatchesReason(PASSED, n_over, n, linking, rows)
    return replace(verdict, reasons=(*verdict.reasons, found, matches))
