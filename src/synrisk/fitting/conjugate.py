"""The exact posterior of a gaussian model under the normal-inverse-gamma prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, polygamma

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import FitError
from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.laplace import Fitted
from synrisk.fitting.sigma_quadrature import KnownGivenSigma
from synrisk.fitting.standardise import lower_root
from synrisk.fitting.sufficient_statistics import Sums

_LEAST_DF_OF_VARIANCE = 2.0  # up to here the coefficients have none
_LEAST_SETTLED = 1e-12  # eigenvalue of the precision, its diagonal being 1; rounding makes 1e-14
_LEAST_DF = 1.0  # of sigma's posterior; with fewer, quantiles are beyond numbers


@dataclass(frozen=True, repr=False)
class ConjugatePrior:
    """Given sigma the standardised coefficients are normal(mean, scale·sigma), independent.

    Attributes
    ----------
    mean
        Of each coefficient.
    scale
        In units of sigma; may be infinite.
    df, spread
        sigma² is a scaled inverse χ² with `df` degrees of freedom about ``spread²``.
    """

    mean: FloatArray
    scale: float
    df: float
    spread: float

    @property
    def precision(self) -> float:
        """1/scale²."""
        return float(1.0 / self.scale**2)


@dataclass(frozen=True, repr=False)
class ConjugatePosterior(KnownGivenSigma):
    """The normal-inverse-gamma posterior.

    Attributes
    ----------
    mean
        Of the standardised coefficients.
    covariance
        Of these, in units of sigma².
    df, sum_of_squares
        ``sum_of_squares/sigma²`` is χ² with `df` degrees of freedom.
    """

    mean: FloatArray
    covariance: FloatArray
    df: float
    sum_of_squares: float

    @classmethod
    def of(cls, sums: Sums, prior: ConjugatePrior, what: str) -> ConjugatePosterior:
        """Return the posterior given sums over rows, about the prior's mean."""
        n_columns = len(prior.mean)
        precision = prior.precision * np.eye(n_columns) + sums.gram
        # By eigenvalues: of a singular matrix Cholesky's last pivot is rounding, of either sign.
        sizes = np.sqrt(np.diag(precision))
        sizes = np.where(sizes > 0.0, sizes, 1.0)
        if np.linalg.eigvalsh(precision / np.outer(sizes, sizes))[0] < _LEAST_SETTLED:
            raise FitError(
                f"{what}: under a flat prior some coefficient is not settled by the records that "
                "count; use a finite scale, or leave the predictor out."
            )
        shift = np.linalg.solve(precision, sums.products)
        mean = prior.mean + shift
        total = prior.df * prior.spread**2 + prior.precision * float(shift @ shift)
        total += sums.squared_errors(mean)
        n_flat = n_columns if prior.precision == 0.0 else 0
        df = prior.df + sums.n_effective - n_flat
        if df < _LEAST_DF:
            raise FitError(
                f"{what}: too few records, or too small weights, for {n_columns} coefficients "
                "under this prior; use a finite scale, a df of 1 or more, or fewer predictors."
            )
        covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
        return cls(mean, covariance, df, total)

    @property
    def squares(self) -> tuple[float, float]:
        """The sum of squares that is left, and about how many make it up."""
        return self.sum_of_squares, self.df

    @property
    def is_concave(self) -> bool:
        """Whether the log density of log sigma is known to be concave."""
        return True

    def log_density(self, log_sigma: FloatArray) -> FloatArray:
        """Return the log posterior density of log sigma, up to a constant."""
        return np.asarray(
            -self.df * log_sigma - 0.5 * self.sum_of_squares * np.exp(-2.0 * log_sigma)
        )

    def second_derivative(self, log_sigma: float) -> float:
        """Return the second derivative of the log density by log sigma."""
        return -2.0 * self.sum_of_squares * math.exp(-2.0 * log_sigma)

    def given(self, log_sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of the coefficients given each log sigma."""
        sigma2 = np.exp(2.0 * log_sigma)[:, None, None]
        return np.tile(self.mean, (len(log_sigma), 1)), sigma2 * self.covariance

    def moments(self) -> tuple[FloatArray, FloatArray] | None:
        """Return mean and covariance of the coefficients and log sigma; None if there is none."""
        if self.df <= _LEAST_DF_OF_VARIANCE:
            return None
        n_columns, half = len(self.mean), 0.5 * self.df
        covariance = np.zeros((n_columns + 1, n_columns + 1))
        covariance[:-1, :-1] = self.covariance * self.sum_of_squares / (self.df - 2.0)
        covariance[-1, -1] = 0.25 * polygamma(1, half)
        log_sigma = 0.5 * (np.log(0.5 * self.sum_of_squares) - digamma(half))
        return np.append(self.mean, log_sigma), covariance

    @property
    def scale(self) -> float:
        """What sigma is looked for about."""
        return float(np.sqrt(self.sum_of_squares / self.df))

    def draw(self, numbers: CommonNumbers) -> Fitted:
        """Draw sigma² by the inverse CDF and the coefficients given it, from common numbers."""
        sigma = np.sqrt(self.sum_of_squares / numbers.chi_square(self.df))
        root = lower_root(self.covariance)
        coefficients = self.mean + sigma[:, None] * (numbers.z @ root.T)
        theta = np.concatenate([coefficients, np.log(sigma)[:, None]], axis=1)
        mode = np.append(self.mean, 0.5 * np.log(self.sum_of_squares / self.df))
        n_draws = len(theta)
        equal = np.full(n_draws, -np.log(n_draws))
        return Fitted(theta, equal, mode, -np.inf, float(n_draws), True)
