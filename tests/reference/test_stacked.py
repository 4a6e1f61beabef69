"""Stacked estimates against marginal likelihoods by quadrature in two parameters, few records."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, gammaln, logsumexp

import synrisk as sr
from synrisk.assessment import attribute_risk
from synrisk.risk.estimators.at_guesses import seconds_a_fit

N = 22
GRID = np.linspace(-1.0, 1.0, 101)


def people():
    rng = np.random.default_rng(12)
    x = rng.normal(1.0, 1.2, N)
    return pd.DataFrame(
        {
            "x": x,
            "o": (rng.random(N) < expit(0.8 * x)).astype(int),
            "k": rng.poisson(np.exp(0.5 + 0.3 * x)),
            "r": pd.Categorical(rng.choice(["low", "mid", "top"], N, p=[0.5, 0.3, 0.2])),
        }
    )


def log_f(family, y, a, b, x):
    """Log density of rows (last axis) at parameters a, b (first axes)."""
    if family == "categorical":  # two intercepts
        codes = np.asarray(y)
        total = np.logaddexp(np.logaddexp(0.0, a), b)
        own = np.where(codes == 1, a, np.where(codes == 2, b, 0.0))
        return own - total
    eta = a + b * x
    if family == "bernoulli":
        return np.where(y == 1, -np.logaddexp(0.0, -eta), -np.logaddexp(0.0, eta))
    return y * eta - np.exp(eta) - gammaln(y + 1.0)


def log_marginal(family, y, x, priors):
    """log ∫ Π f · prior over a grid in two parameters, placed about the mode."""
    centre, width = np.zeros(2), np.array([4.0, 4.0])
    for _ in range(4):
        a = (centre[0] + width[0] * GRID)[:, None, None]
        b = (centre[1] + width[1] * GRID)[None, :, None]
        log_p = log_f(family, y, a, b, x).sum(axis=-1)
        for value, (mean, sd) in zip((a, b), priors, strict=True):
            log_p = log_p - 0.5 * ((value[..., 0] - mean) / sd) ** 2
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        marginals = p.sum(axis=1), p.sum(axis=0)
        means = [m @ v.ravel() for m, v in zip(marginals, (a, b), strict=True)]
        sds = [
            np.sqrt(m @ (v.ravel() - mean) ** 2)
            for m, v, mean in zip(marginals, (a, b), means, strict=True)
        ]
        total = logsumexp(log_p) + np.log(width).sum()
        centre, width = np.array(means), 9.0 * np.array(sds)
    return total


CASES = {
    "bernoulli": ("o ~ x", [0.0, 1.0]),
    "poisson": ("k ~ x", None),
    "categorical": ("r ~ 1", [0.0, 1.0, 2.0]),
}


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("family", CASES)
def test_the_truth_lies_within_four_standard_errors(family, m):
    formula, values = CASES[family]
    data = people()
    synthesizer = sr.fit(sr.Regression(formula, family), data, n_draws=600, seed=3, release=["x"])
    release = synthesizer.synthesize(m, seed=4)
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    believing = sr.attribute_risk(synthesizer, release, intruder_prior="model", question="paper")
    name = synthesizer.plan.synthesized[0]
    marginal = risk.marginal(name)
    x = data["x"].to_numpy()
    spread = x.std(ddof=1)
    priors = [(0.0, 2.5), (0.0, 2.5 / spread)] if family != "categorical" else [(0.0, 2.5)] * 2
    centred = x - x.mean()

    def codes(frame):
        column = frame[name]
        return column.cat.codes.to_numpy() if family == "categorical" else column.to_numpy()

    n_within, n_all = 0, 0
    for record in range(N):
        guesses = risk.joint(record)[name].to_numpy() if values is None else np.array(values)
        log_l, log_prior = [], []
        for guess in guesses:
            y = codes(data).astype(float)
            y[record] = guess
            alone = log_marginal(family, y, centred, priors)
            log_prior.append(alone)
            log_l.append(
                sum(
                    log_marginal(
                        family,
                        np.concatenate([y, codes(dataset)]),
                        np.concatenate([centred, dataset["x"] - x.mean()]),
                        priors,
                    )
                    - alone
                    for dataset in release
                )
            )
        expected = np.exp(np.array(log_l) - logsumexp(log_l))
        truth = int(marginal["truth"][record])
        error = abs(risk.records.loc[record, "probability"] - expected[truth])
        n_within += error < 4 * risk.records.loc[record, "mcse"]
        n_all += 1
        # The prior is p(guess | everybody else), log y! included.
        before = np.exp(np.array(log_prior) - logsumexp(log_prior))
        assert believing.records.loc[record, "prior"] == pytest.approx(before[truth], abs=0.01)
        log_both = np.array(log_l) + log_prior
        after = np.exp(log_both - logsumexp(log_both))[truth]
        assert believing.records.loc[record, "probability"] == pytest.approx(after, abs=0.015)
        np.testing.assert_allclose(marginal[record].to_numpy()[: len(guesses)], expected, atol=0.02)
    assert n_within >= 0.99 * n_all


def with_an_outlier(family):
    """Records of which the last is far from the others, and far guesses for it."""
    data = people()
    if family == "poisson":
        data.loc[N - 1, ["x", "k"]] = [6.0, 40]
        return data, np.array([0.0, 5.0, 10.0, 20.0, 40.0, 60.0, 80.0])
    data.loc[N - 1, "x"], data.loc[N - 1, "o"] = -30.0, 1
    return data, np.array([0.0, 1.0])


def test_with_one_draw_nobody_is_fitted_at_each_guess():
    """Everybody is unreliable then, and to fit all at every guess took minutes."""
    data, guesses = with_an_outlier("poisson")
    synthesizer = sr.fit(sr.Regression("k ~ x", "poisson"), data, n_draws=1, seed=3)
    with pytest.warns(sr.ReliabilityWarning):
        risk = sr.attribute_risk(
            synthesizer, synthesizer.synthesize(1, seed=4), on_unreliable="fit", question="paper",
            guesses={"k": sr.Values(guesses)}, records=[N - 1],
        )  # fmt: skip
    assert not risk.records["reliable"].item()
    assert not any("fitted at each guess" in note for note in risk.notes)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("prior", ["uniform", "model"])
@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
def test_an_outlier_fitted_at_each_guess_agrees_with_quadrature(family, prior, m):
    formula, _ = CASES[family]
    data, guesses = with_an_outlier(family)
    slope = sr.Normal(0.0, 1.0)
    model = sr.Regression(formula, family, prior={"x": slope})
    synthesizer = sr.fit(model, data, n_draws=600, seed=3)
    release = synthesizer.synthesize(m, seed=4)
    name, record = synthesizer.plan.synthesized[0], N - 1
    options = {"guesses": {name: sr.Values(guesses)}, "intruder_prior": prior, "records": [record]}
    flagged = sr.attribute_risk(synthesizer, release, **options, question="paper")
    risk = sr.attribute_risk(synthesizer, release, on_unreliable="fit", **options, question="paper")
    assert not flagged.records["reliable"].item()
    assert any("fitted at each guess" in note for note in risk.notes)
    assert risk.records["reliable"].item()
    x = data["x"].to_numpy()
    priors = [(0.0, 2.5), (0.0, 1.0)]
    log_p = []
    for guess in guesses:
        y = data[name].to_numpy().astype(float)
        y[record] = guess
        alone = log_marginal(family, y, x - x.mean(), priors)
        stacks = [
            log_marginal(
                family,
                np.concatenate([y, one[name]]),
                np.concatenate([x, one["x"]]) - x.mean(),
                priors,
            )
            for one in release
        ]
        log_p.append(sum(stacks) - m * alone + (alone if prior == "model" else 0.0))
    expected = np.exp(np.array(log_p) - logsumexp(log_p))
    found = risk.joint(record).to_numpy()
    truth = int(np.flatnonzero(guesses == data.loc[record, name])[0])
    error = risk.records["mcse"].item()
    assert error < 0.01
    assert abs(found[truth] - expected[truth]) < 4 * error
    np.testing.assert_allclose(found[truth], risk.records["probability"].item(), rtol=1e-12)


@pytest.mark.parametrize(("question", "is_fitted"), [("release", True), ("paper", False)])
def test_what_draws_do_not_settle_is_fitted_unless_the_paper_asks(question, is_fitted):
    data, guesses = with_an_outlier("poisson")
    synthesizer = sr.fit(sr.Regression("k ~ x", "poisson"), data, n_draws=600, seed=3)
    options = {"guesses": {"k": sr.Values(guesses)}, "records": [N - 1], "question": question}
    risk = sr.attribute_risk(synthesizer, synthesizer.synthesize(1, seed=4), **options)
    assert risk.records["reliable"].item() == is_fitted
    assert any("fitted at each guess" in note for note in risk.notes) == is_fitted


def test_what_would_take_long_to_fit_is_flagged_with_what_it_would_take(monkeypatch):
    data, guesses = with_an_outlier("poisson")
    synthesizer = sr.fit(sr.Regression("k ~ x", "poisson"), data, n_draws=600, seed=3)
    release = synthesizer.synthesize(1, seed=4)
    options = {"guesses": {"k": sr.Values(guesses)}, "records": [N - 1]}
    monkeypatch.setattr(attribute_risk, "_MOST_SECONDS_FITTED", 0.0)
    with pytest.warns(sr.ReliabilityWarning):
        risk = sr.attribute_risk(synthesizer, release, **options)
    assert not risk.records["reliable"].item()
    (note,) = [note for note in risk.notes if "on_unreliable='fit'" in note]
    assert note.startswith("1 record that cannot be relied on flagged")
    assert note.endswith("would fit them at each guess, in about 0 seconds of one processor core.")
    advice = " ".join(map(str, risk.diagnostics().to_numpy().ravel()))
    assert "on_unreliable='fit'" in advice
    fitted = sr.attribute_risk(synthesizer, release, **options, on_unreliable="fit")
    assert fitted.records["reliable"].item()
    assert not any("on_unreliable" in note for note in fitted.notes)


@pytest.mark.parametrize("family", ["poisson", "beta"])
def test_what_fits_take_grows_with_records_and_with_what_a_density_costs(family):
    rng = np.random.default_rng(1)
    seconds = {}
    for n in (50, 500):
        y = rng.beta(2.0, 3.0, n) if family == "beta" else rng.poisson(2.0, n)
        data = pd.DataFrame({"x": rng.normal(size=n), "y": y})
        model = sr.fit(sr.Regression("y ~ x", family), data, n_draws=50, seed=1).models[0]
        seconds[n] = seconds_a_fit(model, n)
    by_densities = 1e-6 * 450 * model.regression.distribution.nanoseconds
    assert seconds[500] - seconds[50] == pytest.approx(by_densities)
    assert (seconds[500] > 0.02) == (family == "beta")


def test_fitted_records_are_saved(tmp_path):
    data, guesses = with_an_outlier("poisson")
    synthesizer = sr.fit(sr.Regression("k ~ x", "poisson"), data, n_draws=600, seed=3)
    release = synthesizer.synthesize(1, seed=4)
    risk = sr.attribute_risk(
        synthesizer,
        release,
        guesses={"k": sr.Values(guesses)},
        records=[N - 1],
        joint="drop",
        on_unreliable="fit",
        question="paper",
    )
    risk.save(tmp_path / "risk.nc")
    again = sr.AttributeRisk.load(tmp_path / "risk.nc")
    pd.testing.assert_frame_equal(again.records, risk.records)
    np.testing.assert_array_equal(again.joint(N - 1), risk.joint(N - 1))
    assert again.joint(N - 1).sum().item() == pytest.approx(1.0)
    assert again.joint(N - 1).sel(k=40).item() == pytest.approx(risk.records["probability"].item())


def test_a_gaussian_model_that_is_stacked_is_fitted_exactly():
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"y": np.append(rng.normal(size=20), 30.0)})
    synthesizer = sr.fit(sr.Regression("y ~ 1"), data, n_draws=400, seed=1)
    release = synthesizer.synthesize(1, seed=2)
    options = {"guesses": {"y": sr.Values([-60.0, 0.0, 30.0, 60.0])}, "records": [20]}
    flagged = sr.attribute_risk(
        synthesizer, release, estimator="stacked", **options, question="paper"
    )
    assert not flagged.records["reliable"].item()
    risk = sr.attribute_risk(
        synthesizer, release, estimator="stacked", on_unreliable="fit", **options, question="paper"
    )
    exact = sr.attribute_risk(synthesizer, release, estimator="exact", **options, question="paper")
    np.testing.assert_allclose(risk.joint(20), exact.joint(20), atol=1e-8)
    assert risk.records["mcse"].item() == 0.0
