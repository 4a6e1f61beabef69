"""Plausible mistakes of a new user: each has one clear message, and no value of the data in it."""

import logging
import traceback

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

N = 60


def confidential():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "CaseID": rng.permutation(N) + 810_000,
            "Income": rng.normal(52_000.0, 9_000.0, N),
            "Spending": rng.normal(31_000.0, 4_000.0, N),
            "Kids": rng.poisson(1.2, N),
            "Owner": rng.integers(0, 2, N),
            "Region": rng.choice(["Quovadis", "Ramsgate", "Zyxwville"], N),
        }
    )


def synthetic(**changes):
    rng = np.random.default_rng(1)
    data = confidential().assign(
        Income=rng.normal(52_000.0, 9_000.0, N), Spending=rng.normal(31_000.0, 4_000.0, N)
    )
    return data.drop(columns="CaseID").assign(**changes)


def draws(*names):
    rng = np.random.default_rng(2)
    centre = {"Intercept": 40_000.0, "Spending": 0.4, "sigma": 9_000.0}
    return pd.DataFrame({name: rng.normal(centre.get(name, 0.1), 0.01, 20) for name in names})


PLAN = sr.Regression("Income ~ Spending")
DRAWS = draws("Intercept", "Spending", "sigma")


def fit(plan=PLAN, data=None, table=None, **options):
    data = confidential() if data is None else data
    return sr.Synthesizer.from_draws(plan, data, DRAWS if table is None else table, **options)


def fitted(formula="Income ~ Spending", data=None, *, family="gaussian", **options):
    data = confidential() if data is None else data
    return sr.fit(sr.Regression(formula, family), data, **{"seed": 1, **options})


def evaluate(release=None, **options):
    return sr.attribute_risk(
        fit(), synthetic() if release is None else release, **options, question="paper"
    )


def bad(column, rows, value):
    data = confidential()
    if isinstance(value, str):
        data[column] = data[column].astype(object)
    data.loc[rows, column] = value
    return data


MISTAKES = {
    "misspelt predictor": (
        lambda: fit(sr.Regression("Income ~ Spendings")),
        "no column 'Spendings'. Did you mean 'Spending'?",
    ),
    "misspelt family": (lambda: sr.Regression("Kids ~ Income", "poison"), "Did you mean 'poisson'"),
    "formula without tilde": (lambda: sr.Regression("Income + Spending"), "no '~'"),
    "square outside I()": (lambda: sr.Regression("Income ~ Spending^2"), "write I(x^2)"),
    "code in a formula": (
        lambda: sr.Regression("Income ~ __import__(os)"),
        "the function __import__ is not known",
    ),
    "log of the response": (lambda: sr.Regression("log(Race) ~ 1", "poisson"), "is transformed"),
    "order of the plan": (
        lambda: fit([sr.Regression("Income ~ Spending"), sr.Regression("Spending ~ 1")]),
        "uses Spending before it is synthesized",
    ),
    "synthesized twice": (lambda: fit([PLAN, PLAN]), "synthesized twice"),
    "string for a plan": (lambda: fit(["Income ~ Spending"]), "must be a Regression"),
    "missing values": (
        lambda: fit(data=bad("Spending", [3, 4, 5], np.nan)),
        "missing values in Spending (3)",
    ),
    "infinite values": (lambda: fit(data=bad("Income", [3], np.inf)), "1 infinite value"),
    "a stray word in a number column": (
        lambda: fit(data=bad("Spending", [3], "Jellybean")),
        "'Spending' is text, but 59 of its 60 distinct values read as numbers",
    ),
    "negative counts": (
        lambda: fit(sr.Regression("Kids ~ 1", "poisson"), bad("Kids", [1], -4)),
        "must be whole numbers from 0; 1 value is not",
    ),
    "income as a count": (
        lambda: fit(sr.Regression("Income ~ 1", "poisson")),
        "must be whole numbers from 0; 60 values are not",
    ),
    "binary with three values": (
        lambda: fit(sr.Regression("Owner ~ 1", "bernoulli"), bad("Owner", [0], 2)),
        "must be 0 and 1, booleans, or a factor with two levels; 1 value is not",
    ),
    "text as gaussian": (
        lambda: fit(sr.Regression("Region ~ 1")),
        "it is a factor with 3 levels",
    ),
    "duplicate ids": (
        lambda: fit(data=bad("CaseID", [0, 1, 2], 810_000), id="CaseID"),
        "the column 'CaseID' repeats",
    ),
    "misspelt id": (lambda: fit(id="caseid"), "Did you mean 'CaseID'"),
    "unknown type": (lambda: fit(types={"Region": "nominal"}), "must be 'category', 'numeric'"),
    "levels that lack one": (
        lambda: fit(
            sr.Regression("Region ~ 1", "categorical"), types={"Region": ["Quovadis", "Ramsgate"]}
        ),
        "(1 distinct level) that are not among its 2 known levels",
    ),
    "draws without sigma": (
        lambda: fit(table=draws("Intercept", "Spending")),
        "Missing: sigma",
    ),
    "draws of another model": (
        lambda: fit(table=draws("Intercept", "Kids", "sigma")),
        "Missing: Spending. Left over: Kids.",
    ),
    "draws in the wrong number": (lambda: fit(table=[DRAWS, DRAWS]), "draws= holds 2 tables"),
    "empty draws": (lambda: fit(table=DRAWS.iloc[:0]), "no rows"),
    "draws that are not finite": (
        lambda: fit(table=DRAWS.assign(sigma=np.nan)),
        "20 draws are not a finite number",
    ),
    "file that is not there": (lambda: fit(data="people.csv"), "there is no file people.csv"),
    "an array for the data": (lambda: fit(data=np.zeros((3, 3))), "expected a data frame"),
    "frame instead of synthesizer": (
        lambda: sr.attribute_risk(confidential(), synthetic(), question="paper"),
        "must be a Synthesizer",
    ),
    "release lacks a column": (
        lambda: evaluate(synthetic().drop(columns="Spending")),
        "Synthetic dataset 1: there is no column 'Spending'",
    ),
    "new level in the release": (
        lambda: sr.attribute_risk(
            fit(
                sr.Regression("Income ~ Region"),
                table=draws("Intercept", "RegionRamsgate", "RegionZyxwville", "sigma"),
            ),
            synthetic(Region="Marzipan"),
            question="paper",
        ),
        "60 values (1 distinct level) that are not among its 3 known levels",
    ),
    "missing values in the release": (
        lambda: evaluate(synthetic(Income=np.nan)),
        "Synthetic dataset 1: missing values in Income (60)",
    ),
    "raw twin in the release": (
        lambda: sr.attribute_risk(
            fit(), synthetic(Thousands=confidential()["Income"].to_numpy() / 1000), question="paper"
        ),
        "'Thousands' gives the synthesized 'Income' away",
    ),
    "no dataset": (lambda: evaluate([]), "The release is empty"),
    "one guess": (lambda: evaluate(guesses=1), "whole number from 2"),
    "guesses for a column that is not synthesized": (
        lambda: evaluate(guesses={"Spending": 5}),
        "names Spending, which is not synthesized",
    ),
    "levels for a continuous variable": (
        lambda: evaluate(guesses=sr.AllLevels()),
        "which is continuous",
    ),
    "repeated guesses": (
        lambda: evaluate(guesses=sr.Values([1.0, 1.0, 2.0])),
        "must be distinct",
    ),
    "top-code below the data": (
        lambda: evaluate(guesses=sr.Relative(5, within=(0, 40_000))),
        "outside within",
    ),
    "guesses as a range": (lambda: evaluate(guesses=range(5)), "guesses= takes"),
    "probabilities instead of logs": (
        lambda: evaluate(guesses=3, intruder_prior=[0.2, 0.3, 0.5]),
        "Pass numpy.log",
    ),
    "more draws than there are": (lambda: evaluate(n_draws=21), "fewer draws for Income (20)"),
    "no draws": (lambda: evaluate(n_draws=0), "whole number from 1"),
    "misspelt estimator": (lambda: evaluate(estimator="papr"), "Did you mean 'paper'"),
    "unknown record": (lambda: evaluate(records=[3, 999]), "1 label is not among"),
    "record twice": (lambda: evaluate(records=[3, 3]), "repeats 1 label"),
    "a grid too large": (
        lambda: evaluate(guesses=sr.Values(np.arange(2_100_000.0))),
        "2,100,000 cells a record",
    ),
    "unknown group": (lambda: evaluate().summary(by="Regoin"), "Did you mean 'Region'"),
    "unknown variable": (lambda: evaluate().marginal("income"), "Did you mean 'Income'"),
    "unknown record in joint": (lambda: evaluate().joint("x"), "1 label is not among"),
    "draws of an unknown variable": (lambda: fit().draws("Kids"), "is not synthesized"),
    "collinear predictors": (
        lambda: fitted("Income ~ Spending + I(Spending / 1000)"),
        "are collinear",
    ),
    "a copy as a predictor": (
        lambda: fitted("Income ~ Copy", confidential().assign(Copy=lambda d: 2 * d["Income"])),
        "'Copy', so that released as it is it gives the synthesized 'Income' away",
    ),
    "one value": (
        lambda: fitted("Income ~ Country", confidential().assign(Country=826.5)),
        "Country has the same value for every record",
    ),
    "an unknown prior": (lambda: fitted(prior="jeffreys"), "prior must be one of"),
    "a prior of nothing": (
        lambda: fitted(prior={"Spendings": sr.Normal(0, 1)}),
        "Did you mean 'Spending'",
    ),
    "a prior for a level": (
        lambda: fitted("Income ~ Region", prior={"Region[T.Mars]": sr.Normal(0, 1)}),
        "They have Intercept, Region[*], sigma",
    ),
    "exact draws of a count": (
        lambda: fitted("Kids ~ 1", family="poisson", prior="conjugate"),
        "for gaussian models",
    ),
    "data as a seed": (lambda: fitted(seed=confidential()), "seed must be a whole number"),
    "data as n_draws": (lambda: fitted(n_draws=confidential()), "got a DataFrame"),
    "data as m": (lambda: fitted().synthesize(confidential()), "got a DataFrame"),
    "missing values in a fit": (
        lambda: fitted(data=bad("Spending", [3, 7], np.nan)),
        "missing values in Spending (2)",
    ),
    "a negative count in a fit": (
        lambda: fitted("Kids ~ 1", bad("Kids", [3], -52_871), family="poisson"),
        "1 value is not",
    ),
    "a raw twin in what is synthesized": (
        lambda: fitted(data=confidential().assign(Thousands=lambda d: d["Income"].round(-4))),
        "'Thousands', so that released as it is it gives the synthesized 'Income' away",
    ),
    "a refit of draws made elsewhere": (lambda: fit().refit(synthetic()), "made elsewhere"),
    "a root that the model makes negative": (
        lambda: fitted("sqrt(Kids) ~ 1").synthesize(seed=1),
        "drawn below what a root can be",
    ),
    "log of a guess below zero": (
        lambda: sr.attribute_risk(
            fit(
                [sr.Regression("Spending ~ 1"), sr.Regression("Income ~ log(Spending)")],
                table=[draws("Intercept", "sigma"), draws("Intercept", "log(Spending)", "sigma")],
            ),
            synthetic(),
            guesses={"Spending": sr.Additive(5, 90_000, 1)},
            question="paper",
        ),
        "log(Spending) is not a finite number",
    ),
}


def chain(error):
    """Yield the error and everything that a traceback would show with it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_one_clear_message_without_values(name, caplog, capsys):
    call, expected = MISTAKES[name]
    logging.getLogger("numba").setLevel(logging.WARNING)  # it logs addresses while compiling
    with caplog.at_level(logging.DEBUG), pytest.raises(sr.SynriskError) as caught:
        call()
    message = str(caught.value)
    assert expected in message
    assert len(message) < 700
    assert message[-1] in ".?"
    shown = "".join(
        "".join(traceback.format_exception_only(error)) + repr(error.args)
        for error in chain(caught.value)
    )
    printed = capsys.readouterr()
    shown += printed.out + printed.err + caplog.text
    for frame in (confidential(), synthetic()):
        for value in frame.to_numpy().ravel():
            for text in {str(value), f"{value:.6g}" if isinstance(value, float) else str(value)}:
                if len(text) > 3:
                    assert text not in shown
    for word in ("Jellybean", "Marzipan", "Quovadis", "Zyxw"):
        assert word not in shown


def test_there_are_more_than_twenty():
    assert len(MISTAKES) >= 20
