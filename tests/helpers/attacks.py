"""Attacks on everything that reads: damaged and hostile inputs, made from a seed and a number."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synrisk as sr
from helpers import attack_folders, attack_formulas, attack_names, attack_studies, races
from helpers.attack_cases import PLAN, Attack, Case, few_pictures, fitted
from helpers.mutations import HOSTILE_NAMES, any_of, damaged, damaged_table
from helpers.r_writer import rdata, rds
from helpers.resigned import changed
from helpers.secret import SECRET
from synrisk.data import netcdf
from synrisk.data.frames import read_table


# -- tables in files ----------------------------------------------------------------------------
def _parquet(frame: pd.DataFrame, **options: Any) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream, index=False, **options)
    return stream.getvalue()


def take_table(case: Case, path: Path) -> None:
    """Use a file as a user might: as confidential data, as a release, as draws."""
    use = int(case.rng.integers(10))
    if use == 0:
        sr.fit(PLAN, path, n_draws=20, id="CaseID", seed=SECRET).describe()
    elif use == 1:
        sr.fit(PLAN, path, n_draws=20, seed=SECRET, missing="drop", types={"Region": "category"})
    elif use == 2:
        sr.attribute_risk(case.good["fitted"], path, question="paper", guesses=3)
    elif use == 3:
        sr.Synthesizer.from_draws(PLAN[:1], case.good["data"], path)
    elif use == 4:
        case.run("init", case.folder / "made", "--data", path, "--sensitive", "Income")
        made = case.folder / "made" / "study.toml"
        if made.exists():
            case.said.append(made.read_text(encoding="utf-8"))
    else:
        read_table(path, "The confidential data")


def _separated(ending: str, separator: str, pack: Callable[[bytes], bytes]) -> Attack:
    def make(case: Case) -> Path:
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
        return case.write(f"people{ending}", content)

    return Attack(fitted, make, take_table)


def _of_parquet(case: Case) -> Path:
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
    return case.write("people.parquet", content)


_PACKERS = (lambda content: content, gzip.compress, bz2.compress, lzma.compress)


def _of_r(ending: str, write: Callable[[pd.DataFrame], bytes]) -> Attack:
    def make(case: Case) -> Path:
        plain, pack = write(case.good["data"]), any_of(_PACKERS, case.rng)
        inside = case.rng.random() < 0.8
        content = pack(damaged(plain, case.rng)) if inside else damaged(pack(plain), case.rng)
        return case.write(f"people{ending}", content)

    return Attack(fitted, make, take_table)


def _stored_r(folder: Path) -> dict[str, Any]:
    stored = Path(__file__).parent.parent / "data" / "r"
    return {
        **fitted(folder),
        "files": [path.read_bytes() for path in sorted(stored.glob("*.rds"))]
        + [path.read_bytes() for path in sorted(stored.glob("*.RData"))],
    }


def _of_draws_of_r(case: Case) -> Path:
    """Files of every kind that R itself wrote: draws, lists, arrays, factors, dates."""
    content = any_of(case.good["files"], case.rng)
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    return case.write("draws.rds", damaged(content, case.rng))


def _stored_surveys(folder: Path) -> dict[str, Any]:
    """Files of SPSS, SAS and Stata; nothing writes a .sas7bdat."""
    import pyreadstat

    good = fitted(folder)
    labels = {"Owner": {0: "rents", 1: "owns"}}
    for ending, write, options in (
        (".sav", pyreadstat.write_sav, {"variable_value_labels": labels}),
        (".zsav", pyreadstat.write_sav, {"compress": True}),
        (".por", pyreadstat.write_por, {}),
        (".dta", pyreadstat.write_dta, {"variable_value_labels": labels}),
        (".xpt", pyreadstat.write_xport, {}),
    ):
        write(good["data"], str(folder / f"people{ending}"), **options)
    return {**good, "files": sorted(folder.glob("people.*"))}


def _of_survey(case: Case) -> Path:
    path = any_of(case.good["files"], case.rng)
    ending = ".sas7bdat" if case.rng.random() < 0.1 else path.suffix
    return case.write(f"people{ending}", damaged(path.read_bytes(), case.rng))


# -- files of results ---------------------------------------------------------------------------
KINDS = {
    "an attribute risk": sr.AttributeRisk.load,
    "a synthesizer": sr.Synthesizer.load,
    "an audit": sr.Audit.load,
    "an identification risk": sr.IdentificationRisk.load,
}


def _saved(folder: Path) -> dict[str, Any]:
    good = fitted(folder)
    data = good["data"]
    plan = [*PLAN, sr.Regression("Region ~ Income", "categorical")]
    three = sr.fit(plan, data, n_draws=30, id="CaseID", seed=SECRET)
    sr.attribute_risk(three, three.synthesize(1, seed=SECRET)).save(folder / "three.nc")
    good["risk"].save(folder / "risk.nc")
    good["fitted"].save(folder / "synthesizer.nc")
    two = [frame[["Spending", "Kids", "Region"]] for frame in (data, good["release"][0])]
    sr.audit(*two, sensitive=["Kids", "Region"], seed=SECRET).save(folder / "audit.nc")
    # Some people who are held out stand in the file too: these are counted, and left out.
    columns, n_shared = ["Spending", "Income"], len(data) // 4
    held_out = pd.concat([data[columns].iloc[:n_shared], data[columns].iloc[n_shared:] * 1.01])
    sr.audit(data[columns], good["release"][0][columns], holdout=held_out, seed=SECRET).save(
        folder / "controlled.nc"
    )
    sr.identification_risk(
        data, good["release"], known=["Spending"], synthesized=["Income", "Kids"], radius=0.1
    ).save(folder / "identification.nc")
    return {
        "an identification risk": [folder / "identification.nc"],
        "an attribute risk": [folder / "risk.nc", folder / "three.nc"],
        "a synthesizer": [folder / "synthesizer.nc"],
        "an audit": [folder / "audit.nc", folder / "controlled.nc"],
    }


def _use_saved(case: Case, saved: tuple[Path, str]) -> None:
    path, kind = saved
    loaded: Any = KINDS[kind](path)
    if isinstance(loaded, sr.Synthesizer):
        loaded.describe(), repr(loaded), loaded.synthesize(1, seed=SECRET)
        return
    if isinstance(loaded, sr.IdentificationRisk):
        loaded.summary(), loaded.verdict(), repr(loaded), loaded.records, loaded.notes
        return
    if isinstance(loaded, sr.Audit):
        loaded.summary(), loaded.verdict(), repr(loaded), loaded.records, loaded.notes
        if loaded.held_out_copies:
            loaded.held_out, loaded.membership()
        return
    first = loaded.records.index[0]
    loaded.summary(), loaded.joint(first), loaded.ranking(first), loaded.diagnostics()
    loaded.verdict(further=0), repr(loaded), loaded.synthesizer.describe()
    if case.rng.random() < 0.1:
        with few_pictures(case.rng):
            loaded.report(case.folder / "page.html")


def _of_netcdf(case: Case) -> tuple[Path, str]:
    kind = any_of(tuple(KINDS), case.rng)
    content = any_of(case.good[kind], case.rng).read_bytes()
    return case.write("saved.nc", damaged(content, case.rng)), kind


def _of_signed_netcdf(case: Case) -> tuple[Path, str]:
    kind, rng = any_of(tuple(KINDS), case.rng), case.rng
    source = any_of(case.good[kind], rng)
    path = case.folder / "saved.nc"
    if rng.random() < 0.4:  # any bytes, with the digest of these
        image = damaged(source.read_bytes()[: -len(netcdf._MARK) - netcdf._DIGEST], rng)
        path.write_bytes(image + netcdf._MARK + netcdf._digest(image))
    else:
        netcdf.save(path, changed(netcdf.load(source, kind), rng))
    return path, kind


# -- what is given in Python --------------------------------------------------------------------
def _of_draws(case: Case) -> Any:
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
    return given


def _take_draws(case: Case, given: Any) -> None:
    plan = sr.Regression("Income ~ Spending")
    made = sr.Synthesizer.from_draws(plan, case.good["data"], given, id="CaseID")
    release = case.good["release"]
    sr.attribute_risk(made, release, question="paper", guesses=3, n_draws=None, diagnostics=False)


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


def _of_options(case: Case) -> Any:
    rng, chosen = case.rng, {}
    for name in rng.permutation(list(_OPTIONS))[: int(rng.integers(1, 4))]:
        odd = any_of(_ODD, rng)
        chosen[name] = (lambda odd=odd: odd) if rng.random() < 0.15 else any_of(_OPTIONS[name], rng)
    release = [one.copy() for one in case.good["release"]]
    if rng.random() < 0.3:
        name = any_of(("Income", "Spending", "Kids"), rng)
        factor = any_of((1e25, 1e-25, -1.0, 0.0, 1e300, np.nan, np.inf), rng)
        release = [one.assign(**{name: one[name].astype(float) * factor}) for one in release]
    return release, chosen


def _take_options(case: Case, made: Any) -> None:
    release, chosen = made
    options = {name: option() for name, option in chosen.items()}
    risk = sr.attribute_risk(case.good["fitted"], release, **{"question": "paper", **options})
    risk.summary()
    case.said += [repr(risk), *risk.notes]


def _of_utility_options(case: Case) -> pd.DataFrame:
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
    return release


def _take_utility(case: Case, release: pd.DataFrame) -> None:
    measured = sr.utility(case.good["fitted"], release, propensity="main", seed=SECRET)
    measured.summary()


def _bomb(case: Case) -> Path:  # noqa: C901
    """Files within files, and files that are small until they are read."""
    rng, data = case.rng, case.good["data"]
    csv, raw = data.to_csv(index=False).encode(), rds(data)
    n = int(10 ** rng.uniform(5, 8.3))
    kind = int(rng.integers(14))
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
    elif kind == 8:
        content = rdata(data, "people")
        name, content = "people.RData", lzma.compress(content + bytes(min(n, 100_000_000)))
    elif kind == 9:  # many layers of any packing, around a table of any kind
        name = any_of(("people.csv.gz", "people.rds", "people.RData", "people.parquet"), rng)
        content = any_of((csv, raw, rdata(data, "people"), _parquet(data)), rng)
        for _ in range(int(rng.integers(2, 9))):
            content = any_of(_PACKERS, rng)(content)
    elif kind == 10:  # a file of R within a bomb, or a bomb within it
        name = "people.rds"
        zeros = gzip.compress(_packed_zeros(min(n, 100_000_000)))
        content = any_of((gzip.compress(raw + bytes(min(n, 50_000_000))), zeros), rng)
    elif kind == 11:  # parts one after another, as gzip allows
        name = any_of(("people.csv.gz", "people.rds"), rng)
        whole = csv if name.endswith("gz") else raw
        cut = int(rng.integers(len(whole)))
        content = gzip.compress(whole[:cut]) + gzip.compress(whole[cut:])
        content += any_of((b"", content, bytes(100), damaged(content, rng)), rng)
    elif kind == 12:
        name = any_of(("people.csv", "people.csv.gz", "people.parquet", "people.rds"), rng)
        content = _zipped(csv, any_of(("people.csv", "../../people.csv", "/etc/x"), rng))
        content = gzip.compress(content) if rng.random() < 0.3 else content
    else:
        name, content = "people.parquet", _nested_parquet(data, rng)
    return case.write(name, content)


def _zipped(content: bytes, name: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return made.getvalue()


def _nested_parquet(data: pd.DataFrame, rng: np.random.Generator) -> bytes:
    """Lists within lists, structures and maps where numbers should be, few or very many."""
    deep: Any = data["Income"].to_list()
    for _ in range(int(rng.integers(1, 40))):
        deep = any_of((lambda v: [[one] for one in v], lambda v: [{"a": one} for one in v]), rng)(
            deep
        )
    long = [[0.0] * int(10 ** rng.uniform(0, 4.5))] * len(data)
    column = any_of((deep, long, [None] * len(data), [b"x" * 100_000] * len(data)), rng)
    frame = data.assign(**{any_of(("Income", "CaseID", "Extra"), rng): column})
    return _parquet(frame, compression=any_of(("gzip", "zstd"), rng))


def _packed_zeros(n: int) -> bytes:
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", compresslevel=1) as file:
        for _ in range(n // 1_000_000):
            file.write(bytes(1_000_000))
    return made.getvalue()


# -- audits of two files --------------------------------------------------------------------------
def _audited(folder: Path) -> dict[str, Any]:
    good = fitted(folder)
    return {**good, "tables": {"people": good["data"], "rows": good["release"][0]}}


def _of_two_files(case: Case) -> tuple[Path, Path]:
    """Change one of two files: its records, its cells, or its bytes."""
    rng, which = case.rng, any_of(("people", "rows"), case.rng)
    paths = []
    kind = rng.random()
    for name, frame in case.good["tables"].items():
        changed_too = name == which and kind < 0.5
        table = attack_studies.odd_table(case.good["data"], rng) if changed_too else frame
        text = table[["Spending", "Income", "Kids", "Region"]].to_csv(index=False)
        content = text.encode()
        if name == which and 0.5 <= kind < 0.85:
            content = damaged_table(text, ",", rng).encode(errors="replace")
        elif name == which and kind >= 0.85:
            content = damaged(content, rng)
        paths.append(case.write(f"{name}.csv", content))
    return paths[0], paths[1]


def _audit(case: Case, paths: tuple[Path, Path]) -> None:
    rng = case.rng
    options: list[Any] = ["--sensitive", any_of(("Income", "Kids", "Region"), rng)]
    if rng.random() < 0.3:
        options += ["--keys", any_of(("Spending", "Kids,Spending", "x", ",", "Region"), rng)]
    if rng.random() < 0.15:
        options += ["--folder", case.folder / "out"]
    with few_pictures(rng):
        case.run("audit", *paths, "--seed", 7, *options)
    if rng.random() < 0.3:
        known, sought = ["Spending"], any_of((["Income"], ["Income", "Kids"], ["Region"]), rng)
        radius: Any = any_of((0.1, 0.0, 1e300, -1.0, np.nan, {"Income": 5.0}), rng)
        sr.identification_risk(*paths, known=known, synthesized=sought, radius=radius)


# -- links in the place of files ------------------------------------------------------------------
def _race(case: Case, kind: str) -> None:
    came, problems = case.good.race(kind, races.write_results)
    case.problems += problems
    case.is_refused = came.startswith("refused")


ATTACKS: dict[str, Attack] = {
    "csv": _separated(".csv", ",", lambda content: content),
    "tsv": _separated(".tsv", "\t", lambda content: content),
    "csv.gz": _separated(".csv.gz", ",", gzip.compress),
    "parquet": Attack(fitted, _of_parquet, take_table),
    "rds": _of_r(".rds", rds),
    "RData": _of_r(".RData", lambda frame: rdata(frame, "people")),
    "files of R": Attack(_stored_r, _of_draws_of_r, take_table),
    "survey files": Attack(_stored_surveys, _of_survey, take_table),
    "archives": Attack(fitted, _bomb, take_table),
    "netcdf": Attack(_saved, _of_netcdf, _use_saved, 0.5),
    "netcdf signed anew": Attack(_saved, _of_signed_netcdf, _use_saved),
    **attack_folders.ATTACKS,
    **attack_studies.ATTACKS,
    "draws": Attack(fitted, _of_draws, _take_draws),
    "formulas": Attack(fitted, attack_formulas.make, attack_formulas.give, 2.0),
    **attack_names.ATTACKS,
    "options": Attack(fitted, _of_options, _take_options),
    "utility": Attack(fitted, _of_utility_options, _take_utility),
    "audit": Attack(_audited, _of_two_files, _audit, 2.0),
}
if races.can_race():
    ATTACKS["races"] = Attack(races.Arena, lambda case: any_of(races.KINDS, case.rng), _race)
