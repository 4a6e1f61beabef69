"""Linear regression with normal errors whose response has bounds, beyond which there is nothing."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtri_exp

from synrisk.base.arrays import BoolArray, FloatArray, as_float
from synrisk.base.errors import OptionError
from synrisk.data.schema import Numeric, Variable
from synrisk.models.families.family import Auxiliary, Family
from synrisk.models.families.gaussian import Gaussian
from synrisk.models.families.normal_interval import log_mass

_GAUSSIAN = Gaussian()


@dataclass(frozen=True)
class TruncatedGaussian(Family):
    """y ~ Normal(eta, sigma), given that it lies between two bounds.

    Parameters
    ----------
    lower, upper
        The bounds, which are possible values; without them those that ``types=`` declares.
    """

    lower: float = -math.inf
    upper: float = math.inf

    name: ClassVar[str] = "truncated_gaussian"
    aliases: ClassVar[tuple[str, ...]] = ("truncated_normal", "truncnorm")
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = Gaussian.auxiliary
    is_continuous: ClassVar[bool] = True
    identity_link: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            bound = getattr(self, name)
            if not isinstance(bound, numbers.Real) or isinstance(bound, bool):
                raise OptionError(f"truncated_gaussian: {name} must be a number.")
            object.__setattr__(self, name, as_float(bound))
        if not self.lower < self.upper:
            raise OptionError("truncated_gaussian: lower must be below upper.")

    @property
    def wants(self) -> str:  # type: ignore[override]
        """What a response must be, for messages."""
        if not self.is_bounded:
            return (
                "numbers with bounds that are declared: TruncatedGaussian(lower, upper), or "
                "types={…: (lower, upper)}"
            )
        return f"numbers from {self.lower:g} to {self.upper:g}"

    @property
    def is_location_scale(self) -> bool:
        """In other units the bounds are others."""
        return False

    @property
    def is_bounded(self) -> bool:
        """Whether there is a bound at all."""
        return math.isfinite(self.lower) or math.isfinite(self.upper)

    def given(self, response: Variable) -> TruncatedGaussian:
        """Return the family with the bounds that were declared, where it has none of its own."""
        if self.is_bounded or not isinstance(response, Numeric) or response.bounds is None:
            return self
        return replace(self, lower=response.bounds[0], upper=response.bounds[1])

    def fits(self, response: Variable) -> bool:
        """Numbers with a bound."""
        return super().fits(response) and self.is_bounded

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """Numbers between the bounds."""
        return np.asarray(np.isfinite(y) & (y >= self.lower) & (y <= self.upper))

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return that of the normal distribution, less the log of what it has between."""
        return _GAUSSIAN.log_density(y, eta, auxiliary) - _GAUSSIAN.log_interval(
            *self._bounds, eta, auxiliary
        )

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the share of what lies between that is up to y."""
        low, high = self._bounds
        y = np.clip(y, low, high)
        with np.errstate(divide="ignore"):  # at the lower bound
            upto = _GAUSSIAN.log_interval(low, y, eta, auxiliary)
        return np.exp(upto - _GAUSSIAN.log_interval(low, high, eta, auxiliary))

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the difference of both parts' derivatives."""
        between = _GAUSSIAN.interval_derivatives(*self._bounds, eta, auxiliary)[0]
        return np.asarray(_GAUSSIAN.score(y, eta, auxiliary) - between)

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the score."""
        between = _GAUSSIAN.interval_derivatives(*self._bounds, eta, auxiliary)[1]
        return np.asarray(_GAUSSIAN.curvature(y, eta, auxiliary) - between)

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw by one uniform number, in the tail where it keeps its digits."""
        x, sigma = eta[..., 0], auxiliary[..., 0]
        u = rng.random(eta.shape[:-1])
        a, b = (self.lower - x) / sigma, (self.upper - x) / sigma
        upper = np.isfinite(a) & (a > 0.0)
        low, high, part = (
            np.where(upper, *pair) for pair in ((-b, a), (-a, b), (1.0 - u, u))
        )  # fmt: skip
        with np.errstate(divide="ignore"):
            log_p = np.logaddexp(log_ndtr(low), np.log(part) + log_mass(low, high))
        z = ndtri_exp(np.minimum(log_p, 0.0))
        drawn = x + sigma * np.where(upper, -z, z)
        return np.clip(drawn, self.lower, self.upper)

    @property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        return np.asarray(self.lower), np.asarray(self.upper)
