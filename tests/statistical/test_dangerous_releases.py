"""Releases that must never be called passed, as a whole: fit, release, risk, verdict.

Power where people are fewer, copies rarer or noise larger is told in
docs/explanation/what-the-number-means.md; false alarms are tested with the checks.
"""

import numpy as np
import pandas as pd
import pytest
from helpers.dangerous import MAKERS, outcome
from helpers.secret import SECRET

import synrisk as sr


@pytest.mark.parametrize(("n", "m"), [(60, 1), (60, 5), (500, 1), (2000, 1)])
def test_releases_of_copied_people_never_pass(n, m):
    passed = [
        kind
        for kind, (least, _) in MAKERS.items()
        if n >= least and outcome(kind, n, m, seed=1, executor="serial") == "passed"
    ]
    assert passed == []


@pytest.mark.parametrize("m", [1, 5])
@pytest.mark.parametrize(("n", "outlier"), [(60, 1000), (300, 1000), (2000, 300)])
def test_an_income_that_stands_out_fails(n, outlier, m):
    """One of 1,000 among incomes below 100 inflates the release plainly."""
    rng = np.random.default_rng(n)
    data = pd.DataFrame({"x": rng.normal(size=n), "Income": 50 + 10 * rng.normal(size=n)})
    data.loc[0, "Income"] = outlier
    fitted = sr.fit(sr.Regression("Income ~ x"), data, seed=SECRET)
    verdict = sr.attribute_risk(fitted, fitted.synthesize(m, seed=SECRET + m)).verdict(further=0)
    assert verdict.outcome == "failed"
    assert list(verdict.records.index) == [0]


def test_people_alone_in_their_occupation_fail():
    """Their coefficient is their own income, and the release shows it."""
    rng = np.random.default_rng(3)
    jobs = np.array(
        [*("common" if k % 2 else "other" for k in range(180)), *(f"job {k}" for k in range(20))]
    )
    data = pd.DataFrame({"Job": jobs, "Income": np.exp(10 + 0.8 * rng.normal(size=200))})
    fitted = sr.fit(sr.Regression("log(Income) ~ Job"), data, seed=SECRET)
    risk = sr.attribute_risk(fitted, fitted.synthesize(5, seed=SECRET))
    verdict = risk.verdict(further=0)
    assert verdict.outcome == "failed"
    assert set(verdict.records.index) & set(range(180, 200))
    paper = sr.attribute_risk(fitted, fitted.synthesize(5, seed=SECRET), question="paper")
    assert paper.verdict(sr.Criteria(lift=2), further=0).outcome == "passed"
