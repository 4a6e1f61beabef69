"""Logistic regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Factor, Variable
from synrisk.models.families.family import Family


def _base(eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    x = eta[cell, 0, h]
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _varying(y: Any, eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    return y * eta[cell, 0, h]


@dataclass(frozen=True)
class Bernoulli(Family):
    """P(y = 1) = 1/(1 + exp(−eta)); for a factor with two levels, 1 is the second."""

    name: ClassVar[str] = "bernoulli"
    aliases: ClassVar[tuple[str, ...]] = ("binom", "binomial", "binary", "logit")
    is_classification: ClassVar[bool] = True
    wants: ClassVar[str] = "0 and 1, booleans, or a factor with two levels"
    compiled: ClassVar[Any] = (_varying, _base)
    nanoseconds: ClassVar[float] = 3.0

    def fits(self, response: Variable) -> bool:
        """A number, or a factor with two levels."""
        return not isinstance(response, Factor) or len(response.levels) == 2

    def all_values(self, response: Variable) -> FloatArray:
        """0 and 1."""
        return np.array([0.0, 1.0])

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """0 and 1."""
        return np.asarray((y == 0) | (y == 1))

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Failures and successes."""
        return y == 0, y == 1

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """−log(1 + exp(∓eta))."""
        return -np.logaddexp(0.0, (1.0 - 2.0 * y) * eta[..., 0])

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Y minus its mean."""
        return y[..., None] - expit(eta)

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """−p(1 − p)."""
        shape = np.broadcast_shapes(y.shape, eta.shape[:-1])
        second = -expit(eta) * expit(-eta)
        return np.broadcast_to(second[..., None], (*shape, 1, 1))

    def draw(
        self,
        eta: FloatArray,
        auxiliary: FloatArray,
        rng: np.random.Generator,
    ) -> npt.NDArray[Any]:
        """Draw 0 or 1."""
        return (rng.random(eta.shape[:-1]) < expit(eta[..., 0])).astype(np.int64)
