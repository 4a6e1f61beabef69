"""Columns that a release has of its own, in whatever order its rows are.

Such a column may hold confidential values beside the record that a row stands for: by its place, or
by columns that are released as they are and name it. Or its values are those of the records, moved
and stretched, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import as_real_numbers, common_codes
from synrisk.synthesis.relations import Beside, Hidden, Relation, exact_relations, spread

_NEARLY_ALL = 0.9
_LEAST = 20  # records
_EXACT = 1e-7  # of the spread
_NAMED = 0.1  # the share of rows that must be known again
_ENDS = 3  # rows that may be missing at either end


def added_relation(
    hidden: Sequence[Hidden],
    data: pd.DataFrame,
    frame: pd.DataFrame,
    own: Sequence[str],
    kept: Sequence[str],
) -> Relation | None:
    """Return how columns of a release's own give a synthesized variable away; None if they do not.

    Parameters
    ----------
    hidden
        The synthesized variables of the records.
    data, frame
        The confidential data, and the release.
    own, kept
        The columns that the release alone has, and those that it has as they are.
    """
    for records, rows in _pairs(data, frame, kept):
        beside = Beside.of({name: frame[name].iloc[rows] for name in (*own, *kept)})
        for relation in exact_relations([one.rows(records) for one in hidden], beside, {}):
            if relation.refused and {*relation.columns} & {*own}:
                return relation
    for variable, name in product(hidden, own):
        values, n_text = as_real_numbers(frame[name])
        if not n_text and not variable.are_levels and _is_sample_of(values, variable.values):
            return Relation(variable.name, (name,), (), "moved and stretched, what is in", True)
    return None


def _pairs(
    data: pd.DataFrame, frame: pd.DataFrame, kept: Sequence[str]
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield records and the rows that stand for them: by place, and by what names them."""
    if len(data) == len(frame):
        yield np.arange(len(data)), np.arange(len(data))
    yield from named_pairs(data, frame, kept)


def named_pairs(
    data: pd.DataFrame, frame: pd.DataFrame, kept: Sequence[str]
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield records and the rows that alone agree with them in what is kept, if these are many."""
    if not kept:
        return
    codes = [common_codes(data[name], frame[name]) for name in kept]
    own, theirs = (
        pd.DataFrame({str(k): pair[part] for k, pair in enumerate(codes)}) for part in (0, 1)
    )
    keys = list(own.columns)
    own = own.assign(record=np.arange(len(own))).drop_duplicates(keys, keep=False)
    theirs = theirs.assign(row=np.arange(len(theirs))).drop_duplicates(keys, keep=False)
    both = theirs.merge(own, on=keys)
    if len(both) >= max(_LEAST, _NAMED * len(frame)):
        yield both["record"].to_numpy(), both["row"].to_numpy()


def _is_sample_of(column: FloatArray, values: FloatArray) -> bool:
    """Tell whether nearly all numbers are records' values after one shift and one stretch."""
    known = np.unique(column[np.isfinite(column)])
    truth = np.unique(values)
    if min(len(known), len(truth)) < _LEAST or len(known) < _NEARLY_ALL * len(truth):
        return False
    within = _EXACT * spread(truth)
    ends = range(min(_ENDS, len(truth) // 4))
    for sign, low, high in product((1.0, -1.0), ends, ends):
        x = np.sort(sign * known)
        first, last = truth[low], truth[-1 - high]
        with np.errstate(all="ignore"):
            moved = first + (x - x[0]) * ((last - first) / (x[-1] - x[0]))
        place = np.clip(np.searchsorted(truth, moved), 1, len(truth) - 1)
        off = np.minimum(np.abs(truth[place] - moved), np.abs(truth[place - 1] - moved))
        if (off <= within).mean() >= _NEARLY_ALL:
            return True
    return False
