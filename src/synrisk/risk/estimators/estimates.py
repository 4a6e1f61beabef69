"""How the likelihood of the release is estimated, model by model (METHOD §4).

The parameters of different regressions are independent a posteriori, so the likelihood is a product
of tables, one a model, over its own and its parents' guesses. Each table is

- `Exact` for a gaussian model: a ratio of two predictive densities, by quadrature over sigma,
- `Stacked`: the same ratio by draws given the confidential data and draws given confidential and
  synthetic data stacked, from common random numbers,
- `Importance`: draws given the confidential data alone, weighted by the density of the release,
- `AtGuesses`, for one record alone: the same ratio by a fit at each guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy.special import logsumexp

from synrisk.base.arrays import FloatArray
from synrisk.core.batches import Units
from synrisk.core.likelihood import (
    ErrorSets,
    KernelDraws,
    ModelBlock,
    Nodes,
    TableErrors,
    log_predictive,
    log_predictive_by_nodes,
    log_table,
    table_errors,
)
from synrisk.fitting.psis import LEAST_JUDGED, effective_size, smoothed
from synrisk.models.families import Family

Shape: TypeAlias = tuple[int, ...]

LEAST_RELEASE_ESS = 20.0  # below, the error of importance sampling tends to 0 as one draw dominates
_EVEN = 0.8  # share of the draws from which the tail of their weights does not matter


@dataclass(frozen=True, repr=False)
class ModelErrors:
    """Monte-Carlo errors of draws that are independent of other models'.

    Attributes
    ----------
    alone
        Of the likelihood, and of the posterior under a prior that is known.
    with_prior
        Computes those where the prior is the predictive density of the same draws.
    n_draws
        The number of draws.
    """

    alone: TableErrors
    with_prior: Callable[[], TableErrors]
    n_draws: int


@dataclass(frozen=True, repr=False)
class Importance:
    """Draws, and the log density of each dataset at each, ``(dataset, draw)``."""

    name: ClassVar[str] = "importance"
    draws: KernelDraws
    log_g: FloatArray
    units: Units  # draws that are not independent of one another
    reliable: ClassVar[bool] = True

    @cached_property
    def error_sets(self) -> tuple[ErrorSets, ...]:
        """The draws as the Monte-Carlo error takes them."""
        log_g = relative(self.log_g, self.draws.log_v)
        factors = np.concatenate([np.zeros((1, log_g.shape[1])), log_g])
        signs = [[-float(len(log_g)), *[1.0] * len(log_g)]]
        khat = np.array([[np.nan, *self.release_khat]])
        return (ErrorSets.of([self.draws], factors, signs, (0, 0), self.units, khat),)

    def errors(
        self, block: ModelBlock, shape: Shape, within: FloatArray, totals: FloatArray | None
    ) -> tuple[ModelErrors, ...]:
        """Return the Monte-Carlo errors of each independent part; see `table_errors`."""
        return _errors_by_draws(self.error_sets, block, shape, within, totals)

    @property
    def has_known_error(self) -> bool:
        """Whether enough draws carry weight: else the error tends to 0 as one draw dominates."""
        return bool(self.release_ess.min() >= LEAST_RELEASE_ESS)

    @cached_property
    def release_ess(self) -> FloatArray:
        """The effective number of draws behind each dataset's likelihood: ESS of v·g."""
        return np.array([effective_size(self.draws.log_v + one) for one in self.log_g])

    @cached_property
    def release_khat(self) -> FloatArray:
        """The shape of the tail of v·g for each dataset."""
        return np.array([smoothed(self.draws.log_v + one)[1] for one in self.log_g])

    def log_table(
        self, block: ModelBlock, shape: Shape, totals: FloatArray | None = None
    ) -> FloatArray:
        """Return Σ_l log L_l over the model's guesses, ``(record, cell)``, and fill `totals`."""
        log_g = relative(self.log_g, self.draws.log_v)
        return log_table(block, self.draws, log_g, shape, *([] if totals is None else totals))

    def log_predictive(self, block: ModelBlock, shape: Shape) -> FloatArray:
        """Return the log predictive density of each guess against the truth's."""
        return log_predictive(block, self.draws, shape)

    def to_arrays(self) -> dict[str, FloatArray]:
        """Return what is stored."""
        return {
            **_draws_to_arrays(self.draws, "draws"),
            "log_g": self.log_g,
            **self.units.to_arrays("units"),
        }

    @classmethod
    def from_arrays(cls, family: Family, arrays: Mapping[str, Any], at: str) -> Importance:
        """Return what `to_arrays` stored, with names that begin with `at`."""
        draws = _draws_from_arrays(family, arrays, f"{at}draws")
        return cls(draws, arrays[f"{at}log_g"], Units.from_arrays(arrays, f"{at}units"))


@dataclass(frozen=True, repr=False)
class Stacked:
    """Draws given the confidential data, and given these and each dataset stacked.

    One entry of `units` is of all sets: draw h of each was made from the same random numbers. With
    an entry a set, draws given the confidential data first, they were made independently.
    """

    name: ClassVar[str] = "stacked"
    draws: KernelDraws
    stacked: tuple[KernelDraws, ...]
    units: tuple[Units, ...]
    reliable: bool = True  # whether every fit to a stack can be relied on

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

    def errors(
        self, block: ModelBlock, shape: Shape, within: FloatArray, totals: FloatArray | None
    ) -> tuple[ModelErrors, ...]:
        """Return the Monte-Carlo errors of each independent part; see `table_errors`."""
        return _errors_by_draws(self.error_sets, block, shape, within, totals)

    @property
    def has_known_error(self) -> bool:
        """Always: the release enters by fits."""
        return True

    @property
    def release_ess(self) -> FloatArray:
        """The effective number of draws behind each dataset's likelihood: of its own fit."""
        return np.array([effective_size(draws.log_v) for draws in self.stacked])

    def log_table(
        self, block: ModelBlock, shape: Shape, totals: FloatArray | None = None
    ) -> FloatArray:
        """Return Σ_l log L_l over the model's guesses, ``(record, cell)``, and fill `totals`."""
        sets = (self.draws, *self.stacked)
        each = [[]] * len(sets) if totals is None else [[one] for one in totals]
        logs = [
            log_predictive(block, draws, shape, *to) for draws, to in zip(sets, each, strict=True)
        ]
        table = -len(self.stacked) * logs[0]
        for log_stacked in logs[1:]:
            table += log_stacked
        return table

    def log_predictive(self, block: ModelBlock, shape: Shape) -> FloatArray:
        """Return the log predictive density of each guess against the truth's."""
        return log_predictive(block, self.draws, shape)

    def to_arrays(self) -> dict[str, FloatArray]:
        """Return what is stored."""
        arrays = _draws_to_arrays(self.draws, "draws")
        arrays["reliable"] = np.array([float(self.reliable)])
        for number, units in enumerate(self.units):
            arrays |= units.to_arrays(f"units{number}")
        for number, draws in enumerate(self.stacked):
            arrays |= _draws_to_arrays(draws, f"stacked{number}")
        return arrays

    @classmethod
    def from_arrays(cls, family: Family, arrays: Mapping[str, Any], at: str) -> Stacked:
        """Return what `to_arrays` stored, with names that begin with `at`."""
        n_datasets = _n_stored(arrays, f"{at}stacked", "log_v")
        n_units = _n_stored(arrays, f"{at}units", "size")
        return cls(
            _draws_from_arrays(family, arrays, f"{at}draws"),
            tuple(
                _draws_from_arrays(family, arrays, f"{at}stacked{number}")
                for number in range(n_datasets)
            ),
            tuple(Units.from_arrays(arrays, f"{at}units{number}") for number in range(n_units)),
            bool(arrays[f"{at}reliable"][0]),
        )


@dataclass(frozen=True, repr=False)
class Exact:
    """Nodes given the confidential data, and given these and each dataset stacked."""

    name: ClassVar[str] = "exact"
    error_sets: ClassVar[tuple[ErrorSets, ...]] = ()
    reliable: ClassVar[bool] = True
    has_known_error: ClassVar[bool] = True
    nodes: Nodes
    stacked: tuple[Nodes, ...]

    def errors(
        self, block: ModelBlock, shape: Shape, within: FloatArray, totals: FloatArray | None
    ) -> tuple[ModelErrors, ...]:
        """Return nothing: there is no Monte-Carlo error."""
        del block, shape, within, totals
        return ()

    def log_table(
        self, block: ModelBlock, shape: Shape, totals: FloatArray | None = None
    ) -> FloatArray:
        """Return Σ_l log L_l over the model's guesses, ``(record, cell)``; there are no totals."""
        del totals
        return log_predictive_by_nodes(block, self.nodes, self.stacked, shape)

    def log_predictive(self, block: ModelBlock, shape: Shape) -> FloatArray:
        """Return the log predictive density of each guess against the truth's."""
        return log_predictive_by_nodes(block, self.nodes, (), shape)

    def to_arrays(self) -> dict[str, FloatArray]:
        """Return what is stored."""
        arrays = _nodes_to_arrays(self.nodes, "nodes")
        for number, nodes in enumerate(self.stacked):
            arrays |= _nodes_to_arrays(nodes, f"stacked{number}")
        return arrays

    @classmethod
    def from_arrays(cls, family: Family, arrays: Mapping[str, Any], at: str) -> Exact:  # noqa: ARG003
        """Return what `to_arrays` stored, with names that begin with `at`."""
        n_datasets = _n_stored(arrays, f"{at}stacked", "sigma")
        return cls(
            _nodes_from_arrays(arrays, f"{at}nodes"),
            tuple(
                _nodes_from_arrays(arrays, f"{at}stacked{number}") for number in range(n_datasets)
            ),
        )


@dataclass(frozen=True, repr=False)
class AtGuesses:
    """A fit at each guess of one record: without the release, then with each dataset.

    Attributes
    ----------
    log_evidence
        ``(fit, cell)``.
    log_weights
        Of the draws, ``(fit, cell, draw)``, in antithetic pairs; they sum to one.
    """

    name: ClassVar[str] = "fit"
    error_sets: ClassVar[tuple[ErrorSets, ...]] = ()
    reliable: ClassVar[bool] = True
    has_known_error: ClassVar[bool] = True
    log_evidence: FloatArray
    log_weights: FloatArray

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
        return self.log_evidence[:1]

    def errors(
        self, block: ModelBlock, shape: Shape, within: FloatArray, totals: FloatArray | None
    ) -> tuple[ModelErrors, ...]:
        """Return the Monte-Carlo errors; see `table_errors`."""
        del totals
        sign = -float(len(self.log_evidence) - 1)
        both = partial(self._errors, block, shape, within, sign + 1.0)
        n_draws = int(self.log_weights.shape[2])
        return (ModelErrors(self._errors(block, shape, within, sign), both, n_draws),)

    def _errors(
        self, block: ModelBlock, shape: Shape, within: FloatArray, sign: float
    ) -> TableErrors:
        weights = np.exp(self.log_weights)
        q = weights[1:].sum(axis=0) + sign * weights[0]
        q = np.add.reduceat(q, np.arange(0, q.shape[1], 2), axis=1)  # pairs
        parent, own = block.true_cells(shape)[0]
        apart = ((q - q[parent * shape[block.own] + own]) ** 2).sum(axis=1)
        targets = within[0, :, 1:] - within[0, :, 1:].sum(axis=0) * within[0, :, :1]
        variance = ((targets.T @ q) ** 2).sum(axis=1)
        sizes = np.exp(-logsumexp(2 * self.log_weights, axis=2))
        worst = np.unravel_index(int(np.argmin(sizes)), sizes.shape)
        khat = smoothed(self.log_weights[worst])[1]
        by = q.shape[1] / (q.shape[1] - 1)
        return TableErrors(
            by * variance[None], by * apart[None], np.array([sizes[worst]]), np.array([khat])
        )

    def to_arrays(self) -> dict[str, FloatArray]:
        """Return what is stored."""
        return {"log_evidence": self.log_evidence, "log_weights": self.log_weights}

    @classmethod
    def from_arrays(cls, family: Family, arrays: Mapping[str, Any], at: str) -> AtGuesses:  # noqa: ARG003
        """Return what `to_arrays` stored, with names that begin with `at`."""
        return cls(arrays[f"{at}log_evidence"], arrays[f"{at}log_weights"])


def _with_prior(
    block: ModelBlock, sets: ErrorSets, within: FloatArray, totals: FloatArray, shape: Shape
) -> TableErrors:
    """Return the errors where the prior takes one of the denominators away."""
    signs = sets.signs.copy()
    if sets.denominator is not None:
        signs[sets.denominator] += 1.0
    return table_errors(block, replace(sets, signs=signs), within, totals, shape, 0.0)


def _errors_by_draws(
    parts: tuple[ErrorSets, ...],
    block: ModelBlock,
    shape: Shape,
    within: FloatArray,
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
        alone = table_errors(block, sets, within, own, shape, least_even)
        both = partial(_with_prior, block, sets, within, own, shape)
        found.append(ModelErrors(alone, both, sets.n_draws))
    return tuple(found)


ModelEstimate: TypeAlias = Importance | Stacked | Exact | AtGuesses
KINDS: dict[str, type[Importance | Stacked | Exact]] = {
    kind.name: kind for kind in (Importance, Stacked, Exact)
}


def relative(log_g: FloatArray, log_v: FloatArray) -> FloatArray:
    """Return log g less its largest value among draws that count."""
    top = log_g[:, np.isfinite(log_v)].max(axis=1, keepdims=True)
    return np.asarray(np.minimum(log_g - top, 0.0))


def _n_stored(arrays: Mapping[str, Any], at: str, part: str) -> int:
    return sum(key.startswith(at) and key.endswith(part) for key in arrays)


def _draws_to_arrays(draws: KernelDraws, name: str) -> dict[str, FloatArray]:
    return {
        f"{name}_beta": draws.beta,
        f"{name}_parameters": draws.parameters,
        f"{name}_log_v": draws.log_v,
    }


def _draws_from_arrays(family: Family, arrays: Mapping[str, Any], name: str) -> KernelDraws:
    parts = (arrays[f"{name}_{part}"] for part in ("beta", "parameters", "log_v"))
    return KernelDraws(family, *(np.ascontiguousarray(part) for part in parts))


def _nodes_to_arrays(nodes: Nodes, name: str) -> dict[str, FloatArray]:
    return {f"{name}_{part}": values for part, values in vars(nodes).items()}


def _nodes_from_arrays(arrays: Mapping[str, Any], name: str) -> Nodes:
    fields = Nodes.__dataclass_fields__
    return Nodes(*(np.ascontiguousarray(arrays[f"{name}_{part}"]) for part in fields))
