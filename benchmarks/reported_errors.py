"""Reported errors against the actual scatter, and how often reliable numbers are far off.

For each model and number of draws, over fits with other random numbers, of one release: the root
mean square of the reported errors over that of the scatter, and the share of the records called
reliable that are off by more than four errors from a long run. Run as a script it prints the table,
in about half an hour.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from errors import models, people

import synrisk as sr

N_RECORDS, LONG = 300, 60_000
N_FITS = {200: 60, 1000: 30, 4000: 10}
MODELS = ("Poisson 3", "Poisson 23", "Race 10", "Race 30")


def rare_outcome() -> tuple[list[sr.Regression], pd.DataFrame]:
    """Return a logistic regression of 22 parameters with 62 events among 1,000 records."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(1000, 21))
    score = x @ (0.3 * rng.normal(size=21)) + rng.logistic(size=1000)
    data = pd.DataFrame(x, columns=[f"x{k}" for k in range(21)])
    formula = "o ~ " + " + ".join(data.columns)
    data["o"] = (score >= np.sort(score)[-62]).astype(int)
    return [sr.Regression(formula, "bernoulli")], data


def rows(name: str, plan: list[sr.Regression], data: pd.DataFrame) -> None:
    """Print a line for each number of draws."""
    names = {name for r in plan for name in (r.response, *r.parsed.predictors)}
    used = data[[column for column in data.columns if column in names]]
    labels = used.index if len(used) <= 1000 else used.index[:N_RECORDS]
    long = sr.fit(plan, used, n_draws=LONG, seed=77)
    release = long.synthesize(1, seed=5)
    risk = sr.attribute_risk(long, release, records=labels, diagnostics=False, question="paper")
    truth = risk.records["probability"].to_numpy()
    for n_draws, n_fits in N_FITS.items():
        fits = [sr.fit(plan, used, n_draws=n_draws, seed=seed) for seed in range(n_fits)]
        tables = [
            sr.attribute_risk(one, release, records=labels, question="paper").records
            for one in fits
        ]
        p, mcse, reliable = (
            np.array([table[column] for table in tables])
            for column in ("probability", "mcse", "reliable")
        )
        ratio = np.sqrt(np.mean(mcse**2) / np.var(p, axis=0, ddof=1).mean())
        off = (np.abs(p - truth) > 4 * mcse)[reliable].mean()
        print(
            f"{name:14} {n_draws:5} draws: reported over actual {ratio:.2f}, reliable "
            f"{reliable.mean():.4f}, of these off by more than four errors {off:.5f}",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sr.ReliabilityWarning)
        rows("Bernoulli 22", *rare_outcome())
        data, all_models = people(), models()
        for name in MODELS:
            rows(name, all_models[name][0], data)


if __name__ == "__main__":
    main()
