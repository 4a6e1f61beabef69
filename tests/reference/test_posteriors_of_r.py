"""Posteriors against rstanarm's and brms' under the same priors: their draws are in tests/data/r.

The standard errors of their chains are those of ArviZ, which take autocorrelation into account.
"""

from pathlib import Path

import numpy as np
import pytest
from arviz_stats.base import array_stats

import synrisk as sr

FOLDER = Path(__file__).parents[1] / "data" / "r"
# 22 parameters with a mean and an sd each: with independent errors one of them is beyond 4.5
# standard errors in one of 3,300 choices of the seeds.
SIGMAS = 4.5
FITS = {
    "linear_draws_df.rds": sr.Regression("Income ~ Spend + Region"),
    "counts.rds": sr.Regression("Kids ~ Spend + Region", "poisson"),
    "binary.rds": sr.Regression("Owner ~ Income", "bernoulli"),
    "brms_linear.rds": sr.Regression("Income ~ Spend + as.factor(Zone) + Region"),
    "brms_classes.rds": sr.Regression("Class ~ Income", "categorical"),
}


def prior_of(name):
    """What make.R gives both packages; an intercept is at the predictors' means."""
    if name == "sigma":
        return sr.Exponential(1.0)
    return sr.Normal(0.0, 5.0 if name.endswith("Intercept") else 1.0)


def weighted(values, weight):
    """The mean and sd of weighted draws, and the standard errors of both."""
    mean = np.sum(weight * values)
    apart = values - mean
    sd = np.sqrt(np.sum(weight * apart**2))
    # Antithetic pairs stand side by side: a pair is one draw of its sum.
    effects = weight * np.stack([apart, apart**2 - sd**2])
    of_mean, of_variance = np.sqrt((effects.reshape(2, -1, 2).sum(axis=2) ** 2).sum(axis=1))
    return mean, sd, of_mean, of_variance / (2.0 * sd)


@pytest.mark.parametrize("file", FITS)
def test_means_and_sds_agree(file):
    model, people = FITS[file], FOLDER / "people.rds"
    theirs = sr.Synthesizer.from_draws(model, people, FOLDER / file)
    names = theirs.models[0].posterior.names
    prior = {name: prior_of(name) for name in names}
    ours = sr.fit(model, people, n_draws=8000, prior=prior, seed=1).draws(model.response)
    draws, chain = theirs.draws(model.response), theirs.models[0].posterior.chain
    for name in names:
        mean, sd, of_mean, of_sd = weighted(ours[name].to_numpy(), ours["weight"].to_numpy())
        values = draws[name].to_numpy()
        by_chain = np.stack([values[chain == k] for k in np.unique(chain)])
        error_of_mean, error_of_sd = (
            float(array_stats.mcse(by_chain, method=kind)) for kind in ("mean", "sd")
        )
        assert abs(values.mean() - mean) < SIGMAS * np.hypot(of_mean, error_of_mean), name
        assert abs(values.std(ddof=1) - sd) < SIGMAS * np.hypot(of_sd, error_of_sd), name
