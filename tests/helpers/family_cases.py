"""Small data for each family without kernels of its own, and its log density from SciPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats


@dataclass(frozen=True)
class Case:
    """Responses given x, their log density at a linear predictor, guesses, and bounds."""

    draw: Any  # (rng, x) → y
    log_density: Any  # (y, eta, *auxiliary) → log density of y itself
    guesses: Any
    least: float = -np.inf
    most: float = np.inf


def _gamma(y, eta, shape):
    return stats.gamma.logpdf(y, shape, 0, np.exp(eta) / shape)


def _negative_binomial(y, eta, shape):
    return stats.nbinom.logpmf(y, shape, shape / (shape + np.exp(eta)))


def _beta(y, eta, phi):
    mean = 1 / (1 + np.exp(-eta))
    return stats.beta.logpdf(y, mean * phi, (1 - mean) * phi)


def _hurdle_poisson(y, eta, odds):
    above = stats.poisson.logpmf(y, np.exp(eta)) - stats.poisson.logsf(0, np.exp(eta))
    return np.where(y == 0, np.log(odds), above) - np.log1p(odds)


def _zero_inflated_poisson(y, eta, odds):
    p = odds / (1 + odds)
    return np.log(np.where(y == 0, p, 0.0) + (1 - p) * stats.poisson.pmf(y, np.exp(eta)))


def _hurdle_lognormal(y, eta, sigma, odds):
    amount = stats.lognorm(sigma, 0, np.exp(eta))
    above = amount.cdf(y + 0.5) - np.where(y > 1, amount.cdf(y - 0.5), 0.0)
    with np.errstate(divide="ignore"):  # far from the draws
        return np.log(np.where(y == 0, odds, above)) - np.log1p(odds)


LEVELS = ["bad", "fair", "good"]


def _ordered(y, eta, gap):
    code = LEVELS.index(y)
    high = 1.0 if code == 2 else stats.logistic.cdf((0.0, gap)[code] - eta)
    return np.log(high - (0.0 if code == 0 else stats.logistic.cdf((0.0, gap)[code - 1] - eta)))


CASES = {
    "negative_binomial": Case(
        lambda rng, x: rng.poisson(rng.gamma(2.0, np.exp(0.5 + 0.3 * x) / 2.0)),
        _negative_binomial,
        np.arange(12.0),
        least=0,
    ),
    "gamma": Case(
        lambda rng, x: 1000.0 * rng.gamma(2.0, np.exp(0.5 + 0.3 * x) / 2.0),
        _gamma,
        np.array([50.0, 200.0, 800.0, 2000.0, 5000.0, 12_000.0]),
        least=0,
    ),
    "lognormal": Case(
        lambda rng, x: 1000.0 * np.exp(0.3 * x + rng.normal(size=len(x))),
        lambda y, eta, sigma: stats.lognorm.logpdf(y, sigma, 0, np.exp(eta)),
        np.array([50.0, 200.0, 800.0, 2000.0, 5000.0, 12_000.0]),
        least=0,
    ),
    "student_t": Case(
        lambda rng, x: 100.0 + 5.0 * x + 3.0 * rng.standard_t(4.0, len(x)),
        lambda y, eta, sigma, nu: stats.t.logpdf(y, nu, eta, sigma),
        np.array([60.0, 85.0, 95.0, 100.0, 105.0, 115.0, 140.0]),
    ),
    "ordered_logit": Case(
        lambda rng, x: rng.logistic(size=len(x)) + x > np.array([[-1.0], [0.5]]),
        _ordered,
        None,
    ),
    "hurdle_poisson": Case(
        lambda rng, x: (rng.random(len(x)) < 0.6) * (1 + rng.poisson(np.exp(0.3 + 0.3 * x))),
        _hurdle_poisson,
        np.arange(9.0),
        least=0,
    ),
    "zero_inflated_poisson": Case(
        lambda rng, x: (rng.random(len(x)) < 0.7) * rng.poisson(np.exp(0.9 + 0.3 * x)),
        _zero_inflated_poisson,
        np.arange(9.0),
        least=0,
    ),
    "hurdle_lognormal": Case(
        lambda rng, x: np.rint(
            (rng.random(len(x)) < 0.6) * np.exp(2.0 + 0.3 * x + 0.6 * rng.normal(size=len(x)))
        ),
        _hurdle_lognormal,
        np.array([0.0, 1.0, 3.0, 8.0, 20.0, 45.0]),
        least=0,
    ),
    "beta": Case(
        lambda rng, x: rng.beta(*(4.0 / (1 + np.exp(sign * (0.5 + 0.6 * x))) for sign in (-1, 1))),
        _beta,
        np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98]),
        least=0,
        most=1,
    ),
}


def data_of(name, n, seed=4):
    """Return n records with a predictor x and a response y."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = CASES[name].draw(rng, x)
    return pd.DataFrame({"x": x, "y": np.array(LEVELS)[y.sum(axis=0)] if y.ndim > 1 else y})


def types_of(name):
    """Return the levels in order, where there are any."""
    return {"y": LEVELS} if name == "ordered_logit" else None
