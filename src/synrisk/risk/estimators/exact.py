"""Exact: the ratio of predictive densities of a normal linear model, by quadrature over sigma."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.chunks import chunks
from synrisk.base.messages import setting
from synrisk.core.likelihood import ModelBlock, Nodes, log_predictive_by_nodes
from synrisk.fitting import Reach
from synrisk.models.plan import Regression
from synrisk.risk.estimators.estimate import Estimate, Estimator, Request, Shape
from synrisk.synthesis.fitted_model import Model

_SLACK = 1.1  # coefficients given a stack, or without a record, are a little different


@dataclass(frozen=True, repr=False)
class Exact(Estimate):
    """Nodes given the confidential data, and given these and each dataset stacked."""

    name: ClassVar[str] = "exact"
    is_drawn: ClassVar[bool] = False
    nodes: Nodes
    stacked: tuple[Nodes, ...]

    def log_table(
        self, block: ModelBlock, shape: Shape, totals: FloatArray | None = None
    ) -> FloatArray:
        """Return Σ_l log L_l over the model's guesses, ``(record, cell)``; there are no totals."""
        del totals
        return log_predictive_by_nodes(block, self.nodes, self.stacked, shape, predicted=False)[0]

    def log_predictive(self, block: ModelBlock, shape: Shape) -> FloatArray:
        """Return the log predictive density of each guess against the truth's."""
        return log_predictive_by_nodes(block.predicting(), self.nodes, (), shape)[1]

    def log_both(
        self, block: ModelBlock, shape: Shape, totals: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return both at once, where records' exponents are those of guesses."""
        if block.is_weighted:
            return super().log_both(block, shape, totals)
        return log_predictive_by_nodes(block, self.nodes, self.stacked, shape)


@dataclass(frozen=True)
class ExactEstimator(Estimator):
    """No Monte Carlo, for models whose posterior is known exactly."""

    name: ClassVar[str] = "exact"
    uses_draws: ClassVar[bool] = False

    def refusal(self, model: Model, *, with_stacks: bool) -> str | None:
        """Only a fit of synrisk's own has a posterior that is known exactly."""
        del with_stacks
        if model.fit is None:
            why = "has draws that were made elsewhere"
        elif not model.regression.distribution.exact:
            why = "is not gaussian"
        else:
            return None
        return (
            f"is for gaussian models made by synrisk; the model of {model.regression.response!r} "
            f"{why}. {setting('estimator', 'auto')} takes the best for each model."
        )

    def prepare(self, request: Request) -> Exact:
        """Return nodes wide enough for all guesses."""
        return exact_within(request, _reach(request))


def exact_within(request: Request, reach: Reach) -> Exact:
    """Return nodes given everybody, and each dataset too, for guesses no further than `reach`."""
    model, nodes = request.model, request.synthesizer.refits.nodes
    alone = nodes(model, None, reach, request.executor)
    stacked = (nodes(model, dataset, reach, request.executor) for dataset in request.release)
    return Exact(alone, tuple(stacked))


def _reach(request: Request) -> Reach:
    """Return about how far a guess can lie from the truth, and from what a model expects.

    Beyond the truth's distance guesses for predictors move the expectation: by no more than the
    response's own range.
    """
    synthesizer, k = request.synthesizer, request.position
    regression = request.model.regression
    own = request.extents[k].furthest_on_scale
    if not synthesizer.plan.parents(k):
        return Reach(own, _from_model(request))
    low, high = response_ends(regression, synthesizer.columns[regression.response])
    moved = min(_moved_by_parents(request), high - low)
    return Reach(float(own + moved), _from_model(request))


def response_ends(regression: Regression, column: FloatArray) -> tuple[float, float]:
    """Return the smallest and the largest response of a column, on the model's scale."""
    parts = (regression.on_model_scale(column[part]) for part in chunks(len(column)))
    ends = np.array([(part.min(), part.max()) for part in parts])
    return float(ends[:, 0].min()), float(ends[:, 1].max())


def _from_model(request: Request) -> float:
    """Return how far a guess lies from what the model expects at the guesses of its predictors.

    Where all records have one range of guesses; ∞ where that is not so, or the model not linear.
    """
    model, plan, k = request.model, request.synthesizer.plan, request.position
    extents, parents = request.extents, plan.parents(k)
    if not all(extents[axis].is_range for axis in (k, *parents)):
        return np.inf
    weight = np.exp(model.posterior.log_weights)
    means = weight @ model.posterior.coefficients[:, :, 0]
    first, moving = 0, []
    for term in model.design.terms:
        mentioned = [p for p in parents if plan.synthesized[p] in term.variables]
        if mentioned and (len(term.variables) > 1 or not term.is_product):
            return np.inf
        for p in mentioned:
            ends = (extents[p].low, extents[p].high)
            truths = request.synthesizer.columns[plan.synthesized[p]]
            moving.append((float(means[first]), ends, truths))
        first += len(term.columns)
    lowest, highest = extents[k].low_on_scale, extents[k].high_on_scale
    furthest, table = -np.inf, request.synthesizer.refits.table(model, None)
    for part in chunks(table.n_rows):
        low = high = table.part(part).matrix @ means
        for by, ends, truths in moving:
            moves = np.stack([by * (end - truths[part]) for end in ends])
            low, high = low + moves.min(axis=0), high + moves.max(axis=0)
        furthest = max(furthest, float((highest - low).max()), float((high - lowest).max()))
    return _SLACK * furthest


def _moved_by_parents(request: Request) -> float:
    """Return how far guesses for predictors move a linear predictor; ∞ where it is not linear."""
    model, plan, k = request.model, request.synthesizer.plan, request.position
    weight = np.exp(model.posterior.log_weights)
    means = weight @ model.posterior.coefficients[:, :, 0]
    first, total = 0, 0.0
    for term in model.design.terms:
        mentioned = [p for p in plan.parents(k) if plan.synthesized[p] in term.variables]
        if mentioned and (len(term.variables) > 1 or not term.is_product):
            return np.inf
        for p in mentioned:
            total += abs(float(means[first])) * request.extents[p].furthest
        first += len(term.columns)
    return total
