"""The likelihood of the release in plain NumPy: the reference for the compiled kernels.

Axes are ``(record, guess₁, …, guess_K in synthesis order, draw)``. In METHOD's terms, with draws
θ_h given the confidential data, v_h their weights, and for dataset l

    L_l(y*) = Σ_h v_h g_l(θ_h) w_h(y*) / Σ_h v_h w_h(y*)       w_h(y*) = f(y*|θ_h) / f(y_i|θ_h)

everything is kept in logs. No product here goes through BLAS, whose sums depend on the shape of the
block, so a record's numbers do not depend on the records that it is computed with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.models.families import Family

_UNDERFLOW = 1e-280  # below this a sum of products has lost terms; its logarithm is taken anew


@dataclass(frozen=True)
class TermValues:
    """A term's design columns over the guesses of the synthesized variables that it mentions.

    ``values`` has shape ``(record, *guesses of axes, column)``; ``axes`` are in synthesis order.
    """

    axes: tuple[int, ...]
    values: FloatArray


@dataclass(frozen=True)
class ModelBlock:
    """One model for a block of records.

    Attributes
    ----------
    family, coefficients, auxiliary
        The model and its draws: ``(draw, column, predictor)`` and ``(draw, auxiliary)``.
    own, parents
        The axis of the response's guesses, and those of its synthesized predictors.
    terms
        The columns of the linear predictor, term by term.
    guesses
        The response's guesses, ``(record, guess)``.
    truth
        The index of the truth on every axis, ``(record, axis)``.
    record_weights
        The exponent ω on each record's density, or None for 1.
    """

    family: Family
    coefficients: FloatArray
    auxiliary: FloatArray
    own: int
    parents: tuple[int, ...]
    terms: tuple[TermValues, ...]
    guesses: FloatArray
    truth: IntArray
    record_weights: FloatArray | None

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of this model's table: its parents' and its own."""
        return (*self.parents, self.own)


def row_log_density(
    family: Family,
    y: FloatArray,
    matrix: FloatArray,
    coefficients: FloatArray,
    auxiliary: FloatArray,
) -> FloatArray:
    """Return the log density of each row at each draw, shape ``(draw, row)``."""
    n_draws, _, n_predictors = coefficients.shape
    eta = np.zeros((n_draws, len(y), n_predictors))
    for column in range(matrix.shape[1]):
        eta += matrix[:, column, None] * coefficients[:, None, column, :]
    return family.log_density(y, eta, auxiliary[:, None, :])


def log_ratios(block: ModelBlock) -> FloatArray:
    """Return log w of one model, shape ``(record, *guesses of parents, own guess, draw)``."""
    log_f = _log_density(block)
    index = (np.arange(len(block.truth)), *(block.truth[:, axis] for axis in block.axes))
    at_truth = log_f[index]
    ratios: FloatArray = log_f - at_truth.reshape(len(at_truth), *[1] * len(block.axes), -1)
    if block.record_weights is not None:
        ratios = ratios * block.record_weights.reshape(-1, *[1] * (ratios.ndim - 1))
    return ratios


def _log_density(block: ModelBlock) -> FloatArray:
    n_records = len(block.guesses)
    n_draws, _, n_predictors = block.coefficients.shape
    # record, parents' guesses, the own guess, draw, predictor
    eta = np.zeros((n_records, *[1] * (len(block.parents) + 1), n_draws, n_predictors))
    column = 0
    for term in block.terms:
        shape = [n_records] + [1] * (len(block.parents) + 1)
        for position, axis in enumerate(term.axes):
            shape[1 + block.parents.index(axis)] = term.values.shape[1 + position]
        for k in range(term.values.shape[-1]):
            values = term.values[..., k].reshape(*shape, 1, 1)
            eta = eta + values * block.coefficients[:, column, :]
            column += 1
    y = block.guesses.reshape(n_records, *[1] * len(block.parents), -1, 1)
    return block.family.log_density(y, eta, block.auxiliary)


def log_table(block: ModelBlock, log_g: FloatArray, log_v: FloatArray) -> FloatArray:
    """Return Σ_l log L_l of one model, by its own draws: the factorised estimator.

    Parameters
    ----------
    block
        The model.
    log_g
        The log density of each dataset at each draw under this model, ``(dataset, draw)``.
    log_v
        The draws' log weights.
    """
    return _log_mean_ratio(log_ratios(block), log_g, log_v)


def log_joint_paired(
    blocks: Sequence[ModelBlock], log_g: FloatArray, log_v: FloatArray
) -> FloatArray:
    """Return Σ_l log L_l over the joint grid, draw h of every model taken together.

    This is the paper's estimator: `log_g` and `log_v` are sums over the models.
    """
    total: FloatArray = np.zeros(1)
    for block in blocks:
        total = total + spread(log_ratios(block), block.axes, len(blocks), trailing=1)
    return _log_mean_ratio(total, log_g, log_v)


def spread(
    table: FloatArray, axes: tuple[int, ...], n_axes: int, *, trailing: int = 0
) -> FloatArray:
    """Return a table over some axes with length 1 on the others, so that tables can be added."""
    shape = [1] * n_axes
    for position, axis in enumerate(axes):
        shape[axis] = table.shape[1 + position]
    return table.reshape(len(table), *shape, *table.shape[table.ndim - trailing :])


def _log_mean_ratio(log_w: FloatArray, log_g: FloatArray, log_v: FloatArray) -> FloatArray:
    """Return Σ_l log(Σ_h v g_l w / Σ_h v w) over the draws on the last axis."""
    # Far from the truth log w may be −10⁶ and less; without its largest value taken out first,
    # adding log g to it would lose log g to rounding.
    scaled = log_w - (log_w + log_v).max(axis=-1, keepdims=True) + log_v
    weights = np.exp(scaled)
    log_denominator = np.log(weights.sum(axis=-1))
    total = np.zeros(log_denominator.shape)
    for of_dataset in log_g:
        relative = of_dataset - of_dataset.max()
        numerator = (weights * np.exp(relative)).sum(axis=-1)
        lost = numerator < _UNDERFLOW
        with np.errstate(divide="ignore"):
            log_numerator = np.log(numerator)
        if lost.any():  # the draws that the guess favours are not those that the release does
            log_numerator[lost] = logsumexp(scaled[lost] + relative, axis=-1)
        total += log_numerator - log_denominator
    return total
