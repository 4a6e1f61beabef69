"""An evaluation of many records: the map over their blocks, and one record asked for again."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import GuessError, counted
from synrisk.base.messages import setting
from synrisk.base.workers import Executor, Workers
from synrisk.core.summary import RiskArrays
from synrisk.risk.blocks import RecordBlock, RegressionEncoder
from synrisk.risk.estimators.at_guesses import can_be_fitted, fitted_at_guesses
from synrisk.risk.estimators.estimate import Estimate, Request
from synrisk.risk.estimators.paper import Paired
from synrisk.risk.evaluate_block import EncodedBlock, Evaluator, evaluate, log_prior
from synrisk.risk.guesses import Grid
from synrisk.risk.intruder_prior import Prior
from synrisk.risk.question import Question
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

MOST_CELLS = 2_000_000  # of one record's joint grid
_MOST_ELEMENTS = 1 << 25  # of one record's arrays over cells and draws: a quarter gigabyte each
_COPIES = 6  # of the guesses of all records: values, what they stand for, posteriors
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
    """

    synthesizer: Synthesizer
    estimates: tuple[Estimate, ...]
    paired: Paired | None
    grids: tuple[Grid, ...]
    prior: Prior
    positions: IntArray
    fitted: Mapping[int, tuple[Estimate, ...]] = field(default_factory=dict)
    question: Question | None = None

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
        return Evaluator(encoders, self.estimates, self.paired, self.shape)

    @cached_property
    def _is_everybody(self) -> bool:
        return np.array_equal(self.positions, np.arange(self.synthesizer.n_records))

    def records(self, rows: slice) -> RecordBlock:
        """Return the evaluated records `rows`."""
        at = rows if self._is_everybody else self.positions[rows]  # a slice copies nothing
        return RecordBlock(
            {name: values[at] for name, values in self.synthesizer.columns.items()},
            {
                model.regression.response: model.record_weights[at]
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
        size = evaluator.block_size(self.grids, self.prior, keep_joint=keep_joint)
        size = min(size, max(_LEAST_BLOCK, -(-n_records // workers.n)))
        parts = [slice(i, min(i + size, n_records)) for i in range(0, n_records, size)]
        result = RiskArrays.empty(
            n_records,
            self.shape,
            keep_joint=keep_joint,
            with_errors=with_errors,
            from_models=self.prior.needs_models,
        )
        task = partial(evaluate, evaluator, keep_joint=keep_joint, with_errors=with_errors)
        blocks: Sequence[RecordBlock | EncodedBlock]
        if 1 < len(parts) <= workers.n:
            # What Python does hinders other threads: where all start at once, it is done before.
            whole = evaluator.encode(self.records(slice(0, n_records)))
            blocks = [whole.part(rows) for rows in parts]
        else:
            blocks = [self.records(rows) for rows in parts]
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
        """Return the log posterior over the joint grid of the evaluated record at `row`."""
        joint = self._alone(row, keep_joint=True, with_errors=False).joint
        assert joint is not None  # noqa: S101 - it was asked for
        return np.asarray(joint[0])

    def log_prior(self, row: int) -> FloatArray:
        """Return the log prior over the joint grid of the evaluated record at `row`."""
        evaluator = self._evaluator_of(row)
        return np.asarray(log_prior(evaluator, self._encoded(row))[0])

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
            block = self._encoded(row)
            fitted[row] = tuple(
                fitted_at_guesses(
                    Request(self.synthesizer, k, model.posterior, release, self.grids, executor),
                    estimate,
                    block.models[k],
                    int(self.positions[row]),
                )
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


def n_elements(
    synthesizer: Synthesizer,
    shape: tuple[int, ...],
    n_draws: Sequence[int],
    *,
    paired: bool,
) -> int:
    """Return how many numbers the largest array of one record holds."""
    sizes = [math.prod(shape)]
    for k, model in enumerate(synthesizer.models):
        n_predictors = int(model.posterior.coefficients.shape[2])
        parents = math.prod(shape[axis] for axis in synthesizer.plan.parents(k))
        sizes += [parents * n_draws[k] * n_predictors, shape[k] * n_draws[k]]
    if paired:
        sizes.append(math.prod(shape[:-1]) * n_draws[0])
    return max(sizes)


def physical_memory() -> float:
    """Return how many bytes this machine has; infinity where that cannot be known."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on Windows
        return math.inf


def check_size(
    synthesizer: Synthesizer,
    n_records: int,
    shape: tuple[int, ...],
    n_draws: Sequence[int],
    *,
    paired: bool,
) -> None:
    """Raise if one record's grid, or the guesses of all, cannot be held in memory."""
    cells = math.prod(shape)
    elements = n_elements(synthesizer, shape, n_draws, paired=paired)
    if cells > MOST_CELLS or elements > _MOST_ELEMENTS:
        sizes = " × ".join(str(n) for n in shape)
        raise GuessError(
            f"The grid has {cells:,} cells a record ({sizes}), which with the draws makes "
            f"{elements:,} numbers at once; at most {MOST_CELLS:,} cells and {_MOST_ELEMENTS:,} "
            "numbers are possible. Use fewer guesses for some variables "
            f"({setting('guesses', 5, of='x')}), fewer draws ({setting('n_draws')}), or "
            f"{setting('estimator', 'importance')}.",
            about=("risk", "guesses"),
        )
    n_bytes = _COPIES * 8 * n_records * sum(shape)
    if n_bytes > physical_memory():
        most = int(physical_memory() / (_COPIES * 8 * n_records))
        raise GuessError(
            f"{sum(shape):,} guesses for each of {n_records:,} records take about "
            f"{n_bytes / 2**30:,.0f} GiB, more than this machine has; {most:,} of all variables "
            f"together are possible. Use fewer ({setting('guesses', 11)}).",
            about=("risk", "guesses"),
        )
