"""How large gains are: linear models with and without an outlier, and models of levels and counts.

``python benchmarks/gains.py 5`` prints both tables, with five releases a row, of simulated data
and of the built-in sample of households.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

import synrisk as sr

LINEAR = (
    (72, 2, None), (72, 2, 1000.0), (300, 2, None), (300, 2, 1000.0), (2000, 2, None),
    (2000, 2, 300.0), (72, 31, None), (72, 61, None),
)  # fmt: skip
ALL = "LogIncome + LogExpenditure + Urban + KidsCount"
DISCRETE = {
    "Race, 10 parameters": ("Race ~ LogIncome", "categorical", (5126, 400)),
    "Race, 25": (f"Race ~ {ALL}", "categorical", (5126,)),
    "KidsCount, 3": ("KidsCount ~ LogExpenditure + Urban", "poisson", (5126, 300)),
    "KidsCount, 23": (
        "KidsCount ~ bs(LogIncome, df=10) + bs(LogExpenditure, df=10) + Urban + Race",
        "poisson",
        (5126,),
    ),
    "Urban, 3": ("Urban ~ LogIncome + LogExpenditure", "bernoulli", (5126, 200)),
}
LEVELS = {"Race": [str(k) for k in range(1, 7)], "Urban": ["rural", "urban"]}


def linear(n_releases: int) -> Iterator[dict[str, object]]:
    """Yield a row a table: incomes about 50 with a standard deviation of 10, record 0 apart."""
    for n, n_parameters, outlier in LINEAR:
        rng = np.random.default_rng([n, n_parameters])
        names = [f"x{k}" for k in range(n_parameters - 1)]
        data = pd.DataFrame(rng.normal(size=(n, len(names))), columns=names)
        data["y"] = 50.0 + 10.0 * rng.normal(size=n)
        if outlier is not None:
            data.loc[0, "y"] = outlier
        fitted = sr.fit(sr.Regression("y ~ " + " + ".join(names)), data)
        first, others = [], []
        for _ in range(n_releases):
            records = sr.attribute_risk(fitted, fitted.synthesize(), diagnostics=False).records
            first.append(records.loc[0, ["before", "after"]])
            others.append(records["gain"].iloc[1:].max())
        yield {
            "n": n,
            "parameters": n_parameters,
            "record 0": "ordinary" if outlier is None else f"{outlier:.0f}",
            "its before": f"{first[0]['before']:.3f}",
            "its after": ", ".join(f"{one['after']:.2f}" for one in first),
            "largest gain of others": f"{min(others):.3f} to {max(others):.3f}",
        }


def discrete(n_releases: int) -> Iterator[dict[str, object]]:
    """Yield a row a model and number of records: the largest gain of one and of five datasets."""
    people = sr.load_households()
    for name, (formula, family, sizes) in DISCRETE.items():
        for n in sizes:
            data = people.sample(n, random_state=1).reset_index(drop=True)
            model = sr.Regression(formula, family)
            types = {key: own for key, own in LEVELS.items() if key in formula}
            fitted = sr.fit(model, data, types=types)
            row: dict[str, object] = {"model": name, "n": n}
            for m in (1, 5):
                largest = [
                    sr.attribute_risk(fitted, fitted.synthesize(m)).records["gain"].max()
                    for _ in range(n_releases)
                ]
                row[f"m = {m}"] = f"{min(largest):.3f} to {max(largest):.3f}"
            yield row


def main(n_releases: int) -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    for rows in (linear(n_releases), discrete(n_releases)):
        print(pd.DataFrame(rows).to_string(index=False), end="\n\n", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
