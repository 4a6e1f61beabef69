"""A bar on the terminal for work that takes long; nothing where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from synrisk.errors import OptionError


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
    if shown is not None and not isinstance(shown, bool):
        raise OptionError(f"progress must be True, False or None; got {type(shown).__name__}.")
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    counts = (MofNCompleteColumn(), TimeRemainingColumn())
    words = (TextColumn("{task.description}"), BarColumn())
    with Progress(*words, *counts, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda n: progress.update(task, advance=n)
