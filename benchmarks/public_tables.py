"""Public tables through ``synrisk init`` and ``synrisk run``, as a newcomer would.

``make public-tables`` installs statsmodels and palmerpenguins beside synrisk, and prints a table in
Markdown. The studies stay in build/public-tables.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from palmerpenguins import load_penguins
from sklearn import datasets as of_sklearn
from statsmodels import datasets as of_statsmodels

OUT = Path(__file__).parent.parent / "build" / "public-tables"
SECONDS = 600
WITH_LEVELS = ("iris", "wine", "breast_cancer")
FROM_STATSMODELS = (
    "anes96", "cancer", "ccard", "engel", "fair", "fertility", "heart", "modechoice", "spector",
    "star98",
)  # fmt: skip


def tables() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables with their names."""
    for name in (*WITH_LEVELS, "diabetes", "linnerud"):
        loaded = getattr(of_sklearn, f"load_{name}")(as_frame=True)
        frame = loaded.frame
        if name in WITH_LEVELS:
            frame = frame.assign(target=[loaded.target_names[code] for code in loaded.target])
        yield name, frame
    yield "penguins", load_penguins()
    for name in FROM_STATSMODELS:
        yield name, getattr(of_statsmodels, name).load_pandas().data
    yield "statecrime", of_statsmodels.statecrime.load_pandas().data.reset_index()


def called(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run synrisk in a folder."""
    command = [str(Path(sys.executable).with_name("synrisk")), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)  # noqa: S603 - our own


def told(name: str, frame: pd.DataFrame) -> dict[str, object]:
    """Run a study of a table, and return what was said of it."""
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    frame.to_csv(folder / f"{name}.csv", index=False)
    row: dict[str, object] = {"table": name, "rows": len(frame), "columns": frame.shape[1]}
    begun = called(folder, "init", "--data", f"{name}.csv")
    if begun.returncode:
        return row | {"outcome": "refused by init", "why": begun.stderr.strip()}
    with (folder / "study.toml").open("rb") as file:
        study = tomllib.load(file)
    row["models"] = "; ".join(model["formula"] for model in study["model"])
    row["left out"] = len(study["data"].get("drop", []))
    done = called(folder, "run", "study.toml", "--quiet")
    summary = folder / "results" / "summary.json"
    if not summary.exists():
        return row | {"outcome": f"exit {done.returncode}", "why": done.stderr.strip()}
    found = json.loads(summary.read_text())
    reasons = found["verdict"]["reasons"]
    gains = {of: part["gain_max"] for of, part in found["summary"].items()}
    worst = max(gains, key=lambda of: gains[of])
    (further,) = [one for one in reasons if one["kind"] == "further releases"]
    deciding = [one for one in reasons if one["outcome"] == found["verdict"]["outcome"]]
    return row | {
        "outcome": found["verdict"]["outcome"],
        "largest gain": f"{gains[worst]:.3f} ({worst})",
        "further releases that keep the limits": f"{further['n_kept']} of {further['n_releases']}",
        "why": deciding[0]["sentence"] if found["verdict"]["outcome"] != "passed" else "",
    }


def main() -> None:
    """Print a row a table."""
    rows = pd.DataFrame([told(name, frame) for name, frame in tables()]).fillna("")
    print("| " + " | ".join(rows.columns) + " |")
    print("|" + "---|" * len(rows.columns))
    for row in rows.itertuples(index=False):
        print("| " + " | ".join(str(value).replace("|", "\\|") for value in row) + " |")


if __name__ == "__main__":
    main()
