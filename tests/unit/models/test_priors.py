"""Priors: what users write, how it is scaled, and that describe shows it."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.cases import people

import synrisk as sr
from synrisk.models.priors import prior_from_json, prior_to_json


def shown(formula, family="gaussian", data=None, **options):
    fitted = sr.fit(
        sr.Regression(formula, family), people(80) if data is None else data, seed=1, **options
    )
    return fitted.describe().droplevel("variable")["prior"].to_dict(), fitted


def normal(mean, sd):
    return str(sr.Normal(mean, sd))


def test_default_priors_are_scaled_as_rstanarm_scales_them():
    data = people(80)
    y, x = data["b"], data["x"]
    indicator = (data["u"] == "q").std()
    found, _ = shown("b ~ x + u")
    assert found["Intercept"] == normal(y.mean(), 2.5 * y.std())
    assert found["x"] == normal(0.0, 2.5 * y.std() / x.std())
    assert found["u[T.q]"] == normal(0.0, 2.5 * y.std() / indicator)
    assert found["sigma"] == str(sr.Exponential(1.0 / y.std()))
    counts, _ = shown("k ~ x", "poisson")
    assert counts == {"Intercept": normal(0.0, 2.5), "x": normal(0.0, 2.5 / x.std())}


def test_a_transformed_response_scales_by_its_own_values():
    data = people(80)
    found, _ = shown("log(b) ~ x", data=data)
    logs = np.log(data["b"])
    assert found["Intercept"] == normal(logs.mean(), 2.5 * logs.std())


def test_without_an_intercept_scales_are_root_mean_squares():
    data = people(80)
    found, _ = shown("b ~ 0 + x", data=data)
    rms = {name: np.sqrt((data[name] ** 2).mean()) for name in ("b", "x")}
    assert found["x"] == normal(0.0, 2.5 * rms["b"] / rms["x"])


def test_the_papers_prior_is_not_scaled():
    data = people(80)
    found, _ = shown("b ~ x", prior="paper", data=data)
    assert found["x"] == normal(0.0, 2.0)
    assert found["Intercept"] == normal(data["b"].mean(), 2.5 * data["b"].std())


def test_priors_by_parameter_level_and_regression():
    found, _ = shown(
        "r ~ x",
        "categorical",
        prior={
            "x": sr.Normal(0.1, 0.5),
            "top:x": sr.Normal(0.2, 0.6),
            "Intercept": sr.Normal(1, 2),
        },
    )
    assert found["mid:x"] == normal(0.1, 0.5)
    assert found["top:x"] == normal(0.2, 0.6)
    assert found["mid:Intercept"] == found["top:Intercept"] == normal(1, 2)
    plan = [sr.Regression("b ~ x", prior=sr.Normal(0, 7)), sr.Regression("c ~ x")]
    described = sr.fit(plan, people(80), prior=sr.Normal(0, 9), seed=1).describe()["prior"]
    assert described["b", "x"] == normal(0, 7)
    assert described["c", "x"] == normal(0, 9)


def test_a_common_dict_serves_the_models_that_have_the_parameter():
    plan = [sr.Regression("b ~ 1"), sr.Regression("c ~ x"), sr.Regression("r ~ x", "categorical")]
    prior = {"top:x": sr.Normal(0, 3), "x": sr.Normal(0, 2)}  # in whatever order
    found = sr.fit(plan, people(80), prior=prior, seed=1).describe()["prior"]
    assert found["c", "x"] == found["r", "mid:x"] == normal(0, 2)
    assert found["r", "top:x"] == normal(0, 3)
    with pytest.raises(sr.PriorError, match="no parameter of these models"):
        sr.fit(plan, people(80), prior={"xx": sr.Normal(0, 1)}, seed=1)


def test_fractions_are_numbers():
    half = sr.Normal(Fraction(1, 2), Fraction(3, 2))
    assert half == sr.Normal(0.5, 1.5)
    assert isinstance(half.mean, float)


def test_a_narrow_prior_holds_its_coefficient():
    _, fitted = shown("b ~ x", prior={"x": sr.Normal(-3.0, 1e-6)})
    assert fitted.describe().loc[("b", "x"), "mean"] == pytest.approx(-3.0, abs=1e-5)


SPECS = [
    "paper",
    sr.Normal(0.1, 1 / 3),
    sr.Conjugate(np.inf, 0),
    {"x": sr.Normal(0, 0.7), "sigma": sr.Exponential(1 / 7)},
    (sr.Normal(0.1, 2.0), sr.Exponential(3.0)),
]


@pytest.mark.parametrize("spec", SPECS, ids=["name", "normal", "conjugate", "dict", "tuple"])
def test_priors_are_stored_exactly(spec):
    assert prior_from_json(prior_to_json(spec)) == spec


@pytest.mark.parametrize(
    "make",
    [
        lambda: sr.Normal(0, 0),
        lambda: sr.Normal(np.nan, 1),
        lambda: sr.Normal("0", 1),
        lambda: sr.Normal(0, np.inf),
        lambda: sr.Exponential(0),
        lambda: sr.Exponential(True),
        lambda: sr.Conjugate(0),
        lambda: sr.Conjugate(1, -1),
        lambda: sr.Conjugate(1, np.inf),
        lambda: sr.Conjugate(1e155),
        lambda: sr.Conjugate(10**400),
        lambda: sr.Normal(0, 1e-160),
        lambda: sr.Normal(1e200, 1),
        lambda: sr.Exponential(1e308),
        lambda: sr.Regression("y ~ x", prior="flat"),
        lambda: sr.Regression("y ~ x", prior={"x": 2.0}),
        lambda: sr.Regression("y ~ x", prior=3),
    ],
)
def test_what_is_no_prior_is_refused(make):
    with pytest.raises(sr.PriorError):
        make()
