"""Two files, or three, read and matched: the same columns, levels and units."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from synrisk.audit.compared_files import Files, Numbers
from synrisk.audit.kept_columns import kept_columns
from synrisk.audit.refusals import (
    CONFIDENTIAL,
    HELD_OUT,
    check_roles,
    check_there,
    refuse_dates,
    refuse_few,
    refuse_naming,
    refuse_other_levels,
    refuse_other_names,
    refuse_other_units,
    refuse_own_names,
    refuse_same_source,
    refuse_swapped,
    refuse_telling,
    without_copies,
)
from synrisk.base.errors import (
    DataError,
    OptionError,
    SynriskError,
    SyntheticDataError,
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
from synrisk.synthesis.identifiers import names_people
from synrisk.synthesis.release import as_datasets

_LEAVE_OUT = "Take it out of all files, or name the columns to compare in keys and sensitive."


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
    refuse_same_source(confidential, given, holdout)
    text = text_columns(types)
    people = _read(confidential, CONFIDENTIAL, text, DataError)
    release = [
        _read(one, f"Synthetic dataset {number}", text, SyntheticDataError)
        for number, one in enumerate(given, 1)
    ]
    others = None if holdout is None else _read(holdout, HELD_OUT, text, DataError)
    refuse_few(people, release, others)
    check_types(types, people)
    known, sought = _names("keys", keys), _names("sensitive", sensitive)
    check_roles(people, known, sought)
    check_there(release, (*(known or ()), *(sought or ())))
    named = (*(known or ()), *(sought or ()))
    added = _added(people, release)
    refuse_swapped(release, added)
    is_whole = known is not None and sought is not None
    names, notes = _common(people, release, named, added, strict=not is_whole)
    refuse_telling(people, release, added)
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
    refuse_other_units(files)
    files = without_copies(replace(files, notes=tuple(notes)))
    notes = list(files.notes)
    return _with_roles(files, sought, notes)


def _read(
    source: Any, what: str, text: Mapping[str, Any], error: type[SynriskError]
) -> pd.DataFrame:
    frame = read_table(source, what, text=text, error=error)
    if not len(frame):
        raise error(f"{what} has no rows: is it the right file, and written to its end?")
    return frame


def _names(argument: str, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
        raise OptionError(f"{argument} is a list of names of columns; got {got(given)}.")
    if not names:
        raise OptionError(f"{argument} names no column; leave it out, or name some.")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise OptionError(f"{argument} names {listed(twice)} twice; once is enough.")
    return tuple(names)


def _added(people: pd.DataFrame, release: Sequence[pd.DataFrame]) -> tuple[str, ...]:
    """Return the columns that the release alone has."""
    names = (name for one in release for name in one.columns if name not in people.columns)
    return tuple(dict.fromkeys(names))


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
    refuse_other_names(people, release, alone, added)
    if alone:
        notes.append(f"Not in the release, and not looked at: {listed(alone)}.")
    if added:
        notes.append(f"In the release alone, and not looked at: {listed(added)}.")
    for name in common if strict else ():
        refuse_dates(people[name])
    naming = [name for name in common if names_people(people[name])]
    refuse_naming([name for name in named if name in naming])
    refuse_own_names(people, release, naming)
    if naming:
        notes.append(f"Taken for names or numbers of records, and left out: {listed(naming)}.")
    return tuple(name for name in common if name not in naming), notes


def _variables(
    people: pd.DataFrame,
    release: Sequence[pd.DataFrame],
    others: pd.DataFrame | None,
    names: Sequence[str],
    types: Types | None,
) -> dict[str, Variable]:
    """Return what the columns hold; levels of either file."""
    for name in names:
        refuse_dates(people[name])
        if people[name].isna().all():
            raise DataError(f"{CONFIDENTIAL}: column {name!r} is empty. {_LEAVE_OUT}")
    given = {name: declared for name, declared in (types or {}).items() if name in names}
    schema = Schema.settle(people, names, types=given, factors=(), missing="error")
    variables: dict[str, Variable] = {}
    for name, variable in schema.variables.items():
        found = variable
        for number, frame in enumerate(release, 1):
            what = f"Synthetic dataset {number}"
            found = _with_levels(found, frame[name], what, SyntheticDataError)
        if others is not None:
            if name not in others.columns:
                raise DataError(
                    f"{HELD_OUT} have no column {name!r}, which both other files have."
                    f"{nearest(name, others.columns)}"
                )
            found = _with_levels(found, others[name], HELD_OUT, DataError)
        variables[name] = found
    return variables


def _with_levels(
    variable: Variable, values: pd.Series[Any], what: str, error: type[SynriskError]
) -> Variable:
    """Return a factor with the levels that a table adds; raise where it has no other."""
    if not isinstance(variable, Factor):
        return variable
    known = {label_key(level).lower() for level in variable.levels}
    there = pd.unique(values.dropna().astype(object))
    new = [level for level in there if label_key(level).lower() not in known]
    is_logical = all(isinstance(level, bool | np.bool_) for level in variable.levels)
    keys = {label_key(level) for level in variable.levels}
    if len(there) and not is_logical and not any(label_key(level) in keys for level in there):
        refuse_other_levels(variable.name, what, error)
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
                raise error(f"{what}: column {name!r} is empty. {_LEAVE_OUT}")
            columns.append(np.where(is_gap, np.nan, values))
        return Numbers(np.column_stack(columns))

    return (
        encode(people, CONFIDENTIAL, DataError),
        tuple(
            encode(one, f"Synthetic dataset {number}", SyntheticDataError)
            for number, one in enumerate(release, 1)
        ),
        None if others is None else encode(others, HELD_OUT, DataError),
    )


def _without_constants(files: Files, notes: list[str]) -> tuple[Files, list[str]]:
    """Return the files without columns in which all people agree."""
    values = files.people.values
    differ = np.array([len(np.unique(column)) > 1 for column in values.T])
    same = [name for name, one in zip(files.names, differ, strict=True) if not one]
    if not differ.any():
        raise DataError(
            f"{CONFIDENTIAL}: every column has one value only, so that nobody differs from anybody "
            "and nothing can be learnt."
        )
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
    """Return the files with the columns that are in the release as they are."""
    kept = kept_columns(files.people.values, [one.values for one in files.release])
    if kept.all():
        raise SyntheticDataError(
            "The release holds the confidential records themselves, all of them and nothing else: "
            "is it the same file? Nothing is synthetic in it."
        )
    return replace(
        files, kept=tuple(name for name, one in zip(files.names, kept, strict=True) if one)
    )


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
            raise OptionError(
                f"sensitive: {listed(gone)} is the same for everybody, so that there is nothing to "
                "learn of it. Leave it out."
            )
    beside = "all other columns" if keys is None else listed(keys)
    notes = [*notes, f"The intruder is taken to know {beside} of the person."]
    if files.kept:
        notes.append(f"In the release as they are in the confidential file: {listed(files.kept)}.")
    return replace(files, sensitive=sought, notes=tuple(notes))
