"""A kind of model that synrisk does not have: counts of a factor's levels by those of another.

Dirichlet by row, so that its predictive densities are closed (METHOD §10).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from synrisk.risk.estimators.estimate import Estimate
from synrisk.synthesis.variable_model import VariableModel

ALPHA = 0.5


def counts(columns, name, given, n_given, n_levels):
    table = np.zeros((n_given, n_levels))
    np.add.at(table, (columns[given].astype(int), columns[name].astype(int)), 1.0)
    return table


@dataclass(frozen=True)
class CellModel(VariableModel):
    """The response's levels by those of one predictor."""

    regression: Any
    table: Any  # (level of the predictor, level of the response)

    def posterior_draw(self, rng):
        return np.stack([rng.dirichlet(row + ALPHA) for row in self.table])

    def sample(self, columns, n_rows, draw, rng, what):
        (given,) = self.regression.parsed.predictors
        steps = np.cumsum(draw, axis=1)[columns[given].astype(int)]
        return (rng.random(n_rows)[:, None] > steps).sum(axis=1).astype(float)


@dataclass(frozen=True)
class CellBlock:
    given: Any  # (record, value of the predictor at each of its guesses)
    guesses: Any  # (record, guess)
    true_given: Any
    true_own: Any

    def part(self, rows):
        return CellBlock(*(values[rows] for values in vars(self).values()))


@dataclass(frozen=True)
class CellEncoder:
    """The predictor, synthesized or not, and the response."""

    own: int
    parent: int | None
    given: str

    @property
    def axes(self):
        return (self.own,) if self.parent is None else (self.parent, self.own)

    def block(self, records):
        rows = np.arange(records.n_records)
        own = records.grids[self.own]
        if self.parent is None:
            given = records.columns[self.given].astype(int)[:, None]
            true = given[:, 0]
        else:
            grid = records.grids[self.parent]
            given, true = grid.values.astype(int), grid.values[rows, grid.truth].astype(int)
        guesses = own.values.astype(int)
        return CellBlock(given, guesses, true, guesses[rows, own.truth])

    def log_measure(self, block, records):
        return np.zeros(block.guesses.shape)


@dataclass(frozen=True)
class CellEstimate(Estimate):
    """Both predictives in closed form."""

    name = "cells"
    is_drawn = False
    table: Any
    released: tuple

    def log_table(self, block, shape, totals=None):
        return sum(
            self._log_predictive(block, released) - self._log_predictive(block, 0.0)
            for released in self.released
        )

    def log_predictive(self, block, shape):
        return self._log_predictive(block, 0.0)

    def _log_predictive(self, block, released):
        found = np.empty((len(block.guesses), block.given.shape[1], block.guesses.shape[1]))
        for i in range(len(found)):
            others = self.table.copy()
            others[block.true_given[i], block.true_own[i]] -= 1.0
            p = others + ALPHA + released
            p /= p.sum(axis=1, keepdims=True)
            found[i] = np.log(p)[np.ix_(block.given[i], block.guesses[i])]
        return found.reshape(len(found), -1)
