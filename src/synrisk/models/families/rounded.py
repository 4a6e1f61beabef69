"""Continuous families whose response is rounded to a grid: whole numbers, hundreds, cents.

The likelihood of a rounded value is the probability of all that is rounded to it: a difference of
distribution functions. A density stands for it well only where values vary over many steps.

What is rounded keeps its own bounds: an amount above 0 may be rounded to 0, a share to 0 or 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import OptionError
from synrisk.data.schema import Variable
from synrisk.models.families.beta import Beta
from synrisk.models.families.family import Auxiliary, Family
from synrisk.models.families.gamma import Gamma
from synrisk.models.families.lognormal import LogNormal
from synrisk.models.families.on_grid import NEARLY, OnGrid
from synrisk.models.families.student_t import StudentT
from synrisk.models.formula.transforms import Transform

_LARGEST = 700.0  # of a logarithm
_LEAST_SHARE, _MOST_SHARE = 0.001, 0.5  # steps of rounded shares


@dataclass(frozen=True)
class Rounded(OnGrid):
    """A response of the family `of`, rounded to a multiple of `step`.

    Parameters
    ----------
    step
        The distance between neighbouring values.
    """

    of: ClassVar[Family]

    def on_link_scale(self, y: FloatArray) -> FloatArray:
        """Return what eta is the place of; the smallest and the largest stand for some within."""
        inside = 0.25 * self.step
        return self._on_scale(np.clip(y, self.least + inside, self.most - inside))

    def residual_sd(self, auxiliary: FloatArray) -> FloatArray | None:
        """Return that of the family, where its scale is the response's."""
        return self.of.residual_sd(auxiliary) if self.identity_link else None

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the log of the difference of distribution functions."""
        return self.of.log_interval(*self.ends(y), eta, auxiliary)

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray | None:
        """Of values up to y; where the scale is the response's, before they are rounded."""
        if self.identity_link:
            return self.of.cdf(y, eta, auxiliary)
        upto = self.of.cdf(self.ends(np.maximum(y, self.least))[1], eta, auxiliary)
        return None if upto is None else np.where(y < self.least, 0.0, upto)

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the log of the difference."""
        return self.of.interval_derivatives(*self.ends(y), eta, auxiliary)[0]

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivatives of the score."""
        return self.of.interval_derivatives(*self.ends(y), eta, auxiliary)[1]

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw from the family, and round."""
        return self.rounded(self.of.draw(eta, auxiliary, rng))

    def ends(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of what is rounded to y, on the family's scale."""
        low, high = (self._on_scale(y + by) for by in (-0.5 * self.step, 0.5 * self.step))
        return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)

    def rounded(self, values: FloatArray) -> FloatArray:
        """Return what values on the family's scale are rounded to."""
        if self.of.transform:
            values = self._transform.inverse(np.minimum(values, _LARGEST))
        return np.clip(self.on_grid(values), self.least, self.most)

    def _on_scale(self, y: FloatArray) -> FloatArray:
        return self._transform.apply(y) if self.of.transform else np.asarray(y)

    @property
    def _transform(self) -> Transform:
        return Transform((self.of.transform,))


@dataclass(frozen=True)
class RoundedStudentT(Rounded):
    """y ~ eta + sigma · t(nu), rounded to a multiple of `step`."""

    of: ClassVar[Family] = StudentT()
    name: ClassVar[str] = "rounded_student_t"
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = StudentT.auxiliary
    identity_link: ClassVar[bool] = True
    least: ClassVar[float] = -math.inf


@dataclass(frozen=True)
class RoundedLogNormal(Rounded):
    """log(y) ~ Normal(eta, sigma), y rounded to a multiple of `step`."""

    of: ClassVar[Family] = LogNormal()
    name: ClassVar[str] = "rounded_lognormal"
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = LogNormal.auxiliary
    spacing: ClassVar[str] = "log"


@dataclass(frozen=True)
class RoundedGamma(Rounded):
    """A gamma amount with mean exp(eta), variance mean²/shape, rounded to multiples of `step`."""

    of: ClassVar[Family] = Gamma()
    name: ClassVar[str] = "rounded_gamma"
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = Gamma.auxiliary
    spacing: ClassVar[str] = "log"


@dataclass(frozen=True)
class RoundedBeta(Rounded):
    """A beta share with mean 1/(1 + exp(−eta)), rounded to a multiple of `step`, which parts 1."""

    step: float = 0.01

    of: ClassVar[Family] = Beta()
    name: ClassVar[str] = "rounded_beta"
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = Beta.auxiliary
    most: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = round(1.0 / self.step)
        if not _LEAST_SHARE <= self.step <= _MOST_SHARE or abs(self.step * parts - 1.0) > NEARLY:
            raise OptionError(
                f"The step of rounded shares must part 1, from {_LEAST_SHARE} to {_MOST_SHARE}."
            )

    def all_values(self, response: Variable) -> FloatArray:
        """Every multiple from 0 to 1."""
        return self.on_grid(self.step * np.arange(round(1.0 / self.step) + 1.0))
