"""Fits and risks of the families against sums over a fine grid of all their parameters.

The grid shares nothing with fitting, kernels and families: densities are SciPy's, and priors those
that `describe` tells.
"""

import re

import numpy as np
import pytest
from helpers.family_cases import CASES, data_of, types_of
from scipy.special import logsumexp
from scipy.stats import expon, norm

import synrisk as sr

N_RECORDS, N_NODES, REACH = 30, {1: 400, 2: 80, 3: 36}, 7.0
every = pytest.mark.parametrize("name", CASES)


@pytest.fixture(scope="module")
def fitted():
    """Fit each family once."""
    made = {}

    def of(name):
        if name not in made:
            people = data_of(name, N_RECORDS)
            model = sr.Regression("y ~ 1", name)
            fit = sr.fit(model, people, seed=1, n_draws=4000, types=types_of(name))
            made[name] = people, fit, ByGrid(name, fit)
        return made[name]

    return of


def prior_of(text):
    kind, numbers = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
    first, *rest = (float(part) for part in numbers.split(", "))
    return norm(first, *rest).logpdf if kind == "Normal" else expon(scale=1 / first).logpdf


class ByGrid:
    """Every parameter on a grid about the draws: the intercept, and logs of the auxiliary ones."""

    def __init__(self, name, synthesizer):
        self.case, self.known = CASES[name], {}
        draws = synthesizer.draws("y")
        self.names = [column for column in draws.columns if column != "weight"]
        self.w = draws["weight"].to_numpy()
        self.values = draws[self.names].to_numpy()
        logs = np.concatenate([self.values[:, :1], np.log(self.values[:, 1:])], axis=1)
        centre = self.w @ logs
        sd = np.sqrt(self.w @ (logs - centre) ** 2)
        n = N_NODES[len(centre)]
        axes = [m + s * np.linspace(-REACH, REACH, n) for m, s in zip(centre, sd, strict=True)]
        eta, *logs = np.meshgrid(*axes, indexing="ij", sparse=True)
        self.theta = [eta, *(np.exp(one) for one in logs)]
        told = synthesizer.describe()["prior"].droplevel("variable")
        self.log_prior = sum(
            prior_of(told[parameter])(at)
            for parameter, at in zip(self.names, self.theta, strict=True)
        ) + sum(logs)

    def log_likelihood(self, y):
        return sum(self.log_density(value) for value in y)

    def log_density(self, value):
        if value not in self.known:  # rounded values repeat
            log_density = self.case.log_density(value, *self.theta)
            self.known[value] = np.broadcast_to(log_density, self.log_prior.shape)
        return self.known[value]


@every
def test_the_posterior_is_that_of_the_grid(fitted, name):
    people, _, grid = fitted(name)
    log_p = grid.log_prior + grid.log_likelihood(people["y"].to_numpy())
    p = np.exp(log_p - logsumexp(log_p))
    ess = 1.0 / (grid.w**2).sum()
    for k, at in enumerate(grid.theta):
        at = at if k == 0 else np.log(at)
        draws = grid.values[:, k] if k == 0 else np.log(grid.values[:, k])
        mean, own = (p * at).sum(), grid.w @ draws
        sd, own_sd = np.sqrt((p * (at - mean) ** 2).sum()), np.sqrt(grid.w @ (draws - own) ** 2)
        assert own == pytest.approx(mean, abs=4 * sd / np.sqrt(ess))
        # A variance of draws with kurtosis up to 9 has a relative error of √(8/ess) at most.
        assert own_sd == pytest.approx(sd, rel=0.5 * 4 * np.sqrt(8 / ess))


@every
@pytest.mark.parametrize("estimator", ["auto", "importance"])
def test_the_risk_is_that_of_the_grid(fitted, name, estimator):
    people, synthesizer, grid = fitted(name)
    release = synthesizer.synthesize(1, seed=3)
    records, guesses = [0, 7, 19], CASES[name].guesses
    risk = sr.attribute_risk(
        synthesizer,
        release,
        question="paper",
        estimator=estimator,
        guesses=11 if guesses is None else sr.Values(guesses),
        records=records,
        diagnostics=True,
    )
    of_people = np.array([grid.log_density(value) for value in people["y"]])
    of_release = grid.log_likelihood(release[0]["y"].to_numpy())
    for record in records:
        others = grid.log_prior + of_people.sum(axis=0) - of_people[record]
        ranking = risk.ranking(record)
        log_ratio = []
        for guess in ranking["y"]:
            with_guess = others + grid.log_density(guess)
            log_ratio.append(logsumexp(with_guess + of_release) - logsumexp(with_guess))
        p = np.exp(log_ratio - logsumexp(log_ratio))
        truth = ranking["is_truth"].to_numpy()
        row = risk.records.loc[record]
        # Five standard errors: three records, five families and two estimators are looked at.
        assert row["probability"] == pytest.approx(p[truth][0], abs=5 * row["mcse"] + 1e-6)
        assert np.abs(np.log(p) - np.log(1 / len(p))).max() > 0.01  # there is something to find
