"""Gaussian models under normal priors: exact given sigma, and sigma has one dimension.

Given sigma the coefficients are normal. The marginal posterior of log sigma is known up to a
constant, so it is tabulated and drawn from by its inverse CDF: no proposals and no weights, also
where it has two modes (a prior that contradicts the data) or long tails (few records).

With prior N(m, D²) of the standardised coefficients, δ = γ − m, residuals r = y − Xm,
A = D X'ΩX D = U diag(λ) U' and c = U'D X'Ωr,

    −2 log p(y|σ) = 2N log σ + Σ log(1 + λ/σ²) + (R + Σ c²σ²/(λ(σ² + λ)))/σ²

where R is the sum of squares that least squares leaves and N = Σω.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synrisk.executors import Executor
from synrisk.fitting.laplace import Fitted, NormalPrior
from synrisk.fitting.numbers import CommonNumbers
from synrisk.fitting.rows import Rows
from synrisk.schema import FloatArray

_NULL = 1e-13  # eigenvalues below this share of the largest carry no data
_COARSE, _FINE = 4001, 8001  # points of the table of log sigma
_DEEP = 45.0  # how far below its maximum the log density is tabulated
_WIDE = 60.0  # log sigma is looked for so far to either side of log spread
_NEAR = 0.3  # standard deviations, and of their logarithm
_MOST_AT_ONCE = 1 << 22  # numbers in the covariances of a batch of draws


@dataclass(frozen=True, repr=False)
class GaussianPosterior:
    """The posterior of a gaussian model under normal priors.

    Attributes
    ----------
    prior
        Of the standardised coefficients and of sigma.
    n_effective, left
        N and R of the module's formula.
    values, vectors, projection
        λ, D·U and c.
    spread
        The scale that sigma is looked for about.
    """

    prior: NormalPrior
    n_effective: float
    left: float
    values: FloatArray
    vectors: FloatArray
    projection: FloatArray
    spread: float

    @classmethod
    def of(
        cls, rows: Sequence[Rows], prior: NormalPrior, spread: float, executor: Executor
    ) -> GaussianPosterior:
        """Return the posterior given rows; sums run over chunks in their order."""

        def moments(part: Rows) -> tuple[FloatArray, FloatArray, float]:
            weighted = part.omega[:, None] * part.matrix
            residual = part.y - part.matrix @ prior.mean
            return weighted.T @ part.matrix, weighted.T @ residual, float(part.omega.sum())

        n_columns = len(prior.mean)
        gram, products, n_effective = np.zeros((n_columns, n_columns)), np.zeros(n_columns), 0.0
        for squares, projected, weight in executor.map(moments, rows):
            gram, products = gram + squares, products + projected
            n_effective += weight
        values, vectors = np.linalg.eigh(prior.sd[:, None] * gram * prior.sd)
        values = np.where(values > _NULL * max(float(values.max()), 0.0), values, 0.0)
        scaled = prior.sd[:, None] * vectors
        projection = np.where(values > 0, scaled.T @ products, 0.0)
        fitted = prior.mean + scaled @ (projection / np.where(values > 0, values, 1.0))

        def squared_errors(part: Rows) -> float:
            return float(part.omega @ (part.y - part.matrix @ fitted) ** 2)

        left = float(sum(executor.map(squared_errors, rows)))
        return cls(prior, n_effective, left, values, scaled, projection, spread)

    def log_density(self, log_sigma: FloatArray) -> FloatArray:
        """Return the log posterior density of log sigma, up to a constant."""
        sigma2 = np.exp(2.0 * log_sigma)[..., None]
        data = self.values > 0
        values, squares = self.values[data], self.projection[data] ** 2
        shrunk = (squares * sigma2 / (values * (sigma2 + values))).sum(axis=-1)
        log_p = -self.n_effective * log_sigma
        log_p = log_p - 0.5 * np.log1p(values / sigma2).sum(axis=-1)
        log_p = log_p - 0.5 * (self.left + shrunk) / sigma2[..., 0]
        return np.asarray(log_p + log_sigma - self.prior.rate[0] * np.exp(log_sigma))

    def given(self, log_sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of the coefficients given each log sigma."""
        sigma2 = np.exp(2.0 * log_sigma)[:, None]
        mean = self.prior.mean + (self.projection / (sigma2 + self.values)) @ self.vectors.T
        shrinkage = sigma2 / (sigma2 + self.values)
        covariance = (self.vectors * shrinkage[:, None, :]) @ self.vectors.T
        return mean, covariance

    def table(self) -> tuple[FloatArray, FloatArray]:
        """Return log sigma on a fine grid, and its cumulative probability."""
        middle = np.log(self.spread)
        grid = np.linspace(middle - _WIDE, middle + _WIDE, _COARSE)
        for n_points in (_COARSE, _FINE):
            with np.errstate(over="ignore"):
                log_p = self.log_density(grid)
            deep = np.flatnonzero(log_p > log_p.max() - _DEEP)
            low, high = grid[max(deep[0] - 1, 0)], grid[min(deep[-1] + 1, len(grid) - 1)]
            grid = np.linspace(low, high, n_points)
        log_p = self.log_density(grid)
        density = np.exp(log_p - log_p.max())
        steps = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
        return grid, steps / steps[-1]

    def agrees(self, fitted: Fitted) -> bool:
        """Tell whether weighted draws have about the right mean and spread of log sigma."""
        grid, cumulative = self.table()
        p = np.diff(cumulative)
        middles = (grid[1:] + grid[:-1]) / 2
        mean = float(p @ middles)
        sd = float(np.sqrt(p @ (middles - mean) ** 2))
        weights, drawn = np.exp(fitted.log_weights), fitted.theta[:, -1]
        own = float(weights @ drawn)
        own_sd = float(np.sqrt(weights @ (drawn - own) ** 2))
        return abs(own - mean) < _NEAR * sd and abs(np.log(own_sd / sd)) < _NEAR

    def draw(self, numbers: CommonNumbers) -> Fitted:
        """Draw log sigma by its inverse CDF and the coefficients given it."""
        grid, cumulative = self.table()
        log_sigma = np.interp(numbers.u, cumulative, grid)
        n_draws, n_columns = numbers.z.shape
        coefficients = np.empty((n_draws, n_columns))
        size = max(1, _MOST_AT_ONCE // n_columns**2)
        for first in range(0, n_draws, size):
            part = slice(first, first + size)
            mean, covariance = self.given(log_sigma[part])
            root = np.linalg.cholesky(covariance)
            coefficients[part] = mean + np.einsum("hij,hj->hi", root, numbers.z[part])
        theta = np.concatenate([coefficients, log_sigma[:, None]], axis=1)
        equal = np.full(n_draws, -np.log(n_draws))
        at_mode = grid[[int(np.argmax(self.log_density(grid)))]]
        mode = np.append(self.given(at_mode)[0][0], at_mode)
        return Fitted(theta, equal, mode, -np.inf, float(n_draws), True)
