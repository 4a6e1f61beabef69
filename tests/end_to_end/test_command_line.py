"""The command line as users have it: studies that run, and what they leave."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.secret import SECRET
from helpers.studies import SEED_LINE, STUDY, as_json, study_in, synrisk, table

import synrisk as sr
from synrisk.data.frames import read_table
from synrisk.study.file import read_study

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="a shell and pipes are those of POSIX")
MAIN = "from synrisk_command import main; main()"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_study_from_end_to_end(tmp_path):
    done = synrisk("run", study_in(tmp_path))
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    # Guesses of its own are not the question to sign a release by.
    for words in ("A small study", "Passed, with 1 warning.", "Written:", "joint"):
        assert words in done.stdout
    out = tmp_path / "out"
    names = {path.name for path in out.iterdir()}
    assert names == {
        "draws1_Income.csv",
        "draws2_Kids.csv",
        "manifest.json",
        "records.csv",
        "report-inside.html",
        "report-inside.json",
        "report.html",
        "report.json",
        "risk.nc",
        "summary.json",
        "synthetic1.csv",
        "synthetic2.csv",
    }
    manifest = as_json(out / "manifest.json")
    assert manifest["complete"]
    assert manifest["outputs"] == {
        name: digest(out / name) for name in sorted(names - {"manifest.json"})
    }
    assert manifest["inputs"] == {
        name: digest(tmp_path / name) for name in ("study.toml", "people.csv")
    }
    assert manifest["seeds"] == {"fit": SECRET, "synthesis": SECRET}
    assert set(manifest["versions"]) == {"python", "synrisk", "numpy", "numba", "pandas", "scipy"}
    assert manifest["settings"]["risk"]["guesses"]["Income"]["below"] == 0.2
    assert str(tmp_path) not in (out / "manifest.json").read_text(encoding="utf-8")
    assert as_json(out / "summary.json")["verdict"]["outcome"] == "passed"


def test_a_study_of_files_that_r_wrote(tmp_path):
    of_r = Path(__file__).parents[1] / "data" / "r"
    text = """\
    seed = 1
    data.file = "people.rds"
    [[model]]
    formula = "Income ~ Spend + Region"
    draws = "linear_draws_df.rds"
    [[model]]
    formula = "Class ~ Income"
    family = "categorical"
    draws = "brms_classes.rds"
    """
    for name in ("people.rds", "linear_draws_df.rds", "brms_classes.rds"):
        (tmp_path / name).write_bytes((of_r / name).read_bytes())
    (tmp_path / "study.toml").write_text(textwrap.dedent(text), encoding="utf-8")
    done = synrisk("run", tmp_path / "study.toml")
    assert done.exit_code == 1, done.output  # its seed can be guessed
    assert "the number's error is not known" in done.stdout
    synthetic = pd.read_csv(tmp_path / "results" / "synthetic1.csv")
    people = pd.read_csv(of_r / "people.csv")
    assert list(synthetic.columns) == list(people.columns)
    pd.testing.assert_frame_equal(
        synthetic.drop(columns=["Income", "Class"]), people.drop(columns=["Income", "Class"])
    )
    assert set(synthetic["Class"]) == set(people["Class"])


def test_what_is_written_is_what_the_library_computes(tmp_path):
    synrisk("run", study_in(tmp_path))
    plan = [sr.Regression("Income ~ Spending"), sr.Regression("Kids ~ Income", "poisson")]
    synthesizer = sr.fit(plan, table(), id="CaseID", seed=SECRET)
    release = synthesizer.synthesize(m=2, seed=SECRET)
    guesses = {"Income": sr.Relative(5, 0.2, 0.2)}
    risk = sr.attribute_risk(synthesizer, release, guesses=guesses)
    out = tmp_path / "out"
    saved = sr.AttributeRisk.load(out / "risk.nc")
    pd.testing.assert_frame_equal(saved.records, risk.records, rtol=1e-12)
    records = read_table(out / "records.csv", "Records").set_index("CaseID")
    np.testing.assert_array_equal(records["probability"], risk.records["probability"])
    assert list(records.index) == list(table()["CaseID"])
    # A mixture of listed guesses and a range: what counts as the truth is known after loading too.
    assert str(saved.verdict(further=0)) == str(risk.verdict(further=0))
    assert "(Income exactly, Kids within 10 %)" in str(saved.verdict(further=0))
    for number, dataset in enumerate(release, 1):
        written = read_table(out / f"synthetic{number}.csv", "Synthetic")
        assert "CaseID" not in written.columns  # a direct identifier is not released
        np.testing.assert_array_equal(written["Income"], dataset["Income"])
    draws = read_table(out / "draws2_Kids.csv", "Draws")
    np.testing.assert_array_equal(draws["Income"], synthesizer.draws("Kids")["Income"])


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are those of POSIX")
def test_only_the_owner_can_read_the_folder(tmp_path):
    synrisk("run", study_in(tmp_path))
    out = tmp_path / "out"
    assert out.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o600}


def test_the_same_study_gives_the_same_bytes_and_replaces_its_own_files(tmp_path):
    path = study_in(tmp_path)
    out = tmp_path / "out"
    synrisk("run", path)
    first = {file.name: digest(file) for file in out.iterdir()}
    assert synrisk("run", path).exit_code == 0
    assert {file.name: digest(file) for file in out.iterdir()} == first
    (out / "mine.txt").write_text("keep me", encoding="utf-8")
    path.write_text(STUDY.replace("m = 2", "m = 1"), encoding="utf-8")
    assert synrisk("run", path).exit_code == 0
    assert not (out / "synthetic2.csv").exists()
    assert (out / "mine.txt").exists()


def test_files_that_no_run_wrote_are_not_overwritten(tmp_path):
    path = study_in(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    (out / "records.csv").write_text("mine", encoding="utf-8")
    done = synrisk("run", path)
    assert done.exit_code == 2
    assert "holds records.csv, and no manifest.json to tell" in done.stderr
    assert [file.name for file in out.iterdir()] == ["records.csv"]
    (out / "records.csv").rename(out / "manifest.json")
    assert synrisk("run", path).exit_code == 2
    assert (out / "manifest.json").read_text(encoding="utf-8") == "mine"


def test_results_that_were_changed_since_are_not_overwritten(tmp_path):
    path, out = study_in(tmp_path), tmp_path / "out"
    synrisk("run", path, "-q")
    (out / "records.csv").write_text("mine", encoding="utf-8")
    (out / "report.html").write_text("mine too", encoding="utf-8")
    before = {file.name: digest(file) for file in out.iterdir()}
    done = synrisk("run", path)
    assert done.exit_code == 2
    assert "line 3, output: The folder" in done.stderr
    assert "holds records.csv, report.html, changed since synrisk wrote them" in done.stderr
    done = synrisk("report", out)  # which would write the page, not the records
    assert done.exit_code == 2
    assert "holds report.html, changed since" in done.stderr
    assert {file.name: digest(file) for file in out.iterdir()} == before
    (out / "report.html").unlink()
    assert synrisk("report", out).exit_code == 0
    assert (out / "records.csv").read_text(encoding="utf-8") == "mine"
    (out / "summary.json").write_text("mine", encoding="utf-8")
    assert "holds summary.json, changed since" in synrisk("report", out).stderr


def test_the_demo_overwrites_no_study(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise sr.FileError("begun")

    monkeypatch.setattr("synrisk.study.cli.run", stop)
    assert "begun" in synrisk("demo", "--folder", tmp_path).stderr
    names = ["income.toml", "kids.toml", "race.toml"]
    written = {file.name: file.stat().st_ino for file in tmp_path.iterdir()}
    assert sorted(written) == names
    assert "begun" in synrisk("demo", "--folder", tmp_path).stderr  # the same text is no obstacle
    assert {file.name: file.stat().st_ino for file in tmp_path.iterdir()} == written
    (tmp_path / "race.toml").unlink()
    (tmp_path / "income.toml").write_text("mine", encoding="utf-8")
    done = synrisk("demo", "--folder", tmp_path)
    assert done.exit_code == 2
    assert "income.toml is there already with another text" in done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == names[:2]
    (tmp_path / "income.toml").unlink()
    (tmp_path / "income.toml").symlink_to(tmp_path / "nowhere.toml")
    assert "income.toml is there already" in synrisk("demo", "--folder", tmp_path).stderr
    assert not (tmp_path / "nowhere.toml").exists()


def test_init_does_not_write_through_a_link(tmp_path):
    (tmp_path / "study.toml").symlink_to(tmp_path / "nowhere.toml")
    assert "exists already" in synrisk("init", tmp_path).stderr
    assert not (tmp_path / "nowhere.toml").exists()
    assert (tmp_path / "study.toml").is_symlink()


@POSIX
def test_two_runs_at_once_leave_one_whole_run(tmp_path):
    path, out = study_in(tmp_path, data=table(1500)), tmp_path / "out"
    first = subprocess.Popen(
        [sys.executable, "-c", MAIN, "run", str(path)], stdout=subprocess.DEVNULL
    )
    while first.poll() is None and not list(out.glob(".synrisk-*")):
        time.sleep(0.001)
    second = synrisk("run", path)
    assert second.exit_code == 2
    assert "Another run is writing to the folder" in second.stderr
    assert first.wait(timeout=120) in (0, 1, 3)
    manifest = as_json(out / "manifest.json")
    assert manifest["complete"]
    assert manifest["outputs"] == {
        file.name: digest(file) for file in out.iterdir() if file.name != "manifest.json"
    }


@POSIX
def test_where_the_results_are_and_who_can_see_them_is_said(tmp_path):
    (tmp_path / "study").mkdir()
    out = tmp_path / "elsewhere"
    out.mkdir()
    out.chmod(0o777)
    path = study_in(tmp_path / "study", STUDY.replace('"out"', '"../elsewhere"'))
    words = synrisk("run", path).stdout
    assert f"Note: The results are outside the study's folder: {out.resolve()}" in words
    assert "is open to others (mode 0777): they can replace or delete the files in it" in words
    assert out.stat().st_mode & 0o777 == 0o777
    assert {file.stat().st_mode & 0o777 for file in out.iterdir()} == {0o600}
    assert "open to others (mode 0777)" in synrisk("report", out).stdout
    words = synrisk("run", study_in(tmp_path)).stdout
    assert "outside" not in words
    assert "open to others" not in words


def test_a_study_does_not_replace_what_it_reads(tmp_path):
    path = study_in(tmp_path)
    synrisk("run", path)
    text = STUDY.replace("m = 2", 'files = ["out/synthetic1.csv", "out/synthetic2.csv"]')
    path.write_text(text, encoding="utf-8")
    done = synrisk("run", path)
    assert done.exit_code == 2
    assert "line 3, output: The study reads synthetic1.csv, synthetic2.csv from" in done.stderr
    assert (tmp_path / "out" / "synthetic2.csv").exists()


def test_a_run_that_fails_leaves_what_was_there_and_nothing_else(tmp_path):
    path = study_in(tmp_path)
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(
        STUDY.replace("relative = 5", "interval = 5, low = 0, high = 1").replace(
            "below = 0.2, above = 0.2", "within = [0, 1]"
        ),
        encoding="utf-8",
    )
    done = synrisk("run", wrong)
    assert done.exit_code == 2
    assert not (tmp_path / "out").exists()
    synrisk("run", path)
    before = {file.name: digest(file) for file in (tmp_path / "out").iterdir()}
    assert synrisk("run", wrong).exit_code == 2
    assert {file.name: digest(file) for file in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize(
    ("criteria", "code"),
    [
        ("lift = 50", 0),
        ("lift = 0.5", 1),
        ("lift = 50\n[report]", 0),
        ("gain = 0.5", 0),
        ("", 0),  # as if gain = 0.1, also of each variable
        ("gain = 0.001", 1),
    ],
)
def test_exit_codes(tmp_path, criteria, code):
    head = STUDY.split("[criteria]")[0]
    text = head + (f"[criteria]\n{criteria}\n" if criteria else "")
    done = synrisk("run", study_in(tmp_path, text))
    assert done.exit_code == code, done.output


def test_what_cannot_be_judged_has_its_own_exit_code(tmp_path):
    text = STUDY.replace("[risk]\n", '[risk]\nestimator = "paper"\n')
    done = synrisk("run", study_in(tmp_path, text))
    assert done.exit_code == 2  # a prior of the models needs one table a model
    assert 'question = "paper"' in done.stderr
    text = text.replace("[risk]\n", '[risk]\nquestion = "paper"\n')
    done = synrisk("run", study_in(tmp_path, text))
    assert done.exit_code == 3
    assert "Cannot be judged." in done.stdout


def test_quiet_prints_nothing(tmp_path):
    done = synrisk("run", study_in(tmp_path), "--quiet")
    assert (done.exit_code, done.output) == (0, "")


def test_parquet_in_and_out(tmp_path):
    path = study_in(tmp_path)
    synrisk("run", path)
    table().to_parquet(tmp_path / "people.parquet")
    text = STUDY.replace("people.csv", "people.parquet").replace('"out"', '"out2"')
    path.write_text(text.replace("m = 2", 'm = 2\nformat = "parquet"'), encoding="utf-8")
    assert synrisk("run", path).exit_code == 0
    one = pd.read_csv(tmp_path / "out" / "synthetic1.csv")
    two = pd.read_parquet(tmp_path / "out2" / "synthetic1.parquet")
    pd.testing.assert_frame_equal(one, two, check_dtype=False)
    risks = [(tmp_path / name / "records.csv").read_bytes() for name in ("out", "out2")]
    assert risks[0] == risks[1]


def test_foreign_draws_and_given_synthetic_data(tmp_path):
    synrisk("run", study_in(tmp_path))
    draws = pd.read_csv(tmp_path / "out" / "draws1_Income.csv")
    draws.rename(columns={"Spending": "slope"}).to_csv(tmp_path / "d1.csv", index=False)
    pd.read_csv(tmp_path / "out" / "draws2_Kids.csv").to_parquet(tmp_path / "d2.parquet")
    text = (
        STUDY.replace('"gaussian"', '"gaussian"\ndraws = "d1.csv"\nrename = { slope = "Spending" }')
        .replace('"poisson"', '"poisson"\ndraws = "d2.parquet"')
        .replace("m = 2", 'files = ["out/synthetic1.csv", "out/synthetic2.csv"]')
        .replace('output = "out"', 'output = "deep/out3"')
    )
    (tmp_path / "foreign.toml").write_text(text, encoding="utf-8")
    done = synrisk("run", tmp_path / "foreign.toml")
    assert done.exit_code in (0, 3), done.stderr
    assert "The release looks as if it came from these models" in done.stdout
    out = tmp_path / "deep" / "out3"
    assert not list(out.glob("synthetic*")) + list(out.glob("draws*"))
    inputs = as_json(out / "manifest.json")["inputs"]
    assert set(inputs) == {
        "foreign.toml", "people.csv", "d1.csv", "d2.parquet",
        "out/synthetic1.csv", "out/synthetic2.csv",
    }  # fmt: skip
    assert sr.AttributeRisk.load(out / "risk.nc").estimator == {
        "Income": "importance",
        "Kids": "importance",
    }


def test_every_setting_reaches_its_function(tmp_path):
    text = """\
        seed = 1
        [data]
        file = "people.csv"
        missing = "drop"
        drop = ["CaseID", "Owner"]
        types.Region = ["Ramsgate", "Quovadis", "Zyxwville"]
        [[model]]
        formula = "Income ~ Region"
        prior = { Intercept = { mean = 50, sd = 20 }, sigma = { rate = 0.2 } }
        weights = "Weight"
        [[model]]
        formula = "Kids ~ Income"
        family = "pois"
        [fit]
        n_draws = 400
        prior = { mean = 0, sd = 2 }
        engine = "laplace"
        [synthesis]
        m = 1
        seed = 9
        [risk]
        prior = { truth_factor = 2 }
        estimator = "importance"
        n_draws = 300
        [risk.guesses]
        Income = { interval = 5, low = 0, high = 100, within = [-inf, 150] }
        Kids = { values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] }
        [criteria]
        policy = "loose"
        file = "policies.toml"
        [report]
        title = "By the report"
        """
    text = "\n".join(line.strip() for line in text.splitlines())
    (tmp_path / "policies.toml").write_text(
        "[strict]\nlift = 1\n[loose]\nlift = 100\nvariables.Kids = { lift = 90 }\n",
        encoding="utf-8",
    )
    data = table()
    data.loc[3, "Income"] = np.nan
    done = synrisk("run", study_in(tmp_path, text, data))
    assert done.exit_code == 1, done.stderr  # its seed can be guessed
    assert "By the report" in done.stdout
    out = tmp_path / "results"
    risk = sr.AttributeRisk.load(out / "risk.nc")
    assert len(risk.records) == len(data) - 1
    assert risk.n_draws == {"Income": 300, "Kids": 300}
    assert risk.estimator == {"Income": "importance", "Kids": "importance"}
    np.testing.assert_allclose(risk.records["prior"], 2 / (50 - 1 + 2))
    assert list(risk.joint(0)["Kids"].to_numpy()) == list(range(10))
    assert len(pd.read_csv(out / "draws1_Income.csv")) == 400
    assert "Region[T.Quovadis]" in pd.read_csv(out / "draws1_Income.csv").columns
    assert not {"CaseID", "Owner"} & set(pd.read_csv(out / "synthetic1.csv").columns)
    manifest = as_json(out / "manifest.json")
    assert manifest["seeds"] == {"fit": 1, "synthesis": 9}
    assert manifest["criteria"]["name"] == "loose"
    assert "policies.toml" in manifest["inputs"]


def test_without_a_seed_one_is_taken_and_written_down(tmp_path):
    text = STUDY.replace(SEED_LINE, "")
    path = study_in(tmp_path, text)
    synrisk("run", path)
    seed = as_json(tmp_path / "out" / "manifest.json")["seeds"]["fit"]
    first = (tmp_path / "out" / "records.csv").read_bytes()
    assert 2**100 < seed < 2**128  # but for one run in 2**28
    path.write_text(f"seed = {seed}\n{text}", encoding="utf-8")
    synrisk("run", path)
    assert (tmp_path / "out" / "records.csv").read_bytes() == first


def test_the_same_data_come_again_by_the_manifest_alone(tmp_path):
    path, out = study_in(tmp_path, STUDY.replace(SEED_LINE, "")), tmp_path / "out"
    synrisk("run", path)
    names = ("synthetic1.csv", "synthetic2.csv", "records.csv")
    first = {name: (out / name).read_bytes() for name in names}
    synrisk("run", path)
    assert (out / "synthetic1.csv").read_bytes() != first["synthetic1.csv"]
    for manifest in (out / "manifest.json", out):
        first = {name: (out / name).read_bytes() for name in names}
        assert synrisk("run", path, "--seed-from", manifest).exit_code == 0
        assert {name: (out / name).read_bytes() for name in names} == first


def test_the_manifest_that_is_named_is_the_one_that_is_read(tmp_path):
    path, out = study_in(tmp_path, STUDY.replace(SEED_LINE, "")), tmp_path / "out"
    synrisk("run", path, "-q")
    first = (out / "synthetic1.csv").read_bytes()
    (tmp_path / "june.json").write_bytes((out / "manifest.json").read_bytes())
    synrisk("run", path, "-q")
    (tmp_path / "manifest.json").write_bytes((out / "manifest.json").read_bytes())
    assert synrisk("run", path, "--seed-from", tmp_path / "june.json").exit_code == 0
    assert (out / "synthetic1.csv").read_bytes() == first


@pytest.mark.parametrize("content", ["", "[]", '{"outputs": {}}', '{"outputs": {}, "seeds": {}}'])
def test_a_manifest_without_seeds_is_refused(tmp_path, content):
    path = study_in(tmp_path, STUDY.replace(SEED_LINE, ""))
    (tmp_path / "manifest.json").write_text(content, encoding="utf-8")
    done = synrisk("run", path, "--seed-from", tmp_path / "manifest.json")
    assert done.exit_code == 2
    assert "--seed-from" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_study_has_one_seed(tmp_path):
    done = synrisk("run", study_in(tmp_path), "--seed-from", tmp_path)
    assert done.exit_code == 2
    assert "a seed of its own" in done.stderr


def test_the_seed_is_in_the_manifest_alone_which_its_owner_alone_reads(tmp_path):
    text = STUDY.replace(SEED_LINE, "") + '[report]\nkind = "both"\n'
    done = synrisk("run", study_in(tmp_path, text))
    out = tmp_path / "out"
    seed = str(as_json(out / "manifest.json")["seeds"]["fit"])
    spelled = {seed, f"{int(seed):x}", f"{int(seed):,}"}
    holders = {
        path.name
        for path in tmp_path.rglob("*")
        if path.is_file() and any(one.encode() in path.read_bytes() for one in spelled)
    }
    assert holders == {"manifest.json"}
    assert not any(one in done.stdout + done.stderr for one in spelled)
    if os.name == "posix":
        assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o600}
        assert out.stat().st_mode & 0o777 == 0o700


def test_a_chosen_seed_is_never_passed(tmp_path):
    done = synrisk("run", study_in(tmp_path, STUDY.replace(SEED_LINE, "seed = 3\n")))
    assert done.exit_code == 1
    assert "a seed that people choose" in done.stdout
    assert "a seed that people choose" not in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_init_writes_a_study_that_runs_and_never_overwrites(tmp_path):
    assert synrisk("init", tmp_path / "new").exit_code == 0
    study = tmp_path / "new" / "study.toml"
    text = study.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 100
    done = synrisk("init", tmp_path / "new")
    assert done.exit_code == 2
    assert "exists already" in done.stderr
    assert study.read_text(encoding="utf-8") == text
    assert synrisk("run", study, "-q").exit_code == 0


def test_init_suggests_a_plan_for_what_is_sensitive_and_writes_no_value(tmp_path):
    data = (
        table()
        .drop(columns="Weight")
        .assign(
            LogIncome=lambda frame: np.log(frame["Income"]),
            Name=[f"Person{i}" for i in range(120)],
            Wealth=np.exp(np.random.default_rng(0).normal(10, 2, 120)),
        )
    )
    data.loc[5, "Income"] = np.nan
    data.loc[5, "LogIncome"] = np.nan
    data.to_parquet(tmp_path / "people.parquet")
    begin = "init", tmp_path / "new", "--data", tmp_path / "people.parquet"
    asked = synrisk(*begin)
    assert asked.exit_code == 2
    assert "--sensitive COLUMN" in asked.stderr
    assert "Nobody but you knows them" in " ".join(asked.stderr.split())
    assert synrisk(*begin, "-s", "Incom").exit_code == 2
    done = synrisk(*begin, "--sensitive", "Income", "-s", "Wealth")
    assert done.exit_code == 0, done.stderr
    study = tmp_path / "new" / "study.toml"
    text = study.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 100
    for words in (
        'file = "../people.parquet"',
        'id = "CaseID"',
        'missing = "drop"',
        'drop = ["Spending", "LogIncome", "Name"]',
        "# Spending, left out: nearly everybody has a value of their own",
        'family = "lognormal"',
        "# Region, released as it is: not named as sensitive.",
    ):
        assert words in text
    for value in ("Person", "Quovadis", "Ramsgate", "Zyxwville", "810"):
        assert value not in text
    assert synrisk("run", study, "-q").exit_code in (0, 1, 3)


def test_every_commented_choice_of_the_template_is_known(tmp_path):
    """A commented setting, put in place of the default, is read without complaint."""
    synrisk("init", tmp_path)
    study = tmp_path / "study.toml"
    lines = study.read_text(encoding="utf-8").splitlines()
    for name in ("policies.toml", "syn1.csv", "others.csv"):
        (tmp_path / name).write_text("[a]\nlift = 2\n", encoding="utf-8")
    instead_of = {
        "files": ("m = ",),
        "policy": ("gain = ", "variables = "),
        "file": ("gain = ", "variables = "),
    }
    tried = 0
    for number, line in enumerate(lines):
        if not re.match(r"# [\w.]+ = ", line):
            continue
        key = line.split()[1]
        changed = [one for one in lines if not one.startswith(instead_of.get(key, ("never",)))]
        changed[changed.index(line)] = line.removeprefix("# ")
        for heading in [one for one in lines[number::-1] if re.match(r"(# )?\[", one)][:1]:
            changed[changed.index(heading)] = heading.removeprefix("# ")
        if key in ("known", "radius", "by"):  # which need each other
            changed = [re.sub(r"^# (known|radius) = ", r"\1 = ", one) for one in changed]
        study.write_text("\n".join(changed), encoding="utf-8")
        read_study(study)
        tried += 1
    assert tried >= 15


def test_the_report_is_made_anew_from_the_folder(tmp_path):
    study = study_in(tmp_path)
    synrisk("run", study)
    out = tmp_path / "out"
    study.unlink()
    (tmp_path / "people.csv").unlink()
    before = {file.name: digest(file) for file in out.iterdir()}
    done = synrisk("report", out)
    assert done.exit_code == 0, done.stderr
    assert {file.name: digest(file) for file in out.iterdir()} == before
    (tmp_path / "policies.toml").write_text("[strict]\nlift = 0.5\n", encoding="utf-8")
    done = synrisk(
        "report", out, "--kind", "inside", "--criteria", tmp_path / "policies.toml",
        "--title", "Another title",
    )  # fmt: skip
    assert done.exit_code == 1
    assert "Failed (strict)." in done.stdout
    made = {file.name for file in out.iterdir()}
    assert made == set(before)
    for name in ("report.html", "report-inside.html"):  # all reports of a folder agree
        page = (out / name).read_text(encoding="utf-8")
        assert "Another title" in page
    manifest = as_json(out / "manifest.json")
    assert manifest["complete"]
    assert manifest["criteria"]["name"] == "strict"
    assert manifest["outputs"] == {
        name: digest(out / name) for name in sorted(made - {"manifest.json"})
    }
    assert as_json(out / "summary.json")["verdict"]["outcome"] == "failed"
    assert synrisk("report", out, "--policy", "cell-of-5", "-q").exit_code == 1


def test_the_report_for_sharing_names_nobody(tmp_path):
    synrisk(
        "run", study_in(tmp_path, STUDY.replace("[criteria]\nlift = 50", "[criteria]\nlift = 2"))
    )
    for name in ("report.html", "report.json"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert not [label for label in table()["CaseID"].astype(str) if label in text]


WITH_UTILITY = STUDY.replace(
    "[criteria]",
    """[utility]
level = 0.9

[[utility.regression]]
formula = "Income ~ Kids"

[criteria]""",
)


def test_utility_in_a_study(tmp_path):
    done = synrisk("run", study_in(tmp_path, WITH_UTILITY))
    assert done.exit_code == 0, done.stderr
    assert "pmse ratio interactions" in done.stdout
    out = tmp_path / "out"
    stored = as_json(out / "utility.json")
    plan = [sr.Regression("Income ~ Spending"), sr.Regression("Kids ~ Income", "poisson")]
    synthesizer = sr.fit(plan, table(), id="CaseID", seed=SECRET)
    direct = sr.utility(
        synthesizer, synthesizer.synthesize(m=2, seed=SECRET),
        regressions=sr.Regression("Income ~ Kids"), level=0.9,
    )  # fmt: skip
    assert stored["propensity"]["pmse"] == direct.propensity["pmse"].tolist()
    assert stored["intervals"]["overlap"] == direct.intervals["overlap"].tolist()
    manifest = as_json(out / "manifest.json")
    assert manifest["outputs"]["utility.json"] == digest(out / "utility.json")
    assert as_json(out / "summary.json")["utility"]["overlap"] is not None
    assert as_json(out / "report.json")["utility"]["level"] == "90 %"
    # The report made anew has it too, and refuses another file.
    (out / "report.html").unlink()
    assert synrisk("report", out).exit_code == 0
    assert 'id="utility"' in (out / "report.html").read_text(encoding="utf-8")
    (out / "utility.json").write_text("{}", encoding="utf-8")
    assert "is not the file that synrisk run wrote" in synrisk("report", out).stderr


def test_a_study_without_utility_removes_that_of_another(tmp_path):
    synrisk("run", study_in(tmp_path, WITH_UTILITY))
    assert synrisk("run", study_in(tmp_path)).exit_code == 0
    assert not (tmp_path / "out" / "utility.json").exists()


def test_mistakes_about_a_folder(tmp_path):
    synrisk("run", study_in(tmp_path))
    out = tmp_path / "out"
    for arguments, message in (
        ([tmp_path / "none"], "There is no folder"),
        ([tmp_path], "was not written by synrisk run"),
        ([out, "--kind", "public"], "--kind must be one of sharing, inside, both; got 'public'"),
        ([out, "--policy", "cell-of-7"], "There is no policy 'cell-of-7'"),
        ([out, "--policy", "ours"], "Yours: --criteria policies.toml"),
    ):
        done = synrisk("report", *arguments)
        assert done.exit_code == 2
        assert message in done.stderr
    (out / "synthetic1.csv").rename(tmp_path / "moved.csv")
    done = synrisk("report", out)
    assert done.exit_code == 0
    assert "The synthetic data are not where they were" in done.stdout
    (out / "synthetic1.csv").write_text("changed", encoding="utf-8")
    assert "has changed since its risk was evaluated" in synrisk("report", out).stderr
    with (out / "risk.nc").open("ab") as file:
        file.write(b"x")
    assert "is not the file that synrisk run wrote" in synrisk("report", out).stderr


@pytest.mark.parametrize(
    "change",
    [
        {"title": 5},
        {"kinds": 5},
        {"kinds": ["public"]},
        {"kinds": [["sharing"]]},
        {"synthetic": [5]},
        {"synthetic": [{"file": 5, "sha256": "0"}]},
        {"criteria": 5},
        {"criteria": "gain"},
        {"criteria": {"gian": 0.1}},
        {"criteria": {"variables": 5}},
        {"outputs": {}},
        {"outputs": 5},
    ],
)
def test_a_manifest_with_a_wrong_part_is_wrong_input(finished, change):
    manifest = as_json(finished / "manifest.json")
    (finished / "manifest.json").write_text(json.dumps(manifest | change), encoding="utf-8")
    done = synrisk("report", finished)
    (finished / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1


# What terminals and pages act on, apart from the ends of lines and tabs.
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
ODD = "a\x1b[31m\x7f\x9b2J\u202e\u2066 :smile: [/b][red]é"


def test_control_characters_in_names_reach_neither_terminal_nor_page(tmp_path):
    data = table().rename(columns={"Spending": f"S{ODD}", "Kids": f"K{ODD}"})
    data["Region"] = data["Region"] + ODD
    text = (
        STUDY.replace("A small study", f"T{ODD}")
        .replace("Income ~ Spending", f"Income ~ `S{ODD}` + Region")
        .replace("Kids ~ Income", f"`K{ODD}` ~ Income")
    )
    for character in set(ACTING.findall(text)):
        text = text.replace(character, f"\\u{ord(character):04x}")
    done = synrisk("run", study_in(tmp_path, text, data))
    assert done.exit_code == 0, done.stderr
    out = tmp_path / "out"
    pages = {file: file.read_text(encoding="utf-8") for file in out.glob("*.[hj]*")}
    assert len(pages) == 6  # both reports with their JSON, summary and manifest
    for shown in (done.stdout, *pages.values()):
        assert not ACTING.search(shown)
    shown = r"a\x1b[31m\x7f\x9b2J\u202e\u2066 :smile: [/b][red]é"
    assert f"\nT{shown}\n" in done.stdout
    assert r"Ka\x1b[31m" in done.stdout
    assert f"<title>T{shown}</title>" in pages[out / "report.html"]
    assert as_json(out / "manifest.json")["title"] == f"T{ODD}"  # escaped, not changed
    assert as_json(out / "report.json")["title"] == f"T{ODD}"
    # Files of data are as they are: a changed value would be a wrong one.
    synthetic = pd.read_csv(out / "synthetic1.csv")
    assert set(synthetic["Region"]) == set(data["Region"])
    assert f"K{ODD}" in synthetic.columns
    wrong = text.replace("Income ~", "Incame ~", 1)
    done = synrisk("run", study_in(tmp_path, wrong, data))
    assert done.exit_code == 2
    assert not ACTING.search(done.stderr)
    assert done.stderr.count("\n") == 1


def test_names_with_ends_of_lines_begin_no_line(tmp_path):
    text = STUDY.replace("A small study", r"Mine\nPassed.").replace("lift = 50", "lift = 0.5")
    data = table().rename(columns={"Owner": "Owner\nPassed."})
    for exit_code, of in ((1, table()), (2, data)):  # a name of several lines is refused
        done = synrisk("run", study_in(tmp_path, text, of))
        assert done.exit_code == exit_code
        assert not re.search(r"(?m)^Passed", done.stdout + done.stderr)


def test_cells_that_spreadsheets_would_run_are_written_as_they_are(tmp_path):
    data = table()
    data["Region"] = "=cmd|" + data["Region"]
    synrisk("run", study_in(tmp_path, data=data), "-q")
    assert set(pd.read_csv(tmp_path / "out" / "synthetic1.csv")["Region"]) == set(data["Region"])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a study that has run."""
    folder = tmp_path_factory.mktemp("finished")
    assert synrisk("run", study_in(folder), "-q").exit_code == 0
    return folder / "out"


def in_a_shell(command, **options):
    """Run a line of the shell that knows the command line as `synrisk`."""
    known = f'synrisk() {{ "{sys.executable}" -c "{MAIN}" "$@"; }}'
    return subprocess.run(
        [str(shutil.which("bash")), "-c", f"{known}; {command}"],
        capture_output=True, text=True, check=False, timeout=120, **options,
    )  # fmt: skip


@POSIX
@pytest.mark.parametrize(
    ("command", "codes", "words"),
    [
        ("synrisk report out >&-; echo $?", "0", ""),
        ("synrisk report out 2>&- | tail -n 1; echo ${PIPESTATUS[0]}", "0", ""),
        ("synrisk report out <&- >&- 2>&-; echo $?", "0", ""),
        ("synrisk report none 2>&-; echo $?", "2", ""),
        ("synrisk report out | true; echo ${PIPESTATUS[0]}", "0", ""),
        ("synrisk report out 2>&1 | true; echo ${PIPESTATUS[0]}", "0", ""),
        ("synrisk report none 2>&1 | true; echo ${PIPESTATUS[0]}", "2", ""),
        ("synrisk report out >/dev/full; echo $?", "2", "synrisk: What is written is whole, but"),
        ("synrisk report none 2>/dev/full; echo $?", "2", ""),
        ("synrisk --version >/dev/full; echo $?", "2", "synrisk: This cannot be printed: No space"),
        ("synrisk --help >&-; echo $?", "0", ""),
    ],
)
def test_nobody_has_to_read_what_is_printed(finished, command, codes, words):
    done = in_a_shell(command, cwd=finished.parent)
    assert done.stdout.splitlines()[-1] == codes
    assert done.stderr.startswith(words)
    assert done.stderr.count("\n") == bool(words)
    manifest = as_json(finished / "manifest.json")
    assert manifest["outputs"] == {
        file.name: digest(file) for file in finished.iterdir() if file.name != "manifest.json"
    }


@POSIX
def test_letters_that_an_encoding_lacks_are_escaped(finished):
    command = "PYTHONIOENCODING=ascii synrisk report out --title 'Größe 年' | cat"
    done = in_a_shell(command, cwd=finished.parent)
    assert r"Gr\xf6\xdfe \u5e74" in done.stdout
    assert done.stderr == ""
    done = in_a_shell(r"synrisk report out --title $'a\xff'; echo $?", cwd=finished.parent)
    assert done.stdout.splitlines()[-1] == "0"
    assert r"a\udcff" in done.stdout
    assert as_json(finished / "manifest.json")["title"] == "a\udcff"
    assert synrisk("report", finished, "-q").exit_code == 0  # by the title in the manifest


@POSIX
def test_a_name_of_a_file_that_no_study_can_hold_is_said(tmp_path):
    data = Path(os.fsdecode(os.fsencode(tmp_path) + b"/people\xff.csv"))
    table().to_csv(data, index=False)
    done = synrisk("init", tmp_path / "new", "--data", data, "-s", "Income")
    assert done.exit_code == 2
    assert "is not Unicode text. Rename it" in done.stderr
    assert not (tmp_path / "new" / "study.toml").exists()


@POSIX
def test_pipes_are_not_waited_for(tmp_path):
    pipe, path = tmp_path / "pipe.csv", study_in(tmp_path)
    os.mkfifo(pipe)
    for arguments in (
        ["run", pipe],
        ["run", path, "--seed-from", pipe],
        ["report", pipe],
        ["report", tmp_path, "--criteria", pipe],
        ["init", tmp_path / "new", "--data", pipe],
    ):
        done = synrisk(*arguments)
        assert done.exit_code == 2
        assert done.stderr.count("\n") == 1
    for wrong in ("pipe.csv", "/dev/zero", r"a\u0000b"):
        path.write_text(STUDY.replace("people.csv", wrong), encoding="utf-8")
        assert "there is no file" in synrisk("run", path).stderr


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["init", "--help"], ["report", "--help"]]
)
def test_help_teaches_by_example(arguments):
    done = synrisk(*arguments)
    assert done.exit_code == 0
    words = " ".join(done.stdout.split())
    assert "synrisk" in words
    if arguments == ["run", "--help"]:
        assert "1 failed; 3 cannot be judged; 2 wrong input; 130 interrupted" in words


def test_usage_errors_are_wrong_input():
    assert synrisk("run").exit_code == 2
    assert synrisk("fly").exit_code == 2


def test_an_error_of_our_own_shows_no_value_and_is_not_a_verdict(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ValueError("a secret of case 810001")

    monkeypatch.setattr("synrisk.study.cli.run", broken)
    done = synrisk("run", study_in(tmp_path))
    assert done.exit_code == 70
    assert "ValueError in test_command_line.py" in done.stderr
    assert "secret" not in done.output


def test_the_console_script_and_its_exit_code(tmp_path):
    script = Path(sys.executable).parent / "synrisk"
    done = subprocess.run(
        [script, "run", tmp_path / "none.toml"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "there is no such file" in done.stderr
    assert "Traceback" not in done.stderr
