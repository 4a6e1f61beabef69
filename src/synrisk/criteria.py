"""Limits on the risk, and whether a release keeps them.

Each limit is judged by itself, and all must hold. A record exceeds a limit where its number is
above it; at the limit it does not. A record counts as undecided where its number or its error is
not known, where it cannot be relied on, or where the limit lies within 1.96 standard errors; a
verdict that could go either way by the undecided records cannot be judged. Nothing unknown passes.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from synrisk.checks import ReleaseChecks
from synrisk.errors import OptionError, SettingsError, counted, got, listed, nearest
from synrisk.result import TIE
from synrisk.schema import BoolArray, FloatArray
from synrisk.settings import Section, read_settings

Outcome: TypeAlias = Literal["passed", "failed", "cannot be judged"]
Measure: TypeAlias = Literal["probability", "lift", "log_odds_range"]

PASSED: Outcome = "passed"
FAILED: Outcome = "failed"
UNJUDGED: Outcome = "cannot be judged"

LEAST_SHARED = 10  # counts below are not told to outsiders, nor is what they leave of the whole
_CONFIDENCE = 1.96
_NOT_EVALUATED = "not evaluated"
_MEASURES: tuple[Measure, ...] = ("probability", "lift", "log_odds_range")
KEYS = (*_MEASURES, "share", "variables", "unchecked_release")  # of a policy in TOML
_UNCHECKED = ("refuse", "accept")
_DEFAULTS = (("share", 0.0), ("unchecked_release", "refuse"))
_WANTED = {
    "probability": "a number from 0 to 1",
    "lift": "a number above 0 (2: the release at most doubles the probability)",
    "log_odds_range": "a number from 0",
    "share": "a share of the records, from 0 to less than 1 (one in a hundred is 0.01)",
}


@dataclass(frozen=True)
class Criteria:
    """Limits that a release must keep. Each is judged by itself; all must hold.

    Parameters
    ----------
    probability
        The most that an intruder's probability of a record's true values may be.
    lift
        The most that the release may multiply this probability by: probability over prior.
    log_odds_range
        The most that the release may move an intruder's log odds between two guesses. It is of the
        joint guesses alone, not of a variable.
    share
        The share of the records that may exceed each of these limits; by default none may. It is
        of the limits that stand beside it: those of `variables` have their own.
    variables
        Limits on single variables: a `Criteria` for every synthesized variable, or a dict of them
        by name.
    unchecked_release
        What becomes of a release that could not be compared with its models, as where draws made
        elsewhere are few: ``"refuse"`` (it cannot be judged), or ``"accept"`` it as if it had been
        compared, because you know where it came from. What was found against it counts all the
        same.
    name
        What the policy is called.

    Examples
    --------
    >>> Criteria(probability=0.2, lift=2)
    Criteria(probability=0.2, lift=2.0)
    >>> Criteria(lift=2, share=0.01, variables={"LogIncome": Criteria(probability=0.5)})
    Criteria(lift=2.0, share=0.01, variables={'LogIncome': Criteria(probability=0.5)})
    """

    probability: float | None = field(default=None, kw_only=True)
    lift: float | None = field(default=None, kw_only=True)
    log_odds_range: float | None = field(default=None, kw_only=True)
    share: float = field(default=0.0, kw_only=True)
    variables: Criteria | Mapping[str, Criteria] | None = field(default=None, kw_only=True)
    unchecked_release: Literal["refuse", "accept"] = field(default="refuse", kw_only=True)
    name: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for key in (*_MEASURES, "share"):
            value = getattr(self, key)
            if value is not None or key == "share":
                problem = _problem(key, value)
                if problem:
                    raise OptionError(f"Criteria: {key} {problem}")
                object.__setattr__(self, key, float(value))
        problem = _problem_of_unchecked(self.unchecked_release)
        if problem:
            raise OptionError(f"Criteria: unchecked_release {problem}")
        if self.name is not None and (not isinstance(self.name, str) or not self.name.strip()):
            raise OptionError(f"Criteria: name must be text; got {got(self.name)}.")
        if isinstance(self.variables, Mapping):
            object.__setattr__(self, "variables", dict(self.variables))
        problem = _problem_of_variables(self.variables)
        if problem:
            raise OptionError(f"Criteria: {problem}")
        problem = _problem_of_whole(self)
        if problem:
            raise OptionError(f"Criteria: {problem}")

    def __repr__(self) -> str:
        given = [
            f"{key}={value!r}"
            for key, value in vars(self).items()
            if value is not None and (key, value) not in _DEFAULTS
        ]
        return f"Criteria({', '.join(given)})"

    @property
    def limits(self) -> dict[Measure, float]:
        """The limits on the joint."""
        given = {measure: getattr(self, measure) for measure in _MEASURES}
        return {measure: limit for measure, limit in given.items() if limit is not None}

    def for_variable(self, name: str) -> Criteria | None:
        """Return the limits on one variable, or None."""
        if isinstance(self.variables, Mapping):
            return self.variables.get(name)
        return self.variables

    @classmethod
    def named(cls, name: str) -> Criteria:
        """Return a policy that comes with synrisk.

        ``"cell-of-5"`` holds the probability of the true values, of all together and of each
        variable, to 0.2, as a smallest cell of five does. ``"cell-of-11"`` holds it to 0.09, the
        threshold of the European Medicines Agency's Policy 0070 and of Health Canada for public
        releases. Both were made for re-identification; whether they suit an attribute is for the
        office to say. Where the guesses are so few that the prior is above the limit, no release
        passes, and the verdict says so.
        """
        if not isinstance(name, str) or name not in _BUILT_IN:
            raise OptionError(
                f"There is no policy {got(name)}.{nearest(name, _BUILT_IN)} Built in: "
                f"{listed(_BUILT_IN)}; Criteria.from_toml reads your own."
            )
        return _BUILT_IN[name]

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], name: str | None = None) -> Criteria:
        """Read a policy from a TOML file that holds one or several, a table each.

        Parameters
        ----------
        path
            A file such as::

                [public-use]
                probability = 0.2
                lift = 2
                share = 0.001                # one record in a thousand may exceed each of these
                variables.LogIncome = { probability = 0.5 }

                [on-site]
                lift = 5
                variables = { lift = 5 }     # every synthesized variable
        name
            Which policy; may be left out where the file holds one.
        """
        top = read_settings(path, "The file of criteria")
        for key, value in top.values.items():
            if not isinstance(value, dict):
                top.refuse("stands outside a policy; put it under a heading such as [public].", key)
        if not top.values:
            raise SettingsError(f"{top.file} holds no policy; begin one with a heading, [public].")
        if name is None:
            if len(top.values) > 1:
                raise OptionError(
                    f"{top.file} holds {len(top.values)} policies; choose one by name=: "
                    f"{listed(top.values)}."
                )
            name = next(iter(top.values))
        if not isinstance(name, str) or name not in top.values:
            raise OptionError(
                f"{top.file} holds no policy {got(name)}.{nearest(name, top.values)} It holds "
                f"{listed(top.values)}."
            )
        return cls.from_section(top.section(name), name)

    @classmethod
    def from_section(cls, section: Section, name: str | None = None) -> Criteria:
        """Read the limits of one table of a TOML file."""
        section.refuse_unknown(KEYS)
        variables: Any = None
        if "variables" in section.values:
            variables = _variables_from(section.section("variables"))
        given: dict[str, Any] = dict(_numbers_from(section, (*_MEASURES, "share")))
        if "unchecked_release" in section.values:
            given["unchecked_release"] = section.values["unchecked_release"]
            problem = _problem_of_unchecked(given["unchecked_release"])
            if problem:
                section.refuse(problem, "unchecked_release")
        return _made(section, {**given, "variables": variables, "name": name})

    def to_json(self) -> dict[str, Any]:
        """Return the limits as JSON has them."""
        stored: dict[str, Any] = {"name": self.name} if self.name else {}
        stored |= {str(measure): limit for measure, limit in self.limits.items()}
        if self.limits:
            stored["share"] = self.share
        if self.unchecked_release != "refuse":
            stored["unchecked_release"] = self.unchecked_release
        if isinstance(self.variables, Criteria):
            stored["variables"] = self.variables.to_json()
        elif self.variables is not None:
            stored["variables"] = {key: one.to_json() for key, one in self.variables.items()}
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Criteria:
        """Return what `to_json` stored."""
        given = dict(stored)
        variables = given.pop("variables", None)
        if variables is not None:
            by_name = all(isinstance(one, dict) for one in variables.values())
            variables = (
                {name: cls.from_json(one) for name, one in variables.items()}
                if by_name
                else cls.from_json(variables)
            )
        return cls(**given, variables=variables)


def _problem(key: str, value: object) -> str:
    """Return what is wrong with a limit or a share, or nothing."""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if good:
        number = float(value)  # type: ignore[arg-type]
        good = 0.0 <= number < np.inf
        good &= not (key == "probability" and number > 1.0)
        good &= not (key == "lift" and number == 0.0)
        good &= not (key == "share" and number >= 1.0)
    if good:
        return ""
    # A limit is no value of the data.
    shown = value if isinstance(value, int | float) else got(value)
    return f"must be {_WANTED[key]}; got {shown}."


def _problem_of_unchecked(value: object) -> str:
    if isinstance(value, str) and value in _UNCHECKED:
        return ""
    return f"must be one of {listed(_UNCHECKED)}; got {got(value)}."


def _problem_of_variables(variables: object) -> str:
    if variables is None:
        return ""
    if isinstance(variables, Criteria):
        by_name: dict[Any, Any] = {"every variable": variables}
    elif isinstance(variables, dict) and variables:
        by_name = variables
    else:
        return (
            "variables must be a Criteria for every variable, or a dict of them by name; got "
            f"{'an empty dict' if variables == {} else got(variables)}."
        )
    for name, one in by_name.items():
        if not isinstance(name, str) or not isinstance(one, Criteria):
            return (
                f"variables[{name if isinstance(name, str) else '…'!r}] must be a Criteria by the "
                f"name of a variable, such as Criteria(probability=0.5); got {got(one)}."
            )
        if one.log_odds_range is not None:
            return (
                f"log_odds_range is of the joint guesses, not of a variable ({name}); put it "
                "beside the joint limits."
            )
        if one.variables is not None:
            return f"the limits on a variable ({name}) have no variables of their own."
        if one.unchecked_release != "refuse":
            return f"unchecked_release is of the whole release, not of a variable ({name})."
    return ""


def _problem_of_whole(criteria: Criteria) -> str:
    if criteria.limits:
        return ""
    if criteria.share > 0:
        return (
            "share is the share of records that may exceed the limits beside it, and there is "
            "none; put it beside a limit."
        )
    if criteria.variables is None:
        return f"there is no limit; give at least one of {listed(_MEASURES)}."
    return ""


def _numbers_from(section: Section, keys: tuple[str, ...]) -> dict[str, float]:
    given = {}
    for key in keys:
        if key in section.values:
            problem = _problem(key, section.values[key])
            if problem:
                section.refuse(problem, key)
            given[key] = float(section.values[key])
    return given


def _variables_from(section: Section) -> Criteria | dict[str, Criteria]:
    """Read limits for every variable, or tables of them by name."""
    if section.values and all(isinstance(one, dict) for one in section.values.values()):
        return {key: _of_variable(section.section(key)) for key in section.values}
    return _of_variable(section)


def _of_variable(section: Section) -> Criteria:
    for key in ("log_odds_range", "variables"):
        if key in section.values:
            section.refuse("is of the joint guesses, not of a variable.", key)
    if "unchecked_release" in section.values:
        section.refuse("is of the whole release, not of a variable.", "unchecked_release")
    section.refuse_unknown(("probability", "lift", "share"))
    return _made(section, dict(_numbers_from(section, ("probability", "lift", "share"))))


def _made(section: Section, given: dict[str, Any]) -> Criteria:
    try:
        return Criteria(**given)
    except OptionError as error:  # of the limits alone: it holds no value of the data
        return section.refuse(str(error).removeprefix("Criteria: "))


_BUILT_IN = {
    "cell-of-5": Criteria(probability=0.2, variables=Criteria(probability=0.2), name="cell-of-5"),
    "cell-of-11": Criteria(
        probability=0.09, variables=Criteria(probability=0.09), name="cell-of-11"
    ),
}


@dataclass(frozen=True)
class Reason:
    """How one limit, or one check beside the limits, came out.

    Attributes
    ----------
    outcome
        "passed", "failed" or "cannot be judged".
    """

    outcome: Outcome

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
    measure
        "probability", "lift" or "log_odds_range".
    limit, share
        The limit, and the share of the records that may exceed it.
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
    measure: Measure
    limit: float
    share: float
    n_records: int
    n_over: int
    undecided: Mapping[str, int]
    n_before: int
    unit: int = LEAST_SHARED

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
        text = f"For {self._people(n_over, sharing=sharing)} {self._exceeds(none=n_over == 0)}"
        whom = "them" if self.n_evaluated == self.n_records else "all"
        if self.n_over or self.share:
            text += (
                f"; it may for {f'{_percent(self.share)} of {whom}' if self.share else 'nobody'}"
            )
        if self.n_undecided:
            about = "about " if sharing else ""
            others = "others" if n_undecided is None else f"{about}{n_undecided:,}"
            text += f"; for {others} this cannot be said ({listed(self.undecided)})"
        text += "."
        if self.n_before:
            where = "There" if sharing else f"For {self.n_before:,} of these"
            text += (
                f" {where} the prior over so few guesses exceeds it already, before the release."
            )
        return text

    def _people(self, n_over: int | None, *, sharing: bool) -> str:
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
        """Return of how many people the limit was looked at."""
        n, n_records = self.n_evaluated, self.n_records
        if sharing and n < LEAST_SHARED:
            return f"fewer than {LEAST_SHARED} people{'' if n == n_records else ' evaluated'}"
        if n == n_records:
            return f"{n:,} people"
        if sharing and n > n_records - LEAST_SHARED:
            return f"the people evaluated (nearly all {n_records:,})"
        return f"the {n:,} people evaluated (there are {n_records:,})"

    def _exceeds(self, *, none: bool) -> str:
        what = "true values" if self.of == "joint" else f"true {self.of}"
        whose, verb, by = {
            "probability": (f"an intruder's probability of the {what}", "exceed", ""),
            "lift": ("the release", "multiply", f" an intruder's probability of the {what} by"),
            "log_odds_range": ("the release", "move", " an intruder's log odds between guesses by"),
        }[self.measure]
        more = f"{by} more than {self.limit:g}" if by else f" {self.limit:g}"
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
            "measure": self.measure,
            "limit": self.limit,
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

    def sentence(self, *, sharing: bool = False) -> str:
        """Return it in words; with `sharing` without what was found."""
        if self.failures and not sharing:
            return " ".join(self.failures)
        if self.failures:
            return (
                f"The release fails {counted(len(self.failures), 'check')} that it came from these "
                "models, which the risk assumes."
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

    def sentences(self, *, sharing: bool = False) -> list[str]:
        """Return a sentence for each reason, those that decide first.

        Parameters
        ----------
        sharing
            Whether the words may leave the office: then there is no count below 10, nor one that
            leaves fewer than 10 of the records, others are in tens, and there is nothing about
            single records.
        """
        order: list[Outcome] = [self.outcome, FAILED, UNJUDGED, PASSED]
        ranked = sorted(self.reasons, key=lambda reason: order.index(reason.outcome))
        return [reason.sentence(sharing=sharing) for reason in ranked]

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
        return "\n".join([*lines, *(f"- {sentence}" for sentence in self.sentences())])

    def __repr__(self) -> str:
        return f"<Verdict: {self.outcome}; {counted(len(self.reasons) - 1, 'limit')}>"


def judge(
    criteria: Criteria,
    records: pd.DataFrame,
    prior_marginals: FloatArray,
    variables: tuple[str, ...],
    checks: ReleaseChecks | None,
    n_records: int,
    n_datasets: int = 1,
) -> Verdict:
    """Return whether the records keep the criteria.

    Parameters
    ----------
    criteria
        The limits.
    records
        A row an evaluated record, as `tables.record_table` has it.
    prior_marginals
        The prior probability of each variable's true value, ``(record, variable)``.
    variables
        The synthesized variables.
    checks
        What was found about the release, or None.
    n_records
        How many records there are; those that were not evaluated are undecided.
    n_datasets
        How many synthetic datasets there are.
    """
    if not isinstance(criteria, Criteria):
        raise OptionError(
            f"verdict takes criteria, such as Criteria(probability=0.2); got {got(criteria)}."
        )
    if isinstance(criteria.variables, Mapping):
        for name in criteria.variables:
            if name not in variables:
                raise OptionError(
                    f"The criteria have limits on {name!r}, which is not synthesized."
                    f"{nearest(name, variables)} The synthesized variables are {listed(variables)}."
                )
    numbers_of = {"joint": _joint_numbers(records)}
    for axis, name in enumerate(variables):
        numbers_of[name] = _variable_numbers(records, name, prior_marginals[:, axis])
    reliable = records["reliable"].to_numpy(dtype=bool)
    reasons: list[Reason] = []
    states: dict[str, Any] = {}
    for of, limits in _limits_by_part(criteria, variables).items():
        for measure, limit in limits.limits.items():
            value, error = numbers_of[of][measure]
            over, within, why = _decided(measure, limit, value, error, reliable)
            states[measure if of == "joint" else f"{measure}_{of}"] = np.where(
                over, "over", np.where(within, "within", "undecided")
            )
            before = numbers_of[of]["prior"][0] > limit * (1.0 + TIE)
            reasons.append(
                _limit_reason(
                    of,
                    measure,
                    limit,
                    limits.share,
                    n_records,
                    int(over.sum()),
                    {**why, _NOT_EVALUATED: n_records - len(records)},
                    int((before & over).sum()) if measure == "probability" else 0,
                    LEAST_SHARED * n_datasets,
                )
            )
    reasons.append(
        _release_reason(checks, variables, accept=criteria.unchecked_release == "accept")
    )
    table = pd.DataFrame(states, index=records.index)
    return Verdict(criteria, tuple(reasons), table[(table != "within").any(axis=1)])


def _limits_by_part(criteria: Criteria, variables: tuple[str, ...]) -> dict[str, Criteria]:
    parts = {"joint": criteria}
    for name in variables:
        own = criteria.for_variable(name)
        if own is not None:
            parts[name] = own
    return parts


def _joint_numbers(records: pd.DataFrame) -> dict[str, tuple[FloatArray, FloatArray]]:
    prior = _floats(records["prior"])
    numbers_of = _probability_and_lift(
        _floats(records["probability"]), _floats(records["mcse"]), prior
    )
    numbers_of["log_odds_range"] = (
        _floats(records["log_odds_range"]),
        _floats(records["log_odds_range_mcse"]),
    )
    return numbers_of


def _variable_numbers(
    records: pd.DataFrame, name: str, prior: FloatArray
) -> dict[str, tuple[FloatArray, FloatArray]]:
    return _probability_and_lift(
        _floats(records[f"probability_{name}"]), _floats(records[f"mcse_{name}"]), prior
    )


def _probability_and_lift(
    probability: FloatArray, mcse: FloatArray, prior: FloatArray
) -> dict[str, tuple[FloatArray, FloatArray]]:
    with np.errstate(divide="ignore", invalid="ignore"):
        lift = (probability / prior, mcse / prior)
    return {"probability": (probability, mcse), "lift": lift, "prior": (prior, prior)}


def _floats(column: pd.Series[Any]) -> FloatArray:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _decided(
    measure: Measure, limit: float, value: FloatArray, error: FloatArray, reliable: BoolArray
) -> tuple[BoolArray, BoolArray, dict[str, int]]:
    """Return which records are over and which within a limit, and why others are undecided."""
    # Rounding is not an excess: an unmoved probability has a lift of 1 but for the last digits.
    at_limit = limit + TIE * (1.0 if measure == "log_odds_range" else limit)
    known = np.isfinite(value) & np.isfinite(error)
    sure = known & reliable
    margin = _CONFIDENCE * np.where(known, error, 0.0)
    with np.errstate(invalid="ignore"):
        over = sure & (value - margin > at_limit)
        within = sure & (value + margin <= at_limit)
    why = {
        "the Monte-Carlo error is not known": int((~known).sum()),
        "not reliable": int((known & ~reliable).sum()),
        "too close to the limit for the Monte-Carlo error": int((sure & ~over & ~within).sum()),
    }
    return over, within, why


def _limit_reason(
    of: str,
    measure: Measure,
    limit: float,
    share: float,
    n_records: int,
    n_over: int,
    undecided: Mapping[str, int],
    n_before: int,
    unit: int,
) -> LimitReason:
    some = {why: n for why, n in undecided.items() if n}
    # Divided, not multiplied: 29 of 100 is 0.29 to the last bit, 0.29 · 100 is below 29.
    if n_over / n_records > share:
        outcome = FAILED
    elif (n_over + sum(some.values())) / n_records <= share:
        outcome = PASSED
    else:
        outcome = UNJUDGED
    return LimitReason(outcome, of, measure, limit, share, n_records, n_over, some, n_before, unit)


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


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
