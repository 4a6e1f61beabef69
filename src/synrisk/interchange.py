"""Draws that somebody else made: tables of rstanarm, brms, CmdStan and plain names.

Every parameter of the regression has a set of spellings; a column of the table is matched by its
name, then by its name as R mangles it (``X.Intercept.``). What is missing, left over or ambiguous
is an error that lists both sides: nothing is guessed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from synrisk import formula as formulas
from synrisk.design import Design, DesignColumn, Part
from synrisk.errors import DrawsError, OptionError, counted, listed
from synrisk.families import Family
from synrisk.formula import FACTOR_SPELLINGS, Call, Column
from synrisk.posterior import Posterior, parameter_names
from synrisk.schema import MISSING_LABEL, Factor, FloatArray, Label, Variable

# Columns that samplers and packages add to their draws. They are dropped where no parameter has
# that name; the last row only where the column really counts rows (it holds whole numbers).
BOOKKEEPING = (
    "lp__", "lprior", "log-posterior", "log.posterior", "mean_PPD", "deviance",
    ".chain", ".iteration", ".draw", "Unnamed: 0", "rownames",
)  # fmt: skip
BOOKKEEPING_PATTERNS = (r".*__", r"prior_.*")  # Stan's sampler columns; brms' prior draws
BOOKKEEPING_COUNTERS = ("chain", "iteration", "draw", "X")
WEIGHT_COLUMNS = ("weight", ".weight")
LOG_WEIGHT_COLUMNS = ("log_weight", ".log_weight")
_INTERCEPTS = ("Intercept", "(Intercept)")
_VECTOR = re.compile(r"(?P<stem>beta|b|coef|theta)(?:\.(?P<dot>\d+)|\[(?P<bracket>\d+)\])")
# What brms makes of symbols in names (its documentation, and rename() in its sources).
_BRMS_SYMBOLS = {
    **dict.fromkeys(" ()[],\"'?", ""),
    "+": "P", "-": "M", "*": "MU", "/": "D", "^": "E", "=": "EQ",
}  # fmt: skip


def read_draws(
    table: pd.DataFrame,
    family: Family,
    response: Variable,
    design: Design,
    rename: Mapping[str, str],
) -> Posterior:
    """Return the posterior that `table` holds for a regression of `response` by `design`."""
    what = f"Draws for {response.name!r}"
    if not len(table):
        raise DrawsError(f"{what}: the table has no rows.")
    table = table.rename(columns=dict(rename))
    if not table.columns.is_unique:
        raise DrawsError(f"{what}: rename= gives two columns the same name.")
    spellings = _Spellings.of(family, response, design)
    matched, left_over = spellings.match([str(name) for name in table.columns], what)
    weights = _take_weights(table, left_over, what)
    left_over = [name for name in left_over if not _is_bookkeeping(name, table)]
    levels = _levels_with_columns(matched, family, response, what)
    wanted = spellings.wanted(levels)
    missing = [key for key in wanted if key not in matched]
    if missing or left_over:
        raise DrawsError(_both_sides(what, missing, left_over, table, spellings))
    used = {key: table[matched[key]] for key in wanted}
    values = _numbers(used, what)
    return _assemble(values, wanted, matched, weights, family, response, design)


# -- spellings ----------------------------------------------------------------------------------
class _Key(tuple[int, int]):
    """A parameter: (code of a level, or 0; design column), or (-1, auxiliary)."""

    __slots__ = ()


class _Spellings:
    """The names under which each parameter may stand in a table."""

    def __init__(self, shown: dict[_Key, str], n_columns: int, intercept: int | None) -> None:
        self.shown = shown
        self._n_columns = n_columns
        self._intercept = intercept
        self._exact: dict[str, set[_Key]] = {}
        self._mangled: dict[str, set[_Key]] = {}

    @classmethod
    def of(cls, family: Family, response: Variable, design: Design) -> _Spellings:
        codes = family.predictor_levels(response)
        all_levels: list[tuple[int, Label | None]] = [(0, None)]
        if codes and isinstance(response, Factor):
            all_levels = list(enumerate(response.levels))
        columns = design.columns
        shown = {
            _Key((code, k)): str(column) if level is None else f"{level}:{column}"
            for code, level in all_levels
            for k, column in enumerate(columns)
        }
        shown |= {_Key((-1, k)): name for k, name in enumerate(family.auxiliary)}
        intercept = next((k for k, column in enumerate(columns) if not column.parts), None)
        spellings = cls(shown, len(columns), intercept)
        for code, level in all_levels:
            for k, column in enumerate(columns):
                spellings._add(_Key((code, k)), _coefficient_names(column, level))
        for k, name in enumerate(family.auxiliary):
            spellings._add(_Key((-1, k)), [name, f"{response.name}_{name}"])
        return spellings

    def _add(self, key: _Key, names: Iterator[str] | Sequence[str]) -> None:
        for name in names:
            self._exact.setdefault(_canonical(name), set()).add(key)
            self._mangled.setdefault(_mangled(name), set()).add(key)

    def match(self, names: list[str], what: str) -> tuple[dict[_Key, str], list[str]]:
        """Return the column of each parameter found, and the columns that are none."""
        matched: dict[_Key, str] = {}
        left_over: list[str] = []
        for name in _without_centred(names):
            keys = self._exact.get(_canonical(name)) or self._mangled.get(
                _mangled_seen(name), set()
            )
            if len(keys) > 1:
                both = listed(sorted(self.shown[key] for key in keys))
                raise DrawsError(
                    f"{what}: the column {name!r} may be any of {both}; say which with "
                    f"rename={{{name!r}: …}}."
                )
            for key in keys:
                if key in matched:
                    raise DrawsError(
                        f"{what}: {self.shown[key]} is given twice, by {matched[key]!r} and "
                        f"{name!r}; leave one out."
                    )
                matched[key] = name
            if not keys:
                left_over.append(name)
        return self._match_vector(matched, left_over)

    def _match_vector(
        self, matched: dict[_Key, str], left_over: list[str]
    ) -> tuple[dict[_Key, str], list[str]]:
        """Read CmdStan's ``beta.1 …`` as the coefficients in the design's order.

        Only if its length is that of all coefficients, or of all but an intercept that stands
        by itself (as ``alpha`` or by name).
        """
        if any(key[0] > 0 for key in self.shown):
            return matched, left_over
        entries = {name: found for name in left_over if (found := _VECTOR.fullmatch(name))}
        if len({found["stem"] for found in entries.values()}) != 1:
            return matched, left_over
        own = dict(matched)
        if self._intercept is not None and "alpha" in left_over:
            own.setdefault(_Key((0, self._intercept)), "alpha")
        places = [k for k in range(self._n_columns) if _Key((0, k)) not in own]
        by_index = {int(found["dot"] or found["bracket"]): name for name, found in entries.items()}
        if sorted(by_index) != list(range(1, len(places) + 1)) or len(by_index) != len(entries):
            return matched, left_over
        if any(key[0] == 0 and key[1] != self._intercept for key in own):
            return matched, left_over
        own |= {_Key((0, k)): by_index[i] for i, k in enumerate(places, 1)}
        return own, [name for name in left_over if name not in own.values()]

    def wanted(self, levels: Sequence[int]) -> list[_Key]:
        """Return every parameter that must be there, given the levels that have columns."""
        coefficients = [_Key((code, k)) for code in levels for k in range(self._n_columns)]
        return [*coefficients, *(key for key in self.shown if key[0] == -1)]


def _coefficient_names(column: DesignColumn, level: Label | None) -> Iterator[str]:
    bases = list(_INTERCEPTS) if not column.parts else list(_product_names(column.parts))
    for base in bases:
        brms = _brms(base)
        if level is None:
            yield base
            yield f"b_{brms}"
            continue
        for text in _level_texts(level):
            yield f"{text}:{base}"
            yield f"{base}:{text}"
            yield f"{base}[{text}]"
            yield f"mu{_brms(text)}_{brms}"
            yield f"b_mu{_brms(text)}_{brms}"


def _product_names(parts: tuple[Part, ...]) -> Iterator[str]:
    for order in itertools.permutations(parts):
        for names in itertools.product(*(tuple(_part_names(part)) for part in order)):
            yield ":".join(names)


def _part_names(part: Part) -> Iterator[str]:
    column = formulas.as_factor(part.expression)
    if part.level is not None:
        name = column if column is not None else formulas.write(part.expression)
        bases = [name, *(f"{spelling}({name})" for spelling in FACTOR_SPELLINGS)]
        for base, text in itertools.product(bases, _level_texts(part.level)):
            yield f"{base}[T.{text}]"
            yield f"{base}[{text}]"
            yield f"{base}{text}"
        return
    for base in _expression_names(part):
        if part.index is None:
            yield base
        else:
            yield f"{base}[{part.index}]"
            yield f"{base}{part.index}"


def _expression_names(part: Part) -> Iterator[str]:
    node = part.expression
    own = formulas.write(node)
    r = formulas.write(node, power="^", space="")
    yield own
    yield r
    if isinstance(node, Column) or not isinstance(node, Call) or not node.options:
        return
    in_r = r.replace("[", "c(").replace("]", ")").replace("True", "TRUE").replace("False", "FALSE")
    yield in_r
    yield in_r.replace("include_intercept=", "intercept=")
    if len(node.options) == 1:  # bs(x, 4) and poly(x, 2): the option without its name
        yield re.sub(r",(df|degree)=", ",", in_r)


def _level_texts(level: Label) -> tuple[str, ...]:
    if isinstance(level, bool | np.bool_):
        return (str(level), str(level).upper())
    return ("NA", MISSING_LABEL) if level == MISSING_LABEL else (str(level),)


def _canonical(name: str) -> str:
    return re.sub(r"[\s`]", "", name).replace("**", "^")


def _mangled(name: str) -> str:
    """Return `name` as R's make.names would write it, each run of symbols as one dot."""
    text = re.sub(r"\W+", ".", _canonical(name))
    return text if re.match(r"[^\W\d_]", text) else f"X{text}"


def _mangled_seen(name: str) -> str:
    """Return a name found in a table, which R may have mangled, for comparison with `_mangled`."""
    return re.sub(r"\W+", ".", name)


def _brms(name: str) -> str:
    return "".join(_BRMS_SYMBOLS.get(symbol, symbol) for symbol in name)


def _without_centred(names: list[str]) -> list[str]:
    """Leave out brms' intercepts of centred predictors where ``b_Intercept`` stands beside."""
    has_brms = any(re.fullmatch(r"b_(mu.*_)?Intercept", name) for name in names)
    if not has_brms:
        return names
    return [name for name in names if not re.fullmatch(r"Intercept(_mu.*)?", name)]


def _is_bookkeeping(name: str, table: pd.DataFrame) -> bool:
    if name in BOOKKEEPING or any(re.fullmatch(p, name) for p in BOOKKEEPING_PATTERNS):
        return True
    if name not in BOOKKEEPING_COUNTERS:
        return False
    numbers = pd.to_numeric(table[name], errors="coerce").to_numpy(dtype=float)
    return bool(np.all(numbers >= 0) and np.all(numbers == np.floor(numbers)))


# -- values -------------------------------------------------------------------------------------
def _levels_with_columns(
    matched: Mapping[_Key, str], family: Family, response: Variable, what: str
) -> list[int]:
    """Return the codes whose coefficients are wanted: all but the reference, which has none."""
    if not family.predictor_levels(response) or not isinstance(response, Factor):
        return [0]
    present = sorted({key[0] for key in matched if key[0] >= 0})
    if len(present) == len(response.levels):
        raise DrawsError(
            f"{what}: every one of the {len(present)} levels has coefficients; one must be the "
            "reference, without columns."
        )
    if len(present) == len(response.levels) - 1:
        return present
    return list(range(1, len(response.levels)))  # several lack theirs: say so against the first


def _take_weights(table: pd.DataFrame, left_over: list[str], what: str) -> FloatArray:
    """Return the draws' log weights, and take their column out of `left_over`."""
    found = [name for name in left_over if name in WEIGHT_COLUMNS + LOG_WEIGHT_COLUMNS]
    if not found:
        return np.full(len(table), -np.log(len(table)))
    if len(found) > 1:
        raise DrawsError(f"{what}: more than one column of weights: {listed(found)}.")
    left_over.remove(found[0])
    values = _column(table[found[0]], f"{what}, column {found[0]!r}")
    if found[0] in WEIGHT_COLUMNS:
        if (values < 0).any():
            raise DrawsError(
                f"{what}: {counted(int((values < 0).sum()), 'weight is', 'weights are')} negative."
            )
        with np.errstate(divide="ignore"):
            values = np.log(values)
    if not np.isfinite(values.max()):
        raise DrawsError(f"{what}: the weights are all zero.")
    return np.asarray(values - logsumexp(values))


def _column(values: pd.Series[Any], what: str) -> FloatArray:
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    n_bad = int((~np.isfinite(numbers)).sum())
    if n_bad:
        raise DrawsError(f"{what}: {counted(n_bad, 'draw is', 'draws are')} not a finite number.")
    return numbers


def _numbers(used: Mapping[_Key, pd.Series[Any]], what: str) -> dict[_Key, FloatArray]:
    values = {
        key: _column(column, f"{what}, column {column.name!r}") for key, column in used.items()
    }
    for key, column in values.items():
        if key[0] == -1 and (column <= 0).any():
            raise DrawsError(
                f"{what}, column {used[key].name!r}: "
                f"{counted(int((column <= 0).sum()), 'draw is', 'draws are')} not positive."
            )
    return values


def _assemble(
    values: Mapping[_Key, FloatArray],
    wanted: Sequence[_Key],
    matched: Mapping[_Key, str],
    log_weights: FloatArray,
    family: Family,
    response: Variable,
    design: Design,
) -> Posterior:
    n_draws, n_columns = len(log_weights), len(design.columns)
    codes = family.predictor_levels(response)
    by_level = np.zeros((n_draws, n_columns, len(codes) + 1 if codes else 1))
    auxiliary = np.zeros((n_draws, len(family.auxiliary)))
    for key in wanted:
        if key[0] == -1:
            auxiliary[:, key[1]] = values[key]
        else:
            by_level[:, key[1], key[0]] = values[key]
    if codes:  # whatever the reference was, make it the first level
        by_level = by_level[:, :, 1:] - by_level[:, :, :1]
    return Posterior(
        by_level,
        auxiliary,
        log_weights,
        parameter_names(design, family, response),
        tuple(matched[key] for key in wanted),
    )


def _both_sides(
    what: str,
    missing: Sequence[_Key],
    left_over: Sequence[str],
    table: pd.DataFrame,
    spellings: _Spellings,
) -> str:
    lines = [f"{what} do not fit the formula."]
    if missing:
        lines.append(f"Missing: {listed(spellings.shown[key] for key in missing)}.")
    if left_over:
        lines.append(f"Left over: {listed(left_over)}.")
    wanted = [name for key, name in spellings.shown.items()]
    lines.append(f"The formula's parameters: {listed(wanted, 30)}.")
    lines.append(f"The table's columns: {listed(table.columns, 30)}.")
    lines.append(
        "Use rename={column: parameter} for other names; if a factor's reference level differs, "
        "put it first in types={variable: [levels]}."
    )
    return " ".join(lines)


def split_rename(
    rename: Mapping[str, Any] | None, responses: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the renaming of each response's table: one for all, or one by response."""
    rename = dict(rename or {})
    nested = {key: value for key, value in rename.items() if isinstance(value, Mapping)}
    if not nested:
        return dict.fromkeys(responses, rename)
    if len(nested) < len(rename) or not set(nested) <= set(responses):
        raise OptionError(
            "rename= is either {column: parameter} for all tables, or "
            "{response: {column: parameter}}; responses are " + listed(responses) + "."
        )
    return {response: dict(nested.get(response, {})) for response in responses}
