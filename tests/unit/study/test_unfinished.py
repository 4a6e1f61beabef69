"""Studies of data in parts: what they write, and going on where an earlier run ended."""

import hashlib
import json
import shutil
import stat

import pandas as pd
import pytest
from helpers.parted_studies import (
    STUDY,
    N,
    make_parts_small,
    parted_study_in,
    people,
)
from helpers.studies import as_json, study_in, synrisk

import synrisk as sr
from synrisk.report import svg
from synrisk.study import run as study_run
from synrisk.study import unfinished
from synrisk.study.file import read_study
from synrisk.study.unfinished import NAME

N_OF_DATASETS, N_OF_RISK = 6, 6  # parts, of two datasets and of the risk


def hurry(patched):
    """Small parts, and pictures in a word: these take seconds of every run."""
    make_parts_small(patched.setattr)
    patched.setattr(svg, "draw", lambda picture, _: picture["title"])


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    hurry(monkeypatch)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a study that has run, to be copied."""
    folder = tmp_path_factory.mktemp("finished")
    patched = pytest.MonkeyPatch()
    hurry(patched)
    path = parted_study_in(folder)
    assert synrisk("run", path, "-q").exit_code in (0, 1, 3)
    patched.undo()
    return folder


@pytest.fixture
def study(finished, tmp_path):
    """A copy of it, with the times of its files."""
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    return folder / "study.toml"


def parts(out):
    """When each part was made and what is in it."""
    return {
        str(path.relative_to(out)): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in sorted(out.glob("*/part-*.parquet"))
    }


def resumed(path):
    """The output of a run that goes on."""
    done = synrisk("run", path, "--resume")
    assert done.exit_code in (0, 1, 3), done.output
    return done.output


def test_a_study_of_a_folder_writes_parts_that_their_owner_alone_can_read(study):
    out = study.parent / "out"
    assert {path.name for path in out.iterdir() if path.is_dir()} == {
        "risk", "synthetic1", "synthetic2", "synthetic1-notes", "synthetic2-notes",
    }  # fmt: skip
    for path in (out, *out.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    manifest = as_json(out / "manifest.json")
    assert set(manifest["outputs"]) == {
        path.relative_to(out).as_posix()
        for path in out.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert set(manifest["inputs"]) == {
        "study.toml",
        *(f"people/part-{k}.parquet" for k in range(3)),
    }
    # Nothing is released but the data: notes are elsewhere.
    assert {path.suffix for path in (out / "synthetic1").iterdir()} == {".parquet"}
    assert list(pd.read_parquet(out / "synthetic1").columns) == ["Age", "Income", "Visits"]
    page = (out / "report.html").read_text(encoding="utf-8")
    seed = str(manifest["seeds"]["fit"])
    assert not any(
        seed in path.read_text(encoding="utf-8")
        for path in out.glob("*.*")
        if path.name != "manifest.json"
    )
    assert "Many people" in page


def test_it_gives_what_the_table_in_memory_gives(study):
    out = study.parent / "out"
    seeds = as_json(out / "manifest.json")["seeds"]
    plan = [sr.Regression("Income ~ Age"), sr.Regression("Visits ~ Age", family="poisson")]
    synthesizer = sr.fit(plan, people(), n_draws=20, seed=seeds["fit"])
    release = synthesizer.synthesize(m=2, seed=seeds["synthesis"])
    for number, expected in enumerate(release, 1):
        own = pd.read_parquet(out / f"synthetic{number}")
        pd.testing.assert_frame_equal(own, expected, check_exact=True)
    risk = sr.attribute_risk(
        synthesizer, release, question="paper", guesses=3, on_unreliable="flag"
    )
    own = pd.concat(map(pd.read_parquet, sorted((out / "risk").glob("*.parquet"))))
    own = own.reset_index(drop=True)
    expected = risk.records.reset_index(drop=True)
    pd.testing.assert_frame_equal(own[list(expected.columns)], expected, check_exact=True)
    facts = as_json(out / "report-inside.json")
    path = study.parent / "whole.html"
    title = "Many people"
    risk.report(path, kind="inside", criteria=sr.Criteria(lift=50), synthetic=release, title=title)
    whole = as_json(path.with_suffix(".json"))
    assert {**facts, "hashes": []} == {**whole, "hashes": []}


def test_a_finished_run_is_kept_whole(study):
    out = study.parent / "out"
    before, seeds = parts(out), as_json(out / "manifest.json")["seeds"]
    assert len(before) == N_OF_DATASETS + N_OF_RISK
    said = resumed(study)
    assert "Of the 12 parts of datasets and risk 12 were kept" in said
    assert parts(out) == before
    assert as_json(out / "manifest.json")["seeds"] == seeds
    assert not (out / NAME).exists()
    for seed in seeds.values():
        assert str(seed) not in said


def test_other_criteria_keep_all_parts(study):
    out = study.parent / "out"
    before = parts(out)
    study.write_text(STUDY.replace("lift = 50", "lift = 1.0001"), encoding="utf-8")
    done = synrisk("run", study, "--resume")
    assert done.exit_code == 1
    assert "Other settings than in the earlier run: criteria." in done.output
    assert parts(out) == before


def test_another_question_keeps_the_datasets(study):
    out = study.parent / "out"
    before = parts(out)
    study.write_text(STUDY.replace("guesses = 3", "guesses = 4"), encoding="utf-8")
    said = resumed(study)
    assert "Parts of the risk of an earlier run were made anew: 6 (other settings) of 6." in said
    assert "12 parts of datasets and risk 6 were kept" in said
    after = parts(out)
    for name in before:
        assert (after[name] == before[name]) == name.startswith("synthetic")


def test_changed_data_make_everything_anew(study):
    out = study.parent / "out"
    before = parts(out)
    changed = study.parent / "people" / "part-1.parquet"
    frame = pd.read_parquet(changed)
    frame.loc[0, "Income"] += 0.5
    frame.to_parquet(changed, index=False)
    said = resumed(study)
    assert "Changed, come or gone since the earlier run: people/part-1.parquet." in said
    assert "6 (other models or records) of 6" in said
    assert "parts of datasets and risk 0 were kept" in said
    after = parts(out)
    assert not any(after[name] == before[name] for name in before)


@pytest.mark.parametrize("lost", ["risk/part-000002.parquet", "synthetic2/part-000001.parquet"])
def test_a_part_that_was_deleted_is_made_anew(study, lost):
    out = study.parent / "out"
    before = parts(out)
    (out / lost).unlink()
    said = resumed(study)
    assert "12 parts of datasets and risk 11 were kept" in said
    after = parts(out)
    assert after.keys() == before.keys()
    assert {name for name in before if after[name][0] != before[name][0]} == {lost}
    assert after[lost][1] == before[lost][1]


def test_a_part_that_was_changed_is_named_and_not_overwritten(study):
    out = study.parent / "out"
    part = out / "risk" / "part-000002.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    before = parts(out)
    for how in (("--resume",), ()):
        done = synrisk("run", study, *how)
        assert done.exit_code == 2
        assert "holds risk/part-000002.parquet, changed since synrisk wrote them" in done.output
    assert parts(out) == before


def test_a_stranger_among_the_parts_is_named_and_left(study):
    mine = study.parent / "out" / "synthetic1" / "part-9.parquet"
    mine.write_bytes(b"mine")
    done = synrisk("run", study, "--resume")
    assert done.exit_code == 2
    assert "holds synthetic1/part-9.parquet" in done.output
    assert mine.read_bytes() == b"mine"


def test_a_link_in_the_place_of_a_folder_of_parts_is_not_followed(study, tmp_path):
    out, elsewhere = study.parent / "out", tmp_path / "elsewhere"
    (out / "risk").rename(elsewhere)
    (out / "risk").symlink_to(elsewhere)
    before = {path.name: path.stat().st_mtime_ns for path in elsewhere.iterdir()}
    done = synrisk("run", study)
    assert done.exit_code == 2
    assert "changed since synrisk wrote them" in done.output
    assert {path.name: path.stat().st_mtime_ns for path in elsewhere.iterdir()} == before


def stopped(path, monkeypatch, *, after, resume=False):
    """Run a study that fails once so many parts of its risk are there."""
    from synrisk.data.part_files import PartFolder

    write = PartFolder.write

    def failing(self, number, *args, **options):
        if self.path.name == "risk" and number == after:
            raise KeyboardInterrupt
        write(self, number, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(PartFolder, "write", failing)
        with pytest.raises(KeyboardInterrupt):
            study_run.run(read_study(path), resume=resume)


def test_a_run_that_ended_early_is_gone_on_with(finished, tmp_path, monkeypatch):
    path, out = parted_study_in(tmp_path), tmp_path / "out"
    stopped(path, monkeypatch, after=2)
    assert [one.name for one in out.iterdir()] == [NAME]
    assert stat.S_IMODE((out / NAME).stat().st_mode) == 0o700
    stopped(path, monkeypatch, after=4, resume=True)
    seeds = as_json(out / NAME / "run.json")["seeds"]
    begun = parts(out / NAME)
    assert len(begun) == N_OF_DATASETS + 4
    done = study_run.run(read_study(path), resume=True)
    assert done.warnings[-1] == (
        "Of the 12 parts of datasets and risk 10 were kept as an earlier run left them."
    )
    after = parts(out)
    assert {name: after[name] for name in begun} == begun
    assert not (out / NAME).exists()
    assert as_json(out / "manifest.json")["seeds"] == seeds
    assert done.risk.folder == out / "risk"
    assert len(done.risk.records) == N
    # The same seed in a run from its beginning to its end gives the same bits.
    again = tmp_path / "again"
    again.mkdir()
    whole = parted_study_in(again)
    study_run.run(read_study(whole), seeds=seeds)
    assert {n: d for n, (_, d) in parts(again / "out").items()} == {
        n: d for n, (_, d) in after.items()
    }


def test_a_run_that_begins_anew_says_what_it_removes(study, monkeypatch):
    out = study.parent / "out"
    stopped(study, monkeypatch, after=1)
    assert (out / NAME).is_dir()
    earlier = parts(out)
    done = synrisk("run", study)
    assert "An earlier run had not ended. This one began anew" in done.output
    assert not (out / NAME).exists()
    after = parts(out)
    assert not any(after[name] == earlier[name] for name in earlier)  # another secret seed


def test_what_no_run_wrote_stops_the_next(study, monkeypatch):
    stopped(study, monkeypatch, after=1)
    place = study.parent / "out" / NAME
    (place / "risk" / "mine.txt").write_text("mine", encoding="utf-8")
    for how in (("--resume",), ()):
        done = synrisk("run", study, *how)
        assert done.exit_code == 2
        assert "holds risk/mine.txt, which no run wrote" in done.output
    assert (place / "risk" / "mine.txt").read_text(encoding="utf-8") == "mine"


def test_disks_without_links_are_copied_to(study, monkeypatch):
    out = study.parent / "out"

    def no_link(*_):
        raise OSError("no links here")

    monkeypatch.setattr(unfinished.os, "link", no_link)
    before = parts(out)
    assert "12 were kept" in resumed(study)
    assert parts(out) == before


# -- plausible mistakes ------------------------------------------------------------------------
def refused(path, *words, how=()):
    done = synrisk("run", path, *how)
    assert done.exit_code == 2, done.output
    assert done.output.count("\n") == 1
    for word in words:
        assert word in done.output, done.output
    return done.output


def test_there_must_be_an_earlier_run(tmp_path):
    path = parted_study_in(tmp_path)
    refused(path, "--resume: there is no earlier run in", "out", how=("--resume",))
    assert not (tmp_path / "out").exists()


def test_a_study_in_memory_is_not_resumed(tmp_path):
    path = study_in(tmp_path)
    refused(path, "a folder of Parquet", "--seed-from", how=("--resume",))


def test_two_sources_of_a_seed_are_refused(study):
    manifest = study.parent / "out" / "manifest.json"
    refused(study, "leave --seed-from out", how=("--resume", "--seed-from", manifest))


def test_reports_alone_are_made_by_resuming(study):
    done = synrisk("report", study.parent / "out")
    assert done.exit_code == 2
    assert "--resume" in done.output


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: None, ["the folder people is empty"]),
        (
            lambda folder: people(50).to_csv(folder / "one.csv", index=False),
            ["holds files of .csv", "as Parquet files"],
        ),
        (
            lambda folder: (folder / "part-0.parquet").write_bytes(b"PAR1 not whole"),
            ["people/part-0.parquet", "cannot be read as Parquet"],
        ),
    ],
)
def test_folders_that_hold_no_table_are_refused(tmp_path, make, words):
    path = parted_study_in(tmp_path)
    for file in (tmp_path / "people").iterdir():
        file.unlink()
    make(tmp_path / "people")
    refused(path, "study.toml, line 5, data.file", *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: one.drop(columns="Visits"), ["part-1.parquet", "has no column 'Visits'"]),
        (
            lambda one: one.assign(Visits=one["Visits"].astype(str)),
            ["part-1.parquet", "'Visits' as text", "first part as numbers"],
        ),
    ],
)
def test_files_that_are_not_alike_are_named(tmp_path, change, words):
    path = parted_study_in(tmp_path)
    file = tmp_path / "people" / "part-1.parquet"
    change(pd.read_parquet(file)).to_parquet(file, index=False)
    refused(path, *words)


def test_a_file_that_is_not_whole_is_named(tmp_path):
    path = parted_study_in(tmp_path)
    file = tmp_path / "people" / "part-2.parquet"
    file.write_bytes(file.read_bytes()[:-30])
    refused(path, "people/part-2.parquet", "cannot be read as Parquet")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('file = "people"\nid = "Age"', "data.id"),
        ('file = "people"\ndrop = ["Age"]', "data.drop"),
        ('file = "people"\n[utility]', "utility"),
        ('file = "people"\n[audit]', "audit"),
        ('file = "people"\n[identification]\nradius = 0.1', "identification"),
    ],
)
def test_settings_that_need_memory_are_refused(tmp_path, line, word):
    text = STUDY.replace('file = "people"', line)
    path = parted_study_in(tmp_path, text)
    refused(path, word)


def test_a_misspelt_column_is_named_with_its_model(tmp_path):
    path = parted_study_in(tmp_path, STUDY.replace("Visits ~ Age", "Visits ~ Agee"))
    refused(path, "model", "formula", "there is no column 'Agee'", "Did you mean 'Age'?")


def test_two_runs_do_not_share_a_folder(study, monkeypatch):
    from synrisk.data.part_files import PartFolder

    said = []
    begin = PartFolder.begin

    def beginning(self, *args):
        if not said:
            said.append(synrisk("run", study, "--resume").output)
        return begin(self, *args)

    monkeypatch.setattr(PartFolder, "begin", beginning)
    resumed(study)
    assert "Another run is writing to the folder" in said[0]


def test_the_seed_stands_where_its_owner_alone_reads_it(finished, tmp_path, monkeypatch):
    path, out = parted_study_in(tmp_path), tmp_path / "out"
    stopped(path, monkeypatch, after=1)
    begun = out / NAME / "run.json"
    assert stat.S_IMODE(begun.stat().st_mode) == 0o600
    seed = str(json.loads(begun.read_text())["seeds"]["fit"])
    others = [file for file in (out / NAME).rglob("*") if file.is_file() and file != begun]
    assert others
    assert not any(seed.encode() in file.read_bytes() for file in others)
