"""A model's posterior given other rows: of a release, or of it and everybody stacked.

Everything but the rows is frozen at the confidential data: levels, knots, scales, priors, random
numbers. What no release changes is worked out once, and so is what one model needs of a dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.cache import Memory
from synrisk.base.errors import DataError, OptionError, SyntheticDataError
from synrisk.base.workers import Executor
from synrisk.core.likelihood import Nodes
from synrisk.fitting import (
    ArrayTable,
    Chunk,
    Evidence,
    Fit,
    KnownGivenSigma,
    Reach,
    Refit,
    ScoreDistance,
    Sums,
    Table,
    expected_information,
    gaussian_distance,
    known_by_moments,
    likelihood_derivatives,
    moments_of_draws,
    table_of,
)
from synrisk.models.design import Design
from synrisk.models.plan import Regression
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released


def rows_of_records(confidential: Confidential, design: Design, regression: Regression) -> Table:
    """Return the design, the response and the weights of the confidential records."""
    return table_of(
        design,
        confidential.columns,
        regression.response,
        confidential.n_records,
        "The confidential data",
        DataError,
        regression.weights,
    )


@dataclass(frozen=True, repr=False)
class Departure:
    """How far a dataset is from what a model's posterior predicts.

    Attributes
    ----------
    d2, df
        D² and its degrees of freedom.
    simulated
        Returns D² of so many datasets that the model drew for the same predictors, from given
        random numbers; None where D² is χ² for any number of rows.
    """

    d2: float
    df: float
    simulated: Callable[[int, np.random.Generator], FloatArray] | None = None


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

    def of_release(self, model: Model, released: Released, executor: Executor) -> Refit:
        """Fit a model again to a dataset alone: what is known to who has the release."""
        names = model.posterior.names
        return _fit_of(model).refit([self._rows(model, released)], names, executor)

    def departure(self, model: Model, released: Released, executor: Executor) -> Departure | None:
        """Compare a dataset with what a model's posterior predicts.

        None where draws that were made elsewhere are too few.
        """
        if model.regression.distribution.exact:
            known = self._known_for_draws(model, executor)
            if known is None:
                return None
            return Departure(*gaussian_distance(known, self._sums(model, released, executor)))
        moments = self._moments(model, executor)
        return None if moments is None else self._by_score(model, released, moments, executor)

    def _by_score(
        self,
        model: Model,
        released: Released,
        moments: tuple[FloatArray, FloatArray],
        executor: Executor,
    ) -> Departure:
        family, draws = model.regression.distribution, model.posterior
        centre, covariance = moments
        n_columns, n_predictors = draws.coefficients.shape[1:]
        n = n_columns * n_predictors
        coefficients = centre[:n].reshape(n_predictors, n_columns).T
        auxiliary = np.exp(centre[n:])
        rows = self._standardised(model, self._rows(model, released))
        score, _ = likelihood_derivatives(family, coefficients, auxiliary, rows, executor)
        information = expected_information(family, coefficients, auxiliary, rows, executor)
        found = ScoreDistance.of(score, information, covariance)

        def simulated(n_datasets: int, rng: np.random.Generator) -> FloatArray:
            own = self.design(model, released)  # of few rows: those of many are not simulated
            matrix = np.concatenate([part.read().matrix for part in rows])
            eta, n_rows = matrix @ coefficients, len(matrix)
            d2 = np.empty(n_datasets)
            for k in range(n_datasets):
                draw = model.posterior_draw(rng)
                given = np.broadcast_to(draws.auxiliary[draw], (n_rows, len(auxiliary)))
                y = family.draw(own @ draws.coefficients[draw], given, rng).astype(np.float64)
                score = family.score(y, eta, auxiliary)
                by_predictor = (matrix.T @ score[:, :n_predictors]).T.ravel()
                whole = np.concatenate([by_predictor, score[:, n_predictors:].sum(axis=0)])
                d2[k] = ((found.whitener @ whole) ** 2).sum()
            return d2

        return Departure(found.d2, found.df, simulated)

    def _moments(self, model: Model, executor: Executor) -> tuple[FloatArray, FloatArray] | None:
        """Return centre and covariance of a model's posterior; None where draws are too few.

        Those of a fit are of standardised parameters, those of draws made elsewhere of their own.
        """
        fit = model.fit
        if fit is None:
            return moments_of_draws(model.posterior)
        return self.memory.recall(
            f"moments of {model.regression.response}",
            lambda: fit.frozen.moments([self._records(model)], executor),
        )

    def _known_for_draws(self, model: Model, executor: Executor) -> KnownGivenSigma | None:
        """Return a gaussian model's posterior; of draws made elsewhere by their moments."""
        if model.fit is not None:
            return self._known(model, None, executor)
        moments = moments_of_draws(model.posterior)
        return None if moments is None else known_by_moments(*moments)

    def _standardised(self, model: Model, table: Table) -> list[Chunk]:
        """Return rows as the model's fit has them; for draws made elsewhere, as they are."""
        fit = model.fit
        return table.chunks(model.regression, None if fit is None else fit.frozen.standardisation)

    def nodes(
        self, model: Model, released: Released | None, reach: Reach, executor: Executor
    ) -> Nodes:
        """Return a model's exact posterior given everybody, and a dataset if any.

        `reach` is how far guesses may lie.
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
        guesses: ArrayTable,
        executor: Executor,
    ) -> Evidence:
        """Return the evidence of all rows, the record at `position` replaced by each guess."""
        others = self._records(model).without(position)
        tables = [others, *(self._rows(model, one) for one in datasets)]
        return _fit_of(model).evidence(tables, guesses, executor)

    def design(self, model: Model, released: Released | None) -> FloatArray:
        """Return the design of a model for the rows of a synthetic dataset, or for everybody."""
        if released is None:
            n_rows, columns = self.confidential.n_records, self.confidential.columns
            return model.design.matrix(columns, n_rows, "The confidential data", DataError)
        n_rows = len(released.columns[model.regression.response])
        return model.design.matrix(
            released.columns, n_rows, "The synthetic dataset", SyntheticDataError
        )

    def _records(self, model: Model) -> Table:
        return rows_of_records(self.confidential, model.design, model.regression)

    def _rows(self, model: Model, released: Released) -> Table:
        response, columns = model.regression.response, released.columns
        n_rows = len(columns[response])
        what = "The synthetic dataset"
        return table_of(model.design, columns, response, n_rows, what, SyntheticDataError)

    def table(self, model: Model, released: Released | None) -> Table:
        """Return the rows of a synthetic dataset as a model sees them, or of everybody."""
        return self._records(model) if released is None else self._rows(model, released)

    def _memory(self, released: Released | None) -> Memory:
        return self.memory if released is None else released.memory

    def _sums(self, model: Model, released: Released | None, executor: Executor) -> Sums:
        """Return what an exact posterior takes from a dataset, or from everybody."""

        def make() -> Sums:
            table = self.table(model, released)
            if model.fit is not None:
                return model.fit.frozen.sums([table], executor)
            rows = self._standardised(model, table)
            coefficients = model.posterior.coefficients[..., 0]
            centre = np.exp(model.posterior.log_weights) @ coefficients
            return Sums.of(rows, np.asarray(centre), executor)

        return self._memory(released).recall(f"sums of {model.regression.response}", make)

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
