"""Attacks on everything that reads: damaged and hostile inputs, made from a seed and a number.

Each attack makes one input from a random generator and gives it to synrisk as a user would. What
may come of it is a result or a SynriskError. The data hold values that are found again wherever
they turn up (`Marks`).
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synrisk as sr
from helpers.mutations import (
    HOSTILE_NAMES,
    any_of,
    damaged,
    damaged_settings,
    damaged_table,
    damaged_tree,
)
from helpers.r_writer import rdata, rds
from helpers.resigned import changed
from helpers.secret import SECRET
from helpers.studies import synrisk
from synrisk.data import netcdf
from synrisk.data.frames import read_table

PLAN = [sr.Regression("Income ~ Spending"), sr.Regression("Kids ~ Income", "poisson")]
INTERNAL = 70  # the command line's exit code for an error of synrisk's own


def people(n: int = 60) -> pd.DataFrame:
    """Return records whose ids, regions and amounts are found in no honest message."""
    rng = np.random.default_rng(1)
    spending = rng.normal(31_000.0, 4_000.0, n).round(4)
    return pd.DataFrame(
        {
            "CaseID": [f"PID{700_000 + i}" for i in rng.permutation(n)],
            "Spending": spending,
            "Income": (20_000 + spending + rng.normal(0.0, 5_000.0, n)).round(4),
            "Kids": np.minimum(rng.poisson(1.2, n), 4),
            "Owner": rng.integers(0, 2, n),
            "Region": rng.choice(["Quovadis", "Ramsgate", "Zyxwville"], n),
        }
    )


class Marks:
    """The values of a table that may stand nowhere: text as it is, numbers by seven digits."""

    def __init__(self, frame: pd.DataFrame) -> None:
        words = {str(v) for name in ("CaseID", "Region") for v in frame[name]}
        for name in ("Spending", "Income"):
            words |= {f"{value:.7g}" for value in frame[name]}
        self._pattern = re.compile("|".join(map(re.escape, sorted(words))))

    def found(self, text: str) -> str:
        """Return the first of them in a text, or an empty text."""
        found = self._pattern.search(re.sub(r"(?<=\d)[,_\u2009\u202f](?=\d{3})", "", text))
        return found[0] if found else ""


@dataclass
class Case:
    """One input: what it is made by, where its files go, and what synrisk says of it.

    Attributes
    ----------
    rng
        Of this input alone.
    folder
        Empty.
    good
        What the attack has prepared, shared by all its inputs.
    said
        Filled by whatever others may see: messages on terminals, pages for sharing.
    problems
        Filled by what is wrong beside exceptions.
    """

    rng: np.random.Generator
    folder: Path
    good: Any
    said: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_refused: bool = False  # by the command line

    def write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def run(self, *arguments: Any) -> int:
        """Run the command line; its words are kept."""
        done = synrisk(*arguments)
        self.said.append(done.output)
        self.is_refused = done.exit_code == 2
        if done.exit_code == INTERNAL:
            self.problems.append(f"an error of synrisk's own: {done.output.strip()[-300:]}")
        elif done.exit_code not in (0, 1, 2, 3):
            self.problems.append(f"exit code {done.exit_code}")
        if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", done.output):
            self.problems.append("a control character reaches the terminal")
        return int(done.exit_code)

    def share(self, page: Path) -> None:
        """Take a page for sharing and the JSON beside it, and look for code in the page."""
        html = page.read_text(encoding="utf-8")
        self.said += [html, page.with_suffix(".json").read_text(encoding="utf-8")]
        self.problems += _code_in(html)


@dataclass(frozen=True)
class Attack:
    """Inputs for one reader.

    Attributes
    ----------
    prepare
        Makes what inputs are made of, once, in a folder of its own.
    attempt
        Makes an input and gives it to synrisk.
    """

    prepare: Callable[[Path], Any]
    attempt: Callable[[Case], None]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        loads = {"src", "srcset", "action", "data", "xlink:href"} & names
        goes = [v or "" for name, v in attrs if name == "href" and not (v or "").startswith("#")]
        if tag in ("script", "iframe", "object", "embed", "img", "base", "form", "link", "meta"):
            if tag == "meta" and names <= {"charset", "name", "content", "http-equiv"}:
                return
            self.problems.append(f"<{tag}> in a page")
        if loads or any(name.startswith("on") for name in names):
            self.problems.append(f"<{tag} {' '.join(sorted(names))}> in a page")
        self.problems += [f"a link to {where[:40]} in a page" for where in goes]


def _code_in(html: str) -> list[str]:
    parser = _Page()
    parser.feed(html)
    if "49" in html and "{{7*7}}" not in html and ">49<" in html:
        parser.problems.append("a template in a name was evaluated")
    return parser.problems


# -- tables in files ----------------------------------------------------------------------------
def _parquet(frame: pd.DataFrame, **options: Any) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream, index=False, **options)
    return stream.getvalue()


def _fitted(folder: Path) -> dict[str, Any]:
    """Return the records and a small fit of them, with a release and its risk."""
    data = people()
    fitted = sr.fit(PLAN, data, n_draws=40, id="CaseID", seed=SECRET)
    release = fitted.synthesize(1, seed=SECRET + 1)
    risk = sr.attribute_risk(fitted, release, question="paper", guesses=5)
    return {"data": data, "fitted": fitted, "release": release, "risk": risk, "folder": folder}


def _take_table(case: Case, path: Path) -> None:
    """Use a file as a user might: as confidential data, as a release, as draws."""
    use = int(case.rng.integers(10))
    if use == 0:
        fitted = sr.fit(PLAN, path, n_draws=20, id="CaseID", seed=SECRET)
        fitted.describe()
    elif use == 1:
        sr.fit(PLAN, path, n_draws=20, seed=SECRET, missing="drop", types={"Region": "category"})
    elif use == 2:
        sr.attribute_risk(case.good["fitted"], path, question="paper", guesses=3)
    elif use == 3:
        sr.Synthesizer.from_draws(PLAN[:1], case.good["data"], path)
    elif use == 4:
        case.run("init", case.folder / "made", "--data", path)
        made = case.folder / "made" / "study.toml"
        if made.exists():
            case.said.append(made.read_text(encoding="utf-8"))
    else:
        read_table(path, "The confidential data")


def _separated(ending: str, separator: str, pack: Callable[[bytes], bytes]) -> Attack:
    def attempt(case: Case) -> None:
        plain = case.good["data"].to_csv(index=False, sep=separator)
        rng = case.rng
        if rng.random() < 0.6:
            text = damaged_table(plain, separator, rng)
            codec = any_of(("utf-8", "utf-8", "utf-8", "utf-16", "latin-1"), rng)
            content = pack(text.encode(codec, errors="replace"))
        elif rng.random() < 0.5:
            content = pack(damaged(plain.encode(), rng))
        else:
            content = damaged(pack(plain.encode()), rng)
        _take_table(case, case.write(f"people{ending}", content))

    return Attack(_fitted, attempt)


def _of_parquet(case: Case) -> None:
    data, rng = case.good["data"], case.rng
    compression = any_of((None, "snappy", "gzip", "zstd"), rng)
    content = _parquet(data, compression=compression, use_dictionary=bool(rng.integers(2)))
    if rng.random() < 0.5:  # what the end of the file says of its columns
        length = int.from_bytes(content[-8:-4], "little")
        told = damaged(content[-8 - length : -8], rng)
        size = len(told) if rng.random() < 0.7 else length
        content = content[: -8 - length] + told + size.to_bytes(4, "little") + b"PAR1"
    elif rng.random() < 0.7:
        content = b"PAR1" + damaged(content[4:-8], rng) + content[-8:]
    else:
        content = damaged(content, rng)
    _take_table(case, case.write("people.parquet", content))


_PACKERS = (lambda content: content, gzip.compress, bz2.compress, lzma.compress)


def _of_r(ending: str, make: Callable[[pd.DataFrame], bytes]) -> Attack:
    def attempt(case: Case) -> None:
        plain, pack = make(case.good["data"]), any_of(_PACKERS, case.rng)
        inside = case.rng.random() < 0.8
        content = pack(damaged(plain, case.rng)) if inside else damaged(pack(plain), case.rng)
        _take_table(case, case.write(f"people{ending}", content))

    return Attack(_fitted, attempt)


def _stored_r(folder: Path) -> dict[str, Any]:
    stored = Path(__file__).parent.parent / "data" / "r"
    return {
        **_fitted(folder),
        "files": [path.read_bytes() for path in sorted(stored.glob("*.rds"))]
        + [path.read_bytes() for path in sorted(stored.glob("*.RData"))],
    }


def _of_draws_of_r(case: Case) -> None:
    """Files of every kind that R itself wrote: draws, lists, arrays, factors, dates."""
    content = any_of(case.good["files"], case.rng)
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    _take_table(case, case.write("draws.rds", damaged(content, case.rng)))


# -- files of results ---------------------------------------------------------------------------
KINDS = {"an attribute risk": sr.AttributeRisk.load, "a synthesizer": sr.Synthesizer.load}


def _saved(folder: Path) -> dict[str, Any]:
    good = _fitted(folder)
    data = good["data"]
    plan = [*PLAN, sr.Regression("Region ~ Income", "categorical")]
    fitted = sr.fit(plan, data, n_draws=30, id="CaseID", seed=SECRET)
    sr.attribute_risk(fitted, fitted.synthesize(1, seed=SECRET)).save(folder / "three.nc")
    good["risk"].save(folder / "risk.nc")
    good["fitted"].save(folder / "synthesizer.nc")
    return {
        "an attribute risk": [folder / "risk.nc", folder / "three.nc"],
        "a synthesizer": [folder / "synthesizer.nc"],
    }


def _use_saved(path: Path, kind: str) -> None:
    loaded: Any = KINDS[kind](path)
    if isinstance(loaded, sr.Synthesizer):
        loaded.describe(), repr(loaded), loaded.synthesize(1, seed=SECRET)
        return
    first = loaded.records.index[0]
    loaded.summary(), loaded.joint(first), loaded.ranking(first), loaded.diagnostics()
    loaded.verdict(further=0), repr(loaded), loaded.synthesizer.describe()


def _of_netcdf(case: Case) -> None:
    kind = any_of(tuple(KINDS), case.rng)
    content = any_of(case.good[kind], case.rng).read_bytes()
    _use_saved(case.write("saved.nc", damaged(content, case.rng)), kind)


def _of_signed_netcdf(case: Case) -> None:
    kind, rng = any_of(tuple(KINDS), case.rng), case.rng
    source = any_of(case.good[kind], rng)
    path = case.folder / "saved.nc"
    if rng.random() < 0.4:  # any bytes, with the digest of these
        image = damaged(source.read_bytes()[: -len(netcdf._MARK) - netcdf._DIGEST], rng)
        path.write_bytes(image + netcdf._MARK + netcdf._digest(image))
    else:
        try:
            netcdf.save(path, changed(netcdf.load(source, kind), rng))
        except Exception:  # what cannot be written attacks nobody
            return
    _use_saved(path, kind)
    if kind == "an attribute risk" and rng.random() < 0.2:
        risk = sr.AttributeRisk.load(path)
        risk.report(case.folder / "page.html")


# -- studies --------------------------------------------------------------------------------------
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


def _study(folder: Path) -> dict[str, Any]:
    good = _fitted(folder)
    good["data"].to_csv(folder / "people.csv", index=False)
    return good


def _look_at_output(case: Case, out: Path) -> None:
    """Take what a run made to be shared; what it leaves is whole or nothing."""
    page = out / "report.html"
    if page.is_file():
        case.share(page)
    left = [path.name for path in case.folder.rglob(".synrisk-*")]
    if left:
        case.problems.append(f"left behind: {left}")


def _of_study(case: Case) -> None:
    text, rng = STUDY, case.rng
    if rng.random() < 0.7:
        content = damaged_settings(text, rng).encode()
    else:
        content = damaged(text.encode(), rng)
    shutil.copy(case.good["folder"] / "people.csv", case.folder / "people.csv")
    case.run("run", case.write("study.toml", content))
    _look_at_output(case, case.folder / "out")


def _of_criteria(case: Case) -> None:
    rng = case.rng
    whole = rng.random() < 0.6
    content = damaged_settings(POLICIES, rng).encode() if whole else damaged(POLICIES.encode(), rng)
    path = case.write("policies.toml", content)
    name = any_of((None, "ours", "theirs", "third", "none", "\x1b[2J"), rng)
    criteria = sr.Criteria.from_toml(path, name)
    verdict = case.good["risk"].verdict(criteria, further=0)
    case.said += [str(verdict), json.dumps(verdict.to_json())]


def _results(folder: Path) -> dict[str, Any]:
    good = _study(folder)
    study = folder / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    assert synrisk("run", study, "-q").exit_code in (0, 1, 3)
    return good


def _copied(case: Case) -> tuple[Path, dict[str, Any]]:
    out = case.folder / "out"
    shutil.copytree(case.good["folder"] / "out", out)
    return out, json.loads((out / "manifest.json").read_text(encoding="utf-8"))


def _of_manifest(case: Case) -> None:
    out, manifest = _copied(case)
    if case.rng.random() < 0.6:
        damaged_tree(manifest, case.rng)
        content = json.dumps(manifest).encode()
    else:
        content = damaged((out / "manifest.json").read_bytes(), case.rng)
    (out / "manifest.json").write_bytes(content)
    if case.rng.random() < 0.15:
        shutil.copy(case.good["folder"] / "people.csv", case.folder / "people.csv")
        plain = STUDY.replace(f"seed = {SECRET}\n", "").replace('"out"', '"again"')
        study = case.write("study.toml", plain.encode())
        case.run("run", study, "--seed-from", out / "manifest.json", "-q")
    else:
        case.run("report", out, "--kind", "both")
    _look_at_output(case, out)


def _of_utility(case: Case) -> None:
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
    case.run("report", out)
    _look_at_output(case, out)


# -- what is given in Python --------------------------------------------------------------------
def _of_draws(case: Case) -> None:
    rng = case.rng
    draws = pd.DataFrame(
        rng.normal([1.0, 1.0, 5_000.0], 0.1, (8, 3)), columns=["(Intercept)", "Spending", "sigma"]
    )
    odd = [None, np.nan, np.inf, "x", 10**400, 1j, pd.Timestamp("2020"), [], b"x", True, -1.0]
    for _ in range(int(rng.integers(1, 4))):
        name, kind = any_of(list(draws.columns), rng), int(rng.integers(8))
        if kind == 0:
            draws = draws.drop(columns=name)
        elif kind == 1:
            draws = draws.rename(columns={name: any_of(HOSTILE_NAMES, rng)})
        elif kind == 2:
            draws[any_of((*HOSTILE_NAMES, ".chain", "lp__", "Unnamed: 0"), rng)] = any_of(odd, rng)
        elif kind == 3:
            column = draws[name].astype(object)
            if len(column):
                column.iloc[int(rng.integers(len(column)))] = any_of(odd, rng)
            draws[name] = column
        elif kind == 4:
            draws = draws.iloc[: int(rng.integers(len(draws) + 1))]
        elif kind == 5:
            draws[name] = pd.Categorical(draws[name].astype(str))
        elif kind == 6:
            draws.index = pd.Index(any_of(odd[:4], rng) for _ in range(len(draws)))
        else:
            draws = pd.concat([draws, draws[[name]]], axis=1)
            break
        if draws.shape[1] == 0:
            break
    given: Any = draws
    if rng.random() < 0.3:
        text = draws.to_csv(index=False)
        content = text.encode("utf-8", errors="replace")
        given = case.write("draws.csv", damaged(content, rng) if rng.random() < 0.5 else content)
    plan = sr.Regression("Income ~ Spending")
    made = sr.Synthesizer.from_draws(plan, case.good["data"], given, id="CaseID")
    release = case.good["release"]
    sr.attribute_risk(made, release, question="paper", guesses=3, n_draws=None, diagnostics=False)


_WORDS = (
    "Income", "Spending", "Kids", "Owner", "Region", "CaseID", "1", "0", "-1", "2", "1e9", "+", "-",
    "*", ":", "/",
    "^", "**", "(", ")", "~", ",", " ", "log", "exp", "I", "bs", "poly", "scale", "center", "C",
    "sqrt", "as.factor",
    "factor", "offset", "lag", "bf", "np.", "__import__", "open", "'os'", "df=", "=", "[", "]", "{",
    "}", "`", '"', ".",
    "|", "%in%", "!", "&", "<", ">", "==", "if", "else", "lambda", "x", "\n", "\x00", "é", "🎲",
    "\ud800", "#", ";", "@",
    "Q", "degree=3", "100000", "nan", "inf", "True", "None", "ifelse", "round", "abs", "pmax",
    "cut", "ns", "s", "te",
)  # fmt: skip
_FORMULAS = (
    "Income ~ Spending", "Kids ~ Income + log(Income)", "log(Income) ~ scale(Spending) + C(Region)",
    "Owner ~ Income * Spending", "Region ~ poly(Income, 2)", "Income ~ bs(Spending, df=5) - 1",
    "Income ~ (Spending + Kids + Owner)^2", "Kids ~ I(Income / 1000) : Region", "sqrt(Income) ~ 1",
)  # fmt: skip
_FAMILIES = (*("gaussian", "poisson", "bernoulli", "categorical") * 5, "binom", "x", "")


def _formula(rng: np.random.Generator) -> str:
    if rng.random() < 0.2:
        words = [any_of(_WORDS, rng) for _ in range(int(rng.integers(1, 12)))]
        return any_of(("Income ~ ", "", "Kids ~ Income + "), rng) + "".join(words)
    words = re.findall(r"\w+|\W", any_of(_FORMULAS, rng))
    for _ in range(int(rng.integers(1, 4))):
        at, kind = int(rng.integers(len(words))), int(rng.integers(4))
        if kind == 0:
            words[at] = any_of(_WORDS, rng)
        elif kind == 1:
            words.insert(at, any_of(_WORDS, rng))
        elif kind == 2:
            words[at] *= int(any_of((0, 2, 50, 2_000), rng))
        else:
            words[at:at] = words[int(rng.integers(len(words))) :][:8]
    return "".join(words)


def _of_formula(case: Case) -> None:
    regression = sr.Regression(_formula(case.rng), any_of(_FAMILIES, case.rng))
    repr(regression)
    fitted = sr.fit(regression, case.good["data"], n_draws=10, id="CaseID", seed=SECRET)
    fitted.describe()
    if case.rng.random() < 0.2:
        fitted.synthesize(1, seed=SECRET)


def _of_names(case: Case) -> None:
    """Names of columns, levels, records and titles that a page or a terminal might act on."""
    rng = case.rng
    n_levels = int(rng.integers(2, 5))
    chosen = [any_of(HOSTILE_NAMES, rng) for _ in range(3 + n_levels)]
    y, x, title, *levels = chosen
    data = case.good["data"].rename(columns={"Income": y, "Spending": x})
    levels = list(dict.fromkeys(levels))
    data["Group"] = [levels[k % len(levels)] for k in rng.permutation(len(data))]
    if rng.random() < 0.3:
        data["CaseID"] = [f"{name}{k}" for k, name in enumerate(data["CaseID"])]
    quoted = [f"`{name}`" if rng.random() < 0.8 else name for name in (y, x)]
    plan = [sr.Regression(f"{quoted[0]} ~ {quoted[1]}"), sr.Regression("Group ~ 1", "categorical")]
    fitted = sr.fit(plan[: int(rng.integers(1, 3))], data, n_draws=20, id="CaseID", seed=SECRET,
                    types={"Group": levels})  # fmt: skip
    release = fitted.synthesize(1, seed=SECRET)
    risk = sr.attribute_risk(fitted, release, question="paper", guesses=3)
    case.said += [repr(fitted), repr(risk), str(risk.verdict(further=0)), *risk.notes]
    page = case.folder / "page.html"
    risk.report(page, synthetic=release, title=title or None)
    case.share(page)
    inside = case.folder / "inside.html"
    risk.report(inside, synthetic=release, kind="inside", title=title or None)
    case.problems += _code_in(inside.read_text(encoding="utf-8"))
    if rng.random() < 0.3:
        risk.save(case.folder / "risk.nc")
        sr.AttributeRisk.load(case.folder / "risk.nc").summary()


def _of_names_in_studies(case: Case) -> None:
    rng = case.rng
    y, x, title, file = (any_of(HOSTILE_NAMES, rng) for _ in range(4))
    name = f"{re.sub('[/' + chr(0) + ']', '', file)[:60]}.csv".encode(errors="replace").decode()
    text = case.good["data"].rename(columns={"Income": y, "Spending": x}).to_csv(index=False)
    case.write(name, text.encode(errors="replace"))
    if rng.random() < 0.3:
        case.run("init", case.folder / "made", "--data", case.folder / name)
        return
    study = STUDY.replace('"A small study"', _toml(title)).replace('"people.csv"', _toml(name))
    study = study.replace('"Income ~ Spending"', _toml(f"`{y}` ~ `{x}`"))
    study = study.replace('"Kids ~ Income"', _toml(f"Kids ~ `{y}`"))
    study = study.replace("guesses.Income", f"guesses.{_toml(y)}")
    case.run("run", case.write("study.toml", study.encode(errors="replace")))
    _look_at_output(case, case.folder / "out")


def _toml(text: str) -> str:
    return json.dumps(text.encode(errors="replace").decode(), ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )


_ODD = (None, -1, 0, 1, 2, 10**9, 1e300, np.nan, np.inf, "x", "", "auto", [], {}, b"x", True)
# What may be given for each option; made when it is chosen, since some cannot be made at all.
_OPTIONS: dict[str, tuple[Callable[[], Any], ...]] = {
    "guesses": (
        lambda: 3,
        lambda: 10**6,
        lambda: sr.Relative(5, 1e300, 1e300),
        lambda: sr.Relative(3, 1e-15, 0.1),
        lambda: sr.Interval(5, -1e300, 1e300),
        lambda: sr.Interval(5, 0, 1e-300),
        lambda: sr.Additive(3, 0, 0),
        lambda: sr.Additive(3, 1e17, 1.0, within=(0, 1)),
        sr.AllLevels,
        sr.Range,
        lambda: sr.Range(n=10**7),
        lambda: sr.Values([1.0, 2.0]),
        lambda: sr.Values([np.nan, 1.0]),
        lambda: sr.Values([]),
        lambda: sr.Values([1e308, -1e308]),
        lambda: sr.Values(np.ones((60, 3))),
        lambda: {"Income": sr.Range(within=(0, 1e300))},
        lambda: {"Kids": sr.Values(range(200))},
        lambda: {"x": 3},
        lambda: [3, 4],
    ),
    "intruder_prior": (
        lambda: "model",
        lambda: sr.TruthFactor(1e300),
        lambda: sr.TruthFactor(1e-300),
        lambda: sr.MostlyModel(0.5),
        lambda: np.zeros(3),
        lambda: np.full((60, 11, 5), -np.inf),
    ),
    "tolerance": (
        lambda: {"Income": 1e300},
        lambda: {"Income": 0},
        lambda: {"Kids": -1},
        lambda: sr.Tolerance(share=1.0),
    ),
    "estimator": tuple(
        lambda name=name: name for name in ("paper", "importance", "stacked", "exact")
    ),
    "n_draws": (lambda: 10**12, lambda: 1.5, lambda: 7),
    "records": (
        lambda: ["PID700000"],
        lambda: ["PID700000"] * 3,
        lambda: "PID700001",
        lambda: slice(3),
        lambda: np.array([True] * 60),
    ),
    "joint": (lambda: "keep", lambda: "drop"),
    "question": (lambda: "release", lambda: "paper"),
    "executor": (lambda: "threads", lambda: 2, lambda: -3, lambda: 10**6),
}


def _of_options(case: Case) -> None:
    rng, chosen = case.rng, {}
    for name in rng.permutation(list(_OPTIONS))[: int(rng.integers(1, 4))]:
        is_odd = rng.random() < 0.15
        chosen[name] = any_of(_ODD, rng) if is_odd else any_of(_OPTIONS[name], rng)()
    release = [one.copy() for one in case.good["release"]]
    if rng.random() < 0.3:
        name = any_of(("Income", "Spending", "Kids"), rng)
        factor = any_of((1e25, 1e-25, -1.0, 0.0, 1e300, np.nan, np.inf), rng)
        release = [one.assign(**{name: one[name].astype(float) * factor}) for one in release]
    risk = sr.attribute_risk(case.good["fitted"], release, **{"question": "paper", **chosen})
    risk.summary()
    case.said += [repr(risk), *risk.notes]


def _of_utility_options(case: Case) -> None:
    rng = case.rng
    release = case.good["release"][0].copy()
    for _ in range(int(rng.integers(1, 3))):
        name, kind = any_of(list(release.columns), rng), int(rng.integers(5))
        if kind == 0:
            release[name] = any_of((0.0, np.nan, np.inf, "x", 1e300, None), rng)
        elif kind == 1:
            release = release.drop(columns=name)
        elif kind == 2:
            release = release.iloc[: int(rng.integers(len(release) + 1))]
        elif kind == 3 and len(release):
            release[name] = release[name].sample(frac=1.0, random_state=1).to_numpy()
        else:
            release = release.rename(columns={name: any_of(HOSTILE_NAMES, rng)})
        if release.shape[1] == 0:
            break
    measured = sr.utility(case.good["fitted"], release, propensity="main", seed=SECRET)
    measured.summary()


def _bomb(case: Case) -> None:
    """Files within files, and files that are small until they are read."""
    rng, data = case.rng, case.good["data"]
    csv, raw = data.to_csv(index=False).encode(), rds(data)
    n = int(10 ** rng.uniform(5, 8.3))
    kind = int(rng.integers(9))
    if kind == 0:
        name, content = "people.csv.gz", gzip.compress(gzip.compress(csv))
    elif kind == 1:
        name, content = "people.csv.gz", gzip.compress(any_of((raw, _parquet(data)), rng))
    elif kind == 2:
        name, content = "people.rds", gzip.compress(any_of((gzip.compress(raw), csv), rng))
    elif kind == 3:
        name, content = "people.csv", any_of((gzip.compress(csv), raw, _parquet(data)), rng)
    elif kind == 4:
        name, content = "people.parquet", any_of((gzip.compress(csv), raw, csv), rng)
    elif kind == 5:
        many = np.zeros(min(n, 20_000_000))
        name, content = "people.parquet", _parquet(pd.DataFrame({"Income": many}))
    elif kind == 6:
        rows = b"0,0\n" * min(n // 10, 5_000_000)
        name, content = "people.csv.gz", gzip.compress(b"Income,Spending\n" + rows, 1)
    elif kind == 7:
        name, content = "people.csv.gz", _packed_zeros(min(n, 200_000_000))
    else:
        content = rdata(data, "people")
        name, content = "people.RData", lzma.compress(content + bytes(min(n, 100_000_000)))
    _take_table(case, case.write(name, content))


def _packed_zeros(n: int) -> bytes:
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", compresslevel=1) as file:
        for _ in range(n // 1_000_000):
            file.write(bytes(1_000_000))
    return made.getvalue()


ATTACKS: dict[str, Attack] = {
    "csv": _separated(".csv", ",", lambda content: content),
    "tsv": _separated(".tsv", "\t", lambda content: content),
    "csv.gz": _separated(".csv.gz", ",", gzip.compress),
    "parquet": Attack(_fitted, _of_parquet),
    "rds": _of_r(".rds", rds),
    "RData": _of_r(".RData", lambda frame: rdata(frame, "people")),
    "files of R": Attack(_stored_r, _of_draws_of_r),
    "archives": Attack(_fitted, _bomb),
    "netcdf": Attack(_saved, _of_netcdf),
    "netcdf signed anew": Attack(_saved, _of_signed_netcdf),
    "study": Attack(_study, _of_study),
    "criteria": Attack(_fitted, _of_criteria),
    "manifest": Attack(_results, _of_manifest),
    "utility.json": Attack(_results, _of_utility),
    "draws": Attack(_fitted, _of_draws),
    "formulas": Attack(_fitted, _of_formula),
    "names": Attack(_fitted, _of_names),
    "names in studies": Attack(_study, _of_names_in_studies),
    "options": Attack(_fitted, _of_options),
    "utility": Attack(_fitted, _of_utility_options),
}


def said_by(error: BaseException) -> Iterable[str]:
    """Yield all that an exception says, with those that it is chained to."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield from (str(one), repr(one.args), *getattr(one, "__notes__", ()))
        if isinstance(one, sr.SynriskError):
            yield one.in_study()
        waiting += [one.__cause__, one.__context__]
