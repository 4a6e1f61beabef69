"""Tables and sums of families that no kernel is compiled for: their log densities, by NumPy.

A few records and cells are taken at a time. Nothing here adds up over records, and products over
columns are added one by one: a record's numbers do not depend on those that it is computed with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.core.kernels.signatures import Draws, Records
from synrisk.models.families import Family

_AT_ONCE = 1 << 18  # numbers in an array: two megabytes
_LOW, _HIGH = 1e-280, 1e280  # sums outside have lost terms


def _predictors(values: FloatArray, beta: FloatArray) -> FloatArray:
    """Return linear predictors ``(..., draw, predictor)`` of columns on the last axis."""
    n_columns, n_predictors, n_draws = beta.shape
    eta = np.zeros((n_predictors, *values.shape[:-1], n_draws))
    for q in range(n_predictors):
        for column in range(n_columns):
            eta[q] += values[..., column, None] * beta[column, q]
    return np.moveaxis(eta, 0, -1)


def _log_density(
    family: Family, y: FloatArray, values: FloatArray, beta: FloatArray, parameters: FloatArray
) -> FloatArray:
    """Return the log density of `y` ``(..., draw)``, given columns on the last axis of `values`."""
    with np.errstate(all="ignore"):
        return family.log_density(y[..., None], _predictors(values, beta), parameters.T)


def _log_weights(
    family: Family, records: Records, draws: Draws, parent_of: IntArray, earlier: FloatArray
) -> Iterator[tuple[slice, slice, FloatArray]]:
    """Yield records, outer cells, and the log weights there ``(record, outer, guess, draw)``."""
    values, places, guesses, truth, omega, power = records
    (n_records, n_guesses), n_draws = guesses.shape, len(draws.log_v)
    n_cells = max(1, min(len(parent_of), _AT_ONCE // (n_guesses * n_draws)))
    size = max(1, _AT_ONCE // (n_cells * n_guesses * n_draws))
    for first in range(0, n_records, size):
        rows = slice(first, min(first + size, n_records))
        every = np.arange(rows.start, rows.stop)
        own = values[every[:, None], places[:, truth[rows, 0]].T]
        y = guesses[every, truth[rows, 1]]
        at_truth = _log_density(family, y, own, draws.beta, draws.parameters)
        at_truth = draws.log_v - omega[rows, None] * at_truth
        for start in range(0, len(parent_of), n_cells):
            cells = slice(start, min(start + n_cells, len(parent_of)))
            columns = values[rows][:, places[:, parent_of[cells]].T][:, :, None]
            guessed = guesses[rows, None, :]
            log_w = _log_density(family, guessed, columns, draws.beta, draws.parameters)
            log_w = power[rows, None, None, None] * log_w + at_truth[:, None, None]
            if earlier.size:
                lanes = earlier.shape[3]
                log_w += earlier[every // lanes, cells, :, every % lanes][:, :, None]
            yield rows, cells, log_w


def reduce(family: Family) -> Callable[..., None]:
    """Return what `reduce_kernel` does."""

    def reduced(
        records: Records,
        draws: Draws,
        parent_of: IntArray,
        earlier: FloatArray,
        log_g: FloatArray,
        as_ratio: bool,
        out: FloatArray,
        totals: FloatArray,
    ) -> None:
        n_guesses = records.guesses.shape[1]
        g = np.exp(log_g)
        for rows, cells, log_w in _log_weights(family, records, draws, parent_of, earlier):
            where = slice(cells.start * n_guesses, cells.stop * n_guesses)
            n_rows = log_w.shape[0]
            log_w = log_w.reshape(n_rows, -1, log_w.shape[-1])
            top = log_w.max(axis=-1)
            top = np.where(np.isfinite(top), top, 0.0)
            w = np.exp(log_w - top[..., None])
            sums = [w.sum(axis=-1), *((w * one).sum(axis=-1) for one in g)]
            with np.errstate(all="ignore"):
                log_sums = np.log(sums)
                for one, log_one in enumerate(log_g, 1):
                    for lost in np.argwhere(sums[one] < _LOW * sums[0]):
                        i, c = lost
                        log_sums[one, i, c] = logsumexp(log_w[i, c] - top[i, c] + log_one)
                if as_ratio:
                    out[rows, where] = (log_sums[1:] - log_sums[0]).sum(axis=0)
                else:
                    out[rows, where] = log_sums[0] + top
                scale = np.exp(top)
                for one in range(totals.shape[1]):
                    total = sums[one] * scale
                    good = (total > _LOW) & (total < _HIGH)
                    totals[rows, one, where] = np.where(good, total, np.nan)

    return reduced


def accumulate(family: Family) -> Callable[..., None]:
    """Return what `accumulate_kernel` does."""

    def accumulated(
        records: Records, draws: Draws, parent_of: IntArray, earlier: FloatArray, out: FloatArray
    ) -> None:
        n_guesses, lanes = records.guesses.shape[1], out.shape[3]
        for rows, cells, log_w in _log_weights(family, records, draws, parent_of, earlier):
            every = np.arange(rows.start, rows.stop)
            where = slice(cells.start * n_guesses, cells.stop * n_guesses)
            out[every // lanes, where, :, every % lanes] = log_w.reshape(
                len(every), -1, log_w.shape[-1]
            )

    return accumulated


def release(family: Family) -> Callable[..., None]:
    """Return what `release_kernel` does."""

    def added(
        y: FloatArray,
        matrix: FloatArray,
        omega: FloatArray,
        beta: FloatArray,
        parameters: FloatArray,
        out: FloatArray,
    ) -> None:
        n_columns, n_predictors, n_draws = beta.shape
        size = max(1, _AT_ONCE // n_draws)
        for first in range(0, len(y), size):
            rows = slice(first, first + size)
            eta = matrix[rows] @ beta.reshape(n_columns, -1)
            eta = np.moveaxis(eta.reshape(-1, n_predictors, n_draws), 1, -1)
            with np.errstate(all="ignore"):
                log_f = family.log_density(y[rows, None], eta, parameters.T)
                # Less the largest: the difference is small for every draw that matters.
                out += omega[rows] @ (log_f - log_f.max(axis=1, keepdims=True))

    return added


# The log density of a family whose linear predictors are the log densities of each cell.
def _listed(y: Any, eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    return eta[cell, int(y), h]


def _nothing(eta: Any, cell: Any, h: Any, parameters: Any) -> Any:
    return 0.0 * parameters[0, h]


LISTED = (_listed, _nothing)


def errors(family: Family, kernel: Callable[..., None]) -> Callable[..., None]:
    """Return what `error_kernel` does, by one kernel of `LISTED` for all families.

    A record's log densities stand in the place of coefficients: a linear predictor for each cell,
    of one column that is 1.
    """

    def found(
        records: Records, draws: Draws, log_weights: FloatArray, used: Draws, *rest: Any
    ) -> None:
        *given, totals, least_even, known_khat, variance, apart, both, ess, khat = rest
        n_used = used.log_v.shape[-1]
        _, places, guesses, truth, _, _ = records
        n_guesses, n_cells = guesses.shape[1], places.shape[1] * guesses.shape[1]
        no_parameters = np.zeros((len(draws.log_v), 1, draws.log_v.shape[-1]))
        all_cells = np.arange(float(n_cells))[None]
        one, first = np.ones((1, 1)), np.zeros((1, 1), dtype=np.int64)
        within, by_prior = given[-2:]
        size = max(1, _AT_ONCE // (n_cells * draws.log_v.shape[-1]))
        for i in range(len(guesses)):
            row = slice(i, i + 1)
            if i % size == 0:
                tables = [
                    _listed_densities(family, records, slice(i, i + size), *of_set)
                    for of_set in zip(draws.beta, draws.parameters, strict=True)
                ]
            table = np.stack([of_set[i % size] for of_set in tables])[:, None]
            true_cell = truth[row, 0] * n_guesses + truth[row, 1]
            kernel(
                Records(
                    one, first, all_cells, np.stack([0 * true_cell, true_cell], axis=1),
                    records.omega[row], records.power[row],
                ),
                Draws(table, no_parameters, draws.log_v),
                log_weights,
                Draws(
                    np.ascontiguousarray(table[..., :n_used]),
                    np.ascontiguousarray(no_parameters[..., :n_used]),
                    used.log_v,
                ),
                *given[:-2],
                within[row],
                by_prior[row],
                np.ascontiguousarray(totals[:, row]),
                least_even,
                known_khat,
                variance[row],
                apart[row],
                both[row],
                ess[row],
                khat[row],
            )  # fmt: skip

    return found


def _listed_densities(
    family: Family, records: Records, rows: slice, beta: FloatArray, parameters: FloatArray
) -> FloatArray:
    """Return the log density at each cell of some records, ``(record, cell, draw)``."""
    values, places, guesses = records.values[rows], records.places, records.guesses[rows, None]
    n_cells = max(1, _AT_ONCE // (guesses.size * beta.shape[2]))
    parts = []
    for first in range(0, places.shape[1], n_cells):
        columns = values[:, places[:, first : first + n_cells].T][:, :, None]
        parts.append(_log_density(family, guesses, columns, beta, parameters))
    return np.concatenate(parts, axis=1).reshape(len(values), -1, beta.shape[2])
