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

import math
from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.laplace import Fitted, NormalPrior
from synrisk.fitting.sigma_quadrature import FOR_DRAWS, KnownGivenSigma, tabulate
from synrisk.fitting.standardise import lower_root
from synrisk.fitting.sufficient_statistics import Sums

_NULL = 1e-13  # eigenvalues below this share of the largest carry no data
_NEAR = 0.3  # standard deviations, and of their logarithm
_MOST_AT_ONCE = 1 << 22  # numbers in the covariances of a batch of draws


@dataclass(frozen=True, repr=False)
class GaussianPosterior(KnownGivenSigma):
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
    def of(cls, sums: Sums, prior: NormalPrior, spread: float) -> GaussianPosterior:
        """Return the posterior given sums over rows, about the prior's mean."""
        values, vectors = np.linalg.eigh(prior.sd[:, None] * sums.gram * prior.sd)
        values = np.where(values > _NULL * max(float(values.max()), 0.0), values, 0.0)
        scaled = prior.sd[:, None] * vectors
        projection = np.where(values > 0, scaled.T @ sums.products, 0.0)
        fitted = prior.mean + scaled @ (projection / np.where(values > 0, values, 1.0))
        left = sums.squared_errors(fitted)
        return cls(prior, sums.n_effective, left, values, scaled, projection, spread)

    @property
    def scale(self) -> float:
        """What sigma is looked for about."""
        return self.spread

    @property
    def squares(self) -> tuple[float, float]:
        """The sum of squares that is left, and about how many make it up."""
        return self.left, self.n_effective

    @property
    def is_concave(self) -> bool:
        """Whether the log density of log sigma is known to be concave.

        Where least squares stays within one prior standard deviation in every direction, no term of
        `second_derivative` is positive.
        """
        data = self.values > 0
        return bool((np.abs(self.projection[data]) <= self.values[data]).all())

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

    def second_derivative(self, log_sigma: float) -> float:
        """Return the second derivative of the log density by log sigma.

        It is −2R/σ² − ρσ − Σ 2λσ²/(σ² + λ)² · (1 − (c/λ)² (λ − σ²)/(λ + σ²)), ρ being sigma's prior
        rate: log σ itself has none, σ^k has k²σ^k; with s = σ², d/d log σ = 2s d/ds makes
        4λs/(s + λ)² of log(1 + λ/s), and 4s(s − λ)/(s + λ)³ of 1/(s + λ).
        """
        sigma2, values = math.exp(2.0 * log_sigma), self.values[self.values > 0]
        kept, shrunk = values / (sigma2 + values), sigma2 / (sigma2 + values)
        pull = (self.projection[self.values > 0] / values) ** 2
        curved = 2.0 * float((kept * shrunk * (1.0 - pull * (kept - shrunk))).sum())
        rate = float(self.prior.rate[0])
        return -2.0 * self.left / sigma2 - rate * math.exp(log_sigma) - curved

    def given(self, log_sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of the coefficients given each log sigma."""
        sigma2 = np.exp(2.0 * log_sigma)[:, None]
        mean = self.prior.mean + (self.projection / (sigma2 + self.values)) @ self.vectors.T
        shrinkage = sigma2 / (sigma2 + self.values)
        covariance = (self.vectors * shrinkage[:, None, :]) @ self.vectors.T
        return mean, covariance

    def table(self) -> tuple[FloatArray, FloatArray]:
        """Return log sigma on a fine grid, and its cumulative probability."""
        return tabulate(self.log_density, self.spread, FOR_DRAWS)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of the coefficients and log sigma."""
        marginal = self.log_sigma
        log_sigma, p, mean, sd = marginal.points, marginal.p, marginal.mean, marginal.sd
        sigma2 = np.exp(2.0 * log_sigma)[:, None]
        along = self.projection / (sigma2 + self.values)
        centre = p @ along
        apart = along - centre
        within = np.diag(p @ (sigma2 / (sigma2 + self.values)))
        cross = self.vectors @ (apart.T @ (p * (log_sigma - mean)))
        coefficients = self.vectors @ (within + apart.T @ (p[:, None] * apart)) @ self.vectors.T
        covariance = np.block([[coefficients, cross[:, None]], [cross, np.array([[sd**2]])]])
        return np.append(self.prior.mean + self.vectors @ centre, mean), covariance

    def agrees(self, fitted: Fitted) -> bool:
        """Tell whether weighted draws have about the right mean and spread of log sigma."""
        mean, sd = self.log_sigma.mean, self.log_sigma.sd
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
            root = lower_root(covariance)
            coefficients[part] = mean + np.einsum("hij,hj->hi", root, numbers.z[part])
        theta = np.concatenate([coefficients, log_sigma[:, None]], axis=1)
        equal = np.full(n_draws, -np.log(n_draws))
        at_mode = grid[[int(np.argmax(self.log_density(grid)))]]
        mode = np.append(self.given(at_mode)[0][0], at_mode)
        return Fitted(theta, equal, mode, -np.inf, float(n_draws), True)
