"""Amounts of which some are 0: a hurdle, then an amount above 0 by its own distribution, on a grid.

Amounts are recorded in units, hundreds or cents. The likelihood is that of the recorded amount: the
probability of all that is rounded to it, and of smaller ones too where it is the smallest above 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.models.families.family import Auxiliary
from synrisk.models.families.gamma import Gamma
from synrisk.models.families.interval_probability import Derivatives
from synrisk.models.families.lognormal import LogNormal
from synrisk.models.families.on_grid import OnGrid
from synrisk.models.families.rounded import Rounded, RoundedGamma, RoundedLogNormal
from synrisk.models.families.zero_part import Hurdle, ZeroPart


@dataclass(frozen=True)
class HurdleAmount(OnGrid, Hurdle):
    """0 with probability hu, else an amount by `amounts`, rounded to a multiple of `step`.

    Parameters
    ----------
    step
        The distance between neighbouring amounts.
    """

    amounts: ClassVar[type[Rounded]]
    spacing: ClassVar[str] = "log"

    def on_link_scale(self, y: FloatArray) -> FloatArray:
        """Logarithms of the amounts above 0."""
        return np.log(y[y > 0])

    def residual_sd(self, auxiliary: FloatArray) -> None:
        """Parameters are of a logarithm, which zeros have not."""

    def log_above(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the log probability of what is rounded to y."""
        return self._amounts.of.log_interval(*self._ends(y), eta, auxiliary[..., :-1])

    def above_derivatives(
        self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> Derivatives:
        """Return those of the interval."""
        return self._amounts.of.interval_derivatives(*self._ends(y), eta, auxiliary[..., :-1])

    def cdf_above(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of amounts up to y, given that they are above 0."""
        upto = self._amounts.of.cdf(self._ends(y)[1], eta, auxiliary[..., :-1])
        return np.asarray(upto)

    def quantile_above(self, u: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Invert the distribution function, and round."""
        logs = self._amounts.of.quantile(u, eta, auxiliary[..., :-1])
        return np.maximum(self._amounts.rounded(logs), self.step)

    @property
    def _amounts(self) -> Rounded:
        return self.amounts(self.step)

    def _ends(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of what is rounded to y, in logs; −∞ below the smallest above 0."""
        low, high = self._amounts.ends(y)
        return np.where(y < 1.5 * self.step, -np.inf, low), high


@dataclass(frozen=True)
class HurdleLogNormal(HurdleAmount):
    """0 with probability hu, else log-normal about exp(eta), rounded to a multiple of `step`.

    Parameters
    ----------
    step
        The distance between neighbouring amounts.
    """

    amounts: ClassVar[type[Rounded]] = RoundedLogNormal
    name: ClassVar[str] = "hurdle_lognormal"
    aliases: ClassVar[tuple[str, ...]] = ("two_part", "hurdlelognormal")
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (*LogNormal.auxiliary, ZeroPart.odds)


@dataclass(frozen=True)
class HurdleGamma(HurdleAmount):
    """0 with probability hu, else gamma with mean exp(eta), rounded to a multiple of `step`.

    Parameters
    ----------
    step
        The distance between neighbouring amounts.
    """

    amounts: ClassVar[type[Rounded]] = RoundedGamma
    name: ClassVar[str] = "hurdle_gamma"
    aliases: ClassVar[tuple[str, ...]] = ("two_part_gamma", "hurdlegamma")
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (*Gamma.auxiliary, ZeroPart.odds)
