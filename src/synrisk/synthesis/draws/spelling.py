"""How rstanarm, brms, CmdStan and Bambi write the columns of a design in names of draws."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

import numpy as np

from synrisk.data.schema import MISSING_LABEL, Label
from synrisk.models.design_columns import DesignColumn, Part
from synrisk.models.formula import expressions
from synrisk.models.formula.expressions import FACTOR_SPELLINGS, Call

# What brms makes of symbols in the names of terms (rename() in its sources).
_BRMS_SYMBOLS = {
    **dict.fromkeys(" ()[],\"'?", ""),
    "+": "P", "-": "M", "*": "MU", "/": "D", "^": "E", "=": "EQ",
}  # fmt: skip
_BLANK = r"[ \t\r\n]"
_NUMBER = re.compile(r"(?<![\w.\]])(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")


def part_texts(part: Part) -> Iterator[str]:
    """Yield the ways to write one factor of a column."""
    column = expressions.as_factor(part.expression)
    if part.level is not None:
        name = column if column is not None else expressions.write(part.expression)
        bases = (name, *(f"{spelling}({name})" for spelling in FACTOR_SPELLINGS))
        for base, text in itertools.product(bases, level_texts(part.level)):
            yield f"{base}[T.{text}]"
            yield f"{base}[{text}]"
            yield f"{base}{text}"
        return
    for base in _expression_texts(part):
        if part.index is None:
            yield base
        else:
            yield f"{base}{part.order}"
    if part.index is not None:
        yield str(part)


def _expression_texts(part: Part) -> Iterator[str]:
    node = part.expression
    texts = [expressions.write(node), expressions.write(node, power="^", space="")]
    if isinstance(node, Call):
        texts.append(node.written)
        if len(node.options) == 1:  # bs(x, 4) and poly(x, 2): the option without its name
            texts.append(re.sub(r",(df|degree)=", ",", texts[1]))
    for text in texts:
        yield text
        in_r = re.sub(r"\[(.*?)\]", r"c(\1)", text)
        yield in_r.replace("=True", "=TRUE").replace("=False", "=FALSE")


def r_names(column: DesignColumn) -> Iterator[str]:
    """Yield a column's name as R writes it, factors as in the formula or already made ones."""
    if not column.parts:
        yield "(Intercept)"
        return
    ways = []
    for part in column.parts:
        name = expressions.as_factor(part.expression)
        if part.level is None:
            ways.append([next(part_texts(part)), *list(part_texts(part))[1:8]])
            continue
        own = part.expression.written if isinstance(part.expression, Call) else ""
        bases = {base for base in (own, name or expressions.write(part.expression)) if base}
        ways.append([f"{b}{t}" for b in sorted(bases) for t in level_texts(part.level)])
    yield from (":".join(texts) for texts in itertools.product(*ways))


def level_texts(level: Label) -> tuple[str, ...]:
    """Return the ways to write a level."""
    if isinstance(level, bool | np.bool_):
        return (str(level), str(level).upper())
    return ("NA", MISSING_LABEL) if level == MISSING_LABEL else (str(level),)


def canonical(name: str) -> str:
    """Return a name without blanks, powers as R writes them and numbers in one form."""
    bare = re.sub(r"[\s`]", "", name).replace("**", "^")
    return _NUMBER.sub(lambda seen: f"{float(seen.group()):.15g}", bare)


def as_mangled(name: str) -> str:
    """Return `name` as R's make.names would write it, each run of symbols as one dot."""
    text = re.sub(r"\W+", ".", name)
    return text if re.match(r"[^\W\d_]", text) else f"X{text}"


def as_brms(name: str) -> str:
    """Return a term as brms writes it after ``b_``."""
    return "".join(_BRMS_SYMBOLS.get(symbol, symbol) for symbol in name)


def as_stan(name: str) -> str:
    """Return a level as brms writes it after ``mu``: letters and digits alone."""
    return re.sub(r"[\W_]+", "", name)


def group_level_names(column: DesignColumn, of_level: str | None) -> Iterator[str]:
    """Yield the names of a coefficient of a group-level term, for a level of the response if any.

    brms has ``r_region[North,x]``, with a point for each blank of a level, rstanarm
    ``b[x region:North]``, with underscores, Bambi ``x|region[North]``.
    """
    part = column.group
    if part is None or part.level is None:
        return
    group, plain = expressions.write(part.expression), DesignColumn(column.parts)
    in_r = list(dict.fromkeys(r_names(plain)))
    of_mu = "" if of_level is None else f"__mu{as_stan(of_level)}"
    last = "" if of_level is None else f"[{of_level}]"
    for text in level_texts(part.level):
        for name in in_r:
            in_brms = as_brms(name) if column.parts else "Intercept"
            yield f"r_{group}{of_mu}[{re.sub(_BLANK, '.', text)},{in_brms}]"
            if of_level is None:
                yield f"b[{name} {group}:{text.replace(' ', '_')}]"
        yield f"{str(plain) if column.parts else '1'}|{group}[{text}]{last}"
        (only, *others) = column.parts or (None,)
        if only is not None and only.level is not None and not others:
            slope = expressions.as_factor(only.expression) or expressions.write(only.expression)
            for label in level_texts(only.level):
                yield f"{slope}|{group}[{label},{text}]{last}"
                yield f"{slope}[{label}]|{group}[{text}]{last}"


def is_of_prior(name: str, grouping: str) -> bool:
    """Tell whether a column is of the prior of group-level coefficients, or of a new group's.

    Standard deviations and correlations, Bambi's coefficients before they are scaled, and the level
    that rstanarm adds. The density of a response is that of its level's coefficients alone.
    """
    g = re.escape(grouping)
    patterns = (
        rf"(sd|cor)_{g}__.+",
        rf"Sigma\[{g}:.+\]|Sigma\.{g}\..+",
        rf"b(\[.+ |\..+\.){g}[:.]_NEW_{g}[\].]",
        rf".+\|{g}_(sigma|offset)(\[.*\])*",
    )
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def without_group_level(name: str, groupings: Iterable[str]) -> str | None:
    """Return what a column of a group-level coefficient is called without its level; else None."""
    for grouping in sorted(groupings, key=len, reverse=True):
        spelt = "|".join(re.escape(text) for text in {grouping, as_mangled(grouping)})
        in_r = rf"(?:r_|X?b[\[.].*[ .])(?:{spelt})(?:__mu\w+)?[\[:.].+"
        found = re.fullmatch(rf"{in_r}|.*\|(?:{spelt})\b.*|.*\|(?:{spelt})_.+", name)
        if found:
            return f"coefficients by {grouping}"
    return None
