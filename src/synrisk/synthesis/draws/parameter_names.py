"""The names under which each parameter of a regression may stand in a table of draws.

rstanarm's, brms', CmdStan's and plain names, and these as R mangles them (``X.Intercept.``).
Levels that were read off the data do not stand in messages: ``Race[*]``. Neither do columns of a
table that may hold one, in whatever spelling.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from synrisk.base.errors import DrawsError, listed
from synrisk.base.messages import either
from synrisk.data.schema import Factor, Label, Variable
from synrisk.models.design import Design
from synrisk.models.design_columns import Part
from synrisk.models.families import Family
from synrisk.models.formula import expressions
from synrisk.synthesis.draws.spelling import (
    as_brms,
    as_mangled,
    as_stan,
    canonical,
    group_level_names,
    is_of_prior,
    level_texts,
    part_texts,
    r_names,
    without_group_level,
)

_INTERCEPTS = ("Intercept", "(Intercept)")
_VECTOR = re.compile(r"(?P<stem>beta|b|coef|theta)(?:\.(?P<dot>\d+)\.?|\[(?P<bracket>\d+)\])")
_ORDERS = ("level:term", "term:level")
RENAME = either("rename={column: parameter}", '[[model]] rename.column = "parameter"')
_MOST_NAMES = 5_000  # spellings of one column as R mangles them
_ELEMENT = re.compile(r"(?P<stem>\w+?)(?:\[[\d,]+\]|(?:\.\d+)+\.?)")
_OF_BRMS_LEVEL = re.compile(r"(?:b_)?mu.+_.+|Intercept_mu.+")  # of another model's response
_FACTOR_IN_R = r"(?:b_)?(?:(?:as\.)?(?:factor|ordered)[.(]?|C\()?"


@dataclass(frozen=True)
class Parameter:
    """A parameter: of a level (its code, else 0) and design column, or auxiliary (code -1)."""

    code: int
    column: int


class Spellings:
    """The names under which each parameter may stand in a table.

    Parameters
    ----------
    family, response, design
        The regression.
    data_columns
        The columns of the confidential data: what follows one of them in a name may be a level.
    others
        Names of columns that hold no level, whatever they begin with.
    """

    def __init__(
        self,
        family: Family,
        response: Variable,
        design: Design,
        data_columns: frozenset[str] = frozenset(),
        others: Iterable[str] = (),
    ) -> None:
        self._data_columns = data_columns
        self._harmless = {
            *_INTERCEPTS, "alpha", *family.auxiliary_names, *data_columns, *others,
            *(name for own in family.auxiliary for name in own.aliases),
        }  # fmt: skip
        self._columns = design.columns
        self._auxiliary = family.auxiliary_names
        self._auxiliary_aliases = [(own.name, *own.aliases) for own in family.auxiliary]
        self._response = response
        by_level = isinstance(response, Factor) and bool(family.predictor_levels(response))
        self._levels: list[Label] = (
            list(response.levels) if by_level and isinstance(response, Factor) else []
        )
        self._shows_levels = isinstance(response, Factor) and response.declared
        self._shown: dict[str, set[Parameter]] = {}
        for parameter in self.parameters():
            self._shown.setdefault(self.name(parameter), set()).add(parameter)
        everywhere = [column for column in self._columns if column.group is None]
        parts = list(dict.fromkeys(part for column in everywhere for part in column.parts))
        self._plain, self._brms = _index(parts, canonical), _index(parts, as_brms)
        self._by_parts = {
            frozenset(column.parts): k
            for k, column in enumerate(self._columns)
            if column.group is None
        }
        self._groupings = tuple(
            dict.fromkeys(expressions.write(c.group.expression) for c in self._columns if c.group)
        )
        self._of_groups: dict[str, set[Parameter]] = {}
        for parameter in self.parameters():
            for name in self._names_by_group(parameter):
                self._of_groups.setdefault(name, set()).add(parameter)
        self._mangled: dict[str, set[Parameter]] = {}
        for parameter in self.parameters():
            for name in itertools.islice(self._mangled_names(parameter), _MOST_NAMES):
                self._mangled.setdefault(as_mangled(name), set()).add(parameter)

    def parameters(self) -> Iterator[Parameter]:
        """Every parameter that there might be, of every level."""
        for code in range(max(len(self._levels), 1)):
            yield from (Parameter(code, k) for k in range(len(self._columns)))
        yield from (Parameter(-1, k) for k in range(len(self._auxiliary)))

    def name(self, parameter: Parameter) -> str:
        """The parameter as a user sees it."""
        if parameter.code == -1:
            return self._auxiliary[parameter.column]
        column = str(self._columns[parameter.column])
        return f"{self._levels[parameter.code]}:{column}" if self._levels else column

    def public(self, parameters: Iterable[Parameter]) -> str:
        """The parameters for a message, without levels that were read off the data."""
        names: Counter[str] = Counter()
        for parameter in parameters:
            if parameter.code == -1:
                names[self._auxiliary[parameter.column]] += 1
                continue
            column = self._columns[parameter.column].public
            level = self._levels[parameter.code] if self._shows_levels and self._levels else "*"
            names[f"{level}:{column}" if self._levels else column] += 1
        return listed((n if k == 1 else f"{n} ({k} of them)" for n, k in names.items()), 30)

    # -- columns of a table, for messages -------------------------------------------------------
    def column(self, name: str) -> str:
        """The column in quotes, or without the level that nobody declared."""
        shown = self._without_levels(name)
        return repr(name) if shown == name else f"{shown} (of a level that nobody declared)"

    def columns(self, names: Iterable[object], limit: int = 12) -> str:
        """The columns in a list, those of levels that nobody declared by their number."""
        shown = Counter(self._without_levels(str(name)) for name in names)
        return listed((n if k == 1 else f"{n} ({k} of them)" for n, k in shown.items()), limit)

    def _without_levels(self, name: str) -> str:
        """Return a column's name; where it may hold a level that nobody declared, a part of it."""
        if self._is_harmless(name):
            return name
        meant = self.find(name)[0]
        if meant:
            return name if all(map(self._is_public, meant)) else self.public([min(meant, key=str)])
        if self._levels and not self._shows_levels and any(True for _ in self._split(name)):
            return f"{self._response.name}[*]"
        by_group = without_group_level(name, self._data_columns)
        if by_group is not None:
            return by_group
        if _OF_BRMS_LEVEL.fullmatch(name):
            return "mu*"
        pieces = name.split(":")
        return ":".join(self._piece_without_level(piece, len(pieces) > 1) for piece in pieces)

    def _is_harmless(self, name: str) -> bool:
        if name in self._harmless or name.removeprefix("b_") in self._harmless:
            return True
        element = _ELEMENT.fullmatch(name)
        return element is not None and element["stem"] not in self._data_columns

    def _is_public(self, parameter: Parameter) -> bool:
        if parameter.code == -1:
            return True
        shows_level, column = (
            self._shows_levels or not self._levels,
            self._columns[parameter.column],
        )
        parts = (*column.parts, *([] if column.group is None else [column.group]))
        return shows_level and all(part.shows_level for part in parts)

    def _piece_without_level(self, piece: str, is_product: bool) -> str:
        """Return a factor of a column's name: what follows the name of a variable is left out."""
        if self._is_harmless(piece):
            return piece
        declared = {
            expressions.as_factor(part.expression) or expressions.write(part.expression)
            for column in self._columns
            for part in column.parts
            if part.level is not None and part.shows_level
        }
        for base in sorted((*self._data_columns, "Intercept"), key=len, reverse=True):
            spelt = "|".join(re.escape(text) for text in {base, as_mangled(base), as_brms(base)})
            if re.fullmatch(rf"{_FACTOR_IN_R}(?:{spelt})\)?.+", piece):
                return piece if base in declared else f"{base}[*]"
        return "*" if is_product else piece

    def wanted(self, levels: Sequence[int]) -> list[Parameter]:
        """Return every parameter that must be there, given the levels that have columns."""
        return [p for code in (*levels, -1) for p in self.parameters() if p.code == code]

    # -- one name -------------------------------------------------------------------------------
    def find(self, name: str, order: str = "") -> tuple[set[Parameter], bool]:
        """Return the parameters that a column's name may mean, and whether brms writes it so.

        `order` is how the table joins levels and terms, ``"level:term"`` or ``"term:level"``.
        """
        shown = self._shown.get(name, set())
        if len(shown) == 1 and order != "term:level":
            return shown, False
        if name in self._of_groups:
            return self._of_groups[name], False
        found: set[Parameter] = set()
        by_brms = False
        for k, known in enumerate(self._auxiliary_aliases):
            if name.removeprefix(f"{self._response.name}_") in known or name in known:
                found.add(Parameter(-1, k))
        for code, base, style in self._split(name):
            if order and style in _ORDERS and style != order:
                continue
            for column in self._find_columns(base, style == "brms"):
                found.add(Parameter(code, column))
                by_brms = by_brms or style == "brms"
        return found or self._mangled.get(re.sub(r"\W+", ".", name), set()), by_brms

    def order(self, names: Sequence[str]) -> str:
        """Return how a table joins levels and terms; empty where its names do not tell.

        Where levels are called like terms, a name alone does not tell: ``x:z`` may be either. All
        names of a table are joined in one way, and the intercept shows which.
        """
        able = dict.fromkeys(_ORDERS, True)
        for name in names:
            ways = {
                style
                for _, base, style in self._split(name)
                if style in _ORDERS and self._find_columns(base, False)
            }
            for order in _ORDERS if ways else ():
                able[order] = able[order] and order in ways
        possible = [order for order in _ORDERS if able[order]]
        return possible[0] if len(possible) == 1 else ""

    def _split(self, name: str) -> Iterator[tuple[int, str, str]]:
        """Take the level off a name: yield its code, the rest, and the style it is written in."""
        if not self._levels:
            yield 0, name, "plain"
            if name.startswith("b_"):
                yield 0, name.removeprefix("b_"), "brms"
            return
        for code, level in enumerate(self._levels):
            for text in level_texts(level):
                if name.startswith(f"{text}:"):
                    yield code, name[len(text) + 1 :], "level:term"
                if name.endswith(f":{text}"):
                    yield code, name[: -len(text) - 1], "term:level"
                if name.endswith(f"[{text}]"):
                    yield code, name[: -len(text) - 2], "plain"
                for start in {f"mu{spelt}_" for spelt in (as_stan(text), as_brms(text))}:
                    for prefix in (start, f"b_{start}"):
                        if name.startswith(prefix):
                            yield code, name[len(prefix) :], "brms"

    def _find_columns(self, base: str, brms: bool) -> set[int]:
        intercepts = _INTERCEPTS if "alpha" in self._shown else (*_INTERCEPTS, "alpha")
        if base in intercepts:
            return {self._by_parts[frozenset()]} if frozenset() in self._by_parts else set()
        index = self._brms if brms else self._plain
        pieces = base.split(":") if brms else canonical(base).split(":")
        choices = [index.get(piece, set()) for piece in pieces]
        found = {
            self._by_parts.get(frozenset(choice), -1) for choice in itertools.product(*choices)
        }
        return found - {-1}

    def _mangled_names(self, parameter: Parameter) -> Iterator[str]:
        """Yield the names that R would mangle: as the formula and as a bare factor writes them."""
        if parameter.code == -1:
            yield self._auxiliary[parameter.column]
            return
        if self._columns[parameter.column].group is not None:
            yield from self._names_by_group(parameter)
            return
        for base in r_names(self._columns[parameter.column]):
            if not self._levels:
                yield base
                yield f"b_{as_brms(base)}"
                continue
            for text in level_texts(self._levels[parameter.code]):
                yield f"{text}:{base}"
                yield f"{base}:{text}"
                yield f"b_mu{as_stan(text)}_{as_brms(base)}"

    def _names_by_group(self, parameter: Parameter) -> Iterator[str]:
        """Yield the names of a coefficient of a group-level term; of others none."""
        if parameter.code == -1:
            return
        texts = level_texts(self._levels[parameter.code]) if self._levels else (None,)
        for text in texts:
            yield from group_level_names(self._columns[parameter.column], text)

    def is_of_prior(self, name: str) -> bool:
        """Tell whether a column is of the prior of group-level coefficients: it is not needed."""
        return any(is_of_prior(name, grouping) for grouping in self._groupings)

    # -- all names ------------------------------------------------------------------------------
    def match(self, names: list[str], what: str) -> tuple[dict[Parameter, str], list[str]]:
        """Return the column of each parameter found, and the columns that are none."""
        matched: dict[Parameter, str] = {}
        left_over: list[str] = []
        for name, parameters in self._meanings(names).items():
            if not parameters:
                left_over.append(name)
                continue
            if len(parameters) > 1:
                raise DrawsError(
                    f"{what}: the column {self.column(name)} may be any of "
                    f"{self.public(parameters)}; say which with {RENAME}, the parameter as "
                    f"{either('describe() and draws() name', 'the formula spells')} it."
                )
            (parameter,) = parameters
            if parameter in matched:
                raise DrawsError(
                    f"{what}: {self.public([parameter])} is given twice, by "
                    f"{self.column(matched[parameter])} and {self.column(name)}; leave one out."
                )
            matched[parameter] = name
        return self._match_vector(matched, left_over)

    def _meanings(self, names: list[str]) -> dict[str, set[Parameter]]:
        """Return the parameters that each name may mean, given all names of the table."""
        order = self.order(names) if self._levels else ""
        found = {name: self.find(name, order) for name in names}
        if self._levels and not order:  # both ways fit every name; do they say the same?
            for name in names:
                first, second = (self.find(name, way)[0] for way in _ORDERS)
                if first and second and first != second:
                    found[name] = (first | second, False)
        # brms' own `Intercept` is that of centred predictors; `b_Intercept` is the one.
        by_brms = any(by_brms for _, by_brms in found.values())
        return {
            name: parameters
            for name, (parameters, _) in found.items()
            if not (by_brms and re.fullmatch(r"Intercept(_mu.*)?", name))
        }

    def _match_vector(
        self, matched: dict[Parameter, str], left_over: list[str]
    ) -> tuple[dict[Parameter, str], list[str]]:
        """Read CmdStan's ``beta.1 …`` as the coefficients in the design's order.

        Only if its length is that of all coefficients, or of all but an intercept that stands
        by itself (as ``alpha`` or by name).
        """
        own = {parameter for parameter in matched if parameter.code == 0}
        if self._levels or any(self._columns[parameter.column].parts for parameter in own):
            return matched, left_over
        places = [k for k in range(len(self._columns)) if Parameter(0, k) not in own]
        elements = _vector(left_over)
        if len(elements) != len(places):
            return matched, left_over
        read = {Parameter(0, k): name for k, name in zip(places, elements, strict=True)}
        return matched | read, [name for name in left_over if name not in elements]


def _vector(names: Sequence[str]) -> list[str]:
    """Return the elements of the one vector among names, in order; none if some are missing."""
    entries = {name: seen for name in names if (seen := _VECTOR.fullmatch(name))}
    if len({seen["stem"] for seen in entries.values()}) != 1:
        return []
    by_index = {int(seen["dot"] or seen["bracket"]): name for name, seen in entries.items()}
    whole = sorted(by_index) == list(range(1, len(entries) + 1))
    return [by_index[i] for i in sorted(by_index)] if whole else []


def _index(parts: Sequence[Part], spelling: Any) -> dict[str, set[Part]]:
    index: dict[str, set[Part]] = {}
    for part in parts:
        for text in part_texts(part):
            index.setdefault(spelling(canonical(text)), set()).add(part)
    return index
