"""Stacked posteriors: the ratio of predictive densities by draws given two sets of rows.

Draws given the confidential data, and given confidential and synthetic data stacked, from common
random numbers. Needs no density of the release.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.messages import either, setting
from synrisk.core.batches import Units
from synrisk.core.likelihood import KernelDraws, ModelBlock, log_predictive
from synrisk.core.table_errors import ErrorSets
from synrisk.fitting.psis import effective_size
from synrisk.risk.estimators.estimate import (
    Estimate,
    Estimator,
    Finding,
    Request,
    Shape,
    units_of,
)
from synrisk.synthesis.fitted_model import Model

# Of fewer every record is unreliable: more draws are the remedy, not a fit for each guess of all.
_LEAST_DRAWS = 20


@dataclass(frozen=True, repr=False)
class Stacked(Estimate):
    """Draws given the confidential data, and given these and each dataset stacked.

    One entry of `units` is of all sets: draw h of each was made from the same random numbers. With
    an entry a set, draws given the confidential data first, they were made independently.
    """

    name: ClassVar[str] = "stacked"
    draws: KernelDraws
    stacked: tuple[KernelDraws, ...]
    units: tuple[Units, ...]
    reliable: bool = True  # whether every fit to a stack can be relied on

    @property
    def can_be_fitted(self) -> bool:
        """Whether an unreliable record may be fitted at each of its guesses: see `_LEAST_DRAWS`."""
        return len(self.draws.log_v) >= _LEAST_DRAWS

    @cached_property
    def error_sets(self) -> tuple[ErrorSets, ...]:
        """The draws as the Monte-Carlo error takes them; errors of independent ones add."""
        signs = [[-float(len(self.stacked))], *[[1.0]] * len(self.stacked)]
        sets = (self.draws, *self.stacked)
        if len(self.units) == 1:
            factors = np.zeros((1, len(self.draws.log_v)))
            return (ErrorSets.of(sets, factors, signs, (0, 0), self.units[0]),)
        return tuple(
            ErrorSets.of(
                [draws],
                np.zeros((1, len(draws.log_v))),
                [sign],
                (0, 0) if number == 0 else None,
                own,
            )
            for number, (draws, sign, own) in enumerate(zip(sets, signs, self.units, strict=True))
        )

    @property
    def release_ess(self) -> FloatArray:
        """The effective number of draws behind each dataset's likelihood: of its own fit."""
        return np.array([effective_size(draws.log_v) for draws in self.stacked])

    def log_table(
        self, block: ModelBlock, shape: Shape, totals: FloatArray | None = None
    ) -> FloatArray:
        """Return Σ_l log L_l over the model's guesses, ``(record, cell)``, and fill `totals`."""
        return self._log_table(block, shape, totals)[0]

    def _log_table(
        self, block: ModelBlock, shape: Shape, totals: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the table, and the log predictive density by the record's own exponent."""
        sets = (self.draws, *self.stacked)
        each = [[]] * len(sets) if totals is None else [[one] for one in totals]
        logs = [
            log_predictive(block, draws, shape, *to) for draws, to in zip(sets, each, strict=True)
        ]
        table = -len(self.stacked) * logs[0]
        for log_stacked in logs[1:]:
            table += log_stacked
        return table, logs[0]

    def log_both(
        self, block: ModelBlock, shape: Shape, totals: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return table and prediction, at once where records' exponents are those of guesses."""
        table, alone = self._log_table(block, shape, totals)
        return table, self.log_predictive(block, shape) if block.is_weighted else alone

    def log_predictive(self, block: ModelBlock, shape: Shape) -> FloatArray:
        """Return the log predictive density of each guess against the truth's."""
        return log_predictive(block.predicting(), self.draws, shape)

    def findings(self, variable: str) -> list[Finding]:
        """Say where a fit to a stack cannot be relied on."""
        if self.reliable:
            return []
        return [
            Finding(
                f"{variable} cannot be relied on.",
                "A fit to confidential and synthetic data together is too far from normal.",
                "Merge rare levels, leave predictors out, or narrow the priors.",
            )
        ]


@dataclass(frozen=True)
class StackedEstimator(Estimator):
    """Draws given the confidential data, and given these and each dataset."""

    name: ClassVar[str] = "stacked"

    def refusal(self, model: Model, *, with_stacks: bool) -> str | None:
        """Draws made elsewhere need draws of the stacks too."""
        if model.fit is not None or with_stacks:
            return None
        instead = either(
            "Give draws of such fits by stacked=, use synrisk.fit", "Let synrisk fit the models"
        )
        return (
            "needs fits to confidential and synthetic rows; the draws of "
            f"{model.regression.response!r} were made elsewhere. {instead}, or use "
            f"{setting('estimator', 'importance')}."
        )

    def prepare(self, request: Request) -> Stacked:
        """Return draws given each stack: made elsewhere, or by fits from the same numbers."""
        model, draws = request.model, request.draws
        family = model.regression.distribution
        own = KernelDraws.of(family, draws)
        if request.given_stacks:
            sets = (draws, *request.given_stacks)
            return Stacked(
                own,
                tuple(KernelDraws.of(family, given) for given in request.given_stacks),
                tuple(Units.of_chains(given.chain, given.n_draws) for given in sets),
            )
        refit = request.synthesizer.refits.refit
        refits = [refit(model, dataset, request.executor) for dataset in request.release]
        firsts = [refit.posterior.first(draws.n_draws) for refit in refits]
        coupled = draws.chain is None  # chains go their own ways
        sets = (draws, *([] if coupled else firsts))
        units = [units_of(model, given, stacked=True) for given in sets]
        return Stacked(
            own,
            tuple(KernelDraws.of(family, given) for given in firsts),
            tuple(units),
            all(refit.reliable for refit in refits),
        )
