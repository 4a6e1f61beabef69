"""The default question against closed forms: before, after and gain of gaussian models.

Under the reference prior ∝ 1/σ² what is predicted of a value is Student's t, and the likelihood of
a release at a value is the ratio of two such densities, given the other records with the release
and without it. Sums over a fine rule of each part of the range are the reference.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from helpers.secret import SECRET
from scipy.stats import t as student

import synrisk as sr

REFERENCE = sr.Conjugate(scale=np.inf, df=0)


def fine_rule(edges, n=80):
    """Gauss's nodes and weights between edges, in pieces."""
    x, w = np.polynomial.legendre.leggauss(n)
    nodes, weights = [], []
    for low, high in itertools.pairwise(edges):
        for a, b in itertools.pairwise(np.linspace(low, high, 9)):
            nodes.append((a + b) / 2 + (b - a) / 2 * x)
            weights.append((b - a) / 2 * w)
    nodes, weights = np.concatenate(nodes), np.concatenate(weights)
    return nodes[weights > 0], weights[weights > 0]


def log_t(matrix, y, rows, values):
    """The log density of values at rows, predicted by least squares of y on the matrix."""
    gram = np.linalg.inv(matrix.T @ matrix)
    beta = gram @ matrix.T @ y
    df = len(y) - matrix.shape[1]
    s2 = ((y - matrix @ beta) ** 2).sum() / df
    scale = np.sqrt(s2 * (1 + np.einsum("...i,ij,...j->...", rows, gram, rows)))
    return student.logpdf(values, df, rows @ beta, scale)


def log_likelihood(matrix, y, stacks, rows, values):
    alone = log_t(matrix, y, rows, values)
    total = np.zeros(np.shape(values))
    for more, z in stacks:
        total += log_t(np.concatenate([matrix, more]), np.concatenate([y, z]), rows, values) - alone
    return alone, total


def with_one(*columns):
    return np.column_stack([np.ones(len(columns[0])), *columns])


@pytest.mark.parametrize("m", [1, 4])
@pytest.mark.parametrize("outlier", [None, 1000.0])
@pytest.mark.parametrize("n", [25, 300])
def test_one_variable_equals_quadrature(n, outlier, m):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    y = 50 + 4 * x + 10 * rng.normal(size=n)
    if outlier:
        y[0] = outlier
    data = pd.DataFrame({"x": x, "y": y})
    fitted = sr.fit(sr.Regression("y ~ x"), data, prior=REFERENCE, seed=SECRET)
    release = fitted.synthesize(m, seed=SECRET + m)
    records = sorted({0, 1, int(np.argmax(y[1:])) + 1, int(np.argmin(y))})
    found = sr.attribute_risk(fitted, release, diagnostics=False, records=records).records
    span = np.ptp(y)
    low, high = y.min() - 0.1 * span, y.max() + 0.1 * span
    stacks = [(with_one(one["x"]), one["y"].to_numpy()) for one in release]
    for i in records:
        rest = np.arange(n) != i
        edges = np.clip([low, y[i] - 0.1 * abs(y[i]), y[i] + 0.1 * abs(y[i]), high], low, high)
        values, weights = fine_rule(edges)
        rows = np.broadcast_to([1.0, x[i]], (len(values), 2))
        alone, log_l = log_likelihood(with_one(x[rest]), y[rest], stacks, rows, values)
        p = np.exp(alone) * weights
        prior = 0.9 * p / p.sum() + 0.1 * weights / weights.sum()
        posterior = prior * np.exp(log_l - log_l.max())
        near = (values > edges[1]) & (values < edges[2])
        before, after = prior[near].sum(), posterior[near].sum() / posterior.sum()
        assert found.loc[i, "before"] == pytest.approx(before, abs=1e-8)
        assert found.loc[i, "after"] == pytest.approx(after, abs=1e-8)
        assert found.loc[i, "gain"] == pytest.approx(after - before, abs=1e-8)
        density = np.sort(p / weights)[::-1]
        order = np.argsort(-p / weights)
        threshold = density[np.searchsorted(np.cumsum(p[order]) / p.sum(), 0.99)]
        likely = p / weights >= threshold
        # The ends of the set fall between nodes, which are a third of a residual sd apart.
        expected = np.ptp(log_l[likely])
        assert found.loc[i, "log_odds_range_99"] == pytest.approx(expected, rel=0.25, abs=0.02)


@pytest.mark.parametrize(("guesses", "tolerance"), [(None, 2e-4), (sr.Range(70), 1e-8)])
def test_two_variables_equal_quadrature(guesses, tolerance):
    """A variable predicts the next; by default the guesses are as many as an error of 1e-4 needs.

    And twice that, since the bound was measured where a density has one peak.
    """
    n, m = 60, 2
    rng = np.random.default_rng(4)
    a = 8 + rng.normal(size=n)
    b = 20 + 1.5 * a + 2 * rng.normal(size=n)
    data = pd.DataFrame({"a": a, "b": b})
    plan = [sr.Regression("a ~ 1"), sr.Regression("b ~ a")]
    fitted = sr.fit(plan, data, prior=REFERENCE, seed=SECRET)
    release = fitted.synthesize(m, seed=SECRET + 1)
    records = [0, int(np.argmax(b)), int(np.argmin(a))]
    found = sr.attribute_risk(
        fitted, release, guesses=guesses, tolerance=0.1, diagnostics=False, records=records
    ).records
    for i in records:
        rest = np.arange(n) != i
        rules, near = [], []
        for y in (a, b):
            ends = (y.min() - 0.1 * np.ptp(y), y.max() + 0.1 * np.ptp(y))
            edges = np.clip([ends[0], 0.9 * y[i], 1.1 * y[i], ends[1]], *ends)
            values, weights = fine_rule(edges, 8)
            rules.append((values, weights))
            near.append((values > edges[1]) & (values < edges[2]))
        (u, wu), (v, wv) = rules
        ones = np.ones((len(u), 1))
        first = [(np.ones((n, 1)), one["a"].to_numpy()) for one in release]
        alone, log_l = log_likelihood(np.ones((n - 1, 1)), a[rest], first, ones, u)
        rows = np.stack([np.ones((len(u), len(v))), np.broadcast_to(u[:, None], (len(u), len(v)))])
        rows = np.moveaxis(rows, 0, 2)
        second = [(with_one(one["a"]), one["b"].to_numpy()) for one in release]
        values = np.broadcast_to(v, (len(u), len(v)))
        alone2, log_l2 = log_likelihood(with_one(a[rest]), b[rest], second, rows, values)
        w = wu[:, None] * wv
        p = np.exp(alone[:, None] + alone2) * w
        prior = 0.9 * p / p.sum() + 0.1 * w / w.sum()
        log_l = log_l[:, None] + log_l2
        posterior = prior * np.exp(log_l - log_l.max())
        posterior /= posterior.sum()
        both = near[0][:, None] & near[1]
        targets = {"": both, "_a": np.broadcast_to(near[0][:, None], both.shape),
                   "_b": np.broadcast_to(near[1], both.shape)}  # fmt: skip
        for name, target in targets.items():
            before, after = prior[target].sum(), posterior[target].sum()
            assert found.loc[i, f"before{name}"] == pytest.approx(before, abs=tolerance)
            assert found.loc[i, f"after{name}"] == pytest.approx(after, abs=tolerance)


def test_a_logarithm_is_laid_out_on_its_scale_and_judged_on_the_variables_own():
    """The range is even on the model's scale, the tolerance a tenth of the amount itself."""
    n, rng = 80, np.random.default_rng(8)
    income = np.exp(10 + 0.8 * rng.normal(size=n))
    fitted = sr.fit(
        sr.Regression("log(income) ~ 1"), pd.DataFrame({"income": income}), prior=REFERENCE,
        seed=SECRET,
    )  # fmt: skip
    release = fitted.synthesize(1, seed=SECRET)
    found = sr.attribute_risk(fitted, release, diagnostics=False, records=[0, 5]).records
    y = np.log(income)
    low, high = y.min() - 0.1 * np.ptp(y), y.max() + 0.1 * np.ptp(y)
    stack = [(np.ones((n, 1)), np.log(release[0]["income"].to_numpy()))]
    for i in (0, 5):
        rest = np.arange(n) != i
        edges = [low, np.log(0.9 * income[i]), np.log(1.1 * income[i]), high]
        values, weights = fine_rule(np.clip(edges, low, high))
        ones = np.ones((len(values), 1))
        alone, log_l = log_likelihood(np.ones((n - 1, 1)), y[rest], stack, ones, values)
        p = np.exp(alone) * weights
        prior = 0.9 * p / p.sum() + 0.1 * weights / weights.sum()
        posterior = prior * np.exp(log_l)
        near = (values > edges[1]) & (values < edges[2])
        assert found.loc[i, "before"] == pytest.approx(prior[near].sum(), abs=1e-8)
        after = posterior[near].sum() / posterior.sum()
        assert found.loc[i, "after"] == pytest.approx(after, abs=1e-8)


def test_a_variable_of_few_values_is_guessed_among_these():
    """Everybody else's records show which there are; the model, of any number, weighs them."""
    n, m, i = 30, 2, 4
    rng = np.random.default_rng(8)
    x = rng.normal(size=n)
    y = np.array([1.0, 2.5, 4.0])[np.digitize(x + rng.normal(size=n), [-0.5, 0.7])]
    data = pd.DataFrame({"x": x, "y": y})
    fitted = sr.fit(sr.Regression("y ~ x"), data, prior=REFERENCE, seed=SECRET)
    release = fitted.synthesize(m, seed=SECRET + 1)
    risk = sr.attribute_risk(fitted, release, diagnostics=False)
    assert any("the few values that it takes" in str(note) for note in risk.notes)
    rest = np.arange(n) != i
    values, widths = np.array([1.0, 2.5, 4.0]), np.array([1.5, 1.5, 1.5])
    rows = np.broadcast_to([1.0, x[i]], (3, 2))
    stacks = [(with_one(one["x"]), one["y"].to_numpy()) for one in release]
    alone, log_l = log_likelihood(with_one(x[rest]), y[rest], stacks, rows, values)
    p = np.exp(alone) * widths
    prior = 0.9 * p / p.sum() + 0.1 / 3
    posterior = prior * np.exp(log_l)
    at = np.flatnonzero(values == y[i])[0]
    found = risk.records.loc[i]
    assert found["before"] == pytest.approx(prior[at], abs=1e-9)
    assert found["after"] == pytest.approx(posterior[at] / posterior.sum(), abs=1e-9)
    every = sr.attribute_risk(fitted, release, guesses=sr.Range(60), diagnostics=False)
    assert every.considered("y") is not None
    assert risk.considered("y") is None


def test_a_value_of_one_person_alone_does_not_make_few_values_a_range():
    y = np.repeat([1.0, 2.0, 3.0], 20)
    y[0] = 9.5
    data = pd.DataFrame({"y": y, "z": np.arange(60) + 0.5})
    fitted = sr.fit(sr.Regression("y ~ 1"), data[["y"]], seed=SECRET)
    risk = sr.attribute_risk(fitted, fitted.synthesize(), diagnostics=False)
    assert risk.records["n_guesses"].eq(4).all()
    continuous = sr.fit(sr.Regression("z ~ 1"), data[["z"]], seed=SECRET)
    risk = sr.attribute_risk(continuous, continuous.synthesize(), diagnostics=False)
    assert risk.records["n_guesses"].gt(50).all()
