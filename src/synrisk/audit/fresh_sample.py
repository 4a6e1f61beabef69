"""What a fresh sample would hold of values that a file holds once (Good 1953).

A file and a fresh sample of the same people. A thing that occurs once in the file, beside itself
with nothing, has a rate λ at which it occurs in files of that size. Over all things, with M_k the
number of those that have k others like them,

    E[λ | none] = M_1/M_0        E[λ² | none] = 2·M_2/M_0        (Good–Turing: leave one out)

A gamma distribution with these moments gives how often a sample t times as large holds the thing
not at all, or once; a single rate does where the moments leave no spread.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray


class Fresh(NamedTuple):
    """The probabilities that a fresh sample holds at all, and once, what a file holds once.

    With the standard errors of the expected numbers, of as many things as the file holds once, by
    the numbers of cells that the moments come from.
    """

    any: float
    once: float
    n_any_error: float
    n_once_error: float

    def error_of_count(self, n_single: int) -> tuple[float, float]:
        """Return the standard errors of counts less their expectations: of trying, and of these."""
        return tuple(
            math.hypot(math.sqrt(n_single * p * (1.0 - p)), error)
            for p, error in ((self.any, self.n_any_error), (self.once, self.n_once_error))
        )  # type: ignore[return-value]


def in_fresh_sample(n_others: IntArray, times: float) -> Fresh:
    """Return how often a fresh sample holds what a file holds once.

    Parameters
    ----------
    n_others
        Of each thing in the file, how many others are like it.
    times
        The size of the sample over that of the file.

    Examples
    --------
    >>> in_fresh_sample(np.array([0, 0, 0, 0]), 1.0)[:2]
    (0.0, 0.0)
    """
    counts = np.array([(n_others == k).sum() for k in range(3)], dtype=np.float64)
    if not counts[0]:
        return Fresh(math.nan, math.nan, math.nan, math.nan)
    numbers = _numbers(counts, times)
    # A cell of k + 1 things adds as many to M_k; cells are Poisson, nearly.
    variance = np.zeros(2)
    for k, count in enumerate(counts):
        if count:
            step = np.zeros(3)
            step[k] = 0.01 * count
            slope = (_numbers(counts + step, times) - _numbers(counts - step, times)) / (
                2.0 * step[k]
            )
            variance += slope**2 * (k + 1) * count
    share, error = numbers / counts[0], np.sqrt(variance)
    return Fresh(float(share[0]), float(share[1]), float(error[0]), float(error[1]))


def _numbers(counts: FloatArray, times: float) -> FloatArray:
    """Return how many of the single things a fresh sample is expected to hold at all, and once."""
    none, one, two = counts
    mean, square = one / none, 2.0 * two / none
    spread = square - mean**2
    if spread <= 0.0:
        here = [-math.expm1(-times * mean), times * mean * math.exp(-times * mean)]
    else:
        rate = mean / spread
        shape = mean * rate
        absent = math.exp(-shape * math.log1p(times / rate)) if rate else 1.0
        here = [1.0 - absent, absent * times * shape / (rate + times)]
    return np.asarray(none * np.array(here))
