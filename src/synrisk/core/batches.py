"""Which draws make a unit of the Monte-Carlo error: a draw, an antithetic pair, a batch of a chain.

Draws of a chain depend on those before them, so adjacent ones are taken together, in batches of
about the square root of the chain's length. No batch reaches from one chain into the next: where a
chain does not fill its last batch, the places that are left stay empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray

_NO_DRAW = -1
_SHORTEST, _LONGEST = 0.75, 1.5  # of the square root of a chain's length


@dataclass(frozen=True, repr=False)
class Units:
    """Draws at places in a row; so many adjacent places make a unit.

    Attributes
    ----------
    size
        The number of places in a unit; the last may have fewer.
    layout
        The draw at each place, -1 for none; None where draw h has place h.
    basis
        Orthonormal directions over the units that have no error, ``(direction, unit)``.
    normals
        Standard normals of the units, ``(unit, parameter)``, the sums of whose products have no
        error, where these are too many for a direction each.
    """

    size: int = 1
    layout: IntArray | None = None
    basis: FloatArray | None = None
    normals: FloatArray | None = None

    @classmethod
    def of_chains(cls, chain: IntArray | None, n_draws: int) -> Units:
        """Return batches of adjacent draws of a chain; None is taken for one chain."""
        lengths = [n_draws] if chain is None else _lengths(chain)
        size = max(1, math.isqrt(max(lengths)))
        if len(lengths) == 1:
            return cls(size)
        size = _fitting(size, lengths)
        places = [-(-n // size) * size for n in lengths]
        if places == lengths:
            return cls(size)
        layout = np.full(sum(places), _NO_DRAW, dtype=np.int64)
        place = draw = 0
        for n, wide in zip(lengths, places, strict=True):
            layout[place : place + n] = np.arange(draw, draw + n)
            place, draw = place + wide, draw + n
        return cls(size, layout)

    def laid_out(self, values: FloatArray) -> FloatArray:
        """Return `values`, draws on the last axis, by place; an empty one has the first draw's."""
        if self.layout is None:
            return values
        return np.take(values, np.maximum(self.layout, 0), axis=-1)

    def occupied(self, n_draws: int) -> FloatArray:
        """Return 1 for each place that has a draw, and 0 for the empty ones."""
        return np.ones(n_draws) if self.layout is None else (self.layout >= 0).astype(np.float64)


def _lengths(chain: IntArray) -> list[int]:
    """Return how many adjacent draws have the same chain."""
    starts = np.flatnonzero(np.diff(chain)) + 1
    return [int(n) for n in np.diff([0, *starts, len(chain)])]


def _fitting(size: int, lengths: list[int]) -> int:
    """Return a batch's length near `size` that leaves the fewest places empty."""
    near = range(max(1, math.ceil(_SHORTEST * size)), math.floor(_LONGEST * size) + 1)
    return min(near, key=lambda one: (sum(-n % one for n in lengths), abs(one - size)))
