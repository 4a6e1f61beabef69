"""Kernel of a prior that is mostly what the models predict, and else uniform."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from synrisk.core.kernels.compiling import as_kernel, within_kernels
from synrisk.core.kernels.digest import sources_digest
from synrisk.core.kernels.exp_log import exponential, logarithm, wide_vectors
from synrisk.core.kernels.signatures import F1, F2, FAST, I1, I2
from synrisk.core.kernels.summarise import add_tables


@cache
def mixture_kernel() -> Callable[..., None]:
    """Return the kernel, compiled or from numba's cache."""
    kernel: Callable[..., None] = _make_mixture(sources_digest())
    return kernel


_NONE = -1e300  # the log of nothing; infinities would make NaN of a difference
_FLOOR = -700.0
_HALVINGS = 16  # of the density's range: to a thousandth
_LEAST_DENSITY = 40.0  # logs below the largest


@within_kernels(fastmath=FAST)
def _normalise(logs: Any, p: Any) -> None:
    """Write exp(logs) that sums to one."""
    wide_vectors()
    top = _NONE
    for c in range(len(logs)):
        top = max(top, logs[c])
    total = 0.0
    for c in range(len(logs)):
        p[c] = exponential(max(logs[c] - top, _FLOOR))
        p[c] = p[c] if logs[c] - top > _FLOOR else 0.0
        total += p[c]
    for c in range(len(logs)):
        p[c] *= 1.0 / total


@within_kernels(fastmath=FAST)
def _mix(p: Any, uniform: Any, share: Any, out: Any) -> None:
    wide_vectors()
    for c in range(len(p)):
        both = share * p[c] + (1.0 - share) * uniform[c]
        out[c] = logarithm(max(both, 1e-300)) if both > 1e-300 else -np.inf


@within_kernels(fastmath=FAST)
def _mass_above(p: Any, density: Any, threshold: Any) -> Any:
    wide_vectors()
    total = 0.0
    for c in range(len(p)):
        total += p[c] if density[c] >= threshold else 0.0
    return total


@within_kernels()
def _threshold(p: Any, density: Any, mass: Any) -> Any:
    """Return a density such that those not below have at least that mass, and hardly more."""
    high = _NONE
    for c in range(len(p)):
        high = max(high, density[c]) if p[c] > 0.0 else high
    low = high - _LEAST_DENSITY
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if _mass_above(p, density, middle) >= mass:
            low = middle
        else:
            high = middle
    return low


@within_kernels()
def _ends(likelihood: Any, density: Any, threshold: Any, ends: Any) -> Any:
    """Write the cells of the smallest and largest likelihood in a set, and return the range."""
    lowest, highest = np.inf, -np.inf
    for c in range(len(density)):
        if density[c] >= threshold:
            if likelihood[c] < lowest:
                lowest, ends[0] = likelihood[c], c
            if likelihood[c] > highest:
                highest, ends[1] = likelihood[c], c
    return highest - lowest


def _make_mixture(digest: str) -> Any:
    signature = types.void(
        F2, F2, I2, I1, F2, F2, F2, I2, I1, types.int64, types.float64, types.float64, F2, F2, F1,
        I2,
    )  # fmt: skip

    @as_kernel(signature)
    def mix(
        predicted: Any,  # (record, cell of any model's table): log predictive densities
        likelihood: Any,  # the same of log likelihoods
        bases: Any,  # (table, cell without the last axis), with `along` (table): see `add_tables`
        along: Any,
        measure: Any,  # (record, guess of any axis): logs of what densities are multiplied by
        widths: Any,  # the same of what guesses stand for
        absent: Any,  # the same: 1 where a record has no such guess
        axis_bases: Any,  # as `bases` and `along`, of a table an axis
        axis_along: Any,
        n_last: int,  # guesses of the last axis
        share: float,  # of the models; the rest is uniform
        mass: float,  # of the predictive set
        log_prior: Any,  # (record, cell)
        model: Any,  # (record, cell): what the models predict, or (0, 0)
        likely_range: Any,  # (record): of the log likelihood in that set
        ends: Any,  # (record, [smallest, largest]): its cells
    ) -> None:
        _ = digest
        n_records, n_cells = log_prior.shape
        logs, p, uniform = np.empty(n_cells), np.empty(n_cells), np.empty(n_cells)
        wide, missing, log_l = np.empty(n_cells), np.empty(n_cells), np.empty(n_cells)
        for i in range(n_records):
            logs[:], wide[:], missing[:], log_l[:] = 0.0, 0.0, 0.0, 0.0
            add_tables(measure[i], axis_bases, axis_along, n_last, logs)
            add_tables(widths[i], axis_bases, axis_along, n_last, wide)
            add_tables(absent[i], axis_bases, axis_along, n_last, missing)
            add_tables(predicted[i], bases, along, n_last, logs)
            add_tables(likelihood[i], bases, along, n_last, log_l)
            for c in range(n_cells):
                logs[c] = logs[c] if missing[c] == 0.0 and logs[c] > _NONE else _NONE
                wide[c] = wide[c] if missing[c] == 0.0 else _NONE
            _normalise(logs, p)
            _normalise(wide, uniform)
            _mix(p, uniform, share, log_prior[i])
            for c in range(n_cells if len(model) > 0 else 0):
                model[i, c] = p[c]  # slices take numba two seconds, to write what may be wrong
            for c in range(n_cells):
                logs[c] = logs[c] - wide[c] if p[c] > 0.0 else _NONE
            likely_range[i] = _ends(log_l, logs, _threshold(p, logs, mass), ends[i])

    return mix
