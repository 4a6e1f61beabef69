"""Released columns that give some of the records away, or all together.

- A column that equals a mean, a sum or another statistic of a synthesized variable over those who
  share its value: whoever knows everybody else of the group subtracts them.
- A column that tells the variable where it tells anything: a levy that only some pay, an amount in
  a text that only some have.
- A level whose people all have one value of the variable, by more than chance: a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.synthesis.relations import Beside, Hidden, Relation, combined_share, spread

_STATISTICS = ("mean", "sum", "median", "min", "max")
_EQUAL = 1e-9  # relative, but for rounding
_COARSE = 0.05  # of the spread: where a column is rounded more coarsely nothing is told
_LEAST_GROUPS = 4  # each of which equals a statistic by chance in one of twenty cases at most
_NEARLY_ALL = 0.9
_LEAST_PART = 20  # records
_COMMON = 0.1  # the share of records with one value, beside which others are a part
_LOG_CHANCE = np.log(1e-9)


def relations_of_parts(
    hidden: Sequence[Hidden], beside: Beside, used: Mapping[str, Sequence[str]]
) -> list[Relation]:
    """Return the first such relation of each variable; `used` are its model's predictors."""
    found = []
    for variable in hidden:
        looks: tuple[Callable[[], Relation | None], ...] = (
            lambda v=variable: _statistic(v, beside),  # type: ignore[misc]
            lambda v=variable: _where_it_tells(v, beside),  # type: ignore[misc]
            lambda v=variable: _telling_level(v, beside, used.get(v.name, ())),  # type: ignore[misc]
        )
        seen = [relation for look in looks if (relation := look()) is not None]
        found += seen[:1]
    return found


def _statistic(hidden: Hidden, beside: Beside) -> Relation | None:
    """Find a column that is a statistic of the variable over those who share its value."""
    if hidden.is_factor:
        return None
    for name, column in beside.numbers.items():
        known = np.isfinite(column)
        groups = pd.Series(hidden.values[known]).groupby(column[known])
        sizes = groups.size()
        of_several = sizes.to_numpy() > 1
        if of_several.sum() < _LEAST_GROUPS:
            continue
        at = sizes.index.to_numpy(dtype=np.float64)
        half = 0.5 * _decimal_step(at)
        if half > _COARSE * spread(hidden.values) / float(np.sqrt(np.median(sizes))):
            continue
        for statistic in _STATISTICS:
            values = groups.agg(statistic).to_numpy(dtype=np.float64)
            equal = np.abs(values - at) <= half + _EQUAL * np.abs(at)
            if equal[of_several].mean() >= _NEARLY_ALL:
                words = f"known, but for everybody else's, by its {statistic} of groups, that is"
                return Relation(hidden.name, (name,), (), words, True)
    return None


def _decimal_step(values: FloatArray) -> float:
    """Return the unit of the last decimal that values have; 0 for many."""
    for digits in range(7):
        if np.array_equal(np.round(values, digits), values):
            return float(10.0**-digits)
    return 0.0


def _where_it_tells(hidden: Hidden, beside: Beside) -> Relation | None:
    """Find a column that gives the variable away for those who do not have its common value."""
    for name, column in beside.numbers.items():
        part = _beside_common(column)
        if part is None:
            continue
        own, values = hidden.rows(part), column[part]
        if len(np.unique(own.values)) < 2 or len(np.unique(values)) < 2:
            continue
        share = combined_share(own, {name: values})
        if share >= own.limits[0]:
            words = "given nearly, for those who have another than the usual value, by"
            return Relation(hidden.name, (name,), (), words, True)
    return None


def _beside_common(column: FloatArray) -> BoolArray | None:
    """Return who has another than the commonest value, or any; None where that is all or few."""
    part: BoolArray = np.isfinite(column)
    if part.mean() > 1.0 - _COMMON:
        values, n_each = np.unique(column[part], return_counts=True)
        if not len(n_each) or n_each.max() < _COMMON * len(column):
            return None
        part &= column != values[n_each.argmax()]
    return part if part.sum() >= _LEAST_PART else None


def _telling_level(hidden: Hidden, beside: Beside, used: Sequence[str]) -> Relation | None:
    """Find a level whose people all have one value of the variable, by more than chance."""
    if not hidden.are_levels:
        return None
    _, codes = np.unique(hidden.values, return_inverse=True)
    share = np.bincount(codes) / len(codes)
    for name, groups in beside.groups.items():
        if name in used:
            continue
        known = groups >= 0
        table = np.zeros((int(groups.max(initial=-1)) + 1, len(share)))
        np.add.at(table, (groups[known], codes[known]), 1.0)
        n_people = table.sum(axis=1)
        alone = (table.max(axis=1) == n_people) & (n_people >= _LEAST_PART)
        log_chance = n_people * np.log(share[table.argmax(axis=1)])
        if (alone & (log_chance < _LOG_CHANCE)).any():
            words = "the same for all with some value of"
            return Relation(hidden.name, (name,), (), words, False)
    return None
