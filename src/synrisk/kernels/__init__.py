"""Compiled kernels: serial, without the GIL, cached by numba. Imported when first used."""

from __future__ import annotations

from synrisk.kernels.exact import exact_kernel
from synrisk.kernels.models import ModelKernels, model_kernels
from synrisk.kernels.records import RecordKernels, record_kernels

__all__ = ["ModelKernels", "RecordKernels", "exact_kernel", "model_kernels", "record_kernels"]
