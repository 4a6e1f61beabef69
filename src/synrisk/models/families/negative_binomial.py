"""Counts that vary more than Poisson's, with a log link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, digamma, expit, gammaln, polygamma

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Variable
from synrisk.models.families.derivatives import gradient, hessian, softplus
from synrisk.models.families.family import Auxiliary, Family

_LARGEST_U = 1.0 - 2.0**-53
_LARGEST_COUNT = 2.0**53  # beyond, doubles skip whole numbers
_MOST = 4  # logarithms a value, for which a gamma function takes as long


@dataclass(frozen=True)
class NegativeBinomial(Family):
    """A count with mean exp(eta) and variance mean + mean²/shape; Poisson's as shape → ∞."""

    name: ClassVar[str] = "negative_binomial"
    aliases: ClassVar[tuple[str, ...]] = (
        "negbin", "nbinom", "negbinomial", "neg_binomial_2", "negativebinomial",
    )  # fmt: skip
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (
        Auxiliary("shape", prior_mean=10.0, aliases=("reciprocal_dispersion",), in_bambi="alpha"),
    )
    wants: ClassVar[str] = "whole numbers from 0"
    nanoseconds: ClassVar[float] = 12.0

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """0, 1, 2, …"""
        return np.asarray(np.isfinite(y) & (y >= 0) & (y == np.floor(y)))

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Counts above 0."""
        return (np.asarray(y > 0),)

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of y successes, each of odds exp(eta)/shape, before `shape` failures."""
        x, shape = eta[..., 0], auxiliary[..., 0]
        log_rest = _log_rest(x, shape)
        own = log_rising(y, shape) - gammaln(y + 1.0)
        return y * (x - np.log(shape) + log_rest) + shape * log_rest + own

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of counts up to y."""
        x, shape = eta[..., 0], auxiliary[..., 0]
        at = betainc(shape, np.maximum(y, 0.0) + 1.0, np.exp(_log_rest(x, shape)))
        return np.where(y < 0, 0.0, at)

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """y − (y + shape) r and the like, with r = mean/(shape + mean)."""
        r, shape, in_shape = self._parts(y, eta, auxiliary)
        return gradient(y - (y + shape) * r, in_shape + shape * r - y * (1.0 - r))

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the score."""
        r, shape, in_shape = self._parts(y, eta, auxiliary)
        both = (y + shape) * r * (1.0 - r)
        second = shape**2 * (polygamma(1, y + shape) - polygamma(1, shape))
        return hessian([-both], [both - shape * r, in_shape + second + 2.0 * shape * r - both])

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw a count, by one uniform number."""
        return self.quantile(rng.random(eta.shape[:-1]), eta, auxiliary)

    def quantile(self, u: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the smallest count up to which the probability is `u`.

        By halving: SciPy's inverse warns, and fails, of a mean near 0 and a `u` near 1.
        """
        u = np.minimum(u, _LARGEST_U)
        low, high = np.full(np.shape(u), -1.0), np.zeros(np.shape(u))
        while (short := self.cdf(high, eta, auxiliary) < u).any() and high.max() < _LARGEST_COUNT:
            low, high = np.where(short, high, low), np.where(short, 2.0 * high + 1.0, high)
        while (high - low).max(initial=0.0) > 1.0:
            middle = np.floor(0.5 * (low + high))
            short = self.cdf(middle, eta, auxiliary) < u
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.maximum(high, 0.0)

    def _parts(
        self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return r, shape, and what the gamma functions leave of the derivative in log shape."""
        x, shape = eta[..., 0], auxiliary[..., 0]
        in_shape = digamma(y + shape) - digamma(shape) + _log_rest(x, shape)
        return expit(x - np.log(shape)), shape, shape * in_shape


def log_rising(y: FloatArray, shape: FloatArray) -> FloatArray:
    """log Γ(y + shape)/Γ(shape) of whole numbers y.

    For one shape each draw and many records, a sum of logarithms serves all records.
    """
    if shape.ndim == 1 and y.shape[-1:] == (1,) and float(y.max(initial=0.0)) <= _MOST * y.size:
        steps = np.log(shape + np.arange(float(y.max(initial=0.0)))[:, None])
        return np.asarray(np.cumsum(np.pad(steps, ((1, 0), (0, 0))), axis=0)[y[..., 0].astype(int)])
    return np.asarray(gammaln(y + shape) - gammaln(shape))


def _log_rest(x: FloatArray, shape: FloatArray) -> FloatArray:
    """log(shape/(shape + mean)), which is log(1 − r)."""
    return -softplus(x - np.log(shape))
