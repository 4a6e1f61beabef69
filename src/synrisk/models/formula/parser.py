"""The formula language: a whitelist, R's spellings, and terms expanded here.

formulaic would evaluate any Python that stands in a formula, so a study file could run code. Here
a formula is read by a parser of its own into a small tree (``expressions``), or refused.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from synrisk.base.errors import FormulaError, listed, nearest
from synrisk.models.formula.expressions import (
    ELEMENTWISE,
    FACTOR_SPELLINGS,
    Call,
    Column,
    Expression,
    Literal,
    Negative,
    Number,
    Operation,
    Term,
    as_factor,
    columns_of,
    contains,
    variables,
)
from synrisk.models.formula.transforms import FUNCTIONS as TRANSFORMS
from synrisk.models.formula.transforms import IDENTITY, Transform, read_transform

_WIDE = ("bs", "poly")  # several columns each, so they cannot stand inside another function
# Function → its options, each with the name that formulaic gives it.
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    **{name: {} for name in ("I", "C", "center", *ELEMENTWISE)},
    "scale": {"center": "center", "scale": "scale"},
    "bs": {
        "df": "df",
        "knots": "knots",
        "degree": "degree",
        "intercept": "include_intercept",
        "include_intercept": "include_intercept",
        "lower_bound": "lower_bound",
        "upper_bound": "upper_bound",
        "Boundary.knots": "Boundary.knots",
    },
    "poly": {"degree": "degree", "raw": "raw"},
}
_SECOND_ARGUMENT = {"bs": "df", "poly": "degree"}  # what R calls an unnamed second argument
FUNCTIONS = tuple(sorted((*_OPTIONS, "as.factor", "factor")))
_MOST_TOKENS, _MOST_NESTED, _MOST_TERMS, _MOST_OPERATIONS = 2_000, 40, 2_000, 100
_LARGEST_OPTION = {"df": 200.0, "degree": 20.0}  # of a spline or polynomial
_MOST_KNOTS = 200


@dataclass(frozen=True)
class GroupTerm:
    """A group-level term ``(x | region)``: coefficients of `terms` for each level of a column."""

    grouping: str
    intercept: bool
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Formula:
    """A parsed formula; terms are in R's order: by degree, then as written."""

    text: str
    response: str
    response_is_factor: bool
    transform: Transform
    intercept: bool
    terms: tuple[Term, ...]
    groups: tuple[GroupTerm, ...] = ()

    @property
    def predictors(self) -> tuple[str, ...]:
        """The columns on the right-hand side, in order of appearance."""
        names = [name for term in self.terms for name in variables(term)]
        for group in self.groups:
            names += [name for term in group.terms for name in variables(term)]
            names.append(group.grouping)
        return tuple(dict.fromkeys(names))


def parse(text: str) -> Formula:
    """Parse a formula such as ``"LogIncome ~ LogExpenditure + I(Age^2)"``.

    Examples
    --------
    >>> parse("y ~ a*b").terms
    ((Column(name='a'),), (Column(name='b'),), (Column(name='a'), Column(name='b')))
    """
    if not isinstance(text, str):
        raise FormulaError(f"A formula is text such as 'y ~ x'; got {type(text).__name__}.")
    wrapped = re.fullmatch(
        r"\s*(?:brms::)?(?:bf|brmsformula|formula|as\.formula)\s*\((.*)\)\s*", text, re.DOTALL
    )
    return _Parser(wrapped.group(1) if wrapped else text, text).formula()


_TOKEN = re.compile(
    r"\s*(?:(?P<name>`[^`]+`|[^\W\d][\w.]*|\.[^\W\d][\w.]*)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<sign>\*\*|\|\||[-~+*/^:(),=|\[\]]))"
)


class _Terms:
    """An ordered set of terms while it is being put together, with the intercept as the term ()."""

    def __init__(self, terms: tuple[Term, ...] = ()) -> None:
        self.terms = tuple(dict.fromkeys(terms))

    def __add__(self, other: _Terms) -> _Terms:
        seen = {frozenset(term) for term in self.terms}
        new = (term for term in other.terms if frozenset(term) not in seen)
        return _Terms((*self.terms, *new))

    def __sub__(self, other: _Terms) -> _Terms:
        gone = {frozenset(term) for term in other.terms}
        return _Terms(tuple(term for term in self.terms if frozenset(term) not in gone))

    def crossed(self, other: _Terms) -> _Terms:
        products: dict[frozenset[Expression], Term] = {}
        for left, right in itertools.product(self.terms, other.terms):
            product = tuple(dict.fromkeys(left + right))
            products.setdefault(frozenset(product), product)
            if len(products) > _MOST_TERMS:
                raise FormulaError(f"A formula of more than {_MOST_TERMS:,} terms is not read.")
        return _Terms(tuple(products.values()))


def _ordered(terms: _Terms) -> tuple[bool, tuple[Term, ...]]:
    """Return whether there is an intercept, and the other terms in R's order."""
    return () in terms.terms, tuple(sorted((term for term in terms.terms if term), key=len))


class _Parser:
    """Recursive descent over R's formula grammar, with R's precedences."""

    def __init__(self, text: str, shown: str) -> None:
        self._shown = shown
        self._tokens = list(self._lex(text))
        self._at = 0
        self._depth = 0
        self._groups: list[GroupTerm] = []
        self._within_group = False

    # -- tokens ---------------------------------------------------------------------------------
    def _lex(self, text: str) -> Iterator[tuple[str, str]]:
        position, n_tokens = 0, 0
        text = text.strip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            if not found:
                symbol = text[position:].lstrip()[:1]
                raise self._error(f"{symbol!r} is not part of the language")
            n_tokens += 1
            if n_tokens > _MOST_TOKENS:
                raise FormulaError(f"A formula of more than {_MOST_TOKENS:,} words is not read.")
            kind = str(found.lastgroup)
            yield kind, found.group(kind)
            position = found.end()

    def _error(self, why: str, hint: str = "") -> FormulaError:
        return FormulaError(
            f"Formula {self._shown!r}: {why}.{hint} Formulas are made of columns, numbers, "
            f"+ - * : / ^ ( ), group-level terms (x | g) and the functions {listed(FUNCTIONS, 30)}."
        )

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _kind(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise self._error(f"expected {token!r}, found {self._peek() or 'the end'!r}")
        self._at += 1

    def _accept(self, *tokens: str) -> str:
        if self._kind() == "sign" and self._peek() in tokens:
            return self._take()
        return ""

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise FormulaError(f"A formula nested more than {_MOST_NESTED} deep is not read.")

    # -- the formula ----------------------------------------------------------------------------
    def formula(self) -> Formula:
        if ("sign", "~") not in self._tokens:
            raise self._error("there is no '~' between response and predictors")
        response, is_factor, transform = self._response()
        self._expect("~")
        terms = self._sum(_Terms(((),)))
        if self._at < len(self._tokens):
            raise self._error(f"unexpected {self._peek()!r}")
        return Formula(
            self._shown, response, is_factor, transform, *_ordered(terms), tuple(self._groups)
        )

    def _response(self) -> tuple[str, bool, Transform]:
        node = self._arithmetic() if self._peek() != "~" else None
        if self._peek() != "~" and node is not None:
            raise self._error(f"expected '~', found {self._peek() or 'the end'!r}")
        column = as_factor(node) if node else None
        if column is not None:
            return column, True, IDENTITY
        found = read_transform(node) if node else None
        if found is not None:
            return found[0], False, found[1]
        raise self._error(
            "the response must be a column, C(column) for a categorical one, or a transform whose "
            f"inverse is known: {listed(TRANSFORMS)}, a column plus, minus, times or over a "
            "number, and these in one another"
        )

    def _sum(self, start: _Terms) -> _Terms:
        self._deeper()
        sign = self._accept("+", "-") or "+"
        total = self._signed(start, sign)
        while sign := self._accept("+", "-"):
            total = self._signed(total, sign)
        self._depth -= 1
        return total

    def _signed(self, total: _Terms, sign: str) -> _Terms:
        if self._peek() == "(" and self._holds_bar():
            if sign == "-" or self._depth > 1 or self._within_group:
                raise self._error("a group-level term such as (1 | g) is added by itself")
            self._groups.append(self._group_term())
            return total
        if self._kind() == "number":
            number = self._take()
            if self._depth > 1:
                raise self._error("0 and 1 stand for the intercept and cannot be in parentheses")
            if number not in ("0", "1"):
                raise self._error(
                    f"the number {number} cannot be a term; arithmetic belongs in I(…)"
                )
            with_intercept = (number == "1") == (sign == "+")
            return _Terms(((),)) + total if with_intercept else total - _Terms(((),))
        part = self._product()
        return total + part if sign == "+" else total - part

    def _product(self) -> _Terms:
        left = self._interaction()
        while sign := self._accept("*", "/"):
            right = self._interaction()
            if sign == "*":
                left = left + right + left.crossed(right)
            else:  # a/b: b within a
                everything = tuple(dict.fromkeys(itertools.chain.from_iterable(left.terms)))
                left = left + _Terms((everything,)).crossed(right)
        return left

    def _interaction(self) -> _Terms:
        left = self._power()
        while self._accept(":"):
            left = left.crossed(self._power())
        return left

    def _power(self) -> _Terms:
        grouped = self._peek() == "("
        base = self._group()
        if not self._accept("^", "**"):
            return base
        if not grouped:
            raise self._error("a power outside I(…) crosses terms; write I(x^2) for the square")
        exponent = self._take()
        if exponent not in tuple("123456789"):
            raise self._error("the exponent of a group must be a whole number from 1 to 9")
        result = base
        for _ in range(int(exponent) - 1):
            result = result + result.crossed(base)
        return result

    def _group(self) -> _Terms:
        if self._accept("("):
            inner = self._sum(_Terms())
            self._expect(")")
            return inner
        if self._kind() == "number":
            raise self._error(
                f"the number {self._peek()} cannot be part of a term; arithmetic belongs in I(…)"
            )
        return _Terms(((self._atom_expression(),),))

    # -- group-level terms ----------------------------------------------------------------------
    def _holds_bar(self) -> bool:
        """Tell whether the parentheses that open here hold a ``|`` of their own."""
        depth = 0
        for kind, text in self._tokens[self._at :]:
            if kind != "sign":
                continue
            depth += (text == "(") - (text == ")")
            if depth == 0:
                return False
            if depth == 1 and text in ("|", "||"):
                return True
        return False

    def _group_term(self) -> GroupTerm:
        """Read ``(x | g)``; ``||`` says something of the coefficients' prior alone."""
        self._expect("(")
        outside, self._depth, self._within_group = self._depth, 0, True
        terms = self._sum(_Terms(((),)))
        self._depth, self._within_group = outside, False
        if not self._accept("|", "||"):
            raise self._error(f"expected '|', found {self._peek() or 'the end'!r}")
        if self._kind() != "name":
            raise self._error(f"expected a column after '|', found {self._peek() or 'the end'!r}")
        grouping = self._take().strip("`")
        if self._peek() != ")":
            raise self._error(
                f"group-level terms are of one column: (1 | {grouping}); make a column of "
                "combinations for nested or crossed levels"
            )
        self._expect(")")
        intercept, slopes = _ordered(terms)
        if not intercept and not slopes:
            raise self._error(f"the group-level term of {grouping} is empty")
        if any(name == grouping for term in slopes for name in variables(term)):
            raise self._error(f"{grouping} cannot vary by its own levels")
        for known in self._groups:
            both = known.intercept and intercept, {frozenset(t) for t in known.terms}
            if known.grouping == grouping and (
                both[0] or both[1] & {frozenset(term) for term in slopes}
            ):
                raise self._error(f"a group-level term of {grouping} is given twice")
        return GroupTerm(grouping, intercept, slopes)

    # -- expressions inside functions -----------------------------------------------------------
    def _atom_expression(self) -> Expression:
        if self._kind() != "name":
            raise self._error(f"expected a column or function, found {self._peek() or 'the end'!r}")
        name = self._take()
        if name.startswith("`"):
            return Column(name.strip("`"))
        return self._call(name) if self._accept("(") else Column(name)

    def _call(self, name: str) -> Call:
        function = "C" if name in FACTOR_SPELLINGS else name
        if function not in _OPTIONS:
            raise self._error(f"the function {name} is not known", nearest(name, FUNCTIONS))
        start = self._at - 2
        argument = self._arithmetic()
        if self._at - start > 2 * _MOST_OPERATIONS:
            raise FormulaError(f"A function of over {_MOST_OPERATIONS} operations is not read.")
        if function == "C" and not isinstance(argument, Column):
            raise self._error(f"{name}(…) takes a column")
        if any(contains(argument, wide) for wide in _WIDE) or contains(argument, "C"):
            raise self._error(f"bs, poly and factors cannot stand inside {name}(…)")
        if not any(True for _ in columns_of(argument)):
            raise self._error(f"{name}(…) holds no column")
        options: dict[str, Literal] = {}
        while self._accept(","):
            options |= self._option(name, function)
        self._expect(")")
        written = "".join(token for _, token in self._tokens[start : self._at])
        return Call(function, argument, tuple(options.items()), written)

    def _option(self, name: str, function: str) -> dict[str, Literal]:
        if self._kind() == "name":
            key = self._take()
            self._expect("=")
        else:
            key = _SECOND_ARGUMENT.get(function, "")
        known = _OPTIONS[function]
        if key not in known:
            allowed = listed(known) if known else "none"
            raise self._error(f"{name}(…) takes these options: {allowed}")
        value = self._value()
        if known[key] == "Boundary.knots":
            if not (isinstance(value, tuple) and len(value) == 2):
                raise self._error("Boundary.knots takes two numbers: c(low, high)")
            return {"lower_bound": value[0], "upper_bound": value[1]}
        if known[key] == "knots" and not isinstance(value, tuple):
            value = (float(value),)
        largest = _LARGEST_OPTION.get(known[key], np.inf)
        many = isinstance(value, tuple) and len(value) > _MOST_KNOTS
        if many or (not isinstance(value, tuple) and not -1e300 < value <= largest):
            raise self._error(f"{key} of {name}(…) is too large; at most {largest:g} is read")
        return {known[key]: value}

    def _value(self) -> Literal:
        if self._peek() in ("TRUE", "True", "FALSE", "False"):
            return self._take() in ("TRUE", "True")
        closing = ""
        if self._peek() == "c":
            self._take()
            self._expect("(")
            closing = ")"
        elif self._accept("["):
            closing = "]"
        if not closing:
            return self._number()
        values = [self._number()]
        while self._accept(","):
            values.append(self._number())
        self._expect(closing)
        return tuple(values)

    def _number(self) -> float:
        sign = -1.0 if self._accept("-") else 1.0
        if self._kind() != "number":
            raise self._error(f"expected a number, found {self._peek() or 'the end'!r}")
        return sign * float(self._take())

    def _arithmetic(self) -> Expression:
        self._deeper()
        node = self._multiplied()
        while sign := self._accept("+", "-"):
            node = Operation(sign, node, self._multiplied())
        self._depth -= 1
        return node

    def _multiplied(self) -> Expression:
        node = self._negated()
        while sign := self._accept("*", "/"):
            node = Operation(sign, node, self._negated())
        return node

    def _negated(self) -> Expression:
        if self._accept("-"):
            self._deeper()
            node = Negative(self._negated())
            self._depth -= 1
            return node
        self._accept("+")
        return self._raised()

    def _raised(self) -> Expression:
        base = self._primary()
        if not self._accept("^", "**"):
            return base
        self._deeper()
        node = Operation("**", base, self._negated())
        self._depth -= 1
        return node

    def _primary(self) -> Expression:
        if self._accept("("):
            node = self._arithmetic()
            self._expect(")")
            return node
        if self._kind() == "number":
            return Number(float(self._take()))
        return self._atom_expression()
