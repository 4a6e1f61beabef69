"""What may be told of few records: counts, quantiles and bars, for a report that is shared.

No count below ten is told, nor one that leaves fewer than ten of the whole, and no value of a
single record. Counts that are told are rounded to tens, so that two tables that cut the records at
slightly different places cannot be subtracted. A statistic is told in steps that are larger than
what one record can change it by, so that an intruder who knows everybody else cannot try guesses
until it comes out; of fewer than a hundred records none is told. One record moves a fit, and with
it everybody's likelihood under every dataset, so with m datasets all these numbers are m times as
large. A report for inside tells everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.notes import Count, Note
from synrisk.verdict.verdict import CALLED, LEAST_SHARED

FEW = f"fewer than {LEAST_SHARED}"
LEAST_DESCRIBED = 100  # records of which a shared statistic or picture may be
_STEP = 10.0  # records whose part of a statistic is lost in rounding
# Every number about risk moves a little with one record's values, so many cross an edge at once.
_LEAST_IN_BAR = 50
_RECORDS_A_BAR = 200  # on average at least
_N_BINS = 36
_SAME = 1e-6
_DOMINATES = 0.1  # the share of a sum from which one record dominates it


@dataclass(frozen=True)
class Bins:
    """Counts between edges; those beyond the first and the last edge are in the outer bins."""

    edges: FloatArray
    counts: FloatArray


@dataclass(frozen=True)
class DisclosureRules:
    """What is told: everything inside, nothing of few records where a report is shared.

    Attributes
    ----------
    sharing
        Whether the report is shared.
    n_records
        The number of confidential records.
    n_datasets
        The number of synthetic datasets.
    rows
        What records are called.
    """

    sharing: bool
    n_records: int
    n_datasets: int = 1
    rows: str = CALLED

    @property
    def least_counted(self) -> int:
        """The smallest count that is told of what one record can move."""
        return self.least * (self.n_datasets if self.sharing else 1)

    @property
    def least_described(self) -> int:
        """Of how many records statistics and pictures are told."""
        return LEAST_DESCRIBED * self.n_datasets if self.sharing else 1

    @property
    def least(self) -> int:
        """The smallest count that is told."""
        return LEAST_SHARED if self.sharing else 1

    def tells(self, n: int, total: int) -> bool:
        """Tell whether a count and what it leaves of the whole are large enough to be told."""
        return not self.sharing or self.least_counted <= n <= total - self.least_counted

    def count(self, n: int, total: int) -> str:
        """Return how many of a whole, in words where the number is not told."""
        if not self.sharing:
            return f"{n:,}"
        few = f"fewer than {self.least_counted}"
        if n < self.least_counted or total < self.least_counted:
            return few
        if n > total - self.least_counted:
            return f"all but {few}"
        return f"about {self.rounded(n):,.0f}"

    def size(self, n: int) -> str:
        """Return how many records something is of."""
        if n < self.least:
            return FEW
        if self.sharing and self.n_records - LEAST_SHARED < n < self.n_records:
            return f"nearly all {self.n_records:,}"
        return f"{n:,}"

    def records(self, n: int) -> str:
        """Return how many records something is of, and that they are not all where they are not."""
        if n == self.n_records:
            return f"{self.size(n)} {self.rows}"
        if self.size(n) == f"{n:,}":
            return f"the {n:,} {self.rows} evaluated"
        return f"the {self.rows} evaluated ({self.size(n)})"

    def rounded(self, n: float, unit: float = 10.0) -> float:
        """Return a count as it is told: in tens, or larger units, where it is shared."""
        unit *= self.n_datasets
        return max(round(n / unit) * unit, unit) if self.sharing and n else float(n)

    def describes(self, n: int) -> bool:
        """Tell whether there are enough records for statistics and pictures of them."""
        return n >= self.least_described

    def common(self, values: FloatArray) -> float | None:
        """Return the value that all have; where it is shared, all but few, who are not told of."""
        middle = float(np.median(values))
        with np.errstate(invalid="ignore"):
            same = np.abs(values - middle) <= _SAME * abs(middle)
        n_other = len(values) - int(same.sum())
        return middle if n_other < self.least and n_other < len(values) else None

    def usual(self, values: FloatArray) -> float | None:
        """Return what all have, or all but few; else their mean."""
        common = self.common(values) if self.describes(len(values)) else None
        return self.mean(values) if common is None or not self.sharing else float(f"{common:.4g}")

    def mean(self, values: FloatArray) -> float | None:
        """Return the mean of enough values, none of which makes up much of it."""
        if not self.describes(len(values)):
            return None
        sizes = np.abs(values)
        if self.sharing and sizes.max() > _DOMINATES * (1.0 + 1e-9) * sizes.sum():
            return None
        return self.number(values.mean(), len(values), sizes.mean())

    def number(self, value: float, n: int, scale: float) -> float | None:
        """Return a statistic as it is told: in steps of a few records' part where it is shared.

        Parameters
        ----------
        value
            The statistic; None is returned if it is not finite.
        n
            The number of records that it is of.
        scale
            The size of what it is made of: one record's part is about `scale` / `n`.
        """
        if not np.isfinite(value):
            return None
        if not self.sharing:
            return float(value)
        if scale > 0 and np.isfinite(scale):
            step = _round_up(_STEP * self.n_datasets * scale / n)
            value = round(value / step) * step
        return float(f"{value:.4g}")

    def quantile(self, values: FloatArray, q: float) -> float | None:
        """Return a quantile; where it is shared, the mean of ten values about it, if there are."""
        n = len(values)
        if not self.sharing:
            return float(np.quantile(values, q))
        if not self.describes(n) or min(q, 1.0 - q) * n < self.least_counted:
            return None
        if (common := self.common(values)) is not None:
            return float(f"{common:.4g}")
        first = int(np.clip(round(q * (n - 1)) - LEAST_SHARED // 2, 0, n - LEAST_SHARED))
        among = np.partition(values, [first, first + LEAST_SHARED - 1])
        value = float(among[first : first + LEAST_SHARED].mean())
        middle_half = float(np.subtract(*np.quantile(values, [0.75, 0.25])))
        return self.number(value, n, max(abs(value), middle_half))

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
        if not self.describes(len(values)):
            return None
        n_bins = self.most_bars(len(values), _N_BINS)
        # No finer than the middle of such values is told.
        step = _STEP * self.n_datasets * float(np.median(np.abs(values))) / len(values)
        finest = step if self.sharing else 0.0
        edges = _round_edges(values, self.least, anchor, n_bins, finest)
        bins = self.pooled(values, np.unique(np.maximum(edges, low)))
        return None if self.sharing and bins and len(bins.counts) < 2 else bins

    def most_bars(self, n: int, most: int) -> int:
        """Return how many bars there may be of so many records."""
        if not self.sharing:
            return most
        return int(np.clip(n // (_RECORDS_A_BAR * self.n_datasets), 2, most))

    def pooled(self, values: FloatArray, edges: FloatArray) -> Bins | None:
        """Return counts between edges, neighbours pooled until each is large enough."""
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        if not self.describes(int(counts.sum())):
            return None
        least = _LEAST_IN_BAR * self.n_datasets if self.sharing else 1
        kept, sizes, run = [edges[0]], [], 0
        for edge, count in zip(edges[1:], counts, strict=True):
            run += int(count)
            if run >= least or not self.sharing:
                kept.append(edge)
                sizes.append(run)
                run = 0
        if self.sharing:  # what is left over belongs to the last bar
            sizes[-1] += run
            kept[-1] = edges[-1] if run else kept[-1]
        return Bins(np.array(kept), np.array([self.rounded(n, _LEAST_IN_BAR) for n in sizes]))

    def says(self, note: Note) -> str | None:
        """Return what is said of a note; None where nothing is."""
        if not self.sharing:
            return str(note)
        if note.audience != "anyone":
            return note.instead
        if note.unless_few and not all(self.tells(one.n, one.of) for one in note.counts):
            return None
        text = "".join(
            f"{self.count(part.n, part.of)} {part.nouns}" if isinstance(part, Count) else part
            for part in note.parts
        )
        # Where it begins with a count it now begins with a word.
        return text[0].upper() + text[1:] if isinstance(note.parts[0], Count) else text


def _round_edges(
    values: FloatArray, least: int, anchor: float, n_bins: int, finest: float
) -> FloatArray:
    """Return evenly spaced edges from about the `least`-th smallest to the `least`-th largest.

    So the ends do not depend on the extreme records, which fall into the outer bins.
    """
    n = len(values)
    first, last = min(least, n) - 1, n - min(least, n)
    ordered = np.partition(values, sorted({first, last}))
    low, high = sorted((float(ordered[first]), float(ordered[last])))
    width = max((high - low) / n_bins, finest)
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
