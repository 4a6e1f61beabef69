"""Kernel of the Monte-Carlo error: once more over the weights, when the posterior is known.

With normalised weights p_h(c) of each set of draws at cell c, signed + for draws given the release
and − for draws given the confidential data alone (METHOD §5),

    q_u(c) = Σ_{h∈u} Σ sign · p_h(c)    the effect of a unit of draws on log L(c)
    φ_u    = Σ_c K(c) q_u(c)            its effect on a probability whose derivatives are K

and the squares of φ over the units (a draw, an antithetic pair, a batch) estimate the variance.
Some of the units are enough for that; the evenness of the weights is judged by all draws, at the
guess where those of the used ones are least even.
Where second moments of the random numbers were matched, what is linear in them has no error: its
directions are taken out of φ. A probability P_T of a set T of cells has the derivatives P(c within
T) − P_T·P(c): the effects on what lies within T and on everything are summed apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import register_jitable

from synrisk.core.kernels.digest import can_cache, sources_digest
from synrisk.core.kernels.even_grid import (
    begin,
    n_runs,
    predict_at_cell,
    predict_at_truth,
    prepare,
    read_lanes,
)
from synrisk.core.kernels.exp_log import LOG2E, exponential, largest, raise_two, wide_vectors
from synrisk.core.kernels.predictors import add_terms_at, at_record, compiled, fill_bases
from synrisk.core.kernels.signatures import F1, F2, F3, F4, FAST, I2
from synrisk.core.kernels.simd import N_LANES, beyond, gather, load, smaller, some, spread, store
from synrisk.models.families import Family

_STEPS = 6  # rows in one pass
_LEAST_LOG = -690.0  # of a weight against the largest
_EVEN = 0.98  # effective share of weights that leave the tail of what they multiply as it is


@cache
def error_kernel(family: Family) -> Callable[..., None]:
    """Return the kernel of a family, compiled or from numba's cache."""
    varying, base = compiled(family)
    fast = lane_errors if family.is_quadratic else no_lane_errors
    digest = sources_digest(family.compiled)
    kernel: Callable[..., None] = _make_errors(fast, varying, base, digest)
    return kernel


@njit(error_model="numpy")
def _mean_log(theta: Any, excess: Any, n: Any, lanes: Any) -> Any:
    """Return the mean of log(1 − theta·excess); `excess` is filled up by zeros."""
    wide_vectors()
    total = spread(0.0)
    for first in range(0, len(excess), N_LANES):
        total += math.log(1.0 - load(excess, first) * theta)
    store(lanes, 0, total)
    whole = 0.0
    for j in range(N_LANES):
        whole += lanes[j]
    return whole / n


@njit(error_model="numpy")
def _bring_up_largest(values: Any, n: Any) -> None:
    """Put the `n` largest values last, in order: numba takes seconds to compile np.partition."""
    low, high, wanted = 0, len(values) - 1, len(values) - n
    while low < high:  # Hoare's selection
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left, right = left + 1, right - 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    for j in range(wanted + 1, len(values)):
        value, k = values[j], j
        while k > wanted and values[k - 1] > value:
            values[k] = values[k - 1]
            k -= 1
        values[k] = value


@njit(error_model="numpy")
def tail_shape(log_weights: Any) -> Any:
    """k̂ of the largest weights: a generalised Pareto tail by Zhang and Stephens' estimator.

    The log weights are left in another order.
    """
    n = len(log_weights)
    n_tail = int(3.0 * math.sqrt(n)) if n > 225 else n // 5  # as PSIS has it
    _bring_up_largest(log_weights, n_tail + 1)
    top = log_weights[n - 1]
    threshold = math.exp(max(log_weights[n - n_tail - 1] - top, _LEAST_LOG))
    excess, lanes = np.zeros(-(-n_tail // N_LANES) * N_LANES), np.empty(N_LANES)
    for j in range(n_tail):
        excess[j] = math.exp(max(log_weights[n - n_tail + j] - top, _LEAST_LOG)) - threshold
    largest = excess[n_tail - 1]
    if not largest > 0.0 or not excess[0] >= 0.0:
        return -np.inf
    quartile = max(excess[int(n_tail / 4 + 0.5) - 1], 1e-300)
    n_grid = 30 + int(math.sqrt(n_tail))
    theta, log_profile = np.empty(n_grid), np.empty(n_grid)
    best = -np.inf
    for j in range(n_grid):
        theta[j] = 1.0 / largest
        theta[j] += (1.0 - math.sqrt(n_grid / (j + 0.5))) / (3.0 * quartile)
        k = _mean_log(theta[j], excess, n_tail, lanes)
        log_profile[j] = n_tail * (math.log(-theta[j] / k) - k - 1.0)
        best = max(best, log_profile[j])
    total, mean = 0.0, 0.0
    for j in range(n_grid):
        weight = math.exp(log_profile[j] - best)
        total += weight
        mean += weight * theta[j]
    k = _mean_log(mean / total, excess, n_tail, lanes)
    return (n_tail * k + 10.0 * 0.5) / (n_tail + 10.0)  # a weak prior at ½, as PSIS has it


@njit(fastmath=FAST, error_model="numpy")
def _sum_units(values: Any, unit_size: Any, out: Any) -> None:
    """Sum adjacent draws into units."""
    n_draws = len(values)
    n_whole = n_draws // unit_size
    if unit_size == 2:
        for u in range(n_whole):
            out[u] = values[2 * u] + values[2 * u + 1]
    else:
        for u in range(n_whole):
            total = 0.0
            for h in range(u * unit_size, (u + 1) * unit_size):
                total += values[h]
            out[u] = total
    if n_whole < len(out):
        total = 0.0
        for h in range(n_whole * unit_size, n_draws):
            total += values[h]
        out[n_whole] = total


@njit(fastmath=FAST, error_model="numpy")
def _squares(values: Any, basis: Any) -> Any:
    """Σ value² over the units, less what lies in the directions of `basis`."""
    total = 0.0
    for u in range(len(values)):
        total += values[u] * values[u]
    for direction in range(len(basis)):
        along = 0.0
        for u in range(len(values)):
            along += values[u] * basis[direction, u]
        total -= along * along
    return max(total, 0.0)


@njit(fastmath=FAST, error_model="numpy")
def _effective(log_weights: Any) -> Any:
    """(Σ v)²/Σ v² of log weights."""
    top = largest(log_weights)
    total, squares = 0.0, 0.0
    for h in range(len(log_weights)):
        weight = exponential(log_weights[h] - top)
        total += weight
        squares += weight * weight
    return total * total / squares


@njit(error_model="numpy")
def _weigh(start: Any, weights: Any, out: Any) -> None:
    """Multiply each draw's first row by its weight; the ratio to the next stays as it is."""
    wide_vectors()
    for h in range(len(weights)):
        place = 2 * h * N_LANES
        store(out, place, load(start, place) * weights[h])
        store(out, place + N_LANES, load(start, place + N_LANES))


@njit(error_model="numpy")
def _lane_effects(
    rows: Any, turn: Any, by: Any, unit_size: Any, low: Any, n_rows: Any, q: Any, squares: Any
) -> None:
    """Add the effects of up to six rows.

    ``rows`` holds each draw's weight at the first row and the ratio to the next; those of the row
    after the last are left there. ``by[row, lane]`` is the sign over the sum of the weights,
    ``q[unit, row, lane]`` the effects, ``squares[row, lane]`` the sums of squared weights. Rows are
    those from `low` of `n_rows`.
    """
    wide_vectors()
    n = min(_STEPS, n_rows - low)
    n_draws, n_units = len(turn) // N_LANES, len(q) // (n_rows * N_LANES)
    zero = spread(0.0)
    s1, s2, s3, s4, s5, s6 = zero, zero, zero, zero, zero, zero
    b1 = load(by, low * N_LANES)
    b2 = load(by, (low + min(1, n - 1)) * N_LANES)
    b3 = load(by, (low + min(2, n - 1)) * N_LANES)
    b4 = load(by, (low + min(3, n - 1)) * N_LANES)
    b5 = load(by, (low + min(4, n - 1)) * N_LANES)
    b6 = load(by, (low + min(5, n - 1)) * N_LANES)
    for u in range(n_units):
        e1, e2, e3, e4, e5, e6 = zero, zero, zero, zero, zero, zero
        for h in range(u * unit_size, min((u + 1) * unit_size, n_draws)):
            place = 2 * h * N_LANES
            row, ratio = load(rows, place), load(rows, place + N_LANES)
            turning = load(turn, h * N_LANES)
            e1 += row * b1
            s1 += row * row
            row *= ratio
            ratio *= turning
            e2 += row * b2
            s2 += row * row
            row *= ratio
            ratio *= turning
            e3 += row * b3
            s3 += row * row
            row *= ratio
            ratio *= turning
            e4 += row * b4
            s4 += row * row
            row *= ratio
            ratio *= turning
            e5 += row * b5
            s5 += row * row
            row *= ratio
            ratio *= turning
            e6 += row * b6
            s6 += row * row
            store(rows, place, row * ratio)
            store(rows, place + N_LANES, ratio * turning)
        at = (u * n_rows + low) * N_LANES
        store(q, at, load(q, at) + e1)
        if n > 1:
            store(q, at + N_LANES, load(q, at + N_LANES) + e2)
        if n > 2:
            store(q, at + 2 * N_LANES, load(q, at + 2 * N_LANES) + e3)
        if n > 3:
            store(q, at + 3 * N_LANES, load(q, at + 3 * N_LANES) + e4)
        if n > 4:
            store(q, at + 4 * N_LANES, load(q, at + 4 * N_LANES) + e5)
        if n > 5:
            store(q, at + 5 * N_LANES, load(q, at + 5 * N_LANES) + e6)
    store(squares, low * N_LANES, s1)
    if n > 1:
        store(squares, (low + 1) * N_LANES, s2)
    if n > 2:
        store(squares, (low + 2) * N_LANES, s3)
    if n > 3:
        store(squares, (low + 3) * N_LANES, s4)
    if n > 4:
        store(squares, (low + 4) * N_LANES, s5)
    if n > 5:
        store(squares, (low + 5) * N_LANES, s6)


@njit(error_model="numpy")
def _collect(q: Any, n_rows: Any, k: Any, at_truth: Any, by: Any, target: Any, phi: Any) -> Any:
    """Add a cell's effects to a target's, and return Σ_u (q_u − q_u at the truth)²."""
    wide_vectors()
    n_units = len(at_truth)
    apart = spread(0.0)
    for u in range(n_units):
        effect = load(q, (u * n_rows + k) * N_LANES)
        place = (target * n_units + u) * N_LANES
        store(phi, place, load(phi, place) + effect * by)
        effect -= at_truth[u]
        apart += effect * effect
    return apart


@register_jitable
def no_lane_errors(
    varying: Any, base: Any, first: Any, n: Any, values: Any, places: Any, beta: Any, parameters:
    Any, log_v: Any, weights: Any, signs: Any, unit_size: Any, at_truth: Any, basis: Any, guesses:
    Any, truth: Any, omega: Any, within: Any, totals: Any, state: Any, start: Any, held: Any, eta:
    Any, q: Any, phi: Any, variance: Any, apart: Any, fewest: Any, worst: Any, unsafe: Any,
    used: Any,
) -> None:  # fmt: skip
    """Tell that no lane may go this way."""
    unsafe[:] = 1.0


@register_jitable(fastmath=FAST)
def lane_errors(
    varying: Any, base: Any, first: Any, n: Any, values: Any, places: Any, beta: Any, parameters:
    Any, log_v: Any, weights: Any, signs: Any, unit_size: Any, at_truth: Any, basis: Any, guesses:
    Any, truth: Any, omega: Any, within: Any, totals: Any, state: Any, start: Any, held: Any, eta:
    Any, q: Any, phi: Any, variance: Any, apart: Any, fewest: Any, worst: Any, unsafe: Any,
    used: Any,
) -> None:  # fmt: skip
    """Write the errors of eight records with even guesses; ``unsafe`` tells which may not."""
    n_sets, n_columns = beta.shape[0], beta.shape[1]
    n_factors, n_units, n_guesses = weights.shape[1], len(at_truth), guesses.shape[1]
    n_parents, (n_records, n_cells, n_targets) = places.shape[1], within.shape
    x, y, own = (
        np.empty(n_columns * N_LANES), np.empty(n_guesses * N_LANES), np.empty(3 * N_LANES)
    )  # fmt: skip
    by, squares, sums = (
        np.empty(n_guesses * N_LANES), np.empty(n_guesses * N_LANES),
        np.empty(n_guesses * N_LANES),
    )  # fmt: skip
    lanes, effects = np.empty(N_LANES), np.empty((n_targets, n_units))
    none = np.empty((0, 0, 0, 0))
    where = np.zeros((n_sets, n_factors, N_LANES))
    fewest[:] = np.inf
    read_lanes(first, n, guesses, truth, omega, y, own)
    bad = spread(0.0)
    for s in range(n_sets):
        predict_at_truth(first, n, values, places, truth, beta[s], x, eta)
        bad += prepare(varying, base, y, own, parameters[s], log_v[s], eta, state[s])
    phi[:] = 0.0
    runs = n_runs(n_guesses)
    for p in range(n_parents):
        for run in range(runs):
            low, stop = run * n_guesses // runs, (run + 1) * n_guesses // runs
            n_rows = stop - low
            effects_of_run = q[: n_units * n_rows * N_LANES]
            effects_of_run[:] = 0.0
            for s in range(n_sets):
                predict_at_cell(first, n, values, places, p, beta[s], x, eta)
                bad += begin(
                    varying, base, run, y, own, parameters[s], eta, state[s], none, 0, start
                )
                for f in range(n_factors):
                    if signs[s, f] == 0.0:
                        continue
                    at = ((s * n_records + first) * n_factors + f) * n_cells + p * n_guesses + low
                    for k in range(n_rows):
                        total = gather(totals, at + k, n_factors * n_cells, n)
                        store(sums, k * N_LANES, total)
                        store(by, k * N_LANES, signs[s, f] / total)
                    _weigh(start, weights[s, f], held)
                    for k in range(0, n_rows, _STEPS):
                        _lane_effects(
                            held, state[s, 2], by, unit_size, k, n_rows, effects_of_run, squares
                        )
                    for k in range(n_rows):
                        among = load(sums, k * N_LANES) * used  # about: as among all draws
                        effective = among * among / load(squares, k * N_LANES)
                        bad += beyond(effective, spread(np.inf))
                        place = (s * n_factors + f) * N_LANES
                        fewer, at = load(fewest, place), load(where, place)
                        at += smaller(effective, fewer) * (float(p * n_guesses + low + k) - at)
                        store(where, place, at)
                        store(fewest, place, min(fewer, effective))
            for k in range(n_rows):
                c = p * n_guesses + low + k
                for r in range(n_targets):
                    at = (first * n_cells + c) * n_targets + r
                    part = gather(within, at, n_cells * n_targets, n)
                    if r == 0 or some(part):
                        variances = _collect(q, n_rows, k, at_truth, part, r, phi)
                        if r == 0:
                            store(lanes, 0, variances)
                            for j in range(n):
                                apart[first + j, c] = lanes[j]
    store(unsafe, 0, bad)
    for s in range(n_sets):
        for f in range(n_factors):
            for j in range(N_LANES):
                worst[s, f, j] = int(where[s, f, j])
    for j in range(n):
        i = first + j
        for r in range(n_targets):
            for u in range(n_units):
                effects[r, u] = phi[(r * n_units + u) * N_LANES + j]
        _variances(effects, within[i], basis, variance[i])
        lost = False
        for r in range(n_targets - 1):
            lost |= np.isnan(variance[i, r])
        unsafe[j] += 1.0 if lost else 0.0


@njit(fastmath=FAST, error_model="numpy")
def _variances(effects: Any, within: Any, basis: Any, variance: Any) -> None:
    """The variance of each target from the effects on what lies within it, and on everything."""
    n_cells = len(within)
    for r in range(1, len(effects)):
        total = 0.0
        for c in range(n_cells):
            total += within[c, r]
        for u in range(effects.shape[1]):
            effects[r, u] -= total * effects[0, u]
        variance[r - 1] = _squares(effects[r], basis)


def _make_errors(fast: Any, varying: Any, base: Any, digest: str) -> Any:
    signature = types.void(
        F2, I2, F4, F3, F2, F3, F4, F3, F2, F3, F2, types.int64, F1, F2, F2, I2, F1, F3, F4,
        types.float64, F2, F2, F2, F1, F1,
    )  # fmt: skip

    @njit(signature, cache=can_cache(), nogil=True, fastmath=FAST, error_model="numpy")
    def errors(
        values: Any,  # (record, value), with `places` (column, parent cell) as in `models`
        places: Any,
        beta: Any,  # (set, column, predictor, draw)
        parameters: Any,  # (set, parameter, draw)
        log_v: Any,  # (set, draw)
        log_weights: Any,  # (set, factor, draw): of what v·w is multiplied by
        some_beta: Any,  # the same of those draws that errors are estimated by
        some_parameters: Any,
        some_v: Any,
        some_weights: Any,  # not in logs
        signs: Any,  # (set, factor)
        unit_size: Any,  # adjacent draws
        at_truth: Any,  # (unit): q at the truth; of as many units as errors are estimated by
        basis: Any,  # (direction, unit), orthonormal: what matched moments leave no error in
        guesses: Any,  # (record, guess)
        truth: Any,  # (record, [parent cell, own guess])
        omega: Any,  # (record)
        within: Any,  # (record, cell, [all, target …]): probabilities of cells, and within targets
        totals: Any,  # (set, record, factor, cell): the sums of the weights, NaN where lost
        least_even: Any,  # effective number of draws from which k̂ is not needed
        known_khat: Any,  # (set, factor): of v times the factor, or NaN
        variance: Any,  # (record, target)
        apart: Any,  # (record, cell): the variance of log L against the truth's
        ess: Any,  # (record): the smallest effective number of all draws
        khat: Any,  # (record): of their weights at that guess
    ) -> None:
        _ = digest
        n_records, n_guesses = guesses.shape
        n_parents, n_targets = places.shape[1], within.shape[2]
        n_sets, n_factors, n_draws = log_weights.shape
        n_predictors, n_units = beta.shape[2], len(at_truth)
        n_used = some_weights.shape[2]
        eta = np.empty((n_sets, n_parents, n_predictors, n_used))
        bases = np.empty((n_sets, n_parents, n_used))
        offset = np.empty((n_sets, n_used))
        row, q, sums = np.empty(n_used), np.empty(n_used), np.empty(n_units)
        effects = np.empty((n_targets, n_units))
        state = np.empty((n_sets, 3, n_used * N_LANES))
        start, held = np.empty(2 * n_used * N_LANES), np.empty(2 * n_used * N_LANES)
        lane_eta = np.empty((1, n_predictors, n_used * N_LANES))
        lane_q = np.empty(n_units * n_guesses * N_LANES)
        phi = np.empty(n_targets * n_units * N_LANES)
        all_eta, two = np.empty((2, n_predictors, n_draws)), np.empty((2, n_draws))
        whole_row = np.empty(n_draws)
        fewest = np.empty((n_sets, n_factors, N_LANES))
        worst = np.zeros((n_sets, n_factors, N_LANES), dtype=np.int64)
        unsafe = np.empty(N_LANES)
        for i in range(n_records):
            lane = i % N_LANES
            if lane == 0:
                fast(
                    varying, base, i, min(N_LANES, n_records - i), values, places, some_beta,
                    some_parameters, some_v, some_weights, signs, unit_size, at_truth, basis,
                    guesses, truth, omega, within, totals, state, start, held, lane_eta, lane_q,
                    phi, variance, apart, fewest, worst, unsafe, n_used / n_draws,
                )  # fmt: skip
            if unsafe[lane] != 0.0:
                for s in range(n_sets):
                    at_record(
                        varying, base, i, values, places, some_beta[s], some_parameters[s],
                        some_v[s], guesses, truth, omega, eta[s], bases[s], offset[s],
                    )  # fmt: skip
                effects[:] = 0.0
                fewest[:, :, lane] = np.inf
                for c in range(n_parents * n_guesses):
                    p, y = c // n_guesses, guesses[i, c % n_guesses]
                    q[:] = 0.0
                    for s in range(n_sets):
                        own_eta, own_parameters = eta[s], some_parameters[s]
                        for h in range(n_used):
                            value = varying(y, own_eta, p, h, own_parameters) - bases[s, p, h]
                            row[h] = (offset[s, h] + omega[i] * value) * LOG2E
                        lost = False
                        for f in range(n_factors):
                            lost |= np.isnan(totals[s, i, f, c])
                        if lost:
                            top = largest(row)
                            for h in range(n_used):
                                row[h] -= top
                        raise_two(row)
                        for f in range(n_factors):
                            total, among, squares = totals[s, i, f, c], 0.0, 0.0
                            for h in range(n_used):
                                part = row[h] * some_weights[s, f, h]
                                among += part
                                squares += part * part
                            if lost:  # the sum over all draws is not known: as among those used
                                total = among * n_draws / n_used
                            by = signs[s, f] / total
                            for h in range(n_used):
                                q[h] += by * row[h] * some_weights[s, f, h]
                            effective = among * among / squares
                            if effective < fewest[s, f, lane]:
                                fewest[s, f, lane], worst[s, f, lane] = effective, c
                    _sum_units(q, unit_size, sums)
                    for r in range(n_targets):
                        by = within[i, c, r]
                        if by != 0.0:
                            for u in range(n_units):
                                effects[r, u] += by * sums[u]
                    total = 0.0
                    for u in range(n_units):
                        total += (sums[u] - at_truth[u]) ** 2
                    apart[i, c] = total
                _variances(effects, within[i], basis, variance[i])
            # All draws are looked at where the used ones are least even.
            s, f = 0, 0
            for one in range(n_sets):
                for other in range(n_factors):
                    fewer = fewest[one, other, lane] < fewest[s, f, lane]
                    if signs[one, other] != 0.0 and (signs[s, f] == 0.0 or fewer):
                        s, f = one, other
            c = worst[s, f, lane]
            p, y = c // n_guesses, guesses[i, c % n_guesses]
            y_true, own_parameters = guesses[i, truth[i, 1]], parameters[s]
            add_terms_at(i, values, places[:, p], beta[s], all_eta, 0)
            add_terms_at(i, values, places[:, truth[i, 0]], beta[s], all_eta, 1)
            fill_bases(base, all_eta, 0, own_parameters, two, 0)
            fill_bases(base, all_eta, 1, own_parameters, two, 1)
            for h in range(n_draws):
                value = varying(y, all_eta, 0, h, own_parameters)
                value -= varying(y_true, all_eta, 1, h, own_parameters)
                value -= two[0, h] - two[1, h]
                whole_row[h] = log_v[s, h] + log_weights[s, f, h] + omega[i] * value
            ess[i] = _effective(whole_row)
            khat[i] = np.nan
            if ess[i] < least_even:
                even = fewest[s, 0, lane] >= _EVEN * n_used
                known = even and not np.isnan(known_khat[s, f])
                khat[i] = known_khat[s, f] if known else tail_shape(whole_row)

    return errors
