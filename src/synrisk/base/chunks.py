"""Fixed chunks: every loop over rows is a map over these, and every sum adds them in this order.

The boundaries depend on the number of rows alone, so results do not depend on how the chunks are
spread over workers.
"""

from __future__ import annotations

ROWS = 4096


def chunks(n_rows: int) -> list[slice]:
    """Return the slices of `ROWS` rows that cover ``range(n_rows)``."""
    return [slice(start, min(start + ROWS, n_rows)) for start in range(0, n_rows, ROWS)]
