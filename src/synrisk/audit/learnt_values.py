"""What a release teaches about one column of each person beyond what other people teach.

before: what somebody believes of the person's value who knows the other columns and all other
people. after: the same with the release in hand, where the row nearest to the person is trusted as
far as such rows have told the truth of others, and more often than other people's records do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synrisk.audit.known_values import N_CLASSES, Known, Nearest, local_fit, nearest
from synrisk.audit.left_out_parts import (
    Intervals,
    Predicted,
    Scale,
    Table,
    predicted,
    predicted_left_out,
)
from synrisk.audit.trust import trust
from synrisk.base.arrays import BoolArray, FloatArray, IntArray

_FEW_VALUES = 20


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Some people: what is known of them, and the value of one column.

    Attributes
    ----------
    known
        By which rows are near.
    given
        The same as trees take it.
    value
        Of the column.
    """

    known: Known
    given: FloatArray
    value: FloatArray

    @property
    def table(self) -> Table:
        """Predictors and value."""
        return Table(self.given, self.value)

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True, eq=False, repr=False)
class Learnt:
    """The probability of each person's true value, without the release and with it.

    Attributes
    ----------
    before, after
        By whoever knows all other people, without the release and with it.
    before_error, gain_error
        Standard errors of `before`, and of the difference.
    alone
        By whoever has the release alone.
    in_place
        Whether the nearest row agrees with all that is known.
    """

    SHAPES: ClassVar = dict.fromkeys(
        ("before", "after", "before_error", "gain_error", "alone", "in_place"), ("record",)
    )
    before: FloatArray
    after: FloatArray
    before_error: FloatArray
    gain_error: FloatArray
    alone: FloatArray
    in_place: BoolArray

    @property
    def gain(self) -> FloatArray:
        """What the release adds."""
        return self.after - self.before


@dataclass(frozen=True, eq=False, repr=False)
class Lesson:
    """What was learnt about one column: of the people in the file, and of others.

    Attributes
    ----------
    people
        Of the confidential file.
    others
        Who were not in it; None where nobody is known who was not.
    """

    people: Learnt
    others: Learnt | None


def learn(
    people: People,
    rows: People,
    intervals: Intervals,
    seed: int,
    name: str,
    others: tuple[People, Intervals] | None = None,
    asked: Intervals | None = None,
) -> Lesson:
    """Return what a release teaches about a column.

    Parameters
    ----------
    people
        The confidential records.
    rows
        Those of the release.
    intervals
        What counts as each record's truth.
    seed, name
        Of the random numbers: the user's, and the column.
    others
        People who were not in the file, and what counts as their truth.
    asked
        The intervals to return the probability of, by default those of the truths: at other
        people's values it shows whether probabilities come true.
    """
    base = predicted_left_out(people.table, intervals, seed, name)
    alone = _alone(rows, people, intervals, seed, name, base.scale)
    of_people = nearest(people.known, people.known, own=True)
    of_rows = nearest(people.known, rows.known)
    told, has_plane = _told_by_plane(people, people, intervals, own=True)
    smooth = trust(base.probability, told, has_plane, 2)
    believed = _mixed(base.probability, smooth.weight, told)
    told = _told(of_people, people.value, intervals)
    usual = trust(believed, told, of_people.classes, N_CLASSES)
    before = _mixed(believed, usual.weight, told)
    told = _told(of_rows, rows.value, intervals)
    more = trust(before, told, of_rows.classes, N_CLASSES, usual.by_class)
    if asked is not None:  # as far as for the truths, whatever is asked
        base = predicted_left_out(people.table, intervals, seed, name, asked=asked)
        told, _ = _told_by_plane(people, people, asked, own=True)
        believed = _mixed(base.probability, smooth.weight, told)
        before = _mixed(believed, usual.weight, _told(of_people, people.value, asked))
        told = _told(of_rows, rows.value, asked)
        alone = _alone(rows, people, asked, seed, name, base.scale)
    after = _mixed(before, more.weight, told)
    before_error = (1.0 - smooth.weight) * (1.0 - usual.weight) * base.error
    error = np.hypot(more.error * (told - before), more.weight * before_error)
    learnt = Learnt(before, after, before_error, error, alone.probability, of_rows.in_place)
    if others is None:
        return Lesson(learnt, None)
    weights = smooth.by_class, usual.by_class, more.by_class
    found = _of_others(people, rows, *others, seed, name, weights, base.scale)
    return Lesson(learnt, found)


def _of_others(
    people: People,
    rows: People,
    others: People,
    intervals: Intervals,
    seed: int,
    name: str,
    weights: tuple[FloatArray, FloatArray, FloatArray],
    scale: Scale,
) -> Learnt:
    """Return the same numbers of people who were not in the file, by the same weights."""
    base = predicted(people.table, others.given, intervals, seed, name, scale=scale)
    alone = _alone(rows, others, intervals, seed, name, scale)
    smooth, usual, more = weights
    of_people, of_rows = nearest(others.known, people.known), nearest(others.known, rows.known)
    told, has_plane = _told_by_plane(others, people, intervals)
    believed = _mixed(base.probability, smooth[has_plane], told)
    weight, told = usual[of_people.classes], _told(of_people, people.value, intervals)
    before = _mixed(believed, weight, told)
    before_error = (1.0 - weight) * base.error
    weight, told = more[of_rows.classes], _told(of_rows, rows.value, intervals)
    after = _mixed(before, weight, told)
    error = weight * before_error
    return Learnt(before, after, before_error, error, alone.probability, of_rows.in_place)


def _alone(
    rows: People, of: People, intervals: Intervals, seed: int, name: str, scale: Scale
) -> Predicted:
    """Return what the release alone tells, by as many rows as there are people."""
    n_rows = min(len(rows), len(of))
    own = Scale(scale.leaf)  # how to read it nobody knows who has the release alone
    return predicted(rows.table, of.given, intervals, seed, name, n_rows=n_rows, scale=own)


def _told(near: Nearest, values: FloatArray, intervals: Intervals) -> FloatArray:
    return near.told(values, intervals.low, intervals.high)


def _told_by_plane(
    of: People, people: People, intervals: Intervals, *, own: bool = False
) -> tuple[FloatArray, IntArray]:
    """Return where a plane through the nearest others tells the truth, and where there is one.

    Of a column of few values there is none: levels lie on no plane.
    """
    if len(np.unique(people.value)) <= _FEW_VALUES:
        return np.zeros(len(of)), np.zeros(len(of), dtype=np.int64)
    fitted = local_fit(of.known, people.known, people.value, own=own)
    has_plane = ~np.isnan(fitted)
    with np.errstate(invalid="ignore"):
        told = (fitted >= intervals.low) & (fitted <= intervals.high)
    return told.astype(np.float64), has_plane.astype(np.int64)


def _mixed(believed: FloatArray, weight: FloatArray, told: FloatArray) -> FloatArray:
    return np.asarray(believed + weight * (told - believed))
