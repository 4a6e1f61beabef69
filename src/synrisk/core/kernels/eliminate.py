"""Kernels for joints that are products of tables: marginals by elimination, ranks by counting.

Nothing over the joint grid is built: an elimination runs over the tables' own cells, and the rank
counts cells whose log likelihood is put together as it goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import types

from synrisk.core.kernels.compiling import as_kernel
from synrisk.core.kernels.digest import sources_digest
from synrisk.core.kernels.exp_log import exponential
from synrisk.core.kernels.signatures import F1, F2, FAST, I1, I2


@dataclass(frozen=True)
class FactorKernels:
    """The compiled functions over tables.

    Attributes
    ----------
    eliminate
        Writes unnormalised marginals of every variable.
    count
        Writes how many other cells are above the truth and how many tie with it.
    """

    eliminate: Callable[..., None]
    count: Callable[..., None]


@cache
def factor_kernels() -> FactorKernels:
    """Return the kernels, compiled or from numba's cache."""
    digest = sources_digest()
    return FactorKernels(_make_eliminate(digest), _make_count(digest))


def _make_eliminate(digest: str) -> Any:
    @as_kernel(types.void(F2, I1, I2, I2, I1, types.int64, F2), fastmath=FAST)
    def eliminate(
        tables: Any,  # (record, cell of every table, one after the other): logs
        starts: Any,  # (table + 1): where each table begins
        steps: Any,  # (step, [out, n_out, n_summed, first factor, n_factors])
        factors: Any,  # (factor, [where it begins in the buffer, where its index begins])
        index: Any,  # the cell of a factor for each out cell and summed guess
        size: int,  # of the buffer
        out: Any,  # (record, guess of every variable): the last steps' results
    ) -> None:
        _ = digest
        n_out = out.shape[1]
        buffer = np.empty(size)
        for i in range(len(tables)):
            for t in range(len(starts) - 1):
                top = -np.inf
                for c in range(starts[t], starts[t + 1]):
                    top = max(top, tables[i, c])
                for c in range(starts[t], starts[t + 1]):
                    value = exponential(tables[i, c] - top)
                    buffer[c] = value if tables[i, c] > -np.inf else 0.0
            for s in range(len(steps)):
                n_summed = steps[s, 2]
                for o in range(steps[s, 1]):
                    total = 0.0
                    for e in range(n_summed):
                        product = 1.0
                        for f in range(steps[s, 3], steps[s, 3] + steps[s, 4]):
                            cell = index[factors[f, 1] + o * n_summed + e]
                            product *= buffer[factors[f, 0] + cell]
                        total += product
                    buffer[steps[s, 0] + o] = total
            for c in range(n_out):
                out[i, c] = buffer[size - n_out + c]

    return eliminate


def _make_count(digest: str) -> Any:
    @as_kernel(types.void(F2, I2, I1, I2, F1, types.float64, types.int64, I2))
    def count(
        tables: Any,  # (record, cell of every table): logs
        earlier: Any,  # (table but the last, outer cell): its cell, as it stands in `tables`
        last: Any,  # (outer cell): where the last table's row begins in `tables`
        truth: Any,  # (record, [outer cell, last guess]) of the truth
        at_truth: Any,  # (record): what cells are compared with
        tie: float,
        n_last: int,  # guesses of the last variable
        out: Any,  # (record, [other cells above, other cells tied])
    ) -> None:
        _ = digest
        n_earlier, n_outer = earlier.shape
        for i in range(len(tables)):
            above, tied = 0, 0
            for o in range(n_outer):
                base = -at_truth[i]
                for t in range(n_earlier):
                    base += tables[i, earlier[t, o]]
                skipped = truth[i, 1] if o == truth[i, 0] else -1
                for k in range(n_last):
                    difference = base + tables[i, last[o] + k]
                    above += difference > tie and k != skipped
                    tied += abs(difference) <= tie and k != skipped
            out[i, 0] = above
            out[i, 1] = tied

    return count
