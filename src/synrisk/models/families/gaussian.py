"""Linear regression with normal errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Variable
from synrisk.models.families.family import Auxiliary, Family
from synrisk.models.families.interval_probability import Derivatives
from synrisk.models.families.normal_interval import log_mass, mass_derivatives

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def _base(eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    return parameters[1, h]


def _varying(y: Any, eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    z = (y - eta[cell, 0, h]) * parameters[0, h]
    return -z * z


@dataclass(frozen=True)
class Gaussian(Family):
    """y ~ Normal(eta, sigma)."""

    name: ClassVar[str] = "gaussian"
    aliases: ClassVar[tuple[str, ...]] = ("norm", "normal")
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (Auxiliary("sigma", in_response_units=True),)
    exact: ClassVar[bool] = True
    is_continuous: ClassVar[bool] = True
    identity_link: ClassVar[bool] = True
    is_quadratic: ClassVar[bool] = True
    wants: ClassVar[str] = "finite numbers"
    compiled: ClassVar[Any] = (_varying, _base)

    def kernel_parameters(self, auxiliary: FloatArray) -> FloatArray:
        """1/(sigma √2) and log sigma + ½ log 2π."""
        sigma = auxiliary[:, 0]
        return np.stack([1.0 / (sigma * math.sqrt(2.0)), np.log(sigma) + _HALF_LOG_TWO_PI])

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """Every finite number."""
        return np.isfinite(y)

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """−½ ((y − eta)/sigma)² − log sigma − ½ log 2π."""
        sigma = auxiliary[..., 0]
        z = (y - eta[..., 0]) / sigma
        return -0.5 * z * z - np.log(sigma) - _HALF_LOG_TWO_PI

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Φ((y − eta)/sigma)."""
        return np.asarray(ndtr((y - eta[..., 0]) / auxiliary[..., 0]))

    def quantile(self, u: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Eta + sigma·Φ⁻¹(u)."""
        return np.asarray(eta[..., 0] + auxiliary[..., 0] * ndtri(u))

    def survival(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Φ(−(y − eta)/sigma)."""
        return np.asarray(ndtr((eta[..., 0] - y) / auxiliary[..., 0]))

    def log_interval(
        self, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> FloatArray:
        """log(Φ(b) − Φ(a)) of the standardised ends."""
        return log_mass(*_standardised(low, high, eta, auxiliary))

    def interval_derivatives(
        self, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> Derivatives:
        """(φ(a) − φ(b))/(sigma P) and (a φ(a) − b φ(b))/P, of the probability P, and theirs."""
        a, b = _standardised(low, high, eta, auxiliary)
        return mass_derivatives(a, b, log_mass(a, b), auxiliary[..., 0])

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """z/sigma and z² − 1, where z = (y − eta)/sigma."""
        sigma = auxiliary[..., 0]
        z = (y - eta[..., 0]) / sigma
        return np.stack(np.broadcast_arrays(z / sigma, z * z - 1.0), axis=-1)

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """−1/sigma², −2z/sigma and −2z²."""
        sigma = auxiliary[..., 0]
        z = (y - eta[..., 0]) / sigma
        eta2, mixed, log2 = np.broadcast_arrays(-1.0 / sigma**2, -2.0 * z / sigma, -2.0 * z * z)
        rows = [np.stack([eta2, mixed], axis=-1), np.stack([mixed, log2], axis=-1)]
        return np.stack(rows, axis=-2)

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw from the normal distribution."""
        return rng.normal(eta[..., 0], auxiliary[..., 0])


def _standardised(
    low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
) -> tuple[FloatArray, FloatArray]:
    x, sigma = eta[..., 0], auxiliary[..., 0]
    return (low - x) / sigma, (high - x) / sigma
