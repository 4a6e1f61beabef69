"""Two files, or three, as arrays: which columns are compared, which are known, which sensitive."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from synrisk.audit.known_values import Known
from synrisk.audit.learnt_values import People
from synrisk.audit.left_out_parts import Intervals
from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import (
    DataError,
    DisclosureError,
    OptionError,
    SynriskError,
    SyntheticDataError,
    counted,
    got,
    listed,
    nearest,
)
from synrisk.data.frames import read_table
from synrisk.data.schema import (
    Factor,
    Schema,
    Types,
    Variable,
    check_types,
    label_key,
    text_columns,
)
from synrisk.risk.guesses.tolerance import Tolerance, near
from synrisk.risk.neighbours import common_cells
from synrisk.synthesis.identifiers import is_row_counter, names_people
from synrisk.synthesis.release import as_datasets

FEW_VALUES = 20  # of a number, which then agrees or not, as a level does
LEAST_RECORDS = 20
_MOST_SHARED = 0.5  # of held-out people who are in the confidential file too
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}\b.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_MADE = re.compile(r"(?i)syn|fake|artificial|release")
_CONFIDENTIAL, _HELD_OUT = "The confidential data", "The held-out data"


@dataclass(frozen=True, eq=False, repr=False)
class Numbers:
    """The compared columns of one table: a row a record, levels as codes, NaN for a gap.

    Attributes
    ----------
    values
        A column each, in the order of the names.
    """

    SHAPES: ClassVar = {"values": ("row", "column")}
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False, repr=False)
class Files:
    """What is compared.

    Attributes
    ----------
    variables
        Of the compared columns, in their order.
    people, release, others
        Confidential records; the datasets; held-out people, or None.
    keys
        What the intruder knows; None for all columns but the sensitive one.
    sensitive
        Of which something may be learnt.
    kept
        Columns that are in the release as they are in the confidential file.
    labels
        Of the confidential records.
    notes
        What was chosen, and why.
    added
        Columns that the release alone has.
    """

    variables: Mapping[str, Variable]
    people: Numbers
    release: tuple[Numbers, ...]
    others: Numbers | None
    keys: tuple[str, ...] | None
    sensitive: tuple[str, ...]
    kept: tuple[str, ...]
    labels: pd.Index[Any]
    notes: tuple[str, ...]
    added: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The compared columns."""
        return tuple(self.variables)

    @property
    def made(self) -> tuple[str, ...]:
        """The compared columns that are not as they are in the confidential file."""
        return tuple(name for name in self.names if name not in self.kept)

    @property
    def rows(self) -> Numbers:
        """All rows of the release."""
        return Numbers(np.concatenate([one.values for one in self.release]))

    def known_beside(self, name: str) -> tuple[str, ...]:
        """Return what the intruder knows of somebody whose value of a column is sought."""
        return tuple(one for one in (self.names if self.keys is None else self.keys) if one != name)

    def column(self, table: Numbers, name: str) -> FloatArray:
        """Return a column of a table."""
        return table.values[:, self.names.index(name)]

    def few_values(self, name: str) -> bool:
        """Tell whether a column holds levels, or so few numbers that they agree or do not."""
        if isinstance(self.variables[name], Factor):
            return True
        return len(np.unique(self.column(self.people, name))) <= FEW_VALUES

    def is_whole(self, name: str) -> bool:
        """Tell whether a column's numbers are counts."""
        values = self.column(self.people, name)
        known = values[~np.isnan(values)]
        return bool((known == np.rint(known)).all() and known.min(initial=0.0) >= 0.0)

    def tolerance(self, name: str) -> Tolerance | None:
        """Return how near to a number counts as the truth; None for a level."""
        if isinstance(self.variables[name], Factor):
            return None
        values = self.column(self.people, name)
        return near(values[~np.isnan(values)], is_whole=self.is_whole(name))

    def intervals(self, table: Numbers, name: str) -> Intervals:
        """Return what counts as the truth of a column for each row of a table."""
        truth = self.filled(table, name)
        tolerance = self.tolerance(name)
        if tolerance is None:
            return Intervals(truth, truth)
        everybody = self.column(self.people, name)
        everybody = everybody[~np.isnan(everybody)]
        whole = self.is_whole(name)
        reach = tolerance.reach(truth, everybody, float(everybody.std()), is_whole=whole)
        reach = np.where(np.isnan(self.column(table, name)), 0.0, reach)
        return Intervals(truth - reach, truth + reach)

    def filled(self, table: Numbers, name: str) -> FloatArray:
        """Return a column with its gaps as a number beyond all others."""
        values, own = self.column(table, name), self.column(self.people, name)
        known = own[~np.isnan(own)]
        low, high = float(known.min(initial=0.0)), float(known.max(initial=0.0))
        return np.where(np.isnan(values), low - 2.0 * (high - low) - 1.0, values)

    def known(self, table: Numbers, names: Sequence[str]) -> Known:
        """Return columns of a table as those by which rows are near."""
        codes, numbers = [np.zeros(len(table))], [np.zeros((len(table), 0))]
        for name in names:
            values = self.column(table, name)
            if self.few_values(name):
                codes.append(self.filled(table, name))
                continue
            own = self.column(self.people, name)
            numbers.append(np.where(np.isnan(values), np.nanmedian(own), values)[:, None])
            if np.isnan(own).any():
                codes.append(np.isnan(values).astype(np.float64))
        return Known(np.column_stack(codes), np.column_stack(numbers))

    def frame(self, table: Numbers) -> pd.DataFrame:
        """Return a table as somebody reads it."""
        columns = {}
        for name, variable in self.variables.items():
            values = self.column(table, name)
            if isinstance(variable, Factor):
                gap = np.isnan(values)
                labels = variable.decode(np.where(gap, 0, values).astype(np.int64))
                columns[name] = pd.Series(labels, dtype=object).where(~gap)
            else:
                columns[name] = pd.Series(values)
        frame = pd.DataFrame(columns)
        return frame.set_axis(self.labels) if table is self.people else frame

    def who(self, table: Numbers, name: str) -> People:
        """Return the rows of a table as people of whom one column is sought."""
        names = self.known_beside(name)
        given = [self.filled(table, one) for one in names]
        stacked = np.column_stack(given) if given else np.zeros((len(table), 0))
        return People(self.known(table, names), stacked, self.filled(table, name))


def read_two_files(
    confidential: Any,
    synthetic: Any,
    holdout: Any,
    keys: Any,
    sensitive: Any,
    types: Types | None,
) -> Files:
    """Return both files as arrays, or raise where they cannot be compared."""
    given = as_datasets(synthetic)
    _refuse_same_source(confidential, given, holdout)
    text = text_columns(types)
    people = _read(confidential, _CONFIDENTIAL, text, DataError)
    release = [
        _read(one, f"Synthetic dataset {number}", text, SyntheticDataError)
        for number, one in enumerate(given, 1)
    ]
    others = None if holdout is None else _read(holdout, _HELD_OUT, text, DataError)
    if len(people) < LEAST_RECORDS:
        raise DataError(
            f"{_CONFIDENTIAL}: {counted(len(people), 'record')}; at least {LEAST_RECORDS} are "
            "needed to tell what other people teach."
        )
    check_types(types, people)
    known, sought = _names("keys", keys), _names("sensitive", sensitive)
    _check_roles(people, known, sought)
    _check_there(release, (*(known or ()), *(sought or ())))
    named = (*(known or ()), *(sought or ()))
    added = _added(people, release)
    is_whole = known is not None and sought is not None
    names, notes = _common(people, release, named, added, strict=not is_whole)
    _refuse_telling(people, release, added)
    if is_whole:
        # Copies are looked for in all columns; those that cannot be read are not what is asked.
        beside = [name for name in names if name not in named]
        read = [name for name in beside if _can_be_read(people, release, others, name, types)]
        if len(read) < len(beside):
            unread = [name for name in beside if name not in read]
            notes.append(f"Cannot be compared, and not looked at: {listed(unread)}.")
        names = (*named, *read)
    variables = _variables(people, release, others, names, types)
    tables = _encoded(variables, people, release, others)
    files = Files(variables, *tables, known, (), (), people.index, (), added)
    files, notes = _without_constants(files, notes)
    files = _with_kept(files)
    _refuse_other_units(files)
    _refuse_shared(files)
    return _with_roles(files, sought, notes)


def _read(
    source: Any, what: str, text: Mapping[str, Any], error: type[SynriskError]
) -> pd.DataFrame:
    frame = read_table(source, what, text=text, error=error)
    if not len(frame):
        raise error(f"{what} has no rows.")
    return frame


def _refuse_same_source(confidential: Any, given: Sequence[Any], holdout: Any) -> None:
    """Raise where a file is given twice, or both are given in each other's place."""
    paths = [
        (what, Path(one))
        for what, one in (
            ("the confidential data", confidential),
            *(("the synthetic data", one) for one in given),
            ("the held-out data", holdout),
        )
        if isinstance(one, str | os.PathLike)
    ]
    seen: dict[Path, str] = {}
    for what, path in paths:
        whole = path.absolute()
        if whole in seen:
            raise OptionError(f"{path.name} is given as {seen[whole]} and as {what}.")
        seen[whole] = what
    if len(paths) > 1 and paths[0][0] == "the confidential data":
        first, second = paths[0][1].name, paths[1][1].name
        if _MADE.search(first) and not _MADE.search(second):
            raise OptionError(
                f"{first} is given as the confidential data and {second} as synthetic: are they in "
                "each other's place? The confidential file comes first. If it is not so, rename "
                "them."
            )


def _names(argument: str, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
        raise OptionError(f"{argument} is a list of names of columns; got {got(given)}.")
    if not names:
        raise OptionError(f"{argument} names no column; leave it out, or name some.")
    if len(set(names)) < len(names):
        raise OptionError(f"{argument} names a column twice.")
    return tuple(names)


def _check_roles(
    people: pd.DataFrame, keys: tuple[str, ...] | None, sensitive: tuple[str, ...] | None
) -> None:
    for argument, names in (("keys", keys), ("sensitive", sensitive)):
        for name in names or ():
            if name not in people.columns:
                raise OptionError(
                    f"{argument}: the confidential data have no column {name!r}."
                    f"{nearest(name, people.columns)} They have: {listed(people.columns)}."
                )
    both = [name for name in keys or () if name in (sensitive or ())]
    if both:
        raise OptionError(
            f"{listed(both)}: named in keys and in sensitive; what the intruder knows is not "
            "sought."
        )


def _check_there(release: Sequence[pd.DataFrame], names: Sequence[str]) -> None:
    for number, frame in enumerate(release, 1):
        for name in names:
            if name not in frame.columns:
                raise SyntheticDataError(
                    f"Synthetic dataset {number} has no column {name!r}, which is named in keys or "
                    f"sensitive.{nearest(name, frame.columns)}"
                )


def _added(people: pd.DataFrame, release: Sequence[pd.DataFrame]) -> tuple[str, ...]:
    """Return the columns that the release alone has."""
    names = (name for one in release for name in one.columns if name not in people.columns)
    return tuple(dict.fromkeys(names))


def _refuse_telling(
    people: pd.DataFrame, release: Sequence[pd.DataFrame], added: Sequence[str]
) -> None:
    """Raise where an added column tells a confidential one in place, by its values or a code."""
    for frame in release:
        if len(frame) != len(people):
            continue
        for name in (one for one in added if one in frame.columns):
            found = next((own for own in people.columns if _tells(frame[name], people[own])), None)
            if found is not None:
                raise DisclosureError(
                    f"Column {name!r} of the release tells {found!r} of every person, row by row. "
                    "Take it out."
                )


def _tells(values: pd.Series[Any], own: pd.Series[Any]) -> bool:
    """Tell whether a column is another, or a code of it, where the other's values repeat."""
    codes, n_values = _coded(values)
    others, n_others = _coded(own)
    if n_others < 2 or n_values < 2:
        return False
    if n_others <= _MOST_SHARED * len(own):
        return n_values == n_others == len(np.unique(codes * (n_others + 1) + others))
    same = values.astype(object).map(label_key).to_numpy() == own.astype(object).map(label_key)
    return bool(same.mean() > _MOST_SHARED)


def _coded(values: pd.Series[Any]) -> tuple[Any, int]:
    """Return values as codes from 0, a gap as the last one, and how many there are."""
    codes, levels = pd.factorize(values.astype(object).map(label_key, na_action="ignore"))
    gap = codes < 0
    return np.where(gap, len(levels), codes).astype(np.int64), len(levels) + bool(gap.any())


def _can_be_read(
    people: pd.DataFrame,
    release: Sequence[pd.DataFrame],
    others: pd.DataFrame | None,
    name: str,
    types: Types | None,
) -> bool:
    with contextlib.suppress(SynriskError):
        variables = _variables(people, release, others, [name], types)
        _encoded(variables, people, release, others)
        return True
    return False


def _common(
    people: pd.DataFrame,
    release: Sequence[pd.DataFrame],
    named: Sequence[str],
    added: Sequence[str],
    *,
    strict: bool,
) -> tuple[tuple[str, ...], list[str]]:
    """Return the columns that all tables have, without those that name people, and notes.

    If `strict`, dates are refused; else whatever cannot be compared is left out later.
    """
    notes = []
    common = [name for name in people.columns if all(name in one.columns for one in release)]
    alone = [name for name in people.columns if name not in common]
    for name in alone:
        near_by = nearest(name, added)
        if near_by:
            raise SyntheticDataError(
                f"The release has no column {name!r}.{near_by} Give columns of both files the same "
                "names."
            )
    if not common:
        raise SyntheticDataError(
            "The two files have no column in common: the confidential data have "
            f"{listed(people.columns)}; the release has {listed(release[0].columns)}."
        )
    if alone:
        notes.append(f"Not in the release, and not looked at: {listed(alone)}.")
    if added:
        notes.append(f"In the release alone, and not looked at: {listed(added)}.")
    for name in common if strict else ():
        _refuse_dates(people[name], _CONFIDENTIAL)
    naming = [name for name in common if names_people(people[name])]
    _refuse_naming(people, [name for name in named if name in naming])
    for name in naming:
        if is_row_counter(people[name]):
            continue
        ids = set(people[name].dropna().map(label_key))
        if any(one[name].dropna().map(label_key).isin(ids).any() for one in release):
            raise DisclosureError(
                f"Column {name!r} names people, and the release holds the confidential data's own "
                "names: take it out of the release."
            )
    if naming:
        notes.append(f"Taken for names or numbers of records, and left out: {listed(naming)}.")
    return tuple(name for name in common if name not in naming), notes


def _refuse_naming(people: pd.DataFrame, names: Sequence[str]) -> None:
    naming = [name for name in names if names_people(people[name])]
    if naming:
        raise OptionError(
            f"{listed(naming)} seems to name people, everybody by another value: nothing can be "
            "learnt of it from others. Leave it out of keys and sensitive."
        )


def _variables(
    people: pd.DataFrame,
    release: Sequence[pd.DataFrame],
    others: pd.DataFrame | None,
    names: Sequence[str],
    types: Types | None,
) -> dict[str, Variable]:
    """Return what the columns hold; levels of either file."""
    for name in names:
        _refuse_dates(people[name], _CONFIDENTIAL)
        if people[name].isna().all():
            raise DataError(f"{_CONFIDENTIAL}: column {name!r} is empty.")
    given = {name: declared for name, declared in (types or {}).items() if name in names}
    schema = Schema.settle(people, names, types=given, factors=(), missing="error")
    variables: dict[str, Variable] = {}
    for name, variable in schema.variables.items():
        found = variable
        for frame in release:
            found = _with_levels(found, frame[name])
        if others is not None:
            if name not in others.columns:
                raise DataError(
                    f"{_HELD_OUT} have no column {name!r}, which both other files have."
                    f"{nearest(name, others.columns)}"
                )
            found = _with_levels(found, others[name])
        variables[name] = found
    return variables


def _refuse_dates(values: pd.Series[Any], what: str) -> None:
    kinds = pd.api.types
    is_date = kinds.is_datetime64_any_dtype(values.dtype) or kinds.is_timedelta64_dtype(
        values.dtype
    )
    if not is_date and not kinds.is_numeric_dtype(values.dtype):
        known = values.dropna().astype(str).head(100)
        is_date = len(known) > 0 and bool(known.str.fullmatch(_DATE).all())
    if is_date:
        raise DataError(
            f"{what}: column {str(values.name)!r} holds dates. Make numbers of them in both files "
            "(days since a date, or the year), or name the columns to compare in keys and "
            "sensitive."
        )


def _with_levels(variable: Variable, values: pd.Series[Any]) -> Variable:
    """Return a factor with the levels that a table adds; raise where it has no other."""
    if not isinstance(variable, Factor):
        return variable
    known = {label_key(level).lower() for level in variable.levels}
    there = pd.unique(values.dropna().astype(object))
    new = [level for level in there if label_key(level).lower() not in known]
    if not new or variable.stated or len(new) == len(there):
        return variable  # which refuses what it does not know
    return replace(variable, levels=(*variable.levels, *new))


def _encoded(
    variables: Mapping[str, Variable],
    people: pd.DataFrame,
    release: Sequence[pd.DataFrame],
    others: pd.DataFrame | None,
) -> tuple[Numbers, tuple[Numbers, ...], Numbers | None]:
    def encode(frame: pd.DataFrame, what: str, error: type[SynriskError]) -> Numbers:
        columns = []
        for name, variable in variables.items():
            column = frame[name]
            if not isinstance(variable, Factor) and isinstance(column.dtype, pd.CategoricalDtype):
                column = column.astype(object)  # numbers that another file has as levels
            values = variable.encode(column, what, error).astype(np.float64)
            is_gap = values == -1.0 if isinstance(variable, Factor) else np.isnan(values)
            if is_gap.all():
                raise error(f"{what}: column {name!r} is empty.")
            columns.append(np.where(is_gap, np.nan, values))
        return Numbers(np.column_stack(columns))

    return (
        encode(people, _CONFIDENTIAL, DataError),
        tuple(
            encode(one, f"Synthetic dataset {number}", SyntheticDataError)
            for number, one in enumerate(release, 1)
        ),
        None if others is None else encode(others, _HELD_OUT, DataError),
    )


def _without_constants(files: Files, notes: list[str]) -> tuple[Files, list[str]]:
    """Return the files without columns in which all people agree."""
    values = files.people.values
    differ = np.array([len(np.unique(column)) > 1 for column in values.T])
    same = [name for name, one in zip(files.names, differ, strict=True) if not one]
    if not differ.any():
        raise DataError(f"{_CONFIDENTIAL}: every column has one value only.")
    if same:
        notes = [*notes, f"The same for everybody, and left out: {listed(same)}."]

    def cut(table: Numbers) -> Numbers:
        return Numbers(table.values[:, differ])

    variables = {name: files.variables[name] for name in files.names if name not in same}
    release = tuple(map(cut, files.release))
    others = None if files.others is None else cut(files.others)
    keys = None if files.keys is None else tuple(one for one in files.keys if one not in same)
    changed = replace(files, variables=variables, people=cut(files.people), release=release)
    return replace(changed, others=others, keys=keys), notes


def _with_kept(files: Files) -> Files:
    """Return the files with the columns that are in the release as they are, in any order of rows.

    Their rows are those of the confidential file, as often as there.
    """
    own = files.people.values
    if any(len(one) != len(own) for one in files.release):
        return files

    def is_kept(columns: BoolArray) -> bool:
        for one in files.release:
            records, rows = common_cells(_bits(own[:, columns]), _bits(one.values[:, columns]))
            if not np.array_equal(np.sort(records), np.sort(rows)):
                return False
        return True

    each = np.array([is_kept(np.arange(own.shape[1]) == k) for k in range(own.shape[1])])
    if not each.any() or not is_kept(each):
        return files
    if each.all():
        raise SyntheticDataError(
            "The release holds the confidential records themselves, all of them and nothing else: "
            "is it the same file? Nothing is synthetic in it."
        )
    return replace(
        files, kept=tuple(name for name, one in zip(files.names, each, strict=True) if one)
    )


def _bits(values: FloatArray) -> Any:
    """Return numbers as whole ones that are equal where they are."""
    return (np.nan_to_num(values, nan=np.inf) + 0.0).view(np.int64)


def _refuse_other_units(files: Files) -> None:
    for name in files.names:
        if isinstance(files.variables[name], Factor):
            continue
        own = files.column(files.people, name)
        for number, one in enumerate(files.release, 1):
            theirs = files.column(one, name)
            if np.nanmin(theirs) > np.nanmax(own) or np.nanmax(theirs) < np.nanmin(own):
                raise SyntheticDataError(
                    f"Synthetic dataset {number}: no value of {name!r} lies in the range of the "
                    "confidential data. Is it in the same units?"
                )


def _refuse_shared(files: Files) -> None:
    """Raise where people who should not be in the confidential file are, or are the release."""
    if files.others is None:
        return
    twins = _shared(files.people, files.people)
    tables = [(one, "the release") for one in files.release]
    for table, what in [(files.people, "the confidential data"), *tables]:
        # People of few columns agree with others by chance, as much as within the file.
        if _shared(files.others, table) > twins + _MOST_SHARED:
            raise DataError(
                f"{_HELD_OUT} are rows of {what}: they must be people of the same kind who are in "
                "neither file."
            )


def _shared(these: Numbers, those: Numbers) -> float:
    """Return the share of rows that are in another table too; of one table, those there twice."""
    theirs, own = common_cells(_bits(these.values), _bits(those.values))
    n_each = np.bincount(own, minlength=int(theirs.max()) + 1)
    return float((n_each[theirs] > (these is those)).mean())


def _with_roles(files: Files, sought: tuple[str, ...] | None, notes: list[str]) -> Files:
    """Return the files with what is sensitive, and what was chosen in words."""
    keys = files.keys
    if sought is None:
        sought = tuple(name for name in files.made if name not in (keys or ()))
        if not sought:
            raise OptionError(
                "Nothing is left that could be learnt: every column is a key, or is in the release "
                "as it is. Name what is sensitive."
            )
        notes = [*notes, f"Taken as sensitive: {listed(sought)}."]
    else:
        gone = [name for name in sought if name not in files.names]
        if gone:
            raise OptionError(f"sensitive: {listed(gone)} is the same for everybody.")
    beside = "all other columns" if keys is None else listed(keys)
    notes = [*notes, f"The intruder is taken to know {beside} of the person."]
    if files.kept:
        notes.append(f"In the release as they are in the confidential file: {listed(files.kept)}.")
    return replace(files, sensitive=sought, notes=tuple(notes))
