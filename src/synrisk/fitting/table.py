"""Tables of rows for a fit: arrays that are there, or columns of which a chunk is read at a time.

A fit asks a table for its chunks, and never for all rows at once: so what it needs of a table that
is stored on disk grows with the chunk, and not with the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.chunks import chunks
from synrisk.base.errors import SynriskError
from synrisk.data.schema import Columns
from synrisk.fitting.standardise import Chunk, Rows, Standardisation
from synrisk.models.design import Design
from synrisk.models.plan import Regression


class Part(NamedTuple):
    """Some rows: their design, their response on its own scale, and their weights."""

    matrix: FloatArray
    y: FloatArray
    omega: FloatArray


class Table(ABC):
    """Rows of one regression."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def part(self, rows: slice) -> Part:
        """Return some of the rows."""

    @abstractmethod
    def without(self, position: int) -> Table:
        """Return the table with one row that does not count."""

    def chunks(
        self, regression: Regression, standardisation: Standardisation | None
    ) -> list[Chunk]:
        """Return the rows in fixed chunks, the response on the model's scale.

        Columns are standardised where it is said how, and else as they are.
        """
        return [
            PartOfTable(self, rows, regression, standardisation) for rows in chunks(self.n_rows)
        ]


@dataclass(frozen=True, repr=False, eq=False)
class PartOfTable:
    """A chunk that is read, and standardised, each time it is needed."""

    table: Table
    rows: slice
    regression: Regression
    standardisation: Standardisation | None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.rows.stop - self.rows.start)

    def read(self) -> Rows:
        """Return the rows."""
        return _scaled(self.table.part(self.rows), self.regression, self.standardisation)


@dataclass(frozen=True, repr=False, eq=False)
class ArrayTable(Table):
    """Rows that are there.

    Attributes
    ----------
    matrix
        The design.
    y
        The response on its own scale.
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

    def part(self, rows: slice) -> Part:
        """Return some of the rows."""
        return Part(self.matrix[rows], self.y[rows], self.omega[rows])

    def without(self, position: int) -> ArrayTable:
        """Return the table with one row that does not count."""
        counts = np.arange(self.n_rows) != position
        return replace(self, omega=np.where(counts, self.omega, 0.0))

    def chunks(
        self, regression: Regression, standardisation: Standardisation | None
    ) -> list[Chunk]:
        """Return the rows in fixed chunks: standardised at once, not each time they are needed."""
        whole = Part(self.matrix, self.y, self.omega)
        return list(_scaled(whole, regression, standardisation).chunks())


@dataclass(frozen=True, repr=False, eq=False)
class ColumnTable(Table):
    """Rows that are made of columns, by the design, when they are asked for.

    Attributes
    ----------
    design
        The frozen design.
    columns
        Its columns, the response and the weights: whatever gives an array for a slice.
    response
        The response among these.
    length
        How many rows there are.
    what, error
        What messages call the rows, and what is raised where they cannot be encoded.
    weights
        The weights among the columns; None where all are 1.
    left_out
        The position of a row that does not count.
    """

    design: Design
    columns: Columns
    response: str
    length: int
    what: str
    error: type[SynriskError]
    weights: str | None = None
    left_out: int | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.length

    def part(self, rows: slice) -> Part:
        """Return some of the rows."""
        n_rows = rows.stop - rows.start
        columns = {name: self.columns[name][rows] for name in self.design.variables}
        matrix = self.design.matrix(columns, n_rows, self.what, self.error)
        omega = np.ones(n_rows)
        if self.weights is not None:
            omega = np.array(self.columns[self.weights][rows], dtype=np.float64)
        if self.left_out is not None and rows.start <= self.left_out < rows.stop:
            omega[self.left_out - rows.start] = 0.0
        return Part(matrix, self.columns[self.response][rows], omega)

    def without(self, position: int) -> ColumnTable:
        """Return the table with one row that does not count."""
        return replace(self, left_out=position)


def table_of(
    design: Design,
    columns: Columns,
    response: str,
    n_rows: int,
    what: str,
    error: type[SynriskError],
    weights: str | None = None,
) -> Table:
    """Return a table of columns; the design is made once for all where they are arrays.

    Parameters are those of `ColumnTable`, whose columns may be more than it needs.
    """
    names = dict.fromkeys((*design.variables, response))
    if weights is not None:
        names[weights] = None
    used = {name: columns[name] for name in names}
    table = ColumnTable(design, used, response, n_rows, what, error, weights)
    return table if are_stored(used) else ArrayTable(*table.part(slice(0, n_rows)))


def are_stored(columns: Columns) -> bool:
    """Tell whether some of the columns are not arrays that are there."""
    return not all(isinstance(column, np.ndarray) for column in columns.values())


def _scaled(part: Part, regression: Regression, standardisation: Standardisation | None) -> Rows:
    """Return rows as a model's density takes them."""
    matrix = part.matrix if standardisation is None else standardisation.apply(part.matrix)
    return Rows(matrix, regression.on_model_scale(part.y), part.omega)
