"""The built-in sample from end to end: draws made here, a release, and its risk.

The paper's second application: LogExpenditure, then LogIncome given LogExpenditure, both linear.
The draws are exact draws from each regression's posterior under the reference prior
p(β, σ²) ∝ 1/σ², made with NumPy alone, as somebody would who brings draws of their own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import synrisk as sr

N_DRAWS, SEED = 1000, 1
FOLDER = Path("build/demo")


def posterior_draws(
    y: np.ndarray, predictors: dict[str, np.ndarray], rng: np.random.Generator
) -> pd.DataFrame:
    """Draw σ² from its scaled inverse χ² distribution, then β given σ² from its normal one."""
    x = np.column_stack([np.ones(len(y)), *predictors.values()])
    n, p = x.shape
    estimate, residual, _, _ = np.linalg.lstsq(x, y)
    sigma = np.sqrt(residual[0] / rng.chisquare(n - p, N_DRAWS))
    root = np.linalg.cholesky(np.linalg.inv(x.T @ x))
    beta = estimate + sigma[:, None] * (rng.standard_normal((N_DRAWS, p)) @ root.T)
    return pd.DataFrame(beta, columns=["(Intercept)", *predictors]).assign(sigma=sigma)


def main() -> None:
    """Evaluate the sample and print what was found."""
    rng = np.random.default_rng(SEED)
    people = sr.load_households()
    expenditure = people["LogExpenditure"].to_numpy()
    draws = [
        posterior_draws(expenditure, {}, rng),
        posterior_draws(people["LogIncome"].to_numpy(), {"LogExpenditure": expenditure}, rng),
    ]

    # A release: the last draw of each posterior, the second with *synthetic* expenditure.
    first, second = (table.iloc[-1] for table in draws)
    release = people.copy()
    release["LogExpenditure"] = rng.normal(first["(Intercept)"], first["sigma"], len(people))
    mean = second["(Intercept)"] + second["LogExpenditure"] * release["LogExpenditure"]
    release["LogIncome"] = rng.normal(mean, second["sigma"])

    plan = [
        sr.Regression("LogExpenditure ~ 1", family="gaussian"),
        sr.Regression("LogIncome ~ LogExpenditure", family="gaussian"),
    ]
    synthesizer = sr.Synthesizer.from_draws(plan, people, draws)
    risk = sr.attribute_risk(synthesizer, release)

    print(f"{len(people):,} simulated households; {len(draws[0]):,} draws a model; one release.")
    print(risk)
    print()
    print("Probability that the intruder's guess is the truth:")
    print(risk.summary().round(5).to_string())
    print()
    print("The same by Urban:")
    print(risk.summary(by="Urban").round(5).to_string())
    print()
    for note in risk.notes:
        print(f"Note: {note}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    risk.summary().to_csv(FOLDER / "summary.csv")
    risk.records.to_csv(FOLDER / "records.csv")
    print()
    print(f"Written: {FOLDER / 'summary.csv'}, and a row a record in {FOLDER / 'records.csv'}.")


if __name__ == "__main__":
    main()
