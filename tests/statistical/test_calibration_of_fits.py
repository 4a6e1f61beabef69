"""Simulation-based calibration: parameters drawn from the prior, data from them, then fitted.

The posterior probability below the true parameter must be uniform. Each test looks at every
parameter by a χ² of ten bins and raises a false alarm in one of a thousand choices of the seed
(a thousandth shared among its parameters); the seed is fixed.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from scipy.stats import chi2

import synrisk as sr

N_REPLICATES, N_RECORDS, N_BINS = 240, 40, 10
FALSE_ALARMS = 1e-3
INTERCEPT, SLOPE, RATE = sr.Normal(0.3, 0.8), sr.Normal(-0.2, 0.7), sr.Exponential(1.2)


def predictors(rng):
    return pd.DataFrame(
        {
            "x": rng.normal(2.0, 1.5, N_RECORDS),
            "u": pd.Categorical(rng.choice(["p", "q"], N_RECORDS, p=[0.7, 0.3]), ["p", "q"]),
        }
    )


def columns(data):
    return np.column_stack([data["x"], data["u"] == "q"]).astype(float)


def linear(rng, data, n_predictors):
    """Coefficients from the prior, the intercept's being at the means, and eta."""
    alpha = rng.normal(INTERCEPT.mean, INTERCEPT.sd, n_predictors)
    beta = rng.normal(SLOPE.mean, SLOPE.sd, (2, n_predictors))
    x = columns(data)
    eta = alpha + (x - x.mean(axis=0)) @ beta
    intercept = alpha - x.mean(axis=0) @ beta
    return np.concatenate([[intercept], beta]).T.ravel(), eta


def replicate(family, rng):
    """The true parameters in the order of the draws' columns, and data."""
    data = predictors(rng)
    if family == "categorical":
        theta, eta = linear(rng, data, 2)
        p = softmax(np.concatenate([np.zeros((N_RECORDS, 1)), eta], axis=1), axis=1)
        code = (rng.random((N_RECORDS, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        y = pd.Categorical.from_codes(code, ["a", "b", "c"])
        return theta, data.assign(y=y)
    theta, eta = linear(rng, data, 1)
    if family == "gaussian":
        sigma = rng.exponential(1 / RATE.rate)
        return np.append(theta, sigma), data.assign(y=rng.normal(eta[:, 0], sigma))
    if family == "poisson":
        return theta, data.assign(y=rng.poisson(np.exp(eta[:, 0])))
    return theta, data.assign(y=(rng.random(N_RECORDS) < expit(eta[:, 0])).astype(int))


def places(family, shrink=1.0):
    """Where the truth lies in the posterior: a row a replicate, a column a parameter."""
    prior = {"Intercept": INTERCEPT, "x": SLOPE, "u[T.q]": SLOPE}
    if family == "gaussian":
        prior["sigma"] = RATE
    types = {"y": ["a", "b", "c"]} if family == "categorical" else None
    found = []
    for seed in range(N_REPLICATES):
        theta, data = replicate(family, np.random.default_rng([77, seed]))
        model = sr.Regression("y ~ x + u", family)
        fitted = sr.fit(
            model, data, n_draws=400, prior=prior, seed=seed, types=types, executor="serial"
        )
        draws = fitted.draws("y")
        weight = draws.pop("weight").to_numpy()
        values = draws.to_numpy()
        mean = weight @ values
        found.append(weight @ (mean + shrink * (values - mean) < theta))
    return np.array(found)


def p_values(found):
    counts = np.array(
        [np.histogram(column, N_BINS, (0.0, 1.0))[0] for column in np.clip(found, 0, 1).T]
    )
    expected = N_REPLICATES / N_BINS
    return chi2.sf(((counts - expected) ** 2 / expected).sum(axis=1), N_BINS - 1)


@pytest.fixture(autouse=True)
def nothing_is_released(monkeypatch):
    """Priors draw data whose predictors give the response away: no release could have them."""
    monkeypatch.setattr("synrisk.synthesis.synthesizer.refuse_exact", lambda *_: None)


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "categorical", "poisson"])
def test_posteriors_are_calibrated(family):
    p = p_values(places(family))
    assert p.min() > FALSE_ALARMS / len(p)


def test_posteriors_that_are_too_narrow_would_be_seen():
    p = p_values(places("bernoulli", shrink=0.6))
    assert p.min() < FALSE_ALARMS / len(p)
