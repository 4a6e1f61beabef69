"""Expressions: the small tree that a formula is read into, and how it is written as text.

Only trees of known functions, columns and numbers exist; what formulaic sees is written from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Literal: TypeAlias = float | bool | tuple[float, ...]


@dataclass(frozen=True)
class Column:
    """A column of the data."""

    name: str


@dataclass(frozen=True)
class Number:
    """A number written in a formula."""

    value: float


@dataclass(frozen=True)
class Operation:
    """Arithmetic on two expressions, element by element."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Negative:
    """The negative of an expression."""

    of: Expression


@dataclass(frozen=True)
class Call:
    """A whitelisted function of one expression, with literal options."""

    function: str
    argument: Expression
    options: tuple[tuple[str, Literal], ...] = ()
    written: str = field(default="", compare=False)  # as in the formula, without blanks


Expression: TypeAlias = Column | Number | Operation | Negative | Call
# A term is a product of factors; its columns are products of theirs.
Term: TypeAlias = tuple[Expression, ...]

FACTOR_SPELLINGS = ("C", "factor", "as.factor")
ELEMENTWISE = ("log", "log1p", "log2", "log10", "exp", "expm1", "sqrt", "abs")
_CONTINUED = "extrapolation='extend'"


def variables(term: Term) -> tuple[str, ...]:
    """Return the columns that a term mentions, in order of appearance."""
    return tuple(dict.fromkeys(name for factor in term for name in columns_of(factor)))


def columns_of(node: Expression) -> Iterator[str]:
    """Yield the columns that an expression mentions."""
    match node:
        case Column(name):
            yield name
        case Operation(_, left, right):
            yield from columns_of(left)
            yield from columns_of(right)
        case Negative(of) | Call(_, of, _):
            yield from columns_of(of)


def as_factor(node: Expression) -> str | None:
    """Return the column that ``C(column)`` makes a factor of, or None for other expressions."""
    if isinstance(node, Call) and node.function == "C":
        return next(columns_of(node))
    return None


def write(
    node: Expression,
    *,
    column: Callable[[str], str] = str,
    function: Callable[[str], str] = str,
    number: Callable[[float], str] | None = None,
    power: str = " ** ",
    space: str = " ",
) -> str:
    """Write an expression as text; the defaults write it as formulaic names it."""

    def down(inner: Expression, binding: int = 0) -> str:
        text = write(
            inner, column=column, function=function, number=number, power=power, space=space
        )
        return f"({text})" if _binding(inner) < binding else text

    own = _binding(node)
    match node:
        case Column(name):
            return column(name)
        case Number(value):
            return (number or _plain)(value)
        case Negative(of):
            return f"-{down(of, own)}"
        case Operation("**", left, right):
            return f"{down(left, own + 1)}{power}{down(right, own - 1)}"
        case Operation(sign, left, right):
            return f"{down(left, own)}{space}{sign}{space}{down(right, own + 1)}"
        case Call(name, argument, options):
            words = [down(argument), *(f"{key}={_literal(value)}" for key, value in options)]
            return f"{function(name)}({f',{space}'.join(words)})"


def _binding(node: Expression) -> int:
    """Return how tightly an expression holds together, for parentheses."""
    match node:
        case Operation("+" | "-", _, _):
            return 1
        case Operation("*" | "/", _, _):
            return 2
        case Negative():
            return 3
        case Operation():
            return 4
        case _:
            return 5


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def _literal(value: Literal) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(_plain(v) for v in value) + "]"
    return _plain(value)


def write_for_formulaic(node: Expression, column: Callable[[str], str]) -> str:
    """Write an expression for formulaic, its columns renamed by `column`."""
    if isinstance(node, Call) and node.function == "bs":
        # R's bs continues its polynomials beyond the boundary knots; formulaic would stop.
        inner = write_for_formulaic(node.argument, column)
        options = [f"{key}={_literal(value)}" for key, value in node.options]
        return f"bs({', '.join([inner, *options, _CONTINUED])})"
    return write(
        node,
        column=column,
        function=lambda name: f"np.{name}" if name in ELEMENTWISE else name,
        number=lambda value: repr(float(value)),  # integers would grow without bound in a power
    )


def contains(node: Expression, function: str) -> bool:
    """Tell whether a function is called anywhere in an expression."""
    match node:
        case Call(name, argument, _):
            return name == function or contains(argument, function)
        case Operation(_, left, right):
            return contains(left, function) or contains(right, function)
        case Negative(of):
            return contains(of, function)
        case _:
            return False
