"""What a guess strategy is given, and what it makes: a grid of guesses with the truth by index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import GuessError, counted
from synrisk.base.messages import either
from synrisk.data.schema import Variable
from synrisk.models.families import Family
from synrisk.models.plan import Regression
from synrisk.risk.guesses.everybody import Everybody
from synrisk.synthesis.release import FAR_AWAY

_ROUNDING = 1e-12  # by which a distance at the tolerance may exceed it


@dataclass(frozen=True, repr=False)
class Target:
    """The confidential values of one synthesized variable that guesses are made for.

    Attributes
    ----------
    variable, regression
        What the values are, and the model that gives them.
    truth
        The values of the evaluated records; codes for factors.
    everybody
        What is to be known of those of all confidential records.
    rows
        The positions of the evaluated records among these.
    reach
        How far from each record's truth a value still counts as learnt.
    n_variables
        How many variables are guessed together.
    detail
        Over what width, on the model's scale, a density of the variable changes.
    room
        How many guesses there is room for beside those that hang together with the variable; None
        where that follows from `n_variables`.
    """

    variable: Variable
    regression: Regression
    truth: FloatArray
    everybody: Everybody
    rows: IntArray
    reach: FloatArray
    n_variables: int = 1
    detail: float = 1.0
    room: int | None = None

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    @property
    def family(self) -> Family:
        """The family of the model."""
        return self.regression.distribution

    @property
    def is_whole(self) -> bool:
        """Whether values are whole numbers, multiples of a step, or codes."""
        return not self.family.is_continuous

    @property
    def multiples(self) -> str:
        """What values that are not continuous are, for messages."""
        step = self.family.grid_step
        return "whole numbers" if step == 1.0 else f"multiples of {step:g}"


@dataclass(frozen=True, repr=False)
class Grid:
    """Guesses for one variable: ``values[record, guess]``, the truth at ``values[i, truth[i]]``.

    Guesses that a record does not have are marked in `present`; the record's prior is zero there.
    `n_replaced` counts the records whose truth took the place of a guess that was made without it,
    `n_zero` those of whose truth a percentage has no width.
    `of_observed` tells whether the guesses are what the confidential data hold.
    `tolerance` is how far from the truth a value still counts as learnt, ``(record,)``; None for
    the truth alone. `log_widths` are logs of what each guess stands for, on the model's scale,
    where guesses integrate a density; None where each stands for itself. `is_coarse` tells whether
    they are too far apart for that. `has_gap` tells whether the last guess is that the value is
    missing.
    """

    SHAPES: ClassVar = {
        "values": ("record", "guess"),
        "truth": ("record",),
        "present": ("record", "guess"),
        "tolerance": ("record",),
        "log_widths": ("record", "guess"),
    }
    values: FloatArray
    truth: IntArray
    present: BoolArray
    around_truth: bool = False
    notes: tuple[str, ...] = field(default=())
    n_replaced: int = 0
    of_observed: bool = False
    tolerance: FloatArray | None = None
    log_widths: FloatArray | None = None
    is_coarse: bool = False
    has_gap: bool = False
    n_zero: int = 0

    @property
    def n_guesses(self) -> int:
        """The width of the grid."""
        return int(self.values.shape[1])

    def part(self, rows: slice) -> Grid:
        """Return the guesses of some records."""
        return replace(
            self,
            values=self.values[rows],
            truth=self.truth[rows],
            present=self.present[rows],
            tolerance=None if self.tolerance is None else self.tolerance[rows],
            log_widths=None if self.log_widths is None else self.log_widths[rows],
        )

    @cached_property
    def near(self) -> BoolArray:
        """Which guesses count as learnt: the truth, and those within its tolerance."""
        rows = np.arange(len(self.values))
        if self.tolerance is None:
            near = np.zeros(self.values.shape, dtype=bool)
        else:
            truth = self.values[rows, self.truth][:, None]
            near = np.abs(self.values - truth) <= self.tolerance[:, None] * (1.0 + _ROUNDING)
            near &= self.present
        near[rows, self.truth] = True
        return self.apart_from_gap(near)

    def apart_from_gap(self, near: BoolArray) -> BoolArray:
        """Return which guesses are near the truth: missing is near to itself alone."""
        if self.has_gap:
            is_gap = self.truth == self.n_guesses - 1
            near[is_gap] = False
            near[:, -1] = is_gap
        return near

    @property
    def of_values(self) -> Grid:
        """The guesses but for that the value is missing."""
        if not self.has_gap:
            return self
        return replace(
            self,
            values=self.values[:, :-1],
            truth=np.minimum(self.truth, self.n_guesses - 2),
            present=self.present[:, :-1],
            log_widths=None if self.log_widths is None else self.log_widths[:, :-1],
            has_gap=False,
        )

    @cached_property
    def is_pointed(self) -> bool:
        """Whether the truth alone counts as learnt."""
        return self.tolerance is None or bool((self.near.sum(axis=1) == 1).all())

    @cached_property
    def is_complete(self) -> bool:
        """Whether every record has all guesses."""
        return bool(self.present.all())

    @cached_property
    def rises(self) -> bool:
        """Whether every record has all guesses, each larger than the one before."""
        if not self.is_complete or self.has_gap:
            return False
        flat = self.values.ravel()
        larger = flat[1:] > flat[:-1]
        larger[self.n_guesses - 1 :: self.n_guesses] = True  # the next record's
        return bool(larger.all())

    def furthest(self, scale: Callable[[FloatArray], FloatArray] = np.asarray) -> float:
        """Return how far a guess lies from a record's truth at most, on a monotone scale."""
        truth = scale(self.values[np.arange(len(self.values)), self.truth])
        if self.rises:
            ends = (scale(self.values[:, k]) - truth for k in (0, -1))
            return max(float(np.abs(apart).max()) for apart in ends)
        return float(np.abs(scale(self.values) - truth[:, None]).max())


class Guesses(ABC):
    """A strategy: how an intruder's guesses for one variable are laid out."""

    @abstractmethod
    def width(self, target: Target) -> int:
        """Return the number of guesses a record, before any is laid out."""

    @abstractmethod
    def grid(self, target: Target) -> Grid:
        """Lay out the guesses for every record of `target`."""


def n_without_truth(values: FloatArray, truth: IntArray, target: Target) -> int:
    """Return for how many records the guess at `truth` is not the truth, and must give way."""
    return int((values[np.arange(len(values)), truth] != target.truth).sum())


def with_truth(values: FloatArray, target: Target) -> tuple[FloatArray, IntArray]:
    """Let the guess nearest to the truth give way to it; return the guesses and its index."""
    distance = np.abs(values - target.truth[:, None])
    distance[np.isnan(distance)] = np.inf  # guesses that a record does not have
    index = np.argmin(distance, axis=1)
    values = np.array(values)
    values[np.arange(len(values)), index] = target.truth
    return values, index.astype(np.int64)


def _n_repeated(grid: Grid) -> int:
    ordered = np.sort(np.where(grid.present, grid.values, np.nan), axis=1)
    with np.errstate(invalid="ignore"):
        return int((np.diff(ordered, axis=1) == 0).any(axis=1).sum())


def checked(grid: Grid, target: Target) -> Grid:
    """Return `grid` if its guesses are distinct, at least two a record, and in the support."""
    present = grid.present
    enough = grid.is_complete and grid.n_guesses >= 2
    n_few = 0 if enough else int((present.sum(axis=1) < 2).sum())
    if n_few:
        every = either("AllLevels()", '"all levels"')
        by_name = either("guesses={'variable': …}", "[risk] guesses.variable = …")
        whole = (
            f" For counts and levels take them all ({every}), and say by name which variables a "
            f"strategy is for: {by_name}."
        )
        raise GuessError(
            f"Guesses for {target.name!r}: {counted(n_few, 'record has', 'records have')} fewer "
            f"than two; give more, or a wider range.{whole if target.is_whole else ''}"
        )
    n_repeated = 0 if grid.rises else _n_repeated(grid)
    if n_repeated:
        raise GuessError(
            f"Guesses for {target.name!r} must be distinct; "
            f"{counted(n_repeated, 'record has', 'records have')} one twice."
        )
    filled = grid.values
    if not grid.is_complete:
        filled = np.where(present, filled, target.truth[:, None])
    with np.errstate(over="ignore"):
        if np.abs(filled).max() > FAR_AWAY * target.everybody.furthest > 0.0:
            raise GuessError(
                f"Guesses for {target.name!r} go beyond {FAR_AWAY:.0e} times its largest value; "
                "nothing can be computed there. Give a narrower range."
            )
    inside = target.regression.supports(filled, target.variable)
    n_outside = 0 if inside.all() else int((~inside).any(axis=1).sum())
    if n_outside:
        raise GuessError(
            f"Guesses for {target.name!r} must be {target.regression.wants}; "
            f"{counted(n_outside, 'record has', 'records have')} guesses that are not."
        )
    return grid
