"""Kernels that reduce a record's log posterior to what is reported of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types

from synrisk.kernels.digest import can_cache, sources_digest
from synrisk.kernels.elementary import exponential, logarithm
from synrisk.kernels.signatures import F1, F2, F3, FAST, I1, I2


@dataclass(frozen=True)
class RecordKernels:
    """The compiled functions over records.

    Attributes
    ----------
    summarise
        Normalises the posterior and writes probability, prior, rank, marginals and best guesses.
    find_ends
        Finds the cells with the smallest and the largest log likelihood.
    part
        Parts the posterior over a model's cells, and what of it lies within the truth.
    bound_ranks
        Counts the ranks of the truth that Monte-Carlo errors leave open.
    """

    summarise: Callable[..., None]
    find_ends: Callable[..., None]
    part: Callable[..., None]
    bound_ranks: Callable[..., None]


@cache
def record_kernels() -> RecordKernels:
    """Return the kernels, compiled or from numba's cache."""
    digest = sources_digest()
    return RecordKernels(
        _make_summarise(digest), _make_find_ends(digest), _make_part(digest), _make_bound(digest)
    )


@njit(fastmath=FAST, error_model="numpy")
def _normalise(log_p: Any, p: Any) -> Any:
    """Write p = exp(log_p) / Σ, and return log Σ exp(log_p)."""
    top = -np.inf
    for c in range(len(log_p)):
        top = max(top, log_p[c])
    for c in range(len(log_p)):
        p[c] = exponential(log_p[c] - top)
    total = 0.0
    for c in range(len(log_p)):
        if log_p[c] == -np.inf:
            p[c] = 0.0
        total += p[c]
    for c in range(len(log_p)):
        p[c] /= total
    return top + logarithm(total)


def _make_summarise(digest: str) -> Any:
    signature = types.void(F2, F2, I1, I2, I2, I1, types.float64, F1, F1, F1, I1, F2, F2, I2)

    @njit(signature, cache=can_cache(), nogil=True, error_model="numpy")
    def summarise(
        joint: Any,  # (record, cell): the log likelihood; becomes the log posterior
        log_prior: Any,  # (record or 1, cell)
        true_cell: Any,  # (record)
        truth: Any,  # (record, axis): the true guess
        axis_cell: Any,  # (axis, cell): where the cell's guess stands in `marginals`
        starts: Any,  # (axis + 1): where each axis' guesses begin in `marginals`
        tie: float,
        probability: Any,
        prior: Any,
        rank: Any,
        n_guesses: Any,
        marginals: Any,
        prior_marginals: Any,  # (record, axis): of the true guess
        best: Any,  # (record, axis)
    ) -> None:
        _ = digest
        n_records, n_cells = joint.shape
        n_axes = len(starts) - 1
        p, p0 = np.empty(n_cells), np.empty(n_cells)
        one_prior = len(log_prior) == 1
        for i in range(n_records):
            before = log_prior[0 if one_prior else i]
            if i == 0 or not one_prior:
                _normalise(before, p0)
            n_present = 0
            for c in range(n_cells):
                joint[i, c] += before[c]
                n_present += before[c] > -np.inf
            log_total = _normalise(joint[i], p)
            at_truth = joint[i, true_cell[i]]
            above, tied = 0, 0
            for c in range(n_cells):
                difference = joint[i, c] - at_truth
                above += difference > tie
                tied += abs(difference) <= tie
                joint[i, c] -= log_total
            probability[i], prior[i] = p[true_cell[i]], p0[true_cell[i]]
            rank[i] = above + (tied + 1) / 2.0
            n_guesses[i] = n_present
            for axis in range(n_axes):
                at = starts[axis] + truth[i, axis]
                for c in range(n_cells):
                    marginals[i, axis_cell[axis, c]] += p[c]
                    if axis_cell[axis, c] == at:
                        prior_marginals[i, axis] += p0[c]
                top = 0.0
                for k in range(starts[axis], starts[axis + 1]):
                    top = max(top, marginals[i, k])
                for k in range(starts[axis], starts[axis + 1]):
                    if marginals[i, k] >= top * (1.0 - tie):
                        best[i, axis] = k - starts[axis]
                        break

    return summarise


def _make_find_ends(digest: str) -> Any:
    @njit(types.void(F2, F2, I2), cache=can_cache(), nogil=True, error_model="numpy")
    def find_ends(
        log_likelihood: Any,  # (record, cell)
        log_prior: Any,  # (record or 1, cell): −∞ where a record lacks the guess
        ends: Any,  # (record, [smallest, largest])
    ) -> None:
        _ = digest
        n_records, n_cells = log_likelihood.shape
        for i in range(n_records):
            before = log_prior[0 if len(log_prior) == 1 else i]
            low, high = np.inf, -np.inf
            for c in range(n_cells):
                value = log_likelihood[i, c]
                if before[c] > -np.inf and value < low:
                    low, ends[i, 0] = value, c
                if before[c] > -np.inf and value > high:
                    high, ends[i, 1] = value, c

    return find_ends


def _make_part(digest: str) -> Any:
    @njit(
        types.void(F2, I1, I2, I2, I1, F3),
        cache=can_cache(),
        nogil=True,
        fastmath=FAST,
        error_model="numpy",
    )
    def part(
        log_posterior: Any,  # (record, cell)
        true_cell: Any,  # (record)
        truth: Any,  # (record, axis)
        guess_of: Any,  # (axis, cell)
        cell_of: Any,  # (cell): in the model's table
        out: Any,  # (record, table cell, [all, true cell, true value of each axis]), zero
    ) -> None:
        _ = digest
        n_records, n_cells = log_posterior.shape
        n_axes = len(guess_of)
        p = np.empty(n_cells)
        for i in range(n_records):
            for c in range(n_cells):
                p[c] = exponential(max(log_posterior[i, c], -800.0))
            out[i, cell_of[true_cell[i]], 1] = p[true_cell[i]]
            for c in range(n_cells):
                out[i, cell_of[c], 0] += p[c]
                for axis in range(n_axes):
                    if guess_of[axis, c] == truth[i, axis]:
                        out[i, cell_of[c], 2 + axis] += p[c]

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
