"""Compiled kernels: serial, without the GIL, cached by numba. Imported when first used."""

from __future__ import annotations

from synrisk.core.kernels.exact_gaussian import exact_kernel
from synrisk.core.kernels.mixture import mixture_kernel
from synrisk.core.kernels.signatures import Draws, Matched, NodeSets, Records
from synrisk.core.kernels.simd import N_LANES
from synrisk.core.kernels.standard_errors import error_kernel, tail_shape
from synrisk.core.kernels.summarise import (
    rank_bounds_kernel,
    summarise_kernel,
    target_derivatives_kernel,
    target_probabilities_kernel,
)
from synrisk.core.kernels.weights import accumulate_kernel, reduce_kernel, release_kernel

__all__ = [
    "N_LANES",
    "Draws",
    "Matched",
    "NodeSets",
    "Records",
    "accumulate_kernel",
    "error_kernel",
    "exact_kernel",
    "mixture_kernel",
    "rank_bounds_kernel",
    "reduce_kernel",
    "release_kernel",
    "summarise_kernel",
    "tail_shape",
    "target_derivatives_kernel",
    "target_probabilities_kernel",
]
