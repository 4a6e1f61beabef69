"""Kernels that reduce a record's log posterior to what is reported of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types

from synrisk.kernels.digest import can_cache, sources_digest
from synrisk.kernels.elementary import exponential, logarithm, wide_vectors
from synrisk.kernels.lanes import N_LANES, load, spread, store
from synrisk.kernels.signatures import F1, F2, F3, FAST, I1, I2


@dataclass(frozen=True)
class RecordKernels:
    """The compiled functions over records.

    Attributes
    ----------
    summarise
        Normalises the posterior and writes probability, prior, rank, marginals, best guesses, and
        the cells with the smallest and the largest log likelihood.
    part
        Parts the posterior over a model's cells, and what of it lies within the truth.
    bound_ranks
        Counts the ranks of the truth that Monte-Carlo errors leave open.
    """

    summarise: Callable[..., None]
    part: Callable[..., None]
    bound_ranks: Callable[..., None]


@cache
def record_kernels() -> RecordKernels:
    """Return the kernels, compiled or from numba's cache."""
    digest = sources_digest()
    return RecordKernels(_make_summarise(digest), _make_part(digest), _make_bound(digest))


@njit(fastmath=FAST, error_model="numpy")
def _normalise(log_p: Any, top: Any, p: Any) -> Any:
    """Write p = exp(log_p) / Σ, and return log Σ exp(log_p); `top` is the largest."""
    for c in range(len(log_p)):
        value = exponential(log_p[c] - top)
        value = np.nan if np.isnan(log_p[c]) else value  # what is held within bounds is a number
        p[c] = 0.0 if log_p[c] == -np.inf else value
    total = 0.0
    for c in range(len(p)):
        total += p[c]
    for c in range(len(p)):
        p[c] /= total
    return np.nan if np.isnan(total) else top + logarithm(total)


@njit(error_model="numpy")
def _extremes(row: Any, absent: Any, ends: Any) -> None:
    """Write the smallest and the largest of a row; `absent` is infinite where nothing is."""
    wide_vectors()
    low, high = spread(np.inf), spread(-np.inf)
    n_wide = len(row) - len(row) % N_LANES
    for c in range(0, n_wide, N_LANES):
        value, without = load(row, c), load(absent, c)
        low, high = min(low, value + without), max(high, value - without)
    store(ends, 0, low)
    store(ends, N_LANES, high)
    for c in range(n_wide, len(row)):
        ends[0] = min(ends[0], row[c] + absent[c])
        ends[N_LANES] = max(ends[N_LANES], row[c] - absent[c])
    for j in range(1, N_LANES):
        ends[0] = min(ends[0], ends[j])
        ends[N_LANES] = max(ends[N_LANES], ends[N_LANES + j])


@njit(error_model="numpy")
def _first(row: Any, absent: Any, value: Any) -> Any:
    """Return the first cell with a value that a row is known to have; 0 if it is not a number."""
    for c in range(len(row)):
        if row[c] == value and absent[c] == 0.0:
            return c
    return 0


@njit(fastmath=FAST, error_model="numpy")
def _add_up(p: Any, starts: Any, out: Any) -> None:
    """Write the marginals of every axis, those of an axis from its place in `starts`."""
    n_before, n_after = 1, len(p)
    for axis in range(len(starts) - 1):
        first, size = starts[axis], starts[axis + 1] - starts[axis]
        n_after //= size
        for k in range(first, first + size):
            out[k] = 0.0
        for outer in range(n_before):
            at = outer * size * n_after
            if n_after == 1:  # the innermost axis: its guesses lie side by side
                for k in range(size):
                    out[first + k] += p[at + k]
            for k in range(size if n_after > 1 else 0):
                total = 0.0
                for c in range(at + k * n_after, at + (k + 1) * n_after):
                    total += p[c]
                out[first + k] += total
        n_before *= size


def _make_summarise(digest: str) -> Any:
    signature = types.void(F2, F2, I1, I2, I1, types.float64, F1, F1, F1, I1, F2, F2, I2, I2, F1)

    @njit(signature, cache=can_cache(), nogil=True, fastmath=FAST, error_model="numpy")
    def summarise(
        joint: Any,  # (record, cell): the log likelihood; becomes the log posterior
        log_prior: Any,  # (record or 1, cell)
        true_cell: Any,  # (record)
        truth: Any,  # (record, axis): the true guess
        starts: Any,  # (axis + 1): where each axis' guesses begin in `marginals`
        tie: float,
        probability: Any,
        prior: Any,
        rank: Any,
        n_guesses: Any,
        marginals: Any,
        prior_marginals: Any,  # (record, axis): of the true guess
        best: Any,  # (record, axis)
        ends: Any,  # (record, [smallest, largest]): the cells with such a log likelihood; or empty
        log_odds_range: Any,
    ) -> None:
        _ = digest
        n_records, n_cells = joint.shape
        n_axes = len(starts) - 1
        p, p0, absent = np.empty(n_cells), np.empty(n_cells), np.zeros(n_cells)
        nothing, both = np.zeros(n_cells), np.empty(2 * N_LANES)
        before_marginals = np.empty(starts[n_axes])
        one_prior = len(log_prior) == 1
        n_present = 0
        for i in range(n_records):
            row, before = joint[i], log_prior[0 if one_prior else i]
            if i == 0 or not one_prior:
                n_present = 0
                for c in range(n_cells):
                    absent[c] = 0.0 if before[c] > -np.inf else np.inf
                    n_present += before[c] > -np.inf
                _extremes(before, nothing, both)
                _normalise(before, both[N_LANES], p0)
                _add_up(p0, starts, before_marginals)
            _extremes(row, absent, both)
            between = both[N_LANES] - both[0]
            if len(ends) > 0:
                ends[i, 0] = _first(row, absent, both[0])
                ends[i, 1] = _first(row, absent, both[N_LANES])
            for c in range(n_cells):
                row[c] += before[c]
            _extremes(row, nothing, both)
            log_total = _normalise(row, both[N_LANES], p)
            log_odds_range[i] = np.nan if np.isnan(log_total) else between
            at_truth = row[true_cell[i]]
            above, tied = 0, 0
            for c in range(n_cells):
                difference = row[c] - at_truth
                above += difference > tie
                tied += abs(difference) <= tie
            for c in range(n_cells):
                row[c] -= log_total
            probability[i], prior[i] = p[true_cell[i]], p0[true_cell[i]]
            rank[i] = above + (tied + 1) / 2.0
            n_guesses[i] = n_present
            own = marginals[i]
            _add_up(p, starts, own)
            for axis in range(n_axes):
                prior_marginals[i, axis] = before_marginals[starts[axis] + truth[i, axis]]
                top = 0.0
                for k in range(starts[axis], starts[axis + 1]):
                    top = max(top, own[k])
                for k in range(starts[axis], starts[axis + 1]):
                    if own[k] >= top * (1.0 - tie):
                        best[i, axis] = k - starts[axis]
                        break

    return summarise


def _make_part(digest: str) -> Any:
    @njit(
        types.void(F2, I1, I2, I1, I1, F3),
        cache=can_cache(),
        nogil=True,
        fastmath=FAST,
        error_model="numpy",
    )
    def part(
        log_posterior: Any,  # (record, cell)
        true_cell: Any,  # (record)
        truth: Any,  # (record, axis)
        sizes: Any,  # (axis): of the joint grid
        cell_of: Any,  # (cell): in the model's table
        out: Any,  # (record, table cell, [all, true cell, true value of each axis]), zero
    ) -> None:
        _ = digest
        n_records, n_cells = log_posterior.shape
        p = np.empty(n_cells)
        for i in range(n_records):
            for c in range(n_cells):
                p[c] = exponential(max(log_posterior[i, c], -800.0))
            out[i, cell_of[true_cell[i]], 1] = p[true_cell[i]]
            for c in range(n_cells):
                out[i, cell_of[c], 0] += p[c]
            n_before, n_after = 1, n_cells
            for axis in range(len(sizes)):
                n_after //= sizes[axis]
                for outer in range(n_before):
                    at = (outer * sizes[axis] + truth[i, axis]) * n_after
                    for c in range(at, at + n_after):
                        out[i, cell_of[c], 2 + axis] += p[c]
                n_before *= sizes[axis]

    return part


def _make_bound(digest: str) -> Any:
    signature = types.void(F2, I1, F2, I2, types.float64, types.float64, F2)

    @njit(signature, cache=can_cache(), nogil=True, error_model="numpy")
    def bound_ranks(
        log_posterior: Any,  # (record, cell)
        true_cell: Any,  # (record)
        apart: Any,  # (record, cell of any model's table): variances against the truth
        cell_of: Any,  # (model, cell): where each model's cell stands in `apart`
        confidence: Any,
        tie: Any,
        bounds: Any,  # (record, [lowest, highest rank])
    ) -> None:
        _ = digest
        n_records, n_cells = log_posterior.shape
        for i in range(n_records):
            above, not_below = 0, 0
            at_truth = log_posterior[i, true_cell[i]]
            for c in range(n_cells):
                variance = 0.0
                for model in range(len(cell_of)):
                    variance += apart[i, cell_of[model, c]]
                margin = confidence * np.sqrt(variance) + tie
                difference = log_posterior[i, c] - at_truth
                above += difference > margin
                not_below += difference >= -margin
            bounds[i, 0], bounds[i, 1] = 1.0 + above, not_below

    return bound_ranks
