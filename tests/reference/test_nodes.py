"""The exact estimator does not depend on its nodes: against many more of them, on a plain grid.

Where a record settles a coefficient alone, where an outlier makes up nearly all of sigma, where
guesses lie far off and a prior holds sigma back.
"""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.fitting import sigma_quadrature


def rows(n, seed=3):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": rng.normal(size=n), "g": rng.choice(["p", "q", "r"], size=n)})
    return data.assign(y=10.0 + 0.5 * data.x + rng.normal(size=n))


def one_of_a_level(n=3_000):
    data = rows(n)
    data.loc[3, "g"] = "alone"
    return data, "y ~ x + g", sr.Additive(5, 2, 2), "default"


def far_predictor():
    data = rows(2_000)
    data.loc[3, "x"] = 1e4
    return data, "y ~ x", sr.Additive(5, 2, 2), "default"


def outlier(size, n=60):
    data = rows(n)
    data.loc[3, "y"] = size
    return data, "y ~ x", sr.Interval(7, 8.0, 12.0), "default"


def far_guesses(n):
    return rows(n), "y ~ 1", sr.Interval(5, 1e3, 2e3), "default"


def few(prior):
    return rows(5), "y ~ 1", sr.Additive(5, 2, 2), prior


CASES = {
    "five records": few("default"),
    "five records, hardly any prior": few(sr.Conjugate(scale=np.inf, df=0)),
    "one of a level": one_of_a_level(),
    "a far predictor": far_predictor(),
    "an outlier of 1e2": outlier(1e2),
    "an outlier of -1e4": outlier(-1e4),
    "an outlier of 1e6": outlier(1e6),
    "an outlier, conjugate": (*outlier(-1e4)[:3], sr.Conjugate()),
    "far guesses for 8": far_guesses(8),
    "far guesses for 30": far_guesses(30),
    "far guesses, conjugate": (*far_guesses(30)[:3], sr.Conjugate()),
}


@pytest.mark.parametrize("name", CASES)
def test_more_nodes_change_nothing(monkeypatch, name):
    data, formula, guesses, prior = CASES[name]
    used = data[["y", *(c for c in ("x", "g") if c in formula)]]

    def log_odds():
        synthesizer = sr.fit(sr.Regression(formula, prior=prior), used, seed=1, n_draws=40)
        release = synthesizer.synthesize(seed=2)
        risk = sr.attribute_risk(
            synthesizer,
            release,
            guesses=guesses,
            records=[0, 3, 4],
            diagnostics=False,
            question="paper",
        )
        return risk.records.log_odds_range, risk._evaluation.estimates[0]

    found_range, few = log_odds()
    monkeypatch.setattr(sigma_quadrature, "_LARGEST_MOVE", 0.0)  # no Gauss rule
    monkeypatch.setattr(sigma_quadrature, "_STEP", 0.15)
    monkeypatch.setattr(sigma_quadrature, "_TAIL", 12.0)
    expected_range, many = log_odds()
    assert len(many.nodes.sigma) > 3 * len(few.nodes.sigma)
    # Where sigma is about 1, an outlier's log density is half its square; that cancels, but for its
    # rounding.
    largest = 0.5 * ((data.y - data.y.median()) ** 2).max()
    atol = 1e-8 + 4.0 * 2.0**-52 * largest
    np.testing.assert_allclose(found_range, expected_range, rtol=1e-8, atol=atol)


def nodes_of(data, formula, guesses, prior="default"):
    synthesizer = sr.fit(sr.Regression(formula, prior=prior), data, seed=1, n_draws=40)
    release = synthesizer.synthesize(seed=2)
    risk = sr.attribute_risk(
        synthesizer, release, guesses=guesses, records=[0, 3], diagnostics=False, question="paper"
    )
    estimate = risk._evaluation.estimates[0]
    return [len(nodes.sigma) for nodes in (estimate.nodes, *estimate.stacked)]


@pytest.mark.parametrize("prior", ["default", sr.Conjugate()])
@pytest.mark.parametrize("size", [1e4, 1e5, 1e6, 1e8])
def test_the_number_of_nodes_does_not_rest_on_rounding(size, prior):
    """The records' last bits, as other CPUs would round them, move it by one at most."""
    data, formula, guesses, _ = outlier(size)
    plain = data[["x", "y"]]
    expected = nodes_of(plain, formula, guesses, prior)
    assert max(expected) < 500
    for towards in (-np.inf, np.inf):
        found = nodes_of(plain.assign(y=np.nextafter(plain.y, towards)), formula, guesses, prior)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1)


def test_a_level_of_one_takes_few_nodes():
    assert max(nodes_of(*one_of_a_level(20_000))) < 10


def test_more_nodes_than_there_can_be_are_refused(monkeypatch):
    data, formula, guesses, _ = outlier(1e6)
    synthesizer = sr.fit(sr.Regression(formula), data[["x", "y"]], seed=1, n_draws=40)
    monkeypatch.setattr(sigma_quadrature, "_MOST_NODES", 50)
    with pytest.raises(sr.FitError, match="'y ~ x': a record, or a guess for it, lies so far"):
        sr.attribute_risk(
            synthesizer, synthesizer.synthesize(seed=2), guesses=guesses, question="paper"
        )
