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
_SMALL = 1e-20  # a product over datasets below this goes into logs, before it can underflow


@dataclass(frozen=True)
class ModelKernels:
    """The compiled functions of one family.

    Attributes
    ----------
    reduce
        Writes Σ_l log L_l for every cell; adds the log weights of earlier models where given.
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
        _make_reduce(*family.compiled, digest),
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
def _add_up(rows: Any, g: Any, ratio: Any, extra: Any, first: Any) -> Any:
    """Write Π_l Σ_h row·g_l / Σ_h row as ratio · exp(extra), from `first` on.

    A ratio whose sums over- or underflowed is lost and marked by 0; return how many are.
    """
    n_datasets, n_draws = g.shape
    n_lost = 0
    for k in range(len(rows)):
        below, above = 0.0, 0.0
        for h in range(n_draws):
            below += rows[k, h]
            above += rows[k, h] * g[0, h]
        good = below > _LOW and below < _HIGH and above > _LOW * max(below, 1.0)
        ratio[first + k] = above / below if good else 0.0
        extra[first + k] = 0.0
        n_lost += not good
        for one in range(1, n_datasets):
            if ratio[first + k] < _SMALL and good:
                extra[first + k] += math.log(ratio[first + k])
                ratio[first + k] = 1.0
            above = 0.0
            for h in range(n_draws):
                above += rows[k, h] * g[one, h]
            if good and not above > _LOW * max(below, 1.0):
                good = False
                n_lost += 1
            ratio[first + k] *= above / below if good else 0.0
    return n_lost


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


# The arguments that say what a model is for a block of records:
#   values (record, value), places (column, parent cell): the value of a column at a parent cell
#   beta (column, predictor, draw), parameters (parameter, draw), log_v (draw)
#   guesses (record, guess), truth (record, [parent cell, own guess]), omega (record)
#   parent_of (outer cell): the parent cell of each outer cell; outer cells run over the guesses of
#   earlier variables, and a cell is (outer cell, own guess)
#   earlier (record, outer cell, draw): the log weights of earlier models, or empty
_MODEL = (F2, I2, F3, F2, F1, F2, I2, F1, I1, F3)


def _make_reduce(varying: Any, base: Any, digest: str) -> Any:
    @njit(
        types.void(*_MODEL, F2, F2),
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
        log_g: Any,
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
        shift, row, at_truth = np.empty(n_draws), np.empty(n_draws), np.empty(n_draws)
        offset, offset2 = np.empty(n_draws), np.empty(n_draws)  # in natural and binary logs
        rows = np.empty((n_guesses, n_draws))
        flat = rows.reshape(n_guesses * n_draws)
        ratio, extra = np.empty(n_outer * n_guesses), np.empty(n_outer * n_guesses)
        for i in range(n_records):
            for cell in range(n_parents):
                _add_terms(i, cell, values, places, beta, eta)
                for h in range(n_draws):
                    bases[cell, h] = base(eta, cell, h, parameters)
            power, cell = omega[i], truth[i, 0]
            power2 = power * LOG2E
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
                for h in range(n_draws):
                    offset2[h] = offset[h] * LOG2E
                for k in range(n_guesses):
                    y = guesses[i, k]
                    for h in range(n_draws):
                        rows[k, h] = power2 * varying(y, eta, cell, h, parameters) + offset2[h]
                raise_two(flat)
                first = outer * n_guesses
                n_lost = _add_up(rows, g, ratio, extra, first)
                for k in range(n_guesses if n_lost else 0):
                    if ratio[first + k] == 0.0:
                        y = guesses[i, k]
                        for h in range(n_draws):
                            row[h] = power * varying(y, eta, cell, h, parameters) + offset[h]
                        ratio[first + k] = 1.0
                        extra[first + k] = _log_ratio_in_logs(row, log_g)
            for c in range(n_outer * n_guesses):
                out[i, c] = extra[c] + logarithm(ratio[c])

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
