"""One regression fitted: checked, standardised, its priors scaled, its posterior drawn.

What is settled at the confidential data (scales, centring, priors, random numbers) is kept in a
`Fit`, so that a refit on other rows differs in these alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.chunks import ROWS
from synrisk.base.errors import FitError, OptionError
from synrisk.base.messages import either, place_of, setting
from synrisk.base.workers import Executor, Serial
from synrisk.data.schema import Variable
from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.evidence import Evidence, evidence_at
from synrisk.fitting.extent import Extent, squares_of_placed
from synrisk.fitting.frozen import Engine, FrozenRegression, Priors, common_numbers, worth_of
from synrisk.fitting.identifiability import (
    has_one_outcome,
    outcomes,
    refuse_certain_response,
    refuse_constant_columns,
    refuse_extreme_scales,
    separated_columns,
    separation_notes,
    variance_inflation,
)
from synrisk.fitting.laplace import Fitted
from synrisk.fitting.prior_scales import Scales, resolve_priors
from synrisk.fitting.psis import LEAST_JUDGED
from synrisk.fitting.standardise import Chunks, Rows, Standardisation
from synrisk.fitting.sufficient_statistics import gram_of
from synrisk.fitting.table import ArrayTable, Table
from synrisk.models.design import Design
from synrisk.models.families import Family
from synrisk.models.plan import Regression
from synrisk.models.posterior import Posterior, parameter_names
from synrisk.models.priors import Conjugate, PriorSpec

DRAWS_AT_A_GUESS = 1000
_ROUNDING = 1e-13
_LEAST_PLACED = 2  # values for a prior to be scaled by
_DRAWS_A_PARAMETER = 20  # for the covariance of draws to be known
_MOST_COEFFICIENTS = 1000  # of a model: minutes
_MOST_DERIVATIVES = 2_000_000_000  # by rows: minutes
_JUDGED_DRAWS = 1000  # where fewer are asked for than can be judged
_GIVEN_DRAWS = either("Synthesizer.from_draws", '[[model]] draws = "draws.csv"')
_OWN_PRIOR = either("Regression(..., prior='conjugate')", '[[model]] prior = "conjugate"')


@dataclass(frozen=True, repr=False)
class Fit:
    """How a posterior was fitted, with all that a fit to other rows needs.

    Attributes
    ----------
    frozen
        The regression with what the confidential data settled: its posterior given any rows.
    numbers
        The random numbers of the draws.
    mode
        Of every parameter (sigma: the exponential of the mode of its logarithm).
    khat, ess
        The shape of the importance weights' tail (−∞ for exact draws), their effective number.
    inflation
        The variance inflation factor of each design column.
    separated
        Positions of the columns that settle an outcome.
    notes
        What a user should know.
    adapted
        Whether proposals at the mode did not do, and were laid out anew.
    """

    SHAPES: ClassVar = {"mode": ("parameter",), "inflation": ("column",)}
    frozen: FrozenRegression
    numbers: CommonNumbers
    mode: FloatArray
    khat: float
    ess: float
    inflation: FloatArray
    separated: tuple[int, ...]
    notes: tuple[str, ...]
    adapted: bool = False

    @property
    def engine(self) -> Engine:
        """How the posterior was drawn from: "exact", "laplace" or "nuts"."""
        return self.frozen.engine

    @property
    def priors(self) -> Priors:
        """The scaled prior of every parameter, or the conjugate one."""
        return self.frozen.priors

    def refit(self, tables: Sequence[Table], names: tuple[str, ...], executor: Executor) -> Refit:
        """Fit again to the rows of several tables, from the same random numbers.

        Parameters
        ----------
        tables
            Their rows.
        names
            The parameters.
        executor
            Maps over chunks of rows.
        """
        rows = self.frozen.rows(tables)
        fitted = self.frozen.fitted(
            rows, self.numbers, self.numbers, executor, adapted=self.adapted
        )
        posterior = self.frozen.posterior(fitted, names)
        return Refit(posterior, fitted.khat, fitted.ess, fitted.reliable)

    def evidence(
        self, tables: Sequence[Table], guesses: ArrayTable, executor: Executor
    ) -> Evidence:
        """Return the evidence of the rows of tables with one guess after the other among them.

        `guesses` has a row for each, with the response on the model's scale.
        """
        frozen = self.frozen
        matrix = frozen.standardisation.apply(guesses.matrix)
        of_guesses = Rows(matrix, guesses.y, guesses.omega)
        numbers = common_numbers(
            0, "guesses", frozen.regression, DRAWS_AT_A_GUESS, self.numbers.z.shape[1]
        )
        if sum(table.n_rows for table in tables) <= ROWS:
            executor = Serial()  # threads would take longer than the work
        problem = frozen.problem(frozen.rows(tables), executor)
        return evidence_at(problem, of_guesses, frozen.start(), numbers)


@dataclass(frozen=True, repr=False)
class Refit:
    """The posterior given other rows, from the same random numbers."""

    posterior: Posterior
    khat: float
    ess: float
    reliable: bool


def refuse_too_large(what: str, n_rows: int, n_columns: int, n_predictors: int) -> None:
    """Raise where a fit would take hours.

    `n_columns` is that of the design, or the least that it has before it is made.
    """
    n_coefficients = n_columns * n_predictors
    n_derivatives = n_rows * n_predictors**2  # second ones, row by row
    if n_coefficients > _MOST_COEFFICIENTS or n_derivatives > _MOST_DERIVATIVES:
        raise FitError(
            f"{what}: {n_coefficients:,} coefficients and {n_rows:,} records are too many: at most "
            f"{_MOST_COEFFICIENTS:,} coefficients, and {_MOST_DERIVATIVES:,} records times the "
            f"square of a response's levels (here {n_derivatives:,}). Merge rare levels of the "
            "response or of a predictor, or leave it out."
        )


def fit_regression(
    regression: Regression,
    design: Design,
    variable: Variable,
    table: Table,
    *,
    prior: PriorSpec,
    engine: str,
    n_draws: int,
    seed: int,
    executor: Executor,
) -> tuple[Posterior, Fit]:
    """Fit one regression to the confidential rows.

    Parameters
    ----------
    regression, design, variable
        The model and its response.
    table
        The rows.
    prior, engine, n_draws, seed, executor
        As `synrisk.fit` has them, checked.
    """
    what, family = regression.title, regression.distribution
    refuse_too_large(what, table.n_rows, len(design.columns), family.n_predictors(variable))
    as_they_are = table.chunks(regression, None)
    fast = worth_of(as_they_are, executor)
    extent = Extent.of(family, as_they_are, fast)
    standardisation = _standardisation(regression, design, as_they_are, extent, fast)
    rows = table.chunks(regression, standardisation)
    inflation = variance_inflation(gram_of(rows, fast), design.columns, what)
    is_amount = family.residual_sd(np.ones(len(family.auxiliary))) is not None
    if family.identity_link or (is_amount and extent.has_gaps):
        centre = standardisation.intercept is not None
        refuse_certain_response(rows, extent, what, fast, centre=centre)
    names = parameter_names(design, family, variable)
    scales = _scales(family, as_they_are, extent, standardisation, fast)
    frozen = _freeze(regression, design, variable, scales, standardisation, prior, engine)
    # An exact sigma is drawn by its inverse CDF, from u.
    n_normals = len(names) - (len(family.auxiliary) if frozen.engine == "exact" else 0)
    numbers = common_numbers(seed, "fit", regression, n_draws, n_normals)
    judged = numbers
    if n_draws < LEAST_JUDGED:
        judged = common_numbers(seed, "judge", regression, _JUDGED_DRAWS, n_normals)
    fitted = frozen.fitted(rows, numbers, judged, executor)
    _refuse_unreliable(fitted, frozen, n_draws)
    coefficients, auxiliary = frozen.own_scale(fitted.mode[None])
    found = outcomes(family, as_they_are, extent, design.columns, fast)
    separated = separated_columns(family, found, design.columns)
    notes = separation_notes(
        regression.response,
        [name for _, name in separated],
        completely=family.is_classification and frozen.settles_all(fitted.mode, rows),
        constant=has_one_outcome(family, found),
    )
    fit = Fit(
        frozen=frozen,
        numbers=numbers,
        mode=np.concatenate([np.swapaxes(coefficients, 1, 2).ravel(), auxiliary.ravel()]),
        khat=fitted.khat,
        ess=fitted.ess,
        inflation=inflation,
        separated=tuple(k for k, _ in separated if k is not None),
        notes=notes,
        adapted=fitted.adapted,
    )
    return frozen.posterior(fitted, names), fit


def _standardisation(
    regression: Regression, design: Design, rows: Chunks, extent: Extent, executor: Executor
) -> Standardisation:
    """Return that of the design's columns, which must have a scale that numbers can hold."""
    refuse_extreme_scales(extent, regression.title)
    if not regression.parsed.intercept:
        return Standardisation.of_rows(rows, extent.total, None, executor)
    refuse_constant_columns(extent, design.columns, regression.title)
    return Standardisation.of_rows(rows, extent.total, 0, executor)


def _freeze(
    regression: Regression,
    design: Design,
    variable: Variable,
    scales: Scales,
    standardisation: Standardisation,
    prior: PriorSpec,
    engine: str,
) -> FrozenRegression:
    """Scale the priors, and settle the engine."""
    family = regression.distribution
    names = parameter_names(design, family, variable)
    coefficients = names[: len(names) - len(family.auxiliary)]
    priors = resolve_priors(
        prior,
        design.columns,
        coefficients,
        family.auxiliary,
        scales,
        regression.title,
        len(family.further_predictors),
    )
    own = _engine(engine, priors, regression)
    n_predictors = family.n_predictors(variable)
    return FrozenRegression(regression, own, n_predictors, priors, scales, standardisation)


def _refuse_unreliable(fitted: Fitted, frozen: FrozenRegression, n_draws: int) -> None:
    if fitted.reliable:
        return
    what = frozen.regression.title
    if frozen.engine == "nuts":
        raise FitError(
            f"{what}: the chains of NUTS do not agree. Merge rare levels, leave predictors out, "
            "narrow the priors, or use more draws."
        )
    advice = (
        f"Use {setting('engine', 'auto')}, which draws gaussian models exactly."
        if frozen.family.exact
        else "More draws do not help. Merge rare levels, leave predictors out, or narrow the "
        f"priors; or draw it by MCMC, with {setting('engine', 'nuts')}, or elsewhere and use "
        f"{_GIVEN_DRAWS}."
    )
    raise FitError(
        f"{what}: the posterior is too far from normal to be drawn by importance sampling "
        f"(k̂ = {fitted.khat:.2f}, effective draws {fitted.ess:.0f} of {n_draws:,}). {advice}"
    )


def moments_of_draws(posterior: Posterior) -> tuple[FloatArray, FloatArray] | None:
    """Return the centre and the covariance of draws; None where they are few.

    Coefficients are predictor by predictor, then auxiliary parameters in logs.
    """
    coefficients = np.swapaxes(posterior.coefficients, 1, 2).reshape(posterior.n_draws, -1)
    theta = np.concatenate([coefficients, np.log(posterior.auxiliary)], axis=1)
    return _moments(theta, np.exp(posterior.log_weights))


def _moments(theta: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    if 1.0 / (weight @ weight) < _DRAWS_A_PARAMETER * theta.shape[1]:
        return None
    mean = weight @ theta
    apart = theta - mean
    return mean, apart.T @ (weight[:, None] * apart)


def _scales(
    family: Family,
    rows: Chunks,
    extent: Extent,
    standardisation: Standardisation,
    executor: Executor,
) -> Scales:
    centre, spread, placed = 0.0, 1.0, extent.placed
    if placed is None or placed.n < _LEAST_PLACED:
        return Scales(centre, spread, standardisation.spread)
    if standardisation.intercept is not None:
        centre = placed.total / placed.n
        squares = squares_of_placed(family, rows, centre, executor)
        sd = math.sqrt(squares / (placed.n - 1))
        # Equal logarithms differ in their last digit from their mean.
        spread = sd if sd > _ROUNDING * placed.size else spread
    else:
        squares = squares_of_placed(family, rows, 0.0, executor)
        spread = math.sqrt(squares / placed.n) or spread
    return Scales(centre, spread, standardisation.spread)


def _engine(asked: str, priors: Priors, regression: Regression) -> Engine:
    what, family = regression.title, regression.distribution
    conjugate_prior = isinstance(priors, Conjugate)
    if conjugate_prior and not family.exact:
        raise OptionError(
            f"{what}: the conjugate prior is for gaussian models; give it "
            f"to those alone, as {_OWN_PRIOR}."
        )
    if asked == "exact" and not family.exact:
        raise OptionError(
            f"{what}: {setting('engine', 'exact')} is for gaussian models; "
            f"{setting('engine', 'auto')} takes it where it can.",
            about=place_of("engine"),
        )
    if asked in ("laplace", "nuts") and conjugate_prior:
        raise OptionError(
            f"{what}: the conjugate prior is drawn from exactly; use "
            f"{setting('engine', 'auto')} or 'exact', or another prior.",
            about=place_of("engine"),
        )
    if asked == "auto":
        return "exact" if family.exact else "laplace"
    return "exact" if asked == "exact" else "nuts" if asked == "nuts" else "laplace"
