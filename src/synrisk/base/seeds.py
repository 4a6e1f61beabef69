"""Random streams that do not depend on workers or on the order of the work.

A stream is a Philox generator keyed by the user's seed and by what it is for: stage, dataset,
variable, chunk. Two different keys give independent streams; the same key gives the same numbers.
"""

from __future__ import annotations

import hashlib
import numbers
import secrets
from typing import Any

import numpy as np

from synrisk.base.errors import OptionError, got


def checked_seed(seed: Any) -> int:
    """Return a seed that is a whole number, or one of the system's for None."""
    if seed is None:
        return secrets.randbits(63)
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise OptionError(f"seed must be a whole number or None; got {got(seed)}.")
    return int(seed)


def stream(
    seed: int, stage: str, *, dataset: int = 0, variable: str = "", chunk: int = 0
) -> np.random.Generator:
    """Return the generator of one stage, dataset, variable and chunk under `seed`.

    Examples
    --------
    >>> a = stream(1, "synthesis", variable="Income").random()
    >>> a == stream(1, "synthesis", variable="Income").random()
    True
    >>> a == stream(1, "synthesis", variable="Income", chunk=1).random()
    False
    """
    words = "\x1f".join([str(int(seed)), stage, str(dataset), variable, str(chunk)])
    key = hashlib.blake2b(words.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(key, dtype=np.uint64)))
