"""`suggest_plan`: models for a table's columns, with the reason for every choice.

What is suggested names columns, families and reasons; it never holds a value of the data.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import fill, indent
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.errors import DataError, OptionError, SynriskError, listed
from synrisk.base.messages import toml_key, toml_text, visible
from synrisk.data.frames import TableLike, read_table, with_columns
from synrisk.data.schema import Types, require_columns
from synrisk.models.families import OnGrid
from synrisk.models.families import family as resolve_family
from synrisk.models.plan import Regression
from synrisk.synthesis.column_kinds import LEFT_OUT, ColumnKind, kinds_of_columns
from synrisk.synthesis.formula_search import Found, encode, in_order
from synrisk.synthesis.identifiers import identifies
from synrisk.synthesis.leaks import all_relations
from synrisk.synthesis.relations import Hidden, sampled
from synrisk.synthesis.synthesizer import fit

_WHAT = "The confidential data"
_MANY_GAPS = 0.2  # of the records, for a column that nobody asked for to be left out
_ROWS_TRIED = 5_000  # in a fit that shows whether a model can be fitted
_DRAWS_TRIED = 50
_WIDTH = 94  # of comments
_ID_NAME = re.compile(r"(?i).*(id|key|case|number|nr)s?\d*")
SYNTHESIZED, AS_IS, DROPPED = "synthesized", "released as it is", "left out"
ID = "names the records"


@dataclass(frozen=True)
class SuggestedColumn:
    """What is suggested for a column, and why."""

    name: str
    role: str
    kind: str
    reason: str


@dataclass(frozen=True, repr=False)
class SuggestedPlan:
    """A plan with its reasons. It is a list of regressions, which `fit` takes as it is.

    Attributes
    ----------
    regressions
        One a synthesized column, in synthesis order.
    columns
        What is suggested for every column: its role, what it holds, why.
    id
        The column that names the records, or None.
    types
        What the data cannot say: columns that hold levels.
    missing
        "drop" where columns that are used have gaps, else "error".
    """

    regressions: tuple[Regression, ...]
    columns: tuple[SuggestedColumn, ...]
    id: str | None = None
    types: Types = field(default_factory=dict)
    missing: str = "error"

    def __iter__(self) -> Iterator[Regression]:
        return iter(self.regressions)

    def __len__(self) -> int:
        return len(self.regressions)

    @property
    def drop(self) -> tuple[str, ...]:
        """The columns to leave out of the data."""
        return self._with_role(DROPPED)

    @property
    def as_is(self) -> tuple[str, ...]:
        """The columns that are released as they are."""
        return self._with_role(AS_IS)

    @property
    def reasons(self) -> pd.DataFrame:
        """A row a column: its role, what it holds, why."""
        rows = [(one.name, one.role, one.kind, one.reason) for one in self.columns]
        return pd.DataFrame(rows, columns=["column", "role", "kind", "reason"]).set_index("column")

    def code(self, data: str = "data") -> str:
        """Return the plan as Python; `data` is what the frame is called there."""
        lines = ["import synrisk as sr", ""]
        if self.drop:
            lines += [self._comment(name) for name in self.drop]
            lines += [f"{data} = {data}.drop(columns={list(self.drop)!r})", ""]
        lines.append("plan = [")
        for regression in self.regressions:
            lines.append(indent(self._comment(regression.response), "    "))
            family = repr(regression.distribution.name)
            if regression.distribution.grid_step != 1.0:
                family = f"sr.{regression.distribution!r}"
            lines.append(f"    sr.Regression({regression.formula!r}, family={family}),")
        lines += ["]", *(self._comment(name) for name in self.as_is)]
        options = {"types": dict(self.types), "id": self.id, "missing": self.missing}
        defaults: dict[str, Any] = {"types": {}, "id": None, "missing": "error"}
        given = [f", {key}={options[key]!r}" for key in options if options[key] != defaults[key]]
        return "\n".join([*lines, f"synthesizer = sr.fit(plan, {data}{''.join(given)})", ""])

    def toml(self) -> str:
        """Return the plan as the tables ``[data]`` and ``[[model]]`` of a study file."""
        return f"{self.toml_data()}\n{self.toml_models()}"

    def toml_data(self) -> str:
        """Return the table ``[data]``, without the name of its file."""
        lines = ["[data]"]
        if self.id is not None:
            lines.append(f"id = {toml_text(self.id)}  # names the records; it is not released")
        if self.missing != "error":
            lines.append(
                f'missing = "{self.missing}"            # leaves incomplete records out; or "level"'
            )
        if self.drop:
            lines += [self._comment(name) for name in self.drop]
            lines.append(f"drop = [{', '.join(map(toml_text, self.drop))}]")
        lines += [f'types.{toml_key(name)} = "{told}"' for name, told in self.types.items()]
        return "\n".join(lines) + "\n"

    def toml_models(self) -> str:
        """Return the tables ``[[model]]``."""
        lines = [self._comment(name) for name in self.as_is]
        for regression in self.regressions:
            lines += [
                *([""] if lines else []),
                self._comment(regression.response),
                "[[model]]",
                f"formula = {toml_text(regression.formula)}",
                f'family = "{regression.distribution.name}"',
            ]
            if regression.distribution.grid_step != 1.0:
                lines.append(f"step = {regression.distribution.grid_step}")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.code()

    def __repr__(self) -> str:
        formulas = listed(regression.formula for regression in self.regressions)
        return f"<SuggestedPlan: {visible(formulas)}>"

    def _with_role(self, role: str) -> tuple[str, ...]:
        return tuple(one.name for one in self.columns if one.role == role)

    def _comment(self, name: str) -> str:
        """Return what is said of a column, as lines of a comment without control characters."""
        (own,) = [one for one in self.columns if one.name == name]
        return fill(
            visible(f"{own.name}, {own.role}: {own.reason}."),
            width=_WIDTH,
            initial_indent="# ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def suggest_plan(data: TableLike, *, sensitive: Sequence[str] | None = None) -> SuggestedPlan:
    """Suggest a plan for a table: families, an order of synthesis, and short formulas.

    Families are chosen by the values, the order and the predictors by leave-one-out prediction. A
    suggestion is where thinking begins: read its reasons.

    Parameters
    ----------
    data
        The confidential data.
    sensitive
        The columns that must be protected: these are synthesized, others are released as they are
        or left out. Nobody but you knows them; None synthesizes every column that can be modelled.

    Examples
    --------
    >>> from synrisk import load_households
    >>> people = load_households()
    >>> plan = suggest_plan(people, sensitive=["LogIncome", "KidsCount"])
    >>> [regression.response for regression in plan]
    ['KidsCount', 'LogIncome']
    """
    frame = _without_infinities(read_table(data, _WHAT))
    if not len(frame):
        raise DataError(f"{_WHAT} have no rows.")
    if sensitive is not None:
        if isinstance(sensitive, str) or not all(isinstance(name, str) for name in sensitive):
            raise OptionError("sensitive= is a list of columns' names, or None for every column.")
        sensitive = list(dict.fromkeys(sensitive))
        require_columns(frame, sensitive, "sensitive=")
        if not sensitive:
            raise OptionError("sensitive= is empty; name the columns that must be protected.")
    return _Suggestion(frame, kinds_of_columns(frame), sensitive).plan()


def _without_infinities(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with gaps in place of infinite numbers, which `fit` refuses by name."""
    numbers = frame.select_dtypes("number")
    return with_columns(frame, {name: x.where(x.abs() != np.inf) for name, x in numbers.items()})


class _Suggestion:
    """A plan in the making: the columns' roles, settled one after the other."""

    def __init__(
        self,
        frame: pd.DataFrame,
        kinds: Mapping[str, ColumnKind],
        sensitive: Sequence[str] | None,
    ) -> None:
        self.frame, self.kinds, self.sensitive = frame, kinds, sensitive
        self.roles: dict[str, tuple[str, str]] = {}

    def plan(self) -> SuggestedPlan:
        """Settle every column's role, and the models."""
        self._leave_out()
        wanted = self._wanted()
        given = self._given(wanted)
        encoded = encode(self.frame, {name: self.kinds[name] for name in (*wanted, *given)}, wanted)
        usable = [name for name in given if in_formula(name) and not self._has_many_gaps(name)]
        found = in_order(encoded, usable, wanted, {n: self._n_coefficients(n) for n in wanted})
        regressions: list[Regression] = []
        for one in found:
            fitted = self._fitted(one, {r.response for r in regressions} | set(usable))
            if fitted is not None:
                regressions.append(fitted)
        if not regressions:
            raise DataError(f"{_WHAT}: no model of any column could be fitted.")
        used = {name for r in regressions for name in (r.response, *r.parsed.predictors)}
        gaps = bool(self.frame[sorted(used)].isna().any(axis=None))
        columns = tuple(
            SuggestedColumn(name, *self.roles[name][:1], own.kind, self.roles[name][1])
            for name, own in self.kinds.items()
        )
        types = {name: "category" for name in sorted(used) if self.kinds[name].is_category}
        missing = "drop" if gaps else "error"
        return SuggestedPlan(tuple(regressions), columns, self._id, types, missing)

    @property
    def _id(self) -> str | None:
        """The column that names the records."""
        return next((name for name, (role, _) in self.roles.items() if role == ID), None)

    def _leave_out(self) -> None:
        """Settle what no model takes: ids, free text, dates, names that no formula can write."""
        for name, own in self.kinds.items():
            asked = self.sensitive is not None and name in self.sensitive
            why = own.reason
            if own.kind in LEFT_OUT:
                role = AS_IS if own.kind == "constant" else DROPPED
                column = self.frame[name]
                if own.kind == "id" and not self._id and _can_label(column):
                    role = ID
                self.roles[name] = (role, why)
            elif not own.families:
                self.roles[name] = (DROPPED, why)
            elif in_formula(name) is None and asked:
                why = "a formula cannot write a name that is empty or holds a backtick; rename it"
            else:
                continue
            if asked:
                raise OptionError(f"sensitive= names {name!r}, which cannot be modelled: {why}.")

    def _wanted(self) -> list[str]:
        """Return what is synthesized: what was asked for, or all that can be."""
        left = [name for name in self.kinds if name not in self.roles]
        if self.sensitive is not None:
            return [name for name in left if name in self.sensitive]
        wanted: list[str] = []
        for name in left:
            if in_formula(name) is None:
                self.roles[name] = (DROPPED, "a formula cannot write its name; rename it")
            elif self._has_many_gaps(name):
                why = "many records lack it, and would be left out with it"
                self.roles[name] = (DROPPED, why)
            elif giving_away(self.frame, wanted, [name]):
                why = "tells another column, or is told by it; only that one is modelled"
                self.roles[name] = (DROPPED, why)
            else:
                wanted.append(name)
        if not wanted:
            raise DataError(
                "No column looks as if it could be modelled: numbers, counts, or text with few "
                f"levels. There are: {listed(self.kinds)}."
            )
        return wanted

    def _given(self, wanted: Sequence[str]) -> list[str]:
        """Return what may go out as it is."""
        left = [name for name in self.kinds if name not in (*self.roles, *wanted)]
        for name in left:
            if identifies(self.frame[name]):
                why = (
                    "nearly everybody has a value of their own, which would name them; synthesize "
                    "it too (sensitive), or declare that it may go out (release)"
                )
                self.roles[name] = (DROPPED, why)
        left = [name for name in left if name not in self.roles]
        for name in giving_away(self.frame, wanted, left):
            self.roles[name] = (DROPPED, "gives a synthesized column away, alone or with others")
        given = [name for name in left if name not in self.roles]
        for name in given:
            self.roles[name] = (AS_IS, "not named as sensitive")
        return given

    def _has_many_gaps(self, name: str) -> bool:
        return bool(self.frame[name].isna().mean() > _MANY_GAPS)

    def _n_coefficients(self, name: str) -> int:
        """Return how many coefficients each column of the design has."""
        return self.frame[name].nunique() - 1 if self.kinds[name].kind == "classes" else 1

    def _fitted(self, found: Found, there: set[str]) -> Regression | None:
        """Return the regression that was found, or what can be fitted of it."""
        own, name = self.kinds[found.name], found.name
        predictors = tuple(one for one in found.predictors if one in there)
        if predictors != found.predictors:  # what the rest explain is not known
            found = Found(name, predictors, ())
        problem = ""
        for n_terms in range(len(predictors), -1, -1):
            terms = [self._term(one) for one in predictors[:n_terms]]
            for family in own.families:
                formula = f"{in_formula(name)} ~ {' + '.join(terms) or '1'}"
                known = resolve_family(family)
                if isinstance(known, OnGrid) and own.step:
                    known = replace(known, step=own.step)
                regression = Regression(formula, family=known)
                problem = self._problem(regression)
                if not problem:
                    self.roles[name] = (SYNTHESIZED, self._why(found, n_terms, family))
                    return regression
        if self.sensitive is not None:
            raise DataError(f"{_WHAT}: no model of {name!r} could be fitted. {problem}")
        self.roles[name] = (DROPPED, f"{own.reason}; no model of it could be fitted")
        return None

    def _term(self, name: str) -> str:
        own, written = self.kinds[name], str(in_formula(name))
        modelled = self.sensitive is None or name in self.sensitive
        return written if own.has_levels and modelled else own.as_predictor.format(written)

    def _problem(self, regression: Regression) -> str:
        """Try a fit; return why it fails, "" where it does not."""
        names = [regression.response, *regression.parsed.predictors]
        rows = self.frame[names].dropna()
        rows = rows.iloc[np.sort(sampled(len(rows), _ROWS_TRIED))].reset_index(drop=True)
        types: dict[str, Any] = {n: "category" for n in names if self.kinds[n].is_category}
        problem = ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fit(regression, rows, n_draws=_DRAWS_TRIED, types=types, seed=1)
            except SynriskError as error:
                problem = str(error)
        return problem

    def _why(self, found: Found, n_terms: int, family: str) -> str:
        own = self.kinds[found.name]
        reason = f"{own.kind} ({own.reason}), so {family}"
        if not n_terms:
            return f"{reason}; no column before it predicts it well enough"
        named = listed(found.predictors[:n_terms])
        if not found.explained:
            return f"{reason}; predicted by {named}"
        share = f"{100 * found.explained[n_terms - 1]:.0f} %"
        return (
            f"{reason}; {named} explain{'s' if n_terms == 1 else ''} {share} of it, cross-validated"
        )


def _can_label(column: pd.Series[Any]) -> bool:
    """Tell whether a column can name the records in results: all different, no person's name."""
    is_number = pd.api.types.is_numeric_dtype(column.dtype)
    called = _ID_NAME.fullmatch(str(column.name)) is not None
    return (is_number or called) and column.is_unique and not column.isna().any()


def giving_away(frame: pd.DataFrame, targets: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns to leave out, so that none gives a synthesized one away."""
    complete = frame[frame[list(targets)].notna().all(axis=1)] if targets else frame
    hidden = []
    for name in targets:
        numeric = pd.api.types.is_numeric_dtype(complete[name].dtype)
        values = complete[name] if numeric else pd.factorize(complete[name])[0]
        hidden.append(Hidden.of(name, values, is_factor=not numeric))
    left = list(names)
    while left and hidden:
        refused = [one for one in all_relations(hidden, complete[left], {}) if one.refused]
        if not refused:
            break
        left = [name for name in left if name not in refused[0].columns]
    return [name for name in names if name not in left]


def in_formula(name: str) -> str | None:
    """Return a column's name as a formula writes it, in backticks if need be; None if it cannot."""
    if name.isidentifier():
        return name
    return f"`{name}`" if name and "`" not in name else None
