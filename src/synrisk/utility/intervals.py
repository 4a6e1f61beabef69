"""Confidence intervals from both sides, and how far they overlap (Karr et al. 2006).

For an estimate q with variance v from each of m datasets, q̄ and v̄ their means and b the variance of
q between them, the variance of q̄ as an estimate of what the confidential data estimate is

    fully synthetic, m > 1      (1 + 1/m) b − v̄                    Raghunathan, Reiter, Rubin 2003
    partially synthetic, m > 1  v̄ + b/m                            Reiter 2003
    one dataset                 v̄ (r + (1 + r)/m), r = rows/records  Raab, Nowok, Dibben 2016

The last is for parameters drawn from their posterior; (r + 1/m) v̄ for fitted ones. It is for fully
synthetic data, and an upper bound for partially synthetic ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from synrisk.design import Design
from synrisk.errors import DataError, FitError, SynriskError, SyntheticDataError, listed
from synrisk.executors import Serial
from synrisk.fitting.laplace import NormalPrior, Problem, find_mode
from synrisk.fitting.rows import Rows, Standardisation, all_chunks
from synrisk.plan import Regression
from synrisk.posterior import parameter_names
from synrisk.schema import Columns, Factor, FloatArray
from synrisk.utility.reading import Sides

FULLY, PARTIALLY, SINGLE, UNCHANGED = (
    "Raghunathan, Reiter, Rubin 2003",
    "Reiter 2003",
    "Raab, Nowok, Dibben 2016",
    "not synthesized",
)
MEANS = "means and shares"
_WIDE = 1e3  # the ridge of estimates: a prior's standard deviation on standardised columns
_RANK = 1e-9


@dataclass(frozen=True, repr=False)
class Estimates:
    """Estimates of one side: values, their variances and degrees of freedom."""

    values: FloatArray
    variances: FloatArray
    df: float


@dataclass(frozen=True)
class Combined:
    """What the datasets of a release say together."""

    estimate: float
    variance: float
    df: float
    rule: str


def combine(
    values: FloatArray,
    variances: FloatArray,
    *,
    ratio: float,
    partial: bool,
    fitted: bool,
    df: float = math.inf,
) -> Combined:
    """Combine the estimates of several synthetic datasets.

    Parameters
    ----------
    values, variances
        A number a dataset.
    ratio
        Rows of a dataset over confidential records.
    partial
        Whether the release is partially synthetic.
    fitted
        Whether the synthesis took its parameters as they were fitted.
    df
        Of one dataset's variance.

    Examples
    --------
    >>> one = combine(np.array([2.0]), np.array([0.5]), ratio=1.0, partial=False, fitted=False)
    >>> one.estimate, one.variance
    (2.0, 1.5)
    """
    m, mean, within = len(values), float(np.mean(values)), float(np.mean(variances))
    between = float(np.var(values, ddof=1)) if m > 1 else 0.0
    if m > 1 and partial:
        variance = within + between / m
        share = m * within / between if between > 0 else math.inf
        return Combined(mean, variance, min((m - 1) * (1.0 + share) ** 2, df), PARTIALLY)
    if m > 1 and between > 0:
        variance = (1.0 + 1.0 / m) * between - within
        of_rule = (m - 1) * (1.0 - m * within / ((m + 1) * between)) ** 2
        if variance > 0 and of_rule >= 1.0:
            return Combined(mean, variance, min(of_rule, df), FULLY)
    # One dataset; or the difference above is not positive, as it often is for few datasets.
    factor = ratio + (1.0 if fitted else 1.0 + ratio) / m
    return Combined(mean, factor * within, df, SINGLE)


def overlap(low: float, high: float, other_low: float, other_high: float) -> float:
    """Return the mean share of two intervals that is common to them; 0 where none is.

    Examples
    --------
    >>> overlap(0.0, 2.0, 1.0, 5.0)
    0.375
    """
    lengths = (high - low, other_high - other_low)
    if not all(np.isfinite(length) and length > 0 for length in lengths):
        return float("nan")
    common = max(min(high, other_high) - max(low, other_low), 0.0)
    return 0.5 * (common / lengths[0] + common / lengths[1])


def interval_table(
    sides: Sides, regressions: Sequence[Regression], level: float, *, fitted: bool
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a row an estimate, and notes on what could not be estimated."""
    rows = [
        _row(MEANS, term, own, theirs, sides, level, fitted=fitted, changed=changed)
        for term, own, theirs, changed in _means(sides)
    ]
    notes: list[str] = []
    for regression in regressions:
        shown = f"{regression.formula} ({regression.distribution.name})"
        found, note = _of_regression(sides, regression)
        notes += note
        rows += [
            _row(shown, term, own, theirs, sides, level, fitted=fitted, changed=True)
            for term, own, theirs in found
        ]
    return pd.DataFrame(rows).set_index(["analysis", "term"]), tuple(notes)


def _row(
    analysis: str,
    term: str,
    own: Estimates,
    theirs: Sequence[Estimates],
    sides: Sides,
    level: float,
    *,
    fitted: bool,
    changed: bool,
) -> dict[str, Any]:
    """Return one estimate from both sides; `own` and `theirs` hold one value each."""
    values = np.array([one.values[0] for one in theirs])
    variances = np.array([one.variances[0] for one in theirs])
    df = min(one.df for one in theirs)
    if changed:
        together = combine(
            values,
            variances,
            ratio=float(np.mean(sides.n_rows)) / sides.n_records,
            partial=sides.is_partial,
            fitted=fitted,
            df=df,
        )
    else:
        together = Combined(float(values.mean()), float(variances.mean()), df, UNCHANGED)
    se = math.sqrt(own.variances[0])
    low, high = _interval(own.values[0], own.variances[0], own.df, level)
    s_low, s_high = _interval(together.estimate, together.variance, together.df, level)
    as_data = _interval(together.estimate, float(variances.mean()), df, level)
    return {
        "analysis": analysis,
        "term": term,
        "estimate_confidential": float(own.values[0]),
        "se_confidential": se,
        "low_confidential": low,
        "high_confidential": high,
        "estimate_synthetic": together.estimate,
        "se_synthetic": math.sqrt(together.variance),
        "low_synthetic": s_low,
        "high_synthetic": s_high,
        "df_synthetic": together.df,
        "rule": together.rule,
        "difference": (together.estimate - float(own.values[0])) / se if se > 0 else np.nan,
        "overlap": overlap(low, high, s_low, s_high),
        "overlap_as_data": overlap(low, high, *as_data),
    }


def _interval(value: float, variance: float, df: float, level: float) -> tuple[float, float]:
    reach = float(student.ppf(0.5 + 0.5 * level, df)) * math.sqrt(variance)
    return float(value - reach), float(value + reach)


def _means(sides: Sides) -> Iterator[tuple[str, Estimates, list[Estimates], bool]]:
    for name in sides.names:
        variable = sides.schema.variables[name]
        changed = name in sides.synthesized
        cells: list[tuple[str, int | None]] = [(name, None)]
        if isinstance(variable, Factor):
            cells = [(f"{name}[{level}]", code) for code, level in enumerate(variable.levels)]
        for term, code in cells:
            own, *theirs = (
                _mean(side[name], code) for side in (sides.confidential, *sides.datasets)
            )
            yield term, own, theirs, changed


def _mean(values: Any, code: int | None) -> Estimates:
    numbers = np.asarray(values if code is None else values == code, dtype=np.float64)
    n = len(numbers)
    variance = numbers.var(ddof=1) / n if n > 1 else np.nan
    return Estimates(np.array([numbers.mean()]), np.array([variance]), max(n - 1.0, 1.0))


def _of_regression(
    sides: Sides, regression: Regression
) -> tuple[list[tuple[str, Estimates, list[Estimates]]], list[str]]:
    """Return each coefficient from both sides, or a note on why there is none."""
    what = f"Formula {regression.formula!r}"
    variable = sides.schema.variables[regression.response]
    family = regression.distribution
    if not family.fits(variable):
        raise DataError(f"{what}: {regression.response!r} must be {regression.wants}.")
    design = Design.freeze(regression.parsed, sides.schema, sides.confidential, sides.n_records)
    names = parameter_names(design, family, variable)
    names = names[: len(names) - len(family.auxiliary)]
    own = estimate(sides, regression, design, sides.confidential, "The confidential data")
    theirs: list[Estimates] = []
    failed = []
    for number, columns in enumerate(sides.datasets, 1):
        try:
            theirs.append(
                estimate(sides, regression, design, columns, f"Synthetic dataset {number}")
            )
        except FitError:
            failed.append(str(number))
    if failed:
        note = (
            f"{what} cannot be estimated from synthetic dataset {listed(failed)}: a level or a "
            "predictor's variation is missing there. It has no intervals."
        )
        return [], [note]

    def one(of: Estimates, k: int) -> Estimates:
        return Estimates(of.values[k : k + 1], of.variances[k : k + 1], of.df)

    return [(name, one(own, k), [one(of, k) for of in theirs]) for k, name in enumerate(names)], []


def estimate(
    sides: Sides, regression: Regression, design: Design, columns: Columns, what: str
) -> Estimates:
    """Return a regression's coefficients by maximum likelihood, with their variances.

    Outside the gaussian family a very wide prior keeps separated coefficients finite.
    """
    family, name = regression.distribution, regression.response
    variable = sides.schema.variables[name]
    raised: type[SynriskError] = SyntheticDataError
    if columns is sides.confidential:
        raised = DataError
    n_outside = int((~regression.supports(columns[name], variable)).sum())
    if n_outside:
        raise raised(f"{what}: {name!r} must be {regression.wants}; {n_outside:,} values are not.")
    y = regression.on_model_scale(columns[name])
    matrix = design.matrix(columns, len(y), what, raised)
    scale = Standardisation.of(matrix, 0 if regression.parsed.intercept else None)
    x = scale.apply(matrix)
    n, p = x.shape
    sizes = np.linalg.svd(x, compute_uv=False)
    if n <= p or sizes[-1] <= _RANK * sizes[0]:
        raise FitError(f"{what}: the predictors of {regression.formula!r} are collinear there.")
    back = _own_scale(scale, p)
    if family.on_response_scale:
        inverse = np.linalg.inv(x.T @ x)
        beta = inverse @ (x.T @ y)
        residual = y - x @ beta
        covariance = inverse * float(residual @ residual) / (n - p)
        return Estimates(back @ beta, np.diag(back @ covariance @ back.T), float(n - p))
    n_predictors = family.n_predictors(variable)
    prior = NormalPrior(np.zeros(p * n_predictors), np.full(p * n_predictors, _WIDE), np.empty(0))
    rows = all_chunks([Rows(x, y, np.ones(n))])
    problem = Problem(family, n_predictors, rows, prior, Serial(), what, 1.0)
    mode, precision = find_mode(problem, np.zeros(p * n_predictors))
    whole = np.kron(np.eye(n_predictors), back)
    covariance = whole @ np.linalg.inv(precision) @ whole.T
    return Estimates(whole @ mode, np.diag(covariance), math.inf)


def _own_scale(scale: Standardisation, n_columns: int) -> FloatArray:
    """Return the matrix that brings standardised coefficients to the columns' own scale."""
    return np.asarray(scale.coefficients(np.eye(n_columns)), dtype=np.float64)
