"""Whether a release keeps the limits by what two files tell, and what these cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from synrisk.audit.copies import FALSE_ALARMS, Compared, Copies
from synrisk.audit.rows_in_place import InPlace
from synrisk.base.errors import OptionError, listed
from synrisk.core.measures import RecordMeasures
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.reasons import CALLED, FAILED, PASSED, UNJUDGED, AsIsReason, Reason
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
        In which ways they are, or may be.
    n_named
        How many people have such a row.
    is_part
        Whether other columns are released as they are.
    """

    kind = "copies"
    is_check = True
    found: tuple[Compared, ...]
    n_named: int
    is_part: bool

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without any count."""
        where = " in the columns that are not released as they are" if self.is_part else ""
        told = "" if sharing else " " + " ".join(one.sentence for one in self.found)
        if self.outcome == PASSED:
            return f"Rows are no closer to confidential records than chance brings them{where}."
        if self.outcome == UNJUDGED:
            return (
                f"Whether a few people's numbers were copied{where} cannot be said: some are "
                f"repeated.{told}"
            )
        once = f"(an honest release is so once in {1 / FALSE_ALARMS:,.0f})"
        named = f" {self.n_named:,} are named in records." if self.n_named and not sharing else ""
        return (
            f"Rows are closer to confidential records than chance brings them{where} {once}."
            f"{told}{named}"
        )

    def _for_inside(self) -> dict[str, Any]:
        return {"n_named": self.n_named, "found": [one.sentence for one in self.found]}


@dataclass(frozen=True)
class AsIsWarning(AsIsReason):
    """What two files show to be released as it is: nobody has said that it may be.

    Attributes
    ----------
    n_alone, n_records
        How many records nobody shares the values of these columns with.
    rows
        What records are called.
    """

    n_alone: int
    n_records: int
    rows: str = CALLED

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "warning"

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without a count."""
        text = super().sentence(sharing=sharing)
        if sharing or not self.n_alone:
            return text
        return (
            f"{text} {self.n_alone:,} of {self.n_records:,} {self.rows} are alone with their "
            "values there: these are theirs, for whoever knows them."
        )

    def _for_inside(self) -> dict[str, Any]:
        return {"n_alone": self.n_alone}


@dataclass(frozen=True)
class GivenAwayReason(Reason):
    """What is called sensitive, and is released as it is."""

    kind = "given away"
    is_check = True
    columns: tuple[str, ...]

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - the same for everybody
        """Return it in words."""
        return (
            f"Called sensitive, and released as they are: {listed(self.columns)}. The confidential "
            "values themselves stand in the release, in this order or another."
        )

    def _for_anyone(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}


@dataclass(frozen=True)
class InPlaceReason(Reason):
    """What is called sensitive, and stands in the rows of the people whose it is."""

    kind = "in place"
    is_check = True
    columns: tuple[str, ...]

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without what a reader could undo it by."""
        if sharing:
            return (
                "The order of the rows may tell of the records. Shuffle the rows, and audit anew."
            )
        which = f": {listed(self.columns)}"
        if self.outcome == UNJUDGED:
            return (
                "Every row of a dataset has the value of the record in its place, which may be "
                f"chance, in columns that are called sensitive{which}. Shuffle the rows."
            )
        return (
            "Confidential values of what is called sensitive stand in the release in the order of "
            f"the records, as they are or nearly, far oftener than by chance{which}. Who knows the "
            "order of the confidential file reads them there. Shuffle the rows, and audit anew."
        )

    def _for_inside(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}


@dataclass(frozen=True)
class GapsReason(Reason):
    """Gaps of the release where people have values: which were left blank may tell these."""

    kind = "gaps"
    is_check = True
    columns: tuple[str, ...]

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - the same for everybody
        """Return it in words."""
        return (
            "Missing in the release more often than in the confidential file: "
            f"{listed(self.columns)}. Values that were left blank because of what they are give "
            "themselves away by that, and this is not judged. Release values there, or take the "
            "column out."
        )

    def _for_anyone(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}


@dataclass(frozen=True)
class AddedReason(Reason):
    """What the release holds beside the confidential columns, and nobody has looked at."""

    kind = "added"
    columns: tuple[str, ...]

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "warning"

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - the same for everybody
        """Return it in words."""
        return (
            f"In the release alone, and not looked at: {listed(self.columns)}. They may hold what "
            "gives people away."
        )

    def _for_anyone(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}


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
    added: tuple[str, ...],
    within: Mapping[str, str],
    rows: str = CALLED,
    *,
    n_alone: int = 0,
    with_more_gaps: tuple[str, ...] = (),
    in_rows: InPlace | None = None,
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
    kept, added
        The columns that are released as they are, and those that the release alone has.
    within
        What counts as the truth, in words, by variable.
    rows
        What records are called.
    n_alone
        How many are alone with their values in what is released as it is.
    with_more_gaps
        The columns that have more gaps in the release than in the confidential file.
    in_rows
        The sensitive columns whose values stand in their people's rows.
    """
    if isinstance(criteria, Criteria) and criteria.log_odds_range is not None:
        raise OptionError(
            "log_odds_range is not known of two files: guesses are not laid out. Limit the gain, "
            "the probability or the lift."
        )
    outcome = FAILED if copies.is_too_close else UNJUDGED if copies.doubts else PASSED
    found = copies.found or copies.doubts
    beside: list[Reason] = [CopiesReason(outcome, found, int(copies.named.sum()), bool(kept))]
    given_away = tuple(name for name in kept if name in measures.variables)
    if given_away:
        beside.append(GivenAwayReason(FAILED, given_away))
    if in_rows is not None:
        told = ((FAILED, in_rows.surely), (UNJUDGED, in_rows.perhaps))
        beside += [InPlaceReason(outcome, names) for outcome, names in told if names]
    if with_more_gaps:
        beside.append(GapsReason(UNJUDGED, with_more_gaps))
    if kept:
        beside.append(AsIsWarning(PASSED, kept, n_alone, len(labels), rows))
    if added:
        beside.append(AddedReason(PASSED, added))
    variables = measures.variables
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
        joint=variables[0] if len(variables) == 1 else "value of any sensitive column",
    )
