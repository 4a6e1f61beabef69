"""Skewed positive amounts: a gamma distribution with a log link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, gammainc, gammaincc, gammaincinv, gammaln, polygamma

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Variable
from synrisk.models.families.derivatives import gradient, hessian
from synrisk.models.families.family import Auxiliary, Family

_LARGEST = 700.0  # of a logarithm
_LEAST_DRAWN = 1e-300


@dataclass(frozen=True)
class Gamma(Family):
    """An amount with mean exp(eta) and variance mean²/shape.

    The density is that of its logarithm, of which eta is the place: shape says how wide it is,
    whatever the units of the amount.
    """

    name: ClassVar[str] = "gamma"
    aliases: ClassVar[tuple[str, ...]] = ("Gamma",)
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (
        Auxiliary("shape", prior_mean=10.0, in_inverse_squares=True, in_bambi="alpha"),
    )
    is_continuous: ClassVar[bool] = True
    identity_link: ClassVar[bool] = True
    transform: ClassVar[str] = "log"
    wants: ClassVar[str] = "numbers above 0"
    nanoseconds: ClassVar[float] = 8.0

    def residual_sd(self, auxiliary: FloatArray) -> FloatArray:
        """Return the standard deviation of a gamma variable's logarithm."""
        return np.sqrt(polygamma(1, auxiliary[..., 0]))

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """Every finite logarithm."""
        return np.isfinite(y)

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """shape·(d − exp(d)) and what does not depend on y, with d = y − eta in logs."""
        shape = auxiliary[..., 0]
        d, ratio = _apart(y, eta)
        return shape * (d - ratio) + (shape * np.log(shape) - gammaln(shape))

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the regularised incomplete gamma function."""
        shape = auxiliary[..., 0]
        return np.asarray(gammainc(shape, shape * _apart(y, eta)[1]))

    def survival(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return its complement."""
        shape = auxiliary[..., 0]
        return np.asarray(gammaincc(shape, shape * _apart(y, eta)[1]))

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """shape·(exp(d) − 1), and in log shape."""
        shape = auxiliary[..., 0]
        d, ratio = _apart(y, eta)
        return gradient(shape * (ratio - 1.0), _in_shape(d, ratio, shape))

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the score."""
        shape = auxiliary[..., 0]
        d, ratio = _apart(y, eta)
        second = _in_shape(d, ratio, shape) + shape * (1.0 - shape * polygamma(1, shape))
        return hessian([-shape * ratio], [shape * (ratio - 1.0), second])

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw the logarithm of an amount, by one uniform number."""
        return self.quantile(rng.random(eta.shape[:-1]), eta, auxiliary)

    def quantile(self, u: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the logarithm of the amount up to which the probability is `u`."""
        shape = auxiliary[..., 0]
        drawn = gammaincinv(shape, u) / shape
        return np.asarray(eta[..., 0] + np.log(np.maximum(drawn, _LEAST_DRAWN)))


def _apart(y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return d, and exp(d), held where it would overflow."""
    d = y - eta[..., 0]
    return d, np.exp(np.minimum(d, _LARGEST))


def _in_shape(d: FloatArray, ratio: FloatArray, shape: FloatArray) -> FloatArray:
    return np.asarray(shape * (d - ratio + 1.0 + np.log(shape) - digamma(shape)))
