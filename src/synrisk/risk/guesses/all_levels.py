"""Every level of a factor, or every value that occurs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import GuessError
from synrisk.base.messages import either
from synrisk.base.notes import for_anyone
from synrisk.risk.guesses.strategy import Grid, Guesses, Target, with_truth

_OTHERS = either(
    "Relative, Additive, Interval or Values",
    "{ relative = 11 }, or additive, interval or values",
)


@dataclass(frozen=True)
class AllLevels(Guesses):
    """Every level of a factor, 0 and 1 for a binary variable, every observed value of a count."""

    def width(self, target: Target) -> int:
        """Return the number of levels."""
        return len(self._levels(target))

    def grid(self, target: Target) -> Grid:
        """Lay out the guesses."""
        if not target.is_whole:
            raise GuessError(
                f"{either('AllLevels', 'All levels')} cannot be guessed for {target.name!r}, which "
                f"is continuous; use {_OTHERS}."
            )
        levels = self._levels(target)
        values = np.broadcast_to(levels, (len(target.truth), len(levels)))
        truth = np.searchsorted(levels, target.truth)
        return Grid(values, truth.astype(np.int64), np.ones(values.shape, dtype=bool))

    def _levels(self, target: Target) -> FloatArray:
        every = target.family.all_values(target.variable)
        return target.observed if every is None else every


@dataclass(frozen=True)
class Neighbourhood(Guesses):
    """`n` neighbouring values, with the truth in the middle where the least one allows it."""

    n: int

    def width(self, target: Target) -> int:  # noqa: ARG002
        """Return the number of guesses."""
        return self.n

    def grid(self, target: Target) -> Grid:
        """Lay out the guesses."""
        family = target.family
        first = np.maximum(target.truth - self.n // 2 * family.grid_step, family.least)
        values = family.on_grid(first[:, None] + family.grid_step * np.arange(self.n))
        note = for_anyone(
            # How many would change with one record.
            f"{target.name} takes many values; the guesses are the {self.n} "
            f"{target.multiples} about the truth."
        )
        values, truth = with_truth(values, target)
        return Grid(values, truth, np.ones(values.shape, dtype=bool), True, (note,))
