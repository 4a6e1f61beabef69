"""Sections of a study file on data, models, fits, synthesis, and what runs the work."""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast, get_args

from synrisk.base.dask_cluster import is_address, is_here
from synrisk.base.errors import SynriskError, listed, nearest
from synrisk.base.messages import toml_text
from synrisk.base.workers import ENGINES, Processes
from synrisk.data.parquet_folders import parquet_files
from synrisk.data.schema import (
    MISSING_BY_COLUMN,
    MISSING_POLICIES,
    Missing,
    MissingOfOne,
)
from synrisk.data.toml import Section
from synrisk.models.families import FAMILIES
from synrisk.models.plan import Plan, Regression
from synrisk.models.priors import PRIORS, Conjugate, Exponential, Normal
from synrisk.study.study import attempt
from synrisk.synthesis.synthesizer import EngineName

SAMPLES = ("households",)
FORMATS = ("csv", "parquet")
# Beyond what anybody synthesizes or releases; every dataset and every model has files of its own.
_MOST_MODELS, _MOST_DATASETS = 1_000, 1_000
_SCHEDULER = "SYNRISK_SCHEDULER"  # the environment variable that names a cluster beside a study
# Of a family, and what they mean.
_OPTIONS = {
    "step": "what values are multiples of",
    "lower": "the smallest value that is possible",
    "upper": "the largest value that is possible",
    "trials": "how many trials everybody has",
}


def data_source(section: Section, folder: Path) -> Path | str:
    """Return the file or folder of the confidential data, or the name of a built-in sample."""
    section.refuse_unknown(("file", "sample", "id", "types", "missing", "drop", "release"))
    name, sample = section.text("file"), section.text("sample")
    if (name is None) == (sample is None):
        section.refuse(
            'name the confidential data by file = "people.csv"'
            + (", or a built-in sample" if name is None else ", or the sample, not both")
            + "."
        )
    if name is not None:
        in_parts = (folder / name).is_dir()
        return (_folder_of_parts if in_parts else file_beside)(section, folder, name, "file")
    return section.choice("sample", SAMPLES, "")


def missing_policies(data: Section) -> Missing:
    """Return what is done about missing values: of all columns, or of some by name."""
    if not isinstance(data.values.get("missing"), dict):
        return cast("Missing", data.choice("missing", MISSING_POLICIES, "error"))
    by_column = data.section("missing")
    return {
        name: cast("MissingOfOne", by_column.choice(name, MISSING_BY_COLUMN, "error"))
        for name in by_column.values
    }


def declared_types(data: Section) -> dict[str, Any]:
    """Return what the file says of columns: a type, levels, or a range."""
    types = data.section("types")
    found: dict[str, Any] = {}
    for name, declared in types.values.items():
        levels = isinstance(declared, list) and all(
            isinstance(one, str | int) and not isinstance(one, bool) for one in declared
        )
        if isinstance(declared, dict):
            own = types.section(name)
            own.refuse_unknown(("range",))
            if "range" not in declared:
                own.refuse("lacks range = [low, high].")
            found[name] = ends_of(own, "range")
        elif isinstance(declared, str) or levels:
            found[name] = declared
        else:
            types.refuse(
                'must be "category", "numeric", a list of levels, or { range = [low, high] }.', name
            )
    return found


def file_beside(section: Section, folder: Path, name: str, *keys: str | int) -> Path:
    """Return a file that is named relative to the study; it must be there."""
    path = folder / name
    if not path.is_file():
        section.refuse(f"there is no file {name} beside the study.", *keys)
    return path


def _folder_of_parts(section: Section, folder: Path, name: str, *keys: str | int) -> Path:
    """Return a folder of Parquet files."""
    path = folder / name
    if not parquet_files(path):
        others = sorted({one.suffix.lower() for one in path.iterdir() if one.suffix})
        found = f"holds files of {listed(others)}" if others else "is empty"
        section.refuse(
            f"the folder {name} {found}; a folder is read as Parquet files (.parquet). Name one "
            "file of another kind, or store the table as Parquet.",
            *keys,
        )
    return path


def models_of(
    top: Section, folder: Path
) -> tuple[tuple[Regression, ...], tuple[Path, ...] | None, dict[str, dict[str, str]]]:
    """Return the plan, the files of draws if they were made elsewhere, and what these rename."""
    models = top.sections("model")
    if not models:
        top.refuse("there is no [[model]]; give one for each variable to synthesize, in order.")
    if len(models) > _MOST_MODELS:
        top.refuse(f"a study has at most {_MOST_MODELS:,} models; got {len(models):,}.", "model")
    regressions: list[Regression] = []
    draws: list[Path] = []
    rename: dict[str, dict[str, str]] = {}
    for model in models:
        model.refuse_unknown(
            ("formula", "family", *_OPTIONS, "prior", "weights", "draws", "rename")
        )
        regression = regression_of(model)
        regressions.append(regression)
        file = model.text("draws")
        if file is not None:
            draws.append(file_beside(model, folder, file, "draws"))
            if "prior" in model.values:
                model.refuse("draws were made elsewhere, so there is no prior to choose.", "prior")
        if "rename" in model.values:
            if file is None:
                model.refuse("renames the columns of draws, and there are none.", "rename")
            names = model.section("rename")
            rename[regression.response] = {name: str(names.text(name)) for name in names.values}
    if draws and len(draws) < len(models):
        lacks = next(model for model in models if "draws" not in model.values)
        lacks.refuse("has no draws, but other models have: give them for all models, or for none.")
    _check_sequence(models, regressions)
    return tuple(regressions), tuple(draws) or None, rename


def _check_sequence(models: Sequence[Section], regressions: Sequence[Regression]) -> None:
    """Raise where models do not follow from each other, and say which is the first."""
    if _is_sequence(regressions):
        return
    lengths = range(1, len(models) + 1)
    # What is wrong stays wrong with more models after it, so the first is found by halving.
    position = bisect_left(lengths, True, key=lambda n: not _is_sequence(regressions[:n]))
    regression = regressions[position]
    for earlier, other in zip(models, regressions[:position], strict=False):
        if regression.response == other.response:
            attempt((models[position], "formula"), Plan.of, [other, regression])
        if regression.response in other.parsed.predictors:  # the earlier one is wrong
            attempt((earlier, "formula"), Plan.of, [other, regression])
    attempt((models[position], "formula"), Plan.of, regressions[: position + 1])


def _is_sequence(regressions: Sequence[Regression]) -> bool:
    with contextlib.suppress(SynriskError):
        Plan.of(regressions)
        return True
    return False


def regression_of(model: Section) -> Regression:
    """Return the regression of a table with a formula and a family."""
    formula, family = model.text("formula"), model.text("family", "gaussian")
    if formula is None:
        model.refuse('lacks its formula, such as formula = "LogIncome ~ LogExpenditure".')
    known = attempt((model, "family"), Regression, "y ~ 1", str(family)).distribution
    for option, meaning in _OPTIONS.items():
        if option not in model.values:
            continue
        if option not in {one.name for one in fields(known)}:
            having = [one.name for one in FAMILIES if option in {o.name for o in fields(one)}]
            names = listed(map(toml_text, having), len(having))
            model.refuse(f"is for family = {names}: {meaning}.", option)
        known = attempt((model, option), replace, known, **{option: model.values[option]})
    prior, weights = _prior(model), model.text("weights")
    return attempt(
        (model, "formula"), Regression, str(formula), known, prior=prior, weights=weights
    )


def fit_options(section: Section, *, foreign: bool) -> dict[str, Any]:
    """Return the options of `synrisk.fit`."""
    section.refuse_unknown(("n_draws", "prior", "engine"))
    if foreign and section.values:
        section.refuse("the draws were made elsewhere, so nothing is fitted; leave [fit] out.")
    return {
        "n_draws": section.whole("n_draws", 1000),
        "prior": _prior(section) or "default",
        "engine": section.choice("engine", get_args(EngineName), "auto"),
    }


def _prior(section: Section) -> Any:
    """Return a prior: a word, numbers for all coefficients, or tables by parameter."""
    value = section.values.get("prior")
    if value is None or isinstance(value, str):
        return None if value is None else section.choice("prior", PRIORS, "default")
    prior = section.section("prior")
    if value and all(isinstance(one, dict) for one in value.values()):
        return {name: _one_prior(prior.section(name), own=True) for name in value}
    return _one_prior(prior, own=False)


def _one_prior(section: Section, *, own: bool) -> Any:
    keys = set(section.values)
    kinds: dict[frozenset[str], Any] = {frozenset({"mean", "sd"}): Normal}
    if own:
        kinds[frozenset({"rate"})] = Exponential
    else:
        kinds[frozenset({"scale", "df"})] = Conjugate
    kind = kinds.get(frozenset(keys))
    if kind is None:
        other = "{ rate = 1 } for sigma" if own else "{ scale = 10, df = 1 } (conjugate)"
        section.refuse(f"must be {{ mean = 0, sd = 2 }}, or {other}.")
    return attempt((section,), kind, **section.values)


def synthesis_options(
    section: Section, folder: Path, *, in_parts: bool
) -> tuple[int, int | None, str, tuple[Path, ...] | None]:
    """Return how many datasets there are, their seed, their format, and files that are given."""
    section.refuse_unknown(("m", "seed", "format", "files"))
    names = section.texts("files")
    if names is not None:
        for key in ("m", "seed", "format"):
            if key in section.values:
                section.refuse("the synthetic data are given by files; leave this out.", key)
        files = tuple(
            (_folder_of_parts if in_parts and (folder / name).is_dir() else file_beside)(
                section, folder, name, "files", k
            )
            for k, name in enumerate(names)
        )
        return len(files), None, "csv", files
    m = section.whole("m", 1, most=_MOST_DATASETS) or 1
    seed = section.whole("seed", least=None)
    stored = section.choice("format", FORMATS, "parquet" if in_parts else "csv")
    return m, seed, stored, None


def executor_of(section: Section) -> Any:
    """Return what runs the work."""
    section.refuse_unknown(("executor", "workers"))
    executor = section.values.get("executor")
    if executor is None or isinstance(executor, int):
        executor = section.whole("executor")
    elif executor not in ENGINES and not (isinstance(executor, str) and is_address(executor)):
        section.refuse(
            f"must be {listed(map(toml_text, ENGINES))}, a number of threads, or the address of a "
            f'scheduler of Dask, such as "tcp://127.0.0.1:8786".{nearest(executor, ENGINES)}',
            "executor",
        )
    if isinstance(executor, str) and is_address(executor):
        _refuse_elsewhere(section, executor)
    n = section.whole("workers")
    if n is None:
        return executor
    if executor != "processes":
        section.refuse('is for executor = "processes": how many there are.', "workers")
    return attempt((section, "workers"), Processes, n)


def _refuse_elsewhere(section: Section, address: str) -> None:
    """Refuse the address of another machine, unless whoever runs the study names it too.

    The confidential data go there, and what answers there can run code here.
    """
    if not is_here(address) and os.environ.get(_SCHEDULER, "") != address:
        section.refuse(
            "is on another machine, to which the confidential data would go and which can run code "
            "on this one, and a study file alone does not decide that. If it is your own cluster, "
            f"set the environment variable {_SCHEDULER} to the same address.",
            "executor",
        )


def ends_of(section: Section, key: str = "within") -> tuple[float, float]:
    """Return the two ends of a range."""
    value = section.values[key]
    good = isinstance(value, list) and len(value) == 2
    if not good or any(isinstance(v, bool) or not isinstance(v, int | float) for v in value):
        section.refuse("must be [low, high]; -inf and inf leave a side open.", key)
    return float(value[0]), float(value[1])
