"""The report's section on utility: what it says, and what it keeps to itself."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers.cases import people

import synrisk as sr

RARE = "rare<level>"


@cache
def case(n=240):
    data = people(n, seed=5)
    data["r"] = data["r"].cat.add_categories([RARE])
    data.loc[[17, 30, 31], "r"] = RARE
    data.loc[17, "b"] = 8642.1357
    plan = [sr.Regression("b ~ x"), sr.Regression("r ~ 1", family="categorical")]
    synthesizer = sr.fit(plan, data, n_draws=100, seed=1)
    release = synthesizer.synthesize(m=2, seed=2)
    risk = sr.attribute_risk(synthesizer, release, diagnostics=False)
    return risk, sr.utility(synthesizer, release), data


def written(risk, folder, **options):
    path = risk.report(folder / "risk.html", **options)
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return path.read_text(encoding="utf-8"), facts


def test_for_sharing_there_is_no_estimate_and_no_level(tmp_path):
    risk, utility, data = case()
    page, facts = written(risk, tmp_path, utility=utility)
    told = json.dumps(facts["utility"])
    assert 'id="utility"' in page
    assert "estimates" not in facts["utility"]
    for text in (page, told):
        assert "rare" not in text.replace("rarest", "")
        for value in (8642.1357, data["b"].mean(), data["b"].std()):
            assert f"{value:.4g}" not in text
    numbers = [row["total_variation"] for row in facts["utility"]["marginals"]]
    assert all(one == round(one, 1) for one in numbers)  # of 240 records a tenth is 24
    for row in facts["utility"]["propensity"]:
        assert not {"pmse", "expected", "z"} & set(row)
        assert row["ratio"] == float(f"{row['ratio']:.1g}")
        assert row["specks"] == round(row["specks"], 1)
    assert all(row["overlap"] == round(row["overlap"], 1) for row in facts["utility"]["overlap"])
    assert {row["mean_difference"] for row in facts["utility"]["marginals"]} <= {
        "–", "less than 0.1 sd", "0.1 to 0.2 sd", "more than 0.2 sd",
    }  # fmt: skip


def test_the_numbers_are_those_of_the_utility(tmp_path):
    risk, utility, _ = case()
    _, facts = written(risk, tmp_path, utility=utility)
    found = facts["utility"]
    assert [row["dataset"] for row in found["propensity"]] == [1, 2, 1, 2]
    assert [row["ratio"] for row in found["propensity"]] == pytest.approx(
        utility.propensity["ratio"].tolist(), rel=0.34
    )
    by = {row["analysis"]: row for row in found["overlap"]}
    mean = utility.intervals.loc["b ~ x (gaussian)", "overlap"].mean()
    assert by["b ~ x (gaussian)"]["overlap"] == pytest.approx(mean, abs=0.051)
    assert by["b ~ x (gaussian)"]["rules"] == ["Reiter 2003"]


def test_inside_there_are_all_estimates(tmp_path):
    risk, utility, data = case()
    page, facts = written(risk, tmp_path, utility=utility, kind="inside")
    scores = [row["pmse"] for row in facts["utility"]["propensity"]]
    assert scores == utility.propensity["pmse"].tolist()
    rows = facts["utility"]["estimates"]
    assert len(rows) == len(utility.intervals)
    mean = next(row for row in rows if row["term"] == "b")
    assert mean["estimate_confidential"] == pytest.approx(data["b"].mean())
    assert "Do not share" in page
    assert "rare&lt;level&gt;" in page
    assert "rare<level>" not in page


def test_of_few_records_nothing_is_shared(tmp_path):
    data = people(60)
    synthesizer = sr.fit(sr.Regression("b ~ x"), data, n_draws=100, seed=1)
    release = synthesizer.synthesize(seed=2)
    risk = sr.attribute_risk(synthesizer, release, diagnostics=False)
    utility = sr.utility(synthesizer, release)
    page, facts = written(risk, tmp_path, utility=utility)
    assert not any(facts["utility"][key] for key in ("propensity", "overlap", "marginals", "pairs"))
    assert "too few records for numbers" in page
    _, facts = written(risk, tmp_path, utility=utility, kind="inside")
    assert facts["utility"]["marginals"]


def test_a_copy_is_said_to_be_one(tmp_path):
    _, _, data = case()
    risk = case()[0]
    utility = sr.utility(risk.synthesizer, [data, data])
    page, facts = written(risk, tmp_path, utility=utility)
    assert {row["result"] for row in facts["utility"]["propensity"]} == {
        "the same as the confidential data"
    }
    assert "a plain copy is most useful of all" in page


def test_without_it_there_is_no_section(tmp_path):
    page, facts = written(case()[0], tmp_path)
    assert 'id="utility"' not in page
    assert "utility" not in facts


def test_another_releases_utility_is_refused(tmp_path):
    risk, utility, data = case()
    one = sr.utility(risk.synthesizer, data)
    with pytest.raises(sr.OptionError, match="2"):
        risk.report(tmp_path / "risk.html", utility=one)
    with pytest.raises(sr.OptionError, match=r"synrisk\.utility returns"):
        risk.report(tmp_path / "risk.html", utility=pd.DataFrame())
    assert np.isfinite(utility.summary()["value"]).any()
