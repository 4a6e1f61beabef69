"""The numbers that plots are made of, by record; no matplotlib here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import OptionError, counted, got, nearest, one_of
from synrisk.core.measures import JOINT, RecordMeasures
from synrisk.core.ranks import TIE
from synrisk.core.spread import Spread
from synrisk.core.summary import ErrorArrays, RiskArrays
from synrisk.data.schema import Factor
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.guesses import Grid
from synrisk.risk.tables import (
    Labels,
    difference,
    measures_of_columns,
    near_truth,
    own_guesses_name,
    own_rank_name,
    own_ranks,
    record_measures,
)
from synrisk.synthesis.synthesizer import Synthesizer

MEASURES = {
    "gain": "gain (probability − prior)",
    "probability": "probability of the truth",
    "lift": "lift (probability / prior)",
    "log_odds_range": "range of log odds",
}
_FEW_VALUES = 10  # numbers with so few distinct values are groups
_MOST_GROUPS = 40


class Numbers:
    """What is known of the truth's probability, jointly or for one variable, by record.

    Parameters
    ----------
    columns
        By name, what gives the numbers; each is asked once, when it is wanted.
    """

    def __init__(self, columns: Mapping[str, Callable[[], npt.NDArray[Any]]]) -> None:
        self._columns = columns

    @cached_property
    def probability(self) -> FloatArray:
        """The probability after the release."""
        return self._columns["probability"]()

    @cached_property
    def prior(self) -> FloatArray:
        """The probability before it."""
        return self._columns["prior"]()

    @cached_property
    def rank(self) -> FloatArray:
        """The rank of the truth among the guesses; NaN where it is not known."""
        return self._columns["rank"]()

    @cached_property
    def n_guesses(self) -> npt.NDArray[Any]:
        """How many guesses there are."""
        return self._columns["n_guesses"]()

    @cached_property
    def mcse(self) -> FloatArray:
        """The Monte-Carlo error of the probability."""
        return self._columns["mcse"]()

    @property
    def lift(self) -> FloatArray:
        """Probability over prior."""
        return self.probability / self.prior

    @property
    def gain(self) -> FloatArray:
        """Probability less prior."""
        return self.probability - self.prior

    @property
    def is_best(self) -> FloatArray:
        """1 where the truth is the one most probable guess, else 0; NaN where ranks are unknown."""
        return np.where(np.isnan(self.rank), np.nan, self.rank == 1)

    @property
    def is_above(self) -> BoolArray:
        """Whether the truth is more probable after the release, by more than rounding."""
        return np.asarray(self.probability > self.prior * np.exp(TIE))


class Drawn(ABC):
    """Records as plots and reports take them: in memory, or a piece at a time.

    Attributes
    ----------
    evaluation
        Of them, or of one that stands for all but for its guesses.
    labels
        Of all records.
    """

    evaluation: Evaluation
    labels: Labels

    @abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """Yield the records in order, some of them at a time."""

    @property
    @abstractmethod
    def sample(self) -> Piece:
        """All records in memory, or where they are too many some of them, evenly spread."""

    def check_of(self, of: Any) -> str:
        """Return `of` if it is "joint" or a synthesized variable, or raise."""
        return one_of("of=", of, (JOINT, *self.labels.names))

    def is_of_range(self, axis: int) -> bool:
        """Tell whether every number in a range is considered, not guesses that are listed."""
        question, name = self.evaluation.question, self.labels.names[axis]
        if question is None or not question.is_of_range(name):
            return False
        return self.labels.families[axis].all_values(self.labels.variables[axis]) is None

    def around_truth(self, axis: int) -> bool:
        """Tell whether the guesses for a variable lie about each record's truth."""
        return self.evaluation.asked_grids[axis].around_truth

    def is_integral(self, axis: int) -> bool:
        """Tell whether the guesses for a variable are nodes of an integral."""
        return self.evaluation.asked_grids[axis].of_values.log_widths is not None

    def spread(self, of: str, what: str) -> Spread:
        """Return one of the `Numbers` of all records, of the joint or of a variable."""
        return self._kept(
            (of, what),
            lambda: Spread(lambda: (getattr(p.numbers(of), what) for p in self.pieces())),
        )

    def differences(self, axis: int) -> Spread:
        """Return |best guess − truth| of one variable; between a value and none there is none."""
        return self._kept(
            ("difference", axis),
            lambda: Spread(lambda: (p.difference(axis) for p in self.pieces())).where(
                lambda off: ~np.isnan(off)
            ),
        )

    def measured(self, measure: str, of: str) -> Spread:
        """Return a measure of risk of all records, or raise where there is none."""
        self.sample.measure(measure, of)  # where nothing is known of some, nothing is of all
        return Spread(lambda: (p.measures[of, measure].value for p in self.pieces()))

    def of_grids(self, axis: int, make: Callable[[Grid], npt.NDArray[Any]]) -> Spread:
        """Return a number by record of a variable's guesses, in its own units."""
        return Spread(lambda: (make(p.grids[axis].of_values) for p in self.pieces()))

    def _kept(self, key: Hashable, make: Callable[[], Spread]) -> Spread:
        """Return what was asked for before, with what was found of it."""
        known: dict[Hashable, Spread] = self.__dict__.setdefault("_spreads", {})
        if key not in known:
            known[key] = make()
        return known[key]


class Piece(Drawn):
    """Records in memory."""

    sampled_from: int | None = None

    @property
    @abstractmethod
    def grids(self) -> tuple[Grid, ...]:
        """The guesses by variable that is asked for."""

    @property
    @abstractmethod
    def positions(self) -> IntArray:
        """Where the records stand among the confidential ones."""

    @property
    @abstractmethod
    def reliable(self) -> BoolArray | None:
        """Which records can be relied on; None where errors were not estimated."""

    @property
    @abstractmethod
    def measures(self) -> RecordMeasures:
        """The measures of risk by record."""

    @abstractmethod
    def numbers(self, of: str) -> Numbers:
        """Return the numbers of the joint or of one variable."""

    @abstractmethod
    def difference(self, axis: int) -> FloatArray:
        """Return |best guess − truth| of one variable, 0 or 1 for levels without order."""

    def pieces(self) -> Iterator[Piece]:
        """Yield itself."""
        yield self

    @property
    def sample(self) -> Piece:
        """Itself."""
        return self

    def counted(self, n: int) -> str:
        """Return how many records are drawn, and of how many where they are a sample."""
        drawn = counted(n, "record")
        if self.sampled_from is None:
            return drawn
        return f"{drawn}, a sample of {self.sampled_from:,} evenly spread"

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
        values = confidential_column(self.evaluation.synthesizer, name, self.positions)
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


class Evaluated(Piece):
    """One evaluation and its numbers."""

    def __init__(self, evaluation: Evaluation, result: RiskArrays, labels: Labels) -> None:
        self.evaluation, self.result, self.labels = evaluation, result, labels

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The guesses by variable that is asked for."""
        return self.evaluation.asked_grids

    @property
    def positions(self) -> IntArray:
        """Where the records stand among the confidential ones."""
        return self.evaluation.positions

    @property
    def reliable(self) -> BoolArray | None:
        """Which records can be relied on."""
        return None if self.result.errors is None else self.result.errors.reliable

    @cached_property
    def measures(self) -> RecordMeasures:
        """The measures of risk by record."""
        return record_measures(self.result, self.grids, self.labels)

    def numbers(self, of: str) -> Numbers:
        """Return the numbers of the joint or of one variable."""
        result, axis = self.result, None if of == JOINT else self.labels.axis(of)
        errors = result.errors or ErrorArrays.unknown(len(self.labels.records), len(self.grids))
        if axis is None:
            return Numbers(
                {
                    "probability": lambda: result.probability,
                    "prior": lambda: result.prior,
                    "rank": lambda: result.rank,
                    "n_guesses": lambda: result.n_guesses,
                    "mcse": lambda: errors.mcse[:, 0],
                }
            )
        return Numbers(
            {
                "probability": lambda: near_truth(result, self.grids, axis),
                "prior": lambda: result.prior_marginals[:, axis],
                "rank": lambda: own_ranks(result, self.grids, axis),
                "n_guesses": lambda: self.grids[axis].present.sum(axis=1),
                "mcse": lambda: errors.mcse[:, 1 + axis],
            }
        )

    def difference(self, axis: int) -> FloatArray:
        """Return |best guess − truth| of one variable, 0 or 1 for levels without order."""
        grid, rows = self.grids[axis], np.arange(len(self.labels.records))
        best = grid.values[rows, self.result.best[:, axis]]
        return difference(self.labels.families[axis], best, grid.values[rows, grid.truth])


class OfTable(Piece):
    """Some records of a table with a row each, as `part_table` makes it.

    Parameters
    ----------
    evaluation_of
        Lays out the guesses of these records.
    evaluation
        That of one record.
    labels, positions
        What they are called, and where they stand.
    read
        Gives a column of the table.
    with_errors
        Whether errors were estimated.
    sampled_from
        How many records these are a sample of, if they are.
    """

    def __init__(
        self,
        evaluation_of: Callable[[IntArray], Evaluation],
        evaluation: Evaluation,
        labels: Labels,
        positions: IntArray,
        read: Callable[[str], npt.NDArray[Any]],
        *,
        with_errors: bool,
        sampled_from: int | None = None,
    ) -> None:
        self._evaluation_of, self._positions, self._read = evaluation_of, positions, read
        self.evaluation, self.labels, self.sampled_from = evaluation, labels, sampled_from
        self._with_errors = with_errors

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """The guesses by variable that is asked for."""
        return self._evaluation_of(self._positions).asked_grids

    @property
    def positions(self) -> IntArray:
        """Where the records stand among the confidential ones."""
        return self._positions

    @property
    def reliable(self) -> BoolArray | None:
        """Which records can be relied on."""
        return np.asarray(self._read("reliable"), dtype=bool) if self._with_errors else None

    @cached_property
    def measures(self) -> RecordMeasures:
        """The measures of risk by record."""
        return measures_of_columns(self._read, self.labels.names)

    def numbers(self, of: str) -> Numbers:
        """Return the numbers of the joint or of one variable."""
        names = {name: name for name in ("probability", "prior", "rank", "n_guesses", "mcse")}
        if of != JOINT:
            names = {name: f"{name}_{of}" for name in names}
            names |= {"rank": own_rank_name(of), "n_guesses": own_guesses_name(of)}
        return Numbers({name: partial(self._read, column) for name, column in names.items()})

    def difference(self, axis: int) -> FloatArray:
        """Return |best guess − truth| of one variable, 0 or 1 for levels without order."""
        return self._read(f"abs_diff_{self.labels.names[axis]}")


def confidential_column(
    synthesizer: Synthesizer, name: Any, positions: IntArray, said: str = ""
) -> pd.Series[Any]:
    """Return a column of the confidential data for some records, or raise where there is none.

    `said` is the argument that names it, for the message.
    """
    confidential = synthesizer.confidential
    stored = confidential.columns if confidential.is_stored else {}
    names = list(stored or confidential.data.columns)
    if not isinstance(name, str) or name not in names:
        of_formulas = " that the formulas use" if stored else ""
        raise OptionError(
            f"{said}{got(name)} is not a column of the confidential data{of_formulas}."
            f"{nearest(name, names)}"
        )
    if not stored:
        return confidential.data[name].iloc[positions]
    first = int(positions[0])
    rows = stored[name][first : int(positions[-1]) + 1]
    values = synthesizer.schema.variables[name].decode(rows[positions - first])
    return pd.Series(values, confidential.data.index[positions], name=name)


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
