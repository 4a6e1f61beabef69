"""Guesses that the user lists."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import GuessError, counted
from synrisk.data.schema import Factor
from synrisk.risk.guesses.spaced import EVERY_LEVEL
from synrisk.risk.guesses.strategy import (
    Grid,
    Guesses,
    Target,
    n_without_truth,
    with_truth,
)


@dataclass(frozen=True, eq=False, repr=False)
class Values(Guesses):
    """The guesses in `values`: one list for all records, or a row a record.

    As many rows as the confidential data has records are for those, in its order; otherwise rows
    are for the evaluated records, in the order of ``records=``.
    Missing entries at the end of a row shorten it. Where a record's truth is not among its
    guesses, the nearest gives way to it; levels of an unordered factor have no nearest, so there
    the truth must be listed.

    Parameters
    ----------
    values
        Numbers, or levels of a factor.
    """

    values: Any

    def __repr__(self) -> str:
        return f"Values(<{type(self.values).__name__}>)"

    def width(self, target: Target) -> int:
        """Return the number of guesses in a row."""
        return int(self._listed(target).shape[-1])

    def grid(self, target: Target) -> Grid:
        """Lay out the guesses."""
        table, present = self._table(target)
        if not isinstance(target.variable, Factor):
            fixed = np.where(present, table, np.nan)
            values, truth = with_truth(fixed, target)
            n_replaced = n_without_truth(fixed, truth, target)
            filled = np.where(present, values, target.truth[:, None])
            return Grid(filled, truth, present, n_replaced=n_replaced)
        same = (table == target.truth[:, None]) & present
        n_absent = int((~same.any(axis=1)).sum())
        if n_absent:
            raise GuessError(
                f"Values for {target.name!r}: the level of {counted(n_absent, 'record')} is not "
                "listed, and levels have no nearest one. "
                f"Use {EVERY_LEVEL}, or list it."
            )
        filled = np.where(present, table, target.truth[:, None])
        return Grid(filled, np.argmax(same, axis=1).astype(np.int64), present)

    def _table(self, target: Target) -> tuple[FloatArray, Any]:
        listed = self._listed(target)
        column = pd.Series(listed.ravel(), name=target.name)
        with contextlib.suppress(OverflowError):  # of pandas 2, at a number that is no float
            column = column.infer_objects()
        flat = target.variable.encode(column, f"Values for {target.name!r}", GuessError)
        codes = flat.astype(np.float64).reshape(listed.shape)
        n_rows, n_records = len(target.truth), target.everybody.n_records
        if codes.ndim == 1:
            codes = np.broadcast_to(codes, (n_rows, len(codes)))
        elif len(codes) == n_records:
            codes = codes[target.rows]
        elif len(codes) != n_rows:
            raise GuessError(
                f"Values for {target.name!r} has {counted(len(codes), 'row')}; give one list for "
                f"all, or {n_records:,} rows (all records) or {n_rows:,} (those evaluated)."
            )
        absent = np.isnan(codes) if not isinstance(target.variable, Factor) else codes < 0
        return codes, ~absent

    def _listed(self, target: Target) -> Any:
        listed = np.empty(0)
        with contextlib.suppress(ValueError, TypeError):  # rows of different lengths
            listed = np.asarray(self.values, dtype=object)
        nested = any(not isinstance(entry, Hashable) for entry in listed.flat)
        if listed.ndim not in (1, 2) or not listed.size or nested or np.iscomplexobj(self.values):
            raise GuessError(
                f"Values for {target.name!r} must be one list for all records, or a row a record, "
                "rows of one length (end shorter ones with missing values)."
            )
        return listed
