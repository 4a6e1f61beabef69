"""The confidential data of a study: read, and held to its models before any work."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pandas as pd

from synrisk.base.errors import (
    counted,
)
from synrisk.data.frames import read_table
from synrisk.data.households import load_households
from synrisk.data.partitions import partitions
from synrisk.data.schema import check_types, require_columns, text_columns
from synrisk.data.toml import Section
from synrisk.models.plan import Regression
from synrisk.study.further_risks import (
    check_further,
)
from synrisk.study.study import Study, attempt
from synrisk.synthesis.confidential import Confidential

WHAT = "The confidential data"


def read_data(study: Study) -> pd.DataFrame | Path:
    """Return the confidential data, or the folder of their parts; columns are checked."""
    if not study.in_parts:
        frame = _read_frame(study)
        _check_models(study, frame)
        _check_analyses(study, frame)
        check_further(study, frame, WHAT)
        return frame
    folder = cast("Path", study.data)
    table = attempt((study.top.section("data"), "file"), partitions, folder, WHAT)
    for model, regression in zip(study.top.sections("model"), study.regressions, strict=True):
        attempt((model, "formula"), table.require, _columns(regression))
        if regression.weights is not None:
            attempt((model, "weights"), table.require, [regression.weights])
    return folder


def _read_frame(study: Study) -> pd.DataFrame:
    section = study.top.section("data")
    if isinstance(study.data, Path):
        text = attempt((section, "types"), text_columns, study.types)
        if study.id is not None:
            text = {study.id: [], **text}
        frame = attempt((section, "file"), read_table, study.data, WHAT, text=text)
    else:
        frame = load_households()
    for name, declared in study.types.items():
        attempt((section, "types", name), check_types, {name: declared}, frame)
    if study.id is not None:
        attempt((section, "id"), require_columns, frame, [study.id], WHAT)
        n_repeated = int(frame[study.id].duplicated().sum())
        if n_repeated:
            section.refuse(
                f"repeats {counted(n_repeated, 'label')}; every record needs its own.", "id"
            )
    for k, name in enumerate(study.drop):
        attempt((section, "drop", k), require_columns, frame, [name], WHAT)
    return frame.drop(columns=list(study.drop))


def _check_models(study: Study, frame: pd.DataFrame) -> None:
    """Raise where the data do not suit a model, and say which."""
    for model, regression in zip(study.top.sections("model"), study.regressions, strict=True):
        used = [name for name in study.drop if name in _columns(regression)]
        if used:
            model.refuse(f"uses {used[0]!r}, which is left out (data.drop).", "formula")
        if regression.weights is not None:
            attempt((model, "weights"), require_columns, frame, [regression.weights], WHAT)
        _check_formula(study, model, regression, frame)


def _check_analyses(study: Study, frame: pd.DataFrame) -> None:
    """Raise where the data do not suit an analysis of the utility, before any work."""
    if study.utility is None:
        return
    section = study.top.section("utility")
    for k, name in enumerate(study.utility["variables"] or ()):
        attempt((section, "variables", k), require_columns, frame, [name], WHAT)
    analyses = study.utility["regressions"] or ()
    for one, regression in zip(section.sections("regression"), analyses, strict=True):
        _check_formula(study, one, regression, frame)


def _check_formula(
    study: Study, section: Section, regression: Regression, frame: pd.DataFrame
) -> None:
    """Raise where the data do not suit a formula, and say where it stands.

    Its own columns alone are read, since models may be many; all where one is not there, for the
    message to name the nearest.
    """
    others = (regression.weights, study.id)
    used = [*_columns(regression), *(name for name in others if name is not None)]
    types = study.types
    if all(name in frame.columns for name in used):
        frame = frame[list(dict.fromkeys(used))]
        types = {name: types[name] for name in used if name in types}
    attempt(
        (section, "formula"),
        Confidential.read,
        regression,
        frame,
        types=types,
        id_column=study.id,
        missing=study.missing,
    )


def _columns(regression: Regression) -> tuple[str, ...]:
    return (regression.response, *regression.parsed.predictors)
