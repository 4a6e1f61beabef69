"""The probability of a record's own row by models: calibration, and what several datasets add.

``python benchmarks/identification.py calibration 400 20261118``
    so many worlds of each kind by a seed: parameters from the prior, data from them, a release of
    the fit; people stand in pairs with the same known value. How often the row is the target's to
    which a probability is given, a score of both together, and how often an only match by value is
``python benchmarks/identification.py datasets``
    linear models with a known sigma and a flat prior, where Y_j given m datasets is normal about
    x·(mean of their estimates) with variance σ² + x'Vx (2/m − 1): how far the probability by all
    datasets is from the mean of the probabilities by one
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from scipy.special import expit

import synrisk as sr
from synrisk.base.arrays import BoolArray, FloatArray

INTERCEPT, SLOPE, RATE = sr.Normal(0.3, 0.8), sr.Normal(-0.2, 1.2), sr.Exponential(1.2)
WORLDS = (
    ("gaussian", 4, 0.0),
    ("gaussian", 8, 0.0),
    ("bernoulli", 8, 0.0),
    ("poisson", 6, 0.0),
    ("gaussian", 8, 0.5),
)
N_BINS = 5


def replicate(family: str, n_records: int, radius: float, seed: list[int]) -> pd.DataFrame:
    """The records of a risk in a world of one predictor."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_records)
    alpha, beta = rng.normal(INTERCEPT.mean, INTERCEPT.sd), rng.normal(SLOPE.mean, SLOPE.sd)
    eta = alpha + (x - x.mean()) * beta
    prior = {"Intercept": INTERCEPT, "x": SLOPE}
    if family == "gaussian":
        y = rng.normal(eta, rng.exponential(1 / RATE.rate))
        prior["sigma"] = RATE
    elif family == "poisson":
        y = rng.poisson(np.exp(eta))
    else:
        y = (rng.random(n_records) < expit(eta)).astype(int)
    data = pd.DataFrame({"x": x, "pair": np.arange(n_records) // 2, "y": y})
    model = sr.Regression("y ~ x", family)
    fitted = sr.fit(model, data, prior=prior, n_draws=400, seed=seed[1], executor="serial")
    release = fitted.synthesize(seed=int(rng.integers(2**60)))
    return sr.identification_risk(
        data,
        release,
        known=["pair"],
        synthesized=["y"],
        radius=sr.Radius(absolute=radius),
        synthesizer=fitted,
    ).records


def calibration(n_worlds: int, seed: int) -> None:
    """Print said and true frequencies."""
    for family, n_records, radius in WORLDS:
        scores, n_true, n_only = [], 0, 0
        bins = np.zeros((N_BINS, 3))  # rows, own rows, probability
        for k in range(n_worlds):
            records = replicate(family, n_records, radius, [seed, k])
            p = records["posterior"].to_numpy()
            scores.append((p - (p**2 + (1 - p) ** 2)).sum())
            for said, is_own in ((p, 1), (1 - p, 0)):
                own_bin = np.minimum((said * N_BINS).astype(int), N_BINS - 1)
                entry = np.stack([np.ones_like(p), np.full_like(p, is_own), said], axis=1)
                np.add.at(bins, own_bin, entry)
            n_true += int(records["K_1"].sum())
            n_only += int((records["K_1"] | records["F_1"]).sum())
        score = np.array(scores)
        z = score.mean() / (score.std(ddof=1) / np.sqrt(len(score)))
        print(f"{family}, {n_records} records, radius {radius}: score {z:.2f} standard errors")
        said, true = np.round(bins[:, 2] / bins[:, 0], 3), np.round(bins[:, 1] / bins[:, 0], 3)
        print(f"  said {said}, true {true}")
        print(f"  rows {bins[:, 0].astype(int)}; only matches that are true: {n_true} of {n_only}")


def own_rows(y: FloatArray, mean: FloatArray, variance: FloatArray, alike: BoolArray) -> FloatArray:
    """The probability of each own row; density[i, j] is of y_i at row j."""
    density = np.exp(-0.5 * (y[:, None] - mean) ** 2 / variance) / np.sqrt(variance)
    density = np.where(alike, density, 0.0)
    return np.asarray(np.diag(density) / density.sum(axis=1))


def by_datasets(n_records: int, n_coefficients: int, m: int, rng: np.random.Generator) -> None:
    """Print how far the probability by all datasets is from the mean of those by one."""
    found = []
    for _ in range(max(4, 2000 // n_records)):
        x = rng.normal(size=(n_records, n_coefficients - 1))
        design = np.column_stack([np.ones(n_records), x])
        covariance = np.linalg.inv(design.T @ design)
        root = np.linalg.cholesky(covariance)
        leverage = np.einsum("ij,jk,ik->i", design, covariance, design)
        y = x.sum(axis=1) + rng.normal(size=n_records)
        centre = covariance @ design.T @ y
        # A draw of the parameters, and the estimate by what it makes.
        estimates = [
            centre + root @ rng.normal(size=(n_coefficients, 2)).sum(axis=1) for _ in range(m)
        ]
        alike = np.arange(n_records) // 10
        alike = alike[:, None] == alike
        fitted = [design @ at for at in estimates]
        by_one = np.mean([own_rows(y, at, 1 + leverage, alike) for at in fitted], axis=0)
        by_all = own_rows(y, np.mean(fitted, axis=0), 1 + leverage * (2 / m - 1), alike)
        found.append(np.stack([by_one, by_all]))
    one, every = np.concatenate(found, axis=1)
    rms = np.sqrt(((every - one) ** 2).mean())
    print(
        f"{n_records:5} records, {n_coefficients} coefficients, {m:2} datasets: mean "
        f"{one.mean():.4f} by one, {every.mean():.4f} by all; root mean square difference "
        f"{rms:.4f}, largest {np.abs(every - one).max():.3f}"
    )


def main() -> None:
    """Run what the command line names."""
    if sys.argv[1] == "calibration":
        calibration(int(sys.argv[2]), int(sys.argv[3]))
        return
    rng = np.random.default_rng(33)
    for n_records, n_coefficients in ((20, 2), (60, 2), (60, 6), (200, 2), (200, 6), (1000, 6)):
        for m in (2, 5, 20):
            by_datasets(n_records, n_coefficients, m, rng)


if __name__ == "__main__":
    main()
