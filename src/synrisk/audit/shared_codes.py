"""Columns of several files as codes that are equal where their values are."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import (
    DataError,
    OptionError,
    SynriskError,
    SyntheticDataError,
    got,
    listed,
)
from synrisk.data.frames import TableLike, read_table
from synrisk.data.schema import Numeric, as_real_numbers, label_key, require_columns
from synrisk.synthesis.release import as_datasets

CONFIDENTIAL = "The confidential data"
_LOGICAL = ("true", "false")  # R writes TRUE, Python True


def read_files(confidential: TableLike, synthetic: Any) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return the confidential data and the datasets of a release as frames; none is empty."""
    frame = read_table(confidential, CONFIDENTIAL)
    refuse_empty(File(frame, CONFIDENTIAL))
    datasets = as_datasets(synthetic)
    frames = []
    for number, dataset in enumerate(datasets, 1):
        what = dataset_name(number, len(datasets))
        frames.append(read_table(dataset, what, error=SyntheticDataError))
        refuse_empty(File(frames[-1], what, SyntheticDataError))
    return frame, frames


def dataset_name(number: int, n_datasets: int) -> str:
    """Return what a synthetic dataset is called in messages."""
    return "The synthetic data" if n_datasets == 1 else f"Synthetic dataset {number}"


def refuse_empty(file: File) -> None:
    """Raise where a file has no rows."""
    if not len(file.frame):
        raise file.error(
            f"{file.what}: there are no rows. Check that it is the right file, and whole."
        )


def column_names(value: Any, argument: str) -> tuple[str, ...]:
    """Return the names that an argument lists, each once, or raise."""
    names = (value,) if isinstance(value, str) else value
    wrong = f"{argument}= is the name of a column or a list of names; got "
    if not isinstance(names, Sequence) or isinstance(names, bytes):
        raise OptionError(f"{wrong}{got(value)}.")
    bad = [name for name in names if not isinstance(name, str)]
    if bad:
        raise OptionError(f"{wrong}{got(bad[0])} in it.")
    repeated = [name for k, name in enumerate(names) if name in names[:k]]
    if repeated:
        raise OptionError(f"{argument}= names {repeated[0]!r} twice.")
    return tuple(names)


def refuse_overlap(one: Sequence[str], other: Sequence[str], arguments: tuple[str, str]) -> None:
    """Raise where two arguments name the same column."""
    both = [name for name in one if name in other]
    if both:
        raise OptionError(
            f"{listed(both)}: named in {arguments[0]}= and in {arguments[1]}=. A column is one or "
            "the other."
        )


@dataclass(frozen=True, repr=False)
class File:
    """A table, what it is called in messages, and what is raised about it."""

    frame: pd.DataFrame
    what: str
    error: type[SynriskError] = DataError


def files_of(confidential: pd.DataFrame, datasets: Sequence[pd.DataFrame]) -> list[File]:
    """Return the confidential data and the datasets of a release, named."""
    named = (
        File(one, dataset_name(number, len(datasets)), SyntheticDataError)
        for number, one in enumerate(datasets, 1)
    )
    return [File(confidential, CONFIDENTIAL), *named]


def check_columns(files: Sequence[File], names: Sequence[str]) -> None:
    """Raise where a file lacks a column, or one holds dates, which have no one meaning here."""
    for file in files:
        require_columns(file.frame, names, file.what, file.error)
        for name in names:
            kind = file.frame[name].dtype
            if kind.kind in "mM" or isinstance(kind, pd.PeriodDtype | pd.DatetimeTZDtype):
                raise file.error(
                    f"{file.what}: column {name!r} holds dates. Make it a number (a year, days "
                    "since a date) or text, on both sides alike."
                )


def is_number(column: pd.Series[Any]) -> bool:
    """Tell whether a column's type is one of numbers, and not of levels."""
    kinds = pd.api.types
    return bool(kinds.is_numeric_dtype(column.dtype) and not kinds.is_bool_dtype(column.dtype))


def numbers_of(files: Sequence[File], name: str) -> list[FloatArray]:
    """Return a column of each file as numbers; NaN for a gap."""
    return [Numeric(name).encode(file.frame[name], file.what, file.error) for file in files]


def shared_codes(columns: Sequence[pd.Series[Any]]) -> list[IntArray]:
    """Return columns of the same variable as codes, equal where values are; −1 for a gap.

    1, 1.0 and "1" are the same level.
    """
    if all(is_number(column) for column in columns):
        values = np.concatenate([as_real_numbers(column)[0] for column in columns])
        codes = pd.factorize(values)[0].astype(np.int64)
        return _parted(codes, columns)
    known: dict[str, int] = {}
    found = []
    for column in columns:
        positions, levels = _factorized(column)
        lookup = [known.setdefault(_level_key(level), len(known)) for level in levels]
        found.append(np.array([*lookup, -1], dtype=np.int64)[positions])
    return found


def _factorized(column: pd.Series[Any]) -> tuple[IntArray, Any]:
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        return pd.factorize(column)
    raise DataError(f"Column {str(column.name)!r} holds lists or other nested values.")


def _level_key(level: Any) -> str:
    key = label_key(level)
    return key.lower() if key.lower() in _LOGICAL else key


def _parted(whole: IntArray, parts: Sequence[Any]) -> list[IntArray]:
    ends = np.cumsum([len(part) for part in parts])
    return list(np.split(whole, ends[:-1]))


def joint_codes(codes: Sequence[Sequence[IntArray]]) -> list[IntArray]:
    """Return codes of cells: equal where all variables' codes are, from 0 on.

    Parameters
    ----------
    codes
        By variable, by file. None at all gives one cell.

    Examples
    --------
    >>> one, other = joint_codes([([0, 0, 1], [1]), ([5, 6, 5], [5])])
    >>> print(one, other)
    [0 1 2] [2]
    """
    if not codes:
        raise ValueError("no variable")
    joint = pd.factorize(np.concatenate([np.asarray(own) for own in codes[0]]))[0]
    for of_variable in codes[1:]:
        own = np.concatenate([np.asarray(one, dtype=np.int64) for one in of_variable])
        low = int(own.min())
        joint = pd.factorize(joint * (int(own.max()) - low + 1) + (own - low))[0]
    return _parted(joint.astype(np.int64), codes[0])
