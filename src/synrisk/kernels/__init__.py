"""Compiled kernels: serial, without the GIL, cached by numba. Imported when first used."""

from __future__ import annotations

from synrisk.kernels.errors import error_kernel, tail_shape
from synrisk.kernels.exact import exact_kernel
from synrisk.kernels.lanes import N_LANES
from synrisk.kernels.models import accumulate_kernel, reduce_kernel, release_kernel
from synrisk.kernels.records import RecordKernels, record_kernels

__all__ = [
    "N_LANES",
    "RecordKernels",
    "accumulate_kernel",
    "error_kernel",
    "exact_kernel",
    "record_kernels",
    "reduce_kernel",
    "release_kernel",
    "tail_shape",
]
