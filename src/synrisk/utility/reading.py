"""Confidential and synthetic rows side by side, encoded by one schema, and which rows are pairs.

In a partially synthetic release some columns are those of the confidential data. Rows that agree in
them are pairs: where the models are right, what differs within a pair is chance alone. That gives
null distributions without a model of the columns that stayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.errors import DataError, OptionError, SyntheticDataError, got, listed
from synrisk.io import read_table
from synrisk.plan import Regression
from synrisk.schema import (
    Columns,
    Factor,
    FloatArray,
    IntArray,
    Missing,
    Numeric,
    Schema,
    Types,
    require_columns,
    text_columns,
)
from synrisk.synthesizer import Synthesizer

_WHAT = "The confidential data"
_MOST_LEVELS = 100


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
    pairs
        For each dataset the order of its rows and of the confidential ones in which they are pairs,
        or None where there are none.
    notes
        What a user should know.
    """

    schema: Schema
    names: tuple[str, ...]
    synthesized: tuple[str, ...]
    confidential: Columns
    datasets: tuple[Columns, ...]
    pairs: tuple[tuple[IntArray, IntArray] | None, ...]
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
    given = list(synthetic) if isinstance(synthetic, list | tuple) else [synthetic]
    if not given:
        raise SyntheticDataError("The release is empty; give at least one synthetic dataset.")
    wanted = None if variables is None else _named("variables", variables)
    changed = None if synthesized is None else _named("synthesized", synthesized)
    notes: list[str] = []
    if isinstance(confidential, Synthesizer):
        if types is not None or id_column is not None or missing != "error":
            raise OptionError("types=, id= and missing= are settled by the Synthesizer.")
        plan = confidential.plan
        frame = confidential.data
        names = _with_regressions(wanted or plan.columns, regressions)
        require_columns(frame, names, _WHAT)
        schema = _schema_of(confidential, frame, names)
        changed = plan.synthesized if changed is None else changed
        weights = [r.weights for r in regressions if r.weights is not None]
    else:
        text = text_columns(types)
        if id_column is not None:
            text = {id_column: [], **text}
        frame = read_table(confidential, _WHAT, text=text)
        if not len(frame):
            raise DataError(f"{_WHAT} have no rows.")
        first = read_table(given[0], "Synthetic dataset 1", text=text, error=SyntheticDataError)
        if wanted is None:
            shared = [c for c in frame.columns if c in first.columns and c != id_column]
            absent = [c for c in frame.columns if c not in first.columns and c != id_column]
            if absent:
                notes.append(f"Not in the release, so not compared: {listed(absent)}.")
            wanted = tuple(shared)
        names = _with_regressions(wanted, regressions)
        if not names:
            raise SyntheticDataError("Confidential and synthetic data have no column in common.")
        require_columns(frame, names, _WHAT)
        factors = [r.response for r in regressions if r.distribution.makes_factor]
        schema = Schema.settle(frame, names, types=types, factors=factors, missing=missing)
        weights = [r.weights for r in regressions if r.weights is not None]
    if weights:
        notes.append(f"The regressions are estimated without their weights ({listed(weights)}).")
    _refuse_many_levels(schema, names)
    own, _ = schema.encode(frame, names, _WHAT)
    datasets = tuple(_encoded(schema, names, one, k) for k, one in enumerate(given, 1))
    return _paired(schema, names, changed, own, datasets, notes)


def _named(what: str, names: Any) -> tuple[str, ...]:
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
    known = synthesizer.schema
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


def _encoded(schema: Schema, names: Sequence[str], dataset: Any, number: int) -> Columns:
    what = f"Synthetic dataset {number}"
    levels = {
        name: list(variable.levels)
        for name, variable in schema.variables.items()
        if isinstance(variable, Factor) and all(isinstance(v, str) for v in variable.levels)
    }
    frame = read_table(dataset, what, text=text_columns(levels), error=SyntheticDataError)
    if not len(frame):
        raise SyntheticDataError(f"{what} has no rows.")
    columns, _ = schema.encode(frame, names, what, SyntheticDataError)
    return columns


def _paired(
    schema: Schema,
    names: tuple[str, ...],
    changed: tuple[str, ...] | None,
    own: Columns,
    datasets: tuple[Columns, ...],
    notes: list[str],
) -> Sides:
    """Find the columns that stayed, and the rows that are pairs by them."""
    if changed is not None:
        unknown = [name for name in changed if name not in names]
        stayed = tuple(name for name in names if name not in changed)
        if unknown and len(unknown) == len(changed):
            raise OptionError(
                f"None of the synthesized variables ({listed(unknown)}) is among those compared."
            )
    else:
        stayed = tuple(
            name
            for name in names
            if all(np.array_equal(own[name], columns[name]) for columns in datasets)
        )
        if len(stayed) == len(names):
            notes.append("The release equals the confidential data: it is a copy.")
            stayed = ()
        elif stayed:
            notes.append(f"Taken as not synthesized, since equal row by row: {listed(stayed)}.")
    pairs = tuple(_pairs(own, columns, stayed) for columns in datasets)
    if stayed and any(one is None for one in pairs):
        notes.append(
            f"The rows of the release are not those of the confidential data in {listed(stayed)}, "
            "so they are compared as separate samples."
        )
        stayed, pairs = (), (None,) * len(datasets)
    synthesized = tuple(name for name in names if name not in stayed)
    return Sides(schema, names, synthesized, own, datasets, pairs, tuple(notes))


def _pairs(
    own: Columns, columns: Columns, stayed: Sequence[str]
) -> tuple[IntArray, IntArray] | None:
    """Return orders in which the rows of both sides agree in the columns that stayed.

    Rows that agree with several are paired with any of them: given these columns they are
    exchangeable.
    """
    if not stayed or len(own[stayed[0]]) != len(columns[stayed[0]]):
        return None
    same = np.arange(len(own[stayed[0]]))
    if all(np.array_equal(own[name], columns[name]) for name in stayed):
        return same, same
    ours, theirs = (np.lexsort([side[name] for name in stayed]) for side in (own, columns))
    if all(np.array_equal(own[name][ours], columns[name][theirs]) for name in stayed):
        return ours, theirs
    return None


def is_numeric(sides: Sides, name: str) -> bool:
    """Tell whether a variable holds numbers."""
    return isinstance(sides.schema.variables[name], Numeric)


def unit_of(values: FloatArray, axis: int | None = None) -> FloatArray:
    """Return the power of two below the largest of values, or of each column; 1 where all are 0.

    Dividing by it is exact, and then squares neither overflow nor vanish.
    """
    largest = np.abs(values).max(axis=axis)
    return np.where(largest > 0, np.ldexp(0.5, np.frexp(largest)[1]), 1.0)
