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
from synrisk.core.summary import ErrorArrays, RiskArrays, summarise, summarise_tables
from synrisk.core.table_errors import empty_totals
from synrisk.risk.blocks import Encoder, RecordBlock
from synrisk.risk.estimators.estimate import Estimate
from synrisk.risk.estimators.paper import Paired
from synrisk.risk.mcse import errors_of

_BLOCK_CELLS = 1 << 20  # of the joint grids of a block of records: 8 megabytes an array
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
    """

    encoders: tuple[Encoder, ...]
    estimates: tuple[Estimate, ...]
    paired: Paired | None
    shape: tuple[int, ...]

    def encode(self, records: RecordBlock) -> EncodedBlock:
        """Return records as the models see them."""
        return EncodedBlock(records, tuple(one.block(records) for one in self.encoders))

    def eliminates(self, truth_factor: float | None) -> bool:
        """Tell whether the joint is a large product of tables, which need not be built."""
        is_large = len(self.shape) > 1 and math.prod(self.shape) > _LARGE_JOINT
        return is_large and self.paired is None and truth_factor is not None

    def block_size(self, truth_factor: float | None, *, keep_joint: bool) -> int:
        """Return how many records make a block, by the largest table of a record."""
        cells = math.prod(self.shape)
        if not keep_joint and self.eliminates(truth_factor):
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
    if not evaluator.eliminates(block.records.prior.truth_factor):
        return _by_joint(evaluator, block, keep_joint=keep_joint, with_errors=with_errors)
    result = _by_elimination(evaluator, block)
    if not keep_joint and not with_errors:
        return result
    # The joint is built for a few records at a time.
    n_records = block.records.n_records
    built = RiskArrays.empty(
        n_records, evaluator.shape, keep_joint=keep_joint, with_errors=with_errors
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
    records, shape = block.records, evaluator.shape

    def log_predictive() -> FloatArray:
        total = np.zeros((records.n_records, *shape))
        for own, estimate, encoder in zip(
            block.models, evaluator.estimates, evaluator.encoders, strict=True
        ):
            table = estimate.log_predictive(own, shape)
            total += _broadcastable(table, encoder.axes, shape)
            total += _broadcastable(encoder.log_measure(own, records), encoder.axes[-1:], shape)
        return total

    return records.prior.log_prior(records.grids, log_predictive)


def _broadcastable(table: FloatArray, axes: tuple[int, ...], shape: tuple[int, ...]) -> FloatArray:
    """Return a table over some axes so that it can be added to one over all."""
    sizes = [n if axis in axes else 1 for axis, n in enumerate(shape)]
    return table.reshape(len(table), *sizes)


def _log_tables(
    evaluator: Evaluator, block: EncodedBlock, totals: Sequence[FloatArray | None]
) -> list[FloatArray]:
    return [
        estimate.log_table(own, evaluator.shape, of_model)
        for own, estimate, of_model in zip(block.models, evaluator.estimates, totals, strict=True)
    ]


def _by_elimination(evaluator: Evaluator, block: EncodedBlock) -> RiskArrays:
    """Evaluate a large product of tables without building it."""
    grids, shape = block.records.grids, evaluator.shape
    tables = _log_tables(evaluator, block, [None] * len(block.models))
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
    totals = [
        empty_totals(estimate.error_sets, own)
        if with_errors and estimate.error_sets and estimate.has_known_error
        else None
        for estimate, own in zip(estimates, block.models, strict=True)
    ]
    axes: list[tuple[int, ...]]
    if evaluator.paired is not None:
        tables, axes = [evaluator.paired.log_joint(block.models, shape)], [tuple(range(len(shape)))]
    else:
        tables = _log_tables(evaluator, block, totals)
        axes = [encoder.axes for encoder in evaluator.encoders]
    prior = log_prior(evaluator, block)
    result, extremes = summarise(
        tables,
        axes,
        prior.reshape(len(prior), -1),
        truth,
        shape,
        keep=keep_joint or drawn,
        with_ends=drawn,
    )
    if not with_errors:
        return result
    errors = ErrorArrays.none(extremes.ranks, len(shape))
    if drawn:
        assert result.joint is not None  # noqa: S101 - it was asked for
        errors = errors_of(
            result.joint.reshape(len(truth), -1),
            extremes.ends,
            truth,
            shape,
            axes,
            block.models,
            estimates,
            totals,
            prior_from_draws=block.records.prior.needs_models,
        )
    return replace(result, errors=errors, joint=result.joint if keep_joint else None)
