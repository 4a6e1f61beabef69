"""A digest of every compiled source, so that numba's cache cannot return yesterday's code.

numba stamps a cached function with its own file alone: when a family's density changes in an
upgrade, a kernel that calls it would come back from the cache unchanged. Kernels are made in
factories whose closure holds this digest, and numba's cache is keyed by the closure.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

from synrisk.models import families


def _nothing() -> None:
    """Stand in for a kernel."""


@cache
def can_cache() -> bool:
    """Tell whether numba finds a folder that it may write to; without one it compiles anew."""
    with contextlib.suppress(RuntimeError):
        njit(cache=True)(_nothing)
        return True
    return False


def sources_digest(functions: Iterable[Callable[..., Any]] = ()) -> str:
    """Return a digest of the sources of this package, the families and the files of `functions`."""
    here = Path(__file__).parent
    files = {*here.glob("*.py"), *Path(families.__file__).parent.glob("*.py")}
    files |= {Path(function.__code__.co_filename) for function in functions}
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(files):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
