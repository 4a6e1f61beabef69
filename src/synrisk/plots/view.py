"""The numbers that plots are made of, by record; no matplotlib here."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import OptionError, got, nearest, one_of
from synrisk.core.measures import JOINT, RecordMeasures
from synrisk.core.ranks import marginal_ranks
from synrisk.core.summary import ErrorArrays, RiskArrays
from synrisk.data.schema import Factor
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.guesses import Grid
from synrisk.risk.tables import Labels, difference, near_truth, record_measures

MEASURES = {
    "gain": "gain (probability − prior)",
    "probability": "probability of the truth",
    "lift": "lift (probability / prior)",
    "log_odds_range": "range of log odds",
}
_FEW_VALUES = 10  # numbers with so few distinct values are groups
_MOST_GROUPS = 40


@dataclass(frozen=True, repr=False)
class Numbers:
    """What is known of the truth's probability, jointly or for one variable, by record."""

    probability: FloatArray
    prior: FloatArray
    rank: FloatArray
    n_guesses: IntArray
    mcse: FloatArray

    @property
    def lift(self) -> FloatArray:
        """Probability over prior."""
        return self.probability / self.prior


@dataclass(frozen=True, eq=False, repr=False)
class Drawn:
    """One evaluation as plots take it."""

    evaluation: Evaluation
    result: RiskArrays
    labels: Labels

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The guesses by variable that is asked for."""
        return self.evaluation.asked_grids

    @property
    def errors(self) -> ErrorArrays:
        """The Monte-Carlo errors, NaN where they were not estimated."""
        n_records, n_variables = len(self.labels.records), len(self.grids)
        return self.result.errors or ErrorArrays.unknown(n_records, n_variables)

    def check_of(self, of: Any) -> str:
        """Return `of` if it is "joint" or a synthesized variable, or raise."""
        return one_of("of=", of, (JOINT, *self.labels.names))

    @cached_property
    def measures(self) -> RecordMeasures:
        """The measures of risk by record."""
        return record_measures(self.result, self.grids, self.labels)

    def is_of_range(self, axis: int) -> bool:
        """Tell whether every number in a range is considered, not guesses that are listed."""
        question, name = self.evaluation.question, self.labels.names[axis]
        if question is None or not question.is_of_range(name):
            return False
        return self.labels.families[axis].all_values(self.labels.variables[axis]) is None

    def numbers(self, of: str) -> Numbers:
        """Return the numbers of the joint or of one variable."""
        result = self.result
        if of == JOINT:
            return Numbers(
                result.probability, result.prior, result.rank, result.n_guesses,
                self.errors.mcse[:, 0],
            )  # fmt: skip
        axis = self.labels.axis(of)
        grid = self.grids[axis]
        density = result.marginals[axis]
        if grid.log_widths is not None:
            density = density * np.exp(-grid.log_widths)
        return Numbers(
            near_truth(result, self.grids, axis),
            result.prior_marginals[:, axis],
            marginal_ranks(density, grid.truth, grid.present),
            grid.present.sum(axis=1),
            self.errors.mcse[:, 1 + axis],
        )

    def difference(self, axis: int) -> FloatArray:
        """Return |best guess − truth| of one variable, 0 or 1 for levels without order."""
        grid, rows = self.grids[axis], np.arange(len(self.labels.records))
        best = grid.values[rows, self.result.best[:, axis]]
        return difference(self.labels.families[axis], best, grid.values[rows, grid.truth])

    def measure(self, measure: Any, of: str) -> FloatArray:
        """Return a measure of risk by record, or raise where there is none."""
        own = one_of("measure", measure, MEASURES)
        if (of, own) not in self.measures:
            raise OptionError(f"measure={own!r} is of all variables together: of='joint'.")
        values = self.measures[of, own].value
        if not np.isfinite(values).any():
            raise OptionError(
                "The range of log odds is not known: the joint grid is too large to be looked at "
                "cell by cell. Use fewer guesses, or measure='lift'."
            )
        return values

    def column(self, name: Any) -> pd.Series[Any]:
        """Return a column of the confidential data for the evaluated records, or raise."""
        data = self.evaluation.synthesizer.data
        if not isinstance(name, str) or name not in data.columns:
            raise OptionError(
                f"{got(name)} is not a column of the confidential data."
                f"{nearest(name, data.columns)}"
            )
        values = data[name].iloc[self.evaluation.positions]
        if values.map(lambda value: not isinstance(value, Hashable)).any():
            raise OptionError(f"{name!r} holds lists or other nested values; nothing can be drawn.")
        return values

    def is_scale(self, values: pd.Series[Any]) -> bool:
        """Tell whether a column is drawn as numbers; else as groups."""
        variable = self.evaluation.synthesizer.schema.variables.get(str(values.name))
        if isinstance(variable, Factor) or pd.api.types.is_bool_dtype(values.dtype):
            return False
        return bool(
            pd.api.types.is_numeric_dtype(values.dtype)
            and not pd.api.types.is_complex_dtype(values.dtype)
            and values.nunique() > _FEW_VALUES
        )


def grouped(values: pd.Series[Any]) -> list[tuple[str, BoolArray]]:
    """Return groups of a column with their rows: levels in order, then what is missing.

    Beyond forty, the smallest are one group.
    """
    keys = values.astype(object).where(values.notna(), None)
    counts = keys.value_counts()
    kept = list(counts.index[: _MOST_GROUPS - (len(counts) > _MOST_GROUPS)])
    if isinstance(values.dtype, pd.CategoricalDtype):
        order = {level: place for place, level in enumerate(values.cat.categories)}
        kept.sort(key=lambda level: order[level])
    else:
        kept.sort(key=lambda level: (isinstance(level, str), level if _is_number(level) else 0,
                                     str(level)))  # fmt: skip
    groups = [(_label(level), (keys == level).to_numpy(dtype=bool)) for level in kept]
    missing = keys.isna().to_numpy(dtype=bool)
    rest = ~missing & ~np.any([rows for _, rows in groups], axis=0) if groups else ~missing
    if rest.any():
        groups.append((f"({len(counts) - len(kept)} other levels)", rest))
    if missing.any():
        groups.append(("(missing)", missing))
    return groups


def _label(level: object) -> str:
    if isinstance(level, float | np.floating):
        return f"{level:.6g}"
    if isinstance(level, pd.Timestamp) and level == level.normalize():
        return str(level.date())
    return str(level)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number)


def cut(values: pd.Series[Any]) -> list[tuple[str, BoolArray]]:
    """Return up to ten groups of about equal size of a column of numbers."""
    numbers = values.astype(np.float64)
    parts = pd.qcut(numbers, 10, duplicates="drop", precision=3)
    labels = [f"{part.left:.4g} to {part.right:.4g}" for part in parts.cat.categories]
    codes = parts.cat.codes.to_numpy()
    groups = [(label, codes == code) for code, label in enumerate(labels) if (codes == code).any()]
    if (codes < 0).any():
        groups.append(("(missing)", codes < 0))
    return groups
