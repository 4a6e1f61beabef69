"""Priors of a regression's parameters, as users write them; ``fitting`` scales them to the data."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from synrisk.base.errors import PriorError, got, listed, nearest


@dataclass(frozen=True)
class Normal:
    """A normal prior on a coefficient or on the intercept (at the predictors' means).

    Parameters
    ----------
    mean, sd
        On the parameter's own scale.

    Examples
    --------
    >>> Normal(0, 2)
    Normal(mean=0.0, sd=2.0)
    """

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not (_is_number(self.mean) and _is_scale(self.sd)):
            raise PriorError(
                "Normal(mean, sd) takes two finite numbers, the second above 0, neither extreme."
            )
        _as_floats(self)

    def __str__(self) -> str:
        return f"Normal({self.mean:.4g}, {self.sd:.4g})"


@dataclass(frozen=True)
class Exponential:
    """An exponential prior on sigma.

    Parameters
    ----------
    rate
        One over the prior mean.
    """

    rate: float

    def __post_init__(self) -> None:
        if not _is_scale(self.rate):
            raise PriorError("Exponential(rate) takes a finite number above 0, not extreme.")
        _as_floats(self)

    def __str__(self) -> str:
        return f"Exponential({self.rate:.4g})"


@dataclass(frozen=True)
class Conjugate:
    """The normal-inverse-gamma prior of a gaussian model, whose posterior is known exactly.

    Given sigma, each coefficient is normal about 0 with standard deviation ``scale·sigma`` over the
    standard deviation of its column, and the intercept normal about the mean response with
    ``scale·sigma``. ``sigma²`` is a scaled inverse χ² with `df` degrees of freedom about the
    response's variance. ``Conjugate(scale=inf, df=0)`` is the reference prior ∝ 1/sigma².

    Parameters
    ----------
    scale
        How wide the coefficients are believed to be; may be infinite.
    df
        How many observations the prior of sigma is worth; may be 0.
    """

    scale: float = 10.0
    df: float = 1.0

    def __post_init__(self) -> None:
        wide = isinstance(self.scale, numbers.Real) and self.scale == math.inf
        if not (wide or _is_scale(self.scale)):
            raise PriorError("Conjugate: scale must be a number above 0; it may be infinite.")
        if not _is_number(self.df) or self.df < 0:
            raise PriorError("Conjugate: df must be a finite number from 0, not extreme.")
        _as_floats(self)


_LARGEST = 1e50  # of a prior's numbers; squares must not overflow
# A prior as users give it: a name, one prior for all coefficients, or priors by parameter.
PriorSpec: TypeAlias = str | Normal | Conjugate | Mapping[str, Normal | Exponential]
PRIORS = ("default", "paper", "conjugate")


def check_prior(spec: Any) -> PriorSpec:
    """Return `spec` if it can be a prior."""
    if isinstance(spec, Normal | Conjugate):
        return spec
    if isinstance(spec, str) and spec in PRIORS:
        return spec
    if isinstance(spec, Mapping) and all(
        isinstance(name, str) and isinstance(prior, Normal | Exponential)
        for name, prior in spec.items()
    ):
        return dict(spec)
    raise PriorError(
        f"prior must be one of {listed(PRIORS)}, Normal(mean, sd) for all coefficients, "
        "Conjugate(...), or a dict of Normal and Exponential by parameter, such as "
        f"{{'LogIncome': Normal(0, 2)}}; got {got(spec)}.{nearest(spec, PRIORS)}"
    )


def prior_to_json(spec: Any) -> Any:
    """Return a prior, or a tuple of them by parameter, as JSON has it."""
    if isinstance(spec, tuple):
        return [prior_to_json(one) for one in spec]
    if isinstance(spec, Mapping):
        return {"by parameter": {name: prior_to_json(one) for name, one in spec.items()}}
    if isinstance(spec, str):
        return spec
    return [type(spec).__name__, *(float(value).hex() for value in vars(spec).values())]


def prior_from_json(stored: Any) -> Any:
    """Return what `prior_to_json` stored."""
    if isinstance(stored, str):
        return stored
    if isinstance(stored, Mapping):
        return {name: prior_from_json(one) for name, one in stored["by parameter"].items()}
    if stored and not isinstance(stored[0], str):
        return tuple(prior_from_json(one) for one in stored)
    kind: Any = {"Normal": Normal, "Exponential": Exponential, "Conjugate": Conjugate}[stored[0]]
    return kind(*(float.fromhex(value) for value in stored[1:]))


def _is_number(value: object) -> bool:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and -_LARGEST < value < _LARGEST  # type: ignore[operator]


def _is_scale(value: object) -> bool:
    return _is_number(value) and value > 1.0 / _LARGEST  # type: ignore[operator]


def _as_floats(prior: Any) -> None:
    for name, value in vars(prior).items():
        object.__setattr__(prior, name, float(value))
