"""How an evaluation is stored: settings as JSON, numbers as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from synrisk.core.summary import ErrorArrays, RiskArrays
from synrisk.risk.estimators.estimates import KINDS, AtGuesses, ModelEstimate
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.guesses import Grid
from synrisk.risk.intruder_prior import Table, prior_from_json, prior_to_json
from synrisk.synthesis.synthesizer import Synthesizer

_ERRORS = tuple(ErrorArrays.__dataclass_fields__)


def evaluation_to_contents(
    evaluation: Evaluation, result: RiskArrays
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings and arrays of an evaluation but for its synthesizer, and of its result."""
    fitted: list[list[Any]] = []
    meta = {
        "kinds": [estimate.name for estimate in evaluation.estimates],
        "paired": evaluation.paired,
        "prior": prior_to_json(evaluation.prior),
        "with_errors": result.errors is not None,
        "around_truth": [grid.around_truth for grid in evaluation.grids],
        "n_replaced": [grid.n_replaced for grid in evaluation.grids],
        "fitted": fitted,
    }
    arrays: dict[str, Any] = {
        "positions": evaluation.positions,
        "probability": result.probability,
        "prior": result.prior,
        "rank": result.rank,
        "n_guesses": result.n_guesses,
        "best": result.best,
        "log_odds_range": result.log_odds_range,
        "prior_marginals": result.prior_marginals,
    }
    for k, grid in enumerate(evaluation.grids):
        for name, values in evaluation.estimates[k].to_arrays().items():
            arrays[f"estimate_{k}_{name}"] = values
        arrays[f"guesses_{k}"] = np.asarray(grid.values)
        arrays[f"truth_{k}"] = grid.truth
        arrays[f"present_{k}"] = np.asarray(grid.present)
        arrays[f"marginal_{k}"] = result.marginals[k]
    for row, estimates in evaluation.fitted.items():
        for k, estimate in enumerate(estimates):
            if estimate is not evaluation.estimates[k]:
                fitted.append([row, k, estimate.name])
                for name, values in estimate.to_arrays().items():
                    arrays[f"fitted_{row}_{k}_{name}"] = values
    if result.errors is not None:
        arrays |= {f"error_{name}": values for name, values in vars(result.errors).items()}
    if result.joint is not None:
        arrays["joint"] = result.joint
    if isinstance(evaluation.prior, Table):
        arrays["table"] = np.asarray(evaluation.prior.log_probabilities)
    return meta, arrays


def evaluation_from_contents(
    synthesizer: Synthesizer, meta: Mapping[str, Any], arrays: Mapping[str, Any]
) -> tuple[Evaluation, RiskArrays]:
    """Return what `evaluation_to_contents` stored."""
    variables = range(len(synthesizer.models))
    grids = tuple(
        Grid(
            arrays[f"guesses_{k}"],
            arrays[f"truth_{k}"],
            arrays[f"present_{k}"],
            meta["around_truth"][k],
            # Not in files of before it was kept.
            n_replaced=meta["n_replaced"][k] if "n_replaced" in meta else 0,
        )
        for k in variables
    )
    estimates = tuple(
        KINDS[meta["kinds"][k]].from_arrays(model.regression.distribution, arrays, f"estimate_{k}_")
        for k, model in enumerate(synthesizer.models)
    )
    evaluation = Evaluation(
        synthesizer,
        estimates,
        meta["paired"],
        grids,
        prior_from_json(meta["prior"], arrays.get("table")),
        arrays["positions"],
        _fitted_from_arrays(synthesizer, estimates, meta["fitted"], arrays),
    )
    errors = {name: arrays[f"error_{name}"] for name in _ERRORS} if meta["with_errors"] else None
    result = RiskArrays(
        arrays["probability"],
        arrays["prior"],
        arrays["rank"],
        arrays["n_guesses"],
        tuple(arrays[f"marginal_{k}"] for k in variables),
        arrays["prior_marginals"],
        arrays["best"],
        arrays["log_odds_range"],
        None if errors is None else ErrorArrays(**errors),
        arrays.get("joint"),
    )
    return evaluation, result


def _fitted_from_arrays(
    synthesizer: Synthesizer,
    estimates: tuple[ModelEstimate, ...],
    stored: Sequence[tuple[int, int, str]],
    arrays: Mapping[str, Any],
) -> dict[int, tuple[ModelEstimate, ...]]:
    """Return the estimates of records that were fitted at each guess."""
    kinds: dict[str, Any] = {**KINDS, AtGuesses.name: AtGuesses}
    found: dict[int, list[ModelEstimate]] = {}
    for row, k, kind in stored:
        family = synthesizer.models[k].regression.distribution
        own = kinds[kind].from_arrays(family, arrays, f"fitted_{row}_{k}_")
        found.setdefault(row, list(estimates))[k] = own
    return {row: tuple(own) for row, own in found.items()}
