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
from helpers.secret import SECRET

import synrisk as sr
from synrisk.report.shared import gains_in_bands

KINDS = ("inside", "sharing")
SECTIONS = ("verdict", "evaluated", "numbers", "figures", "intruder", "guesses", "diagnostics",
            "models", "provenance", "notes")  # fmt: skip
INSIDE = ("diagnostics", "notes")
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
    for label in (*IDS, "person-0"):
        assert label not in both
    for column in ("probability", "lift", "log_odds_range"):
        for value in risk.records[column].nlargest(9):
            assert f"{value:.5g}" not in both
    assert set(facts) == {
        "title", "kind", "date", "verdict", "gains", "evaluated", "figures", "intruder", "guesses",
        "models", "versions", "hashes",
    }  # fmt: skip


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


@pytest.mark.parametrize("kind", ["sharing", "inside"])
def test_the_page_is_whole_and_accessible(kind, tmp_path):
    risk, release, _ = marked()
    text, _ = written(risk, tmp_path, kind=kind, synthetic=release)
    page = Page(text)
    assert page.named("html") == [{"lang": "en"}]
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    wanted = [name for name in SECTIONS if kind == "inside" or name not in INSIDE]
    assert [name for name in ids if name in SECTIONS] == wanted
    assert len(page.named("h1")) == 1
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in pairwise(levels))
    pictures = page.named("svg")
    assert len(pictures) == len(page.named("figure")) >= (10 if kind == "inside" else 3)
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
    told = next(one for one in facts["verdict"]["reasons"] if one["kind"] == "limits")
    assert "of 4 limits" in told["sentence"]  # of all variables, and of each of three
    assert "by more than 10 percentage points" in Page(text).text


def test_the_verdict_comes_first(tmp_path):
    risk, _, _ = marked()
    criteria = sr.Criteria(probability=1.0, name="anything goes")
    text, facts = written(risk, tmp_path, criteria=criteria)
    verdict = risk.verdict(criteria)
    assert facts["verdict"]["outcome"] == verdict.outcome
    page = Page(text)
    first = f"{verdict.outcome.capitalize()}. {verdict.meaning(sharing=True)}"
    assert f"{first} Policy: anything goes." in page.text
    for sentence in verdict.sentences(sharing=True):
        assert sentence in page.text
    assert page.text.index("The verdict") < page.text.index("What was evaluated")


def test_guesses_are_told_in_the_variables_own_units(tmp_path):
    data = people(150, seed=4)
    data["Income"] = np.exp(data["b"])
    data["LogRent"] = data["b"] - 1.0
    plan = [sr.Regression("log(Income) ~ x"), sr.Regression("LogRent ~ z")]
    synthesizer = sr.fit(plan, data[["x", "z", "Income", "LogRent"]], n_draws=50, seed=1)
    release = synthesizer.synthesize(seed=1)
    guesses = {"LogRent": sr.Additive(5, 1.0, 1.0)}
    risk = sr.attribute_risk(synthesizer, release, guesses=guesses, question="paper")
    _, facts = written(risk, tmp_path, kind="inside")
    income, rent = facts["guesses"]
    assert income["lines"][0] == "From 0.9 to 1.1 times each record's own truth."
    assert "On the scale of the model, log(Income)" in income["lines"][2]
    assert rent["lines"][0] == "From 1 below to 1 above each record's own truth."
    assert "7.39 times the lowest" in rent["lines"][2]


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
    folders = [tmp_path / "one", tmp_path / "two"]  # as synthesize(out=) writes
    for folder, dataset in zip(folders, release, strict=True):
        folder.mkdir()
        dataset.to_parquet(folder / "part-0.parquet", index=False)
    _, of_folders = written(risk, tmp_path, synthetic=folders)
    assert {one["of"] for one in of_folders["hashes"]} == {
        "the digests of the folder's files, a line each, in the order of their numbers"
    }
    lines = [hashlib.sha256((one / "part-0.parquet").read_bytes()).hexdigest() for one in folders]
    assert [one["sha256"] for one in of_folders["hashes"]] == [
        hashlib.sha256(f"{line}\n".encode()).hexdigest() for line in lines
    ]


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


def test_the_page_for_sharing_shows_the_release_and_nothing_of_the_records(tmp_path):
    risk, release, _ = marked()
    _, facts = written(risk, tmp_path, synthetic=release)
    assert [one["title"] for one in facts["figures"]] == [
        f"Synthetic values: {name}" for name in (NAME, "k", "r")
    ]
    values = np.concatenate([one[NAME] for one in release])
    bars = facts["figures"][0]
    shares = np.histogram(values, bars["edges"])[0] / len(values)
    np.testing.assert_allclose(bars["shares"], shares, rtol=1e-3)
    levels = facts["figures"][2]
    drawn = pd.concat([one["r"] for one in release]).astype(str)
    assert levels["levels"] == sorted(set(drawn), key=list(release[0]["r"].cat.categories).index)
    assert sum(levels["shares"]) == pytest.approx(1.0, abs=1e-3)
    _, without = written(risk, tmp_path)
    assert without["figures"] == []


def test_gains_are_shared_in_bands_of_a_release_that_passes():
    risk, _, _ = marked()
    passing = replace(risk.verdict(), reasons=())
    prior = risk._result.prior
    for gains, largest, above in (
        ([0.02, 0.1], "at most 10 percentage points", "none"),
        ([0.02, 0.11], "10 to 50 percentage points", "up to 1 %"),
        ([0.3] * 12, "10 to 50 percentage points", "1 % to 10 %"),
        ([0.6] * 30, "more than 50 percentage points", "more than 10 %"),
    ):
        after = prior.copy()
        after[: len(gains)] += gains
        marginals = tuple(np.zeros_like(one) for one in risk._result.marginals)
        result = replace(risk._result, probability=after, marginals=marginals)
        found = replace(risk, _result=result)
        assert gains_in_bands([found.measures], passing) == {"largest": largest, "above": above}
        assert gains_in_bands([found.measures], found.verdict(sr.Criteria(gain=0.01))) == {}


@pytest.mark.parametrize(
    ("guesses", "types", "said"),
    [
        ("range", {}, "Every value that the variable may have. Where they end is not told here."),
        ("range", {"b": (-50, 90)}, "Every value in a range that was declared: -50 to 90."),
        (sr.Range(within=(-60, 80)), {}, "Every value in a range that was declared: -60 to 80."),
        (sr.Interval(9, -50.25, 90), {}, "The same for every record, chosen without the truth."),
        (sr.Additive(9, 5, 5), {}, "Laid out about each record's own truth."),
    ],
    ids=str,
)
def test_the_ends_of_guesses_are_shared_where_they_were_declared(guesses, types, said, tmp_path):
    data = people(200)[["x", "b"]]
    fitted = sr.fit(sr.Regression("b ~ x"), data, types=types, seed=1)
    risk = sr.attribute_risk(fitted, fitted.synthesize(seed=SECRET), guesses=guesses)
    page, facts = written(risk, tmp_path)
    assert facts["guesses"][0]["lines"][0] == said
    assert said in Page(page).text
    risk.save(tmp_path / "risk.nc")
    assert written(sr.AttributeRisk.load(tmp_path / "risk.nc"), tmp_path)[1] == facts


def test_notes_and_findings_are_for_inside(tmp_path):
    risk, _, _ = marked()
    risk = replace(risk, _notes=(*risk._notes, "3 of 5,000 records have none."))
    errors = risk._result.errors
    reliable = np.ones(len(errors.reliable), dtype=bool)
    reliable[[2, 5, 7]] = False
    errors = replace(errors, reliable=reliable, khat=np.full(len(reliable), 1.0))
    risk = replace(risk, _result=replace(risk._result, errors=errors))
    risk.save(tmp_path / "risk.nc")
    for one in (risk, sr.AttributeRisk.load(tmp_path / "risk.nc")):
        page, facts = written(one, tmp_path, kind="inside")
        assert "3 of 5,000 records have none." in facts["notes"]
        assert "3 records are not reliable." in [found["what"] for found in facts["diagnostics"]]
        assert "3 of 5,000 records have none." in Page(page).text
        page, facts = written(one, tmp_path)
        assert not {"notes", "diagnostics", "release_check"} & set(facts)
        assert "3 " not in Page(page).text.replace("dataset 3 ", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"intruder_prior": "model"}, "the models and all other records say"),
        ({"intruder_prior": sr.TruthFactor(3)}, "holds the truth 3 times as likely"),
        ({"intruder_prior": np.log(np.full((11, 11), 1 / 121))}, "a table of probabilities"),
        ({"estimator": "paper"}, "cannot be said"),
        ({"diagnostics": False}, "was not checked"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["sharing", "inside"])
def test_other_evaluations_have_their_report(options, said, kind, tmp_path):
    synthesizer, release = two_gaussians(400)
    risk = sr.attribute_risk(synthesizer, release, **options, question="paper")
    text, facts = written(risk, tmp_path, kind=kind, synthetic=release)
    assert said in Page(text).text
    if kind == "inside":
        titles = [picture["title"] for picture in facts["figures"]]
        assert "Rank of the truth: all variables together" in titles
        assert "Confidential and synthetic values: c" in titles


def test_truths_that_took_a_fixed_guesss_place_are_told_inside(tmp_path):
    synthesizer, release = two_gaussians(200)
    risk = sr.attribute_risk(
        synthesizer, release, guesses={"b": sr.Interval(5, -10.0, 30.0)}, question="paper"
    )
    assert "for 200 records the truth took the place of the nearest guess" in " ".join(risk.notes)
    fixed, replaced = written(risk, tmp_path, kind="inside")[1]["guesses"][0]["lines"]
    assert fixed == "The same range for every record: from -10 to 30."
    assert replaced.endswith("of the nearest guess for 200 of 200 records.")


def test_a_copied_release_fails_in_words(tmp_path):
    data = people(200)[["x", "b"]]
    synthesizer = sr.fit([sr.Regression("b ~ x")], data, n_draws=200, seed=1)
    copy = pd.concat([data.iloc[:195], synthesizer.synthesize(seed=1)[0].iloc[:5]])
    risk = sr.attribute_risk(synthesizer, copy, question="paper")
    _, facts = written(risk, tmp_path, kind="inside")
    assert facts["release_check"]["failed"]
    assert facts["in_short"] == list(risk.release_check.failures)  # and no number beside it
    found = {row["compared"]: row for row in facts["release_check"]["closeness"]}
    assert found["values"]["found"] == "195"
    assert "copied" in found["values"]["result"]
    page, facts = written(risk, tmp_path)
    assert "The release fails a check of what every number here assumes of it" in Page(page).text
    assert facts["gains"] == {}
    assert "Nothing is told of a release that does not pass" in Page(page).text
    assert "195" not in json.dumps(facts) + Page(page).text
