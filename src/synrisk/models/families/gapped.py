"""A response that may be missing: whether it is by logistic regression, and what it is else.

On the model's scale a missing value is NaN. Whether it is missing has a linear predictor of its
own, of the same columns as the value's; given that it is not, the value has its own distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Variable
from synrisk.models.families.family import Auxiliary, Family

_ANYWHERE = 0.5  # where every family's density is a number; what is found there is not used


@dataclass(frozen=True)
class Gapped(Family):
    """Missing with probability 1/(1 + exp(−eta₂)), and else as `inner` has it of eta₁.

    Parameters
    ----------
    inner
        The distribution of the values that are there; it has one linear predictor.
    gap
        The number that stands for a missing value among the variable's own.
    """

    inner: Family
    gap: float

    further_predictors: ClassVar[tuple[str, ...]] = ("missing",)
    is_ordered: ClassVar[bool] = True

    @property
    def gap_code(self) -> float:
        """The number that stands for a missing value."""
        return self.gap

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the values' distribution, which may be missing."""
        return f"{self.inner.name}, or missing"

    @property
    def nanoseconds(self) -> float:  # type: ignore[override]
        """That of the values' density."""
        return self.inner.nanoseconds

    @property
    def auxiliary(self) -> tuple[Auxiliary, ...]:  # type: ignore[override]
        """Those of the values."""
        return self.inner.auxiliary

    @property
    def is_continuous(self) -> bool:  # type: ignore[override]
        """Whether the values are."""
        return self.inner.is_continuous

    @property
    def least(self) -> float:  # type: ignore[override]
        """The smallest of values that are not continuous."""
        return self.inner.least

    @property
    def spacing(self) -> str:  # type: ignore[override]
        """The scale on which such values spread evenly."""
        return self.inner.spacing

    @property
    def transform(self) -> str:  # type: ignore[override]
        """The function of the response that the values' density is of."""
        return self.inner.transform

    @property
    def wants(self) -> str:  # type: ignore[override]
        """What a response must be."""
        return f"{self.inner.wants}, or missing"

    @property
    def grid_step(self) -> float:
        """The distance between neighbouring values."""
        return self.inner.grid_step

    def n_predictors(self, response: Variable) -> int:
        """The values' own, and that of being missing."""
        return self.inner.n_predictors(response) + 1

    def fits(self, response: Variable) -> bool:
        """What the values' distribution takes."""
        return self.inner.fits(response)

    def given(self, response: Variable) -> Family:
        """Know nothing more: the values' distribution was settled before."""
        return self

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Those of the values, and being missing or not, which may have happened to nobody."""
        missing = np.isnan(y)
        return (*self.inner.events(y), *((missing, ~missing) if missing.any() else ()))

    def on_link_scale(self, y: FloatArray) -> FloatArray | None:
        """Return the values that are there, as far as they tell where eta lies."""
        return self.inner.on_link_scale(y[~np.isnan(y)])

    def residual_sd(self, auxiliary: FloatArray) -> FloatArray | None:
        """Of the values."""
        return self.inner.residual_sd(auxiliary)

    def all_values(self, response: Variable) -> FloatArray | None:
        """Of the values, where they are finitely many; missing aside."""
        return self.inner.all_values(response)

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """Missing, or what the values may be."""
        return np.asarray(np.isnan(y) | self.inner.supports(y, response))

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray | None:
        """Not known: missing is neither below nor above a value."""
        return None

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Log p where it is missing; log(1 − p) and the value's own where it is not."""
        missing = np.isnan(y)
        there = self.inner.log_density(self._filled(y, missing), eta[..., :-1], auxiliary)
        toward = np.where(missing, -1.0, 1.0) * eta[..., -1]
        return np.where(missing, 0.0, there) - np.logaddexp(0.0, toward)

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the value's own, 0 where it is missing, and of the last predictor m − p."""
        missing = np.isnan(y)
        own = self.inner.score(self._filled(y, missing), eta[..., :-1], auxiliary)
        n = eta.shape[-1] - 1
        shape = np.broadcast_shapes(own.shape[:-1], eta.shape[:-1])
        found = np.zeros((*shape, own.shape[-1] + 1))
        own = np.where(missing[..., None], 0.0, own)
        found[..., :n], found[..., n + 1 :] = own[..., :n], own[..., n:]
        found[..., n] = missing - expit(eta[..., -1])
        return found

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the value's own second derivatives, and −p(1 − p): they do not mix."""
        missing = np.isnan(y)
        own = self.inner.curvature(self._filled(y, missing), eta[..., :-1], auxiliary)
        n, size = eta.shape[-1] - 1, own.shape[-1] + 1
        shape = np.broadcast_shapes(own.shape[:-2], eta.shape[:-1])
        found = np.zeros((*shape, size, size))
        kept = np.array([k for k in range(size) if k != n])
        found[..., kept[:, None], kept] = np.where(missing[..., None, None], 0.0, own)
        found[..., n, n] = -expit(eta[..., -1]) * expit(-eta[..., -1])
        return found

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw whether it is missing, and a value for every row, which is kept where it is not."""
        missing = rng.random(eta.shape[:-1]) < expit(eta[..., -1])
        values = self.inner.draw(eta[..., :-1], auxiliary, rng)
        return np.where(missing, np.nan, values)

    def _filled(self, y: FloatArray, missing: BoolArray) -> FloatArray:
        """Return `y` with a value in every gap, at which the values' density can be computed."""
        return np.where(missing, _ANYWHERE, y) if missing.any() else y
