"""How the map over blocks of records is run: serially, in threads, or by anything with ``map``."""

from __future__ import annotations

import numbers
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from multiprocessing.pool import Pool, ThreadPool
from threading import get_ident
from typing import Any, Protocol, TypeVar

from synrisk.base.errors import OptionError, SynriskError

_T = TypeVar("_T")
_R = TypeVar("_R")


class Executor(Protocol):
    """Anything with ``map(function, items)`` that yields results in order."""

    def map(self, function: Callable[[_T], _R], items: Iterable[_T], /) -> Iterable[_R]:
        """Apply `function` to each item."""


@dataclass(frozen=True)
class Serial:
    """One block after the other."""

    def map(self, function: Callable[[_T], _R], items: Iterable[_T], /) -> Iterator[_R]:
        """Apply `function` to each item."""
        return map(function, items)


@dataclass(frozen=True, eq=False)
class _Crew:
    """Threads that help the one that asks, which works along.

    A thread that only waits leaves its core to those that it has woken, and they may all start on
    that core: the others stay idle for milliseconds.
    """

    n_helpers: int

    def map(self, function: Callable[[_T], _R], items: Iterable[_T], /) -> Iterator[_R]:
        """Apply `function` to each item."""
        left = deque((item, Future[_R]()) for item in items)
        results = [result for _, result in left]

        def work_one() -> bool:
            try:
                item, result = left.popleft()
            except IndexError:
                return False
            try:
                result.set_result(function(item))
            except Exception as error:
                result.set_exception(error)  # raised where the result is asked for
            except BaseException as error:  # such as Ctrl-C: nothing more is begun
                result.set_exception(error)
                raise
            return True

        helpers: set[int] = set()

        def help_out() -> None:
            helpers.add(get_ident())
            while work_one():
                pass

        n_wanted = min(self.n_helpers, len(results) - 1)
        helping = [_helpers(self.n_helpers).submit(help_out) for _ in range(n_wanted)]
        try:
            for result in results:
                while not result.done() and work_one():
                    pass
                yield result.result()
        finally:
            left.clear()
            # What nobody iterates any more may be closed by the garbage collector in a helper,
            # which would wait for itself.
            if get_ident() not in helpers:
                wait([one for one in helping if not one.cancel()])


@dataclass(frozen=True, eq=False)
class _Foreign:
    """Somebody else's executor, whose results are counted."""

    own: Any

    def map(self, function: Callable[[_T], _R], items: Iterable[_T], /) -> Iterator[_R]:
        """Apply `function` to each item."""
        given, problem = list(items), ""
        try:
            collected = self._collected(function, given)
        except (SynriskError, MemoryError):
            raise
        except Exception as error:  # not chained: a task that cannot be sent may be shown
            problem = type(error).__name__
        if problem:
            raise OptionError(
                f"executor: its map failed with {problem}. It must be open, and work in threads of "
                "this process or send functions that are defined in others; executor='threads' "
                "does."
            )
        if len(collected) != len(given):
            raise OptionError(
                f"executor: its map gave {len(collected):,} results for {len(given):,} pieces of "
                "work."
            )
        return iter(collected)

    def _collected(self, function: Callable[[_T], _R], given: list[_T]) -> list[_R]:
        results = self.own.map(function, given)
        collected = list(results) if isinstance(results, Iterable) else []
        # A client of Dask gives promises in place of results.
        promised = [one for one in collected if callable(getattr(one, "result", None))]
        return [one.result() for one in promised] if promised else collected


@dataclass(frozen=True)
class Workers:
    """An executor to be opened, and how many blocks it works on at once."""

    n: int
    open: Callable[[], AbstractContextManager[Executor]]

    @contextmanager
    def shared(self) -> Iterator[Workers]:
        """Open the executor once, for all who open it meanwhile."""
        with self.open() as opened:
            yield Workers(self.n, lambda: nullcontext(opened))


def workers(spec: Any) -> Workers:
    """Return the workers of None, "threads", "serial", a number of threads, or an executor.

    Examples
    --------
    >>> workers("serial").n
    1
    """
    if spec is None or (isinstance(spec, str) and spec == "threads"):
        return _threads(_n_cores())
    if isinstance(spec, str) and spec == "serial":
        return Workers(1, lambda: nullcontext(Serial()))
    if isinstance(spec, numbers.Integral) and not isinstance(spec, bool) and int(spec) >= 1:
        return _threads(int(spec))
    in_threads = isinstance(spec, ThreadPool)  # which is a Pool by its class
    if isinstance(spec, ProcessPoolExecutor | Pool) and not in_threads:
        raise OptionError(
            "executor: processes would need their own copy of the data; use threads, which the "
            "kernels let run at once."
        )
    if callable(getattr(spec, "map", None)) and not hasattr(spec, "columns"):  # not a frame
        return Workers(_n_cores(), lambda: nullcontext(_Foreign(spec)))
    raise OptionError(
        "executor must be None or 'threads' (a thread for each core), 'serial', a number of "
        f"threads, or an object with a map method; got {type(spec).__name__}."
    )


def _threads(n: int) -> Workers:
    if n == 1:
        return Workers(1, lambda: nullcontext(Serial()))
    return Workers(n, lambda: nullcontext(_Crew(n - 1)))


@cache
def _helpers(n: int) -> ThreadPoolExecutor:
    """Return threads that wait for work; to start them takes longer than many a block."""
    return ThreadPoolExecutor(n, thread_name_prefix="synrisk")


if hasattr(os, "register_at_fork"):  # threads do not live on in a forked process
    os.register_at_fork(after_in_child=_helpers.cache_clear)


def _n_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
