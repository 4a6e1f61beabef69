"""Two files, or three, as arrays: which columns are compared, known and sought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import bdtrc

from synrisk.audit.known_values import Known
from synrisk.audit.learnt_values import People
from synrisk.audit.left_out_parts import Intervals
from synrisk.base.arrays import FloatArray
from synrisk.data.schema import Factor, Variable
from synrisk.risk.guesses import Everybody
from synrisk.risk.guesses.tolerance import Tolerance, near

FEW_VALUES = 20  # of a number, which then agrees or not, as a level does
_SURELY = 1e-4  # how often chance makes so many gaps more


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
    held_out_copies
        How many held-out rows stand in the confidential file too, and were left out of `others`.
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
    held_out_copies: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The compared columns."""
        return tuple(self.variables)

    @property
    def made(self) -> tuple[str, ...]:
        """The compared columns that are not as they are in the confidential file."""
        return tuple(name for name in self.names if name not in self.kept)

    @property
    def n_alone(self) -> int:
        """How many people are alone with their values in what is released as it is."""
        if not self.kept:
            return 0
        at = [self.names.index(name) for name in self.kept]
        values = np.nan_to_num(self.people.values[:, at], nan=np.inf)
        return int((np.unique(values, axis=0, return_counts=True)[1] == 1).sum())

    @property
    def with_more_gaps(self) -> tuple[str, ...]:
        """The columns with gaps in the release where people have none, or surely more of them."""
        own, theirs = (np.isnan(one.values) for one in (self.people, self.rows))
        share = (own.sum(axis=0) + 1.0) / (len(own) + 1.0)
        n_theirs = theirs.sum(axis=0)
        surely = bdtrc(n_theirs - 1.0, len(theirs), np.minimum(share, 1.0)) < _SURELY
        more = (n_theirs > 0) & (~own.any(axis=0) | surely)
        return tuple(name for name, has in zip(self.names, more, strict=True) if has)

    @property
    def has_known_levels(self) -> bool:
        """Whether all codes of levels are of a level, or of a gap."""
        tables = [self.people, *self.release, *([] if self.others is None else [self.others])]
        for name, variable in self.variables.items():
            if not isinstance(variable, Factor):
                continue
            codes = np.concatenate([self.column(table, name) for table in tables])
            known = codes[~np.isnan(codes)]
            if not np.isin(known, np.arange(len(variable.levels))).all():
                return False
        return True

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
        return near(self._everybody(name), is_whole=self.is_whole(name))

    def _everybody(self, name: str) -> Everybody:
        values = self.column(self.people, name)
        known = values[~np.isnan(values)]
        return replace(Everybody.of(known), spread=float(known.std()))

    def intervals(self, table: Numbers, name: str) -> Intervals:
        """Return what counts as the truth of a column for each row of a table."""
        truth = self.filled(table, name)
        tolerance = self.tolerance(name)
        if tolerance is None:
            return Intervals(truth, truth)
        reach = tolerance.reach(truth, self._everybody(name), is_whole=self.is_whole(name))
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


def bits(values: FloatArray) -> Any:
    """Return numbers as whole ones that are equal where they are."""
    return (np.nan_to_num(values, nan=np.inf) + 0.0).view(np.int64)
