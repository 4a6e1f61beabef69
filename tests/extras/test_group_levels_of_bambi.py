"""Group-level terms of real fits by Bambi: against its own predictions."""

import warnings

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

pytestmark = pytest.mark.extras

LEVELS = ["East", "North", "South Hill", "West"]


def people(n=48):
    rng = np.random.default_rng(11)
    region = np.array([*LEVELS, *rng.choice(LEVELS, n - 4)])
    x = rng.normal(size=n)
    place = pd.Series(region).map(dict(zip(LEVELS, [0.8, -0.6, 0.1, -0.3], strict=True)))
    return pd.DataFrame({"x": x, "region": region, "y": 1.0 + x + place + rng.normal(size=n)})


@pytest.fixture(scope="module")
def fitted():
    """A model of Bambi with a slope by region, a short fit, and its own linear predictors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        model = bambi.Model("y ~ x + (x | region)", people())
        fit = model.fit(draws=100, tune=300, chains=2, cores=1, random_seed=3, progressbar=False)
        model.predict(fit, kind="response_params")
    return model, fit


def test_linear_predictors_are_those_of_bambi(fitted):
    model, fit = fitted
    synthesizer = sr.Synthesizer.from_bambi(model, fit)
    own = synthesizer.models[0]
    matrix = synthesizer.refits.design(own, None)
    found = np.einsum("ij,hj->hi", matrix, own.posterior.coefficients[:, :, 0])
    theirs = fit["posterior"]["mu"].transpose("chain", "draw", ...).to_numpy()
    np.testing.assert_allclose(found, theirs.reshape(found.shape), rtol=1e-8, atol=1e-8)
    # and by the table of draws that ArviZ makes, without the model's own design
    again = sr.Synthesizer.from_draws(sr.Regression("y ~ x + (x | region)"), people(), fit)
    np.testing.assert_array_equal(
        again.models[0].posterior.coefficients, own.posterior.coefficients
    )


def test_fit_goes_through_bambi(monkeypatch):
    monkeypatch.setattr("synrisk.synthesis.group_level_fits._TUNING", 400)
    monkeypatch.setattr("synrisk.synthesis.group_level_fits._LEAST_DRAWS", 250)
    plan = sr.Regression("y ~ x + (1 | region)")
    synthesizer = sr.fit(plan, people(), engine="nuts", n_draws=203, seed=5)
    draws = synthesizer.draws("y")
    assert len(draws) == 203
    assert draws[".chain"].nunique() == 4
    ahead = draws["1|region[East]"] - draws["1|region[North]"]
    # The regions' own means, of a dozen people each, differ by 1.4 with a standard error of 0.4.
    assert 0.3 < ahead.mean() < 2.5
    (made,) = synthesizer.synthesize(seed=98765432109876543210)
    assert np.isfinite(made["y"]).all()


def test_chains_that_do_not_agree_are_refused(monkeypatch):
    monkeypatch.setattr("synrisk.synthesis.group_level_fits._TUNING", 0)
    monkeypatch.setattr("synrisk.synthesis.group_level_fits._LEAST_DRAWS", 20)
    with pytest.raises(sr.FitError, match="cannot be relied on"):
        sr.fit(sr.Regression("y ~ x + (x | region)"), people(), engine="nuts", n_draws=20, seed=5)
