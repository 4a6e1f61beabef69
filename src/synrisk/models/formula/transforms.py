"""Transformed responses: ``log(Income) ~ …`` models the logarithm and synthesizes Income.

A transform is a chain of steps with known inverses, from the variable outwards. Everywhere but in
the model's own density the variable stands on its own scale: in data, guesses and predictors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import expit, logit

from synrisk.base.arrays import FloatArray
from synrisk.models.formula.expressions import (
    Call,
    Column,
    Expression,
    Negative,
    Number,
    Operation,
    write,
)

_Map: TypeAlias = Callable[[FloatArray], FloatArray]


def _square(values: FloatArray) -> FloatArray:
    return np.asarray(values * values)


# Function → itself, its inverse, the log of its derivative.
_FUNCTIONS: dict[str, tuple[_Map, _Map, _Map]] = {
    "log": (np.log, np.exp, lambda v: -np.log(v)),
    "log1p": (np.log1p, np.expm1, lambda v: -np.log1p(v)),
    "log2": (np.log2, np.exp2, lambda v: -np.log(v) - np.log(np.log(2.0))),
    "log10": (np.log10, lambda v: np.asarray(10.0**v), lambda v: -np.log(v) - np.log(np.log(10.0))),
    "logit": (logit, expit, lambda v: -np.log(v) - np.log1p(-v)),
    "sqrt": (np.sqrt, _square, lambda v: -0.5 * np.log(v) - np.log(2.0)),
}
FUNCTIONS = tuple(_FUNCTIONS)


@dataclass(frozen=True)
class Affine:
    """``slope·y + intercept``."""

    slope: float
    intercept: float


@dataclass(frozen=True)
class Transform:
    """An invertible function of a variable; without steps the identity.

    Examples
    --------
    >>> log = Transform(("log",), "log(y)")
    >>> float(log.inverse(log.apply(np.array(3.0))).round(12))
    3.0
    """

    steps: tuple[str | Affine, ...] = ()
    text: str = ""

    def apply(self, values: FloatArray) -> FloatArray:
        """Return the values on the model's scale, not finite where they have none."""
        with np.errstate(all="ignore"):
            for step in self.steps:
                if isinstance(step, Affine):
                    values = step.slope * values + step.intercept
                else:
                    values = _FUNCTIONS[step][0](values)
        return values

    def inverse(self, values: FloatArray) -> FloatArray:
        """Return the variable's own values; a root is squared whatever its sign."""
        with np.errstate(all="ignore"):
            for step in reversed(self.steps):
                if isinstance(step, Affine):
                    values = (values - step.intercept) / step.slope
                else:
                    values = _FUNCTIONS[step][1](values)
        return values

    def log_derivative(self, values: FloatArray) -> FloatArray:
        """Return the log of the absolute derivative at the variable's own values: the Jacobian."""
        total = np.zeros(np.shape(values))
        with np.errstate(all="ignore"):
            for step in self.steps:
                if isinstance(step, Affine):
                    total = total + np.log(abs(step.slope))
                    values = step.slope * values + step.intercept
                else:
                    total = total + _FUNCTIONS[step][2](values)
                    values = _FUNCTIONS[step][0](values)
        return np.asarray(total)

    def n_folded(self, values: FloatArray) -> int:
        """Count the values on the model's scale that no variable has: negative roots."""
        folded = np.zeros(np.shape(values), dtype=bool)
        with np.errstate(all="ignore"):
            for step in reversed(self.steps):
                if isinstance(step, Affine):
                    values = (values - step.intercept) / step.slope
                else:
                    folded |= (step == "sqrt") & (values < 0)
                    values = _FUNCTIONS[step][1](values)
        return int(folded.sum())


IDENTITY = Transform()


def read_transform(node: Expression) -> tuple[str, Transform] | None:
    """Return the variable and transform of an expression, None where its inverse is not known."""
    found = _steps(node)
    if found is None:
        return None
    name, steps = found
    return name, Transform(tuple(steps), write(node) if steps else "")


def _steps(node: Expression) -> tuple[str, list[str | Affine]] | None:
    match node:
        case Column(name):
            return name, []
        case Call("I", argument):
            return _steps(argument)
        case Call(function, argument) if function in _FUNCTIONS:
            return _then(argument, function)
        case Negative(of):
            return _then(of, Affine(-1.0, 0.0))
        case Operation(sign, left, right):
            return _arithmetic(sign, left, right)
    return None


def _arithmetic(
    sign: str, left: Expression, right: Expression
) -> tuple[str, list[str | Affine]] | None:
    """Read ``variable ∘ number`` or ``number ∘ variable`` where that is affine."""
    before, after = _number(left), _number(right)
    if after is not None and sign in "+-":
        return _then(left, Affine(1.0, after if sign == "+" else -after))
    if before is not None and sign in "+-":
        return _then(right, Affine(1.0 if sign == "+" else -1.0, before))
    factor = after if after is not None else before
    if not factor or (sign == "/" and after is None) or sign not in "*/":
        return None
    of = left if after is not None else right
    return _then(of, Affine(1.0 / factor if sign == "/" else factor, 0.0))


def _then(inner: Expression, step: str | Affine) -> tuple[str, list[str | Affine]] | None:
    found = _steps(inner)
    return None if found is None else (found[0], [*found[1], step])


def _number(node: Expression) -> float | None:
    match node:
        case Number(value):
            return value
        case Negative(of):
            inner = _number(of)
            return None if inner is None else -inner
    return None
