"""Eight numbers at a time: a vector type for kernels.

LLVM vectorises simple loops by itself, but not those with many arrays, which it cannot prove to be
apart, nor those that call exp or log. Here the operations are vectors from the start. A function of
a family is compiled for lanes as it stands: it is given an index made by `all_lanes`, one draw of
eight records, or by `eight_draws`, eight draws of one record.

Operations are written as LLVM's instructions: as functions that numba compiles each by itself they
would take it many seconds.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, overload, register_model

from synrisk.core.kernels.exp_log import EXPONENTIAL_SERIES, LOG2E, LOGARITHM_SERIES, ROUNDER

N_LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), N_LANES)
_INTEGERS = ir.VectorType(ir.IntType(64), N_LANES)
# Reassociation would cancel a rounding trick. numba adds it to instructions without flags.
_FLAGS = ("contract", "nsz")
# log 2 in two parts, the first with zeros at its end: multiples of it by whole numbers are exact.
_LN2_HIGH = float(np.float32(math.log(2.0)) // 2.0**-20 * 2.0**-20)
_LN2_LOW = float(np.log(np.longdouble(2.0)) - np.longdouble(_LN2_HIGH))
_LARGEST = 700.0  # exponent of e


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
        super().__init__(manager, type_, _VECTOR)


@register_model(_Lane)
@register_model(_Draws)
class _IndexModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, ir.IntType(64))


# What is emitted


def _constant(number: float) -> Any:
    return ir.Constant(_VECTOR, [number] * N_LANES)


def _whole(number: int) -> Any:
    return ir.Constant(_INTEGERS, [number] * N_LANES)


def _broadcast(builder: Any, number: Any) -> Any:
    zero = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, zero)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), N_LANES), [0] * N_LANES)
    return builder.shuffle_vector(one, one, mask)


def _add(builder: Any, left: Any, right: Any) -> Any:
    return builder.fadd(left, right, flags=_FLAGS)


def _subtract(builder: Any, left: Any, right: Any) -> Any:
    return builder.fsub(left, right, flags=_FLAGS)


def _multiply(builder: Any, left: Any, right: Any) -> Any:
    return builder.fmul(left, right, flags=_FLAGS)


def _divide(builder: Any, left: Any, right: Any) -> Any:
    return builder.fdiv(left, right, flags=_FLAGS)


def _smaller(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", left, right), left, right)


def _larger(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", left, right), left, right)


def _polynomial(builder: Any, x: Any, coefficients: Sequence[float]) -> Any:
    """Σ coefficient · x^k, by Horner's rule."""
    total = _constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = _add(builder, _multiply(builder, total, x), _constant(coefficient))
    return total


def _times_power(builder: Any, value: Any, shifted: Any) -> Any:
    """Add to the exponent the whole number in the lowest bits of `shifted`."""
    number, power = (builder.bitcast(one, _INTEGERS) for one in (value, shifted))
    return builder.bitcast(builder.add(number, builder.shl(power, _whole(52))), _VECTOR)


def _exp2(builder: Any, x: Any) -> Any:
    """2^x for |x| < 1000."""
    shifted = _add(builder, x, _constant(ROUNDER))
    r = _subtract(builder, x, _subtract(builder, shifted, _constant(ROUNDER)))
    return _times_power(builder, _polynomial(builder, r, EXPONENTIAL_SERIES), shifted)


def _exponential(builder: Any, x: Any) -> Any:
    """exp(x), held between exp(±700), to the last digits: rates may be large."""
    x = _larger(builder, _smaller(builder, x, _constant(_LARGEST)), _constant(-_LARGEST))
    shifted = _add(builder, _multiply(builder, x, _constant(LOG2E)), _constant(ROUNDER))
    whole = _subtract(builder, shifted, _constant(ROUNDER))
    r = _subtract(builder, x, _multiply(builder, whole, _constant(_LN2_HIGH)))
    r = _subtract(builder, r, _multiply(builder, whole, _constant(_LN2_LOW)))
    fraction = _multiply(builder, r, _constant(LOG2E))
    return _times_power(builder, _polynomial(builder, fraction, EXPONENTIAL_SERIES), shifted)


def _logarithm(builder: Any, x: Any) -> Any:
    """log(x) of positive normal numbers."""
    bits = builder.bitcast(x, _INTEGERS)
    exponent = builder.sub(builder.lshr(bits, _whole(52)), _whole(1023))
    mantissa = builder.or_(builder.and_(bits, _whole((1 << 52) - 1)), _whole(1023 << 52))
    mantissa = builder.bitcast(mantissa, _VECTOR)
    # From √½ to √2: where the mantissa is larger, its half, with one more in the exponent.
    large = builder.fcmp_ordered(">", mantissa, _constant(math.sqrt(2.0)))
    half = _multiply(builder, mantissa, _constant(0.5))
    mantissa = builder.select(large, half, mantissa)
    exponent = builder.select(large, builder.add(exponent, _whole(1)), exponent)
    one = _constant(1.0)
    s = _divide(builder, _subtract(builder, mantissa, one), _add(builder, mantissa, one))
    series = _polynomial(builder, _multiply(builder, s, s), LOGARITHM_SERIES)
    of_exponent = _multiply(builder, builder.sitofp(exponent, _VECTOR), _constant(math.log(2.0)))
    return _add(builder, of_exponent, _multiply(builder, s, series))


def _log_of_one_more(builder: Any, x: Any) -> Any:
    """log(1 + x), to an absolute error of a rounding."""
    return _logarithm(builder, _add(builder, x, _constant(1.0)))


def _log_gamma(builder: Any, x: Any) -> Any:
    """Call the C library's for each lane."""
    kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
    function = cgutils.get_or_insert_function(builder.module, kind, "lgamma")
    for lane in range(N_LANES):
        place = ir.Constant(ir.IntType(32), lane)
        number = builder.call(function, [builder.extract_element(x, place)])
        x = builder.insert_element(x, number, place)
    return x


def _negative(builder: Any, x: Any) -> Any:
    return _subtract(builder, _constant(0.0), x)


def _absolute(builder: Any, x: Any) -> Any:
    return _larger(builder, x, _negative(builder, x))


def _across(builder: Any, lanes: Any, emit: Callable[..., Any]) -> Any:
    """Put all lanes together, halves with one another."""
    size = N_LANES
    while size > 1:
        size //= 2
        upper = [min(k + size, N_LANES - 1) for k in range(N_LANES)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), N_LANES), upper)
        lanes = emit(builder, lanes, builder.shuffle_vector(lanes, lanes, mask))
    return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))


# How it is called


def _register_binary(function: Any, emit: Callable[..., Any]) -> None:
    """Let `function` take lanes, or lanes and a number."""

    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:  # noqa: ARG002 - numba's signature
            known = len(args) == 2 and all(isinstance(a, _Lanes | types.Float) for a in args)
            if known and any(isinstance(a, _Lanes) for a in args):
                wide = [_lanes if isinstance(a, _Lanes) else types.float64 for a in args]
                return signature(_lanes, *wide)
            return None

    infer_global(function)(Template)

    def lower(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        wide = [
            value if isinstance(kind, _Lanes) else _broadcast(builder, value)
            for kind, value in zip(sig.args, arguments, strict=True)
        ]
        return emit(builder, *wide)

    for kinds in ((_Lanes, _Lanes), (_Lanes, types.Float), (types.Float, _Lanes)):
        lower_builtin(function, *kinds)(lower)


def _register_unary(function: Any, emit: Callable[..., Any]) -> None:
    """Let `function` take lanes."""

    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:  # noqa: ARG002 - numba's signature
            known = len(args) == 1 and isinstance(args[0], _Lanes)
            return signature(_lanes, _lanes) if known else None

    infer_global(function)(Template)

    def lower(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return emit(builder, *arguments)

    lower_builtin(function, _Lanes)(lower)


for _function, _emit in (
    (operator.add, _add), (operator.iadd, _add), (operator.sub, _subtract),
    (operator.isub, _subtract), (operator.mul, _multiply), (operator.imul, _multiply),
    (operator.truediv, _divide), (min, _smaller), (max, _larger),
):  # fmt: skip
    _register_binary(_function, _emit)
for _single, _emit_single in (
    (operator.neg, _negative), (abs, _absolute), (math.exp, _exponential), (math.log, _logarithm),
    (math.log1p, _log_of_one_more), (math.lgamma, _log_gamma),
):  # fmt: skip
    _register_unary(_single, _emit_single)


def _load(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    return builder.load(_pointer(context, builder, array_type, array, index), align=8)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


def _intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = intrinsic(function)
    return made


@_intrinsic
def _read_neighbours(typing_context: Any, array: Any, index: Any) -> Any:
    kinds: Any = index
    of_draws = isinstance(kinds[-1], _Draws)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        made = context.make_array(sig.args[0])(context, builder, arguments[0])
        shape = cgutils.unpack_tuple(builder, made.shape)
        *cells, draw = cgutils.unpack_tuple(builder, arguments[1])
        row = cells[0]
        for size, cell in zip(shape[1:], cells[1:], strict=False):
            row = builder.add(builder.mul(row, size), cell)
        along = builder.mul(row, shape[-1])
        if of_draws:
            return _load(context, builder, sig.args[0], arguments[0], builder.add(along, draw))
        if len(cells) == 1:  # a parameter
            place = builder.gep(made.data, [builder.add(along, draw)])
            return _broadcast(builder, builder.load(place))
        place = builder.add(along, builder.mul(draw, ir.Constant(ir.IntType(64), N_LANES)))
        return _load(context, builder, sig.args[0], arguments[0], place)

    return _lanes(array, index), generate


@overload(operator.getitem, strict=False)
def _neighbours(array: Any, index: Any) -> Any:
    """``parameters[p, index]`` and ``eta[cell, q, index]``.

    At one draw of eight records parameters are the same in every lane, and the last axis of eta has
    the lanes of a draw side by side. At eight draws of one record both are read as they lie.
    """
    if not isinstance(array, types.Array) or not isinstance(index, types.BaseTuple):
        return None
    kinds: Any = index
    if len(kinds) == 0 or not isinstance(kinds[-1], _Lane | _Draws):
        return None
    return lambda array, index: _read_neighbours(array, index)


@_intrinsic
def all_lanes(typing_context: Any, h: Any) -> Any:
    """The index of a draw in every lane."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return arguments[0]

    return _lane(types.intp), generate


@_intrinsic
def eight_draws(typing_context: Any, h: Any) -> Any:
    """The index of eight adjacent draws, a lane each."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return arguments[0]

    return _draws(types.intp), generate


@_intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """Eight neighbours of a contiguous array, from the flat `index`."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return _load(context, builder, sig.args[0], *arguments)

    return _lanes(array, types.intp), generate


@_intrinsic
def gather(typing_context: Any, array: Any, index: Any, step: Any, n: Any) -> Any:
    """Numbers of a contiguous array that lie `step` apart, from the flat `index`.

    Lanes beyond the first `n` repeat the last of these. A vector that was written to memory lane by
    lane could not be read back at once.
    """

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        array, index, step, n = arguments
        data = context.make_array(sig.args[0])(context, builder, array).data
        last = builder.sub(n, ir.Constant(ir.IntType(64), 1))
        found = ir.Constant(_VECTOR, ir.Undefined)
        for lane in range(N_LANES):
            own = ir.Constant(ir.IntType(64), lane)
            own = builder.select(builder.icmp_signed("<", own, last), own, last)
            place = builder.gep(data, [builder.add(index, builder.mul(own, step))])
            number = ir.Constant(ir.IntType(32), lane)
            found = builder.insert_element(found, builder.load(place), number)
        return found

    return _lanes(array, types.intp, types.intp, types.intp), generate


@_intrinsic
def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Write eight neighbours of a contiguous array."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *arguments[:2])
        builder.store(arguments[2], pointer, align=8)
        return context.get_dummy_value()

    return types.none(array, types.intp, _lanes), generate


@_intrinsic
def broadcast(typing_context: Any, number: Any) -> Any:
    """The same number in every lane."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return _broadcast(builder, arguments[0])

    return _lanes(types.float64), generate


@_intrinsic
def exp2(typing_context: Any, x: Any) -> Any:
    """2^x in each lane, for |x| < 1000."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return _exp2(builder, *arguments)

    return _lanes(_lanes), generate


@_intrinsic
def beyond(typing_context: Any, value: Any, limit: Any) -> Any:
    """One in each lane that is not within ±`limit`, else zero; NaN is not within."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        value, limit = arguments
        below = builder.fcmp_ordered("<", value, limit)
        above = builder.fcmp_ordered(">", value, builder.fneg(limit))
        within = builder.and_(below, above)
        return builder.select(within, _constant(0.0), _constant(1.0))

    return _lanes(_lanes, _lanes), generate


@_intrinsic
def smaller(typing_context: Any, left: Any, right: Any) -> Any:
    """One in each lane where `left` is smaller, else zero."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        below = builder.fcmp_ordered("<", *arguments)
        return builder.select(below, _constant(1.0), _constant(0.0))

    return _lanes(_lanes, _lanes), generate


@_intrinsic
def no_number(typing_context: Any, value: Any) -> Any:
    """One in each lane that is NaN, else zero."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        missing = builder.fcmp_unordered("uno", arguments[0], arguments[0])
        return builder.select(missing, _constant(1.0), _constant(0.0))

    return _lanes(_lanes), generate


@_intrinsic
def any_of(typing_context: Any, value: Any) -> Any:
    """Whether any lane is not zero."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        other = builder.fcmp_unordered("!=", arguments[0], _constant(0.0))
        bits = builder.bitcast(other, ir.IntType(N_LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(N_LANES), 0))

    return types.boolean(_lanes), generate


@_intrinsic
def select(typing_context: Any, where: Any, one: Any, other: Any) -> Any:
    """`one` in each lane where `where` is not zero, else `other`."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        where, one, other = arguments
        return builder.select(builder.fcmp_unordered("!=", where, _constant(0.0)), one, other)

    return _lanes(_lanes, _lanes, _lanes), generate


def _reduction(emit: Callable[..., Any]) -> Callable[..., Any]:
    def across(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            return _across(builder, arguments[0], emit)

        return types.float64(_lanes), generate

    return _intrinsic(across)


# Of all lanes. The smallest and the largest are not defined where a lane is NaN.
sum_of, smallest_of, largest_of = _reduction(_add), _reduction(_smaller), _reduction(_larger)
