"""How wide a model's residuals are, and how much single records have to do with it.

By passes over chunks of records, of which none is kept.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.workers import Serial
from synrisk.fitting import Chunk, Chunks, Standardisation, Table, whitening
from synrisk.synthesis.fitted_model import Model

_LEAST_LEFT = 1e-3  # of a record's leverage
_SMALLEST = 1e-6  # part of a variable's range below which nothing is looked for
_TIMES = 2  # that columns are made orthogonal: after the first, the products' rounding is left


def residual_detail(model: Model, table: Table) -> tuple[float, float]:
    """Return the residual standard deviation without one record, and what it tells of a record.

    The first is the least of all records, the second the largest h/2 + z²/n, of a record's leverage
    h and its standardised residual z. Those without a response do not count.
    """
    rows = table.chunks(model.regression, None)
    draws = model.posterior
    means = np.tensordot(np.exp(draws.log_weights), draws.coefficients, 1)[:, 0]
    found = np.array(list(map(partial(_ends, means), rows)))
    n, largest = found[:, 0].sum(), max(float(found[:, 1].max()), 1e-300)
    least = max(_SMALLEST * float(found[:, 3].max() - found[:, 2].min()), 1e-300)
    # The square of the largest may be no number.
    squares = sum(map(partial(_squares, means, largest), rows))
    sd = max(largest * float(np.sqrt(squares / n)), least)
    scale = _standardisation(model, rows)
    basis = np.eye(len(means))
    for _ in range(_TIMES):
        gram = sum(map(partial(_products, scale, basis), rows))
        basis = basis @ whitening(np.asarray(gram))
    single = np.array(list(map(partial(_singles, means, scale, basis, sd, n), rows)))
    without = sd * float(np.sqrt(max(1.0 - float(single[:, 0].max()), 0.0)))
    return max(without, least), float(single[:, 1].max())


def _standardisation(model: Model, rows: Chunks) -> Standardisation:
    """Return that of all rows, so that products of columns lose no digits."""
    total = np.asarray(sum(chunk.read().matrix.sum(axis=0) for chunk in rows))
    intercept = 0 if model.regression.parsed.intercept else None
    return Standardisation.of_rows(rows, total, intercept, Serial())


def _there(chunk: Chunk) -> tuple[FloatArray, FloatArray]:
    """Return the design and the response of a chunk's records that have one."""
    rows = chunk.read()
    there = ~np.isnan(rows.y)
    return (rows.matrix, rows.y) if there.all() else (rows.matrix[there], rows.y[there])


def _ends(means: FloatArray, chunk: Chunk) -> tuple[float, float, float, float]:
    """Return how many records there are, their largest residual, and the response's ends."""
    matrix, y = _there(chunk)
    largest = np.abs(y - matrix @ means).max(initial=0.0)
    return float(len(y)), float(largest), y.min(initial=np.inf), y.max(initial=-np.inf)


def _squares(means: FloatArray, largest: float, chunk: Chunk) -> float:
    matrix, y = _there(chunk)
    return float((((y - matrix @ means) / largest) ** 2).sum())


def _products(scale: Standardisation, basis: FloatArray, chunk: Chunk) -> FloatArray:
    columns = scale.apply(_there(chunk)[0]) @ basis
    return np.asarray(columns.T @ columns)


def _singles(
    means: FloatArray,
    scale: Standardisation,
    basis: FloatArray,
    sd: float,
    n: float,
    chunk: Chunk,
) -> tuple[float, float]:
    """Return the largest share of the squares that goes with a record, and the most it is told."""
    matrix, y = _there(chunk)
    leverage = ((scale.apply(matrix) @ basis) ** 2).sum(axis=1)
    squares = ((y - matrix @ means) / sd) ** 2 / n
    gone = (squares / np.maximum(1.0 - leverage, _LEAST_LEFT)).max(initial=0.0)
    return float(gone), float((leverage / 2 + squares).max(initial=0.0))
