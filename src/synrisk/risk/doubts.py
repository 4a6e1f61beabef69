"""Records whose risk is not known, whatever the numbers say: what the question itself gives away.

The intruder considers what is possible. Where that was read off the confidential data, a level or a
value that one person alone has is possible because of that person: a release that holds it proves
it, and no number says so. And a model's density does not stand for the probability of values that
were released rounded more coarsely than it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.chunks import rows_at
from synrisk.base.errors import counted
from synrisk.data.schema import Factor, label_key
from synrisk.risk.estimators.estimate import Finding
from synrisk.risk.guesses import GuessSpan
from synrisk.risk.question import everybody_of
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.rounding import is_coarse, step_of
from synrisk.synthesis.synthesizer import Synthesizer

_MORE_THAN = 1.5  # steps of the model: a release that has every other value alone
_KNOWN, _MOST = 0.9, 0.5  # a probability before the release, and the share of records
LEAST_PEOPLE = 2  # with a level or value that nobody declared; one alone is what made it possible
_LEAST_SPREAD = 0.25  # of the standard deviation that the likelihood alone gives a coefficient


@dataclass(frozen=True, repr=False)
class Doubt:
    """Why the risk of some records is not known.

    Attributes
    ----------
    variable
        What it is about.
    why
        In a few words, with the remedy: of each of these people.
    what_to_do
        The remedy in a sentence.
    records
        Which of the evaluated records.
    """

    SHAPES: ClassVar = {
        "records": ("record",),
    }
    variable: str
    why: str
    what_to_do: str
    records: BoolArray

    def finding(self) -> Finding:
        """Return it as something shaky."""
        return Finding(
            f"The risk of {counted(int(self.records.sum()), 'record')} is not known.",
            f"{self.why[0].upper()}{self.why[1:]}.",
            self.what_to_do,
        )


def doubts_about(
    synthesizer: Synthesizer,
    release: Sequence[Released],
    extents: Sequence[GuessSpan],
    positions: IntArray,
    before: Mapping[int, FloatArray],
) -> tuple[Doubt, ...]:
    """Return why the risk of evaluated records is not known.

    `positions` are theirs, and `before` the prior probability of the truth of each variable that is
    asked for, by axis.
    """
    shares = {axis: float(is_known(values).mean()) for axis, values in before.items()}
    found = (
        one.about(positions, before[one.axis])
        for one in suspicions(synthesizer, release, extents, shares)
    )
    return tuple(doubt for doubt in found if doubt.records.any())


def is_known(before: FloatArray) -> BoolArray:
    """Tell whose value is known before any release."""
    return np.asarray(before > _KNOWN)


@dataclass(frozen=True, repr=False)
class Suspicion:
    """What may be doubted of some records, before it is known of which.

    Attributes
    ----------
    axis
        Of the variable.
    whom
        Tells it of records by their positions and the prior probability of their truth.
    variable, why, what_to_do
        As of a `Doubt`.
    """

    axis: int
    variable: str
    why: str
    what_to_do: str
    whom: Callable[[IntArray, FloatArray], BoolArray]

    def about(self, positions: IntArray, before: FloatArray) -> Doubt:
        """Return which of some records it is of."""
        return Doubt(self.variable, self.why, self.what_to_do, self.whom(positions, before))


def suspicions(
    synthesizer: Synthesizer,
    release: Sequence[Released],
    extents: Sequence[GuessSpan],
    shares: Mapping[int, float],
) -> tuple[Suspicion, ...]:
    """Return what may be doubted.

    `shares` are of the evaluated records whose value is known before, by axis of the variables that
    are asked for.
    """
    found = []
    for k, share in shares.items():
        model, extent = synthesizer.models[k], extents[k]
        found += [
            _alone(synthesizer, k, extent),
            _rounded(k, model, release),
            _coarse(k, model, extent),
            _known_before(k, model, extent, share),
            _too_sure(synthesizer, k, model),
        ]
    return tuple(one for one in found if one is not None)


def _everybody(positions: IntArray, before: FloatArray) -> BoolArray:
    del before
    return np.ones(len(positions), dtype=bool)


def _alone(synthesizer: Synthesizer, axis: int, extent: GuessSpan) -> Suspicion | None:
    """Find people whose level or value is possible because they alone have it."""
    name = synthesizer.models[axis].response
    variable, values = synthesizer.schema.variables[name], synthesizer.columns[name]
    is_factor = isinstance(variable, Factor)
    read: BoolArray | None = None
    if isinstance(variable, Factor):
        known = {label_key(level) for level in variable.stated}
        # True and false are possible whoever has them.
        read = np.array(
            [
                label_key(level) not in known and not isinstance(level, bool | np.bool_)
                for level in variable.levels
            ]
        )
    elif not extent.of_observed:
        return None
    everybody = everybody_of(synthesizer, name)

    def alone(positions: IntArray, before: FloatArray) -> BoolArray:
        del before
        own = rows_at(values, positions)
        few = everybody.n_with(own.astype(np.float64)) < LEAST_PEOPLE
        return few if read is None else few & read[own]

    return Suspicion(
        axis,
        name,
        f"nobody else has their {name}: declare what is possible, or merge it",
        "Declare what is possible without looking at the data: "
        + (f"list the levels of {name} (types)" if is_factor else f"list the guesses for {name}")
        + "; or merge rare ones with their neighbours.",
        alone,
    )


def _too_sure(synthesizer: Synthesizer, axis: int, model: Model) -> Suspicion | None:
    """Find draws made elsewhere that vary far less than the records let the parameters vary.

    Given the others, a coefficient has the precision that the likelihood's curvature gives it, and
    what its prior adds. Point estimates have no spread at all, and then no release tells anything.
    """
    if model.fit is not None:
        return None
    name, family = model.response, model.regression.distribution
    design = synthesizer.refits.design(model, None)
    eta, auxiliary = model.mean_predictors(design)
    y = model.regression.on_model_scale(synthesizer.columns[name].astype(np.float64))
    with np.errstate(all="ignore"):
        curvature = -np.diagonal(family.curvature(y, eta, auxiliary), axis1=1, axis2=2)
        weights = 1.0 if model.record_weights is None else model.record_weights[:, None]
        information = (design**2).T @ (weights * curvature[:, : eta.shape[1]])
        draws, chance = model.posterior.coefficients, np.exp(model.posterior.log_weights)
        mean = np.tensordot(chance, draws, 1)
        variance = np.tensordot(chance, (draws - mean) ** 2, 1)
        spread = np.sqrt(variance * information)
    known = np.isfinite(spread) & (information > 0.0)
    if not known.any() or float(np.median(spread[known])) >= _LEAST_SPREAD:
        return None
    return Suspicion(
        axis,
        name,
        f"the draws for {name} vary far less than the records let its parameters vary",
        f"Are the draws for {name} a posterior? Point estimates, or draws of which most are alike, "
        "make every release look safe. If a prior is so strong, fit the model here with it.",
        _everybody,
    )


def _coarse(axis: int, model: Model, extent: GuessSpan) -> Suspicion | None:
    """Find a range that is too wide for its guesses to integrate the density over it."""
    if not extent.is_coarse:
        return None
    name = model.response
    return Suspicion(
        axis,
        name,
        f"the range of {name} is too wide for so few guesses: narrow it, or take more",
        f"Give more guesses for {name} (Range(n=…)), or declare a narrower range.",
        _everybody,
    )


def _known_before(axis: int, model: Model, extent: GuessSpan, share: float) -> Suspicion | None:
    """Find a tolerance so wide that nothing can be learnt: the truth is within it for most."""
    of_range = model.regression.distribution.is_continuous and extent.has_tolerance
    if not of_range or share <= _MOST:
        return None
    name = model.response
    return Suspicion(
        axis,
        name,
        f"the tolerance of {name} is so wide that most are within it without any release: narrow "
        "it",
        f"Give a narrower tolerance for {name}, in its own units: Tolerance(width=…).",
        lambda _, before: is_known(before),
    )


def _rounded(axis: int, model: Model, release: Sequence[Released]) -> Suspicion | None:
    """Find a response that was released more coarsely rounded than its model knows."""
    name, regression = model.response, model.regression
    family = regression.distribution
    if family.residual_sd(model.posterior.auxiliary) is None:
        return None
    columns: list[FloatArray] = [dataset.sample.columns[name] for dataset in release]
    known = 0.0 if family.is_continuous else _MORE_THAN * family.grid_step
    steps = [step_of(values) for values in columns]
    if not any(
        step > known and is_coarse(regression, model.posterior, values, step)
        for step, values in zip(steps, columns, strict=True)
    ):
        return None
    without = " without the transformation" if regression.transform.steps else ""
    return Suspicion(
        axis,
        name,
        f"{name} is released rounded more coarsely than its model knows: model it as rounded, or "
        "release more digits",
        f"Model it{without} by a rounded family, such as rounded_gaussian or rounded_lognormal, "
        "with the step of the release, or "
        "release more digits.",
        _everybody,
    )
