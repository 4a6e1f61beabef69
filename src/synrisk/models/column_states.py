"""What center, scale, bs and poly keep of a column, so that any row is encoded as all were.

By sums over chunks of rows, and for the knots of a spline by the one column that it is of: the same
whether the columns are arrays or are read a chunk at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.chunks import chunks
from synrisk.data.schema import Columns
from synrisk.models.formula.expressions import (
    ELEMENTWISE,
    Call,
    Column,
    Expression,
    Negative,
    Number,
    Operation,
    columns_of,
)

# By the text of a call, as formulaic names it, what its functions keep.
States: TypeAlias = Mapping[str, Mapping[str, Any]]

_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
_SPLINE_DEGREE = 3


def states_of(
    factors: Iterable[Expression], text: Callable[[Expression], str], rows: Columns, n_rows: int
) -> dict[str, dict[str, Any]]:
    """Return what the functions in factors keep of all rows.

    Parameters
    ----------
    factors
        Expressions of numbers.
    text
        Writes an expression as formulaic names it.
    rows, n_rows
        The columns, and how many rows they have.
    """
    found: dict[str, dict[str, Any]] = {}
    for call in (call for factor in factors for call in _calls(factor)):
        own = _Argument(call.argument, text, found, rows, n_rows)
        keep = _KEPT.get(call.function)
        name = text(call)
        if keep is None or name in found:
            continue
        with np.errstate(all="ignore"):  # what is no number is counted where it is evaluated
            kept = keep(own, dict(call.options))
        if kept is not None:
            found[name] = kept
    return found


def _calls(node: Expression) -> Iterator[Call]:
    """Yield the calls in an expression, inner ones first."""
    match node:
        case Operation(_, left, right):
            yield from _calls(left)
            yield from _calls(right)
        case Negative(of):
            yield from _calls(of)
        case Call():
            yield from _calls(node.argument)
            yield node


class _Argument:
    """The argument of a function, a chunk of rows at a time."""

    def __init__(
        self,
        node: Expression,
        text: Callable[[Expression], str],
        states: States,
        rows: Columns,
        n_rows: int,
    ) -> None:
        self.n_rows = n_rows
        self._node, self._text, self._states = node, text, states
        self._rows = {name: rows[name] for name in columns_of(node)}

    def parts(self) -> Iterator[FloatArray]:
        """Yield its values."""
        for part in chunks(self.n_rows):
            own = {name: column[part] for name, column in self._rows.items()}
            values = np.asarray(self._value(self._node, own), dtype=np.float64)
            yield np.broadcast_to(values, part.stop - part.start)

    def whole(self) -> FloatArray:
        """Return all values of this one column."""
        return np.concatenate(list(self.parts()))

    def _value(self, node: Expression, part: Columns) -> Any:
        match node:
            case Column(name):
                return part[name]
            case Number(value):
                return np.float64(value)
            case Negative(of):
                return -self._value(of, part)
            case Operation(sign, left, right):
                return _SIGNS[sign](self._value(left, part), self._value(right, part))
        inner = self._value(node.argument, part)
        if node.function in ELEMENTWISE:
            return getattr(np, node.function)(inner)
        state = self._states.get(self._text(node), {})
        if state.get("center") is not None:
            inner = inner - state["center"]
        return inner / state["scale"] if state.get("scale") is not None else inner


def _of_center(column: _Argument, options: Mapping[str, Any]) -> dict[str, Any]:
    del options
    return _of_scale(column, {"scale": False})


def _of_scale(column: _Argument, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mean, and the standard deviation about it, or what was given for them."""
    centre, scale = options.get("center", True), options.get("scale", True)
    mean: Any = None if centre is False else np.array(centre, dtype=np.float64)
    if centre is True:
        mean = np.float64(sum(part.sum() for part in column.parts())) / column.n_rows
    sd: Any = None if scale is False else np.array(scale, dtype=np.float64)
    if scale is True:
        about = 0.0 if mean is None else mean
        squares = np.float64(sum(((part - about) ** 2).sum() for part in column.parts()))
        sd = np.sqrt(squares / np.float64(column.n_rows - 1))
    return {"ddof": 1, "center": mean, "scale": sd}


def _of_spline(column: _Argument, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the knots: quantiles, of which only the whole column knows."""
    degree = int(options.get("degree", _SPLINE_DEGREE))
    df, inner = options.get("df"), options.get("knots")
    n_inner = 0 if df is None else int(df) - degree - bool(options.get("include_intercept", False))
    if n_inner < 0 or (df is not None and inner is not None):
        return None  # formulaic refuses it
    x = column.whole() if df is not None else None
    # Of what is no number there are no ends.
    ends = np.array([(np.fmin.reduce(part), np.fmax.reduce(part)) for part in column.parts()])
    low = float(options.get("lower_bound", np.fmin.reduce(ends[:, 0])))
    high = float(options.get("upper_bound", np.fmax.reduce(ends[:, 1])))
    knots = [] if inner is None else np.atleast_1d(inner).tolist()
    if x is not None:
        knots = np.nanquantile(x, np.linspace(0, 1, n_inner + 2))[1:-1].tolist()
    padded = np.pad([low, *knots, high], degree, mode="edge").tolist()
    return {"lower_bound": low, "upper_bound": high, "knots": padded}


def _of_polynomial(column: _Argument, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the coefficients of the recurrence of orthogonal polynomials, a pass a degree."""
    if options.get("raw", False):
        return None
    alpha: dict[int, float] = {}
    norms: dict[int, float] = {}
    degree = int(options.get("degree", 1))
    for k in range(degree + 1):
        square, moment = np.float64(0.0), np.float64(0.0)
        for part in column.parts():
            x = part[~np.isnan(part)]
            before, now = np.zeros(len(x)), np.ones(len(x))
            for i in range(1, k + 1):
                further = (x - alpha[i - 1]) * now
                if i > 1:
                    further -= norms[i - 1] / norms[i - 2] * before
                before, now = now, further
            square = square + (now**2).sum()
            moment = moment + (x * now**2).sum()
        norms[k] = square
        if k < degree:
            alpha[k] = moment / square
    return {"alpha": alpha, "norms2": norms}


_KEPT: Mapping[str, Callable[[_Argument, Mapping[str, Any]], dict[str, Any] | None]] = {
    "center": _of_center,
    "scale": _of_scale,
    "bs": _of_spline,
    "poly": _of_polynomial,
}
