"""exp and log that LLVM vectorises: straight arithmetic, no calls, no branches.

`math.exp` is a call for every element and takes three times as long. These are accurate to about
1e-15 relatively; powers are held between 2^-1020 and 2^1020.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.polynomial.chebyshev import cheb2poly
from scipy.special import iv

from synrisk.core.kernels.compiling import within_kernels
from synrisk.core.kernels.signatures import EXACT

LOG2E = 1.0 / math.log(2.0)
_LARGEST = 1020.0  # the largest power of two in absolute value
ROUNDER = 1.5 * 2.0**52  # adding it leaves the nearest whole number in the lowest bits
# 2^r on |r| ≤ ½ by its Chebyshev series, whose coefficients are Bessel functions, to degree 10: the
# relative error is 4e-16.
_CHEBYSHEV = [(1.0 if k == 0 else 2.0) * iv(k, math.log(2.0) / 2) for k in range(11)]
EXPONENTIAL_SERIES = tuple(float(c * 2.0**k) for k, c in enumerate(cheb2poly(_CHEBYSHEV)))
_E0, _E1, _E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10 = EXPONENTIAL_SERIES
# log((1 + s)/(1 − s)) = 2 Σ s^(2k+1)/(2k+1), |s| ≤ 0.172: the eleventh term is 1e-17.
LOGARITHM_SERIES = tuple(2.0 / (2 * k + 1) for k in range(11))
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9, _L10 = LOGARITHM_SERIES
_LN2 = math.log(2.0)
_ROOT2 = math.sqrt(2.0)
_MANTISSA = (1 << 52) - 1
_ONE = 1023 << 52


def _intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make an intrinsic; it is called with one argument less than it is written with."""
    made: Callable[..., Any] = intrinsic(function)
    return made


@_intrinsic
def _bits(typing_context: Any, number: Any) -> Any:
    """The bits of a double as an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@_intrinsic
def _number(typing_context: Any, bits: Any) -> Any:
    """The double that an integer's bits are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@_intrinsic
def wide_vectors(typing_context: Any) -> Any:
    """Ask LLVM for 512-bit vectors in the function that calls this, where the CPU has them.

    LLVM takes 256-bit ones by default, fearing for the clock rate; a long loop of `exp2`
    takes half the time with 512. The function must stand alone for that.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


# Reassociation is not allowed here: it would cancel the rounding trick.
@within_kernels(fastmath=EXACT)
def exp2(x: Any) -> Any:
    """2^x."""
    t = min(max(x, -_LARGEST), _LARGEST)
    shifted = t + ROUNDER
    r = t - (shifted - ROUNDER)
    p = _E10
    p = p * r + _E9
    p = p * r + _E8
    p = p * r + _E7
    p = p * r + _E6
    p = p * r + _E5
    p = p * r + _E4
    p = p * r + _E3
    p = p * r + _E2
    p = p * r + _E1
    p = p * r + _E0
    return _number(_bits(p) + (_bits(shifted) << 52))


@within_kernels(fastmath=EXACT)
def exponential(x: Any) -> Any:
    """exp(x)."""
    return exp2(x * LOG2E)


@within_kernels(fastmath=EXACT)
def logarithm(x: Any) -> Any:
    """log(x) of a positive normal number."""
    bits = _bits(x)
    exponent = float((bits >> 52) - 1023)
    mantissa = _number((bits & _MANTISSA) | _ONE)
    large = mantissa > _ROOT2
    mantissa = mantissa * 0.5 if large else mantissa
    exponent = exponent + 1.0 if large else exponent
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    p = _L10
    p = p * z + _L9
    p = p * z + _L8
    p = p * z + _L7
    p = p * z + _L6
    p = p * z + _L5
    p = p * z + _L4
    p = p * z + _L3
    p = p * z + _L2
    p = p * z + _L1
    p = p * z + _L0
    return exponent * _LN2 + s * p


@within_kernels(fastmath=EXACT)
def exp2_all(numbers: Any) -> None:
    """Replace each of `numbers` by two to its power."""
    wide_vectors()
    for j in range(len(numbers)):
        numbers[j] = exp2(numbers[j])


@within_kernels(fastmath=EXACT)
def exp2_to_five_digits(numbers: Any) -> None:
    """Replace each of `numbers` by two to its power, to 4e-6: enough for a standard error."""
    wide_vectors()
    for j in range(len(numbers)):
        t = min(max(numbers[j], -_LARGEST), _LARGEST)
        shifted = t + ROUNDER
        r = t - (shifted - ROUNDER)
        p = ((((_E5 * r + _E4) * r + _E3) * r + _E2) * r + _E1) * r + _E0
        numbers[j] = _number(_bits(p) + (_bits(shifted) << 52))


@within_kernels(fastmath=EXACT)
def largest(numbers: Any) -> Any:
    """The largest of some numbers; numba takes a second to compile their own `max`."""
    top = -math.inf
    for j in range(len(numbers)):
        top = max(top, numbers[j])
    return top
