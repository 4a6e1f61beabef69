"""How far the guesses of all records go, and what is to be said of them: added up over parts."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from synrisk.models.plan import Regression
from synrisk.risk.guesses.strategy import Grid


@dataclass(frozen=True, repr=False)
class GuessSpan:
    """What is to be known of the guesses for one variable of all evaluated records.

    Attributes
    ----------
    low, high
        The smallest and the largest guess.
    furthest
        How far a guess lies from a record's truth at most.
    low_on_scale, high_on_scale, furthest_on_scale
        The same on the model's scale.
    is_range
        Whether guesses integrate a density.
    has_tolerance
        Whether more than the truth counts as learnt, for somebody.
    around_truth, of_observed, is_coarse, notes, n_replaced, n_zero
        As of a `Grid`.
    """

    low: float
    high: float
    furthest: float
    low_on_scale: float
    high_on_scale: float
    furthest_on_scale: float
    is_range: bool
    has_tolerance: bool
    around_truth: bool
    of_observed: bool
    is_coarse: bool
    notes: tuple[str, ...]
    n_replaced: int
    n_zero: int

    @classmethod
    def of(cls, grid: Grid, regression: Regression) -> GuessSpan:
        """Return that of some records' guesses."""
        on_scale = regression.on_model_scale(grid.values)
        return cls(
            float(grid.values.min()),
            float(grid.values.max()),
            grid.furthest(),
            float(on_scale.min()),
            float(on_scale.max()),
            grid.furthest(regression.on_model_scale),
            grid.log_widths is not None,
            grid.tolerance is not None,
            grid.around_truth,
            grid.of_observed,
            grid.is_coarse,
            grid.notes,
            grid.n_replaced,
            grid.n_zero,
        )

    def and_of(self, other: GuessSpan) -> GuessSpan:
        """Return that of the records of both."""
        found = {}
        for field in fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
            if field.name.startswith("n_"):
                found[field.name] = one + two
            elif field.name == "notes":
                found[field.name] = tuple(dict.fromkeys((*one, *two)))
            elif field.name.startswith("low"):
                found[field.name] = float(np.minimum(one, two))  # NaN if either is
            elif isinstance(one, bool):
                found[field.name] = one or two
            else:
                found[field.name] = float(np.maximum(one, two))
        return GuessSpan(**found)
