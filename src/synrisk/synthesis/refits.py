"""A model's posterior given other rows: of a release, or of it and everybody stacked.

Everything but the rows is frozen at the confidential data: levels, knots, scales, priors, random
numbers. What no release changes is worked out once, and so is what one model needs of a dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.cache import Memory
from synrisk.base.errors import DataError, OptionError, SyntheticDataError
from synrisk.base.workers import Executor
from synrisk.core.likelihood import Nodes
from synrisk.fitting import (
    Evidence,
    Fit,
    KnownGivenSigma,
    Refit,
    Sums,
    Table,
    draws_for_moments,
    fit_regression,
    moments_of_draws,
)
from synrisk.models.design import Design
from synrisk.models.plan import Regression
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released


def rows_of_records(confidential: Confidential, design: Design, regression: Regression) -> Table:
    """Return the design, the response and the weights of the confidential records."""
    matrix = design.matrix(
        confidential.columns, confidential.n_records, "The confidential data", DataError
    )
    weights = confidential.record_weights(regression)
    omega = np.ones(confidential.n_records) if weights is None else weights
    return matrix, confidential.columns[regression.response], omega


@dataclass(frozen=True, repr=False)
class Refits:
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
        return _fit_of(model).refit(tables, model.posterior.names, executor)

    def moments(
        self, model: Model, released: Released | None, executor: Executor
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return centre and covariance of a model's posterior given one dataset, or everybody.

        None where draws are too few. Those of a fit are of standardised parameters, those of draws
        made elsewhere of their own; such draws have a prior that is not known, and weak ones stand
        for it.
        """

        def make() -> tuple[FloatArray, FloatArray] | None:
            if model.fit is None:
                return self._moments_elsewhere(model, released, executor)
            if model.fit.engine == "exact":
                return self._known(model, released, executor).moments()
            near = None if released is None else self.moments(model, None, executor)
            return model.fit.frozen.moments([self._table(model, released)], executor, near)

        return self._memory(released).recall(f"moments of {model.regression.response}", make)

    def _moments_elsewhere(
        self, model: Model, released: Released | None, executor: Executor
    ) -> tuple[FloatArray, FloatArray] | None:
        if released is None:
            return moments_of_draws(model.posterior)
        posterior, _ = fit_regression(
            model.regression,
            model.design,
            self.confidential.schema.variables[model.regression.response],
            self._rows(model, released),
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
        """Return a model's exact posterior given everybody, and a dataset if any.

        `reach` is how far guesses may lie from the truth.
        """
        frozen, name = _fit_of(model).frozen, model.regression.response
        own, everybody = self._sums(model, None, executor), self._known(model, None, executor)
        furthest = self.memory.recall(
            f"furthest of {name}",
            lambda: frozen.furthest(everybody, own, self._records(model), executor),
        )
        if released is None:
            return self.memory.recall(
                f"nodes of {name}",
                lambda: frozen.nodes(everybody, own, furthest, reach),
                given=reach,
            )
        stacked = own + self._sums(model, released, executor)
        known = frozen.known_given_sigma(stacked)
        bound = furthest.under(known)
        if bound is None:
            bound = frozen.furthest(known, stacked, self._records(model), executor)
        return frozen.nodes(known, stacked, bound, reach)

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
        tables = [(matrix, values, without), *(self._rows(model, one) for one in datasets)]
        return _fit_of(model).evidence(tables, guesses, executor)

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

    def _table(self, model: Model, released: Released | None) -> Table:
        return self._records(model) if released is None else self._rows(model, released)

    def _memory(self, released: Released | None) -> Memory:
        return self.memory if released is None else released.memory

    def _sums(self, model: Model, released: Released | None, executor: Executor) -> Sums:
        """Return what an exact posterior takes from a dataset, or from everybody."""
        return self._memory(released).recall(
            f"sums of {model.regression.response}",
            lambda: _fit_of(model).frozen.sums([self._table(model, released)], executor),
        )

    def _known(
        self, model: Model, released: Released | None, executor: Executor
    ) -> KnownGivenSigma:
        """Return an exact posterior given one dataset, or everybody."""
        return self._memory(released).recall(
            f"posterior of {model.regression.response}",
            lambda: _fit_of(model).frozen.known_given_sigma(self._sums(model, released, executor)),
        )


def _fit_of(model: Model) -> Fit:
    if model.fit is None:
        raise OptionError(
            f"The draws of {model.regression.response!r} were made elsewhere; only a synthesizer "
            "made by synrisk.fit can be fitted again."
        )
    return model.fit
