"""Rows that may stand for a record: how probable it is that the models come as near to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtrc, expit

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.seeds import stream
from synrisk.models.families import Family
from synrisk.risk.neighbours import Nearness
from synrisk.risk.row_groups import groupings
from synrisk.risk.value_steps import is_heaped, spread_out
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_LEAST_P = 1e-300
MOST_A_GROUP = 50  # records, and rows: of larger groups the nearest rows are looked at


def nearness_to_own(synthesizer: Synthesizer, dataset: Released, number: int) -> list[Nearness]:
    """Return, by variable and for all together, the probability of as near a row.

    Given the row's own predictors and the models' mean parameters; of discrete values by a number
    drawn from what a tie has. Of several rows that may stand for a record the nearest one, as
    probable as it is among so many. Nothing where rows stand for no records.
    """
    found: list[Nearness] = []
    for groups in groupings(synthesizer, dataset):
        records, rows = groups.pairs(MOST_A_GROUP)
        if not len(rows):
            continue
        order = np.argsort(_depth(synthesizer)[records], kind="stable")
        records, rows = records[order], rows[order]
        of_models = (
            _of_model(synthesizer, model, dataset, number, records, rows)
            for model in synthesizer.models
        )
        p_of = [p for p in of_models if p is not None]
        if len(p_of) > 1:
            # Fisher's: minus twice the sum of logs of as many uniform numbers.
            total = -2.0 * np.sum([np.log(np.maximum(p, _LEAST_P)) for p in p_of], axis=0)
            p_of.append(np.asarray(chdtrc(2.0 * len(p_of), total)))
        found += _nearest(p_of, records, rows)
    return found


def _nearest(p_of: Sequence[FloatArray], records: IntArray, rows: IntArray) -> list[Nearness]:
    """Return the least probable of each record's rows, as probable as it is among them."""
    _, first, which, n_rows = np.unique(
        records, return_index=True, return_inverse=True, return_counts=True
    )
    if len(first) == len(records):
        return [Nearness(p, rows, records) for p in p_of]
    order = np.argsort(first)  # those first that stand out
    found = []
    for p in p_of:
        by_record = np.lexsort((p, which))
        least = by_record[np.cumsum(n_rows) - n_rows][order]
        among = -np.expm1(n_rows[order] * np.log1p(-np.minimum(p[least], 1.0 - 1e-15)))
        found.append(Nearness(among, rows[least], records[least]))
    return found


def _of_model(
    synthesizer: Synthesizer,
    model: Model,
    dataset: Released,
    number: int,
    records: IntArray,
    rows: IntArray,
) -> FloatArray | None:
    """Return for pairs of a record and a row how probable it is that the model comes as near."""
    name, regression = model.regression.response, model.regression
    family = regression.distribution
    if family.gap_code is not None:
        return _or_missing(synthesizer, model, dataset, number, records, rows)
    rng = stream(0, "own records", dataset=number, variable=name)
    own = synthesizer.columns[name].astype(np.float64)
    theirs = dataset.columns[name].astype(np.float64)
    eta, auxiliary = model.mean_predictors(synthesizer.refits.design(model, dataset))
    with np.errstate(all="ignore"):
        if family.identity_link:
            heaped = is_heaped(theirs)[rows]
            theirs = spread_out(own, theirs, rng)[1]
            truth = regression.on_model_scale(own)[records]
            drawn = regression.on_model_scale(theirs)[rows]
            away = np.abs(drawn - truth)
            nearer = _between(family, truth - away, truth + away, eta[rows], auxiliary)
            if nearer is None:
                return None
            return _probability(np.where(heaped, 1.0, nearer))  # the model knows no bound
        own, theirs, eta = own[records], theirs[rows], eta[rows]
        if family.is_ordered and not family.is_classification:
            away, step = np.abs(theirs - own), family.grid_step
            nearer, as_near = (
                _between(family, own - reach - step, own + reach, eta, auxiliary)
                for reach in (away - step, away)
            )
            if nearer is None or as_near is None:
                return None
            nearer = np.where(away > 0, nearer, 0.0)
            p = nearer + rng.random(len(rows)) * (as_near - nearer)
        else:
            given = np.broadcast_to(auxiliary, (len(rows), len(auxiliary)))
            agree = np.exp(family.log_density(own, eta, given))
            u = rng.random(len(rows))
            p = np.where(theirs == own, u * agree, agree + u * (1.0 - agree))
    return _probability(p)


def _or_missing(
    synthesizer: Synthesizer,
    model: Model,
    dataset: Released,
    number: int,
    records: IntArray,
    rows: IntArray,
) -> FloatArray | None:
    """Return the same where values may be missing: near to another gap, and to no value."""
    name, gap = model.response, model.regression.distribution.gap_code
    of_values = _of_model(synthesizer, model.of_values, dataset, number, records, rows)
    if of_values is None:
        return None
    eta, _ = model.mean_predictors(synthesizer.refits.design(model, dataset))
    p = expit(eta[rows, -1])
    u = stream(0, "own gaps", dataset=number, variable=name).random(len(rows))
    own, theirs = synthesizer.columns[name][records] == gap, dataset.columns[name][rows] == gap
    of_gap = np.where(theirs, u * p, p + u * (1.0 - p))
    of_value = np.where(theirs, (1.0 - p) + u * p, (1.0 - p) * of_values)
    return _probability(np.where(own, of_gap, of_value))


def _between(
    family: Family, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
) -> FloatArray | None:
    """Return the probability of values above `low` and up to `high`; None if it is not known."""
    below, above = (family.cdf(end, eta, auxiliary) for end in (low, high))
    return None if below is None or above is None else np.asarray(above - below)


def _probability(p: FloatArray) -> FloatArray:
    return np.where(np.isfinite(p), np.clip(p, 0.0, 1.0), 1.0)


def _depth(synthesizer: Synthesizer) -> FloatArray:
    """Return the log density that the models give each record: small for those that stand out."""

    def add_up() -> FloatArray:
        total = np.zeros(synthesizer.n_records)
        for model in synthesizer.models:
            regression = model.regression
            y = regression.on_model_scale(synthesizer.columns[regression.response])
            eta, auxiliary = model.mean_predictors(synthesizer.refits.design(model, None))
            given = np.broadcast_to(auxiliary, (len(y), len(auxiliary)))
            with np.errstate(all="ignore"):
                total += np.nan_to_num(regression.distribution.log_density(y, eta, given))
        return total

    return synthesizer.memory.recall("depth", add_up)
