"""What the verdict says of honest releases, and how often closeness warns of them.

``python benchmarks/honest_releases.py 24`` fits, synthesizes and judges 24 releases for each of
seven plans, three sizes and two numbers of datasets: 1,008 in all. Two columns that no model uses
are released as they are.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
from release_checks import SIZES, closeness_plans, skewed

import synrisk as sr


def judged(plan: list[sr.Regression], n: int, m: int, rng: np.random.Generator) -> Counter[str]:
    """Return one release's outcome, and the checks that warned of it."""
    used = {name for one in plan for name in (one.response, *one.parsed.predictors)}
    data = skewed(n, rng)[sorted(used)].assign(
        age=rng.integers(18, 90, n), region=rng.choice(list("abcd"), n)
    )
    try:
        fitted = sr.fit(plan, data)
        risk = sr.attribute_risk(fitted, fitted.synthesize(m), executor="serial")
    except sr.SynriskError:
        return Counter({"refused": 1})
    checks = risk.release_check
    return Counter(
        {
            risk.verdict(further=0).outcome: 1,
            "closeness warns": int(any(one.is_too_close for one in checks.close)),
            "any check warns": int(bool(checks.failures)),
        }
    )


def main(n_each: int) -> None:
    """Print a row a plan, size and number of datasets, and all of them together."""
    warnings.simplefilter("ignore")
    rows: list[dict[str, object]] = []
    for (place, (name, plan)), n, m in product(enumerate(closeness_plans().items()), SIZES, (1, 5)):
        found: Counter[str] = Counter()
        for k in range(n_each):
            found += judged(plan, n, m, np.random.default_rng([31, n, place, m, k]))
        rows.append({"models": name, "n": n, "m": m, "releases": n_each, **found})
        print(rows[-1], flush=True)
    table = pd.DataFrame(rows).fillna(0)
    counts = table.columns[3:]
    for by in (["models"], ["n", "m"]):
        print(table.groupby(by)[[*counts]].sum().astype(int).to_string(), end="\n\n")
    print(table[counts].sum().astype(int).to_string())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
