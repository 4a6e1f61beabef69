"""Totals of a release that equal the confidential ones by more than chance.

Whoever knows everybody else subtracts them from a total that was calibrated, and has the last one.
A release that the models drew misses each total by about the root of the number of rows; that
it comes as near as it does has about the probability of that distance in these units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import Factor
from synrisk.risk.row_groups import kept_codes
from synrisk.risk.value_steps import common_step, is_rounded
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_DENSITY = 2.0 / math.sqrt(2.0 * math.pi)  # of a standard normal distance at 0, both sides
_LEAST, _MOST_LEVELS = 5, 20  # rows of a group, and groups of a column
_ROUNDING = 1e-13  # relative, of a sum


def coincidence(synthesizer: Synthesizer, dataset: Released) -> tuple[str, float] | None:
    """Return the total that comes nearest to the confidential one, and the probability of that.

    It is multiplied by the number of totals that were looked at. None where there is none.
    """
    with np.errstate(all="ignore"):  # of numbers beyond squaring nothing is told
        found = list(_totals(synthesizer, dataset))
    if not found:
        return None
    name, p = min(found, key=lambda one: one[1])
    return name, min(p * len(found), 1.0)


def _totals(synthesizer: Synthesizer, dataset: Released) -> Iterator[tuple[str, float]]:
    variables = synthesizer.schema.variables
    groups = [
        of
        for of in kept_codes(synthesizer, dataset).values()
        if of.records.max(initial=0) < _MOST_LEVELS
    ]
    for regression in synthesizer.plan.regressions:
        name = regression.response
        if isinstance(variables[name], Factor):
            continue
        own, theirs = (
            columns[name].astype(np.float64) for columns in (synthesizer.columns, dataset.columns)
        )
        step = common_step(theirs) if is_rounded(theirs) else 0.0
        pairs = [(own, theirs, step)]
        if regression.transform.steps:
            scaled = (regression.on_model_scale(own), regression.on_model_scale(theirs))
            steps = step * float(np.median(np.exp(regression.transform.log_derivative(theirs))))
            pairs.append((*scaled, steps if step else 0.0))
        for one, other, width in pairs:
            if not (np.isfinite(one).all() and np.isfinite(other).all()):
                continue
            yield name, _nearness(one, other, width)
            yield name, _nearness_of_squares(one, other, width)
            for of in groups:
                for own_part, other_part in _parts(of.records, of.rows):
                    yield name, _nearness(one[own_part], other[other_part], width)


def _parts(records: IntArray, rows: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    for code in range(int(max(records.max(initial=-1), rows.max(initial=-1))) + 1):
        own, theirs = np.flatnonzero(records == code), np.flatnonzero(rows == code)
        if min(len(own), len(theirs)) >= _LEAST:
            yield own, theirs


def _nearness(own: FloatArray, theirs: FloatArray, step: float) -> float:
    """Return the probability that a total, or a mean, comes as near."""
    size = float(theirs.std()) * math.sqrt(len(theirs))
    total = float(theirs.sum())
    by_mean = total - float(own.mean()) * len(theirs)
    away = min(abs(total - float(own.sum())), abs(by_mean))
    rounding = _ROUNDING * float(np.abs(theirs).sum())
    return _probability(away + step + rounding, size)


def _nearness_of_squares(own: FloatArray, theirs: FloatArray, step: float) -> float:
    """Return the probability that a standard deviation comes as near."""
    wide, size = float(own.std()), float(theirs.std())
    per_root = size / math.sqrt(2.0 * len(theirs))
    return _probability(abs(size - wide) + step / len(theirs) + _ROUNDING * size, per_root)


def _probability(away: float, size: float) -> float:
    return min(_DENSITY * away / size, 1.0) if 0.0 < size < math.inf else 1.0
