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

_SECRET_BITS = 128  # as many as a stream's key has
MOST_TRIED = 10**18  # seeds: somebody who has many machines tries as many one after the other


def checked_seed(seed: Any) -> int:
    """Return a seed that is a whole number from 0, or for None a secret one of 128 bits."""
    if seed is None:
        return secrets.randbits(_SECRET_BITS)
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise OptionError(f"seed must be a whole number from 0, or None; got {got(seed)}.")
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
    words = str(int(seed)) + after_seed(stage, dataset, variable, chunk)
    key = hashlib.blake2b(words.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(key, dtype=np.uint64)))


def after_seed(stage: str, dataset: int, variable: str, chunk: int) -> str:
    """Return what a stream is for, which stands behind the seed in the text of its key."""
    return "".join("\x1f" + word for word in (stage, str(dataset), variable, str(chunk)))
