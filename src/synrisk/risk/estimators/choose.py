"""Which estimator each model takes."""

from __future__ import annotations

from collections.abc import Sequence

from synrisk.base.errors import OptionError
from synrisk.base.messages import place_of, setting
from synrisk.base.progress import under_way
from synrisk.base.workers import Workers
from synrisk.models.posterior import Posterior
from synrisk.risk.estimators.estimate import Estimate, Estimator, Request
from synrisk.risk.estimators.exact import ExactEstimator
from synrisk.risk.estimators.importance import ImportanceEstimator
from synrisk.risk.estimators.stacked import StackedEstimator
from synrisk.risk.guesses import Grid, GuessSpan
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

# "auto" takes the first that a model allows.
ESTIMATORS: tuple[Estimator, ...] = (ExactEstimator(), StackedEstimator(), ImportanceEstimator())
PAPER = "paper"  # importance sampling, draws of all models paired


def estimators_of(
    synthesizer: Synthesizer, method: str, *, with_stacks: bool = False
) -> list[Estimator]:
    """Return how each model's likelihood is to be estimated.

    `with_stacks` tells whether there are draws made elsewhere given the stacks.
    """
    if with_stacks and method not in ("auto", StackedEstimator.name):
        raise OptionError(
            f"stacked= is for estimator='stacked' or 'auto'; estimator={method!r} does not use it."
        )
    return [_estimator_of(model, method, with_stacks=with_stacks) for model in synthesizer.models]


def _estimator_of(model: Model, method: str, *, with_stacks: bool) -> Estimator:
    if method == "auto":
        return next(e for e in ESTIMATORS if e.refusal(model, with_stacks=with_stacks) is None)
    name = ImportanceEstimator.name if method == PAPER else method
    estimator = next(e for e in ESTIMATORS if e.name == name)
    refusal = estimator.refusal(model, with_stacks=with_stacks)
    if refusal is not None:
        raise OptionError(f"{setting('estimator', name)} {refusal}", about=place_of("estimator"))
    return estimator


def prepare_all(
    synthesizer: Synthesizer,
    estimators: Sequence[Estimator],
    draws: Sequence[Posterior],
    release: Sequence[Released],
    grids: Sequence[Grid | GuessSpan],
    team: Workers,
    given_stacks: Sequence[Sequence[Posterior]] = (),
) -> tuple[Estimate, ...]:
    """Return each model's estimate.

    `grids` are the guesses of all records, or how far these go, and `given_stacks` draws made
    elsewhere, by dataset and model.
    """
    extents = [
        GuessSpan.of(one, regression) if isinstance(one, Grid) else one
        for one, regression in zip(grids, synthesizer.plan.regressions, strict=True)
    ]
    found = []
    n_models = len(estimators)
    with team.open() as executor, under_way("Fitting models with the release", n_models) as advance:
        for k, estimator in enumerate(estimators):
            request = Request(
                synthesizer,
                k,
                draws[k],
                release,
                extents,
                executor,
                [of_dataset[k] for of_dataset in given_stacks],
            )
            found.append(estimator.prepare(request))
            advance(1)
    return tuple(found)
