"""Counts in cells of keys: uniques, and who is disclosed within a cell.

Written from the definitions of synthpop's `disclosure` and `replicated.uniques` (Raab, Nowok &
Dibben, Practical privacy metrics for synthetic data, 2024) and of TCAP (Taub, Elliot, Pampaka &
Smith, Differential correct attribution probability for synthetic data, 2018). The chance level of a
count is that of each record among the *other* confidential records in place of the release; of
uniques, which no other record is like, that of a fresh sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.audit.board_measure import BoardMeasure, share_of
from synrisk.audit.fresh_sample import in_fresh_sample
from synrisk.audit.shared_codes import joint_codes
from synrisk.base.arrays import BoolArray, FloatArray, IntArray

SYNTHPOP = "synthpop, disclosure(): Raab, Nowok & Dibben 2024"
REPLICATED = "synthpop, replicated.uniques(): Nowok, Raab & Dibben 2016"
TCAP = "Taub, Elliot, Pampaka & Smith 2018"


@dataclass(frozen=True, repr=False)
class Found:
    """A measure before it has labels: `counted` tells which records it counts."""

    name: str
    value: float
    chance: float
    error: float
    counted: BoolArray
    source: str
    explanation: str

    def labelled(self, of: str, labels: pd.Index[Any]) -> BoardMeasure:
        """Return it with the labels of the records."""
        return BoardMeasure(
            self.name, of, self.value, self.chance, self.error, int(self.counted.sum()),
            labels[self.counted],
            self.source, self.explanation,
        )  # fmt: skip


@dataclass(frozen=True, repr=False)
class Cells:
    """The cells of both files, and how many rows each has.

    Attributes
    ----------
    own, other
        The cell of each confidential record and of each row of the release.
    n_own, n_other
        The number of records and of rows by cell.
    """

    own: IntArray
    other: IntArray
    n_own: IntArray
    n_other: IntArray

    @classmethod
    def of(cls, own: IntArray, other: IntArray) -> Cells:
        """Return the counts of cells, numbers from 0."""
        size = 1 + int(max(own.max(), other.max()))
        n_own, n_other = (np.bincount(codes, minlength=size) for codes in (own, other))
        return cls(own, other, n_own.astype(np.int64), n_other.astype(np.int64))


def unique_measures(cells: Cells, *, all_columns: bool = False) -> Iterator[Found]:
    """Yield uniques of both files, and those that the release holds too.

    Parameters
    ----------
    cells
        Of the keys.
    all_columns
        Whether these are counts of `replicated.uniques`, of all columns, or shares by keys.
    """
    n, n_rows = len(cells.own), len(cells.other)
    in_own, in_other = cells.n_own[cells.own], cells.n_other[cells.own]
    unique, rows = in_own == 1, cells.n_other[cells.other]
    times = n_rows / n
    fresh = in_fresh_sample(in_own - 1, times)
    n_unique = int(unique.sum())
    held, once = unique & (in_other > 0), unique & (in_other == 1)
    chance_held, chance_once, *errors = 0.0, 0.0, 0.0, 0.0
    if n_unique:
        chance_held, chance_once = n_unique * fresh.any / n, n_unique * fresh.once / n
        errors = [error / n for error in fresh.error_of_count(n_unique)]
    if all_columns:
        yield Found(
            "replicated uniques", share_of(once.sum(), n), chance_once, errors[1], once,
            REPLICATED, "Records unique in all columns together that are unique in the release "
            f"too, as a share of all; chance: {_FRESH}.",
        )  # fmt: skip
        return
    yield Found(
        "UiO", share_of(n_unique, n), np.nan, np.nan, unique, SYNTHPOP,
        "Records that are unique in their keys, in the confidential data alone.",
    )  # fmt: skip
    yield Found(
        "UiS", share_of((rows == 1).sum(), n_rows), share_of(n_unique, n), np.nan,
        np.zeros(n, dtype=bool), SYNTHPOP,
        "Rows of the release that are unique in their keys there, as a share of its rows; chance: "
        "UiO, the same of the confidential data. It counts no record.",
    )  # fmt: skip
    yield Found(
        "UiOiS", share_of(held.sum(), n), chance_held, errors[0], held, SYNTHPOP,
        f"Records unique in their keys whose keys the release holds; chance: {_FRESH}.",
    )  # fmt: skip
    yield Found(
        "repU", share_of(once.sum(), n), chance_once, errors[1], once, SYNTHPOP,
        "Records unique in their keys whose keys one row of the release holds; chance: "
        f"{_FRESH}.",
    )  # fmt: skip


_FRESH = "of a fresh sample as large as the release (Good–Turing)"


@dataclass(frozen=True, repr=False)
class _Attribution:
    """What cells of keys say of a target: in the release, and among the other records."""

    keys: Cells
    both: Cells
    settled: BoolArray  # whether all rows of a record's cell have one value of the target
    right: BoolArray  # and it is the record's own
    by_others: BoolArray  # the same two of the other records
    right_by_others: BoolArray

    @classmethod
    def of(cls, keys: Cells, target: tuple[IntArray, IntArray]) -> _Attribution:
        both = Cells.of(*joint_codes([(keys.own, keys.other), target]))
        # A cell is settled if as many cells of keys and target as one lie in it.
        n_values = _n_parts(keys.other, both.other, len(keys.n_own))
        n_own_values = _n_parts(keys.own, both.own, len(keys.n_own))
        settled = n_values[keys.own] == 1
        right = settled & (both.n_other[both.own] > 0)
        others, alike = keys.n_own[keys.own] - 1, both.n_own[both.own] - 1
        # Without a record its own value is gone from the cell if nobody else has it.
        left = n_own_values[keys.own] - (alike == 0)
        by_others = (others > 0) & (left == 1)
        return cls(keys, both, settled, right, by_others, by_others & (alike > 0))

    @property
    def settled_in_own(self) -> BoolArray:
        """Whether all records of a record's cell have its value, itself among them."""
        return np.asarray(self.both.n_own[self.both.own] == self.keys.n_own[self.keys.own])


def _n_parts(cell: IntArray, part: IntArray, n_cells: int) -> IntArray:
    """Return how many different parts occur in each cell."""
    _, first = np.unique(part, return_index=True)
    return np.bincount(cell[first], minlength=n_cells).astype(np.int64)


def attribution_measures(keys: Cells, target: tuple[IntArray, IntArray]) -> Iterator[Found]:
    """Yield what keys disclose of a target, in either file and by the release of the records.

    Parameters
    ----------
    keys
        The cells of the keys.
    target
        Codes of the target, in the confidential data and in the release.
    """
    found = _Attribution.of(keys, target)
    n, n_rows = len(keys.own), len(keys.other)
    in_own = found.settled_in_own
    rows = found.both.n_other[found.both.other] == keys.n_other[keys.other]
    present, with_others = keys.n_other[keys.own] > 0, keys.n_own[keys.own] > 1
    nobody = np.zeros(n, dtype=bool)
    yield Found(
        "Dorig", share_of(in_own.sum(), n), np.nan, np.nan, in_own, SYNTHPOP,
        "Records whose keys settle the target, in the confidential data alone.",
    )  # fmt: skip
    yield Found(
        "Dsyn", share_of(rows.sum(), n_rows), share_of(in_own.sum(), n), np.nan, nobody, SYNTHPOP,
        "Rows of the release whose keys settle the target there, as a share of its rows; chance: "
        "Dorig, the same of the confidential data. It counts no record.",
    )  # fmt: skip
    for name, own, chance, explanation in (
        ("iS", present, with_others, "Records whose keys the release holds"),
        ("DiS", found.settled, found.by_others,
         "Records whose keys settle the target in the release, rightly or not"),
        ("DiSCO", found.right, found.right_by_others,
         "Records whose keys settle the target in the release, at its true value"),
    ):  # fmt: skip
        yield Found(
            name, share_of(own.sum(), n), share_of(chance.sum(), n),
            _error_by_cells(own, chance, keys.own), own, SYNTHPOP,
            f"{explanation}; chance: the other confidential records in place of the release.",
        )  # fmt: skip
    both = found.right & in_own
    yield Found(
        "DiSDiO", share_of(both.sum(), n), np.nan, np.nan, both, SYNTHPOP,
        "Records whose keys settle the target in both files, at its true value. No other record "
        "can say what that would be by chance; it is no more than DiSCO's.",
    )  # fmt: skip
    yield _tcap(found, rows)


def _tcap(found: _Attribution, rows: BoolArray) -> Found:
    """Return how often a row that settles a target is right about the records with its keys."""
    keys, both = found.keys, found.both
    n_records = keys.n_own[keys.other]
    use = rows & (n_records > 0)
    right = both.n_own[both.other] / np.maximum(n_records, 1)
    # A record stands for a row each of the others that settle it, and for one of the records.
    weight = (keys.n_own[keys.own] - 1.0) / keys.n_own[keys.own]
    chance = share_of(weight[found.right_by_others].sum(), weight[found.by_others].sum())
    return Found(
        "TCAP", float(right[use].mean()) if use.any() else np.nan, chance, np.nan, found.right,
        TCAP,
        "Of the rows whose keys settle the target in the release and occur in the confidential "
        "data, the mean share of records with these keys that have that value; chance, nearly: of "
        "the records whose keys settle the target among the others, weighted by how many these "
        "are, the share for which it is right. It counts the records of DiSCO.",
    )  # fmt: skip


def _error_by_cells(one: BoolArray, other: BoolArray, cell: IntArray) -> float:
    """Return the standard error of a difference of shares, by cells: these vary on their own.

    Records of one cell share its rows; cells of two samples of the same people are independent,
    nearly. A release whose parameters were drawn moves many cells together, and varies more.
    """
    difference: FloatArray = one.astype(np.float64) - other.astype(np.float64)
    by_cell = np.bincount(cell, weights=difference)
    return float(np.sqrt((by_cell**2).sum())) / len(cell)
