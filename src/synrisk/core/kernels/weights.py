"""Kernels of one model, made for a family: the likelihood of the release at each guess.

Serial and without the GIL; only the executor is parallel. For every record the linear predictors
are put together from the terms, then for every guess the log weights, exp and sums over the draws:
nothing over draws is kept for more than a row of guesses. Where guesses are even, `even` sums up
the weights of eight records at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from synrisk.core.kernels import plain
from synrisk.core.kernels.compiling import as_kernel, within_kernels
from synrisk.core.kernels.digest import sources_digest
from synrisk.core.kernels.even_grid import even_sums, no_even_sums
from synrisk.core.kernels.exp_log import LOG2E, exp2_all, largest, logarithm
from synrisk.core.kernels.predictors import add_terms, at_record, compiled, fill_bases
from synrisk.core.kernels.signatures import DRAWS, F1, F2, F3, F4, FAST, I1, RECORDS
from synrisk.core.kernels.simd import N_LANES
from synrisk.models.families import Family

_LOW, _HIGH = 1e-280, 1e280  # sums outside have lost terms: such a cell is taken in logs


@cache
def reduce_kernel(family: Family) -> Callable[..., None]:
    """Return the kernel that writes Σ_l log L_l, or the log of the draws' mean weight.

    For every cell; the log weights of earlier models are added where given. Compiled, or from
    numba's cache.
    """
    if family.compiled is None:
        return plain.reduce(family)
    even = even_sums if family.is_quadratic else no_even_sums
    kernel: Callable[..., None] = _make_reduce(even, *compiled(family.compiled), _digest(family))
    return kernel


@cache
def accumulate_kernel(family: Family) -> Callable[..., None]:
    """Return the kernel that writes a model's log weights, added to those of earlier ones."""
    if family.compiled is None:
        return plain.accumulate(family)
    kernel: Callable[..., None] = _make_accumulate(*compiled(family.compiled), _digest(family))
    return kernel


@cache
def release_kernel(family: Family) -> Callable[..., None]:
    """Return the kernel that adds the weighted log density of rows at every draw.

    Less the largest: the difference is small for every draw that matters, so its sum keeps its
    digits, and what no draw changes cancels.
    """
    if family.compiled is None:
        return plain.release(family)
    kernel: Callable[..., None] = _make_release(*compiled(family.compiled), _digest(family))
    return kernel


def _digest(family: Family) -> str:
    return sources_digest(family.compiled or ())


@within_kernels(fastmath=FAST)
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


@within_kernels(fastmath=FAST)
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


@within_kernels(fastmath=FAST)
def _log_sum_in_logs(row: Any) -> Any:
    """log Σ_h exp(row) where sums of exp over- or underflow."""
    top = largest(row)
    total = 0.0
    for h in range(len(row)):
        total += math.exp(row[h] - top)
    return top + math.log(total)


@within_kernels(fastmath=FAST)
def _log_ratio_in_logs(row: Any, log_g: Any) -> Any:
    """Σ_l log(Σ_h exp(row + log g_l) / Σ_h exp(row)) where sums of exp over- or underflow."""
    n_datasets, n_draws = log_g.shape
    top = largest(row)
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


@within_kernels(fastmath=FAST)
def _sum_row(rows: Any, k: Any, g: Any, sums: Any, c: Any) -> None:
    """Sum row `k` over the draws into cell `c`, without g and with that of each dataset."""
    n_draws = rows.shape[1]
    for one in range(len(g)):
        below, above = 0.0, 0.0
        for h in range(n_draws):
            below += rows[k, h]
            above += rows[k, h] * g[one, h]
        sums[0, c], sums[1 + one, c] = below, above


# The arguments that say what a model is for a block of records:
#   records, draws: see `signatures`
#   parent_of (outer cell): the parent cell of each outer cell; outer cells run over the guesses of
#   earlier variables, and a cell is (outer cell, own guess)
#   earlier (eight records, outer cell, draw, lane): the log weights of earlier models, or empty
_MODEL = (RECORDS, DRAWS, I1, F4)


def _make_reduce(even: Any, varying: Any, base: Any, digest: str) -> Any:
    @as_kernel(types.void(*_MODEL, F2, types.boolean, F2, F3), fastmath=FAST)
    def reduce(
        records: Any,
        draws: Any,
        parent_of: Any,
        earlier: Any,
        log_g: Any,  # (dataset, draw)
        as_ratio: Any,  # whether to divide by the sum without g; else that sum alone is written
        out: Any,
        totals: Any,  # (record, sum, cell): the sums themselves, NaN where they are lost; or empty
    ) -> None:
        _ = digest
        guesses, powers, parameters = records.guesses, records.power, draws.parameters
        n_records, n_guesses = guesses.shape
        n_parents, n_outer = records.places.shape[1], len(parent_of)
        _, n_predictors, n_draws = draws.beta.shape
        chained = earlier.size > 0
        g = np.exp(log_g)
        n_sums = 1 + len(g)
        eta = np.empty((n_parents, n_predictors, n_draws))
        bases = np.empty((n_parents, n_draws))
        at_truth, offset = np.empty(n_draws), np.empty(n_draws)
        rows = np.empty((n_guesses, n_draws))
        flat_rows = rows.reshape(n_guesses * n_draws)
        sums = np.empty((n_sums, n_outer * n_guesses))
        state = np.empty((7, n_draws * N_LANES))
        lane_eta = np.empty((1, n_predictors, n_draws * N_LANES))
        block = np.empty(n_outer * n_sums * n_guesses * N_LANES)
        unsafe = np.empty(n_outer * N_LANES)
        for i in range(n_records):
            lane = i % N_LANES
            if lane == 0:
                even(
                    varying, base, i, min(N_LANES, n_records - i), records, draws, parent_of,
                    earlier, g, state, lane_eta, block, unsafe,
                )  # fmt: skip
            n_unsafe = 0
            for outer in range(n_outer):
                n_unsafe += unsafe[outer * N_LANES + lane] != 0.0
                for one in range(n_sums):
                    at = (outer * n_sums + one) * n_guesses
                    for k in range(n_guesses):
                        sums[one, outer * n_guesses + k] = block[(at + k) * N_LANES + lane]
            power, power2 = powers[i], powers[i] * LOG2E
            if n_unsafe > 0:
                at_record(varying, base, i, records, draws, power, eta, bases, at_truth)
            for outer in range(n_outer if n_unsafe > 0 else 0):
                if unsafe[outer * N_LANES + lane] != 0.0:
                    cell = parent_of[outer]
                    for h in range(n_draws):
                        offset[h] = at_truth[h] - power * bases[cell, h]
                        if chained:
                            offset[h] += earlier[i // N_LANES, outer, h, i % N_LANES]
                        offset[h] *= LOG2E
                    for k in range(n_guesses):
                        y = guesses[i, k]
                        for h in range(n_draws):
                            rows[k, h] = power2 * varying(y, eta, cell, h, parameters) + offset[h]
                    exp2_all(flat_rows)
                    for k in range(n_guesses):
                        _sum_row(rows, k, g, sums, outer * n_guesses + k)
            n_lost = _log_ratios(sums, i, out) if as_ratio else _log_sums(sums, i, out)
            for one in range(totals.shape[1]):
                for c in range(n_outer * n_guesses):
                    totals[i, one, c] = np.nan if np.isnan(out[i, c]) else sums[one, c]
            if n_lost > 0 and n_unsafe == 0:
                at_record(varying, base, i, records, draws, power, eta, bases, at_truth)
            for c in range(n_outer * n_guesses if n_lost > 0 else 0):
                if np.isnan(out[i, c]):
                    outer, y = c // n_guesses, guesses[i, c % n_guesses]
                    cell = parent_of[outer]
                    for h in range(n_draws):
                        offset[h] = at_truth[h] - power * bases[cell, h]
                        if chained:
                            offset[h] += earlier[i // N_LANES, outer, h, i % N_LANES]
                        offset[h] += power * varying(y, eta, cell, h, parameters)
                    if as_ratio:
                        out[i, c] = _log_ratio_in_logs(offset, log_g)
                    else:
                        out[i, c] = _log_sum_in_logs(offset)

    return reduce


def _make_accumulate(varying: Any, base: Any, digest: str) -> Any:
    @as_kernel(types.void(*_MODEL, F4), fastmath=FAST)
    def accumulate(
        records: Any,
        draws: Any,
        parent_of: Any,
        earlier: Any,
        out: Any,
    ) -> None:
        _ = digest
        guesses, powers, parameters = records.guesses, records.power, draws.parameters
        n_records, n_guesses = guesses.shape
        n_parents, n_outer = records.places.shape[1], len(parent_of)
        _, n_predictors, n_draws = draws.beta.shape
        chained = earlier.size > 0
        eta = np.empty((n_parents, n_predictors, n_draws))
        bases = np.empty((n_parents, n_draws))
        at_truth, offset = np.empty(n_draws), np.empty(n_draws)
        for i in range(n_records):
            at_record(varying, base, i, records, draws, powers[i], eta, bases, at_truth)
            power = powers[i]
            for outer in range(n_outer):
                cell = parent_of[outer]
                for h in range(n_draws):
                    offset[h] = at_truth[h] - power * bases[cell, h]
                if chained:
                    for h in range(n_draws):
                        offset[h] += earlier[i // N_LANES, outer, h, i % N_LANES]
                for k in range(n_guesses):
                    y, c = guesses[i, k], outer * n_guesses + k
                    for h in range(n_draws):
                        out[i // N_LANES, c, h, i % N_LANES] = (
                            power * varying(y, eta, cell, h, parameters) + offset[h]
                        )

    return accumulate


def _make_release(varying: Any, base: Any, digest: str) -> Any:
    @as_kernel(types.void(F1, F2, F1, F3, F2, F1), fastmath=FAST)
    def release(y: Any, matrix: Any, omega: Any, beta: Any, parameters: Any, out: Any) -> None:
        _ = digest
        n_rows, n_columns = matrix.shape
        n_predictors, n_draws = beta.shape[1], beta.shape[2]
        eta = np.empty((1, n_predictors, n_draws))
        places = np.arange(n_columns).reshape(n_columns, 1)
        row, bases = np.empty(n_draws), np.empty((1, n_draws))
        for i in range(n_rows):
            add_terms(i, 0, matrix, places, beta, eta)
            fill_bases(base, eta, 0, parameters, bases, 0)
            for h in range(n_draws):
                row[h] = varying(y[i], eta, 0, h, parameters) - bases[0, h]
            top = -np.inf
            for h in range(n_draws):
                top = max(top, row[h])
            for h in range(n_draws):
                out[h] += omega[i] * (row[h] - top)

    return release
