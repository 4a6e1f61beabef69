"""Small synthesizers for tests."""

import numpy as np
import pandas as pd

import synrisk as sr
from synrisk.models.plan import Plan


def people(n=40, seed=0):
    """A table with every kind of variable."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "z": rng.normal(size=n),
            "u": pd.Categorical(rng.choice(["p", "q", "s"], n), categories=["p", "q", "s"]),
            "b": 10 + x + rng.normal(size=n),
            "c": rng.normal(size=n),
            "k": rng.poisson(1.5, n),
            "o": rng.integers(0, 2, n),
            "r": pd.Categorical(rng.choice(["low", "mid", "top"], n)),
        }
    )


def gaussian_draws(n_draws=20, names=("Intercept",), centre=(10.0,), seed=1, spread=0.2):
    """Draws of a linear model about `centre`."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {name: rng.normal(c, spread, n_draws) for name, c in zip(names, centre, strict=True)}
    )
    frame["sigma"] = rng.uniform(1.0, 1.6, n_draws)
    return frame


def one_gaussian(n=40, n_draws=20, formula="b ~ x", **options):
    """A synthesizer of b given x, and a release."""
    data = people(n)
    draws = gaussian_draws(n_draws, ("Intercept", "x"), (10.0, 1.0))
    synthesizer = sr.Synthesizer.from_draws(sr.Regression(formula), data, draws, **options)
    release = data[["x"]].assign(b=data["b"].to_numpy()[::-1] + 0.1)
    return synthesizer, release


def two_gaussians(n=40, n_draws=20):
    """A synthesizer of b, then c given b, and a release."""
    data = people(n)
    draws = [
        gaussian_draws(n_draws, ("Intercept",), (10.0,), seed=1),
        gaussian_draws(n_draws, ("Intercept", "b"), (-1.0, 0.1), seed=2, spread=0.05),
    ]
    plan = [sr.Regression("b ~ 1"), sr.Regression("c ~ b")]
    synthesizer = sr.Synthesizer.from_draws(plan, data, draws)
    release = pd.DataFrame({"b": data["b"].to_numpy()[::-1] + 0.1, "c": data["c"].to_numpy()[::-1]})
    return synthesizer, release


def used_columns(plan):
    """The columns that a plan uses: others of a table are released as they are, and looked at."""
    plan = Plan.of(plan)
    return [*plan.columns, *plan.weight_columns]
