"""Laplace: the mode by damped Newton, t proposals at its curvature, importance weights.

The parameter vector holds the standardised coefficients, predictor by predictor, and then the logs
of the auxiliary parameters, which are treated as further linear predictors with a column of ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import solve_triangular

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import FitError
from synrisk.base.kept import called
from synrisk.base.seeds import stream
from synrisk.base.workers import Executor
from synrisk.core.likelihood import KernelDraws, add_log_density
from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.psis import effective_size, is_reliable, smoothed
from synrisk.fitting.standardise import Chunk, Chunks, Rows, lower_root
from synrisk.models.families import Family

_PROPOSAL_DF = 7.0
_MOST_STEPS = 200
_MOST_HALVINGS = 50
_AT_THE_MODE = 1e-16  # half the squared length of a Newton step, in posterior standard deviations
_LARGEST_STEP = 20.0  # of a linear predictor's coefficient, in standardised units
_EVEN = 0.3  # effective share of the draws from which proposals need no trial
_GOOD_ENOUGH = 0.1  # effective share in a trial below which proposals are laid out anew
_TRIAL_SIZES = (4_000, 16_000)
_LAYOUTS = 2  # how often proposals are laid out anew in a trial
_WORTH_OF_CURVATURE = 4.0  # draws a parameter that the curvature at the mode counts for
_PROBE = 2.0  # standard deviations from the mode at which skewness is looked for
_SKEWED = 1.5
_MOST_DOUBLINGS = 24
_LEAST_STRETCH = 0.25
_RESOLUTION = 0.01  # of the log posterior
_SECOND_DERIVATIVES = 1 << 24  # at once: 128 MB; a chunk of 64 linear predictors
_ROWS_DRAWN = 20_000  # for an information that is expected
_CHUNKS_DRAWN = 64  # at a time


@dataclass(frozen=True, repr=False)
class NormalPrior:
    """Normal priors of the standardised coefficients, exponential ones of the auxiliary.

    Attributes
    ----------
    mean, sd
        Of each coefficient, predictor by predictor.
    rate
        Of each auxiliary parameter.
    """

    mean: FloatArray
    sd: FloatArray
    rate: FloatArray

    def log_density(self, theta: FloatArray) -> FloatArray:
        """Return the log density at ``theta[..., parameter]``, up to a constant."""
        n = len(self.mean)
        z = (theta[..., :n] - self.mean) / self.sd
        logs = theta[..., n:]
        return np.asarray(
            -0.5 * (z * z).sum(axis=-1) + (logs - self.rate * np.exp(logs)).sum(axis=-1)
        )

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and minus the (diagonal) second derivative."""
        n = len(self.mean)
        scaled = self.rate * np.exp(theta[n:])
        gradient = np.concatenate([(self.mean - theta[:n]) / self.sd**2, 1.0 - scaled])
        return gradient, np.concatenate([1.0 / self.sd**2, scaled])


@dataclass(frozen=True, repr=False)
class Problem:
    """A posterior: likelihood of rows under a family, and a prior."""

    family: Family
    n_columns: int  # of the design
    n_predictors: int
    rows: Chunks
    prior: NormalPrior
    executor: Executor
    what: str
    scale: float  # of the linear predictors: the response's, or 1 where the link fixes it

    def parts(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coefficients ``(..., column, predictor)`` and auxiliary parameters of theta."""
        n = self.n_columns * self.n_predictors
        coefficients = theta[..., :n].reshape(*theta.shape[:-1], self.n_predictors, self.n_columns)
        return np.swapaxes(coefficients, -1, -2), np.exp(theta[..., n:])

    def log_posterior(self, theta: FloatArray) -> float:
        """Return the log posterior at one theta, up to a constant."""
        of = partial(_log_likelihood, self.family, *self.parts(theta))
        value = sum(self.executor.map(of, self.rows)) + float(self.prior.log_density(theta))
        return value if math.isfinite(value) else -math.inf

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient and minus the Hessian of the log posterior."""
        gradient, minus_hessian = self.prior.derivatives(theta)
        of_prior = gradient, np.diag(minus_hessian)
        parts = self.parts(theta)
        return likelihood_derivatives(self.family, *parts, self.rows, self.executor, of_prior)

    def log_posterior_of_draws(self, theta: FloatArray) -> FloatArray:
        """Return the log posterior at each of ``theta[draw]``, up to what is the same for all."""
        coefficients, auxiliary = self.parts(theta)
        draws = KernelDraws(
            self.family,
            np.ascontiguousarray(np.moveaxis(coefficients, 0, 2)),
            self.family.kernel_parameters(auxiliary),
            np.zeros(len(theta)),
        )
        total = self.prior.log_density(theta)
        for part in self.executor.map(partial(_log_likelihood_of_draws, draws), self.rows):
            total = total + part
        return total


@called("fitting", "Log posterior")
def _log_likelihood(
    family: Family, coefficients: FloatArray, auxiliary: FloatArray, chunk: Chunk
) -> float:
    rows = chunk.read()
    with np.errstate(over="ignore", invalid="ignore"):
        log_f = family.log_density(rows.y, rows.matrix @ coefficients, auxiliary)
        return float(rows.omega @ log_f)


@called("fitting", "Weights of the draws")
def _log_likelihood_of_draws(draws: KernelDraws, chunk: Chunk) -> FloatArray:
    rows, total = chunk.read(), np.zeros(draws.beta.shape[-1])
    add_log_density(draws, rows.y, rows.matrix, rows.omega, total)
    return total


def likelihood_derivatives(
    family: Family,
    coefficients: FloatArray,
    auxiliary: FloatArray,
    rows: Chunks,
    executor: Executor,
    of_prior: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return gradient and minus the Hessian of rows' log likelihood, and of a log prior if given.

    Parameters are predictor by predictor, then the logs of the auxiliary ones.
    """
    n_parameters = coefficients.size + len(auxiliary)
    nothing = np.zeros(n_parameters), np.zeros((n_parameters, n_parameters))
    gradient, information = of_prior or nothing
    of = partial(_derivatives, family, coefficients, auxiliary)
    for from_rows, hessian in executor.map(of, rows):
        gradient = gradient + from_rows
        information = information - hessian
    return gradient, information


@called("fitting", "Step of Newton")
def _derivatives(
    family: Family, coefficients: FloatArray, auxiliary: FloatArray, chunk: Chunk
) -> tuple[FloatArray, FloatArray]:
    """Return the gradient and the Hessian of a chunk's log likelihood."""
    rows, n_parameters = chunk.read(), coefficients.size + len(auxiliary)
    gradient, hessian = np.zeros(n_parameters), np.zeros((n_parameters, n_parameters))
    # Of a response of hundreds of levels the second derivatives of a whole chunk are gigabytes.
    n_at_once = max(1, _SECOND_DERIVATIVES // (coefficients.shape[1] + len(auxiliary)) ** 2)
    for first in range(0, len(rows.y), n_at_once):
        some = rows.part(slice(first, first + n_at_once))
        of_some = _derivatives_of(family, coefficients, auxiliary, some)
        gradient, hessian = gradient + of_some[0], hessian + of_some[1]
    return gradient, hessian


def _derivatives_of(
    family: Family, coefficients: FloatArray, auxiliary: FloatArray, rows: Rows
) -> tuple[FloatArray, FloatArray]:
    n_columns, n_predictors = coefficients.shape
    last, n_auxiliary = coefficients.size, len(auxiliary)
    ones = [slice(q * n_columns, (q + 1) * n_columns) for q in range(n_predictors)]
    ones += [slice(last + a, last + a + 1) for a in range(n_auxiliary)]
    with np.errstate(over="ignore", invalid="ignore"):
        eta = rows.matrix @ coefficients
        score = rows.omega[:, None] * family.score(rows.y, eta, auxiliary)
        second = rows.omega[:, None, None] * family.curvature(rows.y, eta, auxiliary)
        column = np.ones((len(rows.y), 1))
        designs = [rows.matrix] * n_predictors + [column] * n_auxiliary
        gradient = np.concatenate([x.T @ score[:, k] for k, x in enumerate(designs)])
        hessian = np.empty((last + n_auxiliary, last + n_auxiliary))
        for j, left in enumerate(designs):
            for k in range(j + 1):
                block = left.T @ (second[:, j, k, None] * designs[k])
                hessian[ones[j], ones[k]] = block
                hessian[ones[k], ones[j]] = block.T
    return gradient, hessian


def expected_information(
    family: Family,
    coefficients: FloatArray,
    auxiliary: FloatArray,
    rows: Chunks,
    executor: Executor,
) -> FloatArray:
    """Return the information that a model expects of rows with these predictors.

    Minus the mean Hessian over responses that it draws for them, whatever theirs are: that of their
    own would shrink or grow with what is wrong about them. It is exact for families whose Hessian
    does not depend on the response.
    """
    n_times = -(-_ROWS_DRAWN // sum(part.n_rows for part in rows))
    found: list[FloatArray] = []
    rng = np.random.default_rng(0)
    for _ in range(n_times):
        information = np.zeros((coefficients.size + len(auxiliary),) * 2)
        for first in range(0, len(rows), _CHUNKS_DRAWN):  # in their order, and not all are kept
            some = [
                _with_drawn(family, coefficients, auxiliary, rng, part)
                for part in rows[first : first + _CHUNKS_DRAWN]
            ]
            of_prior = np.zeros(len(information)), information
            information = likelihood_derivatives(
                family, coefficients, auxiliary, some, executor, of_prior
            )[1]
        found.append(information)
        if np.array_equal(found[0], found[-1]) and len(found) > 1:  # it knows no response
            return found[0]
    return np.asarray(np.mean(found, axis=0))


def _with_drawn(
    family: Family,
    coefficients: FloatArray,
    auxiliary: FloatArray,
    rng: np.random.Generator,
    chunk: Chunk,
) -> Rows:
    """Return a chunk with responses that the model draws."""
    rows = chunk.read()
    with np.errstate(over="ignore", invalid="ignore"):
        eta = rows.matrix @ coefficients
        given = np.broadcast_to(auxiliary, (len(eta), len(auxiliary)))
        return replace(rows, y=family.draw(eta, given, rng).astype(np.float64))


@dataclass(frozen=True, repr=False)
class Fitted:
    """Draws on the standardised scale: coefficients, then logs of the auxiliary parameters."""

    theta: FloatArray
    log_weights: FloatArray
    mode: FloatArray
    khat: float
    ess: float
    reliable: bool
    chain: IntArray | None = None  # of draws by NUTS
    adapted: bool = False  # whether proposals at the mode did not do


def find_mode(problem: Problem, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the posterior mode and the precision (minus the Hessian) there."""
    theta, value = start, problem.log_posterior(start)
    units = np.ones(len(start))  # of coefficients; logs of auxiliary parameters have none
    units[: problem.n_columns * problem.n_predictors] = problem.scale
    for _ in range(_MOST_STEPS):
        gradient, precision = problem.derivatives(theta)
        if not (np.isfinite(gradient).all() and np.isfinite(precision).all()):
            break
        step, decrement = _newton_step(gradient, precision)
        if decrement < _AT_THE_MODE:
            return theta, precision
        step *= min(1.0, _LARGEST_STEP / float((np.abs(step) / units).max()))
        for halving in range(_MOST_HALVINGS):
            trial = theta + step * 0.5**halving
            trial_value = problem.log_posterior(trial)
            if trial_value >= value:
                break
        else:
            return theta, precision  # as near as rounding allows
        # Of large counts the log posterior is rounded by more than what is left to rise.
        stands_still = np.array_equal(trial, theta)
        least = _RESOLUTION if stands_still else math.sqrt(_AT_THE_MODE)
        if trial_value == value and decrement < least:
            return trial, precision
        theta, value = trial, trial_value
    raise FitError(
        f"{problem.what}: no posterior mode was found: the likelihood has no maximum that numbers "
        "can hold. Are there too few records for the predictors, or values on an extreme scale? "
        "Narrower priors may help."
    )


def _newton_step(gradient: FloatArray, precision: FloatArray) -> tuple[FloatArray, float]:
    """Return the Newton step, damped where the posterior is not concave, and half g'H⁻¹g."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(precision)), 1e-300))
    scaled = precision / np.outer(scale, scale)
    damping = 0.0
    while True:
        try:
            root = np.linalg.cholesky(scaled + damping * np.eye(len(scale)))
        except np.linalg.LinAlgError:
            damping = max(10.0 * damping, 1e-8)
            continue
        half = solve_triangular(root, gradient / scale, lower=True)
        step = solve_triangular(root, half, lower=True, trans=1) / scale
        return step, 0.5 * float(half @ half) if damping == 0.0 else math.inf


def laplace(
    problem: Problem,
    start: FloatArray,
    numbers: CommonNumbers,
    judged: CommonNumbers,
    *,
    adapted: bool | None = None,
) -> Fitted:
    """Draw from t distributions about the mode and weigh the draws.

    Where their weights are uneven, the proposals are tried by many draws from random numbers that
    are always the same: whether a fit is good enough then depends on the data, and not on the seed.
    Where they fail the trial, they are laid out anew by the weighted draws of the trial.

    Parameters
    ----------
    problem
        The posterior.
    start
        Where the search for the mode begins.
    numbers
        The random numbers of the draws.
    judged
        Those of the draws that the proposals are judged by: the same, or more where these are few.
    adapted
        Whether the fit that this one is to be compared with laid its proposals out anew; None where
        there is none. Draws move together where both did or neither, so proposals that were kept
        there are given up here only where they cannot be relied on.
    """
    mode, precision = find_mode(problem, start)
    _check_resolution(problem, mode)
    proposal = Proposal.at_mode(problem, mode, precision)
    fitted = proposal.drawn(problem, mode, judged)
    if adapted or not (fitted.reliable and fitted.ess >= _EVEN * len(judged.u)):
        proposal, trial = _tried(problem, proposal, mode, adapted=adapted)
        if trial.adapted:
            fitted = proposal.drawn(problem, mode, judged)
        fitted = replace(fitted, khat=trial.khat, reliable=trial.reliable, adapted=trial.adapted)
    if judged is numbers:
        return fitted
    few = proposal.drawn(problem, mode, numbers)
    return replace(few, khat=fitted.khat, reliable=fitted.reliable, adapted=fitted.adapted)


def _tried(
    problem: Problem, first: Proposal, mode: FloatArray, *, adapted: bool | None
) -> tuple[Proposal, Fitted]:
    """Return proposals that pass a trial, or the last that failed, with the draws of their trial.

    They are laid out by other draws than those that they are then judged by.
    """
    least = _GOOD_ENOUGH if adapted is None else 0.0
    n_parameters = len(mode)
    proposal = first
    for n_draws in _TRIAL_SIZES:
        to_judge, to_lay_out = (
            CommonNumbers.draw(stream(0, "trial", chunk=k), n_draws, n_parameters) for k in (0, 1)
        )
        if n_draws == _TRIAL_SIZES[0] and not adapted:
            trial = first.drawn(problem, mode, to_judge)
            if trial.reliable and trial.ess >= least * n_draws:
                return first, trial
        for _ in range(_LAYOUTS):
            draws = proposal.drawn(problem, mode, to_lay_out)
            if not math.isfinite(draws.ess):
                break
            proposal = Proposal.of_draws(draws, first)
        trial = replace(proposal.drawn(problem, mode, to_judge), adapted=True)
        if trial.reliable and trial.ess >= _GOOD_ENOUGH * n_draws:
            break
    return proposal, trial


def _check_resolution(problem: Problem, mode: FloatArray) -> None:
    """Raise where rounding drowns differences of the log posterior: counts that are too large."""
    if problem.family.is_classification or problem.family.identity_link:
        return
    coefficients, _ = problem.parts(mode)
    total = sum(problem.executor.map(partial(_squared_terms, coefficients), problem.rows))
    if np.finfo(np.float64).eps * math.sqrt(total) > _RESOLUTION:
        raise FitError(
            f"{problem.what}: the response is so large that rounding drowns the likelihood. Count "
            "in larger units, or model its logarithm (gaussian)."
        )


@called("fitting", "Size of the response")
def _squared_terms(coefficients: FloatArray, chunk: Chunk) -> float:
    """Return the sum of squares of what a response is multiplied by in the log likelihood."""
    rows = chunk.read()
    return float(
        np.sum((rows.omega[:, None] * rows.y[:, None] * (rows.matrix @ coefficients)) ** 2)
    )


@dataclass(frozen=True, repr=False)
class Proposal:
    """A t distribution that may be wider on one side than on the other (Geweke's split t).

    Attributes
    ----------
    centre, root
        The centre, and a Cholesky factor of the scale in parameter order.
    stretch
        ``(2, parameter)``: how much wider the side below and the side above is along each column
        of the factor.
    """

    centre: FloatArray
    root: FloatArray
    stretch: FloatArray

    @classmethod
    def at_mode(cls, problem: Problem, mode: FloatArray, precision: FloatArray) -> Proposal:
        """Lay the proposals out by the curvature at the mode, and stretch skewed sides.

        Along a skewed direction (a separated level: flat on one side as far as the prior reaches)
        the curvature says too little. There each side is stretched until the log posterior has
        fallen as a normal one would.
        """
        root = lower_root(np.asarray(np.linalg.inv(precision), dtype=np.float64))
        n = len(mode)
        sides = np.concatenate([-root.T, root.T])
        stretch = _stretch(problem, mode, sides, np.full(2 * n, _PROBE))
        skewed = np.flatnonzero((stretch > _SKEWED) | (stretch < 1.0 / _SKEWED))
        settled = np.ones(2 * n)
        far = _PROBE * np.exp2(np.arange(_MOST_DOUBLINGS, dtype=np.float64))
        for side in skewed:
            widths = _stretch(problem, mode, np.tile(sides[side], (len(far), 1)), far)
            settled[side] = max(float(widths.max()), _LEAST_STRETCH)
        return cls(mode, root, settled.reshape(2, n))

    @classmethod
    def of_draws(cls, fitted: Fitted, first: Proposal) -> Proposal:
        """Lay the proposals out by the mean and covariance of weighted draws.

        A covariance of few effective draws is drawn towards that of the `first` proposals: else it
        is too narrow in some direction, and the next weights are worse.
        """
        weights = np.exp(fitted.log_weights)
        centre = weights @ fitted.theta
        apart = fitted.theta - centre
        covariance = apart.T @ (weights[:, None] * apart)
        wide = first.root * np.sqrt((first.stretch**2).mean(axis=0))
        worth = _WORTH_OF_CURVATURE * len(centre)
        covariance = (fitted.ess * covariance + worth * wide @ wide.T) / (fitted.ess + worth)
        return cls(centre, lower_root(covariance), np.ones((2, len(centre))))

    def drawn(self, problem: Problem, mode: FloatArray, numbers: CommonNumbers) -> Fitted:
        """Draw by common numbers, and weigh."""
        theta, log_q = self._proposed(numbers)
        with np.errstate(all="ignore"):
            log_posterior = problem.log_posterior_of_draws(theta)
        log_weights, khat = smoothed(log_posterior - log_q)
        ess = effective_size(log_weights)
        return Fitted(theta, log_weights, mode, khat, ess, is_reliable(khat, ess, len(theta)))

    def log_ratios(self, problem: Problem, mode: FloatArray, numbers: CommonNumbers) -> FloatArray:
        """Return the log posterior over the proposals' density at each draw.

        The posterior is known up to a constant that no row changes, so the mean of the ratios is
        the evidence.
        """
        theta, log_q = self._proposed(numbers)
        with np.errstate(all="ignore"):
            against = problem.log_posterior_of_draws(np.concatenate([mode[None], theta]))
        return np.asarray(problem.log_posterior(mode) + (against[1:] - against[0]) - log_q)

    def _proposed(self, numbers: CommonNumbers) -> tuple[FloatArray, FloatArray]:
        """Return draws, and the log of their density up to a constant."""
        above = numbers.z > 0
        stretch = np.where(above, self.stretch[1], self.stretch[0])
        mixing = _PROPOSAL_DF / numbers.chi_square(_PROPOSAL_DF)
        theta = self.centre + np.sqrt(mixing)[:, None] * ((stretch * numbers.z) @ self.root.T)
        squares = mixing * (numbers.z**2).sum(axis=1)
        power = 0.5 * (_PROPOSAL_DF + len(self.centre))
        log_q = -power * np.log1p(squares / _PROPOSAL_DF) - np.log(stretch).sum(axis=1)
        return theta, log_q - np.log(np.diag(self.root)).sum()


def _stretch(
    problem: Problem, mode: FloatArray, sides: FloatArray, steps: FloatArray
) -> FloatArray:
    """Return step/√(2 × fall of the log posterior) for a step along each of `sides`."""
    points = np.concatenate([mode[None], mode + steps[:, None] * sides])
    with np.errstate(all="ignore"):
        log_p = problem.log_posterior_of_draws(points)
        fall = np.where(np.isfinite(log_p[1:]), log_p[0] - log_p[1:], np.inf)
        return np.asarray(steps / np.sqrt(2.0 * np.maximum(fall, 1e-12)))
