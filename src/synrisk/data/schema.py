"""Variables: what a column holds, its levels, and arrays of numbers or codes made from it.

The confidential data settle the schema once; synthetic data and guesses are encoded by it.
Numeric variables become float64, factors int64 codes into their levels.
"""

from __future__ import annotations

import contextlib
import math
import numbers
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.arrays import BoolArray, FloatArray, IntArray, as_float
from synrisk.base.errors import (
    DataError,
    FileError,
    OptionError,
    SynriskError,
    counted,
    got,
    listed,
    nearest,
    one_of,
)
from synrisk.base.messages import either, place_of, setting

Label: TypeAlias = Hashable
# One array a variable: float64 values of a numeric one, int64 codes of a factor.
Columns: TypeAlias = Mapping[str, npt.NDArray[Any]]
# What is done about missing values; of a column, or of all.
MissingOfAll: TypeAlias = Literal["error", "drop", "level"]
MissingOfOne: TypeAlias = Literal["error", "drop", "level", "model"]
Missing: TypeAlias = MissingOfAll | Mapping[str, MissingOfOne]
Types: TypeAlias = Mapping[str, str | Sequence[Label] | tuple[float, float]]

MISSING_LABEL = "(missing)"
MISSING_POLICIES: tuple[MissingOfAll, ...] = get_args(MissingOfAll)
MISSING_BY_COLUMN: tuple[MissingOfOne, ...] = get_args(MissingOfOne)
_BELOW = (math.sqrt(5.0) - 1.0) / 2.0  # of the span, below the smallest: no value of a grid
_ABSENT, _UNKNOWN = -1, -2  # codes of a missing value and of a value that is not a level
_CATEGORY_WORDS = ("category", "categorical", "factor")
_NUMBER_WORDS = ("numeric", "number", "continuous", "count", "float", "int")
_ENDS = 2
_A_RANGE = either("a range (low, high)", "{ range = [low, high] }")
_CONFIDENTIAL = "The confidential data"
_MOST_ROWS = 5  # to be named in a message
_MOST_NUMERIC_TEXT_LEVELS = 50  # text that reads as numbers is a factor up to so many levels


@dataclass(frozen=True)
class Numeric:
    """A variable whose values are numbers.

    Attributes
    ----------
    bounds
        The smallest and the largest value that somebody declared possible, without the data.
    gap
        Where missing values are modelled, the number that stands for one: no value equals it.
    """

    name: str
    bounds: tuple[float, float] | None = field(default=None, compare=False)
    gap: float | None = field(default=None, compare=False)

    def encode(self, values: pd.Series[Any], what: str, error: type[SynriskError]) -> FloatArray:
        """Return the values as float64, missing ones as NaN; they must be finite."""
        numbers64 = self.numbers(values, what, error)
        n_infinite = int(np.isinf(numbers64).sum())
        if n_infinite:
            raise error(
                f"{what}: column {self.name!r} holds "
                f"{counted(n_infinite, 'infinite value')}; finite numbers are needed."
            )
        if self.gap is None:
            return numbers64
        if (numbers64 == self.gap).any():
            raise error(
                f"{what}: column {self.name!r} holds the number that stands for missing values "
                "here; change these values a little."
            )
        return np.where(np.isnan(numbers64), self.gap, numbers64)

    def numbers(self, values: pd.Series[Any], what: str, error: type[SynriskError]) -> FloatArray:
        """Return the values as float64, missing ones as NaN; raise if some are no numbers."""
        numbers64, n_text = as_real_numbers(values)
        if n_text:
            raise error(
                f"{what}: column {self.name!r} should hold numbers, but "
                f"{counted(n_text, 'value is', 'values are')} not "
                f"({_rows(np.isnan(numbers64) & values.notna().to_numpy())}). "
                f"{self._about_text(n_text, int(values.notna().sum()))}",
                about=place_of("types", self.name),
            )
        return numbers64

    def decode(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what a user sees for encoded `values`: the numbers themselves, NaN for a gap."""
        return values if self.gap is None else np.where(values == self.gap, np.nan, values)

    def there(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the encoded `values` that are not missing."""
        return values if self.gap is None else values[values != self.gap]

    def _about_text(self, n_text: int, n_known: int) -> str:
        """Say what to do about text among numbers; a few of them make no category."""
        if 2 * n_text < n_known:
            return "Correct the data there, or leave those rows out."
        category = setting("types", "category", of=self.name)
        return (
            "Correct the data (a number has no currency sign, and no mark between thousands), or "
            f"call the column a category: {category}."
        )


class LevelsOfData(tuple[Any, ...]):
    """Levels in an order that somebody gave, read off the data all the same."""


@dataclass(frozen=True, repr=False)
class Factor:
    """A variable with a fixed set of levels; the first is the reference."""

    name: str
    levels: tuple[Label, ...]
    # Whether somebody listed the levels (types=, or a categorical column). Levels that were read
    # off the values are values themselves, and are not shown in messages.
    declared: bool = field(default=False, compare=False)
    # The levels that types= lists: that they are possible is known without the data.
    stated: tuple[Label, ...] = field(default=(), compare=False)

    def encode(self, values: pd.Series[Any], what: str, error: type[SynriskError]) -> IntArray:
        """Return codes into the levels; a missing value is -1 unless missing is a level."""
        logical = all(isinstance(level, bool | np.bool_) for level in self.levels)

        def key(label: Label) -> str:
            return (
                label_key(label).lower() if logical else label_key(label)
            )  # R writes TRUE, Python True

        by_key = {key(level): code for code, level in enumerate(self.levels)}
        absent = by_key.get(MISSING_LABEL, _ABSENT)
        positions, uniques = _factorize(values, what, error)
        lookup = np.array([by_key.get(key(value), _UNKNOWN) for value in uniques] + [absent])
        codes = lookup[positions].astype(np.int64)  # factorize marks a missing value by -1
        n_unknown = int((codes == _UNKNOWN).sum())
        if logical and n_unknown and _are_numbers(uniques):
            raise error(
                f"{what}: column {self.name!r} holds numbers, but true and false in the "
                "confidential data; make it of one type on both sides."
            )
        if n_unknown:
            all_differ = "It holds none of them: are its levels coded otherwise? "
            raise error(
                f"{what}: column {self.name!r} holds {counted(n_unknown, 'value')} "
                f"({counted(int((lookup == _UNKNOWN).sum()), 'distinct level')}) that "
                f"{'is' if n_unknown == 1 else 'are'} not among its "
                f"{counted(len(self.levels), 'known level')}. "
                f"{all_differ if n_unknown == len(codes) else ''}List all levels in "
                f"{setting('types', of=self.name, shown='[…]')}"
                f"{'' if self.declared else ' if the confidential data lack some'}.",
                about=place_of("types", self.name) if self.declared else (),
            )
        return codes

    def decode(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the labels of codes."""
        labels = np.empty(len(self.levels), dtype=object)
        labels[:] = self.levels
        return labels[values.astype(np.int64)]

    def there(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the encoded `values`: missing is a level, if it may be."""
        return values


Variable: TypeAlias = Numeric | Factor


def _rows(chosen: BoolArray) -> str:
    """Name rows by their position, as somebody finds them in a file."""
    numbers = [f"{row + 1:,}" for row in np.flatnonzero(chosen)]
    rows = "row" if len(numbers) == 1 else "rows"
    return f"{rows} {listed(numbers, _MOST_ROWS)} of the data, counted from 1 after the header"


def label_key(value: Label) -> str:
    """Return what makes two labels the same level: 1, 1.0 and "1" are one."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value)
    return text.split(".")[0] if re.fullmatch(r"-?\d+\.0+", text) else text


def as_real_numbers(values: pd.Series[Any]) -> tuple[FloatArray, int]:
    """Return a column as float64, and how many of its values are no real numbers (NaN there)."""
    kinds = pd.api.types
    if kinds.is_numeric_dtype(values.dtype) and not kinds.is_complex_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64, na_value=np.nan), 0
    if kinds.is_bool_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64, na_value=np.nan), 0
    known = values.notna()
    if kinds.is_string_dtype(values.dtype) or kinds.is_object_dtype(values.dtype):
        with contextlib.suppress(TypeError, ValueError, OverflowError, ArithmeticError):
            plain = values.astype(object).map(lambda v: v if _is_scalar(v) else "no number")
            coerced = pd.to_numeric(plain, errors="coerce")
            as_float: FloatArray = coerced.to_numpy(dtype=np.float64, na_value=np.nan)
            return as_float, int((np.isnan(as_float) & known.to_numpy()).sum())
    return np.full(len(values), np.nan), int(known.sum())


def common_codes(one: pd.Series[Any], other: pd.Series[Any]) -> tuple[IntArray, IntArray]:
    """Return two columns as codes that are equal where their values are; −1 for a gap."""
    parts = []
    for column in (one, other):
        numbers, n_text = as_real_numbers(column)
        parts.append(_as_text(column) if n_text else pd.Series(numbers))
    if parts[0].dtype != parts[1].dtype:
        parts = [_as_text(column) for column in (one, other)]
    codes = pd.factorize(pd.concat(parts, ignore_index=True))[0].astype(np.int64)
    return codes[: len(one)], codes[len(one) :]


def _as_text(column: pd.Series[Any]) -> pd.Series[Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = np.array([*map(str, column.cat.categories), np.nan], dtype=object)
        return pd.Series(levels[column.cat.codes])  # a gap has the code -1
    return column.astype(object).map(str, na_action="ignore").astype(object)


def equal_rows(one: pd.Series[Any], other: pd.Series[Any], *, rtol: float = 0.0) -> BoolArray:
    """Tell in which rows two columns hold the same, whatever their types are.

    Parameters
    ----------
    one, other
        The columns, of one length; a gap equals a gap.
    rtol
        By which part of it a number may differ.
    """
    if isinstance(one.dtype, pd.CategoricalDtype) and isinstance(other.dtype, pd.CategoricalDtype):
        return _equal_levels(one, other)
    gaps, other_gaps = one.isna().to_numpy(), other.isna().to_numpy()
    equal, known = gaps & other_gaps, ~(gaps | other_gaps)
    own, n_text = as_real_numbers(_without_categories(one))
    others, n_other_text = as_real_numbers(_without_categories(other))
    if n_text or n_other_text:
        equal[known] = one[known].astype(str).to_numpy() == other[known].astype(str).to_numpy()
    else:
        equal[known] = np.isclose(own[known], others[known], rtol=rtol, atol=0.0)
    return np.asarray(equal, dtype=bool)


def _equal_levels(one: pd.Series[Any], other: pd.Series[Any]) -> BoolArray:
    """Tell in which rows two columns of categories hold the same level, or both none."""
    codes = {label_key(level): code for code, level in enumerate(one.cat.categories)}
    of_other = [codes.get(label_key(level), _UNKNOWN) for level in other.cat.categories]
    lookup = np.array([*of_other, _ABSENT])  # a gap has the code -1
    return np.asarray(one.cat.codes.to_numpy() == lookup[other.cat.codes.to_numpy()])


def _without_categories(values: pd.Series[Any]) -> pd.Series[Any]:
    return values.astype(object) if isinstance(values.dtype, pd.CategoricalDtype) else values


def _is_scalar(value: object) -> bool:
    return value is None or value is pd.NA or isinstance(value, str | int | float | np.number)


def _are_numbers(values: Any) -> bool:
    """Tell whether values, or all of their texts, are numbers."""
    return as_real_numbers(pd.Series(values, dtype=object))[1] == 0


def _factorize(
    values: pd.Series[Any], what: str, error: type[SynriskError]
) -> tuple[IntArray, Any]:
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        return pd.factorize(values)
    raise error(f"{what}: column {str(values.name)!r} holds lists or other nested values.")


@dataclass(frozen=True, repr=False)
class Schema:
    """The variables of a plan, as the confidential data and the user's `types` settle them."""

    variables: Mapping[str, Variable]
    missing: Missing

    @classmethod
    def settle(
        cls,
        frame: pd.DataFrame,
        names: Iterable[str],
        *,
        types: Types | None,
        factors: Iterable[str],
        missing: Missing,
    ) -> Schema:
        """Settle the variables `names`; those in `factors` are factors by their model."""
        check_types(types, frame)
        types = dict(types or {})
        check_missing(missing, frame)
        forced = set(factors)
        return cls(
            {
                name: _settle(
                    frame[name], types.get(name), name in forced, missing_of(missing, name)
                )
                for name in names
            },
            missing,
        )

    def missing_of(self, name: str) -> MissingOfOne:
        """Return what is done about missing values of a column."""
        return missing_of(self.missing, name)

    def dropping_gaps(self) -> Schema:
        """Return the schema that leaves rows out in place of modelling which are missing."""
        gapped = [
            name
            for name, v in self.variables.items()
            if isinstance(v, Numeric) and v.gap is not None
        ]
        if isinstance(self.missing, str) or not gapped:
            return self
        variables = {
            name: replace(v, gap=None) if isinstance(v, Numeric) else v
            for name, v in self.variables.items()
        }
        dropped: dict[str, MissingOfOne] = dict.fromkeys(gapped, "drop")
        return Schema(variables, {**self.missing, **dropped})

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON has it."""
        variables = [
            {"name": name, "levels": [label_to_json(v) for v in variable.levels],
             "declared": variable.declared,
             "stated": [label_to_json(v) for v in variable.stated]}
            if isinstance(variable, Factor)
            else {"name": name, "bounds": variable.bounds and list(variable.bounds),
                  "gap": variable.gap}
            for name, variable in self.variables.items()
        ]  # fmt: skip
        missing = self.missing if isinstance(self.missing, str) else dict(self.missing)
        return {"variables": variables, "missing": missing}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Schema:
        """Return the schema that `to_json` stored."""
        variables: dict[str, Variable] = {}
        for entry in stored["variables"]:
            name = entry["name"]
            if "levels" in entry:
                levels = tuple(label_from_json(level) for level in entry["levels"])
                stated = tuple(label_from_json(level) for level in entry.get("stated", ()))
                variables[name] = Factor(name, levels, bool(entry["declared"]), stated)
            else:
                bounds = entry.get("bounds")
                gap = entry.get("gap")
                variables[name] = Numeric(
                    name,
                    bounds and (float(bounds[0]), float(bounds[1])),
                    None if gap is None else float(gap),
                )
        return cls(variables, stored["missing"])

    def encode(
        self,
        frame: pd.DataFrame,
        names: Iterable[str],
        what: str,
        error: type[SynriskError] = DataError,
    ) -> tuple[Columns, BoolArray]:
        """Return the columns `names` as arrays without missing rows, and the rows kept."""
        columns, complete = self.encode_rows(frame, names, what, error)
        return {name: column[complete] for name, column in columns.items()}, complete

    def encode_rows(
        self,
        frame: pd.DataFrame,
        names: Iterable[str],
        what: str,
        error: type[SynriskError] = DataError,
    ) -> tuple[Columns, BoolArray]:
        """Return the columns `names` as arrays of all rows, and which rows lack nothing.

        Missing values are refused unless their rows may be dropped: NaN, and -1 for a factor's.
        """
        names = list(names)
        require_columns(frame, names, what, error)
        columns = {name: self.variables[name].encode(frame[name], what, error) for name in names}
        absent = {
            name: np.isnan(column) if column.dtype.kind == "f" else column == _ABSENT
            for name, column in columns.items()
        }
        gaps = {
            name: int(rows.sum())
            for name, rows in absent.items()
            if rows.any() and self.missing_of(name) != "drop"
        }
        if gaps:
            found = listed(f"{name} ({n:,})" for name, n in gaps.items())
            raise error(f"{what}: missing values in {found}. {self._about_gaps(gaps)}")
        complete = np.ones(len(frame), dtype=bool)
        for rows in absent.values():
            complete &= ~rows
        if not complete.any():
            raise error(f"{what}: no complete record is left of {len(frame):,}.")
        return columns, complete

    def _about_gaps(self, names: Iterable[str]) -> str:
        """Say what to do about missing values of the columns `names`."""
        drop, level = setting("missing", "drop"), setting("missing", "level")
        if self.missing != "level":
            by_column = either(
                "missing={'Income': 'model'}", '[data] missing = { Income = "model" }'
            )
            if isinstance(self.missing, Mapping):
                allowed = listed(f"'{one}'" for one in MISSING_BY_COLUMN)
                return (
                    f"Impute them, or say what to do about each column, such as {by_column}: "
                    f"{allowed}."
                )
            return (
                f"Impute them, or use {drop} to leave those records out, or {level} to make a "
                f"level of them (factors only), or {by_column} to model which numbers of a "
                "column are missing."
            )
        if all(isinstance(self.variables[name], Factor) for name in names):
            return (
                f"{level} makes a level of those in the confidential data, which have none there; "
                f"correct the data, or use {drop}."
            )
        return (
            f"{level} makes a level of them for factors only; impute these columns, or use {drop}."
        )


def check_missing(missing: Any, frame: pd.DataFrame) -> None:
    """Raise where ``missing=`` is neither a way for all columns nor one for some by name."""
    if not isinstance(missing, Mapping):
        one_of("missing", missing, MISSING_POLICIES)
        return
    for name, one in missing.items():
        if name not in frame.columns:
            raise OptionError(
                f"missing= names {got(name)}, which is no column.{nearest(name, frame.columns)}",
                about=place_of("missing"),
            )
        one_of(f"missing= of {name!r}", one, MISSING_BY_COLUMN)


def missing_of(missing: Missing, name: str) -> MissingOfOne:
    """Return what is done about missing values of a column: an error where nobody said."""
    return missing if isinstance(missing, str) else missing.get(name, "error")


def columns_where_there(columns: Columns, variable: Variable) -> Columns:
    """Return the rows in which a variable is not missing, where missing values are modelled."""
    if isinstance(variable, Factor) or variable.gap is None:
        return columns
    there = columns[variable.name] != variable.gap
    return {name: values[there] for name, values in columns.items()}


def label_to_json(label: Label) -> list[Any]:
    """Return a level with its type, as JSON has it."""
    if isinstance(label, bool | np.bool_):
        return ["bool", bool(label)]
    if isinstance(label, int | np.integer):
        return ["int", str(int(label))]
    if isinstance(label, float | np.floating):
        return ["float", float(label).hex()]
    if not isinstance(label, str):
        raise FileError(
            f"A level of type {type(label).__name__} cannot be saved; make the levels text."
        )
    return ["text", str(label)]


def label_from_json(stored: Sequence[Any]) -> Label:
    """Return the level that `label_to_json` stored."""
    kind, value = stored
    if kind == "int":
        return int(value)
    if kind == "float":
        return float.fromhex(value)
    return bool(value) if kind == "bool" else str(value)


def require_columns(
    frame: pd.DataFrame, names: Iterable[str], what: str, error: type[SynriskError] = DataError
) -> None:
    """Raise if `frame` lacks one of `names`, with the nearest name that it has."""
    for name in names:
        if name not in frame.columns:
            raise error(
                f"{what}: there is no column {name!r}.{nearest(name, frame.columns)} "
                f"It has: {listed(frame.columns)}."
            )


def check_types(types: Any, frame: pd.DataFrame) -> None:
    """Raise if `types` does not suit the data.

    That is: where it names a column that is not there, a type that is not known, numbers or levels
    that a column does not hold; also for columns that no formula uses, which are released.
    """
    text_columns(types)
    require_columns(frame, types or (), either("types=", "data.types"))
    for name, declared in (types or {}).items():
        if isinstance(declared, str):
            if declared not in _CATEGORY_WORDS + _NUMBER_WORDS:
                raise OptionError(
                    f"{setting('types', of=name)} must be 'category', 'numeric', a list of "
                    f"levels (the first is the reference), or {_A_RANGE}; got {got(declared)}."
                )
            if declared in _NUMBER_WORDS:
                Numeric(name).numbers(frame[name], _CONFIDENTIAL, DataError)
            continue
        if is_range(declared):
            _check_range(name, declared, frame[name])
            continue
        if len({label_key(level) for level in declared}) != len(declared) or len(declared) < 2:
            raise OptionError(f"{setting('types', of=name)}: give at least two levels, each once.")
        Factor(name, tuple(declared), True).encode(frame[name], _CONFIDENTIAL, DataError)


def text_columns(types: Types | None) -> dict[str, list[str]]:
    """Return the columns that `types` calls categories, each with its declared levels as text."""
    if types is not None and not isinstance(types, Mapping):
        raise OptionError(
            "types= is a dict by column, such as {'Race': ['1', '2'], 'Zip': 'category'}; "
            f"got {type(types).__name__}."
        )
    for name, declared in (types or {}).items():
        levels = not isinstance(declared, str) and isinstance(declared, Sequence | np.ndarray)
        if not (isinstance(declared, str) or (levels and all(map(_is_label, declared)))):
            raise OptionError(
                f"{setting('types', of=name)} must be 'category', 'numeric', a list of levels, or "
                f"{_A_RANGE}; got {type(declared).__name__}."
            )
    return {
        name: [] if isinstance(declared, str) else [label_key(level) for level in declared]
        for name, declared in (types or {}).items()
        if (declared in _CATEGORY_WORDS if isinstance(declared, str) else not is_range(declared))
    }


def is_range(declared: object) -> bool:
    """Tell whether `types` declares a range of numbers, (low, high): a tuple, no list of levels."""
    return (
        isinstance(declared, tuple)
        and not isinstance(declared, LevelsOfData)
        and len(declared) == _ENDS
        and all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in declared)
    )


def _check_range(name: str, declared: Any, values: pd.Series[Any]) -> None:
    """Raise if a declared range is none, or does not hold the column's values."""
    low, high = map(as_float, declared)
    if not -np.inf < low < high < np.inf:
        raise OptionError(
            f"{setting('types', of=name)}: a range is two finite numbers, low < high."
        )
    found = Numeric(name).numbers(values, _CONFIDENTIAL, DataError)
    if np.isin(found[~np.isnan(found)], (low, high)).all():
        raise OptionError(
            f"{setting('types', of=name)}: a tuple of two numbers is a range, and the column holds "
            "no other values; if they are levels, write them in a list."
        )
    n_outside = int(((found < low) | (found > high)).sum())
    if n_outside:
        raise OptionError(
            f"{setting('types', of=name)}: {counted(n_outside, 'value')} of the confidential data "
            "outside the declared range."
        )


def _is_label(value: object) -> bool:
    return isinstance(value, Hashable) and not isinstance(value, complex)


def _settle(
    values: pd.Series[Any],
    declared: str | Sequence[Label] | None,
    forced: bool,
    missing: MissingOfOne,
) -> Variable:
    variable = _settled(values, declared, forced, missing)
    if missing != "model":
        return variable
    if isinstance(variable, Factor):
        raise OptionError(
            f"missing= of {variable.name!r} is 'model', which is for numbers; of a factor 'level' "
            "makes missing a level, which its model then has too.",
            about=place_of("missing"),
        )
    found = variable.numbers(values, _CONFIDENTIAL, DataError)
    found = found[np.isfinite(found)]
    if not len(found):
        return variable
    # Also where nobody lacks it: what was declared decides, or a single gap would tell of itself.
    span = float(np.ptp(found)) or max(1.0, abs(float(found[0])))
    return replace(variable, gap=float(found.min()) - _BELOW * span)


def _settled(
    values: pd.Series[Any],
    declared: str | Sequence[Label] | None,
    forced: bool,
    missing: MissingOfOne,
) -> Variable:
    name = str(values.name)
    if is_range(declared) and declared is not None:
        if forced:
            raise OptionError(
                f"{setting('types', of=name)} is a range, but its model makes {name!r} a factor; "
                "list its levels."
            )
        return Numeric(name, (float(declared[0]), float(declared[1])))  # type: ignore[arg-type]
    if declared is not None and not isinstance(declared, str):
        stated = () if isinstance(declared, LevelsOfData) else tuple(declared)
        return _with_missing_level(Factor(name, tuple(declared), True, stated), values, missing)
    if isinstance(declared, str) and declared in _NUMBER_WORDS:
        return Numeric(name)
    if declared is None and not forced and not _is_categorical(values):
        return Numeric(name)
    levels = _observed_levels(values)
    chosen = isinstance(values.dtype, pd.CategoricalDtype) and all(
        isinstance(level, str | int) for level in levels
    )
    return _with_missing_level(Factor(name, levels, chosen), values, missing)


def _is_categorical(values: pd.Series[Any]) -> bool:
    """Tell whether a column holds categories; raise where its type does not settle it."""
    name, dtype = str(values.name), values.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return True
    if pd.api.types.is_complex_dtype(dtype):
        raise DataError(f"Column {name!r} holds complex numbers; real ones are needed.")
    if pd.api.types.is_numeric_dtype(dtype):
        return False
    _, distinct_values = _factorize(values, _CONFIDENTIAL, DataError)
    kinds = {type(value) for value in distinct_values}
    if not kinds <= {str, bool, np.bool_, int, float, np.int64, np.float64, np.str_}:
        raise DataError(
            f"Column {name!r} holds values of type {listed(sorted(k.__name__ for k in kinds))}; "
            "numbers, text, booleans and categories can be used. Convert it, "
            f"or call it a category: {setting('types', 'category', of=name)}."
        )
    distinct = pd.Series(distinct_values, dtype=object)
    n_numeric = len(distinct) - as_real_numbers(distinct)[1]
    if n_numeric > len(distinct) / 2 and (
        n_numeric < len(distinct) or n_numeric > _MOST_NUMERIC_TEXT_LEVELS
    ):
        numeric, category = (setting("types", word, of=name) for word in ("numeric", "category"))
        found = (
            f"Column {name!r} is text, but {n_numeric:,} of its {len(distinct):,} distinct values "
            "read as numbers"
        )
        if n_numeric == len(distinct):
            raise DataError(f"{found}. Settle it: {numeric} or {category}.")
        stray = np.isnan(as_real_numbers(values)[0]) & values.notna().to_numpy()
        raise DataError(
            f"{found}, and those in {_rows(stray)}, do not. If it should hold numbers, correct the "
            f"data there, or leave those rows out; if categories, say so: {category}."
        )
    return True


def _observed_levels(values: pd.Series[Any]) -> tuple[Label, ...]:
    """Return the levels that occur, in the categories' order if there is one, else sorted."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return tuple(values.cat.remove_unused_categories().cat.categories.tolist())
    _, distinct = _factorize(values, _CONFIDENTIAL, DataError)
    observed: list[Any] = list(distinct.tolist())
    if all(isinstance(value, float) and value.is_integer() for value in observed):
        observed = [int(value) for value in observed]  # integers with gaps arrive as floats
    if len({type(value) for value in observed}) > 1:
        return tuple(sorted(observed, key=label_key))
    return tuple(sorted(observed))


def _with_missing_level(factor: Factor, values: pd.Series[Any], missing: MissingOfOne) -> Factor:
    if bool((values.astype(object) == MISSING_LABEL).any()):
        raise DataError(
            f"Column {factor.name!r} holds the text {MISSING_LABEL!r}, which stands for missing "
            "values here; rename that level, or make its values missing."
        )
    if missing == "level" and values.isna().any() and MISSING_LABEL not in factor.levels:
        return replace(factor, levels=(*factor.levels, MISSING_LABEL))
    return factor
