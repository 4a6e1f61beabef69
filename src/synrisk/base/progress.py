"""Bars on the terminal for work that takes long; nothing where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from threading import Event
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from synrisk.base.errors import OptionError

if TYPE_CHECKING:
    from rich.progress import Progress

# Called with what is being done; the work is within its block.
Show: TypeAlias = Callable[[str], AbstractContextManager[object]]

_P = ParamSpec("_P")
_R = TypeVar("_R")

COMPILING = "Compiling, once where its result can be kept: a first run takes longer."

_open: ContextVar[Progress | None] = ContextVar("open", default=None)
_said = Event()  # that there is compilation: once a process, whatever number of studies it runs


def with_progress(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function that shows what is `under_way` where it is called with progress=True."""

    @wraps(function)
    def shown(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with _shown(kwargs.get("progress")):
            return function(*args, **kwargs)

    return shown


@contextmanager
def _shown(shown: Any) -> Iterator[None]:
    """Open a display, if that is asked for and standard error is a terminal."""
    _refuse_other_words(shown)
    if not shown or _open.get() is not None or not sys.stderr.isatty():
        yield
        return
    with _display():
        yield


def _refuse_other_words(shown: Any) -> None:
    if shown is not None and not isinstance(shown, bool):
        raise OptionError(f"progress must be True, False or None; got {type(shown).__name__}.")


@contextmanager
def bar(shown: bool | None, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that is told how many more of `total` are done.

    Parameters
    ----------
    shown
        True shows a bar with the time left on standard error, if that is a terminal; None and
        False show nothing.
    what
        What is being done.
    total
        How much of it there is.
    """
    _refuse_other_words(shown)
    # An open display stands before standard error, and before rich 15 says that it is no terminal.
    if not shown or (_open.get() is None and not sys.stderr.isatty()):
        yield lambda _: None
        return
    with _display() as display:
        task = display.add_task(what, total=total)
        try:
            yield lambda n: display.update(task, advance=n)
        finally:
            display.refresh()
            display.remove_task(task)


@contextmanager
def under_way(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield what `bar` does, shown where something that takes long shows its steps already."""
    with bar(_open.get() is not None, what, total) as advance:
        yield advance


@contextmanager
def steps(shown: bool) -> Iterator[Show]:
    """Yield what shows a step and the time that it has taken; bars within it stand below it."""
    if not shown or not sys.stderr.isatty():
        yield lambda _: nullcontext()
        return
    with _display() as display, _saying_when_compiled(display):

        @contextmanager
        def step(what: str) -> Iterator[None]:
            task = display.add_task(what, total=None)
            try:
                yield
            finally:
                display.remove_task(task)

        yield step


@contextmanager
def _saying_when_compiled(display: Progress) -> Iterator[None]:
    """Say so when numba begins to compile: a first run takes long without any other sign."""
    from numba.core.event import Listener, install_listener

    class Saying(Listener):
        def on_start(self, event: object) -> None:  # noqa: ARG002 - numba prescribes it
            if not _said.is_set():
                _said.set()
                display.console.print(COMPILING, highlight=False)

        def on_end(self, event: object) -> None:
            pass

    with install_listener("numba:compile", Saying()):
        yield


@contextmanager
def _display() -> Iterator[Progress]:
    """Yield the display that is open, or open one: a terminal has room for one only."""
    already = _open.get()
    if already is not None:
        yield already
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Counts(MofNCompleteColumn):
        def render(self, task: Task) -> Text:
            return Text("") if task.total is None else super().render(task)

    class Left(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            return Text("") if task.total is None else Text("left: ") + super().render(task)

    words = (TextColumn("{task.description}"), BarColumn())
    columns = (*words, Counts(), TimeElapsedColumn(), Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        token = _open.set(display)
        try:
            yield display
        finally:
            _open.reset(token)
