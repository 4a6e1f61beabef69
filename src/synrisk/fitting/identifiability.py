"""What can be wrong with a regression's data: collinear columns, no noise, separation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import DataError, listed
from synrisk.base.kept import called
from synrisk.base.workers import Executor
from synrisk.fitting.extent import Ends, Extent, counting
from synrisk.fitting.standardise import Chunk, Chunks, Rows
from synrisk.fitting.sufficient_statistics import Sums
from synrisk.models.design_columns import DesignColumn
from synrisk.models.families import Family

_DEPENDENT = 1e-11  # the smallest eigenvalue of the columns' correlations
_INVOLVED = 1e-4  # the least share of a column in a dependency
_SAME = 1e-13  # values closer than this, relatively, are the same but for rounding
_EXTREME = 1e100
_NO_NOISE = 1e-12  # the share of the response's variance that predictors leave


def variance_inflation(gram: FloatArray, columns: Sequence[DesignColumn], what: str) -> FloatArray:
    """Return each column's variance inflation factor; raise where columns are dependent.

    `gram` are the products of standardised columns. The intercept has no factor (NaN), nor has a
    column without records (a level that nobody has): its coefficient is the prior's.
    """
    factors = np.full(len(columns), np.nan)
    used = [k for k, column in enumerate(columns) if column.parts and gram[k, k] > 0.0]
    if not used:
        return factors
    size = np.sqrt(np.diag(gram)[used])
    correlations = gram[np.ix_(used, used)] / np.outer(size, size)
    values, vectors = np.linalg.eigh(correlations)
    if values[0] < _DEPENDENT:
        involved = np.abs(vectors[:, 0]) > _INVOLVED
        names = [columns[k].public for k, one in zip(used, involved, strict=True) if one]
        raise DataError(
            f"{what}: the columns {listed(names, 20)} are collinear: one follows from the others, "
            "so their coefficients cannot be told apart. Leave one out."
        )
    factors[used] = np.diag(np.linalg.inv(correlations))
    return factors


def refuse_extreme_scales(extent: Extent, what: str) -> None:
    """Raise where squares of values over- or underflow."""
    for name, ends in (("the response", extent.y), ("a predictor", extent.columns)):
        size = ends.size
        if ((size > _EXTREME) | ((size > 0) & (size < 1.0 / _EXTREME))).any():
            raise DataError(f"{what}: {name} is on an extreme scale; use other units.")


def refuse_constant_columns(extent: Extent, columns: Sequence[DesignColumn], what: str) -> None:
    """Raise where a column beside the intercept has one value; a level may lack records."""
    constant = []
    for k, column in enumerate(columns):
        size = float(extent.columns.size[k])
        width = float(extent.columns.high[k] - extent.columns.low[k])
        is_level = any(part.level is not None for part in column.parts)
        if column.parts and width <= _SAME * size and not (is_level and not size):
            constant.append(column.public)
    if constant:
        raise DataError(
            f"{what}: {listed(constant)} has the same value for every record, so its coefficient "
            "cannot be told from the intercept. Leave it out."
        )


def refuse_certain_response(
    rows: Chunks, extent: Extent, what: str, executor: Executor, *, centre: bool
) -> None:
    """Raise where a continuous response does not vary, or follows from its predictors.

    `rows` are standardised; those count that have a weight, and a response.
    """
    mean, ends = extent.total_counting / extent.n_counting, extent.counting
    if max(ends.high - mean, mean - ends.low) <= _SAME * ends.size:
        raise DataError(f"{what}: the response has the same value for every record.")
    n_columns = len(extent.columns.low)
    if extent.n_counting <= n_columns:
        return  # as many coefficients as records: no noise is left, whatever the response
    counting = [_Counting(chunk, mean if centre else 0.0) for chunk in rows]
    sums = Sums.of(counting, np.zeros(n_columns), executor)
    left = sum(table.squares for table in sums.errors)
    if left < _NO_NOISE * sums.squared_errors(sums.centre):
        raise DataError(
            f"{what}: the response follows from its predictors without any noise, so there is no "
            "sigma to estimate. Is a predictor a copy or a transform of it?"
        )


@dataclass(frozen=True, repr=False, eq=False)
class _Counting:
    """The rows of a chunk that count, all of the same weight, their response about a centre."""

    chunk: Chunk
    centre: float

    @property
    def n_rows(self) -> int:
        """How many rows there are at most."""
        return self.chunk.n_rows

    def read(self) -> Rows:
        """Return the rows."""
        rows = self.chunk.read()
        counts = counting(rows)
        if counts.all():
            return Rows(rows.matrix, rows.y - self.centre, np.ones(len(rows.y)))
        return Rows(rows.matrix[counts], rows.y[counts] - self.centre, np.ones(int(counts.sum())))


@dataclass(frozen=True, repr=False)
class Outcomes:
    """Which outcomes occur, and where: what separation is told by.

    Attributes
    ----------
    counts
        How often each event occurs.
    n_rows
        Of how many rows.
    levels, having
        Of each column that stands for a level, and after these of the reference of each factor: how
        many rows have it, and ``(level, event)`` how many of these have the event.
    inside, outside
        Of each number where there are classes: its ends where an event occurs, and elsewhere.
    """

    counts: IntArray
    n_rows: int
    levels: IntArray
    having: IntArray
    inside: Ends
    outside: Ends

    def __add__(self, other: Outcomes) -> Outcomes:
        """Return those of two chunks."""
        return Outcomes(
            self.counts + other.counts,
            self.n_rows + other.n_rows,
            self.levels + other.levels,
            self.having + other.having,
            self.inside.joined(other.inside),
            self.outside.joined(other.outside),
        )


@dataclass(frozen=True)
class _Looked:
    """Where separation is looked for: columns of levels, factor by factor, and of numbers."""

    levels: tuple[int, ...]
    factors: tuple[tuple[str, tuple[int, ...]], ...]
    numbers: tuple[int, ...]

    @classmethod
    def at(cls, family: Family, columns: Sequence[DesignColumn]) -> _Looked:
        single = [k for k, column in enumerate(columns) if len(column.parts) == 1]
        levels = tuple(k for k in single if columns[k].parts[0].level is not None)
        factors: dict[str, list[int]] = {}
        for k in levels:
            factors.setdefault(_factor(columns[k]), []).append(k)
        numbers = tuple(k for k in single if k not in levels) if family.is_classification else ()
        return cls(levels, tuple((name, tuple(own)) for name, own in factors.items()), numbers)


def outcomes(
    family: Family,
    rows: Chunks,
    extent: Extent,
    columns: Sequence[DesignColumn],
    executor: Executor,
) -> Outcomes:
    """Return which outcomes of the rows that count occur, and where."""
    looked = _Looked.at(family, columns)
    return reduce(add, executor.map(partial(_outcomes_in, family, looked, extent.outcomes), rows))


@called("fitting", "Which parameters are told")
def _outcomes_in(family: Family, looked: _Looked, values: FloatArray, chunk: Chunk) -> Outcomes:
    rows = chunk.read()
    counts = rows.omega > 0
    y, matrix = rows.y[counts], rows.matrix[counts]
    # With all outcomes beside a chunk's own, its events are those of all rows.
    events = np.array([e[: len(y)] for e in family.events(np.concatenate([y, values]))], dtype=bool)
    events = events.reshape(-1, len(y))
    at = [matrix[:, k] != 0 for k in looked.levels]
    place = dict(zip(looked.levels, at, strict=True))
    for _, own in looked.factors:
        at.append(~np.any([place[k] for k in own], axis=0))
    is_level = np.array(at, dtype=bool).reshape(-1, len(y))
    numbers = matrix[:, list(looked.numbers)]
    return Outcomes(
        events.sum(axis=1),
        len(y),
        is_level.sum(axis=1),
        np.array([(events & own).sum(axis=1) for own in is_level], dtype=np.int64).reshape(
            len(is_level), len(events)
        ),
        _ends_at(numbers, events),
        _ends_at(numbers, ~events),
    )


def _ends_at(numbers: FloatArray, events: BoolArray) -> Ends:
    """Return the ends of each number where each event occurs, ``(event, number)``."""
    found, shape = [Ends.of(numbers[event]) for event in events], (len(events), numbers.shape[1])
    low, high = np.array([own.low for own in found]), np.array([own.high for own in found])
    return Ends(low.reshape(shape), high.reshape(shape))


def separated_columns(
    family: Family, found: Outcomes, columns: Sequence[DesignColumn]
) -> list[tuple[int | None, str]]:
    """Return the columns that settle an outcome, with a name; None stands for a reference level.

    Looked for one column at a time: a level at which some outcome never occurs, and a number whose
    ranges do not overlap between outcomes.
    """
    looked = _Looked.at(family, columns)
    told = (found.counts > 0) & (found.counts < found.n_rows)
    lacks = (found.levels > 0) & (found.having[:, told] == 0).any(axis=1)
    parts = {}
    for place, k in enumerate(looked.numbers):
        low, high = found.inside.low[:, place], found.inside.high[:, place]
        low_else, high_else = found.outside.low[:, place], found.outside.high[:, place]
        apart = ((high <= low_else) | (high_else <= low))[told]
        varies = max(high.max(), high_else.max()) > min(low.min(), low_else.min())
        parts[k] = bool(apart.any()) and varies
    parts |= dict(zip(looked.levels, lacks.tolist(), strict=False))
    named: list[tuple[int | None, str]] = [
        (k, column.public) for k, column in enumerate(columns) if parts.get(k)
    ]
    of_references = lacks[len(looked.levels) :]
    named += [
        (None, f"{name}[reference]")
        for (name, _), own in zip(looked.factors, of_references, strict=True)
        if own
    ]
    return named


def _factor(column: DesignColumn) -> str:
    return column.public.rpartition("[")[0]


def has_one_outcome(family: Family, found: Outcomes) -> bool:
    """Tell whether an outcome that matters never occurs, or always."""
    alone = len(found.counts) == 1 and family.is_classification
    return alone or bool((found.counts == 0).any())


def separation_notes(
    response: str, found: Sequence[str], *, completely: bool, constant: bool
) -> tuple[str, ...]:
    """Return what to say about separation."""
    if constant:
        note = "has the same outcome for every record, so its coefficients are the prior's."
        return (f"{response} {note}",)
    if not found and not completely:
        return ()
    by = listed(found, 20) if found else "a combination of its predictors"
    if completely:
        settled = f"separated completely by {by}: every record's outcome is settled, so the size"
        text = f"{response} is {settled} of the coefficients is the prior's."
    else:
        settled = f"separated by {by}: an outcome of all records there is settled, so the size of"
        text = f"{response} is {settled} these coefficients is the prior's."
    return (text,)
