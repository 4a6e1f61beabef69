"""Blocks of records: all that an evaluation needs of some, and nothing of the others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import GuessError
from synrisk.core.likelihood import ModelBlock, TermValues, flatten_terms
from synrisk.data.schema import Columns
from synrisk.models.design import AnyTerm
from synrisk.models.plan import Plan, Regression
from synrisk.risk.guesses import Grid
from synrisk.risk.intruder_prior import Prior
from synrisk.synthesis.fitted_model import Model


@dataclass(frozen=True, repr=False)
class RecordBlock:
    """Some records with their guesses.

    Attributes
    ----------
    columns
        The plan's columns.
    weights
        The records' weights by response, for models that have them.
    grids
        The guesses, for each synthesized variable.
    prior
        What the intruder believes of these records.
    """

    columns: Columns
    weights: Mapping[str, FloatArray]
    grids: tuple[Grid, ...]
    prior: Prior

    @property
    def n_records(self) -> int:
        """The number of records."""
        return len(self.grids[0].truth)

    @property
    def truth(self) -> IntArray:
        """The index of the truth on every axis, ``(record, axis)``."""
        return np.stack([grid.truth for grid in self.grids], axis=1)

    def part(self, rows: slice) -> RecordBlock:
        """Return some of the records."""
        return RecordBlock(
            {name: values[rows] for name, values in self.columns.items()},
            {name: values[rows] for name, values in self.weights.items()},
            tuple(grid.part(rows) for grid in self.grids),
            self.prior.part(rows),
        )


class Encoder(Protocol):
    """How a model sees records with their guesses."""

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the model's table: its synthesized predictors', then its own."""

    def block(self, records: RecordBlock) -> Any:
        """Return what the model's estimate needs of records, laid out once for all it is asked.

        It has a method ``part(rows)``, for some of the records.
        """

    def log_measure(self, block: Any, records: RecordBlock) -> FloatArray:
        """Return the log of what a guess's density is multiplied by, ``(record, guess)``.

        The density that an estimate gives may lack what is the same at every draw; a prior needs
        it, and the width of the cell that a guess stands for.
        """


@dataclass(frozen=True, repr=False)
class RegressionEncoder:
    """A regression's terms over the guesses of the synthesized variables that they mention.

    Attributes
    ----------
    own, parents
        The axis of the response's guesses, and those of its synthesized predictors.
    regression, terms
        The model, and the terms of its design.
    synthesized
        The synthesized variables, by axis.
    """

    own: int
    parents: tuple[int, ...]
    regression: Regression
    terms: tuple[AnyTerm, ...]
    synthesized: tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan, k: int, model: Model) -> RegressionEncoder:
        """Return that of the model at position `k` of a plan."""
        return cls(k, plan.parents(k), model.regression, model.design.terms, plan.synthesized)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the model's table."""
        return (*self.parents, self.own)

    def block(self, records: RecordBlock) -> ModelBlock:
        """Return the linear predictor's columns and the response's guesses."""
        shape = tuple(grid.n_guesses for grid in records.grids)
        terms = [self._term_values(term, records, shape) for term in self.terms]
        values, places = flatten_terms(terms, self.parents, shape)
        weights = records.weights.get(self.regression.response)
        return ModelBlock(
            self.own,
            self.parents,
            values,
            places,
            np.array(self.regression.on_model_scale(records.grids[self.own].values), order="C"),
            records.truth,
            np.ones(records.n_records) if weights is None else weights,
        )

    def log_measure(self, block: ModelBlock, records: RecordBlock) -> FloatArray:
        """Return log y! and the like, the Jacobian of the response, and widths of cells."""
        distribution, grid = self.regression.distribution, records.grids[self.own]
        measure = distribution.log_base(block.guesses)
        if grid.log_widths is not None:  # on the model's scale
            return _without_gap(measure + grid.log_widths, grid)
        measure = measure + self.regression.transform.log_derivative(grid.values)
        if distribution.is_continuous:
            present = grid.present
            if grid.has_gap:
                present = np.array(present)
                present[:, -1] = False
            measure = measure + np.log(_widths(grid.values, present))
        return _without_gap(measure, grid)

    def _term_values(
        self, term: AnyTerm, records: RecordBlock, sizes: tuple[int, ...]
    ) -> TermValues:
        """Evaluate a term with the guesses of the synthesized variables that it mentions."""
        axis_of = {name: axis for axis, name in enumerate(self.synthesized)}
        axes = tuple(sorted(axis_of[name] for name in term.variables if name in axis_of))
        n_records = records.n_records
        shape = (n_records, *(sizes[axis] for axis in axes))
        varied = {}
        for name in term.variables:
            wide = [1] * len(axes)
            if name not in axis_of:
                values = records.columns[name]
            else:
                values = records.grids[axis_of[name]].values
                wide[axes.index(axis_of[name])] = values.shape[1]
            varied[name] = np.broadcast_to(values.reshape(n_records, *wide), shape).ravel()
        guessed = ", ".join(repr(self.synthesized[axis]) for axis in axes)
        what = f"Guesses for {guessed}" if axes else "The confidential data"
        matrix = term.evaluate(varied, math.prod(shape), what, GuessError)
        return TermValues(axes, matrix.reshape(*shape, -1))


def _without_gap(measure: FloatArray, grid: Grid) -> FloatArray:
    """Return logs of measures, 0 where a guess is that the value is missing: a probability."""
    if not grid.has_gap:
        return measure
    return np.where(np.arange(grid.n_guesses) == grid.n_guesses - 1, 0.0, measure)


def _widths(values: FloatArray, present: BoolArray) -> FloatArray:
    """Return the width of the cell that each guess stands for, up to the midpoints; 1 if absent."""
    order = np.argsort(np.where(present, values, np.inf), axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    n_present = present.sum(axis=1)
    widths = np.ones(values.shape)
    for row, n in enumerate(n_present):
        widths[row, order[row, :n]] = np.gradient(ordered[row, :n])
    return widths
