"""The built-in sample: simulated, not taken from anybody."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import softmax

from synrisk.base.seeds import stream

_SEED, _N = 20210101, 5126
_RACE_SHARES = np.array([0.80, 0.11, 0.004, 0.06, 0.005, 0.021])
_RACE_SLOPES = np.array([0.0, -0.35, -0.25, 0.30, 0.05, -0.10])  # in LogIncome, against level 1
_MOST_KIDS = 7


def load_households() -> pd.DataFrame:
    """Return a simulated sample of 5,126 households.

    Simulated from a fixed seed in the image of the Consumer Expenditure sample of the paper (its
    Table 1): the same variables, size and rough proportions, and no real household.

    Returns
    -------
    DataFrame
        ``Urban`` ("rural", "urban"), ``Race`` ("1" … "6", two of them rare), ``KidsCount`` (0–7),
        ``LogExpenditure`` (log of last quarter's expenditure) and ``LogIncome`` (log of last
        year's income), both in log US dollars.

    Examples
    --------
    >>> load_households().shape
    (5126, 5)
    """
    rng = stream(_SEED, "households")
    urban = rng.random(_N) < 0.94
    log_expenditure = rng.normal(8.63 + 0.25 * urban, 0.88)
    log_income = 3.87 + 0.77 * log_expenditure + rng.normal(0.0, 1.05, _N)
    centred = log_income - log_income.mean()
    shares = softmax(np.log(_RACE_SHARES) + _RACE_SLOPES * centred[:, None], axis=1)
    race = (rng.random((_N, 1)) >= np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)
    # More households without and with many children than a Poisson distribution has.
    rate = np.exp(-4.0 + 0.354 * log_expenditure + 0.12 * urban) * rng.gamma(0.9, 1 / 0.9, _N)
    kids = np.minimum(rng.poisson(rate), _MOST_KIDS)
    return pd.DataFrame(
        {
            "Urban": pd.Categorical.from_codes(
                urban.astype(np.int64), categories=pd.Index(["rural", "urban"])
            ),
            "Race": pd.Categorical.from_codes(
                race.astype(np.int64), categories=pd.Index(list("123456"))
            ),
            "KidsCount": kids.astype(np.int64),
            "LogExpenditure": np.round(log_expenditure, 6),
            "LogIncome": np.round(log_income, 6),
        }
    )
