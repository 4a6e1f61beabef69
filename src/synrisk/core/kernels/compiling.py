"""How a kernel is compiled, with the functions that it calls.

By itself numba makes machine code of every function that a kernel calls, with what lets Python call
it, and once more of its copy within the kernel, which alone is run: half of the time of a first
call. Here such a function is translated, and goes through LLVM only within its callers.

And it gives the same bits as when it comes from numba's cache. Copies in two kernels have one name,
and of one name the linker keeps what it sees first: in a process that compiles, another kernel's
than in one that reads the cache. LLVM may have made them add up in another order. So a kernel's
copies are made internal to it: no others can take their place.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from llvmlite.binding import Linkage
from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import register_jitable

from synrisk.core.kernels.digest import can_cache


class _Library(JITCodeLibrary):
    """A kernel's code with all that it calls."""

    def _optimize_final_module(self) -> None:
        super()._optimize_final_module()
        # Not earlier: functions that are called from one place alone would be inlined.
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:  # copied from another library
                function.linkage = Linkage.internal


class _NoMachineCode:
    """Stands in for what runs code, where none is made."""

    def set_env(self, name: str, environment: Any) -> None:
        """Tell nobody: what Python finds there is needed by functions that call Python."""


class _PartLibrary(JITCodeLibrary):
    """The code of a function within kernels: to be linked into theirs, never run by itself."""

    def _optimize_final_module(self) -> None:
        """Leave that to the kernels."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 - numba's signature
        """Return what stands for no function."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """What would run it."""
        return _NoMachineCode()


class _Compiler(Compiler):
    """numba's own, with another library."""

    library: ClassVar[type[JITCodeLibrary]] = _Library

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()  # else it could not be written to the cache
        state.flags.no_cfunc_wrapper = True  # C does not call it
        return super().define_pipelines()


class _PartCompiler(_Compiler):
    library = _PartLibrary


def within_kernels(
    *, fastmath: set[str] | bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let kernels call a function; Python calls it as it stands."""
    made: Callable[..., Any] = register_jitable(
        fastmath=fastmath, error_model="numpy", pipeline_class=_PartCompiler
    )
    return made


_COLLECTING = threading.Lock()


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Let Python not look for garbage: it takes a fifth of a compilation, and finds none."""
    with _COLLECTING:
        collected = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collected:
                gc.enable()


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
        with _without_collecting():
            # What the cache holds of a family that was defined by exec cannot be found again.
            with contextlib.suppress(ModuleNotFoundError):
                return compiled(function, cache=can_cache())
            return compiled(function, cache=False)

    return kernel
