"""Whether a release keeps the limits on its risk, with reasons.

Each limit is judged by itself, and all must hold. A record exceeds a limit where its number is
above it; at the limit it does not. A record counts as undecided where its number or its error is
not known, where it cannot be relied on, or where the limit lies within 1.96 standard errors; a
verdict that could go either way by the undecided records cannot be judged. Nothing unknown passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from synrisk.base.arrays import BoolArray
from synrisk.base.errors import OptionError, counted, got, listed, nearest
from synrisk.core.measures import JOINT, RecordMeasure, RecordMeasures
from synrisk.risk.doubts import SHARED_WHY, Doubt
from synrisk.risk.release_checks import ReleaseChecks
from synrisk.verdict.criteria import Criteria, MeasureName

Outcome: TypeAlias = Literal["passed", "failed", "cannot be judged"]

PASSED: Outcome = "passed"
FAILED: Outcome = "failed"
UNJUDGED: Outcome = "cannot be judged"

CALLED = "records"  # what rows are called where nobody says that they are people
LEAST_SHARED = 10  # counts below are not told to outsiders, nor is what they leave of the whole
_CONFIDENCE = 1.96
_THOUSANDTH = 0.001
_MARKS = {PASSED: "kept", FAILED: "failed", UNJUDGED: "undecided"}
_NO_ERROR = "the Monte-Carlo error is not known"
_UNRELIABLE = "not reliable"
_TOO_CLOSE = "too close to the limit for the Monte-Carlo error"
_NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True)
class Reason:
    """How one limit, or one check beside the limits, came out.

    Attributes
    ----------
    outcome
        "passed", "failed" or "cannot be judged".
    """

    outcome: Outcome

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return _MARKS[self.outcome]

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without small counts."""
        raise NotImplementedError

    def to_json(self, *, sharing: bool = False) -> dict[str, Any]:
        """Return it as JSON has it; with `sharing` small counts are null, others in tens."""
        raise NotImplementedError


@dataclass(frozen=True)
class LimitReason(Reason):
    """How one limit came out.

    Attributes
    ----------
    of
        "joint", or a variable.
    limits, share
        The limits by measure ("gain", "probability", "lift", "log_odds_range"), all of which a
        record must exceed to count; and the share of the records that may.
    within
        What counts as the truth, in words: "within 10 %"; nothing for the truth alone.
    rows
        What records are called: "records", or "people" where somebody says that they are.
    n_records
        The number of confidential records.
    n_over
        How many exceed the limit beyond doubt.
    n_undecided
        Of how many that cannot be said; `undecided` counts them by why.
    n_before
        Where the limit is on the probability, for how many the prior exceeds it already.
    unit
        Counts are told to outsiders in such units: as many as one record may move.
    """

    of: str
    limits: Mapping[MeasureName, float]
    share: float
    n_records: int
    n_over: int
    undecided: Mapping[str, int]
    n_before: int
    unit: int = LEAST_SHARED
    within: str = ""
    rows: str = CALLED

    @property
    def n_evaluated(self) -> int:
        """How many records were evaluated."""
        return self.n_records - self.undecided.get(_NOT_EVALUATED, 0)

    @property
    def n_undecided(self) -> int:
        """Of how many records it cannot be said whether they exceed the limit."""
        return sum(self.undecided.values())

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without small counts."""
        n_over, n_undecided = self._shared() if sharing else (self.n_over, self.n_undecided)
        text = (
            f"For {self._records_over(n_over, sharing=sharing)} {self._exceeds(none=n_over == 0)}"
        )
        whom = "them" if self.n_evaluated == self.n_records else "all"
        if self.n_over or self.share:
            text += f"; it may for {f'{_percent(self.share)} of {whom}' if self.share else 'none'}"
        if self.n_undecided:
            about = "about " if sharing else ""
            others = "others" if n_undecided is None else f"{about}{n_undecided:,}"
            text += f"; for {others} this cannot be said ({'; '.join(self._whys(sharing=sharing))})"
        text += "."
        if self.n_before:
            where = "There" if sharing else f"For {self.n_before:,} of these"
            text += f" {where} the prior exceeds it already, before the release."
        return text

    def _whys(self, *, sharing: bool) -> list[str]:
        """Return why records are undecided; to outsiders doubts are all the same."""
        known = (_NO_ERROR, _UNRELIABLE, _TOO_CLOSE, _NOT_EVALUATED)
        whys = [why if why in known or not sharing else SHARED_WHY for why in self.undecided]
        return list(dict.fromkeys(whys))

    def _records_over(self, n_over: int | None, *, sharing: bool) -> str:
        few = f"fewer than {self.unit}"
        everyone = self._everyone(sharing=sharing)
        if n_over == 0:
            return f"none of {everyone}"
        if n_over == self.n_evaluated:
            return f"all {everyone.removeprefix('the ')}"
        if n_over is not None and sharing:
            return f"about {n_over:,} of {everyone}"
        if n_over is not None:
            return f"{n_over:,} of {everyone} ({_percent(n_over / self.n_evaluated)})"
        # Beside a share the outcome bounds the number from one side, so no bound is told.
        if self.share:
            bound = "more than" if self.outcome == FAILED else "at most"
            return f"{bound} the allowed share of {everyone}"
        if self.n_evaluated < self.unit:
            return f"some of {everyone}"
        return f"{few if self.n_over < self.unit else f'all but {few}'} of {everyone}"

    def _everyone(self, *, sharing: bool) -> str:
        """Return of how many records the limit was looked at."""
        n, n_records = self.n_evaluated, self.n_records
        if sharing and n < LEAST_SHARED:
            return f"fewer than {LEAST_SHARED} {self.rows}{'' if n == n_records else ' evaluated'}"
        if n == n_records:
            return f"{n:,} {self.rows}"
        if sharing and n > n_records - LEAST_SHARED:
            return f"the {self.rows} evaluated (nearly all {n_records:,})"
        return f"the {n:,} {self.rows} evaluated (there are {n_records:,})"

    def _exceeds(self, *, none: bool) -> str:
        return " and ".join(self._exceeds_one(*limit, none=none) for limit in self.limits.items())

    def _exceeds_one(self, measure: MeasureName, limit: float, *, none: bool) -> str:
        what = "true values" if self.of == "joint" else f"true {self.of}"
        belief = f"an intruder's probability of the {what}{self.within and ' ' + self.within}"
        whose, verb, by = {
            "gain": ("the release", "raise", f" {belief} by"),
            "probability": (belief, "exceed", ""),
            "lift": ("the release", "multiply", f" {belief} by"),
            "log_odds_range": ("the release", "move", " an intruder's log odds between guesses by"),
        }[measure]
        shown = f"{100 * limit:g} percentage points" if measure == "gain" else f"{limit:g}"
        more = f"{by} more than {shown}" if by else f" {shown}"
        if none:
            return f"does {whose} {verb}{more}"
        return f"{whose} {'multiplies' if verb == 'multiply' else verb + 's'}{more}"

    def _shared(self) -> tuple[int | None, int | None]:
        """Return the counts that outsiders may see, in units; None for one that they may not."""
        # That nobody exceeds a limit which nobody may is what "passed" says.
        if self.outcome == PASSED and self.share == 0:
            return 0, 0
        n_over = _shareable(self.n_over, self.n_records, self.unit)
        n_undecided = _shareable(self.n_undecided, self.n_records, self.unit)
        n_within = self.n_records - self.n_over - self.n_undecided
        if n_within < self.unit or n_over is None:  # or these would follow by subtraction
            n_undecided = None
        return n_over, n_undecided

    def to_json(self, *, sharing: bool = False) -> dict[str, Any]:
        """Return it as JSON has it; with `sharing` small counts are null, others in units."""
        n_over, n_undecided = self._shared() if sharing else (self.n_over, self.n_undecided)
        hidden = sharing and self.n_records < LEAST_SHARED
        stored: dict[str, Any] = {
            "kind": "limit",
            "of": self.of,
            "limits": dict(self.limits),
            "share": self.share,
            "outcome": self.outcome,
            "n_records": None if hidden else self.n_records,
            "n_over": n_over,
            "n_undecided": n_undecided,
            "sentence": self.sentence(sharing=sharing),
        }
        if not sharing:
            stored |= {"undecided": dict(self.undecided), "n_before": self.n_before}
        return stored


@dataclass(frozen=True)
class ReleaseReason(Reason):
    """Whether the release looks as if it came from the models, which every number assumes.

    Attributes
    ----------
    failures
        What `risk.release_check` found, for inside use.
    unchecked
        The variables whose models could not be compared with the release, with the dataset where
        others could.
    """

    failures: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    def mark(self) -> str:
        """What it says of the release, in a word: a check that failed is no doubt."""
        return "failed" if self.failures else super().mark

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without what was found."""
        if self.failures and not sharing:
            return " ".join(self.failures)
        if self.failures:
            return (
                f"The release fails {counted(len(self.failures), 'check')} of what the risk "
                "assumes of it."
            )
        if self.unchecked:
            accepted = " The criteria accept that." if self.outcome == PASSED else ""
            return (
                "Whether the release came from these models, which the risk assumes, could not be "
                f"checked for {listed(self.unchecked)}.{accepted}"
            )
        if self.outcome == UNJUDGED:
            return (
                "Whether the release came from these models, which the risk assumes, was not "
                "checked: the risk was evaluated with diagnostics=False."
            )
        return "The release looks as if it came from these models, which the risk assumes."

    def to_json(self, *, sharing: bool = False) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "kind": "release",
            "outcome": self.outcome,
            "n_failures": len(self.failures),
            "unchecked": list(self.unchecked),
            "sentence": self.sentence(sharing=sharing),
        }


@dataclass(frozen=True)
class AsIsReason(Reason):
    """What the release holds as it is: everybody can read it there, and no limit speaks of it.

    Attributes
    ----------
    columns
        Those of the confidential data.
    """

    columns: tuple[str, ...]

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "note"

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - alike for everybody
        """Return it in words."""
        return (
            f"Released as they are, and not judged here: {listed(self.columns)}. Whether they "
            "may be known is for you to say."
        )

    def to_json(self, *, sharing: bool = False) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "kind": "as is",
            "outcome": self.outcome,
            "columns": list(self.columns),
            "sentence": self.sentence(sharing=sharing),
        }


@dataclass(frozen=True)
class ToleranceReason(Reason):
    """Whether another tolerance would have failed a release that keeps the limits.

    Attributes
    ----------
    failing
        "half", "twice": the tolerances under which they are not kept.
    """

    failing: tuple[str, ...]

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "warning"

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - alike for everybody
        """Return it in words."""
        return (
            f"With {' or '.join(self.failing)} the tolerance these limits would not be kept: how "
            "near to the truth counts as learnt has decided."
        )

    def to_json(self, *, sharing: bool = False) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "kind": "tolerance",
            "outcome": self.outcome,
            "failing": list(self.failing),
            "sentence": self.sentence(sharing=sharing),
        }


@dataclass(frozen=True)
class FurtherReason(Reason):
    """What other releases of the same fit would have given: a release may have been chosen.

    Attributes
    ----------
    n_kept
        How many of them keep the limits, by their numbers.
    largest
        The largest gain in each, of all variables together or of one.
    own
        In this release.
    is_kept
        Whether this release keeps them.
    """

    n_kept: int
    largest: tuple[float, ...]
    own: float
    is_kept: bool

    @property
    def is_lucky(self) -> bool:
        """Whether this release keeps limits that half of the others do not."""
        return self.is_kept and 2 * self.n_kept <= len(self.largest)

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "warning" if self.is_lucky else "note"

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without numbers of single records."""
        n = len(self.largest)
        kept = "all" if self.n_kept == n else "none" if not self.n_kept else f"{self.n_kept:,}"
        text = f"Of {n:,} further releases of the same fit {kept} would keep these limits"
        if not sharing:
            low, high, own = (
                _gain(one) for one in (min(self.largest), max(self.largest), self.own)
            )
            range_ = low if low == high else f"{low} to {high}"
            text += f"; the largest gain in them is {range_}, in this one {own}"
        if self.is_lucky:
            text += (
                ". This one is lucky: if it was chosen among several, or made again until it "
                "passed, it should not be released; a simpler model or more records would keep the "
                "limits reliably"
            )
        return f"{text}."

    def to_json(self, *, sharing: bool = False) -> dict[str, Any]:
        """Return it as JSON has it."""
        stored: dict[str, Any] = {
            "kind": "further releases",
            "outcome": self.outcome,
            "n_releases": len(self.largest),
            "n_kept": self.n_kept,
            "sentence": self.sentence(sharing=sharing),
        }
        return stored if sharing else stored | {"largest": list(self.largest), "own": self.own}


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

    def marked(self, *, sharing: bool = False) -> list[tuple[str, str]]:
        """Return a mark and a sentence by reason: those that decide first.

        Marks are "kept", "failed", "undecided"; "note" for what decides nothing, or "warning" where
        it speaks against a release that passes.
        """
        return [(reason.mark, reason.sentence(sharing=sharing)) for reason in self._ranked()]

    def _ranked(self) -> list[Reason]:
        order: list[Outcome] = [self.outcome, FAILED, UNJUDGED, PASSED]
        return sorted(self.reasons, key=lambda reason: order.index(reason.outcome))

    def sentences(self, *, sharing: bool = False) -> list[str]:
        """Return a sentence for each reason, those that decide first.

        Parameters
        ----------
        sharing
            Whether the words may leave the office: then there is no count below 10, nor one that
            leaves fewer than 10 of the records, others are in tens, and there is nothing about
            single records.
        """
        return [sentence for _, sentence in self.marked(sharing=sharing)]

    def to_json(self, *, sharing: bool = False) -> dict[str, Any]:
        """Return outcome, criteria and reasons as JSON has them; no record is named."""
        return {
            "outcome": self.outcome,
            "criteria": self.criteria.to_json(),
            "reasons": [reason.to_json(sharing=sharing) for reason in self.reasons],
        }

    def __str__(self) -> str:
        policy = f" ({self.criteria.name})" if self.criteria.name else ""
        lines = [f"{self.outcome[0].upper()}{self.outcome[1:]}{policy}."]
        marked = (f"- {mark.capitalize()}: {sentence}" for mark, sentence in self.marked())
        return "\n".join([*lines, *marked])

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
    n_datasets: int = 1,
    doubts: Sequence[Doubt] = (),
    within: Mapping[str, str] | None = None,
    rows: str = CALLED,
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
    n_datasets
        How many synthetic datasets there are.
    doubts
        Why the risk of some records is not known: they are undecided.
    within
        What counts as the truth, in words, by variable and for the joint.
    rows
        What records are called.
    """
    if not isinstance(criteria, Criteria):
        raise OptionError(
            f"verdict takes criteria, such as Criteria(probability=0.2); got {got(criteria)}."
        )
    variables = measures.variables
    if isinstance(criteria.variables, Mapping):
        for name in criteria.variables:
            if name not in variables:
                raise OptionError(
                    f"The criteria have limits on {name!r}, which is not synthesized."
                    f"{nearest(name, variables)} The synthesized variables are {listed(variables)}."
                )
    reasons: list[Reason] = []
    states: dict[str, Any] = {}
    for of, limits in _limits_by_part(criteria, variables).items():
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
                {k: n for k, n in {**why, _NOT_EVALUATED: n_records - len(labels)}.items() if n},
                int((before & over).sum()),
                LEAST_SHARED * n_datasets,
                (within or {}).get(of, ""),
                rows,
            )
            reasons.append(reason)
    reasons.append(
        _release_reason(checks, variables, accept=criteria.unchecked_release == "accept")
    )
    if checks is not None and checks.as_is:
        reasons.append(AsIsReason(PASSED, checks.as_is))
    table = pd.DataFrame(states, index=labels)
    return Verdict(criteria, tuple(reasons), table[(table != "within").any(axis=1)], measures)


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
    return ReleaseReason(PASSED if good else UNJUDGED, checks.failures, unchecked)


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


def _shareable(n: int, n_records: int, unit: int) -> int | None:
    """Return a count as outsiders may see it, or None.

    In units, so that the counts of two limits cannot be subtracted to a few records.
    """
    if not unit <= n <= n_records - unit:
        return None
    told = unit * round(n / unit)
    return told if told <= n_records - unit else told - unit


def _gain(value: float) -> str:
    """Return a gain in thousandths."""
    return f"{value:.3f}" if value >= _THOUSANDTH else "below 0.001"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
