"""Answers in an order: cumulative logistic regression (proportional odds)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Factor, Variable
from synrisk.models.families.derivatives import gradient, softplus
from synrisk.models.families.family import Auxiliary
from synrisk.models.families.levels import OfLevels

# Thresholds as brms (b_Intercept[1]), R's mangling of it, and Bambi (threshold[0]) write them;
# those of rstanarm stand between two levels.
_THRESHOLD = re.compile(r"(?:b_Intercept|threshold)(?:\[|\.)(\d+)(?:\]|\.)?")


@dataclass(frozen=True)
class OrderedLogit(OfLevels):
    """P(y ≤ k) = 1/(1 + exp(eta − c_k)) with c₀ = 0 < c₁ < …, of levels in order.

    The intercept is minus the first threshold; the gaps between one threshold and the next are
    parameters of their own, so that thresholds stay in order.

    Parameters
    ----------
    n_levels
        Of the response; settled when the data are known.
    """

    n_levels: int = 0

    name: ClassVar[str] = "ordered_logit"
    aliases: ClassVar[tuple[str, ...]] = ("cumulative", "ordinal", "polr")
    wants: ClassVar[str] = "a factor with at least two levels, which types= lists in order"

    @property
    def auxiliary(self) -> tuple[Auxiliary, ...]:  # type: ignore[override]
        """The gaps between thresholds."""
        return tuple(Auxiliary(f"gap[{k}]") for k in range(2, self.n_levels))

    def given(self, response: Variable) -> OrderedLogit:
        """Return the family of a response with so many levels."""
        return replace(self, n_levels=len(self.all_values(response)))

    def from_elsewhere(self, draws: pd.DataFrame) -> pd.DataFrame:
        """Return draws with the intercept and the gaps in place of thresholds."""
        seen = {str(name): _THRESHOLD.fullmatch(str(name)) for name in draws.columns}
        order = sorted((int(match[1]), name) for name, match in seen.items() if match)
        order = order or list(enumerate(_between_levels(list(seen))))
        if len(order) != self.n_levels - 1:
            return draws
        thresholds = draws[[name for _, name in order]].to_numpy(dtype=np.float64)
        # Beside its thresholds brms has centred ones, and a discrimination that is 1.
        others = [name for name in seen if re.fullmatch(r"Intercept(\[|\.)\d+(\]|\.)?", name)]
        others += [name for name in seen if name == "disc" and (draws[name] == 1.0).all()]
        kept = draws.drop(columns=[*others, *(name for _, name in order)])
        gaps = dict(zip(self.auxiliary_names, np.diff(thresholds, axis=1).T, strict=True))
        is_brms = any(name.startswith("b_") for name in seen)
        return kept.assign(**{"b_Intercept" if is_brms else "Intercept": -thresholds[:, 0]}, **gaps)

    def fits(self, response: Variable) -> bool:
        """A factor with at least two levels, whose order is declared if they are words."""
        if not isinstance(response, Factor) or not super().fits(response):
            return False
        return response.declared or not any(isinstance(level, str) for level in response.levels)

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """The log of a difference of two logistic functions, without that difference."""
        low, high = _ends(y, eta, auxiliary)
        between = np.log(-np.expm1(low - high))
        return np.asarray(between - softplus(-high) - softplus(low))

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of levels up to y."""
        return np.asarray(expit(_ends(np.maximum(y, 0.0), eta, auxiliary)[1]) * (y >= 0))

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives in eta and in the logs of the gaps."""
        low, high = _ends(y, eta, auxiliary)
        rest, below = expit(-high), expit(low)
        in_gaps = auxiliary * self._in_gaps(y, auxiliary, rest, below)
        return gradient(below - rest, *np.moveaxis(in_gaps, -1, 0))

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the score."""
        low, high = _ends(y, eta, auxiliary)
        rest, below = expit(-high), expit(low)
        above, under = -rest * (1.0 - rest), -below * (1.0 - below)
        upto, before, own = _which(y, auxiliary)
        with np.errstate(all="ignore"):
            width = np.where(own, -0.25 / np.sinh(0.5 * auxiliary) ** 2, 0.0)
        mixed = -auxiliary * (above[..., None] * upto + under[..., None] * before)
        gaps = above[..., None, None] * upto[..., None] * upto[..., None, :]
        gaps = gaps + under[..., None, None] * before[..., None] * before[..., None, :]
        gaps = gaps * auxiliary[..., None] * auxiliary[..., None, :]
        diagonal = auxiliary**2 * width + auxiliary * self._in_gaps(y, auxiliary, rest, below)
        gaps = gaps + diagonal[..., None] * np.eye(auxiliary.shape[-1])
        top = np.concatenate([(above + under)[..., None], mixed], axis=-1)[..., None, :]
        return np.concatenate([top, np.concatenate([mixed[..., None], gaps], axis=-1)], axis=-2)

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw a code by the inverse of the cumulative probabilities."""
        u = rng.random(eta.shape[:-1])
        return np.asarray((u[..., None] > expit(_thresholds(auxiliary) - eta)).sum(axis=-1))

    def _in_gaps(
        self, y: FloatArray, auxiliary: FloatArray, rest: FloatArray, below: FloatArray
    ) -> FloatArray:
        """Return the derivatives in the gaps."""
        upto, before, own = _which(y, auxiliary)
        with np.errstate(all="ignore"):
            width = np.where(own, 1.0 / np.expm1(auxiliary), 0.0)
        return np.asarray(rest[..., None] * upto - below[..., None] * before + width)


def _between_levels(names: list[str]) -> list[str]:
    """Return thresholds as rstanarm's stan_polr names them: bad|fair, fair|good, each the next."""
    between = [name for name in names if name.count("|") == 1]
    ends = [name.split("|") for name in between]
    is_chain = all(one[1] == after[0] for one, after in pairwise(ends))
    return between if is_chain else []


def _thresholds(auxiliary: FloatArray) -> FloatArray:
    """Return c₀ = 0, c₁, …"""
    first = np.zeros((*auxiliary.shape[:-1], 1))
    return np.concatenate([first, np.cumsum(auxiliary, axis=-1)], axis=-1)


def _ends(y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the thresholds below and above y, less eta; −∞ and ∞ where there are none."""
    beyond = np.full((*auxiliary.shape[:-1], 1), np.inf)
    thresholds = np.concatenate([-beyond, _thresholds(auxiliary), beyond], axis=-1)
    if auxiliary.ndim == 2 and y.shape[-1:] == (1,):  # one set of thresholds each draw
        rows, at = np.ascontiguousarray(thresholds.T), y[..., 0].astype(np.int64)
        return rows[at] - eta[..., 0], rows[at + 1] - eta[..., 0]
    shape = np.broadcast_shapes(y.shape, eta.shape[:-1], auxiliary.shape[:-1])
    thresholds = np.broadcast_to(thresholds, (*shape, thresholds.shape[-1]))
    code = np.broadcast_to(y, shape).astype(np.int64)[..., None]
    low, high = (np.take_along_axis(thresholds, code + k, axis=-1)[..., 0] for k in (0, 1))
    return low - eta[..., 0], high - eta[..., 0]


def _which(y: FloatArray, auxiliary: FloatArray) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Tell for each gap whether it is below y's upper threshold, its lower one, or between."""
    gap = np.arange(1, auxiliary.shape[-1] + 1)
    code = y[..., None]
    return gap <= code, gap <= code - 1, gap == code
