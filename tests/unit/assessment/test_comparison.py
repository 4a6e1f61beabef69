"""Releases side by side: an honest one, one of independent columns, and a copy."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers.cases import one_gaussian, people
from helpers.secret import SECRET

import synrisk as sr

HONEST = [sr.Regression("a ~ x"), sr.Regression("b ~ a")]


@cache
def data():
    rng = np.random.default_rng(4)
    x = rng.normal(size=400)
    a = 10 + x + 0.5 * rng.normal(size=400)
    return pd.DataFrame({"x": x, "a": a, "b": 20 + 2 * a + rng.normal(size=400)})


@cache
def honest():
    synthesizer = sr.fit(HONEST, data(), n_draws=200, seed=1)
    return synthesizer, synthesizer.synthesize(m=1, seed=SECRET + 2)


@cache
def compared():
    """An honest synthesizer with one and three datasets, independent columns, and a copy."""
    synthesizer = sr.fit(HONEST, data(), n_draws=200, seed=1)
    release = synthesizer.synthesize(m=3, seed=SECRET + 2)
    plan = [sr.Regression("a ~ 1"), sr.Regression("b ~ 1")]
    alone = sr.fit(plan, data(), n_draws=200, seed=1, release=["x"])
    independent = alone.synthesize(seed=SECRET + 3)
    return sr.compare(
        {
            "m=1": (synthesizer, release[:1]),
            "m=3": (sr.attribute_risk(synthesizer, release), release),
            "no predictors": (alone, independent),
            "said to be honest": (synthesizer, independent),
            "a copy": (synthesizer, data()),
        },
        criteria=sr.Criteria(lift=50),
    )


def test_what_can_be_judged():
    table = compared().table
    assert table["judged"].to_dict() == {
        "m=1": "yes", "m=3": "yes", "no predictors": "yes", "said to be honest": "no",
        "a copy": "no",
    }  # fmt: skip
    assert table.loc["a copy", "verdict"] == "failed"
    assert table.loc["m=1", "verdict"] == "passed"
    assert "Too close" in table.loc["a copy", "why"]
    assert not table.loc["m=1", "why"]


def test_by_the_risk_alone_the_copy_looks_safest():
    table = compared().table
    by_one_synthesizer = table.drop(index="no predictors")
    assert by_one_synthesizer["log_odds_range_q95"].idxmin() == "a copy"


def test_utility_separates_them():
    table = compared().table
    ratio = table["pmse_ratio"]
    assert ratio["a copy"] == pytest.approx(0.0, abs=1e-9)
    assert 0.1 < ratio["m=1"] < 3
    assert ratio["no predictors"] > 20 * ratio["m=1"]
    assert table["specks"].idxmax() in ("no predictors", "said to be honest")
    assert table["overlap_as_data"].idxmax() == "a copy"
    assert table["overlap_as_data"].idxmin() in ("no predictors", "said to be honest")


def test_the_table_is_that_of_risk_and_utility():
    found = compared()
    records = found.risks["m=3"].records
    row = found.table.loc["m=3"]
    assert row["n_datasets"] == 3
    assert row["lift_q95"] == pytest.approx(np.quantile(records["lift"], 0.95))
    assert row["probability"] == pytest.approx(records["probability"].mean())
    value = found.utilities["m=3"].summary()["value"]
    assert row["pmse_ratio"] == pytest.approx(value["pmse_ratio_interactions"])
    assert row["overlap"] == pytest.approx(value["overlap"])


def test_all_releases_are_asked_the_same():
    terms = [one.intervals.index.tolist() for one in compared().utilities.values()]
    assert all(one == terms[0] for one in terms)
    analyses = set(compared().utilities["no predictors"].intervals.index.get_level_values(0))
    assert "b ~ a (gaussian)" in analyses


def test_the_map_keeps_what_cannot_be_judged_apart():
    found = compared()
    ax = found.plot.map()
    points = [line for line in ax.lines if line.get_marker() not in ("None", None, "")]
    places = dict(zip(found.table.index, (line.get_xdata()[0] for line in points), strict=True))
    assert places["m=1"] == found.table.loc["m=1", "log_odds_range_q95"]
    judged = max(places[name] for name in ("m=1", "m=3", "no predictors"))
    assert judged < places["said to be honest"] < places["a copy"]
    heights = dict(zip(found.table.index, (line.get_ydata()[0] for line in points), strict=True))
    assert heights["no predictors"] > heights["m=1"] > heights["a copy"]
    assert ax.yaxis_inverted()
    assert not hollow(ax, found)
    assert "hollow" not in ax.get_title(loc="left")


def hollow(ax, found):
    """The releases whose points are hollow."""
    points = [line for line in ax.lines if line.get_marker() not in ("None", None, "")]
    return {
        name
        for name, line in zip(found.table.index, points, strict=True)
        if line.get_markerfacecolor() == "none"
    }


@cache
def unchecked():
    """An honest release and a copy without diagnostics, and the honest one with them."""
    synthesizer, release = honest()
    plain = sr.attribute_risk(synthesizer, release, diagnostics=False)
    copy = sr.attribute_risk(synthesizer, data(), diagnostics=False)
    return sr.compare(
        {"plain": (plain, release), "a copy": (copy, data()), "checked": (synthesizer, release)}
    )


def test_what_was_not_checked_has_no_place_on_the_axis_of_risk():
    found = unchecked()
    assert list(found.table["judged"]) == ["not checked", "not checked", "yes"]
    ax = found.plot.map()
    points = [line for line in ax.lines if line.get_marker() not in ("None", None, "")]
    places = dict(zip(found.table.index, (line.get_xdata()[0] for line in points), strict=True))
    assert places["checked"] < places["plain"] < places["a copy"]
    assert hollow(ax, found) == {"plain", "a copy"}
    assert "hollow: not checked" in ax.get_title(loc="left")
    (line,) = [line for line in found.plot.curve().lines if len(line.get_xdata())]
    assert list(line.get_xdata()) == [1]


def test_what_is_reliable_is_not_known_without_errors():
    reliable = unchecked().table["reliable"]
    assert reliable[["plain", "a copy"]].isna().all()
    assert reliable["checked"] == 1.0


def test_criteria_may_accept_what_was_not_checked():
    synthesizer, _ = one_gaussian(n=60)
    release = synthesizer.synthesize(1, seed=SECRET)
    releases = {"foreign": (synthesizer, release)}
    criteria = sr.Criteria(lift=50, unchecked_release="accept")
    found = sr.compare(releases, criteria=criteria)
    assert found.table.loc["foreign", "judged"] == "accepted"
    assert "cannot be judged" not in repr(found)
    ax = found.plot.map()
    assert hollow(ax, found) == {"foreign"}
    assert ax.lines[0].get_xdata()[0] == found.table.loc["foreign", "log_odds_range_q95"]
    without = sr.compare(releases, criteria=sr.Criteria(lift=50))
    assert without.table.loc["foreign", "judged"] == "not checked"


def test_nothing_to_judge_is_said_in_the_pictures():
    synthesizer, _ = honest()
    found = sr.compare({"a copy": (synthesizer, data()), "once more": (synthesizer, data())})
    ax = found.plot.map()
    assert not len(ax.get_xticks())
    assert "no risk can be judged" in ax.get_xlabel()
    one, other = (line.get_xdata()[0] for line in ax.lines[:2])
    low, high = ax.get_xlim()
    assert low < one < other < high
    assert other - one > 0.2 * (high - low)
    curve = found.plot.curve()
    assert [text.get_text() for text in curve.texts] == ["no risk can be judged, so none is drawn"]
    assert not len(curve.get_yticks())


def test_why_is_said_once_with_the_datasets():
    synthesizer, release = honest()
    copies = [data()] * 3
    far = data().assign(a=data()["a"] + 3, b=data()["b"] - 3)
    found = sr.compare(
        {"copies": (synthesizer, copies), "mixed": (synthesizer, [far, *release, data(), data()])}
    )
    why = found.table["why"]
    assert why["copies"] == (
        "Too close to confidential records (datasets 1–3). Follows the confidential data "
        "more closely than the model would, in a, b (datasets 1–3). Rows miss the mean as their "
        "records do, in a, b (datasets 1–3)."
    )
    assert why["mixed"] == (
        "Too close to confidential records (datasets 1, 3–4). Does not look as if it came "
        "from the model of a, b (dataset 1). Follows the confidential data more closely than the "
        "model would, in a, b (datasets 3–4). Rows miss the mean as their records do, in a, b "
        "(datasets 1, 3–4)."
    )


def test_the_curve_has_a_line_a_synthesizer():
    found = compared()
    ax = found.plot.curve()
    lines = [line for line in ax.lines if line.get_marker() not in ("None", None, "")]
    assert [list(line.get_xdata()) for line in lines] == [[1, 3], [1]]
    assert "2 that cannot be judged" in ax.get_title(loc="left")


@pytest.mark.parametrize("risk", ["lift_q95", "lift_max", "probability", "share_above_prior"])
@pytest.mark.parametrize("utility", ["specks", "overlap", "overlap_as_data"])
def test_every_axis(risk, utility):
    ax = compared().plot.map(risk=risk, utility=utility)
    assert "more useful" in ax.get_ylabel()
    compared().plot.curve(risk=risk)


def test_repr_names_what_cannot_be_judged():
    assert repr(compared()).endswith("the risk of said to be honest, a copy cannot be judged>")


def test_draws_made_elsewhere_are_not_checked():
    synthesizer, _ = one_gaussian(n=60)
    release = synthesizer.synthesize(1, seed=SECRET)
    found = sr.compare(
        {"foreign": (synthesizer, release)}, risk={"estimator": "paper", "question": "paper"}
    )
    table = found.table
    assert table.loc["foreign", "judged"] == "not checked"
    plain = sr.attribute_risk(synthesizer, release, diagnostics=False)
    table = sr.compare({"plain": (plain, release)}).table
    assert "diagnostics=False" in table.loc["plain", "why"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s, d: {}, "is empty"),
        (lambda s, d: [(s, d)], "dict by name"),
        (lambda s, d: {"m": s}, "such a pair"),
        (lambda s, d: {"m": (d, d)}, "Synthesizer or an AttributeRisk"),
        (lambda s, d: {"m": (sr.attribute_risk(s, d), [d, d])}, "2 are given"),
    ],
)
def test_bad_input(make, words):
    synthesizer, release = one_gaussian()
    with pytest.raises(sr.OptionError, match=words):
        sr.compare(make(synthesizer, release))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variables": 5}, "variables= is a list of columns; got an int"),
        ({"variables": [5]}, "names of columns"),
        ({"variables": []}, "at least one"),
        ({"risk": {"gueses": 3}}, "'gueses' is none. Did you mean 'guesses'?"),
        ({"risk": {"synthesizer": 3}}, "'synthesizer' is none"),
        ({"risk": {5: 3}}, "an int is none"),
        ({"risk": 3}, "got an int"),
        ({"criteria": 3}, "criteria must be Criteria"),
    ],
)
def test_bad_options(options, words):
    synthesizer, release = one_gaussian()
    with pytest.raises(sr.OptionError, match=re.escape(words)):
        sr.compare({"m": (synthesizer, release)}, **options)


def test_options_that_no_release_could_use():
    synthesizer, release = honest()
    risk = sr.attribute_risk(synthesizer, release)
    with pytest.raises(sr.OptionError, match="all of these come with a risk"):
        sr.compare({"m": (risk, release)}, risk={"guesses": 21})
    both = {"m": (synthesizer, release), "again": (synthesizer, release)}
    with pytest.raises(sr.OptionError, match="draws given one release"):
        sr.compare(both, risk={"stacked": [[]]})


def test_options_that_only_some_releases_use_are_noted():
    synthesizer, release = honest()
    risk = sr.attribute_risk(synthesizer, release)
    releases = {"before": (risk, release), "now": (synthesizer, release)}
    found = sr.compare(releases, risk={"guesses": 21})
    assert any(note.startswith("risk= (guesses) was not used for 'before'") for note in found.notes)
    assert not any("was not used" in note for note in sr.compare(releases).notes)


def test_chosen_variables_are_all_that_is_compared():
    synthesizer, release = honest()
    found = sr.compare({"m": (synthesizer, release)}, variables=["a"]).utilities["m"]
    alone = sr.utility(synthesizer, release, variables=["a"])
    assert list(found.marginals.index) == ["a"]
    pd.testing.assert_frame_equal(found.intervals, alone.intervals)
    two = sr.compare({"m": (synthesizer, release)}, variables=iter(["a", "b"])).utilities["m"]
    assert "b ~ a (gaussian)" in two.intervals.index.get_level_values("analysis")
    named = sr.compare({"m": (synthesizer, release)}, variables="a", regressions=HONEST[1])
    assert list(named.utilities["m"].marginals.index) == ["a", "b"]


def test_the_same_labels_are_not_the_same_records():
    first, second = (part.reset_index(drop=True) for part in (data()[:200], data()[200:]))
    one, other = (sr.fit(HONEST, part, n_draws=50, seed=1) for part in (first, second))
    releases = {
        "a": (one, one.synthesize(seed=SECRET + 1)),
        "b": (other, other.synthesize(seed=SECRET + 1)),
    }
    with pytest.raises(sr.OptionError, match="other values of x, a, b") as raised:
        sr.compare(releases)
    assert not re.search(r"\d\.\d", str(raised.value))
    risks = {name: (sr.attribute_risk(by, of), of) for name, (by, of) in releases.items()}
    with pytest.raises(sr.OptionError, match="other values"):
        sr.compare(risks)


def test_the_same_records_in_other_types_are_the_same(tmp_path):
    table = people(60)
    table.to_csv(tmp_path / "people.csv", index=False)
    plan = sr.Regression("b ~ x + u")
    one = sr.fit(plan, table, n_draws=50, seed=1)
    coded = {"u": table["u"].astype(object), "o": table["o"].astype(float), "extra": 1}
    others = {
        "file": str(tmp_path / "people.csv"),
        "objects": table.assign(**coded, k=table["k"].astype(str).astype("category")),
    }
    release = one.synthesize(seed=SECRET + 2)
    for name, given in others.items():
        other = sr.fit(plan, given, n_draws=50, seed=1)
        found = sr.compare({"frame": (one, release), name: (other, release)})
        assert len(found.table) == 2
    text = table.assign(u=table["u"].cat.rename_categories({"p": "other"}))
    gaps = table.assign(k=table["k"].where(table.index > 0))
    for changed, column in ((text, "u"), (gaps, "k")):
        other = sr.fit(sr.Regression("b ~ x"), changed, n_draws=50, seed=1)
        with pytest.raises(sr.OptionError, match=f"other values of {column}"):
            sr.compare({"frame": (one, release), "changed": (other, release)})


def test_risks_of_different_records_are_refused():
    synthesizer, release = honest()
    some = sr.attribute_risk(synthesizer, release, records=[1, 2, 3])
    with pytest.raises(sr.OptionError, match=r"different records \(3 and 400\)"):
        sr.compare({"some": (some, release), "all": (synthesizer, release)})
    other = sr.attribute_risk(synthesizer, release, records=[1, 2, 4])
    with pytest.raises(sr.OptionError, match=r"different records \(3 and 3\)"):
        sr.compare({"some": (some, release), "others": (other, release)})
    again = sr.compare(
        {"some": (some, release), "again": (synthesizer, release)},
        risk={"records": iter([3, 2, 1])},
    )
    assert "The risks are of 3 of the 400 records." in again.notes
    assert not any("guesses" in note for note in again.notes)


def test_a_risk_of_another_release_is_refused(tmp_path):
    synthesizer = honest()[0]
    release = synthesizer.synthesize(m=3, seed=SECRET + 2)
    risk = sr.attribute_risk(synthesizer, release[:2])
    with pytest.raises(sr.OptionError, match="dataset 2 is another"):
        sr.compare({"m": (risk, [release[1], release[2]])})
    with pytest.raises(sr.OptionError, match="dataset 2 is another"):
        sr.compare({"m": (risk, [release[1], release[1]])})
    release[0].sample(frac=1.0, random_state=1).to_csv(tmp_path / "first.csv", index=False)
    found = sr.compare({"m": (risk, [release[1], str(tmp_path / "first.csv")])})
    assert found.table.loc["m", "n_datasets"] == 2
    unknown = sr.compare({"old": (replace(risk, fingerprints=()), release[:2])})
    assert any("'old' is of the release" in note for note in unknown.notes)


def test_risks_of_different_guesses_are_said_to_be_no_comparison():
    synthesizer, release = honest()
    narrow, wide = (
        sr.attribute_risk(synthesizer, release, guesses=sr.Relative(11, by, by))
        for by in (0.01, 0.5)
    )
    found = sr.compare({"narrow": (narrow, release), "wide": (wide, release)})
    (note,) = [note for note in found.notes if "guesses" in note]
    assert note.startswith("The guesses are not those of 'narrow': 'wide' in a, b.")
    for ax in (found.plot.map(), found.plot.curve()):
        assert "no fair comparison: guesses differ" in ax.get_title(loc="left")
    same = sr.compare({"narrow": (narrow, release), "again": (narrow, release)})
    assert not any("guesses" in note for note in same.notes)
    assert "no fair" not in same.plot.map().get_title(loc="left")


def test_guesses_of_levels_and_counts_are_compared_too():
    table = people(60)
    plan = [sr.Regression("r ~ x", "categorical"), sr.Regression("k ~ r", "poisson")]
    one = sr.fit(plan, table, n_draws=50, seed=1)
    other = sr.fit(plan, table, n_draws=50, seed=1, types={"r": ["top", "low", "mid"]})
    release = one.synthesize(seed=SECRET + 2)
    found = sr.compare({"one": (one, release), "other": (other, release)})
    assert not any("guesses" in note for note in found.notes)
    fewer = sr.attribute_risk(one, release, guesses={"k": sr.Values(range(4))}, records=range(10))
    records = {"records": range(10)}
    found = sr.compare({"one": (one, release), "fewer": (fewer, release)}, risk=records)
    assert any("'fewer' in k." in note for note in found.notes)


@pytest.mark.parametrize("options", [{"tolerance": 0.05}, {"question": "paper"}])
def test_releases_are_asked_what_the_options_say_and_another_question_is_noted(options):
    synthesizer, release = honest()
    asked = sr.attribute_risk(synthesizer, release, **options)
    same = sr.compare({"m": (synthesizer, release), "asked": (asked, release)}, risk=options)
    pd.testing.assert_series_equal(
        same.table.loc["m"], same.table.loc["asked"], check_names=False, rtol=1e-12
    )
    assert same.cautions == ()
    found = sr.compare({"m": (synthesizer, release), "asked": (asked, release)})
    assert found.cautions == ("guesses differ",)


def test_a_range_is_the_same_whatever_model_it_is_looked_at_by():
    synthesizer, release = honest()
    plan = [sr.Regression("a ~ 1"), sr.Regression("b ~ 1")]
    poor = sr.fit(plan, data(), n_draws=50, seed=1, release=["x"])
    found = sr.compare({"x": (synthesizer, release), "none": (poor, poor.synthesize(seed=SECRET))})
    rich, flat = found.risks.values()
    assert rich.records["n_guesses"].iloc[0] != flat.records["n_guesses"].iloc[0]
    assert found.cautions == ()
    low, high = data()["a"].min(), data()["a"].max()
    considered = rich.considered("a")
    np.testing.assert_allclose(considered["low"], low - 0.1 * (high - low), rtol=1e-12)
    np.testing.assert_allclose(considered["high"], high + 0.1 * (high - low), rtol=1e-12)
    assert considered["tolerance"].equals(flat.considered("a")["tolerance"])


def test_risks_of_different_priors_are_noted():
    synthesizer, release = honest()
    believed = sr.attribute_risk(synthesizer, release, intruder_prior="uniform")
    found = sr.compare({"default": (synthesizer, release), "uniform": (believed, release)})
    assert any("what is believed before them" in note for note in found.notes)
    assert found.cautions == ()


def test_different_variables_are_noted():
    found = compared()
    assert not found.cautions
    synthesizer, release = honest()
    alone = sr.fit(HONEST[1], data(), n_draws=50, seed=1, release=["x"])
    both = sr.compare(
        {"two": (synthesizer, release), "one": (alone, alone.synthesize(seed=SECRET))}
    )
    assert any("a joint risk of more variables" in note for note in both.notes)
    assert both.cautions == ("synthesized variables differ",)


def test_other_records_cannot_be_compared():
    (one, release), (other, more) = one_gaussian(n=40), one_gaussian(n=50)
    with pytest.raises(sr.OptionError, match="same confidential records"):
        sr.compare({"a": (one, release), "b": (other, more)})


def test_options_of_plots():
    with pytest.raises(sr.OptionError, match="lift_q95"):
        compared().plot.map(risk="lift")
    with pytest.raises(sr.OptionError, match="specks"):
        compared().plot.map(utility="pmse")
