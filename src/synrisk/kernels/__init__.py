"""Compiled kernels: serial, without the GIL, cached by numba. Imported when first used."""

from __future__ import annotations

from synrisk.kernels.errors import error_kernel, tail_shape
from synrisk.kernels.exact import exact_kernel
from synrisk.kernels.lanes import N_LANES
from synrisk.kernels.models import accumulate_kernel, reduce_kernel, release_kernel
from synrisk.kernels.records import part_kernel, rank_kernel, summarise_kernel

__all__ = [
    "N_LANES",
    "accumulate_kernel",
    "error_kernel",
    "exact_kernel",
    "part_kernel",
    "rank_kernel",
    "reduce_kernel",
    "release_kernel",
    "summarise_kernel",
    "tail_shape",
]
