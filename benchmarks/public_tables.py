"""Public tables through ``synrisk init`` and ``synrisk run``, as a newcomer would.

``make public-tables`` installs statsmodels, linearmodels and palmerpenguins beside synrisk, and
prints tables in Markdown. What the columns are was told by hand before any rule was written
(tests/data/public_columns.toml). Rows are shuffled, at most 2,000 are taken, and numbers rounded
to four decimal digits. The studies stay in build/public-tables.
"""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from palmerpenguins import load_penguins
from sklearn import datasets as of_sklearn
from statsmodels import datasets as of_statsmodels

import synrisk as sr
from synrisk.synthesis.column_kinds import kinds_of_columns

ROOT = Path(__file__).parent.parent
OUT = ROOT / "build" / "public-tables"
SECONDS, MOST_ROWS, DIGITS, SEED, N_DATASETS = 900, 2_000, 4, 0, 3
LEVELS = ("two classes", "classes", "ordered")
WITH_LEVELS = ("iris", "wine", "breast_cancer")
FROM_SKLEARN = (*WITH_LEVELS, "diabetes", "linnerud")
WITH_INDEX = ("statecrime",)
# What is synthesized: somebody must say so.
SENSITIVE = {
    "iris": ["petal length (cm)", "target"],
    "wine": ["proline", "magnesium", "target"],
    "breast_cancer": ["mean texture", "target"],
    "diabetes": ["target", "sex"],
    "linnerud": ["Chins", "Pulse"],
    "penguins": ["body_mass_g", "sex"],
    "anes96": ["popul", "PID", "income"],
    "cancer": ["cancer"],
    "ccard": ["AVGEXP", "INCOME"],
    "engel": ["income", "foodexp"],
    "fair": ["affairs", "rate_marriage", "children"],
    "fertility": ["1990"],
    "heart": ["survival", "censors"],
    "modechoice": ["hinc", "psize"],
    "spector": ["GPA", "GRADE"],
    "star98": ["LOWINC", "AVSALK"],
    "randhie": ["mdvis", "disea", "hlthg"],
    "statecrime": ["murder", "violent"],
    "birthweight": ["bwght", " cigs", "faminc"],
    "mroz": ["hours", "huswage", "kidslt6"],
    "card": ["wage", "IQ"],
    "fringe": ["annearn", "pension", "depends"],
    "meps": ["drugexp", "totchr", "income"],
    "wage": ["wage", "tenure", "married"],
}


def table(name: str) -> pd.DataFrame:
    """Return a table of one of the packages."""
    if name in FROM_SKLEARN:
        loaded = getattr(of_sklearn, f"load_{name}")(as_frame=True)
        if name not in WITH_LEVELS:
            return loaded.frame
        return loaded.frame.assign(target=[str(loaded.target_names[k]) for k in loaded.target])
    if name == "penguins":
        return load_penguins()
    if hasattr(of_statsmodels, name):
        frame = getattr(of_statsmodels, name).load_pandas().data
        return frame.reset_index() if name in WITH_INDEX else frame
    return importlib.import_module(f"linearmodels.datasets.{name}").load()


def judged_columns() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield group, table, column, what it was judged to be, and what it is taken for."""
    with (ROOT / "tests" / "data" / "public_columns.toml").open("rb") as file:
        groups = tomllib.load(file)
    for group, tables in groups.items():
        for name, columns in tables.items():
            frame = table(name)
            kinds = kinds_of_columns(frame)
            for column in frame.columns:
                of_years = "measurement|amount" if frame[column].notna().any() else "constant"
                yield group, name, column, columns.get(column, of_years), kinds[column].kind


def called(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run synrisk in a folder."""
    command = [str(Path(sys.executable).with_name("synrisk")), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)  # noqa: S603 - our own


def n_impossible(own: pd.Series, new: pd.Series, *, levels: bool) -> int:
    """Count released values that the column cannot have.

    Other levels, negative numbers where none is, numbers that are not whole where all are, and
    above 1 where all are between 0 and 1.
    """
    own = own.dropna()
    if levels:
        return int((~new.map(as_level).isin(set(own.map(as_level)))).sum())
    impossible = ~np.isfinite(new)
    if own.min() >= 0:
        impossible |= new < 0
        if own.max() <= 1:
            impossible |= new > 1
    if (own == own.round()).all():
        impossible |= new != new.round()
    return int(impossible.sum())


def as_level(value: object) -> str:
    """Return a level as text, the same for 1 and 1.0."""
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def prepared(name: str) -> pd.DataFrame:
    """Return a table as it is studied."""
    return table(name).sample(frac=1, random_state=SEED).head(MOST_ROWS).round(DIGITS)


def released(name: str) -> dict[str, object]:
    """Fit the suggested plan, synthesize, count what cannot be, and measure what is kept."""
    frame = prepared(name).reset_index(drop=True)
    row: dict[str, object] = {"table": name, "rows": len(frame), "columns": frame.shape[1]}
    plan = sr.suggest_plan(frame, sensitive=SENSITIVE[name])
    row["models"] = "; ".join(f"{one.formula} ({one.distribution.name})" for one in plan)
    row["left out"] = len(plan.drop)
    numbers = [plan.reasons.loc[one.response, "kind"] not in LEVELS for one in plan]
    gaussian = [
        sr.Regression(one.formula, "gaussian") if is_number else one
        for one, is_number in zip(plan, numbers, strict=True)
    ]
    row |= of_plan(plan, list(plan), frame, "")
    try:
        return row | of_plan(plan, gaussian, frame, ", gaussian")
    except sr.SynriskError:  # a later formula takes the logarithm of what is negative
        return row | {"impossible, gaussian": "cannot be synthesized"}


def of_plan(
    plan: sr.SuggestedPlan, regressions: list[sr.Regression], frame: pd.DataFrame, which: str
) -> dict[str, object]:
    """Count the impossible values of some releases, and measure their utility.

    Total variation is the mean over the synthesized variables, less what chance makes of it; the
    ratio of the propensity's mean squared error to what is expected is 1 where both sides cannot be
    told apart.
    """
    synthesizer = sr.fit(
        regressions, frame.drop(columns=list(plan.drop)), types=plan.types, id=plan.id,
        missing=plan.missing, seed=SEED,
    )  # fmt: skip
    datasets = synthesizer.synthesize(N_DATASETS, seed=SEED)
    impossible = sum(
        n_impossible(
            frame[one.response],
            dataset[one.response],
            levels=plan.reasons.loc[one.response, "kind"] in LEVELS,
        )
        for dataset in datasets
        for one in regressions
    )
    n_values = sum(len(dataset) for dataset in datasets) * len(regressions)
    utility = sr.utility(synthesizer, datasets, propensity="main", seed=SEED)
    new = utility.marginals[utility.marginals["synthesized"]]
    return {
        f"impossible{which}": f"{impossible} of {n_values:,}",
        f"variation{which}": f"{(new['total_variation'] - new['by_chance']).mean():.3f}",
        f"pMSE ratio{which}": f"{utility.propensity['ratio'].mean():.1f}",
    }


def told(name: str) -> dict[str, object]:
    """Run a study of a table, and return what was said of it."""
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    prepared(name).to_csv(folder / f"{name}.csv", index=False)
    row: dict[str, object] = {"table": name}
    sensitive = [part for column in SENSITIVE[name] for part in ("--sensitive", column)]
    begun = called(folder, "init", "--data", f"{name}.csv", *sensitive)
    if begun.returncode:
        return row | {"outcome": "refused by init", "why": " ".join(begun.stderr.split())}
    done = called(folder, "run", "study.toml", "--quiet")
    summary = folder / "results" / "summary.json"
    if not summary.exists():
        return row | {"outcome": f"exit {done.returncode}", "why": " ".join(done.stderr.split())}
    found = json.loads(summary.read_text())
    gains = {of: part["gain_max"] for of, part in found["summary"].items()}
    worst = max(gains, key=lambda of: gains[of])
    return row | {
        "outcome": found["verdict"]["outcome"],
        "largest gain": f"{gains[worst]:.3f} ({worst})",
    }


def print_table(rows: pd.DataFrame) -> None:
    """Print a table in Markdown."""
    print("| " + " | ".join(rows.columns) + " |")
    print("|" + "---|" * len(rows.columns))
    for row in rows.itertuples(index=False):
        print("| " + " | ".join(str(value).replace("|", "\\|") for value in row) + " |", flush=True)
    print()


def main() -> None:
    """Print how many columns are taken for what they are, and a row a study."""
    names = ["group", "table", "column", "judged", "taken for"]
    columns = pd.DataFrame(judged_columns(), columns=names)
    columns["right"] = [
        taken in judged.split("|")
        for judged, taken in zip(columns["judged"], columns["taken for"], strict=True)
    ]
    by_table = columns.groupby(["group", "table"], sort=False)["right"].agg(["sum", "size"])
    print_table(by_table.reset_index())
    print_table(
        columns.groupby("group", sort=False)["right"].agg(["sum", "size", "mean"]).reset_index()
    )
    print_table(columns[~columns["right"]].drop(columns="right"))
    chosen = sys.argv[1:] or list(SENSITIVE)
    for tried in (released, told):
        rows = []
        for name in chosen:
            try:
                rows.append(tried(name))
            except (sr.SynriskError, subprocess.TimeoutExpired) as error:
                rows.append({"table": name, "why": " ".join(str(error).split())})
            print(f"{tried.__name__}: {rows[-1]}", file=sys.stderr, flush=True)
        print_table(pd.DataFrame(rows).fillna(""))


if __name__ == "__main__":
    main()
