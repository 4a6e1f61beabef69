"""Confidential data that are read a part at a time: encoded once, into a store of columns.

The first pass settles the schema, the second encodes. Some records, evenly spread, stay in memory
as they are, for what looks at single values: whether columns tell synthesized ones, how values are
stored, whether a model suits them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from synrisk.base.errors import DataError, OptionError, listed
from synrisk.base.messages import place_of, setting
from synrisk.data.column_store import StoreWriter, TemporaryFolder, stored_columns
from synrisk.data.partitions import Digest, Partitions, evenly_spread, partitions, sampling_step
from synrisk.data.schema import Missing, Schema, Types, text_columns
from synrisk.models.plan import Plan, Regression
from synrisk.synthesis.confidential import (
    Confidential,
    check_responses,
    checked_weights,
    refuse_groups_with_gaps,
    whole_where_gaps,
)

_WHAT = "The confidential data"


def read_stored(
    regressions: Regression | Sequence[Regression],
    data: Any,
    *,
    types: Types | None,
    id_column: str | None,
    missing: Missing,
    release: Any,
) -> Confidential:
    """Read the data of a plan a part at a time; arguments are those of `Confidential.read`."""
    plan, table = Plan.of(regressions), partitions(data, _WHAT)
    _refuse_what_memory_needs(id_column, release)
    wanted = (*plan.columns, *plan.weight_columns)
    table.require(wanted)
    names = tuple(name for name in table.names if name in wanted)
    _refuse_other_types(types, names)
    digest = Digest(_WHAT)
    for _, frame in table.read(names):
        digest.add(frame)
    if not digest.n_rows:
        raise DataError(f"{_WHAT} have no rows.")
    schema = Schema.settle(
        digest.frame(), names, types=types, factors=plan.factors, missing=missing
    )
    plan = Plan.of([r.given(schema.variables[r.response]) for r in plan.regressions])
    refuse_groups_with_gaps(plan)
    folder = TemporaryFolder()
    step = sampling_step(digest.n_rows)
    sampled, n_kept = _encode(table, names, plan, schema, folder.path / "columns", step)
    columns = stored_columns(folder.path / "columns")
    for name in plan.weight_columns:
        checked_weights(name, columns[name])
    sample = Confidential.encode(plan, schema, whole_where_gaps(sampled, schema))
    return Confidential(
        plan,
        schema,
        pd.DataFrame(index=pd.RangeIndex(n_kept)),
        columns,
        digest.n_rows - n_kept,
        sampled=sample,
        folder=folder,
        step=step,
    )


def _refuse_what_memory_needs(id_column: str | None, release: Any) -> None:
    if id_column is not None:
        raise OptionError(
            f"{setting('id')} is for tables in memory; records that are read in parts are called "
            "by their numbers, from 0.",
            about=place_of("id"),
        )
    if release is not None:
        raise OptionError(
            f"{setting('release')} is for tables in memory; of a table that is read in parts the "
            "columns of the formulas are released alone.",
            about=place_of("release"),
        )


def _refuse_other_types(types: Types | None, names: Sequence[str]) -> None:
    text_columns(types)
    others = [name for name in types or {} if name not in names]
    if others:
        raise OptionError(
            f"{setting('types')}: no formula uses {listed(others)}; of a table that is read in "
            f"parts only {listed(names)} {'is' if len(names) == 1 else 'are'} read.",
            about=place_of("types"),
        )


def _encode(
    table: Partitions,
    names: Sequence[str],
    plan: Plan,
    schema: Schema,
    folder: Path,
    step: int,
) -> tuple[pd.DataFrame, int]:
    """Write the encoded columns; return one record of `step`, and how many are kept."""
    parts, n_kept = [], 0
    with StoreWriter(folder, {}) as store:
        for what, frame in table.read(names):
            columns, complete = schema.encode_rows(frame, names, what)
            kept = {name: values[complete] for name, values in columns.items()}
            check_responses(plan, schema, kept, what)
            store.append(kept)
            parts.append(evenly_spread(frame[complete], n_kept, step))
            n_kept += int(complete.sum())
    sampled = pd.concat(parts, ignore_index=True)
    return sampled, n_kept
