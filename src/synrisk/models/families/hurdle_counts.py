"""Counts whose zeros are a matter of their own: a hurdle, then a count from 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.models.families.family import Auxiliary
from synrisk.models.families.interval_probability import Derivatives
from synrisk.models.families.negative_binomial import NegativeBinomial
from synrisk.models.families.poisson import Poisson
from synrisk.models.families.zero_part import Hurdle, ZeroPart, held

_NO_COUNT = np.zeros(())
_LARGEST_U = 1.0 - 2.0**-53


@dataclass(frozen=True)
class HurdleCount(Hurdle):
    """0 with probability hu, else a count by `counts` given that it is above 0."""

    counts: ClassVar[Poisson | NegativeBinomial]
    wants: ClassVar[str] = "whole numbers from 0"

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Counts above 1: a 1 is the least that the second part has."""
        return (np.asarray(y > 1),)

    def log_above(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return log p(y) − log(1 − p(0))."""
        eta, own = held(eta), auxiliary[..., :-1]
        of_zero = self.counts.log_density(_NO_COUNT, eta, own)
        return self.counts.log_density(y, eta, own) - np.log(-np.expm1(of_zero))

    def above_derivatives(
        self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> Derivatives:
        """Return those of log p(y) − log(1 − p(0)), with the odds q = p(0)/(1 − p(0))."""
        eta, own = held(eta), auxiliary[..., :-1]
        of_zero = self.counts.log_density(_NO_COUNT, eta, own)
        q = (np.exp(of_zero) / -np.expm1(of_zero))[..., None]
        slope = self.counts.score(_NO_COUNT, eta, own)
        first = self.counts.score(y, eta, own) + q * slope
        second = self.counts.curvature(_NO_COUNT, eta, own)
        second = q[..., None] * (second + (1.0 + q[..., None]) * outer(slope))
        return first, self.counts.curvature(y, eta, own) + second

    def cdf_above(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of counts from 1 to y."""
        eta, own = held(eta), auxiliary[..., :-1]
        of_zero = self.counts.log_density(_NO_COUNT, eta, own)
        upto = self.counts.cdf(y, eta, own) - np.exp(of_zero)
        return np.asarray(upto / -np.expm1(of_zero))

    def quantile_above(self, u: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Invert the distribution function between its value at 0 and 1."""
        eta, own = held(eta), auxiliary[..., :-1]
        of_zero = self.counts.log_density(_NO_COUNT, eta, own)
        upto = np.minimum(1.0 + (1.0 - u) * np.expm1(of_zero), _LARGEST_U)
        return np.maximum(self.counts.quantile(upto, eta, own), 1.0)


@dataclass(frozen=True)
class HurdlePoisson(HurdleCount):
    """0 with probability hu, else Poisson(exp(eta)) given that it is above 0."""

    counts: ClassVar[Poisson | NegativeBinomial] = Poisson()
    name: ClassVar[str] = "hurdle_poisson"
    aliases: ClassVar[tuple[str, ...]] = ("hurdlepoisson",)
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (ZeroPart.odds,)


@dataclass(frozen=True)
class HurdleNegativeBinomial(HurdleCount):
    """0 with probability hu, else negative binomial given that it is above 0."""

    counts: ClassVar[Poisson | NegativeBinomial] = NegativeBinomial()
    name: ClassVar[str] = "hurdle_negative_binomial"
    aliases: ClassVar[tuple[str, ...]] = ("hurdle_negbinomial", "hurdlenegativebinomial")
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (*NegativeBinomial.auxiliary, ZeroPart.odds)


def outer(first: FloatArray) -> FloatArray:
    """Return the products of derivatives, on the last two axes."""
    return np.asarray(first[..., :, None] * first[..., None, :])
