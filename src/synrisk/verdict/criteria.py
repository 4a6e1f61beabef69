"""Limits on the risk: a policy, by name, from a TOML file or from a study."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from synrisk.base.arrays import as_float
from synrisk.base.errors import OptionError, SettingsError, got, listed, nearest
from synrisk.data.toml import Section, read_settings

MeasureName: TypeAlias = Literal["gain", "probability", "lift", "log_odds_range"]

_MEASURES: tuple[MeasureName, ...] = ("gain", "probability", "lift", "log_odds_range")
_OF_VARIABLES = ("gain", "probability", "lift", "share", "combine")
# Of a policy in TOML.
KEYS = (*_MEASURES, "share", "combine", "variables", "unchecked_release", "source")
_COMBINED = ("each", "and")
_POLICIES = Path(__file__).with_name("policies.toml")
_CHOICES = {"unchecked_release": ("refuse", "accept"), "combine": _COMBINED}
_DEFAULTS = (("share", 0.0), ("unchecked_release", "refuse"), ("combine", "each"))
_WANTED = {
    "gain": "a number from 0 to 1 (0.1: the release adds at most ten percentage points)",
    "probability": "a number from 0 to 1",
    "lift": "a number above 0 (2: the release at most doubles the probability)",
    "log_odds_range": "a number from 0",
    "share": "a share of the records, from 0 to less than 1 (one in a hundred is 0.01)",
}


@dataclass(frozen=True)
class Criteria:
    """Limits that a release must keep. Each is judged by itself, and all must hold.

    Parameters
    ----------
    gain
        The most that the release may add to an intruder's probability of a record's true values
        (within the tolerance): after less before.
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
    combine
        ``"each"``: a record exceeds each limit by itself. ``"and"``: it must exceed all of the
        limits that stand beside it, as where a lift matters only above some probability.
    variables
        Limits on single variables: a `Criteria` for every synthesized variable, or a dict of them
        by name.
    unchecked_release
        What becomes of a release that could not be compared with its models, as where draws made
        elsewhere are few: ``"refuse"`` (it cannot be judged), or ``"accept"`` it as if it had been
        compared, because you know where it came from. What was found against it counts all the
        same.
    name, source
        What the policy is called, and where it comes from.

    Examples
    --------
    >>> Criteria(gain=0.1)
    Criteria(gain=0.1)
    >>> Criteria(probability=0.2, lift=2, combine="and")
    Criteria(probability=0.2, lift=2.0, combine='and')
    >>> Criteria(lift=2, share=0.01, variables={"LogIncome": Criteria(probability=0.5)})
    Criteria(lift=2.0, share=0.01, variables={'LogIncome': Criteria(probability=0.5)})
    """

    gain: float | None = field(default=None, kw_only=True)
    probability: float | None = field(default=None, kw_only=True)
    lift: float | None = field(default=None, kw_only=True)
    log_odds_range: float | None = field(default=None, kw_only=True)
    share: float = field(default=0.0, kw_only=True)
    combine: Literal["each", "and"] = field(default="each", kw_only=True)
    variables: Criteria | Mapping[str, Criteria] | None = field(default=None, kw_only=True)
    unchecked_release: Literal["refuse", "accept"] = field(default="refuse", kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for key in (*_MEASURES, "share"):
            value = getattr(self, key)
            if value is not None or key == "share":
                problem = _problem(key, value)
                if problem:
                    raise OptionError(f"Criteria: {key} {problem}")
                object.__setattr__(self, key, float(value))
        for key, choices in _CHOICES.items():
            problem = _problem_of_choice(getattr(self, key), choices)
            if problem:
                raise OptionError(f"Criteria: {key} {problem}")
        for key in ("name", "source"):
            text = getattr(self, key)
            if text is not None and (not isinstance(text, str) or not text.strip()):
                raise OptionError(f"Criteria: {key} must be text; got {got(text)}.")
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
            if value is not None and key != "source" and (key, value) not in _DEFAULTS
        ]
        return f"Criteria({', '.join(given)})"

    @property
    def limits(self) -> dict[MeasureName, float]:
        """The limits on the joint."""
        given = {measure: getattr(self, measure) for measure in _MEASURES}
        return {measure: limit for measure, limit in given.items() if limit is not None}

    @property
    def groups(self) -> tuple[dict[MeasureName, float], ...]:
        """The limits that a record must exceed all of, to count: each by itself, or together."""
        if self.combine == "and" and self.limits:
            return (self.limits,)
        return tuple({measure: limit} for measure, limit in self.limits.items())

    def for_variable(self, name: str) -> Criteria | None:
        """Return the limits on one variable, or None."""
        if isinstance(self.variables, Mapping):
            return self.variables.get(name)
        return self.variables

    @classmethod
    def named(cls, name: str) -> Criteria:
        """Return a policy that comes with synrisk; its `source` says where it comes from.

        ``"gain-of-10"``, the default: the release adds at most ten percentage points to an
        intruder's probability of the truth. ``"p-percent"``: it does not make it more likely than
        not that somebody is within the tolerance. ``"wp216-inference"``: nor at least twice as
        likely. ``"cell-of-5"`` and ``"cell-of-11"`` hold the probability itself to 0.2 and 0.09;
        both were made for re-identification, and whether they suit an attribute is for the office
        to say: where the prior is above the limit no release passes, and the verdict says so.
        """
        known = policy_names()
        if not isinstance(name, str) or name not in known:
            raise OptionError(
                f"There is no policy {got(name)}.{nearest(name, known)} Built in: "
                f"{listed(known)}; Criteria.from_toml reads your own."
            )
        return cls.from_toml(_POLICIES, name)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], name: str | None = None) -> Criteria:
        """Read a policy from a TOML file that holds one or several, a table each.

        Parameters
        ----------
        path
            A file such as::

                [public-use]
                source = "Our release board, 2026"
                gain = 0.1
                probability = 0.5
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
        given |= _choices_from(section, tuple(_CHOICES))
        if "source" in section.values:
            given["source"] = section.text("source")
        return _made(section, {**given, "variables": variables, "name": name})

    def to_json(self) -> dict[str, Any]:
        """Return the limits as JSON has them."""
        stored: dict[str, Any] = {"name": self.name} if self.name else {}
        stored |= {str(measure): limit for measure, limit in self.limits.items()}
        if self.limits:
            stored["share"] = self.share
        if self.combine != "each":
            stored["combine"] = self.combine
        if self.source:
            stored["source"] = self.source
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


def policy_names() -> tuple[str, ...]:
    """Return what the built-in policies are called."""
    return tuple(read_settings(_POLICIES, "The file of policies").values)


def _problem(key: str, value: object) -> str:
    """Return what is wrong with a limit or a share, or nothing."""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if good:
        number = as_float(value)  # type: ignore[arg-type]
        good = 0.0 <= number < np.inf
        good &= not (key in ("gain", "probability") and number > 1.0)
        good &= not (key == "lift" and number == 0.0)
        good &= not (key == "share" and number >= 1.0)
    if good:
        return ""
    # A limit is no value of the data.
    shown = value if isinstance(value, int | float) else got(value)
    return f"must be {_WANTED[key]}; got {shown}."


def _problem_of_choice(value: object, choices: tuple[str, ...]) -> str:
    if isinstance(value, str) and value in choices:
        return ""
    return f"must be one of {listed(choices)}; got {got(value)}."


def _choices_from(section: Section, keys: tuple[str, ...]) -> dict[str, str]:
    given = {}
    for key in keys:
        if key in section.values:
            problem = _problem_of_choice(section.values[key], _CHOICES[key])
            if problem:
                section.refuse(problem, key)
            given[key] = str(section.values[key])
    return given


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
        if one.source is not None:
            return f"source is of the whole policy, not of a variable ({name})."
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
    section.refuse_unknown(_OF_VARIABLES)
    given: dict[str, Any] = dict(_numbers_from(section, ("gain", "probability", "lift", "share")))
    return _made(section, given | _choices_from(section, ("combine",)))


def _made(section: Section, given: dict[str, Any]) -> Criteria:
    try:
        return Criteria(**given)
    except OptionError as error:  # of the limits alone: it holds no value of the data
        return section.refuse(str(error).removeprefix("Criteria: "))


DEFAULT = Criteria(gain=0.1, variables=Criteria(gain=0.1))  # where nobody says otherwise
