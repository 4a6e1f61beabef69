"""Guesses within a distance of the truth."""

from __future__ import annotations

from dataclasses import dataclass, field

from synrisk.risk.guesses.spaced import Within, check_number, check_width, even_grid
from synrisk.risk.guesses.strategy import Grid, Guesses, Target


@dataclass(frozen=True)
class Additive(Guesses):
    """`n` guesses from ``truth − below`` to ``truth + above``.

    Parameters
    ----------
    n
        The number of guesses, the truth among them.
    below, above
        The half-widths in the variable's own units.
    within
        ``(low, high)`` that no guess passes; None leaves a side open.
    """

    n: int
    below: float
    above: float
    within: tuple[float | None, float | None] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_number("Additive", self.n)
        check_width("Additive", self.below, self.above)
        Within.of(self.within)

    def width(self, target: Target) -> int:  # noqa: ARG002
        """Return the number of guesses."""
        return self.n

    def grid(self, target: Target) -> Grid:
        """Lay out the guesses."""
        return even_grid(
            "Additive",
            self.n,
            target.truth - self.below,
            target.truth + self.above,
            target,
            Within.of(self.within),
            around_truth=True,
        )
