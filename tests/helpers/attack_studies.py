"""Study files, criteria and the folders that runs leave: valid ones, changed in every field.

Studies are valid ones of many kinds, most with something changed; they are run to their end on a
few records. Manifests are changed in one field after the other.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synrisk as sr
from helpers.attack_cases import Attack, Case, few_pictures, fitted, people
from helpers.mutations import (
    HOSTILE_NAMES,
    HOSTILE_NUMBERS,
    HOSTILE_VALUES,
    any_of,
    damaged,
    damaged_settings,
    damaged_tree,
    places,
)
from helpers.secret import SECRET
from helpers.studies import synrisk

STUDY = f"""\
title = "A small study"
rows = "people"
seed = {SECRET}
output = "out"

[data]
file = "people.csv"
id = "CaseID"
missing = "error"
drop = ["Owner"]
types.Spending = "numeric"

[[model]]
formula = "Income ~ Spending"
family = "gaussian"
prior = "default"

[[model]]
formula = "Kids ~ Income"
family = "poisson"

[fit]
n_draws = 30
engine = "auto"

[synthesis]
m = 1
format = "csv"

[risk]
question = "paper"
estimator = "auto"
n_draws = 20
guesses.Income = {{ relative = 5, below = 0.2, above = 0.2 }}
guesses.Kids = "all levels"
prior = "uniform"

[utility]
propensity = ["main"]
level = 0.95

[criteria]
gain = 0.5
lift = 50

[report]
kind = "both"
"""
POLICIES = """\
[ours]
source = "A rule of ours"
gain = 0.2
probability = 0.9
combine = "and"

[theirs]
lift = 5
share = 0.1
variables = { lift = 5 }

[third]
gain = 0.1
variables.Income = { gain = 0.05 }
unchecked_release = "accept"
"""

# What each part of a study may be, all of it valid; several need another sort of table.
_PLANS = (
    (("Income ~ Spending", "gaussian"), ("Kids ~ Income", "poisson")),
    (("Income ~ Spending", "gaussian"),),
    (("log(Income) ~ log(Spending)", "gaussian"), ("Region ~ Income", "categorical")),
    (("Kids ~ Spending", "poisson"), ("Owner ~ Kids + Spending", "bernoulli")),
    (("Region ~ Spending", "categorical"), ("Income ~ C(Region) + Spending", "gaussian")),
    (("Owner ~ 1", "bernoulli"),),
    (
        ("Income ~ poly(Spending, 2)", "gaussian"),
        ("Kids ~ 1", "poisson"),
        ("Owner ~ Kids", "bernoulli"),
    ),
    (("sqrt(Income) ~ bs(Spending, df=4) - 1", "gaussian"),),
    (("Kids ~ Region", "categorical"),),
    (("Income ~ scale(Spending) * Region", "rounded_gaussian"),),
)
_GUESSES = {
    "Income": (
        "5",
        '"range"',
        "{ relative = 5, below = 0.2, above = 0.2 }",
        "{ range = [0, 90000] }",
        "{ interval = 4, low = 20000, high = 90000 }",
        "{ additive = 3, below = 500, above = 500 }",
        "{ values = [40000, 50000.5, 60000] }",
        "{ range = [0, 90000], n = 12, margin = 0.2 }",
    ),
    "Kids": ('"all levels"', '"range"', "3", "{ values = [0, 1, 2, 3, 4] }", "{ range = [0, 8] }"),
    "Owner": ('"all levels"', "2"),
    "Region": ('"all levels"', '"range"', '{ values = ["Quovadis", "Ramsgate", "Zyxwville"] }'),
}
_RISK = {
    "question": ('"paper"', '"paper"', '"release"'),
    "estimator": ('"auto"', '"importance"', '"paper"', '"exact"', '"stacked"'),
    "n_draws": ("20", "30", "1"),
    "prior": (
        '"uniform"',
        '"model"',
        '"mostly-model"',
        "{ truth_factor = 5 }",
        "{ mostly_model = 0.5 }",
    ),
    "tolerance": ("0.1", "0.0", "0.5"),
    "on_unreliable": ('"auto"', '"flag"', '"fit"', '"raise"'),
    "guesses": ("4", '"range"', "11"),
}
_CRITERIA = (
    "gain = 0.5\nlift = 50",
    "gain = 0.01",
    "probability = 0.9",
    "lift = 5\nshare = 0.1",
    'gain = 0.2\nlift = 3\ncombine = "and"',
    'policy = "cell-of-11"',
    "log_odds_range = 3",
    'gain = 0.2\nunchecked_release = "accept"',
)
_UTILITY = (
    'propensity = ["main"]\nlevel = 0.95',
    'propensity = ["main", "interactions"]',
    'variables = ["Spending"]',
    '[[utility.regression]]\nformula = "Kids ~ Spending"\nfamily = "poisson"',
    'parameters = "posterior"',
)


_FURTHER = (
    '[audit]\nsensitive = ["Income"]',
    '[audit]\nkeys = ["Spending", "Region"]\ncriteria = { gain = 0.5 }',
    '[audit]\nholdout = "people.csv"',
    '[identification]\nknown = ["Spending"]\nradius = 0.1',
    '[identification]\nradius.Income = { absolute = 2000 }\nby = "matches"',
    '[identification]\nsynthesized = ["Income"]\nradius = { Income = 0.2 }\nby = "models"',
    "[identification]\nradius = 0.2\ncriteria = { probability = 0.5 }",
    '[audit]\nsensitive = ["Kids"]\n[identification]\nknown = ["Region"]\nradius = 0.0',
)
_ENGINES = (
    '[engine]\nexecutor = "serial"',
    "[engine]\nexecutor = 2",
    '[engine]\nexecutor = "tcp://127.0.0.1:1"',
)


def _valid(rng: np.random.Generator) -> str:  # noqa: C901
    """Return a valid study, or nearly: not every estimator suits every model."""
    plan = any_of(_PLANS, rng)
    title = any_of(HOSTILE_NAMES, rng) if rng.random() < 0.2 else "A small study"
    lines = [f"title = {in_toml(title)}", f"seed = {SECRET + int(rng.integers(10**6))}"]
    lines += ['rows = "people"'] if rng.random() < 0.5 else []
    lines += ['output = "out"', "", "[data]", 'file = "people.csv"', 'id = "CaseID"']
    if rng.random() < 0.3:
        lines.append(any_of(('missing = "error"', 'missing = "drop"'), rng))
    if rng.random() < 0.3:
        lines.append('types.Region = ["Quovadis", "Ramsgate", "Zyxwville"]')
    for formula, family in plan:
        lines += ["", "[[model]]", f"formula = {in_toml(formula)}", f'family = "{family}"']
        if rng.random() < 0.15:
            lines.append(
                any_of(
                    ('prior = "paper"', "prior = { mean = 0, sd = 2 }", 'prior = "default"'), rng
                )
            )
        if family == "rounded_gaussian":
            lines.append(f"step = {any_of(('0.0001', '1', '0.5'), rng)}")
    lines += ["", "[fit]", f"n_draws = {any_of((20, 30, 1, 64), rng)}"]
    if rng.random() < 0.3:
        lines.append(any_of(('engine = "auto"', 'engine = "exact"', 'engine = "laplace"'), rng))
    lines += ["", "[synthesis]", f"m = {any_of((1, 1, 2, 5), rng)}"]
    lines += ['format = "parquet"'] if rng.random() < 0.3 else []
    for one, share in ((_FURTHER, 0.25), (_ENGINES, 0.1)):
        lines += ["", any_of(one, rng)] if rng.random() < share else []
    lines += ["", "[risk]", 'question = "paper"' if rng.random() < 0.6 else ""]
    own = [
        one.partition(" ~ ")[0].removeprefix("log(").removeprefix("sqrt(").rstrip(")")
        for one, _ in plan
    ]
    for name in rng.permutation(list(_RISK)[1:])[: int(rng.integers(3))]:
        lines.append(f"{name} = {any_of(_RISK[name], rng)}")
        own = [] if name == "guesses" else own
    for name in own:
        if rng.random() < 0.5:
            lines.append(f"guesses.{name} = {any_of(_GUESSES[name], rng)}")
    if rng.random() < 0.3:
        lines += ["", "[utility]", any_of(_UTILITY, rng)]
    if rng.random() < 0.7:
        lines += ["", "[criteria]", any_of(_CRITERIA, rng)]
    kind = any_of(('"both"', '"sharing"', '"inside"'), rng)
    return "\n".join([*lines, "", "[report]", f"kind = {kind}", ""])


def in_toml(text: str) -> str:
    """Return a text as TOML has it."""
    return json.dumps(text.encode(errors="replace").decode(), ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )


def odd_table(data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return records as data of small studies are: few, with gaps, with a column of one value."""
    kind, name = (
        int(rng.integers(8)),
        any_of(("Spending", "Income", "Kids", "Owner", "Region"), rng),
    )
    if kind == 0:
        return data.iloc[: int(rng.integers(1, 15))]
    if kind == 1:
        return data.assign(**{name: data[name].mask(rng.random(len(data)) < 0.2)})
    if kind == 2:
        return data.assign(**{name: data[name].iloc[0]})
    if kind == 3:
        return pd.concat([data, data.assign(CaseID=data["CaseID"] + "x")])
    if kind == 4 and name != "Region":
        return data.assign(**{name: data[name] * any_of((1e-9, 1e9, -1, 1e200), rng)})
    if kind == 5:
        column = data[name].astype(object)
        column.iloc[int(rng.integers(len(data)))] = any_of(HOSTILE_NUMBERS, rng)
        return data.assign(**{name: column})
    return data.iloc[: int(rng.integers(20, 60))]


def make_study(case: Case) -> Path:
    """Write a study and its records."""
    rng, data = case.rng, case.good["data"]
    text = _valid(rng) if rng.random() < 0.8 else STUDY
    if rng.random() < 0.45:
        text = damaged_settings(text, rng)
    case.declared = text
    case.released = tuple(data["Region"].unique()) if '"Region ~' in text else ()
    content = damaged(text.encode(), rng) if rng.random() < 0.1 else text.encode()
    table = odd_table(data, rng) if rng.random() < 0.4 else data.iloc[:40]
    case.write("people.csv", table.to_csv(index=False).encode())
    return case.write("study.toml", content)


def run_study(case: Case, study: Path) -> None:
    """Run a study, and look at what it shares and leaves."""
    before = _inputs(case)
    with few_pictures(case.rng):
        case.run("run", study)
    if _inputs(case) != before:
        case.problems.append("a file that is read was changed")
    look_at_output(case, case.folder / "out")


def _inputs(case: Case) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in case.folder.iterdir()
        if path.is_file()
    }


def look_at_output(case: Case, out: Path) -> None:
    """Take what a run made to be shared; what it leaves is whole or nothing."""
    page = out / "report.html"
    if page.is_file():
        case.share(page)
    left = [path.name for path in case.folder.rglob(".synrisk-*")]
    if left:
        case.problems.append(f"left behind: {left}")


def _make_criteria(case: Case) -> tuple[Path, str | None]:
    rng = case.rng
    whole = rng.random() < 0.6
    content = damaged_settings(POLICIES, rng).encode() if whole else damaged(POLICIES.encode(), rng)
    path = case.write("policies.toml", content)
    return path, any_of((None, "ours", "theirs", "third", "none", "\x1b[2J"), rng)


def _judge(case: Case, made: tuple[Path, str | None]) -> None:
    criteria = sr.Criteria.from_toml(*made)
    verdict = case.good["risk"].verdict(criteria, further=0)
    case.said += [str(verdict), json.dumps(verdict.to_json())]


# -- folders of results -------------------------------------------------------------------------
def study(folder: Path) -> dict[str, Any]:
    """Return a small fit, with its records beside it."""
    good = fitted(folder)
    good["data"].to_csv(folder / "people.csv", index=False)
    return good


def _results(folder: Path) -> dict[str, Any]:
    """Return the folder of a run."""
    data = people()
    data.to_csv(folder / "people.csv", index=False)
    path = folder / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    assert synrisk("run", path, "-q").exit_code in (0, 1, 3)
    return {"data": data, "folder": folder}


def _copied(case: Case) -> tuple[Path, dict[str, Any]]:
    out = case.folder / "out"
    shutil.copytree(case.good["folder"] / "out", out)
    return out, json.loads((out / "manifest.json").read_text(encoding="utf-8"))


# What a field of a manifest may be beside values of the wrong kind.
_FIELDS = (
    "../people.csv", "/etc/passwd", "notes.txt", "manifest.json", ".", "..", "", "synthetic1.csv",
    "risk.nc", "a\x00b", "\ud800", "\u202e", "<b>x</b>", "\x1b[2J", "=1+1", 2**64, -(2**63), 1e308,
    ["../people.csv"], {"../people.csv": "0" * 64}, [["x"]],
    {"file": "../people.csv", "sha256": ""},
)  # fmt: skip


def _make_manifest(case: Case) -> tuple[Path, str]:
    """Change a manifest: one field after the other, several at random, or bytes of it."""
    out, manifest = _copied(case)
    rng = case.rng
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    shutil.copy(case.good["folder"] / "people.csv", case.folder / "people.csv")
    kind = rng.random()
    if kind < 0.6:
        fields = list(places(manifest))
        holder, key = fields[int(rng.integers(len(fields)))]
        how = int(rng.integers(8))
        if how == 0:
            del holder[key]
        elif how == 1 and isinstance(holder, dict):
            holder[str(any_of(_FIELDS, rng))] = holder.pop(key)
        else:
            holder[key] = any_of(_FIELDS if how < 5 else HOSTILE_VALUES, rng)
    elif kind < 0.8:
        damaged_tree(manifest, rng)
    content = json.dumps(manifest).encode()
    (out / "manifest.json").write_bytes(content if kind < 0.8 else damaged(content, rng))
    return out, any_of(("report", "report", "report", "run", "seeds"), rng)


def _use_manifest(case: Case, made: tuple[Path, str]) -> None:
    """Make the reports anew, run the study over the folder, or take the seeds."""
    out, use = made
    before = _inputs(case)
    with few_pictures(case.rng):
        if use == "report":
            case.run("report", out, "--kind", any_of(("both", "sharing", "inside"), case.rng))
        elif use == "run":
            case.run("run", case.write("study.toml", STUDY.encode()), "-q")
        else:
            plain = STUDY.replace(f"seed = {SECRET}\n", "").replace('"out"', '"again"')
            path = case.write("study.toml", plain.encode())
            case.run("run", path, "--seed-from", out / "manifest.json", "-q")
    (case.folder / "study.toml").unlink(missing_ok=True)
    if _inputs(case) != before:
        case.problems.append("a file outside the folder was changed or is gone")
    notes = out / "notes.txt"
    if not notes.is_file() or notes.read_text(encoding="utf-8") != "mine":
        case.problems.append("somebody's file in the folder was changed or is gone")
    look_at_output(case, out)


def _make_utility(case: Case) -> Path:
    out, manifest = _copied(case)
    content = (out / "utility.json").read_bytes()
    if case.rng.random() < 0.7:
        stored = json.loads(content)
        damaged_tree(stored, case.rng)
        content = json.dumps(stored).encode()
    else:
        content = damaged(content, case.rng)
    (out / "utility.json").write_bytes(content)
    manifest["outputs"]["utility.json"] = hashlib.sha256(content).hexdigest()
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return out


def _use_utility(case: Case, out: Path) -> None:
    with few_pictures(case.rng):
        case.run("report", out)
    look_at_output(case, out)


ATTACKS = {
    "study": Attack(study, make_study, run_study, 4.0),
    "criteria": Attack(fitted, _make_criteria, _judge, 0.5),
    "manifest": Attack(_results, _make_manifest, _use_manifest, 3.0),
    "utility.json": Attack(_results, _make_utility, _use_utility),
}
