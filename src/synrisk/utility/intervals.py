"""Confidence intervals from both sides, and how far they overlap (Karr et al. 2006).

For an estimate q with variance v from each of m datasets, q̄ and v̄ their means, b the variance of q
between them and r rows over records, the variance of q̄ as an estimate of what the confidential data
estimate is

    fully synthetic, m > 1      (1 + 1/m) b − v̄      Raghunathan, Reiter, Rubin 2003
    partially synthetic, m > 1  v̄ + b/m              Reiter 2003
    one dataset                 v̄ (r + (1 + r)/m)    Raab, Nowok, Dibben 2016
    fitted parameters           v̄ (r + 1/m)          the same

The first and the third are for parameters drawn from their posterior: b then holds what the draws
add, which it lacks where all datasets have the fitted ones. So these take the last, whatever m; but
for partially synthetic datasets, whose b/m is the variance of q̄ given the data in either case. The
last two are for fully synthetic data, and an upper bound for partially synthetic ones.

Which estimates there are is settled by the confidential data alone. One that the release does not
give (a level that nobody has there, a predictor that does not vary) overlaps nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import DataError, FitError, SynriskError, SyntheticDataError, listed
from synrisk.base.workers import Serial
from synrisk.data.schema import Columns, Factor
from synrisk.fitting.laplace import NormalPrior, Problem, find_mode
from synrisk.fitting.standardise import Rows, Standardisation, all_chunks
from synrisk.models.design import Design
from synrisk.models.plan import Regression
from synrisk.models.posterior import parameter_names
from synrisk.utility.reading import Sides, unit_of

FULLY, PARTIALLY, SINGLE, UNCHANGED, LACKING = (
    "Raghunathan, Reiter, Rubin 2003",
    "Reiter 2003",
    "Raab, Nowok, Dibben 2016",
    "not synthesized",
    "cannot be estimated",
)
RULES = (FULLY, PARTIALLY, SINGLE, UNCHANGED, LACKING)
MEANS = "means and shares"
_OWN = "The confidential data"
_WIDE = 1e3  # the ridge of estimates: a prior's standard deviation on standardised columns
_RANK = 1e-9
_IN_THE_NULL_SPACE = 1e-6  # of a coefficient's own size: more than rounding
# Of a standard error of standardised coefficients: the ridge makes it, and not the rows. Where
# these separate the outcomes it is about _WIDE / 4.
_UNKNOWN = 0.05 * _WIDE


@dataclass(frozen=True, repr=False)
class Estimates:
    """Estimates of one side: NaN where the rows do not settle one.

    Attributes
    ----------
    values, variances
        In units that keep squares within what numbers can hold.
    units
        What values, and roots of variances, are to be multiplied by.
    df
        Degrees of freedom.
    """

    values: FloatArray
    variances: FloatArray
    units: FloatArray
    df: float

    def one(self, k: int) -> Estimates:
        """Return one of them."""
        at = slice(k, k + 1)
        return Estimates(self.values[at], self.variances[at], self.units[at], self.df)


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
    if m > 1 and between > 0 and not fitted:
        variance = (1.0 + 1.0 / m) * between - within
        of_rule = (m - 1) * (1.0 - m * within / ((m + 1) * between)) ** 2
        if variance > 0 and of_rule >= 1.0:
            return Combined(mean, variance, min(of_rule, df), FULLY)
    # Fitted parameters; one dataset; or the difference above is not positive, as it often is for
    # few datasets.
    factor = ratio + (1.0 if fitted else 1.0 + ratio) / m
    return Combined(mean, factor * within, df, SINGLE)


def overlap(low: float, high: float, other_low: float, other_high: float) -> float:
    """Return the mean share of two intervals that is common to them; 0 where none is.

    A point is the limit of ever shorter intervals about it. Inside an interval it is wholly common,
    but no part of the interval is: 0.5, as for any estimate that claims far too much certainty.
    Outside it is 0, and 1 for two points that are the same.

    Parameters
    ----------
    low, high
        The confidential interval; NaN is returned where it is not known.
    other_low, other_high
        The synthetic one; it overlaps nothing where it is not known.

    Examples
    --------
    >>> overlap(0.0, 2.0, 1.0, 5.0)
    0.375
    >>> overlap(0.0, 2.0, 1.0, 1.0), overlap(0.0, 2.0, 3.0, 3.0)
    (0.5, 0.0)
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return math.nan
    if not (math.isfinite(other_low) and math.isfinite(other_high)):
        return 0.0
    common = min(high, other_high) - max(low, other_low)
    if common < 0:
        return 0.0
    lengths = (high - low, other_high - other_low)
    return 0.5 * sum(common / length if length > 0 else 1.0 for length in lengths)


def overlap_of_copy(m: int, *, partial: bool, fitted: bool) -> float:
    """Return the overlap that m copies of the confidential data have.

    It is below 1 where the rule widens the interval of the release: by √3 for one dataset.
    """
    copies = combine(np.zeros(m), np.ones(m), ratio=1.0, partial=partial, fitted=fitted)
    wide = math.sqrt(copies.variance)
    return overlap(-1.0, 1.0, -wide, wide)


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
        if regression.parsed.groups:
            notes.append(
                f"Intervals of {shown} are not compared: its group-level terms are estimated by "
                "Bayesian models alone."
            )
            continue
        found, note = _of_regression(sides, regression)
        notes += note
        used = {regression.response, *regression.parsed.predictors}
        changed = not used.isdisjoint(sides.synthesized)
        rows += [
            _row(shown, term, own, theirs, sides, level, fitted=fitted, changed=changed)
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
    if not np.isfinite([values, variances]).all():
        together = Combined(math.nan, math.nan, math.nan, LACKING)
    elif changed:
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
    value, unit = float(own.values[0]), float(own.units[0])
    se = math.sqrt(own.variances[0])
    low, high = _interval(value, own.variances[0], own.df, level)
    s_low, s_high = _interval(together.estimate, together.variance, together.df, level)
    as_data = _interval(together.estimate, float(variances.mean()), df, level)
    return {
        "analysis": analysis,
        "term": term,
        "estimate_confidential": value * unit,
        "se_confidential": se * unit,
        "low_confidential": low * unit,
        "high_confidential": high * unit,
        "estimate_synthetic": together.estimate * unit,
        "se_synthetic": math.sqrt(together.variance) * unit,
        "low_synthetic": s_low * unit,
        "high_synthetic": s_high * unit,
        "df_synthetic": together.df,
        "rule": together.rule,
        "difference": (together.estimate - value) / se if se > 0 else np.nan,
        "overlap": overlap(low, high, s_low, s_high),
        "overlap_as_data": overlap(low, high, *as_data),
    }


def _interval(value: float, variance: float, df: float, level: float) -> tuple[float, float]:
    reach = float(stdtrit(df, 0.5 + 0.5 * level)) * math.sqrt(variance)
    return float(value - reach), float(value + reach)


def _means(sides: Sides) -> Iterator[tuple[str, Estimates, list[Estimates], bool]]:
    for name in sides.names:
        variable = sides.schema.variables[name]
        changed = name in sides.synthesized
        unit = 1.0
        cells: list[tuple[str, int | None]] = [(name, None)]
        if isinstance(variable, Factor):
            cells = [(f"{name}[{level}]", code) for code, level in enumerate(variable.levels)]
        else:
            unit = float(unit_of(sides.confidential[name]))
        for term, code in cells:
            own, *theirs = (
                _mean(side[name], code, unit) for side in (sides.confidential, *sides.datasets)
            )
            yield term, own, theirs, changed


def _mean(values: Any, code: int | None, unit: float) -> Estimates:
    numbers = np.asarray(values if code is None else values == code, dtype=np.float64)
    n = len(numbers)
    with np.errstate(over="ignore", invalid="ignore"):  # a release on quite another scale
        numbers = numbers / unit
        mean, variance = numbers.mean(), numbers.var(ddof=1) / n if n > 1 else np.nan
    units = np.array([unit])
    return Estimates(np.array([mean]), np.array([variance]), units, max(n - 1.0, 1.0))


def _of_regression(
    sides: Sides, regression: Regression
) -> tuple[list[tuple[str, Estimates, list[Estimates]]], list[str]]:
    """Return each coefficient from both sides, and notes on those that a side does not give."""
    what = f"Formula {regression.formula!r}"
    variable = sides.schema.variables[regression.response]
    regression = regression.given(variable)
    family = regression.distribution
    if not family.fits(variable):
        raise DataError(f"{what}: {regression.response!r} must be {regression.wants}.")
    design = Design.freeze(regression.parsed, sides.schema, sides.confidential, sides.n_records)
    names = parameter_names(design, family, variable)
    names = names[: len(names) - len(family.auxiliary)]
    matrix = design.matrix(sides.confidential, sides.n_records, _OWN, DataError)
    scale = Scale(
        unit_of(matrix, axis=0),
        float(unit_of(regression.on_model_scale(sides.confidential[regression.response])))
        if family.is_location_scale
        else 1.0,
    )
    own = estimate(sides, regression, design, sides.confidential, _OWN, scale)
    theirs = [
        estimate(sides, regression, design, columns, f"Synthetic dataset {number}", scale)
        for number, columns in enumerate(sides.datasets, 1)
    ]
    known = np.isfinite(own.variances)
    public, notes = parameter_names(design, family, variable, public=True), []
    if not known.all():
        notes.append(
            f"{what}: the confidential data do not settle {listed(_chosen(public, ~known))} "
            "(an outcome that others determine); left out."
        )
    lacking = [known & ~np.isfinite(one.variances) for one in theirs]
    numbers = [str(k) for k, one in enumerate(lacking, 1) if one.any()]
    if numbers:
        notes.append(
            f"{what}: synthetic dataset {listed(numbers)} cannot give "
            f"{listed(_chosen(public, np.any(lacking, axis=0)))}: a level is missing there, or a "
            "predictor does not vary. The overlap is 0."
        )
    return [(name, own.one(k), [of.one(k) for of in theirs]) for k, name in enumerate(names)], notes


def _chosen(names: Sequence[str], chosen: BoolArray) -> list[str]:
    """Return names, each once: levels that are not shown make some alike."""
    names = names[: len(chosen)]  # without auxiliary ones
    return list(dict.fromkeys(n for n, one in zip(names, chosen, strict=True) if one))


@dataclass(frozen=True, repr=False)
class Scale:
    """Units of a design's columns and of the response, in which squares can be held."""

    columns: FloatArray
    response: float


def estimate(
    sides: Sides,
    regression: Regression,
    design: Design,
    columns: Columns,
    what: str,
    units: Scale,
) -> Estimates:
    """Return a regression's coefficients by maximum likelihood, with their variances.

    Outside the gaussian family a very wide prior keeps separated coefficients finite. Those that
    the rows do not settle are NaN.
    """
    family, name = regression.distribution, regression.response
    variable = sides.schema.variables[name]
    is_own = columns is sides.confidential
    raised: type[SynriskError] = DataError if is_own else SyntheticDataError
    n_outside = int((~regression.supports(columns[name], variable)).sum())
    if n_outside:
        raise raised(f"{what}: {name!r} must be {regression.wants}; {n_outside:,} values are not.")
    with np.errstate(over="ignore", invalid="ignore"):  # a release on quite another scale
        y = regression.on_model_scale(columns[name]) / units.response
        matrix = design.matrix(columns, len(y), what, raised) / units.columns
        scale = Standardisation.of(matrix, 0 if regression.parsed.intercept else None)
        x = scale.apply(matrix)
        squares = float(y @ y)
    n, p = x.shape
    n_predictors = family.n_predictors(variable)
    units_of = np.tile(units.response / units.columns, n_predictors)
    nothing = np.full(p * n_predictors, np.nan)
    unknown = Estimates(nothing, nothing, units_of, math.inf)
    if not (np.isfinite(x).all() and math.isfinite(squares)):
        return unknown
    _, sizes, directions = np.linalg.svd(x, full_matrices=n < p)
    rank = int((sizes > _RANK * sizes[0]).sum())
    if is_own and (n <= p or rank < p):
        raise FitError(f"{what}: the predictors of {regression.formula!r} are collinear there.")
    if n <= rank:
        return unknown
    back = _own_scale(scale, p)
    if family.exact:
        kept = directions[:rank].T
        coefficients, variances = _least_squares(x, y, kept, kept / sizes[:rank], back)
        return Estimates(coefficients, variances, units_of, float(n - rank))
    try:
        estimated = _maximum_likelihood(regression, x, y, n_predictors, back, what)
    except FitError:
        if is_own:
            raise
        return unknown
    return Estimates(*estimated, units_of, math.inf)


def _least_squares(
    x: FloatArray, y: FloatArray, kept: FloatArray, root: FloatArray, back: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients on their own scale and variances, NaN where the rows do not settle them.

    `kept` are the directions that the rows settle, and `root` these over their singular values.
    """
    n, rank = len(x), kept.shape[1]
    beta = root @ (root.T @ (x.T @ y))
    residual = y - x @ beta
    variances = np.square(back @ root).sum(axis=1) * float(residual @ residual) / (n - rank)
    lost = np.linalg.norm(back - back @ kept @ kept.T, axis=1)
    variances[lost > _IN_THE_NULL_SPACE * np.linalg.norm(back, axis=1)] = np.nan
    return back @ beta, variances


def _maximum_likelihood(
    regression: Regression,
    x: FloatArray,
    y: FloatArray,
    n_predictors: int,
    back: FloatArray,
    what: str,
) -> tuple[FloatArray, FloatArray]:
    """Return the same of a model that is fitted by Newton steps, under a very wide prior."""
    family, (n, p) = regression.distribution, x.shape
    n_coefficients = p * n_predictors
    n_parameters = n_coefficients + len(family.auxiliary)  # of these the logs are estimated
    prior = NormalPrior(np.zeros(n_parameters), np.full(n_parameters, _WIDE), np.empty(0))
    start = np.zeros((n_predictors, p))
    if family.identity_link and regression.parsed.intercept:
        start[:, 0] = y.mean()
    logs = [math.log(own.default_mean(1.0)) for own in family.auxiliary]
    rows = all_chunks([Rows(x, y, np.ones(n))])
    problem = Problem(family, p, n_predictors, rows, prior, Serial(), what, 1.0)
    mode, precision = find_mode(problem, np.concatenate([start.ravel(), logs]))
    whole = np.kron(np.eye(n_predictors), back)
    covariance = np.linalg.inv(precision)[:n_coefficients, :n_coefficients]
    variances = np.diag(whole @ covariance @ whole.T).copy()
    variances[variances > np.square(_UNKNOWN * np.linalg.norm(whole, axis=1))] = np.nan
    return whole @ mode[:n_coefficients], variances


def _own_scale(scale: Standardisation, n_columns: int) -> FloatArray:
    """Return the matrix that brings standardised coefficients to the columns' own scale."""
    return np.asarray(scale.coefficients(np.eye(n_columns)), dtype=np.float64)
