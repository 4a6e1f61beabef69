"""Folders of Parquet and of parts of a risk, damaged and hostile, and words for executors.

Nothing that is not a number or a word of the data's own goes in: what shows one of them is seen.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import synrisk as sr
from helpers.attack_cases import PLAN, Attack, Case, fitted
from helpers.mutations import (
    HOSTILE_NAMES,
    HOSTILE_VALUES,
    any_of,
    change_bits,
    damaged,
    damaged_tree,
)
from helpers.secret import SECRET
from synrisk.base.workers import workers
from synrisk.study.file import read_study

OF_RISK = {
    "question": "paper", "guesses": 3, "n_draws": 20, "on_unreliable": "flag", "progress": False,
}  # fmt: skip
_PLAIN = [sr.Regression("Income ~ Spending"), sr.Regression("Region ~ Income", "categorical")]


def _stored(frame: pd.DataFrame, **options: Any) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream, index=False, **options)
    return stream.getvalue()


# -- tables ---------------------------------------------------------------------------------------
def _folder(folder: Path) -> dict[str, Any]:
    good = fitted(folder)
    stored = folder / "stored"
    stored.mkdir()
    good["data"].to_parquet(stored / "part-0.parquet", index=False)
    return {**good, "large": sr.fit(PLAN, stored, n_draws=20, seed=SECRET)}


def _other_part(part: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return a part with other columns, types or levels than the rest."""
    name, kind = any_of(list(part.columns), rng), int(rng.integers(11))
    column: Any = part[name]
    if kind == 0:
        return part.drop(columns=name)
    if kind == 1:
        return part.rename(columns={name: any_of(HOSTILE_NAMES, rng)})
    if kind == 2:
        return part[list(rng.permutation(part.columns))]
    if kind == 3:
        return part.assign(**{any_of(HOSTILE_NAMES, rng): column})
    if kind == 4:
        column = column.astype(str)
    elif kind == 5:
        column = column.astype(str).astype("category")
    elif kind == 6:
        column = any_of((None, np.nan, np.inf, -1, 1e300, "x", b"x", True, 2**63), rng)
    elif kind == 7:
        column = pd.Series([any_of(HOSTILE_VALUES[:14], rng)] * len(part), index=part.index)
    elif kind == 8:
        column = pd.Series([[v] * int(rng.integers(1, 100)) for v in column], index=part.index)
    elif kind == 9:
        column = column.map(lambda v: any_of((v, f"{v}x"), rng) if isinstance(v, str) else v)
    else:
        return part.iloc[:0]
    return part.assign(**{name: column})


def _bomb(part: pd.DataFrame, rng: np.random.Generator) -> bytes:
    """Return a small file of many rows, of long texts, or that says that it is larger."""
    n, kind = int(10 ** rng.uniform(3, 4.7)), int(rng.integers(3))
    if kind == 0:
        columns = {name: np.zeros(n) for name in ("Spending", "Income")}
        columns["Kids"] = np.zeros(n, dtype=np.int64)
        return _stored(pd.DataFrame(columns))
    stream = io.BytesIO()
    if kind == 1:
        long = pa.array(["x" * int(10 ** rng.uniform(3, 6.5))])
        index = pa.array(np.zeros(n, dtype=np.int32))
        zeros = np.zeros(len(index))
        table = {"Spending": zeros, "Income": zeros, "Kids": zeros.astype(np.int64)}
        table["Region"] = pa.DictionaryArray.from_arrays(index, long)
        pq.write_table(pa.table(table), stream, store_schema=False)
        return stream.getvalue()
    content = _stored(part)
    length = int.from_bytes(content[-8:-4], "little")
    told = content[-8 - length : -8]
    for _ in range(int(rng.integers(1, 6))):
        told = change_bits(told, rng)
    return content[: -8 - length] + told + content[-8:]


def _make_folder(case: Case) -> tuple[Path, str]:
    rng, data = case.rng, case.good["data"].drop(columns="Owner")
    folder = case.folder / any_of(("table", "a b", "x\x1b[2J", "é", "year=1"), rng)
    folder.mkdir()
    cuts = np.sort(rng.integers(0, len(data) + 1, int(rng.integers(0, 6))))
    parts = [data.iloc[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    which, odd = int(rng.integers(len(parts))), rng.random()
    names = [any_of(("part-{}", "p{:03}", "{}", "\x1b[31m{}", "=cmd|{}"), rng)] * len(parts)
    for number, (part, name) in enumerate(zip(parts, names, strict=True)):
        own = _other_part(part, rng) if number == which and odd < 0.4 else part
        if number == which and 0.4 <= odd < 0.5:
            content = _bomb(part, rng)
        else:
            content = _stored(own, compression=any_of((None, "snappy", "zstd"), rng))
        if number == which and 0.5 <= odd < 0.75:
            content = damaged(content, rng)
        (folder / f"{name.format(number)}.parquet").write_bytes(content)
    if odd >= 0.7:
        _beside(case, folder, data)
    return folder, any_of(("fit", "fit", "release", "small", "dataset", "init"), rng)


def _beside(case: Case, folder: Path, data: pd.DataFrame) -> None:
    """Put something beside the parts, or in the place of one."""
    rng = case.rng
    path = folder / any_of(("part-0.parquet", "z.parquet", ".x.parquet", "_m"), rng)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    kind = int(rng.integers(9))
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to(any_of(("/dev/zero", "/etc/passwd", "nowhere", ".", path.name), rng))
    elif kind == 2:
        path.mkdir()
        (path / "part.parquet").write_bytes(_stored(data))
    elif kind == 3:
        path.write_bytes(any_of((b"", b"PAR1", b"PAR1" * 3, data.to_csv().encode()), rng))
    elif kind == 4:
        other = case.write("other.parquet", _stored(data))
        path.symlink_to(other)
    elif kind == 5:
        content = _stored(data.iloc[:1])
        for k in range(int(10 ** rng.uniform(1, 3.3))):
            (folder / f"q{k}.parquet").write_bytes(content)
    elif kind == 6:
        path.write_bytes(_stored(data.iloc[:5]))
        path.chmod(0o000)
    elif kind == 7:
        (folder / ("9" * 200 + ".pq")).write_bytes(_stored(data.iloc[:2]))
    else:
        os.link(next(folder.iterdir(), __file__), path)


def _take_folder(case: Case, made: tuple[Path, str]) -> None:
    folder, use = made
    if use == "fit":
        plan = any_of((PLAN, _PLAIN), case.rng)
        missing: Any = any_of(("error", "drop", "level"), case.rng)
        fit = sr.fit(plan, folder, n_draws=20, seed=SECRET, missing=missing)
        case.said += [repr(fit), *fit.notes]
        out = case.folder / "out"
        fit.synthesize(1, seed=SECRET, out=out)
        _look_at_rights(case, out)
    elif use == "release":
        risk = sr.attribute_risk(case.good["large"], folder, out=case.folder / "risk", **OF_RISK)
        case.said += [str(risk.verdict(further=0)), *risk.notes]
        _look_at_rights(case, case.folder / "risk")
    elif use == "small":
        sr.attribute_risk(case.good["fitted"], folder, question="paper", guesses=3)
    elif use == "dataset":
        dataset: Any = None
        with contextlib.suppress(Exception):  # the user's own
            dataset = ds.dataset(str(folder), format="parquet")
        if dataset is not None:
            sr.fit(_PLAIN, dataset, n_draws=20, seed=SECRET, missing="drop")
    else:
        case.run("init", case.folder / "made", "--data", folder, "--sensitive", "Income")


def _look_at_rights(case: Case, folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if path.stat().st_mode & 0o077:
            case.problems.append(f"others may read {path.name}")


# -- parts of a risk ------------------------------------------------------------------------------
def _of_risk(folder: Path) -> dict[str, Any]:
    good = fitted(folder)
    other = good["fitted"].synthesize(1, seed=SECRET + 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, release in (("mine", good["release"]), ("theirs", other)):
            sr.attribute_risk(good["fitted"], release, out=folder / name, **OF_RISK)
    wanted = sr.attribute_risk(good["fitted"], good["release"], **OF_RISK).summary()
    return {**good, "wanted": wanted, "folder": folder}


_NOTES = (
    b"", b"null", b"[]", b"9" * 5_000, b"[" * 100_000, b'{"a":' * 50_000, b"NaN", b"\xff",
    b'{"format": 1, "format": 2}', b'{"format": 1, "n_parts": 1e999}', b" " * (1 << 20),
)  # fmt: skip


def _make_parts(case: Case) -> Path:
    rng, out = case.rng, case.folder / "risk"
    shutil.copytree(case.good["folder"] / "mine", out)
    for _ in range(int(rng.integers(1, 4))):
        name = any_of(("part-000000.parquet", "part-000000.json", "parts.json"), rng)
        path = out / name
        before = path.read_bytes() if path.is_file() and not path.is_symlink() else b"x"
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if rng.random() < 0.4:
            _put_instead(case, path)
        elif rng.random() < 0.3:
            path.write_bytes(before)
            more = ("part-000001.parquet", "part-999999.json", ".synrisk-1-aaaaaaaa")
            theirs = ("notes.txt", "\x1b[2J", "part-1.parquet", "x\n")
            (out / any_of((*more, *theirs), rng)).write_bytes(before)
        elif rng.random() < 0.5:
            path.write_bytes(damaged(before, rng))
        elif name.endswith(".json"):
            path.write_bytes(_other_note(before, rng))
    return out


def _put_instead(case: Case, path: Path) -> None:
    """Put a link, a folder, a pipe or another run's part in the place of a file."""
    rng, kind = case.rng, int(case.rng.integers(4))
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to(any_of(("/dev/zero", "/etc/passwd", "nowhere", path.name), rng))
    elif kind == 2:
        path.mkdir()
    else:
        path.write_bytes((case.good["folder"] / "theirs" / path.name).read_bytes())


def _other_note(before: bytes, rng: np.random.Generator) -> bytes:
    """Return what stands beside a part with something of it changed, or something else."""
    tree = None
    with contextlib.suppress(ValueError):
        tree = json.loads(before)
    if not isinstance(tree, dict) or rng.random() < 0.4:
        return bytes(any_of(_NOTES, rng))
    damaged_tree(tree, rng)
    return json.dumps(tree).encode()


def _take_parts(case: Case, out: Path) -> None:
    others = {path: path.read_bytes() for path in out.iterdir() if _is_theirs(path)}
    risk = sr.attribute_risk(case.good["fitted"], case.good["release"], out=out, **OF_RISK)
    if not risk.summary().equals(case.good["wanted"]):
        case.problems.append("other numbers than without a folder")
    case.said += [str(risk.verdict(further=0)), *risk.notes]
    if any(not path.is_file() or path.read_bytes() != was for path, was in others.items()):
        case.problems.append("somebody's file in the folder was changed or is gone")
    if case.rng.random() < 0.3:  # while the result lives
        part = out / "part-000000.parquet"
        part.write_bytes(damaged(part.read_bytes(), case.rng))
        risk.summary()
        case.problems.append("numbers of a file that has changed")


def _is_theirs(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(("part", ".synrisk-"))


# -- words for executors --------------------------------------------------------------------------
_WORDS: tuple[Any, ...] = (
    *HOSTILE_NAMES, *HOSTILE_VALUES, 2.0, -1, 10**6, 10**400, 2**63, "THREADS", "process", "dask",
    "tcp://", "tcp://[", "tcp://[::1", "tcp://a\x00b", "tcp://\ud800", "tcp://" + "a" * 5_000,
    "tcp://127.0.0.1:99999", "tcp://127.0.0.1:-1", "tcp://127.0.0.1:x", "tcp://127.0.0.1:1/../x",
    "tls://127.0.0.1:1", "ws://127.0.0.1:1", "wss://", "ucx://127.0.0.1:1", "inproc://1/2/3",
    "tcp://127.0.0.1:1", "tcp://a b:1", "tcp://user:word@127.0.0.1:1", "http://x/", "tcp:///etc",
    "tcp://[::1]:1", "tcp://127.0.0.1:1?x=1", "file:///etc/passwd", "tcp://\x1b[2J", "unix://x",
)  # fmt: skip


def _make_word(case: Case) -> tuple[Any, str]:
    word = any_of(_WORDS, case.rng)
    if isinstance(word, str) and word.isprintable() and case.rng.random() < 0.2:
        at = int(case.rng.integers(len(word) + 1))
        word = word[:at] + any_of(HOSTILE_NAMES, case.rng) + word[at:]
    return word, any_of(("call", "study", "processes"), case.rng)


def _use_word(case: Case, made: tuple[Any, str]) -> None:
    word, how = made
    if how == "call":
        workers(word)
    elif how == "processes":
        sr.Processes(word)
    else:
        said = json.dumps(word) if isinstance(word, str) else str(word).lower()
        text = (
            '[data]\nfile = "people.csv"\n[[model]]\nformula = "Income ~ 1"\n'
            f"[engine]\nexecutor = {said}\n" + any_of(("", f"workers = {said}\n"), case.rng)
        )
        study = read_study(case.write("study.toml", text.encode(errors="replace")))
        if isinstance(study.executor, str):
            workers(study.executor)


ATTACKS = {
    "folders": Attack(_folder, _make_folder, _take_folder, 3.0),
    "parts of a risk": Attack(_of_risk, _make_parts, _take_parts, 1.5),
    "executors": Attack(lambda folder: {"folder": folder}, _make_word, _use_word, 0.5),
}
