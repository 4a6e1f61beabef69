"""One random stream for each of many seeds, for a family's ``draw`` to draw from.

Instead of a generator: a draw of n responses takes the next number of each of n streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.seeds import after_seed

_LONGEST_SEED = 18  # digits
_N_FIRST = 6  # numbers of each stream that are kept


class OtherDrawsError(Exception):
    """A family draws in another way than one number a response of a known distribution."""


@dataclass(eq=False)
class Streams:
    """The streams of one stage, dataset and variable, at their first chunk of rows.

    Attributes
    ----------
    keys
        ``(seed, 2)``.
    used
        How many words of each stream were taken.
    """

    keys: npt.NDArray[np.uint64]
    used: IntArray
    _n_calls: int = 0
    # The first numbers of all streams, and the words used, by the kinds drawn so far: `again` gives
    # them without drawing. None once they depend on more than the streams.
    _first: dict[tuple[int, ...], tuple[FloatArray, IntArray]] | None = None
    _kinds: tuple[int, ...] = ()

    @classmethod
    def of(cls, seeds: IntArray, stage: str, dataset: int, variable: str) -> Streams:
        """Begin the streams that ``base.seeds.stream`` gives; seeds are from 0."""
        from synrisk.core.kernels.many_streams import BLOCK, keys_kernel

        rest = after_seed(stage, dataset, variable, 0).encode()
        if len(rest) > BLOCK - _LONGEST_SEED:
            raise OtherDrawsError
        keys = np.empty((len(seeds), 2), dtype=np.uint64)
        keys_kernel()(seeds, np.frombuffer(rest, dtype=np.uint8).copy(), keys)
        return cls(keys, np.zeros(len(seeds), dtype=np.int64), _first={})

    def again(self) -> Streams:
        """Return the streams from their beginning."""
        return Streams(self.keys, np.zeros(len(self.keys), dtype=np.int64), _first=self._first)

    def take(self, which: IntArray) -> Streams:
        """Return some of the streams, where they are."""
        return Streams(self.keys[which], self.used[which])

    def draw(self, family: Any, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the next response of each stream."""
        self._n_calls = 0
        try:
            return np.asarray(family.draw(eta, auxiliary, self), dtype=np.float64)
        except (AttributeError, TypeError):
            raise OtherDrawsError from None

    def random(self, size: Any = None) -> FloatArray:
        """Return a uniform number of each."""
        return self._drawn(0, np.empty(len(self.keys)), size)

    def normal(self, loc: Any, scale: Any) -> FloatArray:
        """Return a normal number of each."""
        z = self._drawn(1, np.empty(len(self.keys)), np.broadcast_shapes(loc.shape, scale.shape))
        return np.asarray(loc + scale * z)

    def poisson(self, lam: Any) -> FloatArray:
        """Return a Poisson number of each."""
        if not bool((lam <= 1e9).all()):  # beyond, whole numbers and doubles part
            raise OtherDrawsError
        return self._drawn(2, np.empty(len(self.keys)), lam.shape, np.ascontiguousarray(lam))

    def _drawn(self, kind: int, out: FloatArray, size: Any, *given: FloatArray) -> FloatArray:
        from synrisk.core.kernels.many_streams import draw_kernel

        self._n_calls += 1
        # Two numbers a response are not drawn row by row, but all first ones first.
        if self._n_calls > 1 or tuple(np.atleast_1d(size)) != out.shape:
            raise OtherDrawsError
        if given or len(self._kinds) == _N_FIRST:
            self._first = None
        self._kinds = (*self._kinds, kind)
        if self._first is not None and self._kinds in self._first:
            out, used = self._first[self._kinds]
            self.used = used.copy()
            return out
        draw_kernel(kind)(self.keys, self.used, *given, out)
        if self._first is not None:
            self._first[self._kinds] = out, self.used.copy()
        return out
