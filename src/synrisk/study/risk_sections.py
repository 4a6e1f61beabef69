"""Sections of a study file on what is evaluated: risks, utility, and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from synrisk.assessment.attribute_risk import EstimatorName, JointName, UnreliableName
from synrisk.audit.radius import Radius
from synrisk.base.errors import listed, nearest
from synrisk.data.toml import Section
from synrisk.risk.guesses import (
    Additive,
    AllLevels,
    Interval,
    Range,
    Relative,
    Tolerance,
    Values,
)
from synrisk.risk.intruder_prior import MostlyModel, TruthFactor
from synrisk.risk.question import QUESTIONS
from synrisk.study.model_sections import ends_of, file_beside, regression_of
from synrisk.study.study import AUDIT, BY_MATCHES, BY_MODELS, IDENTIFICATION, Further, attempt
from synrisk.utility import MODELS, PARAMETERS, tree_maker
from synrisk.verdict.criteria import DEFAULT, KEYS, Criteria, policy_names

_PROPENSITY = ("main", "interactions")
_EVEN: dict[str, tuple[Any, tuple[str, ...]]] = {
    "relative": (Relative, ("below", "above", "within")),
    "additive": (Additive, ("below", "above", "within")),
    "interval": (Interval, ("low", "high", "within")),
}
_GUESSES = (
    'must be "range", a number, "all levels", or one of { range = [0, 100] }, '
    "{ relative = 11, below = 0.1, above = 0.1 }, { additive = 11, below = 5, above = 5 }, "
    "{ interval = 11, low = 0, high = 100 }, { values = [1, 2, 3] }."
)


def risk_options(section: Section, variables: tuple[str, ...]) -> dict[str, Any]:
    """Return the options of `synrisk.attribute_risk`."""
    known = ("question", "guesses", "prior", "tolerance", "estimator", "n_draws", "on_unreliable")
    section.refuse_unknown((*known, "variables", "joint"))
    options: dict[str, Any] = {
        "estimator": section.choice("estimator", get_args(EstimatorName), "auto"),
        "n_draws": section.whole("n_draws"),
        "on_unreliable": section.choice("on_unreliable", get_args(UnreliableName), "auto"),
        "question": section.choice("question", QUESTIONS, "release"),
        "intruder_prior": _intruder_prior(section),
        "tolerance": _tolerance(section, variables),
        "variables": _some_variables(section, variables),
        "joint": section.choice("joint", get_args(JointName), "auto"),
    }
    given = section.values.get("guesses")
    if isinstance(given, dict):
        by_variable = section.section("guesses")
        _refuse_unsynthesized(by_variable, variables)
        options["guesses"] = {name: _guesses(by_variable, name) for name in by_variable.values}
    elif given is None or given == "range":
        options["guesses"] = given
    else:
        options["guesses"] = section.whole("guesses", least=2)
    return options


def _some_variables(section: Section, variables: tuple[str, ...]) -> list[str] | None:
    """Return the variables to evaluate; None for all."""
    names = section.texts("variables")
    for number, name in enumerate(names or ()):
        if name not in variables:
            section.refuse(_not_among(name, variables), "variables", number)
    return names


def _tolerance(section: Section, variables: tuple[str, ...]) -> Any:
    """Return how near to the truth counts: a share, or tables of share and width by variable."""
    given = section.values.get("tolerance")
    if given is None:
        return None
    if not isinstance(given, dict):
        return attempt((section, "tolerance"), Tolerance, given)
    by_variable = section.section("tolerance")
    _refuse_unsynthesized(by_variable, variables)
    found = {}
    for name, one in by_variable.values.items():
        if not isinstance(one, dict):
            found[name] = attempt((by_variable, name), Tolerance, one)
            continue
        own = by_variable.section(name)
        own.refuse_unknown(("share", "width"))
        found[name] = attempt((own,), Tolerance, **one)
    return found


def _intruder_prior(section: Section) -> Any:
    if "prior" not in section.values:
        return None
    if not isinstance(section.values["prior"], dict):
        return section.choice("prior", ("mostly-model", "model", "uniform"), "mostly-model")
    prior = section.section("prior")
    prior.refuse_unknown(("truth_factor", "mostly_model"))
    if len(prior.values) != 1:
        prior.refuse("is one of { mostly_model = 0.9 } and { truth_factor = 5 }.")
    if "mostly_model" in prior.values:
        return attempt((prior,), MostlyModel, prior.values["mostly_model"])
    return attempt((prior,), TruthFactor, prior.values["truth_factor"])


def _guesses(section: Section, name: str) -> Any:
    """Return the guesses of one variable: a number, "all levels", or a table."""
    value = section.values[name]
    if value == "all levels":
        return AllLevels()
    if value == "range":
        return Range()
    if isinstance(value, str):
        section.refuse(_GUESSES, name)
    if not isinstance(value, dict):
        return section.whole(name, least=2)
    own = section.section(name)
    if set(value) == {"values"}:
        if not isinstance(value["values"], list):
            own.refuse("must be a list of guesses.", "values")
        return Values(value["values"])
    if "range" in value:
        own.refuse_unknown(("range", "n", "margin"))
        ends = ends_of(own, "range")
        return attempt((own,), Range, own.whole("n"), value.get("margin", 0.1), ends)
    kinds = [kind for kind in _EVEN if kind in value]
    if len(kinds) != 1:
        own.refuse(_GUESSES)
    return _even(own, kinds[0])


def _even(own: Section, kind: str) -> Any:
    """Return evenly spaced guesses."""
    strategy, known = _EVEN[kind]
    own.refuse_unknown((kind, *known))
    n = own.whole(kind, least=2)
    given = {key: own.values[key] for key in known if key in own.values}
    for key, one in given.items():
        if key != "within" and (isinstance(one, bool) or not isinstance(one, int | float)):
            own.refuse("must be a number.", key)
    if "within" in given:
        given["within"] = ends_of(own)
    required = {"additive": ("below", "above"), "interval": ("low", "high")}
    for key in required.get(kind, ()):
        if key not in given:
            own.refuse(f"lacks {key}, in the variable's units.")
    return attempt((own,), strategy, n, **given)


def utility_options(top: Section) -> dict[str, Any] | None:
    """Return the options of the utility, None where the file has no such table."""
    if "utility" not in top.values:
        return None
    section = top.section("utility")
    section.refuse_unknown(("regression", "variables", "propensity", "parameters", "level"))
    propensity = section.texts("propensity") or list(_PROPENSITY)
    for number, name in enumerate(propensity):
        if name not in MODELS:
            section.refuse(
                f"must be one of {listed(MODELS)}.{nearest(name, MODELS)}", "propensity", number
            )
        if name == "cart":  # said now rather than after all other work
            attempt((section, "propensity", number), tree_maker)
    level = section.values.get("level", 0.95)
    if isinstance(level, bool) or not isinstance(level, float) or not 0 < level < 1:
        section.refuse("must be a number between 0 and 1, such as 0.95.", "level")
    regressions = []
    for one in section.sections("regression"):
        one.refuse_unknown(("formula", "family"))
        regressions.append(regression_of(one))
    return {
        "regressions": tuple(regressions) or None,
        "variables": section.texts("variables"),
        "propensity": tuple(propensity),
        "parameters": section.choice("parameters", PARAMETERS, "posterior"),
        "level": level,
    }


def further_risks_of(
    top: Section, folder: Path, variables: tuple[str, ...]
) -> Iterator[tuple[str, Further]]:
    """Yield the risks that the file asks for beside that of the attributes."""
    if AUDIT in top.values:
        section = top.section(AUDIT)
        section.refuse_unknown(("keys", "sensitive", "holdout", "criteria"))
        holdout = section.text("holdout")
        options: dict[str, Any] = {
            "keys": section.texts("keys"),
            "sensitive": section.texts("sensitive"),
            "holdout": None
            if holdout is None
            else file_beside(section, folder, holdout, "holdout"),
        }
        yield AUDIT, Further(options, _own_criteria(section))
    if IDENTIFICATION in top.values:
        section = top.section(IDENTIFICATION)
        section.refuse_unknown(("known", "synthesized", "radius", "by", "criteria"))
        known = section.texts("known") or []
        for k, name in enumerate(known):
            if name in variables:
                section.refuse(
                    "is synthesized; known is what goes out as it is, and the intruder knows.",
                    "known",
                    k,
                )
        synthesized = section.texts("synthesized") or list(variables)
        for k, name in enumerate(synthesized):
            if name not in variables:
                section.refuse(_not_among(name, variables), "synthesized", k)
        radius = _radius(section, (*known, *synthesized))
        asks = "by" in section.values
        by = section.choice("by", (BY_MODELS, BY_MATCHES), BY_MODELS) if asks else None
        options = {"known": known, "synthesized": synthesized, "radius": radius, "by": by}
        yield IDENTIFICATION, Further(options, _own_criteria(section))


def _own_criteria(section: Section) -> Criteria:
    """Return the limits of a further risk."""
    if "criteria" not in section.values:
        return Criteria(gain=0.1)
    own = section.section("criteria")
    own.refuse_unknown(("gain", "probability", "lift", "share", "combine"))
    return Criteria.from_section(own)


def _radius(section: Section, variables: tuple[str, ...]) -> Any:
    """Return how near a row must be: a share, or by variable a share or a table."""
    if "radius" not in section.values:
        section.refuse("lacks radius, such as radius = 0.1 (ten percent of a person's value).")
    given = section.values["radius"]
    if not isinstance(given, dict):
        return attempt((section, "radius"), Radius, given)
    by_variable = section.section("radius")
    _refuse_unsynthesized(by_variable, variables, "known or synthesized")
    found = {}
    for name, one in by_variable.values.items():
        if not isinstance(one, dict):
            found[name] = attempt((by_variable, name), Radius, one)
            continue
        own = by_variable.section(name)
        own.refuse_unknown(("relative", "absolute"))
        found[name] = attempt((own,), Radius, **one)
    return found


def _refuse_unsynthesized(
    section: Section, variables: tuple[str, ...], what: str = "synthesized"
) -> None:
    for name in section.values:
        if name not in variables:
            section.refuse(_not_among(name, variables, what), name)


def _not_among(name: str, variables: tuple[str, ...], what: str = "synthesized") -> str:
    near_by = nearest(name, variables)
    return f"is not a {what} variable.{near_by} They are {listed(variables)}."


def criteria_of(top: Section, folder: Path, variables: tuple[str, ...]) -> Criteria:
    """Return the limits: those of the file itself, or of a policy that it names."""
    if "criteria" not in top.values:
        return DEFAULT
    section = top.section("criteria")
    section.refuse_unknown((*KEYS, "policy", "file"))
    if "policy" not in section.values and "file" not in section.values:
        criteria = Criteria.from_section(section)
        if isinstance(criteria.variables, Mapping):
            _refuse_unsynthesized(section.section("variables"), variables)
        return criteria
    for key in KEYS:
        if key in section.values:
            section.refuse("a policy has its own limits; leave this out.", key)
    policy, name = section.text("policy"), section.text("file")
    if name is None:
        if policy not in policy_names():
            section.refuse(f'{no_policy(str(policy))} Yours: file = "policies.toml".', "policy")
        criteria = Criteria.named(str(policy))
    else:
        file = file_beside(section, folder, name, "file")
        key = "file" if policy is None else "policy"
        criteria = attempt((section, key), Criteria.from_toml, file, policy)
    for variable in criteria.variables if isinstance(criteria.variables, Mapping) else ():
        if variable not in variables:
            section.refuse(
                f"the policy has limits on {variable!r}, which is not synthesized."
                f"{nearest(variable, variables)}",
                "policy",
            )
    return criteria


def no_policy(name: str) -> str:
    """Say that no policy of this name is built in."""
    built_in = listed(policy_names())
    return f"There is no policy {name!r}.{nearest(name, policy_names())} Built in: {built_in}."
