"""A model's posterior given other rows: of a release, or of it and everybody stacked.

Everything but the rows is frozen at the confidential data: levels, knots, scales, priors, random
numbers. What no release changes is worked out once, and so is what one model needs of a dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.cache import Memory
from synrisk.base.errors import DataError, OptionError, SyntheticDataError
from synrisk.base.workers import Executor
from synrisk.core.likelihood import Nodes
from synrisk.data.schema import Variable
from synrisk.fitting import (
    Evidence,
    Fit,
    Furthest,
    KnownGivenSigma,
    Refit,
    Sums,
    draws_for_moments,
    evidence_of_regression,
    fit_regression,
    furthest_records,
    known_by_sums,
    moments_of_draws,
    moments_of_regression,
    nodes_of_regression,
    refit_regression,
    sums_of_regression,
)
from synrisk.models.design import Design
from synrisk.models.plan import Regression
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released

Table: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


def rows_of_records(confidential: Confidential, design: Design, regression: Regression) -> Table:
    """Return the design, the response and the weights of the confidential records."""
    matrix = design.matrix(
        confidential.columns, confidential.n_records, "The confidential data", DataError
    )
    weights = confidential.record_weights(regression)
    omega = np.ones(confidential.n_records) if weights is None else weights
    return matrix, confidential.columns[regression.response], omega


@dataclass(frozen=True, repr=False)
class Conditioning:
    """The posteriors of models given other rows.

    Attributes
    ----------
    confidential
        What they were fitted to.
    memory
        Of what no release changes.
    """

    confidential: Confidential
    memory: Memory

    def refit(self, model: Model, released: Released, executor: Executor) -> Refit:
        """Fit a model again to the confidential records and a dataset."""
        tables = [self._records(model), self._rows(model, released)]
        return refit_regression(
            model.regression,
            self._variable(model),
            _fit_of(model),
            model.posterior.names,
            tables,
            executor,
        )

    def moments(
        self, model: Model, released: Released | None, executor: Executor
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return centre and covariance of a model's posterior given one dataset, or everybody.

        None where draws are too few. Those of a fit are of standardised parameters, those of draws
        made elsewhere of their own; such draws have a prior that is not known, and weak ones stand
        for it.
        """
        memory = self.memory if released is None else released.memory
        return memory.recall(
            f"moments of {model.regression.response}",
            lambda: self._moments(model, released, executor),
        )

    def _moments(
        self, model: Model, released: Released | None, executor: Executor
    ) -> tuple[FloatArray, FloatArray] | None:
        fit = model.fit
        if fit is None:
            return self._moments_elsewhere(model, released, executor)
        if fit.engine == "exact":
            return self._known(model, released, executor).moments()
        table = self._records(model) if released is None else self._rows(model, released)
        near = None if released is None else self.moments(model, None, executor)
        return moments_of_regression(
            model.regression, self._variable(model), fit, [table], executor, near
        )

    def _moments_elsewhere(
        self, model: Model, released: Released | None, executor: Executor
    ) -> tuple[FloatArray, FloatArray] | None:
        if released is None:
            return moments_of_draws(model.posterior)
        posterior, _ = fit_regression(
            model.regression,
            model.design,
            self._variable(model),
            *self._rows(model, released),
            prior="default",
            engine="auto",
            n_draws=draws_for_moments(len(model.posterior.names)),
            seed=0,
            executor=executor,
        )
        return moments_of_draws(posterior)

    def nodes(
        self, model: Model, released: Released | None, reach: float, executor: Executor
    ) -> Nodes:
        """Return a gaussian model's exact posterior given everybody, and a dataset if any.

        `reach` is how far guesses may lie from the truth.
        """
        fit, own = _fit_of(model), self._sums(model, None, executor)
        everybody = self._known(model, None, executor)
        furthest = self.memory.recall(
            f"furthest of {model.regression.response}",
            lambda: self._furthest(model, everybody, own, executor),
        )
        if released is None:
            return self.memory.recall(
                f"nodes of {model.regression.response}",
                lambda: nodes_of_regression(model.regression, fit, everybody, own, furthest, reach),
                given=reach,
            )
        stacked = own + self._sums(model, released, executor)
        known = known_by_sums(model.regression, self._variable(model), fit, stacked)
        furthest = furthest.under(known) or self._furthest(model, known, stacked, executor)
        return nodes_of_regression(model.regression, fit, known, stacked, furthest, reach)

    def evidence(
        self,
        model: Model,
        datasets: Sequence[Released],
        position: int,
        guesses: Table,
        executor: Executor,
    ) -> Evidence:
        """Return the evidence of all rows, the record at `position` replaced by each guess."""
        matrix, values, omega = self._records(model)
        without = np.where(np.arange(len(omega)) == position, 0.0, omega)
        return evidence_of_regression(
            model.regression,
            self._variable(model),
            _fit_of(model),
            [(matrix, values, without), *(self._rows(model, one) for one in datasets)],
            guesses,
            executor,
        )

    def design(self, model: Model, released: Released) -> FloatArray:
        """Return the design of a model for the rows of a synthetic dataset."""
        n_rows = len(released.columns[model.regression.response])
        return model.design.matrix(
            released.columns, n_rows, "The synthetic dataset", SyntheticDataError
        )

    def _records(self, model: Model) -> Table:
        return rows_of_records(self.confidential, model.design, model.regression)

    def _rows(self, model: Model, released: Released) -> Table:
        matrix = self.design(model, released)
        return matrix, released.columns[model.regression.response], np.ones(len(matrix))

    def _variable(self, model: Model) -> Variable:
        return self.confidential.schema.variables[model.regression.response]

    def _sums(self, model: Model, released: Released | None, executor: Executor) -> Sums:
        """Return what a gaussian posterior takes from a dataset, or from everybody."""

        def make() -> Sums:
            table = self._records(model) if released is None else self._rows(model, released)
            return sums_of_regression(
                model.regression, self._variable(model), _fit_of(model), [table], executor
            )

        memory = self.memory if released is None else released.memory
        return memory.recall(f"sums of {model.regression.response}", make)

    def _known(
        self, model: Model, released: Released | None, executor: Executor
    ) -> KnownGivenSigma:
        """Return a gaussian posterior given one dataset, or everybody."""
        memory = self.memory if released is None else released.memory
        return memory.recall(
            f"posterior of {model.regression.response}",
            lambda: known_by_sums(
                model.regression,
                self._variable(model),
                _fit_of(model),
                self._sums(model, released, executor),
            ),
        )

    def _furthest(
        self, model: Model, known: KnownGivenSigma, sums: Sums, executor: Executor
    ) -> Furthest:
        """Return how far records lie from a gaussian posterior that was given them."""
        return furthest_records(
            model.regression,
            self._variable(model),
            _fit_of(model),
            known,
            sums,
            self._records(model),
            executor,
        )


def _fit_of(model: Model) -> Fit:
    if model.fit is None:
        raise OptionError(
            f"The draws of {model.regression.response!r} were made elsewhere; only a synthesizer "
            "made by synrisk.fit can be fitted again."
        )
    return model.fit
