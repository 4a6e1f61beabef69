"""Large joint grids that are products of tables: what is reported, without building the joint.

Marginals come by eliminating one variable after the other; the cost is that of the tables, not of
their product. The rank counts cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.core.likelihood import cells_within

LOST = 1e-250  # below this a sum of products may have lost terms


@dataclass(frozen=True, repr=False)
class Elimination:
    """The steps that lead from tables to the marginal of every variable.

    A step multiplies factors, sums over the guesses of one variable, and leaves a factor over the
    others. Factors lie in one buffer: the tables, then the steps' results, then the marginals.
    """

    steps: IntArray
    factors: IntArray
    index: IntArray
    size: int


@lru_cache(maxsize=32)
def plan_elimination(tables: tuple[tuple[int, ...], ...], shape: tuple[int, ...]) -> Elimination:
    """Plan the marginals of every variable; `tables` are the axes of each table."""
    sizes = [_n_cells(axes, shape) for axes in tables]
    starts = [0, *np.cumsum(sizes).tolist()]
    maker = _Maker(shape, int(starts[-1]))
    ends = []
    for target in range(len(shape)):
        factors = list(zip(tables, starts[:-1], strict=True))
        for variable in reversed(range(len(shape))):
            if variable != target:
                factors = maker.eliminate(factors, variable)
        ends.append(factors)
    for target, factors in enumerate(ends):  # the marginals come last, side by side
        maker.multiply(factors, (target,), None)
    return maker.finish()


class _Maker:
    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        self._shape, self._size = shape, size
        self._steps: list[list[int]] = []
        self._factors: list[list[int]] = []
        self._index: list[IntArray] = []
        self._n_index = 0

    def eliminate(
        self, factors: list[tuple[tuple[int, ...], int]], variable: int
    ) -> list[tuple[tuple[int, ...], int]]:
        """Sum over a variable; return the factors that are left."""
        involved = [factor for factor in factors if variable in factor[0]]
        left = [factor for factor in factors if variable not in factor[0]]
        axes = tuple(sorted({a for own, _ in involved for a in own} - {variable}))
        return [*left, (axes, self.multiply(involved, axes, variable))]

    def multiply(
        self,
        factors: Sequence[tuple[tuple[int, ...], int]],
        axes: tuple[int, ...],
        summed: int | None,
    ) -> int:
        """Add a step, and return where its result begins."""
        over = axes if summed is None else (*axes, summed)
        first = len(self._factors)
        for own, start in factors:
            self._factors.append([start, self._n_index])
            self._index.append(cells_within(over, own, self._shape))
            self._n_index += len(self._index[-1])
        out, n_out = self._size, _n_cells(axes, self._shape)
        n_summed = 1 if summed is None else self._shape[summed]
        self._steps.append([out, n_out, n_summed, first, len(factors)])
        self._size += n_out
        return out

    def finish(self) -> Elimination:
        return Elimination(
            np.array(self._steps, dtype=np.int64),
            np.array(self._factors, dtype=np.int64),
            np.concatenate(self._index),
            self._size,
        )


def _n_cells(axes: Sequence[int], shape: tuple[int, ...]) -> int:
    return int(np.prod([shape[axis] for axis in axes], dtype=np.int64))


def marginals_and_counts(
    tables: Sequence[FloatArray],
    axes: tuple[tuple[int, ...], ...],
    truth: IntArray,
    shape: tuple[int, ...],
    log_truth_factor: float,
    tie: float,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return unnormalised marginals, the truth's share, and the other cells above and tied with it.

    Parameters
    ----------
    tables
        Log likelihoods of each model, ``(record, cell)``; −∞ where a record lacks the guess.
    axes
        The axes of each table, the model's own last.
    truth
        The index of the truth on every axis, ``(record, axis)``.
    log_truth_factor
        The log of how much more likely the truth is a priori.
    tie
        Log posteriors closer than this are tied.
    """
    from synrisk.core.kernels.eliminate import factor_kernels

    n_records, kernels = len(truth), factor_kernels()
    starts = np.concatenate([[0], np.cumsum([t.shape[1] for t in tables])]).astype(np.int64)
    flat = np.concatenate(tables, axis=1)
    plan = plan_elimination(axes, shape)
    out = np.empty((n_records, sum(shape)))
    kernels.eliminate(flat, starts, plan.steps, plan.factors, plan.index, plan.size, out)
    rows = np.arange(n_records)
    at_truth, scaled = np.zeros(n_records), np.zeros(n_records)
    for table, own in zip(tables, axes, strict=True):
        cell = np.ravel_multi_index(
            tuple(truth[:, axis] for axis in own), tuple(shape[axis] for axis in own)
        )
        at_truth += table[rows, cell]
        scaled += table[rows, cell] - table.max(axis=1)
    outer = tuple(range(len(shape) - 1))
    earlier = [starts[k] + cells_within(outer, own, shape) for k, own in enumerate(axes[:-1])]
    last = starts[-2] + cells_within(outer, axes[-1][:-1], shape) * shape[-1]
    counts = np.empty((n_records, 2), dtype=np.int64)
    stacked = np.stack(earlier) if earlier else np.empty((0, len(last)), dtype=np.int64)
    places = np.stack(
        [np.ravel_multi_index(tuple(truth[:, :-1].T), shape[:-1]), truth[:, -1]], axis=1
    ).astype(np.int64)
    threshold = at_truth + log_truth_factor
    kernels.count(flat, stacked, last, places, threshold, tie, shape[-1], counts)
    return out, np.exp(scaled), counts
