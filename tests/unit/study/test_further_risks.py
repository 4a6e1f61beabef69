"""A study that asks for an audit of its release and for identification risk beside its own."""

import json
import shutil

import pandas as pd
import pytest
from helpers.studies import STUDY, as_json, study_in, synrisk, table

import synrisk as sr
from synrisk.study.further_risks import load_further

AUDIT = """
[audit]
keys = ["Spending", "Owner", "Region"]
criteria = { gain = 0.5 }
"""
IDENTIFICATION = """
[identification]
known = ["Owner", "Region"]
radius = { Income = 0.1, Kids = { absolute = 0.5 } }
criteria = { gain = 0.4 }
"""
BY_MATCHES = 'by = "matches"\n'
FILES = {
    "audit.nc", "audit.csv", "audit.html", "audit.json", "audit-inside.html", "audit-inside.json",
    "identification.nc", "identification.csv",
}  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    return synrisk("run", study_in(folder, STUDY + AUDIT + IDENTIFICATION)), folder / "out"


def test_further_risks_are_those_of_the_functions(done):
    ran, out = done
    assert ran.exit_code == 0, ran.output
    assert {path.name for path in out.iterdir()} >= FILES
    people = table().set_index("CaseID")
    release = [pd.read_csv(out / f"synthetic{k}.csv") for k in (1, 2)]
    radius = {"Income": 0.1, "Kids": sr.Radius(absolute=0.5)}
    known, made = ["Owner", "Region"], ["Income", "Kids"]
    risk = sr.identification_risk(people, release, known=known, synthesized=made, radius=radius)
    records = sr.IdentificationRisk.load(out / "identification.nc").records
    pd.testing.assert_frame_equal(records[risk.records.columns], risk.records)
    by_models = {
        "posterior", "posterior_mcse", "posterior_gain", "reliable", "posterior_by_one"
    }  # fmt: skip
    assert set(records) - set(risk.records) == by_models
    audit = sr.Audit.load(out / "audit.nc")
    assert audit.keys == ("Spending", "Owner", "Region")
    assert audit.measures.variables == ("Income", "Kids")
    assert list(audit.records.index) == list(people.index)
    stored = pd.read_csv(out / "audit.csv", index_col="record")
    assert stored["gain"].to_numpy() == pytest.approx(audit.records["gain"].to_numpy())


def test_their_verdicts_are_printed_and_stored(done):
    ran, out = done
    summary = as_json(out / "summary.json")
    assert summary["audit"]["verdict"]["outcome"] == "passed"
    assert summary["audit"]["verdict"]["criteria"]["gain"] == 0.5
    assert summary["identification"]["verdict"]["outcome"] == "passed"
    assert summary["identification"]["verdict"]["criteria"]["gain"] == 0.4
    rows = {"1", "2", "mean", "standard error", "together"}
    assert set(summary["identification"]["summary"]) == rows
    assert "Audit of the release" in ran.output
    assert "Identification risk" in ran.output


def test_chance_matches_fail_a_study_only_where_they_are_asked_for(tmp_path):
    """An honest release: what counts as a match by value is luck."""
    by_matches = STUDY + IDENTIFICATION.replace("criteria", BY_MATCHES + "criteria")
    assert synrisk("run", study_in(tmp_path, by_matches), "-q").exit_code == 1
    assert as_json(tmp_path / "out" / "summary.json")["verdict"]["outcome"] == "passed"


def test_a_report_made_anew_has_them_too(done):
    _, out = done
    before = as_json(out / "summary.json")
    again = synrisk("report", out, "--title", "Another")
    assert again.exit_code == 0, again.output
    after = as_json(out / "summary.json")
    assert after["audit"] == before["audit"]
    assert after["identification"] == before["identification"]
    assert as_json(out / "audit.json")["title"] == "Another: audit of the release"


def test_a_damaged_audit_is_not_reported(tmp_path):
    synrisk("run", study_in(tmp_path, STUDY + AUDIT), "-q")
    path = tmp_path / "out" / "audit.nc"
    path.write_bytes(path.read_bytes()[:-1])
    told = synrisk("report", tmp_path / "out")
    assert told.exit_code == 2
    assert "audit.nc is not the file that synrisk run wrote" in told.stderr
    path.unlink()
    assert "audit.nc is not there" in synrisk("report", tmp_path / "out").stderr


def test_people_held_out_are_an_input(tmp_path):
    others = table(240).iloc[120:].drop(columns=["CaseID", "Weight"])
    others.to_csv(tmp_path / "others.csv", index=False)
    text = STUDY + AUDIT + 'sensitive = ["Income"]\nholdout = "others.csv"\n'
    assert synrisk("run", study_in(tmp_path, text), "-q").exit_code == 0
    audit = sr.Audit.load(tmp_path / "out" / "audit.nc")
    assert len(audit.held_out) == 120
    assert "others.csv" in as_json(tmp_path / "out" / "manifest.json")["inputs"]


@pytest.mark.parametrize("further", ["text", 3, {"audit": "text"}, {"audit": [1]}])
def test_a_damaged_manifest_is_told(done, further):
    _, out = done
    manifest = {**as_json(out / "manifest.json"), "further": further}
    with pytest.raises(sr.FileError, match="says of further risks is damaged"):
        load_further(out, manifest, "records")


def test_a_report_over_a_damaged_manifest_is_refused(tmp_path, done):
    out = shutil.copytree(done[1], tmp_path / "out")
    path = out / "manifest.json"
    path.write_text(json.dumps({**as_json(path), "further": 3}), encoding="utf-8")
    told = synrisk("report", out)
    assert told.exit_code == 2
    assert "says of further risks is damaged" in told.stderr
