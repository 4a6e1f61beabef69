"""The same guesses for every record, evenly spaced between two ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from synrisk.base.errors import GuessError
from synrisk.risk.guesses.spaced import Within, check_number, even_grid, is_real
from synrisk.risk.guesses.strategy import Grid, Guesses, Target


@dataclass(frozen=True)
class Interval(Guesses):
    """`n` guesses from `low` to `high`; the one nearest to a record's truth gives way to it.

    Parameters
    ----------
    n
        The number of guesses.
    low, high
        The ends, chosen without looking at the record.
    within
        ``(low, high)`` that no guess passes; None leaves a side open.
    """

    n: int
    low: float
    high: float
    within: tuple[float | None, float | None] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_number("Interval", self.n)
        Within.of(self.within)
        if not (is_real(self.low) and is_real(self.high) and self.low < self.high):
            raise GuessError("Interval: low and high must be finite numbers with low < high.")

    def width(self, target: Target) -> int:  # noqa: ARG002
        """Return the number of guesses."""
        return self.n

    def grid(self, target: Target) -> Grid:
        """Lay out the guesses."""
        n_records = len(target.truth)
        return even_grid(
            "Interval",
            self.n,
            np.full(n_records, float(self.low)),
            np.full(n_records, float(self.high)),
            target,
            Within.of(self.within),
            around_truth=False,
        )
