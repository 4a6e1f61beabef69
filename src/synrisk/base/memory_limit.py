"""How much memory this process may take: all of the machine's, or what its container has.

Asked before memory is taken, since the system lets a process ask for more than there is, and ends
it when it uses that.
"""

from __future__ import annotations

import contextlib
import math
import os
from functools import cache
from pathlib import Path, PurePosixPath

from synrisk.base.errors import ResourceError

GROUPS = Path("/proc/self/cgroup")
MOUNTED = Path("/sys/fs/cgroup")
_SHARE_OF_PART = 8  # a part of a table may take an eighth: it is read, encoded, and worked on
_LIMIT_2, _LIMIT_1 = "memory.max", "memory.limit_in_bytes"  # of control groups, by version


@cache
def memory_limit() -> float:
    """Return how many bytes this process may take; infinity where that cannot be known.

    It is the machine's memory, or the least limit of the control groups that the process is in:
    asked once, as files are counted row by row.
    """
    return min(_of_machine(), *_of_groups())


def refuse_beyond(n_bytes: float, what: str, instead: str) -> None:
    """Raise if `what` takes more memory than there is.

    Parameters
    ----------
    n_bytes
        How much that is, about.
    what
        The subject of the message.
    instead
        What to do.
    """
    most = memory_limit()
    if n_bytes > most:
        raise ResourceError(
            f"{what} takes about {gibibytes(n_bytes)} of memory, and this process may have "
            f"{gibibytes(most)}. {instead}"
        )


def n_parts_within(n_bytes: float) -> int:
    """Return in how many parts something would do that takes so many bytes as a whole."""
    return max(2, math.ceil(_SHARE_OF_PART * n_bytes / memory_limit()))


def gibibytes(n_bytes: float) -> str:
    """Return a number of bytes for a message.

    Examples
    --------
    >>> gibibytes(3 * 2**29)
    '1.5 GiB'
    """
    return f"{n_bytes / 2**30:,.{0 if n_bytes >= 100 * 2**30 else 1}f} GiB"


def _of_machine() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on Windows
        return math.inf


def _of_groups() -> list[float]:
    """Return the limits of the control groups that hold this process, and of those above these.

    A container may see its own group as the root, under a path that is not there within it.
    """
    found = [math.inf]
    lines: list[str] = []
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines = GROUPS.read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, kinds, path = [*line.split(":", 2), "", ""][:3]
        own = PurePosixPath(path.lstrip("/"))
        for above in (own, *own.parents):
            if kinds == "":  # version 2 has one tree, of all kinds
                found += [_limit(MOUNTED / above / _LIMIT_2)]
                found += [_limit(MOUNTED / "unified" / above / _LIMIT_2)]
            elif "memory" in kinds.split(","):
                found += [_limit(MOUNTED / "memory" / above / _LIMIT_1)]
    return found


def _limit(file: Path) -> float:
    """Return what a group's file says: infinity for "max", and where there is none."""
    with contextlib.suppress(OSError, ValueError):
        return float(int(file.read_text(encoding="ascii")))
    return math.inf
