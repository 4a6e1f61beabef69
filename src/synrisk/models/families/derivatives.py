"""What families share: their derivatives put together, and log(1 + exp(x))."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synrisk.base.arrays import FloatArray


def softplus(x: FloatArray) -> FloatArray:
    """log(1 + exp(x)), without an overflow; faster than `logaddexp`."""
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def gradient(*parts: FloatArray) -> FloatArray:
    """Return first derivatives side by side on the last axis."""
    return np.stack(np.broadcast_arrays(*parts), axis=-1)


def hessian(*rows: Sequence[FloatArray]) -> FloatArray:
    """Return second derivatives on the last two axes, of the rows of their lower triangle."""
    entries = np.broadcast_arrays(*(entry for row in rows for entry in row))
    out = np.empty((*entries[0].shape, len(rows), len(rows)))
    for i, j, entry in zip(*np.tril_indices(len(rows)), entries, strict=True):
        out[..., i, j] = out[..., j, i] = entry
    return out
