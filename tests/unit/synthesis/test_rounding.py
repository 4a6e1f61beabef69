"""Rounded responses: when they matter, what is fitted, released, saved and refused."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.synthesis.rounding import is_coarse, step_of


def people(sd=0.6, n=150):
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": np.rint(5 + 0.5 * x + rng.normal(0, sd, n)).astype(int)})


@pytest.mark.parametrize("step", [0.7, 7.0, 10 / 3, 10.0, 12.0, 21.0])
@pytest.mark.parametrize("how", ["", "shifted", "one off the grid", "a top code"])
def test_the_step_that_values_show(step, how):
    values = step * np.rint(np.random.default_rng(0).normal(50.0, 10.0, 400) / step)
    values += 0.3 * (how == "shifted")
    values[0] += 0.123 * (how == "one off the grid")
    values = np.minimum(values, 71.3) if how == "a top code" else values
    assert step_of(values) == pytest.approx(step)


@pytest.mark.parametrize("n", [20, 200, 5000])
def test_values_that_are_not_rounded_show_no_step(n):
    rng = np.random.default_rng(n)
    values = rng.normal(50.0, 10.0, n)
    assert step_of(values) == 0.0
    assert step_of(np.where(rng.random(n) < 0.3, 0.0, values)) == 0.0  # many zeros are no step
    regression = sr.Regression("y ~ 1")
    fitted = sr.fit(regression, pd.DataFrame({"y": values}), seed=1)
    for digits in (1, 2, 3):  # fine ones, few of which repeat, are fine
        step = step_of(values.round(digits))
        assert not is_coarse(regression, fitted.models[0].posterior, values, step)


@pytest.mark.parametrize(("sd", "family"), [(0.6, "rounded_gaussian"), (30.0, "gaussian")])
def test_whole_numbers_are_modelled_as_such_where_it_matters(sd, family):
    fitted = sr.fit(sr.Regression("y ~ x"), people(sd), seed=1)
    assert fitted.models[0].family == family
    assert fitted.plan.regressions[0].distribution.name == family
    (release,) = fitted.synthesize(1, seed=2)
    assert release["y"].dtype == np.int64


def test_the_fit_recovers_sigma_without_the_roundings_own_variance():
    """sd 0.3 of a step: rounding adds as much variance again to what a density sees."""
    rng = np.random.default_rng(2)
    data = pd.DataFrame({"y": np.rint(rng.normal(4.3, 0.45, 4000)).astype(int)})
    posterior = sr.fit(sr.Regression("y ~ 1"), data, seed=1).describe()
    for name, truth in (("Intercept", 4.3), ("sigma", 0.45)):
        row = posterior.loc["y", name]
        assert abs(row["mean"] - truth) < 4 * row["sd"]
        assert row["sd"] < 0.02


def test_it_is_saved_with_its_step(tmp_path):
    data = people().assign(y=lambda d: d["y"] / 2)
    fitted = sr.fit(sr.Regression("y ~ x", sr.RoundedGaussian(0.5)), data, seed=1)
    fitted.save(tmp_path / "fit.nc")
    loaded = sr.Synthesizer.load(tmp_path / "fit.nc")
    assert loaded.plan.regressions[0].distribution == sr.RoundedGaussian(0.5)
    pd.testing.assert_frame_equal(loaded.synthesize(1, seed=3)[0], fitted.synthesize(1, seed=3)[0])


@pytest.mark.parametrize("step", [0, -1, np.inf, np.nan, True, "1"])
def test_a_step_is_a_positive_number(step):
    with pytest.raises(sr.OptionError, match="must be a number above 0"):
        sr.RoundedGaussian(step)


def test_values_off_the_grid_are_refused():
    with pytest.raises(sr.DataError, match=r"must be multiples of 2; \d+ values are not"):
        sr.fit(sr.Regression("y ~ x", sr.RoundedGaussian(2)), people(), seed=1)


def test_a_transformed_response_is_refused():
    with pytest.raises(sr.PlanError, match="does not take; it takes whole numbers"):
        sr.Regression("log(y) ~ x", "rounded_gaussian")


def test_guesses_are_multiples_of_the_step():
    data = people().assign(y=lambda d: d["y"] / 2)
    fitted = sr.fit(sr.Regression("y ~ x", sr.RoundedGaussian(0.5)), data, seed=1)
    release = fitted.synthesize(1, seed=2)
    risk = sr.attribute_risk(fitted, release, question="paper")
    guesses = risk.marginal("y")["value"].to_numpy()
    assert guesses.shape[1] == 11
    near = guesses[:, 4:7]  # a tenth of 2.5 is half a step: one on either side
    np.testing.assert_array_equal(near - near[:, [1]], np.tile([-0.5, 0.0, 0.5], (len(data), 1)))
    assert (risk.records["n_guesses"] == 3).all()
    spaced = sr.attribute_risk(fitted, release, guesses=sr.Interval(5, -1.0, 9.2), question="paper")
    values = spaced.marginal("y")["value"].to_numpy()
    np.testing.assert_array_equal(2 * values, np.rint(2 * values))
    assert values.min() < 0  # as no count is


def test_categories_that_no_row_has_do_not_leave():
    rng = np.random.default_rng(0)
    levels = pd.CategoricalDtype(["a", "b", "secret"])
    data = pd.DataFrame(
        {
            "r": pd.Categorical(rng.choice(["a", "b"], 60), dtype=levels),
            "kept": pd.Categorical(rng.choice(["a", "b"], 60), dtype=levels),
            "x": rng.normal(size=60),
        }
    )
    fitted = sr.fit([sr.Regression("r ~ 1", "categorical"), sr.Regression("x ~ r")], data, seed=1)
    for dataset in fitted.synthesize(2, seed=2):
        for name in ("r", "kept"):
            assert set(dataset[name].cat.categories) == {"a", "b"}
        sr.attribute_risk(fitted, dataset, question="paper")
