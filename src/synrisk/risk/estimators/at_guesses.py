"""Records that cannot be relied on, fitted at each guess (METHOD §5).

The weights of an outlier are carried by a few draws. It is evaluated anew from fits to everybody
else with each guess in its place, without the release and with each dataset. That takes seconds a
record, so their number is bounded, those most at risk first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from synrisk.base.arrays import FloatArray
from synrisk.core.likelihood import ModelBlock
from synrisk.core.table_errors import TableErrors
from synrisk.fitting import DRAWS_AT_A_GUESS, ArrayTable, Evidence, Reach
from synrisk.fitting.psis import smoothed
from synrisk.risk.estimators.estimate import Estimate, ModelErrors, Request, Shape
from synrisk.risk.estimators.exact import exact_within, response_ends
from synrisk.synthesis.fitted_model import Model

_SECONDS_A_MODE = 0.002  # to find it from the neighbouring guess's, with some hundred rows


@dataclass(frozen=True, repr=False)
class AtGuesses(Estimate):
    """A fit at each guess of one record: without the release, then with each dataset.

    Attributes
    ----------
    log_evidence
        ``(fit, cell)``.
    log_weights
        Of the draws, ``(fit, cell, draw)``, in antithetic pairs; they sum to one.
    predicted
        A fit more where the record's weight is not 1: without the release, the guess with weight 1.
    """

    name: ClassVar[str] = "fit"
    log_evidence: FloatArray
    log_weights: FloatArray
    predicted: Evidence | None = None

    def log_table(
        self, block: ModelBlock, shape: Shape, totals: FloatArray | None = None
    ) -> FloatArray:
        """Return Σ_l log L_l over the model's guesses, ``(1, cell)``; there are no totals."""
        del block, shape, totals
        alone, *stacked = self.log_evidence
        return np.asarray(sum(stacked) - len(stacked) * alone)[None]

    def log_predictive(self, block: ModelBlock, shape: Shape) -> FloatArray:
        """Return the log predictive density of each guess, up to a constant."""
        del block, shape
        if self.predicted is not None:
            return self.predicted.log_evidence[None]
        return self.log_evidence[:1]

    def errors(
        self,
        block: ModelBlock,
        shape: Shape,
        within: FloatArray,
        by_prior: FloatArray | None,
        totals: FloatArray | None,
    ) -> tuple[ModelErrors, ...]:
        """Return the Monte-Carlo errors; see `table_errors`."""
        del totals
        weights = np.exp(self.log_weights)
        pairs = np.arange(0, weights.shape[2], 2)
        # Each pair's effect on the log of a cell, (cell, pair).
        q = weights[1:].sum(axis=0) - (len(weights) - 1) * weights[0]
        q = np.add.reduceat(q, pairs, axis=1)
        parent, own = block.true_cells(shape)[0]
        truth = parent * shape[block.own] + own
        targets = within[0, :, 1:] - within[0, :, 1:].sum(axis=0) * within[0, :, :1]
        effects = targets.T @ q
        with_prior = None
        if by_prior is not None:
            prior = weights[0] if self.predicted is None else np.exp(self.predicted.log_weights)
            of_prior = np.add.reduceat(prior, pairs, axis=1)
            effects = effects + by_prior[0, :, 1:].T @ of_prior
            both = q + of_prior
            with_prior = ((both - both[truth]) ** 2).sum(axis=1)
        variance = (effects**2).sum(axis=1)
        variance_from_truth = ((q - q[truth]) ** 2).sum(axis=1)
        sizes = np.exp(-logsumexp(2 * self.log_weights, axis=2))
        worst = np.unravel_index(int(np.argmin(sizes)), sizes.shape)
        khat = smoothed(self.log_weights[worst])[1]
        by = q.shape[1] / (q.shape[1] - 1)
        table = TableErrors(
            by * variance[None],
            by * variance_from_truth[None],
            np.array([sizes[worst]]),
            np.array([khat]),
            None if with_prior is None else by * with_prior[None],
        )
        return (ModelErrors(table, int(weights.shape[2])),)


def fitted_at_guesses(
    request: Request, estimate: Estimate, block: ModelBlock, position: int
) -> Estimate:
    """Return a model's own estimate for one record; what cannot be fitted stays as it is.

    Parameters
    ----------
    request
        The model and the release.
    estimate
        That of all records.
    block
        The record, as the model sees it.
    position
        Where it stands in the confidential data.
    """
    if not can_be_fitted(request.model, estimate):
        return estimate
    model, synthesizer = request.model, request.synthesizer
    if model.regression.distribution.exact:
        ends = response_ends(model.regression, synthesizer.columns[model.regression.response])
        reach = float(np.ptp(np.concatenate([ends, block.guesses.ravel()])))
        return exact_within(request, Reach(reach))
    guesses = _rows_of_guesses(block)
    found = [
        synthesizer.refits.evidence(model, datasets, position, guesses, request.executor)
        for datasets in ([], *([dataset] for dataset in request.release))
    ]
    predicted = None
    if block.is_weighted:
        as_one = replace(guesses, omega=np.ones(guesses.n_rows))
        predicted = synthesizer.refits.evidence(model, [], position, as_one, request.executor)
    return AtGuesses(
        np.stack([evidence.log_evidence for evidence in found]),
        np.stack([evidence.log_weights for evidence in found]),
        predicted,
    )


def can_be_fitted(model: Model, estimate: Estimate) -> bool:
    """Tell whether a model was fitted here, and is estimated by enough draws given stacks."""
    return model.fit is not None and estimate.can_be_fitted


def seconds_a_fit(model: Model, n_rows: int) -> float:
    """Foretell what a fit at one guess takes, with so many other rows; see `Family.nanoseconds`."""
    family, fit = model.regression.distribution, model.fit
    if fit is None or family.exact:
        return 0.0
    n_densities = DRAWS_AT_A_GUESS * n_rows * fit.frozen.n_predictors
    return _SECONDS_A_MODE + 1e-9 * family.nanoseconds * n_densities


def _rows_of_guesses(block: ModelBlock) -> ArrayTable:
    """Return the design, the response and the weight of one record at each cell of its table."""
    n_parents, n_guesses = block.places.shape[1], block.guesses.shape[1]
    matrix = block.values[0][block.places].T  # (parent cell, column)
    y = np.tile(block.guesses[0], n_parents)
    omega = np.full(n_parents * n_guesses, block.record_weights[0])
    return ArrayTable(np.repeat(matrix, n_guesses, axis=0), y, omega)
