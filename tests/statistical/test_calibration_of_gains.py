"""before and after are beliefs that come true: calibration of the default question (METHOD §8).

A record's value is drawn from the intruder's own prior, the models are fitted, a release is drawn.
How often the value lies in a fixed part of the range must be what before says without the release,
and what after says with it: Σ(hit − P)/√ΣP(1 − P) is standard normal. And after must tell more:
Σ(hit − before)(after − before) is positive, and as large as Σ(after − before)² makes it.
"""

import numpy as np
import pandas as pd
import pytest
from helpers.cases import used_columns
from helpers.secret import SECRET
from scipy.special import expit

import synrisk as sr

N_REPLICATES, RECORD = 240, 3
TYPES = {"b": (-12.0, 14.0), "k": (0, 40), "r": ["low", "mid", "top"]}
CASES = {
    "gaussian": [sr.Regression("b ~ x")],
    "poisson": [sr.Regression("k ~ x", "poisson")],
    "categorical": [sr.Regression("r ~ x", "categorical")],
    "chain": [sr.Regression("b ~ 1"), sr.Regression("k ~ b", "poisson")],
}


def people(n=12):
    rng = np.random.default_rng(31)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "b": 1.0 + x + rng.normal(size=n),
            "k": rng.poisson(np.exp(0.7 + 0.3 * x)),
            "r": rng.choice(["low", "mid", "top"], n, p=[0.5, 0.3, 0.2]),
            "o": (rng.random(n) < expit(x)).astype(int),
        }
    )


def evaluate(plan, data, seed, m):
    names = [model.response for model in plan]
    fitted = sr.fit(
        plan, data[used_columns(plan)], seed=seed, n_draws=400, executor="serial",
        types={name: TYPES[name] for name in names},
    )  # fmt: skip
    return sr.attribute_risk(
        fitted, fitted.synthesize(m, seed=seed, executor="serial"), records=[RECORD],
        diagnostics=False, executor="serial", tolerance=sr.Tolerance(0.0, 1.0),
    )  # fmt: skip


def beliefs(risk, names):
    """The guesses of the record with their prior and posterior, joint."""
    return risk.ranking(RECORD).sort_values(names, kind="stable", ignore_index=True)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_before_and_after_come_true(case, m):
    plan, data = CASES[case], people()
    names = [model.response for model in plan]
    rng = np.random.default_rng([m, len(case)])
    first = beliefs(evaluate(plan, data, SECRET, 1), names)
    p = first["prior"].to_numpy()
    hits, before, after = [], [], []
    for number in range(N_REPLICATES):
        drawn = first.iloc[int(rng.choice(len(p), p=p / p.sum()))]
        replaced = data.copy()
        for name in names:
            replaced.loc[RECORD, name] = drawn[name]
        found = beliefs(evaluate(plan, replaced, SECRET + number, m), names)
        # A part of the range that does not depend on the truth.
        if case == "categorical":
            inside, is_hit = found["r"] == "mid", drawn["r"] == "mid"
        else:
            name, limit = names[-1], 3.0
            inside, is_hit = found[name] < limit, drawn[name] < limit
        hits.append(is_hit)
        before.append(found["prior"][inside].sum())
        after.append(found["probability"][inside].sum())
    hits, before, after = (np.array(values, dtype=float) for values in (hits, before, after))
    for belief in (before, after):
        z = (hits - belief).sum() / np.sqrt((belief * (1 - belief)).sum())
        assert abs(z) < 3.0
    moved = after - before
    slope = ((hits - before) * moved).sum() / (moved**2).sum()
    sd = np.sqrt((moved**2 * after * (1 - after)).sum()) / (moved**2).sum()
    assert abs(slope - 1.0) < 3.0 * sd
