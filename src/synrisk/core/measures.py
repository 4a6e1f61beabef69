"""A measure of risk by record: a number each, with its error.

Whatever kind of risk it is of, limits, verdicts and plots of a measure ask for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.core.ranks import TIE

JOINT = "joint"  # all synthesized variables together


@dataclass(frozen=True, repr=False)
class RecordMeasure:
    """One number for each record.

    Attributes
    ----------
    name
        Such as "probability"; limits have it.
    of
        A synthesized variable, or "joint".
    value, error
        The number and its standard error, 0 where it is exact and NaN where it is not known.
    reliable
        Whether number and error can be relied on.
    before, after
        The intruder's probability of the truth without and with the release.
    is_log
        Whether rounding is judged by the number's own scale, as of a difference, or by the limit's.
    """

    name: str
    of: str
    value: FloatArray
    error: FloatArray
    reliable: BoolArray
    before: FloatArray
    after: FloatArray
    is_log: bool = False

    def at_limit(self, limit: float) -> float:
        """Return a limit with what rounding may add: an unmoved lift is 1 but for last digits."""
        return limit + TIE * (1.0 if self.is_log else limit)

    def exceeded_before(self, limit: float) -> BoolArray:
        """Tell for which records a limit on the probability is exceeded without the release."""
        if self.value is not self.after:
            return np.zeros(len(self.value), dtype=bool)
        return np.asarray(self.before > limit * (1.0 + TIE))


class RecordMeasures:
    """The measures of one result, by what they are of and their name."""

    def __init__(self, measures: Iterable[RecordMeasure]) -> None:
        self._measures = {(measure.of, measure.name): measure for measure in measures}

    def __iter__(self) -> Iterator[RecordMeasure]:
        return iter(self._measures.values())

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._measures

    def __getitem__(self, key: tuple[str, str]) -> RecordMeasure:
        return self._measures[key]

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that there are measures of, beside the joint."""
        return tuple(dict.fromkeys(own.of for own in self if own.of != JOINT))

    @property
    def n_records(self) -> int:
        """The number of evaluated records."""
        return len(next(iter(self)).value)


def measures_of_truth(
    of: str,
    before: FloatArray,
    after: FloatArray,
    error: FloatArray,
    error_of_gain: FloatArray,
    reliable: BoolArray,
) -> Iterator[RecordMeasure]:
    """Yield what the release adds to the probability of the truth, that itself, and their ratio."""
    gain = after - before
    yield RecordMeasure("gain", of, gain, error_of_gain, reliable, before, after, is_log=True)
    yield RecordMeasure("probability", of, after, error, reliable, before, after)
    with np.errstate(divide="ignore", invalid="ignore"):
        lift, of_lift = after / before, error / before
    yield RecordMeasure("lift", of, lift, of_lift, reliable, before, after)
