"""Why a release passes or does not: how each limit came out, and what stands beside the limits.

What leaves the office says of a limit whether it is kept, and no count: whoever knows everybody
else could try values of one record until the same counts come out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

from synrisk.base.errors import listed
from synrisk.core.measures import JOINT
from synrisk.verdict.criteria import MeasureName

Outcome: TypeAlias = Literal["passed", "failed", "cannot be judged"]

PASSED: Outcome = "passed"
FAILED: Outcome = "failed"
UNJUDGED: Outcome = "cannot be judged"

CALLED = "records"  # what rows are called where nobody says that they are people
NOT_EVALUATED = "not evaluated"
_THOUSANDTH = 0.001
_UNCHECKED = "the risk was evaluated with diagnostics=False, or the records are not in memory"
_MARKS = {PASSED: "kept", FAILED: "failed", UNJUDGED: "undecided"}


@dataclass(frozen=True)
class Reason:
    """How one limit, or one check beside the limits, came out.

    Attributes
    ----------
    outcome
        "passed", "failed" or "cannot be judged".
    kind
        What it is about.
    is_shared
        Whether it is told outside.
    is_check
        Whether it is of what limits assume of a release, or do not see.
    caveat
        How far a verdict that passes goes, where it does not go all the way.
    """

    kind: ClassVar[str]
    is_shared: ClassVar[bool] = True
    is_check: ClassVar[bool] = False
    caveat: ClassVar[str] = ""
    outcome: Outcome

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return _MARKS[self.outcome]

    @property
    def voids_limits(self) -> bool:
        """Whether limits tell nothing of the release, as what they assume does not hold."""
        return False

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without any number that records make."""
        raise NotImplementedError

    def to_json(self, *, sharing: bool = False) -> dict[str, Any]:
        """Return it as JSON has it; with `sharing` without any number that records make."""
        told = {"kind": self.kind, "outcome": self.outcome, **self._for_anyone()}
        inside = {} if sharing else self._for_inside()
        return {**told, **inside, "sentence": self.sentence(sharing=sharing)}

    def _for_anyone(self) -> dict[str, Any]:
        return {}

    def _for_inside(self) -> dict[str, Any]:
        return {}


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
    n_records
        The number of confidential records.
    n_over
        How many exceed the limit beyond doubt.
    undecided
        Of how many that cannot be said, by why.
    n_before
        Where the limit is on the probability, for how many the prior exceeds it already.
    named
        What it is called: "joint", or a variable, also where there is no other.
    within
        What counts as the truth, in words: "within 10 %"; nothing for the truth alone.
    rows
        What records are called: "records", or "people" where somebody says that they are.
    sought
        What the intruder is after, where that is not a record's true values.
    is_void
        Whether it would be kept, but a check shows that limits tell nothing of the release.
    """

    kind = "limit"
    of: str
    limits: Mapping[MeasureName, float]
    share: float
    n_records: int
    n_over: int
    undecided: Mapping[str, int]
    n_before: int
    named: str = JOINT
    within: str = ""
    rows: str = CALLED
    sought: str = ""
    is_void: bool = False

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "void" if self.is_void else super().mark

    def as_void(self) -> LimitReason:
        """Return it for a release of which limits tell nothing: one that is not kept stays so."""
        return replace(self, outcome=UNJUDGED, is_void=True) if self.outcome == PASSED else self

    @property
    def n_evaluated(self) -> int:
        """How many records were evaluated."""
        return self.n_records - self.undecided.get(NOT_EVALUATED, 0)

    @property
    def n_undecided(self) -> int:
        """Of how many records it cannot be said whether they exceed the limit."""
        return sum(self.undecided.values())

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` whether the limit is kept, and no count."""
        if self.is_void:
            return f"{self._shared()[:-1]}: the limit assumes what a check rules out."
        if sharing:
            return self._shared()
        whys = "; ".join(self.undecided)
        if self.n_undecided == self.n_records:
            text = f"Whether for any of {self.n_records:,} {self.rows} {self._exceeds(none=False)}"
            return f"{text} cannot be said ({whys})."
        text = f"For {self._records_over()} {self._exceeds(none=self.n_over == 0)}"
        whom = "them" if self.n_evaluated == self.n_records else "all"
        if self.n_over or self.share:
            text += f"; it may for {f'{_percent(self.share)} of {whom}' if self.share else 'none'}"
        if self.n_undecided:
            text += f"; for {self.n_undecided:,} this cannot be said ({whys})"
        text += "."
        if self.n_before:
            of_these = f"For {self.n_before:,} of these"
            text += f" {of_these} the prior exceeds it already, before the release."
        return text

    @property
    def rule(self) -> str:
        """What the limit asks for, in words."""
        whom = f"at most {_percent(self.share)} of {self.rows}" if self.share else f"no {self.rows}"
        return f"for {whom} {self._exceeds(none=not self.share)}"

    def _shared(self) -> str:
        if self.outcome == PASSED:
            return f"F{self.rule[1:]}."
        allowed = _percent(self.share)
        whom = f"more than {allowed} of {self.rows}" if self.share else f"some {self.rows}"
        if self.outcome == FAILED:
            return f"For {whom} {self._exceeds(none=False)}."
        return f"Whether for {whom} {self._exceeds(none=False)} cannot be said."

    def _records_over(self) -> str:
        everyone = f"{self.n_evaluated:,} {self.rows}"
        if self.n_evaluated < self.n_records:
            everyone = f"the {everyone} evaluated (there are {self.n_records:,})"
        n_known = self.n_records - self.n_undecided
        if self.n_over == 0 and n_known < self.n_evaluated:
            return f"none of the {n_known:,} {self.rows} of which that is known"
        if self.n_over == 0:
            return f"none of {everyone}"
        if self.n_over == self.n_evaluated:
            return f"all {everyone.removeprefix('the ')}"
        return f"{self.n_over:,} of {everyone} ({_percent(self.n_over / self.n_evaluated)})"

    def _exceeds(self, *, none: bool) -> str:
        return " and ".join(self._exceeds_one(*limit, none=none) for limit in self.limits.items())

    def _exceeds_one(self, measure: MeasureName, limit: float, *, none: bool) -> str:
        true = "true values" if self.named == JOINT else f"true {self.named}"
        what = self.sought or true
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

    def _for_anyone(self) -> dict[str, Any]:
        return {"of": self.of, "limits": dict(self.limits), "share": self.share}

    def _for_inside(self) -> dict[str, Any]:
        return {
            "n_records": self.n_records,
            "n_over": self.n_over,
            "n_undecided": self.n_undecided,
            "undecided": dict(self.undecided),
            "n_before": self.n_before,
        }


@dataclass(frozen=True)
class AllLimitsReason(Reason):
    """How all limits together came out, where not all are kept: what is shared of them.

    Which of them are kept may hang on one record, where all together do not.

    Attributes
    ----------
    rules
        What each asks for, in words.
    """

    kind = "limits"
    rules: tuple[str, ...]

    @classmethod
    def of(cls, limits: Sequence[LimitReason]) -> AllLimitsReason:
        """Return the worst outcome of several limits."""
        failed = any(one.outcome == FAILED for one in limits)
        return cls(FAILED if failed else UNJUDGED, tuple(one.rule for one in limits))

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - it is only shared
        """Return it in words."""
        n = len(self.rules)
        found = (
            f"Not all of {n} limits are kept; which are is told inside."
            if self.outcome == FAILED
            else f"Whether all of {n} limits are kept cannot be said; what is known is told inside."
        )
        return f"{found} They ask that {'; that '.join(self.rules)}."


@dataclass(frozen=True)
class ReleaseReason(Reason):
    """Whether the release looks as if it came from the models, which every number assumes.

    Attributes
    ----------
    failures
        What `risk.release_check` found.
    unchecked
        The variables whose models could not be compared with the release, with the dataset where
        others could.
    """

    kind = "release"
    is_check = True
    failures: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    def mark(self) -> str:
        """What it says of the release, in a word: a check that failed is no doubt."""
        return "failed" if self.failures else super().mark

    @property
    def voids_limits(self) -> bool:
        """Whether limits tell nothing of the release, as what they assume does not hold."""
        return bool(self.failures)

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without what was found."""
        came = "Whether the release came from these models, which the risk assumes,"
        if self.failures:
            found = (
                "The release fails a check of what every number here assumes of it: that it was "
                "drawn from these models, from nothing else, and cannot be drawn again. What was "
                "found is told inside."
            )
            return found if sharing else " ".join(self.failures)
        if self.unchecked:
            accepted = " The criteria accept that." if self.outcome == PASSED else ""
            which = "" if sharing else f" for {listed(self.unchecked)}"
            return f"{came} could not be checked{which}.{accepted}"
        if self.outcome == UNJUDGED:
            return f"{came} was not checked: {_UNCHECKED}."
        return "The release looks as if it came from these models, which the risk assumes."

    def _for_inside(self) -> dict[str, Any]:
        return {"n_failures": len(self.failures), "unchecked": list(self.unchecked)}


@dataclass(frozen=True)
class AsIsReason(Reason):
    """What the release holds as it is: everybody can read it there, and no limit speaks of it."""

    kind = "as is"
    columns: tuple[str, ...]

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "note"

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` they are not addressed to who decides."""
        text = f"Released as they are, and not judged here: {listed(self.columns)}."
        return text if sharing else f"{text} Whether they may be known is for you to say."

    def _for_anyone(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}


@dataclass(frozen=True)
class ToleranceReason(Reason):
    """Whether another tolerance would have failed a release that keeps the limits.

    Attributes
    ----------
    failing
        "half", "twice": the tolerances under which they are not kept.
    """

    kind = "tolerance"
    is_shared = False
    failing: tuple[str, ...]

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "warning"

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - it is not shared
        """Return it in words."""
        return (
            f"With {' or '.join(self.failing)} the tolerance these limits would not be kept. The "
            "tolerance, how near to the truth counts as learnt, has decided."
        )

    def _for_inside(self) -> dict[str, Any]:
        return {"failing": list(self.failing)}


@dataclass(frozen=True)
class QuestionReason(Reason):
    """That another question was asked than the one to sign a release by.

    Attributes
    ----------
    differences
        What is asked differently, in words.
    """

    kind = "question"
    differences: tuple[str, ...]

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "warning"

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - both read the same
        """Return it in words."""
        return (
            f"The limits answer another question than the one to sign a release by: "
            f"{'; '.join(self.differences)}. It can miss what that one finds."
        )

    def _for_anyone(self) -> dict[str, Any]:
        return {"differences": list(self.differences)}


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

    kind = "further releases"
    is_shared = False
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

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - it is not shared
        """Return it in words."""
        n, n_not = len(self.largest), len(self.largest) - self.n_kept
        found = {0: "all keep", n: "none keeps"}.get(
            n_not, f"{n_not:,} {'does' if n_not == 1 else 'do'} not keep"
        )
        low, high, own = (_points(one) for one in (min(self.largest), max(self.largest), self.own))
        text = (
            f"Of {n:,} further releases drawn from the same models to compare, {found} these "
            f"limits; the largest gain in them is {low if low == high else f'{low} to {high}'} "
            f"percentage points, in this one {own}."
        )
        if self.is_lucky:
            text = (
                f"This release is lucky. {text} If it was chosen among several, or made again "
                "until it passed, it should not be released; a simpler model, fewer datasets or "
                "more records lower the gain."
            )
        return text

    def _for_inside(self) -> dict[str, Any]:
        return {
            "n_releases": len(self.largest),
            "n_kept": self.n_kept,
            "largest": list(self.largest),
            "own": self.own,
        }


def _points(gain: float) -> str:
    """Return a gain in tenths of percentage points."""
    return f"{100 * gain:.1f}" if gain >= _THOUSANDTH else "below 0.1"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
