"""Draws of rstanarm and brms as they write them: read, and densities against the packages' own.

data/r_families/make.R made the files. Log likelihoods are those of six records at every draw, with
fifteen digits.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import synrisk as sr

FOLDER = Path(__file__).parents[1] / "data" / "r_families"
ANSWERS = ["bad", "fair", "good", "best"]
# File → response, family, what is declared.
FITS = {
    "arm_negative_binomial": ("count", "negative_binomial", None),
    "arm_gamma": ("amount", "gamma", None),
    "arm_binomial": ("days", sr.Binomial(7), None),
    "arm_ordered_logit": ("answer", "ordered_logit", ANSWERS),
    "brms_hurdle_gamma": ("spent", "hurdle_gamma", None),
    "brms_ordered_logit": ("answer", "ordered_logit", ANSWERS),
    "brms_zero_inflated_negative_binomial": ("zeros", "zero_inflated_negative_binomial", None),
    "brms_student_t": ("number", "student_t", None),
    "brms_truncated_gaussian": ("bounded", sr.TruncatedGaussian(0, 10), None),
    "brms_binomial_trials": ("days", sr.Binomial(7), None),
    "brms_negative_binomial": ("count", "negative_binomial", None),
    "brms_gamma": ("amount", "gamma", None),
    "brms_beta": ("share", "beta", None),
    "brms_lognormal": ("amount", "lognormal", None),
    "brms_hurdle_poisson": ("zeros", "hurdle_poisson", None),
    "brms_zero_inflated_poisson": ("zeros", "zero_inflated_poisson", None),
    "brms_hurdle_lognormal": ("spent", "hurdle_lognormal", None),
    "brms_hurdle_negative_binomial": ("zeros", "hurdle_negative_binomial", None),
}
# What is rounded to an amount of a hundred and more has the density times 1 but for about
# (1/100/sd)²/24 of it, with sd, of the logarithm, half or more, and |z| up to three.
OF_AMOUNTS = 2e-4


@pytest.mark.parametrize("name", FITS)
def test_log_likelihoods_are_the_packages_own(name):
    response, family, levels = FITS[name]
    people = pd.read_csv(FOLDER / "people.csv")
    regression = sr.Regression(f"{response} ~ x", family)
    types = None if levels is None else {response: levels}
    draws = FOLDER / f"{name}.csv"
    data = people[["x", response]]
    read = sr.Synthesizer.from_draws(regression, data, draws, types=types)
    (model,) = read.models
    y = people[response].map(ANSWERS.index) if levels else people[response]
    y = y.to_numpy(dtype=float)[:6]
    posterior, transform = model.posterior, model.regression.transform
    matrix = np.column_stack([np.ones(6), people["x"].to_numpy()[:6]])
    eta = np.einsum("ij,hjq->hiq", matrix, posterior.coefficients)
    log_density = model.regression.distribution.log_density
    found = log_density(transform.apply(y), eta, posterior.auxiliary[:, None, :])
    found = found + transform.log_derivative(y)
    expected = pd.read_csv(FOLDER / f"{name}_log_lik.csv").to_numpy()
    if name == "brms_truncated_gaussian":
        # Its log_lik leaves the bounds out: brms 2.18's log_lik_truncate returns what it was given.
        between = norm(eta[:, :, 0], posterior.auxiliary)
        expected = expected - np.log(between.cdf(10.0) - between.cdf(0.0))
    assert found.shape == expected.shape
    recorded = (y > 0) & (response == "spent")
    assert not recorded.any() or y[recorded].min() > 100
    np.testing.assert_allclose(found[:, ~recorded], expected[:, ~recorded], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[:, recorded], expected[:, recorded], atol=OF_AMOUNTS)
