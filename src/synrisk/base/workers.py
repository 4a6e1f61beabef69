"""How the map over pieces of work is run: serially, in threads, in processes, on a cluster of Dask.

Or by anything with ``map``. A piece's task is a function at the top of a module, bound by
`functools.partial` to what is the same for all pieces.
"""

from __future__ import annotations

import numbers
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from multiprocessing.pool import Pool, ThreadPool
from operator import length_hint
from threading import Lock, get_ident
from typing import Any, Protocol, TypeVar

from synrisk.base import dask_cluster
from synrisk.base.errors import OptionError, SynriskError, got, nearest
from synrisk.base.kept import shown_as
from synrisk.base.one_thread import one_thread_each
from synrisk.base.process_pool import ProcessPool
from synrisk.base.progress import under_way

ENGINES = ("threads", "serial", "processes")

MOST_WORKERS = 1_024  # threads or processes: a machine that is asked for a million stands still

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
        source, taking = iter(items), Lock()
        results: deque[Future[_R]] = deque()
        is_over = False

        def work_one() -> bool:
            nonlocal is_over
            with taking:  # items may be made one by one
                if is_over:
                    return False
                result = Future[_R]()
                try:
                    item = next(source)
                except StopIteration:
                    is_over = True
                    return False
                except BaseException:
                    is_over = True
                    raise
                results.append(result)
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

        n_wanted = min(self.n_helpers, length_hint(items, self.n_helpers + 1) - 1)
        helping = [_helpers(self.n_helpers).submit(help_out) for _ in range(n_wanted)]
        try:
            while results or work_one() or results:  # a helper may just have taken the last
                result = results.popleft()
                while not result.done() and work_one():
                    pass
                yield result.result()
        finally:
            is_over = True
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
class Processes:
    """So many worker processes on this machine, for ``executor=``.

    ``executor="processes"`` has one for each core. Each is a Python of its own with its own copy
    of the data that it works on, and takes about two seconds to start.

    Parameters
    ----------
    n
        How many; None is one for each core.

    Examples
    --------
    >>> import synrisk as sr
    >>> sr.Processes(2)
    Processes(n=2)
    """

    n: int | None = None

    def __post_init__(self) -> None:
        if self.n is not None and not _is_count(self.n):
            raise OptionError(
                f"Processes: n must be a whole number from 1, or None for one for each core; got "
                f"{self.n if isinstance(self.n, int) else got(self.n)}."
            )
        if self.n is not None:
            _refuse_many(int(self.n), "Processes: n")


@dataclass(frozen=True, eq=False)
class _Watched:
    """An executor whose finished tasks are counted on a bar, whatever engine it is."""

    own: Executor

    def map(self, function: Callable[[_T], _R], items: Iterable[_T], /) -> Iterable[_R]:
        """Apply `function` to each item."""
        what = shown_as(function)
        if what is None:
            return self.own.map(function, items)
        return self._counted(what, function, items)

    def _counted(
        self, what: str, function: Callable[[_T], _R], items: Iterable[_T]
    ) -> Iterator[_R]:
        with under_way(what, length_hint(items)) as advance:
            for result in self.own.map(function, items):
                advance(1)
                yield result


@dataclass(frozen=True)
class Workers:
    """An executor to be opened, and how many blocks it works on at once."""

    n: int
    opening: Callable[[], AbstractContextManager[Executor]]

    @contextmanager
    def open(self) -> Iterator[Executor]:
        """Open the executor; meanwhile linear algebra has one thread, here as in any worker."""
        with one_thread_each(), self.opening() as opened:
            yield opened if isinstance(opened, _Watched) else _Watched(opened)

    @contextmanager
    def shared(self) -> Iterator[Workers]:
        """Open the executor once, for all who open it meanwhile."""
        with self.open() as opened:
            yield Workers(self.n, lambda: nullcontext(opened))


def here(executor: Executor) -> Executor:
    """Return threads for an executor that works elsewhere: for few tasks that need all the data."""
    own = executor.own if isinstance(executor, _Watched) else executor
    is_elsewhere = isinstance(own, ProcessPool | dask_cluster.DaskCluster)
    return _Watched(_executor_of(_n_cores())) if is_elsewhere else executor


def workers(spec: Any) -> Workers:
    """Return the workers that a user names: see `synrisk.attribute_risk`.

    Examples
    --------
    >>> workers("serial").n
    1
    """
    if isinstance(spec, Workers):
        return spec
    if spec is None:
        return _threads(_n_cores())
    if isinstance(spec, str):
        return _named(spec)
    if isinstance(spec, Processes):
        n = _n_cores() if spec.n is None else int(spec.n)
        return Workers(n, lambda: closing(ProcessPool(n)))
    if _is_count(spec):
        _refuse_many(int(spec), "executor")
        return _threads(int(spec))
    in_threads = isinstance(spec, ThreadPool)  # which is a Pool by its class
    if isinstance(spec, ProcessPoolExecutor | Pool) and not in_threads:
        raise OptionError(
            "executor: synrisk starts processes itself, and replaces those that die; use "
            f"executor='processes', or Processes(n), instead of a {type(spec).__name__}."
        )
    if dask_cluster.is_client(spec):
        n = dask_cluster.checked(spec)
        return Workers(n, lambda: nullcontext(dask_cluster.DaskCluster(spec, n)))
    if callable(getattr(spec, "map", None)) and not hasattr(spec, "columns"):  # not a frame
        return Workers(_n_cores(), lambda: nullcontext(_Foreign(spec)))
    raise OptionError(f"{_ALLOWED}; got {type(spec).__name__}.")


_ALLOWED = (
    "executor must be None or 'threads' (a thread for each core), 'serial', a number of threads, "
    "'processes' (a process for each core) or Processes(n), a client of Dask or the address of its "
    "scheduler ('tcp://…'), or an object with a map method"
)


def _named(spec: str) -> Workers:
    """Return the workers of a word."""
    if spec == "threads":
        return _threads(_n_cores())
    if spec == "serial":
        return Workers(1, lambda: nullcontext(Serial()))
    if spec == "processes":
        return workers(Processes())
    if dask_cluster.is_address(spec):
        with dask_cluster.connected(spec) as client:  # no work is begun that nobody would do
            n = dask_cluster.checked(client)
        return Workers(n, lambda: _at(spec))
    raise OptionError(f"{_ALLOWED}; got {got(spec)}.{nearest(spec, ENGINES)}")


@contextmanager
def _at(address: str) -> Iterator[Executor]:
    """Open a client of a scheduler, and close it after."""
    with dask_cluster.connected(address) as client:
        yield dask_cluster.DaskCluster(client, dask_cluster.checked(client))


def _is_count(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1


def _refuse_many(n: int, name: str) -> None:
    """Raise for more workers than any machine has cores."""
    if n > MOST_WORKERS:
        raise OptionError(f"{name} may be at most {MOST_WORKERS:,}; got more.")


def _threads(n: int) -> Workers:
    return Workers(n, lambda: nullcontext(_executor_of(n)))


def _executor_of(n_threads: int) -> Executor:
    return Serial() if n_threads == 1 else _Crew(n_threads - 1)


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
