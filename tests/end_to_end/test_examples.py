"""The README's and the demo's ways in, run as a user would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]


def run(script, folder):
    return subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )


def test_the_demo_evaluates_the_sample_and_says_where_it_wrote(tmp_path):
    done = run(ROOT / "examples" / "demo.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "5,126 simulated households" in done.stdout
    for word in ("joint", "LogExpenditure", "LogIncome", "rural", "urban", "Note:"):
        assert word in done.stdout
    records = pd.read_csv(tmp_path / "build" / "demo" / "records.csv", index_col=0)
    assert len(records) == 5126
    assert records["probability"].between(0, 1).all()


def test_the_readmes_code_runs(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
