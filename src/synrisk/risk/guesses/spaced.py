"""Evenly spaced guesses between a low and a high end that may differ by record."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import FloatArray, as_float
from synrisk.base.errors import GuessError, counted
from synrisk.base.messages import either, place_of
from synrisk.data.schema import Factor
from synrisk.risk.guesses.strategy import Grid, Target, n_without_truth, with_truth

# Strategies, for messages.
EVERY_LEVEL = either("AllLevels()", '"all levels"')
SOME_VALUES = either("Values([...])", "{ values = [...] }")
_A_TENTH = "below = 0.1, above = 0.1"
_MOST = 100_000  # guesses of one variable


@dataclass(frozen=True)
class Within:
    """Bounds that no guess passes, such as a top-code."""

    low: float
    high: float

    @classmethod
    def of(cls, bounds: tuple[float | None, float | None] | None) -> Within:
        """Read ``(low, high)``, either of which may be None."""
        if bounds is None:
            return cls(-np.inf, np.inf)
        try:
            low, high = bounds
            made = cls(
                -np.inf if low is None else as_float(low),
                np.inf if high is None else as_float(high),
            )
        except (TypeError, ValueError):
            made = cls(np.nan, np.nan)
        if not made.low < made.high:
            ends = either("(low, high)", "[low, high]")
            side = either("None leaves", "-inf and inf leave")
            raise GuessError(f"within takes {ends} with low < high; {side} a side open.")
        return made


def is_real(value: object) -> bool:
    """Tell whether `value` is a finite real number, of Python or of NumPy."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return bool(np.isfinite(as_float(value)))


def check_number(strategy: str, n: int) -> None:
    """Raise unless `n` is a number of guesses."""
    if isinstance(n, bool) or not isinstance(n, numbers.Integral) or not 2 <= n <= _MOST:
        raise GuessError(
            f"{strategy}: the number of guesses must be a whole number from 2 to {_MOST:,}."
        )


def check_width(strategy: str, below: float, above: float) -> None:
    """Raise unless the two half-widths span something."""
    good = all(is_real(width) and width >= 0 for width in (below, above))
    if not good or below + above <= 0:
        raise GuessError(
            f"{strategy}: below and above must be numbers from 0, and not both 0 "
            f"(a tenth below and above is {either('below=0.1, above=0.1', _A_TENTH)})."
        )


def even_grid(
    strategy: str,
    n: int,
    low: FloatArray,
    high: FloatArray,
    target: Target,
    within: Within,
    *,
    around_truth: bool,
) -> Grid:
    """Lay `n` guesses from `low` to `high` of each record, inside `within`, with the truth."""
    if isinstance(target.variable, Factor) and target.is_whole:
        raise GuessError(
            f"{strategy} guesses cannot be used for {target.name!r}, which is a factor; use "
            f"{EVERY_LEVEL}, or {SOME_VALUES} with some of its levels."
        )
    n_beyond = int(((target.truth < within.low) | (target.truth > within.high)).sum())
    if n_beyond:
        raise GuessError(
            f"Guesses for {target.name!r}: "
            f"{counted(n_beyond, 'record has its', 'records have their')} confidential value "
            "outside within; the truth must be among the guesses. Widen within, or leave it out.",
            about=place_of("within", target.name),
        )
    low, high = np.maximum(low, within.low), np.minimum(high, within.high)
    if target.is_whole:
        low = np.maximum(low, target.family.least)
    n_empty = int((low >= high).sum())
    if n_empty:
        raise GuessError(
            f"Guesses for {target.name!r}: the range has no width for "
            f"{counted(n_empty, 'record')}; widen it, or within."
        )
    # A guess after the other: rows are too short to be worked on one by one.
    by_guess = np.multiply.outer(np.linspace(0.0, 1.0, n), high - low)
    by_guess += low
    by_guess[-1] = high
    values = np.ascontiguousarray(by_guess.T)
    if not target.is_whole:
        # As `with_truth`, by arithmetic: of even guesses the nearest is known by its number.
        nearest = np.rint((target.truth - low) / (high - low) * (n - 1))
        truth = np.clip(nearest, 0, n - 1).astype(np.int64)
        n_replaced = 0 if around_truth else n_without_truth(values, truth, target)
        values[np.arange(len(values)), truth] = target.truth
        everywhere = np.ones(values.shape, dtype=bool)
        return Grid(values, truth, everywhere, around_truth, (), n_replaced)
    fixed = target.family.on_grid(values)
    values, truth = with_truth(fixed, target)
    n_replaced = 0 if around_truth else n_without_truth(fixed, truth, target)
    present = np.ones(values.shape, dtype=bool)
    # Rounding repeats whole numbers: keep the first of each, but the truth where it is one of them.
    present[:, 1:] = values[:, 1:] != values[:, :-1]
    rows = np.arange(len(values))
    same = values == target.truth[:, None]
    present &= ~same
    present[rows, truth] = True
    note = f"Guesses for {target.name} were rounded to {target.multiples}."
    return Grid(values, truth, present, around_truth, (note,), n_replaced)
