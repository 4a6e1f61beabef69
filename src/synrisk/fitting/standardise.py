"""The rows that a regression is fitted to, standardised, in fixed chunks.

A chunk is rows that are there, or something that reads them each time they are needed: whoever adds
up over rows asks each chunk to `read` itself, and keeps no rows.

Columns are centred (where there is an intercept) and divided by their spread, which conditions the
fit; both are frozen at the confidential data. Parameters on this scale are called standardised.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.chunks import chunks
from synrisk.base.errors import FitError
from synrisk.base.kept import Kept, called
from synrisk.base.workers import Executor, Serial


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

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.y)

    def read(self) -> Rows:
        """Return the rows, which are there."""
        return self

    def part(self, rows: slice) -> Rows:
        """Return some of the rows."""
        return Rows(self.matrix[rows], self.y[rows], self.omega[rows])

    def chunks(self) -> Iterator[Rows]:
        """Yield the rows in fixed chunks."""
        return map(self.part, chunks(len(self.y)))


class Chunk(Protocol):
    """Rows that can be had, each time they are needed."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    def read(self) -> Rows:
        """Return the rows."""


Chunks: TypeAlias = Sequence[Chunk]


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
        nothing = np.zeros(len(matrix))
        rows = list(Rows(matrix, nothing, nothing).chunks())
        return cls.of_rows(rows, sum(part.matrix.sum(axis=0) for part in rows), intercept, Serial())

    @classmethod
    def of_rows(
        cls, rows: Chunks, total: FloatArray, intercept: int | None, executor: Executor
    ) -> Standardisation:
        """Freeze the standardisation at the columns of rows, whose sums are known."""
        n_rows = sum(part.n_rows for part in rows)
        centre = total / n_rows if intercept is not None else np.zeros(len(total))
        squares = np.zeros(len(total))
        for of_part in executor.map(partial(_squares_about, centre), rows):
            squares = squares + of_part
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


@called("fitting", "Spread of columns")
def _squares_about(centre: FloatArray, chunk: Chunk) -> FloatArray:
    """Return the sums of squared distances of columns to their centres."""
    return np.asarray(((chunk.read().matrix - centre) ** 2).sum(axis=0))
