"""Worker processes on this machine.

Each is a new Python that runs nothing of the program that asks: no `__main__` is imported again,
and nothing is forked while threads run. Data go to and from it through pipes, never through files.
A worker that dies is replaced, and what it was doing is done again.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from threading import Condition, Thread
from types import FunctionType
from typing import Any, TypeVar

from synrisk.base.errors import EngineError, OptionError
from synrisk.base.kept import Kept, Names, doing
from synrisk.base.worker_process import (
    BROKEN,
    DO,
    DONE,
    FORGET,
    KEEP,
    READY,
    read,
    write,
)

_T = TypeVar("_T")
_R = TypeVar("_R")

AHEAD = 4  # pieces a worker that are laid out before they are asked for
_MOST_DEATHS = 3  # of workers that had one piece of work
_ONE_EACH = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
# Isolated until the paths of the process that asks are known: nothing beside it is imported.
_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "from synrisk.base.worker_process import serve; serve()"
)


class _DiedError(Exception):
    """A worker process has ended."""


class _Pickler(pickle.Pickler):
    """Writes names in place of kept things, which go before."""

    def __init__(self, names: Names, whole: object) -> None:
        self.buffers: list[pickle.PickleBuffer] = []
        self.file = io.BytesIO()
        self.needed: list[tuple[int, Kept]] = []
        super().__init__(self.file, protocol=5, buffer_callback=self.buffers.append)
        self._names, self._whole = names, whole

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, Kept) or value is self._whole:
            return None
        name = self._names.of(value)
        self.needed.append((name, value))
        return name

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
            raise OptionError(
                f"executor='processes': {value.__name__!r} is defined in the program that is run, "
                "which worker processes do not run again. Put it into a module of its own and "
                "import it, or use executor='threads'."
            )
        return NotImplemented


@dataclass(frozen=True, repr=False)
class _Packed:
    """Something as buffers, and the kept things that it refers to."""

    parts: list[Any]
    needed: list[tuple[int, Kept]]


def _pack(value: Any, names: Names, what: str, *, by_name: bool = True) -> _Packed:
    """Return something as buffers; a kept thing as its name, or without `by_name` as it is."""
    pickler = _Pickler(names, None if by_name else value)
    with contextlib.suppress(pickle.PicklingError, TypeError, AttributeError):
        pickler.dump(value)
        buffers = [buffer.raw() for buffer in pickler.buffers]
        return _Packed([pickler.file.getbuffer(), *buffers], pickler.needed)
    raise OptionError(
        f"executor='processes': {what} needs something that cannot be sent to another process, "
        "such as a family, prior or guesses that are made within a function or of a lambda. Define "
        "it at the top of a module, or use executor='threads'."
    )


@dataclass(eq=False, repr=False)
class _Task:
    """A function that is mapped, known by a name to the workers that have it."""

    name: int
    what: str
    function: _Packed


@dataclass(eq=False, repr=False)
class _Piece:
    """One piece of work."""

    task: _Task
    item: Any
    result: Future[Any] = field(default_factory=Future)
    n_deaths: int = 0


class _Worker:
    """One process, and what it has."""

    def __init__(self) -> None:
        self.has: set[int] = set()
        settings: dict[str, Any] = {}
        if os.name == "posix":
            settings["process_group"] = 0  # Ctrl-C is for the process that asks, which ends this
        self.process = subprocess.Popen(  # noqa: S603 - our own Python
            [sys.executable, "-I", "-c", _BEGIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **dict.fromkeys(_ONE_EACH, "1")},
            **settings,
        )

    def begin(self) -> None:
        """Wait until it is there."""
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        with self._alive():
            self.process.stdin.write(json.dumps(sys.path).encode() + b"\n")
            self.process.stdin.flush()
            if self._answer()[0] != READY:
                raise EOFError

    def forget(self, name: int) -> None:
        if name in self.has:
            self.has.discard(name)
            self._send(FORGET, name)

    def keep(self, name: int, value: _Packed) -> None:
        if name not in self.has:
            self._send(KEEP, name, *value.parts)
            self.has.add(name)

    def do(self, name: int, piece: _Packed) -> tuple[str, Any, tuple[Any, ...]]:
        self._send(DO, name, *piece.parts)
        with self._alive():
            return self._answer()

    def end(self) -> None:
        """End it at once; it has nothing that is to be kept."""
        with contextlib.suppress(OSError):
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self.process.wait()

    def _send(self, kind: str, name: int, *parts: Any) -> None:
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        with self._alive():
            write(self.process.stdin, [pickle.dumps((kind, name)), *parts])

    def _answer(self) -> tuple[str, Any, tuple[Any, ...]]:
        assert self.process.stdout is not None  # noqa: S101 - it is a pipe
        parts = read(self.process.stdout)
        answer: tuple[str, Any, tuple[Any, ...]]
        answer = pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 - of our own process
        return answer

    @contextlib.contextmanager
    def _alive(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError, ValueError):  # a closed stream is a ValueError
            dead = True
        else:
            dead = False
        if dead:
            raise _DiedError


class ProcessPool:
    """Worker processes, each with a thread that hands it work.

    Parameters
    ----------
    n
        How many.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._changed = Condition()
        self._waiting: deque[_Piece] = deque()
        self._gone: deque[int] = deque()  # names of what nothing here holds any more
        self._names = Names(self._gone.append)
        self._workers: dict[int, _Worker] = {}
        self._to_forget: list[list[int]] = [[] for _ in range(n)]
        self._threads: list[Thread] = []
        self._is_closed = False

    def map(self, function: Callable[[_T], _R], items: Iterable[_T], /) -> Iterator[_R]:
        """Apply `function` to each item; results come in order, a few are made ahead."""
        source, what = iter(items), doing(function)
        first = list(islice(source, 2))
        if len(first) < 2:  # not worth a worker
            yield from map(function, first)
            return
        task = _Task(self._names.fresh(), what, _pack(function, self._names, what))
        asked: deque[_Piece] = deque()
        try:
            for item in first:
                asked.append(self._ask(task, item))
            while asked:
                for item in islice(source, AHEAD * self._n - len(asked)):
                    asked.append(self._ask(task, item))
                found, said = asked.popleft().result.result()
                for category, message in said:
                    warnings.warn(message, category, stacklevel=2)
                yield found
        finally:
            with self._changed:
                for piece in asked:
                    with contextlib.suppress(ValueError):
                        self._waiting.remove(piece)
            self._gone.append(task.name)

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            workers = list(self._workers.values())
            self._changed.notify_all()
        for worker in workers:
            with contextlib.suppress(OSError):
                worker.process.kill()
        for thread in self._threads:
            thread.join()

    def _ask(self, task: _Task, item: Any) -> _Piece:
        piece = _Piece(task, item)
        with self._changed:
            if self._is_closed:
                raise EngineError("executor='processes': the worker processes were ended.")
            self._waiting.append(piece)
            self._changed.notify()
            if not self._threads:
                for k in range(self._n):
                    name = f"synrisk worker {k + 1}"
                    self._threads.append(Thread(target=self._drive, args=(k,), name=name))
                for thread in self._threads:
                    thread.daemon = True
                    thread.start()
        return piece

    def _drive(self, k: int) -> None:
        """Hand work to the worker at position `k` until the pool is closed."""
        while (piece := self._next(k)) is not None:
            try:
                piece.result.set_result(self._done(k, piece))
            except BaseException as error:
                piece.result.set_exception(error)  # raised where the result is asked for
            del piece  # what nobody asks for any more can go
        worker = self._workers.pop(k, None)
        if worker is not None:
            worker.end()

    def _next(self, k: int) -> _Piece | None:
        """Return the next piece: one whose data the worker has, if there is one."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if self._is_closed:
                return None
            self._pass_on_what_is_gone()
            worker = self._workers.get(k)
            chosen = 0
            if worker is not None and isinstance(self._waiting[0].item, Kept):
                chosen = next(
                    (
                        place
                        for place, piece in enumerate(self._waiting)
                        if isinstance(piece.item, Kept) and self._names.of(piece.item) in worker.has
                    ),
                    0,
                )
            piece = self._waiting[chosen]
            del self._waiting[chosen]
            return piece

    def _pass_on_what_is_gone(self) -> None:
        while self._gone:
            name = self._gone.popleft()
            for names in self._to_forget:
                names.append(name)

    def _done(self, k: int, piece: _Piece) -> tuple[Any, tuple[Any, ...]]:
        """Return what a worker makes of a piece, and the warnings that it gave."""
        task = piece.task
        item = _pack(piece.item, self._names, task.what)
        while True:
            try:
                kind, found, said = self._asked(k, task, item)
                break
            except _DiedError:
                self._bury(k, piece)
        if kind == DONE:
            return found, said
        if kind == BROKEN:
            raise EngineError(
                f"A worker process failed while {task.what}: {found[0]} at {found[1]}. "
                "executor='threads' shows it whole."
            )
        raise found

    def _asked(self, k: int, task: _Task, item: _Packed) -> tuple[str, Any, tuple[Any, ...]]:
        worker = self._workers.get(k)
        if worker is None:
            worker = _Worker()
            with self._changed:
                if self._is_closed:
                    worker.end()
                    raise EngineError("executor='processes': the worker processes were ended.")
                self._workers[k] = worker
            worker.begin()
        with self._changed:
            forgotten, self._to_forget[k] = self._to_forget[k], []
        for name in forgotten:
            worker.forget(name)
        for value in (task.function, item):
            self._send_kept(worker, value, task.what)
        worker.keep(task.name, task.function)
        return worker.do(task.name, item)

    def _send_kept(self, worker: _Worker, value: _Packed, what: str) -> None:
        for name, kept in value.needed:
            if name not in worker.has:
                own = _pack(kept, self._names, what, by_name=False)
                self._send_kept(worker, own, what)
                worker.keep(name, own)

    def _bury(self, k: int, piece: _Piece) -> None:
        """Put away a worker that has died, or give up on what kills all of them."""
        dead = self._workers.pop(k)
        dead.end()
        piece.n_deaths += 1
        if self._is_closed:
            raise EngineError("executor='processes': the worker processes were ended.")
        if piece.n_deaths >= _MOST_DEATHS:
            status = dead.process.returncode
            raise EngineError(
                f"executor='processes': {_MOST_DEATHS} worker processes ended one after the other "
                f"while {piece.task.what} (the last with status {status}). Where the machine is "
                "short of memory, use fewer workers; else executor='threads'."
            )
