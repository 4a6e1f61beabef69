"""Releases side by side: an honest one, one of independent columns, and a copy."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers.cases import one_gaussian

import synrisk as sr

HONEST = [sr.Regression("a ~ x"), sr.Regression("b ~ a")]


@cache
def data():
    rng = np.random.default_rng(4)
    x = rng.normal(size=400)
    a = 10 + x + 0.5 * rng.normal(size=400)
    return pd.DataFrame({"x": x, "a": a, "b": 20 + 2 * a + rng.normal(size=400)})


@cache
def compared():
    """An honest synthesizer with one and three datasets, independent columns, and a copy."""
    synthesizer = sr.fit(HONEST, data(), n_draws=200, seed=1)
    release = synthesizer.synthesize(m=3, seed=2)
    alone = sr.fit([sr.Regression("a ~ 1"), sr.Regression("b ~ 1")], data(), n_draws=200, seed=1)
    independent = alone.synthesize(seed=3)
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
    assert table.loc["a copy", "verdict"] == "cannot be judged"
    assert table.loc["m=1", "verdict"] == "passed"
    assert "copied" in table.loc["a copy", "why"]
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
    assert places["a copy"] == places["said to be honest"]
    assert places["a copy"] > max(places[name] for name in ("m=1", "m=3", "no predictors"))
    heights = dict(zip(found.table.index, (line.get_ydata()[0] for line in points), strict=True))
    assert heights["no predictors"] > heights["m=1"] > heights["a copy"]
    assert ax.yaxis_inverted()
    hollow = {name for name, line in zip(found.table.index, points, strict=True)
              if line.get_markerfacecolor() == "none"}  # fmt: skip
    assert hollow == {"said to be honest", "a copy"}


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
    synthesizer, release = one_gaussian(n=60)
    found = sr.compare({"foreign": (synthesizer, release)}, risk={"estimator": "paper"})
    table = found.table
    assert table.loc["foreign", "judged"] == "not checked"
    plain = sr.attribute_risk(synthesizer, release, diagnostics=False)
    table = sr.compare({"plain": (plain, release)}).table
    assert "diagnostics=False" in table.loc["plain", "why"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s, d: {}, "dict by name"),
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


def test_other_records_cannot_be_compared():
    (one, release), (other, more) = one_gaussian(n=40), one_gaussian(n=50)
    with pytest.raises(sr.OptionError, match="same confidential records"):
        sr.compare({"a": (one, release), "b": (other, more)})


def test_options_of_plots():
    with pytest.raises(sr.OptionError, match="lift_q95"):
        compared().plot.map(risk="lift")
    with pytest.raises(sr.OptionError, match="specks"):
        compared().plot.map(utility="pmse")
