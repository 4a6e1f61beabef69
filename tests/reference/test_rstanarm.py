"""Posteriors against rstanarm's on the paper's own sample, under the paper's priors.

4,000 draws of rstanarm 2.21.3 (R 4.2.2), given as mean ± sd. The sample is not part of the project.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

CE = Path(__file__).parents[3] / "shared" / "oracle" / "ce" / "confidential.csv"
SIGMAS = 4.5
N_R = 4000
FITS = {
    "KidsCount ~ LogExpenditure + Urban": (
        "poisson",
        {
            "Intercept": (-3.996, 0.221),
            "LogExpenditure": (0.3537, 0.0228),
            "Urban": (0.1245, 0.0895),
        },
    ),
    "LogIncome ~ LogExpenditure": (
        "gaussian",
        {
            "Intercept": (3.867, 0.147),
            "LogExpenditure": (0.7692, 0.0166),
            "sigma": (1.0470, 0.0106),
        },
    ),
}


@pytest.mark.parametrize("formula", FITS)
def test_fits_agree_with_rstanarm(formula):
    if not CE.exists():
        pytest.skip("the paper's sample is not at hand (shared/oracle/ce)")
    people = pd.read_csv(CE).assign(Urban=lambda d: (d["UrbanRural"] == 1).astype(int))
    family, expected = FITS[formula]
    regression = sr.Regression(formula, family)
    people = people[[regression.response, *regression.parsed.predictors]]
    fitted = sr.fit(regression, people, n_draws=8000, prior="paper", seed=1)
    described = fitted.describe().droplevel("variable")
    n = described["ess"].iloc[0]
    for name, (mean, sd) in expected.items():
        rounding = 10.0 ** -(len(str(mean).split(".")[1])) / 2
        error = sd * np.sqrt(1 / n + 1 / N_R)
        assert abs(described.loc[name, "mean"] - mean) < SIGMAS * error + rounding
        # The sd of N normal draws has the standard error sd/√(2N).
        assert abs(described.loc[name, "sd"] - sd) < SIGMAS * error / np.sqrt(2) + rounding
