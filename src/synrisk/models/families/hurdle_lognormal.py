"""Amounts of which some are 0: a hurdle, then an amount whose logarithm is normal, on a grid.

Amounts are recorded in units, hundreds or cents. The likelihood is that of the recorded amount: the
probability of all that is rounded to it, and of smaller ones too where it is the smallest above 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Variable
from synrisk.models.families.family import Auxiliary
from synrisk.models.families.normal_interval import interval_derivatives, log_mass
from synrisk.models.families.rounded_gaussian import checked_step, is_on_grid
from synrisk.models.families.zero_part import Derivatives, Hurdle, ZeroPart

_LARGEST = 700.0  # of a logarithm


@dataclass(frozen=True)
class HurdleLogNormal(Hurdle):
    """0 with probability hu, else log-normal about exp(eta), rounded to a multiple of `step`.

    Parameters
    ----------
    step
        The distance between neighbouring amounts.
    """

    step: float = 1.0

    name: ClassVar[str] = "hurdle_lognormal"
    aliases: ClassVar[tuple[str, ...]] = ("two_part", "hurdlelognormal")
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (
        Auxiliary("sigma", in_response_units=True),
        ZeroPart.odds,
    )
    spacing: ClassVar[str] = "log"

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", checked_step(self.step))

    @property
    def grid_step(self) -> float:
        """The distance between neighbouring amounts."""
        return self.step

    @property
    def wants(self) -> str:  # type: ignore[override]
        """What a response must be, for messages."""
        of = "whole numbers" if self.step == 1.0 else f"multiples of {self.step:g}"
        return f"{of} from 0"

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """Multiples of the step from 0."""
        return np.asarray(is_on_grid(y, self) & (y >= 0))

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Amounts above 0."""
        return (np.asarray(y > 0),)

    def on_link_scale(self, y: FloatArray) -> FloatArray:
        """Logarithms of the amounts above 0."""
        return np.log(y[y > 0])

    def residual_sd(self, auxiliary: FloatArray) -> None:
        """Sigma is that of a logarithm, which zeros have not."""

    def log_above(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """log(Φ(b) − Φ(a)), the ends of what is rounded to y in logs and standardised."""
        return log_mass(*self._ends(y, eta, auxiliary))

    def above_derivatives(
        self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> Derivatives:
        """Return those of the interval."""
        a, b = self._ends(y, eta, auxiliary)
        return interval_derivatives(a, b, log_mass(a, b), auxiliary[..., 0])

    def cdf_above(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of amounts up to y, given that they are above 0."""
        return np.asarray(ndtr(self._ends(y, eta, auxiliary)[1]))

    def quantile_above(self, u: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Invert the distribution function, and round."""
        drawn = np.exp(np.minimum(eta[..., 0] + auxiliary[..., 0] * ndtri(u), _LARGEST))
        return np.maximum(self.on_grid(drawn), self.step)

    def _ends(
        self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the standardised ends of what is rounded to y; −∞ below the smallest above 0."""
        x, sigma, half = eta[..., 0], auxiliary[..., 0], 0.5 * self.step
        least = y < 1.5 * self.step
        below = np.where(least, -np.inf, np.log(np.where(least, 1.0, y - half)))
        return (below - x) / sigma, (np.log(y + half) - x) / sigma
