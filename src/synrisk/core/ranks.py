"""Which guess is best, and where the truth stands among the others."""

from __future__ import annotations

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray

TIE = 1e-9  # log posteriors closer than this are tied


def first_best(marginal: FloatArray) -> IntArray:
    """Return the index of the most probable guess; of guesses that tie, the first."""
    top = marginal.max(axis=1, keepdims=True)
    return np.asarray(np.argmax(marginal >= top * (1.0 - TIE), axis=1), dtype=np.int64)


def marginal_ranks(density: FloatArray, truth: IntArray, present: BoolArray) -> FloatArray:
    """Return the rank of each truth by its marginal; ties share the average.

    Parameters
    ----------
    density
        Of the guesses, ``(record, guess)``.
    truth
        The index of the true one.
    present
        Which guesses a record has.
    """
    at_truth = np.take_along_axis(density, truth[:, None], axis=1)
    above = ((density > at_truth * (1.0 + TIE)) & present).sum(axis=1)
    not_below = ((density >= at_truth * (1.0 - TIE)) & present).sum(axis=1)
    return np.asarray((above + not_below + 1) / 2.0)
