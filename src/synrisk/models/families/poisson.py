"""Poisson regression with a log link."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, pdtr

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Variable
from synrisk.models.families.family import Family

_LARGEST_LOG_RATE = 700.0


def _base(eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    return math.exp(min(eta[cell, 0, h], _LARGEST_LOG_RATE))


def _varying(y: Any, eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    return y * eta[cell, 0, h]


@dataclass(frozen=True)
class Poisson(Family):
    """y ~ Poisson(exp(eta))."""

    name: ClassVar[str] = "poisson"
    aliases: ClassVar[tuple[str, ...]] = ("pois", "count")
    is_quadratic: ClassVar[bool] = True  # but for log y!, which no draw changes
    wants: ClassVar[str] = "whole numbers from 0"
    compiled: ClassVar[Any] = (_varying, _base)
    nanoseconds: ClassVar[float] = 2.0

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """0, 1, 2, …"""
        return np.asarray(np.isfinite(y) & (y >= 0) & (y == np.floor(y)))

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Counts above 0."""
        return (np.asarray(y > 0),)

    def log_base(self, y: FloatArray) -> FloatArray:
        """−log y!"""
        return np.asarray(-gammaln(y + 1.0))

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """y·eta − exp(eta) − log y!, finite for any eta.

        Beyond exp(700) the rate is held: an overflow to −∞ at every draw would leave 0/0.
        """
        rate = np.exp(np.minimum(eta[..., 0], _LARGEST_LOG_RATE))
        return y * eta[..., 0] - rate - gammaln(y + 1.0)

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of counts up to y."""
        return np.where(y < 0, 0.0, pdtr(np.maximum(y, 0.0), np.exp(eta[..., 0])))

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Y minus its mean."""
        return y[..., None] - np.exp(eta)

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Minus the mean."""
        shape = np.broadcast_shapes(y.shape, eta.shape[:-1])
        return np.broadcast_to(-np.exp(eta)[..., None], (*shape, 1, 1))

    def draw(
        self,
        eta: FloatArray,
        auxiliary: FloatArray,
        rng: np.random.Generator,
    ) -> npt.NDArray[Any]:
        """Draw a count."""
        return rng.poisson(np.exp(eta[..., 0]))

    def quantile(self, u: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the smallest count up to which the probability is `u`."""
        from scipy.stats import poisson  # which takes long to import

        return np.asarray(np.maximum(poisson.ppf(u, np.exp(eta[..., 0])), 0.0))
