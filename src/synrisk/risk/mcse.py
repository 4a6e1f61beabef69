"""How sure the numbers are: Monte-Carlo errors of a block of records (METHOD §5).

Models are independent, so their squared errors add. A probability's derivative in the log
likelihood of a model's cell is known once the posterior over the joint grid is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.core.likelihood import cells_within
from synrisk.core.summary import TIE, ErrorArrays
from synrisk.fitting.psis import are_reliable
from synrisk.risk.estimators.estimate import Estimate

_CONFIDENCE = 1.96


def errors_of(
    log_posterior: FloatArray,
    ends: IntArray,
    truth: IntArray,
    shape: tuple[int, ...],
    axes_of_models: Sequence[tuple[int, ...]],
    blocks: Sequence[Any],
    estimates: Sequence[Estimate],
    totals: Sequence[FloatArray | None],
    *,
    prior_from_draws: bool,
) -> ErrorArrays:
    """Return the Monte-Carlo errors of a block of records.

    Parameters
    ----------
    log_posterior
        Over the joint grid, ``(record, cell)``.
    ends
        The cells with the smallest and the largest log likelihood, ``(record, 2)``.
    truth
        The index of the truth on every axis, ``(record, axis)``.
    shape
        The shape of the joint grid.
    axes_of_models, blocks, estimates, totals
        The models, and the sums of their draws' weights.
    prior_from_draws
        Whether the prior is the models' predictive density.
    """
    n_records = len(truth)
    joint = _Joint(log_posterior, np.ascontiguousarray(truth), shape)
    variance = np.zeros((n_records, 1 + len(shape)))
    ess, khat = np.full(n_records, np.inf), np.full(n_records, np.nan)
    reliable = np.ones(n_records, dtype=bool)
    axes, of_posterior, of_likelihood = [], [], []
    for own, block, estimate, sums in zip(axes_of_models, blocks, estimates, totals, strict=True):
        reliable &= estimate.has_known_error and estimate.reliable
        if not estimate.is_drawn:
            continue
        if not estimate.has_known_error:
            # Whatever was worked out would tend to 0 as one draw dominates.
            variance += np.nan
            _take_worse(ess, khat, *estimate.worst_weights())
            continue
        for found in estimate.errors(block, shape, joint.within(own), sums):
            of_model = found.with_prior() if prior_from_draws else found.alone
            variance += of_model.variance
            axes.append(own)
            of_posterior.append(of_model.variance_from_truth)
            of_likelihood.append(found.alone.variance_from_truth)
            _take_worse(ess, khat, found.alone.ess, found.alone.khat)
            reliable &= are_reliable(found.alone.khat, found.alone.ess, found.n_draws)
    low, high = joint.rank_bounds(axes, of_posterior)
    range_mcse = np.zeros(n_records)
    if axes:
        range_mcse = joint.errors_at(ends, axes, of_likelihood).sum(axis=1)
    unknown = np.isnan(variance[:, 0])
    reliable &= ~unknown
    low[unknown], high[unknown], range_mcse[unknown] = np.nan, np.nan, np.nan
    return ErrorArrays(np.sqrt(variance), low, high, range_mcse, ess, khat, reliable)


def _take_worse(
    ess: FloatArray, khat: FloatArray, of_model: FloatArray, its_khat: FloatArray
) -> None:
    """Put the effective number of a model's draws, and their k̂, where it is smaller."""
    worse = of_model < ess
    ess[worse] = np.broadcast_to(of_model, ess.shape)[worse]
    khat[worse] = np.broadcast_to(its_khat, ess.shape)[worse]


@dataclass(frozen=True, repr=False)
class _Joint:
    """The posterior over the joint grid, and how models' tables lie in it."""

    log_posterior: FloatArray
    truth: IntArray
    shape: tuple[int, ...]

    @property
    def true_cell(self) -> IntArray:
        return np.asarray(np.ravel_multi_index(tuple(self.truth.T), self.shape), dtype=np.int64)

    def cells_of(self, axes: tuple[int, ...]) -> IntArray:
        """Return for each cell of the joint grid its cell in the table over `axes`."""
        return cells_within(tuple(range(len(self.shape))), axes, self.shape)

    def within(self, axes: tuple[int, ...]) -> FloatArray:
        """Return the probability of each cell of a model's table, ``(record, cell, 1 + target)``.

        First of all that is in it, then of what lies within each target: the true cell of the joint
        grid, and each variable's true value.
        """
        from synrisk.core.kernels import target_probabilities_kernel

        n_axes = len(self.shape)
        n_cells = math.prod(self.shape[axis] for axis in axes)
        out = np.zeros((len(self.truth), n_cells, 2 + n_axes))
        sizes = np.array(self.shape)
        target_probabilities_kernel()(
            self.log_posterior, self.true_cell, self.truth, sizes, self.cells_of(axes), out
        )
        return out

    def rank_bounds(
        self, axes: Sequence[tuple[int, ...]], variance_from_truth: Sequence[FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest rank of the truth that are left open."""
        from synrisk.core.kernels import rank_bounds_kernel

        bounds = np.empty((len(self.truth), 2))
        flat, places = self._side_by_side(axes, variance_from_truth)
        rank_bounds_kernel()(
            self.log_posterior, self.true_cell, flat, places, _CONFIDENCE, TIE, bounds
        )
        return np.ascontiguousarray(bounds[:, 0]), np.ascontiguousarray(bounds[:, 1])

    def errors_at(
        self,
        cells: IntArray,
        axes: Sequence[tuple[int, ...]],
        variance_from_truth: Sequence[FloatArray],
    ) -> FloatArray:
        """Return the standard errors of log likelihoods against the truth's at some cells."""
        flat, places = self._side_by_side(axes, variance_from_truth)
        rows = np.arange(len(cells))[:, None]
        return np.sqrt(sum((flat[rows, place[cells]] for place in places), np.zeros(cells.shape)))

    def _side_by_side(
        self, axes: Sequence[tuple[int, ...]], variance_from_truth: Sequence[FloatArray]
    ) -> tuple[FloatArray, IntArray]:
        """Return the models' variances side by side, and where each joint cell finds its own."""
        n_records, n_cells = self.log_posterior.shape
        if not variance_from_truth:
            return np.zeros((n_records, 0)), np.zeros((0, n_cells), dtype=np.int64)
        starts = np.cumsum([0, *(table.shape[1] for table in variance_from_truth)])
        places = [start + self.cells_of(own) for start, own in zip(starts, axes, strict=False)]
        return np.concatenate(variance_from_truth, axis=1), np.stack(places)
