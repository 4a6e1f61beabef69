"""What the posterior of a gaussian model takes from its rows: a few sums, which add over tables.

So the rows of the confidential data and of a release are read once each, and the posteriors given
one, the other or both follow from their sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synrisk.executors import Executor
from synrisk.fitting.rows import Rows
from synrisk.schema import FloatArray

_SETTLED = 1e-8  # eigenvalues below this share of the largest do not move what is expanded about


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
    def of(cls, rows: Sequence[Rows], centre: FloatArray, executor: Executor) -> Sums:
        """Return the sums over rows; they run over chunks in their order."""

        def moments(part: Rows) -> tuple[FloatArray, FloatArray, float]:
            weighted = part.omega[:, None] * part.matrix
            residual = part.y - part.matrix @ centre
            return weighted.T @ part.matrix, weighted.T @ residual, float(part.omega.sum())

        n_columns = len(centre)
        gram, products, n_effective = np.zeros((n_columns, n_columns)), np.zeros(n_columns), 0.0
        for squares, projected, weight in executor.map(moments, rows):
            gram, products = gram + squares, products + projected
            n_effective += weight
        values, vectors = np.linalg.eigh(gram)
        settled = values > _SETTLED * values[-1]
        along = np.where(settled, vectors.T @ products, 0.0) / np.where(settled, values, 1.0)
        about = centre + vectors @ along

        def errors(part: Rows) -> tuple[float, FloatArray]:
            error = part.y - part.matrix @ about
            weighted = part.omega * error
            return float(weighted @ error), weighted @ part.matrix

        total, slope = 0.0, np.zeros(n_columns)
        for of_part, its_slope in executor.map(errors, rows):
            total, slope = total + of_part, slope + its_slope
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
