"""Random small cases against plain loops with columns built by hand, to 1e-10."""

import numpy as np
import pandas as pd
import pytest
from helpers.naive import NaiveModel, joint
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy.interpolate import BSpline

import synrisk as sr

U, R = ("p", "q", "s"), ("low", "mid", "top")
TYPES = {"u": list(U), "r": list(R)}


def is_level(row, name, level):
    return float(row[name] == level)


class Spline:
    """bs(b): cubic, no inner knots, the polynomials continued beyond the data's range."""

    def __init__(self, values):
        low, high = min(values), max(values)
        self.knots = np.array([low] * 4 + [high] * 4)

    def __call__(self, value):
        return [float(BSpline(self.knots, np.eye(4)[k], 3)(value)) for k in (1, 2, 3)]


# Each plan: a list of (formula, family, columns by hand). `data` is the confidential table.
def several_predictors(data):
    return [
        ("r ~ x + z + u", "categorical",
         lambda t: [1.0, t["x"], t["z"], is_level(t, "u", "q"), is_level(t, "u", "s")]),
    ]  # fmt: skip


def guess_propagated(data):
    return [
        ("b ~ x", "gaussian", lambda t: [1.0, t["x"]]),
        ("c ~ b + x + z", "gaussian", lambda t: [1.0, t["b"], t["x"], t["z"]]),
    ]


def square_and_product(data):
    return [
        ("b ~ 1", "gaussian", lambda t: [1.0]),
        ("c ~ I(b**2) + b:x + exp(b / 10)", "gaussian",
         lambda t: [1.0, t["b"] ** 2, float(np.exp(t["b"] / 10)), t["b"] * t["x"]]),
    ]  # fmt: skip


def count_as_factor(data):
    levels = sorted(set(data["k"]))
    return [
        ("k ~ x", "poisson", lambda t: [1.0, t["x"]]),
        ("c ~ C(k) + x", "gaussian",
         lambda t: [1.0, *(is_level(t, "k", v) for v in levels[1:]), t["x"]]),
    ]  # fmt: skip


def spline(data):
    basis = Spline(data["b"])
    return [
        ("b ~ z", "gaussian", lambda t: [1.0, t["z"]]),
        ("o ~ bs(b) + x", "bernoulli", lambda t: [1.0, *basis(t["b"]), t["x"]]),
    ]


def chain_of_three(data):
    return [
        ("r ~ x", "categorical", lambda t: [1.0, t["x"]]),
        ("b ~ r + z", "gaussian",
         lambda t: [1.0, is_level(t, "r", "mid"), is_level(t, "r", "top"), t["z"]]),
        ("o ~ b + r:x", "bernoulli",
         lambda t: [1.0, t["b"], *(is_level(t, "r", level) * t["x"] for level in R)]),
    ]  # fmt: skip


def chain_of_four(data):
    centre, spread = np.mean(data["b"]), np.std(data["b"], ddof=1)
    return [
        ("b ~ 1", "gaussian", lambda t: [1.0]),
        ("k ~ scale(b)", "poisson", lambda t: [1.0, (t["b"] - centre) / spread]),
        ("o ~ k + u", "bernoulli",
         lambda t: [1.0, t["k"], is_level(t, "u", "q"), is_level(t, "u", "s")]),
        ("r ~ 0 + b + k:o + x", "categorical", lambda t: [t["b"], t["x"], t["k"] * t["o"]]),
    ]  # fmt: skip


PLANS = [
    several_predictors, guess_propagated, square_and_product, count_as_factor, spline,
    chain_of_three, chain_of_four,
]  # fmt: skip


def table(rng, n, counts=None):
    return {
        "x": rng.normal(size=n),
        "z": rng.normal(size=n),
        "u": rng.choice(U, n),
        "b": rng.normal(size=n),
        "c": rng.normal(size=n),
        "k": rng.choice(counts, n)
        if counts is not None
        else np.r_[0, 1, rng.integers(0, 4, n - 2)],
        "o": rng.integers(0, 2, n),
        "r": rng.choice(R, n),
        "omega": rng.uniform(0.2, 1.5, n),
    }


def as_rows(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def draws_for(rng, formula, family, n_columns, n_draws, synthesizer_names):
    shape = (n_draws, n_columns, 2) if family == "categorical" else (n_draws, n_columns)
    beta = rng.normal(scale=0.4, size=shape)
    sigma = rng.uniform(0.5, 1.5, n_draws) if family == "gaussian" else None
    frame = {}
    for column, name in enumerate(synthesizer_names):
        if family == "categorical":
            for q, level in enumerate(R[1:]):
                frame[f"{level}:{name}"] = beta[:, column, q]
        else:
            frame[name] = beta[:, column]
    if sigma is not None:
        frame["sigma"] = sigma
    return beta, sigma, pd.DataFrame(frame)


def design_names(formula, data):
    """The names of the hand-built columns, in their order."""
    counts = sorted(set(data["k"]))[1:]
    return {
        "r ~ x + z + u": ["Intercept", "x", "z", "u[T.q]", "u[T.s]"],
        "b ~ x": ["Intercept", "x"],
        "c ~ b + x + z": ["Intercept", "b", "x", "z"],
        "b ~ 1": ["Intercept"],
        "c ~ I(b**2) + b:x + exp(b / 10)": ["Intercept", "I(b^2)", "exp(b/10)", "b:x"],
        "k ~ x": ["Intercept", "x"],
        "c ~ C(k) + x": ["Intercept", *(f"as.factor(k){v}" for v in counts), "x"],
        "b ~ z": ["Intercept", "z"],
        "o ~ bs(b) + x": ["Intercept", "bs(b)1", "bs(b)2", "bs(b)3", "x"],
        "r ~ x": ["Intercept", "x"],
        "b ~ r + z": ["Intercept", "rmid", "rtop", "z"],
        "o ~ b + r:x": ["Intercept", "b", "rlow:x", "rmid:x", "rtop:x"],
        "k ~ scale(b)": ["Intercept", "scale(b)"],
        "o ~ k + u": ["Intercept", "k", "uq", "us"],
        "r ~ 0 + b + k:o + x": ["b", "x", "k:o"],
    }[formula]


def guesses_for(rng, name, data, i):
    truth = data[name][i]
    if name == "r":
        return list(R)
    if name == "o":
        return [0, 1]
    if name == "k":
        return sorted(set(data["k"].tolist()))
    values = [truth + shift for shift in (-1.3, 0.0, 0.8)]
    rng.shuffle(values)
    return values


@pytest.mark.parametrize("estimator", ["paper", "importance"])
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.__name__)
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.sampled_from([1, 1, 3]),
    n_draws=st.integers(1, 4),
    n_rows=st.integers(1, 5),
    weighted=st.booleans(),
    weighted_draws=st.booleans(),
    with_prior=st.booleans(),
)
def test_equal_to_the_naive_loop(
    estimator, plan, seed, m, n_draws, n_rows, weighted, weighted_draws, with_prior
):
    rng = np.random.default_rng(seed)
    data = table(rng, 5)
    release = [table(rng, n_rows, counts=data["k"]) for _ in range(m)]
    weight = "omega" if weighted else None
    models, regressions, draws = [], [], []
    for formula, family, columns in plan(data):
        names = design_names(formula, data)
        assert len(columns(as_rows(data)[0])) == len(names)
        beta, sigma, frame = draws_for(rng, formula, family, len(names), n_draws, names)
        v = rng.uniform(0.5, 2.0, n_draws) if weighted_draws else None
        if v is not None:
            frame["weight"] = v
        response = formula.split(" ~ ")[0]
        models.append(NaiveModel(response, family, columns, beta, sigma, R, weight, v))
        regressions.append(sr.Regression(formula, family=family, weights=weight))
        draws.append(frame)
    synthesizer = sr.Synthesizer.from_draws(regressions, data, draws, types=TYPES)
    i = int(rng.integers(5))
    guesses = {m.response: guesses_for(rng, m.response, data, i) for m in models}
    shape = tuple(len(g) for g in guesses.values())
    prior = rng.dirichlet(np.ones(int(np.prod(shape)))).reshape(shape) if with_prior else None
    risk = sr.attribute_risk(
        synthesizer,
        [pd.DataFrame(one)[list(synthesizer.plan.columns)] for one in release],
        guesses={name: sr.Values([g]) for name, g in guesses.items()},
        records=[i],
        estimator=estimator,
        intruder_prior="uniform" if prior is None else np.log(prior),
        question="paper",
        diagnostics=False,
    )
    expected = joint(
        models, as_rows(data), [as_rows(one) for one in release], i,
        list(guesses.values()), estimator, prior,
    )  # fmt: skip
    found = risk.joint(i)
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=0, atol=1e-10)
    truth = tuple(list(g).index(data[name][i]) for name, g in guesses.items())
    row = risk.records.loc[i]
    assert row["probability"] == pytest.approx(expected[truth], abs=1e-10)
    for axis, name in enumerate(guesses):
        others = tuple(a for a in range(expected.ndim) if a != axis)
        marginal = expected.sum(axis=others)
        assert row[f"probability_{name}"] == pytest.approx(marginal[truth[axis]], abs=1e-10)
    assert (
        row["rank"]
        == (expected > expected[truth] * (1 + 1e-9)).sum()
        + (1 + (np.abs(np.log(expected / expected[truth])) <= 1e-9).sum()) / 2
    )
