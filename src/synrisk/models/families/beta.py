"""Shares between 0 and 1: a beta distribution with a logit link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, digamma, expit, gammaln, logit, polygamma

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Variable
from synrisk.models.families.derivatives import gradient, hessian, softplus
from synrisk.models.families.family import Auxiliary, Family

_LARGEST = 600.0  # of a logit: a smaller share is no number
_LEAST_DRAWN, _MOST_DRAWN = 1e-300, 1.0 - 2.0**-53


@dataclass(frozen=True)
class Beta(Family):
    """A share with mean 1/(1 + exp(−eta)) and variance mean·(1 − mean)/(phi + 1).

    The density is that of its logit, of which eta is about the place.
    """

    name: ClassVar[str] = "beta"
    aliases: ClassVar[tuple[str, ...]] = ("Beta", "betareg")
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (
        Auxiliary(
            "phi", prior_mean=40.0, in_inverse_squares=True, aliases=("(phi)",), in_bambi="kappa"
        ),
    )
    is_continuous: ClassVar[bool] = True
    identity_link: ClassVar[bool] = True
    transform: ClassVar[str] = "logit"
    wants: ClassVar[str] = "numbers above 0 and below 1"
    nanoseconds: ClassVar[float] = 50.0

    def residual_sd(self, auxiliary: FloatArray) -> FloatArray:
        """Return the standard deviation of the logit of a share whose mean is a half."""
        return np.sqrt(2.0 * polygamma(1, 0.5 * auxiliary[..., 0]))

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """Every finite logit."""
        return np.isfinite(y)

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """a·y − phi·log(1 + exp(y)) − log B(a, b), with a = mean·phi, b = phi − a, y in logits."""
        _, a, b, phi = _parts(eta, auxiliary)
        # Two gamma functions take less time than betaln.
        log_beta = gammaln(a) + gammaln(b) - gammaln(phi)
        return a * y - phi * softplus(y) - log_beta

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the regularised incomplete beta function."""
        _, a, b, _ = _parts(eta, auxiliary)
        return np.asarray(betainc(a, b, expit(y)))

    def survival(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return that of one less the share."""
        _, a, b, _ = _parts(eta, auxiliary)
        return np.asarray(betainc(b, a, expit(-y)))

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives in eta and log phi."""
        mean, a, b, phi = _parts(eta, auxiliary)
        in_mean = y - digamma(a) + digamma(b)
        return gradient(phi * mean * (1.0 - mean) * in_mean, phi * _in_phi(y, mean, a, b, phi))

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the score."""
        mean, a, b, phi = _parts(eta, auxiliary)
        slope, rest = mean * (1.0 - mean), 1.0 - mean
        in_mean, in_a, in_b = y - digamma(a) + digamma(b), polygamma(1, a), polygamma(1, b)
        in_eta = slope * (1.0 - 2.0 * mean) * in_mean - phi * slope**2 * (in_a + in_b)
        mixed = phi * slope * (in_mean + phi * (rest * in_b - mean * in_a))
        second = polygamma(1, phi) - mean**2 * in_a - rest**2 * in_b
        of_phi = phi * _in_phi(y, mean, a, b, phi) + phi**2 * second
        return hessian([phi * in_eta], [mixed, of_phi])

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw the logit of a share, by one uniform number."""
        _, a, b, _ = _parts(eta, auxiliary)
        drawn = betaincinv(a, b, rng.random(eta.shape[:-1]))
        return np.asarray(logit(np.clip(drawn, _LEAST_DRAWN, _MOST_DRAWN)))


def _parts(
    eta: FloatArray, auxiliary: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the mean, a, b and phi."""
    x, phi = np.clip(eta[..., 0], -_LARGEST, _LARGEST), auxiliary[..., 0]
    mean = expit(x)
    return mean, mean * phi, expit(-x) * phi, phi


def _in_phi(
    y: FloatArray, mean: FloatArray, a: FloatArray, b: FloatArray, phi: FloatArray
) -> FloatArray:
    """Return the derivative of the log density in phi."""
    of_y = mean * y - softplus(y)
    return np.asarray(of_y + digamma(phi) - mean * digamma(a) - (1.0 - mean) * digamma(b))
