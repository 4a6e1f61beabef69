"""The exact and stacked likelihoods against the definition: marginal likelihoods by brute force.

p(Ỹ_l | the record replaced by the guess) is a ratio of two marginal likelihoods: of confidential
and synthetic rows together, and of the confidential rows alone, with the record replaced in both.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import synrisk as sr


def log_marginal(x, y, omega, prior):
    """log p(y) of a gaussian regression, up to a constant of the number of rows.

    `prior` is ("conjugate", mean, scale of each column, df, spread) or ("normal", mean, sd, rate).
    """
    if prior[0] == "conjugate":
        _, mean, scale, df, spread = prior
        precision = (x.T * omega) @ x + np.diag(scale**-2.0)
        right = (x.T * omega) @ y + mean / scale**2
        centre = np.linalg.solve(precision, right)
        squares = df * spread**2 + np.sum(omega * (y - x @ centre) ** 2)
        squares += np.sum(((centre - mean) / scale) ** 2)
        return -0.5 * np.linalg.slogdet(precision)[1] - 0.5 * (df + omega.sum()) * np.log(squares)
    _, mean, sd, rate = prior
    logs = np.linspace(np.log(y.std()) - 3.0, np.log(y.std()) + 3.0, 1501)
    sigma2 = np.exp(2 * logs)[:, None, None]
    precision = (x.T * omega) @ x / sigma2 + np.diag(sd**-2.0)
    right = (x.T * omega) @ y / sigma2[:, 0] + mean / sd**2
    centre = np.linalg.solve(precision, right[..., None])[..., 0]
    errors = (omega * (y - centre @ x.T) ** 2).sum(axis=1) / sigma2[:, 0, 0]
    log_p = -omega.sum() * logs - 0.5 * errors - 0.5 * (((centre - mean) / sd) ** 2).sum(axis=1)
    log_p = log_p - 0.5 * np.linalg.slogdet(precision)[1] + logs - rate * np.exp(logs)
    return logsumexp(log_p)


def people(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(2.0, 1.0, n)
    b = 1.0 + x + rng.normal(size=n)
    w = rng.uniform(0.5, 2.0, n)
    return pd.DataFrame({"x": x, "b": b, "c": 0.5 * b - x + rng.normal(size=n), "w": w})


def prior_of(kind, columns, y):
    """The library's prior on columns that are centred but for the first, the intercept."""
    if kind == "conjugate":
        scale = np.array([3.0, *(3.0 / column.std(ddof=1) for column in columns)])
        return "conjugate", np.array([y.mean(), *np.zeros(len(columns))]), scale, 2.0, y.std(ddof=1)
    sd = [2.5 * y.std(ddof=1), *(2.5 * y.std(ddof=1) / c.std(ddof=1) for c in columns)]
    return "normal", np.array([y.mean(), *np.zeros(len(columns))]), np.array(sd), 1 / y.std(ddof=1)


def brute_force(data, release, record, guesses, kind):
    """log likelihood over the joint grid of b and c, straight from the definition."""
    models = [("b", ["x"]), ("c", ["b", "x"])]
    table = np.zeros((len(guesses["b"]), len(guesses["c"])))
    for name, predictors in models:
        centres = {p: data[p].mean() for p in predictors}
        prior = prior_of(kind, [data[p] for p in predictors], data[name])

        def columns(frame, predictors=predictors, centres=centres):
            centred = [frame[p].to_numpy() - centres[p] for p in predictors]
            return np.column_stack([np.ones(len(frame)), *centred])

        for at, (b, c) in enumerate(itertools.product(guesses["b"], guesses["c"])):
            replaced = data.copy()
            replaced.loc[record, ["b", "c"]] = b, c
            x, y = columns(replaced), replaced[name].to_numpy()
            omega = data["w"].to_numpy()
            alone = log_marginal(x, y, omega, prior)
            for dataset in release:
                together = log_marginal(
                    np.concatenate([x, columns(dataset)]),
                    np.concatenate([y, dataset[name]]),
                    np.concatenate([omega, np.ones(len(dataset))]),
                    prior,
                )
                table.flat[at] += together - alone
    return table


PLAN = [
    sr.Regression("b ~ x", weights="w"),
    sr.Regression("c ~ b + x", weights="w"),
]


@pytest.mark.parametrize("kind", ["conjugate", "normal"])
@pytest.mark.parametrize("m", [1, 2])
def test_exact_probabilities_are_those_of_the_definition(kind, m):
    data = people(24, seed=3)
    data.loc[5, "c"] += 6.0  # an outlier
    prior = sr.Conjugate(3.0, 2.0) if kind == "conjugate" else "default"
    synthesizer = sr.fit(PLAN, data, prior=prior, seed=1, n_draws=10)
    release = synthesizer.synthesize(m, seed=2)
    risk = sr.attribute_risk(
        synthesizer,
        release,
        guesses=[sr.Additive(4, 1.5, 1.5), sr.Additive(3, 4.0, 2.0)],
        question="paper",
    )
    assert risk.estimator == {"b": "exact", "c": "exact"}
    for record in (0, 5, 11):
        found = risk.joint(record)
        guesses = {name: found[name].to_numpy() for name in ("b", "c")}
        log_p = brute_force(data, release, record, guesses, kind)
        np.testing.assert_allclose(
            found.to_numpy(), np.exp(log_p - logsumexp(log_p)), rtol=0, atol=1e-8
        )
        assert found.std() > 1e-3


def test_a_far_outlier_is_exact():
    data = people(24, seed=3)
    data.loc[5, "c"] += 300.0
    synthesizer = sr.fit(PLAN, data, prior=sr.Conjugate(3.0, 2.0), seed=1, n_draws=10)
    release = synthesizer.synthesize(1, seed=2)
    guesses = {"b": 3, "c": sr.Values([0.0, 100.0, 200.0])}
    found = sr.attribute_risk(
        synthesizer, release, guesses=guesses, records=[5], question="paper"
    ).joint(5)
    given = {name: found[name].to_numpy() for name in ("b", "c")}
    log_p = brute_force(data, release, 5, given, "conjugate")
    np.testing.assert_allclose(
        found.to_numpy(), np.exp(log_p - logsumexp(log_p)), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize(("weight", "width"), [(50.0, 5.0), (1000.0, 20.0)])
def test_heavy_weights_and_wide_guesses_are_exact(weight, width):
    """A guess of weight 1000 moves sigma far: there too must be nodes."""
    data = people(60, seed=3).assign(w=weight)
    fitted = sr.fit(PLAN, data, prior=sr.Conjugate(3.0, 2.0), seed=1, n_draws=10)
    release = fitted.synthesize(1, seed=2)
    risk = sr.attribute_risk(
        fitted, release, guesses=sr.Additive(3, width, width), records=[7], question="paper"
    )
    found = risk.joint(7)
    given = {name: found[name].to_numpy() for name in ("b", "c")}
    log_p = brute_force(data, release, 7, given, "conjugate")
    np.testing.assert_allclose(
        found.to_numpy(), np.exp(log_p - logsumexp(log_p)), rtol=0, atol=1e-7
    )
    expected = log_p.max() - log_p.min()
    assert risk.records.loc[7, "log_odds_range"] == pytest.approx(expected, rel=1e-6)


def test_predictors_far_from_zero_lose_no_digits():
    data = people(30, seed=3)[["x", "b", "w"]]
    found = []
    for shift in (0.0, 2.0**20):  # a power of two: the sum rounds to 2^-32 at most
        moved = data.assign(x=data["x"] + shift)
        fitted = sr.fit(PLAN[0], moved, seed=1, n_draws=10)
        release = data.assign(x=moved["x"], b=data["b"].to_numpy()[::-1])
        risk = sr.attribute_risk(fitted, release, diagnostics=False, question="paper")
        found.append(risk.records["probability"])
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)


def test_stacked_draws_tend_to_the_exact_likelihood():
    data = people(40, seed=3)
    release = sr.fit(PLAN, data, seed=1).synthesize(1, seed=2)
    exact = sr.attribute_risk(
        sr.fit(PLAN, data, seed=1), release, guesses=5, question="paper"
    ).records["probability"]
    errors = []
    for n_draws in (200, 20_000):
        synthesizer = sr.fit(PLAN, data, seed=1, n_draws=n_draws)
        risk = sr.attribute_risk(
            synthesizer, release, guesses=5, estimator="stacked", question="paper"
        )
        errors.append(np.sqrt(np.mean((risk.records["probability"] - exact) ** 2)))
    assert errors[1] < errors[0] / 4  # a hundred times the draws: a tenth of the error
    assert errors[0] < exact.std() / 5


def test_an_estimator_that_a_model_does_not_allow_is_refused():
    data = people(40, seed=3).assign(k=lambda d: np.abs(d["c"]).round())
    mixed = sr.fit([PLAN[0], sr.Regression("k ~ b", "poisson")], data, seed=1, n_draws=20)
    release = mixed.synthesize(1, seed=1)
    with pytest.raises(sr.OptionError, match="the model of 'k' is not gaussian"):
        sr.attribute_risk(mixed, release, estimator="exact", question="paper")
    assert sr.attribute_risk(mixed, release, question="paper").estimator == {
        "b": "exact",
        "k": "stacked",
    }
    foreign = sr.Synthesizer.from_draws(
        mixed.plan.regressions, data, [mixed.draws("b"), mixed.draws("k")]
    )
    for name in ("exact", "stacked"):
        with pytest.raises(sr.OptionError, match="made elsewhere"):
            sr.attribute_risk(foreign, release, estimator=name, question="paper")
    assert set(sr.attribute_risk(foreign, release, question="paper").estimator.values()) == {
        "importance"
    }


def test_exact_and_stacked_results_are_saved(tmp_path):
    data = people(40, seed=3).assign(k=lambda d: np.abs(d["c"]).round())
    mixed = sr.fit([PLAN[0], sr.Regression("k ~ b", "poisson")], data, seed=1, n_draws=20)
    risk = sr.attribute_risk(mixed, mixed.synthesize(2, seed=1), joint="drop", question="paper")
    risk.save(tmp_path / "risk.nc")
    again = sr.AttributeRisk.load(tmp_path / "risk.nc")
    pd.testing.assert_frame_equal(risk.records, again.records, check_exact=True)
    np.testing.assert_array_equal(risk.joint(7), again.joint(7))
    assert again.estimator == risk.estimator
