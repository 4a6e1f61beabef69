"""Synthesis: datasets drawn from the models in sequence.

Models were fitted to confidential values; a dataset is simulated with the *synthetic* values of the
variables before. Each dataset has its own draw of the parameters. A random stream belongs to a
dataset, a variable and a chunk of rows, so the data do not depend on the workers.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.chunks import ROWS, chunks
from synrisk.base.errors import FitError, counted
from synrisk.base.kept import called
from synrisk.base.memory_limit import refuse_beyond
from synrisk.base.progress import under_way
from synrisk.base.seeds import stream
from synrisk.base.workers import Executor
from synrisk.data.frames import own_copy
from synrisk.data.parquet_parts import ROWS_A_PART
from synrisk.data.schema import (
    MISSING_LABEL,
    Columns,
    Factor,
    Schema,
    Variable,
    as_real_numbers,
    label_key,
)
from synrisk.models.plan import Regression
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.variable_model import VariableModel

_MOST_FOLDED = 0.01  # the share of negative roots that may be squared
_COPIES = 2  # of a dataset: encoded, and as a frame
_LARGEST_WHOLE = 2.0**53  # beyond, doubles skip whole numbers


class SynthesisWarning(UserWarning):
    """Something about a synthetic dataset that its maker should know."""


class HeldBackWarning(SynthesisWarning):
    """Columns that were not released, since they may name people and were not declared."""


def synthesize(
    confidential: Confidential,
    models: Sequence[VariableModel],
    m: int,
    seed: int,
    executor: Executor,
) -> list[pd.DataFrame]:
    """Return `m` synthetic datasets, with the other columns that may be released."""
    drawn = draw_columns(confidential, models, m, seed, executor)
    return [_frame(confidential, columns) for columns in drawn]


def refuse_many_datasets(confidential: Confidential, m: int) -> None:
    """Raise if so many datasets cannot be held in memory."""
    n_records = confidential.n_records
    n_cells = (
        m * n_records * max(len(confidential.data.columns), len(confidential.plan.synthesized))
    )
    n_parts = m * len(rows_of_parts(n_records))
    refuse_beyond(
        _COPIES * 8 * n_cells,
        f"To draw {counted(m, 'dataset')} of {counted(n_records, 'record')}",
        "Draw fewer, or fit the models to a folder of Parquet files: datasets are then written in "
        f"parts, here {n_parts:,} of them.",
    )


def draw_columns(
    confidential: Confidential,
    models: Sequence[VariableModel],
    m: int,
    seed: int,
    executor: Executor,
) -> list[Columns]:
    """Return the synthesized columns of `m` datasets, encoded."""
    parts = chunks(confidential.n_records)
    task = _drawing(confidential, models, range(m), seed)
    drawn = []
    with under_way("Datasets", m * confidential.n_records) as advance:
        for chunk in executor.map(task, _blocks(confidential, parts, range(m))):
            drawn.append(chunk)
            advance(chunk.n_rows)
    datasets: list[Columns] = []
    for number in range(m):
        of_dataset = drawn[number * len(parts) : (number + 1) * len(parts)]
        for model in models:
            n_folded = sum(part.n_folded[model.regression.response] for part in of_dataset)
            _check_folded(model, n_folded, confidential.n_records, number)
        datasets.append(
            {
                name: np.concatenate([part.columns[name] for part in of_dataset])
                for name in confidential.plan.synthesized
            }
        )
    return datasets


def synthesize_parts(
    confidential: Confidential,
    models: Sequence[VariableModel],
    number: int,
    seed: int,
    executor: Executor,
) -> Iterator[pd.DataFrame]:
    """Yield one dataset of stored records in parts: the columns of the plan alone."""
    every = rows_of_parts(confidential.n_records)
    all_folded: Counter[str] = Counter()
    for part, n_folded in draw_parts(confidential, models, number, seed, every, executor):
        all_folded.update(n_folded)
        yield part
    check_all_folded(models, all_folded, confidential.n_records, number)


def rows_of_parts(n_records: int) -> list[slice]:
    """Return which records make each part of a dataset."""
    return [
        slice(first, min(first + ROWS_A_PART, n_records))
        for first in range(0, n_records, ROWS_A_PART)
    ]


def draw_parts(
    confidential: Confidential,
    models: Sequence[VariableModel],
    number: int,
    seed: int,
    parts: Sequence[slice],
    executor: Executor,
) -> Iterator[tuple[pd.DataFrame, dict[str, int]]]:
    """Yield some parts of one dataset, with how many negative roots were drawn, by variable."""
    drawn = draw_encoded(confidential, models, number, seed, parts, executor)
    for rows, (columns, n_folded) in zip(parts, drawn, strict=True):
        yield _part(confidential, rows.start, columns), n_folded


def draw_encoded(
    confidential: Confidential,
    models: Sequence[VariableModel],
    number: int,
    seed: int,
    parts: Sequence[slice],
    executor: Executor,
) -> Iterator[tuple[Columns, dict[str, int]]]:
    """Yield the same, of the synthesized columns alone and as they are encoded."""
    every = chunks(confidential.n_records)
    task = _drawing(confidential, models, [number], seed)
    n_rows = sum(rows.stop - rows.start for rows in parts)
    with under_way(f"Dataset {number + 1}", n_rows) as advance:
        for rows in parts:
            some = every[rows.start // ROWS : -(-rows.stop // ROWS)]
            drawn = []
            for chunk in executor.map(task, _blocks(confidential, some, [number])):
                drawn.append(chunk)
                advance(chunk.n_rows)
            columns = {
                name: np.concatenate([chunk.columns[name] for chunk in drawn])
                for name in confidential.plan.synthesized
            }
            n_folded: Counter[str] = Counter()
            for chunk in drawn:
                n_folded.update(chunk.n_folded)
            yield columns, dict(n_folded)


def check_all_folded(
    models: Sequence[VariableModel], n_folded: Mapping[str, int], n_rows: int, number: int
) -> None:
    """Warn or raise where negative roots were drawn in a dataset."""
    for model in models:
        _check_folded(model, n_folded.get(model.response, 0), n_rows, number)


def _drawing(
    confidential: Confidential,
    models: Sequence[VariableModel],
    numbers: Sequence[int],
    seed: int,
) -> Callable[[_Block], _Drawn]:
    """Return what draws a chunk of one of some datasets, each by its own parameters."""
    names = [model.response for model in models]
    draws = {
        number: [
            model.posterior_draw(stream(seed, "parameters", dataset=number, variable=name))
            for name, model in zip(names, models, strict=True)
        ]
        for number in numbers
    }
    return partial(
        _draw_chunk,
        tuple(model.to_sample() for model in models),
        draws,
        {name: confidential.schema.variables[name] for name in names},
        {name: confidential.sample.data[name].dtype for name in names},
        seed,
    )


@dataclass(frozen=True, repr=False)
class _Drawn:
    """A chunk's synthetic values as they are released, and how many negative roots were drawn."""

    columns: dict[str, Any]
    n_folded: dict[str, int]

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, repr=False)
class _Block:
    """A chunk of rows of a dataset; confidential values of synthesized variables are not here."""

    number: int
    chunk: int
    n_rows: int
    columns: Columns


def _blocks(
    confidential: Confidential, parts: Sequence[slice], numbers: Sequence[int]
) -> Iterator[_Block]:
    """Yield the chunks `parts` of some datasets."""
    synthesized = confidential.plan.synthesized
    known = {n: v for n, v in confidential.columns.items() if n not in synthesized}
    for number in numbers:
        for rows in parts:
            of_rows = {name: values[rows] for name, values in known.items()}
            yield _Block(number, rows.start // ROWS, rows.stop - rows.start, of_rows)


@called("synthesizing")
def _draw_chunk(
    models: Sequence[VariableModel],
    draws: Mapping[int, Sequence[Any]],
    variables: Mapping[str, Variable],
    dtypes: Mapping[str, Any],
    seed: int,
    block: _Block,
) -> _Drawn:
    """Return each synthesized variable of a chunk of rows."""
    number, chunk, n_rows = block.number, block.chunk, block.n_rows
    columns = dict(block.columns)
    drawn = _Drawn({}, {})
    for model, of_dataset in zip(models, draws[number], strict=True):
        regression, name = model.regression, model.response
        rng = stream(seed, "synthesis", dataset=number, variable=name, chunk=chunk)
        what = f"Synthetic dataset {number + 1}"
        on_model_scale = model.sample(columns, n_rows, of_dataset, rng, what)
        drawn.n_folded[name] = regression.transform.n_folded(on_model_scale)
        variable = variables[name]
        with np.errstate(over="ignore"):
            values = _as_stored(
                regression.transform.inverse(on_model_scale),
                regression,
                variable,
                dtypes[name],
            )
        if regression.distribution.gap_code is not None:
            values = np.where(np.isnan(on_model_scale), regression.distribution.gap_code, values)
        n_bad = int((~np.isfinite(values)).sum())
        if n_bad:
            raise FitError(
                f"Synthetic dataset {number + 1}: {name!r} is beyond what its column can hold for "
                f"{counted(n_bad, 'row')}; check the model's formula and predictors."
            )
        columns[name] = values.astype(np.int64) if isinstance(variable, Factor) else values
        drawn.columns[name] = columns[name]
    return drawn


def _as_stored(
    values: FloatArray, regression: Regression, variable: Variable, dtype: Any
) -> FloatArray:
    """Return values as the column's type will hold them: later variables are predicted by these.

    Whole numbers are rounded; where that leaves the support (an income of 0.3 has a logarithm, 0
    has none), to the other side.
    """
    if isinstance(variable, Factor):
        return values
    if pd.api.types.is_float_dtype(dtype) and isinstance(dtype, np.dtype):
        return values.astype(dtype).astype(np.float64)
    if not pd.api.types.is_integer_dtype(dtype):
        return values
    rounded = np.rint(values)
    for other in (np.ceil(values), np.floor(values)):
        rounded = np.where(regression.supports(rounded, variable), rounded, other)
    return np.asarray(rounded)


def _check_folded(model: VariableModel, n_folded: int, n_rows: int, number: int) -> None:
    """Warn or raise where roots were drawn that are negative, so have no square root's value."""
    transform, name = model.regression.transform, model.regression.response
    if not n_folded:
        return
    message = (
        f"Synthetic dataset {number + 1}: {counted(n_folded, 'value')} of {transform.text} "
        f"{'was' if n_folded == 1 else 'were'} drawn below what a root can be"
    )
    if n_folded > _MOST_FOLDED * n_rows:
        raise FitError(f"{message}; model {name!r} otherwise (log1p, or untransformed).")
    warnings.warn(f"{message}, and squared all the same.", SynthesisWarning, stacklevel=4)


def _frame(confidential: Confidential, columns: Columns) -> pd.DataFrame:
    """Return what may go out: synthesized columns replaced, types kept, and those left as is."""
    data = confidential.data
    frame = own_copy(data.drop(columns=list(confidential.held_back)))
    for name, drawn in columns.items():
        frame[name] = _as_before(confidential.schema, name, frame[name], drawn, frame.index)
    # What no row has, and what was noted beside the rows, may tell of people.
    for column in frame.columns:
        if isinstance(frame[column].dtype, pd.CategoricalDtype):
            frame[column] = frame[column].cat.remove_unused_categories()
    if not confidential.releases_labels:
        frame.index = pd.RangeIndex(len(frame))
    elif isinstance(frame.index, pd.CategoricalIndex):
        frame.index = frame.index.remove_unused_categories()
    frame.attrs = {}
    frame.columns.name = None
    return frame


def _part(confidential: Confidential, first: int, columns: Columns) -> pd.DataFrame:
    """Return rows of stored records from `first` on: synthesized columns, and those of formulas."""
    sample, n_rows = confidential.sample.data, len(next(iter(columns.values())))
    found = {}
    for name in confidential.released_columns:
        values = columns.get(name)
        if values is None:
            values = confidential.columns[name][first : first + n_rows]
        index = pd.RangeIndex(n_rows)
        column = _as_before(confidential.schema, name, sample[name], values, index)
        # Categories that no row has would be listed in every part.
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(column.dtype.categories.dtype)
        found[name] = column
    return pd.DataFrame(found)


def _as_before(
    schema: Schema, name: str, original: pd.Series[Any], drawn: Any, index: pd.Index[Any]
) -> pd.Series[Any]:
    """Return encoded values as a column of the original's type."""
    variable = schema.variables[name]
    if isinstance(variable, Factor):
        gaps = schema.missing_of(name) == "level"
        return _as_levels(original, variable, drawn, index, gaps=gaps)
    if variable.gap is None:
        return _as_numbers(original, drawn, index)
    is_gap = drawn == variable.gap
    there = drawn[~is_gap][0] if not is_gap.all() else 0.0
    whole = _as_numbers(original, np.where(is_gap, there, drawn), index)
    return whole.mask(is_gap)


def _as_levels(
    original: pd.Series[Any],
    variable: Factor,
    drawn: IntArray,
    index: pd.Index[Any],
    *,
    gaps: bool,
) -> pd.Series[Any]:
    """Return drawn levels as a column of the original's type, missing ones missing again."""
    dtype: Any = original.dtype
    is_categorical = isinstance(dtype, pd.CategoricalDtype)
    present = dtype.categories if is_categorical else original.dropna().unique()
    as_stored = {label_key(value): value for value in present}
    labels = np.empty(len(variable.levels), dtype=object)
    for code, level in enumerate(variable.levels):
        gap = gaps and level == MISSING_LABEL
        labels[code] = None if gap else as_stored.get(label_key(level), level)
    values = labels[drawn]
    if is_categorical:
        known = pd.Categorical(values, dtype=dtype)
        return pd.Series(known, index=index)
    column = pd.Series(values, index=index, dtype=object)
    with contextlib.suppress(ValueError, TypeError):  # a declared level of another type
        return column.astype(dtype)
    return column


def _as_numbers(
    original: pd.Series[Any], drawn: FloatArray, index: pd.Index[Any]
) -> pd.Series[Any]:
    """Return drawn numbers as a column of the original's type where it can hold them."""
    kinds, dtype = pd.api.types, original.dtype
    column = pd.Series(drawn, index=index)
    whole = bool((drawn == np.rint(drawn)).all()) and bool((np.abs(drawn) < _LARGEST_WHOLE).all())
    if kinds.is_bool_dtype(dtype):
        return column.astype(dtype) if set(np.unique(drawn)) <= {0.0, 1.0} else column
    if kinds.is_integer_dtype(dtype) and whole:
        integers = column.astype(np.int64)
        with contextlib.suppress(ValueError, OverflowError, TypeError):
            as_before = integers.astype(dtype)
            if bool((as_before == integers).all()):
                return as_before
        return integers  # the original type is too narrow for a value
    if kinds.is_float_dtype(dtype):
        return column.astype(dtype)
    was_whole = not kinds.is_numeric_dtype(dtype) and _is_whole(original)
    return column.astype(np.int64) if whole and was_whole else column


def _is_whole(original: pd.Series[Any]) -> bool:
    """Tell whether a column of objects or text holds whole numbers."""
    numbers, n_text = as_real_numbers(original)
    return not n_text and bool((numbers == np.rint(numbers)).all())
