import numpy as np
import pandas as pd
import pytest
from helpers.cases import one_gaussian, people, two_gaussians

import synrisk as sr


def guesses_of(risk, record, name):
    return risk.joint(record)[name].to_numpy()


def test_a_number_means_that_many_relative_guesses():
    synthesizer, release = one_gaussian()
    truth = synthesizer.data["b"]
    guesses = guesses_of(
        sr.attribute_risk(synthesizer, release, guesses=5, question="paper"), 3, "b"
    )
    np.testing.assert_allclose(guesses, truth[3] * np.array([0.9, 0.95, 1.0, 1.05, 1.1]))
    assert guesses[2] == truth[3]


def test_relative_guesses_of_a_negative_truth_ascend():
    data = people()
    data["b"] -= 30
    draws = one_gaussian()[0].draws("b").drop(columns="weight")
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ x"), data, draws)
    release = data[["x"]].assign(b=data["b"].to_numpy()[::-1])
    guesses = guesses_of(sr.attribute_risk(synthesizer, release, question="paper"), 0, "b")
    truth = data["b"][0]
    np.testing.assert_allclose(guesses, np.linspace(1.1 * truth, 0.9 * truth, 11))


def test_within_keeps_guesses_below_a_top_code():
    synthesizer, release = one_gaussian()
    top = synthesizer.data["b"].max()
    risk = sr.attribute_risk(
        synthesizer, release, guesses=sr.Additive(7, 2, 2, within=(None, top)), question="paper"
    )
    at_top = synthesizer.data["b"].idxmax()
    guesses = guesses_of(risk, at_top, "b")
    np.testing.assert_allclose(guesses, np.linspace(top - 2, top, 7))
    assert risk.marginal("b")["value"].max() <= top


def test_strategies_are_mixed_by_variable():
    synthesizer, release = two_gaussians()
    for guesses in (
        {"c": sr.Interval(4, -3, 3)},
        [None, sr.Interval(4, -3, 3)],
        [11, sr.Interval(4, -3, 3)],
        (sr.Relative(11), sr.Interval(4, -3, 3)),
    ):
        risk = sr.attribute_risk(synthesizer, release, guesses=guesses, question="paper")
        assert risk.joint(0).shape == (11, 4)


def test_values_may_differ_by_record():
    synthesizer, release = one_gaussian()
    truth = synthesizer.data["b"].to_numpy()
    table = np.column_stack([truth + 1, truth, truth - 2])
    everyone = sr.attribute_risk(synthesizer, release, guesses=sr.Values(table), question="paper")
    some = sr.attribute_risk(
        synthesizer, release, guesses=sr.Values(table), records=[7, 3], question="paper"
    )
    few = sr.attribute_risk(
        synthesizer, release, guesses=sr.Values(table[[7, 3]]), records=[7, 3], question="paper"
    )
    np.testing.assert_array_equal(guesses_of(everyone, 7, "b"), table[7])
    for risk in (some, few):
        assert list(risk.records.index) == [7, 3]
        np.testing.assert_array_equal(risk.joint(3), everyone.joint(3))
        np.testing.assert_array_equal(risk.joint(7), everyone.joint(7))


def test_rows_for_all_records_are_in_the_confidential_order_whatever_records_are_asked():
    synthesizer, release = one_gaussian()
    truth = synthesizer.data["b"].to_numpy()
    table = np.column_stack([truth + 1, truth, truth - 2])
    order = np.random.default_rng(0).permutation(40)
    risk = sr.attribute_risk(
        synthesizer, release, guesses=sr.Values(table), records=order, question="paper"
    )
    np.testing.assert_array_equal(guesses_of(risk, order[0], "b"), table[order[0]])


def test_numpy_scalars_are_numbers():
    synthesizer, release = one_gaussian()
    wide = sr.Interval(np.int64(8), synthesizer.data["b"].min(), np.float32(30))
    assert sr.attribute_risk(synthesizer, release, guesses=wide, question="paper").joint(
        0
    ).shape == (8,)
    sr.Additive(5, np.int64(1), np.int32(1))
    sr.TruthFactor(np.int64(2))


def test_shorter_rows_have_fewer_guesses():
    synthesizer, release = one_gaussian()
    truth = synthesizer.data["b"].to_numpy()
    table = np.column_stack([truth + 1, truth, truth - 2, truth + 3])
    table[5, 3] = np.nan
    risk = sr.attribute_risk(synthesizer, release, guesses=sr.Values(table), question="paper")
    assert risk.records["n_guesses"].tolist() == [4] * 5 + [3] + [4] * 34
    assert risk.joint(5).shape == (3,)
    assert float(risk.joint(5).sum()) == pytest.approx(1, abs=1e-12)
    assert risk.records.loc[5, "prior"] == pytest.approx(1 / 3)
    assert len(risk.ranking(5)) == 3
    assert np.isnan(risk.marginal("b").to_numpy()[5, 3])
    shorter = sr.attribute_risk(
        synthesizer, release, guesses=sr.Values(table[:, :3]), records=[5], question="paper"
    )
    np.testing.assert_allclose(risk.joint(5), shorter.joint(5), atol=1e-15)


def test_counts_with_many_values_have_a_neighbourhood_and_the_result_says_so():
    data = people(200)
    data["k"] = np.random.default_rng(1).permutation(200) % 90
    some, few = (int(data.index[data["k"] == k][0]) for k in (50, 1))
    draws = {"Intercept": [3.6, 3.7], "x": [0.1, 0.0]}
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("k ~ x", "poisson"), data, draws)
    release = data[["x"]].assign(k=data["k"].to_numpy()[::-1])
    risk = sr.attribute_risk(synthesizer, release, guesses=7, question="paper")
    np.testing.assert_array_equal(guesses_of(risk, some, "k"), np.arange(47, 54))
    np.testing.assert_array_equal(guesses_of(risk, few, "k"), np.arange(7))
    assert any("many values" in note and "7 whole numbers" in note for note in risk.notes)
    whole = sr.attribute_risk(
        synthesizer, release, guesses=sr.AllLevels(), records=[some], question="paper"
    )
    np.testing.assert_array_equal(guesses_of(whole, some, "k"), np.arange(90))


def test_counts_take_whole_guesses_of_continuous_strategies():
    data = people()
    draws = {"Intercept": [0.4, 0.5], "x": [0.1, 0.0]}
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("k ~ x", "poisson"), data, draws)
    release = data[["x"]].assign(k=1)
    risk = sr.attribute_risk(synthesizer, release, guesses=sr.Additive(9, 2, 2), question="paper")
    for i in range(40):
        truth = data["k"][i]
        expected = np.arange(max(truth - 2, 0), truth + 3)
        np.testing.assert_array_equal(np.sort(guesses_of(risk, i, "k")), expected)
    assert any("whole numbers" in note for note in risk.notes)


def test_the_result_says_when_guesses_are_around_the_truth():
    synthesizer, release = one_gaussian()
    around = sr.attribute_risk(synthesizer, release, question="paper")
    fixed = sr.attribute_risk(synthesizer, release, guesses=sr.Interval(5, 0, 20), question="paper")
    assert any("no intruder owns" in note for note in around.notes)
    assert not any("no intruder owns" in note for note in fixed.notes)
    assert any("as of one chain" in note for note in fixed.notes)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sr.Relative(1),
        lambda: sr.Relative(2.5),
        lambda: sr.Relative(True),
        lambda: sr.Relative(5, 0, 0),
        lambda: sr.Relative(5, -0.1, 0.1),
        lambda: sr.Additive(5, np.nan, 1),
        lambda: sr.Additive(5, 1, 1, within=(3, 3)),
        lambda: sr.Additive(5, 1, 1, within=5),
        lambda: sr.Interval(5, 2, 2),
        lambda: sr.Interval(5, 0, np.inf),
        lambda: sr.Interval(1, 0, 1),
    ],
)
def test_strategies_refuse_what_they_cannot_lay_out(make):
    with pytest.raises(sr.GuessError):
        make()


def test_a_strategy_that_no_count_has_room_for_is_told_to_be_meant_for_others():
    data = people()
    synthesizer = sr.fit(sr.Regression("k ~ x", "poisson"), data, seed=1, n_draws=10)
    with pytest.raises(
        sr.GuessError, match=r"fewer than two; .*\(AllLevels\(\)\), and say by name"
    ):
        sr.attribute_risk(
            synthesizer, data[["k", "x"]], guesses=sr.Relative(11, 0.1, 0.1), question="paper"
        )


def test_a_tolerance_by_width_alone_is_that_width():
    """Of a logarithm of 11 a tenth would be 1.1, a factor of three in the amount."""
    assert sr.Tolerance().share == 0.1
    assert sr.Tolerance(width=0.1) == sr.Tolerance(0.0, 0.1)
    assert repr(sr.Tolerance(width=0.1)) == "Tolerance(width=0.1)"
    synthesizer, release = one_gaussian()
    reaches = {
        name: sr.attribute_risk(synthesizer, release, tolerance=given).considered("b")["tolerance"]
        for name, given in {
            "width": sr.Tolerance(width=0.3),
            "both": sr.Tolerance(0.1, width=0.3),
            "share": 0.1,
        }.items()
    }
    truth = synthesizer.data["b"].abs()
    assert (reaches["width"] == 0.3).all()
    np.testing.assert_array_equal(reaches["both"], np.maximum(0.1 * truth, 0.3))
    np.testing.assert_array_equal(reaches["share"], 0.1 * truth)


def test_a_mixture_of_guesses_and_a_range_is_known_after_loading(tmp_path):
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, guesses={"c": sr.Relative(5)})
    risk.save(tmp_path / "risk.nc")
    loaded = sr.AttributeRisk.load(tmp_path / "risk.nc")
    assert loaded.considered("c") is None
    pd.testing.assert_frame_equal(loaded.considered("b"), risk.considered("b"))
    assert "(b within a quarter of a standard deviation, c exactly)" in str(
        loaded.verdict(further=0)
    )
    with pytest.raises(sr.OptionError, match="guesses in a range"):
        loaded.sensitivity()


def test_notes_on_a_range_are_plain_words_and_say_whether_it_was_declared():
    data = people(60)
    for types, words in (({}, "read off the confidential data"), ({"b": (-99, 99)}, "a declared")):
        synthesizer = sr.fit(sr.Regression("b ~ x"), data, types=types, n_draws=50, seed=1)
        risk = sr.attribute_risk(synthesizer, synthesizer.synthesize(seed=2))
        (note,) = [note for note in risk.notes if "range of guesses" in note]
        assert words in note
        assert note.isprintable()


def test_a_tenth_of_the_truth_gives_way_where_it_says_nothing():
    """A year of birth is within a tenth of everybody's; an amount is not."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"Year": 1970 + 15 * rng.normal(size=200), "Pay": rng.lognormal(size=200)})
    data.loc[0, "Year"] = 1700.0
    plan = [sr.Regression("Year ~ 1"), sr.Regression("log(Pay) ~ 1")]
    fitted = sr.fit(plan, data, seed=1, n_draws=50)
    release = fitted.synthesize()
    risk = sr.attribute_risk(fitted, release, diagnostics=False)
    years = risk.considered("Year")["tolerance"]
    assert 2 < years.median() < 6
    assert years[0] == pytest.approx(0.1 * (data["Year"].median() - 1700))
    assert risk.considered("Pay")["tolerance"].equals(0.1 * data["Pay"])
    assert "true Year within a quarter of a standard deviation" in str(risk.verdict(further=0))
    wide = sr.attribute_risk(fitted, release, tolerance=0.1)
    assert wide.verdict(further=0).outcome != "passed"
    assert any("so wide that most are within it" in doubt.why for doubt in wide.doubts)


def test_a_range_that_ends_at_the_tolerance_has_distinct_guesses():
    """Zeros under log1p: the range ends where the tolerance of a zero does, but for rounding."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        paid = rng.random(200) < 0.5
        wage = np.where(paid, np.exp(7.3 + 0.4 * rng.normal(size=200)).round(-1), 0.0)
        data = pd.DataFrame({"Paid": paid.astype(int), "Wage": wage.astype(int)})
        fitted = sr.fit(sr.Regression("log1p(Wage) ~ Paid"), data, n_draws=50)
        sr.attribute_risk(fitted, fitted.synthesize(), diagnostics=False)
