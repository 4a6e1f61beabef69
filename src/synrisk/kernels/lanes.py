"""Eight numbers at a time: a vector type for kernels.

LLVM vectorises simple loops by itself, but not those with many arrays, which it cannot prove to be
apart, nor those that call exp or log. Here the operations are vectors from the start. A function of
a family is compiled for lanes as it stands: it is given an index made by `all_lanes`, one draw of
eight records, or by `eight_draws`, eight draws of one record.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, models, overload, register_model

from synrisk.kernels.elementary import EXPONENTIAL_SERIES, LOG2E, LOGARITHM_SERIES, ROUNDER

N_LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), N_LANES)
_INTEGERS = ir.VectorType(ir.IntType(64), N_LANES)
_FLAGS = ("contract", "nsz")


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="synrisk.lanes")


class _Lane(types.Type):
    def __init__(self) -> None:
        super().__init__(name="synrisk.lane")


class _Draws(types.Type):
    def __init__(self) -> None:
        super().__init__(name="synrisk.draws")


_lanes, _lane, _draws = _Lanes(), _Lane(), _Draws()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _VECTOR)  # type: ignore[no-untyped-call]


@register_model(_Lane)
@register_model(_Draws)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, ir.IntType(64))  # type: ignore[no-untyped-call]


def _intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = intrinsic(function)
    return made


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@_intrinsic
def all_lanes(typing_context: Any, h: Any) -> Any:
    """The index of a draw in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return _lane(types.intp), generate


@_intrinsic
def eight_draws(typing_context: Any, h: Any) -> Any:
    """The index of eight adjacent draws, a lane each."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return _draws(types.intp), generate


@_intrinsic
def _draw_of(typing_context: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return types.intp(index), generate


@_intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """Eight neighbours of a contiguous array, from the flat `index`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=8)

    return _lanes(array, types.intp), generate


@_intrinsic
def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Write eight neighbours of a contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], pointer, align=8)
        return context.get_dummy_value()

    return types.none(array, types.intp, _lanes), generate


@_intrinsic
def spread(typing_context: Any, number: Any) -> Any:
    """The same number in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), arguments[0], zero)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), N_LANES), [0] * N_LANES)
        return builder.shuffle_vector(one, one, mask)

    return _lanes(types.float64), generate


@_intrinsic
def _as_lanes(typing_context: Any, value: Any) -> Any:
    """Lanes as they are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return (_lanes(_lanes), generate) if isinstance(value, _Lanes) else None


def _operation(name: str) -> Callable[..., Any]:
    @_intrinsic
    def operation(typing_context: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, name)(*arguments, flags=_FLAGS)

        return _lanes(_lanes, _lanes), generate

    return operation


def _overload(symbol: Any, name: str) -> None:
    operation = _operation(name)

    @overload(symbol, strict=False)
    def of_lanes(left: Any, right: Any) -> Any:
        kinds = (isinstance(left, _Lanes), isinstance(right, _Lanes))
        if kinds == (True, True):
            return lambda left, right: operation(left, right)
        if kinds == (True, False) and isinstance(right, types.Float | types.Integer):
            return lambda left, right: operation(left, spread(float(right)))
        if kinds == (False, True) and isinstance(left, types.Float | types.Integer):
            return lambda left, right: operation(spread(float(left)), right)
        return None


for _symbol, _name in (
    (operator.add, "fadd"), (operator.iadd, "fadd"), (operator.sub, "fsub"),
    (operator.isub, "fsub"), (operator.mul, "fmul"), (operator.imul, "fmul"),
    (operator.truediv, "fdiv"),
):  # fmt: skip
    _overload(_symbol, _name)


def _chosen(predicate: str) -> Callable[..., Any]:
    @_intrinsic
    def chosen(typing_context: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.select(builder.fcmp_ordered(predicate, *arguments), *arguments)

        return _lanes(_lanes, _lanes), generate

    return chosen


_smaller, _larger = _chosen("<"), _chosen(">")


def _overload_choice(function: Any, choice: Callable[..., Any]) -> None:
    @overload(function, strict=False)
    def of_lanes(value: Any, limit: Any) -> Any:
        if isinstance(value, _Lanes) and isinstance(limit, types.Float):
            return lambda value, limit: choice(value, spread(limit))
        if isinstance(value, _Lanes) and isinstance(limit, _Lanes):
            return lambda value, limit: choice(value, limit)
        return None


_overload_choice(min, _smaller)
_overload_choice(max, _larger)


@overload(operator.neg, strict=False)
def _negative(value: Any) -> Any:
    return (lambda value: 0.0 - value) if isinstance(value, _Lanes) else None


@overload(abs, strict=False)
def _absolute(value: Any) -> Any:
    return (lambda value: max(value, -value)) if isinstance(value, _Lanes) else None


@overload(operator.getitem, strict=False)
def _neighbours(array: Any, index: Any) -> Any:
    """``parameters[p, index]`` and ``eta[cell, q, index]``.

    At one draw of eight records parameters are the same in every lane, and the last axis of eta has
    the lanes of a draw side by side. At eight draws of one record both are read as they lie.
    """
    if not isinstance(array, types.Array) or not isinstance(index, types.BaseTuple):
        return None
    kinds: Any = index
    if len(kinds) == 0:
        return None
    if isinstance(kinds[-1], _Lane) and len(kinds) == 2:
        return lambda array, index: spread(array[index[0], _draw_of(index[1])])
    if isinstance(kinds[-1], _Lane):
        return lambda array, index: load(
            array,
            (index[0] * array.shape[1] + index[1]) * array.shape[2] + _draw_of(index[2]) * N_LANES,
        )
    if isinstance(kinds[-1], _Draws) and len(kinds) == 2:
        return lambda array, index: load(array, index[0] * array.shape[1] + _draw_of(index[1]))
    if isinstance(kinds[-1], _Draws):
        return lambda array, index: load(
            array, (index[0] * array.shape[1] + index[1]) * array.shape[2] + _draw_of(index[2])
        )
    return None


@_intrinsic
def beyond(typing_context: Any, value: Any, limit: Any) -> Any:
    """One in each lane that is not within ±`limit`, else zero; NaN is not within."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, limit = arguments
        below = builder.fcmp_ordered("<", value, limit)
        above = builder.fcmp_ordered(">", value, builder.fneg(limit))
        within = builder.and_(below, above)
        zero, one = ir.Constant(_VECTOR, [0.0] * N_LANES), ir.Constant(_VECTOR, [1.0] * N_LANES)
        return builder.select(within, zero, one)

    return _lanes(_lanes, _lanes), generate


@_intrinsic
def smaller(typing_context: Any, left: Any, right: Any) -> Any:
    """One in each lane where `left` is smaller, else zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero, one = ir.Constant(_VECTOR, [0.0] * N_LANES), ir.Constant(_VECTOR, [1.0] * N_LANES)
        return builder.select(builder.fcmp_ordered("<", *arguments), one, zero)

    return _lanes(_lanes, _lanes), generate


@_intrinsic
def _times_power(typing_context: Any, value: Any, shifted: Any) -> Any:
    """Add to the exponent the whole number in the lowest bits of `shifted`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, power = (builder.bitcast(one, _INTEGERS) for one in arguments)
        moved = builder.shl(power, ir.Constant(_INTEGERS, [52] * N_LANES))
        return builder.bitcast(builder.add(number, moved), _VECTOR)

    return _lanes(_lanes, _lanes), generate


_LN2_HIGH = float(np.float32(math.log(2.0)) // 2.0**-20 * 2.0**-20)  # with zeros at its end
_LN2_LOW = float(np.log(np.longdouble(2.0)) - np.longdouble(_LN2_HIGH))
_E0, _E1, _E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10 = EXPONENTIAL_SERIES


@njit(inline="always", error_model="numpy")
def raised(x: Any) -> Any:
    """2^x in each lane, for |x| < 1000."""
    shifted = x + ROUNDER
    return _times_power(_raised_fraction(x - (shifted - ROUNDER)), shifted)


@overload(math.exp, strict=False)
def _exponential(x: Any) -> Any:
    """exp(x) in each lane, held between exp(±700), to the last digits: rates may be large."""
    if not isinstance(x, _Lanes):
        return None

    def exponential(x: Any) -> Any:
        x = max(min(x, 700.0), -700.0)
        shifted = x * LOG2E + ROUNDER
        whole = shifted - ROUNDER
        r = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
        return _times_power(_raised_fraction(r * LOG2E), shifted)

    return exponential


@njit(inline="always", error_model="numpy")
def _raised_fraction(r: Any) -> Any:
    """2^r for |r| ≤ ½."""
    p = r * _E10 + _E9
    p = p * r + _E8
    p = p * r + _E7
    p = p * r + _E6
    p = p * r + _E5
    p = p * r + _E4
    p = p * r + _E3
    p = p * r + _E2
    p = p * r + _E1
    return p * r + _E0


@_intrinsic
def _exponent(typing_context: Any, value: Any) -> Any:
    """The exponent of a positive normal number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], _INTEGERS)
        biased = builder.lshr(bits, ir.Constant(_INTEGERS, [52] * N_LANES))
        return builder.sitofp(
            builder.sub(biased, ir.Constant(_INTEGERS, [1023] * N_LANES)), _VECTOR
        )

    return _lanes(_lanes), generate


@_intrinsic
def _mantissa(typing_context: Any, value: Any) -> Any:
    """The mantissa of a positive normal number, from 1 to 2."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], _INTEGERS)
        low = builder.and_(bits, ir.Constant(_INTEGERS, [(1 << 52) - 1] * N_LANES))
        return builder.bitcast(
            builder.or_(low, ir.Constant(_INTEGERS, [1023 << 52] * N_LANES)), _VECTOR
        )

    return _lanes(_lanes), generate


_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9, _L10 = LOGARITHM_SERIES


@overload(math.log, strict=False)
def _logarithm(x: Any) -> Any:
    """log(x) of positive normal numbers."""
    if not isinstance(x, _Lanes):
        return None

    def logarithm(x: Any) -> Any:
        # From √½ to √2: where the mantissa is larger, its half, with one more in the exponent.
        mantissa = _mantissa(x)
        large = beyond(mantissa, spread(math.sqrt(2.0)))
        mantissa = mantissa - 0.5 * mantissa * large
        s = (mantissa - 1.0) / (mantissa + 1.0)
        z = s * s
        p = z * _L10 + _L9
        p = p * z + _L8
        p = p * z + _L7
        p = p * z + _L6
        p = p * z + _L5
        p = p * z + _L4
        p = p * z + _L3
        p = p * z + _L2
        p = p * z + _L1
        p = p * z + _L0
        return (_exponent(x) + large) * math.log(2.0) + s * p

    return logarithm


@overload(math.log1p, strict=False)
def _log_of_one_more(x: Any) -> Any:
    """log(1 + x), to an absolute error of a rounding."""
    return (lambda x: math.log(x + 1.0)) if isinstance(x, _Lanes) else None
