"""What the posterior of a gaussian model takes from its rows: a few sums, which add over tables.

So the rows of the confidential data and of a release are read once each, and the posteriors given
one, the other or both follow from their sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.kept import called
from synrisk.base.workers import Executor
from synrisk.fitting.standardise import Chunk, Chunks

# Eigenvalues below the first share of the largest do not move what is expanded about, unless that
# leaves errors much larger than need be; those below the second never do.
_SETTLED, _NULL = 1e-8, 1e-13
_FAR = 0.01  # of the squared errors


@dataclass(frozen=True, repr=False)
class _Expansion:
    """Squared errors as a function of the coefficients: ``squares − 2 slope'Δ + Δ'gram Δ``.

    Δ is the distance to `about`, which is near the least: nothing cancels.
    """

    about: FloatArray
    squares: float
    slope: FloatArray
    gram: FloatArray

    def at(self, coefficients: FloatArray) -> float:
        apart = coefficients - self.about
        return float(self.squares - 2.0 * (self.slope @ apart) + apart @ self.gram @ apart)


@dataclass(frozen=True, repr=False)
class Sums:
    """Sums over rows.

    Attributes
    ----------
    centre
        The coefficients, standardised, that residuals are taken from.
    gram, products
        X'ΩX, and X'Ω times the residuals.
    n_effective
        The sum of the weights.
    errors
        The squared errors, a table each.
    """

    centre: FloatArray
    gram: FloatArray
    products: FloatArray
    n_effective: float
    errors: tuple[_Expansion, ...]

    @classmethod
    def of(cls, rows: Chunks, centre: FloatArray, executor: Executor) -> Sums:
        """Return the sums over rows; they run over chunks in their order."""
        n_columns = len(centre)
        gram, products, n_effective = np.zeros((n_columns, n_columns)), np.zeros(n_columns), 0.0
        for squares, projected, weight in executor.map(partial(_moments, centre), rows):
            gram, products = gram + squares, products + projected
            n_effective += weight
        values, vectors = np.linalg.eigh(gram)

        def towards_least(slope: FloatArray, least: float) -> FloatArray:
            counts = values > least * values[-1]
            along = np.where(counts, vectors.T @ slope, 0.0) / np.where(counts, values, 1.0)
            return np.asarray(vectors @ along)

        about = centre + towards_least(products, _SETTLED)
        total, slope = _errors(rows, about, executor)
        further = towards_least(slope, _NULL)
        if (
            slope @ further > _FAR * total
        ):  # a nearly exact fit, by columns that are nearly the same
            about = about + further
            total, slope = _errors(rows, about, executor)
        return cls(centre, gram, products, n_effective, (_Expansion(about, total, slope, gram),))

    def __add__(self, other: Sums) -> Sums:
        """Return the sums over the rows of both, which have one centre."""
        return Sums(
            self.centre,
            self.gram + other.gram,
            self.products + other.products,
            self.n_effective + other.n_effective,
            self.errors + other.errors,
        )

    def squared_errors(self, coefficients: FloatArray) -> float:
        """Return the weighted sum of squared errors."""
        return sum(table.at(coefficients) for table in self.errors)


def gram_of(rows: Chunks, executor: Executor) -> FloatArray:
    """Return the products of the columns of rows, whatever their weights."""
    return np.asarray(sum(executor.map(_products, rows)))


@called("fitting", "Products of columns")
def _products(chunk: Chunk) -> FloatArray:
    matrix = chunk.read().matrix
    return np.asarray(matrix.T @ matrix)


@called("fitting", "Sums of products")
def _moments(centre: FloatArray, chunk: Chunk) -> tuple[FloatArray, FloatArray, float]:
    """Return a chunk's X'ΩX, X'Ω times the residuals, and sum of weights."""
    part = chunk.read()
    weighted = part.omega[:, None] * part.matrix
    residual = part.y - part.matrix @ centre
    return weighted.T @ part.matrix, weighted.T @ residual, float(part.omega.sum())


def _errors(rows: Chunks, coefficients: FloatArray, executor: Executor) -> tuple[float, FloatArray]:
    """Return the weighted sum of squared errors, and the products of columns and errors."""
    total, slope = 0.0, np.zeros(len(coefficients))
    for of_part, its_slope in executor.map(partial(_errors_in, coefficients), rows):
        total, slope = total + of_part, slope + its_slope
    return total, slope


@called("fitting", "Sums of squares")
def _errors_in(coefficients: FloatArray, chunk: Chunk) -> tuple[float, FloatArray]:
    part = chunk.read()
    error = part.y - part.matrix @ coefficients
    weighted = part.omega * error
    return float(weighted @ error), weighted @ part.matrix
