"""How far the row nearest to a person may be trusted, by what it is worth for everybody else.

Records are put in classes by how near their nearest row is, by what an intruder knows of them. In
each class the share of truths that the nearest row tells beyond what is believed anyway is a weight
w of a mixture (1 − w) · believed + w · told. Its likelihood is laid out on a grid; an honest
release has the weight that other people's records have, and nearly all of the prior is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray

_GRID = np.linspace(0.0, 1.0, 101)
_PRIOR_OF_MORE = 0.001  # that rows of a class tell more than other people's records do
_LEAST = 1e-6  # of a probability
_CONFIDENCE = 1.96


@dataclass(frozen=True, eq=False, repr=False)
class Trust:
    """The weight of what the nearest row tells, for each record, and its error.

    Attributes
    ----------
    weight, error
        By record, from all others of its class.
    by_class
        The weight from all records of a class; 0 of a class without any.
    """

    weight: FloatArray
    error: FloatArray
    by_class: FloatArray


def trust(
    believed: FloatArray,
    told: FloatArray,
    classes: IntArray,
    n_classes: int,
    usual: FloatArray | None = None,
) -> Trust:
    """Return how far to trust what the nearest row tells.

    Parameters
    ----------
    believed
        The probability of each record's truth without it.
    told
        1 where the nearest row tells the truth, 0 where not; between where several are as near.
    classes, n_classes
        Of nearness.
    usual
        By class, the weight that needs no release: then what is returned is beyond it.
    """
    start = np.zeros(n_classes) if usual is None else usual
    weight, error = np.zeros(len(believed)), np.zeros(len(believed))
    by_class = np.zeros(n_classes)
    ratio = told / np.maximum(believed, _LEAST)
    for number in np.unique(classes):
        at = np.flatnonzero(classes == number)
        # A weight of one leaves no room for a truth that is not told.
        grid = start[number] + (1.0 - start[number]) * _GRID[:-1]
        terms = np.log1p(grid * (ratio[at, None] - 1.0))
        terms -= terms[:, :1]
        total = terms.sum(axis=0)
        mean, sd = _moments(total - terms, grid)
        weight[at], error[at] = mean - start[number], sd
        by_class[number] = _moments(total[None], grid)[0][0] - start[number]
    return Trust(weight, error, by_class)


def _moments(log_likelihood: FloatArray, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the weight and its error, by row: half its interval of 95 % over 1.96.

    The first node has all of the prior but that of more, which is even over the others.
    """
    log_prior = np.full(len(grid), np.log(_PRIOR_OF_MORE / (len(grid) - 1)))
    log_prior[0] = np.log1p(-_PRIOR_OF_MORE)
    log_posterior = log_likelihood + log_prior
    posterior = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    mean = posterior @ grid
    # Not the standard deviation, which a little of the posterior far away makes large.
    below = np.cumsum(posterior, axis=1)
    low, high = (grid[np.argmax(below >= tail, axis=1)] for tail in (0.025, 0.975))
    return mean, np.maximum(high - mean, mean - low) / _CONFIDENCE
