"""Transformed responses: the model's scale, the variable's own, and the risk on both."""

import numpy as np
import pandas as pd
import pytest
from helpers.cases import gaussian_draws

import synrisk as sr
from synrisk.models.formula.parser import parse

FORMS = {
    "log(y)": np.log,
    "log1p(y)": np.log1p,
    "log2(y)": np.log2,
    "log10(y)": np.log10,
    "sqrt(y)": np.sqrt,
    "y / 1000": lambda y: y / 1000,
    "3 - 2*y": lambda y: 3 - 2 * y,
    "-y": lambda y: -y,
    "I((y - 5) / -2)": lambda y: (y - 5) / -2,
    "log(y/10 + 1)": lambda y: np.log(y / 10 + 1),
    "2 * sqrt(I(y + 1)) - 1": lambda y: 2 * np.sqrt(y + 1) - 1,
}


@pytest.mark.parametrize("text", FORMS)
def test_a_transform_is_the_function_and_comes_back(text):
    transform = parse(f"{text} ~ x").transform
    y = np.array([0.3, 1.0, 7.5, 4000.0])
    np.testing.assert_allclose(transform.apply(y), FORMS[text](y), rtol=1e-14)
    np.testing.assert_allclose(transform.inverse(transform.apply(y)), y, rtol=1e-12)
    assert parse(f"{text} ~ x").response == "y"


def test_a_plain_response_has_no_steps():
    assert parse("y ~ x").transform.steps == ()
    assert parse("I(y) ~ x").transform.steps == ()


def test_negative_roots_are_counted():
    transform = parse("2*sqrt(y) ~ 1").transform
    assert transform.n_folded(np.array([-1.0, 2.0, -0.1])) == 2
    assert parse("log(y) ~ 1").transform.n_folded(np.array([-1.0])) == 0


def incomes(n=30):
    rng = np.random.default_rng(5)
    log_income = rng.normal(10.0, 0.8, n)
    return pd.DataFrame(
        {"Income": np.exp(log_income), "LogIncome": log_income, "c": rng.normal(size=n)}
    )


def draws():
    return [
        gaussian_draws(40, ("Intercept",), (10.0,), seed=1),
        gaussian_draws(40, ("Intercept", "slope"), (-1.0, 0.1), seed=2, spread=0.05),
    ]


@pytest.mark.parametrize("estimator", ["paper", "importance"])
def test_a_logged_response_has_the_risk_of_a_column_of_logs(estimator):
    """The Jacobian of a guess is the same at every draw, so it cancels."""
    people = incomes()
    release = people.iloc[::-1].reset_index(drop=True)
    raw = sr.Synthesizer.from_draws(
        [sr.Regression("log(Income) ~ 1"), sr.Regression("c ~ log(Income)")],
        people[["Income", "c"]],
        draws(),
        rename={"slope": "log(Income)"},
    )
    logged = sr.Synthesizer.from_draws(
        [sr.Regression("LogIncome ~ 1"), sr.Regression("c ~ LogIncome")],
        people[["LogIncome", "c"]],
        draws(),
        rename={"slope": "LogIncome"},
    )
    one = sr.attribute_risk(raw, release[["Income", "c"]], estimator=estimator, question="paper")
    guesses = np.log(one.marginal("Income")["value"].to_numpy())
    two = sr.attribute_risk(
        logged,
        release[["LogIncome", "c"]],
        estimator=estimator,
        guesses={"LogIncome": sr.Values(guesses)},
        question="paper",
    )
    np.testing.assert_allclose(one.records["probability"], two.records["probability"], rtol=1e-11)
    np.testing.assert_allclose(
        one.records["probability_Income"], two.records["probability_LogIncome"], rtol=1e-11
    )
    assert one.records["probability"].std() > 1e-6
    best = one.records["best_guess_Income"]
    assert (one.records["abs_diff_Income"] == (best - people["Income"]).abs()).all()


def test_values_without_a_logarithm_are_refused():
    people = incomes().drop(columns="LogIncome")
    plan = sr.Regression("log(Income) ~ 1")
    with pytest.raises(sr.DataError, match=r"log\(Income\) is finite; 1 value is not"):
        sr.Synthesizer.from_draws(plan, people.assign(Income=people["Income"] * (people.index > 0)),
                                  draws()[0])  # fmt: skip
    synthesizer = sr.Synthesizer.from_draws(plan, people, draws()[0])
    bad = people[["Income"]].copy()
    bad.iloc[3] = -1.0
    with pytest.raises(sr.SyntheticDataError, match=r"log\(Income\) is finite; 1 value is not"):
        sr.attribute_risk(synthesizer, bad, question="paper")
    with pytest.raises(sr.GuessError, match=r"log\(Income\) is finite"):
        sr.attribute_risk(
            synthesizer,
            people[["Income"]][::-1],
            guesses=sr.Interval(11, -5e6, 5e6),
            question="paper",
        )


def test_the_transformed_twin_is_refused():
    people = incomes()
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("log(Income) ~ 1"), people, draws()[0])
    release = people.assign(Income=people["Income"].to_numpy()[::-1])
    with pytest.raises(sr.DisclosureError, match="'LogIncome' gives the synthesized 'Income' away"):
        sr.attribute_risk(synthesizer, release, question="paper")


def test_a_transformed_response_is_saved(tmp_path):
    people = incomes().drop(columns="LogIncome")
    plan = sr.Regression("log(Income / 1000) ~ 1")
    synthesizer = sr.Synthesizer.from_draws(plan, people, draws()[0])
    synthesizer.save(tmp_path / "s.nc")
    again = sr.Synthesizer.load(tmp_path / "s.nc")
    release = people[["Income"]][::-1]
    pd.testing.assert_frame_equal(
        sr.attribute_risk(synthesizer, release, question="paper").records,
        sr.attribute_risk(again, release, question="paper").records,
    )


@pytest.mark.parametrize("text", FORMS)
def test_the_jacobian_is_the_derivative(text):
    transform = parse(f"{text} ~ x").transform
    y, step = np.array([0.3, 1.0, 7.5, 40.0]), 1e-6
    slope = (transform.apply(y + step) - transform.apply(y - step)) / (2 * step)
    np.testing.assert_allclose(transform.log_derivative(y), np.log(np.abs(slope)), atol=1e-7)


def test_the_models_prior_of_a_logged_response_is_that_of_the_logs():
    """Cell widths on the variable's own scale times the Jacobian are widths of the logs."""
    people = incomes(60)
    fits = [
        sr.fit(sr.Regression(formula), people[[name]], seed=1, n_draws=10)
        for formula, name in (("log(Income) ~ 1", "Income"), ("LogIncome ~ 1", "LogIncome"))
    ]
    release = fits[0].synthesize(1, seed=2)[0]
    logs = np.linspace(7.0, 13.0, 400)
    one = sr.attribute_risk(
        fits[0],
        release,
        guesses=sr.Values(np.exp(logs)),
        intruder_prior="model",
        records=[3],
        question="paper",
    )
    two = sr.attribute_risk(
        fits[1],
        pd.DataFrame({"LogIncome": np.log(release["Income"])}),
        guesses=sr.Values(logs),
        intruder_prior="model",
        records=[3],
        question="paper",
    )
    # Midpoints on the two scales differ by the step of the logs, 0.015, relative to a cell.
    np.testing.assert_allclose(one.records["prior"], two.records["prior"], rtol=0.015)
    np.testing.assert_allclose(one.records["probability"], two.records["probability"], rtol=0.015)


def test_the_probability_of_being_near():
    people = incomes(40).drop(columns="LogIncome")
    fitted = sr.fit(sr.Regression("log(Income) ~ 1"), people, seed=1, n_draws=10)
    risk = sr.attribute_risk(fitted, fitted.synthesize(1, seed=2), question="paper")
    truth = risk.probability_within("Income", 0.0)
    np.testing.assert_allclose(truth, risk.records["probability_Income"])
    np.testing.assert_allclose(risk.probability_within("Income", 10.0, percent=True), 1.0)
    third = risk.probability_within("Income", 2.0, percent=True)  # three of eleven guesses
    joint = risk.joint(5)
    near = np.abs(joint["Income"] / people.loc[5, "Income"] - 1) <= 0.02 + 1e-9
    assert third[5] == pytest.approx(float(joint.where(near, 0.0).sum()))
    with pytest.raises(sr.OptionError, match="radius must be a number"):
        risk.probability_within("Income", -1.0)
