"""Whether a release keeps the limits by what two files tell, and what these cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from synrisk.audit.copies import FALSE_ALARMS, Compared, Copies
from synrisk.base.errors import OptionError
from synrisk.core.measures import RecordMeasures
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.reasons import CALLED, FAILED, PASSED, AsIsReason, Reason
from synrisk.verdict.verdict import Verdict, judge

ASSUMED = (
    "Two files do not tell how the release was made. The intruder here knows other columns of a "
    "person and all other people, and trusts the rows nearest to the person as far as such rows "
    "are right for others. One who also knows the models is not evaluated: a release that passes "
    "may still disclose."
)


@dataclass(frozen=True)
class CopiesReason(Reason):
    """Whether rows are closer to people than chance brings them.

    Attributes
    ----------
    found
        In which ways they are.
    n_named
        How many people have such a row.
    """

    kind = "copies"
    found: tuple[Compared, ...]
    n_named: int

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without any count."""
        once = f"(an honest release is so once in {1 / FALSE_ALARMS:,.0f})"
        if self.outcome == PASSED:
            return "Rows are no closer to confidential records than chance brings them."
        closer = f"Rows are closer to confidential records than chance brings them {once}."
        if sharing:
            return closer
        told = " ".join(one.sentence for one in self.found)
        named = f" {self.n_named:,} are named in records." if self.n_named else ""
        return f"{closer} {told}{named}"

    def _for_inside(self) -> dict[str, Any]:
        return {"n_named": self.n_named, "found": [one.sentence for one in self.found]}


@dataclass(frozen=True)
class UnknownReason(Reason):
    """What two files cannot tell: it stands beside every verdict on them."""

    kind = "not known"
    caveat = "as far as two files tell"

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "note"

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - the same for everybody
        """Return it in words."""
        return ASSUMED


def judge_audit(
    criteria: Criteria,
    measures: RecordMeasures,
    labels: pd.Index[Any],
    copies: Copies,
    kept: tuple[str, ...],
    within: Mapping[str, str],
    rows: str = CALLED,
) -> Verdict:
    """Return whether people keep the criteria, and whether they were copied.

    Parameters
    ----------
    criteria
        The limits.
    measures
        What is limited, for each confidential record.
    labels
        Of the records.
    copies
        How near rows come to people.
    kept
        The columns that are released as they are.
    within
        What counts as the truth, in words, by variable.
    rows
        What records are called.
    """
    if isinstance(criteria, Criteria) and criteria.log_odds_range is not None:
        raise OptionError(
            "log_odds_range is not known of two files: guesses are not laid out. Limit the gain, "
            "the probability or the lift."
        )
    outcome = FAILED if copies.is_too_close else PASSED
    beside: list[Reason] = [CopiesReason(outcome, copies.found, int(copies.named.sum()))]
    if kept:
        beside.append(AsIsReason(PASSED, kept))
    return judge(
        criteria,
        measures,
        labels,
        None,
        len(labels),
        within=within,
        rows=rows,
        about_release=(*beside, UnknownReason(PASSED)),
        kind="sensitive",
        joint="value of any column",
    )
