"""The risk by plain loops, straight from the formula; shares no code with synrisk.

Columns are built by hand: a model is given as a function from a row (a dict) to a list of numbers.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np


@dataclass
class NaiveModel:
    response: str
    family: str
    columns: object  # row -> list of numbers
    beta: np.ndarray  # (H, p), or (H, p, K - 1) for categorical, levels 1 … K - 1 against level 0
    sigma: np.ndarray | None = None
    levels: tuple = ()
    weight: str | None = None
    v: np.ndarray | None = None  # weights of the draws

    def log_f(self, row, h):
        """Log density of the row's response given its predictors at draw h."""
        x = self.columns(row)
        y = row[self.response]
        if self.family == "categorical":
            slopes = [self.beta[h, :, q] for q in range(self.beta.shape[2])]
            eta = [0.0, *(sum(a * b for a, b in zip(x, beta, strict=True)) for beta in slopes)]
            top = max(eta)
            log_total = top + math.log(sum(math.exp(e - top) for e in eta))
            return eta[self.levels.index(y)] - log_total
        eta = sum(a * b for a, b in zip(x, self.beta[h], strict=True))
        if self.family == "gaussian":
            s = self.sigma[h]
            return -((y - eta) ** 2) / (2 * s * s) - math.log(s) - math.log(2 * math.pi) / 2
        if self.family == "poisson":
            return y * eta - math.exp(eta) - math.lgamma(y + 1)
        towards = eta if y == 1 else -eta
        # Of 1 − p nothing is left where p rounds to 1.
        return min(towards, 0.0) - math.log1p(math.exp(-abs(towards)))

    def log_w(self, truth, guess, h):
        omega = truth[self.weight] if self.weight else 1.0
        return omega * (self.log_f(guess, h) - self.log_f(truth, h))


def _ratio(log_w, log_g, v):
    """Σ v g w / Σ v w, g scaled by a constant that no guess depends on."""
    top = max(log_g)
    terms = [a * math.exp(w) for a, w in zip(v, log_w, strict=True)]
    return sum(t * math.exp(g - top) for t, g in zip(terms, log_g, strict=True)) / sum(terms)


def joint(models, rows, release, i, guesses, estimator, prior=None):
    """Return the joint posterior of record i over the grid of `guesses` (a list a variable)."""
    names = [model.response for model in models]
    truth = rows[i]
    n_draws = len(models[0].beta)
    out = np.zeros([len(g) for g in guesses])
    log_g = [
        [[sum(m.log_f(row, h) for row in data) for h in range(len(m.beta))] for m in models]
        for data in release
    ]
    for cell in itertools.product(*[range(len(g)) for g in guesses]):
        chosen = {name: guesses[k][cell[k]] for k, name in enumerate(names)}
        guess = {**truth, **chosen}
        value = 1.0 if prior is None else prior[cell]
        for of_dataset in log_g:
            if estimator == "paper":
                log_w = [sum(m.log_w(truth, guess, h) for m in models) for h in range(n_draws)]
                g = [sum(table[h] for table in of_dataset) for h in range(n_draws)]
                v = [
                    math.prod(1.0 if m.v is None else m.v[h] for m in models)
                    for h in range(n_draws)
                ]
                value *= _ratio(log_w, g, v)
            else:
                for m, g in zip(models, of_dataset, strict=True):
                    log_w = [m.log_w(truth, guess, h) for h in range(len(m.beta))]
                    v = [1.0] * len(m.beta) if m.v is None else m.v
                    value *= _ratio(log_w, g, v)
        out[cell] = value
    return out / out.sum()
