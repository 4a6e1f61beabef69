"""The likelihood of the release at each guess: arrays in, arrays out.

Axes are ``(record, guess₁, …, guess_K in synthesis order, draw)``; cells of a grid are flattened in
C order. In METHOD's terms, with draws θ_h given the confidential data, v_h their weights, and for
dataset l

    L_l(y*) = Σ_h v_h g_l(θ_h) w_h(y*) / Σ_h v_h w_h(y*)       w_h(y*) = f(y*|θ_h) / f(y_i|θ_h)

A record's numbers do not depend on the records that it is computed with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.core.batches import Units
from synrisk.models.families import Family
from synrisk.models.posterior import Posterior

if TYPE_CHECKING:
    from synrisk.core.kernels import Records

_PAIR = 2
_SMALLEST = 1e-300  # factor of a draw: one of zero has a log
_ENOUGH_UNITS = 64  # for a standard error to be known to an eleventh, where draws weigh alike
_EVEN = 0.5  # effective share of the draws below which some are not enough
_EVEN_RECORD = 0.8  # the same of a record, against that of the draws by themselves
_UNITS_A_DIRECTION = 4  # of those that matched moments take away
_UNITS_A_PARAMETER = 6  # where products are too many for a direction each
_EXPLAINED = 0.35  # of the variance, by matched products: measured, 0.28 to 0.43 in four models
_SD_OF_EXPLAINED = 0.15  # between models and records
_MOST_EXPLAINED = 0.75
_LEAST_SPARE = 5  # units of draws, beyond what is estimated, for an error to be known
_NO_TOTALS = np.empty((0, 0, 0))
_EARLIER_ELEMENTS = 1 << 17  # of earlier models' log weights held at once: a megabyte


@dataclass(frozen=True, repr=False)
class TermValues:
    """A term's design columns over the guesses of the synthesized variables that it mentions.

    ``values`` has shape ``(record, *guesses of axes, column)``; ``axes`` are in synthesis order.
    """

    axes: tuple[int, ...]
    values: FloatArray


@dataclass(frozen=True, repr=False)
class KernelDraws:
    """The draws of one model as the kernels want them, the draw on the last axis."""

    family: Family
    beta: FloatArray
    parameters: FloatArray
    log_v: FloatArray

    @classmethod
    def of(cls, family: Family, draws: Posterior) -> KernelDraws:
        """Lay out the draws of a posterior."""
        return cls(
            family,
            np.ascontiguousarray(np.moveaxis(draws.coefficients, 0, 2)),
            family.kernel_parameters(draws.auxiliary),
            np.ascontiguousarray(draws.log_weights),
        )


@dataclass(frozen=True, repr=False)
class ModelBlock:
    """One model for a block of records.

    Attributes
    ----------
    own, parents
        The axis of the response's guesses, and those of its synthesized predictors.
    values, places
        The linear predictor's columns: column c at parent cell p of record i is
        ``values[i, places[c, p]]``.
    guesses
        The response's guesses, ``(record, guess)``.
    truth
        The index of the truth on every axis, ``(record, axis)``.
    record_weights
        The exponent ω on each record's density.
    predicts
        Whether guesses have the exponent 1, as where they are predicted, whatever the record's is.
    """

    own: int
    parents: tuple[int, ...]
    values: FloatArray
    places: IntArray
    guesses: FloatArray
    truth: IntArray
    record_weights: FloatArray
    predicts: bool = False

    def part(self, rows: slice | IntArray) -> ModelBlock:
        """Return some of the records."""
        return ModelBlock(
            self.own,
            self.parents,
            self.values[rows],
            self.places,
            self.guesses[rows],
            self.truth[rows],
            self.record_weights[rows],
            self.predicts,
        )

    @cached_property
    def is_weighted(self) -> bool:
        """Whether some record's density has another exponent than 1."""
        return bool((self.record_weights != 1.0).any())

    def predicting(self) -> ModelBlock:
        """Return the block with guesses that have the exponent 1: what is predicted of them."""
        return replace(self, predicts=True)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of this model's table: its parents' and its own."""
        return (*self.parents, self.own)

    @property
    def table_shape(self) -> tuple[int, int]:
        """The records, and the cells of this model's table."""
        n_records, n_guesses = self.guesses.shape
        return n_records, self.places.shape[1] * n_guesses

    def true_cells(self, shape: tuple[int, ...], rows: slice = slice(None)) -> IntArray:
        """Return the parent cell and the own guess of the truth, ``(record, 2)``."""
        truth = self.truth[rows]
        parent_cell = np.zeros(len(truth), dtype=np.int64)
        for axis in self.parents:
            parent_cell = parent_cell * shape[axis] + truth[:, axis]
        return np.stack([parent_cell, truth[:, self.own]], axis=1)

    def records(self, shape: tuple[int, ...], rows: slice = slice(None)) -> Records:
        """Return what kernels take of the records."""
        from synrisk.core.kernels import Records

        omega = self.record_weights[rows]
        return Records(
            self.values[rows],
            self.places,
            self.guesses[rows],
            self.true_cells(shape, rows),
            omega,
            np.ones(len(omega)) if self.predicts else omega,
        )

    def arguments(
        self,
        draws: KernelDraws,
        shape: tuple[int, ...],
        outer: tuple[int, ...],
        earlier: FloatArray,
        rows: slice = slice(None),
    ) -> tuple[object, ...]:
        """Return what a kernel takes, with outer cells over the axes `outer` of the grid."""
        from synrisk.core.kernels import Draws

        own = Draws(draws.beta, draws.parameters, draws.log_v)
        return self.records(shape, rows), own, cells_within(outer, self.parents, shape), earlier


def flatten_terms(
    terms: Sequence[TermValues], parents: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[FloatArray, IntArray]:
    """Return `ModelBlock.values` and `places` of a model's terms."""
    n_records = len(terms[0].values)
    flat, places, start = [], [], 0
    for term in terms:
        n_columns = term.values.shape[-1]
        flat.append(term.values.reshape(n_records, -1))
        cells = cells_within(parents, term.axes, shape)
        places += [start + cells * n_columns + column for column in range(n_columns)]
        start += flat[-1].shape[1]
    return np.concatenate(flat, axis=1), np.stack(places)


def cells_within(axes: tuple[int, ...], some: tuple[int, ...], shape: tuple[int, ...]) -> IntArray:
    """Return for each cell of a grid over `axes` its cell in the grid over `some` of them."""
    index = np.zeros(tuple(shape[axis] for axis in axes), dtype=np.int64)
    for axis in some:
        along = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in axes])
        index = index * shape[axis] + along
    return np.ascontiguousarray(index.ravel())


def log_table(
    block: ModelBlock,
    draws: KernelDraws,
    log_g: FloatArray,
    shape: tuple[int, ...],
    totals: FloatArray = _NO_TOTALS,
) -> FloatArray:
    """Return Σ_l log L_l of one model over its parents' and own guesses, ``(record, cell)``.

    Parameters
    ----------
    block, draws
        The model.
    log_g
        The log density of each dataset at each draw under this model, ``(dataset, draw)``, the
        largest of each dataset being 0.
    shape
        The shape of the joint grid.
    totals
        Filled by the sums of the weights, without g and with that of each dataset,
        ``(record, sum, cell)``.
    """
    return _reduced(block, draws, log_g, shape, totals, as_ratio=True)


def log_predictive(
    block: ModelBlock,
    draws: KernelDraws,
    shape: tuple[int, ...],
    totals: FloatArray = _NO_TOTALS,
) -> FloatArray:
    """Return log Σ_h v_h w_h of one model over its parents' and own guesses, ``(record, cell)``.

    It is the predictive density of a guess given all other rows, against that of the truth.
    `totals` is filled by the sums, ``(record, 1, cell)``.
    """
    no_g = np.zeros((1, len(draws.log_v)))
    return _reduced(block, draws, no_g, shape, totals, as_ratio=False)


def _reduced(
    block: ModelBlock,
    draws: KernelDraws,
    log_g: FloatArray,
    shape: tuple[int, ...],
    totals: FloatArray,
    *,
    as_ratio: bool,
) -> FloatArray:
    from synrisk.core.kernels import reduce_kernel

    n_records, n_guesses = block.guesses.shape
    out = np.empty((n_records, block.places.shape[1] * n_guesses))
    kernel = reduce_kernel(draws.family)
    arguments = block.arguments(draws, shape, block.parents, np.empty((0, 0, 0, 0)))
    kernel(*arguments, log_g, as_ratio, out, totals)
    return out


@dataclass(frozen=True, repr=False)
class Nodes:
    """A gaussian model's posterior as a sum over nodes of sigma.

    Attributes
    ----------
    log_weight, sigma
        Of each node; the weights sum to one.
    mean, covariance
        Of the coefficients of standardised columns given sigma, ``(node, column)`` and
        ``(node, column, column)``.
    centre, spread
        What columns are standardised by: far from 0, their products would lose digits.
    """

    log_weight: FloatArray
    sigma: FloatArray
    mean: FloatArray
    covariance: FloatArray
    centre: FloatArray
    spread: FloatArray


def log_predictive_by_nodes(
    block: ModelBlock, alone: Nodes, stacked: Sequence[Nodes], shape: tuple[int, ...]
) -> FloatArray:
    """Return what `log_predictive` estimates, for a gaussian model, by nodes.

    Where there are stacks, the sum over them of what it is given a stack less what it is alone. All
    nodes have the same standardisation.
    """
    from synrisk.core.kernels import NodeSets, exact_kernel

    sets = (alone, *stacked)
    nodes = NodeSets(
        np.cumsum([0, *(len(nodes.sigma) for nodes in sets)]),
        np.concatenate([nodes.log_weight for nodes in sets]),
        np.concatenate([nodes.sigma for nodes in sets]),
        np.concatenate([nodes.mean for nodes in sets]),
        np.concatenate([nodes.covariance for nodes in sets]),
        alone.centre,
        alone.spread,
    )
    out = np.empty(block.table_shape)
    exact_kernel()(block.records(shape), nodes, out)
    return out


@dataclass(frozen=True, repr=False)
class ErrorSets:
    """Sets of draws for the Monte-Carlo error: adjacent ones make a unit.

    Attributes
    ----------
    family, unit_size
        Of the draws.
    beta, parameters, log_v
        As in `KernelDraws`, with sets of draws on the first axis, laid out by `Units`.
    factors
        What each draw's weight is multiplied by, ``(set, factor, draw)``; 0 at empty places.
    signs
        How the logs of the sums enter log L, ``(set, factor)``.
    denominator
        The set and factor of the predictive density without the release; None if not among them.
    khat
        The shape of the tail of v times each factor, ``(set, factor)``, or NaN: where the weights
        of guesses are even, theirs has that shape too.
    basis
        Orthonormal directions over the units that have no error, ``(direction, unit)``.
    normals
        Standard normals of the units, the sums of whose products have no error, ``(unit,
        parameter)``.
    predicts
        In which sets guesses have the exponent 1, whatever the record's is.
    uses_all
        Whether errors are estimated by all units.
    """

    family: Family
    unit_size: int
    beta: FloatArray
    parameters: FloatArray
    log_v: FloatArray
    factors: FloatArray
    signs: FloatArray
    denominator: tuple[int, int] | None
    khat: FloatArray
    basis: FloatArray | None = None
    normals: FloatArray | None = None
    predicts: tuple[int, ...] = ()
    uses_all: bool = False

    @classmethod
    def of(
        cls,
        sets: Sequence[KernelDraws],
        log_factors: FloatArray,
        signs: Sequence[Sequence[float]],
        denominator: tuple[int, int] | None,
        units: Units,
        khat: FloatArray | None = None,
    ) -> ErrorSets:
        """Lay out sets of draws that share the logs of their factors, ``(factor, draw)``."""
        factors = units.laid_out(np.exp(log_factors)) * units.occupied(log_factors.shape[1])
        return cls(
            sets[0].family,
            units.size,
            np.stack([units.laid_out(draws.beta) for draws in sets]),
            np.stack([units.laid_out(draws.parameters) for draws in sets]),
            np.stack([units.laid_out(draws.log_v) for draws in sets]),
            np.stack([factors] * len(sets)),
            np.array(signs, dtype=np.float64),
            denominator,
            np.full(np.shape(signs), np.nan) if khat is None else khat,
            units.basis,
            units.normals,
        )

    def with_prediction(self) -> ErrorSets:
        """Return these with what is predicted of a guess as one more factor of the posterior.

        Where records have the exponent 1 that is one of the denominators, and takes it away.
        """
        if self.denominator is None:
            return self
        one, factor = self.denominator
        signs = np.zeros((1, self.signs.shape[1]))
        signs[0, factor] = 1.0

        def extended(values: FloatArray) -> FloatArray:
            return np.concatenate([values, values[[one]]])

        return replace(
            self,
            beta=extended(self.beta),
            parameters=extended(self.parameters),
            log_v=extended(self.log_v),
            factors=extended(self.factors),
            khat=extended(self.khat),
            signs=np.concatenate([self.signs, signs]),
            predicts=(len(self.signs),),
        )

    @property
    def n_draws(self) -> int:
        """The number of draws in a set; the first factor is 1."""
        return int(np.count_nonzero(self.factors[0, 0]))

    @property
    def n_units(self) -> int:
        """The number of units; the last may be smaller."""
        return -(-int(self.factors.shape[2]) // self.unit_size)

    @property
    def n_used(self) -> int:
        """How many units errors are estimated by: of independent ones, no more than are enough.

        Where weights are uneven a few units have most of the error, and some of all would miss
        them: all are used.
        """
        if self.uses_all or self.unit_size > _PAIR or self._evenness < _EVEN:
            return self.n_units
        n_directions = 0 if self.basis is None else len(self.basis)
        enough = max(_ENOUGH_UNITS, _UNITS_A_DIRECTION * n_directions, self._n_in_form)
        return min(self.n_units, enough)

    @property
    def _n_in_form(self) -> int:
        """How many units the share that matched products explain is estimated by."""
        n_parameters = 0 if self.normals is None else self.normals.shape[1]
        return min(self.n_units, max(_ENOUGH_UNITS, _UNITS_A_PARAMETER * n_parameters))

    @cached_property
    def evenness(self) -> float:
        """The effective share of the draws with their factors, the smallest of all that count."""
        weights = np.exp(self.log_v)[:, None, :] * self.factors
        shares = weights.sum(axis=2) ** 2 / (weights * weights).sum(axis=2)
        return float(shares[self.signs != 0.0].min() / self.n_draws)

    @cached_property
    def _evenness(self) -> float:
        """The effective share of the draws, the smallest of all sets."""
        v = np.exp(self.log_v) * (self.factors[:, 0] > 0)
        return float((v.sum(axis=1) ** 2 / (v * v).sum(axis=1)).min() / self.n_draws)

    def used(self) -> tuple[FloatArray, ...]:
        """Return coefficients, parameters, log v and factors of the draws in used units."""
        n = self.n_used * self.unit_size
        arrays = (self.beta, self.parameters, self.log_v, self.factors)
        return tuple(np.ascontiguousarray(values[..., :n]) for values in arrays)

    @property
    def used_basis(self) -> FloatArray:
        """The directions without an error, over the units that are used."""
        if self.basis is None:
            return np.zeros((0, self.n_used))
        if self.n_used == self.n_units:
            return np.ascontiguousarray(self.basis)
        return np.ascontiguousarray(np.linalg.qr(self.basis[:, : self.n_used].T)[0].T)

    def credit(self) -> tuple[float, FloatArray]:
        """Return the share and the quadratic form that many matched products take from squares.

        With effects φ and independent normals z of the units, products are orthogonal, and the
        share of φ's variance that they explain is estimated without bias by the sum over u ≠ u' of

            φ_u φ_u' k(z_u, z_u') / (n (n − 1))    k = ((z·z')² − |z|² − |z'|² + p) / 2

        against that of φ². Its variance is about p (p + 1)/n², so with few units it is drawn
        towards what models were found to have.
        """
        if self.normals is None:
            return 0.0, np.zeros((0, 0))
        z = self.normals[: self._n_in_form]
        n, n_parameters = z.shape
        squares = (z * z).sum(axis=1)
        form = 0.5 * ((z @ z.T) ** 2 - squares[:, None] - squares + n_parameters)
        np.fill_diagonal(form, 0.0)
        form -= form.mean(axis=0)
        form -= form.mean(axis=1)[:, None]
        noise = n_parameters * (n_parameters + 1) / n**2
        own = _SD_OF_EXPLAINED**2 / (_SD_OF_EXPLAINED**2 + noise)
        return (1.0 - own) * _EXPLAINED, np.ascontiguousarray(own / (n - 1) * form)

    def at_truth(self) -> FloatArray:
        """Return each used unit's effect on the log likelihood of the truth, where w is 1."""
        weights = self.factors * np.exp(self.log_v)[:, None, :]
        weights *= (self.signs / weights.sum(axis=2))[:, :, None]
        total = weights.sum(axis=(0, 1))
        by_unit = np.add.reduceat(total, np.arange(0, len(total), self.unit_size))
        return np.ascontiguousarray(by_unit[: self.n_used])


def empty_totals(parts: Sequence[ErrorSets], block: ModelBlock) -> FloatArray:
    """Return what the sums of the weights fill, ``(set, record, factor, cell)``, of all parts."""
    n_records, n_guesses = block.guesses.shape
    n_sets, n_factors = sum(len(sets.signs) for sets in parts), parts[0].signs.shape[1]
    return np.empty((n_sets, n_records, n_factors, block.places.shape[1] * n_guesses))


@dataclass(frozen=True, repr=False)
class TableErrors:
    """Monte-Carlo errors of one model's table.

    Attributes
    ----------
    variance
        Of each target, ``(record, target)``.
    variance_from_truth
        Of the log likelihood of each cell against the truth's, ``(record, cell)``.
    ess, khat
        The smallest effective number of draws at a record's guesses, and the shape of the weights'
        tail there (NaN where the number is large enough to do without).
    """

    variance: FloatArray
    variance_from_truth: FloatArray
    ess: FloatArray
    khat: FloatArray


def table_errors(
    block: ModelBlock,
    sets: ErrorSets,
    within: FloatArray,
    totals: FloatArray,
    shape: tuple[int, ...],
    least_even: float,
) -> TableErrors:
    """Return the Monte-Carlo errors that a model's draws leave.

    Parameters
    ----------
    block, sets
        The model.
    within
        The probability of each cell, and that part of it which lies within each target,
        ``(record, cell, 1 + target)``.
    totals
        The sums of the weights, ``(set, record, factor, cell)``.
    shape
        The shape of the joint grid.
    least_even
        The effective number of draws from which their tail is not looked at.
    """
    found = _table_errors(block, sets, within, totals, shape, least_even)
    # A few draws have most of the error of an outlier: some would miss them.
    uneven = np.flatnonzero(found.ess < _EVEN_RECORD * sets.evenness * sets.n_draws)
    if len(uneven) and sets.n_used < sets.n_units:
        again = _table_errors(
            block.part(uneven),
            replace(sets, uses_all=True),
            within[uneven],
            np.ascontiguousarray(totals[:, uneven]),
            shape,
            least_even,
        )
        for name, values in vars(again).items():
            getattr(found, name)[uneven] = values
    return found


def _table_errors(
    block: ModelBlock,
    sets: ErrorSets,
    within: FloatArray,
    totals: FloatArray,
    shape: tuple[int, ...],
    least_even: float,
) -> TableErrors:
    """Return the errors by the units that `sets` uses."""
    from synrisk.core.kernels import Draws, Matched, error_kernel

    n_records, n_cells, n_targets = within.shape
    found = TableErrors(
        np.empty((n_records, n_targets - 1)),
        np.empty((n_records, n_cells)),
        np.empty(n_records),
        np.empty(n_records),
    )
    basis = sets.used_basis
    *used, used_factors = sets.used()
    error_kernel(sets.family)(
        block.predicting().records(shape),
        Draws(sets.beta, sets.parameters, sets.log_v),
        np.log(np.maximum(sets.factors, _SMALLEST)),
        Draws(*used),
        used_factors,
        sets.signs,
        np.isin(np.arange(len(sets.signs)), sets.predicts),
        sets.unit_size,
        sets.at_truth(),
        Matched(basis, *sets.credit(), _MOST_EXPLAINED),
        within,
        totals,
        least_even,
        sets.khat,
        found.variance,
        found.variance_from_truth,
        found.ess,
        found.khat,
    )
    return TableErrors(
        _unbiased(sets.n_units, sets.n_used, len(basis)) * found.variance,
        _unbiased(sets.n_units, sets.n_used, 0) * found.variance_from_truth,
        found.ess,
        found.khat,
    )


def _unbiased(n_units: int, n_used: int, n_directions: int) -> float:
    """Return what a sum of squares over the used units is multiplied by; NaN where they are few.

    An effect has the size of one unit among all.
    """
    spare = n_used - 1 - n_directions
    return n_units / spare if spare >= _LEAST_SPARE else np.nan


def log_joint_paired(
    blocks: Sequence[ModelBlock],
    draws: Sequence[KernelDraws],
    log_g: FloatArray,
    shape: tuple[int, ...],
) -> FloatArray:
    """Return Σ_l log L_l over the joint grid, draw h of every model taken together.

    This is the paper's estimator: `log_g` is the sum over the models. The log weights of all models
    but the last are held for a few records at a time.
    """
    from synrisk.core.kernels import N_LANES, accumulate_kernel, reduce_kernel

    n_records, n_draws = len(blocks[0].guesses), log_g.shape[1]
    cells = [int(np.prod(shape[: axis + 1])) for axis in range(len(shape))]
    out = np.empty((n_records, cells[-1]))
    held = cells[-2] * n_draws if len(blocks) > 1 else 1
    size = max(1, _EARLIER_ELEMENTS // (held * N_LANES)) * N_LANES if len(blocks) > 1 else n_records
    for start in range(0, n_records, size):
        rows = slice(start, min(start + size, n_records))
        earlier = np.empty((0, 0, 0, 0))
        for axis, (block, of_model) in enumerate(zip(blocks, draws, strict=True)):
            arguments = block.arguments(of_model, shape, tuple(range(axis)), earlier, rows)
            if axis == len(blocks) - 1:
                reduce_kernel(of_model.family)(*arguments, log_g, True, out[rows], _NO_TOTALS)
            else:
                n_blocks = -(-(rows.stop - rows.start) // N_LANES)
                earlier = np.empty((n_blocks, cells[axis], n_draws, N_LANES))
                accumulate_kernel(of_model.family)(*arguments, earlier)
    return out


def add_log_density(
    draws: KernelDraws, y: FloatArray, matrix: FloatArray, omega: FloatArray, total: FloatArray
) -> None:
    """Add to `total` the log density of rows at each draw, up to what is the same at every draw.

    `omega` is the exponent on each row's density.
    """
    from synrisk.core.kernels import release_kernel

    release_kernel(draws.family)(
        np.ascontiguousarray(y),
        np.ascontiguousarray(matrix),
        np.ascontiguousarray(omega),
        draws.beta,
        draws.parameters,
        total,
    )
