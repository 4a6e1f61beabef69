"""Families where data say little: no overdispersion, no variance, separation, impossible values."""

import numpy as np
import pandas as pd
import pytest
from helpers.family_cases import CASES, data_of, types_of

import synrisk as sr


def test_a_negative_binomial_of_poisson_counts_is_nearly_poissons():
    rng = np.random.default_rng(1)
    x = rng.normal(size=400)
    people = pd.DataFrame({"x": x, "y": rng.poisson(np.exp(1.0 + 0.3 * x))})
    own, poissons = (
        sr.fit(sr.Regression("y ~ x", family), people, seed=1).describe().loc["y"]
        for family in ("negative_binomial", "poisson")
    )
    assert own.loc["shape", "mean"] > 10
    difference = own.loc["x", "mean"] - poissons.loc["x", "mean"]
    assert abs(difference) < poissons.loc["x", "sd"]  # a fit to weights that differ by mean/shape


@pytest.mark.parametrize("name", ["gamma", "lognormal", "student_t", "beta"])
def test_values_that_are_all_the_same_are_refused(name):
    people = pd.DataFrame({"x": np.arange(20.0), "y": 0.5})
    with pytest.raises(sr.DataError, match="same value for every record"):
        sr.fit(sr.Regression("y ~ x", name), people)


@pytest.mark.parametrize("name", ["negative_binomial", "ordered_logit"])
def test_a_level_that_settles_the_outcome_has_a_finite_fit(name):
    people = data_of(name, 60)
    people["g"] = ["a", "b", "c"] * 20
    people.loc[people["g"] == "c", "y"] = 0 if name == "negative_binomial" else "bad"
    model = sr.Regression("y ~ g", name)
    found = sr.fit(model, people, seed=1, types=types_of(name)).describe().loc["y"]
    assert np.isfinite(found["mean"]).all()
    assert found.loc["g[T.c]", "separated"]
    assert found.loc["g[T.c]", "mean"] < -2


@pytest.mark.parametrize("name", ["gamma", "lognormal", "beta"])
def test_a_zero_is_refused(name):
    people = data_of(name, 20)
    people.loc[3, "y"] = 0.0
    with pytest.raises(sr.DataError, match=f"modelled as {name} .* above 0.*; 1 value is not"):
        sr.fit(sr.Regression("y ~ x", name), people)


def test_the_logarithm_of_zero_is_answered_by_log1p():
    people = data_of("gamma", 20)
    people.loc[3, "y"] = 0.0
    with pytest.raises(sr.DataError, match=r"model log1p\(y\)"):
        sr.fit(sr.Regression("log(y) ~ x"), people)


def test_a_transform_of_the_transformed_is_refused():
    with pytest.raises(sr.PlanError, match="of the response itself"):
        sr.Regression("log(y) ~ x", "gamma")


def test_words_in_no_order_are_refused():
    with pytest.raises(sr.DataError, match="which types= lists in order"):
        sr.fit(sr.Regression("y ~ x", "ordered_logit"), data_of("ordered_logit", 30))


def test_lognormal_is_the_gaussian_model_of_the_logarithm():
    people = data_of("lognormal", 50)
    own, theirs = (
        sr.fit(model, people, seed=1)
        for model in (sr.Regression("y ~ x", "lognormal"), sr.Regression("log(y) ~ x"))
    )
    pd.testing.assert_frame_equal(own.draws("y"), theirs.draws("y"))
    assert (own.describe()["engine"] == "exact").all()


def test_thresholds_of_brms_and_bambi_are_read():
    people = data_of("ordered_logit", 40)
    plan = sr.Regression("y ~ x", "ordered_logit")
    rng = np.random.default_rng(2)
    first, gap, slope = rng.normal(size=50), rng.exponential(size=50), rng.normal(size=50)
    brms = {"Intercept[1]": first + 1.0, "Intercept[2]": first + 1.0, "disc": np.ones(50)}
    for names, others in (
        (("b_Intercept[1]", "b_Intercept[2]", "b_x"), brms),
        (("b_Intercept.1.", "b_Intercept.2.", "b_x"), {}),
        (("threshold[0]", "threshold[1]", "x"), {}),
    ):
        table = pd.DataFrame(dict(zip(names, (first, first + gap, slope), strict=True)) | others)
        read = sr.Synthesizer.from_draws(plan, people, [table], types=types_of("ordered_logit"))
        draws = read.draws("y")
        np.testing.assert_allclose(draws["Intercept"], -first)
        np.testing.assert_allclose(draws["gap[2]"], gap)


@pytest.mark.parametrize("name", CASES)
def test_an_unknown_family_is_answered_with_what_exists(name):
    with pytest.raises(sr.OptionError, match=name):
        sr.Regression("y ~ x", "tweedie")
