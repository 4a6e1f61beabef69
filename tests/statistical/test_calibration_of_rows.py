"""Rows to which the models give a probability p of being the target's are so with frequency p.

Parameters are drawn from the prior, data from them, a release from the fit; people stand in pairs
with the same known value, so that either row of a pair may be the target's.
"""

import numpy as np
import pandas as pd

import synrisk as sr

N_REPLICATES = 60
MOST = 3.29  # standard errors: a false alarm in one of a thousand choices of the seed
PRIOR = {"Intercept": sr.Normal(0.3, 0.8), "x": sr.Normal(-0.2, 1.2), "sigma": sr.Exponential(1.2)}


def own_rows(seed, n_records=4):
    """The posterior of each person's own row; the other's is the rest."""
    rng = np.random.default_rng([2026, seed])
    x = rng.normal(size=n_records)
    alpha, beta = (rng.normal(PRIOR[name].mean, PRIOR[name].sd) for name in ("Intercept", "x"))
    sigma = rng.exponential(1 / PRIOR["sigma"].rate)
    y = rng.normal(alpha + beta * (x - x.mean()), sigma)
    data = pd.DataFrame({"x": x, "pair": np.arange(n_records) // 2, "y": y})
    fitted = sr.fit(sr.Regression("y ~ x"), data, prior=PRIOR, n_draws=400, seed=seed)
    release = fitted.synthesize(seed=int(rng.integers(2**60)))
    risk = sr.identification_risk(
        data, release, known=["pair"], synthesized=["y"], radius=0, synthesizer=fitted
    )
    return risk.records["posterior"].to_numpy()


def test_the_probability_of_a_row_is_calibrated():
    p = np.array([own_rows(seed) for seed in range(N_REPLICATES)])
    # Σ_j (is own_j − P_j) a_j with a = P: zero on average if P is right, and other if it is sharper
    # or blunter than it should be. A replicate's people share its release.
    score = (p - (p**2 + (1 - p) ** 2)).sum(axis=1)
    assert abs(score.mean()) < MOST * score.std(ddof=1) / np.sqrt(N_REPLICATES)
    learnt = np.log(2 * p).sum(axis=1)
    assert learnt.mean() > MOST * learnt.std(ddof=1) / np.sqrt(N_REPLICATES)
