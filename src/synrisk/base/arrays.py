"""Types of arrays and numbers, as every room takes them."""

from __future__ import annotations

import math
import numbers
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def as_float(value: float | numbers.Real) -> float:
    """Return a number as a float: infinity where Python's own, such as 10**400, are beyond floats.

    Examples
    --------
    >>> as_float(-(10**400))
    -inf
    """
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf
