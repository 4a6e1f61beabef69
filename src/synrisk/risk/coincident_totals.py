"""Totals of a release that equal the confidential ones by more than chance.

Whoever knows everybody else subtracts them from a total that was calibrated, and has the last one.
A release that the models drew misses each total by about the root of the number of rows; that
it comes as near as it does has about the probability of that distance in these units. How many
have each level is a total too, and equal within several groups only by design.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import chdtrc

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import Factor
from synrisk.risk.row_groups import Codes, kept_codes
from synrisk.risk.value_steps import common_step, is_rounded
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_DENSITY = 2.0 / math.sqrt(2.0 * math.pi)  # of a standard normal distance at 0, both sides
_LEAST, _MOST_LEVELS = 5, 20  # rows of a group, and groups of a column
_ROUNDING = 1e-13  # relative, of a sum
_LEAST_P = 1e-300
_MODE = 1.2  # times a normal density is more than any number's probability, of few rows too


def coincidence(synthesizer: Synthesizer, dataset: Released) -> tuple[str, float] | None:
    """Return the total that comes nearest to the confidential one, and the probability of that.

    It is multiplied by the number of totals that were looked at. None where there is none.
    """
    with np.errstate(all="ignore"):  # of numbers beyond squaring nothing is told
        found = [*_totals(synthesizer, dataset), *_counts(synthesizer, dataset)]
    if not found:
        return None
    name, p = min(found, key=lambda one: one[1])
    return name, min(p * len(found), 1.0)


def _groups(synthesizer: Synthesizer, dataset: Released) -> list[Codes]:
    """Return the columns that are kept, and have few levels."""
    codes = kept_codes(synthesizer, dataset).values()
    return [of for of in codes if of.records.max(initial=0) < _MOST_LEVELS]


def _totals(synthesizer: Synthesizer, dataset: Released) -> Iterator[tuple[str, float]]:
    variables = synthesizer.schema.variables
    groups = _groups(synthesizer, dataset)
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
                p_of = [
                    _nearness(one[records], other[rows], width)
                    for records, rows in _parts(of.records, of.rows)
                ]
                yield from ((name, p) for p in p_of)
                if len(p_of) > 1:  # Fisher's: minus twice the sum of logs of as many uniform ones
                    total = -2.0 * float(np.sum(np.log(np.maximum(p_of, _LEAST_P))))
                    yield name, float(chdtrc(2.0 * len(p_of), total))


def _counts(synthesizer: Synthesizer, dataset: Released) -> Iterator[tuple[str, float]]:
    """Yield how probable it is that the numbers of rows with each level are the records'.

    Of all rows, and in as many groups of a kept column as they are: given their predictors the rows
    are independent, and the numbers normal with what variance the model gives.
    """
    for model in synthesizer.models:
        name, family = model.response, model.regression.distribution
        if family.is_continuous:
            continue
        levels = family.all_values(synthesizer.schema.variables[name])
        if levels is None:
            levels = np.union1d(synthesizer.columns[name], dataset.columns[name])
        if len(levels) > _MOST_LEVELS:
            continue
        eta, auxiliary = model.mean_predictors(synthesizer.refits.design(model, dataset))
        given = np.broadcast_to(auxiliary, (len(eta), len(auxiliary)))
        on_scale = model.regression.on_model_scale
        p = np.column_stack(
            [np.exp(family.log_density(on_scale(np.full(len(eta), k)), eta, given)) for k in levels]
        )
        own = synthesizer.columns[name][:, None] == levels
        theirs = dataset.columns[name][:, None] == levels
        whole = Codes(np.zeros(len(own), dtype=np.int64), np.zeros(len(theirs), dtype=np.int64))
        for of in (whole, *_groups(synthesizer, dataset)):
            n_groups, log_p = 0, []
            for records, rows in _parts(of.records, of.rows):
                n_groups += 1
                if (own[records].sum(axis=0) == theirs[rows].sum(axis=0)).all():
                    log_p.append(_log_probability_of_equal(p[rows]))
            if log_p:
                choices = math.comb(n_groups, len(log_p))
                yield name, min(choices * math.exp(sum(log_p)), 1.0)


def _log_probability_of_equal(p: FloatArray) -> float:
    """Return the log of the largest probability that numbers of levels have, of rows with `p`."""
    variances = np.linalg.eigvalsh(np.diag(p.sum(axis=0)) - p.T @ p)
    return -float(np.log(np.maximum(2.0 * math.pi * variances / _MODE**2, 1.0)).sum()) / 2.0


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
