"""The report: what it says, what it keeps to itself, and how it is written."""

import hashlib
import html
import json
import re
import stat
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.cases import people, two_gaussians

import synrisk as sr
from synrisk.base.notes import Count, for_anyone, for_inside

KINDS = ("inside", "sharing")
SECTIONS = ("verdict", "evaluated", "numbers", "figures", "intruder", "guesses", "diagnostics",
            "models", "provenance", "notes")  # fmt: skip
MARKED = (8642.1357, 7531.2468, 31.41592653)
IDS = ("case-46368", "case-75025")
RARE = "rare<level>"
NAME = "b<i>\"q\" & 'r'"


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self._skipped = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._skipped += tag == "style"

    def handle_endtag(self, tag):
        self._skipped -= tag == "style"

    def handle_data(self, data):
        if not self._skipped:
            self.words.append(data)

    def named(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@cache
def marked():
    """People with values, labels and a level that nobody else has."""
    data = people(240, seed=5)
    data["b"] = np.round(data["b"] * 10.0, 3)
    for row, value in zip((17, 101, 3), MARKED, strict=True):
        data.loc[row, "b"] = value
    data["r"] = data["r"].cat.add_categories([RARE])
    data.loc[[17, 30, 31], "r"] = RARE
    data["id"] = [f"person-{k:04d}x" for k in range(240)]
    data.loc[[17, 101], "id"] = IDS
    data = data.rename(columns={"b": NAME})
    plan = [
        sr.Regression(f"`{NAME}` ~ x"),
        sr.Regression("k ~ z", family="poisson"),
        sr.Regression("r ~ 1", family="categorical"),
    ]
    synthesizer = sr.fit(plan, data, n_draws=100, seed=1, id="id")
    release = synthesizer.synthesize(m=2, seed=2)
    return sr.attribute_risk(synthesizer, release, question="paper"), release, data


def written(risk, folder, **options):
    path = risk.report(folder / "risk.html", **options)
    text = path.read_text(encoding="utf-8")
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return text, facts


def roundings(value):
    """The usual ways to write a number with three digits and more."""
    for digits in range(3, 12):
        for shown in (f"{value:.{digits}g}", f"{value:,.{digits}g}", f"{value:.{digits - 1}e}"):
            yield shown.rstrip(".")
    for places in range(6):
        if len(f"{value:.{places}f}".replace(".", "")) >= 3:
            yield f"{value:.{places}f}"
            yield f"{value:,.{places}f}"


def holds(text, value):
    return any(
        re.search(rf"(?<![\d.]){re.escape(shown)}(?!\d)", text) for shown in set(roundings(value))
    )


def test_the_search_for_values_finds_them():
    assert holds("income of 8,642.14 units", MARKED[0])
    assert holds("8.64e+03", MARKED[0])
    assert holds('"x": 31.416', MARKED[2])
    assert not holds("about 86 and 18642", MARKED[0])


def test_a_shared_report_holds_no_value_of_a_record(tmp_path):
    risk, release, _ = marked()
    text, facts = written(
        risk, tmp_path, synthetic=release, criteria=sr.Criteria(probability=0.2, lift=1.5)
    )
    both = html.unescape(text) + json.dumps(facts, ensure_ascii=False)
    for value in MARKED:
        assert not holds(both, value)
    for label in (*IDS, "person-0", RARE):
        assert label not in both
    for column in ("probability", "lift", "log_odds_range"):
        for value in risk.records[column].nlargest(9):
            assert f"{value:.5g}" not in both
    assert "riskiest" not in facts
    assert facts["summary"][1]["mean_difference"] is None  # two records make up most of it


def test_an_inside_report_names_the_riskiest_records(tmp_path):
    risk, release, _ = marked()
    text, facts = written(risk, tmp_path, synthetic=release, kind="inside")
    assert len(facts["riskiest"]) == 20
    top = risk.records["lift"].idxmax()
    assert facts["riskiest"][0]["record"] == top
    assert facts["riskiest"][0]["lift"] == risk.records["lift"].max()
    assert top in text
    assert "For inside use only" in text
    assert facts["summary"][0]["max"] == risk.records["probability"].max()


def test_small_counts_and_their_complements_are_words(tmp_path):
    risk, _, _ = marked()
    assert risk.n_datasets == 2  # so one record moves twice as many
    rank = np.full(240, 5.0)
    rank[:3] = 1.0
    probability = risk._result.prior * 1.01
    probability[:4] = risk._result.prior[:4] * 0.99
    planted = replace(risk, _result=replace(risk._result, rank=rank, probability=probability))
    text, facts = written(planted, tmp_path)
    assert facts["summary"][0]["n_best"] == "fewer than 20"
    assert facts["summary"][0]["n_above_prior"] == "all but fewer than 20"
    words = Page(text).text
    assert "For fewer than 20 of 240 records the truth is the intruder's one best guess." in words
    assert not re.search(r"(?<![\d.,])[0-9] (?:of \d+ )?(?:people|records|rows)", words)
    inside, facts = written(planted, tmp_path, kind="inside")
    assert facts["summary"][0]["n_best"] == "3"
    assert "For 3 of 240 records" in Page(inside).text


def test_a_report_of_fewer_than_a_hundred_has_no_statistic(tmp_path):
    synthesizer, release = two_gaussians(99)
    _, facts = written(
        sr.attribute_risk(synthesizer, release, question="paper"), tmp_path, synthetic=release
    )
    assert facts["figures"] == []
    assert facts["in_short"] == [
        "Only fewer than 100 records were evaluated: no number about them can be shared."
    ]
    for row in facts["summary"]:
        rules = {key: value for key, value in row.items() if key not in ("of", "n_records")}
        assert set(rules.values()) == {None, "–"}
    assert all(row["d2"] is None for row in facts["release_check"]["distance"])


def shared_of(data, plan, tmp_path, **options):
    """What a shared report says, apart from the seeds that it does not depend on."""
    synthesizer = sr.fit(plan, data, seed=1)
    release = synthesizer.synthesize(seed=2)
    _, facts = written(
        sr.attribute_risk(synthesizer, release, **options, question="paper"), tmp_path
    )
    return facts


def test_one_record_with_other_guesses_does_not_show(tmp_path):
    data = people(400)[["b"]] + 100.0
    other = data.copy()
    other.loc[7, "b"] = 149.0
    guesses = sr.Additive(11, below=5, above=5, within=(0, 150))
    plan = sr.Regression("b ~ 1")
    one, two = (shared_of(d, plan, tmp_path, guesses=guesses) for d in (data, other))
    assert one["guesses"][0]["n_guesses"] == two["guesses"][0]["n_guesses"] == "11"
    assert two["guesses"][0]["lines"][0] == "From 5 below to 5 above each record's own truth."
    assert one["notes"] == two["notes"]
    ranks = [next(f for f in facts["figures"] if "Rank" in f["title"]) for facts in (one, two)]
    assert [rank["line"] for rank in ranks] == [6.0, 6.0]
    assert [facts["summary"][0]["prior"] for facts in (one, two)] == [0.09091, 0.09091]


def test_a_truth_of_zero_does_not_show(tmp_path):
    data = people(400)[["b"]] + 100.0
    other = data.copy()
    other.loc[[7, 9], "b"] = 0.0
    one, two = (shared_of(d, sr.Regression("b ~ 1"), tmp_path) for d in (data, other))
    assert one["notes"] == two["notes"]
    assert one["guesses"][0]["lines"][0] == two["guesses"][0]["lines"][0]


def test_a_mean_of_levels_is_that_of_the_rounded_count(tmp_path):
    data = people(404)
    facts = shared_of(data, sr.Regression("o ~ x", family="bernoulli"), tmp_path)
    off = facts["summary"][1]["mean_difference"] * 404
    assert off == pytest.approx(10 * round(off / 10))


def test_every_bar_of_a_shared_report_stands_for_enough_records(tmp_path):
    risk, release, data = marked()
    _, facts = written(risk, tmp_path, synthetic=release)
    kinds = set()
    for picture in facts["figures"]:
        kinds.add(picture["kind"])
        shares = picture.get("shares") or picture.get("confidential") or []
        # Counts are in tens, so shares are of a sum that may be off a little.
        assert all(share * 240 > 9 for share in shares), picture["title"]
        for curve in picture.get("curves", ()):
            assert all(9 < share * 240 < 231 for share in curve["shares"])
    assert kinds == {"histogram", "levels", "exceedance"}
    levels = next(p for p in facts["figures"] if p["title"].endswith("values: r"))
    assert levels["levels"][-1] == "(2 pooled)"
    values = next(p for p in facts["figures"] if NAME in p["title"] and "synthetic" in p)
    assert values["edges"][-1] < 200 < data[NAME].max()


def test_what_is_shown_is_what_the_summary_says(tmp_path):
    synthesizer, release = two_gaussians(400)
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    _, facts = written(risk, tmp_path, kind="inside")
    summary = risk.summary()
    for row, (_, own) in zip(facts["summary"], summary.iterrows(), strict=True):
        assert row["mean"] == pytest.approx(own["mean"])
        assert row["median"] == pytest.approx(own["median"])
        assert row["q95"] == pytest.approx(own["q95"])
        assert row["prior"] == pytest.approx(own["prior"])
        assert int(row["n_above_prior"]) == round(own["share_above_prior"] * 400)
        assert int(row["n_best"]) == round(own["share_best"] * 400)
    assert facts["summary"][1]["mean_difference"] == pytest.approx(summary["mean_abs_diff"].iloc[1])
    _, shared = written(risk, tmp_path)
    # In steps of ten records in 400, rounded up to 1, 2 or 5.
    mean = summary["mean"].iloc[0]
    assert shared["summary"][0]["mean"] != mean
    assert shared["summary"][0]["mean"] == pytest.approx(mean, rel=0.04)
    assert "max" not in shared["summary"][0]


@pytest.mark.parametrize("kind", ["sharing", "inside"])
def test_the_page_is_whole_and_accessible(kind, tmp_path):
    risk, release, _ = marked()
    text, _ = written(risk, tmp_path, kind=kind, synthetic=release)
    page = Page(text)
    assert page.named("html") == [{"lang": "en"}]
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert [name for name in ids if name in SECTIONS] == list(SECTIONS)
    assert len(page.named("h1")) == 1
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in pairwise(levels))
    pictures = page.named("svg")
    assert len(pictures) == len(page.named("figure")) >= (10 if kind == "inside" else 9)
    assert all(one["role"] == "img" and len(one["aria-label"]) > 40 for one in pictures)
    assert all("scope" in attrs for attrs in page.named("th"))
    assert len(page.named("caption")) == len(page.named("table"))
    assert not page.named("script")
    assert not page.named("link")
    assert not page.named("img")
    assert "http" not in re.sub(r'http-equiv="', "", text)
    assert "None" not in page.text.replace("None.", "")
    assert "nan" not in page.text.split()


def test_names_and_levels_stand_as_text(tmp_path):
    risk, release, _ = marked()
    text, _ = written(
        risk, tmp_path, kind="inside", synthetic=release, title="<script>alert('😀')</script>"
    )
    page = Page(text)
    assert not page.named("i")
    assert not page.named("level")
    assert not page.named("script")
    assert NAME in page.text
    assert RARE in page.text
    assert "<script>alert('😀')</script>" in page.text


def test_without_criteria_the_verdict_is_by_the_default_ones(tmp_path):
    risk, _, _ = marked()
    text, facts = written(risk, tmp_path)
    assert facts["verdict"]["outcome"] == risk.verdict().outcome
    gains = [one["limits"] for one in facts["verdict"]["reasons"] if one["kind"] == "limit"]
    assert gains == [{"gain": 0.1}] * 4  # of all variables, and of each of three
    assert "by more than 10 percentage points" in Page(text).text


def test_the_verdict_comes_first(tmp_path):
    risk, _, _ = marked()
    criteria = sr.Criteria(probability=1.0, name="anything goes")
    text, facts = written(risk, tmp_path, criteria=criteria)
    verdict = risk.verdict(criteria)
    assert facts["verdict"]["outcome"] == verdict.outcome
    page = Page(text)
    assert f"{verdict.outcome.capitalize()}. Policy: anything goes." in page.text
    for sentence in verdict.sentences(sharing=True):
        assert sentence in page.text
    assert page.text.index("The verdict") < page.text.index("What was evaluated")


def test_a_shared_page_does_not_tell_where_a_range_ends(tmp_path):
    """Of counts the number of guesses would: they go from 0 to one beyond the largest."""
    data = people(400)
    plan = [sr.Regression("b ~ x"), sr.Regression("k ~ x", "poisson")]
    told = []
    for most in (int(data["k"].max()), 40):
        changed = data.assign(k=data["k"].where(data.index > 0, most))
        synthesizer = sr.fit(plan, changed, n_draws=100, seed=1)
        risk = sr.attribute_risk(synthesizer, synthesizer.synthesize(seed=2), diagnostics=False)
        facts = written(risk, tmp_path)[1]
        assert facts["guesses"] == [
            {
                "variable": name,
                "n_guesses": None,
                "lines": [
                    "Every value in a range, the same for all records.",
                    f"A value counts as learnt within {near} of the truth.",
                ],
            }
            for name, near in (("b", "a quarter of a standard deviation"), ("k", "10 %"))
        ]
        assert not any("Rank" in figure["title"] for figure in facts["figures"])
        told.append(facts["notes"])
        inside = written(risk, tmp_path, kind="inside")[1]["guesses"][1]["lines"][0]
        assert inside.endswith(f"about 0 to {risk.marginal('k')['value'].max().item():.0f}.")
    assert told[0] == told[1]


def test_few_records_are_not_told_of(tmp_path):
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, records=list(range(6)), question="paper")
    text, facts = written(risk, tmp_path)
    assert facts["figures"] == [] or all("Confidential" in f["title"] for f in facts["figures"])
    assert {row["mean"] for row in facts["summary"]} == {None}
    assert facts["evaluated"]["records"] == "fewer than 10"
    assert "no number about them can be shared" in text
    assert "too few records for figures" in text
    assert "The other records were not evaluated" in Page(text).text


def test_nearly_all_records_do_not_tell_the_rest(tmp_path):
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, records=list(range(37)), question="paper")
    text, facts = written(risk, tmp_path)
    assert facts["evaluated"]["records"] == "nearly all 40"
    assert "37" not in Page(text).text


def test_dropped_records_are_blurred_and_separation_is_not_told_by_level(tmp_path):
    data = people(60, seed=2)
    data.loc[[1, 2, 3], "z"] = np.nan
    data["u"] = pd.Categorical(np.where(np.arange(60) < 12, "only", "other"))
    data["o"] = np.where(np.arange(60) < 12, 1, data["o"])
    plan = [sr.Regression("b ~ z"), sr.Regression("o ~ u", family="bernoulli")]
    synthesizer = sr.fit(plan, data, n_draws=200, seed=1, missing="drop")
    risk = sr.attribute_risk(synthesizer, synthesizer.synthesize(seed=1), question="paper")
    assert any("separated" in note for note in risk.notes)
    _, facts = written(risk, tmp_path)
    notes = " ".join(facts["notes"])
    assert "Fewer than 10 confidential records with missing values" in notes
    assert "u[" not in notes
    assert "(separation)" in notes
    _, facts = written(risk, tmp_path, kind="inside")
    assert "3 confidential records with missing values" in " ".join(facts["notes"])


def planted(risk, *notes):
    return replace(risk, _notes=(*risk._notes, *notes))


@pytest.mark.parametrize(
    ("note", "shared"),
    [
        (for_inside("3 of 5,000 records have none."), None),
        (for_inside(Count(3, "record", of=5000), " of 5,000 records have none."), None),
        (for_inside("3 of 5,000 records have none.", instead="Records have none."), "Records have"),
        (for_anyone(Count(3, "record", of=5000), " have none."), "Fewer than 20 records have none"),
        (for_anyone(Count(3, "record", of=5000), " have none.", unless_few=True), None),
    ],
    ids=["words", "count", "instead", "for anyone", "unless few"],
)
@pytest.mark.parametrize("loaded", [False, True])
def test_three_of_five_thousand_records_stay_inside(note, shared, loaded, tmp_path):
    risk, _, _ = marked()
    risk = planted(risk, note)
    if loaded:
        risk.save(tmp_path / "risk.nc")
        risk = sr.AttributeRisk.load(tmp_path / "risk.nc")
    assert str(note) in risk.notes
    page, facts = written(risk, tmp_path)
    for text in (Page(page).text, json.dumps(facts)):
        assert ("have none" in text) == (shared is not None)
        assert shared is None or shared in text
        assert "3 of 5,000" not in text
        assert "3 records" not in text
    page, facts = written(risk, tmp_path, kind="inside")
    assert str(note) in facts["notes"]
    assert str(note) in Page(page).text


def test_findings_tell_counts_as_a_shared_page_does(tmp_path):
    risk, _, _ = marked()
    assert risk.n_datasets == 2
    errors = risk._result.errors
    n = len(errors.reliable)
    reliable, khat = np.ones(n, dtype=bool), np.full(n, 1.0)
    reliable[[2, 5, 7]] = False
    mcse = errors.mcse.copy()
    mcse[11:48] = np.nan
    errors = replace(errors, reliable=reliable, khat=khat, mcse=mcse)
    shaky = replace(risk, _result=replace(risk._result, errors=errors))
    inside = ["The error of 37 records cannot be estimated.", "3 records are not reliable."]
    assert shaky.diagnostics()["what"].tolist()[:2] == inside
    _, facts = written(shaky, tmp_path, kind="inside")
    assert [one["what"] for one in facts["diagnostics"]][:2] == inside
    _, facts = written(shaky, tmp_path)
    assert [one["what"] for one in facts["diagnostics"]][:2] == [
        "The error of about 40 records cannot be estimated.",
        "Fewer than 20 records are not reliable.",
    ]


def test_an_error_beside_what_the_release_tells_is_shared_without_digits(tmp_path):
    risk, _, _ = marked()
    errors = replace(risk._result.errors, mcse=np.full_like(risk._result.errors.mcse, 0.4321))
    shaky = replace(risk, _result=replace(risk._result, errors=errors))
    said = {kind: written(shaky, tmp_path, kind=kind)[1]["diagnostics"] for kind in KINDS}
    (inside,), (shared,) = (
        [one["why"] for one in said[kind] if "hides what" in one["what"]] for kind in KINDS
    )
    assert "their standard error is 0.43" in inside
    assert "more than half" in shared
    assert not re.search(r"\d", shared)


def test_notes_of_a_file_are_for_those_that_they_were_made_for(tmp_path):
    risk, _, _ = marked()
    risk = planted(risk, for_anyone("Known to anyone."), for_inside("3 of 5,000 records."))
    risk.save(tmp_path / "risk.nc")
    loaded = sr.AttributeRisk.load(tmp_path / "risk.nc")
    assert loaded.notes == risk.notes
    for kind in KINDS:
        rules = written(loaded, tmp_path, kind=kind)[1]["notes"]
        assert rules == written(risk, tmp_path, kind=kind)[1]["notes"]
        assert "Known to anyone." in rules
        assert ("3 of 5,000 records." in rules) == (kind == "inside")


def test_guesses_are_told_in_the_variables_own_units(tmp_path):
    data = people(150, seed=4)
    data["Income"] = np.exp(data["b"])
    data["LogRent"] = data["b"] - 1.0
    plan = [sr.Regression("log(Income) ~ x"), sr.Regression("LogRent ~ z")]
    synthesizer = sr.fit(plan, data[["x", "z", "Income", "LogRent"]], n_draws=50, seed=1)
    release = synthesizer.synthesize(seed=1)
    guesses = {"LogRent": sr.Additive(5, 1.0, 1.0)}
    risk = sr.attribute_risk(synthesizer, release, guesses=guesses, question="paper")
    _, facts = written(risk, tmp_path)
    income, rent = facts["guesses"]
    assert income["lines"][0] == "From 0.9 to 1.1 times each record's own truth."
    assert "On the scale of the model, log(Income)" in income["lines"][2]
    assert rent["lines"][0] == "From 1 below to 1 above each record's own truth."
    assert "7.39 times the lowest" in rent["lines"][2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"intruder_prior": "model"}, "the models and all other records say"),
        ({"intruder_prior": sr.TruthFactor(3)}, "holds the truth 3 times as likely"),
        ({"intruder_prior": np.log(np.full((11, 11), 1 / 121))}, "a table of probabilities"),
        ({"estimator": "paper"}, "The Monte-Carlo error is not known."),
        ({"diagnostics": False}, "This was not checked"),
        ({"n_draws": 1}, "Rank of the truth: all variables together"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["sharing", "inside"])
def test_other_evaluations_have_their_report(options, said, kind, tmp_path):
    synthesizer, release = two_gaussians(400)
    risk = sr.attribute_risk(synthesizer, release, **options, question="paper")
    text, facts = written(risk, tmp_path, kind=kind, synthetic=release)
    assert said in Page(text).text
    titles = [picture["title"] for picture in facts["figures"]]
    assert "Rank of the truth: all variables together" in titles
    assert "Confidential and synthetic values: c" in titles


def test_a_fixed_range_is_told_inside_only(tmp_path):
    synthesizer, release = two_gaussians()
    guesses = {"b": sr.Interval(5, 1.2345, 19.0)}
    risk = sr.attribute_risk(synthesizer, release, guesses=guesses, question="paper")
    assert "1.234" in " ".join(written(risk, tmp_path, kind="inside")[1]["guesses"][0]["lines"])
    assert "1.234" not in " ".join(written(risk, tmp_path)[1]["guesses"][0]["lines"])


def test_truths_that_took_a_fixed_guesss_place_are_told(tmp_path):
    synthesizer, release = two_gaussians(200)
    risk = sr.attribute_risk(
        synthesizer, release, guesses={"b": sr.Interval(5, -10.0, 30.0)}, question="paper"
    )
    assert "for 200 records the truth took the place of the nearest guess" in " ".join(risk.notes)
    risk.save(tmp_path / "risk.nc")
    for one in (risk, sr.AttributeRisk.load(tmp_path / "risk.nc")):
        _, shared = written(one, tmp_path)
        fixed, replaced = shared["guesses"][0]["lines"]
        assert fixed == "The same range for every record, chosen without the truth."
        assert replaced.endswith("of the nearest guess for all but fewer than 10 of 200 records.")
        assert "took the place" not in " ".join(shared["notes"])


def test_a_copied_release_fails_in_words(tmp_path):
    data = people(200)[["x", "b"]]
    synthesizer = sr.fit([sr.Regression("b ~ x")], data, n_draws=200, seed=1)
    copy = pd.concat([data.iloc[:195], synthesizer.synthesize(seed=1)[0].iloc[:5]])
    risk = sr.attribute_risk(synthesizer, copy, question="paper")
    _, facts = written(risk, tmp_path)
    assert facts["release_check"]["failed"]
    found = {row["compared"]: row for row in facts["release_check"]["closeness"]}
    assert found["values"]["found"] == "all but fewer than 10"
    assert "copied" in found["values"]["result"]
    assert not any("195" in str(part) for part in (facts["notes"], facts["diagnostics"]))


def test_hashes_of_the_release_and_inside_of_the_data(tmp_path):
    risk, release, _ = marked()
    files = []
    for number, dataset in enumerate(release):
        files.append(tmp_path / f"{number}.csv")
        dataset.to_csv(files[-1], index=False)
    _, shared = written(risk, tmp_path, synthetic=files)
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    assert [one["sha256"] for one in shared["hashes"]] == digests
    _, inside = written(risk, tmp_path, kind="inside", synthetic=release)
    assert [one["what"] for one in inside["hashes"]] == [
        "confidential data", "synthetic dataset 1", "synthetic dataset 2",
    ]  # fmt: skip
    assert [one["sha256"] for one in inside["hashes"][1:]] == digests
    assert "confidential data" not in {one["what"] for one in shared["hashes"]}


def test_files_are_written_whole_and_inside_ones_are_the_owners(tmp_path, monkeypatch):
    risk, _, _ = marked()
    path = risk.report(tmp_path / "a.html", kind="inside")
    assert path == tmp_path / "a.html"
    for name in ("a.html", "a.json"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    risk.report(tmp_path / "b.html")
    assert stat.S_IMODE((tmp_path / "b.html").stat().st_mode) & 0o200
    before = (tmp_path / "b.html").read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(sr.FileError, match="No space left"):
        risk.report(tmp_path / "b.html", title="another")
    assert (tmp_path / "b.html").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "a.json", "b.html", "b.json"]


def test_a_loaded_risk_has_the_same_report(tmp_path):
    risk, release, _ = marked()
    risk.save(tmp_path / "risk.nc")
    loaded = sr.AttributeRisk.load(tmp_path / "risk.nc")
    assert (
        written(risk, tmp_path, synthetic=release)[1]
        == written(loaded, tmp_path, synthetic=release)[1]
    )


def test_the_size_does_not_grow_with_the_records(tmp_path):
    sizes = []
    for n in (500, 50_000):
        data = people(n)
        synthesizer = sr.fit([sr.Regression("b ~ x"), sr.Regression("c ~ b")], data, n_draws=50)
        release = synthesizer.synthesize(m=2, seed=1)
        risk = sr.attribute_risk(synthesizer, release, diagnostics=False, question="paper")
        path = risk.report(tmp_path / "risk.html", synthetic=release, kind="inside")
        sizes.append(path.stat().st_size)
    assert sizes[1] < 2_000_000
    assert sizes[1] < 1.5 * sizes[0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "inseide"}, sr.OptionError, "Did you mean 'inside'"),
        ({"kind": 3}, sr.OptionError, "sharing, inside; got an int"),
        ({"title": 3}, sr.OptionError, "title must be text"),
        ({"criteria": 0.2}, sr.OptionError, "verdict takes criteria"),
        ({"path": "risk.json"}, sr.FileError, "ends in .html"),
        ({"path": "nowhere/risk.html"}, sr.FileError, "There is no folder"),
        ({"synthetic": []}, sr.SyntheticDataError, "The release is empty"),
    ],
)
def test_wrong_arguments_are_refused(options, error, message, tmp_path):
    risk, _, _ = marked()
    path = tmp_path / options.pop("path", "risk.html")
    with pytest.raises(error, match=message):
        risk.report(path, **options)
    assert not list(tmp_path.iterdir())


def test_what_a_report_needs_is_imported_when_one_is_written():
    code = "import synrisk, sys; print([m for m in ('jinja2', 'matplotlib') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


def test_another_release_is_refused(tmp_path):
    risk, release, _ = marked()
    with pytest.raises(sr.OptionError, match="holds 1 dataset, but the risk was evaluated on 2"):
        risk.report(tmp_path / "risk.html", synthetic=release[0])
