"""Columns looked through a chunk at a time, where they are not arrays that are there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synrisk.base.chunks import chunks
from synrisk.data.schema import Columns

_MOST_CHECKED = 10  # chunks of columns that are read


def parts_to_check(rows: Columns, n_rows: int) -> list[slice]:
    """Return the rows that an encoding is checked on.

    All at once where they are there; else the first chunk, the last, and some evenly between.
    """
    if all(isinstance(column, np.ndarray) for column in rows.values()):
        return [slice(0, n_rows)]
    parts = chunks(n_rows)
    places = np.linspace(0, len(parts) - 1, min(_MOST_CHECKED, len(parts)))
    return [parts[int(place)] for place in places]


def distinct(column: Any) -> npt.NDArray[Any]:
    """Return the distinct values of a column, sorted."""
    if isinstance(column, np.ndarray):
        return np.asarray(np.unique(column))
    found = np.empty(0, dtype=column.dtype)
    for part in chunks(len(column)):
        found = np.union1d(found, column[part])
    return found


@dataclass(frozen=True, repr=False, eq=False)
class Filled:
    """A column that is read, with a value in its gaps.

    Attributes
    ----------
    column
        What gives an array for a slice.
    gap, value
        What stands for a gap, and for that.
    """

    column: Any
    gap: float
    value: float

    def __len__(self) -> int:
        return len(self.column)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its numbers."""
        own: np.dtype[Any] = np.dtype(self.column.dtype)
        return own

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        own = self.column[rows]
        return np.where(own == self.gap, self.value, own)
