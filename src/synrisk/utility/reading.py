"""Confidential and synthetic rows side by side, encoded by one schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import (
    DataError,
    OptionError,
    SyntheticDataError,
    counted,
    got,
    listed,
    nearest,
)
from synrisk.data.frames import read_table
from synrisk.data.schema import (
    Columns,
    Factor,
    Missing,
    Numeric,
    Schema,
    Types,
    require_columns,
    text_columns,
)
from synrisk.models.plan import Regression
from synrisk.synthesis.release import as_datasets, read_dataset
from synrisk.synthesis.synthesizer import Synthesizer
from synrisk.utility.matching import Table, matched_rows

_WHAT = "The confidential data"
_MOST_LEVELS = 100
# Names that pandas and R give to row numbers which were written to a file.
_ROW_NUMBERS = re.compile(r"|rownames|Unnamed: \d+")


@dataclass(frozen=True, eq=False, repr=False)
class Sides:
    """Confidential and synthetic rows.

    Attributes
    ----------
    schema
        The variables.
    names
        Those that are compared.
    synthesized
        Those of them that the release holds anew; the others are the confidential data's.
    confidential, datasets
        The columns as arrays.
    paired
        Whether each row of each dataset has a record with the same values in the columns that
        stayed; they then stand in the records' order.
    notes
        What a user should know.
    """

    schema: Schema
    names: tuple[str, ...]
    synthesized: tuple[str, ...]
    confidential: Columns
    datasets: tuple[Columns, ...]
    paired: bool
    notes: tuple[str, ...]

    @property
    def n_records(self) -> int:
        """The number of confidential records."""
        return len(self.confidential[self.names[0]])

    @property
    def n_rows(self) -> tuple[int, ...]:
        """The number of rows of each dataset."""
        return tuple(len(columns[self.names[0]]) for columns in self.datasets)

    @property
    def is_partial(self) -> bool:
        """Whether some columns are those of the confidential data."""
        return len(self.synthesized) < len(self.names)


def read_sides(
    confidential: Any,
    synthetic: Any,
    regressions: Sequence[Regression],
    *,
    variables: Iterable[str] | None,
    synthesized: Iterable[str] | None,
    types: Types | None,
    id_column: str | None,
    missing: Missing,
) -> Sides:
    """Read both sides and settle what is compared."""
    given = as_datasets(synthetic)
    wanted = None if variables is None else column_names("variables", variables)
    changed = None if synthesized is None else column_names("synthesized", synthesized)
    if isinstance(confidential, Synthesizer):
        if types is not None or id_column is not None or missing != "error":
            raise OptionError("types=, id= and missing= are settled by the Synthesizer.")
        if confidential.confidential.is_stored:
            raise OptionError(
                "Utility is measured in memory, and the confidential data were read in parts. Read "
                "as many records and rows as memory holds, and give frames of these."
            )
        compared = _of_synthesizer(confidential, regressions, wanted, changed)
        changed = confidential.plan.synthesized if changed is None else changed
    else:
        text = text_columns(types)
        frame = _read_confidential(confidential, id_column, text)
        _check_synthesized(changed, frame)
        notes: list[str] = []
        if wanted is None:
            first = read_table(given[0], "Synthetic dataset 1", text=text, error=SyntheticDataError)
            wanted = _in_common(frame, first, id_column, notes)
        names = _with_regressions(wanted, regressions)
        _check_names(names, id_column, frame)
        factors = [r.response for r in regressions if r.distribution.makes_factor]
        schema = Schema.settle(frame, names, types=types, factors=factors, missing=missing)
        compared = _Compared(frame, names, schema, notes)
    names, schema, notes = compared.names, compared.schema, compared.notes
    weights = dict.fromkeys(r.weights for r in regressions if r.weights is not None)
    if weights:
        notes.append(f"The regressions are estimated without their weights ({listed(weights)}).")
    _refuse_many_levels(schema, names)
    own = Table(*schema.encode_rows(compared.frame, names, _WHAT))
    datasets = [_encoded(schema, names, dataset, k) for k, dataset in enumerate(given, 1)]
    return _settled(schema, names, changed, own, datasets, notes)


@dataclass(frozen=True, eq=False, repr=False)
class _Compared:
    """The confidential data, which of their columns are compared, and what a user should know."""

    frame: pd.DataFrame
    names: tuple[str, ...]
    schema: Schema
    notes: list[str]


def _of_synthesizer(
    synthesizer: Synthesizer,
    regressions: Sequence[Regression],
    wanted: tuple[str, ...] | None,
    changed: tuple[str, ...] | None,
) -> _Compared:
    frame = synthesizer.data
    _check_synthesized(changed, frame)
    names = _with_regressions(wanted or synthesizer.plan.columns, regressions)
    require_columns(frame, names, _WHAT)
    notes = []
    if synthesizer.n_dropped:
        left_out = counted(synthesizer.n_dropped, "record")
        notes.append(f"The Synthesizer left out {left_out} with missing values.")
    return _Compared(frame, names, _schema_of(synthesizer, frame, names), notes)


def _check_names(names: tuple[str, ...], id_column: str | None, frame: pd.DataFrame) -> None:
    if not names:
        raise SyntheticDataError("Confidential and synthetic data have no column in common.")
    if id_column in names:
        raise OptionError(f"id={id_column!r} names the records; it cannot be compared.")
    require_columns(frame, names, _WHAT)


def _read_confidential(
    confidential: Any, id_column: Any, text: dict[str, list[str]]
) -> pd.DataFrame:
    if id_column is not None:
        if not isinstance(id_column, str):
            raise OptionError(f"id= is the name of a column; got {got(id_column)}.")
        text = {id_column: [], **text}
    frame = read_table(confidential, _WHAT, text=text)
    if not len(frame):
        raise DataError(f"{_WHAT} have no rows.")
    if id_column is not None:
        require_columns(frame, [id_column], "id=")
    return frame


def _in_common(
    frame: pd.DataFrame, release: pd.DataFrame, id_column: str | None, notes: list[str]
) -> tuple[str, ...]:
    """Return the columns that both sides have, but for those that only name or number the rows."""
    others = [name for name in frame.columns if name != id_column]
    numbers = [name for name in others if _ROW_NUMBERS.fullmatch(name)]
    if numbers:
        shown = listed(repr(name) for name in numbers)
        notes.append(f"Row numbers by their name, so not compared: {shown}.")
    others = [name for name in others if name not in numbers]
    absent = [name for name in others if name not in release.columns]
    if absent:
        notes.append(f"Not in the release, so not compared: {listed(absent)}.")
    return tuple(name for name in others if name in release.columns)


def _check_synthesized(names: tuple[str, ...] | None, frame: pd.DataFrame) -> None:
    for name in names or ():
        if name not in frame.columns:
            raise OptionError(
                f"synthesized=: the confidential data have no column {name!r}."
                f"{nearest(name, map(str, frame.columns))}"
            )


def column_names(what: str, names: Any) -> tuple[str, ...]:
    """Return the columns that the argument `what` names, each once, or raise."""
    if isinstance(names, str):
        names = (names,)
    if not isinstance(names, Iterable):
        raise OptionError(f"{what}= is a list of columns; got {got(names)}.")
    found = tuple(names)
    if not found or not all(isinstance(name, str) for name in found):
        raise OptionError(f"{what}= must hold names of columns, at least one.")
    return tuple(dict.fromkeys(found))


def _with_regressions(names: Sequence[str], regressions: Sequence[Regression]) -> tuple[str, ...]:
    used = [name for r in regressions for name in (r.response, *r.parsed.predictors)]
    return tuple(dict.fromkeys([*names, *used]))


def _schema_of(synthesizer: Synthesizer, frame: pd.DataFrame, names: Sequence[str]) -> Schema:
    """Return the synthesizer's schema, with other columns settled by their types."""
    known = synthesizer.schema.dropping_gaps()
    others = [name for name in names if name not in known.variables]
    more = Schema.settle(frame, others, types=None, factors=(), missing=known.missing)
    return Schema({**known.variables, **more.variables}, known.missing)


def _refuse_many_levels(schema: Schema, names: Sequence[str]) -> None:
    for name in names:
        variable = schema.variables[name]
        if isinstance(variable, Factor) and len(variable.levels) > _MOST_LEVELS:
            raise DataError(
                f"{_WHAT}: {name!r} has {len(variable.levels):,} levels; at most {_MOST_LEVELS} "
                "can be compared. Leave it out by variables=[…], or merge its levels."
            )


def _encoded(schema: Schema, names: Sequence[str], dataset: Any, number: int) -> Table:
    what = f"Synthetic dataset {number}"
    frame = read_dataset(dataset, what, schema)
    return Table(*schema.encode_rows(frame, names, what, SyntheticDataError))


def _settled(
    schema: Schema,
    names: tuple[str, ...],
    changed: tuple[str, ...] | None,
    own: Table,
    datasets: list[Table],
    notes: list[str],
) -> Sides:
    """Find the columns that stayed, and leave out rows that lack a value.

    Rows are matched before any is left out: where the release still has the row of a record that
    is left out, both go.
    """
    if changed is not None and not set(changed) & set(names):
        raise OptionError(
            f"None of the synthesized variables ({listed(changed)}) is among those compared."
        )
    matched = matched_rows(names, changed, own, datasets)
    has_gaps = not all(table.complete.all() for table in (own, *datasets))
    if matched.orders is None and has_gaps:
        notes += _about_gaps(own, datasets)
        own, datasets = own.without_gaps(), [one.without_gaps() for one in datasets]
        matched = matched_rows(names, changed, own, datasets)
    notes += matched.notes
    if matched.orders is not None:
        datasets = [one.take(order) for one, order in zip(datasets, matched.orders, strict=True)]
        complete = _complete_on_both_sides(own, datasets, notes)
        own, datasets = own.take(complete), [one.take(complete) for one in datasets]
    synthesized = tuple(name for name in names if name not in matched.stayed)
    return Sides(
        schema,
        names,
        synthesized,
        own.columns,
        tuple(one.columns for one in datasets),
        matched.orders is not None,
        tuple(notes),
    )


def _complete_on_both_sides(own: Table, datasets: list[Table], notes: list[str]) -> BoolArray:
    """Return which records lack nothing, nor do the rows that are their pairs."""
    complete: BoolArray = np.all([table.complete for table in (own, *datasets)], axis=0)
    if not complete.any():
        raise DataError("No record lacks nothing on both sides.")
    if not complete.all():
        notes.append(
            f"{counted(int((~complete).sum()), 'record')} of {len(complete):,} left out, with "
            "the same rows of the release: a value is missing on one side."
        )
    return complete


def _about_gaps(own: Table, datasets: Sequence[Table]) -> list[str]:
    """Say how many rows are left out on each side."""
    sides = [(_WHAT, "record", own)]
    sides += [(f"Synthetic dataset {k}", "row", one) for k, one in enumerate(datasets, 1)]
    return [
        f"{what}: {counted(int((~one.complete).sum()), noun)} of {len(one.complete):,} left out, "
        "since a value is missing."
        for what, noun, one in sides
        if not one.complete.all()
    ]


def is_numeric(sides: Sides, name: str) -> bool:
    """Tell whether a variable holds numbers."""
    return isinstance(sides.schema.variables[name], Numeric)


def unit_of(values: FloatArray, axis: int | None = None) -> FloatArray:
    """Return the power of two below the largest of values, or of each column; 1 where all are 0.

    Dividing by it is exact, and then squares neither overflow nor vanish.
    """
    largest = np.abs(values).max(axis=axis)
    return np.where(largest > 0, np.ldexp(0.5, np.frexp(largest)[1]), 1.0)
