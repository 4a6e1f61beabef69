"""What an estimator is, and what it makes: one model's likelihood of the release (METHOD §4).

The parameters of different regressions are independent a posteriori, so the likelihood is a product
of tables, one a model, over its own and its parents' guesses. An `Estimator` says whether it can
estimate a model's table and prepares that once for a release; the `Estimate` that it returns is
asked for blocks of records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.workers import Executor
from synrisk.core.batches import Units
from synrisk.core.likelihood import ModelBlock
from synrisk.core.table_errors import ErrorSets, TableErrors, table_errors
from synrisk.fitting.psis import LEAST_JUDGED, are_reliable
from synrisk.models.posterior import Posterior
from synrisk.risk.guesses import GuessSpan
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

Shape: TypeAlias = tuple[int, ...]

_EVEN = 0.8  # share of the draws from which the tail of their weights does not matter
_PAIR = 2  # draws of a fit come in antithetic pairs


@dataclass(frozen=True)
class Finding:
    """Something shaky.

    Attributes
    ----------
    what, why
        With who may read it.
    what_to_do
        Advice, for anyone: no number of the data is in it.
    by_choice
        Whether whoever asked for it knows, and is not warned.
    is_failed_check
        Whether it is of the checks of the release, which have a table of their own in a report.
    error_is_unknown
        Whether it says that the Monte-Carlo error of all records cannot be estimated.
    """

    what: str
    why: str
    what_to_do: str
    by_choice: bool = False
    is_failed_check: bool = False
    error_is_unknown: bool = False


@dataclass(frozen=True, repr=False)
class ModelErrors:
    """Monte-Carlo errors of draws that are independent of other models'.

    `evenness` is the effective share of the `n_draws` by themselves, whatever the record.
    """

    table: TableErrors
    n_draws: int
    evenness: float = 1.0

    @property
    def are_reliable(self) -> BoolArray:
        """Whether each record's weights can be relied on."""
        return are_reliable(self.table.khat, self.table.ess, self.n_draws, self.evenness)


class Estimate(ABC):
    """One model's likelihood of the release at the guesses of any block of records.

    Tables are ``(record, cell)`` over the guesses of the model's synthesized predictors and its
    own. `block` is what the model's `Encoder` made of the records.
    """

    name: ClassVar[str]
    is_drawn: ClassVar[bool] = True  # whether there is a Monte-Carlo error at all

    @property
    def can_be_fitted(self) -> bool:
        """Whether an unreliable record may be fitted at each of its guesses instead."""
        return False

    @property
    def reliable(self) -> bool:
        """Whether all that it was prepared from can be relied on."""
        return True

    @property
    def has_known_error(self) -> bool:
        """Whether its Monte-Carlo error can be estimated."""
        return True

    @property
    def error_sets(self) -> tuple[ErrorSets, ...]:
        """The draws as the Monte-Carlo error takes them; errors of independent sets add."""
        return ()

    @abstractmethod
    def log_table(self, block: Any, shape: Shape, totals: FloatArray | None = None) -> FloatArray:
        """Return Σ_l log L_l: the log ratio of the predictive densities with and without dataset l.

        `totals` is filled by the sums of the draws' weights, for `errors`.
        """

    @abstractmethod
    def log_predictive(self, block: Any, shape: Shape) -> FloatArray:
        """Return the log predictive density of each guess without the release, up to a constant."""

    def log_both(
        self, block: Any, shape: Shape, totals: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return `log_table` and `log_predictive`, which may have most of the work in common."""
        return self.log_table(block, shape, totals), self.log_predictive(block, shape)

    def errors(
        self,
        block: Any,
        shape: Shape,
        within: FloatArray,
        by_prior: FloatArray | None,
        totals: FloatArray | None,
    ) -> tuple[ModelErrors, ...]:
        """Return the Monte-Carlo errors of each independent set of draws; see `table_errors`."""
        return _errors_by_draws(self.error_sets, block, shape, within, by_prior, totals)

    def worst_weights(self) -> tuple[FloatArray, FloatArray]:
        """Return ESS and k̂ where no error is known: those of the release's own weights."""
        return np.array([np.inf]), np.array([np.nan])

    def findings(self, variable: str) -> list[Finding]:  # noqa: ARG002
        """Return what is shaky about all numbers of a variable."""
        return []


@dataclass(frozen=True, repr=False)
class Request:
    """What an estimator prepares one model's estimate of.

    Attributes
    ----------
    synthesizer, position
        The models, and which of them it is.
    draws
        The posterior draws to be used.
    release
        The synthetic datasets.
    extents
        How far the guesses go, for each synthesized variable.
    executor
        Maps over chunks of rows.
    given_stacks
        Draws of this model made elsewhere given confidential rows and each dataset, if any.
    """

    synthesizer: Synthesizer
    position: int
    draws: Posterior
    release: Sequence[Released]
    extents: Sequence[GuessSpan]
    executor: Executor
    given_stacks: Sequence[Posterior] = ()

    @property
    def model(self) -> Model:
        """The model."""
        return self.synthesizer.models[self.position]


class Estimator(ABC):
    """A way to estimate the likelihood of one model, as users name it."""

    name: ClassVar[str]
    uses_draws: ClassVar[bool] = True

    @abstractmethod
    def refusal(self, model: Model, *, with_stacks: bool) -> str | None:
        """Return why a model cannot be estimated so, for a message; None where it can.

        `with_stacks` tells whether there are draws made elsewhere given the stacks.
        """

    @abstractmethod
    def prepare(self, request: Request) -> Estimate:
        """Return the estimate, with all that it needs of the release."""


def units_of(model: Model, draws: Posterior, *, stacked: bool) -> Units:
    """Return which draws make a unit of the error, and what matched moments leave exact.

    Draws made elsewhere are those of chains, or may be: they are taken in batches. What many
    matched moments do is known for stacked draws alone.
    """
    if model.fit is None or draws.chain is not None:
        return Units.of_chains(draws.chain, draws.n_draws)
    whole = len(model.fit.numbers.u) == draws.n_draws
    if not whole:
        return Units(_PAIR)
    numbers = model.fit.numbers
    normals = numbers.matched_normals() if stacked else None
    return Units(_PAIR, basis=numbers.matched_directions(), normals=normals)


def _errors_by_draws(
    parts: tuple[ErrorSets, ...],
    block: ModelBlock,
    shape: Shape,
    within: FloatArray,
    by_prior: FloatArray | None,
    totals: FloatArray | None,
) -> tuple[ModelErrors, ...]:
    """Return the errors of sets of draws that are independent of one another."""
    if totals is None:
        return ()
    found, first = [], 0
    for sets in parts:
        own = np.ascontiguousarray(totals[first : first + len(sets.signs)])
        first += len(sets.signs)
        least_even = _EVEN * sets.n_draws if sets.n_draws >= LEAST_JUDGED else 0.0
        table = table_errors(block, sets, within, by_prior, own, shape, least_even)
        found.append(ModelErrors(table, sets.n_draws, sets.evenness))
    return tuple(found)
