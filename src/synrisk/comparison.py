"""Risk and utility of several releases side by side, and which of the risks can be judged.

The risk assumes that a release came from its synthesizer: by the risk alone a plain copy of the
confidential data looks safest of all. So every row says whether the checks of the release found
anything, and the map keeps those that cannot be judged apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.attribute import AttributeRisk
from synrisk.checks import ReleaseChecks
from synrisk.criteria import Criteria
from synrisk.errors import OptionError, counted, got, listed
from synrisk.evaluating import attribute_risk
from synrisk.findings import ReliabilityWarning
from synrisk.plan import Regression
from synrisk.plots.comparison import ComparisonPlots
from synrisk.result import TIE
from synrisk.synthesizer import Synthesizer
from synrisk.utility import Utility, utility
from synrisk.utility.measure import ParametersName

YES, NO, UNCHECKED = "yes", "no", "not checked"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Risk and utility of several releases.

    Made by `compare`.

    Attributes
    ----------
    table
        A row a release: ``n_datasets``; over records the mean ``prior``, ``probability``,
        ``lift_mean``, ``lift_q95``, ``lift_max``, ``share_above_prior`` and
        ``log_odds_range_q95``, the share ``reliable``; ``pmse_ratio``, ``specks``, ``overlap`` and
        ``overlap_as_data`` (means; `Utility.summary`); ``verdict``, where there are criteria;
        ``judged``, whether the risk can be judged ("yes", "no", "not checked"), and ``why`` not.
    risks, utilities
        The results by name.
    notes
        What a reader of the table should know.
    """

    table: pd.DataFrame
    risks: Mapping[str, AttributeRisk]
    utilities: Mapping[str, Utility]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        shaky = [str(name) for name, judged in self.table["judged"].items() if judged != YES]
        said = f"; the risk of {listed(shaky)} cannot be judged" if shaky else ""
        return f"<Comparison: {listed(self.table.index)}{said}>"

    @property
    def plot(self) -> ComparisonPlots:
        """Plots: ``comparison.plot.map()`` and ``.curve()``."""
        synthesizers = [id(risk.synthesizer) for risk in self.risks.values()]
        first = list(dict.fromkeys(synthesizers))
        return ComparisonPlots(self.table, [first.index(one) for one in synthesizers])


def compare(
    releases: Mapping[str, tuple[Synthesizer | AttributeRisk, Any]],
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

    Parameters
    ----------
    releases
        By name, each release with the synthesizer that made it, or with the risk that was
        evaluated on it: ``{"m=1": (synthesizer, release[:1]), "m=5": (risk, release)}``.
    regressions, variables
        The analyses and columns of the utility, the same for all releases: by default those of all
        plans.
    criteria
        Limits for a verdict on each.
    propensity, parameters, seed
        As in `utility`.
    risk
        Options of `attribute_risk` for the releases that come with a synthesizer.
    """
    given = _checked(releases)
    if criteria is not None and not isinstance(criteria, Criteria):
        raise OptionError(f"criteria must be Criteria; got {got(criteria)}.")
    if risk is not None and not isinstance(risk, Mapping):
        raise OptionError(f"risk= is a dict of options of attribute_risk; got {got(risk)}.")
    synthesizers = {
        name: by.synthesizer if isinstance(by, AttributeRisk) else by
        for name, (by, _) in given.items()
    }
    _check_same_data(synthesizers)
    if regressions is None:
        regressions = _all_regressions(synthesizers.values())
    if variables is None:
        columns = [name for one in synthesizers.values() for name in one.plan.columns]
        variables = tuple(dict.fromkeys(columns))
    else:
        variables = (variables,) if isinstance(variables, str) else tuple(variables)
    risks = {name: _risk(by, release, risk or {}) for name, (by, release) in given.items()}
    utilities = {
        name: utility(
            synthesizers[name],
            release,
            regressions=regressions,
            variables=variables,
            propensity=propensity,
            parameters=parameters,
            seed=seed,
        )
        for name, (_, release) in given.items()
    }
    model = _model_of(utilities.values())
    rows = {
        name: {
            **_risk_row(risks[name]),
            **_utility_row(utilities[name], model),
            **({} if criteria is None else {"verdict": risks[name].verdict(criteria).outcome}),
            **_judged(risks[name].release_check),
        }
        for name in given
    }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("release")
    return Comparison(table, risks, utilities, _notes(table, risks, utilities, model))


def _checked(releases: Any) -> dict[str, tuple[Synthesizer | AttributeRisk, Any]]:
    form = (
        "a dict by name of pairs (synthesizer or risk, release), such as "
        "{'m=1': (synthesizer, release)}"
    )
    if not isinstance(releases, Mapping) or not releases:
        raise OptionError(f"compare takes {form}; got {got(releases)}.")
    given: dict[str, tuple[Synthesizer | AttributeRisk, Any]] = {}
    for name, pair in releases.items():
        good = isinstance(pair, tuple | list) and len(pair) == 2
        if not isinstance(name, str) or not good:
            raise OptionError(f"compare takes {form}; {got(name)} is not with such a pair.")
        by, release = pair
        if not isinstance(by, Synthesizer | AttributeRisk):
            raise OptionError(
                f"compare: {name!r} must come with a Synthesizer or an AttributeRisk; got "
                f"{got(by)}."
            )
        if isinstance(by, AttributeRisk):
            n = len(release) if isinstance(release, list | tuple) else 1
            if n != by.n_datasets:
                raise OptionError(
                    f"compare: the risk of {name!r} was evaluated on "
                    f"{counted(by.n_datasets, 'dataset')}, but {n:,} are given with it."
                )
        given[name] = (by, release)
    return given


def _check_same_data(synthesizers: Mapping[str, Synthesizer]) -> None:
    """Raise unless all are of the same records: their numbers could not be compared."""
    first, *others = synthesizers
    labels = synthesizers[first].data.index
    for name in others:
        if not labels.equals(synthesizers[name].data.index):
            raise OptionError(
                f"compare: {first!r} and {name!r} are not of the same confidential records."
            )


def _all_regressions(synthesizers: Iterable[Synthesizer]) -> tuple[Regression, ...]:
    found = {
        (regression.formula, regression.distribution.name): regression
        for synthesizer in synthesizers
        for regression in synthesizer.plan.regressions
    }
    return tuple(found.values())


def _risk(by: Synthesizer | AttributeRisk, release: Any, options: Mapping[str, Any]) -> Any:
    if isinstance(by, AttributeRisk):
        return by
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReliabilityWarning)  # the table says what is shaky
        return attribute_risk(by, release, **options)


def _model_of(utilities: Iterable[Utility]) -> str:
    """Return the propensity model that the table shows: the richest that all have."""
    known = [set(one.propensity.index.get_level_values("model")) for one in utilities]
    shared = set.intersection(*known)
    return next((name for name in ("interactions", "main", "cart") if name in shared), "")


def _risk_row(risk: AttributeRisk) -> dict[str, Any]:
    records = risk.records
    lift = records["lift"]
    return {
        "n_datasets": risk.n_datasets,
        "prior": records["prior"].mean(),
        "probability": records["probability"].mean(),
        "lift_mean": lift.mean(),
        "lift_q95": lift.quantile(0.95),
        "lift_max": lift.max(),
        "share_above_prior": float((lift > np.exp(TIE)).mean()),
        "log_odds_range_q95": records["log_odds_range"].quantile(0.95),
        "reliable": float(records["reliable"].astype(float).mean()),
    }


def _utility_row(found: Utility, model: str) -> dict[str, float]:
    value = found.summary()["value"]
    return {
        "pmse_ratio": float(value.get(f"pmse_ratio_{model}", np.nan)),
        "specks": float(value.get(f"specks_{model}", np.nan)),
        "overlap": float(value["overlap"]),
        "overlap_as_data": float(value["overlap_as_data"]),
    }


def _judged(checks: ReleaseChecks | None) -> dict[str, str]:
    """Return whether the risk can be judged by what the checks of the release found."""
    if checks is None:
        return {"judged": UNCHECKED, "why": "The risk was evaluated with diagnostics=False."}
    if checks.failures:
        return {"judged": NO, "why": " ".join(checks.failures)}
    if not checks.distances or checks.unchecked:
        why = "Some fits could not be compared: draws made elsewhere, or too few."
        return {"judged": UNCHECKED, "why": why}
    return {"judged": YES, "why": ""}


def _notes(
    table: pd.DataFrame,
    risks: Mapping[str, AttributeRisk],
    utilities: Mapping[str, Utility],
    model: str,
) -> tuple[str, ...]:
    notes = []
    if model:
        notes.append(f"pmse_ratio and specks are of the propensity model {model!r}.")
    if table["prior"].max() > table["prior"].min() * (1.0 + 1e-9):
        notes.append(
            "The releases differ in the guesses' prior probability, so compare their lifts rather "
            "than their probabilities."
        )
    if len({tuple(risk.estimator) for risk in risks.values()}) > 1:
        notes.append(
            "The releases differ in their synthesized variables; a joint risk of more variables is "
            "not that of fewer."
        )
    notes.append(
        "One release is one realisation: its records share the draw of the parameters, so a "
        "difference between releases may be luck."
    )
    for name, one in utilities.items():
        notes += [f"{name}: {note}" for note in one.notes]
    return tuple(notes)
