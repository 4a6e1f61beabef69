"""Linear regression with normal errors whose response is rounded to a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.models.families.family import Auxiliary, Family
from synrisk.models.families.gaussian import Gaussian
from synrisk.models.families.rounded import Rounded

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_FAR = 5.0  # standard deviations from which the tail is a continued fraction
_N_TERMS = 40  # of it: to 1e-16 at 5


def _base(eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    return 0.0 * parameters[0, h]


def _varying(y: Any, eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    away, half = abs((y - eta[cell, 0, h]) * parameters[0, h]), parameters[1, h]
    a, b = away - half, away + half
    if a < _FAR:
        return math.log(0.5 * (math.erfc(a * _ROOT_HALF) - math.erfc(b * _ROOT_HALF)))
    # Mills' ratios: (1 − Φ(a))/φ(a) = 1/(a + 1/(a + 2/(a + …))), and of b.
    below, above = a, b
    for k in range(_N_TERMS, 0, -1):
        below, above = a + k / below, b + k / above
    mass = 1.0 / below - math.exp(-2.0 * away * half) / above
    return math.log(mass) - 0.5 * a * a - _HALF_LOG_TWO_PI


@dataclass(frozen=True)
class RoundedGaussian(Rounded):
    """y ~ Normal(eta, sigma), rounded to a multiple of `step`.

    Parameters
    ----------
    step
        The distance between neighbouring values.
    """

    of: ClassVar[Family] = Gaussian()
    name: ClassVar[str] = "rounded_gaussian"
    aliases: ClassVar[tuple[str, ...]] = ("rounded",)
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = Gaussian.auxiliary
    identity_link: ClassVar[bool] = True
    least: ClassVar[float] = -math.inf
    compiled: ClassVar[Any] = (_varying, _base)

    def kernel_parameters(self, auxiliary: FloatArray) -> FloatArray:
        """1/sigma, and half a step over it."""
        sigma = auxiliary[:, 0]
        return np.stack([1.0 / sigma, 0.5 * self.step / sigma])
