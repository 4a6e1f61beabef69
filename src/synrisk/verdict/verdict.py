"""Whether a release keeps the limits on its risk, with reasons.

Each limit is judged by itself, and all must hold. A record exceeds a limit where its number is
above it; at the limit it does not. A record counts as undecided where its number or its error is
not known, where it cannot be relied on, or where the limit lies within 1.96 standard errors; a
verdict that could go either way by the undecided records cannot be judged. Nothing unknown passes.
A release whose rows follow the records, or whose seed can be guessed, fails; one that does not look
like its models otherwise cannot be judged, as every number assumes that it came from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import BoolArray
from synrisk.base.errors import OptionError, counted, got, listed, nearest
from synrisk.core.measures import JOINT, RecordMeasure, RecordMeasures
from synrisk.risk.doubts import Doubt
from synrisk.risk.release_checks import ReleaseChecks
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.left_out import reason_left_out
from synrisk.verdict.reasons import (
    CALLED,
    FAILED,
    NOT_EVALUATED,
    PASSED,
    UNJUDGED,
    AllLimitsReason,
    AsIsReason,
    FurtherReason,
    LimitReason,
    Outcome,
    QuestionReason,
    Reason,
    ReleaseReason,
    ToleranceReason,
)

_CONFIDENCE = 1.96
_NO_ERROR = "the number's error is not known"
_UNRELIABLE = "not reliable"
_ORDER = ("failed", "undecided", "warning", "kept", "void", "note")  # those that decide first
_TOO_CLOSE = "too close to the limit for the number's error"


@dataclass(frozen=True, eq=False, repr=False)
class Verdict:
    """Whether a release keeps the criteria.

    Attributes
    ----------
    criteria
        The limits.
    reasons
        How each limit came out, and the check that the release came from the models.
    """

    criteria: Criteria
    reasons: tuple[Reason, ...]
    _records: pd.DataFrame
    _measures: RecordMeasures

    @property
    def records(self) -> pd.DataFrame:
        """A row for each record that exceeds a limit or is undecided about one: for inside use.

        A column for each limit ("lift", "probability_LogIncome"), with "over", "undecided" or
        "within"; the index holds the records' labels.
        """
        return self._records.copy()

    @property
    def outcome(self) -> Outcome:
        """Say "failed" where a limit does for sure, else "cannot be judged" where anything is."""
        outcomes = {reason.outcome for reason in self.reasons}
        if FAILED in outcomes:
            return FAILED
        return UNJUDGED if UNJUDGED in outcomes else PASSED

    @property
    def of_limits(self) -> Outcome:
        """The outcome of the limits alone, whatever the checks of the release say."""
        limits = tuple(one for one in self.reasons if isinstance(one, LimitReason))
        return replace(self, reasons=limits).outcome

    @property
    def headline(self) -> str:
        """The outcome, with the number of warnings where it passes with any: for inside."""
        n_warnings = sum(mark == "warning" for mark, _ in self.marked())
        text = self.outcome.capitalize()
        if self.outcome == PASSED and n_warnings:
            return f"{text}, with {counted(n_warnings, 'warning')}"
        return text

    def meaning(self, *, sharing: bool = False) -> str:
        """Return in a sentence what follows from the outcome.

        Parameters
        ----------
        sharing
            Whether it may leave the office; warnings do not.
        """
        if self.outcome != PASSED:
            return f"Do not release it{self._why_not()}"
        caveats = [one.caveat for one in self.reasons if one.caveat]
        kept = " ".join(["It keeps the limits", *caveats])
        if sharing:
            told = any(mark == "warning" for mark, _ in self.marked(sharing=True))
            others = "Further warnings" if told else "Warnings"
            return f"{kept}. {others}, if there are any, are told inside alone."
        if self.headline.endswith(("warning", "warnings")):
            return f"{kept}; read what speaks against it before you sign."
        if any(one.unchecked for one in self.reasons if isinstance(one, ReleaseReason)):
            return f"{kept}, but not all that they assume could be checked."
        is_checked = any(one.is_check for one in self.reasons)
        return f"{kept}, and no check speaks against it." if is_checked else f"{kept}."

    def _why_not(self) -> str:
        failed = [one for one in self.reasons if one.mark == "failed"]
        if any(one.voids_limits for one in failed):
            return ": it fails a check, so the limits tell nothing of it."
        if any(isinstance(one, LimitReason) for one in failed):
            return " as it is: a limit is not kept."
        if failed:
            return ": it fails a check."
        if self.of_limits == PASSED:
            return " on this evidence: it keeps the limits, but a check is undecided."
        return " on this evidence: nobody knows whether it keeps the limits."

    def beside(self, further: Sequence[RecordMeasures]) -> Verdict:
        """Return this verdict with what further releases of the same fit would have given."""
        if not further:
            return self
        n_kept = sum(_keeps(self.criteria, measures) for measures in further)
        largest = tuple(map(_largest_gain, further))
        own = _largest_gain(self._measures)
        reason = FurtherReason(PASSED, n_kept, largest, own, self.of_limits == PASSED)
        return replace(self, reasons=(*self.reasons, reason))

    def under(self, tolerances: Mapping[str, RecordMeasures]) -> Verdict:
        """Return this verdict with a warning where other tolerances would have failed it."""
        failing = tuple(
            name for name, found in tolerances.items() if not _keeps(self.criteria, found)
        )
        if not failing:
            return self
        return replace(self, reasons=(*self.reasons, ToleranceReason(PASSED, failing)))

    def asked(self, differences: Sequence[str]) -> Verdict:
        """Return this verdict with a warning where another question was asked."""
        if not differences:
            return self
        return replace(self, reasons=(*self.reasons, QuestionReason(PASSED, tuple(differences))))

    def marked(self, *, sharing: bool = False) -> list[tuple[str, str]]:
        """Return a mark and a sentence by reason: those that decide first.

        Marks are "kept", "failed", "undecided"; "void" for a limit that would be kept, where a
        check shows that limits tell nothing; "note" for what decides nothing, or "warning" where
        it speaks against a release that passes.
        """
        marked = [(one.mark, one.sentence(sharing=sharing)) for one in self._told(sharing=sharing)]
        return sorted(marked, key=lambda one: _ORDER.index(one[0]))

    def _told(self, *, sharing: bool) -> list[Reason]:
        told = [reason for reason in self.reasons if reason.is_shared or not sharing]
        limits = [reason for reason in told if isinstance(reason, LimitReason)]
        if sharing and len(limits) > 1 and self.of_limits != PASSED:
            others = [reason for reason in told if not isinstance(reason, LimitReason)]
            return [AllLimitsReason.of(limits), *others]
        if not any(reason.voids_limits for reason in told):
            return told
        return [one.as_void() if isinstance(one, LimitReason) else one for one in told]

    def sentences(self, *, sharing: bool = False) -> list[str]:
        """Return a sentence for each reason, those that decide first.

        Parameters
        ----------
        sharing
            Whether the words may leave the office: then they say whether the limits are kept, of
            several that are not all kept not which, and no number that records make.
        """
        return [sentence for _, sentence in self.marked(sharing=sharing)]

    def to_json(self, *, sharing: bool = False) -> dict[str, Any]:
        """Return outcome, criteria and reasons as JSON has them; no record is named."""
        return {
            "outcome": self.outcome,
            "headline": self.outcome.capitalize() if sharing else self.headline,
            "meaning": self.meaning(sharing=sharing),
            "criteria": self.criteria.to_json(),
            "reasons": [one.to_json(sharing=sharing) for one in self._told(sharing=sharing)],
        }

    def __str__(self) -> str:
        policy = f" ({self.criteria.name})" if self.criteria.name else ""
        first = f"{self.headline}{policy}. {self.meaning()}"
        marked = (f"- {mark.capitalize()}: {sentence}" for mark, sentence in self.marked())
        return "\n".join([first, *marked])

    def __repr__(self) -> str:
        n_limits = sum(isinstance(reason, LimitReason) for reason in self.reasons)
        return f"<Verdict: {self.outcome}; {counted(n_limits, 'limit')}>"


def _largest_gain(measures: RecordMeasures) -> float:
    return max(float(measures[of, "gain"].value.max()) for of in (JOINT, *measures.variables))


def _keeps(criteria: Criteria, measures: RecordMeasures) -> bool:
    """Tell whether the limits are kept by numbers alone, whatever their errors."""
    for of, limits in _limits_by_part(criteria, measures.variables).items():
        for group in limits.groups:
            over = np.all(
                [
                    measures[of, name].value > measures[of, name].at_limit(limit)
                    for name, limit in group.items()
                ],
                axis=0,
            )
            if over.mean() > limits.share:
                return False
    return True


def judge(
    criteria: Criteria,
    measures: RecordMeasures,
    labels: pd.Index[Any],
    checks: ReleaseChecks | None,
    n_records: int,
    doubts: Sequence[Doubt] = (),
    within: Mapping[str, str] | None = None,
    rows: str = CALLED,
    sought: str = "",
    about_release: Sequence[Reason] | None = None,
    kind: str = "synthesized",
    joint: str = JOINT,
    left_out: Sequence[str] = (),
) -> Verdict:
    """Return whether the records keep the criteria.

    Parameters
    ----------
    criteria
        The limits.
    measures
        What is limited, for each evaluated record.
    labels
        Of the evaluated records.
    checks
        What was found about the release, or None.
    n_records
        How many records there are; those that were not evaluated are undecided.
    doubts
        Why the risk of some records is not known: they are undecided.
    within
        What counts as the truth, in words, by variable and for the joint.
    rows
        What records are called.
    sought
        What the intruder is after, where that is not a record's true values.
    about_release
        What else is to be said of the release, in place of `checks`: these compare it with models,
        which not every measure has.
    kind
        Of the variables, in a word.
    joint
        What the number of all variables together is of, in words.
    left_out
        Variables that were not evaluated: limits on them are undecided.
    """
    if not isinstance(criteria, Criteria):
        raise OptionError(
            f"verdict takes criteria, such as Criteria(probability=0.2); got {got(criteria)}."
        )
    variables = measures.variables
    if isinstance(criteria.variables, Mapping):
        for name in criteria.variables:
            if name not in (*variables, *left_out):
                raise OptionError(
                    f"The criteria have limits on {name!r}, which is not {kind}."
                    f"{nearest(name, variables)} The {kind} variables are {listed(variables)}."
                )
    reasons: list[Reason] = []
    states: dict[str, Any] = {}
    parts = _limits_by_part(criteria, variables)
    alone = _is_alone(parts, measures)
    if alone:
        del parts[alone]
    for of, limits in parts.items():
        for group in limits.groups:
            own = [(measures[of, name], limit) for name, limit in group.items()]
            over, inside, why = _decided(own, [d for d in doubts if of in (JOINT, d.variable)])
            column = "_and_".join(group)
            states[column if of == JOINT else f"{column}_{of}"] = np.where(
                over, "over", np.where(inside, "within", "undecided")
            )
            before = np.all([measure.exceeded_before(limit) for measure, limit in own], axis=0)
            reason = LimitReason(
                _outcome(limits.share, n_records, int(over.sum()), why, n_records - len(labels)),
                of,
                group,
                limits.share,
                n_records,
                int(over.sum()),
                {k: n for k, n in {**why, NOT_EVALUATED: n_records - len(labels)}.items() if n},
                int((before & over).sum()),
                (alone or joint) if of == JOINT else of,
                (within or {}).get(of, ""),
                rows,
                sought,
            )
            reasons.append(reason)
    if about_release is None:
        accept = criteria.unchecked_release == "accept"
        about_release = (_release_reason(checks, (*variables, *left_out), accept=accept),)
    reasons += about_release
    if left_out:
        reasons.append(reason_left_out(criteria, left_out))
    if checks is not None and checks.as_is:
        reasons.append(AsIsReason(PASSED, checks.as_is))
    table = pd.DataFrame(states, index=labels)
    return Verdict(criteria, tuple(reasons), table[(table != "within").any(axis=1)], measures)


def _is_alone(parts: Mapping[str, Criteria], measures: RecordMeasures) -> str | None:
    """Return the one variable there is, if its limits say what those of all variables do."""
    if len(measures.variables) > 1 or len(parts) == 1:
        return None
    (name,) = measures.variables
    same = (parts[JOINT].groups, parts[JOINT].share) == (parts[name].groups, parts[name].share)
    names = [one for group in parts[name].groups for one in group]
    equal = all(
        np.array_equal(measures[JOINT, one].value, measures[name, one].value, equal_nan=True)
        for one in names
    )
    return name if same and equal else None


def _limits_by_part(criteria: Criteria, variables: tuple[str, ...]) -> dict[str, Criteria]:
    parts = {JOINT: criteria}
    for name in variables:
        own = criteria.for_variable(name)
        if own is not None:
            parts[name] = own
    return parts


def _decided(
    limits: Sequence[tuple[RecordMeasure, float]], doubts: Sequence[Doubt]
) -> tuple[BoolArray, BoolArray, dict[str, int]]:
    """Return which records are over all limits, which within one, and why others are undecided."""
    n_records = len(limits[0][0].value)
    open_, why = np.ones(n_records, dtype=bool), {}
    for doubt in doubts:
        why[doubt.why] = int((open_ & doubt.records).sum())
        open_ &= ~doubt.records
    over, within = open_.copy(), np.zeros(n_records, dtype=bool)
    known, reliable = np.ones(n_records, dtype=bool), np.ones(n_records, dtype=bool)
    for measure, limit in limits:
        at_limit, value, error = measure.at_limit(limit), measure.value, measure.error
        is_known = np.isfinite(value) & np.isfinite(error)
        sure = is_known & measure.reliable & open_
        margin = _CONFIDENCE * np.where(is_known, error, 0.0)
        with np.errstate(invalid="ignore"):
            over &= sure & (value - margin > at_limit)
            within |= sure & (value + margin <= at_limit)
        known &= is_known
        reliable &= measure.reliable
    left = open_ & ~over & ~within
    return (
        over,
        within,
        {
            **why,
            _NO_ERROR: int((left & ~known).sum()),
            _UNRELIABLE: int((left & known & ~reliable).sum()),
            _TOO_CLOSE: int((left & known & reliable).sum()),
        },
    )


def _outcome(
    share: float, n_records: int, n_over: int, why: Mapping[str, int], n_left_out: int
) -> Outcome:
    # Divided, not multiplied: 29 of 100 is 0.29 to the last bit, 0.29 · 100 is below 29.
    if n_over / n_records > share:
        return FAILED
    if (n_over + sum(why.values()) + n_left_out) / n_records <= share:
        return PASSED
    return UNJUDGED


def _release_reason(
    checks: ReleaseChecks | None, variables: tuple[str, ...], *, accept: bool
) -> ReleaseReason:
    if checks is None:
        return ReleaseReason(UNJUDGED, (), ())
    unchecked = _unchecked(checks, variables)
    good = not checks.failures and (accept or not unchecked)
    outcome = PASSED if good else FAILED if checks.discloses else UNJUDGED
    return ReleaseReason(outcome, checks.failures, unchecked)


def _unchecked(checks: ReleaseChecks, variables: tuple[str, ...]) -> tuple[str, ...]:
    """Return what was not compared: one dataset that was does not speak for another."""
    missed: list[str] = []
    for name in variables:
        datasets = [one for one in checks.distances if one.variable == name]
        without = [d for variable, d in checks.unchecked if variable == name]
        if len(without) == len(datasets):  # also where there is none
            missed.append(name)
        else:
            missed += [f"{name} in dataset {number}" for number in without]
    return tuple(missed)
