"""A family written in another file goes all the way, and touches nothing but the registry."""

import numpy as np
import pandas as pd
import pytest
from helpers.families import HeavyTailed, Overdispersed
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import expon, nbinom, norm, t

import synrisk as sr
from synrisk.core.likelihood import KernelDraws, add_log_density
from synrisk.models import families
from synrisk.models.posterior import Posterior

OTHERS = (HeavyTailed(), Overdispersed())


def data(n=200):
    rng = np.random.default_rng(4)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "y": 100.0 + 5.0 * x + 3.0 * rng.standard_t(5.0, n),
            "k": rng.poisson(rng.gamma(2.0, np.exp(0.5 + 0.3 * x) / 2.0)),
        }
    )


PLAN = [("y ~ x", "heavy_tailed"), ("k ~ y + x", "overdispersed")]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(families, "FAMILIES", (*families.FAMILIES, *OTHERS))


@pytest.fixture(scope="module")
def fitted():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "FAMILIES", (*families.FAMILIES, *OTHERS))
        plan = [sr.Regression(formula, family) for formula, family in PLAN]
        synthesizer = sr.fit(plan, data(), seed=1, n_draws=400)
        release = synthesizer.synthesize(2, seed=2)
        return synthesizer, release, sr.attribute_risk(synthesizer, release, question="paper")


def test_it_is_fitted_synthesized_and_evaluated(fitted):
    synthesizer, release, risk = fitted
    assert {"sigma", "nu"} < set(synthesizer.draws("y").columns)
    assert "shape" in synthesizer.draws("k").columns
    assert (release[0]["k"] >= 0).all()
    assert risk.estimator == {"y": "stacked", "k": "stacked"}  # never taken for a gaussian
    assert risk.records["reliable"].mean() > 0.9
    assert len(risk.release_check.distances) == 4


def test_estimators_agree(fitted):
    """Importance sampling of one count model, against stacked fits, within their errors."""
    own = sr.fit(sr.Regression("k ~ x", "overdispersed"), data(), seed=3, n_draws=1000)
    release = own.synthesize(1, seed=4)
    a = sr.attribute_risk(own, release, question="paper").records
    b = sr.attribute_risk(own, release, estimator="importance", question="paper").records
    z = (a["probability"] - b["probability"]) / np.hypot(a["mcse"], b["mcse"])
    # One set of draws serves all records, so their z move together: 200 values of one normal.
    assert np.abs(z).max() < 4.0
    assert a["probability"].std() > 10 * a["mcse"].median()


def test_it_is_saved_and_loaded(fitted, tmp_path):
    synthesizer, _, risk = fitted
    risk.save(tmp_path / "risk.nc")
    loaded = sr.AttributeRisk.load(tmp_path / "risk.nc")
    pd.testing.assert_frame_equal(loaded.records, risk.records)
    np.testing.assert_array_equal(loaded.joint(7), risk.joint(7))
    synthesizer.save(tmp_path / "synthesizer.nc")
    again = sr.Synthesizer.load(tmp_path / "synthesizer.nc")
    pd.testing.assert_frame_equal(again.draws("y"), synthesizer.draws("y"))
    pd.testing.assert_frame_equal(
        again.synthesize(1, seed=5)[0], synthesizer.synthesize(1, seed=5)[0]
    )


@pytest.mark.parametrize("kind", ["sharing", "inside"])
def test_it_is_reported_with_its_utility(fitted, tmp_path, kind):
    synthesizer, release, risk = fitted
    utility = sr.utility(synthesizer, release, seed=1)
    page = risk.report(tmp_path / "a.html", kind=kind, synthetic=release, utility=utility)
    assert "heavy_tailed" in page.read_text(encoding="utf-8")


def test_draws_made_elsewhere_are_read_by_its_names(fitted):
    synthesizer, release, _ = fitted
    plan = [sr.Regression(formula, family) for formula, family in PLAN]
    draws = [synthesizer.draws(name) for name in ("y", "k")]
    theirs = sr.Synthesizer.from_draws(plan, data(), draws)
    risk = sr.attribute_risk(theirs, release, question="paper")
    assert risk.estimator == {"y": "importance", "k": "importance"}
    with pytest.raises(sr.DrawsError, match="nu"):
        sr.Synthesizer.from_draws(plan, data(), [draws[0].drop(columns="nu"), draws[1]])


def test_the_posterior_is_that_of_a_fine_grid():
    """Intercept and shape of a negative binomial, by quadrature under the priors that are told."""
    counts = data()["k"].to_numpy()
    synthesizer = sr.fit(sr.Regression("k ~ 1", "overdispersed"), data(), seed=1, n_draws=4000)
    said = synthesizer.describe()["prior"].droplevel("variable")
    assert said["shape"] == "Exponential(1)"
    eta, log_shape = np.linspace(-0.5, 2.0, 400), np.linspace(-1.5, 3.0, 400)
    shape = np.exp(log_shape)
    p = shape[None] / (shape[None] + np.exp(eta[:, None]))
    values, n = np.unique(counts, return_counts=True)
    log_p = sum(k * nbinom.logpmf(v, shape[None], p) for v, k in zip(values, n, strict=True))
    log_p = log_p + norm.logpdf(eta, 0.0, 2.5)[:, None] + (expon.logpdf(shape) + log_shape)
    weight = np.exp(log_p - logsumexp(log_p))
    draws = synthesizer.draws("k")
    w = draws["weight"].to_numpy()
    ess = 1.0 / (w**2).sum()
    for name, at, over in (("Intercept", eta, 1), ("shape", shape, 0)):
        marginal = weight.sum(axis=over)
        mean = marginal @ at
        sd = np.sqrt(marginal @ (at - mean) ** 2)
        assert w @ draws[name] == pytest.approx(mean, abs=4 * sd / np.sqrt(ess))


@pytest.mark.parametrize(
    ("formula", "log_density"),
    [
        ("y ~ x", lambda y, eta, a: t.logpdf(y, np.exp(a[1]), eta, np.exp(a[0]))),
        (
            "k ~ x",
            lambda y, eta, a: nbinom.logpmf(y, np.exp(a[0]), 1 / (1 + np.exp(eta - a[0]))),
        ),
    ],
)
def test_utility_has_the_coefficients_of_maximum_likelihood(formula, log_density):
    name, people = formula[0], data()
    family = {"y": "heavy_tailed", "k": "overdispersed"}[name]
    synthesizer = sr.fit(sr.Regression(formula, family), people, seed=1)
    intervals = sr.utility(synthesizer, synthesizer.synthesize(1, seed=2), seed=1).intervals
    found = intervals.loc[f"{formula} ({family})", "estimate_confidential"]
    x, y = people["x"].to_numpy(), people[name].to_numpy()

    def negative(theta):
        return -log_density(y, theta[0] + theta[1] * x, theta[2:]).sum()

    start = np.array([y.mean(), 0.0, 1.0, 1.0] if name == "y" else [0.0, 0.0, 1.0])
    best = minimize(
        negative,
        start,
        method="Nelder-Mead",
        options={"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-9, "fatol": 1e-12},
    )
    assert best.success
    # The ridge of a thousand standard deviations moves what lies s standard errors from 0 by
    # s · 1e-6 of them at most, and the simplex ends within √fatol of one.
    np.testing.assert_allclose(found, best.x[:2], rtol=1e-6, atol=1e-6)


COMPILED = [family for family in (*families.FAMILIES, *OTHERS) if family.compiled]


@pytest.mark.parametrize("family", COMPILED, ids=lambda f: f.name)
def test_the_compiled_density_is_the_plain_one(family):
    """Up to what is the same at every draw, for eight draws at a time and for those left over."""
    rng = np.random.default_rng(2)
    n_draws, n_levels = 21, 4
    n_predictors = n_levels - 1 if family.makes_factor else 1
    draws = Posterior(
        rng.normal(size=(n_draws, 2, n_predictors)),
        rng.uniform(0.5, 3.0, size=(n_draws, len(family.auxiliary))),
        np.full(n_draws, -np.log(n_draws)),
        (),
        (),
    )
    y = rng.integers(0, 2, 30).astype(float)
    matrix = np.column_stack([np.ones(30), rng.normal(size=30)])
    found = np.zeros(n_draws)
    add_log_density(KernelDraws.of(family, draws), y, matrix, np.ones(30), found)
    eta = np.einsum("ij,hjq->hiq", matrix, draws.coefficients)
    expected = family.log_density(y, eta, draws.auxiliary[:, None, :]).sum(axis=1)
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-11)
