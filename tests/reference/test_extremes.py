"""Numbers far out, where careless arithmetic would still be finite, but wrong."""

import numpy as np
import pandas as pd
import pytest
from helpers.cases import people
from scipy.special import logsumexp

import synrisk as sr


@pytest.mark.parametrize("sigma", [1e-3, 1e-5, 1e-7, 1e6])
@pytest.mark.parametrize("weight", [1.0, 0.0])
def test_the_order_of_draws_does_not_matter_however_extreme_one_is(sigma, weight):
    rng = np.random.default_rng(0)
    y = rng.normal(5.0, 1.0, 500)
    draws = pd.DataFrame(
        {"Intercept": rng.normal(5.0, 0.05, 50), "sigma": rng.normal(1.0, 0.03, 50)}
    )
    draws["weight"] = 1.0
    draws.loc[0, ["sigma", "weight"]] = [sigma, weight]
    found = []
    for table in (draws, draws.iloc[::-1]):
        synthesizer = sr.Synthesizer.from_draws(sr.Regression("y ~ 1"), {"y": y}, table)
        release = {"y": rng.permutation(y) + 0.01}
        risk = sr.attribute_risk(
            synthesizer, release, guesses=sr.Interval(11, 2.0, 8.0), question="paper"
        )
        found.append(risk.records["probability"])
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("x", [20.0, 30.0, 50.0, 100.0])
def test_a_poisson_outlier_with_a_huge_rate_keeps_its_digits(x):
    """At the truth's own predictors log w is (y* − y)·eta exactly; the rate cancels."""
    rng = np.random.default_rng(1)
    n, n_draws = 200, 200
    data = pd.DataFrame({"x": rng.normal(size=n)})
    data["y"] = rng.poisson(np.exp(0.5 + 0.8 * data["x"]))
    data.loc[0, ["x", "y"]] = [x, 3]
    data["y"] = data["y"].astype(int)
    draws = pd.DataFrame(
        {"Intercept": rng.normal(0.5, 0.03, n_draws), "x": rng.normal(0.8, 0.03, n_draws)}
    )
    release = data.iloc[1:].assign(y=data["y"].to_numpy()[:0:-1])
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("y ~ x", "poisson"), data, draws)
    risk = sr.attribute_risk(
        synthesizer, release, guesses=sr.Values([1, 2, 3, 4]), records=[0], question="paper"
    )
    eta = draws["Intercept"].to_numpy() + draws["x"].to_numpy() * release["x"].to_numpy()[:, None]
    log_g = (release["y"].to_numpy()[:, None] * eta - np.exp(eta)).sum(axis=0)
    own = draws["Intercept"].to_numpy() + draws["x"].to_numpy() * x
    log_w = (np.array([1, 2, 3, 4])[:, None] - 3) * own
    log_l = logsumexp(log_w + log_g - log_g.max(), axis=1) - logsumexp(log_w, axis=1)
    expected = np.exp(log_l - logsumexp(log_l))
    np.testing.assert_allclose(risk.joint(0), expected, rtol=0, atol=1e-10)


def test_what_numbers_cannot_hold_is_an_error_that_counts():
    data = people()
    draws = pd.DataFrame({"Intercept": [10.0, 9.9], "x": [1.0, 0.9], "sigma": [1.0, 1.1]})
    plan = sr.Regression("b ~ x")
    synthesizer = sr.Synthesizer.from_draws(plan, data, draws)
    release = data[["x"]].assign(b=10.0)
    narrow = sr.Synthesizer.from_draws(plan, data, draws.assign(sigma=1e-160))
    with pytest.raises(sr.SyntheticDataError, match="dataset 1: the density of 'b'"):
        sr.attribute_risk(narrow, release.assign(b=100.0), question="paper")
    data.loc[3, "b"] = 1e170
    synthesizer = sr.Synthesizer.from_draws(plan, data, draws)
    with pytest.raises(sr.GuessError, match="1 record cannot be evaluated"):
        sr.attribute_risk(synthesizer, release, question="paper")
    others = [i for i in range(40) if i != 3]
    records = sr.attribute_risk(synthesizer, release, records=others, question="paper").records
    assert records[["probability", "rank", "best_guess_b"]].notna().all().all()


def test_ranks_by_elimination_find_the_truth_by_index(monkeypatch):
    """With log likelihoods of −10⁷ a sum in another order would not tie with itself."""
    from synrisk.risk import evaluate_block as evaluate_module

    rng = np.random.default_rng(2)
    data = pd.DataFrame(rng.normal(5, 1, (40, 3)), columns=list("abc"))
    draws = [pd.DataFrame({"Intercept": rng.normal(5, 0.1, 9), "sigma": 1.0})]
    draws += [
        pd.DataFrame({"Intercept": rng.normal(5, 0.1, 9), parent: 0.01, "sigma": 1.0})
        for parent in "ab"
    ]
    for table in draws:
        table["weight"] = 1.0
        table.loc[0, "Intercept"] += 30.0
        table.loc[0, "weight"] = 0.0
    release = pd.DataFrame(rng.normal(35, 1, (2000, 3)), columns=list("abc"))
    plan = [sr.Regression("a ~ 1"), sr.Regression("b ~ a"), sr.Regression("c ~ b")]
    synthesizer = sr.Synthesizer.from_draws(plan, data, draws)
    ranks = []
    for limit in (0, 10**9):
        monkeypatch.setattr(evaluate_module, "_LARGE_JOINT", limit)
        risk = sr.attribute_risk(synthesizer, [release] * 20, guesses=6, question="paper")
        ranks.append(risk.records["rank"])
    np.testing.assert_array_equal(*ranks)
