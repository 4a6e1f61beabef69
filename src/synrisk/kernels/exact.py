"""Kernel of a gaussian model whose likelihood is a sum over nodes of sigma: no Monte Carlo.

At a node sigma is known and the coefficients are normal given all rows, the record's own among
them. Leaving that row out is a rank-one change (Sherman–Morrison), and so is putting a guess in
its place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types

from synrisk.kernels.digest import can_cache, sources_digest
from synrisk.kernels.elementary import LOG2E, logarithm, raise_two
from synrisk.kernels.signatures import F1, F2, F3, FAST, I2


@cache
def exact_kernel() -> Callable[..., None]:
    """Return the kernel, compiled or from numba's cache."""
    kernel: Callable[..., None] = _make_predict(sources_digest())
    return kernel


_BLOCK = 256  # records in the innermost loops
_FAR = 1000.0  # a node's power of two beyond the largest weight's: such a cell is summed apart


@njit(fastmath=FAST, error_model="numpy")
def _dot(left: Any, right: Any, q: Any, out: Any) -> None:
    """out[j] = Σ_c left[c, j] · right[q, c, j]."""
    for j in range(len(out)):
        out[j] = 0.0
    for c in range(len(left)):
        for j in range(len(out)):
            out[j] += left[c, j] * right[q, c, j]


@njit(fastmath=FAST, error_model="numpy")
def _multiply(covariance: Any, q: Any, x: Any, out: Any) -> None:
    """out[q, c, j] = Σ_d covariance[q, c, d] · x[d, j]."""
    n_columns, n_records = x.shape
    for c in range(n_columns):
        for j in range(n_records):
            out[q, c, j] = 0.0
        for d in range(n_columns):
            by = covariance[q, c, d]
            for j in range(n_records):
                out[q, c, j] += by * x[d, j]


@njit(fastmath=FAST, error_model="numpy")
def _fit(mean: Any, q: Any, x: Any, out: Any) -> None:
    """out[j] = Σ_c mean[q, c] · x[c, j]."""
    for j in range(len(out)):
        out[j] = 0.0
    for c in range(len(x)):
        by = mean[q, c]
        for j in range(len(out)):
            out[j] += by * x[c, j]


@njit(fastmath=FAST, error_model="numpy")
def _log_sum(level: Any, centre: Any, scale: Any, y: Any, j: Any) -> Any:
    """log Σ_q 2^row of one cell, from the largest down."""
    n_nodes = len(level)
    top = -np.inf
    for q in range(n_nodes):
        top = max(top, level[q, j] - scale[q, j] * (y - centre[q, j]) ** 2)
    total = 0.0
    for q in range(n_nodes):
        total += 2.0 ** (level[q, j] - scale[q, j] * (y - centre[q, j]) ** 2 - top)
    return top / LOG2E + np.log(total)


def _make_predict(digest: str) -> Any:
    signature = types.void(F2, I2, F1, F1, F2, F3, F2, I2, F1, F2)

    @njit(signature, cache=can_cache(), nogil=True, fastmath=FAST, error_model="numpy")
    def predict(
        values: Any,  # (record, value), with `places` (column, parent cell) as in `models`
        places: Any,
        log_weight: Any,  # (node)
        sigma: Any,  # (node)
        mean: Any,  # (node, column)
        covariance: Any,  # (node, column, column)
        guesses: Any,  # (record, guess)
        truth: Any,  # (record, [parent cell, own guess])
        omega: Any,  # (record)
        out: Any,  # (record, parent cell × guess): the log predictive density against the truth's
    ) -> None:
        _ = digest
        n_records, n_guesses = guesses.shape
        n_columns, n_parents = places.shape
        n_nodes = len(sigma)
        heaviest = np.argmax(log_weight)
        # Records lie innermost, so that every loop over them is vectorised.
        own, other = np.ones((n_columns, _BLOCK)), np.ones((n_columns, _BLOCK))
        own_v, other_v = (
            np.empty((n_nodes, n_columns, _BLOCK)), np.empty((1, n_columns, _BLOCK))
        )  # fmt: skip
        tau, left, error, base = (
            np.empty((n_nodes, _BLOCK)), np.empty((n_nodes, _BLOCK)),
            np.empty((n_nodes, _BLOCK)), np.empty((n_nodes, _BLOCK)),
        )  # fmt: skip
        level, centre, scale = (
            np.empty((n_nodes, _BLOCK)), np.empty((n_nodes, _BLOCK)), np.empty((n_nodes, _BLOCK))
        )  # fmt: skip
        y, power, total, row = np.zeros(_BLOCK), np.ones(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
        fitted, cross, spread = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
        one_covariance = np.empty((1, n_columns, n_columns))
        for start in range(0, n_records, _BLOCK):
            n = min(_BLOCK, n_records - start)
            for j in range(n):
                i = start + j
                for c in range(n_columns):
                    own[c, j] = values[i, places[c, truth[i, 0]]]
                y[j], power[j] = guesses[i, truth[i, 1]], omega[i]
            for q in range(n_nodes):
                precision = 1.0 / (sigma[q] * sigma[q])
                _multiply(covariance, q, own, own_v)
                _fit(mean, q, own, fitted)
                _dot(own, own_v, q, spread)
                for j in range(_BLOCK):
                    tau[q, j] = power[j] * precision
                    error[q, j] = y[j] - fitted[j]
                    left[q, j] = 1.0 - tau[q, j] * spread[j]
                    squared = tau[q, j] * error[q, j] * error[q, j] / left[q, j]
                    at_truth = 0.5 * logarithm(left[q, j]) - 0.5 * squared
                    base[q, j] = (log_weight[q] - at_truth) * LOG2E
            for cell in range(n_parents):
                for c in range(n_columns):
                    for j in range(n):
                        other[c, j] = values[start + j, places[c, cell]]
                for q in range(n_nodes):
                    for c in range(n_columns):
                        for d in range(n_columns):
                            one_covariance[0, c, d] = covariance[q, c, d]
                    _multiply(one_covariance, 0, other, other_v)
                    _fit(mean, q, other, fitted)
                    _dot(other, own_v, q, cross)
                    _dot(other, other_v, 0, spread)
                    for j in range(_BLOCK):
                        t = tau[q, j]
                        more = 1.0 + t * (spread[j] + t * cross[j] * cross[j] / left[q, j])
                        centre[q, j] = fitted[j] - t * cross[j] * error[q, j] / left[q, j]
                        scale[q, j] = 0.5 * LOG2E * t / more
                        level[q, j] = base[q, j] - 0.5 * LOG2E * logarithm(more)
                for k in range(n_guesses):
                    for j in range(n):
                        y[j] = guesses[start + j, k]
                    for j in range(_BLOCK):
                        r = y[j] - centre[heaviest, j]
                        fitted[j] = level[heaviest, j] - scale[heaviest, j] * r * r
                        total[j] = 1.0
                    n_far = 0
                    for q in range(n_nodes):
                        if q != heaviest:
                            for j in range(_BLOCK):
                                r = y[j] - centre[q, j]
                                row[j] = level[q, j] - scale[q, j] * r * r - fitted[j]
                                n_far += row[j] > _FAR
                            raise_two(row)
                            for j in range(_BLOCK):
                                total[j] += row[j]
                    c = cell * n_guesses + k
                    for j in range(n):
                        out[start + j, c] = fitted[j] / LOG2E + logarithm(total[j])
                    for j in range(n if n_far > 0 else 0):
                        out[start + j, c] = _log_sum(level, centre, scale, y[j], j)

    return predict
