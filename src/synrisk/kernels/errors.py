"""Kernel of the Monte-Carlo error: once more over the weights, when the posterior is known.

With normalised weights p_h(c) of each set of draws at cell c, signed + for draws given the release
and − for draws given the confidential data alone (METHOD §5),

    q_h(c) = Σ sign · p_h(c)            the effect of draw h on log L(c)
    φ_h    = Σ_c K(c) q_h(c)            its effect on a probability whose derivatives are K

and the squares of sums of φ over units of draws (a draw, an antithetic pair, a batch) estimate the
variance. Draws lie unit by unit: member j of unit u at ``j·n_units + u``. Where second moments of
the random numbers were matched, what is linear in them has no error: its directions are taken out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types

from synrisk.families import Family
from synrisk.kernels.digest import can_cache, sources_digest
from synrisk.kernels.elementary import LOG2E, raise_two
from synrisk.kernels.predictors import add_terms, compiled
from synrisk.kernels.signatures import F1, F2, F3, F4, FAST, I2

_FAR = 900.0  # powers of two within which sums neither over- nor underflow


@cache
def error_kernel(family: Family) -> Callable[..., None]:
    """Return the kernel of a family, compiled or from numba's cache."""
    kernel: Callable[..., None] = _make_errors(*compiled(family), sources_digest(family.compiled))
    return kernel


@njit(error_model="numpy")
def tail_shape(log_weights: Any) -> Any:
    """k̂ of the largest weights: a generalised Pareto tail by Zhang and Stephens' estimator."""
    n = len(log_weights)
    n_tail = int(3.0 * math.sqrt(n)) if n > 225 else n // 5  # as PSIS has it
    ordered = np.sort(log_weights)
    top = ordered[n - 1]
    threshold = math.exp(ordered[n - n_tail - 1] - top)
    excess = np.exp(ordered[n - n_tail :] - top) - threshold
    if not excess[n_tail - 1] > 0.0 or not excess[0] >= 0.0:
        return -np.inf
    quartile = max(excess[int(n_tail / 4 + 0.5) - 1], 1e-300)
    n_grid = 30 + int(math.sqrt(n_tail))
    theta, log_profile = np.empty(n_grid), np.empty(n_grid)
    for j in range(n_grid):
        theta[j] = 1.0 / excess[n_tail - 1]
        theta[j] += (1.0 - math.sqrt(n_grid / (j + 0.5))) / (3.0 * quartile)
        k = np.mean(np.log1p(-theta[j] * excess))
        log_profile[j] = n_tail * (math.log(-theta[j] / k) - k - 1.0)
    weight = np.exp(log_profile - log_profile.max())
    mean = np.sum(weight * theta) / np.sum(weight)
    k = np.mean(np.log1p(-mean * excess))
    return (n_tail * k + 10.0 * 0.5) / (n_tail + 10.0)  # a weak prior at ½, as PSIS has it


@njit(fastmath=FAST, error_model="numpy")
def _unit_squares(values: Any, n_units: Any, basis: Any, sums: Any) -> Any:
    """Σ_u (Σ_{h∈u} value)², less what lies in the directions of `basis`."""
    for u in range(n_units):
        sums[u] = 0.0
    for first in range(0, len(values), n_units):
        for u in range(n_units):
            sums[u] += values[first + u]
    total = 0.0
    for u in range(n_units):
        total += sums[u] * sums[u]
    for direction in range(len(basis)):
        along = 0.0
        for u in range(n_units):
            along += sums[u] * basis[direction, u]
        total -= along * along
    return max(total, 0.0)


def _make_errors(varying: Any, base: Any, digest: str) -> Any:
    signature = types.void(
        F2, I2, F4, F3, F3, F2, types.int64, F2, F2, I2, F1, F3, types.float64, F2, F2, F1, F1
    )

    @njit(signature, cache=can_cache(), nogil=True, fastmath=FAST, error_model="numpy")
    def errors(
        values: Any,  # (record, value), with `places` (column, parent cell) as in `models`
        places: Any,
        beta: Any,  # (set, column, predictor, draw)
        parameters: Any,  # (set, parameter, draw)
        factors: Any,  # (set, factor, draw): normalised weights of the draws
        signs: Any,  # (set, factor)
        n_units: Any,
        basis: Any,  # (direction, unit), orthonormal: what matched moments leave no error in
        guesses: Any,  # (record, guess)
        truth: Any,  # (record, [parent cell, own guess])
        omega: Any,  # (record)
        derivatives: Any,  # (record, cell, target): K
        least_even: Any,  # effective share of the draws from which k̂ is not needed
        variance: Any,  # (record, target)
        apart: Any,  # (record, cell): the variance of log L against the truth's
        ess: Any,  # (record): the smallest effective number of draws
        khat: Any,  # (record): at that guess
    ) -> None:
        _ = digest
        n_records, n_guesses = guesses.shape
        n_parents, n_targets = places.shape[1], derivatives.shape[2]
        n_sets, n_factors, n_draws = factors.shape
        n_predictors = beta.shape[2]
        eta = np.empty((n_sets, n_parents, n_predictors, n_draws))
        bases = np.empty((n_sets, n_parents, n_draws))
        shift = np.empty((n_sets, n_draws))
        row, q, at_truth = np.empty(n_draws), np.empty(n_draws), np.zeros(n_draws)
        phi, sums, worst = np.empty((n_targets, n_draws)), np.empty(n_units), np.empty(n_draws)
        for s in range(n_sets):
            for f in range(n_factors):
                for h in range(n_draws):
                    at_truth[h] += signs[s, f] * factors[s, f, h]
        for i in range(n_records):
            power, cell, y = omega[i], truth[i, 0], guesses[i, truth[i, 1]]
            for s in range(n_sets):
                for p in range(n_parents):
                    add_terms(i, p, values, places, beta[s], eta[s])
                    for h in range(n_draws):
                        bases[s, p, h] = base(eta[s], p, h, parameters[s])
                for h in range(n_draws):
                    shift[s, h] = -power * varying(y, eta[s], cell, h, parameters[s])
            for r in range(n_targets):
                for h in range(n_draws):
                    phi[r, h] = 0.0
            ess[i] = np.inf
            for p in range(n_parents):
                for k in range(n_guesses):
                    c, y = p * n_guesses + k, guesses[i, k]
                    for h in range(n_draws):
                        q[h] = 0.0
                    for s in range(n_sets):
                        own_eta, own_parameters = eta[s], parameters[s]
                        n_far = 0
                        for h in range(n_draws):
                            moved = bases[s, p, h] - bases[s, cell, h]
                            value = varying(y, own_eta, p, h, own_parameters) - moved
                            row[h] = (shift[s, h] + power * value) * LOG2E
                            n_far += not abs(row[h]) < _FAR
                        if n_far > 0:
                            top = row.max()
                            for h in range(n_draws):
                                row[h] -= top
                        raise_two(row)
                        for f in range(n_factors):
                            total, squares = 0.0, 0.0
                            for h in range(n_draws):
                                one = row[h] * factors[s, f, h]
                                total += one
                                squares += one * one
                            by = signs[s, f] / total
                            for h in range(n_draws):
                                q[h] += by * row[h] * factors[s, f, h]
                            effective = total * total / squares
                            if effective < ess[i] and signs[s, f] != 0.0:
                                ess[i] = effective
                                for h in range(n_draws):
                                    worst[h] = row[h] * factors[s, f, h]
                    for r in range(n_targets):
                        by = derivatives[i, c, r]
                        for h in range(n_draws):
                            phi[r, h] += by * q[h]
                    for h in range(n_draws):
                        q[h] -= at_truth[h]
                    apart[i, c] = _unit_squares(q, n_units, basis, sums)
            for r in range(n_targets):
                for h in range(n_draws):
                    row[h] = phi[r, h]
                variance[i, r] = _unit_squares(row, n_units, basis, sums)
            khat[i] = np.nan
            if ess[i] < least_even:
                khat[i] = tail_shape(np.log(np.maximum(worst, 1e-300)))

    return errors
