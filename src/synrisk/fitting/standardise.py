"""The rows that a regression is fitted to, standardised, in fixed chunks.

Columns are centred (where there is an intercept) and divided by their spread, which conditions the
fit; both are frozen at the confidential data. Parameters on this scale are called standardised.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.chunks import chunks
from synrisk.base.errors import FitError
from synrisk.base.kept import Kept


@dataclass(frozen=True, repr=False)
class Rows(Kept):
    """Rows of one regression.

    Attributes
    ----------
    matrix
        The standardised design, ``(row, column)``.
    y
        The response on the model's scale.
    omega
        The exponent on each row's density.
    """

    matrix: FloatArray
    y: FloatArray
    omega: FloatArray

    def chunks(self) -> Iterator[Rows]:
        """Yield the rows in fixed chunks."""
        for part in chunks(len(self.y)):
            yield Rows(self.matrix[part], self.y[part], self.omega[part])


def lower_root(covariance: FloatArray) -> FloatArray:
    """Return the Cholesky factor of a covariance, or of several; raise where it has none."""
    with contextlib.suppress(np.linalg.LinAlgError):
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    raise FitError(
        "The posterior is too nearly flat in some direction to be drawn from: predictors that are "
        "almost collinear, or too few records. Leave predictors out, or narrow the priors."
    )


def all_chunks(tables: Sequence[Rows]) -> list[Rows]:
    """Return the chunks of several tables, one table after the other."""
    return [chunk for table in tables for chunk in table.chunks()]


@dataclass(frozen=True, repr=False)
class Standardisation:
    """How columns are standardised, and coefficients brought back.

    Attributes
    ----------
    centre, spread
        Of each column; 0 and 1 for the intercept.
    intercept
        The position of the intercept, or None.
    """

    SHAPES: ClassVar = {
        "centre": ("column",),
        "spread": ("column",),
    }
    centre: FloatArray
    spread: FloatArray
    intercept: int | None

    @classmethod
    def of(cls, matrix: FloatArray, intercept: int | None) -> Standardisation:
        """Freeze the standardisation at the columns of `matrix`."""
        n_rows = len(matrix)
        centre = matrix.mean(axis=0) if intercept is not None else np.zeros(matrix.shape[1])
        squares = ((matrix - centre) ** 2).sum(axis=0)
        divisor = max(n_rows - 1, 1) if intercept is not None else n_rows
        spread = np.sqrt(squares / divisor)
        # What does not vary but for rounding (a level that nobody has) is left as it is.
        still = spread <= 1e-13 * np.maximum(np.abs(centre), 1e-300)
        spread = np.where(still, 1.0, spread)
        if intercept is not None:
            centre[intercept], spread[intercept] = 0.0, 1.0
        return cls(centre, spread, intercept)

    def apply(self, matrix: FloatArray) -> FloatArray:
        """Standardise rows."""
        return np.ascontiguousarray((matrix - self.centre) / self.spread)

    def coefficients(self, standardised: FloatArray) -> FloatArray:
        """Return coefficients on the columns' own scale; columns are on the second last axis."""
        own = standardised / self.spread[:, None]
        if self.intercept is not None:
            shift = (own * self.centre[:, None]).sum(axis=-2)
            own[..., self.intercept, :] = standardised[..., self.intercept, :] - shift
        return own
