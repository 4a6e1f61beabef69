"""Risk and utility of several releases side by side, and which of the risks can be judged.

The risk assumes that a release came from its synthesizer: by the risk alone a plain copy of the
confidential data looks safest of all. So every row says whether the checks of the release found
anything, and the map keeps those that cannot be judged apart.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from synrisk.assessment.attribute_result import AttributeRisk
from synrisk.assessment.attribute_risk import attribute_risk
from synrisk.assessment.audit_comparison import compare_audits
from synrisk.assessment.audit_result import Audit
from synrisk.assessment.comparison_result import (
    SAME,
    Comparison,
    as_table,
    check_same_data,
    model_of,
    notes_on,
    row_of_measures,
    row_of_utility,
)
from synrisk.assessment.selection import chosen_records
from synrisk.base.errors import OptionError, counted, got, listed, nearest
from synrisk.models.plan import Regression
from synrisk.plots.of_comparison import ACCEPTED, NO, UNCHECKED, YES
from synrisk.risk.diagnostics import ReliabilityWarning
from synrisk.risk.release_checks import ReleaseChecks
from synrisk.synthesis.release import fingerprint, read_release
from synrisk.synthesis.synthesizer import Synthesizer
from synrisk.utility import utility
from synrisk.utility.measure import ParametersName
from synrisk.utility.reading import column_names
from synrisk.verdict.criteria import Criteria

Given: TypeAlias = tuple[Synthesizer | AttributeRisk, Any]

_FORM = (
    "a dict by name of pairs (synthesizer or risk, release), such as "
    "{'m=1': (synthesizer, release)}, or of audits"
)


def compare(
    releases: Mapping[str, tuple[Synthesizer | AttributeRisk, Any] | Audit],
    *,
    regressions: Regression | Sequence[Regression] | None = None,
    variables: Iterable[str] | None = None,
    criteria: Criteria | None = None,
    propensity: str | Sequence[str] = ("main", "interactions"),
    parameters: ParametersName = "posterior",
    risk: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> Comparison:
    """Compare risk and utility of several releases of the same confidential data.

    What can only be a mistake is an error: other confidential values, risks of other records, a
    risk that was evaluated on another release. What may be meant, such as other guesses or priors
    for one release, is in the notes.

    Parameters
    ----------
    releases
        By name, each release with the synthesizer that made it, or with the risk that was
        evaluated on it: ``{"m=1": (synthesizer, release[:1]), "m=5": (risk, release)}``; or
        audits, which hold their releases: ``{"A": audit_a, "B": audit_b}``.
    regressions, variables
        The analyses and columns of the utility, the same for all releases: by default those of all
        plans, and of audits the columns that all compare. Where only columns are chosen, the plans'
        regressions that need others are left out.
    criteria
        Limits for a verdict on each.
    propensity, parameters, seed
        As in `utility`.
    risk
        Options of `attribute_risk` for the releases that come with a synthesizer, such as
        ``{"question": "paper"}`` or ``{"tolerance": 0.05}``; by default the same as there.
    """
    if criteria is not None and not isinstance(criteria, Criteria):
        raise OptionError(f"criteria must be Criteria; got {got(criteria)}.")
    audits = _audits(releases)
    if audits:
        if risk is not None:
            raise OptionError("risk= is for releases that come with a synthesizer, not for audits.")
        measured = {
            "regressions": regressions,
            "variables": variables,
            "propensity": propensity,
            "parameters": parameters,
            "seed": seed,
        }
        return compare_audits(audits, criteria, measured)
    given = _checked(releases)
    options = _checked_options(risk, given)
    columns = None if variables is None else column_names("variables", variables)
    synthesizers = {
        name: by.synthesizer if isinstance(by, AttributeRisk) else by
        for name, (by, _) in given.items()
    }
    check_same_data({name: one.data for name, one in synthesizers.items()})
    _check_same_records(given, options)
    _check_same_releases(given)
    if regressions is None:
        regressions = _all_regressions(synthesizers.values(), columns)
    if columns is None:
        columns = _all_columns(synthesizers.values())
    risks = {name: _risk(by, release, options) for name, (by, release) in given.items()}
    utilities = {
        name: utility(
            synthesizers[name],
            release,
            regressions=regressions,
            variables=columns,
            propensity=propensity,
            parameters=parameters,
            seed=seed,
        )
        for name, (_, release) in given.items()
    }
    model = model_of(utilities.values())
    accept = criteria is not None and criteria.unchecked_release == "accept"
    rows = {
        name: {
            **_risk_row(risk),
            **row_of_utility(utilities[name], model),
            **({} if criteria is None else {"verdict": risk.verdict(criteria).outcome}),
            **_judged(risk.release_check, accept=accept),
        }
        for name, risk in risks.items()
    }
    cautions, said = _fairness(risks)
    notes = notes_on(model, (*said, *_notes_on_given(given, options)), utilities)
    return Comparison(as_table(rows), risks, utilities, notes, cautions)


def _all_columns(synthesizers: Iterable[Synthesizer]) -> tuple[str, ...]:
    """Return the columns that any plan uses."""
    used = (name for synthesizer in synthesizers for name in synthesizer.plan.columns)
    return tuple(dict.fromkeys(used))


def _audits(releases: Any) -> dict[str, Audit]:
    """Return the audits that are given; raise where some are, and others are not."""
    if not isinstance(releases, Mapping):
        return {}
    audits = {name: one for name, one in releases.items() if isinstance(one, Audit)}
    paired = [
        name
        for name, one in releases.items()
        if isinstance(one, tuple | list) and any(isinstance(part, Audit) for part in one)
    ]
    if paired:
        raise OptionError(
            f"compare: an audit holds its release, so give {listed(map(repr, paired))} as the "
            "audit alone."
        )
    if not all(isinstance(name, str) for name in audits):
        raise OptionError("compare takes a dict of audits by name.")
    others = [name for name in releases if name not in audits]
    if audits and others:
        raise OptionError(
            f"compare: {listed(map(repr, audits))} came with an audit, and "
            f"{listed(map(repr, others))} not. An audit asks what the rows teach somebody who "
            "knows no models, a risk what they teach somebody who does, so their numbers cannot "
            "stand in one table: compare audits with audits (audit each release), or risks with "
            "risks."
        )
    return audits


def _checked(releases: Any) -> dict[str, Given]:
    if not isinstance(releases, Mapping):
        raise OptionError(f"compare takes {_FORM}; got {got(releases)}.")
    if not releases:
        raise OptionError(f"compare takes {_FORM}; the one given is empty.")
    given: dict[str, Given] = {}
    for name, pair in releases.items():
        good = isinstance(pair, tuple | list) and len(pair) == 2
        if not isinstance(name, str) or not good:
            raise OptionError(f"compare takes {_FORM}; {got(name)} is not with such a pair.")
        by, release = pair
        if not isinstance(by, Synthesizer | AttributeRisk):
            raise OptionError(
                f"compare: {name!r} must come with a Synthesizer or an AttributeRisk; got "
                f"{got(by)}."
            )
        given[name] = (by, release)
    return given


def _checked_options(risk: Any, given: Mapping[str, Given]) -> dict[str, Any]:
    """Return the options of `attribute_risk`, or raise where they cannot be meant."""
    if risk is None:
        return {}
    if not isinstance(risk, Mapping):
        raise OptionError(f"risk= is a dict of options of attribute_risk; got {got(risk)}.")
    known = [
        name
        for name, parameter in inspect.signature(attribute_risk).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for name in risk:
        if name not in known:
            raise OptionError(
                f"risk= holds options of attribute_risk, and {got(name)} is none."
                f"{nearest(name, known)} They are {listed(known, len(known))}."
            )
    unread = [name for name, (by, _) in given.items() if isinstance(by, Synthesizer)]
    if risk and not unread:
        raise OptionError(
            "risk= is for releases that come with a synthesizer; all of these come with a risk "
            "that was evaluated before. Leave risk= out, or give the synthesizers."
        )
    if risk.get("stacked") is not None and len(unread) > 1:
        raise OptionError(
            f"risk= holds stacked=, draws given one release, but {listed(map(repr, unread))} come "
            "with a synthesizer. Evaluate each with its own draws, and give the risks."
        )
    # One that can be read only once would be empty for the second release.
    return {
        name: list(value) if isinstance(value, Iterator) else value for name, value in risk.items()
    }


def _close(one: Any, other: Any) -> bool:
    """Tell whether numbers are the same but for their last digits."""
    return one.shape == other.shape and np.allclose(one, other, rtol=SAME, atol=0, equal_nan=True)


def _check_same_records(given: Mapping[str, Given], options: Mapping[str, Any]) -> None:
    """Raise unless all risks are of the same records: quantiles over others say nothing."""
    labels = {name: _evaluated(by, options) for name, (by, _) in given.items()}
    first, *others = labels
    for name in others:
        if len(labels[first].symmetric_difference(labels[name], sort=False)):
            raise OptionError(
                f"compare: the risks of {first!r} and {name!r} are of different records "
                f"({len(labels[first]):,} and {len(labels[name]):,}). Evaluate both on the same "
                "(records=), or on all."
            )


def _evaluated(by: Synthesizer | AttributeRisk, options: Mapping[str, Any]) -> pd.Index[Any]:
    """Return the labels of the records that are evaluated."""
    if isinstance(by, AttributeRisk):
        return by.records.index
    return by.data.index[chosen_records(options.get("records"), by.data.index)]


def _check_same_releases(given: Mapping[str, Given]) -> None:
    """Raise where a risk was not evaluated on the release that is given with it."""
    for name, (by, release) in given.items():
        if not isinstance(by, AttributeRisk):
            continue
        datasets = read_release(by.synthesizer.confidential, release)
        if len(datasets) != by.n_datasets:
            raise OptionError(
                f"compare: the risk of {name!r} was evaluated on "
                f"{counted(by.n_datasets, 'dataset')}, but {len(datasets):,} are given with it."
            )
        left = list(by.fingerprints)
        for number, dataset in enumerate(datasets if left else (), 1):
            found = fingerprint(dataset)
            if found not in left:
                raise OptionError(
                    f"compare: the risk of {name!r} was not evaluated on the release that is given "
                    f"with it: dataset {number} is another. Give the release that was evaluated."
                )
            left.remove(found)


def _all_regressions(
    synthesizers: Iterable[Synthesizer], columns: tuple[str, ...] | None
) -> tuple[Regression, ...]:
    """Return the regressions of all plans; where columns are chosen, those that need no others."""
    found = {
        (regression.formula, regression.distribution.name): regression
        for synthesizer in synthesizers
        for regression in synthesizer.plan.regressions
        if columns is None or {regression.response, *regression.parsed.predictors} <= {*columns}
    }
    return tuple(found.values())


def _risk(by: Synthesizer | AttributeRisk, release: Any, options: Mapping[str, Any]) -> Any:
    if isinstance(by, AttributeRisk):
        return by
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReliabilityWarning)  # the table says what is shaky
        return attribute_risk(by, release, **options)


def _risk_row(risk: AttributeRisk) -> dict[str, Any]:
    records = risk.records
    return {
        "n_datasets": risk.n_datasets,
        **row_of_measures(risk.measures),
        "log_odds_range_q95": records["log_odds_range"].quantile(0.95),
        # Without errors there is no effective number of draws, and nothing is known.
        "reliable": records["reliable"].mean() if records["ess"].notna().any() else np.nan,
    }


def _judged(checks: ReleaseChecks | None, *, accept: bool) -> dict[str, str]:
    """Return whether the risk can be judged by what the checks of the release found."""
    if checks is None:
        return {"judged": UNCHECKED, "why": "The risk was evaluated with diagnostics=False."}
    if checks.failures:
        return {"judged": NO, "why": " ".join(_reasons(checks))}
    if not checks.distances or checks.unchecked:
        why = "Some fits could not be compared: draws made elsewhere, or too few."
        return {"judged": ACCEPTED if accept else UNCHECKED, "why": why}
    return {"judged": YES, "why": ""}


def _reasons(checks: ReleaseChecks) -> list[str]:
    """Return each kind of failure once, with its variables and datasets."""
    too_close = sorted({one.dataset for one in checks.close if one.is_too_close} - {0})
    too_far = [(one.variable, one.dataset) for one in checks.distances if one.is_too_far]
    too_near = [(one.variable, one.dataset) for one in checks.distances if one.is_too_near]
    too_often = [(one.variable, one.dataset) for one in checks.agreements if one.is_too_often]
    too_alike = [
        (one.variable, one.dataset) for one in checks.residual_correlations if one.are_too_alike
    ]
    guessed = [one.dataset for one in checks.seed_trials if one.is_guessed]
    reasons = []
    if any(one.is_too_close for one in checks.close):
        where = _datasets(too_close) if too_close else "the datasets together"
        reasons.append(f"Too close to confidential records ({where}).")
    if too_far:
        reasons.append(f"Does not look as if it came from the model of {_where(too_far)}.")
    if too_near:
        reasons.append(
            "Follows the confidential data more closely than the model would, in "
            f"{_where(too_near)}."
        )
    elif checks.total is not None and checks.total.is_too_near:
        reasons.append(
            "The datasets together follow the confidential data more closely than the models would."
        )
    if too_often:
        reasons.append(
            f"Holds its record's value more often than the model would, in {_where(too_often)}."
        )
    if too_alike:
        reasons.append(f"Rows miss the mean as their records do, in {_where(too_alike)}.")
    if guessed:
        reasons.append(f"Made with a seed that people choose ({_datasets(guessed)}).")
    return reasons


def _where(found: Sequence[tuple[str, int]]) -> str:
    """Return variables with their datasets, those together that have the same."""
    by_variable: dict[str, list[int]] = {}
    for variable, number in found:
        by_variable.setdefault(variable, []).append(number)
    together: dict[str, list[str]] = {}
    for variable, numbers in by_variable.items():
        together.setdefault(_datasets(numbers), []).append(variable)
    return "; ".join(f"{listed(names)} ({datasets})" for datasets, names in together.items())


def _datasets(numbers: Sequence[int]) -> str:
    """Return ``dataset 2`` or ``datasets 1–3, 5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    return f"dataset{'s' if len(numbers) > 1 else ''} {listed(shown)}"


def _fairness(risks: Mapping[str, AttributeRisk]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what makes the risks no fair comparison: in a few words, and in sentences."""
    first, *others = risks
    cautions, notes = [], []
    n_evaluated, n_records = len(risks[first].records), risks[first].synthesizer.n_records
    if n_evaluated < n_records:
        notes.append(f"The risks are of {n_evaluated:,} of the {n_records:,} records.")
    if len({tuple(risk.estimator) for risk in risks.values()}) > 1:
        cautions.append("synthesized variables differ")
        notes.append(
            "The releases differ in their synthesized variables; a joint risk of more variables is "
            "not that of fewer."
        )
    elif len({risk.not_evaluated for risk in risks.values()}) > 1:
        cautions.append("evaluated variables differ")
        notes.append(
            "The risks are of different variables (variables=); a joint risk of more variables is "
            "not that of fewer."
        )
    differ = {name: _other_guesses(risks[first], risks[name]) for name in others}
    differ = {name: variables for name, variables in differ.items() if variables}
    if differ:
        cautions.append("guesses differ")
        found = "; ".join(f"{name!r} in {listed(variables)}" for name, variables in differ.items())
        notes.append(
            f"The guesses are not those of {first!r}: {found}. How far odds move, lifts and "
            "probabilities all depend on them, so these risks cannot be compared; evaluate them "
            "with the same guesses."
        )
    elif any(_other_prior(risks[first], risks[name]) for name in others):
        notes.append(
            "The releases differ in what is believed before them, so compare gains and lifts "
            "rather than probabilities."
        )
    return tuple(cautions), tuple(notes)


def _other_guesses(one: AttributeRisk, other: AttributeRisk) -> list[str]:
    """Return the variables of both risks for which their guesses differ."""
    order = other.records.index.get_indexer(one.records.index)
    shared = [name for name in one.measures.variables if name in other.measures.variables]
    return [
        name
        for name in shared
        if not _close_or_equal(_guesses(one, name), _guesses(other, name)[order])
    ]


def _guesses(risk: AttributeRisk, variable: str) -> Any:
    """Return the guesses of each record in their order; those that a record lacks come first.

    Of a range its ends: where it is looked at inside depends on the model.
    """
    considered = risk.considered(variable)
    if considered is not None:
        return considered.to_numpy()
    marginal = risk.marginal(variable)
    values, present = marginal["value"].to_numpy(), marginal.notnull().to_numpy()
    if values.dtype.kind in "fiu":
        return np.sort(np.where(present, values, -np.inf), axis=1)
    return np.sort(np.where(present, values.astype(str), ""), axis=1)


def _close_or_equal(one: Any, other: Any) -> bool:
    both_numbers = one.dtype.kind == other.dtype.kind == "f"
    return _close(one, other) if both_numbers else np.array_equal(one, other)


def _other_prior(one: AttributeRisk, other: AttributeRisk) -> bool:
    prior, others = one.records["prior"], other.records["prior"]
    return not _close(prior.to_numpy(), others.reindex(prior.index).to_numpy())


def _notes_on_given(given: Mapping[str, Given], options: Mapping[str, Any]) -> list[str]:
    """Return what was not done with risks that were evaluated before."""
    ready = {name: by for name, (by, _) in given.items() if isinstance(by, AttributeRisk)}
    notes = []
    if options and ready:
        notes.append(
            f"risk= ({listed(options)}) was not used for {listed(map(repr, ready))}: the risk was "
            "evaluated before."
        )
    unknown = [name for name, by in ready.items() if not by.fingerprints]
    if unknown:
        notes.append(
            f"Whether the risk of {listed(map(repr, unknown))} is of the release given with it "
            "is not known: it is from a file of before that was kept."
        )
    return notes
