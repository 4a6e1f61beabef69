"""The confidential data as a plan uses them: read, labelled, typed and checked, before any work."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import DataError, OptionError, counted, got, listed, nearest
from synrisk.base.messages import either, place_of, setting
from synrisk.data.column_store import AnyColumn, TemporaryFolder, pieces
from synrisk.data.frames import TableLike, read_table, with_columns
from synrisk.data.schema import (
    Columns,
    Factor,
    Missing,
    Numeric,
    Schema,
    Types,
    as_real_numbers,
    require_columns,
    text_columns,
)
from synrisk.models.design import Design
from synrisk.models.plan import Plan, Regression
from synrisk.synthesis.identifiers import identifies

_WHAT = "The confidential data"
INDEX = "index"  # what release= calls the records' labels where they have no name


@dataclass(frozen=True, eq=False, repr=False)
class Confidential:
    """The confidential records that a plan uses.

    Attributes
    ----------
    plan
        The regressions in synthesis order.
    schema
        The variables of the plan.
    data
        The records that are used, all columns, indexed by their labels.
    columns
        The plan's columns as arrays.
    n_dropped
        How many records were left out because a value is missing.
    dropped
        The synthesized numbers of those, by variable: a release must not hold them either.
    release
        Columns that were declared to be released as they are.
    sampled
        Of a table that was read in parts, some of its records, evenly spread, in memory: `data` has
        labels alone then, and `columns` are stored.
    folder
        Where the columns are stored, as long as somebody holds this.
    step
        Of how many records one is sampled, of a dataset as of these: where its rows stand for the
        records in their order, those of both samples do.
    """

    plan: Plan
    schema: Schema
    data: pd.DataFrame
    columns: Columns
    n_dropped: int
    release: tuple[str, ...] = ()
    dropped: Mapping[str, FloatArray] = field(default_factory=dict)
    sampled: Confidential | None = None
    folder: TemporaryFolder | None = None
    step: int = 1

    @classmethod
    def read(
        cls,
        regressions: Regression | Sequence[Regression],
        data: TableLike,
        *,
        types: Types | None,
        id_column: str | None,
        missing: Missing,
        release: Any = None,
    ) -> Confidential:
        """Read the data of a plan into memory, and raise where they do not suit it."""
        plan = Plan.of(regressions)
        if id_column is not None and not isinstance(id_column, str):
            raise OptionError(f"id= is the name of a column; got {type(id_column).__name__}.")
        text = text_columns(types)
        frame = read_table(data, _WHAT, text=text if id_column is None else {id_column: [], **text})
        if not len(frame):
            raise DataError(f"{_WHAT} have no rows.")
        require_columns(frame, (*plan.columns, *plan.weight_columns), _WHAT)
        frame = _labelled(frame, id_column, plan)
        schema = Schema.settle(
            frame,
            (*plan.columns, *(w for w in plan.weight_columns if w not in plan.columns)),
            types=types,
            factors=plan.factors,
            missing=missing,
        )
        frame = whole_where_gaps(frame, schema)
        plan = Plan.of([r.given(schema.variables[r.response]) for r in plan.regressions])
        refuse_groups_with_gaps(plan)
        declared = _declared(release, frame, plan)
        confidential = cls.encode(plan, schema, frame, release=declared)
        check_responses(plan, schema, confidential.columns)
        for regression in plan.regressions:
            confidential.record_weights(regression)
        return confidential

    @classmethod
    def encode(
        cls,
        plan: Plan,
        schema: Schema,
        frame: pd.DataFrame,
        n_dropped: int = 0,
        release: tuple[str, ...] = (),
    ) -> Confidential:
        """Encode a labelled frame by its schema; `n_dropped` records were left out before."""
        columns, kept = schema.encode(frame, schema.variables, _WHAT)
        n_dropped += len(frame) - int(kept.sum())
        dropped = {name: as_real_numbers(frame[name][~kept])[0] for name in plan.synthesized}
        return cls(plan, schema, frame[kept], columns, n_dropped, release, dropped)

    @property
    def n_records(self) -> int:
        """The number of confidential records used."""
        return len(self.data)

    @property
    def sample(self) -> Confidential:
        """Records in memory, for what looks at single values: all, unless they are stored."""
        return self if self.sampled is None else self.sampled

    @property
    def is_stored(self) -> bool:
        """Whether the table was read in parts, and is not in memory."""
        return self.sampled is not None

    @cached_property
    def held_back(self) -> tuple[str, ...]:
        """The columns that may name people, were not declared and are in no model."""
        own, data = {*self.plan.columns, *self.plan.weight_columns, *self.release}, self.sample.data
        return tuple(
            str(name)
            for name in data.columns
            if name not in own and (name == data.index.name or identifies(data[name]))
        )

    @property
    def released_as_is(self) -> tuple[str, ...]:
        """The columns that are released as they are: neither synthesized nor held back."""
        other = {*self.plan.synthesized, *self.held_back}
        return tuple(str(name) for name in self.sample.data.columns if name not in other)

    @property
    def released_columns(self) -> tuple[str, ...]:
        """The columns of a synthetic dataset, in the order of the confidential data."""
        held_back = set(self.held_back)
        return tuple(str(name) for name in self.sample.data.columns if name not in held_back)

    @property
    def releases_labels(self) -> bool:
        """Whether the records' labels were declared to be released."""
        return INDEX in self.release or self.data.index.name in self.release

    def design(self, regression: Regression) -> Design:
        """Freeze the design of a regression on these records."""
        return Design.freeze(regression.parsed, self.schema, self.columns, self.n_records)

    def record_weights(self, regression: Regression) -> FloatArray | None:
        """Return the records' weights in a regression, None where it has none."""
        name = regression.weights
        return None if name is None else checked_weights(name, self.columns[name])


def _labelled(frame: pd.DataFrame, id_column: str | None, plan: Plan) -> pd.DataFrame:
    """Return the frame indexed by the records' labels, each of which must occur once."""
    source = "the index"
    if id_column is not None:
        require_columns(frame, [id_column], "id=")
        if id_column in plan.columns:
            raise OptionError(
                f"{setting('id', id_column)} is used in a formula; it cannot name the records.",
                about=place_of("id"),
            )
        frame = frame.set_index(_whole_ids(frame[id_column]), drop=False)
        source = f"the column {id_column!r}"
    if isinstance(frame.index, pd.MultiIndex):
        raise DataError(
            f"{_WHAT} have an index of several levels; name the records with {setting('id')}."
        )
    n_missing = int(np.sum(frame.index.isna()))
    if n_missing:
        raise DataError(f"{_WHAT}: {source} lacks {counted(n_missing, 'label')}.")
    n_nested = sum(not isinstance(label, Hashable) for label in frame.index)
    if n_nested:
        raise DataError(f"{_WHAT}: {source} holds {counted(n_nested, 'list')}, not labels.")
    n_repeated = int(frame.index.duplicated().sum())
    if n_repeated:
        raise DataError(
            f"{_WHAT}: {source} repeats {counted(n_repeated, 'label')}; every record needs its "
            f"own. Name them by another column ({setting('id')})"
            f"{either(', or reset the index', '')}."
        )
    return frame


def _declared(release: Any, frame: pd.DataFrame, plan: Plan) -> tuple[str, ...]:
    """Return the columns that were declared to be released, which must be there."""
    if release is None:
        return ()
    if isinstance(release, str) or not isinstance(release, Sequence):
        raise OptionError(
            f"{setting('release')} is a list of names of columns; got {got(release)}."
        )
    known = [*map(str, frame.columns), INDEX]
    if frame.index.name is not None:
        known.append(str(frame.index.name))
    for name in release:
        if not isinstance(name, str) or name not in known:
            what = repr(name) if isinstance(name, str) else got(name)
            raise OptionError(
                f"{setting('release')}: there is no column {what}.{nearest(name, known)} "
                f"There are: {listed(frame.columns)}.",
                about=place_of("release"),
            )
        if name in plan.synthesized:
            raise OptionError(
                f"{setting('release')}: {name!r} is synthesized, and so released by its synthetic "
                "values.",
                about=place_of("release"),
            )
    return tuple(dict.fromkeys(release))


def _whole_ids(ids: pd.Series[Any]) -> pd.Index[Any]:
    """Return ids as an index; text that only holds whole numbers without leading zeros as such."""
    whole = r"0|[1-9]\d{0,17}"
    is_text = pd.api.types.is_string_dtype(ids.dtype) and bool(ids.notna().all())
    if is_text and ids.map(lambda label: bool(re.fullmatch(whole, str(label)))).all():
        ids = ids.astype(np.int64)
    index: pd.Index[Any] = pd.Index(ids, name=ids.name)
    return index


def whole_where_gaps(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return whole numbers as such that were read as others for their gaps alone."""
    whole = {}
    for name, variable in schema.variables.items():
        if isinstance(variable, Numeric) and variable.gap is not None:
            there = as_real_numbers(frame[name].dropna())[0]
            is_plain = isinstance(frame[name].dtype, np.dtype) and frame[name].dtype.kind == "f"
            if is_plain and bool(((there == np.rint(there)) & (np.abs(there) < 2.0**53)).all()):
                whole[name] = frame[name].astype("Int64")
    return with_columns(frame, whole)


def refuse_groups_with_gaps(plan: Plan) -> None:
    """Raise where the missing values of a response with group-level terms are to be modelled."""
    for regression in plan.regressions:
        if regression.distribution.gap_code is not None and regression.parsed.groups:
            raise OptionError(
                f"{regression.title} has group-level terms, which a model of missing values "
                "cannot have.",
                about=place_of("missing"),
            )


def check_responses(plan: Plan, schema: Schema, columns: Columns, what: str = _WHAT) -> None:
    """Raise where values of a response are none that its family has."""
    for regression in plan.regressions:
        family, name = regression.distribution, regression.response
        variable = schema.variables[name]
        wanted = f"{what}: {name!r} is modelled as {family.name} and must be {regression.wants}"
        if not family.fits(variable):
            if not isinstance(variable, Factor):
                raise DataError(f"{wanted}.")
            n_levels = counted(len(variable.levels), "level")
            raise DataError(f"{wanted}; it is a factor with {n_levels}.")
        n_outside = int((~regression.supports(columns[name], variable)).sum())
        if n_outside:
            in_log = regression.parsed.transform.steps == ("log",) and (columns[name] == 0).any()
            advice = f" 0 has no logarithm: model log1p({name}), which has." if in_log else ""
            how_many = counted(n_outside, "value is", "values are")
            raise DataError(f"{wanted}; {how_many} not.{advice}")


def checked_weights(name: str, weights: AnyColumn, what: str = _WHAT) -> Any:
    """Return record weights, which are numbers from 0, and not all zero."""
    if weights.dtype.kind != "f":
        raise DataError(f"{what}: the weights column {name!r} must hold numbers.")
    n_negative, n_positive = 0, 0
    for part in pieces(weights):
        n_negative += int((part < 0).sum())
        n_positive += int((part > 0).sum())
    if n_negative or not n_positive:
        raise DataError(
            f"{what}: the weights in {name!r} must not be negative, and not all zero; "
            f"{counted(n_negative, 'value is', 'values are')} negative."
        )
    return weights
