"""What is read off models of Bambi besides their draws, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

pytestmark = pytest.mark.extras


def people(n=40):
    rng = np.random.default_rng(7)
    x = rng.normal(2.0, 1.0, n)
    return pd.DataFrame({"x": x, "b": 0.5 + 0.6 * x + rng.normal(0.0, 0.8, n)})


def test_what_bambi_encodes_differently_is_refused():
    """Bambi's scale divides by the standard deviation over n, formulaic's over n − 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        model = bambi.Model("b ~ scale(x)", people())
        other = bambi.Model("b ~ x", people(), family="t")
        probit = bambi.Model("o ~ x", people().assign(o=[0, 1] * 20), "bernoulli", link="probit")
        fit = model.fit(draws=4, tune=4, chains=1, cores=1, random_seed=3, progressbar=False)
    with pytest.raises(sr.SynriskError, match=r"encodes 'scale\(x\)' differently"):
        sr.Synthesizer.from_bambi(model, fit)
    with pytest.raises(sr.SynriskError, match="the family 't'"):
        sr.Synthesizer.from_bambi(other, fit)
    with pytest.raises(sr.SynriskError, match="the link 'probit'"):
        sr.Synthesizer.from_bambi(probit, fit)


def test_levels_are_those_that_bambi_means():
    """Text with two levels: the probability is of the one that Bambi calls a success."""
    data = people().assign(o=["yes", "no", "yes", "yes"] * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        model = bambi.Model("o ~ 1", data, family="bernoulli")
        fit = model.fit(draws=300, tune=300, chains=2, cores=1, random_seed=3, progressbar=False)
    synthesizer = sr.Synthesizer.from_bambi(model, fit)
    level = synthesizer.describe()["probability_of"].iloc[0]
    share = (data["o"] == level).mean()
    assert abs(synthesizer.describe()["mean"].iloc[0] - np.log(share / (1 - share))) < 0.3


def test_a_categorical_model():
    data = people().assign(r=["low", "mid", "top", "mid"] * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        model = bambi.Model("r ~ x", data, family="categorical")
        fit = model.fit(draws=50, tune=50, chains=2, cores=1, random_seed=3, progressbar=False)
    synthesizer = sr.Synthesizer.from_bambi(model, fit)
    expected = fit["posterior"]["x"].sel(r_reduced_dim="top").to_numpy().ravel()
    np.testing.assert_array_equal(synthesizer.draws("r")["top:x"], expected)
