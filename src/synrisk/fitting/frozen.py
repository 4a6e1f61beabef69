"""A regression with all that the confidential data settled: its posterior given any rows.

Scales, centring and priors are frozen, so that a fit to other rows differs in these alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, TypeAlias

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import OptionError
from synrisk.base.seeds import stream
from synrisk.base.workers import Executor, Serial
from synrisk.core.likelihood import Nodes
from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.conjugate import ConjugatePosterior, ConjugatePrior
from synrisk.fitting.laplace import Fitted, NormalPrior, Problem, find_mode, laplace
from synrisk.fitting.normal_prior import GaussianPosterior
from synrisk.fitting.nuts import nuts
from synrisk.fitting.prior_scales import Scales
from synrisk.fitting.sigma_quadrature import Furthest, KnownGivenSigma, Reach, quadrature
from synrisk.fitting.standardise import Chunk, Chunks, Standardisation
from synrisk.fitting.sufficient_statistics import Sums
from synrisk.fitting.table import Table
from synrisk.models.families import Family
from synrisk.models.plan import Regression
from synrisk.models.posterior import Posterior
from synrisk.models.priors import Conjugate, Exponential, Normal

Engine: TypeAlias = Literal["exact", "laplace", "nuts"]
Priors: TypeAlias = tuple[Normal | Exponential, ...] | Conjugate

_CERTAIN = math.log(0.5)  # a class more probable than all others together
_MANY_ROWS = 50_000


@dataclass(frozen=True, repr=False)
class FrozenRegression:
    """A regression whose posterior can be asked for given any rows.

    Attributes
    ----------
    regression
        The model.
    engine
        "exact", "laplace" or "nuts".
    n_predictors
        The number of its linear predictors.
    priors
        The scaled prior of every parameter, or the conjugate one.
    scales
        What they were scaled by.
    standardisation
        Of the design's columns.
    """

    regression: Regression
    engine: Engine
    n_predictors: int
    priors: Priors
    scales: Scales
    standardisation: Standardisation

    @property
    def family(self) -> Family:
        """The conditional distribution."""
        return self.regression.distribution

    @property
    def n_columns(self) -> int:
        """The number of design columns."""
        return len(self.standardisation.spread)

    def rows(self, tables: Sequence[Table]) -> list[Chunk]:
        """Return the rows of tables, standardised, in chunks, one table after the other."""
        return [
            chunk
            for table in tables
            for chunk in table.chunks(self.regression, self.standardisation)
        ]

    def fitted(
        self,
        rows: Chunks,
        numbers: CommonNumbers,
        judged: CommonNumbers,
        executor: Executor,
        *,
        adapted: bool | None = None,
    ) -> Fitted:
        """Draw from the posterior given rows; `judged` are for telling how good the draws are.

        `adapted` tells whether the fit that this one is compared with gave up proposals at the
        mode, if there is one.
        """
        if self.engine == "exact":
            sums = Sums.of(rows, self._prior.mean, executor)
            return self.known_given_sigma(sums).draw(numbers)
        problem = self.problem(rows, executor)
        if self.engine == "nuts":
            n_rows = sum(part.n_rows for part in rows)
            return nuts(problem, self.start(), len(numbers.u), _nuts_seed(numbers, n_rows))
        fitted = laplace(problem, self.start(), numbers, judged, adapted=adapted)
        if self.family.exact:  # k̂ does not see a second mode or a tail that was missed
            sums = Sums.of(rows, problem.prior.mean, executor)
            exact = GaussianPosterior.of(sums, problem.prior, self.scales.spread)
            fitted = replace(fitted, reliable=fitted.reliable and exact.agrees(fitted))
        return fitted

    def problem(self, rows: Chunks, executor: Executor) -> Problem:
        """Return the posterior given rows, under normal priors."""
        prior, what = self._prior, self.regression.title
        if isinstance(prior, ConjugatePrior):
            raise OptionError(f"{what}: the conjugate prior is drawn from exactly.")
        return Problem(
            self.family,
            self.n_columns,
            self.n_predictors,
            rows,
            prior,
            executor,
            what,
            self.scales.spread,
        )

    def moments(self, tables: Sequence[Table], executor: Executor) -> tuple[FloatArray, FloatArray]:
        """Return the posterior's mode given the rows of tables, and the covariance there.

        Parameters are standardised, auxiliary ones in logs.
        """
        mode, precision = find_mode(self.problem(self.rows(tables), executor), self.start())
        return mode, np.asarray(np.linalg.inv(precision))

    def sums(self, tables: Sequence[Table], executor: Executor) -> Sums:
        """Return what an exact posterior takes from the rows of tables."""
        rows = self.rows(tables)
        return Sums.of(rows, self._prior.mean, worth_of(rows, executor))

    def known_given_sigma(self, sums: Sums) -> GaussianPosterior | ConjugatePosterior:
        """Return the exact posterior given sums over rows: coefficients are normal given sigma."""
        prior = self._prior
        if isinstance(prior, ConjugatePrior):
            return ConjugatePosterior.of(sums, prior, self.regression.title)
        return GaussianPosterior.of(sums, prior, self.scales.spread)

    def furthest(
        self, known: KnownGivenSigma, sums: Sums, records: Table, executor: Executor
    ) -> Furthest:
        """Return how far records lie from an exact posterior that was given them in `sums`."""
        rows = self.rows([records])
        return Furthest.of(known, sums, rows, worth_of(rows, executor))

    def nodes(self, known: KnownGivenSigma, sums: Sums, furthest: Furthest, reach: Reach) -> Nodes:
        """Return an exact posterior as a sum over nodes of sigma.

        Parameters
        ----------
        known, sums
            The posterior, and the sums over the rows that it was given.
        furthest
            Of the confidential records among these.
        reach
            How far guesses may lie from the truth.
        """
        log_sigma, log_weight = quadrature(known, sums, furthest, reach, self.regression.title)
        mean, covariance = known.given(log_sigma)
        return Nodes(
            log_weight,
            np.exp(log_sigma),
            np.ascontiguousarray(mean),
            np.ascontiguousarray(covariance),
            self.standardisation.centre,
            self.standardisation.spread,
        )

    def own_scale(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coefficients ``(draw, column, predictor)`` and auxiliary parameters."""
        n = self.n_columns * self.n_predictors
        by_predictor = theta[:, :n].reshape(len(theta), self.n_predictors, self.n_columns)
        standardised = np.swapaxes(by_predictor, 1, 2)
        return self.standardisation.coefficients(standardised), np.exp(theta[:, n:])

    def posterior(self, fitted: Fitted, names: tuple[str, ...]) -> Posterior:
        """Return draws on the parameters' own scale."""
        coefficients, auxiliary = self.own_scale(fitted.theta)
        return Posterior(
            np.ascontiguousarray(coefficients),
            np.ascontiguousarray(auxiliary),
            fitted.log_weights,
            names,
            ("fit",) * len(names),
            fitted.chain,
        )

    def start(self) -> FloatArray:
        """Return where the search for the mode begins."""
        start = np.zeros((self.n_predictors, self.n_columns))
        if self.standardisation.intercept is not None:
            n_own = self.n_predictors - len(self.family.further_predictors)
            start[:n_own, self.standardisation.intercept] = self.scales.centre
        means = [own.default_mean(self.scales.spread) for own in self.family.auxiliary]
        return np.concatenate([start.ravel(), np.array([math.log(mean) for mean in means])])

    def settles_all(self, mode: FloatArray, rows: Chunks) -> bool:
        """Tell whether the coefficients at the mode part the classes without an error."""
        n = self.n_columns * self.n_predictors
        coefficients = mode[:n].reshape(self.n_predictors, self.n_columns).T
        auxiliary = np.exp(mode[n:])
        return all(map(partial(_settles, self.family, coefficients, auxiliary), rows))

    @cached_property
    def _prior(self) -> NormalPrior | ConjugatePrior:
        if isinstance(self.priors, Conjugate):
            mean = np.zeros(self.n_columns)
            if self.standardisation.intercept is not None:
                mean[self.standardisation.intercept] = self.scales.centre
            return ConjugatePrior(
                mean, float(self.priors.scale), float(self.priors.df), self.scales.spread
            )
        normals = [prior for prior in self.priors if isinstance(prior, Normal)]
        rates = [prior.rate for prior in self.priors if isinstance(prior, Exponential)]
        spread = np.tile(self.standardisation.spread, self.n_predictors)
        return NormalPrior(
            np.array([prior.mean for prior in normals]) * spread,
            np.array([prior.sd for prior in normals]) * spread,
            np.array(rates, dtype=np.float64),
        )


def common_numbers(
    seed: int, stage: str, regression: Regression, n_draws: int, n_normals: int
) -> CommonNumbers:
    """Return the random numbers of a regression's draws."""
    rng = stream(seed, stage, variable=regression.response)
    return CommonNumbers.draw(rng, n_draws, n_normals)


def _settles(family: Family, coefficients: FloatArray, auxiliary: FloatArray, chunk: Chunk) -> bool:
    """Tell whether the class of each row of a chunk is as good as certain."""
    part = chunk.read()
    counts = part.omega > 0
    eta = part.matrix[counts] @ coefficients
    return bool((family.log_density(part.y[counts], eta, auxiliary) > _CERTAIN).all())


def worth_of(rows: Chunks, executor: Executor) -> Executor:
    """Return the executor for a gaussian fit: of few rows it is over before threads have begun."""
    return executor if sum(part.n_rows for part in rows) > _MANY_ROWS else Serial()


def _nuts_seed(numbers: CommonNumbers, n_rows: int) -> int:
    """Return a seed that belongs to a fit's random numbers, another for other rows."""
    start = int(numbers.u[0] * 2.0**53)
    return int(np.random.SeedSequence([start, n_rows]).generate_state(1)[0])
