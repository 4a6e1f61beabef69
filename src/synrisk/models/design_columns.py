"""The columns of a design, by the parts that they are products of."""

from __future__ import annotations

from dataclasses import dataclass

from synrisk.data.schema import Label
from synrisk.models.formula import expressions
from synrisk.models.formula.expressions import Expression


@dataclass(frozen=True)
class Part:
    """One factor of a design column: an expression and, where it has several columns, which."""

    expression: Expression
    level: Label | None = None  # of a factor
    index: int | None = None  # of a spline or polynomial, as formulaic counts
    order: int = 1  # of a spline or polynomial, from 1 as R counts
    against_reference: bool = False
    shows_level: bool = True  # whether the level may be shown in a message

    def __str__(self) -> str:
        shown = expressions.write(self.expression)
        if self.index is not None:
            return f"{shown}[{self.index}]"
        if self.level is not None:
            return f"{shown}[{'T.' if self.against_reference else ''}{self.level}]"
        return shown

    @property
    def public(self) -> str:
        """The name without a level that was read off the data."""
        return str(self) if self.shows_level else f"{expressions.write(self.expression)}[*]"


@dataclass(frozen=True)
class DesignColumn:
    """A column of the design: the product of its parts; without parts the intercept.

    Of a group-level term it is that for the rows of one level, `group`, and 0 for the others.
    """

    parts: tuple[Part, ...]
    group: Part | None = None

    def __str__(self) -> str:
        text = ":".join(str(part) for part in self.parts)
        return text or "Intercept" if self.group is None else f"{text or '1'}|{self.group}"

    @property
    def public(self) -> str:
        """The name without levels that were read off the data."""
        text = ":".join(part.public for part in self.parts)
        return text or "Intercept" if self.group is None else f"{text or '1'}|{self.group.public}"
