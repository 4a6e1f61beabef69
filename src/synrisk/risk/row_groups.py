"""Which rows of a release may stand for which records.

Columns that are released as they are stay beside what was synthesized for the same person. Rows and
records that agree in all of them are a group: often one row and one record, else a few. Where there
are as many rows as records, those of one place may belong together too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import common_codes
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

IN_PLACE = 0.99  # of those that are known by their names: then all are known by their places
_ENOUGH = 0.5  # of the rows: so many alone with their record make places superfluous


class Codes(NamedTuple):
    """A column as numbers that are equal where its values are."""

    records: IntArray
    rows: IntArray


def kept_codes(synthesizer: Synthesizer, dataset: Released) -> Mapping[str, Codes]:
    """Return the columns that a dataset has as they are in the confidential data, as codes."""
    confidential = synthesizer.confidential

    def code() -> dict[str, Codes]:
        found = {}
        for name in confidential.released_as_is:
            if name in dataset.columns:
                pair = pd.Series(synthesizer.columns[name]), pd.Series(dataset.columns[name])
            elif name in dataset.frame.columns:
                pair = confidential.data[name], dataset.frame[name][dataset.kept]
            else:
                continue
            found[name] = Codes(*common_codes(*pair))
        return found

    return dataset.memory.recall("kept columns", code)


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """Records and rows in groups; a row stands for one of the records of its group.

    Attributes
    ----------
    records, rows
        The positions of those that have a counterpart.
    of_records, of_rows
        Their groups, from 0.
    n_records, n_rows
        The numbers of these in each group.
    is_by_place
        Whether each row is beside the record at its place.
    """

    records: IntArray
    rows: IntArray
    of_records: IntArray
    of_rows: IntArray
    n_records: IntArray
    n_rows: IntArray
    is_by_place: bool = False

    @classmethod
    def of(cls, records: IntArray, rows: IntArray) -> Groups:
        """Return the groups of equal codes that hold both records and rows."""
        n = int(max(records.max(initial=-1), rows.max(initial=-1))) + 1
        n_records, n_rows = (np.bincount(codes, minlength=n) for codes in (records, rows))
        both = (n_records > 0) & (n_rows > 0)
        group = np.cumsum(both) - 1
        own, theirs = np.flatnonzero(both[records]), np.flatnonzero(both[rows])
        return cls(
            own, theirs, group[records[own]], group[rows[theirs]], n_records[both], n_rows[both]
        )

    @classmethod
    def by_place(cls, n: int) -> Groups:
        """Return pairs of a record and the row at its place."""
        places = np.arange(n)
        return replace(cls.of(places, places), is_by_place=True)

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.n_records)

    @cached_property
    def name_most(self) -> bool:
        """Whether most rows have a record of their own."""
        alone = (self.n_records == 1) & (self.n_rows == 1)
        return bool(alone.sum() >= _ENOUGH * len(self.rows))

    def pairs(self, most: int = 1) -> tuple[IntArray, IntArray]:
        """Return records and rows of the same group, all pairs of groups with up to `most` each."""
        small = (self.n_rows <= most) & (self.n_records <= most)
        own, theirs = small[self.of_records], small[self.of_rows]
        if len(self.records) == len(self.rows) == self.n_groups:  # one of each
            record_of = np.empty(self.n_groups, dtype=np.int64)
            record_of[self.of_records] = self.records
            return record_of[self.of_rows], self.rows
        records = pd.DataFrame({"group": self.of_records[own], "record": self.records[own]})
        rows = pd.DataFrame({"group": self.of_rows[theirs], "row": self.rows[theirs]})
        both = rows.merge(records, on="group")
        return both["record"].to_numpy(), both["row"].to_numpy()

    def sums_of_records(self, values: FloatArray) -> FloatArray:
        """Return sums over each group's records, divided by the root of their number."""
        return _sums(values[self.records], self.of_records, self.n_records)

    def sums_of_rows(self, values: FloatArray) -> FloatArray:
        """Return sums over each group's rows, divided by the root of their number."""
        return _sums(values[self.rows], self.of_rows, self.n_rows)


def _sums(values: FloatArray, groups: IntArray, sizes: IntArray) -> FloatArray:
    columns = values.reshape(len(values), -1).T
    sums = [np.bincount(groups, weights=column, minlength=len(sizes)) for column in columns]
    return (np.column_stack(sums) / np.sqrt(sizes)[:, None]).reshape(-1, *values.shape[1:])


def groupings(synthesizer: Synthesizer, dataset: Released) -> tuple[Groups, ...]:
    """Return the groups by columns that are kept, and by place where these name few rows."""
    return dataset.memory.recall("groups", lambda: _groupings(synthesizer, dataset))


def settle_groups(dataset: Released, found: tuple[Groups, ...]) -> None:
    """Say which groups the rows of a block have, where that is known from the whole table."""
    dataset.memory.recall("groups", lambda: found)


def groups_by_key(synthesizer: Synthesizer, dataset: Released) -> Groups | None:
    """Return the groups by columns that are kept; None where there is none."""
    codes = kept_codes(synthesizer, dataset)
    if not codes:
        return None
    own, theirs = (pd.DataFrame({name: of[part] for name, of in codes.items()}) for part in (0, 1))
    both = pd.concat([own, theirs], ignore_index=True)
    number = both.groupby(list(both.columns), sort=False).ngroup().to_numpy().astype(np.int64)
    groups = Groups.of(number[: len(own)], number[len(own) :])
    return groups if groups.n_groups else None


def _groupings(synthesizer: Synthesizer, dataset: Released) -> tuple[Groups, ...]:
    found = []
    n_rows = int(dataset.kept.sum())
    groups = groups_by_key(synthesizer, dataset)
    if groups is not None:
        found.append(groups)
        if groups.name_most and len(groups.rows) >= _ENOUGH * n_rows:
            records, rows = groups.pairs()
            in_place = n_rows == synthesizer.n_records and (records == rows).mean() >= IN_PLACE
            return (Groups.by_place(n_rows),) if in_place else tuple(found)
    if n_rows == synthesizer.n_records:
        found.insert(0, Groups.by_place(n_rows))
    return tuple(found)
