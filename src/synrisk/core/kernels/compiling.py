"""How a kernel is compiled, so that it gives the same bits as when it comes from numba's cache.

numba compiles a function that a kernel calls twice: by itself, and once more within the kernel,
where LLVM goes over it again and may add up in another order. Both copies have one name, and of one
name the linker keeps what it sees first: in a process that compiles, the function by itself; in one
that reads the cache, the copy in the first kernel that has one. So a kernel's copies are made
internal to it: no others can take their place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from llvmlite.binding import Linkage
from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from synrisk.core.kernels.digest import can_cache


class _Library(JITCodeLibrary):
    """A kernel's code with all that it calls."""

    def _optimize_final_module(self) -> None:
        super()._optimize_final_module()
        # Not earlier: functions that are called from one place alone would be inlined.
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:  # copied from another library
                function.linkage = Linkage.internal


class _Compiler(Compiler):
    """numba's own, with another library."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()  # else it could not be written to the cache
        return super().define_pipelines()


def as_kernel(
    signature: Any, *, fastmath: set[str] | bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Compile a function for a signature, or take it from numba's cache."""

    def compiled(function: Callable[..., None], *, cache: bool) -> Callable[..., None]:
        made: Callable[..., None] = njit(
            signature,
            cache=cache,
            nogil=True,
            fastmath=fastmath,
            error_model="numpy",
            pipeline_class=_Compiler,
        )(function)
        return made

    def kernel(function: Callable[..., None]) -> Callable[..., None]:
        # What the cache holds of a family that was defined by exec cannot be found again.
        with contextlib.suppress(ModuleNotFoundError):
            return compiled(function, cache=can_cache())
        return compiled(function, cache=False)

    return kernel
