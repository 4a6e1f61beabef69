"""Missing as a guess: where missing values are modelled, an intruder may guess that one is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synrisk.base.arrays import BoolArray
from synrisk.base.errors import GuessError
from synrisk.base.messages import place_of
from synrisk.risk.guesses.strategy import Grid, Guesses
from synrisk.risk.guesses.whole_range import Range


def refuse_others(strategy: Guesses | int, name: str) -> None:
    """Raise where guesses are not of a whole range: those about the truth know what is missing."""
    if not isinstance(strategy, Range):
        raise GuessError(
            f"Guesses for {name!r}: its missing values are modelled, so an intruder considers "
            "every value of its range, and that it is missing. Leave its guesses to the default "
            "(Range).",
            about=place_of("guesses", name),
        )


def with_gap(grid: Grid, name: str, is_gap: BoolArray, gap: float) -> Grid:
    """Add missing as the last guess of every record.

    Where a prior is uniform over a range, missing is as probable as all of its values together;
    over listed values it is one more.

    Parameters
    ----------
    grid, name
        The guesses for the values of a variable.
    is_gap
        Which records' truth is missing.
    gap
        The number that stands for it.
    """
    n_records, n_values = grid.values.shape
    log_widths = None
    if grid.log_widths is not None:
        widths = np.where(grid.present, np.exp(grid.log_widths), 0.0).sum(axis=1)
        log_widths = np.column_stack([grid.log_widths, np.log(widths)])
    note = (
        f"That {name} is missing is a guess too; of those for whom it is, only that counts as "
        "learnt."
    )
    return replace(
        grid,
        values=np.column_stack([grid.values, np.full(n_records, gap)]),
        truth=np.where(is_gap, n_values, grid.truth).astype(np.int64),
        present=np.column_stack([grid.present, np.ones(n_records, dtype=bool)]),
        log_widths=log_widths,
        tolerance=np.zeros(n_records) if grid.tolerance is None else grid.tolerance,
        notes=(*grid.notes, note),
        has_gap=True,
    )
