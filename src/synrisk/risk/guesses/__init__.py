"""Guess strategies, one file each, and how a user's `guesses=` becomes one for each variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from synrisk.base.errors import GuessError, counted, listed, nearest
from synrisk.base.messages import place_of
from synrisk.risk.guesses.additive import Additive
from synrisk.risk.guesses.all_levels import AllLevels, Neighbourhood, WithinATenth
from synrisk.risk.guesses.everybody import Everybody
from synrisk.risk.guesses.guess_span import GuessSpan
from synrisk.risk.guesses.interval import Interval
from synrisk.risk.guesses.relative import Relative
from synrisk.risk.guesses.spaced import check_number
from synrisk.risk.guesses.strategy import Grid, Guesses, Target, checked
from synrisk.risk.guesses.tolerance import EQUAL, Tolerance, near, tolerances
from synrisk.risk.guesses.values import Values
from synrisk.risk.guesses.whole_range import Range

DEFAULT_NUMBER = 11
MOST_OBSERVED = 50  # a count with more observed values has a neighbourhood of guesses

__all__ = [
    "EQUAL",
    "Additive",
    "AllLevels",
    "Everybody",
    "Grid",
    "GuessSpan",
    "Guesses",
    "Interval",
    "Range",
    "Relative",
    "Target",
    "Tolerance",
    "Values",
    "for_target",
    "lay_out",
    "near",
    "strategies",
    "tolerances",
]


def strategies(
    spec: Any, names: Sequence[str], default: Guesses | int = DEFAULT_NUMBER
) -> dict[str, Guesses | int]:
    """Return a strategy, or a number of default guesses, for each variable."""
    if isinstance(spec, Mapping):
        unknown = [str(name) for name in spec if name not in names]
        if unknown:
            raise GuessError(
                f"guesses= names {listed(unknown)}, which is not synthesized."
                f"{nearest(unknown[0], names)} The synthesized variables are {listed(names)}."
            )
        chosen = [spec.get(name, default) for name in names]
    elif isinstance(spec, list | tuple):
        if len(spec) != len(names):
            raise GuessError(
                f"guesses= is a list of {len(spec)}; give one for each of the "
                f"{counted(len(names), 'synthesized variable')}, in order, or a dict by variable. "
                "Values to be guessed are Values([...])."
            )
        chosen = [default if one is None else one for one in spec]
    else:
        chosen = [spec] * len(names)
    return {name: _strategy(one) for name, one in zip(names, chosen, strict=True)}


def _strategy(spec: Any) -> Guesses | int:
    if isinstance(spec, Guesses):
        return spec
    if isinstance(spec, str) and spec == "range":
        return Range()
    if isinstance(spec, int | np.integer) and not isinstance(spec, bool):
        check_number("guesses", int(spec))
        return int(spec)
    raise GuessError(
        "guesses= takes 'range', a whole number, a strategy (Range, Relative, Additive, Interval, "
        f"Values, AllLevels), or a list or dict of these by variable; got {type(spec).__name__}."
    )


def lay_out(strategy: Guesses, target: Target) -> Grid:
    """Return the checked grid of `strategy` for `target`."""
    try:
        grid = strategy.grid(target)
        if grid.tolerance is None and (target.reach > 0).any():
            grid = replace(grid, tolerance=target.reach)
        return checked(grid, target)
    except GuessError as error:
        error.about = error.about or place_of("guesses", target.name)
        raise


def for_target(strategy: Guesses | int, target: Target) -> Guesses:
    """Return the strategy for a variable; a number stands for that variable's default."""
    if isinstance(strategy, Guesses):
        return strategy
    n = strategy
    if not target.is_whole:
        return Relative(n)
    if not np.isfinite(target.family.least):  # a continuous one, rounded
        return WithinATenth(n)
    every = target.family.all_values(target.variable)
    if every is not None or len(target.everybody.observed) <= MOST_OBSERVED:
        return AllLevels()
    return Neighbourhood(n)
