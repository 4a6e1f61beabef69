"""How an evaluation is stored: settings as JSON, numbers as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synrisk.base.errors import FileError
from synrisk.core.summary import RiskArrays
from synrisk.data.archive import pack, unpack
from synrisk.models.families import Family
from synrisk.risk.estimators.at_guesses import AtGuesses
from synrisk.risk.estimators.estimate import Estimate
from synrisk.risk.estimators.exact import Exact
from synrisk.risk.estimators.importance import Importance
from synrisk.risk.estimators.paper import Paired
from synrisk.risk.estimators.stacked import Stacked
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.guesses import Grid
from synrisk.risk.intruder_prior import Table, prior_from_json, prior_to_json
from synrisk.risk.question import Question
from synrisk.synthesis.synthesizer import Synthesizer

_ESTIMATES: dict[str, type[Estimate]] = {
    kind.__name__: kind for kind in (Importance, Stacked, Exact, AtGuesses)
}


def evaluation_to_contents(
    evaluation: Evaluation, result: RiskArrays
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings and arrays of an evaluation but for its synthesizer, and of its result."""
    arrays: dict[str, Any] = {"positions": evaluation.positions}
    if isinstance(evaluation.prior, Table):
        arrays["table"] = evaluation.prior.log_probabilities
    meta = {
        "prior": prior_to_json(evaluation.prior),
        "question": evaluation.question and evaluation.question.to_json(),
        "paired": evaluation.paired is not None,
        "grids": pack(evaluation.grids, arrays, "grid"),
        "estimates": pack(evaluation.estimates, arrays, "estimate", leave=(Family,)),
        "fitted": [
            [row, k, pack(own, arrays, f"fitted_{row}_{k}", leave=(Family,))]
            for row, estimates in evaluation.fitted.items()
            for k, own in enumerate(estimates)
            if own is not evaluation.estimates[k]
        ],
        "result": pack(result, arrays, "result"),
    }
    return meta, arrays


def evaluation_from_contents(
    synthesizer: Synthesizer, meta: Mapping[str, Any], arrays: Mapping[str, Any]
) -> tuple[Evaluation, RiskArrays]:
    """Return what `evaluation_to_contents` stored."""

    def estimate(k: int, packed: Mapping[str, Any]) -> Estimate:
        if packed["is"] not in _ESTIMATES:
            raise FileError("The file has an estimate that this version of synrisk does not know.")
        family = synthesizer.models[k].regression.distribution
        return unpack(_ESTIMATES[packed["is"]], packed, arrays, {Family: family})

    n_models = len(synthesizer.models)
    if not len(meta["estimates"]) == len(meta["grids"]) == n_models:
        raise FileError("The file has estimates or guesses for other models than its own.")
    estimates = tuple(estimate(k, packed) for k, packed in enumerate(meta["estimates"]))
    fitted: dict[int, list[Estimate]] = {}
    for row, k, packed in meta["fitted"]:
        fitted.setdefault(row, list(estimates))[k] = estimate(k, packed)
    prior = prior_from_json(meta["prior"], arrays.get("table"))
    asked = meta.get("question")
    evaluation = Evaluation(
        synthesizer,
        estimates,
        Paired.of(estimates) if meta["paired"] else None,
        tuple(unpack(Grid, packed, arrays) for packed in meta["grids"]),
        prior,
        arrays["positions"],
        {row: tuple(own) for row, own in fitted.items()},
        asked and Question.from_json(asked, prior),
    )
    return evaluation, unpack(RiskArrays, meta["result"], arrays)
