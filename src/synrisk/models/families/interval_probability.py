"""The probability that a response falls between two ends, and its derivatives, for any density.

Ends are on the model's scale, where a continuous family has its mode at eta. The probability is a
difference of distribution functions on the side of eta where these are small. Where ends are close
together, or far out, such a difference keeps too few digits: there, and for derivatives, the
density is integrated, from the point nearest to eta outwards with nodes that grow apart.

Derivatives of log P are expectations over the interval: of the score s its mean, and of its
curvature c the mean of c + s sᵀ less the square of that mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from synrisk.models.families.family import Family

# First and second derivatives: on the last axis, and on the last two.
Derivatives: TypeAlias = tuple[FloatArray, FloatArray]

_LEAST_SHARE = 1e-6  # of a distribution function that a difference must be, to keep nine digits
_REACH = 40.0  # standard deviations, or logs of a density, beyond which nothing is left
_N_HALVED = 6
# Of an interval that is no wider than the units in which the density falls eight nodes are enough,
# and take less time than distribution functions; else so many on each side. The probability is
# known to 1e-11, derivatives to 1e-9; see the tests.
_FEW, _MANY = (
    (0.5 * (1.0 + at), 0.5 * weight) for at, weight in map(np.polynomial.legendre.leggauss, (8, 32))
)


def log_interval(
    family: Family, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
) -> FloatArray:
    """Return the log probability of a response between `low` and `high`."""
    given = _broadcast(low, high, eta, auxiliary)
    out = np.empty(given[0].shape)
    narrow = _is_narrow(family, *given, _sd(family, auxiliary))
    if narrow.any():
        a, b, *parameters = _taken(narrow, *given)
        out[narrow] = _summed(family, _even_nodes(a, b), *parameters)
    with np.errstate(invalid="ignore"):  # two infinite ends
        upper = given[0] + given[1] > 2.0 * given[2][..., 0]
    for side, is_upper in ((~narrow & upper, True), (~narrow & ~upper, False)):
        if side.any():
            out[side] = _difference(family, is_upper, *_taken(side, *given))
    return out


def interval_derivatives(
    family: Family, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
) -> Derivatives:
    """Return the derivatives of `log_interval` in eta and the logs of the auxiliary parameters."""
    given = _broadcast(low, high, eta, auxiliary)
    n = eta.shape[-1] + auxiliary.shape[-1]
    first, second = np.empty((*given[0].shape, n)), np.empty((*given[0].shape, n, n))
    narrow = _is_narrow(family, *given, _sd(family, auxiliary))
    for part in (narrow, ~narrow):
        if not part.any():
            continue
        ends_and_parameters = _taken(part, *given)
        x, own = (values[..., None, :] for values in ends_and_parameters[2:])
        at, log_weight = (
            _even_nodes(*ends_and_parameters[:2])
            if part is narrow
            else _growing_nodes(family, *ends_and_parameters)
        )
        log_f = log_weight + family.log_density(at, x, own)
        share = np.exp(log_f - log_f.max(axis=-1, keepdims=True))
        share = share / share.sum(axis=-1, keepdims=True)
        score = family.score(at, x, own)
        mean = np.einsum("...k,...ki->...i", share, score)
        apart = score - mean[..., None, :]
        within = np.einsum("...k,...kij->...ij", share, family.curvature(at, x, own))
        first[part] = mean
        second[part] = within + np.swapaxes(share[..., None] * apart, -1, -2) @ apart
    return first, second


def integrated(
    family: Family, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
) -> FloatArray:
    """Return the log probability without distribution functions, for intervals in one row."""
    return _summed(family, _growing_nodes(family, low, high, eta, auxiliary), eta, auxiliary)


def _difference(
    family: Family, is_upper: bool, low: FloatArray, high: FloatArray,
    eta: FloatArray, auxiliary: FloatArray,
) -> FloatArray:  # fmt: skip
    """Return the log of a difference of distribution functions on one side of eta."""
    upto = family.survival if is_upper else family.cdf
    ends = [np.asarray(upto(end, eta, auxiliary)) for end in (low, high)]
    whole, less = ends if is_upper else ends[::-1]
    mass = whole - less
    lost = ~(mass > _LEAST_SHARE * whole)
    found = np.log(np.where(lost, 1.0, mass))
    if lost.any():
        found[lost] = integrated(family, *_taken(lost, low, high, eta, auxiliary))
    return np.asarray(found)


def _summed(
    family: Family, nodes: tuple[FloatArray, FloatArray], eta: FloatArray, auxiliary: FloatArray
) -> FloatArray:
    at, log_weight = nodes
    log_f = log_weight + family.log_density(at, eta[..., None, :], auxiliary[..., None, :])
    top = log_f.max(axis=-1)
    return np.asarray(top + np.log(np.exp(log_f - top[..., None]).sum(axis=-1)))


def _sd(family: Family, auxiliary: FloatArray) -> FloatArray:
    """Return the standard deviation by draws alone: it takes longer than the rest by values too."""
    return np.asarray(family.residual_sd(auxiliary))


def _is_narrow(
    family: Family, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray,
    sd: FloatArray,
) -> BoolArray:  # fmt: skip
    return np.asarray(high - low <= _unit(family, low, high, eta, auxiliary, sd)[1])


def _unit(
    family: Family, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray,
    sd: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return the point nearest to eta, and in which units the density falls there.

    These are the standard deviation, or less where the point is far out.
    """
    centre = np.clip(eta[..., 0], low, high)
    slope = np.abs(family.score(centre, eta, auxiliary)[..., 0])  # in eta, as in the response
    return centre, 1.0 / np.maximum(slope, 1.0 / sd)


def _even_nodes(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes of narrow intervals on a last axis, and the logs of their weights."""
    v, weight = _FEW
    width = (high - low)[..., None]
    return low[..., None] + width * v, np.log(width * weight)


def _growing_nodes(
    family: Family, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return nodes of wide intervals on a last axis, and the logs of their weights.

    On each side of the point nearest to eta x = u (exp(v t) − 1), v from 0 to 1, in its units u.
    """
    sd = _sd(family, auxiliary)
    centre, unit = _unit(family, low, high, eta, auxiliary, sd)
    v, weight = _MANY
    ats, weights = [], []
    for end, sign in ((low, -1.0), (high, 1.0)):
        length = np.minimum(np.abs(end - centre), _REACH * sd)
        length = _shortened(family, centre, sign, length, eta, auxiliary)
        rate = np.log1p(length / unit)[..., None]
        grown = np.exp(rate * v)
        ats.append(centre[..., None] + sign * unit[..., None] * (grown - 1.0))
        weights.append(unit[..., None] * rate * grown * weight)
    with np.errstate(divide="ignore"):  # of an interval that lies on one side
        return np.concatenate(ats, axis=-1), np.log(np.concatenate(weights, axis=-1))


def _shortened(
    family: Family, middle: FloatArray, sign: float, length: FloatArray,
    eta: FloatArray, auxiliary: FloatArray,
) -> FloatArray:  # fmt: skip
    """Return lengths halved while nothing of the density is lost."""
    least = family.log_density(middle, eta, auxiliary) - _REACH
    for _ in range(_N_HALVED):
        gone = family.log_density(middle + 0.5 * sign * length, eta, auxiliary) < least
        if not gone.any():
            break
        length = np.where(gone, 0.5 * length, length)
    return length


def _broadcast(
    low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return ends and parameters in one shape."""
    shape = np.broadcast_shapes(np.shape(low), np.shape(high), eta.shape[:-1], auxiliary.shape[:-1])
    return (
        np.broadcast_to(low, shape),
        np.broadcast_to(high, shape),
        np.broadcast_to(eta, (*shape, eta.shape[-1])),
        np.broadcast_to(auxiliary, (*shape, auxiliary.shape[-1])),
    )


def _taken(where: BoolArray, *arrays: FloatArray) -> tuple[FloatArray, ...]:
    return tuple(array[where] for array in arrays)
