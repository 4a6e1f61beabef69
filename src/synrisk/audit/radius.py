"""How near a released value must be to a person's own for the row to match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import OptionError, got, listed, nearest
from synrisk.risk.guesses.spaced import is_real


@dataclass(frozen=True)
class Radius:
    """A released number matches if it is less than so far from a person's own.

    At the radius itself it does not match; a radius of 0 is equality. Levels have no distance:
    theirs is equality always.

    Parameters
    ----------
    relative
        As a share of the person's own value: 0.1 is ten percent of it.
    absolute
        In the variable's own units.

    Examples
    --------
    >>> Radius(absolute=2000)
    Radius(absolute=2000)
    """

    relative: float | None = None
    absolute: float | None = None

    def __post_init__(self) -> None:
        given = [one for one in (self.relative, self.absolute) if one is not None]
        if len(given) != 1:
            raise OptionError("Radius: give either relative= (0.1: ten percent) or absolute=.")
        if not is_real(given[0]) or not 0.0 <= given[0] < np.inf:
            raise OptionError(
                "Radius: it must be a number from 0: 0.1 is ten percent where it is relative, and "
                "0.1 units where it is absolute."
            )

    def __repr__(self) -> str:
        if self.relative is not None:
            return f"Radius(relative={self.relative:g})"
        return f"Radius(absolute={self.absolute:g})"

    @property
    def is_equality(self) -> bool:
        """Whether nothing but the same value matches."""
        return not (self.relative or self.absolute)

    @property
    def words(self) -> str:
        """It in words."""
        if self.is_equality:
            return "equal"
        if self.relative is not None:
            return f"within {100 * self.relative:g} %"
        return f"within {self.absolute:g}"

    def interval(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the open interval around each value; of an equal one at least."""
        if self.relative is not None:
            reach = self.relative * np.abs(values)
        else:
            reach = np.full(values.shape, float(self.absolute or 0.0))
        low, high = values - reach, values + reach
        below, above = np.nextafter(values, -np.inf), np.nextafter(values, np.inf)
        return np.minimum(low, below), np.maximum(high, above)


EQUALITY = Radius(absolute=0.0)


def radii(
    spec: Any, known: Sequence[str], synthesized: Sequence[str], levels: Sequence[str]
) -> dict[str, Radius]:
    """Return the radius of each variable that ``radius=`` gives.

    Parameters
    ----------
    spec
        A share, a `Radius`, or a mapping of these by variable. One for all is of the synthesized
        numbers: known variables are equal unless they are named.
    known, synthesized
        The variables.
    levels
        Those of them that hold no numbers.
    """
    if not isinstance(spec, Mapping):
        own = _radius(spec)
        return {
            name: EQUALITY if name in known or name in levels else own
            for name in (*known, *synthesized)
        }
    names = (*known, *synthesized)
    for name in spec:
        if name not in names:
            raise OptionError(
                f"radius= names {got(name)}, which is neither known nor synthesized here."
                f"{nearest(name, names)} These are {listed(names)}."
            )
    given = {name: _radius(one, name) for name, one in spec.items()}
    for name, own in given.items():
        if name in levels and not own.is_equality:
            raise OptionError(
                f"radius= of {name!r}: its values are levels, which have no distance. Leave it out "
                "(levels match where they are equal), or make the column numbers on both sides."
            )
    absent = [name for name in synthesized if name not in given and name not in levels]
    if absent:
        raise OptionError(
            f"radius= lacks {listed(absent)}, which holds numbers: give a share (0.1), "
            "Radius(absolute=…), or 0 for equality."
        )
    return {name: given.get(name, EQUALITY) for name in names}


def _radius(spec: Any, name: str | None = None) -> Radius:
    if isinstance(spec, Radius):
        return spec
    if is_real(spec) and 0.0 <= spec < np.inf:
        return Radius(relative=float(spec))
    of = f" of {name!r}" if name is not None else ""
    raise OptionError(
        f"radius={of} takes a share of a person's own value from 0 (0.1 is ten percent), "
        "Radius(absolute=…), or a dict of these by variable; got "
        f"{'a negative or infinite number' if is_real(spec) else got(spec)}."
    )
