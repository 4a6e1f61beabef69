"""The report's section on utility: what it says, and what it keeps to itself."""

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers.cases import people

import synrisk as sr
from synrisk.report.usefulness import usefulness

RARE = "rare<level>"
# Every digit that a shared report may hold of a utility: the limits of its words.
LIMITS = re.compile(
    r"(up to \d+|\d+ to \d+|more than \d+) times|0\.2 or more|less than 0\.2|95 %|r ~ 1"
)


@cache
def case(n=240):
    data = people(n, seed=5)
    data["r"] = data["r"].cat.add_categories([RARE])
    data.loc[[17, 30, 31], "r"] = RARE
    data.loc[17, "b"] = 8642.1357
    plan = [sr.Regression("b ~ x"), sr.Regression("r ~ 1", family="categorical")]
    synthesizer = sr.fit(plan, data, n_draws=100, seed=1)
    release = synthesizer.synthesize(m=2, seed=2)
    risk = sr.attribute_risk(synthesizer, release, diagnostics=False, question="paper")
    return risk, sr.utility(synthesizer, release), data


def written(risk, folder, **options):
    path = risk.report(folder / "risk.html", **options)
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return path.read_text(encoding="utf-8"), facts


def test_for_sharing_there_is_no_estimate_and_no_level(tmp_path):
    risk, utility, data = case()
    page, facts = written(risk, tmp_path, utility=utility)
    rules = json.dumps(facts["utility"])
    assert 'id="utility"' in page
    assert "estimates" not in facts["utility"]
    for text in (page, rules):
        assert "rare" not in text.replace("rarest", "")
        for value in (8642.1357, data["b"].mean(), data["b"].std()):
            assert f"{value:.4g}" not in text
    assert not re.search(r"\d", LIMITS.sub("", rules))


def test_no_note_on_the_utility_is_shared(tmp_path):
    risk, utility, _ = case()
    noted = replace(utility, notes=("3 of 5,000 records have none.",))
    for kind, is_told in (("sharing", False), ("inside", True)):
        page, facts = written(risk, tmp_path, kind=kind, utility=noted)
        assert ("3 of 5,000" in page) is is_told
        assert ("3 of 5,000" in json.dumps(facts)) is is_told


def test_each_measure_is_told_once_over_all_datasets(tmp_path):
    data = people(240, seed=5)
    plan = [sr.Regression("b ~ x"), sr.Regression("r ~ 1", family="categorical")]
    synthesizer = sr.fit(plan, data, n_draws=100, seed=1)
    release = synthesizer.synthesize(m=2, seed=2)
    risk = sr.attribute_risk(synthesizer, release, diagnostics=False, question="paper")
    page, facts = written(risk, tmp_path, utility=sr.utility(synthesizer, release))
    found = facts["utility"]
    assert found["propensity"] == [
        {"model": model, "result": "up to 10 times what chance makes"}
        for model in ("main effects", "interactions")
    ]
    assert found["overlap"] == [
        {"analysis": name, "overlap": "0.2 or more"}
        for name in ("means and shares", "b ~ x (gaussian)", "r ~ 1 (categorical)")
    ]
    assert found["marginals"] == [
        {
            "variable": name,
            "synthesized": name != "x",
            "distance": "as it was" if name == "x" else "up to 3 times what chance makes",
        }
        for name in ("b", "x", "r")
    ]
    assert found["pairs"] == []
    assert "No pair of variables is further apart" in page

    poor = [data.assign(b=data["b"] + 6.0, r="low") for _ in range(2)]
    page, facts = written(risk, tmp_path, utility=sr.utility(synthesizer, poor))
    found = facts["utility"]
    assert [row["result"] for row in found["propensity"]] == [
        "more than 100 times what chance makes", "10 to 100 times what chance makes",
    ]  # fmt: skip
    assert found["overlap"][1] == {"analysis": "b ~ x (gaussian)", "overlap": "0.2 or more"}
    assert found["marginals"][0]["distance"] == "more than 10 times what chance makes"
    assert found["marginals"][2]["distance"] == "more than 10 times what chance makes"
    assert [(row["first"], row["second"]) for row in found["pairs"]] == [
        ("b", "x"), ("b", "r"), ("x", "r"),
    ]  # fmt: skip
    assert "10 to 100 times what chance makes" in page


HOUSEHOLD_PLAN = [
    sr.Regression("LogExpenditure ~ 1"),
    sr.Regression("LogIncome ~ LogExpenditure"),
]


@pytest.mark.parametrize(("n", "m"), [(100, 5), (400, 1), (400, 20)])
def test_trying_values_of_one_record_excludes_hardly_any(n, m):
    """Who knows all records but one, the release and the report learns nothing of that one."""
    households = sr.load_households()[["LogExpenditure", "LogIncome"]]
    people = households.sample(n, random_state=5).reset_index(drop=True)
    release = sr.fit(HOUSEHOLD_PLAN, people, n_draws=100, seed=1).synthesize(m, seed=7)

    def rules(income, record):
        tried = people.copy()
        tried.loc[record, "LogIncome"] = income
        return usefulness(sr.utility(tried, release, regressions=HOUSEHOLD_PLAN), sharing=True)

    for record in (3, people["LogIncome"].idxmin()):
        truth = rules(people.loc[record, "LogIncome"], record)
        fits = [rules(income, record) == truth for income in np.linspace(7.0, 14.0, 11)]
        assert np.mean(fits) >= 0.9


def test_a_level_of_one_record_is_not_counted():
    """Whether the one record has a level of its own is not to be seen from a count of estimates."""
    data = people(240, seed=5)
    plan = sr.Regression("r ~ 1", family="categorical")
    synthesizer = sr.fit(plan, data, n_draws=100, seed=1, release=["x"])
    release = synthesizer.synthesize(m=2, seed=2)
    alone = data.astype({"r": str})
    alone.loc[17, "r"] = "zone"
    rules = [
        usefulness(
            sr.utility(one, release, variables=["r", "x"], regressions=plan), sharing=True
        )
        for one in (data, alone)
    ]  # fmt: skip
    assert rules[0] == rules[1]


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
    risk = sr.attribute_risk(synthesizer, release, diagnostics=False, question="paper")
    utility = sr.utility(synthesizer, release)
    page, facts = written(risk, tmp_path, utility=utility)
    assert not any(facts["utility"][key] for key in ("propensity", "overlap", "marginals", "pairs"))
    assert "too few records" in page
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
    assert "a plain copy looks most useful of all" in page


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
