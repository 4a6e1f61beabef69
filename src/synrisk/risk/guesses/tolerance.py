"""How near to the truth a value must be for an intruder to have learnt it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import OptionError, got, listed, nearest
from synrisk.risk.guesses.everybody import Everybody
from synrisk.risk.guesses.spaced import is_real
from synrisk.risk.guesses.strategy import Target

_DEFAULT_SHARE = 0.1
# Where a tenth of the truth is nearly a standard deviation or more (a year of birth, a logarithm, a
# temperature), most are within it of one another. A quarter of one is near.
_VACUOUS, _NEAR = 0.75, 0.25


@dataclass(frozen=True)
class Tolerance:
    """A value counts as learnt within a share of the truth, or within a width; the larger holds.

    Levels have no distance: there it is equality. So it is for counts of which a share is less
    than one.

    Parameters
    ----------
    share
        Of the truth, from 0: 0.1 is within ten percent, the default where no width is given. Of a
        variable that is 0 or negative for somebody a percentage of the truth says nothing: there
        the same share of its standard deviation is the least width.
    width
        In the variable's own units, from 0; of the logarithm of an amount 0.1 is about ten
        percent of the amount.
    sds
        In standard deviations of the variable, from 0; `share` is then of the distance from its
        median, so that a value that stands out is learnt from farther away.
    """

    share: float = None  # type: ignore[assignment]  # settled by whether there is a width
    width: float | None = None
    sds: float | None = None

    def __post_init__(self) -> None:
        if self.share is None:
            object.__setattr__(self, "share", _DEFAULT_SHARE if self.width is None else 0.0)
        if not is_real(self.share) or not 0.0 <= self.share <= 1.0:
            raise OptionError("Tolerance: share must be a number from 0 to 1; 0.1 is ten percent.")
        if self.width is not None and (not is_real(self.width) or self.width < 0):
            raise OptionError("Tolerance: width must be a number from 0, in the variable's units.")
        if self.sds is not None and (not is_real(self.sds) or self.sds < 0):
            raise OptionError("Tolerance: sds must be a number of standard deviations from 0.")
        if self.sds is not None and self.width is not None:
            raise OptionError("Tolerance: give a width or a number of standard deviations.")

    def __repr__(self) -> str:
        if self.sds is not None:
            return f"Tolerance(share={self.share:g}, sds={self.sds:g})"
        if self.width is None:
            return f"Tolerance(share={self.share:g})"
        share = f"share={self.share:g}, " if self.share else ""
        return f"Tolerance({share}width={self.width:g})"

    def of(self, target: Target) -> FloatArray:
        """Return how far from each record's truth a value may be, in the variable's own units."""
        if not target.family.is_ordered or target.family.is_classification:
            return np.zeros(len(target.truth))
        return self.reach(target.truth, target.everybody, is_whole=target.is_whole)

    def reach(self, truth: FloatArray, everybody: Everybody, *, is_whole: bool) -> FloatArray:
        """Return the same of numbers, given everybody's."""
        if self.sds is not None:
            from_middle = self.share * np.abs(truth - everybody.median)
            return np.maximum(from_middle, self.sds * everybody.steady_spread)
        reach = self.share * np.abs(truth)
        if self.width is not None:
            return np.maximum(reach, self.width)
        if not is_whole and everybody.smallest <= 0:
            return np.maximum(reach, self.share * everybody.spread)
        return reach

    def words(self, family: Any) -> str:
        """Return what it is in words, of a variable of a family."""
        if not family.is_ordered or family.is_classification:
            return ""
        return self.in_words

    @property
    def in_words(self) -> str:
        """What it is of a number, in words."""
        if self.sds is not None:
            number = "a quarter of a" if self.sds == _NEAR else f"{self.sds:g}"
            plural = "" if self.sds == _NEAR else "s"
            return f"within {number} standard deviation{plural}"
        within = f"within {100 * self.share:g} %" if self.share else ""
        if self.width:
            within += f"{' or ' if within else 'within '}{self.width:g}"
        return within

    def times(self, factor: float) -> Tolerance:
        """Return a tolerance so many times as wide."""
        return Tolerance(
            min(factor * self.share, 1.0),
            self.width and factor * self.width,
            self.sds and factor * self.sds,
        )


EQUAL = Tolerance(0.0)


def near(values: Everybody, *, is_whole: bool) -> Tolerance:
    """Return the tolerance of a range by default: a tenth of the truth, where that says anything.

    Whole numbers and what may be 0 or negative have it as it is.
    """
    if not is_whole and values.smallest > 0:
        usual = _DEFAULT_SHARE * values.median
        if usual > _VACUOUS * values.steady_spread:
            return Tolerance(_DEFAULT_SHARE, sds=_NEAR)
    return Tolerance()


def tolerances(spec: Any, names: Sequence[str], default: Tolerance) -> dict[str, Tolerance]:
    """Return the tolerance of each variable that ``tolerance=`` gives."""
    if isinstance(spec, Mapping):
        for name in spec:
            if name not in names:
                raise OptionError(
                    f"tolerance= names {got(name)}, which is not synthesized."
                    f"{nearest(name, names)} The synthesized variables are {listed(names)}."
                )
        return {name: _tolerance(spec.get(name), default) for name in names}
    return {name: _tolerance(spec, default) for name in names}


def _tolerance(spec: Any, default: Tolerance) -> Tolerance:
    if spec is None:
        return default
    if isinstance(spec, Tolerance):
        return spec
    if is_real(spec):
        return Tolerance(float(spec))
    raise OptionError(
        "tolerance= takes a share of the truth (0.1), a Tolerance(share, width), or a dict of "
        f"these by variable; got {got(spec)}."
    )
