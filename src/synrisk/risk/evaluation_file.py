"""How an evaluation is stored: settings as JSON, numbers as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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
        "asked": None if evaluation.asked is None else list(evaluation.asked),
        "is_joint": evaluation.is_joint,
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
        model = synthesizer.models[k]
        family, draws = model.regression.distribution, model.posterior
        given: dict[type, Any] = {Family: family}
        sizes = {
            "column": draws.coefficients.shape[1],
            "predictor": draws.coefficients.shape[2],
            "kernel parameter": len(family.kernel_parameters(draws.auxiliary[:1])),
        }
        return unpack(_ESTIMATES[packed["is"]], packed, arrays, given, sizes)

    n_models = len(synthesizer.models)
    if not len(meta["estimates"]) == len(meta["grids"]) == n_models:
        raise FileError("The file has estimates or guesses for other models than its own.")
    estimates = tuple(estimate(k, packed) for k, packed in enumerate(meta["estimates"]))
    fitted: dict[int, list[Estimate]] = {}
    for row, k, packed in meta["fitted"]:
        fitted.setdefault(row, list(estimates))[k] = estimate(k, packed)
    positions = arrays["positions"]
    asked_for = _asked(meta.get("asked"), n_models)
    n_asked = n_models if asked_for is None else len(asked_for)
    sizes = {"record": len(positions), "variable": n_asked, "part": 1 + n_asked}
    grids = tuple(unpack(Grid, packed, arrays, sizes=sizes) for packed in meta["grids"])
    result = unpack(RiskArrays, meta["result"], arrays, sizes=sizes)
    is_joint = unpack(bool, meta.get("is_joint", True), arrays)
    asked_grids = grids if asked_for is None else tuple(grids[axis] for axis in asked_for)
    _check_places(positions, synthesizer.n_records, asked_grids, result)
    if result.is_joint != is_joint or (is_joint and asked_for is not None):
        raise FileError("The file holds a result of another kind than its evaluation.")
    prior = prior_from_json(meta["prior"], arrays.get("table"))
    prior.check(grids, positions, synthesizer.n_records)
    asked = meta.get("question")
    evaluation = Evaluation(
        synthesizer,
        estimates,
        Paired.of(estimates) if meta["paired"] else None,
        grids,
        prior,
        positions,
        {row: tuple(own) for row, own in fitted.items()},
        None if asked is None else Question.from_json(asked, synthesizer.plan.synthesized, prior),
        asked_for,
        is_joint,
    )
    return evaluation, result


def _asked(stored: Any, n_models: int) -> tuple[int, ...] | None:
    """Return the axes that are asked for, or raise where they are none."""
    if stored is None:
        return None
    good = isinstance(stored, list) and all(type(axis) is int for axis in stored)
    if not good or not stored or len(set(stored)) < len(stored):
        raise FileError("The file does not say which variables were asked for.")
    if not set(stored) < set(range(n_models)):
        raise FileError("The file asks for variables that its models do not have.")
    return tuple(stored)


def _check_places(
    positions: Any, n_records: int, grids: Sequence[Grid], result: RiskArrays
) -> None:
    """Raise where a number that says which record or guess it is of is of none."""
    widths = [grid.values.shape[1] for grid in grids]
    places = [(positions, n_records)]
    places += [(grid.truth, width) for grid, width in zip(grids, widths, strict=True)]
    places += [(result.best[:, k], width) for k, width in enumerate(widths)]
    within = all(
        array.dtype == np.int64 and array.ndim == 1 and (array >= 0).all() and (array < n).all()
        for array, n in places
    )
    shapes = [table.shape for table in result.marginals]
    whole = shapes == [grid.values.shape for grid in grids]
    kept = result.joint is None or result.joint.shape == (len(positions), *widths)
    once = 0 < len(positions) == len(np.unique(positions))
    if not (within and whole and kept and once):
        raise FileError("The file holds results of other records or guesses than its own.")
