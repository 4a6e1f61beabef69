"""How often the checks of a release warn: of honest releases, and of others.

Honest releases are drawn by the models that they are compared with, each of a sample and a fit of
its own. ``python benchmarks/release_checks.py 40`` prints the tables, with 40 releases a cell;
``python benchmarks/release_checks.py 40 closeness`` those of closeness alone.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd

import synrisk as sr
from synrisk.base.workers import Serial
from synrisk.risk.closeness import Closeness, all_together, comparisons
from synrisk.risk.release_checks import ReleaseChecks, check_release
from synrisk.synthesis.release import read_release

SIZES, MANY, PRIORS = (60, 300, 2000), (1, 5, 20), ("default", "informative")
N_DRAWS = 200
SECRET = 2**100  # far beyond the seeds that are tried


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
    return check_release(synthesizer, read_release(synthesizer.confidential, release), Serial())


def closeness(
    synthesizer: sr.Synthesizer, release: Sequence[pd.DataFrame]
) -> tuple[Closeness, ...]:
    """Return what is found of a release beside its records."""
    return all_together(
        task() for task in comparisons(synthesizer, read_release(synthesizer.confidential, release))
    )


def kinds(found: ReleaseChecks) -> set[str]:
    """Return which checks warn."""
    return {
        name
        for name, rows in {
            "far": [one.is_too_far for one in found.distances],
            "near": [one.is_too_near for one in found.distances],
            "total": [found.total is not None and found.total.is_too_near],
            "closeness": [one.is_too_close for one in found.close],
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
                    release = synthesizer.synthesize(m, seed=SECRET + own)
                    warned.append(kinds(checked(synthesizer, release)))
                which = sorted({kind for one in warned for kind in one})
                n_warned = sum(map(bool, warned))
                yield {
                    "models": name, "prior": prior, "n": n, "m": m, "releases": n_releases,
                    "warned": n_warned, "by": ", ".join(which),
                }  # fmt: skip


Maker = Callable[[sr.Synthesizer, pd.DataFrame, np.random.Generator], pd.DataFrame]


def _honest(s: sr.Synthesizer, _: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return s.synthesize(1, seed=SECRET + int(rng.integers(1 << 30)))[0]


def _copy(_s: sr.Synthesizer, data: pd.DataFrame, _r: np.random.Generator) -> pd.DataFrame:
    return data.copy()


def _tenth(s: sr.Synthesizer, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    release = s.synthesize(1, seed=SECRET + int(rng.integers(1 << 30)))[0]
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
        release = s.synthesize(1, seed=SECRET + int(rng.integers(1 << 30)))[0]
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
    release = s.synthesize(1, seed=SECRET + int(rng.integers(1 << 30)))[0]
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


# -- closeness alone -------------------------------------------------------------------------------
def skewed(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return records with amounts: whole, of three digits, with zeros, and some twice."""
    data = people(n, rng)
    amount = np.exp(8.0 + 0.8 * data["x"] + 0.9 * rng.standard_t(4, size=n))
    digits = 10.0 ** (np.floor(np.log10(amount)) - 2.0)
    zero = rng.random(n) < 0.2
    data = data.assign(
        whole=np.ceil(amount).astype(int),
        three=np.rint(amount / digits) * digits,
        zeros=np.where(zero, 0.0, data["b"] + 5.0),
        small=rng.poisson(1.5, n),
    )
    new = rng.normal(size=(2, n // 20))
    twins = data.iloc[: n // 20].assign(x=new[0], w=new[1])
    return pd.concat([data.iloc[: n - n // 20], twins], ignore_index=True)


def closeness_plans() -> dict[str, list[sr.Regression]]:
    """Return plans whose releases must not look copied, though values repeat."""
    b, zeros = sr.Regression("b ~ x + w"), sr.Regression("zeros ~ x")
    whole, three = sr.Regression("log(whole) ~ x"), sr.Regression("log(three) ~ x")
    k, c = sr.Regression("k ~ x", "poisson"), sr.Regression("c ~ x + b", "categorical")
    return {
        "gaussian": [b],
        "gaussian, poisson, categorical": [b, k, c],
        "log of whole numbers": [whole],
        "logs, with zeros": [whole, three, zeros],
        "no predictors": [sr.Regression("b ~ 1"), sr.Regression("w ~ b")],
        "rounded, counts": [sr.Regression("a ~ x"), sr.Regression("small ~ 1", "poisson")],
        "levels first": [sr.Regression("g ~ 1", "bernoulli"), sr.Regression("b ~ g")],
    }


def _two_digits(dataset: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    return dataset.round(2)


def _three_significant(dataset: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    if "three" not in dataset:
        return dataset
    digits = 10.0 ** (np.floor(np.log10(dataset["three"])) - 2.0)
    return dataset.assign(three=np.rint(dataset["three"] / digits) * digits)


def _cut(dataset: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    """Return the dataset with numbers brought to bounds that everybody knows."""
    bounds = {"b": (-2.0, 4.0), "zeros": (0.0, 9.0), "w": (-2.0, 2.0)}
    return dataset.assign(**{n: dataset[n].clip(*bounds[n]) for n in bounds if n in dataset})


def closeness_honest(n_releases: int, seed: int = 0) -> Iterator[dict[str, object]]:
    """Yield a row a cell: how many honest releases closeness warns of, some rounded or cut."""
    after = (lambda dataset, _: dataset, _two_digits, _three_significant, _cut)
    for place, (name, plan) in enumerate(closeness_plans().items()):
        for n, m in product(SIZES, (1, 5)):
            warned: list[str] = []
            for k in range(n_releases):
                rng = np.random.default_rng([seed, 11, n, place, m, k])
                used = {name for one in plan for name in (one.response, *one.parsed.predictors)}
                data = skewed(n, rng)[sorted(used)]
                own = int(rng.integers(1 << 40))
                synthesizer = sr.fit(plan, data, seed=own, n_draws=N_DRAWS)
                release = synthesizer.synthesize(m, seed=SECRET + own)
                made = [after[k % 4](one, data) for one in release]
                found = closeness(synthesizer, made)
                by = sorted({one.compared for one in found if one.is_too_close})
                if by:
                    warned.append(f"{k % 4}: {by}")
            yield {
                "models": name, "n": n, "m": m, "releases": n_releases, "warned": len(warned),
                "by": "; ".join(warned),
            }  # fmt: skip


def _copied(
    n_copied: int, noise: float, *, outlying: bool, shuffled: bool
) -> Callable[[sr.Synthesizer, pd.DataFrame, np.random.Generator], pd.DataFrame]:
    """Return a maker that copies some people with so many standard deviations of noise."""

    def make(s: sr.Synthesizer, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        release = s.synthesize(1, seed=SECRET + int(rng.integers(1 << 30)))[0]
        values, sd = data.to_numpy(), data.std().to_numpy()
        away = (((values - values.mean(axis=0)) / sd) ** 2).sum(axis=1)
        n = min(n_copied, len(data))
        which = np.argsort(-away)[:n] if outlying else rng.choice(len(data), n, replace=False)
        release.iloc[which] = values[which] + noise * sd * rng.normal(size=(n, values.shape[1]))
        return _shuffled(s, release, rng) if shuffled else release

    return make


def closeness_makers(n: int) -> dict[str, Maker]:
    """Return releases with copies, by how many and how noisy."""

    def affine(_s: sr.Synthesizer, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        moved = data.mean() + 1.02 * (data - data.mean()) + 0.03 * data.std()
        return _shuffled(_s, moved, rng)

    def blurred(own: float, *, shuffled: bool) -> Maker:
        def make(s: sr.Synthesizer, data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
            noise = data.std().to_numpy() * rng.normal(size=data.shape)
            made = data.mean() + own * (data - data.mean()) + np.sqrt(1.0 - own**2) * noise
            return _shuffled(s, made, rng) if shuffled else made

        return make

    makers: dict[str, Maker] = {}
    for outlying, n_copied, noise in product(
        (True, False), (5, 10, 20, 40), (0.0, 0.001, 0.01, 0.05)
    ):
        who = "most outlying" if outlying else "ordinary"
        makers[f"{n_copied} {who}, noise {noise}"] = _copied(
            n_copied, noise, outlying=outlying, shuffled=True
        )
    for noise in (0.01, 0.05, 0.2):
        makers[f"a tenth in place, noise {noise}"] = _copied(
            n // 10, noise, outlying=False, shuffled=False
        )
    makers["all, shifted 3 % and stretched 2 %"] = affine
    for own in (0.95, 0.894, 0.5):
        makers[f"all in place, correlation {own}"] = blurred(own, shuffled=False)
        makers[f"all shuffled, correlation {own}"] = blurred(own, shuffled=True)
    return makers


def closeness_power(
    n_releases: int, sizes: tuple[int, ...] = (60, 300, 2000)
) -> Iterator[dict[str, object]]:
    """Yield a row a kind of release: how many of each size closeness warns of."""
    plan = [sr.Regression("b ~ 1"), sr.Regression("w ~ b")]
    for name in closeness_makers(60):
        row: dict[str, object] = {"release": name, "releases": n_releases}
        for n in sizes:
            row[str(n)] = 0
            for k in range(n_releases):
                rng = np.random.default_rng([13, n, k])
                data = people(n, rng)[["b", "w"]]
                synthesizer = sr.fit(plan, data, seed=k, n_draws=N_DRAWS)
                made = closeness_makers(n)[name](synthesizer, data, rng)
                found = closeness(synthesizer, [made])
                row[str(n)] += any(one.is_too_close for one in found)
        yield row


def main(n_releases: int, only: str = "") -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    with pd.option_context("display.width", 200, "display.max_rows", None):
        if only != "closeness":
            rows = pd.DataFrame(honest(n_releases))
            print(rows.to_string(index=False))
            print(f"honest: {rows['warned'].sum()} of {rows['releases'].sum()} warned of\n")
            print(pd.DataFrame(power(n_releases)).to_string(index=False))
        rows = pd.DataFrame(closeness_honest(n_releases))
        print(rows.to_string(index=False))
        print(f"closeness: {rows['warned'].sum()} of {rows['releases'].sum()} warned of\n")
        print(pd.DataFrame(closeness_power(n_releases)).to_string(index=False))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12, *sys.argv[2:3])
