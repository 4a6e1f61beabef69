"""One regression fitted: checked, standardised, its priors scaled, its posterior drawn.

What is settled at the confidential data (scales, centring, priors, random numbers) is kept in a
`Fit`, so that a refit on other rows differs in these alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import FitError, OptionError
from synrisk.base.messages import either, place_of, setting
from synrisk.base.notes import Note
from synrisk.base.seeds import stream
from synrisk.base.workers import Executor, Serial
from synrisk.core.likelihood import Nodes
from synrisk.data.schema import Variable
from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.conjugate import ConjugatePosterior, ConjugatePrior
from synrisk.fitting.evidence import Evidence, evidence_at
from synrisk.fitting.identifiability import (
    has_one_outcome,
    refuse_certain_response,
    refuse_constant_columns,
    refuse_extreme_scales,
    separated_columns,
    separation_notes,
    variance_inflation,
)
from synrisk.fitting.laplace import Fitted, NormalPrior, Problem, find_mode, laplace
from synrisk.fitting.normal_prior import GaussianPosterior
from synrisk.fitting.nuts import nuts
from synrisk.fitting.prior_scales import Scales, resolve_priors
from synrisk.fitting.psis import LEAST_JUDGED
from synrisk.fitting.sigma_quadrature import Furthest, KnownGivenSigma, quadrature
from synrisk.fitting.standardise import Rows, Standardisation, all_chunks
from synrisk.fitting.sufficient_statistics import Sums
from synrisk.models.design import Design
from synrisk.models.families import Family
from synrisk.models.plan import Regression
from synrisk.models.posterior import Posterior, parameter_names
from synrisk.models.priors import Conjugate, Exponential, Normal, PriorSpec

Engine: TypeAlias = Literal["exact", "laplace", "nuts"]
Priors: TypeAlias = tuple[Normal | Exponential, ...] | Conjugate

_CERTAIN = math.log(0.5)  # a class more probable than all others together
DRAWS_AT_A_GUESS = 1000
_DRAWS_A_PARAMETER = 20  # for the covariance of draws to be known
_MANY_ROWS = 50_000
_JUDGED_DRAWS = 1000  # where fewer are asked for than can be judged
_GIVEN_DRAWS = either("Synthesizer.from_draws", '[[model]] draws = "draws.csv"')
_OWN_PRIOR = either("Regression(..., prior='conjugate')", '[[model]] prior = "conjugate"')


@dataclass(frozen=True, repr=False)
class Fit:
    """How a posterior was fitted, with all that a refit needs.

    Attributes
    ----------
    engine
        "exact", "laplace" or "nuts".
    priors
        The scaled prior of every parameter, or the conjugate one.
    scales
        What they were scaled by.
    standardisation
        Of the design's columns.
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
    """

    engine: Engine
    priors: Priors
    scales: Scales
    standardisation: Standardisation
    numbers: CommonNumbers
    mode: FloatArray
    khat: float
    ess: float
    inflation: FloatArray
    separated: tuple[int, ...]
    notes: tuple[Note, ...]


def fit_regression(
    regression: Regression,
    design: Design,
    variable: Variable,
    matrix: FloatArray,
    values: FloatArray,
    omega: FloatArray,
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
    matrix, values, omega
        The design of the rows, their response on its own scale, and their weights.
    prior, engine, n_draws, seed, executor
        As `synrisk.fit` has them, checked.
    """
    what, family = _named(regression), regression.distribution
    y = regression.on_model_scale(values)
    counting = omega > 0
    intercept = 0 if regression.parsed.intercept else None
    refuse_extreme_scales(matrix, y, what)
    if intercept is not None:
        refuse_constant_columns(matrix, design.columns, what)
    standardisation = Standardisation.of(matrix, intercept)
    standardised = standardisation.apply(matrix)
    inflation = variance_inflation(standardised, design.columns, what)
    if family.on_response_scale:
        centre = intercept is not None
        refuse_certain_response(standardised[counting], y[counting], what, centre=centre)
    scales = _scales(family, y, standardisation)
    names = parameter_names(design, family, variable)
    n_auxiliary = len(family.auxiliary)
    priors = resolve_priors(
        prior, design.columns, names[: len(names) - n_auxiliary], family.auxiliary, scales, what
    )
    chosen = _engine(engine, priors, family, regression)
    # An exact sigma is drawn by its inverse CDF, from u.
    n_normals = len(names) - (n_auxiliary if chosen == "exact" else 0)
    numbers = _numbers(seed, "fit", regression, n_draws, n_normals)
    judged = numbers
    if n_draws < LEAST_JUDGED:
        judged = _numbers(seed, "judge", regression, _JUDGED_DRAWS, n_normals)
    n_predictors = family.n_predictors(variable)
    task = _Task(chosen, family, n_predictors, priors, scales, standardisation, what)
    rows = all_chunks([Rows(standardised, y, omega)])
    fitted = task.fitted(rows, numbers, judged, executor)
    if not fitted.reliable and chosen == "nuts":
        raise FitError(
            f"{what}: the chains of NUTS do not agree. Merge rare levels, leave predictors out, "
            "narrow the priors, or use more draws."
        )
    if not fitted.reliable:
        raise FitError(
            f"{what}: the posterior is too far from normal to be drawn by importance sampling "
            f"(k̂ = {fitted.khat:.2f}, effective draws {fitted.ess:.0f} of {n_draws:,}). "
            + (
                f"Use {setting('engine', 'auto')}, which draws gaussian models exactly."
                if family.on_response_scale
                else "Merge rare levels, leave predictors out, or narrow the priors; or draw it by "
                f"MCMC elsewhere and use {_GIVEN_DRAWS}."
            )
        )
    coefficients, auxiliary = task.own_scale(fitted.mode[None])
    separated = separated_columns(family, y[counting], matrix[counting], design.columns)
    completely = family.is_classification and _is_settled(task, fitted.mode, rows)
    notes = separation_notes(
        regression.response,
        [name for _, name in separated],
        completely=completely,
        constant=has_one_outcome(family, y[counting]),
    )
    fit = Fit(
        engine=chosen,
        priors=priors,
        scales=scales,
        standardisation=standardisation,
        numbers=numbers,
        mode=np.concatenate([np.swapaxes(coefficients, 1, 2).ravel(), auxiliary.ravel()]),
        khat=fitted.khat,
        ess=fitted.ess,
        inflation=inflation,
        separated=tuple(k for k, _ in separated if k is not None),
        notes=notes,
    )
    return task.posterior(fitted, names), fit


@dataclass(frozen=True, repr=False)
class Refit:
    """The posterior given other rows, from the same random numbers."""

    posterior: Posterior
    khat: float
    ess: float
    reliable: bool


def refit_regression(
    regression: Regression,
    variable: Variable,
    fit: Fit,
    names: tuple[str, ...],
    tables: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    executor: Executor,
) -> Refit:
    """Fit a regression again to the rows of several tables, everything else frozen in `fit`.

    Parameters
    ----------
    regression, variable, names
        The model, its response, and its parameters.
    fit
        The fit to the confidential rows.
    tables
        For each table the design of its rows, their response on its own scale, their weights.
    executor
        Maps over the chunks.
    """
    task, rows = _frozen(regression, variable, fit, tables)
    fitted = task.fitted(rows, fit.numbers, fit.numbers, executor)
    return Refit(task.posterior(fitted, names), fitted.khat, fitted.ess, fitted.reliable)


def sums_of_regression(
    regression: Regression,
    variable: Variable,
    fit: Fit,
    tables: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    executor: Executor,
) -> Sums:
    """Return what the exact posterior of a gaussian regression takes from the rows of tables.

    Arguments are those of `refit_regression`.
    """
    task, rows = _frozen(regression, variable, fit, tables)
    return task.sums(rows, _worth_of(rows, executor))


def known_by_sums(
    regression: Regression, variable: Variable, fit: Fit, sums: Sums
) -> KnownGivenSigma:
    """Return the exact posterior of a gaussian regression, given sums over rows."""
    return _frozen(regression, variable, fit, [])[0].known_given_sigma(sums)


def furthest_records(
    regression: Regression,
    variable: Variable,
    fit: Fit,
    known: KnownGivenSigma,
    sums: Sums,
    table: tuple[FloatArray, FloatArray, FloatArray],
    executor: Executor,
) -> Furthest:
    """Return how far records lie from a gaussian regression that was given them.

    Arguments are those of `refit_regression`, with the records' table, and the posterior with the
    sums over the rows that it was given.
    """
    rows = _frozen(regression, variable, fit, [table])[1]
    return Furthest.of(known, sums, rows, _worth_of(rows, executor))


def nodes_of_regression(
    regression: Regression,
    fit: Fit,
    known: KnownGivenSigma,
    sums: Sums,
    furthest: Furthest,
    reach: float,
) -> Nodes:
    """Return the exact posterior of a gaussian regression as a sum over nodes of sigma.

    Parameters
    ----------
    regression, fit
        The model, and its fit to the confidential rows.
    known, sums
        The posterior, and the sums over the rows that it was given.
    furthest
        Of the confidential records among these.
    reach
        How far guesses may lie from the truth.
    """
    log_sigma, log_weight = quadrature(known, sums, furthest, reach, _named(regression))
    mean, covariance = known.given(log_sigma)
    return Nodes(
        log_weight,
        np.exp(log_sigma),
        np.ascontiguousarray(mean),
        np.ascontiguousarray(covariance),
        fit.standardisation.centre,
        fit.standardisation.spread,
    )


def moments_of_regression(
    regression: Regression,
    variable: Variable,
    fit: Fit,
    tables: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    executor: Executor,
    near: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the mode of the posterior given the rows of several tables, and the covariance there.

    Arguments are those of `refit_regression`, and what was returned for other rows, if anything.
    Parameters are standardised, sigma in logs.
    """
    task, rows = _frozen(regression, variable, fit, tables)
    start = task.start() if near is None else near[0]
    mode, precision = find_mode(task.problem(rows, executor), start)
    return mode, np.asarray(np.linalg.inv(precision))


def _worth_of(rows: Sequence[Rows], executor: Executor) -> Executor:
    """Return the executor for a gaussian fit: of few rows it is over before threads have begun."""
    return executor if sum(len(part.y) for part in rows) > _MANY_ROWS else Serial()


def draws_for_moments(n_parameters: int) -> int:
    """Return how many draws to make where centre and covariance are wanted."""
    return max(_JUDGED_DRAWS, 2 * _DRAWS_A_PARAMETER * n_parameters)


def moments_of_draws(posterior: Posterior) -> tuple[FloatArray, FloatArray] | None:
    """Return the centre and the covariance of draws, sigma in logs; None where they are few."""
    coefficients = posterior.coefficients.reshape(posterior.n_draws, -1)
    theta = np.concatenate([coefficients, np.log(posterior.auxiliary)], axis=1)
    return _moments(theta, np.exp(posterior.log_weights))


def _moments(theta: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    if 1.0 / (weight @ weight) < _DRAWS_A_PARAMETER * theta.shape[1]:
        return None
    mean = weight @ theta
    apart = theta - mean
    return mean, apart.T @ (weight[:, None] * apart)


def evidence_of_regression(
    regression: Regression,
    variable: Variable,
    fit: Fit,
    tables: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    guesses: tuple[FloatArray, FloatArray, FloatArray],
    executor: Executor,
) -> Evidence:
    """Return the evidence of the rows of tables with one guess after the other among them.

    Arguments are those of `refit_regression`; `guesses` are the design of a row for each guess, the
    response on the model's scale, and the weights.
    """
    task, rows = _frozen(regression, variable, fit, tables)
    matrix, y, omega = guesses
    of_guesses = Rows(fit.standardisation.apply(matrix), y, omega)
    n_normals = fit.numbers.z.shape[1]
    numbers = _numbers(0, "guesses", regression, DRAWS_AT_A_GUESS, n_normals)
    return evidence_at(task.problem(rows, executor), of_guesses, task.start(), numbers)


def _named(regression: Regression) -> str:
    return f"Formula {regression.formula!r}"


def _frozen(
    regression: Regression,
    variable: Variable,
    fit: Fit,
    tables: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
) -> tuple[_Task, list[Rows]]:
    family, what = regression.distribution, _named(regression)
    n_predictors = family.n_predictors(variable)
    task = _Task(
        fit.engine, family, n_predictors, fit.priors, fit.scales, fit.standardisation, what
    )
    rows = [
        Rows(fit.standardisation.apply(matrix), regression.on_model_scale(values), omega)
        for matrix, values, omega in tables
    ]
    return task, all_chunks(rows)


@dataclass(frozen=True, repr=False)
class _Task:
    """What is the same for a fit and its refits."""

    engine: Engine
    family: Family
    n_predictors: int
    priors: Priors
    scales: Scales
    standardisation: Standardisation
    what: str

    @property
    def n_columns(self) -> int:
        return len(self.standardisation.spread)

    def fitted(
        self,
        rows: Sequence[Rows],
        numbers: CommonNumbers,
        judged: CommonNumbers,
        executor: Executor,
    ) -> Fitted:
        if self.engine == "exact":
            return self.known_given_sigma(self.sums(rows, executor)).draw(numbers)
        problem = self.problem(rows, executor)
        if self.engine == "nuts":
            n_rows = sum(len(part.y) for part in rows)
            return nuts(problem, self.start(), len(numbers.u), _nuts_seed(numbers, n_rows))
        fitted = laplace(problem, self.start(), numbers, judged)
        if self.family.on_response_scale:  # k̂ does not see a second mode or a tail that was missed
            sums = self.sums(rows, executor)
            exact = GaussianPosterior.of(sums, problem.prior, self.scales.spread)
            fitted = replace(fitted, reliable=fitted.reliable and exact.agrees(fitted))
        return fitted

    def problem(self, rows: Sequence[Rows], executor: Executor) -> Problem:
        """Return the posterior given rows, under normal priors."""
        prior = self._prior
        if isinstance(prior, ConjugatePrior):
            raise OptionError(f"{self.what}: the conjugate prior is drawn from exactly.")
        return Problem(
            self.family, self.n_predictors, rows, prior, executor, self.what, self.scales.spread
        )

    def sums(self, rows: Sequence[Rows], executor: Executor) -> Sums:
        """Return what a gaussian posterior takes from rows."""
        return Sums.of(rows, self._prior.mean, executor)

    def known_given_sigma(self, sums: Sums) -> GaussianPosterior | ConjugatePosterior:
        """Return the posterior of a gaussian model, whose coefficients are normal given sigma."""
        prior = self._prior
        if isinstance(prior, ConjugatePrior):
            return ConjugatePosterior.of(sums, prior, self.what)
        return GaussianPosterior.of(sums, prior, self.scales.spread)

    def own_scale(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coefficients ``(draw, column, predictor)`` and auxiliary parameters."""
        n = self.n_columns * self.n_predictors
        by_predictor = theta[:, :n].reshape(len(theta), self.n_predictors, self.n_columns)
        standardised = np.swapaxes(by_predictor, 1, 2)
        return self.standardisation.coefficients(standardised), np.exp(theta[:, n:])

    def posterior(self, fitted: Fitted, names: tuple[str, ...]) -> Posterior:
        coefficients, auxiliary = self.own_scale(fitted.theta)
        return Posterior(
            np.ascontiguousarray(coefficients),
            np.ascontiguousarray(auxiliary),
            fitted.log_weights,
            names,
            ("fit",) * len(names),
            fitted.chain,
        )

    def start(self) -> FloatArray:
        """Return where the search for the mode begins."""
        start = np.zeros((self.n_predictors, self.n_columns))
        if self.standardisation.intercept is not None:
            start[:, self.standardisation.intercept] = self.scales.centre
        logs = np.full(len(self.family.auxiliary), math.log(self.scales.spread))
        return np.concatenate([start.ravel(), logs])

    @property
    def _prior(self) -> NormalPrior | ConjugatePrior:
        if isinstance(self.priors, Conjugate):
            mean = np.zeros(self.n_columns)
            if self.standardisation.intercept is not None:
                mean[self.standardisation.intercept] = self.scales.centre
            return ConjugatePrior(
                mean, float(self.priors.scale), float(self.priors.df), self.scales.spread
            )
        normals = [prior for prior in self.priors if isinstance(prior, Normal)]
        rates = [prior.rate for prior in self.priors if isinstance(prior, Exponential)]
        spread = np.tile(self.standardisation.spread, self.n_predictors)
        return NormalPrior(
            np.array([prior.mean for prior in normals]) * spread,
            np.array([prior.sd for prior in normals]) * spread,
            np.array(rates, dtype=np.float64),
        )


def _numbers(
    seed: int, stage: str, regression: Regression, n_draws: int, n_normals: int
) -> CommonNumbers:
    rng = stream(seed, stage, variable=regression.response)
    return CommonNumbers.draw(rng, n_draws, n_normals)


def _nuts_seed(numbers: CommonNumbers, n_rows: int) -> int:
    """Return a seed that belongs to a fit's random numbers, another for other rows."""
    start = int(numbers.u[0] * 2.0**53)
    return int(np.random.SeedSequence([start, n_rows]).generate_state(1)[0])


def _scales(family: Family, y: FloatArray, standardisation: Standardisation) -> Scales:
    centre, spread = 0.0, 1.0
    if family.on_response_scale and standardisation.intercept is not None:
        centre, spread = float(y.mean()), float(y.std(ddof=1))
    elif family.on_response_scale:
        spread = math.sqrt(float((y * y).mean()))
    return Scales(centre, spread, standardisation.spread)


def _engine(asked: str, priors: Priors, family: Family, regression: Regression) -> Engine:
    conjugate_prior = isinstance(priors, Conjugate)
    if conjugate_prior and not family.on_response_scale:
        raise OptionError(
            f"Formula {regression.formula!r}: the conjugate prior is for gaussian models; give it "
            f"to those alone, as {_OWN_PRIOR}."
        )
    if asked == "exact" and not family.on_response_scale:
        raise OptionError(
            f"Formula {regression.formula!r}: {setting('engine', 'exact')} is for gaussian models; "
            f"{setting('engine', 'auto')} takes it where it can.",
            about=place_of("engine"),
        )
    if asked in ("laplace", "nuts") and conjugate_prior:
        raise OptionError(
            f"Formula {regression.formula!r}: the conjugate prior is drawn from exactly; use "
            f"{setting('engine', 'auto')} or 'exact', or another prior.",
            about=place_of("engine"),
        )
    if asked == "auto":
        return "exact" if family.on_response_scale else "laplace"
    return "exact" if asked == "exact" else "nuts" if asked == "nuts" else "laplace"


def _is_settled(task: _Task, mode: FloatArray, rows: Sequence[Rows]) -> bool:
    """Tell whether the coefficients at the mode part the classes without an error."""
    n = task.n_columns * task.n_predictors
    coefficients = mode[:n].reshape(task.n_predictors, task.n_columns).T
    return all(
        bool(
            (
                task.family.log_density(
                    part.y[part.omega > 0], part.matrix[part.omega > 0] @ coefficients, mode[n:]
                )
                > _CERTAIN
            ).all()
        )
        for part in rows
    )
