"""How evenly people lie: in clusters and along curves near ones are more than among even points.

The probability p of another person as near as the nearest is uniform where points lie evenly. Where
they fill fewer dimensions than there are numbers it is smaller, as if raised to a power: p^a is
uniform with an a below 1. People's own p tell a, and so what chance is for a release that lies as
people do.
"""

from __future__ import annotations

import numpy as np

from synrisk.base.arrays import FloatArray

_SOMEWHAT_NEAR = 0.01  # nearer pairs are left out: a few families say nothing of all others
_POWERS = np.linspace(0.1, 1.0, 181)
_ERRORS = 2.0  # by which the power may be smaller than it seems
_MOST_SHARED = 2.0  # people are nearest to each other in pairs, which say the same


def evenness(p: FloatArray) -> float:
    """Return the power a, at most 1, with which p^a of people is uniform or larger.

    The most probable, less two standard errors, for values above a hundredth.

    Parameters
    ----------
    p
        Of each person, the probability of another as near.
    """
    inside = p[p >= _SOMEWHAT_NEAR]
    if not len(inside):
        return float(_POWERS[0])
    low = np.log(_SOMEWHAT_NEAR)
    rest = -np.expm1(_POWERS * low)  # above the least
    log_p = float(np.log(inside).sum())
    likelihood = len(inside) * np.log(_POWERS / rest) + (_POWERS - 1.0) * log_p
    best = int(np.argmax(likelihood))
    a = float(_POWERS[best])
    information = 1.0 / a**2 - low**2 * np.exp(a * low) / rest[best] ** 2
    error = np.sqrt(_MOST_SHARED / (len(inside) * information))
    # Where people look even there is nothing to be careful about; else twice as uneven at most.
    return float(max(a - min(_ERRORS * error, 1.0 - a), _POWERS[0]))
