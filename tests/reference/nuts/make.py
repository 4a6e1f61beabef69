"""Make the reference figures: long NUTS runs (PyMC and nutpie) of Bayesian regressions.

Run as ``python make.py`` (all cases) in an environment with pymc, nutpie, arviz-stats, pandas
and what synrisk itself needs on import. Where synrisk cannot be imported, give its household
sample as a CSV file: ``python make.py households.csv``, made elsewhere by
``synrisk.load_households().to_csv("households.csv", index=False)``.

It writes the data sets (CSV), figures.json and PROVENANCE.md beside itself. The tests read
those files only; they never run this script, and importing it needs numpy and pandas alone.
"""

from __future__ import annotations

import json
import platform
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[2] / "src"
HOUSEHOLDS = "synrisk.load_households()"
CHAINS, TUNE = 4, 1500

Columns = dict[str, np.ndarray]


# --- the data sets: fixed seeds, rounded, written as CSV and read back ---------------------------


def numbers(rng: np.random.Generator, n: int, names: str) -> dict[str, np.ndarray]:
    """Numeric predictors: x has mean 3 and sd 2, so that centring matters; the others 0 and 1."""
    spread = {"x": (3.0, 2.0)}
    return {v: np.round(rng.normal(*spread.get(v, (0.0, 1.0)), n), 4) for v in names.split()}


def shuffled(rng: np.random.Generator, **counts: int) -> np.ndarray:
    """A factor with so many records of each level, in random order."""
    return rng.permutation(np.repeat(list(counts), list(counts.values())))


def pick(labels: np.ndarray, **values: float) -> np.ndarray:
    """The value belonging to each record's level."""
    return np.array([values[label] for label in labels])


def coin(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    """Zeros and ones with these log odds."""
    return (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(int)


def gaussian_30(rng: np.random.Generator) -> Columns:
    v = numbers(rng, 30, "x z")
    u = shuffled(rng, p=15, q=12, s=3)
    eta = 1.5 + 0.8 * v["x"] - 0.5 * v["z"] + pick(u, p=0.0, q=1.0, s=-1.2)
    return {"b": np.round(rng.normal(eta, 1.3), 4), **v, "u": u}


def gaussian_weighted_120(rng: np.random.Generator) -> Columns:
    v = numbers(rng, 120, "x z")
    eta = -2.0 + 0.6 * v["x"] + 0.9 * v["z"] - 0.35 * v["x"] * v["z"]
    w = np.round(rng.uniform(0.2, 3.0, 120), 3)
    return {"b": np.round(rng.normal(eta, 1.1), 4), **v, "w": w}


def gaussian_no_intercept_60(rng: np.random.Generator) -> Columns:
    v = numbers(rng, 60, "x")
    u = shuffled(rng, p=28, q=22, s=10)
    eta = pick(u, p=48.0, q=49.2, s=47.1) + 0.6 * v["x"]
    return {"b": np.round(rng.normal(eta, 1.4), 4), "u": u, **v}


def bernoulli_60(rng: np.random.Generator) -> Columns:
    while True:  # until the rare level has both outcomes
        v = numbers(rng, 60, "x")
        u = shuffled(rng, p=32, q=24, s=4)
        o = coin(rng, -1.5 + 0.45 * v["x"] + pick(u, p=0.0, q=0.8, s=-0.4))
        if 0 < o[u == "s"].sum() < 4:
            return {"o": o, **v, "u": u}


def bernoulli_separated_80(rng: np.random.Generator) -> Columns:
    v = numbers(rng, 80, "x")
    u = shuffled(rng, p=42, q=33, s=5)
    o = coin(rng, -1.0 + 0.4 * v["x"] + pick(u, p=0.0, q=-0.7, s=0.0))
    return {"o": np.where(u == "s", 1, o), **v, "u": u}  # level s has ones only: separation


def poisson_30(rng: np.random.Generator) -> Columns:
    v = numbers(rng, 30, "x z")
    return {"k": rng.poisson(np.exp(-0.5 + 0.3 * v["x"] - 0.4 * v["z"])), **v}


def categorical_90(rng: np.random.Generator) -> Columns:
    while True:  # until the rare outcome has eight records
        v = numbers(rng, 90, "x")
        u = shuffled(rng, p=50, q=40)
        mid = -0.8 + 0.3 * v["x"] + pick(u, p=0.0, q=-0.6)
        top = -3.6 + 0.5 * v["x"] + pick(u, p=0.0, q=0.7)
        utility = np.column_stack([np.zeros(90), mid, top]) + rng.gumbel(size=(90, 3))
        r = np.array(["low", "mid", "top"])[utility.argmax(axis=1)]
        if (r == "top").sum() == 8:
            return {"r": r, **v, "u": u}


def bernoulli_many_300(rng: np.random.Generator) -> Columns:
    v = numbers(rng, 300, "x1 x2 x3 x4 x5 x6")
    u = shuffled(rng, p=110, q=90, s=65, t=35)
    slopes = np.array([0.8, -0.6, 0.4, -0.2, 0.1, 0.0])
    eta = -0.3 + np.column_stack(list(v.values())) @ slopes + pick(u, p=0.0, q=0.5, s=-0.5, t=1.0)
    return {"o": coin(rng, eta), **v, "u": u}


def poisson_weighted_100(rng: np.random.Generator) -> Columns:
    v = numbers(rng, 100, "x")
    u = shuffled(rng, p=45, q=35, s=20)
    k = rng.poisson(np.exp(-0.3 + 0.25 * v["x"] + pick(u, p=0.0, q=0.5, s=-0.4)))
    return {"k": k, **v, "u": u, "w": np.round(rng.uniform(0.2, 3.0, 100), 3)}


def households(path: str | None) -> pd.DataFrame:
    """The household sample, factors as text: from this file, or else from synrisk itself."""
    if path is not None:
        return pd.read_csv(path, dtype={"Urban": str, "Race": str})
    sys.path.insert(0, str(SOURCE))
    from synrisk import load_households

    return load_households().astype({"Urban": str, "Race": str})


# --- the design matrices, by hand ----------------------------------------------------------------


def levels_of(values: pd.Series) -> list[str]:
    return sorted(values.astype(str).unique())


def treatment(d: pd.DataFrame, name: str) -> Columns:
    """A column for each level but the first."""
    return {f"{name}[T.{v}]": (d[name] == v).to_numpy(float) for v in levels_of(d[name])[1:]}


def full(d: pd.DataFrame, name: str) -> Columns:
    """A column for every level."""
    return {f"{name}[{v}]": (d[name] == v).to_numpy(float) for v in levels_of(d[name])}


def numeric(d: pd.DataFrame, *names: str) -> Columns:
    return {name: d[name].to_numpy(float) for name in names}


def crossed(d: pd.DataFrame) -> Columns:
    return {**numeric(d, "x", "z"), "x:z": (d["x"] * d["z"]).to_numpy(float)}


# --- the cases -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One regression: what is fitted to which data under which prior."""

    name: str
    family: str
    formula: str
    columns: Callable[[pd.DataFrame], Columns]  # those of the design, without the intercept
    make: Callable[[np.random.Generator], Columns] | None = None  # None: the household sample
    prior: str = "default"
    weights: str | None = None
    draws: int = 6000  # kept, of each chain
    target_accept: float = 0.9

    @property
    def response(self) -> str:
        return self.formula.split(" ~ ")[0]

    @property
    def intercept(self) -> bool:
        return "~ 0 +" not in self.formula

    @property
    def data(self) -> str:
        return HOUSEHOLDS if self.make is None else f"{self.name}.csv"


CASES = [
    Case(
        "gaussian_30",
        "gaussian",
        "b ~ x + z + u",
        lambda d: {**numeric(d, "x", "z"), **treatment(d, "u")},
        gaussian_30,
    ),
    Case(
        "gaussian_weighted_120",
        "gaussian",
        "b ~ x*z",
        crossed,
        gaussian_weighted_120,
        weights="w",
    ),
    Case(
        "gaussian_no_intercept_60",
        "gaussian",
        "b ~ 0 + u + x",
        lambda d: {**full(d, "u"), **numeric(d, "x")},
        gaussian_no_intercept_60,
    ),
    Case(
        "gaussian_households",
        "gaussian",
        "LogIncome ~ LogExpenditure",
        lambda d: numeric(d, "LogExpenditure"),
        prior="paper",
    ),
    Case(
        "bernoulli_60",
        "bernoulli",
        "o ~ x + u",
        lambda d: {**numeric(d, "x"), **treatment(d, "u")},
        bernoulli_60,
    ),
    Case(
        "bernoulli_separated_80",
        "bernoulli",
        "o ~ x + u",
        lambda d: {**numeric(d, "x"), **treatment(d, "u")},
        bernoulli_separated_80,
        target_accept=0.95,
    ),
    Case(
        "poisson_30",
        "poisson",
        "k ~ x + z",
        lambda d: numeric(d, "x", "z"),
        poisson_30,
    ),
    Case(
        "poisson_households",
        "poisson",
        "KidsCount ~ LogExpenditure + Urban",
        lambda d: {**numeric(d, "LogExpenditure"), **treatment(d, "Urban")},
        prior="paper",
    ),
    Case(
        "categorical_90",
        "categorical",
        "r ~ x + u",
        lambda d: {**numeric(d, "x"), **treatment(d, "u")},
        categorical_90,
    ),
    Case(
        "categorical_households",
        "categorical",
        "Race ~ LogIncome",
        lambda d: numeric(d, "LogIncome"),
    ),
    Case(
        "bernoulli_many_300",
        "bernoulli",
        "o ~ x1 + x2 + x3 + x4 + x5 + x6 + u",
        lambda d: {**numeric(d, "x1", "x2", "x3", "x4", "x5", "x6"), **treatment(d, "u")},
        bernoulli_many_300,
    ),
    Case(
        "poisson_weighted_100",
        "poisson",
        "k ~ x + u",
        lambda d: {**numeric(d, "x"), **treatment(d, "u")},
        poisson_weighted_100,
        weights="w",
    ),
]


# --- priors, model, sampling ---------------------------------------------------------------------


def root_mean_square(v: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(v**2, axis=0))


def prior_scales(case: Case, y: np.ndarray, x: np.ndarray) -> dict[str, Any]:
    """Prior mean and sd of alpha, prior sds of beta, prior mean of sigma; never weighted."""
    size = (lambda v: v.std(axis=0, ddof=1)) if case.intercept else root_mean_square
    unit = size(y) if case.family == "gaussian" else 1.0
    return {
        "alpha_mean": y.mean() if case.family == "gaussian" else 0.0,
        "alpha_sd": 2.5 * unit,
        "beta_sd": np.full(x.shape[1], 2.0) if case.prior == "paper" else 2.5 * unit / size(x),
        "sigma_mean": unit,
    }


def build(case: Case, y: np.ndarray, x: np.ndarray, w: np.ndarray) -> Any:
    """The PyMC model; alpha is the linear predictor at the columns' means."""
    import pymc as pm
    import pytensor.tensor as pt

    scale = prior_scales(case, y, x)
    centre = x.mean(axis=0) if case.intercept else np.zeros(x.shape[1])
    blocks = int(y.max()) if case.family == "categorical" else 1  # of coefficients
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, scale["beta_sd"], shape=(blocks, x.shape[1]))
        eta = pt.dot(x - centre, beta.T)
        if case.intercept:
            alpha = pm.Normal("alpha", scale["alpha_mean"], scale["alpha_sd"], shape=blocks)
            eta = eta + alpha
        if case.family == "gaussian":
            sigma = pm.Exponential("sigma", 1.0 / scale["sigma_mean"])
            likelihood = pm.Normal.dist(eta[:, 0], sigma)
        elif case.family == "bernoulli":
            likelihood = pm.Bernoulli.dist(logit_p=eta[:, 0])
        elif case.family == "poisson":
            likelihood = pm.Poisson.dist(pt.exp(eta[:, 0]))
        else:
            first = np.zeros((len(y), 1))  # the reference level's predictor
            likelihood = pm.Categorical.dist(logit_p=pt.concatenate([first, eta], axis=1))
        pm.Potential("loglik", pt.sum(w * pm.logp(likelihood, y)))
    return model


def sample(case: Case, model: Any, seed: int) -> Any:
    import nutpie

    compiled = nutpie.compile_pymc_model(model, backend="numba")
    return nutpie.sample(
        compiled,
        draws=case.draws,
        tune=TUNE,
        chains=CHAINS,
        cores=2,
        seed=seed,
        target_accept=case.target_accept,
        save_warmup=False,
        progress_bar=False,
    )


def named_draws(case: Case, trace: Any, names: list[str], centre: np.ndarray, levels: list[str]):
    """The draws (chain, draw) of every reported parameter, by name and in order."""
    beta = trace.posterior["beta"].to_numpy()  # chain, draw, block, column
    draws = {}
    for i in range(beta.shape[2]):
        prefix = f"{levels[i + 1]}:" if case.family == "categorical" else ""
        if case.intercept:
            alpha = trace.posterior["alpha"].to_numpy()[:, :, i]
            draws[f"{prefix}Intercept"] = alpha - beta[:, :, i] @ centre
        for j, name in enumerate(names):
            draws[prefix + name] = beta[:, :, i, j]
    if case.family == "gaussian":
        draws["sigma"] = trace.posterior["sigma"].to_numpy()
    return draws


def short(value: float) -> float:
    return float(f"{value:.8g}")


def summary(name: str, draws: np.ndarray) -> dict[str, Any]:
    from arviz_stats.base import array_stats

    axes = {"chain_axis": 0, "draw_axis": 1}
    sd = draws.std(ddof=1)
    # The error of the sd, by that of the variance. Not array_stats.mcse(method="sd"): version 0.8
    # counts the effective draws of the mean there, which NUTS, being antithetic, has more of.
    square = (draws - draws.mean()) ** 2
    mcse_variance = square.std(ddof=1) / np.sqrt(array_stats.ess(square, method="mean", **axes))
    figures = {
        "mean": draws.mean(),
        "sd": sd,
        "mcse_mean": array_stats.mcse(draws, method="mean", **axes),
        "mcse_sd": mcse_variance / (2 * sd),
        "ess_bulk": array_stats.ess(draws, method="bulk", **axes),
        "rhat": array_stats.rhat(draws, **axes),
    }
    return {"name": name, **{key: short(float(value)) for key, value in figures.items()}}


def fit(case: Case, d: pd.DataFrame, seed: int) -> dict[str, Any]:
    levels: list[str] = []
    if case.family == "categorical":
        levels = levels_of(d[case.response])
        y = d[case.response].map({v: i for i, v in enumerate(levels)}).to_numpy(int)
    else:
        y = d[case.response].to_numpy(float if case.family == "gaussian" else int)
    columns = case.columns(d)
    x = np.column_stack(list(columns.values()))
    w = np.ones(len(d)) if case.weights is None else d[case.weights].to_numpy(float)
    trace = sample(case, build(case, y, x, w), seed)
    draws = named_draws(case, trace, list(columns), x.mean(axis=0), levels)
    return {
        "formula": case.formula,
        "family": case.family,
        "prior": case.prior,
        "data": case.data,
        "n": len(d),
        "weights": case.weights,
        "chains": CHAINS,
        "draws": case.draws,
        "tune": TUNE,
        "target_accept": case.target_accept,
        "divergences": int(trace.sample_stats["diverging"].sum()),
        "parameters": [summary(name, values) for name, values in draws.items()],
    }


# --- the files -----------------------------------------------------------------------------------

HOW = (
    "Made by make.py beside this file: data simulated from fixed numpy seeds (or the project's "
    "own simulated household sample), designs written by hand, posteriors sampled by NUTS "
    "through PyMC and nutpie (numba backend). No figure comes from synrisk."
)

PROVENANCE = """# Reference posteriors by NUTS

{how}

- **Sampler**: {chains} chains, {tune} tuning draws each; kept draws, target acceptance and
  divergences stand with each case in `figures.json`. Seeds are fixed: case k (from 1) uses
  `numpy.random.default_rng([2024, k])` for its data and k as nutpie's seed.
- **Priors** ("default", "paper"; models with and without an intercept): see `prior_scales` and
  `build` in `make.py`. The prior of the intercept is that of the linear predictor at the columns'
  means; the reported `Intercept` is that at zero. Weights multiply log likelihoods, and do not
  enter the priors' scales.
- **Figures**: `mean`, `sd` (of all draws), Monte Carlo standard errors of both (`mcse_mean`,
  `mcse_sd`), `ess_bulk`, `rhat`, by arviz-stats; eight significant digits. `mcse_sd` counts the
  effective draws of the squared deviations, not those of the draws as arviz-stats 0.8 does: NUTS
  is antithetic, so theirs is mostly too small here (ours is 0.87 to 2.26 times theirs).
- **Versions**: {versions}.
- **Further families**: `families.json`, data among the figures, is made by `make_families.py`.
- **Data**: one CSV file per case, factors as text; `{households}` stands for the sample in
  the package and is not stored here.

To run it again (some minutes), in an environment of its own:

    pip install pymc nutpie arviz-stats pandas formulaic narwhals
    python make.py                   # or: python make.py households.csv

The second form is for an environment in which synrisk cannot be imported; see `make.py`.
"""


def main(path: str | None = None) -> None:
    warnings.simplefilter("ignore", FutureWarning)
    sample_of_households = households(path)
    cases = {}
    for number, case in enumerate(CASES, start=1):
        if case.make is None:
            d = sample_of_households
        else:
            file = HERE / case.data
            made = pd.DataFrame(case.make(np.random.default_rng([2024, number])))
            made.to_csv(file, index=False, lineterminator="\n")
            d = pd.read_csv(file)
        cases[case.name] = fit(case, d, seed=number)
        found = cases[case.name]["parameters"]
        sys.stdout.write(
            f"{case.name}: rhat <= {max(p['rhat'] for p in found):.4f}, "
            f"ess >= {min(p['ess_bulk'] for p in found):.0f}, "
            f"{cases[case.name]['divergences']} divergences\n"
        )
    packages = ["numpy", "pymc", "nutpie", "pytensor", "numba", "arviz-stats", "pandas"]
    versions = {"python": platform.python_version(), **{p: version(p) for p in packages}}
    figures = {"provenance": HOW, "versions": versions, "cases": cases}
    (HERE / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    text = PROVENANCE.format(
        how=HOW,
        chains=CHAINS,
        tune=TUNE,
        households=HOUSEHOLDS,
        versions=", ".join(f"{name} {number}" for name, number in versions.items()),
    )
    (HERE / "PROVENANCE.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:2])
