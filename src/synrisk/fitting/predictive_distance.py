"""D²: how far rows are from what a posterior predicts, χ² if they were drawn from it.

Rows ỹ are drawn given θ*, and θ* from the posterior p(θ|y) with centre μ and covariance V. So the
score S of ỹ at μ, by the likelihood alone, has mean 0 and variance J + JVJ, where J is the
information that is expected of rows with their predictors, and

    D² = S'(J + JVJ)⁻S

is χ² with as many degrees of freedom as J has rank. The prior enters once, by V. Under a flat one
D² is Δ'(V + Ṽ)⁻¹Δ of the two fits. Directions of which the rows say nothing are left out.

Of gaussian models it is known for any number of rows. Given σ the coefficients' part Q(σ) is χ²,
and the rows' least sum of squares R is σ²χ². Averaged over σ given y, and given y and R, both are
probabilities, and D² is made of these: as exact as an F test is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq
from scipy.special import (
    chdtr,
    chdtrc,
    digamma,
    gammainccinv,
    gammaincinv,
    ndtri,
    polygamma,
)

from synrisk.base.arrays import FloatArray
from synrisk.fitting.conjugate import ConjugatePosterior
from synrisk.fitting.sigma_quadrature import KnownGivenSigma
from synrisk.fitting.sufficient_statistics import Sums

_SETTLED = 1e-10  # eigenvalue of an information, its diagonal being 1
_STEP = 0.3  # of log sigma, in the smaller of its standard deviations
_MOST_POINTS, _MOST_NODES = 4001, 64
_REACH = 12.0  # standard deviations of log sigma
_NEGLIGIBLE = 1e-13  # of the largest weight
_LEAST_TAIL = 1e-290
_LEAST_TRIGAMMA = 1e-12  # where all draws have one sigma


def whitening(information: FloatArray) -> FloatArray:
    """Return T of full column rank with T'JT = 1 and J = JTT'J: its range, in units of itself."""
    size = np.sqrt(np.maximum(np.diag(information), 0.0))
    size = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    kept = values > _SETTLED
    return np.asarray(vectors[:, kept] / size[:, None] / np.sqrt(values[kept]))


@dataclass(frozen=True, repr=False)
class ScoreDistance:
    """D² by the score at the posterior's centre.

    Attributes
    ----------
    whitener
        W with D² = |WS|².
    d2
        D².
    """

    whitener: FloatArray
    d2: float

    @classmethod
    def of(
        cls, score: FloatArray, information: FloatArray, covariance: FloatArray
    ) -> ScoreDistance:
        """Return it of S, J and V."""
        basis = whitening(information)
        along = basis.T @ information
        variance = np.eye(len(along)) + along @ covariance @ along.T
        root = np.linalg.cholesky(variance)
        whitener = solve_triangular(root, basis.T, lower=True)
        return cls(whitener, float(((whitener @ score) ** 2).sum()))

    @property
    def df(self) -> float:
        """The degrees of freedom: the rank of J."""
        return float(len(self.whitener))


def gaussian_distance(known: KnownGivenSigma, sums: Sums) -> tuple[float, float]:
    """Return D² and its degrees of freedom of rows, by their sums, from an exact posterior."""
    basis = whitening(sums.gram)
    rank = basis.shape[1]
    least = max(sums.squared_errors(sums.centre + basis @ (basis.T @ sums.products)), 0.0)
    n_left = sums.n_effective - rank
    log_sigma, p = _posterior_of_sigma(known, n_left)
    d2, df = 0.0, 0.0
    if n_left > 0:
        d2, df = _squares_distance(known, log_sigma, p, least, n_left), 1.0
        with np.errstate(divide="ignore"):
            log_w = np.log(p) - n_left * log_sigma - 0.5 * least * np.exp(-2.0 * log_sigma)
        p = np.exp(log_w - log_w.max())
    if not rank:
        return d2, df
    counts = np.flatnonzero(p > _NEGLIGIBLE * p.max())
    nodes = counts[:: max(1, len(counts) // _MOST_NODES)]
    weight = p[nodes] / p[nodes].sum()
    mean, covariance = known.given(log_sigma[nodes])
    along = basis.T @ sums.gram
    apart = basis.T @ sums.products - (mean - sums.centre) @ along.T
    sigma2 = np.exp(2.0 * log_sigma[nodes])
    variance = sigma2[:, None, None] * np.eye(rank) + along @ covariance @ along.T
    quadratic = (apart * np.linalg.solve(variance, apart[:, :, None])[..., 0]).sum(axis=1)
    return d2 + _as_chi_square(quadratic, weight, rank), df + rank


def _posterior_of_sigma(known: KnownGivenSigma, n_left: float) -> tuple[FloatArray, FloatArray]:
    """Return points of log sigma, close enough for what n_left more rows leave, and their p."""
    own = known.log_sigma
    low = max(float(own.points[0]), own.mean - _REACH * own.sd)
    high = min(float(own.points[-1]), own.mean + _REACH * own.sd)
    step = _STEP / math.sqrt(1.0 / own.sd**2 + 2.0 * max(n_left, 0.0))
    n_points = int(min(max((high - low) / step, 41.0), _MOST_POINTS))
    log_sigma = np.linspace(low, high, n_points)
    log_p = known.log_density(log_sigma)
    p = np.exp(log_p - log_p.max())
    return log_sigma, p / p.sum()


def _squares_distance(
    known: KnownGivenSigma, log_sigma: FloatArray, p: FloatArray, least: float, n_left: float
) -> float:
    """Return z² of the least sum of squares."""
    with np.errstate(over="ignore"):
        ratio = least * np.exp(-2.0 * log_sigma)
    tail = min(float(p @ chdtr(n_left, ratio)), float(p @ chdtrc(n_left, ratio)))
    if tail > _LEAST_TAIL:
        return float(ndtri(tail)) ** 2
    own = known.log_sigma
    apart = 0.5 * math.log(max(least, _LEAST_TAIL) / n_left) - own.mean
    return apart**2 / (own.sd**2 + 0.5 / n_left)


def _as_chi_square(quadratic: FloatArray, weight: FloatArray, rank: int) -> float:
    """Return the value of χ² that is as probable as quadratic forms are on average."""
    below, above = weight @ chdtr(rank, quadratic), weight @ chdtrc(rank, quadratic)
    if below < above:
        return float(2.0 * gammaincinv(0.5 * rank, below))
    if above > _LEAST_TAIL:
        return float(2.0 * gammainccinv(0.5 * rank, above))
    return float(weight @ quadratic)


def known_by_moments(mean: FloatArray, covariance: FloatArray) -> ConjugatePosterior:
    """Return the normal-inverse-gamma posterior with these moments of coefficients and log sigma.

    For draws that were made elsewhere.
    """
    trigamma = max(4.0 * float(covariance[-1, -1]), _LEAST_TRIGAMMA)
    half = brentq(lambda log_x: polygamma(1, math.exp(log_x)) - trigamma, -10.0, 40.0)
    df = 2.0 * math.exp(half)
    squares = 2.0 * math.exp(2.0 * float(mean[-1]) + float(digamma(0.5 * df)))
    expected = squares / (df - 2.0 if df > 3.0 else df)
    return ConjugatePosterior(mean[:-1], covariance[:-1, :-1] / expected, df, squares)
