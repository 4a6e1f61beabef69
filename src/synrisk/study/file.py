"""The study file: what it says, checked before any work; a message names file, line and key.

Keys are few, and a key that is not known is refused. Paths are relative to the file. Formulas are
parsed, never run (`formula`).
"""

from __future__ import annotations

import os
from pathlib import Path

from synrisk.data.toml import Section, read_settings
from synrisk.models.plan import Plan
from synrisk.study.model_sections import (
    data_source,
    declared_types,
    executor_of,
    fit_options,
    missing_policies,
    models_of,
    synthesis_options,
)
from synrisk.study.risk_sections import criteria_of, further_risks_of, risk_options, utility_options
from synrisk.study.study import AUDIT, IDENTIFICATION, Study
from synrisk.verdict.reasons import CALLED

REPORT_KINDS = ("sharing", "inside", "both")
_TOP = (
    "title",
    "rows",
    "seed",
    "output",
    "data",
    "model",
    "fit",
    "synthesis",
    "risk",
    "utility",
    "audit",
    "identification",
    "criteria",
    "report",
    "engine",
)


def read_study(path: str | os.PathLike[str]) -> Study:
    """Read and check a study file."""
    top = read_settings(path, "The study")
    top.refuse_unknown(_TOP)
    source = Path(path)
    folder = source.parent
    data = top.section("data")
    regressions, draws, rename = models_of(top, folder)
    fit = fit_options(top.section("fit"), foreign=draws is not None)
    synthesis, source_of_data = top.section("synthesis"), data_source(data, folder)
    in_parts = isinstance(source_of_data, Path) and source_of_data.is_dir()
    if in_parts:
        _refuse_what_parts_lack(top)
    m, seed, stored, files = synthesis_options(synthesis, folder, in_parts=in_parts)
    variables = Plan.of(regressions).synthesized
    report = top.section("report")
    report.refuse_unknown(("kind", "title"))
    kind = report.choice("kind", REPORT_KINDS, "both")
    title = report.text("title") or top.text("title") or "Attribute disclosure risk"
    return Study(
        path=source,
        top=top,
        title=title,
        rows=top.text("rows") or CALLED,
        seed=top.whole("seed", least=None),
        output=_output(top, folder),
        data=source_of_data,
        id=data.text("id"),
        types=declared_types(data),
        missing=missing_policies(data),
        drop=tuple(data.texts("drop") or ()),
        release=tuple(data.texts("release") or ()),
        regressions=regressions,
        draws=draws,
        rename=rename,
        fit=fit,
        m=m,
        synthesis_seed=seed,
        format=stored,
        files=files,
        risk=risk_options(top.section("risk"), variables),
        utility=utility_options(top),
        further=dict(further_risks_of(top, folder, variables)),
        criteria=criteria_of(top, folder, variables),
        kinds=kinds_of(kind),
        executor=executor_of(top.section("engine")),
    )


def kinds_of(kind: str) -> tuple[str, ...]:
    """Return the reports that a word stands for."""
    return ("sharing", "inside") if kind == "both" else (kind,)


def _refuse_what_parts_lack(top: Section) -> None:
    """Raise for settings that need the data in memory."""
    data, risk = top.section("data"), top.section("risk")
    for key in ("id", "drop", "release"):
        if key in data.values:
            data.refuse(
                "is for a table in memory. Of a folder of Parquet files only the columns of the "
                "formulas are read and released, and records are called by their numbers, from 0.",
                key,
            )
    for key in ("utility", AUDIT, IDENTIFICATION):
        if key in top.values:
            top.refuse(
                "needs the data in memory, and a folder of Parquet files is read in parts: leave "
                "it out, or name one file.",
                key,
            )
    synthesis = top.section("synthesis")
    if synthesis.values.get("format") == "csv":
        synthesis.refuse("datasets of data in parts are folders of Parquet files.", "format")
    if risk.values.get("on_unreliable") == "fit":
        risk.refuse(
            'of data in parts no record is fitted anew; use "flag" or "raise".', "on_unreliable"
        )
    if risk.values.get("joint") == "keep":
        risk.refuse("of data in parts no joint posteriors are kept.", "joint")


def _output(top: Section, folder: Path) -> Path:
    """Return the folder of the results: one of its own, so that its owner alone can read it."""
    output = folder / (top.text("output") or "results")
    own, results, problem = folder.resolve(), output, ""
    try:
        results = output.resolve()
        results.exists()  # a name that is too long is noticed here
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except (RuntimeError, ValueError):
        problem = "it is a circle of links, or no folder can have this name"
    if problem:
        top.refuse(f"cannot be the folder of the results: {problem}.", "output")
    if results == own or results in own.parents:
        what = "is the folder of the study itself" if results == own else "holds the study's folder"
        top.refuse(
            f"{what}; the results are for their owner alone, and need a folder of their own, such "
            'as output = "results".',
            "output",
        )
    return output
