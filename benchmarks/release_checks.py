"""How often the checks of a release warn: of honest releases, and of others.

Honest releases are drawn by the models that they are compared with, each of a sample and a fit of
its own. ``python benchmarks/release_checks.py 40`` prints both tables, with 40 releases a cell.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pandas as pd

import synrisk as sr
from synrisk.base.workers import Serial
from synrisk.risk.release_checks import ReleaseChecks, check_release
from synrisk.synthesis.release import read_release

SIZES, MANY, PRIORS = (60, 300, 2000), (1, 5, 20), ("default", "informative")
N_DRAWS = 200


def people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return records of two predictors and five responses."""
    x, w = rng.normal(size=n), rng.normal(size=n)
    b = 1.0 + x + rng.normal(size=n)
    k = rng.poisson(np.exp(0.5 + 0.5 * x))
    g = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-x)), "yes", "no")
    c = np.array(["p", "q", "r"])[np.minimum(rng.poisson(np.exp(0.3 * x)), 2)]
    a = np.rint(4.0 + 0.5 * x + 0.6 * rng.normal(size=n)).astype(int)
    return pd.DataFrame({"x": x, "w": w, "b": b, "k": k, "g": g, "c": c, "a": a})


def plans(prior: str) -> dict[str, list[sr.Regression]]:
    """Return plans of one to three models, under one kind of prior."""
    tight = {"x": sr.Normal(0.0, 0.05)}

    def model(formula: str, family: str, own: bool) -> sr.Regression:
        if prior == "default":
            return sr.Regression(formula, family)
        return sr.Regression(formula, family, prior=tight if own else "default")

    b = model("b ~ x + w", "gaussian", own=True)
    k = model("k ~ x", "poisson", own=True)
    g = model("g ~ x", "bernoulli", own=True)
    c = model("c ~ x + b", "categorical", own=False)
    a = model("a ~ x", "gaussian", own=True)  # whole numbers: fitted as rounded values
    return {
        "gaussian": [b],
        "poisson": [k],
        "bernoulli": [g],
        "gaussian, poisson": [b, k],
        "gaussian, poisson, categorical": [b, k, c],
        "rounded": [a],
        "rounded, gaussian": [a, b],
    }


def checked(synthesizer: sr.Synthesizer, release: list[pd.DataFrame]) -> ReleaseChecks:
    """Return what the checks find, without the risk."""
    return check_release(synthesizer, read_release(synthesizer, release), Serial())


def kinds(found: ReleaseChecks) -> set[str]:
    """Return which checks warn."""
    return {
        name
        for name, rows in {
            "far": [one.is_too_far for one in found.distances],
            "near": [one.is_too_near for one in found.distances],
            "total": [found.total is not None and found.total.is_too_near],
            "copies": [one.are_too_many for one in found.copied_rows],
            "agreement": [one.is_too_often for one in found.agreements],
            "residuals": [one.are_too_alike for one in found.residual_correlations],
        }.items()
        if any(rows)
    }


def honest(n_releases: int, seed: int = 0) -> Iterator[dict[str, object]]:
    """Yield a row a cell of the table: how many of honest releases are warned of."""
    for prior, n in product(PRIORS, SIZES):
        for place, (name, plan) in enumerate(plans(prior).items()):
            for m in MANY:
                warned: list[set[str]] = []
                for k in range(n_releases):
                    # No cell has another's numbers: their releases are independent.
                    rng = np.random.default_rng([seed, PRIORS.index(prior), n, place, m, k])
                    data = people(n, rng)
                    own = int(rng.integers(1 << 40))
                    synthesizer = sr.fit(plan, data, seed=own, n_draws=N_DRAWS)
                    release = synthesizer.synthesize(m, seed=own + 1)
                    warned.append(kinds(checked(synthesizer, release)))
                which = sorted({kind for one in warned for kind in one})
                n_warned = sum(map(bool, warned))
                yield {
                    "models": name, "prior": prior, "n": n, "m": m, "releases": n_releases,
                    "warned": n_warned, "by": ", ".join(which),
                }  # fmt: skip


Maker = Callable[[sr.Synthesizer, pd.DataFrame, np.random.Generator], pd.DataFrame]


def _honest(s: sr.Synthesizer, _: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return s.synthesize(1, seed=int(rng.integers(1 << 30)))[0]


def _copy(_s: sr.Synthesizer, data: pd.DataFrame, _r: np.random.Generator) -> pd.DataFrame:
    return data.copy()


def _tenth(s: sr.Synthesizer, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    release = s.synthesize(1, seed=int(rng.integers(1 << 30)))[0]
    copied = rng.random(len(data)) < 0.1
    names = ["b", "k"]
    release.loc[copied, names] = data.loc[copied, names]
    return release


def _shuffled(_: sr.Synthesizer, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return data.iloc[rng.permutation(len(data))].reset_index(drop=True)


def _with(
    error: Callable[[int, np.random.Generator], np.ndarray],
    counts: Callable[[np.ndarray, np.random.Generator], np.ndarray] | None = None,
    mean: Callable[[pd.Series], pd.Series] | None = None,
) -> Maker:
    """Return a maker with drawn parameters that errs in one way."""

    def make(s: sr.Synthesizer, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        release = s.synthesize(1, seed=int(rng.integers(1 << 30)))[0]
        x = data["x"]
        b = s.draws("b").iloc[int(rng.integers(N_DRAWS))]
        eta = b["Intercept"] + b["x"] * x + b["w"] * data["w"]
        if mean is not None:
            eta = eta + mean(x)
        release["b"] = eta + b["sigma"] * error(len(x), rng)
        if counts is not None:
            k = s.draws("k").iloc[int(rng.integers(N_DRAWS))]
            release["k"] = counts(np.exp(k["Intercept"] + k["x"] * x).to_numpy(), rng)
        return release

    return make


def _normal(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=n)


def _t3(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_t(3, size=n) / np.sqrt(3.0)


def _gamma_poisson(rate: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.poisson(rate * rng.gamma(2.0, 0.5, size=len(rate)))


def _nowhere(_: sr.Synthesizer, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    k, b = rng.poisson(3.0, len(data)), rng.normal(0.0, 2.0, len(data))
    return data.assign(b=b, k=k)


def _correlated(s: sr.Synthesizer, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    release = s.synthesize(1, seed=int(rng.integers(1 << 30)))[0]
    b = s.draws("b").mean()

    def mean(of: pd.DataFrame) -> pd.Series:
        return b["Intercept"] + b["x"] * of["x"] + b["w"] * of["w"]

    own, theirs = release["b"] - mean(release), data["b"] - mean(data)
    release["b"] = mean(release) + 0.5 * theirs + np.sqrt(0.75) * own
    return release


def dishonest() -> dict[str, Maker]:
    """Return releases that did not come from the models."""
    return {
        "honest": _honest,
        "copy": _copy,
        "a tenth of the rows copied": _tenth,
        "copy, rows shuffled": _shuffled,
        "parameters from nowhere": _nowhere,
        "t3 errors": _with(_t3),
        "x² left out": _with(_normal, mean=lambda x: 0.3 * (x**2 - 1.0)),
        "overdispersed counts": _with(_normal, counts=_gamma_poisson),
        "residuals correlated 0.5": _correlated,
    }


def power(
    n_releases: int, sizes: tuple[int, ...] = (150, 300, 2000)
) -> Iterator[dict[str, object]]:
    """Yield a row a kind of release and size: how many are warned of, by which checks."""
    plan = plans("default")["gaussian, poisson"]
    for name, make in dishonest().items():
        for n in sizes:
            warned: list[set[str]] = []
            for k in range(n_releases):
                rng = np.random.default_rng([7, n, k])
                data = people(n, rng)[["x", "w", "b", "k"]]
                synthesizer = sr.fit(plan, data, seed=k, n_draws=N_DRAWS)
                warned.append(kinds(checked(synthesizer, [make(synthesizer, data, rng)])))
            by = {kind: sum(kind in one for one in warned) for one in warned for kind in one}
            yield {
                "release": name, "n": n, "releases": n_releases,
                "warned": sum(map(bool, warned)), "by": by,
            }  # fmt: skip


def main(n_releases: int) -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    with pd.option_context("display.width", 200, "display.max_rows", None):
        rows = pd.DataFrame(honest(n_releases))
        print(rows.to_string(index=False))
        print(f"honest: {rows['warned'].sum()} of {rows['releases'].sum()} warned of\n")
        print(pd.DataFrame(power(n_releases)).to_string(index=False))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
