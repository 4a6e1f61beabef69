"""Every level of a factor, or every value that occurs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import GuessError
from synrisk.base.messages import either, place_of
from synrisk.risk.guesses.strategy import Grid, Guesses, Target

_OTHERS = either(
    "Relative, Additive, Interval or Values",
    "{ relative = 11 }, or additive, interval or values",
)
_LEAST = 3  # guesses: the truth and one on either side


@dataclass(frozen=True)
class AllLevels(Guesses):
    """Every level of a factor, 0 and 1 for a binary variable, every observed value of a count."""

    def width(self, target: Target) -> int:
        """Return the number of levels."""
        return len(self._levels(target))

    def grid(self, target: Target) -> Grid:
        """Lay out the guesses."""
        levels = self._levels(target)
        values = np.broadcast_to(levels, (len(target.truth), len(levels)))
        truth = np.searchsorted(levels, target.truth)
        return Grid(
            values,
            truth.astype(np.int64),
            np.ones(values.shape, dtype=bool),
            of_observed=target.family.all_values(target.variable) is None,
        )

    def _levels(self, target: Target) -> FloatArray:
        if not target.is_whole:
            raise GuessError(
                f"{either('AllLevels', 'All levels')} cannot be guessed for {target.name!r}, which "
                f"is continuous; use {_OTHERS}.",
                about=place_of("guesses", target.name),
            )
        every = target.family.all_values(target.variable)
        return target.everybody.observed if every is None else every


@dataclass(frozen=True)
class Neighbourhood(Guesses):
    """`n` whole numbers in a row, with the truth in the middle where 0 allows it."""

    n: int

    def width(self, target: Target) -> int:  # noqa: ARG002
        """Return the number of guesses."""
        return self.n

    def grid(self, target: Target) -> Grid:
        """Lay out the guesses."""
        first = np.maximum(target.truth - self.n // 2, target.family.least)
        values = first[:, None] + np.arange(self.n, dtype=np.float64)
        note = (
            f"{target.name} takes many values; the guesses are the {self.n} whole numbers about "
            "the truth."
        )
        truth = (target.truth - first).astype(np.int64)
        return Grid(values, truth, np.ones(values.shape, dtype=bool), True, (note,))


@dataclass(frozen=True)
class WithinATenth(Guesses):
    """Rounded values within a tenth of the truth, one at least on either side, up to `n` in all."""

    n: int

    def width(self, target: Target) -> int:  # noqa: ARG002
        """Return the number of guesses."""
        return max(self.n, _LEAST)

    def grid(self, target: Target) -> Grid:
        """Lay out the guesses."""
        step, n = target.family.grid_step, self.width(target)
        offset = np.arange(n) - n // 2
        reach = np.maximum(np.floor(0.1 * np.abs(target.truth) / step), 1.0)
        present = np.abs(offset) <= reach[:, None]
        near = target.family.on_grid(target.truth[:, None] + step * offset)
        values = np.where(present & (offset != 0), near, target.truth[:, None])
        note = (
            f"The guesses for {target.name} are {target.multiples} within a tenth of the truth, "
            f"one at least on either side, and {n} at most."
        )
        truth = np.full(len(values), n // 2, dtype=np.int64)
        return Grid(values, truth, present, True, (note,))
