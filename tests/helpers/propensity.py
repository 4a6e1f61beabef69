"""Propensity scores by a program of their own: plain columns, scipy's minimiser, sorted scores."""

import numpy as np
from scipy.optimize import minimize


def columns(frame, levels, *, interactions):
    """Return a design: numbers as they are, an indicator for each level but the first."""
    blocks = []
    for name in frame.columns:
        if name in levels:
            blocks.append([(frame[name] == one).to_numpy(float) for one in levels[name][1:]])
        else:
            blocks.append([frame[name].to_numpy(float)])
    made = [column for block in blocks for column in block]
    if interactions:
        for j, block in enumerate(blocks):
            if frame.columns[j] not in levels:
                made.append(block[0] ** 2)
            made += [a * b for other in blocks[:j] for a in block for b in other]
    return np.column_stack(made)


def scores(x, y):
    """Return a logistic regression's fitted probabilities."""
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    x = np.column_stack([np.ones(len(x)), x])

    def loss(beta):
        eta = x @ beta
        value = np.sum(np.logaddexp(0.0, eta) - y * eta)
        return value / len(y), x.T @ (1.0 / (1.0 + np.exp(-eta)) - y) / len(y)

    found = minimize(
        loss,
        np.zeros(x.shape[1]),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-10, "maxiter": 2000},
    )
    return 1.0 / (1.0 + np.exp(-(x @ found.x)))


def distance(one, other):
    """Return the largest difference between two empirical distribution functions."""
    at = np.concatenate([one, other])
    one, other = np.sort(one), np.sort(other)
    below = [np.searchsorted(side, at, side="right") / len(side) for side in (one, other)]
    return np.abs(below[0] - below[1]).max()
