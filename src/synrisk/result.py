"""What an evaluation yields: data only, records by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synrisk.likelihood import cells_within
from synrisk.schema import FloatArray, IntArray

TIE = 1e-9  # log posteriors closer than this are tied


@dataclass(frozen=True, repr=False)
class RiskArrays:
    """Arrays over the evaluated records; for each synthesized variable a column or an entry.

    Attributes
    ----------
    probability, prior
        Of the true cell of the joint grid, ``(record,)``.
    rank
        Of the true cell, 1 the most probable; ties share the average.
    n_guesses
        The number of cells.
    marginals, prior_marginals
        For each variable the probability of each of its guesses, ``(record, guess)``.
    best
        The index of the guess that is best by the marginal, ``(record, variable)``; of guesses
        that tie, the first.
    joint
        The log posterior over the joint grid, or None where it was not kept.
    """

    probability: FloatArray
    prior: FloatArray
    rank: FloatArray
    n_guesses: IntArray
    marginals: tuple[FloatArray, ...]
    prior_marginals: tuple[FloatArray, ...]
    best: IntArray
    joint: FloatArray | None

    @classmethod
    def concatenate(cls, parts: Sequence[RiskArrays]) -> RiskArrays:
        """Join the results of blocks, in their order."""
        variables = range(len(parts[0].marginals))
        joints = [part.joint for part in parts if part.joint is not None]
        return cls(
            np.concatenate([part.probability for part in parts]),
            np.concatenate([part.prior for part in parts]),
            np.concatenate([part.rank for part in parts]),
            np.concatenate([part.n_guesses for part in parts]),
            tuple(np.concatenate([part.marginals[k] for part in parts]) for k in variables),
            tuple(np.concatenate([part.prior_marginals[k] for part in parts]) for k in variables),
            np.concatenate([part.best for part in parts]),
            np.concatenate(joints) if len(joints) == len(parts) else None,
        )


def summarise(
    log_likelihood: FloatArray,
    log_prior: FloatArray,
    truth: IntArray,
    shape: tuple[int, ...],
    *,
    keep: bool,
) -> RiskArrays:
    """Reduce the joint posterior of a block of records to what is reported of each.

    Parameters
    ----------
    log_likelihood
        Over the joint grid, ``(record, cell)``; overwritten by the log posterior.
    log_prior
        ``(record, cell)``, or ``(1, cell)`` where all records share it.
    truth
        The index of the truth on every axis, ``(record, axis)``.
    shape
        The shape of the joint grid.
    keep
        Whether to keep the joint posterior.
    """
    from synrisk.kernels import record_kernels

    n_records = len(truth)
    axes = tuple(range(len(shape)))
    starts = np.concatenate([[0], np.cumsum(shape)]).astype(np.int64)
    axis_cell = np.stack([starts[a] + cells_within(axes, (a,), shape) for a in axes])
    true_cell = np.ravel_multi_index(tuple(truth.T), shape).astype(np.int64)
    probability, prior, rank = (np.empty(n_records) for _ in range(3))
    n_guesses = np.empty(n_records, dtype=np.int64)
    best = np.zeros((n_records, len(shape)), dtype=np.int64)
    marginals, prior_marginals = (np.zeros((n_records, starts[-1])) for _ in range(2))
    record_kernels().summarise(
        log_likelihood,
        np.ascontiguousarray(log_prior),
        true_cell,
        axis_cell,
        starts,
        TIE,
        probability,
        prior,
        rank,
        n_guesses,
        marginals,
        prior_marginals,
        best,
    )
    return RiskArrays(
        probability,
        prior,
        rank,
        n_guesses,
        tuple(np.split(marginals, starts[1:-1], axis=1)),
        tuple(np.split(prior_marginals, starts[1:-1], axis=1)),
        best,
        log_likelihood.reshape(n_records, *shape) if keep else None,
    )
