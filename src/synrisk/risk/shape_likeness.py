"""Whether a dataset departs from its models' normal errors as the confidential data do.

Every sample departs by chance from the model that it came from, and real data depart by more. A
dataset that the models drew knows nothing of how the confidential data do: only their parameters
were learnt. One that was made of the records, however shuffled and blurred, does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr

from synrisk.base.arrays import FloatArray
from synrisk.base.seeds import stream
from synrisk.fitting import whitening
from synrisk.risk.value_steps import is_heaped, spread_out
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_N_ALONE, _N_PAIRED = 12, 5  # waves over a variable's distribution, and over each of a pair's
_MOST_VARIABLES = 6


def likeness(synthesizer: Synthesizer, dataset: Released) -> float | None:
    """Return the sum over rows of how they depart in the records' direction, standardised.

    Departures are waves √2 cos(πkw) of w = Φ(z), the standardised residuals z. What other
    parameters would change is taken out. If the models drew the rows the sum is standard normal,
    whatever the records are. None where no model is normal or rows are too few.
    """
    theirs = synthesizer.memory.recall("waves", lambda: mean_waves([(synthesizer, None)]))
    return None if theirs is None else likeness_of(theirs, [(synthesizer, dataset)])


# Rows of a table, or the records, with the models; all of them or a part.
_Part: TypeAlias = tuple[Synthesizer, Released | None]


def mean_waves(parts: Iterable[_Part]) -> tuple[FloatArray, FloatArray] | None:
    """Return the means of the records' waves and scores."""
    n, sums = 0, None
    for part in parts:
        of_records = _waves(*part)
        if of_records is None:
            return None
        n += len(of_records[0])
        own = [of.sum(axis=0) for of in of_records]
        sums = own if sums is None else [one + other for one, other in zip(sums, own, strict=True)]
    return None if sums is None or not n else (sums[0] / n, sums[1] / n)


def likeness_of(theirs: tuple[FloatArray, FloatArray], parts: Iterable[_Part]) -> float | None:
    """Return the same of rows in parts, over which is gone twice."""
    n_rows, gram, products = 0, np.zeros(()), np.zeros(())
    for number, part in enumerate(parts):
        rows = _waves(*part, number)
        if rows is None:
            return None
        waves, scores = rows
        n_rows += len(waves)
        # No BLAS: its threads wait for one another on a busy machine.
        gram = gram + np.einsum("ij,ik->jk", scores, scores)
        products = products + np.einsum("ij,ik->jk", scores, waves)
    if not n_rows or n_rows <= 2 * len(gram) or not np.isfinite(gram).all():
        return None
    basis = whitening(gram)
    slopes = basis @ (basis.T @ products)
    direction = theirs[0] - theirs[1] @ slopes
    total, size = 0.0, 0.0
    for number, part in enumerate(parts):
        rows = _waves(*part, number)
        if rows is None:
            return None
        waves, scores = rows
        along = np.einsum("ij,j->i", waves, direction)
        along -= np.einsum("ij,j->i", scores, slopes @ direction)
        total, size = total + float(along.sum()), size + float(along @ along)
    return total / math.sqrt(size) if size > 0.0 else None


def _waves(
    synthesizer: Synthesizer, dataset: Released | None, number: int = 0
) -> tuple[FloatArray, FloatArray] | None:
    """Return the waves of rows or records, and the scores of the parameters.

    `number` is that of the part of a table that they are.
    """
    by_variable: list[FloatArray] = []
    scores: list[FloatArray] = []
    for model in synthesizer.models:
        # Coarsely rounded errors depart in the same way, of rows and of records.
        if not model.regression.distribution.exact or len(by_variable) == _MOST_VARIABLES:
            continue
        columns = synthesizer.columns if dataset is None else dataset.columns
        values = columns[model.regression.response].astype(np.float64)
        if dataset is not None:
            if is_heaped(values).any():  # brought to bounds, it departs from any model
                return None
            values = spread_out(values[:0], values, stream(0, "ties", chunk=number))[1]
        with np.errstate(all="ignore"):
            y = model.regression.on_model_scale(values)
        design = synthesizer.refits.design(model, dataset)
        eta, (sd,) = model.mean_predictors(design)
        mean = eta[:, 0]
        with np.errstate(all="ignore"):
            y = np.where(np.isfinite(y), y, mean)  # spread out to where there is no logarithm
            z = (y - mean) / float(sd)
        if not np.isfinite(z).all():
            return None
        scores += [z[:, None] * design, (z * z - 1.0)[:, None]]
        by_variable.append(_cosines(np.pi * ndtr(z)))
    if not by_variable:
        return None
    waves = list(by_variable)
    for one, other in combinations(by_variable, 2):
        product = one[:, :_N_PAIRED, None] * other[:, None, :_N_PAIRED]
        waves.append(product.reshape(len(product), -1))
    return np.concatenate(waves, axis=1), np.concatenate(scores, axis=1)


def _cosines(turn: FloatArray) -> FloatArray:
    """Return √2 cos(k·turn) for k from 1, each from the two before."""
    found = np.empty((len(turn), _N_ALONE))
    before, now = np.ones(len(turn)), np.cos(turn)
    twice = 2.0 * now
    for k in range(_N_ALONE):
        found[:, k] = now
        before, now = now, twice * now - before
    return math.sqrt(2.0) * found
