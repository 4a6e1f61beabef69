"""How sure the numbers are: Monte-Carlo errors of a block of records (METHOD §5).

Models are independent, so their squared errors add. A probability's derivative in the log
likelihood of a model's cell is known once the posterior over the joint grid is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.core.likelihood import cells_within
from synrisk.core.ranks import TIE
from synrisk.core.summary import ErrorArrays, MixedPrior
from synrisk.risk.estimators.estimate import Estimate

_CONFIDENCE = 1.96
N_KINDS = 3  # of targets: posterior, prior, and what the release adds


def errors_of(
    log_posterior: FloatArray,
    ends: IntArray,
    near: Near,
    shape: tuple[int, ...],
    axes_of_models: Sequence[tuple[int, ...]],
    blocks: Sequence[Any],
    estimates: Sequence[Estimate],
    totals: Sequence[FloatArray | None],
    prior: MixedPrior | None,
    share: float,
) -> ErrorArrays:
    """Return the Monte-Carlo errors of a block of records.

    Parameters
    ----------
    log_posterior
        Over the joint grid, ``(record, cell)``.
    ends
        The cells with the smallest and the largest log likelihood, ``(record, 2)``.
    near
        Where the truth is, and what is near it.
    shape
        The shape of the joint grid.
    axes_of_models, blocks, estimates, totals
        The models, and the sums of their draws' weights.
    prior, share
        The prior, where it is that share of what the models predict; else None.
    """
    n_records, n_targets = len(near.truth), 1 + len(shape)
    joint = _Joint(log_posterior, near, shape)

    def within(model: int) -> TargetDerivatives:
        own = axes_of_models[model]
        if prior is None:
            return TargetDerivatives(joint.within(own), None)
        return joint.derivatives(own, prior, share)

    n_kinds = 1 if prior is None else N_KINDS
    summed = errors_of_models(
        within, n_targets * n_kinds, n_records, shape, blocks, estimates, totals
    )
    variance, ess, khat, reliable = summed.variance, summed.ess, summed.khat, summed.reliable
    axes = [axes_of_models[model] for model in summed.models]
    of_posterior, of_likelihood = summed.of_posterior, summed.of_likelihood
    low, high = joint.rank_bounds(axes, of_posterior)
    unknown = np.isnan(variance[:, 0])
    reliable &= ~unknown
    low[unknown], high[unknown] = np.nan, np.nan

    def of_range(cells: IntArray) -> FloatArray:
        found = np.zeros(n_records)
        if axes:
            found = joint.errors_at(cells, axes, of_likelihood).sum(axis=1)
        found[unknown] = np.nan
        return found

    sds = np.sqrt(variance)
    errors = ErrorArrays(sds[:, :n_targets], low, high, of_range(ends), ess, khat, reliable)
    if prior is None:
        return errors
    return replace(
        errors,
        prior_mcse=sds[:, n_targets : 2 * n_targets],
        gain_mcse=sds[:, 2 * n_targets :],
        likely_range_mcse=of_range(prior.ends),
    )


@dataclass(frozen=True, repr=False)
class TargetDerivatives:
    """How targets change with the logs of a model's cells.

    Attributes
    ----------
    within, by_prior
        As `Estimate.errors` takes them.
    targets
        Which targets these are of; None for all. The others do not change.
    changes
        For which records these do, ``(record, target)``; None for all.
    """

    within: FloatArray
    by_prior: FloatArray | None
    targets: IntArray | None = None
    changes: BoolArray | None = None


@dataclass(frozen=True, repr=False)
class SummedErrors:
    """What the models' errors add up to.

    Attributes
    ----------
    variance
        Of each target, ``(record, target)``.
    ess, khat, reliable
        As in `ErrorArrays`.
    models
        Those whose draws have a known error, once for each set of draws.
    of_posterior, of_likelihood
        Of these the variances of the logs of cells against the truth's, ``(record, cell)``.
    """

    variance: FloatArray
    ess: FloatArray
    khat: FloatArray
    reliable: BoolArray
    models: list[int]
    of_posterior: list[FloatArray]
    of_likelihood: list[FloatArray]


def errors_of_models(
    derivatives: Callable[[int], TargetDerivatives],
    n_targets: int,
    n_records: int,
    shape: tuple[int, ...],
    blocks: Sequence[Any],
    estimates: Sequence[Estimate],
    totals: Sequence[FloatArray | None],
) -> SummedErrors:
    """Add up the squared errors of targets over models, by their derivatives."""
    found = SummedErrors(
        np.zeros((n_records, n_targets)),
        np.full(n_records, np.inf),
        np.full(n_records, np.nan),
        np.ones(n_records, dtype=bool),
        [],
        [],
        [],
    )
    for model, (block, estimate, sums) in enumerate(zip(blocks, estimates, totals, strict=True)):
        found.reliable[:] &= estimate.has_known_error and estimate.reliable
        if not estimate.is_drawn:
            continue
        if not estimate.has_known_error:
            # Whatever was worked out would tend to 0 as one draw dominates.
            found.variance[:] = np.nan
            _take_worse(found.ess, found.khat, *estimate.worst_weights())
            continue
        given = derivatives(model)
        targets = slice(None) if given.targets is None else given.targets
        for one in estimate.errors(block, shape, given.within, given.by_prior, sums):
            table = one.table
            changes = True if given.changes is None else given.changes
            found.variance[:, targets] += np.where(changes, table.variance, 0.0)
            found.models.append(model)
            both = table.variance_with_prior
            found.of_posterior.append(table.variance_from_truth if both is None else both)
            found.of_likelihood.append(table.variance_from_truth)
            _take_worse(found.ess, found.khat, table.ess, table.khat)
            found.reliable[:] &= one.are_reliable
    return found


@dataclass(frozen=True, repr=False)
class Near:
    """Where the truth is on every axis, what is near it, and what guesses stand for.

    Attributes
    ----------
    truth
        ``(record, axis)``.
    missed, widths
        1 where a guess is not near, and logs of what guesses stand for, ``(record, guess of any
        axis)``; ``(0, 0)`` where the truth alone is near, and each guess stands for itself.
    """

    truth: IntArray
    missed: FloatArray
    widths: FloatArray

    def log_measure(self, shape: tuple[int, ...]) -> FloatArray:
        """Return the log of what each cell stands for, ``(record, cell)``."""
        starts = np.cumsum([0, *shape])
        total = np.zeros((len(self.truth), math.prod(shape)))
        for axis in range(len(shape)):
            total += _over_cells(self.widths[:, starts[axis] : starts[axis + 1]], axis, shape)
        return total


def _over_cells(values: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Return what belongs to the guesses of an axis for every cell, ``(record, cell)``."""
    wide = [len(values), *(size if k == axis else 1 for k, size in enumerate(shape))]
    return np.broadcast_to(values.reshape(wide), (len(values), *shape)).reshape(len(values), -1)


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
    near: Near
    shape: tuple[int, ...]

    @property
    def true_cell(self) -> IntArray:
        truth = tuple(self.near.truth.T)
        return np.asarray(np.ravel_multi_index(truth, self.shape), dtype=np.int64)

    def cells_of(self, axes: tuple[int, ...]) -> IntArray:
        """Return for each cell of the joint grid its cell in the table over `axes`."""
        return cells_within(tuple(range(len(self.shape))), axes, self.shape)

    def within(self, axes: tuple[int, ...]) -> FloatArray:
        """Return the probability of each cell of a model's table, ``(record, cell, 1 + target)``.

        First of all that is in it, then of what lies within each target: all variables near the
        truth, and each of them.
        """
        from synrisk.core.kernels import target_probabilities_kernel

        cells = self._placed(axes)
        out = np.zeros((len(self.near.truth), self._n_cells(axes), 1, 2 + len(self.shape)))
        target_probabilities_kernel()(self.log_posterior, *cells, out)
        return out[:, :, 0]

    def derivatives(
        self, axes: tuple[int, ...], prior: MixedPrior, share: float
    ) -> TargetDerivatives:
        """Return how targets change with the logs of a model's cells, and of what it predicts.

        The posterior is that of a prior s·p + (1 − s)·u with p normalised, so its log changes by
        r = s·p/(s·p + (1 − s)·u) times that of p, less what normalises p. Targets are the
        posterior, the prior, and the difference: each of all variables and of every one. Zeros
        stand before them.
        """
        from synrisk.core.kernels import target_derivatives_kernel

        n_targets = N_KINDS * (1 + len(self.shape))
        own = (len(self.near.truth), self._n_cells(axes), 1 + n_targets)
        found = TargetDerivatives(np.empty(own), np.empty(own))
        target_derivatives_kernel()(
            self.log_posterior,
            prior.model,
            prior.log_prior,
            share,
            *self._placed(axes),
            found.within,
            found.by_prior,
        )
        return found

    def _n_cells(self, axes: tuple[int, ...]) -> int:
        return math.prod(self.shape[axis] for axis in axes)

    def _placed(self, axes: tuple[int, ...]) -> tuple[Any, ...]:
        """Return what kernels take of the truth and of where cells lie in a model's table."""
        return (
            np.ascontiguousarray(self.near.truth),
            self.near.missed,
            np.array(self.shape),
            self.cells_of(axes),
        )

    def rank_bounds(
        self, axes: Sequence[tuple[int, ...]], variance_from_truth: Sequence[FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest rank of the truth that are left open."""
        from synrisk.core.kernels import rank_bounds_kernel

        bounds = np.empty((len(self.near.truth), 2))
        flat, places = self._side_by_side(axes, variance_from_truth)
        log_density = self.log_posterior
        if len(self.near.widths):
            log_density = log_density - self.near.log_measure(self.shape)
        rank_bounds_kernel()(log_density, self.true_cell, flat, places, _CONFIDENCE, TIE, bounds)
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
