"""Sums of weights at even guesses, by multiplication.

Where the log density is a polynomial of the second degree in y and the guesses are even, log
weights along the guesses have constant second differences: each weight is the one before times a
ratio, and each ratio the one before times a turn. Runs are short enough for rounding not to grow.
Records lie in lanes; one that may not go this way is told, whatever its neighbours do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synrisk.core.kernels.compiling import within_kernels
from synrisk.core.kernels.exp_log import LOG2E, wide_vectors
from synrisk.core.kernels.signatures import FAST
from synrisk.core.kernels.simd import (
    N_LANES,
    all_lanes,
    beyond,
    broadcast,
    exp2,
    gather,
    load,
    no_number,
    smaller,
    store,
)

_RUN, _STEPS = 11, 6  # weights that follow from one another, and how many in one pass
_LEAST_EVEN = 4  # guesses
_ROUNDING = 1e-15  # relative to the guesses
_SAME_POWER = 1e-300  # guesses with another exponent than the truth do not go this way
# Powers of two: a run stays within 2^±1000, and differences of terms keep their digits.
LARGEST_START, LARGEST_RATIO, LARGEST_TURN, _LARGEST_TERM = 500.0, 20.0, 3.0, 100.0


@within_kernels()
def _tell_uneven(y: Any, own: Any) -> None:
    """Write zero where a record's guesses are evenly spaced but for rounding."""
    wide_vectors()
    n_guesses = len(y) // N_LANES
    low, high = load(y, 0), load(y, (n_guesses - 1) * N_LANES)
    step = (high - low) * (1.0 / (n_guesses - 1))
    furthest, bad = broadcast(0.0), broadcast(0.0 if n_guesses >= _LEAST_EVEN else 1.0)
    for k in range(n_guesses):
        apart = load(y, k * N_LANES) - (low + step * float(k))
        furthest = max(abs(apart), furthest)
        bad += no_number(apart)
    allowed = _ROUNDING * max(abs(low), abs(high))
    store(own, 2 * N_LANES, bad + smaller(allowed, furthest))


@within_kernels()
def n_runs(n_guesses: Any) -> Any:
    """How many runs the guesses are parted into."""
    return -(-n_guesses // _RUN)


@within_kernels()
def read_lanes(first: Any, n: Any, records: Any, y: Any, own: Any) -> None:
    """Read what is the records' own: guesses; ω, the truth, uneven guesses, guesses' exponent."""
    _, _, guesses, truth, omega, power = records
    for j in range(N_LANES):
        i = first + min(j, n - 1)  # lanes to spare repeat the last record
        own[j], own[N_LANES + j] = omega[i], guesses[i, truth[i, 1]]
        own[3 * N_LANES + j] = power[i]
    n_guesses = guesses.shape[1]
    for k in range(n_guesses):
        store(y, k * N_LANES, gather(guesses, first * n_guesses + k, n_guesses, n))
    _tell_uneven(y, own)


@within_kernels()
def _predict_at_truth(first: Any, n: Any, records: Any, beta: Any, x: Any, eta: Any) -> None:
    """Write the linear predictors at each record's true parent cell."""
    values, places, _, truth, _, _ = records
    for column in range(len(places)):
        for j in range(N_LANES):
            i = first + min(j, n - 1)
            x[column * N_LANES + j] = values[i, places[column, truth[i, 0]]]
    _predict(x, beta, eta)


@within_kernels()
def _predict_at_cell(
    first: Any, n: Any, records: Any, cell: Any, beta: Any, x: Any, eta: Any
) -> None:
    """Write the linear predictors at a parent cell."""
    values, places, _, _, _, _ = records
    for column in range(len(places)):
        place = places[column, cell]
        for j in range(N_LANES):
            x[column * N_LANES + j] = values[first + min(j, n - 1), place]
    _predict(x, beta, eta)


@within_kernels()
def _predict(x: Any, beta: Any, eta: Any) -> None:
    """Write the linear predictors at every draw, eight lanes each."""
    wide_vectors()
    n_columns, n_predictors, n_draws = beta.shape
    for q in range(n_predictors):
        at = q * n_draws
        for h in range(n_draws):
            store(eta, (at + h) * N_LANES, load(x, 0) * beta[0, q, h])
        for column in range(1, n_columns):
            value = load(x, column * N_LANES)
            for h in range(n_draws):
                place = (at + h) * N_LANES
                store(eta, place, load(eta, place) + value * beta[column, q, h])


@within_kernels()
def _sum_steps(
    start: Any, left: Any, turn: Any, g: Any, block: Any, below: Any, above: Any, n: Any
) -> None:
    """Sum up to six weights that follow one another over the draws, without g and with it.

    ``start`` holds a weight and the ratio to the next for every draw; those after these are left in
    ``left``.
    """
    wide_vectors()
    zero = broadcast(0.0)
    b1, b2, b3, b4, b5, b6 = zero, zero, zero, zero, zero, zero
    a1, a2, a3, a4, a5, a6 = zero, zero, zero, zero, zero, zero
    for h in range(len(g)):
        weight, by = broadcast(g[h]), load(turn, h * N_LANES)
        row, ratio = load(start, 2 * h * N_LANES), load(start, (2 * h + 1) * N_LANES)
        b1 += row
        a1 += row * weight
        row *= ratio
        ratio *= by
        b2 += row
        a2 += row * weight
        row *= ratio
        ratio *= by
        b3 += row
        a3 += row * weight
        row *= ratio
        ratio *= by
        b4 += row
        a4 += row * weight
        row *= ratio
        ratio *= by
        b5 += row
        a5 += row * weight
        row *= ratio
        ratio *= by
        b6 += row
        a6 += row * weight
        row *= ratio
        ratio *= by
        store(left, 2 * h * N_LANES, row)
        store(left, (2 * h + 1) * N_LANES, ratio)
    if n > 0:
        store(block, below, b1)
        store(block, above, a1)
    if n > 1:
        store(block, below + N_LANES, b2)
        store(block, above + N_LANES, a2)
    if n > 2:
        store(block, below + 2 * N_LANES, b3)
        store(block, above + 2 * N_LANES, a3)
    if n > 3:
        store(block, below + 3 * N_LANES, b4)
        store(block, above + 3 * N_LANES, a4)
    if n > 4:
        store(block, below + 4 * N_LANES, b5)
        store(block, above + 4 * N_LANES, a5)
    if n > 5:
        store(block, below + 5 * N_LANES, b6)
        store(block, above + 5 * N_LANES, a6)


@within_kernels(fastmath=FAST)
def _prepare(varying: Any, base: Any, y: Any, own: Any, draws: Any, eta: Any, state: Any) -> Any:
    """Write what each draw gives at the truth, and by how much ratios turn, into `state`.

    Return how often a lane may not go this way.
    """
    _, parameters, log_v = draws
    power, y_true, bad = load(own, 0), load(own, N_LANES), load(own, 2 * N_LANES)
    power2, n_guesses = power * LOG2E, len(y) // N_LANES
    y0, y1 = load(y, 0), load(y, min(1, n_guesses - 1) * N_LANES)
    y2 = load(y, min(2, n_guesses - 1) * N_LANES)
    for h in range(len(log_v)):
        lane = all_lanes(h)
        # The base at the truth is taken off first: where rates are large it would swamp y·eta.
        here = log_v[h] - power * varying(y_true, eta, 0, lane, parameters)
        middle = power2 * varying(y1, eta, 0, lane, parameters)
        ends = varying(y0, eta, 0, lane, parameters) + varying(y2, eta, 0, lane, parameters)
        turn = power2 * ends - 2.0 * middle
        bad += beyond(middle, broadcast(_LARGEST_TERM)) + beyond(turn, broadcast(LARGEST_TURN))
        store(state[0], h * N_LANES, here)
        store(state[1], h * N_LANES, base(eta, 0, lane, parameters))
        store(state[2], h * N_LANES, exp2(turn))
    return bad


@within_kernels(fastmath=FAST)
def _begin(
    varying: Any, base: Any, run: Any, y: Any, own: Any, parameters: Any, eta: Any, state: Any,
    earlier: Any, place: Any, start: Any,
) -> Any:  # fmt: skip
    """Write the weight at the first guess of a run and its ratio to the next into `start`.

    Return how often a lane may not go this way.
    """
    power, n_guesses = load(own, 0), len(y) // N_LANES
    power2 = power * LOG2E
    low = run * n_guesses // n_runs(n_guesses)
    y0, y1 = load(y, low * N_LANES), load(y, min(low + 1, n_guesses - 1) * N_LANES)
    at_truth, bases = state[0], state[1]
    bad = broadcast(0.0)
    for h in range(len(bases) // N_LANES):
        lane = all_lanes(h)
        moved = base(eta, 0, lane, parameters) - load(bases, h * N_LANES)
        offset = load(at_truth, h * N_LANES) - power * moved
        if earlier.size > 0:
            offset += load(earlier, (place + h) * N_LANES)
        at = power2 * varying(y0, eta, 0, lane, parameters)
        ratio = power2 * varying(y1, eta, 0, lane, parameters) - at
        level = at + LOG2E * offset
        bad += beyond(at, broadcast(_LARGEST_TERM)) + beyond(ratio, broadcast(LARGEST_RATIO))
        bad += beyond(level, broadcast(LARGEST_START))
        store(start, 2 * h * N_LANES, exp2(level))
        store(start, (2 * h + 1) * N_LANES, exp2(ratio))
    return bad


@within_kernels(fastmath=FAST)
def even_sums(
    varying: Any, base: Any, first: Any, n: Any, records: Any, draws: Any, parent_of: Any,
    earlier: Any, g: Any, state: Any, eta: Any, block: Any, unsafe: Any,
) -> None:  # fmt: skip
    """Write ``block[outer, sum, guess, lane]``, and ``unsafe[outer, lane]``.

    The latter is how often a lane may not go this way.
    """
    beta, parameters, log_v = draws
    n_columns, n_draws = beta.shape[0], len(log_v)
    n_guesses, n_outer, n_sums = records.guesses.shape[1], len(parent_of), 1 + len(g)
    x, y, own = (
        np.empty(n_columns * N_LANES), np.empty(n_guesses * N_LANES), np.empty(4 * N_LANES)
    )  # fmt: skip
    turn, start, held = state[2], state[3:5].reshape(-1), state[5:7].reshape(-1)
    read_lanes(first, n, records, y, own)
    _predict_at_truth(first, n, records, beta, x, eta)
    bad = _prepare(varying, base, y, own, draws, eta, state)
    bad += beyond(load(own, 3 * N_LANES) - load(own, 0), broadcast(_SAME_POWER))
    runs = n_runs(n_guesses)
    for outer in range(n_outer):
        _predict_at_cell(first, n, records, parent_of[outer], beta, x, eta)
        place = (first // N_LANES * n_outer + outer) * n_draws
        worse = bad
        for run in range(runs):
            low, stop = run * n_guesses // runs, (run + 1) * n_guesses // runs
            worse += _begin(
                varying, base, run, y, own, parameters, eta, state, earlier, place, start
            )
            for one in range(len(g)):
                for k in range(low, stop, _STEPS):
                    below = (outer * n_sums * n_guesses + k) * N_LANES
                    above = below + (1 + one) * n_guesses * N_LANES
                    _sum_steps(
                        start if k == low else held, held, turn, g[one], block, below, above,
                        min(_STEPS, stop - k),
                    )  # fmt: skip
        store(unsafe, outer * N_LANES, worse)


@within_kernels()
def no_even_sums(
    varying: Any, base: Any, first: Any, n: Any, records: Any, draws: Any, parent_of: Any,
    earlier: Any, g: Any, state: Any, eta: Any, block: Any, unsafe: Any,
) -> None:  # fmt: skip
    """Tell that no lane may go this way: for families whose density is of a higher degree."""
    unsafe[:] = 1.0
