"""Multinomial logistic regression: a linear predictor for each level but the reference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import FloatArray
from synrisk.data.schema import Factor, Variable
from synrisk.models.families.levels import OfLevels


def _base(eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    top = max(eta[cell, 0, h], 0.0)
    for q in range(1, eta.shape[1]):
        top = max(top, eta[cell, q, h])
    total = math.exp(-top)
    for q in range(eta.shape[1]):
        total += math.exp(eta[cell, q, h] - top)
    return top + math.log(total)


def _varying(y: Any, eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    code = int(y)
    return eta[cell, code - 1, h] if code > 0 else 0.0


@dataclass(frozen=True)
class Categorical(OfLevels):
    """P(y = k) = softmax(0, eta)_k, the 0 being the reference level's.

    Codes are those of the response's levels; predictor q belongs to code q + 1, so the reference is
    code 0. Draws with another reference are brought to this one where they are read (a softmax
    does not change when the same number is taken from every predictor).
    """

    name: ClassVar[str] = "categorical"
    aliases: ClassVar[tuple[str, ...]] = ("multinom", "multinomial")
    is_ordered: ClassVar[bool] = False
    wants: ClassVar[str] = "a factor with at least two levels"
    compiled: ClassVar[Any] = (_varying, _base)
    nanoseconds: ClassVar[float] = 2.0

    def n_predictors(self, response: Variable) -> int:
        """One for each level but the reference."""
        return len(self.predictor_levels(response))

    def predictor_levels(self, response: Variable) -> tuple[int, ...]:
        """Return every code but the reference's."""
        return tuple(range(1, len(response.levels))) if isinstance(response, Factor) else ()

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return eta_y − log Σ exp(eta)."""
        full = _with_reference(eta)
        code = np.broadcast_to(y, np.broadcast_shapes(y.shape, full.shape[:-1])).astype(np.int64)
        total = np.broadcast_to(full, (*code.shape, full.shape[-1]))
        own = np.take_along_axis(total, code[..., None], axis=-1)[..., 0]
        return np.asarray(own - _log_sum(full)[..., 0])

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """The indicator of the level minus its probability."""
        hit = y[..., None] == np.arange(1, eta.shape[-1] + 1)
        return np.asarray(hit - _softmax(eta)[..., 1:])

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """P pᵀ − diag(p)."""
        p = _softmax(eta)[..., 1:]
        second = p[..., :, None] * p[..., None, :] - p[..., :, None] * np.eye(p.shape[-1])
        return np.broadcast_to(
            second, (*np.broadcast_shapes(y.shape, eta.shape[:-1]), *second.shape[-2:])
        )

    def draw(
        self,
        eta: FloatArray,
        auxiliary: FloatArray,
        rng: np.random.Generator,
    ) -> npt.NDArray[Any]:
        """Draw a code by the inverse of the cumulative probabilities."""
        cumulative = np.cumsum(_softmax(eta), axis=-1)
        u = rng.random(eta.shape[:-1]) * cumulative[..., -1]
        return np.asarray((u[..., None] >= cumulative[..., :-1]).sum(axis=-1))


def _with_reference(eta: FloatArray) -> FloatArray:
    return np.concatenate([np.zeros((*eta.shape[:-1], 1)), eta], axis=-1)


def _log_sum(eta: FloatArray) -> FloatArray:
    """log Σ exp(eta) over the levels; scipy's takes three times as long over a few of them."""
    top = eta.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.asarray(top + np.log(np.exp(eta - top).sum(axis=-1, keepdims=True)))


def _softmax(eta: FloatArray) -> FloatArray:
    full = _with_reference(eta)
    return np.asarray(np.exp(full - _log_sum(full)))
