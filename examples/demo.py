"""The built-in sample from end to end: models fitted, three synthetic datasets, and their risk.

The paper's second application: LogExpenditure, then LogIncome given LogExpenditure, both linear.
"""

from __future__ import annotations

from pathlib import Path

import synrisk as sr

FOLDER = Path("build/demo")


def main() -> None:
    """Fit, synthesize, evaluate, and print what was found."""
    people = sr.load_households()
    plan = [
        sr.Regression("LogExpenditure ~ 1", family="gaussian"),
        sr.Regression("LogIncome ~ LogExpenditure", family="gaussian"),
    ]
    synthesizer = sr.fit(plan, people, n_draws=1000, seed=1)
    release = synthesizer.synthesize(m=3, seed=2)
    risk = sr.attribute_risk(synthesizer, release)

    print(f"{len(people):,} simulated households; {len(release)} synthetic datasets.")
    print()
    print("The models:")
    shown = ["prior", "mean", "sd", "engine", "ess", "khat"]
    print(synthesizer.describe()[shown].round(4).to_string())
    print()
    print(risk)
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
    for number, dataset in enumerate(release, 1):
        dataset.to_csv(FOLDER / f"synthetic{number}.csv", index=False)
    print()
    print(f"Written: {FOLDER / 'summary.csv'}, a row a record in {FOLDER / 'records.csv'}, and")
    print(f"the release in {FOLDER / 'synthetic1.csv'} and the two beside it.")


if __name__ == "__main__":
    main()
