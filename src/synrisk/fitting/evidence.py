"""A fit at each guess, for a record whose weights cannot be relied on (METHOD §5).

The record's row is taken out, and a guess is put in its place: the mode is found anew from where it
was, and t proposals with common antithetic numbers estimate the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from synrisk.base.arrays import FloatArray
from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.laplace import Problem, Proposal, find_mode
from synrisk.fitting.standardise import Rows


@dataclass(frozen=True, repr=False)
class Evidence:
    """What rows with each guess among them say.

    Attributes
    ----------
    log_evidence
        Of each guess, up to what is the same for all.
    log_weights
        Of the draws at each guess, ``(guess, draw)``; they sum to one.
    """

    log_evidence: FloatArray
    log_weights: FloatArray


def evidence_at(
    problem: Problem, guesses: Rows, start: FloatArray, numbers: CommonNumbers
) -> Evidence:
    """Return the evidence of the problem's rows and one guess after the other.

    Parameters
    ----------
    problem
        The posterior given all other rows.
    guesses
        A row for each guess.
    start
        Where the search for the first mode begins.
    numbers
        The random numbers of the draws, the same at every guess.
    """
    log_ratios = []
    for row in _single(guesses):
        at_guess = replace(problem, rows=[*problem.rows, row])
        start, precision = find_mode(at_guess, start)
        proposal = Proposal.at_mode(at_guess, start, precision)
        log_ratios.append(proposal.log_ratios(at_guess, start, numbers))
    ratios = np.stack(log_ratios)
    total = logsumexp(ratios, axis=1)
    # Terms of the guess alone, as the kernels leave them out.
    own = guesses.omega * problem.family.log_base(guesses.y)
    return Evidence(total - own, ratios - total[:, None])


def _single(rows: Rows) -> Sequence[Rows]:
    return [
        Rows(rows.matrix[c : c + 1], rows.y[c : c + 1], rows.omega[c : c + 1])
        for c in range(len(rows.y))
    ]
