"""What the kernels' signatures are made of, and the arithmetic that they allow."""

from __future__ import annotations

from numba import types

F1, F2, F3, F4 = (types.Array(types.float64, n, "C") for n in (1, 2, 3, 4))
I1, I2 = (types.Array(types.int64, n, "C") for n in (1, 2))

# Sums may be reordered, which lets them be vectorised. NaN and infinities are not assumed away: a
# draw of weight zero has the log weight −∞, and what overflows must stay visible.
FAST = {"reassoc", "contract", "nsz", "arcp"}
EXACT = {"contract", "nsz"}  # where reordering would cancel a rounding trick
