"""What two files cannot be compared by: each mistake refused with what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from scipy.special import bdtrc

from synrisk.audit.compared_files import Files, Numbers, bits
from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import (
    DataError,
    DisclosureError,
    OptionError,
    SynriskError,
    SyntheticDataError,
    counted,
    listed,
    nearest,
)
from synrisk.data.schema import Factor, label_key
from synrisk.risk.neighbours import common_cells
from synrisk.synthesis.identifiers import is_row_counter, names_people

CONFIDENTIAL, HELD_OUT = "The confidential data", "The held-out data"  # in messages
LEAST_RECORDS = 20
_MOST_SHARED = 0.5  # of held-out people who are in the confidential file too
_BY_CHANCE = 0.01  # how often as many are there who only agree with somebody
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}\b.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_MADE = re.compile(r"(?i)syn|fake|artificial|release")


def refuse_other_levels(name: str, what: str, error: type[SynriskError]) -> NoReturn:
    """Raise about a column that has none of the confidential levels."""
    raise error(
        f"{what}: column {name!r} has none of the levels that it has in the confidential data: are "
        "they coded or spelt otherwise? Code them alike in all files."
    )


def refuse_same_source(confidential: Any, given: Sequence[Any], holdout: Any) -> None:
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
            if seen[whole] == what:
                raise OptionError(f"{path.name} is given twice as {what}: name each file once.")
            raise OptionError(
                f"{path.name} is given as {seen[whole]} and as {what}: these are different files."
            )
        seen[whole] = what
    if len(paths) > 1 and paths[0][0] == "the confidential data":
        first, second = paths[0][1].name, paths[1][1].name
        if _MADE.search(first) and not _MADE.search(second):
            raise OptionError(
                f"{first} is given as the confidential data and {second} as synthetic: are they in "
                "each other's place? The confidential file comes first. If it is not so, rename "
                "them."
            )


def check_roles(
    people: pd.DataFrame, keys: tuple[str, ...] | None, sensitive: tuple[str, ...] | None
) -> None:
    """Raise where a named column is not there, or is both known and sought."""
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


def check_there(release: Sequence[pd.DataFrame], names: Sequence[str]) -> None:
    """Raise where the release lacks a named column."""
    for number, frame in enumerate(release, 1):
        for name in names:
            if name not in frame.columns:
                raise SyntheticDataError(
                    f"Synthetic dataset {number} has no column {name!r}, which is named in keys or "
                    f"sensitive.{nearest(name, frame.columns)} What is not released cannot be "
                    "compared: name columns that both files have."
                )


def refuse_telling(
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


def refuse_few(
    people: pd.DataFrame, release: Sequence[pd.DataFrame], others: pd.DataFrame | None
) -> None:
    """Raise where there are too few people, or too few rows to tell chance from copies."""
    if len(people) < LEAST_RECORDS:
        raise DataError(
            f"{CONFIDENTIAL}: {counted(len(people), 'record')}; at least {LEAST_RECORDS} are "
            "needed to tell what other people teach."
        )
    for number, one in enumerate(release, 1):
        if len(one) < LEAST_RECORDS:
            raise SyntheticDataError(
                f"Synthetic dataset {number}: {counted(len(one), 'row')}; at least "
                f"{LEAST_RECORDS} are needed to tell copies of people from chance."
            )
    if others is not None and len(others) < LEAST_RECORDS:
        raise DataError(
            f"{HELD_OUT}: {counted(len(others), 'row')}; at least {LEAST_RECORDS} people are "
            "needed for a comparison."
        )


def refuse_swapped(release: Sequence[pd.DataFrame], added: Sequence[str]) -> None:
    """Raise where the release names somebody in every row, and the confidential data do not."""
    for frame in release:
        for name in (one for one in added if one in frame.columns):
            if names_people(frame[name]) and not is_row_counter(frame[name]):
                raise SyntheticDataError(
                    f"Column {name!r} of the release seems to name people, and the confidential "
                    "data have no such column: are the files in each other's place? The "
                    "confidential file comes first. If it is not so, take the column out."
                )


def refuse_naming(naming: Sequence[str]) -> None:
    """Raise where columns that name people are keys or sensitive."""
    if naming:
        raise OptionError(
            f"{listed(naming)} seems to name people, everybody by another value: nothing can be "
            "learnt of it from others. Leave it out of keys and sensitive."
        )


def refuse_own_names(
    people: pd.DataFrame, release: Sequence[pd.DataFrame], naming: Sequence[str]
) -> None:
    """Raise where the release holds names of people."""
    for name in naming:
        if is_row_counter(people[name]):
            continue
        ids = set(people[name].dropna().map(label_key))
        if any(one[name].dropna().map(label_key).isin(ids).any() for one in release):
            raise DisclosureError(
                f"Column {name!r} names people, and the release holds the confidential data's own "
                "names: take it out of the release."
            )


def refuse_other_names(
    people: pd.DataFrame,
    release: Sequence[pd.DataFrame],
    alone: Sequence[str],
    added: Sequence[str],
) -> None:
    """Raise where a column may be in the release under another name, or none is in both files."""
    for name in alone:
        near_by = nearest(name, added)
        if near_by:
            raise SyntheticDataError(
                f"The release has no column {name!r}.{near_by} Give columns of both files the same "
                "names."
            )
    if len(alone) == len(people.columns):
        raise SyntheticDataError(
            "The two files have no column in common: the confidential data have "
            f"{listed(people.columns)}; the release has {listed(release[0].columns)}."
        )


def refuse_dates(values: pd.Series[Any]) -> None:
    """Raise where a column of the confidential data holds dates."""
    kinds = pd.api.types
    is_date = kinds.is_datetime64_any_dtype(values.dtype) or kinds.is_timedelta64_dtype(
        values.dtype
    )
    if not is_date and not kinds.is_numeric_dtype(values.dtype):
        known = values.dropna().astype(str).head(100)
        is_date = len(known) > 0 and bool(known.str.fullmatch(_DATE).all())
    if is_date:
        raise DataError(
            f"{CONFIDENTIAL}: column {str(values.name)!r} holds dates. Make numbers of them in "
            "both files (days since a date, or the year), or name the columns to compare in keys "
            "and sensitive."
        )


def refuse_other_units(files: Files) -> None:
    """Raise where all numbers of a column lie beyond the confidential ones."""
    for name in files.names:
        if isinstance(files.variables[name], Factor):
            continue
        own = files.column(files.people, name)
        for number, one in enumerate(files.release, 1):
            theirs = files.column(one, name)
            if _is_beyond(theirs, own):
                raise SyntheticDataError(
                    f"Synthetic dataset {number}: no value of {name!r} lies in the range of the "
                    "confidential data. Is it in the same units?"
                )
        if files.others is not None and _is_beyond(files.column(files.others, name), own):
            raise DataError(
                f"{HELD_OUT}: no value of {name!r} lies in the range of the confidential data. Is "
                "it in the same units?"
            )


def _is_beyond(theirs: FloatArray, own: FloatArray) -> bool:
    above, below = np.nanmin(theirs) > np.nanmax(own), np.nanmax(theirs) < np.nanmin(own)
    return bool(above or below)


def without_copies(files: Files) -> Files:
    """Return the files without held-out rows that stand in the confidential file: no control.

    People of few columns agree with others by chance, as much as within the file: then nobody is
    left out. Raise where most of them stand there, or are the release.
    """
    if files.others is None:
        return files
    among_people = _shared(files.people, files.people)
    twins = float(among_people.mean())
    in_people = _shared(files.others, files.people)
    tables = [
        (_shared(files.others, one), float(_shared(files.people, one).mean()), "the release")
        for one in files.release  # of many rows some agree with anybody
    ]
    for shared, by_chance, what in [(in_people, twins, "the confidential data"), *tables]:
        if shared.mean() > by_chance + _MOST_SHARED:
            raise DataError(
                f"{HELD_OUT} are rows of {what}: they must be people of the same kind who are in "
                "neither file."
            )
    n_shared = int(in_people.sum())
    expected = (among_people.sum() + 1.0) / (len(files.people) + 1.0)
    if not n_shared or bdtrc(n_shared - 1, len(in_people), min(expected, 1.0)) > _BY_CHANCE:
        return files
    others = Numbers(files.others.values[~in_people])
    if len(others) < LEAST_RECORDS:
        raise DataError(
            f"{HELD_OUT}: {counted(len(others), 'row')} beside those that stand in the "
            f"confidential data too; at least {LEAST_RECORDS} people who are in neither file are "
            "needed for a comparison."
        )
    note = (
        f"Of the held-out data {counted(n_shared, 'row')} stand in the confidential data too, more "
        "than by chance: they are no control, and were left out."
    )
    return replace(files, others=others, held_out_copies=n_shared, notes=(*files.notes, note))


def _shared(these: Numbers, those: Numbers) -> BoolArray:
    """Tell which rows are in another table too; of one table, those that are there twice."""
    theirs, own = common_cells(bits(these.values), bits(those.values))
    n_each = np.bincount(own, minlength=int(theirs.max()) + 1)
    return np.asarray(n_each[theirs] > (these is those))
