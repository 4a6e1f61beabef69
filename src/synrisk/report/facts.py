"""All that a report for inside says, as JSON has it: the page shows this and nothing else."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.core.measures import JOINT
from synrisk.core.spread import Spread
from synrisk.plots.view import Drawn
from synrisk.report.pictures import MOST_VARIABLES, pictures
from synrisk.report.usefulness import usefulness
from synrisk.risk.estimators.estimate import Finding
from synrisk.risk.guesses import Grid
from synrisk.risk.intruder_prior import MostlyModel, Prior, Table
from synrisk.risk.release_checks import Distance, ReleaseChecks
from synrisk.synthesis.release import Released
from synrisk.utility import Utility
from synrisk.verdict.reasons import CALLED
from synrisk.verdict.verdict import Verdict

N_RISKIEST = 20
_NEXT_TO_NOTHING = 5e-5  # of a probability in four digits
_LIBRARIES = (
    "synrisk", "numpy", "scipy", "pandas", "numba", "formulaic", "xarray", "arviz-stats",
    "matplotlib", "jinja2",
)  # fmt: skip
_LOGARITHM = re.compile(r"(?i:log|ln)(?:[A-Z_. 0-9]|$)")


@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """What a report is made of.

    Attributes
    ----------
    drawn
        The evaluation and its numbers.
    tables
        Given columns of `AttributeRisk.records`, yields them, some records after the others.
    findings
        What is shaky.
    checks
        What was found about the release, or None.
    notes
        What a reader should know, apart from the findings and the checks.
    estimator, n_draws, n_datasets
        As `AttributeRisk` has them.
    verdict
        Whether the criteria are kept, or None where there are none.
    utility
        How useful the release is, or None where that was not measured.
    sensitivity
        The verdict under other assumptions, or None.
    rows
        What records are called.
    """

    drawn: Drawn
    tables: Callable[[Sequence[str]], Iterable[pd.DataFrame]]
    findings: Sequence[Finding]
    checks: ReleaseChecks | None
    notes: tuple[str, ...]
    estimator: dict[str, str]
    n_draws: dict[str, int]
    n_datasets: int
    verdict: Verdict | None
    utility: Utility | None = None
    sensitivity: pd.DataFrame | None = None
    rows: str = CALLED


def collect(
    source: Source,
    release: Sequence[Released] | None,
    hashes: list[dict[str, str]],
    title: str,
) -> dict[str, Any]:
    """Return all that a report for inside says."""
    facts: dict[str, Any] = {
        "title": title,
        "kind": "inside",
        "date": today(),
        "verdict": None if source.verdict is None else told(source.verdict, sharing=False),
        "in_short": _in_short(source),
        "evaluated": {**evaluated(source), "records": f"{len(source.drawn.labels.records):,}"},
        "summary": _summary(source),
        "figures": pictures(source.drawn, release),
        "intruder": intruder(source),
        "guesses": [_guesses(source, axis) for axis in range(len(source.drawn.labels.names))],
        "diagnostics": _diagnostics(source),
        "release_check": _release_check(source),
        "models": models(source),
        "versions": versions(),
        "hashes": hashes,
        "notes": list(source.notes),
        "riskiest": _riskiest(source),
        "sensitivity": _sensitivity(source),
    }
    if source.utility is not None:
        facts["utility"] = usefulness(source.utility, sharing=False)
    return facts


def today() -> str:
    """Return the date."""
    return datetime.now(UTC).date().isoformat()


def told(verdict: Verdict, *, sharing: bool) -> dict[str, Any]:
    """Return a verdict as both kinds of page have it."""
    marked = [{"mark": mark, "sentence": text} for mark, text in verdict.marked(sharing=sharing)]
    return {**verdict.to_json(sharing=sharing), "marked": marked}


def _sensitivity(source: Source) -> list[dict[str, Any]]:
    """Return the verdict under other assumptions, a row each."""
    table = source.sensitivity
    if table is None:
        return []
    return [
        {"question": str(name), **{str(key): value for key, value in row.items()}}
        for name, row in table.to_dict(orient="index").items()
    ]


def _in_short(source: Source) -> list[str]:
    """Return what matters most in sentences: what a check found, or else the numbers."""
    if source.checks is not None and source.checks.failures:
        return list(source.checks.failures)
    names, drawn = source.drawn.labels.names, source.drawn
    gains = {of: drawn.spread(of, "gain").ends.largest for of in (JOINT, *names)}
    largest = max(gains, key=gains.__getitem__)
    of_what = "" if len(names) == 1 else f" ({_called(largest)})"
    what = "the true value" if len(names) == 1 else "all the true values"
    before, after = (
        number(100 * drawn.spread(JOINT, what).mean) for what in ("prior", "probability")
    )
    adds = (
        "The most that the release adds to an intruder's probability of a record's true values is "
        f"{number(100 * gains[largest])} percentage points{of_what}."
    )
    on_average = (
        f"On average {what} had a probability of {before} % to an intruder who knows all other "
        f"{source.rows} and the models; after the release, {after} %."
    )
    return [adds, on_average]


def _called(of: str) -> str:
    return "all together" if of == JOINT else of


def evaluated(source: Source) -> dict[str, Any]:
    """Return of what the risk was evaluated."""
    labels = source.drawn.labels
    synthesized = source.drawn.evaluation.synthesizer.plan.synthesized
    return {
        "variables": list(labels.names),
        "with_figures": list(labels.names[:MOST_VARIABLES]),
        "all_records": len(labels.records) == source.drawn.evaluation.synthesizer.n_records,
        "n_datasets": source.n_datasets,
        "as_is": _as_is(source),
        "not_evaluated": [name for name in synthesized if name not in labels.names],
    }


def _as_is(source: Source) -> list[str]:
    """Return the columns that are released as they are: of this release, if it was looked at."""
    looked_at = None if source.checks is None else source.checks.as_is
    planned = source.drawn.evaluation.synthesizer.released_as_is
    return list(planned if looked_at is None else looked_at)


def _summary(source: Source) -> list[dict[str, Any]]:
    drawn = source.drawn
    rows = []
    for of in (JOINT, *drawn.labels.names):
        after, is_above = drawn.spread(of, "probability"), drawn.spread(of, "is_above")
        off = None if of == JOINT else drawn.differences(drawn.labels.axis(of)).mean
        rows.append(
            {
                "of": _called(of),
                "n_records": f"{after.ends.n:,}",
                "prior": _finite(drawn.spread(of, "prior").mean),
                "mean": _finite(after.mean),
                "median": _finite(after.quantile(0.5)),
                "q95": _finite(after.quantile(0.95)),
                "max": _finite(after.ends.largest),
                "max_gain": _finite(drawn.spread(of, "gain").ends.largest),
                "mean_lift": _finite(drawn.spread(of, "lift").mean),
                "n_above_prior": f"{is_above.n_where(_is_one):,}",
                "n_best": _n_best(drawn.spread(of, "rank")),
                "mean_difference": None if off is None else _finite(off),
            }
        )
    return rows


def _is_one(values: FloatArray) -> BoolArray:
    return np.asarray(values == 1)


def _n_best(ranks: Spread) -> str:
    """Return how many truths are ranked first; a dash where ranks are not known."""
    return "–" if np.isnan(ranks.ends.smallest) else f"{ranks.n_where(_is_one):,}"


def intruder(source: Source) -> dict[str, Any]:
    """Return what the intruder is taken to believe, and which guesses are about the truth."""
    evaluation = source.drawn.evaluation
    names = source.drawn.labels.names
    around = [name for axis, name in enumerate(names) if source.drawn.around_truth(axis)]
    return {
        "prior": _prior(evaluation.prior),
        "around_truth": around,
        "all_around": len(around) == len(names),
    }


def _prior(prior: Prior) -> str:
    if isinstance(prior, MostlyModel):
        known = "what the models and all other records say about this one"
        if prior.share == 1.0:
            return f"Before the release the intruder believes {known}."
        return (
            f"Before the release the intruder believes, by {prior.share:g}, {known}, and by "
            f"{1.0 - prior.share:.3g} that any value in the range is as likely as any other."
        )
    if isinstance(prior, Table):
        return "Before the release the intruder believes a table of probabilities that was given."
    factor = prior.truth_factor
    if factor == 1.0:
        return "Before the release the intruder holds all guesses equally likely."
    return (
        f"Before the release the intruder holds the truth {factor:g} times as likely as any other "
        "guess."
    )


def _guesses(source: Source, axis: int) -> dict[str, Any]:
    """Return how one variable's guesses are laid out, in its own units."""
    drawn = source.drawn
    name, family = drawn.labels.names[axis], drawn.labels.families[axis]
    if drawn.is_of_range(axis):  # its guesses are nodes of an integral
        return {"variable": name, "n_guesses": None, "lines": _of_range(source, axis)}
    per_record = drawn.of_grids(axis, lambda grid: grid.present.sum(axis=1))
    few, many = per_record.ends.smallest, per_record.ends.largest
    n_guesses = f"{int(few):,}" if few == many else f"{per_record.mean:,.1f} on average"
    n_replaced = sum(piece.grids[axis].of_values.n_replaced for piece in drawn.pieces())
    if not drawn.around_truth(axis) and not family.is_continuous and not n_replaced:
        lines = ["The same for every record: every level or value that was listed."]
    else:
        lines = _reach(source, axis, n_replaced)
    return {"variable": name, "n_guesses": n_guesses, "lines": lines}


def _of_range(source: Source, axis: int) -> list[str]:
    """Return which values are considered, and how near to the truth counts as learnt."""
    drawn = source.drawn
    low = drawn.of_grids(axis, lambda grid: grid.values.min(axis=1)).ends.smallest
    high = drawn.of_grids(axis, lambda grid: grid.values.max(axis=1)).ends.largest
    every = "Every value in a range"
    if drawn.labels.families[axis].is_continuous and not drawn.is_integral(axis):
        every = "The few values that the variable takes"
    ends = f"about {number(low)} to {number(high)}"
    return [f"{every}, the same for all {source.rows}, {ends}.", learnt(source, axis)]


def learnt(source: Source, axis: int) -> str:
    """Return how near to the truth of a variable counts as learnt."""
    drawn = source.drawn
    question, family = drawn.evaluation.question, drawn.labels.families[axis]
    near = question.tolerances[drawn.labels.names[axis]].words(family) if question else ""
    return f"A value counts as learnt {f'{near} of the truth' if near else 'exactly'}."


def _truth(grid: Grid) -> FloatArray:
    return np.asarray(grid.values[np.arange(len(grid.values)), grid.truth])


def _lowest(grid: Grid) -> FloatArray:
    return np.asarray(np.where(grid.present, grid.values, np.inf).min(axis=1))


def _highest(grid: Grid) -> FloatArray:
    return np.asarray(np.where(grid.present, grid.values, -np.inf).max(axis=1))


def _reach(source: Source, axis: int, n_replaced: int) -> list[str]:
    """Return how far guesses go, on the variable's own scale and on others that it stands for."""
    drawn, name = source.drawn, source.drawn.labels.names[axis]
    low, truth, high = (drawn.of_grids(axis, make) for make in (_lowest, _truth, _highest))
    first, middle, last = (values.quantile(0.5) for values in (low, truth, high))
    if not drawn.around_truth(axis):
        given_way = f"for {n_replaced:,} of {truth.ends.n:,} {source.rows}"
        return [
            f"The same range for every record: from {number(first)} to {number(last)}.",
            f"The truth took the place of the nearest guess {given_way}.",
        ]
    ends = f"from {number(first)} to {number(last)}, about a truth of {number(middle)}"
    lines = [
        _relative_to_truth(drawn, axis),
        f"In the middle of the records they go {ends}.",
    ]
    regression = drawn.evaluation.regression(axis)
    if regression.transform.steps:
        bottom, top = (float(value) for value in regression.on_model_scale(np.array([first, last])))
        lines.append(
            f"On the scale of the model, {regression.transform.text}, from {number(bottom)} to "
            f"{number(top)} there."
        )
    if _LOGARITHM.match(name):
        apart = drawn.of_grids(axis, lambda grid: _highest(grid) - _lowest(grid)).quantile(0.5)
        lines.append(
            f"If {name} is a natural logarithm, as its name suggests, the highest guess is about "
            f"{np.exp(apart):.3g} times the lowest in the quantity itself."
        )
    return lines


def _relative_to_truth(drawn: Drawn, axis: int) -> str:
    """Return how guesses lie about the truth, by factor or distance where all have the same."""

    def factor(end: Callable[[Grid], FloatArray]) -> float | None:
        def over_truth(grid: Grid) -> FloatArray:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(end(grid) / _truth(grid))

        return drawn.of_grids(axis, over_truth).same()

    low, high = factor(_lowest), factor(_highest)
    if low is not None and high is not None:
        shown = " to ".join(f"{one:.4g}" for one in sorted((low, high)) if one)
        return f"From {shown} times each record's own truth."
    below = drawn.of_grids(axis, lambda grid: _truth(grid) - _lowest(grid)).same()
    above = drawn.of_grids(axis, lambda grid: _highest(grid) - _truth(grid)).same()
    if below is not None and above is not None:
        return f"From {number(below)} below to {number(above)} above each record's own truth."
    return "About each record's own truth."


def _diagnostics(source: Source) -> list[dict[str, str]]:
    """Return what is shaky; what the checks of the release found stands in a table of its own."""
    return [
        {"what": one.what, "why": one.why, "what_to_do": one.what_to_do}
        for one in source.findings
        if not one.is_failed_check
    ]


def _release_check(source: Source) -> dict[str, Any] | None:
    checks = source.checks
    if checks is None:
        return None
    distance = [
        {
            "variable": one.variable,
            "dataset": one.dataset,
            "d2": _finite(one.d2),
            "df": one.df,
            "result": _fit_result(one),
        }
        for one in checks.distances
    ]
    closeness = [
        {
            "compared": one.compared,
            "dataset": one.dataset or "all together",
            "n_compared": f"{one.n_compared:,}",
            "found": f"{one.found:,}",
            "result": "too close: were records copied?" if one.is_too_close else "as expected",
        }
        for one in checks.close
    ]
    agreement = [
        {
            "variable": one.variable,
            "dataset": one.dataset,
            "n_rows": f"{one.n_rows:,}",
            "agree": f"{one.agree:,}",
            "expected": f"{round(one.expected):,}",
            "result": "too many: was the column copied?" if one.is_too_often else "as expected",
        }
        for one in checks.agreements
    ]
    residuals = [
        {
            "variable": one.variable,
            "dataset": one.dataset,
            "n_rows": f"{one.n_rows:,}",
            "correlation": _finite(one.correlation),
            "z": _finite(one.z),
            "result": "too alike: were rows copied in part?"
            if one.are_too_alike
            else "as expected",
        }
        for one in checks.residual_correlations
    ]
    return {
        "failed": bool(checks.failures),
        "guessed": any(one.is_guessed for one in checks.seed_trials),
        "unchecked": bool(checks.unchecked),
        "distance": distance,
        "together_too_near": checks.total is not None and checks.total.is_too_near,
        "closeness": closeness,
        "agreement": agreement,
        "residuals": residuals,
    }


def _fit_result(distance: Distance) -> str:
    if not distance.is_known:
        return "could not be compared"
    if distance.is_too_far:
        return "does not look as if it came from this model"
    if distance.is_too_near:
        return "follows the confidential data more closely than a draw would"
    return "looks as if it came from this model"


def models(source: Source) -> list[dict[str, Any]]:
    """Return the models, and how each was fitted and evaluated."""
    rows = []
    for model in source.drawn.evaluation.synthesizer.models:
        name = model.regression.response
        rows.append(
            {
                "variable": name,
                "formula": model.regression.formula,
                "family": model.family,
                "weights": model.regression.weights,
                "fitted": "elsewhere" if model.fit is None else f"here ({model.fit.engine})",
                "estimator": source.estimator[name],
                "n_draws": source.n_draws[name],
            }
        )
    return rows


def versions() -> dict[str, str]:
    """Return what this was computed with."""
    found = {"Python": platform.python_version()}
    return found | {name: metadata.version(name) for name in _LIBRARIES}


def _riskiest(source: Source) -> list[dict[str, Any]]:
    """Return the records to which the release adds most, by label."""
    columns = ["before", "after", "gain", "gain_mcse", "lift", "rank", "n_guesses"]
    columns += ["log_odds_range", "log_odds_range_99"]
    columns += [f"gain_{name}" for name in source.drawn.labels.names]
    # Of many variables together hardly anything is known before or after: single ones decide.
    is_joint = source.drawn.evaluation.is_joint
    by = ["gain"] if is_joint else [name for name in columns if name.startswith("gain_")]
    by = [name for name in by if name != "gain_mcse"]
    top = None
    for some in source.tables([*columns, "reliable"]):
        # Those of earlier records stand before, so that they go before where gains are equal.
        found = some if top is None else pd.concat([top, some])
        gains = found[by].max(axis=1).to_numpy()
        top = found.iloc[np.argsort(-gains, kind="stable")[:N_RISKIEST]]
    if top is None:
        return []
    return [
        {
            "record": str(label),
            **{name: _finite(row[name]) for name in columns},
            "reliable": bool(row["reliable"]),
        }
        for label, row in zip(top.index, top.to_dict("records"), strict=True)
    ]


def _finite(value: Any) -> float | None:
    """Return a number, None for one that JSON does not have."""
    return float(value) if np.isfinite(value) else None


def number(value: float | None) -> str:
    """Return a number in four digits, or a dash where it is not told."""
    if value is None or not np.isfinite(value):
        return "–"
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{float(f'{value:.4g}'):,.0f}"


def share(value: float | None) -> str:
    """Return a probability or a difference of two: what is next to nothing is told so."""
    if value is None or not np.isfinite(value):
        return "–"
    if 0.0 < abs(value) < _NEXT_TO_NOTHING:
        return "about 0"
    return f"{value:.4f}"
