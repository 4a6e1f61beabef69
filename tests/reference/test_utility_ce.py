"""Utility of the paper's own release, against another program. The sample is never committed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import propensity as plain
from scipy.stats import t

import synrisk as sr

CE = Path(__file__).parents[3] / "shared" / "oracle" / "ce"
COLUMNS = ["LogExpenditure", "LogIncome"]


@pytest.fixture(scope="module")
def sides():
    if not CE.is_dir():
        pytest.skip("the paper's sample is not at hand (shared/oracle/ce)")
    own = pd.read_csv(CE / "confidential.csv", usecols=COLUMNS)
    release = pd.read_csv(CE / "continuous_synthetic1.csv", usecols=COLUMNS)
    return own[COLUMNS], release[COLUMNS]


@pytest.mark.parametrize("model", ["main", "interactions"])
def test_propensity_scores(sides, model):
    own, release = sides
    row = sr.utility(own, release, propensity=model).propensity.loc[(model, 1)]
    y = np.repeat([0.0, 1.0], [len(own), len(release)])
    x = plain.columns(pd.concat(sides), {}, interactions=model == "interactions")
    p = plain.scores(x, y)
    c, n, k = y.mean(), len(y), x.shape[1] + 1
    assert row["pmse"] == pytest.approx(np.mean((p - c) ** 2), rel=1e-4)
    assert row["specks"] == pytest.approx(plain.distance(p[y == 0], p[y == 1]), abs=1e-3)
    assert row["expected"] == pytest.approx((k - 1) * (1 - c) * c / n)
    assert row["sd"] == pytest.approx(np.sqrt(2 * (k - 1)) * (1 - c) * c / n)


def test_overlap_of_a_regression(sides):
    analysis = sr.Regression("LogIncome ~ LogExpenditure")
    table = sr.utility(*sides, regressions=analysis, propensity="main").intervals
    row = table.loc[("LogIncome ~ LogExpenditure (gaussian)", "LogExpenditure")]
    intervals = []
    for side, factor in zip(sides, (1.0, 3.0), strict=True):  # r + (1 + r)/m with r = m = 1
        x, y = side["LogExpenditure"], side["LogIncome"]
        slope = np.cov(x, y)[0, 1] / x.var()
        residual = y - y.mean() - slope * (x - x.mean())
        df = len(x) - 2
        se = np.sqrt(factor * (residual**2).sum() / df / ((x - x.mean()) ** 2).sum())
        intervals.append((slope - t.ppf(0.975, df) * se, slope + t.ppf(0.975, df) * se))
    (low, high), (low2, high2) = intervals
    common = max(min(high, high2) - max(low, low2), 0.0)
    assert row["overlap"] == pytest.approx(
        (common / (high - low) + common / (high2 - low2)) / 2, rel=1e-6
    )
    assert row["low_confidential"] == pytest.approx(low)
    assert row["high_synthetic"] == pytest.approx(high2)


def test_a_release_of_the_other_columns_is_told_apart(sides):
    own, release = sides
    swapped = release.assign(LogIncome=release["LogIncome"].to_numpy()[::-1])
    honest, broken = (
        sr.utility(own, one, propensity="interactions").propensity["z"].item()
        for one in (release, swapped)
    )
    assert broken > 10 * max(honest, 1.0)
