"""Blocks of a table that is not in memory: some records, and rows to compare with them, that are.

A block is a table of its own, with the same models: whatever compares rows with records compares
those of a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.progress import under_way
from synrisk.data.buckets import Buckets
from synrisk.data.schema import Columns, Factor, Schema
from synrisk.risk.block_routes import Route
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_MOST_TIMES = 4  # the size of a block: one that values which repeat make larger is cut


@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """Some records and rows.

    Attributes
    ----------
    number
        By which it is known again, of any dataset.
    synthesizer, dataset
        The models with the records, and the rows.
    positions
        Of the records in the whole table.
    between
        Of a slab, its number and ends.
    """

    number: int
    synthesizer: Synthesizer
    dataset: Released
    positions: IntArray
    between: tuple[str, float, float] | None = None

    def stream_of(self, number: int) -> int:
        """Return what stands for a dataset in the keys of random streams: no two blocks share one.

        Of the first block it is the dataset's own number, as of a table in memory.
        """
        return number + (self.number << 32) * (1 if number > 0 else -1)


def slices(n_rows: int, n_block: int) -> Iterator[slice]:
    """Yield which rows make each block by position."""
    with under_way("Going through the table", n_rows) as advance:
        for first in range(0, n_rows, n_block):
            rows = slice(first, min(first + n_block, n_rows))
            yield rows
            advance(rows.stop - rows.start)


def some_of(columns: Columns, rows: slice) -> Columns:
    """Read some rows of all columns."""
    return {name: np.asarray(values[rows]) for name, values in columns.items()}


def records_of(synthesizer: Synthesizer, columns: Columns, positions: IntArray) -> Synthesizer:
    """Return the models with some records alone."""
    whole = synthesizer.confidential
    frame = _frame(whole.schema, columns, pd.Index(positions))
    confidential = Confidential(whole.plan, whole.schema, frame, columns, 0, whole.release)
    models = (model.to_sample() for model in synthesizer.models)
    return Synthesizer(confidential, tuple(models))


def rows_of(schema: Schema, columns: Columns) -> Released:
    """Return some rows as a dataset."""
    n_rows = len(next(iter(columns.values())))
    frame = _frame(schema, columns, pd.RangeIndex(n_rows))
    return Released(frame, columns, np.ones(n_rows, dtype=bool))


def _frame(schema: Schema, columns: Columns, index: pd.Index[int]) -> pd.DataFrame:
    found = {}
    for name, values in columns.items():
        variable = schema.variables[name]
        if isinstance(variable, Factor):
            levels = pd.Categorical.from_codes(
                values, categories=pd.Index(list(variable.levels), dtype=object)
            )
            found[name] = pd.Series(levels, index=index)
        else:
            found[name] = pd.Series(values, index=index)
    return pd.DataFrame(found, index=index)


def blocks_by_place(synthesizer: Synthesizer, dataset: Released, n_block: int) -> Iterator[Block]:
    """Yield records and the rows at their places, where there are as many of both."""
    for number, rows in enumerate(slices(synthesizer.n_records, n_block)):
        positions = np.arange(rows.start, rows.stop)
        records = records_of(synthesizer, some_of(synthesizer.columns, rows), positions)
        released = rows_of(synthesizer.schema, some_of(dataset.columns, rows))
        yield Block(number, records, released, positions)


@dataclass(frozen=True, eq=False, repr=False)
class Sorted:
    """The rows of a table, or its records, in files by block, each with its position."""

    names: tuple[str, ...]
    kinds: tuple[np.dtype[np.generic], ...]
    buckets: Buckets

    @classmethod
    def of(cls, columns: Columns, route: Route, n_block: int) -> Sorted:
        """Send all rows on a route."""
        names = tuple(columns)
        buckets = Buckets(len(names) + 1)
        for rows in slices(len(columns[names[0]]), n_block):
            part = some_of(columns, rows)
            places = np.arange(rows.start, rows.stop)
            matrix = np.column_stack([*(np.asarray(part[name]) for name in names), places])
            buckets.append(route.blocks_of(part), matrix.astype(np.float64))
        return cls(names, tuple(columns[name].dtype for name in names), buckets)

    def read(self, number: int) -> FloatArray:
        """Return a block's rows, in the order of their positions."""
        return self.buckets.read(number)

    def columns(self, matrix: FloatArray) -> tuple[Columns, IntArray]:
        """Return rows of a block as columns, and their positions."""
        found = {
            name: np.ascontiguousarray(matrix[:, k]).astype(kind)
            for k, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
        }
        return found, matrix[:, -1].astype(np.int64)


def blocks_by_route(
    synthesizer: Synthesizer, records: Sorted, rows: Sorted, route: Route, n_block: int
) -> Iterator[Block]:
    """Yield blocks that hold both records and rows.

    Where values repeat so often that a block is too large, every so manieth record of it meets
    every so manieth row.
    """
    for place in range(route.n_blocks):
        own, theirs = records.read(place), rows.read(place)
        largest = max(len(own), len(theirs))
        n_parts = 1 if largest <= _MOST_TIMES * n_block else -(-largest // n_block)
        for first in range(n_parts):
            some, others = own[first::n_parts], theirs[first::n_parts]
            if len(some) and len(others):
                columns, positions = records.columns(some)
                of_records = records_of(synthesizer, columns, positions)
                released = rows_of(synthesizer.schema, rows.columns(others)[0])
                number = place + route.n_blocks * first  # of another dataset too
                yield Block(number, of_records, released, positions, route.between(place))
