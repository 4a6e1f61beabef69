"""Whether a release keeps the limits on its risk, with reasons.

Each limit is judged by itself, and all must hold. A record exceeds a limit where its number is
above it; at the limit it does not. A record counts as undecided where its number or its error is
not known, where it cannot be relied on, or where the limit lies within 1.96 standard errors; a
verdict that could go either way by the undecided records cannot be judged. Nothing unknown passes.
A release whose rows follow the records, or whose seed can be guessed, fails; one that does not look
like its models otherwise cannot be judged, as every number assumes that it came from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    _largest_gain: float

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

    def beside(self, further: Sequence[RecordMeasures | Outlook]) -> Verdict:
        """Return this verdict with what further releases of the same fit would have given."""
        if not further:
            return self
        found = [self._outlook(one) for one in further]
        n_kept, largest = sum(one.keeps for one in found), tuple(one.largest_gain for one in found)
        kept = self.of_limits == PASSED
        reason = FurtherReason(PASSED, n_kept, largest, self._largest_gain, kept)
        return replace(self, reasons=(*self.reasons, reason))

    def _outlook(self, found: RecordMeasures | Outlook) -> Outlook:
        return found if isinstance(found, Outlook) else Outlook.of(self.criteria, [found])

    def under(self, tolerances: Mapping[str, RecordMeasures | Outlook]) -> Verdict:
        """Return this verdict with a warning where other tolerances would have failed it."""
        failing = tuple(name for name, one in tolerances.items() if not self._outlook(one).keeps)
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


@dataclass(frozen=True)
class Outlook:
    """What is to be known of numbers without their errors.

    Attributes
    ----------
    keeps
        Whether the limits are kept by them.
    largest_gain
        Of all variables together, and of each.
    """

    keeps: bool
    largest_gain: float

    @classmethod
    def of(cls, criteria: Criteria, parts: Iterable[RecordMeasures]) -> Outlook:
        """Return that of records, a part of them after the other."""
        n_records, largest = 0, []
        n_over: Counter[tuple[str, int]] = Counter()
        shares: dict[tuple[str, int], float] = {}
        for measures in parts:
            n_records += measures.n_records
            largest.append(_largest_gain(measures))
            for of, limits in _limits_by_part(criteria, measures.variables).items():
                for k, group in enumerate(limits.groups):
                    over = [
                        measures[of, name].value > measures[of, name].at_limit(limit)
                        for name, limit in group.items()
                    ]
                    shares[of, k] = limits.share
                    n_over[of, k] += int(np.all(over, axis=0).sum())
        keeps = all(n_over[key] / n_records <= share for key, share in shares.items())
        return cls(keeps, float(np.max(largest)))


def _largest_gain(measures: RecordMeasures) -> float:
    return max(float(measures[of, "gain"].value.max()) for of in (JOINT, *measures.variables))


@dataclass(frozen=True)
class RecordPart:
    """Some records that are judged: what is limited, their labels, and what is doubted of them."""

    measures: RecordMeasures
    labels: pd.Index[Any]
    doubts: Sequence[Doubt] = ()


def judge(
    criteria: Criteria,
    measures: RecordMeasures,
    labels: pd.Index[Any],
    checks: ReleaseChecks | None,
    n_records: int,
    doubts: Sequence[Doubt] = (),
    within: Mapping[str, str] | None = None,
    rows: str = CALLED,
    **about: Any,
) -> Verdict:
    """Return whether records keep the criteria; arguments are those of `judge_parts`."""
    parts = (RecordPart(measures, labels, doubts),)
    return judge_parts(
        criteria, measures.variables, parts, checks, n_records, within, rows, **about
    )


def judge_parts(
    criteria: Criteria,
    variables: tuple[str, ...],
    parts: Iterable[RecordPart],
    checks: ReleaseChecks | None,
    n_records: int,
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
    variables
        Those that there are measures of.
    parts
        The evaluated records, some after the other; the same doubts about each part, in one order.
    checks
        What was found about the release, or None.
    n_records
        How many records there are; those that were not evaluated are undecided.
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
    if isinstance(criteria.variables, Mapping):
        for name in criteria.variables:
            if name not in (*variables, *left_out):
                raise OptionError(
                    f"The criteria have limits on {name!r}, which is not {kind}."
                    f"{nearest(name, variables)} The {kind} variables are {listed(variables)}."
                )
    limited = _limits_by_part(criteria, variables)
    counts = _Counts(_says_one_twice(limited, variables))
    table = pd.concat([_add_part(counts, limited, part) for part in parts])
    alone = variables[0] if counts.says_one_twice else None
    if alone:
        table = table.drop(columns=[_column(alone, one) for one in limited.pop(alone).groups])
        table = table[_is_told(table)]
    n_left_out = n_records - counts.n_records
    reasons: list[Reason] = []
    for of, limits in limited.items():
        for group in limits.groups:
            column = _column(of, group)
            n_over, why = counts.over[column], counts.why[column]
            reason = LimitReason(
                _outcome(limits.share, n_records, n_over, why, n_left_out),
                of,
                group,
                limits.share,
                n_records,
                n_over,
                {k: n for k, n in {**why, NOT_EVALUATED: n_left_out}.items() if n},
                counts.before[column],
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
    return Verdict(criteria, tuple(reasons), table, counts.largest_gain)


@dataclass
class _Counts:
    """How many records exceed each limit, or are undecided; by what the limit is called.

    `says_one_twice` tells whether the limits on the one variable say what those on all do.
    """

    says_one_twice: bool
    n_records: int = 0
    largest_gain: float = -np.inf
    over: Counter[str] = field(default_factory=Counter)
    before: Counter[str] = field(default_factory=Counter)
    why: dict[str, dict[str, int]] = field(default_factory=dict)


def _column(of: str, group: Iterable[str]) -> str:
    name = "_and_".join(group)
    return name if of == JOINT else f"{name}_{of}"


def _add_part(counts: _Counts, limited: Mapping[str, Criteria], part: RecordPart) -> pd.DataFrame:
    """Count the records of a part, and return how those that are not within all limits are."""
    measures, states = part.measures, {}
    for of, limits in limited.items():
        for group in limits.groups:
            own = [(measures[of, name], limit) for name, limit in group.items()]
            doubts = [doubt for doubt in part.doubts if of in (JOINT, doubt.variable)]
            over, inside, why = _decided(own, doubts)
            before = np.all([measure.exceeded_before(limit) for measure, limit in own], axis=0)
            column = _column(of, group)
            states[column] = np.where(over, "over", np.where(inside, "within", "undecided"))
            counts.over[column] += int(over.sum())
            counts.before[column] += int((before & over).sum())
            whys = counts.why.setdefault(column, dict.fromkeys(why, 0))
            for reason, n in why.items():
                whys[reason] += n
    counts.n_records += len(part.labels)
    if counts.says_one_twice:
        (name,) = measures.variables
        counts.says_one_twice = _are_equal(measures, name, limited[name])
    if (JOINT, "gain") in measures:
        counts.largest_gain = max(counts.largest_gain, _largest_gain(measures))
    table = pd.DataFrame(states, index=part.labels)
    return table[_is_told(table)]


def _is_told(table: pd.DataFrame) -> pd.Series[bool]:
    return (table != "within").any(axis=1)


def _says_one_twice(limited: Mapping[str, Criteria], variables: tuple[str, ...]) -> bool:
    """Tell whether the limits on the one variable there is are those on all variables."""
    if len(variables) > 1 or len(limited) == 1:
        return False
    one, two = limited[JOINT], limited[variables[0]]
    return (one.groups, one.share) == (two.groups, two.share)


def _are_equal(measures: RecordMeasures, name: str, limits: Criteria) -> bool:
    """Tell whether what is limited of a variable are the numbers of all variables."""
    return all(
        np.array_equal(measures[JOINT, one].value, measures[name, one].value, equal_nan=True)
        for group in limits.groups
        for one in group
    )


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
