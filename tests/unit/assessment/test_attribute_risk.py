import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.cases import gaussian_draws, one_gaussian, people, two_gaussians
from helpers.secret import SECRET

import synrisk as sr
from synrisk.base.chunks import ROWS
from synrisk.core import likelihood
from synrisk.risk import evaluate_block as evaluate_module

ESTIMATORS = pytest.mark.parametrize("estimator", ["paper", "importance"])
N_MANY = 2 * ROWS + 77


@ESTIMATORS
def test_probabilities_sum_to_one(estimator):
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, [release] * 3, estimator=estimator, question="paper")
    for i in (0, 11, 39):
        assert float(risk.joint(i).sum()) == pytest.approx(1.0, abs=1e-12)
    for name in ("b", "c"):
        np.testing.assert_allclose(risk.marginal(name).sum("guess"), 1.0, atol=1e-12)


@ESTIMATORS
def test_permuting_the_records_permutes_the_results(estimator):
    data = people()
    draws = gaussian_draws(20, ("Intercept", "x"), (10.0, 1.0))
    release = data[["x"]].assign(b=data["b"].to_numpy()[::-1])
    order = np.random.default_rng(0).permutation(40)
    plan = sr.Regression("b ~ x")
    one, two = (
        sr.attribute_risk(
            sr.Synthesizer.from_draws(plan, table, draws),
            release,
            estimator=estimator,
            question="paper",
        ).records
        for table in (data, data.iloc[order])
    )
    assert list(two.index) == list(order)
    pd.testing.assert_frame_equal(two, one.iloc[order], check_exact=True)


@ESTIMATORS
def test_shuffled_synthetic_rows_change_nothing_beyond_rounding(estimator):
    synthesizer, release = two_gaussians()
    one = sr.attribute_risk(synthesizer, release, estimator=estimator, question="paper").records
    shuffled = release.sample(frac=1.0, random_state=1)
    two = sr.attribute_risk(synthesizer, shuffled, estimator=estimator, question="paper").records
    pd.testing.assert_frame_equal(one, two, rtol=1e-11, atol=1e-13)


def test_a_release_with_another_number_of_rows_is_accepted():
    synthesizer, release = two_gaussians()
    for rows in (release.iloc[:7], pd.concat([release, release, release])):
        records = sr.attribute_risk(synthesizer, rows, question="paper").records
        assert len(records) == 40
        assert records["probability"].between(0, 1).all()


def test_only_the_plans_columns_are_required_and_any_order_of_columns():
    synthesizer, release = two_gaussians()
    one = sr.attribute_risk(synthesizer, release, question="paper").records
    other = release[["c", "b"]].assign(extra="whatever")
    pd.testing.assert_frame_equal(
        one, sr.attribute_risk(synthesizer, other, question="paper").records
    )


@ESTIMATORS
def test_one_draw_leaves_the_prior_as_it_was(estimator):
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, n_draws=1, estimator=estimator, question="paper")
    np.testing.assert_allclose(risk.records["probability"], 1 / 121, rtol=1e-9)


def test_estimators_agree_for_one_model():
    synthesizer, release = one_gaussian()
    paper, importance = (
        sr.attribute_risk(synthesizer, release, estimator=e, question="paper").records
        for e in ("paper", "importance")
    )
    both = ["probability", "prior", "lift", "rank", "log_odds_range", "best_guess_b"]
    pd.testing.assert_frame_equal(paper[both], importance[both], rtol=1e-11)
    assert paper["mcse"].isna().all()
    assert not paper["reliable"].any()


def test_estimators_tend_to_the_exact_posterior_of_a_normal_mean():
    """One variable with known mean's posterior in closed form: y ~ N(μ, σ), σ known, flat prior.

    Leave record i out: μ | y_-i, y* ~ N(ȳ*, σ²/n), so the release's m rows of mean ỹ̄ have
    L(y*) ∝ exp(−(ỹ̄ − ȳ*)² / (2 σ² (1/n + 1/m))), ȳ* the mean with y* in place of y_i.
    """
    rng = np.random.default_rng(0)
    n, m, sigma = 12, 10, 1.0
    y = rng.normal(size=n)
    n_draws = 200_000
    draws = {
        "Intercept": y.mean() + sigma / np.sqrt(n) * rng.standard_normal(n_draws),
        "sigma": np.full(n_draws, sigma),
    }
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("y ~ 1"), {"y": y}, draws)
    released = rng.normal(0.5, sigma, m)
    guesses = np.linspace(-3.0, 3.0, 7)
    risk = sr.attribute_risk(
        synthesizer, {"y": released}, guesses=sr.Values(guesses), records=[4], question="paper"
    )
    at = risk.joint(4)["y"].to_numpy()
    mean = y.mean() + (at - y[4]) / n
    log_l = -((released.mean() - mean) ** 2) / (2 * sigma**2 * (1 / n + 1 / m))
    exact = np.exp(log_l - log_l.max())
    exact /= exact.sum()
    # The delta method's standard error of each P_c, from the draws themselves (equal weights).
    mu = draws["Intercept"]
    g = np.exp(-m * (released.mean() - mu) ** 2 / (2 * sigma**2))
    w = np.exp((-((at[:, None] - mu) ** 2) + (y[4] - mu) ** 2) / (2 * sigma**2))
    q = g * w / (g * w).sum(axis=1, keepdims=True) - w / w.sum(axis=1, keepdims=True)
    influence = exact[:, None] * (q - exact @ q)
    standard_error = np.sqrt((influence**2).sum(axis=1))
    assert standard_error.max() < 5e-4
    assert (np.abs(risk.joint(4).to_numpy() - exact) < 4 * standard_error).all()


def test_constants_without_a_draw_cancel():
    data = people()
    draws = {"Intercept": [0.4, 0.5, 0.2], "x": [0.1, 0.0, -0.2]}
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("k ~ x", "poisson"), data, draws)
    release = data[["x"]].assign(k=1)
    risk = sr.attribute_risk(synthesizer, release, records=[2], question="paper")
    x = np.column_stack([np.ones(40), data["x"]])
    eta = x @ np.array(list(draws.values()))
    log_g = (eta - np.exp(eta)).sum(axis=0)
    k = risk.joint(2)["k"].to_numpy()
    log_w = (k[:, None] - data["k"][2]) * eta[2]  # without log k!
    w, g = np.exp(log_w), np.exp(log_g - log_g.max())
    expected = (w * g).sum(axis=1) / w.sum(axis=1)
    np.testing.assert_allclose(risk.joint(2), expected / expected.sum(), atol=1e-12)


@pytest.fixture(name="many", scope="module")
def make_many():
    return two_gaussians(n=N_MANY, n_draws=3)


@ESTIMATORS
def test_a_record_does_not_depend_on_its_chunk_to_the_last_bit(many, estimator):
    synthesizer, release = many
    options = {"guesses": 3, "estimator": estimator}
    everyone = sr.attribute_risk(synthesizer, release, **options, question="paper").records
    some = [N_MANY - 1, 0, ROWS - 1, ROWS, 17, 2 * ROWS]
    few = sr.attribute_risk(synthesizer, release, records=some, **options, question="paper").records
    pd.testing.assert_frame_equal(few, everyone.loc[some], check_exact=True)


@ESTIMATORS
def test_results_do_not_depend_on_the_size_of_blocks(many, estimator, monkeypatch):
    synthesizer, release = many
    options = {"guesses": 3, "estimator": estimator, "records": range(300)}
    one = sr.attribute_risk(synthesizer, release, **options, question="paper").records
    monkeypatch.setattr(evaluate_module, "_BLOCK_CELLS", 9 * 7)
    monkeypatch.setattr(likelihood, "_EARLIER_ELEMENTS", 20)
    two = sr.attribute_risk(synthesizer, release, **options, question="paper").records
    pd.testing.assert_frame_equal(one, two, check_exact=True)


@ESTIMATORS
def test_the_joint_is_the_same_kept_or_computed_again(estimator):
    synthesizer, release = two_gaussians()
    kept, dropped = (
        sr.attribute_risk(synthesizer, release, joint=joint, estimator=estimator, question="paper")
        for joint in ("keep", "drop")
    )
    assert "joint" in kept.to_dataset()
    assert "joint" not in dropped.to_dataset()
    for i in (0, 38):
        np.testing.assert_array_equal(kept.joint(i), dropped.joint(i))


def test_records_are_named_by_id_index_or_row():
    data = people().assign(case=[f"c{i}" for i in range(40)])
    draws = gaussian_draws(5, ("Intercept", "x"), (10.0, 1.0))
    plan, release = sr.Regression("b ~ x"), data[["x"]].assign(b=10.0)
    by_id = sr.Synthesizer.from_draws(plan, data, draws, id="case")
    risk = sr.attribute_risk(by_id, release, records=["c7", "c2"], question="paper")
    assert list(risk.records.index) == ["c7", "c2"]
    assert risk.records.index.name == "case"
    assert risk.joint("c7").dims == ("b",)
    indexed = sr.Synthesizer.from_draws(plan, data.set_index("case"), draws)
    pd.testing.assert_frame_equal(
        sr.attribute_risk(indexed, release, records="c2", question="paper").records,
        risk.records.loc[["c2"]],
    )
    rows = sr.Synthesizer.from_draws(plan, pl.from_pandas(data), draws)
    assert list(sr.attribute_risk(rows, release, question="paper").records.index) == list(range(40))


def test_labels_may_be_any_objects():
    data = people()
    labels = [f"c{i}\ud800" if i % 2 else (i, "pair") for i in range(40)]
    data.index = pd.Index(labels, dtype=object, tupleize_cols=False)
    draws = gaussian_draws(5, ("Intercept", "x"), (10.0, 1.0))
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, draws)
    release = people()[["x"]].assign(b=10.0)
    risk = sr.attribute_risk(synthesizer, release, records=[labels[3], labels[4]], question="paper")
    assert list(risk.records.index) == [labels[3], labels[4]]
    assert risk.joint(labels[4]).dims == ("b",)


def test_records_table():
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    records = risk.records
    assert list(records.columns) == [
        "before", "after", "gain", "before_mcse", "gain_mcse",
        "probability", "prior", "lift", "rank", "rank_low", "rank_high", "n_guesses",
        "log_odds_range", "log_odds_range_mcse", "log_odds_range_99", "log_odds_range_99_mcse",
        "mcse", "ess", "khat", "reliable",
        "before_b", "after_b", "gain_b", "before_mcse_b", "gain_mcse_b",
        "probability_b", "prior_b", "mcse_b", "best_guess_b", "abs_diff_b",
        "before_c", "after_c", "gain_c", "before_mcse_c", "gain_mcse_c",
        "probability_c", "prior_c", "mcse_c", "best_guess_c", "abs_diff_c",
    ]  # fmt: skip
    for of in ("", "_b", "_c"):
        pd.testing.assert_series_equal(
            records[f"gain{of}"], records[f"after{of}"] - records[f"before{of}"], check_names=False
        )
    assert records["log_odds_range_99"].isna().all()  # a uniform prior has no likely guesses
    for i in (0, 13):
        joint = risk.joint(i)
        for name, other in (("b", "c"), ("c", "b")):
            marginal = joint.sum(other)
            best = marginal.idxmax().item()
            assert records.loc[i, f"best_guess_{name}"] == best
            difference = abs(best - synthesizer.data.loc[i, name])
            assert records.loc[i, f"abs_diff_{name}"] == pytest.approx(difference)
    records.loc[0, "probability"] = 99.0
    assert risk.records.loc[0, "probability"] != 99.0


def test_categories_are_shown_by_their_labels():
    data = people()
    draws = {"b_mumid_Intercept": [0.1, 0.3], "b_mutop_Intercept": [-0.2, 0.2]}
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("r ~ 1", "categorical"), data, draws)
    release = {"r": ["low"] * 30 + ["top"] * 10}
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    assert risk.joint(0)["r"].to_numpy().tolist() == ["low", "mid", "top"]
    assert set(risk.records["best_guess_r"]) <= {"low", "mid", "top"}
    assert set(risk.records["abs_diff_r"]) <= {0.0, 1.0}
    same = risk.records["best_guess_r"].to_numpy() == data["r"].to_numpy()
    np.testing.assert_array_equal(risk.records["abs_diff_r"] == 0, same)
    assert risk.to_dataset()["guesses_r"].to_numpy()[0].tolist() == ["low", "mid", "top"]


def test_summary():
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    summary, records = risk.summary(), risk.records
    assert list(summary.index) == ["joint", "b", "c"]
    assert summary.loc["joint", "mean"] == pytest.approx(records["probability"].mean())
    assert summary.loc["c", "median"] == pytest.approx(records["probability_c"].median())
    assert summary.loc["b", "share_best"] == (records["abs_diff_b"] == 0).mean()
    assert summary.loc["b", "mean_abs_diff"] == pytest.approx(records["abs_diff_b"].mean())
    tied = sr.attribute_risk(
        synthesizer, release, n_draws=1, question="paper"
    ).summary()  # all guesses tie
    assert (tied["share_best"] == 0).all()
    assert summary.loc["joint", "share_best"] == (records["rank"] == 1).mean()
    above = (records["probability"] > 1 / 121 + 1e-9).mean()
    assert summary.loc["joint", "share_above_prior"] == pytest.approx(above)
    by = risk.summary(by="u")
    assert list(by.index.get_level_values(0).unique()) == ["p", "q", "s"]
    in_q = records[(synthesizer.data["u"] == "q").to_numpy()]
    assert by.loc[("q", "joint"), "mean"] == pytest.approx(in_q["probability"].mean())
    assert by.loc[("q", "joint"), "n_records"] == len(in_q)


def test_summary_by_a_column_with_gaps_counts_everyone():
    data = people()
    data["group"] = [None, "a", "b", "a"] * 10
    draws = gaussian_draws(5, ("Intercept", "x"), (10.0, 1.0))
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, draws)
    by = sr.attribute_risk(synthesizer, data[["x"]].assign(b=10.0), question="paper").summary(
        by="group"
    )
    assert by.xs("joint", level="of")["n_records"].to_dict() == {"a": 20, "b": 10, "(missing)": 10}


def test_ranking():
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    ranking = risk.ranking(5)
    assert list(ranking.columns) == ["b", "c", "probability", "prior", "rank", "is_truth"]
    assert len(ranking) == 121
    assert ranking["probability"].is_monotonic_decreasing
    assert ranking["probability"].sum() == pytest.approx(1.0, abs=1e-12)
    truth = ranking[ranking["is_truth"]].iloc[0]
    assert truth["b"] == synthesizer.data.loc[5, "b"]
    assert truth["rank"] == risk.records.loc[5, "rank"]


def test_to_dataset():
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, guesses=[3, 5], question="paper")
    dataset = risk.to_dataset()
    assert dict(dataset.sizes) == {"record": 40, "guess_b": 3, "guess_c": 5}
    np.testing.assert_array_equal(dataset["joint"][7], risk.joint(7))
    np.testing.assert_allclose(dataset["joint"].sum("guess_c"), dataset["marginal_b"], atol=1e-15)
    np.testing.assert_array_equal(dataset["probability"], risk.records["probability"])
    assert dataset.attrs["estimator"] == "{'b': 'importance', 'c': 'importance'}"


def test_representations_hold_no_values():
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    assert repr(risk).startswith("<AttributeRisk: b, c; 40 records; 11 × 11 guesses; 1 dataset")
    assert repr(synthesizer).startswith("<Synthesizer: b ~ 1 (gaussian); c ~ b (gaussian); 40")


def test_describe_says_where_each_parameter_came_from():
    synthesizer, _ = two_gaussians()
    table = synthesizer.describe()
    assert table.loc[("c", "b"), "read_from"] == "b"
    draws = synthesizer.draws("c")
    assert table.loc[("c", "b"), "mean"] == pytest.approx(draws["b"].mean())
    assert table.loc[("c", "sigma"), "sd"] == pytest.approx(draws["sigma"].std(ddof=0))


def test_record_weights_scale_the_log_density():
    data = people().assign(none=0.0, one=1.0)
    draws = gaussian_draws(20, ("Intercept", "x"), (10.0, 1.0))
    release = data[["x"]].assign(b=data["b"].to_numpy()[::-1])

    def evaluate(weights):
        plan = sr.Regression("b ~ x", weights=weights)
        return sr.attribute_risk(
            sr.Synthesizer.from_draws(plan, data, draws), release, question="paper"
        ).records

    pd.testing.assert_frame_equal(evaluate("one"), evaluate(None))
    data.loc[0, "none"] = 1.0
    weightless = evaluate("none")["probability"]
    np.testing.assert_allclose(weightless[1:], 1 / 11, rtol=1e-9)  # no influence, nothing learnt
    assert abs(weightless[0] - 1 / 11) > 1e-6


def test_whoever_asks_for_the_papers_estimator_is_warned_of_the_release_alone():
    synthesizer, _ = two_gaussians()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = synthesizer.data[list(synthesizer.plan.columns)]
        honest = sr.fit(synthesizer.plan.regressions, data, seed=1)
        risk = sr.attribute_risk(
            honest, honest.synthesize(1, seed=SECRET), estimator="paper", question="paper"
        )
    assert "error is not known" in risk.diagnostics()["what"].item()
    with pytest.warns(sr.ReliabilityWarning, match=r"^5 findings .*follows.*follows.*repeated to"):
        sr.attribute_risk(honest, honest.data, estimator="paper", records=[0], question="paper")


def test_the_same_dataset_twice_is_told():
    synthesizer, release = two_gaussians()
    other = release.assign(b=release["b"] + 0.1)
    notes = sr.attribute_risk(
        synthesizer, [release, other, release.copy()], records=[0], question="paper"
    ).notes
    assert [note for note in notes if "are the same" in note] == [
        "Synthetic datasets 1 and 3 are the same: they count as two independent ones."
    ]


def test_a_fit_at_each_guess_is_refused_for_draws_that_were_made_elsewhere():
    synthesizer, release = two_gaussians()
    with pytest.raises(sr.OptionError, match=r"made by synrisk\.fit"):
        sr.attribute_risk(synthesizer, release, on_unreliable="fit", question="paper")


def test_the_prior_of_a_variable_is_its_marginal():
    synthesizer, release = two_gaussians()
    prior = np.log(np.random.default_rng(0).dirichlet(np.ones(121)).reshape(11, 11))
    risk = sr.attribute_risk(synthesizer, release, intruder_prior=prior, question="paper")
    for axis, name in enumerate("bc"):
        at_truth = np.exp(prior).sum(axis=1 - axis)[risk._grids[axis].truth]
        np.testing.assert_allclose(risk.records[f"prior_{name}"], at_truth, rtol=1e-12)
