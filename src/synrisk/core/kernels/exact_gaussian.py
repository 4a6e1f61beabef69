"""Kernel of a gaussian model whose likelihood is a sum over nodes of sigma: no Monte Carlo.

At a node sigma is known and the coefficients are normal given all rows, the record's own among
them. Leaving that row out is a rank-one change (Sherman–Morrison), and so is putting a guess in
its place.

Records lie in lanes. At a node the log density is a parabola in the guess, so where guesses are
even the weight of a node against the heaviest one's follows from guess to guess by multiplication,
as in `even_grid`; elsewhere, and for lanes that may not go this way, exp2 is taken at every guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from synrisk.core.kernels.compiling import as_kernel, within_kernels
from synrisk.core.kernels.digest import sources_digest
from synrisk.core.kernels.even_grid import (
    LARGEST_RATIO,
    LARGEST_START,
    LARGEST_TURN,
    n_runs,
    read_lanes,
)
from synrisk.core.kernels.exp_log import LOG2E, wide_vectors
from synrisk.core.kernels.signatures import F2, FAST, NODES, RECORDS
from synrisk.core.kernels.simd import (
    N_LANES,
    any_of,
    beyond,
    broadcast,
    exp2,
    gather,
    load,
    select,
    smaller,
    store,
)


@cache
def exact_kernel() -> Callable[..., None]:
    """Return the kernel, compiled or from numba's cache."""
    kernel: Callable[..., None] = _make_predict(sources_digest())
    return kernel


_FAR = 1000.0  # a node's power of two beyond the heaviest one's: such a cell is summed apart
_LARGEST_TERM = 1e4  # in powers of two: at a larger one the ratios of even guesses lose digits
_LN2 = math.log(2.0)
_NEAR = 0.05  # its thirteenth power is below a rounding of 1
_A3, _A5, _A7, _A9, _A11 = (2.0 / k for k in (3, 5, 7, 9, 11))  # of 2 artanh
_SMALL = 0.01  # its ninth power is below a rounding of 1
_L2, _L3, _L4, _L5, _L6, _L7, _L8 = ((-1.0) ** (k + 1) / k for k in range(2, 9))  # of log(1 + x)


@within_kernels(fastmath=FAST)
def _at_truth(
    x: Any, own: Any, log_weight: Any, sigma: Any, mean: Any, covariance: Any, cross: Any,
    state: Any,
) -> None:  # fmt: skip
    """Write what each node gives at the truth.

    ``cross[node, column]`` is the covariance times the truth's row; ``state[·, node]`` holds a
    guess's exponent over σ², ω/σ² over what the truth's row leaves, the residual over the same, and
    the node's level: the log of its weight less its log density at the truth.
    """
    wide_vectors()
    n_columns = mean.shape[1]
    for q in range(len(sigma)):
        omega, power = load(own, 0), load(own, 3 * N_LANES)
        tau = omega * (1.0 / (sigma[q] * sigma[q]))
        fitted, leverage = broadcast(0.0), broadcast(0.0)
        for c in range(n_columns):
            product = broadcast(0.0)
            for d in range(n_columns):
                product += load(x, d * N_LANES) * covariance[q, c, d]
            store(cross, (q * n_columns + c) * N_LANES, product)
            leverage += load(x, c * N_LANES) * product
            fitted += load(x, c * N_LANES) * mean[q, c]
        error = load(own, N_LANES) - fitted
        left = 1.0 - tau * leverage
        share = tau / left
        at_truth = 0.5 * math.log(left) - 0.5 * (share * error * error)
        at_truth += (power - omega) * math.log(sigma[q])
        store(state[0], q * N_LANES, power * (1.0 / (sigma[q] * sigma[q])))
        store(state[1], q * N_LANES, share)
        store(state[2], q * N_LANES, share * error)
        store(state[3], q * N_LANES, (log_weight[q] - at_truth) * LOG2E)


@within_kernels(fastmath=FAST)
def _log_and_inverse(x: Any, both: Any) -> None:
    """Write log(1 + x) and 1/(1 + x).

    A record among many hardly moves its fit: x is small, and a few terms of the series are exact.
    """
    large = beyond(x, broadcast(_SMALL))
    log = broadcast(_L8)
    log = _L7 + x * log
    log = _L6 + x * log
    log = _L5 + x * log
    log = _L4 + x * log
    log = _L3 + x * log
    log = _L2 + x * log
    store(both, 0, x + x * x * log)
    square = x * x
    fourth = square * square
    store(both, N_LANES, (1.0 - x) * (1.0 + square) * (1.0 + fourth) + fourth * fourth)
    if any_of(large):  # every lane by its own number, whatever lies beside it
        store(both, 0, select(large, math.log(1.0 + x), load(both, 0)))
        store(both, N_LANES, select(large, 1.0 / (1.0 + x), load(both, N_LANES)))


@within_kernels(fastmath=FAST)
def _at_cell(
    x: Any, mean: Any, covariance: Any, cross: Any, state: Any, parabola: Any, both: Any
) -> None:
    """Write ``parabola[·, node]``: height, place of the top and curvature of the log density.

    Of guesses at a parent cell, in powers of two.
    """
    wide_vectors()
    n_nodes, n_columns = mean.shape
    for q in range(n_nodes):
        fitted, leverage, moved = broadcast(0.0), broadcast(0.0), broadcast(0.0)
        for c in range(n_columns):
            product, value = broadcast(0.0), load(x, c * N_LANES)
            for d in range(n_columns):
                product += load(x, d * N_LANES) * covariance[q, c, d]
            leverage += value * product
            fitted += value * mean[q, c]
            moved += value * load(cross, (q * n_columns + c) * N_LANES)
        tau, share = load(state[0], q * N_LANES), load(state[1], q * N_LANES)
        _log_and_inverse(tau * (leverage + share * moved * moved), both)
        height = load(state[3], q * N_LANES) - 0.5 * LOG2E * load(both, 0)
        store(parabola[0], q * N_LANES, height)
        store(parabola[1], q * N_LANES, fitted - moved * load(state[2], q * N_LANES))
        store(parabola[2], q * N_LANES, 0.5 * LOG2E * tau * load(both, N_LANES))


@within_kernels(fastmath=FAST)
def _sum_even(
    begin: Any, end: Any, heaviest: Any, y: Any, parabola: Any, top: Any, total: Any, unsafe: Any
) -> None:
    """Sum the weights of a set's nodes against its heaviest one's at even guesses.

    By multiplication. Write the heaviest one's logs and the sums, and add to `unsafe` where a lane
    may not go this way.
    """
    wide_vectors()
    n_guesses = len(y) // N_LANES
    at = heaviest * N_LANES
    height, centre, scale = load(parabola[0], at), load(parabola[1], at), load(parabola[2], at)
    step = (load(y, (n_guesses - 1) * N_LANES) - load(y, 0)) * (1.0 / (n_guesses - 1))
    bad, runs = load(unsafe, 0), n_runs(n_guesses)
    for k in range(n_guesses):
        away = load(y, k * N_LANES) - centre
        term = scale * away * away
        bad += beyond(term, broadcast(_LARGEST_TERM))
        store(top, k * N_LANES, height - term)
        store(total, k * N_LANES, broadcast(1.0))
    for run in range(runs):
        low, stop = run * n_guesses // runs, (run + 1) * n_guesses // runs
        first = load(y, low * N_LANES)
        top_away = first - centre
        rise = scale * step * (2.0 * top_away + step)
        for q in range(begin, end):
            if q != heaviest:
                own = load(parabola[2], q * N_LANES)
                away = first - load(parabola[1], q * N_LANES)
                start = (
                    load(parabola[0], q * N_LANES) - own * away * away - load(top, low * N_LANES)
                )
                ratio = rise - own * step * (2.0 * away + step)
                turn = 2.0 * (step * step * (scale - own))
                bad += beyond(start, broadcast(LARGEST_START))
                bad += beyond(ratio, broadcast(LARGEST_RATIO))
                bad += beyond(turn, broadcast(LARGEST_TURN))
                row, by, more = exp2(start), exp2(ratio), exp2(turn)
                for k in range(low, stop):
                    store(total, k * N_LANES, load(total, k * N_LANES) + row)
                    row *= by
                    by *= more
    store(unsafe, 0, bad)


@within_kernels(fastmath=FAST)
def _sum_each(
    begin: Any, end: Any, heaviest: Any, y: Any, parabola: Any, top: Any, total: Any, far: Any
) -> None:
    """Sum the same at every guess by itself; add to `far` where a lane's overflow."""
    wide_vectors()
    n_guesses = len(y) // N_LANES
    at, bad = heaviest * N_LANES, load(far, 0)
    for k in range(n_guesses):
        here = load(y, k * N_LANES)
        away = here - load(parabola[1], at)
        highest = load(parabola[0], at) - load(parabola[2], at) * away * away
        weights = broadcast(1.0)
        for q in range(begin, end):
            if q != heaviest:
                away = here - load(parabola[1], q * N_LANES)
                power = (
                    load(parabola[0], q * N_LANES) - load(parabola[2], q * N_LANES) * away * away
                )
                power -= highest
                bad += smaller(broadcast(_FAR), power)
                weights += exp2(max(min(power, broadcast(_FAR)), broadcast(-_FAR)))
        store(top, k * N_LANES, highest)
        store(total, k * N_LANES, weights)
    store(far, 0, bad)


@within_kernels(fastmath=FAST)
def _write_logs(top: Any, total: Any, out: Any) -> None:
    """Write the logs of the sums, no longer against the heaviest node's."""
    wide_vectors()
    for at in range(0, len(top), N_LANES):
        store(out, at, load(top, at) * _LN2 + math.log(load(total, at)))


@within_kernels(fastmath=FAST)
def _add_log_ratios(
    top: Any, total: Any, share: Any, low: Any, below: Any, share_below: Any, out: Any
) -> None:
    """Add the logs of the sums over those of the first set, whose tops and sums are the latter.

    Times the heaviest node's share the sums are about 1, where log(a/b) = 2 artanh((a−b)/(a+b)) is
    a short series.
    """
    wide_vectors()
    known = math.log(share_below / share)
    for at in range(0, len(top), N_LANES):
        a, b = load(total, at) * share, load(below, at) * share_below
        s = (a - b) / (a + b)
        square = s * s
        log = broadcast(_A11)
        log = _A9 + square * log
        log = _A7 + square * log
        log = _A5 + square * log
        log = _A3 + square * log
        log = 2.0 * s + s * square * log
        large = beyond(s, broadcast(_NEAR))
        if any_of(large):  # every lane by its own number, whatever lies beside it
            log = select(large, math.log(a / b), log)
        store(out, at, load(out, at) + (load(top, at) - load(low, at)) * _LN2 + (log + known))


@within_kernels(fastmath=FAST)
def _log_sum(begin: Any, end: Any, parabola: Any, y: Any, lane: Any) -> Any:
    """log Σ_q 2^power of one cell, from the largest down."""
    top = -np.inf
    for q in range(begin, end):
        at = q * N_LANES + lane
        top = max(top, parabola[0, at] - parabola[2, at] * (y - parabola[1, at]) ** 2)
    total = 0.0
    for q in range(begin, end):
        at = q * N_LANES + lane
        power = parabola[0, at] - parabola[2, at] * (y - parabola[1, at]) ** 2
        total += math.exp((power - top) * _LN2)
    return top * _LN2 + math.log(total)


@within_kernels()
def _clear(numbers: Any) -> None:
    for k in range(len(numbers)):
        numbers[k] = 0.0


def _make_predict(digest: str) -> Any:
    signature = types.void(RECORDS, NODES, F2, F2)

    @as_kernel(signature, fastmath=FAST)
    def predict(
        records: Any,
        nodes: Any,
        ratios: Any,  # (record, parent cell × guess): the sum over all sets but the first of the
        # log ratio of the predictive density to the first set's; or (0, 0)
        predicted: Any,  # the same of the first set's log density against the truth's; or (0, 0)
    ) -> None:
        _ = digest
        values, places, guesses, truth, _, _ = records
        starts, log_weight, sigma, mean, covariance, centre, width = nodes
        n_records, n_guesses = guesses.shape
        n_columns, n_parents = places.shape
        n_sets, n_nodes, n_values = len(starts) - 1, len(sigma), values.shape[1]
        heaviest, share = np.empty(n_sets, dtype=np.int64), np.empty(n_sets)
        for s in range(n_sets):
            heaviest[s] = starts[s]
            for q in range(starts[s], starts[s + 1]):
                if log_weight[q] > log_weight[heaviest[s]]:
                    heaviest[s] = q
            share[s] = math.exp(log_weight[heaviest[s]])
        x, own, inverse = np.empty(n_columns * N_LANES), np.empty(4 * N_LANES), 1.0 / width
        cross, state = np.empty(n_nodes * n_columns * N_LANES), np.empty((4, n_nodes * N_LANES))
        parabola, y = np.empty((3, n_nodes * N_LANES)), np.empty(n_guesses * N_LANES)
        low, below = np.empty(n_guesses * N_LANES), np.empty(n_guesses * N_LANES)
        top, total = np.empty(n_guesses * N_LANES), np.empty(n_guesses * N_LANES)
        logs, each = np.empty((2, n_guesses * N_LANES)), np.empty((2, n_guesses * N_LANES))
        unsafe, far, both = np.empty(N_LANES), np.zeros(N_LANES), np.empty(2 * N_LANES)
        for first in range(0, n_records, N_LANES):
            n = min(N_LANES, n_records - first)
            read_lanes(first, n, records, y, own)
            n_even = 0
            for j in range(N_LANES):
                n_even += own[2 * N_LANES + j] == 0.0
            for c in range(n_columns):
                for j in range(N_LANES):
                    i = first + min(j, n - 1)
                    x[c * N_LANES + j] = values[i, places[c, truth[i, 0]]]
                standard = (load(x, c * N_LANES) - centre[c]) * inverse[c]
                store(x, c * N_LANES, standard)
            _at_truth(x, own, log_weight, sigma, mean, covariance, cross, state)
            for cell in range(n_parents):
                for c in range(n_columns):
                    value = gather(values, first * n_values + places[c, cell], n_values, n)
                    store(x, c * N_LANES, (value - centre[c]) * inverse[c])
                _at_cell(x, mean, covariance, cross, state, parabola, both)
                for j in range(N_LANES):
                    unsafe[j] = own[2 * N_LANES + j]
                if n_even > 0:
                    _sum_even(starts[0], starts[1], heaviest[0], y, parabola, low, below, unsafe)
                    _write_logs(low, below, logs[1])
                    _clear(logs[0])
                    for s in range(1, n_sets):
                        _sum_even(
                            starts[s], starts[s + 1], heaviest[s], y, parabola, top, total, unsafe
                        )
                        _add_log_ratios(top, total, share[s], low, below, share[0], logs[0])
                if any_of(load(unsafe, 0)):
                    _clear(far)
                    _sum_each(starts[0], starts[1], heaviest[0], y, parabola, low, below, far)
                    _write_logs(low, below, each[1])
                    _clear(each[0])
                    for s in range(1, n_sets):
                        _sum_each(
                            starts[s], starts[s + 1], heaviest[s], y, parabola, top, total, far
                        )
                        _add_log_ratios(top, total, share[s], low, below, share[0], each[0])
                for j in range(n):
                    i, at = first + j, cell * n_guesses
                    if unsafe[j] != 0.0 and far[j] != 0.0:
                        for k in range(n_guesses):
                            here = y[k * N_LANES + j]
                            base = _log_sum(starts[0], starts[1], parabola, here, j)
                            each[0, k * N_LANES + j], each[1, k * N_LANES + j] = 0.0, base
                            for s in range(1, n_sets):
                                log_sum = _log_sum(starts[s], starts[s + 1], parabola, here, j)
                                each[0, k * N_LANES + j] += log_sum - base
                    found = logs if unsafe[j] == 0.0 else each
                    if len(ratios) > 0:
                        for k in range(n_guesses):
                            ratios[i, at + k] = found[0, k * N_LANES + j]
                    if len(predicted) > 0:
                        for k in range(n_guesses):
                            predicted[i, at + k] = found[1, k * N_LANES + j]

    return predict
