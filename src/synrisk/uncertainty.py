"""How sure the numbers are: Monte-Carlo errors of a block of records (METHOD §5).

Models are independent, so their squared errors add. A probability's derivative in the log
likelihood of a model's cell is known once the posterior over the joint grid is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from synrisk.estimators import Importance, ModelEstimate, Stacked
from synrisk.fitting.importance import LEAST_JUDGED, is_reliable
from synrisk.likelihood import ModelBlock, TableErrors, table_errors
from synrisk.result import TIE, ErrorArrays
from synrisk.schema import FloatArray, IntArray

LEAST_RELEASE_ESS = 20.0  # below, the error of importance sampling tends to 0 as one draw dominates
_EVEN = 0.8  # share of the draws from which the tail of their weights does not matter
_CONFIDENCE = 1.96


def errors_of(
    log_posterior: FloatArray,
    log_likelihood_range: tuple[IntArray, IntArray],
    truth: IntArray,
    shape: tuple[int, ...],
    blocks: Sequence[ModelBlock],
    estimates: Sequence[ModelEstimate],
    totals: Sequence[FloatArray | None],
    *,
    prior_from_draws: bool,
) -> ErrorArrays:
    """Return the Monte-Carlo errors of a block of records.

    Parameters
    ----------
    log_posterior
        Over the joint grid, ``(record, cell)``.
    log_likelihood_range
        The cells with the smallest and the largest log likelihood.
    truth
        The index of the truth on every axis, ``(record, axis)``.
    shape
        The shape of the joint grid.
    blocks, estimates, totals
        The models, and the sums of their draws' weights.
    prior_from_draws
        Whether the prior is the models' predictive density.
    """
    n_records = len(truth)
    p = np.exp(log_posterior).reshape(n_records, *shape)
    variance = np.zeros((n_records, 1 + len(shape)))
    apart, apart_likelihood = np.zeros((n_records, *shape)), np.zeros((n_records, *shape))
    ess, khat = np.full(n_records, np.inf), np.full(n_records, np.nan)
    reliable = np.ones(n_records, dtype=bool)
    for block, estimate, sums in zip(blocks, estimates, totals, strict=True):
        sets = estimate.error_sets
        if sets is None or sums is None:
            continue
        within = _within(p, truth, shape, block.axes)
        n_draws = sets.n_draws
        judged = n_draws >= LEAST_JUDGED
        least_even = _EVEN * n_draws if judged else 0.0
        found = table_errors(block, sets, within, sums, shape, least_even)
        wide = [n if axis in block.axes else 1 for axis, n in enumerate(shape)]
        apart_likelihood += found.apart.reshape(n_records, *wide)
        if prior_from_draws:  # the prior takes one of the denominators away
            signs = sets.signs.copy()
            signs[sets.denominator] += 1.0
            with_prior = replace(sets, signs=signs)
            of_posterior = table_errors(block, with_prior, within, sums, shape, 0.0)
            found = replace(found, variance=of_posterior.variance, apart=of_posterior.apart)
        if isinstance(estimate, Importance) and estimate.release_ess.min() < LEAST_RELEASE_ESS:
            variance += np.nan
            reliable[:] = False
        if isinstance(estimate, Stacked) and not estimate.reliable:
            reliable[:] = False
        variance += found.variance
        apart += found.apart.reshape(n_records, *wide)
        worse = found.ess < ess
        ess[worse], khat[worse] = found.ess[worse], found.khat[worse]
        reliable &= _are_reliable(found, n_draws)
    low, high = _rank_interval(log_posterior, apart.reshape(n_records, -1), truth, shape)
    rows = np.arange(n_records)
    flat = np.sqrt(apart_likelihood.reshape(n_records, -1))
    smallest, largest = log_likelihood_range
    range_mcse = flat[rows, smallest] + flat[rows, largest]
    unknown = np.isnan(variance[:, 0])
    reliable &= ~unknown
    low[unknown], high[unknown], range_mcse[unknown] = np.nan, np.nan, np.nan
    return ErrorArrays(np.sqrt(variance), low, high, range_mcse, ess, khat, reliable)


def _are_reliable(found: TableErrors, n_draws: int) -> FloatArray:
    """Tell for each record whether its weights can be relied on."""
    shapes = np.nan_to_num(found.khat, nan=-np.inf)
    pairs = zip(shapes.tolist(), found.ess.tolist(), strict=True)
    return np.array([is_reliable(k, size, n_draws) for k, size in pairs], dtype=bool)


def _within(
    p: FloatArray, truth: IntArray, shape: tuple[int, ...], axes: tuple[int, ...]
) -> FloatArray:
    """Return the probability of each cell of a model's table, ``(record, cell, 1 + target)``.

    First of all that is in it, then of what lies within each target: the true cell of the joint
    grid, and each variable's true value.
    """
    n_records, n_axes = len(p), len(shape)
    others = tuple(1 + axis for axis in range(n_axes) if axis not in axes)
    table_shape = tuple(shape[axis] for axis in axes)
    rows = np.arange(n_records)
    out = np.zeros((n_records, *table_shape, 2 + n_axes))
    table = out.reshape(n_records, -1, 2 + n_axes)
    marginal = p.sum(axis=others) if others else p
    out[..., 0] = marginal
    table[rows, np.ravel_multi_index(tuple(truth[:, axis] for axis in axes), table_shape), 1] = p[
        (rows, *truth.T)
    ]
    for variable in range(n_axes):
        index = truth[:, variable].reshape(n_records, *[1] * n_axes)
        inside = np.take_along_axis(p, index, axis=1 + variable)  # the axis has length one
        inside = inside.sum(axis=others, keepdims=True)
        left = inside.reshape(n_records, *(1 if a == variable else shape[a] for a in axes))
        if variable in axes:
            place = 1 + axes.index(variable)
            at = truth[:, variable].reshape(n_records, *[1] * len(axes))
            np.put_along_axis(out[..., 2 + variable], at, left, axis=place)
        else:
            out[..., 2 + variable] = left
    return table


def _rank_interval(
    log_posterior: FloatArray, apart: FloatArray, truth: IntArray, shape: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Return the ranks of the truth that are left open, guess by guess."""
    rows = np.arange(len(truth))
    cell = np.ravel_multi_index(tuple(truth.T), shape)
    difference = log_posterior - log_posterior[rows, cell][:, None]
    margin = _CONFIDENCE * np.sqrt(apart) + TIE
    low = 1.0 + (difference > margin).sum(axis=1)
    high = (difference >= -margin).sum(axis=1)
    return low, high.astype(np.float64)
