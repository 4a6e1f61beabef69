"""Families with a part for zeros: how probable a 0 is, and what is there else.

The odds of that part are a parameter beside the coefficients, positive as all of these are; its
logarithm is the logit of the probability, which brms calls hu or zi.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Variable
from synrisk.models.families.family import Auxiliary, Family
from synrisk.models.families.interval_probability import Derivatives

_ODDS_OF_ZERO = "odds_of_zero"
_LEAST_LOG_RATE, _LARGEST_LOG_RATE = -300.0, 230.0  # squares of rates are numbers


@dataclass(frozen=True)
class ZeroPart(Family):
    """What families with a part for zeros share; the odds are the last auxiliary parameter."""

    probability: ClassVar[str]  # what brms and others call the probability of that part
    odds: ClassVar[Auxiliary] = Auxiliary(_ODDS_OF_ZERO, prior_mean=10.0)

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """0, 1, 2, …"""
        return np.asarray(np.isfinite(y) & (y >= 0) & (y == np.floor(y)))

    def from_elsewhere(self, draws: pd.DataFrame) -> pd.DataFrame:
        """Return draws with the odds in place of the probability, or of its logit."""
        logit = f"b_{self.probability}_Intercept"
        if _ODDS_OF_ZERO in draws.columns:
            return draws
        if self.probability in draws.columns:
            p = draws[self.probability].to_numpy(dtype=np.float64)
            with np.errstate(divide="ignore"):  # 1 has no odds, and is refused with them
                odds = p / (1.0 - p)
        elif logit in draws.columns:
            odds = np.exp(draws[logit].to_numpy(dtype=np.float64))
        else:
            return draws
        others = (self.probability, logit, f"Intercept_{self.probability}")
        return draws.drop(columns=[name for name in others if name in draws.columns]).assign(
            **{_ODDS_OF_ZERO: odds}
        )

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the part that y is from, and in the log odds."""
        return self._derivatives(y, eta, auxiliary)[0]

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the score."""
        return self._derivatives(y, eta, auxiliary)[1]

    @abstractmethod
    def _derivatives(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> Derivatives:
        """Return both derivatives of the log density."""


@dataclass(frozen=True)
class Hurdle(ZeroPart):
    """0 with some probability, and else a value above 0 by a distribution that has no other."""

    probability: ClassVar[str] = "hu"

    @abstractmethod
    def log_above(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the log probability of `y` above 0, given that it is."""

    @abstractmethod
    def above_derivatives(
        self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> Derivatives:
        """Return its derivatives."""

    @abstractmethod
    def cdf_above(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the probability of values up to `y`, given that they are above 0."""

    @abstractmethod
    def quantile_above(self, u: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the smallest value above 0 up to which the probability is `u`."""

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the log of hu at 0, and that of 1 − hu and the other part's elsewhere."""
        odds = auxiliary[..., -1]
        above = self.log_above(np.maximum(y, self.grid_step), eta, auxiliary)
        return np.where(y == 0, np.log(odds), above) - np.log1p(odds)

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of values up to y."""
        odds = auxiliary[..., -1]
        above = self.cdf_above(np.maximum(y, self.grid_step), eta, auxiliary)
        upto = (odds + np.where(y < self.grid_step, 0.0, above)) / (1.0 + odds)
        return np.where(y < 0, 0.0, upto)

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw by one uniform number: below hu a 0, and else what is left of it the other part."""
        odds = auxiliary[..., -1]
        u = rng.random(eta.shape[:-1])
        left = np.maximum(u * (1.0 + odds) - odds, 0.0)
        above = self.quantile_above(left, eta, auxiliary)
        return np.where(u * (1.0 + odds) < odds, 0.0, above)

    def _derivatives(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> Derivatives:
        first, second = self.above_derivatives(np.maximum(y, self.grid_step), eta, auxiliary)
        is_zero = np.broadcast_to(y == 0, first.shape[:-1])
        p = auxiliary[..., -1] / (1.0 + auxiliary[..., -1])
        return with_odds(
            np.where(is_zero[..., None], 0.0, first),
            np.where(is_zero[..., None, None], 0.0, second),
            np.where(is_zero, 1.0 - p, -p),
            -p * (1.0 - p),
        )


def held(eta: FloatArray) -> FloatArray:
    """Return logs of rates, held where squares of the rates would not be numbers."""
    return np.clip(eta, _LEAST_LOG_RATE, _LARGEST_LOG_RATE)


def with_odds(
    first: FloatArray,
    second: FloatArray,
    in_odds: FloatArray,
    twice: FloatArray,
    mixed: FloatArray | None = None,
) -> Derivatives:
    """Return derivatives with those in the log odds beside them; `mixed` is 0 by default."""
    n = first.shape[-1]
    gradient = np.concatenate([first, np.broadcast_to(in_odds, first.shape[:-1])[..., None]], -1)
    hessian = np.zeros((*first.shape[:-1], n + 1, n + 1))
    hessian[..., :n, :n] = second
    hessian[..., n, n] = twice
    if mixed is not None:
        hessian[..., :n, n] = hessian[..., n, :n] = mixed
    return gradient, hessian
