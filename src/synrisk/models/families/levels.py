"""Families of levels: the response is a factor, by its codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Factor, Variable
from synrisk.models.families.family import Family


@dataclass(frozen=True)
class OfLevels(Family):
    """What families of a factor's levels share."""

    makes_factor: ClassVar[bool] = True
    is_classification: ClassVar[bool] = True

    def fits(self, response: Variable) -> bool:
        """A factor with at least two levels."""
        return isinstance(response, Factor) and len(response.levels) >= 2

    def all_values(self, response: Variable) -> FloatArray:
        """The codes of the levels."""
        n_levels = len(response.levels) if isinstance(response, Factor) else 0
        return np.arange(n_levels, dtype=np.float64)

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """The codes of the levels."""
        return np.isin(y, self.all_values(response))

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Each level that occurs."""
        return tuple(y == code for code in np.unique(y))
