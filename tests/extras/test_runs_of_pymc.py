"""Runs of PyMC in: coefficients in a vector, with labels and without, and fitted values."""

import warnings

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

pytestmark = pytest.mark.extras


def people(n=40):
    rng = np.random.default_rng(7)
    x, u = rng.normal(2.0, 1.0, n), rng.choice(["p", "q"], n)
    b = 0.5 + 0.6 * x + 0.4 * (u == "q") + rng.normal(0.0, 0.8, n)
    return pd.DataFrame({"x": x, "u": u, "b": b})


def run(coords, **dims):
    with warnings.catch_warnings():  # of PyMC's own dependencies, about one another
        warnings.simplefilter("ignore")
        import pymc as pm

        data = people()
        matrix = np.column_stack([data["x"], data["u"] == "q"]).astype(float)
        with pm.Model(coords=coords):
            alpha = pm.Normal("alpha", 0.0, 3.0)
            beta = pm.Normal("beta", 0.0, 2.0, **(dims or {"shape": 2}))
            sigma = pm.Exponential("sigma", 1.0)
            mu = pm.Deterministic("mu", alpha + matrix @ beta)
            pm.Normal("b", mu, sigma, observed=data["b"].to_numpy())
            return pm.sample(
                draws=50, tune=100, chains=2, cores=1, random_seed=3, progressbar=False
            )


@pytest.mark.parametrize(
    ("coords", "dims", "sources"),
    [
        ({}, {}, ("alpha", "beta[1]", "beta[2]", "sigma")),
        ({"term": [0, 1]}, {"dims": "term"}, ("alpha", "beta[1]", "beta[2]", "sigma")),
        ({"term": ["x", "u[q]"]}, {"dims": "term"}, ("alpha", "x", "u[q]", "sigma")),
    ],
)
def test_a_vector_of_coefficients(coords, dims, sources):
    idata = run(coords, **dims)
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x + u"), people(), idata)
    posterior = synthesizer.models[0].posterior
    assert posterior.sources == sources
    expected = idata["posterior"]["beta"].to_numpy().reshape(100, 2)
    np.testing.assert_array_equal(posterior.coefficients[:, 1:, 0], expected)
    assert list(np.bincount(posterior.chain)) == [50, 50]
