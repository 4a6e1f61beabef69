"""Fixed chunks: every loop over rows is a map over these, and every sum adds them in this order.

The boundaries depend on the number of rows alone, so results do not depend on how the chunks are
spread over workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import IntArray

ROWS = 4096


def chunks(n_rows: int) -> list[slice]:
    """Return the slices of `ROWS` rows that cover ``range(n_rows)``."""
    return [slice(start, min(start + ROWS, n_rows)) for start in range(0, n_rows, ROWS)]


def as_slice(positions: IntArray) -> slice | None:
    """Return the slice that takes these rows, or None where they do not follow one another."""
    first, n = (int(positions[0]), len(positions)) if len(positions) else (0, 0)
    follow = np.array_equal(positions, np.arange(first, first + n))
    return slice(first, first + n) if follow else None


def rows_at(column: Any, positions: slice | IntArray) -> npt.NDArray[Any]:
    """Return rows of a column that may be read by slices alone.

    Examples
    --------
    >>> rows_at(np.array([5.0, 6.0, 7.0]), np.array([2, 0]))
    array([7., 5.])
    """
    together = positions if isinstance(positions, slice) else as_slice(positions)
    if together is not None:
        return np.asarray(column[together])
    if isinstance(column, np.ndarray):
        return np.asarray(column[positions])
    assert not isinstance(positions, slice)  # noqa: S101 - a slice is taken above
    found = np.empty(len(positions), dtype=column.dtype)
    places = positions // ROWS
    for place in np.unique(places):
        own = places == place
        found[own] = column[ROWS * place : ROWS * (place + 1)][positions[own] % ROWS]
    return found
