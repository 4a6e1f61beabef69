"""A measure that boards cite: its number, what chance gives, and whom it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.errors import counted


@dataclass(frozen=True, eq=False, repr=False)
class BoardMeasure:
    """One measure of two files.

    Attributes
    ----------
    name
        As its source calls it: "DiSCO".
    of
        Which columns it is of: "age, sex → income".
    value
        The number, in its source's terms: a share of records, unless `explanation` says otherwise.
    chance
        What a release without anybody's own record would be expected to give, from the
        confidential data; NaN where there is no such number.
    error
        The standard error of `value` − `chance` under chance; NaN where it is not known.
    n_records
        How many confidential records it counts.
    records
        Their labels.
    source
        Where it is defined.
    explanation
        What it counts, and what its chance level is.
    """

    name: str
    of: str
    value: float
    chance: float
    error: float
    n_records: int
    records: pd.Index[Any]
    source: str
    explanation: str

    def __repr__(self) -> str:
        return f"<BoardMeasure: {self.name} of {self.of}>"


@dataclass(frozen=True, eq=False, repr=False)
class BoardMeasures:
    """The measures of two files, in a fixed order.

    Attributes
    ----------
    measures
        Each by its source's name.
    bins
        For each number that was cut into bins, the edges between these. They come from the
        confidential data unless they were given: for inside use.
    notes
        What was left out, and why.
    """

    measures: tuple[BoardMeasure, ...]
    bins: Mapping[str, tuple[float, ...]]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[BoardMeasure]:
        return iter(self.measures)

    def __len__(self) -> int:
        return len(self.measures)

    def __getitem__(self, key: str | tuple[str, str]) -> BoardMeasure:
        """Return the measure of a name, or of a name and what it is of."""
        name, of = (key, None) if isinstance(key, str) else key
        for measure in self.measures:
            if measure.name == name and of in (None, measure.of):
                return measure
        raise KeyError(key)

    def __repr__(self) -> str:
        return f"<BoardMeasures: {counted(len(self.measures), 'measure')}>"

    def table(self) -> pd.DataFrame:
        """Return a row a measure: value, chance, their difference and its error, and how many."""
        rows = [
            {
                "name": one.name,
                "of": one.of,
                "value": one.value,
                "chance": one.chance,
                "difference": one.value - one.chance,
                "error": one.error,
                "n_records": one.n_records,
                "source": one.source,
            }
            for one in self.measures
        ]
        return pd.DataFrame(rows).set_index(["name", "of"])


def share_of(n: float, total: float) -> float:
    """Return a share; NaN of nothing."""
    return float(n) / float(total) if total else np.nan
