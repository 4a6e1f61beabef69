"""How far each estimator is from the truth: root mean square errors of the probabilities.

The truth is exact for gaussian models, else the stacked estimate with many draws. Over a few fits
with other random numbers, of one release: ``make bench`` prints the table.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

import synrisk as sr

N_FITS, N_RECORDS, MANY = 6, 300, 20_000


def people() -> pd.DataFrame:
    """Return the built-in sample with fifty more predictors of no use."""
    data = sr.load_households()
    rng = np.random.default_rng(3)
    noise = {f"z{k}": rng.normal(size=len(data)) for k in range(51)}
    return pd.concat([data, pd.DataFrame(noise)], axis=1)


def models() -> dict[str, tuple[list[sr.Regression], int]]:
    """Return the models of the table, each with its number of draws."""
    many = " + ".join(f"z{k}" for k in range(51))
    some = " + ".join(f"z{k}" for k in range(20))
    few = " + ".join(f"z{k}" for k in range(4))
    second = [sr.Regression("LogExpenditure ~ 1"), sr.Regression("LogIncome ~ LogExpenditure")]
    counts = "KidsCount ~ LogExpenditure + Urban"
    return {
        "application 2 (5 parameters)": (second, 50),
        "linear, 53 parameters": ([sr.Regression(f"LogIncome ~ {many}")], 500),
        "Poisson 3": ([sr.Regression(counts, "poisson")], 500),
        "Bernoulli 3": ([sr.Regression("Urban ~ LogIncome + z0", "bernoulli")], 500),
        "Poisson 23": ([sr.Regression(f"{counts} + {some}", "poisson")], 500),
        "Race 10": ([sr.Regression("Race ~ LogIncome", "categorical")], 500),
        "Race 30": ([sr.Regression(f"Race ~ LogIncome + {few}", "categorical")], 500),
    }


def errors(
    plan: list[sr.Regression],
    n_draws: int,
    data: pd.DataFrame,
    n_fits: int = N_FITS,
    many: int = MANY,
) -> dict[str, Any]:
    """Return the root mean square error of each estimator."""
    names = {name for r in plan for name in (r.response, *r.parsed.predictors)}
    used = data[[name for name in data.columns if name in names]]
    labels = used.index[:N_RECORDS]
    best = sr.fit(plan, used, n_draws=many, seed=99)
    release = best.synthesize(1, seed=5)
    truth = sr.attribute_risk(best, release, records=labels, diagnostics=False, question="paper")
    expected = truth.records["probability"]
    row: dict[str, Any] = {"draws": n_draws, "spread": float(expected.std())}
    squares: dict[str, list[float]] = {"paper": [], "importance": [], "stacked": []}
    for seed in range(n_fits):
        fitted = sr.fit(plan, used, n_draws=n_draws, seed=seed)
        for name, found in squares.items():
            risk = sr.attribute_risk(
                fitted,
                release,
                question="paper",
                estimator=name,  # type: ignore[arg-type]
                records=labels,
                diagnostics=False,
            )
            found.append(float(((risk.records["probability"] - expected) ** 2).mean()))
    return row | {name: float(np.sqrt(np.mean(found))) for name, found in squares.items()}


def main() -> None:
    """Print the table."""
    data = people()
    rows = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sr.ReliabilityWarning)
        for name, (plan, n_draws) in models().items():
            rows[name] = errors(plan, n_draws, data)
            print(name, {key: f"{value:.1e}" for key, value in rows[name].items()}, flush=True)


if __name__ == "__main__":
    main()
