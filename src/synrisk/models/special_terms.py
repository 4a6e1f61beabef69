"""Terms that are not columns of numbers or levels alone: by group, and of columns with gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import SynriskError, counted
from synrisk.data.schema import Columns
from synrisk.models.design_columns import DesignColumn, Part
from synrisk.models.formula.expressions import Call, Column


class PlainTerm(Protocol):
    """A term of numbers and levels (`DesignTerm`)."""

    @property
    def label(self) -> str:
        """What messages call it."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that it mentions."""

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """Its columns."""

    def evaluate(
        self, rows: Columns, n_rows: int, what: str, error: type[SynriskError]
    ) -> FloatArray:
        """Return its columns for `rows`, shape ``(n_rows, n_columns)``."""


@dataclass(frozen=True, repr=False)
class GroupLevelTerm:
    """A term with coefficients of its own for each level of a column that occurs.

    Its columns are those of the term for every level, and 0 in the rows of other levels.

    Attributes
    ----------
    grouping
        The column whose levels have coefficients.
    levels
        Its codes or numbers that occur in the confidential data, sorted.
    inner
        The term.
    columns
        Level by level.
    """

    grouping: str
    levels: npt.NDArray[Any]
    inner: PlainTerm
    columns: tuple[DesignColumn, ...]
    is_product: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"({'1' if self.inner.label == 'Intercept' else self.inner.label} | {self.grouping})"

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that it mentions."""
        return tuple(dict.fromkeys((*self.inner.variables, self.grouping)))

    def evaluate(
        self, rows: Columns, n_rows: int, what: str, error: type[SynriskError]
    ) -> FloatArray:
        """Return this term's columns for `rows`, shape ``(n_rows, n_columns)``."""
        found = rows[self.grouping]
        place = np.minimum(np.searchsorted(self.levels, found), len(self.levels) - 1)
        n_unknown = int((self.levels[place] != found).sum())
        if n_unknown:
            raise error(
                f"{what}: {counted(n_unknown, 'row has', 'rows have')} a level of "
                f"{self.grouping!r} that no record of the confidential data has, so "
                f"{self.label} has no coefficients for it. Leave such levels out of the release "
                "and of the guesses, or merge them in the data."
            )
        values = self.inner.evaluate(rows, n_rows, what, error)
        by_level = np.zeros((n_rows, len(self.levels), values.shape[1]))
        by_level[np.arange(n_rows), place] = values
        return by_level.reshape(n_rows, -1)


@dataclass(frozen=True, repr=False)
class GappedTerm:
    """A term of columns with gaps: 0 in rows where one of them is missing.

    Attributes
    ----------
    inner
        The term.
    gaps
        By column with gaps, the number that stands for one.
    anywhere
        By such a column a value at which the term can be computed.
    unseen
        Those that no record lacks, so that who might has no mean of their own: the term is then
        as at that value.
    """

    inner: PlainTerm
    gaps: Mapping[str, float]
    anywhere: Mapping[str, float]
    unseen: tuple[str, ...]
    is_product: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.inner.label

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that it mentions."""
        return self.inner.variables

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """Those of the term."""
        return self.inner.columns

    def evaluate(
        self, rows: Columns, n_rows: int, what: str, error: type[SynriskError]
    ) -> FloatArray:
        """Return this term's columns for `rows`, shape ``(n_rows, n_columns)``."""
        missing = np.zeros(n_rows, dtype=bool)
        filled = dict(rows)
        for name, gap in self.gaps.items():
            absent = rows[name] == gap
            filled[name] = np.where(absent, self.anywhere[name], rows[name])
            if name not in self.unseen:
                missing |= absent
        values = self.inner.evaluate(filled, n_rows, what, error)
        return np.where(missing[:, None], 0.0, values)


@dataclass(frozen=True, repr=False)
class IsMissing:
    """A column that is 1 in rows where another one is missing, and 0 elsewhere."""

    name: str
    gap: float
    is_product: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"missing({self.name})"

    @property
    def variables(self) -> tuple[str, ...]:
        """The column that it is about."""
        return (self.name,)

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """Its one column."""
        return (DesignColumn((Part(Call("missing", Column(self.name))),)),)

    def evaluate(
        self,
        rows: Columns,
        n_rows: int,  # noqa: ARG002
        what: str,  # noqa: ARG002
        error: type[SynriskError],  # noqa: ARG002
    ) -> FloatArray:
        """Return this column for `rows`, shape ``(n_rows, 1)``."""
        return np.asarray(rows[self.name] == self.gap, dtype=np.float64)[:, None]
