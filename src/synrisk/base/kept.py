"""What workers keep: data that many pieces of work need are sent to each worker once."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from threading import RLock
from typing import TypeVar

_F = TypeVar("_F", bound=Callable[..., object])


class Kept:
    """Base of what does not change and is used many times: a worker that has it keeps it.

    It is sent to a worker with the first piece of work that needs it, and forgotten there once
    nothing here holds it any more.
    """


class Names:
    """Names of kept things, for as long as they live."""

    def __init__(self, forget: Callable[[int], None]) -> None:
        self._forget = forget
        self._next = count()
        self._lock = RLock()  # what is gone may be noticed while another is named
        self._known: dict[int, tuple[weakref.ref[Kept], int]] = {}

    def of(self, kept: Kept) -> int:
        """Return the name of a kept thing; `forget` is called with it once the thing is gone."""
        own = id(kept)
        with self._lock:
            found = self._known.get(own)
            if found is not None:
                return found[1]
            name = self.fresh()

            def gone(_: object) -> None:
                self._known.pop(own, None)
                self._forget(name)

            self._known[own] = weakref.ref(kept, gone), name
            return name

    def fresh(self) -> int:
        """Return a name that nothing has."""
        return next(self._next)


def called(doing: str, shown: str | None = None) -> Callable[[_F], _F]:
    """Say what a task does, for whoever looks at it or reads of it: ``"evaluating"``.

    `shown` is what a bar calls the whole map; without it there is none, as where records are
    counted over several maps.
    """

    def marked(function: _F) -> _F:
        function.doing, function.shown = doing, shown  # type: ignore[attr-defined]
        return function

    return marked


def doing(function: object) -> str:
    """Return what a task does, in words."""
    function = _plain(function)
    said = getattr(function, "doing", None)
    return str(said if said is not None else getattr(function, "__name__", "working"))


def shown_as(function: object) -> str | None:
    """Return what a bar calls the map of a task, or None."""
    said = getattr(_plain(function), "shown", None)
    return None if said is None else str(said)


def _plain(function: object) -> object:
    while hasattr(function, "func"):  # a partial
        function = function.func
    return function
