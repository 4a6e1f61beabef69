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
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.models.families import Family
from synrisk.models.posterior import Posterior

if TYPE_CHECKING:
    from synrisk.core.kernels import Records

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

    SHAPES: ClassVar = {
        "beta": ("column", "predictor", "draw"),
        "parameters": ("kernel parameter", "draw"),
        "log_v": ("draw",),
    }
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

    SHAPES: ClassVar = {
        "log_weight": ("node",),
        "sigma": ("node",),
        "mean": ("node", "column"),
        "covariance": ("node", "column", "column"),
        "centre": ("column",),
        "spread": ("column",),
    }
    log_weight: FloatArray
    sigma: FloatArray
    mean: FloatArray
    covariance: FloatArray
    centre: FloatArray
    spread: FloatArray


def log_predictive_by_nodes(
    block: ModelBlock,
    alone: Nodes,
    stacked: Sequence[Nodes],
    shape: tuple[int, ...],
    *,
    predicted: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Return what `log_predictive` estimates, for a gaussian model, by nodes.

    First the sum over stacks of what it is given a stack less what it is alone, then what it is
    alone; ``(0, 0)`` where there are no stacks, or it is not to be `predicted`. All nodes have the
    same standardisation.
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
    ratios = np.empty(block.table_shape if stacked else (0, 0))
    density = np.empty(block.table_shape if predicted else (0, 0))
    exact_kernel()(block.records(shape), nodes, ratios, density)
    return ratios, density


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
