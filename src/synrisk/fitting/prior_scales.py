"""Priors scaled to the data, once: a refit on other rows keeps them.

As rstanarm does it: the intercept's prior is on the linear predictor at the columns' means, and
coefficients are measured in standard deviations of their column. Without an intercept nothing is
centred, so root mean squares take the place of standard deviations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import PriorError, listed, nearest
from synrisk.models.design_columns import DesignColumn
from synrisk.models.families import Auxiliary
from synrisk.models.priors import Conjugate, Exponential, Normal, PriorSpec

_SCALE = 2.5  # rstanarm's, in standard deviations
_PAPER_SCALE = 2.0


@dataclass(frozen=True)
class Scales:
    """What default priors are scaled by.

    Attributes
    ----------
    centre, spread
        Of the response; 0 and 1 where the link fixes the scale.
    columns
        The spread of each design column.
    """

    centre: float
    spread: float
    columns: FloatArray


def resolve_priors(
    spec: PriorSpec,
    columns: Sequence[DesignColumn],
    names: Sequence[str],
    auxiliary: Sequence[Auxiliary],
    scales: Scales,
    what: str,
    n_further: int = 0,
) -> tuple[Normal | Exponential, ...] | Conjugate:
    """Return the prior of every parameter, scaled, or the conjugate one.

    Parameters
    ----------
    spec
        A checked prior.
    columns
        The design's columns.
    names
        The coefficients' names: the columns in order, for each linear predictor.
    auxiliary
        The auxiliary parameters.
    scales
        What the defaults are scaled by.
    what
        The regression, for messages.
    n_further
        How many linear predictors, the last ones, are not measured as the response is.
    """
    if isinstance(spec, Conjugate) or spec == "conjugate":
        return spec if isinstance(spec, Conjugate) else Conjugate()
    n_predictors = len(names) // len(columns) - n_further
    on_link_scale = Scales(0.0, 1.0, scales.columns)
    defaults, further = (
        [
            _coefficient_prior(spec, column, float(spread), own)
            for column, spread in zip(columns, scales.columns, strict=True)
        ]
        for own in (scales, on_link_scale)
    )
    priors: list[Normal | Exponential] = [*defaults * n_predictors, *further * n_further]
    priors += [Exponential(1.0 / own.default_mean(scales.spread)) for own in auxiliary]
    if isinstance(spec, Mapping):
        n_own = n_predictors * len(columns)
        _put_named(spec, priors, columns, names, auxiliary, what, n_own)
    return tuple(priors)


def _put_named(
    spec: Mapping[str, Normal | Exponential],
    priors: list[Normal | Exponential],
    columns: Sequence[DesignColumn],
    names: Sequence[str],
    auxiliary: Sequence[Auxiliary],
    what: str,
    n_own: int,
) -> None:
    """Put the priors that are given by name in the places of their parameters."""
    # A column's name stands for all its coefficients but those of further predictors (being
    # missing), "level:column" for one.
    known = [{name, str(columns[k % len(columns)])} for k, name in enumerate(names[:n_own])]
    known += [{name} for name in names[n_own:]]
    known += [{own.name} for own in auxiliary]
    general = {str(column) for column in columns}
    for name in sorted(spec, key=lambda name: name not in general):  # the specific ones last
        prior = spec[name]
        places = [k for k, own in enumerate(known) if name in own]
        if not places:
            public = [*(column.public for column in columns), *(own.name for own in auxiliary)]
            raise PriorError(
                f"{what}: prior= names {name!r}, which is no parameter of this model."
                f"{nearest(name, public)} It has {listed(public)}."
            )
        for k in places:
            if type(prior) is not type(priors[k]):
                wanted = type(priors[k]).__name__
                raise PriorError(f"{what}: the prior of {name!r} must be of type {wanted}.")
            priors[k] = prior


def _coefficient_prior(
    spec: PriorSpec, column: DesignColumn, spread: float, scales: Scales
) -> Normal:
    if not column.parts:
        return Normal(scales.centre, _SCALE * scales.spread)
    if isinstance(spec, Normal):
        return spec
    if spec == "paper":
        return Normal(0.0, _PAPER_SCALE)
    return Normal(0.0, _SCALE * scales.spread / spread)
