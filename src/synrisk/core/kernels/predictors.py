"""Linear predictors of one record at every draw, and what they give at the truth.

Functions that numba compiles within a kernel are given a family's own as arguments. They stand in
their modules, not in closures: numba's cache knows a closure by what is pickled of it.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from synrisk.core.kernels.compiling import within_kernels
from synrisk.core.kernels.signatures import FAST
from synrisk.core.kernels.simd import N_LANES, eight_draws, store
from synrisk.models.families import Compiled


def compiled(functions: Compiled) -> Compiled:
    """Return a family's functions, made known to numba."""
    for function in functions:
        within_kernels(fastmath=FAST)(function)
    return functions


@njit(inline="always", error_model="numpy")
def add_terms_at(i: Any, values: Any, places: Any, beta: Any, eta: Any, row: Any) -> None:
    """eta[row] = Σ over columns of value · coefficient, at every draw."""
    n_columns, n_predictors, n_draws = beta.shape
    for q in range(n_predictors):
        for h in range(n_draws):
            eta[row, q, h] = 0.0
    for column in range(n_columns):
        value = values[i, places[column]]
        for q in range(n_predictors):
            for h in range(n_draws):
                eta[row, q, h] += value * beta[column, q, h]


@njit(inline="always", error_model="numpy")
def add_terms(i: Any, cell: Any, values: Any, places: Any, beta: Any, eta: Any) -> None:
    """Do so for a parent cell."""
    add_terms_at(i, values, places[:, cell], beta, eta, cell)


@within_kernels(fastmath=FAST)
def fill_bases(base: Any, eta: Any, cell: Any, parameters: Any, bases: Any, row: Any) -> None:
    """Write the base of every draw at a parent cell, eight at a time."""
    n_draws = bases.shape[1]
    n_whole = n_draws // N_LANES * N_LANES
    for h in range(0, n_whole, N_LANES):
        store(bases, row * n_draws + h, base(eta, cell, eight_draws(h), parameters))
    for h in range(n_whole, n_draws):
        bases[row, h] = base(eta, cell, h, parameters)


@within_kernels(fastmath=FAST)
def at_record(
    varying: Any, base: Any, i: Any, records: Any, draws: Any, power: Any, eta: Any, bases: Any,
    at_truth: Any,
) -> None:  # fmt: skip
    """Write what a record's draws give, for every guess to start from.

    The linear predictors at every parent cell, the bases less those at the truth, and the log
    weight of each draw less that of the truth's guess, for guesses with the exponent `power`. The
    base at the truth is taken off first: where rates are large it would swamp y·eta.
    """
    values, places, guesses, truth, omega, _ = records
    beta, parameters, log_v = draws
    cell, y = truth[i, 0], guesses[i, truth[i, 1]]
    n_parents, n_draws = bases.shape
    for p in range(n_parents):
        add_terms(i, p, values, places, beta, eta)
        fill_bases(base, eta, p, parameters, bases, p)
    for h in range(n_draws):
        at_truth[h] = bases[cell, h]
    for p in range(n_parents):
        for h in range(n_draws):
            bases[p, h] -= at_truth[h]
    for h in range(n_draws):
        # The bases of guesses may have another exponent than the truth's.
        rest = 0.0 if power == omega[i] else (omega[i] - power) * at_truth[h]
        at_truth[h] = rest + (log_v[h] - omega[i] * varying(y, eta, cell, h, parameters))
