"""Which records and rows of a large table meet in a block of it, so that near ones are compared.

Rows may stand anywhere in a release. So records and rows go to blocks by their values: those of a
cell of levels together, and where a cell holds too many for a block, by a number of theirs, in
slabs. Where cells and slabs begin is known from some records that are evenly spread: it depends
neither on how the table is cut into files nor on workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import Columns

Hashes: TypeAlias = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_LARGE = 0.5  # of a block: smaller cells go to one together


def hashes(columns: Columns, names: Sequence[str]) -> Hashes:
    """Return a number for each row, the same where all of its values are."""
    n_rows = len(next(iter(columns.values())))
    found = np.zeros(n_rows, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name in names:
            values = np.asarray(columns[name], dtype=np.float64) + 0.0  # no −0
            found = found * _ODD + pd.util.hash_array(values)
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Route:
    """Where records and rows go.

    Attributes
    ----------
    cells
        The columns that make cells; none for all rows in one.
    axis
        The number by which large cells are cut; None where nothing is.
    large
        The hashes of large cells, in order.
    cuts
        For each of these, where one slab ends and the next begins.
    n_others
        How many blocks the other cells share.
    """

    cells: tuple[str, ...]
    axis: str | None
    large: Hashes
    cuts: tuple[FloatArray, ...]
    n_others: int

    @classmethod
    def by_values(
        cls,
        some: Columns,
        cells: Sequence[str],
        axis: str,
        n_records: int,
        n_rows: int,
    ) -> Route:
        """Return the route to blocks of about `n_rows`, given some of the records."""
        code = hashes(some, cells)
        weight = n_records / len(code)
        which, n_each = np.unique(code, return_counts=True)
        is_large = n_each * weight > _LARGE * n_rows
        values = np.asarray(some[axis], dtype=np.float64)
        cuts = [
            _cuts(values[code == cell], max(round(n * weight / n_rows), 1))
            for cell, n in zip(which[is_large], n_each[is_large], strict=True)
        ]
        n_left = int(n_each[~is_large].sum() * weight)
        n_others = max(-(-n_left // n_rows), 1)
        return cls(tuple(cells), axis, which[is_large], tuple(cuts), n_others)

    @classmethod
    def by_key(cls, names: Sequence[str], n_records: int, n_rows: int) -> Route:
        """Return the route on which those who agree in some columns meet."""
        nothing = np.zeros(0, dtype=np.uint64)
        return cls(tuple(names), None, nothing, (), max(-(-n_records // n_rows), 1))

    @property
    def _first(self) -> IntArray:
        """The first block of each large cell, and that of the others."""
        return np.cumsum(np.array([0, *(len(cuts) + 1 for cuts in self.cuts)], dtype=np.int64))

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return int(self._first[-1]) + self.n_others

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at."""
        return self.cells if self.axis is None else (*self.cells, self.axis)

    def blocks_of(self, columns: Columns) -> IntArray:
        """Return the number of the block to which each row goes."""
        code, first = hashes(columns, self.cells), self._first
        others = (code % np.uint64(self.n_others)).astype(np.int64)
        found: IntArray = others + int(first[-1])
        if not len(self.large) or self.axis is None:
            return found
        place = np.minimum(np.searchsorted(self.large, code), len(self.large) - 1)
        is_large = self.large[place] == code
        values = np.asarray(columns[self.axis], dtype=np.float64)
        for k in np.unique(place[is_large]):
            own = is_large & (place == k)
            found[own] = first[k] + np.searchsorted(self.cuts[k], values[own])
        return found

    def between(self, number: int) -> tuple[str, float, float] | None:
        """Return the ends of the slab that a block is, if it is one."""
        k = int(np.searchsorted(self._first, number, side="right")) - 1
        if self.axis is None or k >= len(self.cuts) or not len(self.cuts[k]):
            return None
        ends = np.concatenate([[-np.inf], self.cuts[k], [np.inf]])
        place = number - int(self._first[k])
        return self.axis, float(ends[place]), float(ends[place + 1])


def _cuts(values: FloatArray, n_slabs: int) -> FloatArray:
    """Return where slabs of about as many records end: between two values, never at one."""
    distinct = np.unique(values)
    ranks = (np.arange(1, n_slabs) * len(values)) // n_slabs
    at = np.searchsorted(distinct, np.sort(values)[ranks])
    at = np.unique(at[at + 1 < len(distinct)])
    return np.asarray((distinct[at] + distinct[at + 1]) / 2.0)


def most_varied(some: Columns, names: Sequence[str]) -> str:
    """Return the column that has most values."""
    n_values: dict[str, Any] = {name: len(np.unique(some[name])) for name in names}
    return max(names, key=lambda name: n_values[name])
