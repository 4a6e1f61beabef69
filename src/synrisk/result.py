"""What an evaluation yields: data only, records by position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from synrisk.schema import FloatArray, IntArray

TIE = 1e-9  # log posteriors closer than this are tied


@dataclass(frozen=True)
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
    def concatenate(cls, parts: list[RiskArrays]) -> RiskArrays:
        """Join the results of chunks, in their order."""
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


def posterior(log_prior: FloatArray, log_likelihood: FloatArray) -> FloatArray:
    """Return the normalised log posterior over each record's cells."""
    unnormalised = log_prior + log_likelihood
    axes = tuple(range(1, unnormalised.ndim))
    return np.asarray(unnormalised - logsumexp(unnormalised, axis=axes, keepdims=True))


def summarise(
    log_posterior: FloatArray, log_prior: FloatArray, truth: tuple[IntArray, ...], *, keep: bool
) -> RiskArrays:
    """Reduce the joint posterior of a block of records to what is reported of each."""
    axes = range(1, log_posterior.ndim)
    log_prior = np.broadcast_to(log_prior, log_posterior.shape)
    probabilities, priors = np.exp(log_posterior), np.exp(log_prior)
    at_truth = log_posterior[truth]
    others = tuple(tuple(a for a in axes if a != axis) for axis in axes)
    marginals = tuple(probabilities.sum(axis=other) for other in others)
    return RiskArrays(
        probability=probabilities[truth],
        prior=priors[truth],
        rank=rank_of(at_truth, log_posterior.reshape(len(at_truth), -1)),
        n_guesses=np.isfinite(log_prior).sum(axis=tuple(axes)).astype(np.int64),
        marginals=marginals,
        prior_marginals=tuple(priors.sum(axis=other) for other in others),
        best=np.stack([_best(marginal) for marginal in marginals], axis=1),
        joint=log_posterior if keep else None,
    )


def rank_of(value: FloatArray, cells: FloatArray) -> FloatArray:
    """Return the rank of each record's `value` among its `cells`; ties share the average."""
    difference = cells - value[:, None]
    above = (difference > TIE).sum(axis=1)
    tied = (np.abs(difference) <= TIE).sum(axis=1)
    return np.asarray(above + (tied + 1) / 2.0)


def _best(marginal: FloatArray) -> IntArray:
    with np.errstate(divide="ignore"):
        logs = np.log(marginal)
    tied = logs >= logs.max(axis=1, keepdims=True) - TIE
    return np.asarray(np.argmax(tied, axis=1), dtype=np.int64)
