"""Linear algebra with one thread.

A product's bits depend on how many threads make it; pieces of work are what runs at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_inside: list[Any] = []  # one for each that is open; the first holds the limit


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let BLAS have one thread in this process meanwhile; what is open at once is counted."""
    with _lock:
        _inside.append(_libraries().limit(limits=1) if not _inside else None)
    try:
        yield
    finally:
        with _lock:
            limit = _inside.pop()
            if not _inside:
                limit.restore_original_limits()


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401 - what it brings along is limited too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
