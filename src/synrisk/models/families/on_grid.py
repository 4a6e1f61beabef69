"""Families of values on a grid: multiples of a step."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, as_float
from synrisk.base.errors import OptionError
from synrisk.data.schema import Variable
from synrisk.models.families.family import Family

NEARLY = 1e-9  # of a step, or of the value


@dataclass(frozen=True)
class OnGrid(Family):
    """What families of multiples of `step` share."""

    step: float = 1.0

    most: ClassVar[float] = math.inf  # the largest value
    nanoseconds: ClassVar[float] = 200.0  # differences of distribution functions

    def __post_init__(self) -> None:
        real = isinstance(self.step, numbers.Real) and not isinstance(self.step, bool)
        if not real or not 0.0 < as_float(self.step) < math.inf:
            raise OptionError("The step of rounded values must be a number above 0.")
        object.__setattr__(self, "step", float(self.step))

    @property
    def is_location_scale(self) -> bool:
        """In other units the step is another one."""
        return False

    @property
    def grid_step(self) -> float:
        """The distance between neighbouring values."""
        return self.step

    @property
    def wants(self) -> str:  # type: ignore[override]
        """What a response must be, for messages."""
        of = "whole numbers" if self.step == 1.0 else f"multiples of {self.step:g}"
        if math.isfinite(self.least):
            of += f" from {self.least:g}"
        return f"{of} to {self.most:g}" if math.isfinite(self.most) else of

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """Multiples of the step."""
        with np.errstate(invalid="ignore"):
            off = np.abs(y - self.on_grid(y))
            near = off <= NEARLY * np.maximum(self.step, np.abs(y))
            return np.asarray(np.isfinite(y) & near & (y >= self.least) & (y <= self.most))

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Values that are not the smallest, and that are not the largest there can be."""
        inside = ((y > self.least, self.least), (y < self.most, self.most))
        return tuple(np.asarray(event) for event, end in inside if math.isfinite(end))
