"""Records that cannot be relied on, fitted at each guess (METHOD §5).

The weights of an outlier are carried by a few draws. It is evaluated anew from fits to everybody
else with each guess in its place, without the release and with each dataset. That takes seconds a
record, so their number is bounded, those most at risk first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.workers import Executor
from synrisk.core.likelihood import ModelBlock
from synrisk.core.summary import RiskArrays
from synrisk.risk.estimators.estimates import AtGuesses, Exact, ModelEstimate, Stacked
from synrisk.risk.evaluation import Evaluation
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released

MOST_FITTED = 50  # records


def rows_to_fit(evaluation: Evaluation, result: RiskArrays) -> list[int]:
    """Return the evaluated rows that are unreliable and can be fitted, most at risk first."""
    models = zip(evaluation.synthesizer.models, evaluation.estimates, strict=True)
    can = any(_can_be_fitted(model, estimate) for model, estimate in models)
    if result.errors is None or not can:
        return []
    unreliable = np.flatnonzero(~result.errors.reliable)
    lift = (result.probability / result.prior)[unreliable]
    return [int(row) for row in unreliable[np.argsort(-lift, kind="stable")]]


def fit_at_guesses(
    evaluation: Evaluation,
    result: RiskArrays,
    rows: Sequence[int],
    release: Sequence[Released],
    executor: Executor,
    on_records: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Evaluate some records anew, write them into `result`, and return what evaluates them."""
    for row in rows:
        one = slice(row, row + 1)
        position = int(evaluation.positions[row])
        blocks = evaluation.model_blocks(one)
        own = tuple(
            _fitted(evaluation, k, estimate, blocks[k], position, release, executor)
            for k, estimate in enumerate(evaluation.estimates)
        )
        evaluation = replace(evaluation, fitted={**evaluation.fitted, row: own})
        keep = result.joint is not None
        result.place(one, evaluation.evaluate(one, keep_joint=keep, with_errors=True))
        on_records(1)
    return evaluation


def _fitted(
    evaluation: Evaluation,
    k: int,
    estimate: ModelEstimate,
    block: ModelBlock,
    position: int,
    release: Sequence[Released],
    executor: Executor,
) -> ModelEstimate:
    """Return a model's own estimate for one record; what cannot be fitted stays as it is."""
    synthesizer = evaluation.synthesizer
    model = synthesizer.models[k]
    if not _can_be_fitted(model, estimate):
        return estimate
    if model.regression.distribution.exact:
        return _exact(evaluation, model, block, release, executor)
    guesses = _rows_of_guesses(block)
    sets = [[], *([dataset] for dataset in release)]
    found = [
        synthesizer.given.evidence(model, datasets, position, guesses, executor)
        for datasets in sets
    ]
    return AtGuesses(
        np.stack([one.log_evidence for one in found]), np.stack([one.log_weights for one in found])
    )


def _can_be_fitted(model: Model, estimate: ModelEstimate) -> bool:
    """Tell whether a model was fitted here, and is estimated by draws."""
    return model.fit is not None and isinstance(estimate, Stacked)


def _exact(
    evaluation: Evaluation,
    model: Model,
    block: ModelBlock,
    release: Sequence[Released],
    executor: Executor,
) -> Exact:
    """Return the exact estimate of a gaussian model, wide enough for the record's guesses."""
    everybody = model.regression.on_model_scale(
        evaluation.synthesizer.columns[model.regression.response]
    )
    reach = float(np.ptp(np.concatenate([everybody, block.guesses.ravel()])))
    nodes = evaluation.synthesizer.given.nodes
    stacked = tuple(nodes(model, one, reach, executor) for one in release)
    return Exact(nodes(model, None, reach, executor), stacked)


def _rows_of_guesses(block: ModelBlock) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the design, the response and the weight of one record at each cell of its table."""
    n_parents, n_guesses = block.places.shape[1], block.guesses.shape[1]
    matrix = block.values[0][block.places].T  # (parent cell, column)
    y = np.tile(block.guesses[0], n_parents)
    omega = np.full(n_parents * n_guesses, block.record_weights[0])
    return np.repeat(matrix, n_guesses, axis=0), y, omega
