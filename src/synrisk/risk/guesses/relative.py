"""Guesses within a percentage of the truth."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from synrisk.risk.guesses.spaced import Within, check_number, check_width, even_grid
from synrisk.risk.guesses.strategy import Grid, Guesses, Target


@dataclass(frozen=True)
class Relative(Guesses):
    """`n` guesses from ``truth − below·|truth|`` to ``truth + above·|truth|``.

    Where the truth is 0 the half-widths are taken from the variable's standard deviation instead,
    and the result says for how many records.

    Parameters
    ----------
    n
        The number of guesses, the truth among them.
    below, above
        The half-widths as fractions of the truth.
    within
        ``(low, high)`` that no guess passes; None leaves a side open.
    """

    n: int = 11
    below: float = 0.1
    above: float = 0.1
    within: tuple[float | None, float | None] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_number("Relative", self.n)
        check_width("Relative", self.below, self.above)
        Within.of(self.within)

    def width(self, target: Target) -> int:  # noqa: ARG002
        """Return the number of guesses."""
        return self.n

    def grid(self, target: Target) -> Grid:
        """Lay out the guesses."""
        zero = target.truth == 0
        scale = np.abs(target.truth)
        if zero.any():
            scale[zero] = target.everybody.spread or 1.0
        grid = even_grid(
            "Relative",
            self.n,
            target.truth - self.below * scale,
            target.truth + self.above * scale,
            target,
            Within.of(self.within),
            around_truth=True,
        )
        return replace(grid, n_zero=int(zero.sum()))
