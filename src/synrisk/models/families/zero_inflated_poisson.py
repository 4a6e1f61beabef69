"""Counts with more zeros than Poisson's: some are 0 whatever their rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, pdtr

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.models.families.family import Auxiliary
from synrisk.models.families.hurdle_poisson import rate_of
from synrisk.models.families.zero_part import Derivatives, ZeroPart, with_odds


@dataclass(frozen=True)
class ZeroInflatedPoisson(ZeroPart):
    """0 with probability zi, else Poisson(exp(eta)), which may be 0 too."""

    name: ClassVar[str] = "zero_inflated_poisson"
    aliases: ClassVar[tuple[str, ...]] = ("zip", "zeroinflatedpoisson")
    probability: ClassVar[str] = "zi"
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (ZeroPart.odds,)
    wants: ClassVar[str] = "whole numbers from 0"

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Counts above 0."""
        return (np.asarray(y > 0),)

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the log of zi + (1 − zi) exp(−rate) at 0, else that of 1 − zi and Poisson's."""
        odds, rate = auxiliary[..., -1], rate_of(eta)
        above = y * eta[..., 0] - rate - gammaln(y + 1.0)
        return np.where(y == 0, np.log(odds + np.exp(-rate)), above) - np.log1p(odds)

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of counts up to y."""
        odds = auxiliary[..., -1]
        upto = (odds + pdtr(np.maximum(y, 0.0), rate_of(eta))) / (1.0 + odds)
        return np.where(y < 0, 0.0, upto)

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw by one uniform number: below zi a 0, and else what is left of it a count."""
        from scipy.stats import poisson  # which takes long to import

        odds = auxiliary[..., -1]
        left = rng.random(eta.shape[:-1]) * (1.0 + odds) - odds
        return np.maximum(poisson.ppf(np.clip(left, 0.0, 1.0), rate_of(eta)), 0.0)

    def _derivatives(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> Derivatives:
        odds, rate = auxiliary[..., -1], rate_of(eta)
        y, odds, rate = np.broadcast_arrays(y, odds, rate)
        p, is_zero = odds / (1.0 + odds), y == 0
        of_count = np.exp(-rate) / (odds + np.exp(-rate))  # a zero's, of being Poisson's
        r = np.where(is_zero, of_count, 1.0)
        spread = r * (1.0 - r)  # 0 where y is above 0
        return with_odds(
            (np.where(is_zero, 0.0, y) - r * rate)[..., None],
            (-r * rate + spread * rate**2)[..., None, None],
            1.0 - r - p,
            spread - p * (1.0 - p),
            (spread * rate)[..., None],
        )
