"""Kernels of one model, made for a family: the likelihood of the release at each guess.

Serial and without the GIL; only the executor is parallel. For every record the linear predictors
are put together from the terms, then for every guess the log weights, exp and sums over the draws:
nothing over draws is kept for more than a row of guesses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import register_jitable

from synrisk.families import Family
from synrisk.kernels.digest import can_cache, sources_digest
from synrisk.kernels.elementary import LOG2E, logarithm, raise_two
from synrisk.kernels.signatures import F1, F2, F3, FAST, I1, I2

_LOW, _HIGH = 1e-280, 1e280  # sums outside have lost terms: such a cell is taken in logs
# Where the log density is a polynomial of the second degree in y and the guesses are even, log
# weights along the guesses have constant second differences: the weights come by multiplication,
# in runs that are short enough for rounding not to grow.
_RUN, _STEPS = 11, 5  # rows in a run, and how many are made in one pass
_ROUNDING = 1e-15  # relative to the guesses
# Powers of two: a run stays within 2^±1000, and differences of terms keep their digits.
_LARGEST_START, _LARGEST_RATIO, _LARGEST_TURN, _LARGEST_TERM = 500.0, 20.0, 3.0, 100.0


@dataclass(frozen=True)
class ModelKernels:
    """The compiled functions of one family.

    Attributes
    ----------
    reduce
        Writes Σ_l log L_l for every cell, or the log of the draws' mean weight; adds the log
        weights of earlier models where given.
    accumulate
        Writes the log weights of this model, added to those of earlier ones.
    release
        Adds the weighted log density of rows at every draw, less the largest: the difference is
        small for every draw that matters, so its sum keeps its digits, and what no draw changes
        cancels.
    """

    reduce: Callable[..., None]
    accumulate: Callable[..., None]
    release: Callable[..., None]


@cache
def model_kernels(family: Family) -> ModelKernels:
    """Return the kernels of a family, compiled or from numba's cache."""
    for function in family.compiled:
        register_jitable(fastmath=FAST)(function)
    digest = sources_digest(family.compiled)
    return ModelKernels(
        _make_reduce(*family.compiled, family.is_quadratic, digest),
        _make_accumulate(*family.compiled, digest),
        _make_release(*family.compiled, digest),
    )


@njit(inline="always", error_model="numpy")
def _add_terms(i: Any, cell: Any, values: Any, places: Any, beta: Any, eta: Any) -> None:
    """eta[cell] = Σ over columns of value · coefficient, at every draw."""
    n_columns, n_predictors, n_draws = beta.shape
    for q in range(n_predictors):
        for h in range(n_draws):
            eta[cell, q, h] = 0.0
    for column in range(n_columns):
        value = values[i, places[column, cell]]
        for q in range(n_predictors):
            for h in range(n_draws):
                eta[cell, q, h] += value * beta[column, q, h]


@njit(fastmath=FAST, error_model="numpy")
def _log_sums(sums: Any, i: Any, out: Any) -> Any:
    """Write log Σ_h row for every cell of a record, NaN where it is lost; return how many are."""
    n_cells = sums.shape[1]
    n_lost = 0
    for c in range(n_cells):
        good = (sums[0, c] > _LOW) & (sums[0, c] < _HIGH)
        log_sum = logarithm(sums[0, c] if good else 1.0)
        out[i, c] = log_sum if good else np.nan
        n_lost += not good
    return n_lost


@njit(fastmath=FAST, error_model="numpy")
def _log_ratios(sums: Any, i: Any, out: Any) -> Any:
    """Write Σ_l log(Σ_h row·g_l / Σ_h row) for every cell of a record.

    `sums` hold the rows' sums: without g, then with that of each dataset. A cell whose sums over-
    or underflowed is lost and marked by NaN; return how many are.
    """
    n_sums, n_cells = sums.shape
    n_lost = 0
    for c in range(n_cells):
        out[i, c] = 0.0
    for one in range(1, n_sums):
        for c in range(n_cells):
            below, above = sums[0, c], sums[one, c]
            good = (below > _LOW) & (below < _HIGH) & (above > _LOW * max(below, 1.0))
            log_ratio = logarithm(above / below if good else 1.0)
            out[i, c] += log_ratio if good else np.nan
            n_lost += not good
    return n_lost


@njit(fastmath=FAST, error_model="numpy")
def _log_sum_in_logs(row: Any) -> Any:
    """log Σ_h exp(row) where sums of exp over- or underflow."""
    top = row.max()
    total = 0.0
    for h in range(len(row)):
        total += math.exp(row[h] - top)
    return top + math.log(total)


@njit(fastmath=FAST, error_model="numpy")
def _log_ratio_in_logs(row: Any, log_g: Any) -> Any:
    """Σ_l log(Σ_h exp(row + log g_l) / Σ_h exp(row)) where sums of exp over- or underflow."""
    n_datasets, n_draws = log_g.shape
    top = row.max()
    below = 0.0
    for h in range(n_draws):
        below += math.exp(row[h] - top)
    total = 0.0
    for one in range(n_datasets):
        high = -np.inf
        for h in range(n_draws):
            high = max(high, row[h] - top + log_g[one, h])
        above = 0.0
        for h in range(n_draws):
            above += math.exp(row[h] - top + log_g[one, h] - high)
        total += high + math.log(above / below)
    return total


@njit(error_model="numpy")
def _is_even(guesses: Any, i: Any) -> Any:
    """Tell whether a record's guesses are evenly spaced but for rounding."""
    n_guesses = guesses.shape[1]
    low, high = guesses[i, 0], guesses[i, n_guesses - 1]
    step = (high - low) / (n_guesses - 1)
    furthest = 0.0
    for k in range(n_guesses):
        furthest = max(furthest, abs(guesses[i, k] - (low + step * k)))
    return furthest <= _ROUNDING * max(abs(low), abs(high))


@njit(fastmath=FAST, error_model="numpy")
def _sum_row(rows: Any, k: Any, g: Any, sums: Any, c: Any) -> None:
    """Sum row `k` over the draws into cell `c`, without g and with that of each dataset."""
    n_draws = rows.shape[1]
    for one in range(len(g)):
        below, above = 0.0, 0.0
        for h in range(n_draws):
            below += rows[k, h]
            above += rows[k, h] * g[one, h]
        sums[0, c], sums[1 + one, c] = below, above


@njit(fastmath=FAST, error_model="numpy")
def _sum_steps(start: Any, turn: Any, g: Any, one: Any, sums: Any, c: Any, n_steps: Any) -> None:
    """Sum the rows that follow `start[0]`, five in a pass, without g and with that of `one`.

    Each row is the one before times a ratio, `start[1]` at first, and each ratio the one before
    times `turn`. The last row and ratio are left in `start`.
    """
    b1, b2, b3, b4, b5 = 0.0, 0.0, 0.0, 0.0, 0.0
    a1, a2, a3, a4, a5 = 0.0, 0.0, 0.0, 0.0, 0.0
    for h in range(start.shape[1]):
        ratio, by, weight = start[1, h], turn[h], g[one, h]
        row = start[0, h] * ratio
        b1 += row
        a1 += row * weight
        ratio *= by
        row *= ratio
        b2 += row
        a2 += row * weight
        ratio *= by
        row *= ratio
        b3 += row
        a3 += row * weight
        ratio *= by
        row *= ratio
        b4 += row
        a4 += row * weight
        ratio *= by
        row *= ratio
        b5 += row
        a5 += row * weight
        start[0, h] = row
        start[1, h] = ratio * by
    below, above = (b1, b2, b3, b4, b5), (a1, a2, a3, a4, a5)
    for k in range(n_steps):
        sums[0, c + k], sums[1 + one, c + k] = below[k], above[k]


@njit(fastmath=FAST, error_model="numpy")
def _sum_run(start: Any, turn: Any, g: Any, held: Any, sums: Any, c: Any, n_rows: Any) -> None:
    """Sum the rows of a run, whose first is at cell `c`."""
    _sum_row(start, 0, g, sums, c)
    for one in range(len(g)):
        if len(g) > 1:
            for q in range(2):
                for h in range(start.shape[1]):
                    held[q, h] = start[q, h]
            for k in range(1, n_rows, _STEPS):
                _sum_steps(held, turn, g, one, sums, c + k, min(_STEPS, n_rows - k))
        else:
            for k in range(1, n_rows, _STEPS):
                _sum_steps(start, turn, g, one, sums, c + k, min(_STEPS, n_rows - k))


# The arguments that say what a model is for a block of records:
#   values (record, value), places (column, parent cell): the value of a column at a parent cell
#   beta (column, predictor, draw), parameters (parameter, draw), log_v (draw)
#   guesses (record, guess), truth (record, [parent cell, own guess]), omega (record)
#   parent_of (outer cell): the parent cell of each outer cell; outer cells run over the guesses of
#   earlier variables, and a cell is (outer cell, own guess)
#   earlier (record, outer cell, draw): the log weights of earlier models, or empty
_MODEL = (F2, I2, F3, F2, F1, F2, I2, F1, I1, F3)


def _make_reduce(varying: Any, base: Any, quadratic: bool, digest: str) -> Any:
    @njit(
        types.void(*_MODEL, F2, types.boolean, F2),
        cache=can_cache(),
        nogil=True,
        fastmath=FAST,
        error_model="numpy",
    )
    def reduce(
        values: Any,
        places: Any,
        beta: Any,
        parameters: Any,
        log_v: Any,
        guesses: Any,
        truth: Any,
        omega: Any,
        parent_of: Any,
        earlier: Any,
        log_g: Any,  # (dataset, draw)
        as_ratio: Any,  # whether to divide by the sum without g; else that sum alone is written
        out: Any,
    ) -> None:
        _ = digest
        n_records, n_guesses = guesses.shape
        n_parents, n_outer = places.shape[1], len(parent_of)
        n_predictors, n_draws = beta.shape[1], beta.shape[2]
        chained = earlier.size > 0
        g = np.exp(log_g)
        eta = np.empty((n_parents, n_predictors, n_draws))
        bases = np.empty((n_parents, n_draws))
        at_truth, offset = np.empty((2, n_draws)), np.empty(n_draws)
        start, held, turn = np.empty((2, n_draws)), np.empty((2, n_draws)), np.empty(n_draws)
        rows = np.empty((n_guesses, n_draws))
        flat_start, flat_rows = start.reshape(2 * n_draws), rows.reshape(n_guesses * n_draws)
        sums = np.empty((1 + len(g), n_outer * n_guesses))
        n_runs = -(-n_guesses // _RUN)
        for i in range(n_records):
            for cell in range(n_parents):
                _add_terms(i, cell, values, places, beta, eta)
                for h in range(n_draws):
                    bases[cell, h] = base(eta, cell, h, parameters)
            power, cell = omega[i], truth[i, 0]
            power2 = power * LOG2E
            y = guesses[i, truth[i, 1]]
            for h in range(n_draws):
                at_truth[0, h] = bases[cell, h]
                at_truth[1, h] = log_v[h] - power * varying(y, eta, cell, h, parameters)
            even = quadratic and n_guesses >= 4 and _is_even(guesses, i)
            if even:
                y0, y1, y2 = guesses[i, 0], guesses[i, 1], guesses[i, 2]
                for h in range(n_draws):
                    second = varying(y2, eta, 0, h, parameters) + varying(y0, eta, 0, h, parameters)
                    turn[h] = power2 * (second - 2.0 * varying(y1, eta, 0, h, parameters))
                n_unsafe = 0
                for h in range(n_draws):
                    n_unsafe += not abs(power2 * varying(y1, eta, 0, h, parameters)) < _LARGEST_TERM
                    n_unsafe += not abs(turn[h]) < _LARGEST_TURN
                even = n_unsafe == 0
                raise_two(turn)
            n_lost = 0
            for outer in range(n_outer):
                cell = parent_of[outer]
                unsafe = not even
                for run in range(n_runs if even else 0):
                    first, stop = run * n_guesses // n_runs, (run + 1) * n_guesses // n_runs
                    y0, y1 = guesses[i, first], guesses[i, first + 1]
                    n_unsafe = 0
                    for h in range(n_draws):
                        # The base at the truth is taken off first: where rates are large it would
                        # swamp y·eta.
                        base_ = at_truth[1, h] - power * (bases[cell, h] - at_truth[0, h])
                        if chained:
                            base_ += earlier[i, outer, h]
                        at = power2 * varying(y0, eta, cell, h, parameters)
                        ratio = power2 * varying(y1, eta, cell, h, parameters) - at
                        start[0, h] = at + LOG2E * base_
                        start[1, h] = ratio
                        n_unsafe += not abs(start[0, h]) < _LARGEST_START
                        n_unsafe += not abs(at) < _LARGEST_TERM
                        n_unsafe += not abs(ratio) < _LARGEST_RATIO
                    if n_unsafe > 0:
                        unsafe = True
                        break
                    raise_two(flat_start)
                    _sum_run(start, turn, g, held, sums, outer * n_guesses + first, stop - first)
                if unsafe:
                    for h in range(n_draws):
                        offset[h] = at_truth[1, h] - power * (bases[cell, h] - at_truth[0, h])
                        if chained:
                            offset[h] += earlier[i, outer, h]
                        offset[h] *= LOG2E
                    for k in range(n_guesses):
                        y = guesses[i, k]
                        for h in range(n_draws):
                            rows[k, h] = power2 * varying(y, eta, cell, h, parameters) + offset[h]
                    raise_two(flat_rows)
                    for k in range(n_guesses):
                        _sum_row(rows, k, g, sums, outer * n_guesses + k)
            n_lost = _log_ratios(sums, i, out) if as_ratio else _log_sums(sums, i, out)
            for c in range(n_outer * n_guesses if n_lost else 0):
                if np.isnan(out[i, c]):
                    outer, y = c // n_guesses, guesses[i, c % n_guesses]
                    cell = parent_of[outer]
                    for h in range(n_draws):
                        offset[h] = at_truth[1, h] - power * (bases[cell, h] - at_truth[0, h])
                        if chained:
                            offset[h] += earlier[i, outer, h]
                        offset[h] += power * varying(y, eta, cell, h, parameters)
                    if as_ratio:
                        out[i, c] = _log_ratio_in_logs(offset, log_g)
                    else:
                        out[i, c] = _log_sum_in_logs(offset)

    return reduce


def _make_accumulate(varying: Any, base: Any, digest: str) -> Any:
    @njit(
        types.void(*_MODEL, F3), cache=can_cache(), nogil=True, fastmath=FAST, error_model="numpy"
    )
    def accumulate(
        values: Any,
        places: Any,
        beta: Any,
        parameters: Any,
        log_v: Any,
        guesses: Any,
        truth: Any,
        omega: Any,
        parent_of: Any,
        earlier: Any,
        out: Any,
    ) -> None:
        _ = digest
        n_records, n_guesses = guesses.shape
        n_parents, n_outer = places.shape[1], len(parent_of)
        n_predictors, n_draws = beta.shape[1], beta.shape[2]
        chained = earlier.size > 0
        eta = np.empty((n_parents, n_predictors, n_draws))
        bases = np.empty((n_parents, n_draws))
        shift, offset, at_truth = np.empty(n_draws), np.empty(n_draws), np.empty(n_draws)
        for i in range(n_records):
            for cell in range(n_parents):
                _add_terms(i, cell, values, places, beta, eta)
                for h in range(n_draws):
                    bases[cell, h] = base(eta, cell, h, parameters)
            power, cell = omega[i], truth[i, 0]
            y = guesses[i, truth[i, 1]]
            # The base at the truth is taken off first: where rates are large it would swamp y·eta.
            for h in range(n_draws):
                shift[h] = log_v[h] - power * varying(y, eta, cell, h, parameters)
                at_truth[h] = bases[cell, h]
            for cell in range(n_parents):
                for h in range(n_draws):
                    bases[cell, h] -= at_truth[h]
            for outer in range(n_outer):
                cell = parent_of[outer]
                for h in range(n_draws):
                    offset[h] = shift[h] - power * bases[cell, h]
                if chained:
                    for h in range(n_draws):
                        offset[h] += earlier[i, outer, h]
                for k in range(n_guesses):
                    y, c = guesses[i, k], outer * n_guesses + k
                    for h in range(n_draws):
                        out[i, c, h] = power * varying(y, eta, cell, h, parameters) + offset[h]

    return accumulate


def _make_release(varying: Any, base: Any, digest: str) -> Any:
    @njit(
        types.void(F1, F2, F1, F3, F2, F1),
        cache=can_cache(),
        nogil=True,
        fastmath=FAST,
        error_model="numpy",
    )
    def release(y: Any, matrix: Any, omega: Any, beta: Any, parameters: Any, out: Any) -> None:
        _ = digest
        n_rows, n_columns = matrix.shape
        n_predictors, n_draws = beta.shape[1], beta.shape[2]
        eta = np.empty((1, n_predictors, n_draws))
        places = np.arange(n_columns).reshape(n_columns, 1)
        row = np.empty(n_draws)
        for i in range(n_rows):
            _add_terms(i, 0, matrix, places, beta, eta)
            for h in range(n_draws):
                row[h] = varying(y[i], eta, 0, h, parameters) - base(eta, 0, h, parameters)
            top = -np.inf
            for h in range(n_draws):
                top = max(top, row[h])
            for h in range(n_draws):
                out[h] += omega[i] * (row[h] - top)

    return release
