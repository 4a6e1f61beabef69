"""What may be told of few records: counts, quantiles and bars, for a report that is shared.

No count below ten is told, nor one that leaves fewer than ten of the whole, and no value of a
single record. Counts that are told are rounded to tens, so that two tables that cut the records at
slightly different places cannot be subtracted. A report for inside tells everything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synrisk.criteria import LEAST_SHARED
from synrisk.schema import FloatArray

FEW = f"fewer than {LEAST_SHARED}"
_N_BINS = 36
_DOMINATES = 0.1  # the share of a sum from which one record dominates it
_COUNTED = re.compile(
    r"(?<![\d.,#=])(?P<n>\d{1,3}(?:,\d{3})+|\d+)(?P<kind> (?:\w+ )?(?:record|row|value|label))s?\b"
    r"(?P<verb> is| has| was)?"
)
_PLURAL = {" is": " are", " has": " have", " was": " were"}


@dataclass(frozen=True)
class Bins:
    """Counts between edges; those beyond the first and the last edge are in the outer bins."""

    edges: FloatArray
    counts: FloatArray


@dataclass(frozen=True)
class Discretion:
    """What is told: everything inside, nothing of few records where a report is shared.

    Attributes
    ----------
    sharing
        Whether the report is shared.
    n_records
        The number of confidential records.
    """

    sharing: bool
    n_records: int

    @property
    def least(self) -> int:
        """The smallest count that is told."""
        return LEAST_SHARED if self.sharing else 1

    def tells(self, n: int, total: int) -> bool:
        """Tell whether a count and what it leaves of the whole are large enough to be told."""
        return not self.sharing or LEAST_SHARED <= n <= total - LEAST_SHARED

    def count(self, n: int, total: int) -> str:
        """Return how many of a whole, in words where the number is not told."""
        if not self.sharing:
            return f"{n:,}"
        if n < LEAST_SHARED or total < LEAST_SHARED:
            return FEW
        if n > total - LEAST_SHARED:
            return f"all but {FEW}"
        return f"about {self.rounded(n):,.0f}"

    def size(self, n: int) -> str:
        """Return how many records something is of."""
        if n < self.least:
            return FEW
        if self.sharing and self.n_records - LEAST_SHARED < n < self.n_records:
            return f"all but {FEW} of {self.n_records:,}"
        return f"{n:,}"

    def rounded(self, n: float) -> float:
        """Return a count as it is told: in tens where it is shared."""
        return max(round(n / 10.0) * 10.0, 10.0) if self.sharing and n else float(n)

    def mean(self, values: FloatArray) -> float | None:
        """Return the mean of enough values, none of which makes up much of it."""
        if len(values) < self.least:
            return None
        sizes = np.abs(values)
        if self.sharing and sizes.max() > _DOMINATES * (1.0 + 1e-9) * sizes.sum():
            return None
        return self.number(values.mean())

    def number(self, value: float) -> float | None:
        """Return a number as it is told: in four digits where it is shared, None if not finite.

        With all its digits an intruder who knows everybody else could try guesses until it comes
        out.
        """
        if not np.isfinite(value):
            return None
        return float(f"{value:.4g}") if self.sharing else float(value)

    def quantile(self, values: FloatArray, q: float) -> float | None:
        """Return a quantile; where it is shared, the mean of ten values about it, if there are."""
        n = len(values)
        if not self.sharing:
            return float(np.quantile(values, q))
        if min(q, 1.0 - q) * n < LEAST_SHARED:
            return None
        first = int(np.clip(round(q * (n - 1)) - LEAST_SHARED // 2, 0, n - LEAST_SHARED))
        among = np.partition(values, [first, first + LEAST_SHARED - 1])
        return self.number(among[first : first + LEAST_SHARED].mean())

    def bins(self, values: FloatArray, *, anchor: float = 0.0, low: float = -np.inf) -> Bins | None:
        """Return counts between round edges, pooled until each is large enough.

        Parameters
        ----------
        values
            Numbers.
        anchor
            A number that edges are laid from.
        low
            The lowest that an edge may be.
        """
        if len(values) < self.least:
            return None
        edges = _round_edges(values, self.least, anchor)
        return self.pooled(values, np.unique(np.maximum(edges, low)))

    def pooled(self, values: FloatArray, edges: FloatArray) -> Bins | None:
        """Return counts between edges, neighbours pooled until each is large enough."""
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        if counts.sum() < self.least:
            return None
        kept, sizes, run = [edges[0]], [], 0
        for edge, count in zip(edges[1:], counts, strict=True):
            run += int(count)
            if run >= self.least or not self.sharing:
                kept.append(edge)
                sizes.append(run)
                run = 0
        if self.sharing:  # what is left over belongs to the last bar
            sizes[-1] += run
            kept[-1] = edges[-1] if run else kept[-1]
        return Bins(np.array(kept), np.array([self.rounded(n) for n in sizes]))

    def blurred(self, text: str, total: int) -> str:
        """Return words with their small counts of records blurred."""
        if not self.sharing:
            return text

        def tell(found: re.Match[str]) -> str:
            n = int(found["n"].replace(",", ""))
            if LEAST_SHARED <= n <= total - LEAST_SHARED or n == total:
                return found[0]
            told = FEW if n < LEAST_SHARED else f"all but {FEW}" if n < total else found["n"]
            return f"{told}{found['kind']}s{_PLURAL.get(found['verb'], '')}"

        return _COUNTED.sub(tell, text)


def _round_edges(values: FloatArray, least: int, anchor: float) -> FloatArray:
    """Return evenly spaced edges from about the `least`-th smallest to the `least`-th largest.

    So the ends do not depend on the extreme records, which fall into the outer bins.
    """
    n = len(values)
    first, last = min(least, n) - 1, n - min(least, n)
    ordered = np.partition(values, sorted({first, last}))
    low, high = sorted((float(ordered[first]), float(ordered[last])))
    width = (high - low) / _N_BINS
    if width <= 1e-9 * max(abs(low), abs(high)):  # all the same but for rounding
        width = 0.01 * abs(low) or 1.0
    step = _round_up(width)
    below, above = np.floor((low - anchor) / step), np.floor((high - anchor) / step) + 1.0
    return np.asarray(anchor + step * np.arange(below, above + 0.5))


def _round_up(width: float) -> float:
    """Return the next of 1, 2, 5, 10, … times a power of ten."""
    power = 10.0 ** np.floor(np.log10(width))
    return float(next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= width * 0.999))


def pooled_levels(counts: Sequence[int], least: int) -> list[list[int]]:
    """Return levels by number, each alone, and last those with few records together."""
    by_size = sorted(range(len(counts)), key=lambda level: counts[level])
    together: list[int] = []
    for level in by_size:
        n_together = sum(counts[one] for one in together)
        if counts[level] >= least and (not together or n_together >= least):
            break
        together.append(level)
    alone = [[level] for level in range(len(counts)) if level not in together]
    return [*alone, together] if together else alone
