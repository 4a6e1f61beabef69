"""Which estimator each model takes, and what it needs of the release."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synrisk.base.errors import OptionError
from synrisk.base.messages import either, place_of, setting
from synrisk.base.workers import Workers
from synrisk.core.batches import Units
from synrisk.core.likelihood import KernelDraws
from synrisk.models.posterior import Posterior
from synrisk.risk.estimators.estimates import Exact, Importance, ModelEstimate, Stacked
from synrisk.risk.evaluation import log_density_of_release
from synrisk.risk.guesses import Grid
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_PAIR = 2  # draws of a fit come in antithetic pairs

_LET_FIT = "Let synrisk fit the models"


def kinds_of(synthesizer: Synthesizer, method: str, *, with_stacks: bool = False) -> list[str]:
    """Return how each model's likelihood is to be estimated.

    `with_stacks` tells whether there are draws made elsewhere given the stacks.
    """
    if with_stacks and method not in ("auto", "stacked"):
        raise OptionError(
            f"stacked= is for estimator='stacked' or 'auto'; estimator={method!r} does not use it."
        )
    kinds = []
    for model in synthesizer.models:
        fitted = model.fit is not None
        exact = model.regression.distribution.exact
        can_stack = fitted or with_stacks
        best = "exact" if fitted and exact else "stacked" if can_stack else "importance"
        name = model.regression.response
        if method == "exact" and best != "exact":
            why = "is not gaussian" if fitted else "has draws that were made elsewhere"
            raise OptionError(
                f"{setting('estimator', 'exact')} is for gaussian models made by synrisk; the "
                f"model of {name!r} {why}. {setting('estimator', 'auto')} takes the best for each "
                "model.",
                about=place_of("estimator"),
            )
        if method == "stacked" and not can_stack:
            raise OptionError(
                f"{setting('estimator', 'stacked')} needs fits to confidential and synthetic rows; "
                f"the draws of {name!r} were made elsewhere. "
                f"{either('Give draws of such fits by stacked=, use synrisk.fit', _LET_FIT)}, or "
                f"use {setting('estimator', 'importance')}.",
                about=place_of("estimator"),
            )
        kinds.append({"auto": best, "paper": "importance"}.get(method, method))
    return kinds


def estimates_of(
    synthesizer: Synthesizer,
    kinds: Sequence[str],
    draws: Sequence[Posterior],
    release: Sequence[Released],
    grids: Sequence[Grid],
    team: Workers,
    given_stacks: Sequence[Sequence[Posterior]] = (),
) -> tuple[ModelEstimate, ...]:
    """Return each model's estimate: densities of the release, draws or nodes given the stacks.

    `given_stacks` holds draws made elsewhere, by dataset and model.
    """
    datasets = [dataset.columns for dataset in release]
    estimates: list[ModelEstimate] = []
    with team.open() as executor:
        for k, (model, kind) in enumerate(zip(synthesizer.models, kinds, strict=True)):
            if kind == "exact":
                far = _reach(synthesizer, k, grids)
                alone = synthesizer.given.nodes(model, None, far, executor)
                stacked = tuple(
                    synthesizer.given.nodes(model, one, far, executor) for one in release
                )
                estimates.append(Exact(alone, stacked))
                continue
            own = KernelDraws.of(model.regression.distribution, draws[k])
            if kind == "stacked" and given_stacks:
                estimates.append(_apart(model, own, draws[k], [one[k] for one in given_stacks]))
            elif kind == "stacked":
                refits = [synthesizer.given.refit(model, one, executor) for one in release]
                n_draws = len(own.log_v)
                family = model.regression.distribution
                given = tuple(
                    KernelDraws.of(family, refit.posterior.first(n_draws)) for refit in refits
                )
                reliable = all(refit.reliable for refit in refits)
                coupled = draws[k].chain is None  # chains go their own ways
                posteriors = [draws[k], *([] if coupled else (r.posterior for r in refits))]
                units = tuple(_units(model, one.first(n_draws)) for one in posteriors)
                estimates.append(Stacked(own, given, units, reliable))
            else:
                log_g = log_density_of_release(model, own, datasets)
                estimates.append(Importance(own, log_g, _units(model, draws[k])))
    return tuple(estimates)


def _apart(
    model: Model, own: KernelDraws, draws: Posterior, stacked: Sequence[Posterior]
) -> Stacked:
    """Return the estimate by draws that were made elsewhere, of each fit by itself."""
    family = model.regression.distribution
    laid = tuple(KernelDraws.of(family, given) for given in stacked)
    units = [Units.of_chains(given.chain, given.n_draws) for given in (draws, *stacked)]
    return Stacked(own, laid, tuple(units))


def _units(model: Model, draws: Posterior) -> Units:
    """Return which draws make a unit of the error, and what matched moments leave exact.

    Draws made elsewhere are those of chains, or may be: they are taken in batches.
    """
    if model.fit is None or draws.chain is not None:
        return Units.of_chains(draws.chain, draws.n_draws)
    whole = len(model.fit.numbers.u) == draws.n_draws
    return Units(_PAIR, basis=model.fit.numbers.matched_directions() if whole else None)


def _reach(synthesizer: Synthesizer, k: int, grids: Sequence[Grid]) -> float:
    """Return about how far a guess can lie from what a model expects, beyond the truth's distance.

    Guesses for predictors move the expectation: by no more than the response's own range.
    """
    regression = synthesizer.models[k].regression
    own = grids[k].furthest(regression.on_model_scale)
    if not synthesizer.plan.parents(k):
        return own
    everybody = regression.on_model_scale(synthesizer.columns[regression.response])
    moved = _moved_by_parents(synthesizer, k, grids)
    return float(own + min(moved, np.ptp(everybody)))


def _moved_by_parents(synthesizer: Synthesizer, k: int, grids: Sequence[Grid]) -> float:
    """Return how far guesses for predictors move a linear predictor; ∞ where it is not linear."""
    model, plan = synthesizer.models[k], synthesizer.plan
    weight = np.exp(model.posterior.log_weights)
    means = weight @ model.posterior.coefficients[:, :, 0]
    first, total = 0, 0.0
    for term in model.design.terms:
        mentioned = [p for p in plan.parents(k) if plan.synthesized[p] in term.variables]
        if mentioned and (len(term.variables) > 1 or not term.is_product):
            return np.inf
        for p in mentioned:
            total += abs(float(means[first])) * grids[p].furthest()
        first += len(term.columns)
    return total
