"""The evaluation of a block of records: guesses, prior and likelihood put together.

`evaluate` is a pure function of what it is given, and holds nothing of other records, so that it
runs alike in this process, in threads, or on another machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.chunks import ROWS
from synrisk.base.kept import called
from synrisk.core.clique_tree import clique_tree
from synrisk.core.summary import (
    ErrorArrays,
    MixedPrior,
    RiskArrays,
    mix_prior,
    summarise,
    summarise_tables,
)
from synrisk.core.table_errors import empty_totals
from synrisk.risk.blocks import Encoder, RecordBlock
from synrisk.risk.by_variable import Tables, evaluate_by_variable
from synrisk.risk.estimators.estimate import Estimate
from synrisk.risk.estimators.paper import Paired
from synrisk.risk.guesses import Grid
from synrisk.risk.intruder_prior import Prior
from synrisk.risk.mcse import Near, errors_of

_BLOCK_CELLS = 1 << 17  # of the joint grids of a block of records: a megabyte an array
_BLOCK_NUMBERS = 1 << 23  # of all tables of a block where the joint is not built: 64 MB
_PARTS = 3  # distributions that are looked at: before, and two after the release
_LARGE_JOINT = 2_000  # cells; above, marginals by elimination are cheaper than the joint


@dataclass(frozen=True, repr=False)
class Evaluator:
    """What evaluates any block of records.

    Attributes
    ----------
    encoders, estimates
        For each model how it sees records, and how its likelihood is estimated.
    paired
        The paper's estimator, in place of a table a model; or None.
    shape
        The shape of the joint grid.
    asked
        The variables that are asked for, by axis; None for all.
    is_joint
        Whether the joint grid is evaluated: else every variable by itself, and all together.
    """

    encoders: tuple[Encoder, ...]
    estimates: tuple[Estimate, ...]
    paired: Paired | None
    shape: tuple[int, ...]
    asked: tuple[int, ...] | None = None
    is_joint: bool = True

    @property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """The axes of each model's table."""
        return tuple(encoder.axes for encoder in self.encoders)

    def encode(self, records: RecordBlock) -> EncodedBlock:
        """Return records as the models see them."""
        return EncodedBlock(records, tuple(one.block(records) for one in self.encoders))

    def eliminates(self, grids: Sequence[Grid], prior: Prior) -> bool:
        """Tell whether the joint is a large product of tables, which need not be built."""
        is_large = len(self.shape) > 1 and math.prod(self.shape) > _LARGE_JOINT
        is_product = self.paired is None and prior.truth_factor is not None
        listed = all(grid.is_pointed and grid.log_widths is None for grid in grids)
        return is_large and is_product and listed

    def block_size(
        self, grids: Sequence[Grid], prior: Prior, *, keep_joint: bool, with_errors: bool
    ) -> int:
        """Return how many records make a block, by the largest table of a record."""
        if not self.is_joint:
            tables = sum(math.prod(self.shape[axis] for axis in own) for own in self.axes)
            drawn = with_errors and any(estimate.is_drawn for estimate in self.estimates)
            n_targets = 2 + len(self.asked or self.shape) if drawn else 1
            numbers = _PARTS * (n_targets * tables + clique_tree(self.axes, self.shape).size)
            return min(ROWS, max(1, _BLOCK_NUMBERS // numbers))
        cells = math.prod(self.shape)
        if not keep_joint and self.eliminates(grids, prior):
            cells = max(math.prod(self.shape[axis] for axis in e.axes) for e in self.encoders)
        return min(ROWS, max(1, _BLOCK_CELLS // cells))


@dataclass(frozen=True, repr=False)
class EncodedBlock:
    """Records, and what each model's estimate needs of them."""

    records: RecordBlock
    models: tuple[Any, ...]

    def part(self, rows: slice) -> EncodedBlock:
        """Return some of the records."""
        return EncodedBlock(self.records.part(rows), tuple(own.part(rows) for own in self.models))


@called("evaluating")
def evaluate(
    evaluator: Evaluator,
    block: RecordBlock | EncodedBlock,
    *,
    keep_joint: bool,
    with_errors: bool,
) -> RiskArrays:
    """Return what is reported of each record of a block.

    Parameters
    ----------
    evaluator
        The models and their estimates.
    block
        The records, encoded or not.
    keep_joint
        Whether to keep the joint posterior.
    with_errors
        Whether to estimate Monte-Carlo errors.
    """
    if isinstance(block, RecordBlock):
        block = evaluator.encode(block)
    if not evaluator.is_joint:
        return _by_variable(evaluator, block, with_errors=with_errors)
    if not evaluator.eliminates(block.records.grids, block.records.prior):
        return _by_joint(evaluator, block, keep_joint=keep_joint, with_errors=with_errors)
    result = _by_elimination(evaluator, block)
    if not keep_joint and not with_errors:
        return result
    # The joint is built for a few records at a time.
    n_records = block.records.n_records
    built = RiskArrays.empty(
        n_records,
        evaluator.shape,
        keep_joint=keep_joint,
        with_errors=with_errors,
        from_models=False,
    )
    size = max(1, _BLOCK_CELLS // math.prod(evaluator.shape))
    for first in range(0, n_records, size):
        part = slice(first, min(first + size, n_records))
        of_part = _by_joint(
            evaluator, block.part(part), keep_joint=keep_joint, with_errors=with_errors
        )
        built.place(part, of_part)
    return replace(
        result, log_odds_range=built.log_odds_range, errors=built.errors, joint=built.joint
    )


def log_prior(evaluator: Evaluator, block: EncodedBlock) -> FloatArray:
    """Return the log prior of a block of records, ``(record or 1, guess₁, …)``."""
    prior = block.records.prior
    if prior.needs_models:
        tables = _log_tables(evaluator, block, [None] * len(block.models))
        return _mixed(evaluator, block, tables, with_model=False).log_prior.reshape(
            -1, *evaluator.shape
        )
    return prior.log_prior(block.records.grids)


def _by_variable(evaluator: Evaluator, block: EncodedBlock, *, with_errors: bool) -> RiskArrays:
    """Evaluate every variable, and all together, without the joint grid."""
    records, estimates = block.records, evaluator.estimates
    totals = _empty_totals(evaluator, block, with_errors=with_errors)
    both = _log_tables(evaluator, block, totals)
    prior, predicted = records.prior, None
    tables = Tables(
        evaluator.axes,
        [likelihood for likelihood, _ in both],
        None,
        records.grids,
        prior.model_share,
        prior.truth_factor or 1.0,
        evaluator.asked or tuple(range(len(evaluator.shape))),
    )
    if prior.needs_models:
        predicted = [
            own + tables.over_cells(encoder.log_measure(of_model, records), k)
            for k, (encoder, of_model, (_, own)) in enumerate(
                zip(evaluator.encoders, block.models, both, strict=True)
            )
            if own is not None
        ]
    return evaluate_by_variable(
        replace(tables, predicted=predicted),
        block.models,
        estimates,
        totals,
        with_errors=with_errors,
    )


def _empty_totals(
    evaluator: Evaluator, block: EncodedBlock, *, with_errors: bool
) -> list[FloatArray | None]:
    """Return what the sums of the models' weights fill, where their errors are wanted."""
    return [
        empty_totals(estimate.error_sets, own)
        if with_errors and estimate.error_sets and estimate.has_known_error
        else None
        for estimate, own in zip(evaluator.estimates, block.models, strict=True)
    ]


def _mixed(
    evaluator: Evaluator,
    block: EncodedBlock,
    tables: Sequence[tuple[FloatArray, FloatArray | None]],
    *,
    with_model: bool,
) -> MixedPrior:
    """Return the prior that is mostly what the models predict."""
    records = block.records
    measures = [
        encoder.log_measure(own, records)
        for own, encoder in zip(block.models, evaluator.encoders, strict=True)
    ]
    order = np.argsort([encoder.axes[-1] for encoder in evaluator.encoders])
    return mix_prior(
        [predicted for _, predicted in tables if predicted is not None],
        [likelihood for likelihood, _ in tables],
        [encoder.axes for encoder in evaluator.encoders],
        np.concatenate([measures[k] for k in order], axis=1),
        _side_by_side([_widths_of(grid) for grid in records.grids]),
        _side_by_side([~grid.present for grid in records.grids]),
        evaluator.shape,
        records.prior.model_share,
        with_model=with_model,
    )


def _widths_of(grid: Grid) -> FloatArray:
    return np.zeros(grid.values.shape) if grid.log_widths is None else grid.log_widths


def _side_by_side(tables: Sequence[Any]) -> FloatArray:
    return np.concatenate(tables, axis=1).astype(np.float64)


def near_the_truth(records: RecordBlock) -> Near:
    """Return where the truth of records is, and which guesses are near it."""
    grids, none = records.grids, np.zeros((0, 0))
    pointed = all(grid.is_pointed for grid in grids)
    listed = all(grid.log_widths is None for grid in grids)
    return Near(
        np.ascontiguousarray(records.truth),
        none if pointed else _side_by_side([~grid.near for grid in grids]),
        none if listed else _side_by_side([_widths_of(grid) for grid in grids]),
    )


def _log_tables(
    evaluator: Evaluator, block: EncodedBlock, totals: Sequence[FloatArray | None]
) -> list[tuple[FloatArray, FloatArray | None]]:
    """Return each model's log likelihood, and what it predicts where the prior is made of that."""
    models = zip(block.models, evaluator.estimates, totals, strict=True)
    if block.records.prior.needs_models:
        return [one.log_both(own, evaluator.shape, to) for own, one, to in models]
    return [(one.log_table(own, evaluator.shape, to), None) for own, one, to in models]


def _by_elimination(evaluator: Evaluator, block: EncodedBlock) -> RiskArrays:
    """Evaluate a large product of tables without building it."""
    grids, shape = block.records.grids, evaluator.shape
    tables = [table for table, _ in _log_tables(evaluator, block, [None] * len(block.models))]
    axes = tuple(encoder.axes for encoder in evaluator.encoders)
    for own, table in zip(axes, tables, strict=True):
        absent = ~grids[own[-1]].present
        if absent.any():
            shaped = table.reshape(len(table), -1, shape[own[-1]])
            shaped[np.broadcast_to(absent[:, None, :], shaped.shape)] = -np.inf
    n_guesses = np.stack([grid.present.sum(axis=1) for grid in grids], axis=1)
    factor = block.records.prior.truth_factor or 1.0
    result, lost = summarise_tables(tables, axes, block.records.truth, shape, n_guesses, factor)
    for row in map(int, np.flatnonzero(lost)):
        alone = slice(row, row + 1)
        found = _by_joint(evaluator, block.part(alone), keep_joint=False, with_errors=False)
        result.place(alone, found)
    return result


def _by_joint(
    evaluator: Evaluator, block: EncodedBlock, *, keep_joint: bool, with_errors: bool
) -> RiskArrays:
    """Evaluate the joint posterior cell by cell."""
    estimates, shape, truth = evaluator.estimates, evaluator.shape, block.records.truth
    with_errors = with_errors and evaluator.paired is None
    drawn = with_errors and any(estimate.is_drawn for estimate in estimates)
    totals = _empty_totals(evaluator, block, with_errors=with_errors)
    near, from_models = near_the_truth(block.records), block.records.prior.needs_models
    axes: list[tuple[int, ...]]
    mixed = None
    if evaluator.paired is not None:
        tables, axes = [evaluator.paired.log_joint(block.models, shape)], [tuple(range(len(shape)))]
    else:
        both = _log_tables(evaluator, block, totals)
        tables, axes = [table for table, _ in both], [one.axes for one in evaluator.encoders]
        if from_models:
            mixed = _mixed(evaluator, block, both, with_model=drawn)
    prior = block.records.prior.log_prior(block.records.grids) if mixed is None else mixed.log_prior
    result, extremes = summarise(
        tables,
        axes,
        prior.reshape(len(prior), -1),
        truth,
        shape,
        missed=near.missed,
        widths=near.widths,
        keep=keep_joint or drawn,
        with_ends=drawn,
    )
    if mixed is not None:
        result = replace(result, likely_range=mixed.likely_range)
    if not with_errors:
        return result
    errors = ErrorArrays.none(extremes.ranks, len(shape), from_models=mixed is not None)
    if drawn:
        assert result.joint is not None  # noqa: S101 - it was asked for
        errors = errors_of(
            result.joint.reshape(len(truth), -1),
            extremes.ends,
            near,
            shape,
            axes,
            block.models,
            estimates,
            totals,
            mixed,
            block.records.prior.model_share,
        )
    return replace(result, errors=errors, joint=result.joint if keep_joint else None)
