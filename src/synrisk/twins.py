"""The twin guard: a released column that gives a synthesized one away makes every risk void.

A column C gives a variable V away where it determines V by more than chance: as a recoding, as a
function of fewer groups, or as a monotone transform. The chance is that of an arrangement at
random: of the n!/Π n_v! ways to lay V's values beside C, how many would look like that. A column
whose values all differ determines everything, but so would any arrangement: the chance is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from synrisk.errors import DisclosureError
from synrisk.schema import Columns, Factor, IntArray
from synrisk.synthesizer import Synthesizer

_BY_CHANCE = np.log(1e-4)
_COMPARABLE = (
    0.5  # the share of records at which C must have a value, and of V's values it resolves
)


@dataclass(frozen=True)
class Released:
    """One synthetic dataset: all its columns, the plan's columns encoded, and the rows of those."""

    frame: pd.DataFrame
    columns: Columns
    kept: Any


def refuse_twins(synthesizer: Synthesizer, release: Sequence[Released]) -> None:
    """Raise if a released column gives a synthesized variable away."""
    for number, dataset in enumerate(release, 1):
        candidates = [c for c in dataset.frame.columns if c not in synthesizer.plan.synthesized]
        for variable in synthesizer.plan.synthesized:
            for column in candidates:
                if _leaks(synthesizer, dataset, column, variable):
                    raise DisclosureError(
                        f"Synthetic dataset {number}: the column {column!r} gives the synthesized "
                        f"{variable!r} away: in the confidential data it determines it (a "
                        "recoding, or a transform of the same values). Leave it out of the "
                        "release; with it every risk computed here would be void."
                    )


def _leaks(synthesizer: Synthesizer, dataset: Released, column: str, variable: str) -> bool:
    ordered = not isinstance(synthesizer.schema.variables[variable], Factor)
    truth = synthesizer.columns[variable]
    released = dataset.frame[column]
    beside = []  # values of the column beside the confidential values of the variable
    if column in synthesizer.data.columns:
        beside.append(synthesizer.data[column])
    if len(released) == synthesizer.n_records:
        beside.append(released)
    if not any(determines(values, truth, ordered=ordered) for values in beside):
        return False
    unchanged = (
        column in synthesizer.data.columns
        and len(released) == synthesizer.n_records
        and _same(synthesizer.data[column], released)
    )
    # Derived from the synthetic values (Income as exp of the synthetic LogIncome) it is harmless.
    own = dataset.columns[variable]
    return unchanged or not determines(released[dataset.kept], own, ordered=ordered)


def _same(one: pd.Series[Any], other: pd.Series[Any]) -> bool:
    return bool(np.array_equal(one.astype(str).to_numpy(), other.astype(str).to_numpy()))


def determines(column: pd.Series[Any], values: Any, *, ordered: bool) -> bool:
    """Tell whether `column` determines `values` by more than chance.

    Parameters
    ----------
    column
        A released column beside the values.
    values
        The synthesized variable: numbers, or codes of a factor.
    ordered
        Whether an order of the values means something.
    """
    known = column.notna().to_numpy()
    if known.sum() < _COMPARABLE * len(known) or known.sum() < 2:
        return False
    groups, sortable = _groups(column[known])
    _, codes, counts = np.unique(values[known], return_inverse=True, return_counts=True)
    n_groups, n_values = int(groups.max()) + 1, len(counts)
    if n_groups < 2 or n_values < 2:
        return False
    log_arrangements = gammaln(len(codes) + 1) - gammaln(counts + 1).sum()
    low, high = _range_by_group(groups, codes, n_groups)
    chances = []
    if (low == high).all():
        chances.append(n_groups * np.log(n_values) - log_arrangements)
        if n_groups == n_values:
            chances.append(gammaln(n_values + 1) - log_arrangements)
    if ordered and sortable and n_groups >= _COMPARABLE * n_values and _monotone(low, high):
        inside = 0.0 if (low == high).all() else gammaln(np.bincount(groups) + 1).sum()
        chances.append(np.log(2.0) + inside - log_arrangements)
    return any(chance < _BY_CHANCE for chance in chances)


def _groups(column: pd.Series[Any]) -> tuple[IntArray, bool]:
    try:
        return pd.factorize(column, sort=True)[0].astype(np.int64), True
    except TypeError:  # values of several types have no order
        return pd.factorize(column.astype(str))[0].astype(np.int64), False


def _range_by_group(groups: IntArray, codes: IntArray, n_groups: int) -> tuple[IntArray, IntArray]:
    low = np.full(n_groups, codes.max(), dtype=np.int64)
    high = np.zeros(n_groups, dtype=np.int64)
    np.minimum.at(low, groups, codes)
    np.maximum.at(high, groups, codes)
    return low, high


def _monotone(low: IntArray, high: IntArray) -> bool:
    return bool((high[:-1] <= low[1:]).all() or (low[:-1] >= high[1:]).all())
