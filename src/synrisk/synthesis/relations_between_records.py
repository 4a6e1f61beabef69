"""Columns that tell of a record what is synthesized of another one.

An income is in the row of a spouse, or of the year before; the mean of everybody else in a village
and the incomes of these leave one out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import as_real_numbers
from synrisk.synthesis.relations import Hidden, Relation, spread

_LEAST = 20  # values, or records in groups
_SHARE = 0.1  # of a column's values that are others' of the variable
_DIFFERENT = 0.5  # of the variable's values: with fewer, many have the same
_BY_CHANCE = 3.0  # times as many as chance gives
_AROUND = 50  # numbers on either side, which tell how many meet by chance
_EXACT = 1e-6  # of the spread
_LARGEST = 50  # records of a group, on average


def relations_between_records(hidden: Sequence[Hidden], data: pd.DataFrame) -> Iterator[Relation]:
    """Yield columns that hold others' values of a variable, or sums that leave out the record."""
    numbers = {}
    for name in data.columns:
        values, n_text = as_real_numbers(data[name])
        if not n_text:
            numbers[str(name)] = values
    groups = {str(name): _codes(data[name]) for name in data.columns}
    groups = {name: of for name, of in groups.items() if _are_groups(of)}
    for variable in hidden:
        if variable.are_levels:
            continue
        for name, values in numbers.items():
            if _holds_others(variable.values, values):
                yield Relation(variable.name, (name,), (), "told of other records by", True)
            for by, codes in groups.items():
                if by != name and _leaves_one_out(variable.values, values, codes):
                    words = "what the rest of a group leaves, by"
                    yield Relation(variable.name, (name, by), (), words, True)


def _holds_others(hidden: FloatArray, values: FloatArray) -> bool:
    """Tell whether many of a column's values are the variable's, of whatever records."""
    own, theirs = np.unique(hidden), values[np.isfinite(values)]
    if len(own) < _DIFFERENT * len(hidden) or len(theirs) < _LEAST:
        return False
    share = float(np.isin(theirs, own).mean())
    enough = share >= _SHARE and share * len(theirs) >= _LEAST
    return enough and share >= _BY_CHANCE * _covered(own, theirs)


def _covered(own: FloatArray, theirs: FloatArray) -> float:
    """Return how many of the numbers about each of `theirs` are among `own`, on average.

    0 where these have all their digits: then none meets another by chance.
    """
    for step in (10.0**-k for k in range(-3, 7)):
        places = np.rint(own / step)
        if (np.abs(own - places * step) <= 1e-9 * np.abs(own)).all():
            at = np.rint(theirs / step)
            low, high = (np.searchsorted(places, at + by) for by in (-_AROUND, _AROUND + 1))
            others = high - low - np.isin(at, places)
            return float(np.mean(others)) / (2.0 * _AROUND)
    return 0.0


def _codes(column: pd.Series[Any]) -> IntArray:
    return pd.factorize(column.astype(str) if column.dtype == object else column)[0]


def _are_groups(codes: IntArray) -> bool:
    n_groups = int(codes.max(initial=-1)) + 1
    return 0 < 2 * n_groups <= len(codes) <= _LARGEST * n_groups and bool((codes >= 0).all())


def _leaves_one_out(hidden: FloatArray, values: FloatArray, codes: IntArray) -> bool:
    """Tell whether a column is the sum or mean of the variable over the others of a group."""
    if not np.isfinite(values).all():
        return False
    others = np.bincount(codes)[codes] - 1
    several = others > 0
    if int(several.sum()) < _LEAST:
        return False
    total = (np.bincount(codes, hidden)[codes] - hidden)[several]
    near = _EXACT * spread(hidden)
    means = total / others[several]
    found = values[several]
    return bool((np.abs(found - means) <= near).mean() >= 0.9) or bool(
        (np.abs(found - total) <= near * others[several]).mean() >= 0.9
    )
