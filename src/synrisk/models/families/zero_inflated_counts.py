"""Counts with more zeros than others of their kind: some come from a part of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.models.families.family import Auxiliary
from synrisk.models.families.hurdle_counts import outer
from synrisk.models.families.interval_probability import Derivatives
from synrisk.models.families.negative_binomial import NegativeBinomial
from synrisk.models.families.poisson import Poisson
from synrisk.models.families.zero_part import ZeroPart, held, with_odds


@dataclass(frozen=True)
class ZeroInflatedCount(ZeroPart):
    """0 with probability zi, else a count by `counts`, which may be 0 too."""

    counts: ClassVar[Poisson | NegativeBinomial]
    probability: ClassVar[str] = "zi"
    wants: ClassVar[str] = "whole numbers from 0"

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Counts above 0."""
        return (np.asarray(y > 0),)

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the log of zi + (1 − zi) p(0) at 0, else that of 1 − zi and p(y)."""
        odds = auxiliary[..., -1]
        of_count = self.counts.log_density(y, held(eta), auxiliary[..., :-1])
        return np.where(y == 0, np.log(odds + np.exp(of_count)), of_count) - np.log1p(odds)

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of counts up to y."""
        odds = auxiliary[..., -1]
        of_count = self.counts.cdf(np.maximum(y, 0.0), held(eta), auxiliary[..., :-1])
        return np.where(y < 0, 0.0, (odds + of_count) / (1.0 + odds))

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw by one uniform number: below zi a 0, and else what is left of it a count."""
        odds = auxiliary[..., -1]
        left = np.clip(rng.random(eta.shape[:-1]) * (1.0 + odds) - odds, 0.0, 1.0)
        return self.counts.quantile(left, held(eta), auxiliary[..., :-1])

    def _derivatives(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> Derivatives:
        odds, own = auxiliary[..., -1], auxiliary[..., :-1]
        eta = held(eta)
        first, second = self.counts.score(y, eta, own), self.counts.curvature(y, eta, own)
        p_count = np.exp(self.counts.log_density(y, eta, own))
        p, is_zero = odds / (1.0 + odds), y == 0
        r = np.where(is_zero, p_count / (odds + p_count), 1.0)  # of being a count's
        spread = r * (1.0 - r)  # 0 where y is above 0
        return with_odds(
            r[..., None] * first,
            r[..., None, None] * second + spread[..., None, None] * outer(first),
            1.0 - r - p,
            spread - p * (1.0 - p),
            -spread[..., None] * first,
        )


@dataclass(frozen=True)
class ZeroInflatedPoisson(ZeroInflatedCount):
    """0 with probability zi, else Poisson(exp(eta)), which may be 0 too."""

    counts: ClassVar[Poisson | NegativeBinomial] = Poisson()
    name: ClassVar[str] = "zero_inflated_poisson"
    aliases: ClassVar[tuple[str, ...]] = ("zip", "zeroinflatedpoisson")
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (ZeroPart.odds,)


@dataclass(frozen=True)
class ZeroInflatedNegativeBinomial(ZeroInflatedCount):
    """0 with probability zi, else negative binomial with mean exp(eta), which may be 0 too."""

    counts: ClassVar[Poisson | NegativeBinomial] = NegativeBinomial()
    name: ClassVar[str] = "zero_inflated_negative_binomial"
    aliases: ClassVar[tuple[str, ...]] = (
        "zinb", "zero_inflated_negbinomial", "zeroinflatednegativebinomial",
    )  # fmt: skip
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (*NegativeBinomial.auxiliary, ZeroPart.odds)
