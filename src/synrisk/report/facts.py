"""All that a report says, as JSON has it: the page shows these facts and nothing else."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray
from synrisk.base.notes import Note
from synrisk.core.measures import JOINT
from synrisk.core.summary import TIE
from synrisk.plots.view import Drawn, Numbers
from synrisk.report.disclosure_control import FEW, DisclosureRules
from synrisk.report.pictures import MOST_VARIABLES, pictures
from synrisk.report.usefulness import usefulness
from synrisk.risk.estimators.estimate import Finding
from synrisk.risk.intruder_prior import MostlyModel, Prior, Table
from synrisk.risk.release_checks import Distance, ReleaseChecks
from synrisk.synthesis.release import Released
from synrisk.utility import Utility
from synrisk.verdict.verdict import CALLED, Verdict

N_RISKIEST = 20
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
    records
        A row a record.
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
        The verdict under other assumptions, for inside use; or None.
    rows
        What records are called.
    """

    drawn: Drawn
    records: pd.DataFrame
    findings: Sequence[Finding]
    checks: ReleaseChecks | None
    notes: tuple[Note, ...]
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
    *,
    sharing: bool,
    title: str,
) -> dict[str, Any]:
    """Return all that the report says."""
    rules = DisclosureRules(
        sharing, source.drawn.evaluation.synthesizer.n_records, source.n_datasets, source.rows
    )
    facts: dict[str, Any] = {
        "title": title,
        "kind": "sharing" if sharing else "inside",
        "date": datetime.now(UTC).date().isoformat(),
        "verdict": None if source.verdict is None else _verdict(source.verdict, sharing=sharing),
        "in_short": _in_short(source, rules),
        "evaluated": _evaluated(source, rules),
        "summary": _summary(source, rules),
        "figures": pictures(source.drawn, release, rules),
        "intruder": _intruder(source),
        "guesses": [_guesses(source, axis, rules) for axis in range(len(source.drawn.grids))],
        "diagnostics": _diagnostics(source, rules),
        "release_check": _release_check(source, rules),
        "models": _models(source),
        "versions": _versions(),
        "hashes": hashes,
        "notes": [text for note in source.notes if (text := rules.says(note)) is not None],
    }
    if source.utility is not None:
        facts["utility"] = usefulness(source.utility, rules)
    if not sharing:
        facts["riskiest"] = _riskiest(source)
        facts["sensitivity"] = _sensitivity(source)
    return facts


def _verdict(verdict: Verdict, *, sharing: bool) -> dict[str, Any]:
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


def _n_above(numbers: Numbers) -> int:
    return int((numbers.probability > numbers.prior * np.exp(TIE)).sum())


def _in_short(source: Source, rules: DisclosureRules) -> list[str]:
    """Return the plain numbers in sentences."""
    numbers = source.drawn.numbers(JOINT)
    n = len(numbers.probability)
    if not rules.describes(n):
        few = FEW if n < rules.least else f"fewer than {rules.least_described:,}"
        return [f"Only {few} {source.rows} were evaluated: no number about them can be shared."]
    of_all = f"of {rules.records(n)}"
    what = "the true value" if len(source.drawn.labels.names) == 1 else "all the true values"
    before, after = number(rules.usual(numbers.prior)), number(rules.mean(numbers.probability))
    n_above, n_first = _n_above(numbers), int((numbers.rank == 1).sum())
    moved = (
        f"Before the release, {what} had a probability of {before} on average to an intruder who "
        f"knows all other records and the models; after it, {after}."
    )
    return [
        moved,
        f"For {rules.count(n_above, n)} {of_all} the release made {what} more probable.",
        f"For {rules.count(n_first, n)} {of_all} the truth is the intruder's one best guess.",
    ]


def _evaluated(source: Source, rules: DisclosureRules) -> dict[str, Any]:
    drawn = source.drawn
    n = len(drawn.labels.records)
    return {
        "variables": list(drawn.labels.names),
        "with_figures": list(drawn.labels.names[:MOST_VARIABLES]),
        "records": rules.size(n),
        "all_records": n == rules.n_records,
        "n_datasets": source.n_datasets,
        "as_is": _as_is(source),
    }


def _as_is(source: Source) -> list[str]:
    """Return the columns that are released as they are: of this release, if it was looked at."""
    looked_at = None if source.checks is None else source.checks.as_is
    planned = source.drawn.evaluation.synthesizer.released_as_is
    return list(planned if looked_at is None else looked_at)


def _summary(source: Source, rules: DisclosureRules) -> list[dict[str, Any]]:
    drawn = source.drawn
    rows = []
    for of in (JOINT, *drawn.labels.names):
        numbers = drawn.numbers(of)
        n = len(numbers.probability)
        row: dict[str, Any] = {
            "of": "all together" if of == JOINT else of,
            "n_records": rules.size(n),
            "prior": rules.usual(numbers.prior),
            "mean": rules.mean(numbers.probability),
            "median": rules.quantile(numbers.probability, 0.5),
            "q95": rules.quantile(numbers.probability, 0.95),
            "mean_lift": rules.mean(numbers.lift),
            "n_above_prior": _count(_n_above(numbers), n, rules),
            "n_best": _count(int((numbers.rank == 1).sum()), n, rules),
            "mean_difference": None if of == JOINT else _mean_difference(drawn, of, rules),
        }
        if not rules.sharing:
            row["max"] = float(numbers.probability.max())
            row["max_gain"] = float((numbers.probability - numbers.prior).max())
        rows.append(row)
    return rows


def _count(n: int, total: int, rules: DisclosureRules) -> str:
    """Return how many of the records; a dash where nothing about so few is told."""
    return rules.count(n, total) if rules.describes(total) else "–"


def _mean_difference(drawn: Drawn, of: str, rules: DisclosureRules) -> float | None:
    """Return the mean distance of the best guess, unless few records make it what it is."""
    off = drawn.difference(drawn.labels.axis(of))
    n_off = int((off > 0).sum())
    if bool(np.isin(off, (0.0, 1.0)).all()):  # the mean is a count
        if not rules.describes(len(off)) or not rules.tells(n_off, len(off)):
            return None
        return rules.rounded(n_off) / len(off)
    return rules.mean(off) if n_off >= rules.least else None


def _intruder(source: Source) -> dict[str, Any]:
    evaluation = source.drawn.evaluation
    around = [
        name
        for name, grid in zip(source.drawn.labels.names, source.drawn.grids, strict=True)
        if grid.around_truth
    ]
    return {
        "prior": _prior(evaluation.prior),
        "around_truth": around,
        "all_around": len(around) == len(source.drawn.grids),
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


def _guesses(source: Source, axis: int, rules: DisclosureRules) -> dict[str, Any]:
    """Return how one variable's guesses are laid out, in its own units."""
    drawn = source.drawn
    grid, name = drawn.grids[axis], drawn.labels.names[axis]
    if drawn.is_of_range(axis):
        # How many guesses there are would tell where a range ends that is read off the data.
        return {"variable": name, "n_guesses": None, "lines": _of_range(source, axis, rules)}
    per_record = grid.present.sum(axis=1).astype(np.float64)
    usual, mean = rules.common(per_record), rules.mean(per_record)
    n_guesses = f"{usual:.0f}" if usual is not None else "–"
    if usual is None and mean is not None:
        n_guesses = f"{mean:.1f} on average"
    lines: list[str] = []
    family = drawn.labels.families[axis]
    if not grid.around_truth and not family.is_continuous and not grid.n_replaced:
        lines.append("The same for every record: every level or value that was listed.")
    elif len(grid.values) < rules.least:
        lines.append(f"Of {FEW} {source.rows}: nothing is told.")
    else:
        lines += _reach(source, axis, rules)
    return {"variable": name, "n_guesses": n_guesses, "lines": lines}


def _of_range(source: Source, axis: int, rules: DisclosureRules) -> list[str]:
    """Return which values are considered, and how near to the truth counts as learnt."""
    drawn = source.drawn
    grid, name, question = drawn.grids[axis], drawn.labels.names[axis], drawn.evaluation.question
    ends = ""
    if not rules.sharing:
        ends = f", about {number(grid.values.min())} to {number(grid.values.max())}"
    every = "Every value in a range"
    if drawn.labels.families[axis].is_continuous and grid.log_widths is None:
        every = "The few values that the variable takes"
    lines = [f"{every}, the same for all {source.rows}{ends}."]
    near = question.tolerances[name].words(drawn.labels.families[axis]) if question else ""
    lines.append(f"A value counts as learnt {f'{near} of the truth' if near else 'exactly'}.")
    return lines


def _reach(source: Source, axis: int, rules: DisclosureRules) -> list[str]:
    """Return how far guesses go, on the variable's own scale and on others that it stands for."""
    drawn = source.drawn
    grid, name = drawn.grids[axis], drawn.labels.names[axis]
    truth = grid.values[np.arange(len(grid.values)), grid.truth]
    low = np.where(grid.present, grid.values, np.inf).min(axis=1)
    high = np.where(grid.present, grid.values, -np.inf).max(axis=1)
    if not grid.around_truth:
        own = "The same range for every record"
        n = len(truth)
        given_way = (
            f"The truth took the place of the nearest guess for {rules.count(grid.n_replaced, n)} "
            f"of {rules.records(n)}."
        )
        if rules.sharing:  # its ends may be the least and the largest of the confidential values
            return [f"{own}, chosen without the truth.", given_way]
        return [f"{own}: from {number(np.median(low))} to {number(np.median(high))}.", given_way]
    lines = [_relative_to_truth(low, high, truth, rules)]
    first, middle, last = (rules.quantile(values, 0.5) for values in (low, truth, high))
    width = rules.quantile(high - low, 0.5)
    if first is None or middle is None or last is None or width is None:
        return lines
    lines.append(
        f"In the middle of the records they go from {number(first)} to {number(last)}, about a "
        f"truth of {number(middle)}."
    )
    regression = drawn.evaluation.synthesizer.plan.regressions[axis]
    if regression.transform.steps:
        bottom, top = (float(value) for value in regression.on_model_scale(np.array([first, last])))
        lines.append(
            f"On the scale of the model, {regression.transform.text}, from {number(bottom)} to "
            f"{number(top)} there."
        )
    if _LOGARITHM.match(name):
        lines.append(
            f"If {name} is a natural logarithm, as its name suggests, the highest guess is about "
            f"{np.exp(width):.3g} times the lowest in the quantity itself."
        )
    return lines


def _relative_to_truth(
    low: FloatArray, high: FloatArray, truth: FloatArray, rules: DisclosureRules
) -> str:
    """Return how guesses lie about the truth, by factor or distance where all have the same."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [rules.common(np.where(truth == 0, np.inf, end / truth)) for end in (low, high)]
    factors = sorted(ratio for ratio in ratios if ratio is not None and np.isfinite(ratio))
    if len(factors) == len(ratios):
        return f"From {' to '.join(f'{f:.4g}' for f in factors)} times each record's own truth."
    below, above = (rules.common(apart) for apart in (truth - low, high - truth))
    if below is not None and above is not None:
        return f"From {number(below)} below to {number(above)} above each record's own truth."
    return "About each record's own truth."


def _diagnostics(source: Source, rules: DisclosureRules) -> list[dict[str, str]]:
    """Return what is shaky; what the checks of the release found stands in a table of its own."""
    return [
        {"what": what, "why": rules.says(one.why) or "", "what_to_do": one.what_to_do}
        for one in source.findings
        if not one.is_failed_check and (what := rules.says(one.what)) is not None
    ]


def _release_check(source: Source, rules: DisclosureRules) -> dict[str, Any] | None:
    if source.checks is None:
        return None
    distance = [
        {
            "variable": one.variable,
            "dataset": one.dataset,
            # It moves with one record by more than steps of a mean would hide.
            "d2": None if rules.sharing else _finite(one.d2),
            "df": one.df,
            "result": _fit_result(one),
        }
        for one in source.checks.distances
    ]
    closeness = [
        {
            "compared": one.compared,
            "dataset": one.dataset or "all together",
            "n_compared": rules.size(one.n_compared),
            "found": rules.count(one.found, one.n_compared),
            "result": "too close: were records copied?" if one.is_too_close else "as expected",
        }
        for one in source.checks.close
    ]
    agreement = [
        {
            "variable": one.variable,
            "dataset": one.dataset,
            "n_rows": rules.size(one.n_rows),
            "agree": rules.count(one.agree, one.n_rows),
            "expected": rules.count(round(one.expected), one.n_rows),
            "result": "too many: was the column copied?" if one.is_too_often else "as expected",
        }
        for one in source.checks.agreements
    ]
    residuals = [
        {
            "variable": one.variable,
            "dataset": one.dataset,
            "n_rows": rules.size(one.n_rows),
            # They move with one record, as D² does.
            "correlation": None if rules.sharing else _finite(one.correlation),
            "z": None if rules.sharing else _finite(one.z),
            "result": "too alike: were rows copied in part?"
            if one.are_too_alike
            else "as expected",
        }
        for one in source.checks.residual_correlations
    ]
    total = source.checks.total
    return {
        "failed": bool(source.checks.failures),
        # To outsiders a guessable seed is an invitation to guess it.
        "guessed": not rules.sharing and any(one.is_guessed for one in source.checks.seed_trials),
        "unchecked": bool(source.checks.unchecked),
        "distance": distance,
        "together_too_near": total is not None and total.is_too_near,
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


def _models(source: Source) -> list[dict[str, Any]]:
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


def _versions() -> dict[str, str]:
    versions = {"Python": platform.python_version()}
    return versions | {name: metadata.version(name) for name in _LIBRARIES}


def _riskiest(source: Source) -> list[dict[str, Any]]:
    """Return the records to which the release adds most, by label."""
    columns = ["before", "after", "gain", "gain_mcse", "lift", "rank", "n_guesses"]
    columns += ["log_odds_range", "log_odds_range_99"]
    columns += [f"gain_{name}" for name in source.drawn.labels.names]
    top = source.records.sort_values("gain", ascending=False, kind="stable").head(N_RISKIEST)
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
