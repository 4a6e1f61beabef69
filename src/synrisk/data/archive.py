"""Dataclasses as JSON and arrays, and back: what a file of results holds.

`pack` walks a dataclass by its fields; arrays go to a mapping of arrays, everything else to JSON.
`unpack` walks the same fields by their annotations, so that nothing is made that these do not
allow: a file names no classes but those that a field's annotation lists. Arrays have the kind of
numbers that the annotation names, and where a class has ``SHAPES`` these shapes: compiled code
takes them as they are, and a file may have been made by anybody.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from synrisk.base.errors import FileError

_T = TypeVar("_T")
_WRONG = "A part of the file is not what it should be."
_CLASS = "is"  # the key that tells which class of a union a mapping is of


def pack(value: Any, arrays: dict[str, Any], name: str, leave: tuple[type, ...] = ()) -> Any:
    """Return a value as JSON, and put its arrays among `arrays`.

    Parameters
    ----------
    value
        A dataclass, or what its fields may hold: arrays, tuples and mappings of these, numbers,
        text, None.
    arrays
        Filled by the arrays, with names that begin with `name`.
    name
        Of the value.
    leave
        Classes that are not stored, because they are given again to `unpack`.
    """
    if isinstance(value, leave):
        return None
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        packed = {
            field.name: pack(getattr(value, field.name), arrays, f"{name}_{field.name}", leave)
            for field in dataclasses.fields(value)
            if field.init
        }
        return {_CLASS: type(value).__name__, **packed}
    if isinstance(value, tuple | list):
        return [pack(part, arrays, f"{name}_{k}", leave) for k, part in enumerate(value)]
    if isinstance(value, Mapping):
        return [[key, pack(part, arrays, f"{name}_{key}", leave)] for key, part in value.items()]
    return _number_or_text(value)


def _number_or_text(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else str(number)  # JSON has no infinity
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    raise FileError(f"A value of type {type(value).__name__} cannot be saved.")


def unpack(
    kind: type[_T],
    packed: Any,
    arrays: Mapping[str, Any],
    given: Mapping[type, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> _T:
    """Return the value of type `kind` that `pack` stored, or raise.

    Parameters
    ----------
    kind
        A dataclass.
    packed, arrays
        What `pack` returned and filled.
    given
        By class, what was left out.
    sizes
        By name, how long sides of arrays are ("record", "column"). Others may have any length, the
        same in all arrays of one object.
    """
    value: _T = _unpack(kind, packed, _Parts(arrays, given or {}, sizes or {}))
    return value


@dataclasses.dataclass(frozen=True)
class _Parts:
    arrays: Mapping[str, Any]
    given: Mapping[type, Any]
    sizes: Mapping[str, int]


def intact(make: Callable[[], _T]) -> _T:
    """Return what `make` makes of a file; whatever a damaged one leads to is a FileError."""
    with contextlib.suppress(
        ArithmeticError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError,
        ValueError,
    ):  # fmt: skip
        return make()
    raise FileError(_WRONG)


def _unpack(kind: Any, packed: Any, parts: _Parts) -> Any:
    if kind in parts.given:
        return parts.given[kind]
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _unpack(_member(kind, packed), packed, parts)
    if origin is np.ndarray:
        return _array(kind, parts.arrays[packed])
    if origin is tuple:
        part = get_args(kind)[0]
        return tuple(_unpack(part, value, parts) for value in _list(packed))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        part = get_args(kind)[1]
        return {key: _unpack(part, value, parts) for key, value in _list(packed)}
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, packed, parts)
    return _plain(kind, packed)


def _plain(kind: Any, packed: Any) -> Any:
    """Return a number, a text, one of the words of a Literal, or None."""
    if kind is float:
        return float(packed)
    if kind is types.NoneType:
        return None
    is_plain = kind in (bool, int, str) and type(packed) is kind
    is_word = get_origin(kind) is Literal and packed in get_args(kind)
    if not is_plain and not is_word:
        raise FileError(_WRONG)
    return packed


def _dataclass(kind: Any, packed: Any, parts: _Parts) -> Any:
    if not isinstance(packed, Mapping) or packed.get(_CLASS) != kind.__name__:
        raise FileError(_WRONG)
    hints = _hints(kind)
    values = {
        field.name: _unpack(hints[field.name], packed[field.name], parts)
        for field in dataclasses.fields(kind)
        if field.init and (field.name in packed or not _has_default(field))
    }
    _check_shapes(getattr(kind, "SHAPES", {}), values, dict(parts.sizes))
    return kind(**values)


def _array(kind: Any, array: Any) -> Any:
    """Return an array of the kind of numbers that an annotation names, or raise."""
    (number,) = get_args(get_args(kind)[1])
    if array.dtype != number:
        raise FileError(_WRONG)
    return np.ascontiguousarray(array)


def _check_shapes(
    shapes: Mapping[str, tuple[str | int, ...]], values: Mapping[str, Any], sizes: dict[str, int]
) -> None:
    """Raise where arrays of one object do not fit together."""
    for name, sides in shapes.items():
        array = values.get(name)
        if array is None:
            continue
        wanted = [
            side if isinstance(side, int) else sizes.setdefault(side, length)
            for side, length in zip(sides, array.shape, strict=False)
        ]
        if array.ndim != len(sides) or list(array.shape) != wanted:
            raise FileError(_WRONG)


def _has_default(field: dataclasses.Field[Any]) -> bool:
    """Tell whether a file of before there was a field may lack it."""
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _member(kind: Any, packed: Any) -> Any:
    """Return the member of a union that a stored value is of."""
    members = get_args(kind)
    if packed is None:
        return types.NoneType
    if isinstance(packed, Mapping):
        named = [one for one in members if getattr(one, "__name__", "") == packed.get(_CLASS)]
        if named:
            return named[0]
    elif isinstance(packed, list):
        sequences = [one for one in members if get_origin(one) is tuple]
        if sequences:
            return sequences[0]
    others = [one for one in members if one is not types.NoneType]
    if len(others) == 1:
        return others[0]
    if type(packed) in others:
        return type(packed)
    raise FileError(_WRONG)


def _list(packed: Any) -> list[Any]:
    if not isinstance(packed, list):
        raise FileError(_WRONG)
    return packed
