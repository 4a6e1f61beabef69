"""Pareto-smoothed importance weights: arviz-stats' PSIS, wrapped once."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from synrisk.base.arrays import BoolArray, FloatArray

LEAST_JUDGED = 200  # draws; with fewer k̂ says nothing
_LEAST_UNJUDGED = 0.5  # of the effective draws, where k̂ says nothing: no tail leaves so many
_LEAST_SMOOTHED = 30
_CONSTANT = 1e-12
_LEAST_ESS = 0.8  # of the draws, above which weights are even enough whatever their tail


def smoothed(log_weights: FloatArray) -> tuple[FloatArray, float]:
    """Return smoothed log weights that sum to one, and k̂, the shape of their upper tail.

    Weights whose largest are all the same have no tail: k̂ is −∞. Too few to have one are left as
    they are, and k̂ is NaN.
    """
    from arviz_stats.base import array_stats

    log_weights = np.where(np.isnan(log_weights), -np.inf, log_weights)  # draws beyond numbers
    if not np.isfinite(log_weights.max()):
        return np.full(len(log_weights), np.nan), math.nan
    centred = log_weights - log_weights.max()
    if len(centred) < _LEAST_SMOOTHED:
        return np.asarray(centred - logsumexp(centred)), math.nan
    n_tail = math.ceil(min(0.2 * len(centred), 3.0 * math.sqrt(len(centred))))  # as PSIS has it
    if np.ptp(np.sort(centred)[-n_tail - 1 :]) < _CONSTANT:
        return np.asarray(centred - logsumexp(centred)), -math.inf
    # psislw wants the *negative* log weights: log likelihoods to be left out.
    smooth, khat = array_stats.psislw(-centred)
    return np.asarray(smooth - logsumexp(smooth)), float(khat)


def effective_size(log_weights: FloatArray) -> float:
    """Return (Σ v)²/Σ v²."""
    return float(np.exp(2 * logsumexp(log_weights) - logsumexp(2 * log_weights)))


def are_reliable(
    khat: FloatArray, ess: FloatArray, n_draws: int, evenness: float = 1.0
) -> BoolArray:
    """Tell whether weights can be relied on: they are even, or have a short tail.

    The tail of too few weights cannot be judged: then they must be about as even as those of the
    draws by themselves, whose effective share is `evenness`. A k̂ that was not looked for, since
    weights are even, is NaN.
    """
    even = ess >= _LEAST_ESS * n_draws
    if n_draws >= LEAST_JUDGED:
        short = khat <= min(1.0 - 1.0 / math.log10(n_draws), 0.7)
    else:
        short = ess >= _LEAST_UNJUDGED * evenness * n_draws
    return np.asarray(np.isfinite(ess) & (even | short))


def is_reliable(khat: float, ess: float, n_draws: int) -> bool:
    """Tell whether weights can be relied on."""
    return bool(are_reliable(np.array(khat), np.array(ess), n_draws))
