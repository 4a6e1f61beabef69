"""An evaluation of many records: the map over their blocks, and one record asked for again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import logsumexp

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.chunks import as_slice, rows_at
from synrisk.base.errors import GuessError, counted
from synrisk.base.workers import Executor, Workers
from synrisk.core.summary import RiskArrays
from synrisk.core.table_errors import empty_totals
from synrisk.models.plan import Regression
from synrisk.risk.blocks import RecordBlock, RegressionEncoder
from synrisk.risk.estimators.at_guesses import can_be_fitted, fitted_at_guesses, seconds_a_fit
from synrisk.risk.estimators.estimate import Estimate, Request
from synrisk.risk.estimators.paper import Paired
from synrisk.risk.evaluate_block import EncodedBlock, Evaluator, evaluate, log_prior
from synrisk.risk.guesses import Grid
from synrisk.risk.intruder_prior import Prior
from synrisk.risk.question import Question
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_LEAST_BLOCK = 256  # records; below, setting up costs more than evaluating


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Everything needed to evaluate any of the selected records.

    Attributes
    ----------
    synthesizer
        The confidential data, designs and draws.
    estimates
        For each model how its likelihood is estimated.
    paired
        The paper's estimator, made of these; or None.
    grids
        The guesses, for each synthesized variable.
    prior
        What the intruder believes.
    positions
        The evaluated records' positions in the confidential data.
    fitted
        For records that were fitted at each guess, their own estimates, by evaluated row.
    question
        What was asked; None in files of before it was kept.
    asked
        The variables that are asked for, by axis; None for all. The others are summed out.
    is_joint
        Whether the joint grid is evaluated, cell by cell.
    """

    synthesizer: Synthesizer
    estimates: tuple[Estimate, ...]
    paired: Paired | None
    grids: tuple[Grid, ...]
    prior: Prior
    positions: IntArray
    fitted: Mapping[int, tuple[Estimate, ...]] = field(default_factory=dict)
    question: Question | None = None
    asked: tuple[int, ...] | None = None
    is_joint: bool = True

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the variables that are asked for."""
        return tuple(range(len(self.grids))) if self.asked is None else self.asked

    @property
    def asked_grids(self) -> tuple[Grid, ...]:
        """The guesses for the variables that are asked for."""
        return tuple(self.grids[axis] for axis in self.axes)

    def regression(self, position: int) -> Regression:
        """Return the regression of a variable, counted among those that are asked for."""
        return self.synthesizer.plan.regressions[self.axes[position]]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the joint grid."""
        return tuple(grid.n_guesses for grid in self.grids)

    @cached_property
    def evaluator(self) -> Evaluator:
        """What evaluates blocks of records."""
        plan = self.synthesizer.plan
        encoders = tuple(
            RegressionEncoder.of(plan, k, model) for k, model in enumerate(self.synthesizer.models)
        )
        return Evaluator(
            encoders, self.estimates, self.paired, self.shape, self.asked, self.is_joint
        )

    @cached_property
    def _together(self) -> slice | None:
        return as_slice(self.positions)

    def records(self, rows: slice) -> RecordBlock:
        """Return the evaluated records `rows`."""
        at: slice | IntArray = self.positions[rows]
        if self._together is not None:  # a slice copies nothing
            first = self._together.start
            at = slice(first + rows.start, first + rows.stop)
        return RecordBlock(
            {name: rows_at(values, at) for name, values in self.synthesizer.columns.items()},
            {
                model.regression.response: rows_at(model.record_weights, at)
                for model in self.synthesizer.models
                if model.record_weights is not None
            },
            tuple(grid.part(rows) for grid in self.grids),
            self.prior.part(rows),
        )

    def run(
        self,
        workers: Workers,
        *,
        keep_joint: bool,
        with_errors: bool,
        on_records: Callable[[int], None] = lambda _: None,
    ) -> RiskArrays:
        """Evaluate all selected records, and tell `on_records` how many are done with each block.

        How the records are cut into blocks does not change a bit of the result.
        """
        n_records, evaluator = len(self.positions), self.evaluator
        keep_joint = keep_joint and self.is_joint
        size = evaluator.block_size(
            self.grids, self.prior, keep_joint=keep_joint, with_errors=with_errors
        )
        size = min(size, max(_LEAST_BLOCK, -(-n_records // workers.n)))
        parts = [slice(i, min(i + size, n_records)) for i in range(0, n_records, size)]
        result = RiskArrays.empty(
            n_records,
            tuple(grid.n_guesses for grid in self.asked_grids),
            keep_joint=keep_joint,
            with_errors=with_errors,
            from_models=self.prior.needs_models,
            is_joint=self.is_joint,
        )
        task = partial(evaluate, evaluator, keep_joint=keep_joint, with_errors=with_errors)
        blocks: Iterable[RecordBlock | EncodedBlock]
        if 1 < len(parts) <= workers.n:
            # What Python does hinders other threads: where all start at once, it is done before.
            whole = evaluator.encode(self.records(slice(0, n_records)))
            blocks = [whole.part(rows) for rows in parts]
        else:
            blocks = map(self.records, parts)  # made as they are worked on
        with workers.open() as executor:
            for rows, part in zip(parts, executor.map(task, blocks), strict=True):
                result.place(rows, part)
                on_records(rows.stop - rows.start)
        self._settle_best(result)
        n_bad = int((~np.isfinite(result.probability)).sum())
        if n_bad:
            raise GuessError(
                f"{counted(n_bad, 'record')} cannot be evaluated: under these draws the densities "
                "of the guesses are beyond what numbers can hold (values very far from the model, "
                "or very large record weights). Leave them out with records=, or rescale."
            )
        return result

    def _settle_best(self, result: RiskArrays) -> None:
        """Let missing be the best guess where it is more probable than all values together."""
        for axis, grid in enumerate(self.grids):
            if not grid.has_gap:
                continue
            marginal = result.marginals[axis]
            density = np.where(grid.present, marginal, -np.inf)[:, :-1]
            if grid.log_widths is not None:
                density = density * np.exp(-grid.log_widths[:, :-1])
            best = np.where(marginal[:, -1] > 0.5, grid.n_guesses - 1, density.argmax(axis=1))
            result.best[:, axis] = best

    def log_joint(self, row: int) -> FloatArray:
        """Return the log posterior of the evaluated record at `row`.

        It is over the joint grid of the variables that are asked for; where they are some of
        several, the others are summed out.
        """
        whole = replace(self, asked=None, is_joint=True)
        joint = whole._alone(row, keep_joint=True, with_errors=False).joint
        assert joint is not None  # noqa: S101 - it was asked for
        return self._of_asked(joint[0])

    def _of_asked(self, logs: FloatArray) -> FloatArray:
        """Sum out of an array over the joint grid, in logs, what is not asked for."""
        others = tuple(axis for axis in range(len(self.grids)) if axis not in self.axes)
        if not others:
            return np.asarray(logs)
        kept = sorted(self.axes)
        summed = np.asarray(logsumexp(logs, axis=others))
        return summed.transpose([kept.index(axis) for axis in self.axes])

    def log_prior(self, row: int) -> FloatArray:
        """Return the log prior of the evaluated record at `row`, as `log_joint`."""
        evaluator = self._evaluator_of(row)
        return self._of_asked(log_prior(evaluator, self._encoded(row))[0])

    def rows_to_fit(self, result: RiskArrays) -> list[int]:
        """Return the evaluated rows that are unreliable and can be fitted, most at risk first."""
        can = any(
            can_be_fitted(model, estimate)
            for model, estimate in zip(self.synthesizer.models, self.estimates, strict=True)
        )
        if result.errors is None or not can:
            return []
        unreliable = np.flatnonzero(~result.errors.reliable)
        lift = (result.probability / result.prior)[unreliable]
        return [int(row) for row in unreliable[np.argsort(-lift, kind="stable")]]

    def fit_at_guesses(
        self,
        result: RiskArrays,
        rows: Sequence[int],
        release: Sequence[Released],
        executor: Executor,
        on_records: Callable[[int], None] = lambda _: None,
    ) -> Evaluation:
        """Evaluate some records anew, write them into `result`, and return what evaluates them."""
        fitted = dict(self.fitted)
        for row in rows:
            block, models = self._encoded(row), self._models_to_fit(row)
            fitted[row] = tuple(
                fitted_at_guesses(
                    Request(self.synthesizer, k, model.posterior, release, (), executor),
                    estimate,
                    block.models[k],
                    int(self.positions[row]),
                )
                if k in models
                else estimate
                for k, (model, estimate) in enumerate(
                    zip(self.synthesizer.models, self.estimates, strict=True)
                )
            )
            alone = replace(self, fitted=fitted)._alone(
                row, keep_joint=result.joint is not None, with_errors=True
            )
            result.place(slice(row, row + 1), alone)
            on_records(1)
        self._settle_best(result)
        return replace(self, fitted=fitted)

    def seconds_to_fit(self, rows: Sequence[int], release: Sequence[Released]) -> float:
        """Foretell what `fit_at_guesses` takes, by a processor core as they mostly are.

        A fit a cell of each model's table, without the release and with each dataset. It depends on
        what is to be fitted alone, so that what is decided by it is the same on any machine.
        """
        seconds = [self._seconds_a_record(k, release) for k in range(len(self.estimates))]
        return sum(seconds[k] for row in rows for k in self._models_to_fit(row))

    def _seconds_a_record(self, k: int, release: Sequence[Released]) -> float:
        model, n_records = self.synthesizer.models[k], self.synthesizer.n_records
        if not can_be_fitted(model, self.estimates[k]):
            return 0.0
        response = model.regression.response
        n_more = [0, *(len(dataset.columns[response]) for dataset in release)]
        return self._n_cells(k) * sum(seconds_a_fit(model, n_records + more) for more in n_more)

    def _n_cells(self, k: int) -> int:
        axes = (*self.synthesizer.plan.parents(k), k)
        return math.prod(self.shape[axis] for axis in axes)

    def _models_to_fit(self, row: int) -> tuple[int, ...]:
        """Return which models are fitted at a record's guesses: of a wide plan the unreliable."""
        models = range(len(self.estimates))
        if self.is_joint:
            return tuple(models)
        block = self._encoded(row)
        return tuple(k for k in models if not self._is_reliable(k, block.models[k]))

    def _is_reliable(self, k: int, block: Any) -> bool:
        """Tell whether one record's weights in one model can be relied on."""
        estimate = self.estimates[k]
        if not estimate.is_drawn or not estimate.error_sets or not estimate.has_known_error:
            return True  # a fit at each guess would not help
        totals = empty_totals(estimate.error_sets, block)
        estimate.log_table(block, self.shape, totals)
        nothing = np.zeros((1, self._n_cells(k), 2))
        found = estimate.errors(block, self.shape, nothing, None, totals)
        return all(bool(one.are_reliable.all()) for one in found)

    def _encoded(self, row: int) -> EncodedBlock:
        return self.evaluator.encode(self.records(slice(row, row + 1)))

    def _evaluator_of(self, row: int) -> Evaluator:
        """Return what evaluates one record: by its own estimates, if it was fitted."""
        if row not in self.fitted:
            return self.evaluator
        return replace(self.evaluator, estimates=self.fitted[row])

    def _alone(self, row: int, *, keep_joint: bool, with_errors: bool) -> RiskArrays:
        return evaluate(
            self._evaluator_of(row),
            self._encoded(row),
            keep_joint=keep_joint,
            with_errors=with_errors,
        )
