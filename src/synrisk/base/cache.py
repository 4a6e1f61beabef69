"""What is worked out once and asked for again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Made = TypeVar("Made")


class Memory:
    """Remembers what was made, by a name."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Hashable, Any]] = {}

    def recall(self, name: str, make: Callable[[], Made], given: Hashable = None) -> Made:
        """Return what `make` does; it is made again where `given` is another than before."""
        found = self._made.get(name)
        if found is None or found[0] != given:
            found = self._made[name] = (given, make())  # another thread may put its own there
        made: Made = found[1]
        return made
