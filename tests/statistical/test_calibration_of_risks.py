"""Calibration: among guesses that are given probability p, a fraction p is true (METHOD §8).

Everything but one record is fixed, and so is the grid. The record's true guess is drawn from the
prior, the models are fitted, the release is drawn, and the record is evaluated. Two statistics,
both standard normal if all is right: for bins of p the number of true guesses in each, with the
variance Σ S(1 − S) over replicates, S the replicate's mass in the bin; and the score
Σ(a_t − Σ_c P_c a_c)/√ΣVar_P(a) with a the log likelihood and a the log prior. |z| < 3 for each, at
fixed seeds; the broken posteriors below give |z| > 5 by one of them.
"""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers.cases import used_columns
from scipy.special import expit, logsumexp

import synrisk as sr

N_REPLICATES, RECORD = 100, 3
BINS = np.array([0.0, 0.1, 0.25, 0.4, 0.6, 1.0])
CONTINUOUS = np.linspace(-4.0, 6.0, 5)
CASES = {
    "gaussian": ([sr.Regression("b ~ x")], {"b": CONTINUOUS}),
    "bernoulli": ([sr.Regression("o ~ x", "bernoulli")], {"o": [0, 1]}),
    "poisson": ([sr.Regression("k ~ x", "poisson")], {"k": [0, 2, 5, 9]}),
    "categorical": ([sr.Regression("r ~ 1", "categorical")], {"r": ["low", "mid", "top"]}),
    "chain": (
        [sr.Regression("b ~ 1"), sr.Regression("o ~ b", "bernoulli")],
        {"b": CONTINUOUS, "o": [0, 1]},
    ),
    "rounded": ([sr.Regression("a ~ x")], {"a": [-3, -1, 0, 1, 2, 4]}),
    "weighted gaussian": ([sr.Regression("b ~ x", weights="w")], {"b": CONTINUOUS}),
    "weighted counts": ([sr.Regression("k ~ x", "poisson", weights="w")], {"k": [0, 2, 5, 9]}),
}


def people(n=12):
    rng = np.random.default_rng(31)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "b": 1.0 + x + rng.normal(size=n),
            "a": np.rint(0.4 + x + 0.6 * np.cos(np.arange(n))).astype(int),
            "o": (rng.random(n) < expit(x)).astype(int),
            "k": rng.poisson(np.exp(0.7 + 0.3 * x)),
            "r": pd.Categorical(rng.choice(["low", "mid", "top"], n), ["low", "mid", "top"]),
            "w": np.where(np.arange(n) == RECORD, 3.0, 0.7),
        }
    )


def evaluate(case, data, seed, m, prior, n_draws=400):
    plan, grid = CASES[case]
    data = data[used_columns(plan)]  # others would be looked at for what they tell
    types = {"r": ["low", "mid", "top"]} if case == "categorical" else None
    fitted = sr.fit(plan, data, seed=seed, n_draws=n_draws, executor="serial", types=types)
    return sr.attribute_risk(
        fitted,
        fitted.synthesize(m, seed=seed, executor="serial"),
        guesses={name: sr.Values(values) for name, values in grid.items()},
        intruder_prior=prior,
        records=[RECORD],
        diagnostics=False,
        executor="serial",
        question="paper",
    )


@cache
def replicates(case, m, prior_name, n_replicates=N_REPLICATES):
    """Log posterior and log prior over the joint grid, and the true cell, by replicate."""
    rng = np.random.default_rng([7, m, len(case), len(prior_name)])
    data = people()
    _, grid = CASES[case]
    shape = tuple(len(values) for values in grid.values())
    prior = prior_name
    if prior_name == "table":
        prior = np.log(rng.dirichlet(np.full(int(np.prod(shape)), 3.0)).reshape(shape))
    first = evaluate(case, data, 0, 1, prior, n_draws=4000)
    ranking = first.ranking(RECORD).sort_values(list(grid), kind="stable")
    before = ranking["prior"].to_numpy()  # it does not depend on the record's own values
    rows = []
    for seed in range(n_replicates):
        t = int(rng.choice(len(before), p=before / before.sum()))
        chosen = np.unravel_index(t, shape)
        replaced = data.copy()
        for (name, values), index in zip(grid.items(), chosen, strict=True):
            replaced.loc[RECORD, name] = values[index]
        found = evaluate(case, replaced, 1 + seed, m, prior).ranking(RECORD)
        found = found.sort_values(list(grid), kind="stable")
        rows.append((found["probability"], found["prior"], t))
    log_p, log_prior = (np.log(np.array([row[k] for row in rows])) for k in (0, 1))
    return log_p, log_prior, np.array([row[2] for row in rows])


def score(log_p, truth, a):
    p = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
    rows = np.arange(len(truth))
    mean = (p * a).sum(axis=1)
    variance = (p * (a - mean[:, None]) ** 2).sum()
    if variance < 1e-12:
        return 0.0
    return (a[rows, truth] - mean).sum() / np.sqrt(variance)


def statistics(log_p, log_prior, truth, log_l):
    p = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
    hit = np.zeros(p.shape, dtype=bool)
    hit[np.arange(len(truth)), truth] = True
    found = [score(log_p, truth, log_l), score(log_p, truth, log_prior)]
    for low, high in itertools.pairwise(BINS):
        inside = (p > low) & (p <= high)
        mass = np.where(inside, p, 0.0).sum(axis=1)
        variance = (mass * (1 - mass)).sum()
        if variance > 5:
            found.append(((hit & inside).sum() - mass.sum()) / np.sqrt(variance))
    return np.array(found)


@pytest.mark.parametrize("prior", ["uniform", "model"])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_risks_are_calibrated(case, m, prior):
    log_p, log_prior, truth = replicates(case, m, prior)
    z = statistics(log_p, log_prior, truth, log_p - log_prior)
    assert np.abs(z).max() < 3.0


@pytest.mark.parametrize("case", ["gaussian", "poisson"])
def test_risks_under_a_table_are_calibrated(case):
    log_p, log_prior, truth = replicates(case, 3, "table")
    z = statistics(log_p, log_prior, truth, log_p - log_prior)
    assert np.abs(z).max() < 3.0


def test_broken_posteriors_are_seen():
    """Each is made of the right one: without the likelihood, squared, the prior not logged, …"""
    m = 3
    log_p, log_prior, truth = replicates("gaussian", m, "model", 330)
    log_l = log_p - log_prior
    broken = {
        "g dropped": log_prior,
        "L squared": log_prior + 2 * log_l,
        "prior not logged": np.exp(log_prior) + log_l,
        "prior once a dataset": m * log_prior + log_l,
    }
    for name, wrong in broken.items():
        assert np.abs(statistics(wrong, log_prior, truth, log_l)).max() > 5.0, name


def test_the_record_itself_does_not_matter_on_the_exact_path():
    """Whatever guess stands in the confidential data, the posterior on a fixed grid is the same."""
    data = people()
    plan, grid = CASES["gaussian"]
    prior = {"Intercept": sr.Normal(1, 2), "x": sr.Normal(0, 2), "sigma": sr.Exponential(0.5)}
    release = sr.fit(plan, data, seed=1).synthesize(2, seed=2)
    x = data["x"] - data["x"].mean()
    found = []
    for guess in grid["b"]:
        replaced = data.assign(x=x)
        replaced.loc[RECORD, "b"] = guess
        fitted = sr.fit(plan, replaced, seed=1, n_draws=10, prior=prior)
        shifted = [dataset.assign(x=dataset["x"] - data["x"].mean()) for dataset in release]
        risk = sr.attribute_risk(
            fitted,
            shifted,
            guesses=sr.Values(grid["b"]),
            records=[RECORD],
            diagnostics=False,
            question="paper",
        )
        found.append(risk.joint(RECORD).to_numpy())
    np.testing.assert_allclose(found, np.tile(found[0], (len(found), 1)), atol=1e-8)
