"""Which columns stayed as they were, and which rows are pairs by them.

In a partially synthetic release some columns are those of the confidential data. Rows that agree in
them are pairs: where the models are right, what differs within a pair is chance alone. That gives
null distributions without a model of the columns that stayed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synrisk.base.arrays import BoolArray, IntArray
from synrisk.base.errors import listed
from synrisk.data.schema import Columns

_BY_CHANCE = 1e-6  # how probable equal counts may be for columns that count as the same


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """All rows of one side, and which of them lack nothing."""

    columns: Columns
    complete: BoolArray

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.complete)

    def take(self, rows: IntArray | BoolArray) -> Table:
        """Return some rows, or all in another order."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return Table(columns, self.complete[rows])

    def without_gaps(self) -> Table:
        """Return the rows that lack nothing."""
        return self.take(self.complete)

    def agrees(self, other: Table, names: Iterable[str]) -> bool:
        """Tell whether columns are the same row by row."""
        return all(
            np.array_equal(self.columns[name], other.columns[name], equal_nan=True)
            for name in names
        )

    def n_distinct(self, name: str) -> int:
        """Return how many values a column has."""
        return len(np.unique(self.columns[name]))

    def sorted_by(self, names: Sequence[str]) -> IntArray:
        """Return the order by some columns."""
        return np.lexsort([self.columns[name] for name in names])


@dataclass(frozen=True, eq=False, repr=False)
class Matched:
    """The columns that stayed, and each dataset's rows in the order of the records.

    Without an order the sides are separate samples, and no column counts as one that stayed.
    """

    stayed: tuple[str, ...] = ()
    orders: list[IntArray] | None = None
    notes: tuple[str, ...] = ()


def matched_rows(
    names: Sequence[str], changed: Sequence[str] | None, own: Table, datasets: Sequence[Table]
) -> Matched:
    """Find the columns that stayed, and the rows that are pairs by them.

    Parameters
    ----------
    names
        The columns that are compared.
    changed
        Those that are synthesized; None finds them by comparing both sides.
    own, datasets
        Both sides.
    """
    if changed is None:
        return _compared(names, own, datasets)
    stayed = tuple(name for name in names if name not in changed)
    orders = _orders(own, datasets, stayed)
    if not stayed or orders is not None:
        return Matched(stayed, orders)
    note = (
        f"The rows of the release are not those of the confidential data in {listed(stayed)}, so "
        "they are compared as separate samples."
    )
    return Matched(notes=(note,))


def _compared(names: Sequence[str], own: Table, datasets: Sequence[Table]) -> Matched:
    """Find the columns that stayed by comparing both sides."""
    n = own.n_rows
    if any(one.n_rows != n for one in datasets):
        return Matched()
    same = [name for name in names if all(own.agrees(one, [name]) for one in datasets)]
    if len(same) == len(names):
        return Matched(notes=("The release equals the confidential data: it is a copy.",))
    # A constant says nothing about the order of the rows.
    if any(own.n_distinct(name) > 1 for name in same):
        note = f"Taken as not synthesized, since equal row by row: {listed(same)}."
        return Matched(tuple(same), [np.arange(n)] * len(datasets), (note,))
    alike = [name for name in names if name in same or _are_alike(name, own, datasets)]
    if _probability_by_chance(own, alike) ** len(datasets) > _BY_CHANCE:
        return Matched()
    return _reordered(names, alike, same, _orders(own, datasets, alike))


def _reordered(
    names: Sequence[str], alike: Sequence[str], same: Sequence[str], orders: Any
) -> Matched:
    """Say what follows from columns with the same values, whose rows `orders` match, or None."""
    if orders is None:
        suspect = [name for name in alike if name not in same]
        note = (
            f"The values of {listed(suspect)} are those of the confidential data in another order. "
            "They are taken as synthesized; where they are not, name those that are "
            "(synthesized=[…])."
        )
        return Matched(notes=(note,))
    if len(alike) == len(names):
        note = "The release equals the confidential data but for the order of rows: it is a copy."
        return Matched(notes=(note,))
    note = f"Taken as not synthesized, since equal but for the order of rows: {listed(alike)}."
    return Matched(tuple(alike), orders, (note,))


def _are_alike(name: str, own: Table, datasets: Sequence[Table]) -> bool:
    """Tell whether a column has the same values in all datasets, each as often."""
    ordered = np.sort(own.columns[name])
    return all(
        np.array_equal(ordered, np.sort(one.columns[name]), equal_nan=True) for one in datasets
    )


def _probability_by_chance(own: Table, names: Sequence[str]) -> float:
    """Return about how probable it is that another sample has the same rows, each as often.

    That is the probability of equal counts in cells, 1/√(4π count) for each but the largest.
    """
    if not names:
        return 1.0
    order = own.sorted_by(names)
    new = np.zeros(len(order), dtype=bool)
    for name in names:
        values = own.columns[name][order]
        both_missing = np.isnan(values[1:]) & np.isnan(values[:-1])
        new[1:] |= (values[1:] != values[:-1]) & ~both_missing
    counts = np.sort(np.bincount(np.cumsum(new)))[:-1]
    return math.exp(-0.5 * float(np.log(4.0 * math.pi * counts).sum()))


def _orders(own: Table, datasets: Sequence[Table], stayed: Sequence[str]) -> list[IntArray] | None:
    """Return orders in which rows agree with the records in the columns that stayed.

    Rows that agree with several are paired with any of them: given these columns they are
    exchangeable. None where some agree with none.
    """
    n = own.n_rows
    if not stayed or any(one.n_rows != n for one in datasets):
        return None
    ours = own.sorted_by(stayed)
    orders = []
    for one in datasets:
        order = np.arange(n)
        if not own.agrees(one, stayed):
            order[ours] = one.sorted_by(stayed)
        if not own.agrees(one.take(order), stayed):
            return None
        orders.append(order)
    return orders
