"""Laplace: the mode by damped Newton, t proposals at its curvature, importance weights.

The parameter vector holds the standardised coefficients, predictor by predictor, and then the logs
of the auxiliary parameters, which are treated as further linear predictors with a column of ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from synrisk.errors import FitError
from synrisk.executors import Executor
from synrisk.families import Family
from synrisk.fitting.importance import effective_size, is_reliable, smoothed
from synrisk.fitting.numbers import CommonNumbers
from synrisk.fitting.rows import Rows
from synrisk.likelihood import KernelDraws, add_log_density
from synrisk.schema import FloatArray

_PROPOSAL_DF = 7.0
_MOST_STEPS = 200
_MOST_HALVINGS = 50
_AT_THE_MODE = 1e-16  # half the squared length of a Newton step, in posterior standard deviations
_LARGEST_STEP = 20.0  # of a linear predictor's coefficient, in standardised units
_MOST_ADAPTATIONS = 3


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
    n_predictors: int
    rows: Sequence[Rows]
    prior: NormalPrior
    executor: Executor
    what: str

    @property
    def n_columns(self) -> int:
        """The number of design columns."""
        return int(self.rows[0].matrix.shape[1])

    def parts(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coefficients ``(..., column, predictor)`` and auxiliary parameters of theta."""
        n = self.n_columns * self.n_predictors
        coefficients = theta[..., :n].reshape(*theta.shape[:-1], self.n_predictors, self.n_columns)
        return np.swapaxes(coefficients, -1, -2), np.exp(theta[..., n:])

    def log_posterior(self, theta: FloatArray) -> float:
        """Return the log posterior at one theta, up to a constant."""
        coefficients, auxiliary = self.parts(theta)

        def of(rows: Rows) -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                log_f = self.family.log_density(rows.y, rows.matrix @ coefficients, auxiliary)
                return float(rows.omega @ log_f)

        value = sum(self.executor.map(of, self.rows)) + float(self.prior.log_density(theta))
        return value if math.isfinite(value) else -math.inf

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient and minus the Hessian of the log posterior."""
        coefficients, auxiliary = self.parts(theta)
        n_columns, n_predictors = coefficients.shape
        n_auxiliary = len(auxiliary)
        ones = [slice(q * n_columns, (q + 1) * n_columns) for q in range(n_predictors)]
        last = n_columns * n_predictors
        ones += [slice(last + a, last + a + 1) for a in range(n_auxiliary)]

        def of(rows: Rows) -> tuple[FloatArray, FloatArray]:
            eta = rows.matrix @ coefficients
            score = rows.omega[:, None] * self.family.score(rows.y, eta, auxiliary)
            second = rows.omega[:, None, None] * self.family.curvature(rows.y, eta, auxiliary)
            column = np.ones((len(rows.y), 1))
            designs = [rows.matrix] * n_predictors + [column] * n_auxiliary
            gradient = np.concatenate([x.T @ score[:, k] for k, x in enumerate(designs)])
            hessian = np.empty((len(theta), len(theta)))
            for j, left in enumerate(designs):
                for k in range(j + 1):
                    block = left.T @ (second[:, j, k, None] * designs[k])
                    hessian[ones[j], ones[k]] = block
                    hessian[ones[k], ones[j]] = block.T
            return gradient, hessian

        gradient, minus_hessian = self.prior.derivatives(theta)
        precision = np.diag(minus_hessian)
        for from_rows, hessian in self.executor.map(of, self.rows):
            gradient = gradient + from_rows
            precision = precision - hessian
        return gradient, precision

    def log_posterior_of_draws(self, theta: FloatArray) -> FloatArray:
        """Return the log posterior at each of ``theta[draw]``, up to what is the same for all."""
        coefficients, auxiliary = self.parts(theta)
        n_draws = len(theta)
        draws = KernelDraws(
            self.family,
            np.ascontiguousarray(np.moveaxis(coefficients, 0, 2)),
            self.family.kernel_parameters(auxiliary),
            np.zeros(n_draws),
        )

        def of(rows: Rows) -> FloatArray:
            total = np.zeros(n_draws)
            add_log_density(draws, rows.y, rows.matrix, rows.omega, total)
            return total

        total = self.prior.log_density(theta)
        for part in self.executor.map(of, self.rows):
            total = total + part
        return total


@dataclass(frozen=True, repr=False)
class Fitted:
    """Draws on the standardised scale: coefficients, then logs of the auxiliary parameters."""

    theta: FloatArray
    log_weights: FloatArray
    mode: FloatArray
    khat: float
    ess: float
    reliable: bool


def find_mode(problem: Problem, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the posterior mode and the precision (minus the Hessian) there."""
    theta, value = start, problem.log_posterior(start)
    for _ in range(_MOST_STEPS):
        gradient, precision = problem.derivatives(theta)
        step, decrement = _newton_step(gradient, precision)
        if decrement < _AT_THE_MODE:
            return theta, precision
        step *= min(1.0, _LARGEST_STEP / float(np.abs(step).max()))
        for halving in range(_MOST_HALVINGS):
            trial = theta + step * 0.5**halving
            trial_value = problem.log_posterior(trial)
            if trial_value >= value:
                break
        else:
            return theta, precision  # as near as rounding allows
        if trial_value == value and decrement < math.sqrt(_AT_THE_MODE):
            return trial, precision
        theta, value = trial, trial_value
    raise FitError(
        f"{problem.what}: no posterior mode was found in {_MOST_STEPS} steps. Narrower priors, or "
        "predictors on a smaller scale, may help."
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
    problem: Problem, start: FloatArray, numbers: CommonNumbers, judged: CommonNumbers
) -> Fitted:
    """Draw from t distributions about the mode and weigh the draws.

    Where the weights are bad, the proposals are laid out anew by the weighted draws' mean and
    covariance, a few times.

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
    """
    mode, precision = find_mode(problem, start)
    centre, covariance = mode, np.asarray(np.linalg.inv(precision), dtype=np.float64)
    fitted = _proposed(problem, mode, centre, covariance, judged)
    for _ in range(_MOST_ADAPTATIONS):
        if fitted.reliable:
            break
        weights = np.exp(fitted.log_weights)
        centre = weights @ fitted.theta
        apart = fitted.theta - centre
        covariance = np.asarray(apart.T @ (weights[:, None] * apart))
        fitted = _proposed(problem, mode, centre, covariance, judged)
    if judged is numbers:
        return fitted
    few = _proposed(problem, mode, centre, covariance, numbers)
    return replace(few, khat=fitted.khat, reliable=few.reliable and fitted.reliable)


def _proposed(
    problem: Problem,
    mode: FloatArray,
    centre: FloatArray,
    covariance: FloatArray,
    numbers: CommonNumbers,
) -> Fitted:
    root = np.linalg.cholesky(covariance)
    mixing = _PROPOSAL_DF / numbers.chi_square(_PROPOSAL_DF)
    theta = centre + np.sqrt(mixing)[:, None] * (numbers.z @ root.T)
    n_parameters = len(centre)
    squares = mixing * (numbers.z**2).sum(axis=1)
    log_q = -0.5 * (_PROPOSAL_DF + n_parameters) * np.log1p(squares / _PROPOSAL_DF)
    log_weights, khat = smoothed(problem.log_posterior_of_draws(theta) - log_q)
    ess = effective_size(log_weights)
    return Fitted(theta, log_weights, mode, khat, ess, is_reliable(khat, ess, len(theta)))
