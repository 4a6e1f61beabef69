"""Utility against closed forms and other programs, and what it does with odd input."""

import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from helpers import propensity as plain
from helpers.cases import people
from scipy.stats import norm, t

import synrisk as sr
from synrisk.utility.intervals import (
    FULLY,
    LACKING,
    PARTIALLY,
    SINGLE,
    UNCHANGED,
    combine,
    overlap,
)


def sample(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 2.0 + 0.5 * x + rng.normal(size=n) + shift
    g = pd.Categorical(rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]), categories=list("abc"))
    return pd.DataFrame({"x": x, "y": y, "g": g, "k": rng.poisson(1.5, n)})


def binary(n_yes, n_no):
    values = ["yes"] * n_yes + ["no"] * n_no
    return pd.DataFrame({"v": pd.Categorical(values, categories=["no", "yes"])})


class TestPropensity:
    @pytest.mark.parametrize("parameters", ["posterior", "fitted"])
    def test_one_binary_variable_in_closed_form(self, parameters):
        # Saturated: the score of a level is its share of synthetic rows.
        found = sr.utility(binary(30, 70), binary(24, 26), parameters=parameters, propensity="main")
        row = found.propensity.loc[("main", 1)]
        c, n = 50 / 150, 150
        pmse = 54 / n * (24 / 54 - c) ** 2 + 96 / n * (26 / 96 - c) ** 2
        assert row["pmse"] == pytest.approx(pmse, rel=1e-4)
        assert row["specks"] == pytest.approx(abs(24 / 50 - 30 / 100), rel=1e-12)
        assert row["n_parameters"] == 2
        snoke = (1 - c) ** 2 * c / n  # (k − 1)(1 − c)² c / N with k = 2
        factor = 1.0 if parameters == "fitted" else 1 / (1 - c)
        assert row["expected"] == pytest.approx(factor * snoke, rel=1e-12)
        assert row["sd"] == pytest.approx(factor * math.sqrt(2) * snoke, rel=1e-12)
        assert row["ratio"] == pytest.approx(row["pmse"] / row["expected"])
        assert row["z"] == pytest.approx((row["pmse"] - row["expected"]) / row["sd"])

    @pytest.mark.parametrize("model", ["main", "interactions"])
    def test_against_another_program(self, model):
        own, release = sample(300, 1), sample(200, 2, shift=0.4)
        row = sr.utility(own, release, propensity=model).propensity.loc[(model, 1)]
        both = pd.concat([own, release.astype({"g": own["g"].dtype})])
        y = np.repeat([0.0, 1.0], [300, 200])
        x = plain.columns(both, {"g": list("abc")}, interactions=model == "interactions")
        p = plain.scores(x, y)
        assert row["n_parameters"] == x.shape[1] + 1
        assert row["pmse"] == pytest.approx(np.mean((p - 0.4) ** 2), rel=1e-4)
        assert row["specks"] == pytest.approx(plain.distance(p[y == 0], p[y == 1]), abs=1e-3)
        assert row["expected"] == pytest.approx(x.shape[1] * 0.6 * 0.4 / 500, rel=1e-12)

    def test_a_partial_release_has_less_room_for_chance(self):
        own = sample(400, 3)[["x", "y"]]
        rng = np.random.default_rng(4)
        release = own.assign(y=2.0 + 0.5 * own["x"] + rng.normal(size=400))
        row = sr.utility(own, release, propensity="main").propensity.loc[("main", 1)]
        both = pd.concat([own, release]).to_numpy()
        within = np.cov((own - release).to_numpy().T, ddof=0) / 2
        freedom = np.trace(np.linalg.solve(np.cov(both.T, ddof=0), within))
        assert row["expected"] == pytest.approx(freedom / 4 / 800, rel=1e-9)
        assert 0.9 < freedom < 1.1  # one direction, that of y given x, and not two

    def test_pairs_are_found_in_any_order(self):
        own = sample(200, 5)
        release = own.assign(y=sample(200, 6)["y"])
        shuffled = release.sample(frac=1.0, random_state=0)
        found = [
            sr.utility(own, one, synthesized=["y"], propensity="interactions").propensity
            for one in (release, shuffled)
        ]
        pd.testing.assert_frame_equal(*found, rtol=1e-9)

    def test_other_rows_are_compared_as_separate_samples(self):
        found = sr.utility(sample(200, 5), sample(150, 6), synthesized=["y"], propensity="main")
        assert found.propensity.loc[("main", 1), "expected"] == pytest.approx(
            5 * (150 * 200 / 350**2) / 350
        )
        assert any("separate samples" in note for note in found.notes)

    def test_a_shifted_release_is_told_apart(self):
        own = sample(500, 7)
        far = sr.utility(own, sample(500, 8, shift=1.0)).propensity
        assert (far["ratio"] > 10).all()
        assert (far["z"] > 10).all()
        near = sr.utility(own, sample(500, 8)).propensity
        assert (near["z"] < 4).all()

    def test_separated_sides_have_finite_scores(self):
        found = sr.utility(sample(100, 1), sample(100, 2, shift=1000.0), propensity="main")
        row = found.propensity.loc[("main", 1)]
        assert row["pmse"] == pytest.approx(0.25, abs=0.002)
        assert row["specks"] == 1.0
        assert any("ridge" in note for note in found.notes)

    def test_collinear_columns_are_left_out_and_said(self):
        own, release = (sample(200, seed).assign(again=lambda d: 3 * d["x"] - 1) for seed in (1, 2))
        found = sr.utility(own, release, propensity="main")
        alone = sr.utility(own.drop(columns="again"), release.drop(columns="again"),
                           propensity="main")  # fmt: skip
        assert found.propensity["n_left_out"].tolist() == [1]
        numbers = ["pmse", "expected", "specks"]
        pd.testing.assert_frame_equal(
            found.propensity[numbers], alone.propensity[numbers], rtol=1e-8
        )
        assert any("1 column that others determine" in note for note in found.notes)

    def test_too_many_interactions_are_left_out_and_said(self):
        rng = np.random.default_rng(0)
        own, release = (pd.DataFrame(rng.normal(size=(60, 8))) for _ in range(2))
        found = sr.utility(own, release)
        assert found.propensity.index.get_level_values("model").tolist() == ["main"]
        assert any("44 columns" in note for note in found.notes)

    def test_a_copy(self):
        own = sample(100, 1)
        found = sr.utility(own, own, propensity="main")
        assert found.propensity["pmse"].item() == pytest.approx(0.0, abs=1e-12)
        assert any("copy" in note for note in found.notes)
        synthesizer = sr.fit(sr.Regression("y ~ x"), own, n_draws=50, seed=1)
        found = sr.utility(synthesizer, own, propensity="main")
        assert found.propensity["ratio"].item() == 0.0
        assert np.isnan(found.propensity["z"].item())
        assert any("copy" in note for note in found.notes)


class TestTree:
    def test_tells_what_a_line_cannot(self):
        rng = np.random.default_rng(1)
        own = pd.DataFrame({"a": rng.normal(size=1500)})
        wide = pd.DataFrame({"a": 1.6 * rng.normal(size=1500)})
        found = sr.utility(own, wide, propensity=("main", "cart"), seed=1).propensity
        assert found.loc[("main", 1), "z"] < 4
        assert found.loc[("cart", 1), "z"] > 4
        honest = pd.DataFrame({"a": rng.normal(size=1500)})
        assert sr.utility(own, honest, propensity="cart", seed=1).propensity["z"].item() < 4

    def test_a_seed_gives_the_same_numbers(self):
        own, release = sample(200, 1), sample(200, 2)
        found = [sr.utility(own, release, propensity="cart", seed=3).propensity for _ in range(2)]
        pd.testing.assert_frame_equal(*found)

    def test_pairs_change_sides_together(self):
        own = sample(300, 1)
        release = own.assign(y=sample(300, 2)["y"])
        row = sr.utility(own, release, propensity="cart", seed=1).propensity.iloc[0]
        assert row["expected"] > 0


class TestCombining:
    def test_one_dataset(self):
        # r = 2: (2 + 3/1) · 0.5; fitted parameters (2 + 1/1) · 0.5.
        values, variances = np.array([4.0]), np.array([0.5])
        drawn = combine(values, variances, ratio=2.0, partial=False, fitted=False)
        assert (drawn.estimate, drawn.variance, drawn.rule) == (4.0, 2.5, SINGLE)
        plugged = combine(values, variances, ratio=2.0, partial=True, fitted=True)
        assert plugged.variance == 1.5

    def test_partially_synthetic(self):
        found = combine(
            np.array([1.0, 3.0]), np.array([0.5, 1.5]), ratio=1.0, partial=True, fitted=False
        )
        # v̄ = 1, b = 2: 1 + 2/2, and (2 − 1)(1 + 2·1/2)² degrees of freedom.
        assert (found.estimate, found.variance, found.df, found.rule) == (2.0, 2.0, 4.0, PARTIALLY)

    def test_fully_synthetic(self):
        found = combine(
            np.array([0.0, 2.0, 4.0]), np.full(3, 0.6), ratio=1.0, partial=False, fitted=False
        )
        # b = 4: (1 + 1/3)·4 − 0.6, and 2 (1 − 3·0.6/(4·4))² degrees of freedom.
        assert found.variance == pytest.approx(16 / 3 - 0.6)
        assert found.df == pytest.approx(2 * (1 - 1.8 / 16) ** 2)
        assert found.rule == FULLY

    def test_fully_synthetic_where_the_difference_is_negative(self):
        found = combine(
            np.array([1.0, 1.1]), np.array([1.0, 1.0]), ratio=1.0, partial=False, fitted=False
        )
        assert found.rule == SINGLE
        assert found.variance == pytest.approx(1 + 2 / 2)

    def test_overlap_by_hand(self):
        assert overlap(0, 4, 0, 4) == 1.0
        assert overlap(0, 4, 1, 3) == 0.5 * (2 / 4 + 2 / 2)
        assert overlap(0, 1, 2, 3) == 0.0
        assert np.isnan(overlap(np.nan, np.nan, 0, 1))
        assert overlap(0, 1, np.nan, np.nan) == 0.0

    def test_overlap_of_points(self):
        # The limit of intervals that shrink to the point.
        assert overlap(0, 4, 1, 1) == pytest.approx(overlap(0, 4, 1 - 1e-9, 1 + 1e-9))
        assert overlap(0, 4, 1, 1) == overlap(1, 1, 0, 4) == 0.5
        assert overlap(0, 4, 5, 5) == overlap(5, 5, 0, 4) == 0.0
        assert overlap(2, 2, 2, 2) == 1.0
        assert overlap(2, 2, 3, 3) == 0.0

    def test_fitted_parameters_have_one_rule_whatever_m(self):
        # b = 4 is large enough for the rule of posterior draws, which these are not.
        found = combine(
            np.array([0.0, 2.0, 4.0]), np.full(3, 0.6), ratio=2.0, partial=False, fitted=True
        )
        assert found.rule == SINGLE
        assert found.variance == pytest.approx((2 + 1 / 3) * 0.6)


class TestIntervals:
    def test_a_mean_and_a_share(self):
        own = pd.DataFrame({"a": [1.0, 2, 3, 6], "g": pd.Categorical(list("ppqp"))})
        release = pd.DataFrame({"a": [2.0, 2, 3, 7], "g": pd.Categorical(list("pqqp"))})
        table = sr.utility(own, release, propensity="main", level=0.9).intervals
        row = table.loc[("means and shares", "a")]
        se = math.sqrt(np.var([1, 2, 3, 6], ddof=1) / 4)
        assert row["estimate_confidential"] == 3.0
        assert row["se_confidential"] == pytest.approx(se)
        assert row["high_confidential"] == pytest.approx(3.0 + t.ppf(0.95, 3) * se)
        own_se = math.sqrt(np.var([2, 2, 3, 7], ddof=1) / 4)
        assert row["se_synthetic"] == pytest.approx(math.sqrt(3) * own_se)  # r = 1, m = 1
        assert row["difference"] == pytest.approx(0.5 / se)
        reach, theirs = t.ppf(0.95, 3) * se, t.ppf(0.95, 3) * own_se
        common = min(3 + reach, 3.5 + theirs) - max(3 - reach, 3.5 - theirs)
        assert row["overlap_as_data"] == pytest.approx(common / 4 / reach + common / 4 / theirs)
        share = table.loc[("means and shares", "g[p]")]
        assert share["estimate_confidential"] == 0.75
        assert share["se_confidential"] == pytest.approx(math.sqrt(0.75 * 0.25 / 3))

    def test_regressions_in_closed_form(self):
        own = sample(300, 1)
        own["b"] = (own["x"] + np.random.default_rng(3).logistic(size=300) > 0).astype(int)
        analyses = [
            sr.Regression("y ~ g"),
            sr.Regression("b ~ g", family="bernoulli"),
            sr.Regression("k ~ g", family="poisson"),
            sr.Regression("g ~ 1", family="categorical"),
        ]
        table = sr.utility(own, own, regressions=analyses, propensity="main").intervals
        by = own.groupby("g", observed=True)
        n, mean = by.size(), by["y"].mean()
        sigma2 = sum(((d["y"] - d["y"].mean()) ** 2).sum() for _, d in by) / 297
        row = table.loc[("y ~ g (gaussian)", "g[T.b]")]
        assert row["estimate_confidential"] == pytest.approx(mean["b"] - mean["a"])
        assert row["se_confidential"] == pytest.approx(
            math.sqrt(sigma2 * (1 / n["a"] + 1 / n["b"]))
        )
        row = table.loc[("b ~ g (bernoulli)", "g[T.c]")]
        p = by["b"].mean()
        logit = np.log(p / (1 - p))
        variance = 1 / (n * p * (1 - p))
        assert row["estimate_confidential"] == pytest.approx(logit["c"] - logit["a"], abs=1e-5)
        se = math.sqrt(variance["a"] + variance["c"])
        assert row["se_confidential"] == pytest.approx(se, rel=1e-5)
        assert row["high_confidential"] == pytest.approx(
            row["estimate_confidential"] + norm.ppf(0.975) * se, rel=1e-5
        )
        row = table.loc[("k ~ g (poisson)", "g[T.b]")]
        total, rate = by["k"].sum(), by["k"].mean()
        assert row["estimate_confidential"] == pytest.approx(
            math.log(rate["b"] / rate["a"]), abs=1e-5
        )
        assert row["se_confidential"] == pytest.approx(
            math.sqrt(1 / total["a"] + 1 / total["b"]), rel=1e-5
        )
        row = table.loc[("g ~ 1 (categorical)", "c:Intercept")]
        assert row["estimate_confidential"] == pytest.approx(math.log(n["c"] / n["a"]), abs=1e-5)
        assert row["se_confidential"] == pytest.approx(math.sqrt(1 / n["c"] + 1 / n["a"]), rel=1e-5)
        assert table["overlap_as_data"].to_numpy() == pytest.approx(1.0)

    def test_the_plans_regressions_are_the_default(self):
        data = sample(200, 1)
        synthesizer = sr.fit(sr.Regression("y ~ x"), data, n_draws=50, seed=1)
        table = sr.utility(synthesizer, synthesizer.synthesize(m=2, seed=1)).intervals
        assert table.loc["y ~ x (gaussian)"].index.tolist() == ["Intercept", "x"]
        assert table.loc["y ~ x (gaussian)", "rule"].tolist() == [PARTIALLY] * 2
        assert table.loc[("means and shares", "x"), "rule"] == UNCHANGED
        assert table.loc[("means and shares", "x"), "overlap"] == 1.0

    def test_a_level_that_the_release_lacks(self):
        own = sample(200, 1)
        release = sample(200, 2)
        release["g"] = pd.Categorical(["a", "b"] * 100, categories=list("abc"))
        found = sr.utility(own, release, regressions=sr.Regression("y ~ g"), propensity="main")
        table = found.intervals.loc["y ~ g (gaussian)"]
        assert table.index.tolist() == ["Intercept", "g[T.b]", "g[T.c]"]
        assert table.loc["g[T.c]", "rule"] == LACKING
        assert table.loc["g[T.c]", ["overlap", "overlap_as_data"]].tolist() == [0.0, 0.0]
        # What can be estimated is, as if there were two levels.
        means = release.groupby("g", observed=True)["y"].mean()
        assert table.loc["Intercept", "estimate_synthetic"] == pytest.approx(means["a"])
        assert table.loc["g[T.b]", "estimate_synthetic"] == pytest.approx(means["b"] - means["a"])
        assert any("dataset 1 cannot give g[T.c]" in note for note in found.notes)

    @pytest.mark.parametrize(
        ("analysis", "lost"),
        [
            (sr.Regression("b ~ g", family="bernoulli"), {"g[T.c]"}),
            (sr.Regression("k ~ g", family="poisson"), {"g[T.c]"}),
            (sr.Regression("g ~ x", family="categorical"), {"c:Intercept", "c:x"}),
            (sr.Regression("b ~ x", family="bernoulli"), set()),
        ],
    )
    def test_coefficients_that_the_release_does_not_settle(self, analysis, lost):
        own, release = (
            sample(300, seed).assign(b=lambda d: (d["y"] > 2.0).astype(int)) for seed in (1, 2)
        )
        release["g"] = pd.Categorical(["a", "b"] * 150, categories=list("abc"))
        table = sr.utility(own, release, regressions=analysis, propensity="main").intervals
        table = table.drop("means and shares", level="analysis").droplevel("analysis")
        assert set(table.index[table["rule"] == LACKING]) == lost
        assert (table.loc[sorted(lost), "overlap"] == 0.0).all()

    @pytest.mark.parametrize("level", ["a", "c"])
    def test_an_outcome_without_variation_settles_nothing(self, level):
        own, release = sample(300, 1), sample(300, 2)
        release["g"] = pd.Categorical([level] * 300, categories=list("abc"))
        analysis = sr.Regression("g ~ x", family="categorical")
        table = sr.utility(own, release, regressions=analysis, propensity="main").intervals
        assert (table.loc["g ~ x (categorical)", "overlap"] == 0.0).all()
        assert (table.loc["means and shares"].filter(like="g[", axis=0)["overlap"] == 0.0).all()

    def test_what_the_confidential_data_do_not_settle_is_left_out(self):
        own, release = (
            sample(300, seed).assign(b=lambda d: (d["y"] > 2.0).astype(int)) for seed in (1, 2)
        )
        own.loc[own["g"] == "c", "b"] = 0
        analysis = sr.Regression("b ~ g", family="bernoulli")
        found = sr.utility(own, release, regressions=analysis, propensity="main")
        table = found.intervals.loc["b ~ g (bernoulli)"]
        assert table["overlap"].isna().tolist() == [False, False, True]
        assert any("do not settle g[T.c]" in note for note in found.notes)

    @pytest.mark.parametrize("formula", ["b ~ g", "g ~ b"])
    def test_levels_that_nobody_declared_stand_in_no_note(self, formula):
        own, release = (
            sample(300, seed).assign(
                b=lambda d: (d["y"] > 2.0).astype(int), g=lambda d: d["g"].astype(str) + "-secret"
            )
            for seed in (1, 2)
        )
        own.loc[own["g"] == "c-secret", "b"] = 0
        family = "bernoulli" if formula == "b ~ g" else "categorical"
        analysis = sr.Regression(formula, family=family)
        found = sr.utility(own, release, regressions=analysis, propensity="main")
        shown = "g[*]" if formula == "b ~ g" else "*:b"
        assert any(f"do not settle {shown} (" in note for note in found.notes)
        assert "secret" not in "".join(found.notes)

    def test_a_ruined_release_scores_worse(self):
        own = sample(400, 1)
        analyses = [sr.Regression("y ~ x + g"), sr.Regression("g ~ 1", family="categorical")]
        honest = sample(400, 2)
        one_level = pd.Categorical(["a"] * 400, categories=list("abc"))
        values = [
            sr.utility(own, release, regressions=analyses, propensity="main").summary()["value"]
            for release in (honest, honest.assign(x=7.0), honest.assign(g=one_level))
        ]
        for name in ("overlap", "overlap_as_data"):
            good, constant, single = (one[name] for one in values)
            assert constant < good - 0.1
            assert single < good - 0.1

    def test_the_confidential_data_settle_which_estimates_there_are(self):
        own = sample(400, 1).assign(f=["5"] + ["1", "2", "3"] * 133)
        plan = [sr.Regression("f ~ x", family="categorical"), sr.Regression("y ~ f")]
        synthesizer = sr.fit(plan, own, n_draws=50, seed=1)
        found = [
            sr.utility(synthesizer, synthesizer.synthesize(seed=k), propensity="main")
            for k in range(6)
        ]
        lacking = [(one.intervals["rule"] == LACKING).any() for one in found]
        assert 0 < sum(lacking) < 6  # in some of them nobody has the rare level
        averaged = [one.intervals.index[one.intervals["overlap"].notna()].tolist() for one in found]
        assert all(one == averaged[0] for one in averaged)

    def test_an_analysis_of_columns_that_stayed(self):
        own = sample(300, 1).assign(z=lambda d: d["x"] + sample(300, 3)["y"])
        release = own.assign(y=sample(300, 2)["y"])
        analyses = [sr.Regression("z ~ x"), sr.Regression("z ~ y")]
        table = sr.utility(own, release, regressions=analyses, propensity="main").intervals
        assert set(table.loc["z ~ x (gaussian)", "rule"]) == {UNCHANGED}
        assert table.loc["z ~ x (gaussian)", "overlap"].tolist() == [1.0, 1.0]
        assert set(table.loc["z ~ y (gaussian)", "rule"]) == {SINGLE}

    @pytest.mark.parametrize("m", [1, 2, 5])
    @pytest.mark.parametrize("parameters", ["posterior", "fitted"])
    def test_a_copys_overlap_is_what_the_summary_says(self, m, parameters):
        own = sample(100, 1)
        options = {"regressions": sr.Regression("y ~ x"), "propensity": "main"}
        found = sr.utility(own, [own] * m, parameters=parameters, **options).summary()
        assert found.loc["overlap", "value"] == pytest.approx(found.loc["overlap", "copy"])
        assert found.loc["overlap", "copy"] < 1.0
        partial = sr.utility(
            own, [own] * m, synthesized=["y"], parameters=parameters, **options
        ).summary()
        assert partial.loc["overlap", "value"] == pytest.approx(partial.loc["overlap", "copy"])

    def test_weights_are_not_used_and_that_is_said(self):
        own = sample(100, 1).assign(w=2.0)
        analysis = sr.Regression("y ~ x", weights="w")
        found = sr.utility(own, sample(100, 2), regressions=analysis, propensity="main")
        assert any("without their weights (w)" in note for note in found.notes)

    def test_weights_of_a_plan_are_said_once(self):
        own = sample(100, 1).assign(w=2.0)
        plan = [sr.Regression("y ~ x", weights="w"), sr.Regression("k ~ x", "poisson", weights="w")]
        synthesizer = sr.fit(plan, own, n_draws=50, seed=1)
        found = sr.utility(synthesizer, synthesizer.synthesize(seed=1), propensity="main")
        assert [note for note in found.notes if "weights (w)" in note]


class TestRows:
    """Which columns stayed, which rows are pairs, and which are left out."""

    def test_a_shuffled_release_is_that_in_order(self):
        own = sample(200, 5)
        release = own.assign(y=sample(200, 6)["y"])
        shuffled = [release.sample(frac=1.0, random_state=k) for k in range(2)]
        expected = sr.utility(own, [release] * 2)
        found = sr.utility(own, shuffled)
        assert found.synthesized == ("y",)
        assert any("equal but for the order of rows: x, g, k" in note for note in found.notes)
        for name in ("propensity", "intervals", "marginals", "pairs"):
            pd.testing.assert_frame_equal(
                getattr(found, name), getattr(expected, name), rtol=1e-7, atol=1e-12
            )

    def test_a_shuffled_copy_is_a_copy(self):
        own = sample(200, 5)
        found = sr.utility(own, own.sample(frac=1.0, random_state=1), propensity="main")
        assert any("it is a copy" in note for note in found.notes)

    def test_columns_shuffled_apart_are_synthesized_and_said(self):
        own = sample(200, 5)
        rng = np.random.default_rng(1)
        release = pd.DataFrame({name: rng.permutation(own[name]) for name in ("x", "y")})
        found = sr.utility(own[["x", "y"]], release, propensity="main")
        assert found.synthesized == ("x", "y")
        assert any("x, y are those of the confidential data in another" in n for n in found.notes)

    def test_equal_counts_by_chance_are_no_match(self):
        own, release = binary(30, 70).assign(x=sample(100, 3)["x"]), binary(30, 70).iloc[::-1]
        release = release.assign(x=sample(100, 1)["x"].to_numpy())
        found = sr.utility(own, release, propensity="main")
        assert found.synthesized == ("v", "x")
        assert found.notes == ()

    def test_a_constant_tells_no_order(self):
        own = sample(200, 5).assign(one=1.0)
        release = own.assign(y=sample(200, 6)["y"]).sample(frac=1.0, random_state=1)
        assert sr.utility(own, release, propensity="main").synthesized == ("y",)

    def test_pairs_are_found_before_rows_are_left_out(self):
        own = sample(400, 5)
        release = own.assign(y=sample(400, 6)["y"])
        gaps = np.random.default_rng(0).choice(400, 36, replace=False)
        kept = np.setdiff1d(np.arange(400), gaps)
        own.loc[gaps, "y"] = np.nan
        expected = sr.utility(own.loc[kept], release.loc[kept])
        assert expected.synthesized == ("y",)
        for given in (release, release.loc[kept]):
            found = sr.utility(own, given, missing="drop")
            assert found.synthesized == ("y",)
            assert found.n_records == 364
            assert any("36 records of 400 left out" in note for note in found.notes)
            pd.testing.assert_frame_equal(found.propensity, expected.propensity)

    def test_rows_left_out_of_separate_samples_are_said(self):
        own, release = sample(100, 1), sample(80, 2)
        own.loc[3, "y"] = np.nan
        release.loc[[4, 5], "x"] = np.nan
        found = sr.utility(own, [release, sample(50, 3)], missing="drop", propensity="main")
        assert (found.n_records, found.n_rows) == (99, (78, 50))
        assert found.notes == (
            "The confidential data: 1 record of 100 left out, since a value is missing.",
            "Synthetic dataset 1: 2 rows of 80 left out, since a value is missing.",
        )

    def test_records_that_the_synthesizer_left_out_are_said(self):
        own = sample(100, 1)
        own.loc[3, "y"] = np.nan
        synthesizer = sr.fit(sr.Regression("y ~ x"), own, missing="drop", n_draws=50, seed=1)
        found = sr.utility(synthesizer, synthesizer.synthesize(seed=1), propensity="main")
        assert "The Synthesizer left out 1 record with missing values." in found.notes

    def test_written_row_numbers_are_not_compared(self, tmp_path):
        own, release = sample(100, 1)[["x", "y"]], sample(100, 2)[["x", "y"]]
        for name, frame in (("own", own), ("release", release)):
            frame.to_csv(tmp_path / f"{name}.csv")
        found = sr.utility(tmp_path / "own.csv", tmp_path / "release.csv", propensity="main")
        assert found.synthesized == ("x", "y")
        assert any("'Unnamed: 0'" in note for note in found.notes)
        expected = sr.utility(own, release, propensity="main")
        pd.testing.assert_frame_equal(found.propensity, expected.propensity)


class TestDistributions:
    def test_shares_by_hand(self):
        own = binary(30, 70)
        row = sr.utility(own, [binary(50, 50), binary(20, 30)]).marginals.loc["v"]
        assert row["total_variation"] == pytest.approx((0.2 + 0.1) / 2)
        one = 1 - math.sqrt(0.3 * 0.5) - math.sqrt(0.7 * 0.5)
        two = 1 - math.sqrt(0.3 * 0.4) - math.sqrt(0.7 * 0.6)
        assert row["hellinger"] == pytest.approx((math.sqrt(one) + math.sqrt(two)) / 2)

    def test_chance_makes_what_it_is_said_to_make(self):
        own = [sample(800, 2 * k)[["y"]] for k in range(60)]
        rows = [sr.utility(d, sample(800, 2 * k + 1)[["y"]], propensity="main").marginals
                for k, d in enumerate(own)]  # fmt: skip
        found = pd.concat(rows)
        error = found["total_variation"].std() / math.sqrt(60)
        assert abs(found["total_variation"].mean() - found["by_chance"].mean()) < 4 * error

    def test_numbers(self):
        own = sample(500, 1)
        release = own.assign(y=1.5 * own["y"] + 1.0)
        found = sr.utility(own, release)
        row = found.marginals.loc["y"]
        spread = own["y"].std()
        assert row["mean_difference"] == pytest.approx((0.5 * own["y"].mean() + 1.0) / spread)
        assert row["sd_ratio"] == pytest.approx(1.5)
        assert row["quantile_difference"] > row["mean_difference"]
        assert not found.marginals.loc["x", "synthesized"]
        assert found.marginals.loc["x", "total_variation"] == 0.0
        pair = found.pairs.loc[("x", "y")]
        assert pair["correlation_confidential"] == pytest.approx(own["x"].corr(own["y"]))
        assert pair["correlation_difference"] == pytest.approx(0.0, abs=1e-12)

    def test_pairs_see_what_marginals_do_not(self):
        own = sample(1000, 1)[["x", "y"]]
        release = own.assign(y=np.random.default_rng(0).permutation(own["y"]))
        found = sr.utility(own, release, synthesized=["y"])
        assert found.marginals["total_variation"].max() == 0.0
        pair = found.pairs.loc[("x", "y")]
        assert pair["total_variation"] > 1.5 * pair["by_chance"]
        assert pair["correlation_difference"] < -0.3


class TestTheResult:
    def test_everything_comes_back_from_json(self):
        found = sr.utility(sample(200, 1), [sample(200, 2), sample(150, 3)],
                           regressions=sr.Regression("y ~ x"))  # fmt: skip
        again = sr.Utility.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False)))
        for name in ("propensity", "intervals", "marginals", "pairs"):
            pd.testing.assert_frame_equal(getattr(again, name), getattr(found, name))
        assert again.notes == found.notes
        pd.testing.assert_frame_equal(again.summary(), found.summary())
        with pytest.raises(sr.FileError, match="lacks a part"):
            sr.Utility.from_json({"n_records": 3})

    @pytest.mark.parametrize(
        ("table", "column", "value"),
        [
            ("marginals", "synthesized", None),
            ("marginals", "variable", [1]),
            ("intervals", "rule", {}),
            ("propensity", "model", ["main", "inte"]),
            ("marginals", "kind", ["number", "words", "factor"]),
            ("pairs", "by_chance", [10**400]),
            ("propensity", "n_parameters", ["x"]),
            ("notes", None, [1]),
            ("parameters", None, "none"),
        ],
    )
    def test_a_part_that_somebody_changed_is_a_file_error(self, table, column, value):
        stored = sr.utility(sample(60, 1), sample(60, 2)).to_json()
        holder, key = (stored, table) if column is None else (stored[table], column)
        if value is None:
            del holder[key]
        else:
            holder[key] = value
        with pytest.raises(sr.FileError, match="lacks a part") as caught:
            sr.Utility.from_json(stored)
        assert caught.value.__context__ is None

    def test_no_value_of_a_record_is_told(self):
        own = sample(300, 1)
        own.loc[17, "y"] = 8642.1357
        found = sr.utility(own, sample(300, 2), regressions=sr.Regression("y ~ x"))
        told = f"{found!r} {json.dumps(found.to_json())}"
        values = own[["x", "y"]].to_numpy().ravel()
        numbers = np.array(
            [
                v
                for name in ("propensity", "intervals", "marginals", "pairs")
                for v in getattr(found, name).select_dtypes("number").to_numpy().ravel()
            ]
        )
        assert "8642.1357" not in told
        assert not np.isin(numbers, values).any()

    def test_summary_and_repr(self):
        found = sr.utility(sample(200, 1), sample(200, 2))
        summary = found.summary()
        assert summary.loc["pmse_ratio_main", "right_models"] == 1.0
        assert summary.loc["overlap_as_data", "copy"] == 1.0
        assert summary["value"].notna().all()
        assert repr(found).startswith("<Utility: 200 records; 1 dataset; pmse_ratio_main ")

    def test_files(self, tmp_path):
        own, release = sample(100, 1), sample(100, 2)
        own.to_csv(tmp_path / "own.csv", index=False)
        release.to_parquet(tmp_path / "release.parquet")
        found = sr.utility(
            tmp_path / "own.csv", [tmp_path / "release.parquet"], types={"g": ["a", "b", "c"]}
        )
        direct = sr.utility(own, release)
        pd.testing.assert_frame_equal(found.propensity, direct.propensity)

    def test_plots(self):
        found = sr.utility(sample(200, 1), sample(200, 2), regressions=sr.Regression("y ~ x"))
        ax = found.plot.overlap(analysis="y ~ x (gaussian)")
        assert [label.get_text() for label in ax.get_yticklabels()] == ["Intercept", "x"]
        row = found.intervals.loc[("y ~ x (gaussian)", "x")]
        assert f"{row['overlap']:.2f}" in [one.get_text() for one in ax.texts]
        ax = found.plot.marginals()
        widths = [bar.get_width() for bar in ax.patches]
        assert widths == pytest.approx(found.marginals["total_variation"].tolist())
        with pytest.raises(sr.OptionError, match="analysis"):
            found.plot.overlap(analysis="z ~ x")

    def test_heavy_modules_wait(self):
        code = (
            "import sys, synrisk as sr, pandas as pd\n"
            "d = pd.DataFrame({'a': [1.0, 2, 3, 5, 8, 9, 4, 2, 1, 7]})\n"
            "u = sr.utility(d, d + 0.5)\n"
            "assert not {'matplotlib', 'sklearn', 'jinja2', 'typer'} & set(sys.modules)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"propensity": "forest"}, "main, interactions, cart"),
            ({"propensity": ()}, "one or several"),
            ({"parameters": "posteriors"}, "Did you mean 'posterior'"),
            ({"level": 95}, "between 0 and 1"),
            ({"variables": ["zz"]}, "no column 'zz'"),
            ({"variables": 3}, "list of columns"),
            ({"synthesized": ["zz"]}, "no column 'zz'"),
            ({"synthesized": ["y", "gg"]}, "no column 'gg'. Did you mean 'g'"),
            ({"synthesized": ["y"], "variables": ["x"]}, "None of the synthesized"),
            ({"id": "nope"}, "no column 'nope'"),
            ({"id": 3}, "name of a column"),
            ({"id": "x", "variables": ["x", "y"]}, "names the records"),
            ({"regressions": "y ~ x"}, "Regression"),
            ({"seed": 1.5}, "seed"),
        ],
    )
    def test_options(self, options, words):
        with pytest.raises(sr.SynriskError, match=words):
            sr.utility(sample(50, 1), sample(50, 2), **options)

    def test_a_synthesizer_settles_its_types(self):
        data = people()
        synthesizer = sr.fit(sr.Regression("b ~ x"), data, n_draws=20, seed=1)
        with pytest.raises(sr.OptionError, match="settled by the Synthesizer"):
            sr.utility(synthesizer, data, id="x")

    def test_gaps_in_the_release_alone(self):
        own, release = sample(50, 1), sample(50, 2)
        release.loc[3, "g"] = np.nan
        with pytest.raises(sr.SyntheticDataError) as raised:
            sr.utility(own, release, missing="level")
        assert "factors only" not in str(raised.value)
        assert "confidential data, which have none" in str(raised.value)

    def test_booleans_against_numbers(self):
        own, release = (sample(50, k).assign(b=lambda d: d["x"] > 0) for k in (1, 2))
        with pytest.raises(sr.SyntheticDataError, match="'b' holds numbers, but true and false"):
            sr.utility(own, release.astype({"b": int}))
        assert sr.utility(own, release.astype({"b": str}), propensity="main").n_records == 50

    @pytest.mark.parametrize("factor", [1e200, 1e-200])
    def test_an_extreme_scale_changes_nothing(self, factor):
        own, release = sample(200, 1), sample(200, 2, shift=0.3)
        analyses = [sr.Regression("y ~ x + g"), sr.Regression("k ~ x", family="poisson")]
        expected, found = (
            sr.utility(*(d.assign(x=d["x"] * f, y=d["y"] * f) for d in (own, release)),
                       regressions=analyses)
            for f in (1.0, factor)
        )  # fmt: skip
        for name in ("propensity", "marginals", "pairs"):
            pd.testing.assert_frame_equal(getattr(found, name), getattr(expected, name), rtol=1e-6)
        free = ["difference", "overlap", "overlap_as_data", "df_synthetic"]
        pd.testing.assert_frame_equal(found.intervals[free], expected.intervals[free], rtol=1e-6)
        mean = ("means and shares", "y")
        for column in ("estimate_confidential", "se_synthetic", "high_confidential"):
            assert found.intervals.loc[mean, column] == pytest.approx(
                factor * expected.intervals.loc[mean, column], rel=1e-9
            )
        slope = found.intervals.loc[("k ~ x (poisson)", "x"), "estimate_confidential"]
        same = expected.intervals.loc[("k ~ x (poisson)", "x"), "estimate_confidential"]
        assert slope * factor == pytest.approx(same, rel=1e-6)

    def test_a_release_on_quite_another_scale(self):
        own, release = sample(200, 1), sample(200, 2)
        release["y"] *= 1e200
        found = sr.utility(own, release, regressions=sr.Regression("y ~ x"))
        assert (found.propensity["specks"] > 0.3).all()
        assert found.intervals.loc["y ~ x (gaussian)", "overlap"].tolist() == [0.0, 0.0]

    def test_tables(self):
        own = sample(50, 1)
        with pytest.raises(sr.SyntheticDataError, match="empty"):
            sr.utility(own, [])
        with pytest.raises(sr.SyntheticDataError, match="no column in common"):
            sr.utility(own, pd.DataFrame({"q": [1.0]}))
        with pytest.raises(sr.SyntheticDataError, match="no rows"):
            sr.utility(own, own.iloc[:0])
        names = pd.DataFrame({"name": [f"person {k}" for k in range(150)]})
        with pytest.raises(sr.DataError, match="150 levels"):
            sr.utility(names, names)
