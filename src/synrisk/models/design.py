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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import formulaic
import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import DataError, FormulaError, SynriskError, counted
from synrisk.data.schema import Columns, Factor, Label, Schema
from synrisk.models.design_columns import DesignColumn, Part
from synrisk.models.formula import expressions
from synrisk.models.formula.expressions import Call, Column, Expression
from synrisk.models.formula.parser import Formula
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

    def evaluate(
        self, rows: Columns, n_rows: int, what: str, error: type[SynriskError]
    ) -> FloatArray:
        """Return this term's columns for `rows`, shape ``(n_rows, n_columns)``."""
        if self._spec is None:
            return np.ones((n_rows, 1))
        if self.is_product:  # of numbers as they are: formulaic would take a hundred times as long
            return _product([rows[name] for name in self.variables])
        frame = self._encoder.frame(rows, self.variables, what, error)
        with np.errstate(all="ignore"):
            values = _materialize(self._spec, frame, self.label, error)
        n_bad = n_rows - int(np.isfinite(values).all(axis=1).sum())
        if n_bad:
            raise error(
                f"{what}: {self.label} is not a finite number for {counted(n_bad, 'row')} "
                f"of {n_rows:,}."
            )
        return values


AnyTerm: TypeAlias = DesignTerm | GroupLevelTerm | GappedTerm | IsMissing


@dataclass(frozen=True, repr=False)
class Design:
    """The frozen design of one regression."""

    terms: tuple[AnyTerm, ...]

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """All columns, in the order of the coefficients."""
        return tuple(column for term in self.terms for column in term.columns)

    def matrix(
        self, rows: Columns, n_rows: int, what: str, error: type[SynriskError]
    ) -> FloatArray:
        """Return all columns for `rows`, shape ``(n_rows, n_columns)``."""
        blocks = [term.evaluate(rows, n_rows, what, error) for term in self.terms]
        return np.concatenate(blocks, axis=1)

    @classmethod
    def freeze(cls, parsed: Formula, schema: Schema, rows: Columns, n_rows: int) -> Design:
        """Freeze the encoding of `parsed` on the confidential `rows`."""
        gaps = _gaps_of(parsed, schema)
        if gaps:
            return cls(tuple(_frozen_with_gaps(parsed, schema, rows, n_rows, gaps)))
        terms, whole = _frozen(parsed, schema, rows, n_rows)
        own: list[AnyTerm] = [*terms]
        matrices = [whole]
        for group in parsed.groups:
            inside = replace(parsed, intercept=group.intercept, terms=group.terms, groups=())
            slopes, of_slopes = _frozen(inside, schema, rows, n_rows)
            levels, parts = _group_levels(group.grouping, schema, rows)
            for term in slopes:
                columns = tuple(
                    DesignColumn(column.parts, part) for part in parts for column in term.columns
                )
                own.append(GroupLevelTerm(group.grouping, levels, term, columns))
            matrices += _matrices_by_level(slopes, of_slopes, rows[group.grouping], levels)
        design = cls(tuple(own))
        _check_row_local(design, np.concatenate(matrices, axis=1), parsed, rows, n_rows)
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
    there = {name: ~(rows[name] == gap) for name, gap in gaps.items()}
    anywhere = {name: float(np.median(rows[name][known])) for name, known in there.items()}
    filled = dict(rows)
    for name, known in there.items():
        filled[name] = np.where(known, rows[name], anywhere[name])
    inner, whole = _frozen(parsed, schema, filled, n_rows)
    _check_row_local(Design(tuple(inner)), whole, parsed, filled, n_rows)
    unseen = tuple(name for name, known in there.items() if known.all())
    terms: list[AnyTerm] = []
    for term in inner:
        own = {name: gap for name, gap in gaps.items() if name in term.variables}
        terms.append(GappedTerm(term, own, anywhere, unseen) if own else term)
    return [*terms, *(IsMissing(name, gaps[name]) for name in gaps if name not in unseen)]


def _frozen(
    parsed: Formula, schema: Schema, rows: Columns, n_rows: int
) -> tuple[list[DesignTerm], FloatArray]:
    """Return the terms without groups, and their columns for all rows."""
    encoder = _Encoder.of(parsed, schema, rows)
    terms = []
    if parsed.intercept:
        terms.append(DesignTerm("Intercept", (), (DesignColumn(()),), encoder, None))
    _check_degrees(parsed, rows)
    whole: FloatArray = np.ones((n_rows, 1 if parsed.intercept else 0))
    if parsed.terms:
        frozen, whole = _freeze_terms(parsed, encoder, rows)
        terms.extend(frozen)
    return terms, whole


def _group_levels(
    name: str, schema: Schema, rows: Columns
) -> tuple[npt.NDArray[Any], tuple[Part, ...]]:
    """Return the codes or numbers of a grouping column that occur, and what they are called."""
    variable, levels = schema.variables[name], np.unique(rows[name])
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


def _matrices_by_level(
    slopes: Sequence[DesignTerm], whole: FloatArray, found: npt.NDArray[Any], levels: Any
) -> list[FloatArray]:
    """Return, for each term, its columns of all rows times the indicators of the levels."""
    is_level = found[:, None] == levels
    ends = np.cumsum([0, *(len(term.columns) for term in slopes)])
    return [
        (is_level[:, :, None] * whole[:, None, first:last]).reshape(len(found), -1)
        for first, last in itertools.pairwise(ends)
    ]


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
            name: np.unique(rows[name])
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
    parsed: Formula, encoder: _Encoder, rows: Columns
) -> tuple[list[DesignTerm], FloatArray]:
    nodes = {encoder.text(factor): factor for term in parsed.terms for factor in term}
    texts = [":".join(encoder.text(factor) for factor in term) for term in parsed.terms]
    one = "1" if parsed.intercept else "0"
    used = tuple(dict.fromkeys(n for term in parsed.terms for n in expressions.variables(term)))
    frame = encoder.frame(rows, used, "The confidential data", DataError)
    with np.errstate(all="ignore"):
        matrix = _freeze_matrix(" + ".join([one, *texts]), frame, parsed.text)
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
        is_product = all(
            isinstance(factor, Column) and _factor_column(factor, encoder.schema) is None
            for factor in term
        )
        names = expressions.variables(term)
        terms.append(DesignTerm(label, names, columns, encoder, restricted, is_product))
    return terms, np.asarray(matrix, dtype=np.float64)


def _freeze_matrix(text: str, frame: pd.DataFrame, shown: str) -> Any:
    # No value is missing here; what a function makes NaN (a log) is counted where it is evaluated.
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        return formulaic.Formula(text, _ordering="none").get_model_matrix(
            frame, na_action="ignore", output="numpy", context={}
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
            n_values = min(len(np.unique(rows[name])) for name in expressions.variables((node,)))
            if not isinstance(degree, tuple) and degree >= n_values:
                raise FormulaError(
                    f"Formula {parsed.text!r}: the degree of {expressions.write(node)} must be "
                    f"less than the number of distinct values, {n_values}."
                )


def _check_row_local(
    design: Design, whole: FloatArray, parsed: Formula, rows: Columns, n_rows: int
) -> None:
    """Raise unless rows encoded term by term, alone, in part or reversed equal the whole matrix.

    Whatever depends on other rows (a mean that is taken anew, a lag) would give a guess's row
    another encoding than the fit's.
    """
    what = f"Formula {parsed.text!r} on the confidential data"
    full = design.matrix(rows, n_rows, what, DataError)
    scale = np.maximum(np.abs(full).max(axis=0), 1.0)
    step = max(1, math.isqrt(n_rows))
    parts = [(full, whole)]
    for subset in ([0], [n_rows - 1], list(range(0, n_rows, step))[::-1]):
        part = {name: values[subset] for name, values in rows.items()}
        parts.append((design.matrix(part, len(subset), what, DataError), whole[subset]))
    if not all((np.abs(found - expected) <= _SAME * scale).all() for found, expected in parts):
        raise FormulaError(
            f"Formula {parsed.text!r}: a row's encoding depends on the other rows, so a guess "
            "cannot be encoded. Compute such columns in the data beforehand."
        )
