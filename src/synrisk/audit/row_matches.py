"""Which rows of a release match a person's own values: identification risk (METHOD §11).

An intruder knows some released variables of a target exactly and its synthesized ones within a
radius. The rows that fit both are the matches of the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from synrisk.audit.box_counts import count_in_boxes
from synrisk.audit.radius import Radius
from synrisk.audit.shared_codes import (
    CONFIDENTIAL,
    File,
    dataset_name,
    files_of,
    joint_codes,
    numbers_of,
    shared_codes,
)
from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import DataError, SynriskError, SyntheticDataError, counted, listed
from synrisk.data.schema import require_columns


@dataclass(frozen=True, repr=False)
class Matches:
    """The matches of each record in each dataset.

    Attributes
    ----------
    n_matches
        How many rows match the record, ``(record, dataset)``: c.
    is_own
        Whether its own row is one of them: T.
    n_known
        How many rows have the record's known values, whatever their synthesized ones.
    """

    SHAPES: ClassVar = {
        "n_matches": ("record", "dataset"),
        "is_own": ("record", "dataset"),
        "n_known": ("record", "dataset"),
    }
    n_matches: IntArray
    is_own: BoolArray
    n_known: IntArray

    @property
    def is_unique(self) -> BoolArray:
        """Whether one row matches, whosever it is."""
        return np.asarray(self.n_matches == 1)

    @property
    def is_true(self) -> BoolArray:
        """Whether one row matches, and it is the record's own: K."""
        return self.is_unique & self.is_own

    @property
    def is_false(self) -> BoolArray:
        """Whether one row matches, and it is somebody else's: F."""
        return self.is_unique & ~self.is_own

    @property
    def risk(self) -> FloatArray:
        """The probability of the own row for somebody who picks one of the matches: T/c."""
        return np.where(self.is_own, 1.0 / np.maximum(self.n_matches, 1), 0.0)

    @property
    def risk_by_known(self) -> FloatArray:
        """The same for somebody who has the known values alone."""
        return 1.0 / np.maximum(self.n_known, 1)


def find_matches(
    confidential: pd.DataFrame,
    datasets: Sequence[pd.DataFrame],
    known: Sequence[str],
    synthesized: Sequence[str],
    radius: Mapping[str, Radius],
) -> Matches:
    """Return the matches of each record; row i of each dataset is that of record i.

    Parameters
    ----------
    confidential, datasets
        The files, of the same length.
    known, synthesized
        Variables of all of them.
    radius
        By variable.
    """
    files = files_of(confidential, datasets)
    cells, intervals = cells_of(files, [*known, *synthesized], radius)
    n_matches = _counts(cells, intervals)
    own = [_is_own(cells, intervals, number) for number in range(1, len(files))]
    return Matches(n_matches, np.stack(own, axis=1), _counts(*cells_of(files, known, radius)))


# Of a variable with a radius: the coordinates by file, and the ends of each record's interval.
WithinRadius = tuple[list[FloatArray], FloatArray, FloatArray]


def cells_of(
    files: Sequence[File], names: Sequence[str], radius: Mapping[str, Radius]
) -> tuple[list[IntArray], list[WithinRadius]]:
    """Return the cell of each row by what must be equal, and intervals for the rest.

    A gap is a level: it matches a gap.
    """
    codes: list[list[IntArray]] = []
    intervals: list[WithinRadius] = []
    for name in names:
        if radius[name].is_equality:
            codes.append(shared_codes([file.frame[name] for file in files]))
            continue
        numbers = numbers_of(files, name)
        gaps = [np.isnan(own) for own in numbers]
        if any(own.any() for own in gaps):
            codes.append([own.astype(np.int64) for own in gaps])
        low, high = radius[name].interval(numbers[0])
        filled = [np.where(gap, 0.0, own) for gap, own in zip(gaps, numbers, strict=True)]
        low, high = np.where(gaps[0], -1.0, low), np.where(gaps[0], 1.0, high)
        intervals.append((filled, low, high))
    if not codes:
        return [np.zeros(len(file.frame), dtype=np.int64) for file in files], intervals
    return joint_codes(codes), intervals


def _counts(cells: Sequence[IntArray], intervals: Sequence[WithinRadius]) -> IntArray:
    n_records = len(cells[0])
    low = (
        np.stack([low for _, low, _ in intervals], axis=1)
        if intervals
        else np.empty((n_records, 0))
    )
    high = np.stack([high for *_, high in intervals], axis=1) if intervals else low
    found = []
    for number in range(1, len(cells)):
        own = [values[number] for values, *_ in intervals]
        points = np.stack(own, axis=1) if own else np.empty((len(cells[number]), 0))
        found.append(count_in_boxes(cells[number], points, cells[0], low, high))
    return np.stack(found, axis=1)


def _is_own(cells: Sequence[IntArray], intervals: Sequence[WithinRadius], number: int) -> BoolArray:
    """Tell whether the row in a record's place matches it."""
    own = cells[0] == cells[number]
    for values, low, high in intervals:
        own &= (low < values[number]) & (values[number] < high)
    return np.asarray(own)


def in_place(
    confidential: pd.DataFrame, datasets: Sequence[pd.DataFrame], by: str | None
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return the files with each record's own row in its place, or raise.

    Parameters
    ----------
    confidential, datasets
        The files.
    by
        The column that names the records in all of them; None where rows stand in place.
    """
    placed = []
    if by is not None:
        require_columns(confidential, [by], CONFIDENTIAL, DataError)
        _refuse_repeated(confidential[by], CONFIDENTIAL, DataError)
    for number, dataset in enumerate(datasets, 1):
        what = dataset_name(number, len(datasets))
        if by is None:
            if len(dataset) != len(confidential):
                raise SyntheticDataError(
                    f"{what}: {counted(len(dataset), 'row')}, but there are "
                    f"{counted(len(confidential), 'confidential record')}. A match needs each "
                    "record's own row: rows in the same order, or a column that names them (id=)."
                )
            placed.append(dataset.reset_index(drop=True))
            continue
        require_columns(dataset, [by], what, SyntheticDataError)
        _refuse_repeated(dataset[by], what, SyntheticDataError)
        codes = shared_codes([confidential[by], dataset[by]])
        rows = pd.Index(codes[1]).get_indexer(pd.Index(codes[0]))
        n_absent = int((rows < 0).sum())
        n_more = len(dataset) - (len(confidential) - n_absent)
        if n_absent or n_more:
            raise SyntheticDataError(
                f"{what}: by {by!r} {counted(n_absent, 'record')} of the confidential data and "
                f"{counted(n_more, 'row')} of the release stand alone. Give files of the same "
                "records."
            )
        placed.append(dataset.iloc[rows].reset_index(drop=True))
    return confidential, placed


def _refuse_repeated(ids: pd.Series[Any], what: str, error: type[SynriskError]) -> None:
    n_bad = int(ids.duplicated().sum() + ids.isna().sum())
    if n_bad:
        raise error(
            f"{what}: the id {str(ids.name)!r} is missing or repeated in "
            f"{counted(n_bad, 'row')}; it must name each record once."
        )


def refuse_moved(
    confidential: pd.DataFrame, datasets: Sequence[pd.DataFrame], known: Sequence[str]
) -> None:
    """Raise where the known values of a row differ: rows moved, or the column is synthesized."""
    for number, dataset in enumerate(datasets, 1):
        differing = {}
        for name in known:
            one, other = shared_codes([confidential[name], dataset[name]])
            differing[name] = int((one != other).sum())
        found = listed(f"{name} ({n:,})" for name, n in differing.items() if n)
        if any(differing.values()):
            raise SyntheticDataError(
                f"{dataset_name(number, len(datasets))}: known variables are released as they are, "
                f"but rows differ from the records in their place: {found}. Sort the files alike, "
                "or name the records (id=); if a column was synthesized, list it in synthesized=, "
                "and if it is known roughly, give it a radius."
            )
