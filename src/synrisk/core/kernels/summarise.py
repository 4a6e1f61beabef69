"""Kernels that reduce a record's log posterior to what is reported of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from synrisk.core.kernels.compiling import as_kernel, within_kernels
from synrisk.core.kernels.digest import sources_digest
from synrisk.core.kernels.exp_log import LOG2E, exponential, logarithm, wide_vectors
from synrisk.core.kernels.signatures import F1, F2, F3, F4, FAST, I1, I2
from synrisk.core.kernels.simd import (
    N_LANES,
    broadcast,
    exp2,
    largest_of,
    load,
    no_number,
    select,
    smaller,
    smallest_of,
    store,
    sum_of,
)


@cache
def summarise_kernel() -> Callable[..., None]:
    """Return the kernel that normalises a posterior and writes what is reported of it.

    Probability, prior, ranks, marginals, best guesses, and the cells with the smallest and the
    largest log likelihood. Compiled or from numba's cache, as the others.
    """
    kernel: Callable[..., None] = _make_summarise(sources_digest())
    return kernel


@cache
def target_probabilities_kernel() -> Callable[..., None]:
    """Return the kernel that parts a posterior over a model's cells.

    And what of it lies near the truth.
    """
    kernel: Callable[..., None] = _make_part(sources_digest())
    return kernel


@cache
def target_derivatives_kernel() -> Callable[..., None]:
    """Return the kernel of how targets change with the logs of a model's cells.

    Of the likelihood, and of what is predicted where the prior is made of that.
    """
    kernel: Callable[..., None] = _make_derivatives(sources_digest())
    return kernel


@cache
def rank_bounds_kernel() -> Callable[..., None]:
    """Return the kernel that counts the ranks of the truth that Monte-Carlo errors leave open."""
    kernel: Callable[..., None] = _make_bound(sources_digest())
    return kernel


_SMALLEST = -1000.0  # powers of two below are of no probability


@within_kernels()
def _pad(numbers: Any, filled: Any, out: Any) -> None:
    """Copy numbers to an array of whole vectors."""
    for c in range(len(numbers)):
        out[c] = numbers[c]
    for c in range(len(numbers), len(out)):
        out[c] = filled


@within_kernels()
def add_tables(tables: Any, bases: Any, along: Any, n_last: Any, out: Any) -> None:
    """Add a record's tables to its joint grid, whose last axis has `n_last` guesses.

    ``bases[table, cell of the other axes]`` is where a table's numbers begin; they lie `along` the
    last axis, or are one for all of it.
    """
    for t in range(len(bases)):
        for cell in range(bases.shape[1]):
            base, at = bases[t, cell], cell * n_last
            if along[t]:
                for k in range(n_last):
                    out[at + k] += tables[base + k]
            else:
                value = tables[base]
                for k in range(n_last):
                    out[at + k] += value


@within_kernels()
def _put_together(row: Any, before: Any, absent: Any, out: Any, ends: Any) -> Any:
    """Write the sum of log likelihood and log prior, and return the largest.

    It is NaN where something is no number. To `ends` go the smallest and the largest log
    likelihood; `absent` is infinite where nothing is.
    """
    wide_vectors()
    low, high, top, bad = broadcast(np.inf), broadcast(-np.inf), broadcast(-np.inf), broadcast(0.0)
    for c in range(0, len(out), N_LANES):
        value, without = load(row, c), load(absent, c)
        # The first is dropped where it is NaN.
        low, high = min(value + without, low), max(value - without, high)
        both = value + load(before, c)
        bad += no_number(both)
        top = max(both, top)
        store(out, c, both)
    ends[0], ends[1] = smallest_of(low), largest_of(high)
    largest = largest_of(top)
    return largest if sum_of(bad) == 0.0 and abs(largest) < np.inf else np.nan


@within_kernels()
def _normalise(log_p: Any, top: Any, at_truth: Any, tie: Any, p: Any, counts: Any) -> Any:
    """Write exp(log_p − top) and return the sum.

    To `counts` go how many lie above `at_truth` by more than `tie`, and how many not so far below.
    """
    wide_vectors()
    total, above, not_below = broadcast(0.0), broadcast(0.0), broadcast(0.0)
    for c in range(0, len(log_p), N_LANES):
        value = load(log_p, c)
        power = (value - top) * LOG2E
        weight = exp2(max(power, broadcast(_SMALLEST)))
        weight = select(smaller(power, broadcast(_SMALLEST)), broadcast(0.0), weight)
        store(p, c, weight)
        total += weight
        difference = value - at_truth
        above += smaller(broadcast(tie), difference)
        not_below += smaller(broadcast(-tie), difference)
    counts[0], counts[1] = sum_of(above), sum_of(not_below)
    return sum_of(total)


@within_kernels()
def _first(row: Any, absent: Any, value: Any) -> Any:
    """Return the first cell with a value that a row is known to have; 0 if it is not a number."""
    for c in range(len(row)):
        if row[c] == value and absent[c] == 0.0:
            return c
    return 0


@within_kernels()
def _add_up(p: Any, starts: Any, tails: Any, out: Any) -> None:
    """Write the marginals of every axis, those of an axis from its place in `starts`.

    Both arrays go on for a vector; ``tails[axis]`` is one in each lane that is left over where the
    cells of an axis' guess fill no whole vector.
    """
    wide_vectors()
    n_before, n_after = 1, 1
    for axis in range(1, len(starts) - 1):
        n_after *= starts[axis + 1] - starts[axis]
    for axis in range(len(starts) - 1):
        first, size = starts[axis], starts[axis + 1] - starts[axis]
        if n_after == 1:  # the innermost axis: its guesses lie side by side
            for k in range(0, size, N_LANES):
                total = broadcast(0.0)
                for outer in range(n_before):
                    total += load(p, outer * size + k)
                store(out, first + k, total)
        else:
            n_wide, tail = n_after - n_after % N_LANES, load(tails, axis * N_LANES)
            for k in range(size):
                total = broadcast(0.0)
                for outer in range(n_before):
                    at = (outer * size + k) * n_after
                    for c in range(at, at + n_wide, N_LANES):
                        total += load(p, c)
                    total += load(p, at + n_wide) * tail
                out[first + k] = sum_of(total)
            n_after //= starts[axis + 2] - starts[axis + 1]
        n_before *= size


@within_kernels()
def _tails(starts: Any) -> Any:
    """Return what `_add_up` takes."""
    tails = np.zeros((len(starts) - 1, N_LANES))
    n_after = 1
    for axis in range(len(starts) - 2, -1, -1):
        for k in range(n_after % N_LANES):
            tails[axis, k] = 1.0
        n_after *= starts[axis + 1] - starts[axis]
    return tails


@within_kernels()
def _best(sums: Any, start: Any, stop: Any, tie: Any) -> Any:
    """Return which of some sums is the largest; of those that tie, the first."""
    largest, best = 0.0, start
    for k in range(start, stop):
        largest = max(largest, sums[k])
    for k in range(stop - 1, start - 1, -1):  # without a branch, which nobody could foresee
        best = k if sums[k] >= largest * (1.0 - tie) else best
    return best - start


@within_kernels(fastmath=FAST)
def _sum_where(p: Any, missed: Any, n_cells: Any) -> Any:
    """Sum the cells whose guesses are near on every axis: none is missed."""
    total = 0.0
    for c in range(n_cells):
        total += p[c] if missed[c] == 0.0 else 0.0
    return total


@within_kernels()
def _count(log_p: Any, measure: Any, true_cell: Any, n_cells: Any, tie: Any, counts: Any) -> None:
    """Count the cells of a larger density than the truth's, and those not so far below."""
    above, not_below = 0, 0
    at_truth = log_p[true_cell] - measure[true_cell]
    for c in range(n_cells):
        difference = log_p[c] - measure[c] - at_truth
        above += difference > tie
        not_below += difference >= -tie
    counts[0], counts[1] = above, not_below


def _make_summarise(digest: str) -> Any:
    signature = types.void(
        F2, F2, I2, I1, F2, I1, I2, F2, F2, I2, I1, I1, types.float64, types.boolean, F1, F1, F2,
        I1, F2, F2, I2, I2, F1,
    )  # fmt: skip

    @as_kernel(signature)
    def summarise(
        joint: Any,  # (record, cell): a log likelihood; becomes the log posterior, if to be kept
        tables: Any,  # (record, cell of any other table): others, that are added to it
        bases: Any,  # (table, cell without the last axis), with `along` (table): see `add_tables`
        along: Any,
        log_prior: Any,  # (record or 1, cell)
        true_cell: Any,  # (record)
        truth: Any,  # (record, axis): the true guess
        missed: Any,  # (record, guess of any axis): 1 where it is not near the truth; or (0, 0)
        widths: Any,  # (record, guess of any axis): logs of what guesses stand for; or (0, 0)
        axis_bases: Any,  # as `bases` and `along`, of a table an axis
        axis_along: Any,
        starts: Any,  # (axis + 1): where each axis' guesses begin in `marginals`
        tie: float,
        keep: bool,
        probability: Any,
        prior: Any,
        ranks: Any,  # (record, [lowest, highest]): what ties leave open
        n_guesses: Any,
        marginals: Any,
        prior_marginals: Any,  # (record, axis): of the true guess
        best: Any,  # (record, axis)
        ends: Any,  # (record, [smallest, largest]): the cells with such a log likelihood; or empty
        log_odds_range: Any,
    ) -> None:
        _ = digest
        n_records, n_cells = joint.shape
        n_axes = len(starts) - 1
        n_last = starts[n_axes] - starts[n_axes - 1]
        n_padded = -(-n_cells // N_LANES) * N_LANES
        row, before, absent = np.empty(n_padded), np.empty(n_padded), np.empty(n_padded)
        log_p, both, counts = np.empty(n_padded), np.empty(2), np.empty(2)
        p, p0 = np.zeros(n_padded + N_LANES), np.zeros(n_padded + N_LANES)
        sums, before_sums = np.empty(starts[n_axes] + N_LANES), np.empty(starts[n_axes] + N_LANES)
        tails = _tails(starts)
        one_prior, n_present, before_total = len(log_prior) == 1, 0, 1.0
        far, measure = np.empty(n_cells), np.empty(n_cells)
        for i in range(n_records):
            if i == 0 or not one_prior:
                _pad(log_prior[0 if one_prior else i], -np.inf, before)
                n_present = 0
                for c in range(n_padded):
                    absent[c] = 0.0 if before[c] > -np.inf else np.inf
                    n_present += before[c] > -np.inf
                    row[c] = 0.0
                top = _put_together(row, before, absent, log_p, both)
                before_total = _normalise(log_p, top, top, tie, p0, counts)
                _add_up(p0, starts, tails, before_sums)
            _pad(joint[i], -np.inf, row)
            add_tables(tables[i], bases, along, n_last, row)
            top = _put_together(row, before, absent, log_p, both)
            between = both[1] - both[0]
            if len(ends) > 0:
                ends[i, 0], ends[i, 1] = _first(row, absent, both[0]), _first(row, absent, both[1])
            total = _normalise(log_p, top, log_p[true_cell[i]], tie, p, counts)
            inverse = 1.0 / (total if top == top else np.nan)
            log_odds_range[i] = between + 0.0 * inverse
            if len(widths) > 0:
                measure[:] = 0.0
                add_tables(widths[i], axis_bases, axis_along, n_last, measure)
                _count(log_p, measure, true_cell[i], n_cells, tie, counts)
            ranks[i, 0], ranks[i, 1] = 1.0 + counts[0], counts[1]
            if keep:
                log_total = top + logarithm(total)
                for c in range(n_cells):
                    joint[i, c] = log_p[c] - log_total
            probability[i], prior[i] = p[true_cell[i]] * inverse, p0[true_cell[i]] / before_total
            n_guesses[i] = n_present
            _add_up(p, starts, tails, sums)
            for k in range(starts[n_axes]):
                marginals[i, k] = sums[k] * inverse
            for axis in range(n_axes):
                before_sum = before_sums[starts[axis] + truth[i, axis]]
                prior_marginals[i, axis] = before_sum / before_total
            if len(missed) > 0:
                far[:] = 0.0
                add_tables(missed[i], axis_bases, axis_along, n_last, far)
                probability[i] = _sum_where(p, far, n_cells) * inverse
                prior[i] = _sum_where(p0, far, n_cells) / before_total
                for axis in range(n_axes):
                    near = 0.0
                    for k in range(starts[axis], starts[axis + 1]):
                        near += before_sums[k] if missed[i, k] == 0.0 else 0.0
                    prior_marginals[i, axis] = near / before_total
            if len(widths) > 0:  # the best is that of the largest density
                for k in range(starts[n_axes]):
                    sums[k] = sums[k] * exponential(-widths[i, k])
            for axis in range(n_axes):
                best[i, axis] = _best(sums, starts[axis], starts[axis + 1], tie)

    return summarise


@within_kernels()
def _add_within(
    numbers: Any, truth: Any, missed: Any, sizes: Any, cell_of: Any, far: Any, out: Any
) -> None:
    """Add a record's `numbers`, ``(cell, number)``, to ``out[table cell, number, within]``.

    `within` counts everything, what is near the truth, and what is near it on each axis; `far` is
    room for a mark a cell.
    """
    n_cells, n_numbers = numbers.shape
    for c in range(n_cells):
        for j in range(n_numbers):
            out[cell_of[c], j, 0] += numbers[c, j]
        far[c] = 0.0
    n_before, n_after, start = 1, n_cells, 0
    for axis in range(len(sizes)):
        n_after //= sizes[axis]
        for outer in range(n_before):
            for k in range(sizes[axis]):
                near = k == truth[axis]
                if len(missed) > 0:
                    near = missed[start + k] == 0.0
                at = (outer * sizes[axis] + k) * n_after
                for c in range(at, at + n_after):
                    if near:
                        for j in range(n_numbers):
                            out[cell_of[c], j, 2 + axis] += numbers[c, j]
                    else:
                        far[c] = 1.0
        n_before *= sizes[axis]
        start += sizes[axis]
    for c in range(n_cells):
        if far[c] == 0.0:
            for j in range(n_numbers):
                out[cell_of[c], j, 1] += numbers[c, j]


def _make_part(digest: str) -> Any:
    @as_kernel(types.void(F2, I2, F2, I1, I1, F4), fastmath=FAST)
    def part(
        log_posterior: Any,  # (record, cell)
        truth: Any,  # (record, axis)
        missed: Any,  # (record, guess of any axis): 1 where it is not near the truth; or (0, 0)
        sizes: Any,  # (axis): of the joint grid
        cell_of: Any,  # (cell): in the model's table
        out: Any,  # (record, table cell, 1, [all, near the truth, near on each axis]), zero
    ) -> None:
        _ = digest
        n_records, n_cells = log_posterior.shape
        p, far, everywhere = np.empty((n_cells, 1)), np.empty(n_cells), np.empty(0)
        for i in range(n_records):
            for c in range(n_cells):
                p[c, 0] = exponential(max(log_posterior[i, c], -800.0))
            own = missed[i] if len(missed) > 0 else everywhere
            _add_within(p, truth[i], own, sizes, cell_of, far, out[i])

    return part


def _make_derivatives(digest: str) -> Any:
    signature = types.void(F2, F2, F2, types.float64, I2, F2, I1, I1, F3, F3)

    @as_kernel(signature, fastmath=FAST)
    def derive(
        log_posterior: Any,  # (record, cell), with the next two
        model: Any,  # what the models predict, p
        log_prior: Any,  # of s·p and a prior u that is known: log(s·p + (1 − s)·u)
        share: Any,  # s
        truth: Any,  # as in `part`, with the next three
        missed: Any,
        sizes: Any,
        cell_of: Any,
        by_likelihood: Any,  # (record, table cell, [none, after …, before …, after − before …])
        by_prior: Any,  # the same: with p's logs, which are normalised
    ) -> None:
        _ = digest
        n_records, n_cells = log_posterior.shape
        n_table, n_targets = by_prior.shape[1], 1 + len(sizes)
        # The posterior; the share of it that is due to p; and p itself.
        numbers, far, everywhere = np.empty((n_cells, 3)), np.empty(n_cells), np.empty(0)
        sums = np.empty((n_table, 3, 1 + n_targets))
        for i in range(n_records):
            for c in range(n_cells):
                after, p = exponential(max(log_posterior[i, c], -800.0)), model[i, c]
                numbers[c, 0], numbers[c, 1], numbers[c, 2] = after, 0.0, p
                if p > 0.0:
                    numbers[c, 1] = after * share * p / exponential(max(log_prior[i, c], -800.0))
            sums[:] = 0.0
            own = missed[i] if len(missed) > 0 else everywhere
            _add_within(numbers, truth[i], own, sizes, cell_of, far, sums)
            by_likelihood[i], by_prior[i] = 0.0, 0.0
            for r in range(1, 1 + n_targets):
                after, before, whole = 0.0, 0.0, 0.0
                for c in range(n_table):
                    after += sums[c, 0, r]
                    before += sums[c, 2, r]
                for c in range(n_table):
                    whole += sums[c, 1, r] - after * sums[c, 1, 0]
                for c in range(n_table):
                    likelihood = sums[c, 0, r] - after * sums[c, 0, 0]
                    by_likelihood[i, c, r] = likelihood
                    by_likelihood[i, c, 2 * n_targets + r] = likelihood
                    of_after = sums[c, 1, r] - after * sums[c, 1, 0] - whole * sums[c, 2, 0]
                    of_before = share * (sums[c, 2, r] - before * sums[c, 2, 0])
                    by_prior[i, c, r] = of_after
                    by_prior[i, c, n_targets + r] = of_before
                    by_prior[i, c, 2 * n_targets + r] = of_after - of_before

    return derive


def _make_bound(digest: str) -> Any:
    signature = types.void(F2, I1, F2, I2, types.float64, types.float64, F2)

    @as_kernel(signature)
    def bound_ranks(
        log_posterior: Any,  # (record, cell)
        true_cell: Any,  # (record)
        apart: Any,  # (record, cell of any model's table): variances against the truth
        cell_of: Any,  # (model, cell): where each model's cell stands in `apart`
        confidence: Any,
        tie: Any,
        bounds: Any,  # (record, [lowest, highest rank])
    ) -> None:
        _ = digest
        n_records, n_cells = log_posterior.shape
        for i in range(n_records):
            above, not_below = 0, 0
            at_truth = log_posterior[i, true_cell[i]]
            for c in range(n_cells):
                variance = 0.0
                for model in range(len(cell_of)):
                    variance += apart[i, cell_of[model, c]]
                margin = confidence * np.sqrt(variance) + tie
                difference = log_posterior[i, c] - at_truth
                above += difference > margin
                not_below += difference >= -margin
            bounds[i, 0], bounds[i, 1] = 1.0 + above, not_below

    return bound_ranks
