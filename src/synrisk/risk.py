"""The evaluation: guesses, prior and likelihood put together over chunks of records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from synrisk.chunks import chunks
from synrisk.design import DesignTerm
from synrisk.errors import GuessError, SyntheticDataError
from synrisk.guesses import Grid
from synrisk.intruder import Prior, joint_truth
from synrisk.likelihood import (
    ModelBlock,
    TermValues,
    log_joint_paired,
    log_table,
    row_log_density,
    spread,
)
from synrisk.posterior import Posterior
from synrisk.result import RiskArrays, posterior, summarise
from synrisk.schema import Columns, FloatArray, IntArray
from synrisk.synthesizer import Synthesizer

Estimator: TypeAlias = Literal["paper", "importance"]

MOST_CELLS = 10_000_000  # of one record's joint grid
_MOST_ELEMENTS = 1 << 27  # of one record's arrays over cells and draws: a gigabyte
_BLOCK_ELEMENTS = 1 << 21  # what a block of records may hold at once


@dataclass(frozen=True)
class Evaluation:
    """Everything needed to evaluate any of the chosen records.

    Attributes
    ----------
    synthesizer
        The confidential data, designs and draws.
    posteriors
        The draws used, for each model.
    log_g
        For each model the log density of each dataset at each draw, ``(dataset, draw)``.
    grids
        The guesses, for each synthesized variable.
    positions
        The evaluated records' positions in the confidential data.
    """

    synthesizer: Synthesizer
    posteriors: tuple[Posterior, ...]
    log_g: tuple[FloatArray, ...]
    grids: tuple[Grid, ...]
    prior: Prior
    positions: IntArray
    estimator: Estimator

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the joint grid."""
        return tuple(grid.n_guesses for grid in self.grids)

    def run(self, *, keep_joint: bool) -> RiskArrays:
        """Evaluate all chosen records, chunk by chunk."""
        parts = [
            part
            for chunk in chunks(len(self.positions))
            for part in self._run_chunk(chunk, keep_joint)
        ]
        return RiskArrays.concatenate(parts)

    def log_joint(self, row: int) -> FloatArray:
        """Return the log posterior over the joint grid of the evaluated record at `row`."""
        rows = slice(row, row + 1)
        blocks = self._model_blocks(rows)
        log_prior = self.prior.log_prior(self.grids, rows)
        return np.asarray(posterior(log_prior, self._log_likelihood(blocks))[0])

    def log_prior(self, row: int) -> FloatArray:
        """Return the log prior over the joint grid of the evaluated record at `row`."""
        log_prior = self.prior.log_prior(self.grids, slice(row, row + 1))
        return np.asarray(np.broadcast_to(log_prior, (1, *self.shape))[0])

    def _run_chunk(self, chunk: slice, keep_joint: bool) -> list[RiskArrays]:
        blocks = self._model_blocks(chunk)
        n_records = chunk.stop - chunk.start
        largest = n_elements(self.synthesizer, self.shape, self.posteriors, self.estimator)
        size = max(1, _BLOCK_ELEMENTS // largest)
        parts = []
        for start in range(0, n_records, size):
            rows = slice(start, min(start + size, n_records))
            whole = slice(chunk.start + rows.start, chunk.start + rows.stop)
            log_prior = self.prior.log_prior(self.grids, whole)
            log_likelihood = self._log_likelihood([block.records(rows) for block in blocks])
            parts.append(
                summarise(
                    posterior(log_prior, log_likelihood),
                    log_prior,
                    joint_truth(self.grids, whole),
                    keep=keep_joint,
                )
            )
        return parts

    def _log_likelihood(self, blocks: Sequence[ModelBlock]) -> FloatArray:
        if self.estimator == "paper":
            log_v = np.sum([draws.log_weights for draws in self.posteriors], axis=0)
            return log_joint_paired(blocks, np.sum(self.log_g, axis=0), log_v)
        total = np.zeros((len(blocks[0].truth), *self.shape))
        for block, log_g, draws in zip(blocks, self.log_g, self.posteriors, strict=True):
            table = log_table(block, log_g, draws.log_weights)
            total += spread(table, block.axes, len(self.grids))
        return total

    def _model_blocks(self, rows: slice) -> list[ModelBlock]:
        """Return each model's arrays for the evaluated records `rows`."""
        positions = self.positions[rows]
        plan = self.synthesizer.plan
        columns = {name: values[positions] for name, values in self.synthesizer.columns.items()}
        truth = np.stack([grid.truth[rows] for grid in self.grids], axis=1)
        axis_of = {name: axis for axis, name in enumerate(plan.synthesized)}
        blocks = []
        for k, (model, draws) in enumerate(
            zip(self.synthesizer.models, self.posteriors, strict=True)
        ):
            terms = tuple(
                self._term_values(term, columns, rows, axis_of) for term in model.design.terms
            )
            weights = model.record_weights
            blocks.append(
                ModelBlock(
                    model.regression.distribution,
                    draws.coefficients,
                    draws.auxiliary,
                    k,
                    plan.parents(k),
                    terms,
                    self.grids[k].values[rows],
                    truth,
                    None if weights is None else weights[positions],
                )
            )
        return blocks

    def _term_values(
        self, term: DesignTerm, columns: Columns, rows: slice, axis_of: dict[str, int]
    ) -> TermValues:
        """Evaluate a term with the guesses of the synthesized variables that it mentions."""
        axes = tuple(sorted(axis_of[name] for name in term.variables if name in axis_of))
        names = {axis: name for name, axis in axis_of.items()}
        n_records = rows.stop - rows.start
        shape = (n_records, *(self.shape[axis] for axis in axes))
        varied = {}
        for name in term.variables:
            if name not in axis_of:
                values = columns[name].reshape(n_records, *[1] * len(axes))
            else:
                values = self.grids[axis_of[name]].values[rows]
                place = axes.index(axis_of[name])
                wide = [1] * len(axes)
                wide[place] = values.shape[1]
                values = values.reshape(n_records, *wide)
            varied[name] = np.broadcast_to(values, shape).ravel()
        guessed = ", ".join(repr(names[axis]) for axis in axes)
        what = f"Guesses for {guessed}" if axes else "The confidential data"
        matrix = term.evaluate(varied, math.prod(shape), what, GuessError)
        return TermValues(axes, matrix.reshape(*shape, -1))


def n_elements(
    synthesizer: Synthesizer,
    shape: tuple[int, ...],
    posteriors: Sequence[Posterior],
    estimator: Estimator,
) -> int:
    """Return how many numbers the largest array of one record holds."""
    sizes = [math.prod(shape)]
    for k, draws in enumerate(posteriors):
        table = math.prod(shape[axis] for axis in (*synthesizer.plan.parents(k), k))
        n_draws, _, n_predictors = draws.coefficients.shape
        sizes.append(table * n_draws * int(n_predictors))
    if estimator == "paper":
        sizes.append(math.prod(shape) * posteriors[0].n_draws)
    return max(sizes)


def check_size(
    synthesizer: Synthesizer,
    shape: tuple[int, ...],
    posteriors: Sequence[Posterior],
    estimator: Estimator,
) -> None:
    """Raise if one record's grid cannot be held in memory."""
    cells = math.prod(shape)
    elements = n_elements(synthesizer, shape, posteriors, estimator)
    if cells > MOST_CELLS or elements > _MOST_ELEMENTS:
        sizes = " × ".join(str(n) for n in shape)
        raise GuessError(
            f"The grid has {cells:,} cells a record ({sizes}), which with the draws makes "
            f"{elements:,} numbers at once; at most {MOST_CELLS:,} cells and {_MOST_ELEMENTS:,} "
            "numbers are possible. Use fewer guesses for some variables (guesses={'x': 5}), fewer "
            "draws (n_draws=), or estimator='importance'."
        )


def log_density_of_release(
    synthesizer: Synthesizer, posteriors: Sequence[Posterior], release: Sequence[Columns]
) -> tuple[FloatArray, ...]:
    """Return log g: for each model an array ``(dataset, draw)``, summed over synthetic rows."""
    tables = []
    for model, draws in zip(synthesizer.models, posteriors, strict=True):
        family, response = model.regression.distribution, model.regression.response
        table = np.zeros((len(release), draws.n_draws))
        for number, columns in enumerate(release):
            what = f"Synthetic dataset {number + 1}"
            for chunk in chunks(len(columns[response])):
                part = {name: values[chunk] for name, values in columns.items()}
                y = part[response].astype(np.float64)
                matrix = model.design.matrix(part, len(y), what, SyntheticDataError)
                size = max(1, _BLOCK_ELEMENTS // (len(y) * draws.coefficients.shape[2]))
                for start in range(0, draws.n_draws, size):
                    some = slice(start, start + size)
                    table[number, some] += row_log_density(
                        family, y, matrix, draws.coefficients[some], draws.auxiliary[some]
                    ).sum(axis=1)
        tables.append(table)
    return tuple(tables)
