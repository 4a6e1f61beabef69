"""The probability of a record's own row, against everything enumerated and against closed forms.

Nothing is shared with the package: models are laid out on grids of parameters, or integrated by
hand.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import t as student

import synrisk as sr

ERRORS = 4.5  # of Monte Carlo: all comparisons of this file together fail once in a thousand seeds


def enumerated(log_f, log_prior):
    """Return p(row j is the target's | release) for all j, as a function of the datasets and of t.

    `log_f[v, j, g]` is the log probability of value v at row j under parameter g. The intruder does
    not know any y: all are summed over, each with p(y) and, for every dataset, with
    p(Ỹ_l | y) = ∫ p(θ | y) f(Ỹ_l | θ) dθ.
    """
    n = log_f.shape[1]
    every = np.array(list(product((0, 1), repeat=n)))
    rows = np.arange(n)
    of_y = log_f[every, rows].sum(axis=1)  # (y, parameter)
    p_y = np.exp(of_y + log_prior).sum(axis=1)
    posterior = np.exp(of_y + log_prior) / p_y[:, None]

    def rows_of(datasets, t):
        joint = p_y.copy()
        for values in datasets:
            joint *= posterior @ np.exp(log_f[values, rows].sum(axis=0))
        p = np.array([joint[every[:, j] == t].sum() for j in rows])
        return p / p.sum()

    return rows_of


def logistic(x, intercept, slope, step=0.05):
    """log f and the prior of a logistic regression on a grid of its two parameters."""
    a, b = np.meshgrid(
        np.arange(-6, 6, step) * intercept.sd + intercept.mean,
        np.arange(-6, 6, step) * slope.sd + slope.mean,
    )
    a, b = a.ravel(), b.ravel()
    prior = (
        -0.5 * ((a - intercept.mean) / intercept.sd) ** 2 - 0.5 * ((b - slope.mean) / slope.sd) ** 2
    )
    prior -= np.log(np.exp(prior).sum())
    p = expit(a + (x - x.mean())[:, None] * b)
    return np.log(np.stack([1 - p, p])), prior


PRIOR = {"Intercept": sr.Normal(0.2, 1.0), "x": sr.Normal(0.0, 1.5)}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_six_records_whose_values_are_all_enumerated(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=6)
    people = pd.DataFrame({"x": x, "y": [0, 1, 0, 1, 1, 0]})
    fitted = sr.fit(
        sr.Regression("y ~ x", "bernoulli"), people, prior=PRIOR, n_draws=4000, seed=seed
    )
    release = people.assign(y=rng.permutation([0, 1, 1, 1, 0, 0]))
    found = sr.identification_risk(
        people, release, known=[], synthesized=["y"], radius=0, synthesizer=fitted
    ).records
    rows_of = enumerated(*logistic(x, PRIOR["Intercept"], PRIOR["x"]))
    for i, t in enumerate(people["y"]):
        expected = rows_of([release["y"].to_numpy()], t)[i]
        assert abs(found["posterior"].iloc[i] - expected) < ERRORS * found["posterior_mcse"].iloc[i]
    assert found["posterior_mcse"].max() < 0.01
    assert np.ptp(found["posterior"]) > 0.05


@pytest.mark.parametrize(("n_records", "n_datasets"), [(6, 5), (8, 2), (8, 3)])
def test_several_datasets_by_every_file_that_could_have_been(n_records, n_datasets):
    rng = np.random.default_rng([n_records, n_datasets])
    x = rng.normal(size=n_records)
    people = pd.DataFrame({"x": x, "y": np.arange(n_records) % 2})
    fitted = sr.fit(sr.Regression("y ~ x", "bernoulli"), people, prior=PRIOR, n_draws=400, seed=1)
    release = fitted.synthesize(m=n_datasets, seed=987654321987 + n_records)
    found = sr.identification_risk(
        people, release, known=[], synthesized=["y"], radius=0, synthesizer=fitted
    ).records
    rows_of = enumerated(*logistic(x, PRIOR["Intercept"], PRIOR["x"], step=0.1))
    values = [one["y"].to_numpy().astype(int) for one in release]
    expected = np.array([rows_of(values, t)[i] for i, t in enumerate(people["y"])])
    apart = np.abs(found["posterior"] - expected)
    assert (apart < ERRORS * found["posterior_mcse"]).all()
    assert found["posterior_mcse"].max() < 0.01
    # One dataset after the other, averaged, is another number.
    by_one = np.abs(found["posterior_by_one"] - expected)
    assert (by_one > ERRORS * found["posterior_mcse"]).any()


def predictive(design, y, rows, scale, df, centre, spread, columns_sd):
    """The t density of new values given rows, under the conjugate prior, by its closed form."""
    precision = np.diag(np.r_[1.0, columns_sd**2]) / scale**2
    mean = np.r_[centre, np.zeros(design.shape[1] - 1)]
    after = precision + design.T @ design
    beta = np.linalg.solve(after, precision @ mean + design.T @ y)
    nu = df + len(y)
    ss = df * spread**2 + y @ y + mean @ precision @ mean - beta @ after @ beta
    inverse = np.linalg.inv(after)
    width = np.sqrt(ss / nu * (1 + np.einsum("ij,jk,ik->i", rows, inverse, rows)))
    return student(nu, rows @ beta, width)


@pytest.fixture(scope="module")
def sequence():
    rng = np.random.default_rng(8)
    people = pd.DataFrame({"g": list("aaaabbbb") * 2, "x": rng.normal(size=16)})
    people["a"] = 1.0 + 0.8 * people["x"] + rng.normal(size=16)
    people["b"] = people["a"] - 0.5 * people["x"] + rng.normal(size=16)
    plan = [sr.Regression("a ~ x"), sr.Regression("b ~ a + x")]
    fitted = sr.fit(plan, people, prior=sr.Conjugate(3.0, 2.0), n_draws=4000, seed=3)
    return people, fitted, fitted.synthesize(seed=987654321987)[0]


def of_sequence(people, release):
    """The predictive distributions of a and b at any rows, given the release alone."""
    x = people["x"].to_numpy()

    def of(name, predictors):
        own = np.stack([people[p] for p in predictors], axis=1)
        theirs = np.stack([release[p] for p in predictors], axis=1)
        centre, sd = own.mean(axis=0), own.std(axis=0, ddof=1)
        made = release[name].to_numpy()
        design = np.column_stack([np.ones(len(x)), theirs - centre])

        def at(values):
            rows = np.column_stack([np.ones(len(values)), values - centre])
            y = people[name]
            return predictive(design, made, rows, 3.0, 2.0, y.mean(), y.std(ddof=1), sd)

        return at

    return of("a", ["x"]), of("b", ["a", "x"])


@pytest.mark.parametrize("radius", [0.0, 0.7])
def test_a_sequence_of_linear_models_by_closed_forms(sequence, radius):
    people, fitted, release = sequence
    found = sr.identification_risk(
        people,
        release,
        known=["g"],
        synthesized=["a", "b"],
        radius=sr.Radius(absolute=radius),
        synthesizer=fitted,
    ).records
    a_at, b_at = of_sequence(people, release)
    x, g = people["x"].to_numpy(), people["g"].to_numpy()
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for i, (a, b) in enumerate(people[["a", "b"]].to_numpy()):
        rows = np.flatnonzero(g == g[i])
        if radius:
            p = np.zeros(len(rows))
            for node, weight in zip(a + radius * nodes, weights, strict=True):
                of_b = b_at(np.column_stack([np.full(len(rows), node), x[rows]]))
                inside = of_b.cdf(b + radius) - of_b.cdf(b - radius)
                p += weight * a_at(x[rows, None]).pdf(node) * inside
        else:
            p = a_at(x[rows, None]).pdf(a)
            p *= b_at(np.column_stack([np.full(len(rows), a), x[rows]])).pdf(b)
        expected = (p / p.sum())[rows == i][0]
        difference = abs(found["posterior"].iloc[i] - expected)
        assert difference < ERRORS * found["posterior_mcse"].iloc[i]
    assert found["posterior_mcse"].max() < 0.02


def test_what_is_not_known_is_drawn_by_its_model(sequence):
    people, fitted, release = sequence
    found = sr.identification_risk(
        people, release, known=["g"], synthesized=["b"], radius=0, synthesizer=fitted
    ).records
    a_at, b_at = of_sequence(people, release)
    x, g = people["x"].to_numpy(), people["g"].to_numpy()
    grid = np.linspace(-12, 14, 2001)
    for i, b in enumerate(people["b"]):
        rows = np.flatnonzero(g == g[i])
        p = np.empty(len(rows))
        for k, row in enumerate(rows):
            of_b = b_at(np.column_stack([grid, np.full(len(grid), x[row])])).pdf(b)
            p[k] = (a_at(np.array([[x[row]]])).pdf(grid) * of_b).sum()
        expected = (p / p.sum())[rows == i][0]
        difference = abs(found["posterior"].iloc[i] - expected)
        assert difference < ERRORS * found["posterior_mcse"].iloc[i]
    assert found["posterior_mcse"].max() < 0.02
