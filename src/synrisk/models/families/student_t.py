"""Linear regression with errors that may be far out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, gammaln, polygamma, stdtr, stdtrit

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Variable
from synrisk.models.families.derivatives import gradient, hessian
from synrisk.models.families.family import Auxiliary, Family

_LEAST_UNIFORM = 2.0**-54


@dataclass(frozen=True)
class StudentT(Family):
    """y ~ eta + sigma · t(nu)."""

    name: ClassVar[str] = "student_t"
    aliases: ClassVar[tuple[str, ...]] = ("student", "t")
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (
        Auxiliary("sigma", in_response_units=True),
        Auxiliary("nu", prior_mean=10.0),
    )
    is_continuous: ClassVar[bool] = True
    identity_link: ClassVar[bool] = True
    wants: ClassVar[str] = "finite numbers"
    nanoseconds: ClassVar[float] = 6.0

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """Every finite number."""
        return np.isfinite(y)

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """−½(nu + 1)·log(1 + z²/nu), z = (y − eta)/sigma, and what does not depend on y."""
        sigma, nu = auxiliary[..., 0], auxiliary[..., 1]
        z = (y - eta[..., 0]) * (1.0 / (sigma * np.sqrt(nu)))
        own = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(math.pi * nu)
        return -0.5 * (nu + 1.0) * np.log1p(z * z) + (own - np.log(sigma))

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return that of z."""
        return np.asarray(stdtr(auxiliary[..., 1], (y - eta[..., 0]) / auxiliary[..., 0]))

    def survival(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return that of −z."""
        return np.asarray(stdtr(auxiliary[..., 1], (eta[..., 0] - y) / auxiliary[..., 0]))

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """(nu + 1)·z/(sigma·d) and the like, with d = nu + z²."""
        z, d, sigma, nu = _parts(y, eta, auxiliary)
        pull = (nu + 1.0) * z / d
        return gradient(pull / sigma, z * pull - 1.0, nu * _in_nu(z, d, nu))

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the score."""
        z, d, sigma, nu = _parts(y, eta, auxiliary)
        square = z * z
        second = 0.25 * (polygamma(1, 0.5 * (nu + 1.0)) - polygamma(1, 0.5 * nu)) + 0.5 / nu**2
        second = second + 0.5 * square / (nu * d)
        second = second + 0.5 * square * (nu * d - (nu + 1) * (2 * nu + square)) / (nu * d) ** 2
        return hessian(
            [-(nu + 1.0) * (nu - square) / (sigma * d) ** 2],
            [-2.0 * nu * (nu + 1.0) * z / (sigma * d**2), -2.0 * nu * (nu + 1.0) * square / d**2],
            [
                nu * z * (square - 1.0) / (sigma * d**2),
                nu * square * (square - 1.0) / d**2,
                nu * _in_nu(z, d, nu) + nu**2 * second,
            ],
        )

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw from the t distribution, by one uniform number."""
        u = np.maximum(rng.random(eta.shape[:-1]), _LEAST_UNIFORM)
        return np.asarray(eta[..., 0] + auxiliary[..., 0] * stdtrit(auxiliary[..., 1], u))


def _parts(
    y: FloatArray, eta: FloatArray, auxiliary: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return z, d, sigma and nu."""
    sigma, nu = auxiliary[..., 0], auxiliary[..., 1]
    z = (y - eta[..., 0]) / sigma
    return z, nu + z * z, sigma, nu


def _in_nu(z: FloatArray, d: FloatArray, nu: FloatArray) -> FloatArray:
    """Return the derivative of the log density in nu."""
    gammas = 0.5 * (digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu)) - 0.5 / nu
    return np.asarray(gammas - 0.5 * np.log(d / nu) + 0.5 * (nu + 1.0) * z * z / (nu * d))
