"""The evaluation: guesses, prior and likelihood put together over chunks of records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.chunks import ROWS, chunks
from synrisk.base.errors import GuessError, SyntheticDataError, counted
from synrisk.base.messages import setting
from synrisk.base.workers import Workers
from synrisk.core.likelihood import (
    KernelDraws,
    ModelBlock,
    TermValues,
    add_log_density,
    empty_totals,
    flatten_terms,
    log_joint_paired,
)
from synrisk.core.summary import ErrorArrays, RiskArrays, summarise, summarise_tables
from synrisk.data.schema import Columns
from synrisk.models.design import DesignTerm
from synrisk.risk.estimators.estimates import Exact, Importance, ModelEstimate, relative
from synrisk.risk.guesses import Grid
from synrisk.risk.intruder_prior import FromModel, Prior, joint_present, normalised
from synrisk.risk.mcse import errors_of
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.synthesizer import Synthesizer

MOST_CELLS = 10_000_000  # of one record's joint grid
_MOST_ELEMENTS = 1 << 27  # of one record's arrays over cells and draws: a gigabyte
_BLOCK_CELLS = 1 << 20  # of the joint grids of a block of records: 8 megabytes an array
_LARGE_JOINT = 2_000  # cells; above, marginals by elimination are cheaper than the joint
_LEAST_BLOCK = 256  # records; below, setting up costs more than evaluating


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Everything needed to evaluate any of the chosen records.

    Attributes
    ----------
    synthesizer
        The confidential data, designs and draws.
    estimates
        For each model how its likelihood is estimated.
    paired
        Whether draw h of all models is taken together, as in the paper; then every estimate is
        `Importance`.
    grids
        The guesses, for each synthesized variable.
    positions
        The evaluated records' positions in the confidential data.
    fitted
        For records that were fitted at each guess, their own estimates, by evaluated row.
    """

    synthesizer: Synthesizer
    estimates: tuple[ModelEstimate, ...]
    paired: bool
    grids: tuple[Grid, ...]
    prior: Prior
    positions: IntArray
    fitted: Mapping[int, tuple[ModelEstimate, ...]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the joint grid."""
        return tuple(grid.n_guesses for grid in self.grids)

    def run(
        self,
        workers: Workers,
        *,
        keep_joint: bool,
        with_errors: bool,
        on_records: Callable[[int], None] = lambda _: None,
    ) -> RiskArrays:
        """Evaluate all chosen records, and tell `on_records` how many are done with each block.

        How the records are cut into blocks does not change a bit of the result.
        """
        n_records = len(self.positions)
        cells = math.prod(self.shape)
        if self._is_eliminated and not keep_joint:
            plan = self.synthesizer.plan
            tables = [(*plan.parents(k), k) for k in range(len(self.shape))]
            cells = max(math.prod(self.shape[axis] for axis in axes) for axes in tables)
        size = min(ROWS, max(1, _BLOCK_CELLS // cells))
        size = min(size, max(_LEAST_BLOCK, -(-n_records // workers.n)))
        parts = [slice(i, min(i + size, n_records)) for i in range(0, n_records, size)]
        # What Python does hinders the other threads: where all start at once, it is done before.
        whole = self.model_blocks(slice(0, n_records)) if 1 < len(parts) <= workers.n else None
        result = RiskArrays.empty(
            n_records, self.shape, keep_joint=keep_joint, with_errors=with_errors
        )
        evaluate = partial(
            self.evaluate, keep_joint=keep_joint, with_errors=with_errors, whole=whole
        )
        with workers.open() as executor:
            for rows, part in zip(parts, executor.map(evaluate, parts), strict=True):
                result.place(rows, part)
                on_records(rows.stop - rows.start)
        n_bad = int((~np.isfinite(result.probability)).sum())
        if n_bad:
            raise GuessError(
                f"{counted(n_bad, 'record')} cannot be evaluated: under these draws the densities "
                "of the guesses are beyond what numbers can hold (values very far from the model, "
                "or very large record weights). Leave them out with records=, or rescale."
            )
        return result

    def evaluate(
        self,
        rows: slice,
        *,
        keep_joint: bool,
        with_errors: bool,
        whole: Sequence[ModelBlock] | None = None,
    ) -> RiskArrays:
        """Evaluate the chosen records `rows`; `whole` are the blocks of all, if they were made."""
        blocks = [b.part(rows) for b in whole] if whole else self.model_blocks(rows)
        if not self._is_eliminated:
            return self._evaluate_joint(
                rows, blocks, keep_joint=keep_joint, with_errors=with_errors
            )
        result = self._evaluate_by_elimination(rows, blocks)
        if not keep_joint and not with_errors:
            return result
        # The joint is built for a few records at a time.
        n_records = rows.stop - rows.start
        built = RiskArrays.empty(
            n_records, self.shape, keep_joint=keep_joint, with_errors=with_errors
        )
        size = max(1, _BLOCK_CELLS // math.prod(self.shape))
        for first in range(0, n_records, size):
            part = slice(first, min(first + size, n_records))
            some = slice(rows.start + part.start, rows.start + part.stop)
            one = self._evaluate_joint(
                some,
                [block.part(part) for block in blocks],
                keep_joint=keep_joint,
                with_errors=with_errors,
            )
            built.place(part, one)
        return replace(
            result, log_odds_range=built.log_odds_range, errors=built.errors, joint=built.joint
        )

    @property
    def _is_eliminated(self) -> bool:
        """Whether the joint is a large product of tables, which need not be built."""
        is_large = len(self.shape) > 1 and math.prod(self.shape) > _LARGE_JOINT
        return is_large and not self.paired and self.prior.truth_factor is not None

    def _evaluate_by_elimination(self, rows: slice, blocks: Sequence[ModelBlock]) -> RiskArrays:
        tables = self._log_tables(blocks, self.estimates, [None] * len(blocks))
        for block, table in zip(blocks, tables, strict=True):
            absent = ~self.grids[block.own].present[rows]
            if absent.any():
                shaped = table.reshape(len(table), -1, self.shape[block.own])
                shaped[np.broadcast_to(absent[:, None, :], shaped.shape)] = -np.inf
        n_guesses = np.stack([grid.present[rows].sum(axis=1) for grid in self.grids], axis=1)
        axes = tuple(block.axes for block in blocks)
        factor = self.prior.truth_factor or 1.0
        truth = blocks[0].truth
        result, lost = summarise_tables(tables, axes, truth, self.shape, n_guesses, factor)
        for row in map(int, np.flatnonzero(lost)):
            one = slice(rows.start + row, rows.start + row + 1)
            own = [block.part(slice(row, row + 1)) for block in blocks]
            alone = self._evaluate_joint(one, own, keep_joint=False, with_errors=False)
            result.place(slice(row, row + 1), alone)
        return result

    def _evaluate_joint(
        self, rows: slice, blocks: Sequence[ModelBlock], *, keep_joint: bool, with_errors: bool
    ) -> RiskArrays:
        estimates = self._estimates_of(rows)
        with_errors = with_errors and not self.paired
        drawn = with_errors and not all(isinstance(one, Exact) for one in estimates)
        totals = [
            empty_totals(one.error_sets, block)
            if with_errors and one.error_sets and one.has_known_error
            else None
            for one, block in zip(estimates, blocks, strict=True)
        ]
        tables, axes = self._tables_and_axes(blocks, estimates, totals)
        log_prior = self._log_prior(rows, blocks, estimates)
        truth = blocks[0].truth
        flat_prior = log_prior.reshape(len(log_prior), -1)
        result, extremes = summarise(
            tables, axes, flat_prior, truth, self.shape, keep=keep_joint or drawn, with_ends=drawn
        )
        if not with_errors:
            return result
        errors = ErrorArrays.none(extremes.ranks, len(self.shape))
        if drawn:
            assert result.joint is not None  # noqa: S101 - it was asked for
            errors = errors_of(
                result.joint.reshape(len(truth), -1),
                extremes.ends,
                truth,
                self.shape,
                blocks,
                estimates,
                totals,
                prior_from_draws=isinstance(self.prior, FromModel),
            )
        return replace(result, errors=errors, joint=result.joint if keep_joint else None)

    def log_joint(self, row: int) -> FloatArray:
        """Return the log posterior over the joint grid of the evaluated record at `row`."""
        one = slice(row, row + 1)
        blocks = self.model_blocks(one)
        joint = self._evaluate_joint(one, blocks, keep_joint=True, with_errors=False).joint
        assert joint is not None  # noqa: S101 - it was asked for
        return np.asarray(joint[0])

    def log_prior(self, row: int) -> FloatArray:
        """Return the log prior over the joint grid of the evaluated record at `row`."""
        one = slice(row, row + 1)
        blocks = self.model_blocks(one)
        return np.asarray(self._log_prior(one, blocks, self._estimates_of(one))[0])

    def _estimates_of(self, rows: slice) -> tuple[ModelEstimate, ...]:
        """Return the estimates of the evaluated records `rows`: of one alone, its own if any."""
        alone = rows.stop - rows.start == 1
        return self.fitted.get(rows.start, self.estimates) if alone else self.estimates

    def _log_prior(
        self, rows: slice, blocks: Sequence[ModelBlock], estimates: Sequence[ModelEstimate]
    ) -> FloatArray:
        """Return the log prior of the evaluated records `rows`, ``(record or 1, guess₁, …)``."""
        if not isinstance(self.prior, FromModel):
            return self.prior.log_prior(self.grids, rows)
        n_records = rows.stop - rows.start
        total = np.zeros((n_records, *self.shape))
        for block, estimate, model in zip(blocks, estimates, self.synthesizer.models, strict=True):
            wide = [n if axis in block.axes else 1 for axis, n in enumerate(self.shape)]
            total += estimate.log_predictive(block, self.shape).reshape(n_records, *wide)
            own = [n if axis == block.own else 1 for axis, n in enumerate(self.shape)]
            regression, grid = model.regression, self.grids[block.own]
            values = grid.values[rows]
            measure = regression.distribution.log_base(block.guesses)
            measure = measure + regression.transform.log_derivative(values)
            measure = block.record_weights[:, None] * measure
            if regression.distribution.is_continuous:
                measure = measure + np.log(_widths(values, grid.present[rows]))
            total += measure.reshape(n_records, *own)
        return normalised(total, joint_present(self.grids, rows))

    def _tables_and_axes(
        self,
        blocks: Sequence[ModelBlock],
        estimates: Sequence[ModelEstimate],
        totals: Sequence[FloatArray | None],
    ) -> tuple[list[FloatArray], list[tuple[int, ...]]]:
        """Return log likelihoods whose sum is that over the joint grid, and their axes."""
        if self.paired:
            paired = [one for one in self.estimates if isinstance(one, Importance)]
            log_v = np.sum([one.draws.log_v for one in paired], axis=0)
            log_g = relative(np.sum([one.log_g for one in paired], axis=0), log_v)
            joint = log_joint_paired(blocks, [one.draws for one in paired], log_g, self.shape)
            return [joint], [tuple(range(len(self.shape)))]
        tables = self._log_tables(blocks, estimates, totals)
        return tables, [block.axes for block in blocks]

    def _log_tables(
        self,
        blocks: Sequence[ModelBlock],
        estimates: Sequence[ModelEstimate],
        totals: Sequence[FloatArray | None],
    ) -> list[FloatArray]:
        return [
            estimate.log_table(block, self.shape, of_model)
            for block, estimate, of_model in zip(blocks, estimates, totals, strict=True)
        ]

    def model_blocks(self, rows: slice) -> list[ModelBlock]:
        """Return each model's arrays for the evaluated records `rows`."""
        positions = self.positions[rows]
        plan = self.synthesizer.plan
        columns = {name: values[positions] for name, values in self.synthesizer.columns.items()}
        truth = np.stack([grid.truth[rows] for grid in self.grids], axis=1)
        axis_of = {name: axis for axis, name in enumerate(plan.synthesized)}
        blocks = []
        for k, model in enumerate(self.synthesizer.models):
            terms = [self._term_values(term, columns, rows, axis_of) for term in model.design.terms]
            values, places = flatten_terms(terms, plan.parents(k), self.shape)
            weights = model.record_weights
            blocks.append(
                ModelBlock(
                    k,
                    plan.parents(k),
                    values,
                    places,
                    np.array(
                        model.regression.on_model_scale(self.grids[k].values[rows]), order="C"
                    ),
                    truth,
                    np.ones(len(positions)) if weights is None else weights[positions],
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


def _widths(values: FloatArray, present: BoolArray) -> FloatArray:
    """Return the width of the cell that each guess stands for, up to the midpoints; 1 if absent."""
    order = np.argsort(np.where(present, values, np.inf), axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    n_present = present.sum(axis=1)
    widths = np.ones(values.shape)
    for row, n in enumerate(n_present):
        widths[row, order[row, :n]] = np.gradient(ordered[row, :n])
    return widths


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


def check_size(
    synthesizer: Synthesizer,
    shape: tuple[int, ...],
    n_draws: Sequence[int],
    *,
    paired: bool,
) -> None:
    """Raise if one record's grid cannot be held in memory."""
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


def log_density_of_release(
    model: Model, draws: KernelDraws, release: Sequence[Columns]
) -> FloatArray:
    """Return log g of one model, ``(dataset, draw)``, summed over synthetic rows.

    It is known up to what is the same at every draw. The sum runs over fixed chunks of rows in
    their order, so it does not depend on the workers.
    """
    regression, response = model.regression, model.regression.response
    table = np.zeros((len(release), len(draws.log_v)))
    for number, columns in enumerate(release):
        what = f"Synthetic dataset {number + 1}"
        for chunk in chunks(len(columns[response])):
            part = {name: values[chunk] for name, values in columns.items()}
            y = regression.on_model_scale(part[response])
            matrix = model.design.matrix(part, len(y), what, SyntheticDataError)
            in_chunk = np.zeros(len(draws.log_v))
            add_log_density(draws, y, matrix, np.ones(len(y)), in_chunk)
            table[number] += in_chunk
        if not np.isfinite(table[number]).all():
            raise SyntheticDataError(
                f"{what}: the density of {response!r} is beyond what numbers can hold; are its "
                "values on the scale of the confidential ones?"
            )
    return table
