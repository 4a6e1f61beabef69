"""The demo, the applications and the pictures, run as a user would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
from helpers.studies import synrisk

ROOT = Path(__file__).parents[2]


def run(script, folder, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", str(script), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )


def test_the_demo_runs_the_applications_and_says_where_it_wrote(tmp_path):
    done = synrisk("demo", "--folder", tmp_path / "demo")
    assert done.exit_code == 0, done.stderr
    for words in ("Race, given income: passed", "LogIncome", "KidsCount", "Note:", "report.html"):
        assert words in done.stdout
    for name in ("race", "income", "kids"):
        records = pd.read_csv(tmp_path / "demo" / name / "records.csv", index_col=0)
        assert len(records) == 5126
        assert records["probability"].between(0, 1).all()
        assert (tmp_path / "demo" / name / "report.html").is_file()


def test_the_applications_are_written_beside_the_papers_findings(tmp_path):
    done = run(ROOT / "examples" / "applications.py", tmp_path, "2", str(tmp_path / "page"))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page" / "applications.md").read_text(encoding="utf-8")
    kept = (ROOT / "docs" / "applications.md").read_text(encoding="utf-8")
    for heading in re.findall("^#.*$", kept, re.MULTILINE):
        assert heading in page
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert len(tables) == 3 * 2 + 2 + 4 + 5
    assert (tmp_path / "page" / "applications.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_the_pictures_of_the_errors_are_drawn(tmp_path):
    done = run(ROOT / "examples" / "figures.py", tmp_path, str(tmp_path / "drawn"), "--small")
    assert done.returncode == 0, done.stderr
    for name in ("errors.svg", "releases.svg"):
        drawn = (tmp_path / "drawn" / name).read_text(encoding="utf-8")
        assert drawn.startswith("<?xml")
        assert "dc:date" not in drawn  # the same picture from every run
        assert (ROOT / "docs" / "explanation" / name).is_file()
