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
    types: Any = None  # what must be declared of the response: its levels, or its bounds
    at_ends: bool = False  # whether the bounds are possible values


def _counts(rng, x):
    return rng.poisson(rng.gamma(2.0, np.exp(0.5 + 0.3 * x) / 2.0))


def _shares(rng, x):
    return rng.beta(*(4.0 / (1 + np.exp(sign * (0.5 + 0.6 * x))) for sign in (-1, 1)))


def _hurdle(y, odds, log_above):
    return np.where(y == 0, np.log(odds), log_above) - np.log1p(odds)


def _zero_inflated(y, odds, counts):
    p = odds / (1 + odds)
    return np.log(np.where(y == 0, p, 0.0) + (1 - p) * counts.pmf(y))


def _given_above(y, counts):
    return counts.logpmf(y) - counts.logsf(0)


def _rounded(y, amounts, half=0.5, least=-np.inf):
    """The log probability of what is rounded to y; `least` stands for all below it too."""
    below = np.where(y > least, amounts.cdf(y - half), 0.0)
    with np.errstate(divide="ignore"):  # far from the draws
        return np.log(amounts.cdf(y + half) - below)


def _nbinom(eta, shape):
    return stats.nbinom(shape, shape / (shape + np.exp(eta)))


def _gammas(eta, shape):
    return stats.gamma(shape, 0, np.exp(eta) / shape)


def _betas(eta, phi):
    mean = 1 / (1 + np.exp(-eta))
    return stats.beta(mean * phi, (1 - mean) * phi)


def _truncated(y, eta, sigma):
    return stats.truncnorm.logpdf(y, (0.0 - eta) / sigma, (10.0 - eta) / sigma, eta, sigma)


LEVELS = ["bad", "fair", "good"]


def _ordered(y, eta, gap):
    code = LEVELS.index(y)
    high = 1.0 if code == 2 else stats.logistic.cdf((0.0, gap)[code] - eta)
    return np.log(high - (0.0 if code == 0 else stats.logistic.cdf((0.0, gap)[code - 1] - eta)))


CASES = {
    "negative_binomial": Case(
        lambda rng, x: _counts(rng, x),
        lambda y, eta, shape: _nbinom(eta, shape).logpmf(y),
        np.arange(12.0),
        least=0,
    ),
    "gamma": Case(
        lambda rng, x: 1000.0 * rng.gamma(2.0, np.exp(0.5 + 0.3 * x) / 2.0),
        lambda y, eta, shape: _gammas(eta, shape).logpdf(y),
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
        types=LEVELS,
    ),
    "hurdle_poisson": Case(
        lambda rng, x: (rng.random(len(x)) < 0.6) * (1 + rng.poisson(np.exp(0.3 + 0.3 * x))),
        lambda y, eta, odds: _hurdle(y, odds, _given_above(y, stats.poisson(np.exp(eta)))),
        np.arange(9.0),
        least=0,
    ),
    "zero_inflated_poisson": Case(
        lambda rng, x: (rng.random(len(x)) < 0.7) * rng.poisson(np.exp(0.9 + 0.3 * x)),
        lambda y, eta, odds: _zero_inflated(y, odds, stats.poisson(np.exp(eta))),
        np.arange(9.0),
        least=0,
    ),
    "hurdle_lognormal": Case(
        lambda rng, x: np.rint(
            (rng.random(len(x)) < 0.6) * np.exp(2.0 + 0.3 * x + 0.6 * rng.normal(size=len(x)))
        ),
        lambda y, eta, sigma, odds: _hurdle(
            y, odds, _rounded(np.maximum(y, 1.0), stats.lognorm(sigma, 0, np.exp(eta)), least=1.0)
        ),
        np.array([0.0, 1.0, 3.0, 8.0, 20.0, 45.0]),
        least=0,
    ),
    "hurdle_gamma": Case(
        lambda rng, x: np.ceil((rng.random(len(x)) < 0.6) * rng.gamma(3.0, np.exp(0.2 * x))),
        lambda y, eta, shape, odds: _hurdle(
            y, odds, _rounded(np.maximum(y, 1.0), _gammas(eta, shape), least=1.0)
        ),
        np.array([0.0, 1.0, 3.0, 6.0, 10.0]),
        least=0,
    ),
    "hurdle_negative_binomial": Case(
        lambda rng, x: (rng.random(len(x)) < 0.7) * (1 + _counts(rng, x)),
        lambda y, eta, shape, odds: _hurdle(y, odds, _given_above(y, _nbinom(eta, shape))),
        np.arange(12.0),
        least=0,
    ),
    "zero_inflated_negative_binomial": Case(
        lambda rng, x: (rng.random(len(x)) < 0.7) * _counts(rng, x + 5.0),
        lambda y, eta, shape, odds: _zero_inflated(y, odds, _nbinom(eta, shape)),
        np.array([0.0, 1.0, 3.0, 6.0, 10.0, 16.0, 25.0]),
        least=0,
    ),
    "binomial_trials": Case(
        lambda rng, x: rng.binomial(7, 1 / (1 + np.exp(-0.4 - 0.6 * x))),
        lambda y, eta: stats.binom.logpmf(y, 7, 1 / (1 + np.exp(-eta))),
        None,
        least=0,
        most=7,
        types=(0, 7),
        at_ends=True,
    ),
    "truncated_gaussian": Case(
        lambda rng, x: stats.truncnorm.rvs(
            *((np.array([[0.0], [10.0]]) - 3.0 - x) / 3.0), 3.0 + x, 3.0, random_state=rng
        ),
        _truncated,
        np.array([0.1, 1.0, 2.0, 4.0, 6.0, 8.0, 9.9]),
        least=0,
        most=10,
        types=(0.0, 10.0),
        at_ends=True,
    ),
    "rounded_student_t": Case(
        lambda rng, x: np.rint(10.0 + x + 1.5 * rng.standard_t(4.0, len(x))),
        lambda y, eta, sigma, nu: _rounded(y, stats.t(nu, eta, sigma)),
        np.arange(2.0, 18.0, 2.0),
    ),
    "rounded_lognormal": Case(
        lambda rng, x: np.rint(np.exp(1.0 + 0.3 * x + 0.6 * rng.normal(size=len(x)))),
        lambda y, eta, sigma: _rounded(y, stats.lognorm(sigma, 0, np.exp(eta))),
        np.array([0.0, 1.0, 3.0, 6.0, 12.0]),
        least=0,
    ),
    "rounded_gamma": Case(
        lambda rng, x: np.rint(rng.gamma(2.0, 2.0 * np.exp(0.3 * x))),
        lambda y, eta, shape: _rounded(y, _gammas(eta, shape)),
        np.array([0.0, 1.0, 3.0, 6.0, 12.0]),
        least=0,
    ),
    "rounded_beta": Case(
        lambda rng, x: np.round(_shares(rng, x), 2),
        lambda y, eta, phi: _rounded(y, _betas(eta, phi), half=0.005),
        np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]),
        least=0,
        most=1,
        at_ends=True,
    ),
    "beta": Case(
        lambda rng, x: _shares(rng, x),
        lambda y, eta, phi: _betas(eta, phi).logpdf(y),
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


def has_levels(name):
    """Tell whether a response is a factor."""
    return isinstance(CASES[name].types, list)


def types_of(name):
    """Return what must be declared of the response, where there is anything."""
    return None if CASES[name].types is None else {"y": CASES[name].types}
