"""Reported standard errors against the actual scatter over fits with other random numbers.

Over R fits the variance of a probability is estimated with a relative sd of √(2/R); pooled over
records it is known better, but records of a fit move together, so that is the figure to go by:
with R = 40 the ratio of root mean squares has the relative sd 0.11. The bounds, 0.8 and 1.25, are
the requirement's; the seeds are fixed. Where parameters are many, records move less together: the
ratio then has the sd 0.03 (jackknife over the fits), and the bounds are 0.85 and 1.2.
"""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

pytestmark = pytest.mark.usefixtures("numbers_alone")

N_FITS = 40


def people(n=60):
    rng = np.random.default_rng(2)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "o": (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int),
            "k": rng.poisson(np.exp(0.3 + 0.4 * x)),
            "r": pd.Categorical(rng.choice(["low", "mid", "top"], n, p=[0.5, 0.3, 0.2])),
            "b": 1.0 + x + rng.normal(size=n),
        }
    )


MODELS = {
    "bernoulli": sr.Regression("o ~ x", "bernoulli"),
    "poisson": sr.Regression("k ~ x", "poisson"),
    "categorical": sr.Regression("r ~ x", "categorical"),
    "gaussian": sr.Regression("b ~ x"),
}


def ratio(model, estimator, n_draws, chain=()):
    data = people()
    plan = [model, *chain]
    release = sr.fit(plan, data, seed=5).synthesize(1, seed=6)
    probabilities, errors = [], []
    for seed in range(N_FITS):
        fitted = sr.fit(plan, data, seed=1000 + seed, n_draws=n_draws)
        risk = sr.attribute_risk(
            fitted,
            release,
            estimator=estimator,
            guesses=5,
            executor="serial",
            joint="drop",
            question="paper",
        )
        probabilities.append(risk.records["probability"])
        errors.append(risk.records["mcse"])
    actual = np.sqrt(np.var(probabilities, axis=0, ddof=1).mean())
    return np.sqrt(np.mean(np.square(errors))) / actual


@pytest.mark.parametrize("family", MODELS)
def test_stacked_errors_are_honest(family):
    assert 0.8 < ratio(MODELS[family], "stacked", 300) < 1.25


def test_errors_of_a_chain_are_honest():
    chain = [sr.Regression("o ~ k", "bernoulli")]
    assert 0.8 < ratio(MODELS["poisson"], "stacked", 300, chain) < 1.25


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_importance_errors_are_honest_where_enough_draws_count(family):
    assert 0.8 < ratio(MODELS[family], "importance", 600) < 1.25


def probabilities_and_errors(plan, data, release, n_draws, seeds, records):
    tables = [
        sr.attribute_risk(
            sr.fit(plan, data, seed=seed, n_draws=n_draws, executor="serial"),
            release,
            records=records,
            executor="serial",
            question="paper",
        ).records
        for seed in seeds
    ]
    return (np.array([table[name] for table in tables]) for name in ("probability", "mcse"))


def test_errors_of_many_parameters_are_honest():
    """Without credit for the second moments of 22 parameters the ratio was 1.31."""
    rng = np.random.default_rng(3)
    data = sr.load_households()[["KidsCount", "LogExpenditure", "Urban"]]
    names = [f"z{k}" for k in range(19)]
    data = pd.concat([data, pd.DataFrame(rng.normal(size=(len(data), 19)), columns=names)], axis=1)
    plan = sr.Regression("KidsCount ~ LogExpenditure + Urban + " + " + ".join(names), "poisson")
    release = sr.fit(plan, data, seed=5).synthesize(1, seed=6)
    p, mcse = probabilities_and_errors(plan, data, release, 200, range(24), data.index[:100])
    assert 0.85 < np.sqrt(np.mean(mcse**2) / np.var(p, axis=0, ddof=1).mean()) < 1.2


def test_reliable_numbers_are_within_their_errors_where_few_draws_count():
    """A rare outcome and 22 parameters: draws have a fifth of their number in effect.

    By 64 of the 500 pairs, 1.8 % of the numbers called reliable were off by more than four
    errors; by all pairs it is 0.1 %, give or take as much over eight fits.
    """
    rng = np.random.default_rng(11)
    x = rng.normal(size=(1000, 21))
    score = x @ (0.3 * rng.normal(size=21)) + rng.logistic(size=1000)
    data = pd.DataFrame(x, columns=[f"x{k}" for k in range(21)])
    data["o"] = (score >= np.sort(score)[-62]).astype(int)
    plan = sr.Regression("o ~ " + " + ".join(data.columns[:21]), "bernoulli")
    long = sr.fit(plan, data, seed=77, n_draws=60_000)
    release = long.synthesize(1, seed=5)
    true = (
        sr.attribute_risk(long, release, diagnostics=False, question="paper")
        .records["probability"]
        .to_numpy()
    )
    off = []
    for seed in range(8):
        fitted = sr.fit(plan, data, seed=seed, n_draws=1000, executor="serial")
        table = sr.attribute_risk(fitted, release, executor="serial", question="paper").records
        table = table.assign(off=np.abs(table["probability"] - true) > 4 * table["mcse"])
        off.append(table.loc[table["reliable"], "off"].mean())
    assert np.mean(off) < 0.004
