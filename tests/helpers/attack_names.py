"""Names that a page, a terminal, a formula or a path might act on: of columns, levels, titles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synrisk as sr
from helpers.attack_cases import Attack, Case, code_in, few_pictures, fitted
from helpers.attack_studies import STUDY, in_toml, run_study, study
from helpers.mutations import HOSTILE_NAMES, any_of
from helpers.secret import SECRET
from synrisk.study.file import read_study

# Characters that names are made of beside the names of `mutations`: what ends a text, turns it
# round, is half a pair, takes no room, or means something where a name is put.
_PIECES = (
    *map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u200b", "\u200d", "\u200e", "\u200f",
    "\u2028", "\u2029", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067",
    "\u2068", "\u2069", "\ufeff", "\ufffe", "\uffff", "\ud800", "\udfff", "\U000e0041",
    "\U0010ffff", "\u0301", "\u0344", "ﬀ", "İ", "ß", "<", ">", "&", '"', "'", "`", "\\", "/",
    "..", "$", "{", "}", "{{", "}}", "{%", "[", "]", "(", ")", "~", "+", ":", "=", ",", ";", "|",
    "#", "%", "%s", "*", "?", " ", "T.", "I(", "C(", "<script>", "</svg>", "<!--", "-->", "CDATA",
    "&#x3c;", "javascript:", "$$", "\\frac", "_", "^", "x", "y", "Income", "sigma", "1", "é", "🎲",
    "변",
)  # fmt: skip


def name(rng: np.random.Generator) -> str:
    """Return a name: one of the known ones, or any characters one after another."""
    kind = rng.random()
    if kind < 0.4:
        return any_of(HOSTILE_NAMES, rng)
    made = "".join(any_of(_PIECES, rng) for _ in range(int(rng.integers(1, 9))))
    if kind < 0.5:
        made = "x" + made
    return made * int(10 ** rng.uniform(0, 3)) if kind > 0.95 else made


def _renamed(data: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    """Return records with columns of any names: pandas' own text would not hold some of them."""
    columns = pd.Index([names.get(str(one), one) for one in data.columns], dtype=object)
    return data.copy().set_axis(columns, axis=1)


def _objects(values: list[str]) -> pd.Series:
    return pd.Series(values, dtype=object)


def _make(case: Case) -> Any:
    """Return records, a plan, levels and a title."""
    rng = case.rng
    y, x, group, title = (
        name(rng) if rng.random() < 0.6 else plain for plain in ("y", "x", "Group", "t")
    )
    data = _renamed(case.good["data"], {"Income": y, "Spending": x, "Owner": group})
    levels = list(dict.fromkeys(name(rng) for _ in range(int(rng.integers(2, 5)))))
    data.isetitem(4, _objects([levels[k % len(levels)] for k in rng.permutation(len(data))]))
    if rng.random() < 0.2:
        ids = [name(rng) for _ in range(3)]
        data.isetitem(0, _objects([f"{ids[k % 3]}{k}" for k in range(len(data))]))
    as_written = [f"`{one}`" if rng.random() < 0.9 else one for one in (y, x, group)]
    plan = [
        (f"{as_written[0]} ~ {as_written[1]}", "gaussian"),
        (f"{as_written[2]} ~ 1", "categorical"),
        (f"Kids ~ {as_written[2]}", "poisson"),
    ]
    first = int(rng.integers(2))
    plan = plan[first : int(rng.integers(first + 1, 4))]
    return data, plan, {group: levels}, title


def _use(case: Case, made: Any) -> None:
    """Fit, synthesize, evaluate, and write and read all that names are in."""
    data, plan, types, title = made
    rng = case.rng
    used = [sr.Regression(formula, family) for formula, family in plan]
    fitted = sr.fit(used, data, n_draws=20, id="CaseID", seed=SECRET, types=types)
    release = fitted.synthesize(1, seed=SECRET)
    risk = sr.attribute_risk(fitted, release, question="paper", guesses=3)
    case.said += [repr(fitted), repr(risk), str(risk.verdict(further=0)), *risk.notes]
    page, inside = case.folder / "page.html", case.folder / "inside.html"
    with few_pictures(rng, 0.3):
        if rng.random() < 0.7:
            risk.report(page, synthetic=release, title=title or None)
            case.share(page)
        if rng.random() < 0.4:
            risk.report(inside, synthetic=release, kind="inside", title=title or None)
            case.problems += code_in(inside.read_text(encoding="utf-8"))
    if rng.random() < 0.3:
        risk.save(case.folder / "risk.nc")
        sr.AttributeRisk.load(case.folder / "risk.nc").summary()
    if rng.random() < 0.1:
        sr.utility(fitted, release, propensity="main", seed=SECRET).summary()


def _make_study(case: Case) -> tuple[Path, str]:
    """Write a study whose columns, file, title and levels have such names, or data for one.

    Of data also the column that is sensitive; of a study "".
    """
    rng = case.rng
    y, x, title, file = (
        name(rng) if rng.random() < 0.6 else plain for plain in ("y", "x", "t", "f")
    )
    table = _renamed(case.good["data"], {"Income": y, "Spending": x})
    levels = [name(rng) for _ in range(3)]
    table.isetitem(5, _objects([levels[k % 3] for k in range(len(table))]))
    written = f"{re.sub('[/' + chr(0) + ']', '', file)[:60]}.csv".encode(errors="replace").decode()
    path = case.write(written, table.to_csv(index=False).encode(errors="replace"))
    if rng.random() < 0.25:
        return path, y or "Kids"
    text = STUDY.replace('"A small study"', in_toml(title)).replace(
        '"people.csv"', in_toml(written)
    )
    text = text.replace('"Income ~ Spending"', in_toml(f"`{y}` ~ `{x}`"))
    text = text.replace('"Kids ~ Income"', in_toml(f"Kids ~ `{y}`"))
    text = text.replace("guesses.Income", f"guesses.{in_toml(y)}").replace(
        "types.Spending", f"types.{in_toml(x)}"
    )
    return case.write("study.toml", text.encode(errors="replace")), ""


def _use_study(case: Case, made: tuple[Path, str]) -> None:
    path, sensitive = made
    if not sensitive:
        run_study(case, path)
        return
    case.run("init", case.folder / "made", "--data", path, "--sensitive", sensitive)
    begun = case.folder / "made" / "study.toml"
    if begun.is_file():  # it is as it should be, and takes minutes
        case.said.append(begun.read_text(encoding="utf-8"))
        read_study(begun)


ATTACKS = {
    "names": Attack(fitted, _make, _use, 4.0),
    "names in studies": Attack(study, _make_study, _use_study, 3.0),
}
