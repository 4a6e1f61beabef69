"""Linear regression with normal errors whose response is rounded to a grid.

The likelihood of a rounded value is the probability of what is rounded to it: a difference of
distribution functions. A density stands for it well only where sigma is many steps.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import OptionError
from synrisk.data.schema import Variable
from synrisk.models.families.family import Auxiliary, Family
from synrisk.models.families.normal_interval import interval_derivatives

_ON_GRID = 1e-9  # of a step, or of the value
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
class RoundedGaussian(Family):
    """y ~ Normal(eta, sigma), rounded to a multiple of `step`.

    Parameters
    ----------
    step
        The distance between neighbouring values.
    """

    step: float = 1.0

    name: ClassVar[str] = "rounded_gaussian"
    aliases: ClassVar[tuple[str, ...]] = ("rounded",)
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (Auxiliary("sigma", in_response_units=True),)
    identity_link: ClassVar[bool] = True
    least: ClassVar[float] = -math.inf
    compiled: ClassVar[Any] = (_varying, _base)

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", checked_step(self.step))

    @property
    def grid_step(self) -> float:
        """The distance between neighbouring values."""
        return self.step

    @property
    def wants(self) -> str:  # type: ignore[override]
        """What a response must be, for messages."""
        return "whole numbers" if self.step == 1.0 else f"multiples of {self.step:g}"

    def kernel_parameters(self, auxiliary: FloatArray) -> FloatArray:
        """1/sigma, and half a step over it."""
        sigma = auxiliary[:, 0]
        return np.stack([1.0 / sigma, 0.5 * self.step / sigma])

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """Multiples of the step."""
        return is_on_grid(y, self)

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return log(Φ(b) − Φ(a)), the ends of what is rounded to y standardised."""
        return self._ends(y, eta, auxiliary)[2]

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Φ((y − eta)/sigma), of values before they are rounded."""
        return np.asarray(ndtr((y - eta[..., 0]) / auxiliary[..., 0]))

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """(φ(a) − φ(b))/(sigma P) and (a φ(a) − b φ(b))/P, of the probability P."""
        return interval_derivatives(*self._ends(y, eta, auxiliary), auxiliary[..., 0])[0]

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the score."""
        return interval_derivatives(*self._ends(y, eta, auxiliary), auxiliary[..., 0])[1]

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw from the normal distribution, and round."""
        return self.on_grid(rng.normal(eta[..., 0], auxiliary[..., 0]))

    def _ends(
        self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the standardised ends of what is rounded to y, and the log of its probability."""
        sigma = auxiliary[..., 0]
        z, half = (y - eta[..., 0]) / sigma, 0.5 * self.step / sigma
        away = np.abs(z)  # in the upper tail, where small probabilities keep their digits
        beyond, further = log_ndtr(half - away), log_ndtr(-half - away)
        return z - half, z + half, beyond + np.log(-np.expm1(further - beyond))


def checked_step(step: object) -> float:
    """Return the distance between neighbouring values, which must be a number above 0."""
    real = isinstance(step, numbers.Real) and not isinstance(step, bool)
    if not real or not 0.0 < float(step) < math.inf:  # type: ignore[arg-type]
        raise OptionError("The step of rounded values must be a number above 0.")
    return float(step)  # type: ignore[arg-type]


def is_on_grid(y: FloatArray, family: Family) -> BoolArray:
    """Tell for each value whether it is a multiple of a family's step."""
    with np.errstate(invalid="ignore"):
        off = np.abs(y - family.on_grid(y))
        return np.asarray(
            np.isfinite(y) & (off <= _ON_GRID * np.maximum(family.grid_step, np.abs(y)))
        )
