"""One test for each way in which the paper's R package goes wrong; each is named after it."""

import numpy as np
import pandas as pd
import pytest
from helpers.cases import gaussian_draws, one_gaussian, people, two_gaussians
from scipy.special import softmax

import synrisk as sr


def test_multinomial_takes_the_softmax_of_the_records_own_predictors_at_each_draw():
    # The R package reads the probabilities of one draw as if rows were draws, without predictors.
    data = people()
    rng = np.random.default_rng(3)
    names = [f"b_mu{level}_{term}" for level in ("mid", "top") for term in ("Intercept", "x")]
    draws = pd.DataFrame(rng.normal(scale=0.7, size=(30, 4)), columns=names)
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("r ~ x", "multinom"), data, draws)
    release = data[["x"]].assign(r=data["r"].to_numpy()[::-1])
    risk = sr.attribute_risk(synthesizer, release, question="paper")

    beta = draws.to_numpy().reshape(30, 2, 2)  # draw, level, term
    design = np.column_stack([np.ones(40), data["x"]])
    eta = np.einsum("ip,hlp->hil", design, beta)
    p = softmax(np.concatenate([np.zeros((30, 40, 1)), eta], axis=2), axis=2)
    codes = data["r"].cat.codes.to_numpy()[::-1]
    log_g = np.log(p[:, np.arange(40), codes]).sum(axis=1)
    g = np.exp(log_g - log_g.max())
    for i in (0, 17, 39):
        w = p[:, i, :] / p[:, i, [data["r"].cat.codes[i]]]
        likelihood = (g[:, None] * w).sum(axis=0) / w.sum(axis=0)
        expected = likelihood / likelihood.sum()
        np.testing.assert_allclose(risk.joint(i), expected, rtol=0, atol=1e-12)
    x = data["x"].to_numpy()
    same_level = np.flatnonzero(data["r"] == data["r"].iloc[0])
    other = same_level[np.argmax(np.abs(x[same_level] - x[0]))]
    assert np.abs(risk.joint(0).to_numpy() - risk.joint(other).to_numpy()).max() > 1e-4


def test_three_synthesized_variables_have_a_true_three_dimensional_grid():
    # The R package's grid index is wrong from three variables on, and it stops.
    data = people()
    plan = [sr.Regression("b ~ 1"), sr.Regression("c ~ b"), sr.Regression("k ~ c", "poisson")]
    rng = np.random.default_rng(4)
    draws = [
        gaussian_draws(20, ("Intercept",), (10.0,)),
        gaussian_draws(20, ("Intercept", "b"), (-1.0, 0.1), spread=0.05),
        pd.DataFrame({"Intercept": rng.normal(0.3, 0.1, 20), "c": rng.normal(0, 0.1, 20)}),
    ]
    synthesizer = sr.Synthesizer.from_draws(plan, data, draws)
    release = data[["b", "c", "k"]].iloc[::-1].assign(b=data["b"] + 0.3)
    risk = sr.attribute_risk(synthesizer, release, guesses={"b": 5, "c": 7}, question="paper")
    n_counts = data["k"].nunique()
    joint = risk.joint(3)
    assert joint.dims == ("b", "c", "k")
    assert joint.shape == (5, 7, n_counts)
    assert float(joint.sum()) == pytest.approx(1.0, abs=1e-12)
    row = risk.records.loc[3]
    truth = {"b": data["b"][3], "c": data["c"][3], "k": data["k"][3]}
    assert float(joint.sel(truth)) == pytest.approx(row["probability"], abs=1e-14)
    assert float(joint.sel(c=truth["c"]).sum()) == pytest.approx(row["probability_c"], abs=1e-14)
    assert row["prior"] == pytest.approx(1 / (5 * 7 * n_counts))


def test_a_guess_is_propagated_to_every_term_that_mentions_it():
    # The R package does not propagate b's guess in c ~ b + x + z.
    data = people()
    names = ("Intercept", "b", "x", "z")
    second = gaussian_draws(30, names, (0.0, 0.5, 0.2, -0.1), seed=5)
    draws = [gaussian_draws(30, ("Intercept",), (10.0,)), second]
    plan = [sr.Regression("b ~ 1"), sr.Regression("c ~ b + x + z")]
    synthesizer = sr.Synthesizer.from_draws(plan, data, draws)
    release = data[["b", "c", "x", "z"]].assign(c=data["c"].to_numpy()[::-1])
    guesses = {"b": sr.Additive(3, 1, 1), "c": sr.Additive(3, 1, 1)}
    risk = sr.attribute_risk(
        synthesizer, release, guesses=guesses, estimator="importance", question="paper"
    )

    def table(propagated):
        """log L of the second model for record 6 over (b, c)."""
        beta, sigma = second[list(names)].to_numpy(), second["sigma"].to_numpy()

        def log_f(b, c, row):
            mean = beta @ np.array([1.0, b, row["x"], row["z"]])
            return -0.5 * ((c - mean) / sigma) ** 2 - np.log(sigma)

        log_g = sum(log_f(row["b"], row["c"], row) for _, row in release.iterrows())
        g = np.exp(log_g - log_g.max())
        row = data.loc[6]
        out = np.zeros((3, 3))
        for j, db in enumerate((-1, 0, 1)):
            for k, dc in enumerate((-1, 0, 1)):
                b = row["b"] + (db if propagated else 0)
                w = np.exp(log_f(b, row["c"] + dc, row) - log_f(row["b"], row["c"], row))
                out[j, k] = np.log((g * w).sum() / w.sum())
        return out

    log_joint = np.log(risk.joint(6).to_numpy())

    def interaction(values):  # of b's and c's guesses: from the second model's table alone
        return values - values[:, :1] - values[:1] + values[0, 0]

    np.testing.assert_allclose(interaction(log_joint), interaction(table(True)), atol=1e-10)
    assert np.abs(interaction(table(False)) - interaction(log_joint)).max() > 1e-3


@pytest.mark.parametrize("m", [1, 3])
def test_a_prior_factor_of_1000_changes_odds_by_1000(m):
    # The R package adds it un-logged, once a dataset: the odds change by 2.7.
    synthesizer, release = two_gaussians()
    plain = sr.attribute_risk(synthesizer, [release] * m, question="paper").records["probability"]
    factor = sr.attribute_risk(
        synthesizer, [release] * m, intruder_prior=sr.TruthFactor(1000), question="paper"
    ).records["probability"]
    odds = (factor / (1 - factor)) / (plain / (1 - plain))
    np.testing.assert_allclose(odds, 1000.0, rtol=1e-9)


@pytest.mark.parametrize("estimator", ["paper", "importance"])
def test_numerator_and_denominator_run_over_the_same_draws(estimator):
    # The R package's denominator runs over all draws, its numerator over the first H.
    data = people()
    draws = gaussian_draws(60, ("Intercept", "x"), (10.0, 1.0))
    release = data[["x"]].assign(b=data["b"].to_numpy()[::-1])
    plan = sr.Regression("b ~ x")
    many = sr.Synthesizer.from_draws(plan, data, draws)
    few = sr.Synthesizer.from_draws(plan, data, draws.iloc[:25])
    one = sr.attribute_risk(many, release, n_draws=25, estimator=estimator, question="paper")
    two = sr.attribute_risk(few, release, estimator=estimator, question="paper")
    pd.testing.assert_frame_equal(one.records, two.records, check_exact=True)


def test_a_truth_of_zero_has_distinct_relative_guesses():
    # The R package makes eleven equal guesses and reports 1/11.
    data = people()
    data.loc[[2, 5], "b"] = 0.0
    draws = gaussian_draws(20, ("Intercept", "x"), (10.0, 1.0))
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, draws)
    release = data[["x"]].assign(b=10.0)
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    guesses = risk.joint(2)["b"].to_numpy()
    width = 0.1 * data["b"].std()
    np.testing.assert_allclose(guesses, np.linspace(-width, width, 11), atol=1e-12)
    assert guesses[5] == 0.0
    assert np.ptp(risk.joint(2).to_numpy()) > 1e-6
    assert any("2 records" in note and "standard deviation" in note for note in risk.notes)


def test_a_truth_that_is_not_on_the_grid_takes_the_nearest_guess():
    # The R package's index becomes NA on an even grid.
    synthesizer, release = one_gaussian()
    risk = sr.attribute_risk(
        synthesizer, release, guesses=sr.Interval(10, 5.0, 15.0), question="paper"
    )
    even = np.linspace(5.0, 15.0, 10)
    for i in range(40):
        truth = synthesizer.data["b"].iloc[i]
        guesses = risk.joint(i)["b"].to_numpy()
        changed = np.flatnonzero(~np.isclose(guesses, even, rtol=0, atol=1e-12))
        np.testing.assert_array_equal(changed, [np.argmin(np.abs(even - truth))])
        assert guesses[changed[0]] == truth


@pytest.mark.parametrize("estimator", ["paper", "importance"])
def test_a_far_outlier_gives_finite_numbers(estimator):
    # The R package's densities underflow to 0/0 and it stops.
    data = people()
    data.loc[7, "b"] = data["b"].mean() + 50 * data["b"].std()
    draws = gaussian_draws(50, ("Intercept", "x"), (10.0, 1.0))
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, draws)
    release = data[["x"]].assign(b=data["b"].to_numpy()[::-1])
    for guesses in (11, sr.Interval(11, -500.0, 500.0)):
        risk = sr.attribute_risk(
            synthesizer, release, guesses=guesses, estimator=estimator, question="paper"
        )
        numbers = ["probability", "lift", "rank", "log_odds_range", "probability_b", "abs_diff_b"]
        assert np.isfinite(risk.records[numbers].to_numpy()).all()
        assert float(risk.joint(7).sum()) == pytest.approx(1.0, abs=1e-12)


def test_rank_is_by_index_and_ties_share_the_average():
    # The R package finds the truth by comparing floats, and ties have an arbitrary order.
    data = people()
    one_draw = gaussian_draws(1, ("Intercept", "x"), (10.0, 1.0))
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, one_draw)
    release = data[["x"]].assign(b=10.0)
    risk = sr.attribute_risk(
        synthesizer, release, question="paper"
    )  # one draw: every guess is equally likely
    assert (risk.records["rank"] == 6.0).all()
    assert (risk.ranking(0)["rank"] == 6.0).all()
    synthesizer, release = one_gaussian()
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    ranking = risk.ranking(4)
    assert ranking["rank"].tolist() == list(range(1, 12))
    assert ranking.loc[ranking["is_truth"], "rank"].item() == risk.records.loc[4, "rank"]


def test_missing_values_are_an_error_or_on_request_dropped_or_a_level_and_counted():
    # The R package stops without a word.
    data = people()
    data.loc[[1, 4], "x"] = np.nan
    data.loc[9, "u"] = np.nan
    draws = gaussian_draws(20, ("Intercept", "x"), (10.0, 1.0))
    plan = sr.Regression("b ~ x")
    with pytest.raises(sr.DataError, match=r"x \(2\)"):
        sr.Synthesizer.from_draws(plan, data, draws)
    dropped = sr.Synthesizer.from_draws(plan, data, draws, missing="drop")
    assert dropped.n_dropped == 2
    release = data[["x"]].assign(b=10.0)
    risk = sr.attribute_risk(dropped, release, question="paper")
    assert list(risk.records.index) == [i for i in range(40) if i not in (1, 4)]
    assert any("2 confidential records" in note for note in risk.notes)
    assert any("2 rows of synthetic dataset 1" in note for note in risk.notes)
    names = ("Intercept", "uq", "us", "uNA")
    by_level = gaussian_draws(20, names, (10.0, 0.1, 0.2, 0.3))
    levelled = sr.Synthesizer.from_draws(sr.Regression("b ~ u"), data, by_level, missing="level")
    assert levelled.n_records == 40
    assert levelled.schema.variables["u"].levels[-1] == "(missing)"


def test_every_dataset_may_come_from_its_own_draw():
    # The appendix draws all datasets from one θ; the product over datasets needs one θ for each.
    synthesizer, release = two_gaussians()
    other = release.assign(b=release["b"] + 1.0)
    log_of = {
        name: np.log(sr.attribute_risk(synthesizer, data, question="paper").joint(3).to_numpy())
        for name, data in {"one": release, "other": other, "both": [release, other]}.items()
    }
    together = log_of["one"] + log_of["other"]
    difference = log_of["both"] - together
    np.testing.assert_allclose(difference, difference[0, 0], atol=1e-10)
