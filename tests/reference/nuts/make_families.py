"""Makes families.json: posteriors of the families beyond the first four, by NUTS.

As make.py beside it: data from fixed seeds, likelihoods in PyTensor, sampled by nutpie. What is
rounded is integrated over the response itself by Gauss-Legendre nodes; nothing comes from
synrisk. ``python make_families.py`` makes all, in some minutes; names after it make these again and
leave the others as they stand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))

from make import CHAINS, HERE, Columns, numbers, summary

TUNE, DRAWS, TARGET = 1000, 2500, 0.9
N_NODES = 40
LOWER, UPPER, TRIALS, LEVELS = 0.0, 10.0, 7, ["bad", "fair", "good", "best"]


# --- likelihoods, given eta and the auxiliary parameters -----------------------------------------


def log_normal(v: Any, mean: Any, sigma: Any) -> Any:
    import pytensor.tensor as pt

    return -0.5 * ((v - mean) / sigma) ** 2 - pt.log(sigma) - 0.5 * np.log(2 * np.pi)


def log_t(v: Any, mean: Any, sigma: Any, nu: Any) -> Any:
    import pytensor.tensor as pt

    own = pt.gammaln((nu + 1) / 2) - pt.gammaln(nu / 2) - 0.5 * pt.log(nu * np.pi) - pt.log(sigma)
    return own - (nu + 1) / 2 * pt.log1p(((v - mean) / sigma) ** 2 / nu)


def log_gamma(v: Any, eta: Any, shape: Any) -> Any:
    import pytensor.tensor as pt

    rate = shape * pt.exp(-eta)
    return shape * pt.log(rate) - pt.gammaln(shape) + (shape - 1) * np.log(v) - rate * v


def log_beta(v: Any, eta: Any, phi: Any) -> Any:
    import pytensor.tensor as pt

    a, b = pt.sigmoid(eta) * phi, pt.sigmoid(-eta) * phi
    own = pt.gammaln(phi) - pt.gammaln(a) - pt.gammaln(b)
    return own + (a - 1) * np.log(v) + (b - 1) * np.log1p(-v)


def log_lognormal(v: Any, eta: Any, sigma: Any) -> Any:
    return log_normal(np.log(v), eta, sigma) - np.log(v)


def log_poisson(y: Any, eta: Any) -> Any:
    import pytensor.tensor as pt

    return y * eta - pt.exp(eta) - pt.gammaln(y + 1.0)


def log_nbinom(y: Any, eta: Any, shape: Any) -> Any:
    import pytensor.tensor as pt

    log_total = pt.log(shape + pt.exp(eta))
    own = pt.gammaln(y + shape) - pt.gammaln(shape) - pt.gammaln(y + 1.0)
    return own + shape * (pt.log(shape) - log_total) + y * (eta - log_total)


def log_normal_cdf(z: Any) -> Any:
    import pytensor.tensor as pt

    return 0.5 * pt.erfc(-z / np.sqrt(2))


def log_truncated(y: Any, eta: Any, sigma: Any) -> Any:
    import pytensor.tensor as pt

    inside = log_normal_cdf((UPPER - eta) / sigma) - log_normal_cdf((LOWER - eta) / sigma)
    return log_normal(y, eta, sigma) - pt.log(inside)


def log_binomial(y: Any, eta: Any) -> Any:
    import pytensor.tensor as pt

    ways = pt.gammaln(TRIALS + 1.0) - pt.gammaln(y + 1.0) - pt.gammaln(TRIALS - y + 1.0)
    return ways + y * eta - TRIALS * pt.softplus(eta)


def log_ordered(y: Any, eta: Any, *gaps: Any) -> Any:
    import pytensor.tensor as pt

    zero = pt.zeros_like(eta)
    cuts = [zero + sum(gaps[:k], 0.0) for k in range(len(gaps) + 1)]
    upto = pt.stack([zero, *(pt.sigmoid(cut - eta) for cut in cuts), zero + 1.0])
    rows = np.arange(len(y))
    return pt.log(upto[y.astype(int) + 1, rows] - upto[y.astype(int), rows])


def rounded(density: Any, step: float, least: float = -np.inf, most: float = np.inf) -> Any:
    """The log probability of what is rounded to y, by nodes between its ends."""
    at, weight = np.polynomial.legendre.leggauss(N_NODES)

    def log_p(y: Any, eta: Any, *auxiliary: Any) -> Any:
        import pytensor.tensor as pt

        low, high = np.maximum(y - step / 2, least), np.minimum(y + step / 2, most)
        half = 0.5 * (high - low)[:, None]
        v = low[:, None] + half * (1.0 + at)
        return pt.logsumexp(density(v, eta[:, None], *auxiliary) + np.log(half * weight), axis=1)

    return log_p


def hurdle(above: Any) -> Any:
    def log_p(y: Any, eta: Any, *auxiliary: Any) -> Any:
        import pytensor.tensor as pt

        of_above = above(np.maximum(y, 1.0), eta, *auxiliary[:-1])
        return pt.switch(y == 0, pt.log(auxiliary[-1]), of_above) - pt.log1p(auxiliary[-1])

    return log_p


def given_above(count: Any) -> Any:
    def log_p(y: Any, eta: Any, *auxiliary: Any) -> Any:
        import pytensor.tensor as pt

        return count(y, eta, *auxiliary) - pt.log1mexp(count(np.zeros_like(y), eta, *auxiliary))

    return log_p


def zero_inflated(count: Any) -> Any:
    def log_p(y: Any, eta: Any, *auxiliary: Any) -> Any:
        import pytensor.tensor as pt

        own, odds = count(y, eta, *auxiliary[:-1]), auxiliary[-1]
        return pt.switch(y == 0, pt.log(odds + pt.exp(own)), own) - pt.log1p(odds)

    return log_p


def recorded(density: Any) -> Any:
    """Amounts in units, the smallest of which stands for all below it too."""

    def log_p(y: Any, eta: Any, *auxiliary: Any) -> Any:
        import pytensor.tensor as pt

        at, weight = np.polynomial.legendre.leggauss(N_NODES)
        low = np.where(y < 1.5, 0.0, y - 0.5)
        half = 0.5 * (y + 0.5 - low)[:, None]
        v = low[:, None] + half * (1.0 + at)
        return pt.logsumexp(density(v, eta[:, None], *auxiliary) + np.log(half * weight), axis=1)

    return log_p


# --- data ----------------------------------------------------------------------------------------


def counts(rng: Any, x: Any, start: float) -> Any:
    return rng.poisson(rng.gamma(2.0, np.exp(start + 0.15 * x) / 2.0))


def shares(rng: Any, x: Any) -> Any:
    mean = 1 / (1 + np.exp(0.4 - 0.3 * x))
    return np.clip(rng.beta(8.0 * mean, 8.0 * (1 - mean)), 0.02, 0.98)


def truncated(rng: Any, x: Any) -> Any:
    from scipy.stats import truncnorm

    mean = 1.0 + 0.8 * x
    ends = ((end - mean) / 2.5 for end in (LOWER, UPPER))
    return truncnorm.rvs(*ends, mean, 2.5, random_state=rng)


def levels(rng: Any, x: Any) -> Any:
    latent = rng.logistic(size=len(x)) + 0.5 * x
    return np.array(LEVELS)[(latent[:, None] > np.array([0.5, 1.5, 3.0])).sum(axis=1)]


def some(rng: Any, y: Any) -> Any:
    return (rng.random(len(y)) < 0.65) * y


# --- cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A response y of x: how it is made, its likelihood, and what its priors are scaled by."""

    draw: Callable[[Any, Any], Any]
    log_p: Any
    auxiliary: tuple[tuple[str, float, int], ...] = ()  # name, mean of the prior, power of spread
    scale: Any = None  # y → what eta is the place of; None where the link fixes the scale
    types: Any = None


SIGMA, SHAPE, ODDS = ("sigma", 1.0, 1), ("shape", 10.0, -2), ("odds_of_zero", 10.0, 0)
COUNT_SHAPE = ("shape", 10.0, 0)


def logit(y: Any) -> Any:
    return np.log(y / (1 - y))


def above_0(y: Any) -> Any:
    return np.log(y[y > 0])


CASES: dict[str, Case] = {
    "negative_binomial": Case(lambda r, x: counts(r, x, 0.3), log_nbinom, (COUNT_SHAPE,)),
    "gamma": Case(
        lambda r, x: np.round(100 * r.gamma(2.0, np.exp(0.2 * x)), 2), log_gamma, (SHAPE,), np.log
    ),
    "lognormal": Case(
        lambda r, x: np.round(100 * np.exp(0.2 * x + 0.7 * r.normal(size=len(x))), 2),
        log_lognormal, (SIGMA,), np.log,
    ),
    "student_t": Case(
        lambda r, x: np.round(50 + 2 * x + 3 * r.standard_t(4, len(x)), 3),
        log_t, (SIGMA, ("nu", 10.0, 0)), np.asarray,
    ),
    "beta": Case(lambda r, x: np.round(shares(r, x), 4), log_beta, (("phi", 40.0, -2),), logit),
    "ordered_logit": Case(
        levels, log_ordered, (("gap[2]", 1.0, 0), ("gap[3]", 1.0, 0)), types=LEVELS
    ),
    "hurdle_poisson": Case(
        lambda r, x: some(r, 1 + r.poisson(np.exp(0.2 * x))), hurdle(given_above(log_poisson)),
        (ODDS,),
    ),
    "zero_inflated_poisson": Case(
        lambda r, x: some(r, r.poisson(np.exp(0.3 + 0.2 * x))), zero_inflated(log_poisson), (ODDS,)
    ),
    "hurdle_lognormal": Case(
        lambda r, x: some(r, np.ceil(np.exp(1.0 + 0.2 * x + 0.6 * r.normal(size=len(x))))),
        hurdle(recorded(log_lognormal)), (SIGMA, ODDS), above_0,
    ),
    "hurdle_gamma": Case(
        lambda r, x: some(r, np.ceil(r.gamma(3.0, np.exp(0.2 * x)))),
        hurdle(recorded(log_gamma)), (SHAPE, ODDS), above_0,
    ),
    "hurdle_negative_binomial": Case(
        lambda r, x: some(r, 1 + counts(r, x, 0.5)), hurdle(given_above(log_nbinom)),
        (COUNT_SHAPE, ODDS),
    ),
    "zero_inflated_negative_binomial": Case(
        lambda r, x: some(r, counts(r, x, 1.0)), zero_inflated(log_nbinom), (COUNT_SHAPE, ODDS)
    ),
    "binomial_trials": Case(
        lambda r, x: r.binomial(TRIALS, 1 / (1 + np.exp(1.0 - 0.4 * x))), log_binomial,
        types=[0, TRIALS],
    ),
    "truncated_gaussian": Case(
        lambda r, x: np.round(truncated(r, x), 4), log_truncated, (SIGMA,), np.asarray,
        types=[LOWER, UPPER],
    ),
    "rounded_gaussian": Case(
        lambda r, x: np.rint(5 + 0.5 * x + 0.8 * r.normal(size=len(x))),
        rounded(log_normal, 1.0), (SIGMA,), np.asarray,
    ),
    "rounded_student_t": Case(
        lambda r, x: np.rint(20 + x + 1.5 * r.standard_t(4, len(x))),
        rounded(log_t, 1.0), (SIGMA, ("nu", 10.0, 0)), np.asarray,
    ),
    "rounded_lognormal": Case(
        lambda r, x: np.ceil(np.exp(1.0 + 0.2 * x + 0.5 * r.normal(size=len(x)))),
        rounded(log_lognormal, 1.0, 0.0), (SIGMA,), np.log,
    ),
    "rounded_gamma": Case(
        lambda r, x: np.ceil(r.gamma(3.0, np.exp(0.2 * x))), rounded(log_gamma, 1.0, 0.0),
        (SHAPE,), np.log,
    ),
    "rounded_beta": Case(
        lambda r, x: np.round(shares(r, x), 2), rounded(log_beta, 0.01, 0.0, 1.0),
        (("phi", 40.0, -2),), logit,
    ),
}  # fmt: skip


def build(case: Case, y: np.ndarray, x: np.ndarray) -> Any:
    """The PyMC model; alpha is the linear predictor at the mean of x."""
    import pymc as pm
    import pytensor.tensor as pt

    placed = None if case.scale is None else case.scale(y)
    centre, spread = (0.0, 1.0) if placed is None else (placed.mean(), placed.std(ddof=1))
    with pm.Model() as model:
        alpha = pm.Normal("alpha", centre, 2.5 * spread)
        beta = pm.Normal("beta", 0.0, 2.5 * spread / x.std(ddof=1))
        own = [
            pm.Exponential(name, 1.0 / (mean * spread**power))
            for name, mean, power in case.auxiliary
        ]
        eta = alpha + beta * (x - x.mean())
        pm.Potential("loglik", pt.sum(case.log_p(y, eta, *own)))
    return model


def fit(name: str, case: Case, data: pd.DataFrame, seed: int) -> dict[str, Any]:
    import nutpie

    x = data["x"].to_numpy(float)
    is_factor = name == "ordered_logit"
    y = data["y"].map(LEVELS.index).to_numpy(float) if is_factor else data["y"].to_numpy(float)
    compiled = nutpie.compile_pymc_model(build(case, y, x), backend="numba")
    trace = nutpie.sample(
        compiled, draws=DRAWS, tune=TUNE, chains=CHAINS, cores=1, seed=seed,
        target_accept=TARGET, save_warmup=False, progress_bar=False,
    )  # fmt: skip
    drawn = {key: trace.posterior[key].to_numpy() for key in trace.posterior.data_vars}
    draws = {
        "Intercept": drawn["alpha"] - drawn["beta"] * x.mean(),
        "x": drawn["beta"],
        **{key: drawn[key] for key, _, _ in case.auxiliary},
    }
    return {
        "types": case.types,
        "x": data["x"].tolist(),
        "y": data["y"].tolist(),
        "divergences": int(trace.sample_stats["diverging"].sum()),
        "parameters": [summary(key, values) for key, values in draws.items()],
    }


def data_of(case: Case, number: int) -> pd.DataFrame:
    rng = np.random.default_rng([2026, number])
    made: Columns = numbers(rng, 60, "x")
    return pd.DataFrame({**made, "y": case.draw(rng, made["x"])})


def main(*names: str) -> None:
    file = HERE / "families.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"cases": {}}
    known |= {"chains": CHAINS, "draws": DRAWS, "tune": TUNE, "target_accept": TARGET}
    for number, (name, case) in enumerate(CASES.items(), start=1):
        if names and name not in names:
            continue
        found = fit(name, case, data_of(case, number), seed=number)
        known["cases"][name] = found
        file.write_text(json.dumps(known) + "\n", encoding="utf-8")
        parameters = found["parameters"]
        sys.stdout.write(
            f"{name}: rhat <= {max(p['rhat'] for p in parameters):.4f}, "
            f"ess >= {min(p['ess_bulk'] for p in parameters):.0f}, "
            f"{found['divergences']} divergences\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
