"""Are some of the nearest rows people's own, moved a little?

The distance from a person to the nearest row is by chance about as large as how far the next rows
are says. If the release holds the person's own row, moved by normal noise in every number, it is
that of whichever of the two is nearer. Of all people a share is copied, with one size of noise:
their likelihood, over that of chance alone, tells whether there are such people and who they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc, gammaln, logsumexp

from synrisk.base.arrays import BoolArray, FloatArray, IntArray

_SHARES = np.geomspace(0.003, 0.9, 12)  # of people copied
_N_SIZES, _SMALLEST = 15, 1 / 300  # of the noise, down to that share of the largest
_LARGEST = 0.5  # of the median distance between people: beyond, moved rows are like others
N_LEFT_OUT = 6  # people who speak most for copies: as many as a row at a cluster's edge may touch
_SMALLEST_DISTANCE = 1e-15
_MOST_LOG = 300.0  # of a ratio, so that it stays finite


class Distances(NamedTuple):
    """How far the nearest row of each person is, and how dense rows lie there.

    Attributes
    ----------
    nearest
        The distance, in units of the spread of each number.
    log_density
        The logarithm of how many rows a ball of radius 1 would hold.
    row
        Which it is.
    n_dimensions
        The number of numbers.
    n_filled
        The number of dimensions that rows fill, as many or fewer: a ball of radius r holds
        r^n_filled times as many as one of radius 1.
    """

    nearest: FloatArray
    log_density: FloatArray
    row: IntArray
    n_dimensions: int
    n_filled: float

    def of(self, people: BoolArray) -> Distances:
        """Return those of some people."""
        return self._replace(
            nearest=self.nearest[people], log_density=self.log_density[people], row=self.row[people]
        )


class NearCopies(NamedTuple):
    """Whether there are copies, and whose.

    Attributes
    ----------
    log_evidence
        The logarithm of how much more probable the distances are with copies, on average over
        shares and sizes of noise, without the few people who speak most for it: a row at the edge
        of a cluster does. By chance it exceeds log 1/p with a probability of p at most.
    probability
        That each person's nearest row is their own.
    """

    log_evidence: float
    probability: FloatArray


def sizes_of_noise(among_people: Distances) -> FloatArray:
    """Return sizes of noise that leave a row nearer to its person than others are."""
    largest = _LARGEST * float(np.median(among_people.nearest))
    return np.geomspace(_SMALLEST, 1.0, _N_SIZES) * (largest or 1.0)


def near_copies(distances: Distances, sizes: FloatArray) -> NearCopies:
    """Return the evidence that nearest rows are people's own, and whose.

    Parameters
    ----------
    distances
        To the nearest rows.
    sizes
        Of the noise.
    """
    found: list[tuple[float, FloatArray]] = []
    for size in sizes:
        ratio = _ratio(distances, float(size))
        for share in _SHARES:
            terms = np.sort(np.log1p(share * (ratio - 1.0)))
            found.append((float(terms[:-N_LEFT_OUT].sum()), share / (1.0 - share) * ratio))
    logs = np.array([one[0] for one in found])
    odds = found[int(np.argmax(logs))][1]
    # A row is one person's at most.
    of_row = np.bincount(distances.row, weights=odds)[distances.row]
    return NearCopies(float(logsumexp(logs) - np.log(len(logs))), odds / (1.0 + of_row))


def _ratio(distances: Distances, size: float) -> FloatArray:
    """Return the density of the distance where there is a copy, over that by chance.

    The nearer of two is at d with density f S' + f' S; by chance it is f', and f'/S' is how many
    more rows a larger ball holds, of which d^(D - 1) cancels where rows fill all D dimensions.
    """
    n = distances.n_dimensions
    half_square = 0.5 * (distances.nearest / size) ** 2
    log_copy = (1.0 - n / 2.0) * np.log(2.0) - half_square - n * np.log(size) - gammaln(n / 2.0)
    filled = distances.n_filled
    beyond = (n - filled) * np.log(np.maximum(distances.nearest, _SMALLEST_DISTANCE))
    log_chance = distances.log_density + np.log(filled) - beyond
    log_ratio = np.minimum(log_copy - log_chance, _MOST_LOG)
    return np.asarray(np.exp(log_ratio) + gammaincc(n / 2.0, half_square))


def named_copies(probability: FloatArray, false_discoveries: float) -> BoolArray:
    """Return who is named so that a given share of them is expected not to be copied."""
    order = np.argsort(-probability, kind="stable")
    wrong = np.cumsum(1.0 - probability[order]) / np.arange(1, len(order) + 1)
    named = np.zeros(len(order), dtype=bool)
    named[order[wrong <= false_discoveries]] = True
    return named
