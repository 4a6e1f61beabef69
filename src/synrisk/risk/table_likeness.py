"""Whether a dataset's cross-tables depart from the models as the confidential ones do.

Levels and counts repeat by themselves, so no row is near a record. But a table of the records, two
columns at a time, departs from what the models expect, by chance and because models leave things
out; a dataset that the models drew knows nothing of that. One that was made of records does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.special import stdtr

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import Columns
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_MOST_VALUES, _N_BINS = 12, 4  # a column of more values is cut into bins
_MOST_COLUMNS = 8
LEAST_SIMULATED = 10


def table_likeness(
    synthesizer: Synthesizer, release: Sequence[Released], simulated: Sequence[Released]
) -> list[float]:
    """Return for each dataset the probability of departing as far in the records' direction.

    Parameters
    ----------
    synthesizer
        The models and the confidential data.
    release
        The datasets.
    simulated
        Others that the models drew: what is to be expected.
    """
    if len(simulated) < LEAST_SIMULATED:
        return [1.0] * len(release)
    cut = Cut(synthesizer)
    return judged_tables(
        cut.tables(synthesizer.columns),
        [cut.tables(one.columns) for one in simulated],
        [(cut.tables(dataset.columns), int(dataset.kept.sum())) for dataset in release],
        (synthesizer.n_records, int(simulated[0].kept.sum())),
    )


def judged_tables(
    own: FloatArray,
    expected: Sequence[FloatArray],
    release: Sequence[tuple[FloatArray, int]],
    n_rows: tuple[int, int],
) -> list[float]:
    """Return the same, given shares of cells.

    Parameters
    ----------
    own
        Of the records.
    expected
        Of datasets that the models drew.
    release
        Of the datasets, each with its number of rows.
    n_rows
        The numbers of records, and of the rows that were drawn.
    """
    n_records, n_drawn = n_rows
    mean = np.mean(expected, axis=0)
    departure = own - mean
    direction = departure / (mean + 1.0 / n_records)
    by_chance = np.array([float(table @ direction) for table in expected])
    sd = float(by_chance.std(ddof=1)) * math.sqrt(1.0 + 1.0 / len(by_chance))
    if not sd > 0.0:
        return [1.0] * len(release)
    found = []
    for table, n in release:
        t = (float(table @ direction) - float(by_chance.mean())) / sd
        # Datasets of fewer rows than were simulated scatter more.
        root = math.sqrt(min(n / n_drawn, 1.0))
        found.append(float(stdtr(len(by_chance) - 1, -t * root)))
    return found


class Cut:
    """Columns as a few levels each, and tables of two of them."""

    def __init__(self, synthesizer: Synthesizer) -> None:
        plan = synthesizer.plan
        kept = [name for name in plan.columns if name not in plan.synthesized]
        names = [*plan.synthesized, *kept][:_MOST_COLUMNS]
        self.edges: dict[str, FloatArray] = {}
        for name in names:
            values = np.unique(synthesizer.columns[name]).astype(np.float64)
            if len(values) > _MOST_VALUES:
                bins = np.linspace(0.0, 1.0, _N_BINS + 1)[1:-1]
                values = np.unique(np.quantile(synthesizer.columns[name], bins))
                self.edges[name] = values
            elif len(values) > 1:
                self.edges[name] = (values[1:] + values[:-1]) / 2.0
        made = set(plan.synthesized)
        self.pairs = [pair for pair in combinations(self.edges, 2) if made & set(pair)]
        self.alone = [name for name in self.edges if name in made]

    def tables(self, columns: Columns) -> FloatArray:
        """Return the shares of all cells, one table after another."""
        codes = {
            name: np.searchsorted(edges, columns[name].astype(np.float64)).astype(np.int64)
            for name, edges in self.edges.items()
        }
        sizes = {name: len(edges) + 1 for name, edges in self.edges.items()}
        parts = [_shares(codes[name], sizes[name]) for name in self.alone]
        parts += [
            _shares(codes[one] * sizes[other] + codes[other], sizes[one] * sizes[other])
            for one, other in self.pairs
        ]
        return np.concatenate(parts) if parts else np.zeros(0)


def _shares(codes: IntArray, n_cells: int) -> FloatArray:
    return np.bincount(codes, minlength=n_cells) / max(len(codes), 1)
