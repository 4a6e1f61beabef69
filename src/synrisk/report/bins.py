"""Counts between round edges, for bars of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.core.spread import Spread

_MOST_BARS, _MOST_WHOLE_BARS = 36, 60
_SAME = 1e-9  # of the largest: values that differ by rounding alone


@dataclass(frozen=True)
class Bins:
    """Counts between edges."""

    edges: FloatArray
    counts: IntArray

    @classmethod
    def of(cls, values: Spread, edges: FloatArray) -> Bins:
        """Count values; those beyond an end count in the outer bins."""
        return cls(edges, values.counts(edges))

    @property
    def shares(self) -> list[float]:
        """The part of the values in each bin, without digits that rounding made."""
        shares = self.counts / max(float(self.counts.sum()), 1.0)
        return [float(f"{share:.4g}") for share in shares]

    def to_json(self) -> dict[str, Any]:
        """Return it as a picture has it."""
        edges = [float(f"{edge:.10g}") for edge in self.edges]
        return {"n": f"{int(self.counts.sum()):,}", "edges": edges, "shares": self.shares}


def round_bins(values: Spread, *, anchor: float = 0.0, low: float = -np.inf) -> Bins:
    """Return counts between round edges.

    Parameters
    ----------
    values
        Numbers.
    anchor
        A number that edges are laid from.
    low
        The lowest that an edge may be.
    """
    smallest, largest = values.ends.smallest, values.ends.largest
    width = (largest - smallest) / _MOST_BARS
    if width <= _SAME * max(abs(smallest), abs(largest)):
        width = 0.01 * abs(smallest) or 1.0
    step = _round_up(width)
    below, above = np.floor((smallest - anchor) / step), np.floor((largest - anchor) / step) + 1.0
    edges = anchor + step * np.arange(below, above + 0.5)
    return Bins.of(values, np.unique(np.maximum(edges, low)))


def whole_bins(values: Spread, step: float = 1.0) -> Bins:
    """Return counts of multiples of `step`, neighbours together where they are many."""
    low, high = round(values.ends.smallest / step), round(values.ends.largest / step)
    width = -(-(high - low + 1) // _MOST_WHOLE_BARS)
    n_bars = -(-(high - low + 1) // width)
    edges = step * (low - 0.5 + width * np.arange(n_bars + 1, dtype=np.float64))
    return Bins.of(values, edges)


def _round_up(width: float) -> float:
    """Return the next of 1, 2, 5, 10, … times a power of ten."""
    power = 10.0 ** np.floor(np.log10(width))
    return float(next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= width * 0.999))
