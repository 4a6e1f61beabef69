"""What the kernels' signatures are made of, and the arithmetic that they allow."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

F1, F2, F3, F4 = (types.Array(types.float64, n, "C") for n in (1, 2, 3, 4))
I1, I2 = (types.Array(types.int64, n, "C") for n in (1, 2))
B1 = types.Array(types.boolean, 1, "C")


class Records(NamedTuple):
    """A block of records under one model."""

    values: Any  # (record, value): column c at parent cell p is ``values[i, places[c, p]]``
    places: Any  # (column, parent cell)
    guesses: Any  # (record, guess)
    truth: Any  # (record, [parent cell, own guess])
    omega: Any  # (record): the exponent on its density in the fit
    power: Any  # (record): the exponent on a guess's; another one where a guess is predicted


class Draws(NamedTuple):
    """Draws of one model; of several sets, these are on the first axis."""

    beta: Any  # (column, predictor, draw)
    parameters: Any  # (parameter, draw)
    log_v: Any  # (draw)


class Matched(NamedTuple):
    """What has no error since moments of the random numbers are matched."""

    basis: Any  # (direction, unit), orthonormal
    share: Any  # of a sum of squares, beside
    form: Any  # (unit, unit): a quadratic form of the first units' effects, or empty
    most: Any  # the largest share that both may take


class NodeSets(NamedTuple):
    """Nodes of sigma, set after set."""

    starts: Any  # (set + 1): where each set's nodes begin
    log_weight: Any  # (node)
    sigma: Any  # (node)
    mean: Any  # (node, column)
    covariance: Any  # (node, column, column)
    centre: Any  # (column), with `width`: what columns are standardised by
    width: Any


RECORDS = types.NamedTuple((F2, I2, F2, I2, F1, F1), Records)
DRAWS = types.NamedTuple((F3, F2, F1), Draws)
SETS = types.NamedTuple((F4, F3, F2), Draws)
MATCHED = types.NamedTuple((F2, types.float64, F2, types.float64), Matched)
NODES = types.NamedTuple((I1, F1, F1, F2, F3, F1, F1), NodeSets)

# Sums may be reordered, which lets them be vectorised. NaN and infinities are not assumed away: a
# draw of weight zero has the log weight −∞, and what overflows must stay visible.
FAST = {"reassoc", "contract", "nsz", "arcp"}
EXACT = {"contract", "nsz"}  # where reordering would cancel a rounding trick
