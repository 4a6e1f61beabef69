"""The design: each term's columns, with an encoding frozen on the confidential data.

formulaic encodes; it is given neutral names for columns and codes for levels, so that neither an
odd name nor a level can reach its parser or its messages. Terms are evaluated one by one: in the
risk a term is needed over the guesses of those synthesized variables alone that it mentions.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import formulaic
import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.chunks import chunks
from synrisk.base.errors import DataError, FormulaError, SynriskError, counted
from synrisk.data.schema import Columns, Factor, Label, Schema
from synrisk.models.column_states import States, states_of
from synrisk.models.design_columns import DesignColumn, Part
from synrisk.models.formula import expressions
from synrisk.models.formula.expressions import Call, Column, Expression
from synrisk.models.formula.parser import Formula
from synrisk.models.looked_through import Filled, distinct, parts_to_check
from synrisk.models.special_terms import GappedTerm, GroupLevelTerm, IsMissing

_MOST_GROUPS = 2_000  # levels with coefficients of their own
_SAME = 1e-12  # relative difference allowed between a row encoded alone and among others


@dataclass(frozen=True, repr=False)
class DesignTerm:
    """The columns of one term, and how to compute them from any rows."""

    label: str
    variables: tuple[str, ...]
    columns: tuple[DesignColumn, ...]
    _encoder: _Encoder
    _spec: Any  # a formulaic ModelSpec restricted to this term; None for the intercept
    is_product: bool = False  # of numeric columns without functions
    # Of a term of numbers and levels without functions: for each of its columns the factors, each
    # with the code of its level; None for a number.
    _cells: tuple[tuple[tuple[str, int | None], ...], ...] = ()

    def evaluate(
        self, rows: Columns, n_rows: int, what: str, error: type[SynriskError]
    ) -> FloatArray:
        """Return this term's columns for `rows`, shape ``(n_rows, n_columns)``."""
        if self._spec is None:
            return np.ones((n_rows, 1))
        if self.is_product:  # of numbers as they are: formulaic would take a hundred times as long
            return _product([rows[name] for name in self.variables])
        if self._cells:
            return self._products(rows, n_rows, what, error)
        values = self.values(rows, what, error)
        self.refuse(n_rows - int(np.isfinite(values).all(axis=1).sum()), n_rows, what, error)
        return values

    @property
    def may_be_infinite(self) -> bool:
        """Whether it has functions or arithmetic, which may have no value somewhere."""
        return self._spec is not None and not self.is_product and not self._cells

    def _products(
        self, rows: Columns, n_rows: int, what: str, error: type[SynriskError]
    ) -> FloatArray:
        """Return the columns of a term without functions: as formulaic's, and much faster."""
        found = {name: self._encoder.column(name, rows, what, error) for name in self.variables}
        made = np.empty((n_rows, len(self._cells)))
        for values, cell in zip(made.T, self._cells, strict=True):
            values[:] = 1.0
            for name, code in cell:
                values *= found[name] if code is None else found[name] == code
        return made

    def values(self, rows: Columns, what: str, error: type[SynriskError]) -> FloatArray:
        """Return what formulaic makes of rows, whether they are numbers or not."""
        frame = self._encoder.frame(rows, self.variables, what, error)
        with np.errstate(all="ignore"):
            return _materialize(self._spec, frame, self.label, error)

    def refuse(self, n_bad: int, n_rows: int, what: str, error: type[SynriskError]) -> None:
        """Raise where some rows have no finite number."""
        if n_bad:
            raise error(
                f"{what}: {self.label} is not a finite number for {counted(n_bad, 'row')} "
                f"of {n_rows:,}."
            )


AnyTerm: TypeAlias = DesignTerm | GroupLevelTerm | GappedTerm | IsMissing


@dataclass(frozen=True, repr=False)
class Design:
    """The frozen design of one regression."""

    terms: tuple[AnyTerm, ...]

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """All columns, in the order of the coefficients."""
        return tuple(column for term in self.terms for column in term.columns)

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of the data that it mentions, each once."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.variables))

    def matrix(
        self, rows: Columns, n_rows: int, what: str, error: type[SynriskError]
    ) -> FloatArray:
        """Return all columns for `rows`, shape ``(n_rows, n_columns)``."""
        blocks = [term.evaluate(rows, n_rows, what, error) for term in self.terms]
        # Row by row in memory however a block lies there: sums over rows are then always the same.
        whole = np.empty((n_rows, sum(block.shape[1] for block in blocks)))
        return np.concatenate(blocks, axis=1, out=whole)

    @classmethod
    def freeze(cls, parsed: Formula, schema: Schema, rows: Columns, n_rows: int) -> Design:
        """Freeze the encoding of `parsed` on the confidential `rows`.

        Columns that are read a chunk at a time are never read whole, but for the one that a spline
        is of, or that has gaps: their values are looked through chunk by chunk.
        """
        gaps = _gaps_of(parsed, schema)
        if gaps:
            return cls(tuple(_frozen_with_gaps(parsed, schema, rows, n_rows, gaps)))
        terms, at_once = _frozen(parsed, schema, rows, n_rows)
        own: list[AnyTerm] = [*terms]
        wholes: list[_AtOnce] = [at_once]
        for group in parsed.groups:
            inside = replace(parsed, intercept=group.intercept, terms=group.terms, groups=())
            slopes, of_slopes = _frozen(inside, schema, rows, n_rows)
            levels, parts = _group_levels(group.grouping, schema, rows)
            for term in slopes:
                columns = tuple(
                    DesignColumn(column.parts, part) for part in parts for column in term.columns
                )
                own.append(GroupLevelTerm(group.grouping, levels, term, columns))
            widths = tuple(len(term.columns) for term in slopes)
            wholes.append(replace(of_slopes, by_level=(group.grouping, levels, widths)))
        design = cls(tuple(own))
        _check_row_local(design, wholes, parsed, rows, n_rows)
        return design


def least_columns(parsed: Formula, schema: Schema, rows: Columns) -> int:
    """Return how many columns a design has at least, by its factors' levels, before it is made."""
    encoder = _Encoder.of(parsed, schema, rows)
    terms = {frozenset(map(encoder.text, term)): term for term in parsed.terms}
    return int(parsed.intercept) + sum(
        math.prod(
            len(encoder.labels(name)) - 1
            for factor in term
            if (name := _factor_column(factor, schema)) is not None
        )
        for term in terms.values()
    )


def _gaps_of(parsed: Formula, schema: Schema) -> dict[str, float]:
    """Return the predictors whose missing values are modelled, with what stands for one."""
    found = {}
    for name in parsed.predictors:
        variable = schema.variables[name]
        if not isinstance(variable, Factor) and variable.gap is not None:
            found[name] = variable.gap
    return found


def _frozen_with_gaps(
    parsed: Formula, schema: Schema, rows: Columns, n_rows: int, gaps: Mapping[str, float]
) -> list[AnyTerm]:
    """Return terms that are 0 where a predictor is missing, and a column beside for that."""
    if parsed.groups:
        raise FormulaError(
            f"Formula {parsed.text!r}: group-level terms cannot stand beside predictors whose "
            "missing values are modelled."
        )
    for name in gaps:
        as_factor = (expressions.as_factor(node) == name for term in parsed.terms for node in term)
        if any(as_factor):
            raise FormulaError(
                f"Formula {parsed.text!r}: missing values of {name!r} are modelled; it can be a "
                "number in a formula, not C() of one."
            )
    filled: dict[str, Any] = dict(rows)
    anywhere = {}
    unseen: tuple[str, ...] = ()
    for name, gap in gaps.items():
        known = (whole := np.asarray(rows[name])) != gap  # this one column, for its median
        anywhere[name] = float(np.median(whole[known]))
        unseen += (name,) if known.all() else ()
        if isinstance(rows[name], np.ndarray):
            filled[name] = np.where(known, whole, anywhere[name])
        else:
            filled[name] = Filled(rows[name], gap, anywhere[name])
    inner, at_once = _frozen(parsed, schema, filled, n_rows)
    _check_row_local(Design(tuple(inner)), [at_once], parsed, filled, n_rows)
    terms: list[AnyTerm] = []
    for term in inner:
        own = {name: gap for name, gap in gaps.items() if name in term.variables}
        terms.append(GappedTerm(term, own, anywhere, unseen) if own else term)
    return [*terms, *(IsMissing(name, gaps[name]) for name in gaps if name not in unseen)]


def _frozen(
    parsed: Formula, schema: Schema, rows: Columns, n_rows: int
) -> tuple[list[DesignTerm], _AtOnce]:
    """Return the terms without groups, and how all their columns are encoded at once."""
    encoder = _Encoder.of(parsed, schema, rows)
    terms = []
    if parsed.intercept:
        terms.append(DesignTerm("Intercept", (), (DesignColumn(()),), encoder, None))
    _check_degrees(parsed, rows)
    first = parts_to_check(rows, n_rows)[0]
    n_first = first.stop - first.start
    if not parsed.terms:
        ones = np.ones((n_first, 1 if parsed.intercept else 0))
        return terms, _AtOnce(encoder, (), None, ones)
    used = tuple(dict.fromkeys(n for term in parsed.terms for n in expressions.variables(term)))
    frame = encoder.frame(
        {name: rows[name][first] for name in used}, used, "The confidential data", DataError
    )
    numeric = [
        factor
        for term in parsed.terms
        for factor in term
        if _factor_column(factor, encoder.schema) is None
    ]
    states = states_of(numeric, encoder.text, rows, n_rows)
    frozen, matrix = _freeze_terms(parsed, encoder, frame, states)
    at_once = _AtOnce(encoder, used, matrix.model_spec, np.asarray(matrix, dtype=np.float64))
    return [*terms, *frozen], at_once


@dataclass(frozen=True, repr=False)
class _AtOnce:
    """The terms of a formula, encoded at once by formulaic, not term by term.

    Attributes
    ----------
    encoder, used, spec
        What encodes, and the columns that it needs; no spec where there is the intercept at most.
    first
        The columns of the first rows that are checked.
    by_level
        Of group-level terms the grouping column, its levels and the widths of the terms.
    """

    encoder: _Encoder
    used: tuple[str, ...]
    spec: Any
    first: FloatArray
    by_level: tuple[str, npt.NDArray[Any], tuple[int, ...]] | None = None

    def matrix(self, rows: Columns, n_rows: int, *, is_first: bool) -> FloatArray:
        """Return all columns for rows; the first ones are known."""
        whole = self.first if is_first else np.ones((n_rows, self.first.shape[1]))
        if self.spec is not None and not is_first:
            frame = self.encoder.frame(rows, self.used, "The confidential data", DataError)
            with np.errstate(all="ignore"):
                whole = _materialize(self.spec, frame, "The formula", DataError)
        if self.by_level is None:
            return whole
        grouping, levels, widths = self.by_level
        is_level = rows[grouping][:, None] == levels
        ends = np.cumsum([0, *widths])
        products = [
            (is_level[:, :, None] * whole[:, None, first:last]).reshape(n_rows, -1)
            for first, last in itertools.pairwise(ends)
        ]
        return np.concatenate(products, axis=1)


def _group_levels(
    name: str, schema: Schema, rows: Columns
) -> tuple[npt.NDArray[Any], tuple[Part, ...]]:
    """Return the codes or numbers of a grouping column that occur, and what they are called."""
    variable, levels = schema.variables[name], distinct(rows[name])
    if len(levels) > _MOST_GROUPS:
        raise FormulaError(
            f"The grouping column {name!r} has {len(levels):,} levels; at most {_MOST_GROUPS:,} "
            "can have coefficients of their own."
        )
    if isinstance(variable, Factor):
        labels: list[Label] = [variable.levels[code] for code in levels]
    else:
        labels = [int(v) if v.is_integer() else v for v in levels.tolist()]
    shown = isinstance(variable, Factor) and variable.declared
    return levels, tuple(Part(Column(name), level=label, shows_level=shown) for label in labels)


@dataclass(frozen=True, repr=False)
class _Encoder:
    """Neutral names, and the frozen levels of numeric columns that ``C()`` makes factors of."""

    schema: Schema
    numbers: Mapping[str, str]
    factors: Mapping[str, str]
    levels: Mapping[str, FloatArray]

    @classmethod
    def of(cls, parsed: Formula, schema: Schema, rows: Columns) -> _Encoder:
        numbers: dict[str, str] = {}
        factors: dict[str, str] = {}
        for node in (factor for term in parsed.terms for factor in term):
            name = _factor_column(node, schema)
            if name is not None:
                factors.setdefault(name, f"c{len(factors)}")
                continue
            for used in expressions.variables((node,)):
                if isinstance(schema.variables[used], Factor):
                    raise FormulaError(
                        f"Formula {parsed.text!r}: {used!r} is a factor; it can stand by itself "
                        "or in an interaction, not inside a function or arithmetic."
                    )
                numbers.setdefault(used, f"n{len(numbers)}")
        levels = {
            name: distinct(rows[name])
            for name in factors
            if not isinstance(schema.variables[name], Factor)
        }
        return cls(schema, numbers, factors, levels)

    def text(self, node: Expression) -> str:
        """Write an expression as formulaic will name it."""
        name = _factor_column(node, self.schema)
        if name is not None:
            return self.factors[name]
        return ast.unparse(
            ast.parse(expressions.write_for_formulaic(node, self.numbers.__getitem__), mode="eval")
        )

    def shows_levels(self, name: str) -> bool:
        """Tell whether a factor's levels were listed by somebody, not read off the values."""
        variable = self.schema.variables[name]
        return isinstance(variable, Factor) and variable.declared

    def labels(self, name: str) -> tuple[Label, ...]:
        """Return the levels of a factor, whether it is one or is made one."""
        variable = self.schema.variables[name]
        if isinstance(variable, Factor):
            return variable.levels
        return tuple(int(v) if v.is_integer() else v for v in self.levels[name].tolist())

    def frame(
        self, rows: Columns, names: tuple[str, ...], what: str, error: type[SynriskError]
    ) -> pd.DataFrame:
        """Return the frame that formulaic sees."""
        columns: dict[str, Any] = {
            self.numbers[name]: rows[name] for name in names if name in self.numbers
        }
        for name in names:
            if name in self.factors:
                codes = self._codes(name, rows, what, error)
                columns[self.factors[name]] = pd.Categorical.from_codes(
                    codes, categories=pd.RangeIndex(len(self.labels(name)))
                )
        return pd.DataFrame(columns)

    def column(
        self, name: str, rows: Columns, what: str, error: type[SynriskError]
    ) -> npt.NDArray[Any]:
        """Return the codes of a factor, or the numbers of another column."""
        return self._codes(name, rows, what, error) if name in self.factors else rows[name]

    def cell(self, column: DesignColumn) -> tuple[tuple[str, int | None], ...]:
        """Return what a design column without functions is the product of."""
        found: list[tuple[str, int | None]] = []
        for part in column.parts:
            name = next(expressions.columns_of(part.expression))
            is_level = _factor_column(part.expression, self.schema) is not None
            found.append((name, self.labels(name).index(part.level) if is_level else None))
        return tuple(found)

    def _codes(self, name: str, rows: Columns, what: str, error: type[SynriskError]) -> IntArray:
        if name not in self.levels:
            return rows[name].astype(np.int64)
        levels = self.levels[name]
        codes = np.minimum(np.searchsorted(levels, rows[name]), len(levels) - 1)
        n_unknown = int((levels[codes] != rows[name]).sum())
        if n_unknown:
            raise error(
                f"{what}: C({name}) has no level for {counted(n_unknown, 'value')} of {name!r} "
                "that the confidential data lack, so the model gives no probability there. "
                f"Use {name!r} without C(), or guesses among the values that occur."
            )
        return codes.astype(np.int64)


def _product(columns: Sequence[FloatArray]) -> FloatArray:
    product = columns[0]
    for column in columns[1:]:
        product = product * column
    return product.reshape(-1, 1)


def _factor_column(node: Expression, schema: Schema) -> str | None:
    if isinstance(node, Column) and isinstance(schema.variables[node.name], Factor):
        return node.name
    return expressions.as_factor(node)


def _freeze_terms(
    parsed: Formula, encoder: _Encoder, frame: pd.DataFrame, states: States
) -> tuple[list[DesignTerm], Any]:
    """Return the terms, and the columns that formulaic makes of a frame."""
    nodes = {encoder.text(factor): factor for term in parsed.terms for factor in term}
    texts = [":".join(encoder.text(factor) for factor in term) for term in parsed.terms]
    one = "1" if parsed.intercept else "0"
    with np.errstate(all="ignore"):
        matrix = _freeze_matrix(" + ".join([one, *texts]), frame, parsed.text, states)
    spec = matrix.model_spec
    structure = {frozenset(str(f) for f in entry.term.factors): entry for entry in spec.structure}
    first = _first_indices(spec.column_names)
    terms = []
    for term, text in zip(parsed.terms, texts, strict=True):
        # A term that is written twice, as factor and factor(factor), is one term.
        entry = structure.pop(frozenset(encoder.text(factor) for factor in term), None)
        if entry is None:
            continue
        columns = tuple(_design_column(name, nodes, encoder, first) for name in entry.columns)
        label = ":".join(expressions.write(factor) for factor in term)
        restricted = spec.subset(f"{text} - 1")
        is_level = [_factor_column(factor, encoder.schema) is not None for factor in term]
        plain = [isinstance(factor, Column) for factor in term]
        is_product = all(plain) and not any(is_level)
        names = expressions.variables(term)
        cells: tuple[tuple[tuple[str, int | None], ...], ...] = ()
        # A column that is a factor in one place and a number in another is left to formulaic.
        is_clear = not any(name in encoder.numbers and name in encoder.factors for name in names)
        if is_clear and not is_product and all(map(operator.or_, plain, is_level)):
            cells = tuple(map(encoder.cell, columns))
        terms.append(DesignTerm(label, names, columns, encoder, restricted, is_product, cells))
    return terms, matrix


def _freeze_matrix(text: str, frame: pd.DataFrame, shown: str, states: States) -> Any:
    # No value is missing here; what a function makes NaN (a log) is counted where it is evaluated.
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        return formulaic.Formula(text, _ordering="none").get_model_matrix(
            frame, na_action="ignore", output="numpy", context={}, transform_state=dict(states)
        )
    raise FormulaError(
        f"Formula {shown!r} cannot be encoded on the confidential data: check the options of its "
        "functions (a spline's df and knots, a polynomial's degree)."
    )


def _materialize(
    spec: Any, frame: pd.DataFrame, label: str, error: type[SynriskError]
) -> FloatArray:
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        matrix = spec.get_model_matrix(frame, context={})
        return np.asarray(matrix, dtype=np.float64)
    raise error(f"{label} cannot be computed for these rows.")


def _first_indices(names: Iterable[str]) -> dict[str, int]:
    """Return for each spline or polynomial the number before formulaic's first index."""
    first: dict[str, int] = {}
    for piece in (piece for name in names for piece in name.split(":")):
        text, _, inside = piece.rpartition("[")
        if inside.removesuffix("]").isdigit():
            index = int(inside.removesuffix("]")) - 1
            first[text] = min(first.get(text, index), index)
    return first


def _design_column(
    name: str, nodes: Mapping[str, Expression], encoder: _Encoder, first: Mapping[str, int]
) -> DesignColumn:
    """Read formulaic's name of a column: ``c0[T.2]:np.log(n0)``; neutral, so unambiguous."""
    parts = []
    for piece in name.split(":"):
        text, _, inside = piece.rpartition("[") if piece.endswith("]") else (piece, "", "")
        node, key = nodes[text], inside.removesuffix("]")
        column = _factor_column(node, encoder.schema)
        if column is not None:
            level = encoder.labels(column)[int(key.removeprefix("T."))]
            against = key.startswith("T.")
            shown = encoder.shows_levels(column)
            parts.append(Part(node, level=level, against_reference=against, shows_level=shown))
        else:
            index = int(key) if key else None
            parts.append(Part(node, index=index, order=1 if index is None else index - first[text]))
    return DesignColumn(tuple(parts))


def _check_degrees(parsed: Formula, rows: Columns) -> None:
    """Raise where a polynomial has as many columns as its column has values, as R does."""
    for node in (factor for term in parsed.terms for factor in term):
        if isinstance(node, Call) and node.function == "poly":
            degree = dict(node.options).get("degree", 1)
            n_values = min(len(distinct(rows[name])) for name in expressions.variables((node,)))
            if not isinstance(degree, tuple) and degree >= n_values:
                raise FormulaError(
                    f"Formula {parsed.text!r}: the degree of {expressions.write(node)} must be "
                    f"less than the number of distinct values, {n_values}."
                )


def _check_row_local(
    design: Design, wholes: Sequence[_AtOnce], parsed: Formula, rows: Columns, n_rows: int
) -> None:
    """Raise unless rows encoded term by term, alone, in part or reversed equal the whole matrix.

    Whatever depends on other rows (a mean that is taken anew, a lag) would give a guess's row
    another encoding than the fit's.
    """
    what = f"Formula {parsed.text!r} on the confidential data"
    names, places = design.variables, parts_to_check(rows, n_rows)
    if len(places) > 1:
        _refuse_not_finite(design, rows, n_rows, what)
    for number, place in enumerate(places):
        own, n_own = {name: rows[name][place] for name in names}, place.stop - place.start
        parts = [at_once.matrix(own, n_own, is_first=number == 0) for at_once in wholes]
        if not _is_row_local(design, np.concatenate(parts, axis=1), own, n_own, what):
            raise FormulaError(
                f"Formula {parsed.text!r}: a row's encoding depends on the other rows, so a guess "
                "cannot be encoded. Compute such columns in the data beforehand."
            )


def _is_row_local(design: Design, whole: FloatArray, rows: Columns, n_rows: int, what: str) -> bool:
    full = design.matrix(rows, n_rows, what, DataError)
    scale = np.maximum(np.abs(full).max(axis=0), 1.0)
    step = max(1, math.isqrt(n_rows))
    parts = [(full, whole)]
    for subset in ([0], [n_rows - 1], list(range(0, n_rows, step))[::-1]):
        part = {name: values[subset] for name, values in rows.items()}
        parts.append((design.matrix(part, len(subset), what, DataError), whole[subset]))
    return all((np.abs(found - expected) <= _SAME * scale).all() for found, expected in parts)


def _refuse_not_finite(design: Design, rows: Columns, n_rows: int, what: str) -> None:
    """Raise where a term is no finite number for some of all rows, and say for how many."""
    for term in design.terms:
        inner = term.inner if isinstance(term, GroupLevelTerm) else term
        if not isinstance(inner, DesignTerm) or not inner.may_be_infinite:
            continue
        n_bad = 0
        for part in chunks(n_rows):
            own = {name: rows[name][part] for name in inner.variables}
            values = inner.values(own, what, DataError)
            n_bad += int((~np.isfinite(values).all(axis=1)).sum())
        inner.refuse(n_bad, n_rows, what, DataError)
