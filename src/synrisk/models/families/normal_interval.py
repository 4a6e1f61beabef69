"""The probability that a normal variable falls between two ends, and its derivatives."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

from synrisk.base.arrays import FloatArray

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def log_mass(a: FloatArray, b: FloatArray) -> FloatArray:
    """log(Φ(b) − Φ(a)) of standardised ends a < b, in the tail where it keeps its digits."""
    flipped = b > -a  # not a + b: both may be infinite
    low, high = np.where(flipped, -b, a), np.where(flipped, -a, b)
    beyond = log_ndtr(high)
    return np.asarray(beyond + np.log(-np.expm1(log_ndtr(low) - beyond)))


def over_mass(z: FloatArray, log_mass: FloatArray) -> FloatArray:
    """Return φ(z)/P of a probability P."""
    return np.exp(-0.5 * z * z - _HALF_LOG_TWO_PI - log_mass)


def mass_derivatives(
    a: FloatArray, b: FloatArray, log_mass: FloatArray, sigma: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of log(Φ(b) − Φ(a)) in the mean and in log sigma.

    (φ(a) − φ(b))/(sigma P) and (a φ(a) − b φ(b))/P on the last axis, and theirs on the last two;
    the ends may be infinite.
    """
    at_a, at_b = over_mass(a, log_mass), over_mass(b, log_mass)
    a, b = (np.where(np.isfinite(end), end, 0.0) for end in (a, b))  # whose density is 0
    first, second, third, fourth = (a**power * at_a - b**power * at_b for power in range(4))
    slope = first / sigma
    eta2, mixed, log2 = np.broadcast_arrays(
        second / sigma**2 - slope**2,
        third / sigma - slope * (1.0 + second),
        fourth - second * (1.0 + second),
    )
    rows = [np.stack([eta2, mixed], axis=-1), np.stack([mixed, log2], axis=-1)]
    gradient = np.stack(np.broadcast_arrays(slope, second), axis=-1)
    return gradient, np.stack(rows, axis=-2)
