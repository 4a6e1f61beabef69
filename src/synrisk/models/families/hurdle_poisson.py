"""Counts whose zeros are a matter of their own: a hurdle, then a Poisson count from 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, pdtr

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.models.families.family import Auxiliary
from synrisk.models.families.zero_part import Derivatives, Hurdle, ZeroPart

LARGEST_LOG_RATE = 230.0  # its square is a number
_SMALL = 1e-8  # a rate from which 1 − exp(−rate) is the rate itself
_LARGEST_U = 1.0 - 2.0**-53


@dataclass(frozen=True)
class HurdlePoisson(Hurdle):
    """0 with probability hu, else Poisson(exp(eta)) given that it is above 0."""

    name: ClassVar[str] = "hurdle_poisson"
    aliases: ClassVar[tuple[str, ...]] = ("hurdlepoisson",)
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = (ZeroPart.odds,)
    wants: ClassVar[str] = "whole numbers from 0"

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Counts above 1: a 1 is the least that the second part has."""
        return (np.asarray(y > 1),)

    def log_above(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """y·eta − rate − log(1 − exp(−rate)) − log y!"""
        x, rate = eta[..., 0], rate_of(eta)
        with np.errstate(divide="ignore"):
            log_rest = np.where(rate < _SMALL, x - 0.5 * rate, np.log(-np.expm1(-rate)))
        return y * x - rate - log_rest - gammaln(y + 1.0)

    def above_derivatives(
        self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> Derivatives:
        """Y less its mean m, and −m (1 + rate − m)."""
        rate = rate_of(eta)
        m = np.where(rate < _SMALL, 1.0 + 0.5 * rate, rate / -np.expm1(-np.maximum(rate, _SMALL)))
        first, second = np.broadcast_arrays(y - m, -m * (1.0 + rate - m))
        return first[..., None], second[..., None, None]

    def cdf_above(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of counts from 1 to y."""
        rate = np.maximum(rate_of(eta), _SMALL)
        return np.asarray((pdtr(y, rate) - np.exp(-rate)) / -np.expm1(-rate))

    def quantile_above(self, u: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Invert the distribution function between its value at 0 and 1."""
        from scipy.stats import poisson  # which takes long to import

        rate = rate_of(eta)
        upto = np.minimum(1.0 + (1.0 - u) * np.expm1(-rate), _LARGEST_U)
        return np.asarray(np.maximum(poisson.ppf(upto, rate), 1.0))


def rate_of(eta: FloatArray) -> FloatArray:
    """Return exp(eta), held where its square would overflow."""
    return np.exp(np.minimum(eta[..., 0], LARGEST_LOG_RATE))
