"""Reports of a folder made anew, from what an earlier run wrote there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synrisk.assessment.attribute_result import AttributeRisk
from synrisk.base.errors import (
    FileError,
    SynriskError,
)
from synrisk.base.progress import steps
from synrisk.data.output_files import sha256
from synrisk.data.part_files import CONTENTS
from synrisk.study.folder import (
    about_mode,
    read_manifest,
    writing,
)
from synrisk.study.further_risks import (
    further_of,
    load_further,
    page_names,
)
from synrisk.study.results import (
    REPORTS,
    RISK,
    SUMMARY,
    UTILITY,
    Done,
    report_names,
    write_findings,
)
from synrisk.study.study import AUDIT
from synrisk.study.unfinished import RISK_PARTS
from synrisk.utility import Utility
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.reasons import CALLED


def report(
    folder: Path,
    *,
    kinds: tuple[str, ...] = (),
    criteria: Criteria | None = None,
    title: str | None = None,
    progress: bool = False,
) -> Done:
    """Make the reports of a folder anew from the risk that is saved in it.

    Parameters
    ----------
    folder
        What `run` wrote.
    kinds
        Reports to write beside those that are there.
    criteria, title
        The limits and the title; None keeps those of the last time.
    progress
        Whether to show what is being done, if standard error is a terminal.
    """
    manifest = _whole_manifest(folder)
    # All reports of a folder are made anew, so that they agree.
    chosen = tuple(kind for kind in REPORTS if kind in {*manifest["kinds"], *kinds})
    title = title or str(manifest["title"])
    if criteria is None:
        criteria = _criteria_of(folder, manifest)
    rows = str(manifest.get("rows", CALLED))
    names = [SUMMARY, *(name for kind in chosen for name in report_names(kind))]
    if AUDIT in further_of(manifest):
        names += page_names(chosen)
    synthetic, said = _synthetic_of(folder, manifest)
    with writing(folder, names, keep=True) as staging, steps(progress) as show:
        if read_manifest(folder) != manifest:
            raise FileError(f"Another run has written to {folder} meanwhile; try again.")
        with show("Reading the risk"):
            risk = AttributeRisk.load(folder / RISK)
            measured = _measured(folder, manifest)
            further = load_further(folder, manifest, rows)
        with show("Writing the report"):
            verdict = write_findings(
                staging, risk, synthetic, chosen, criteria, title, rows, measured, further
            )
        manifest |= {
            "title": title,
            "criteria": None if criteria is None else criteria.to_json(),
            "kinds": list(chosen),
        }
        staging.commit(manifest)
    note = about_mode(folder)
    said = (*said, note) if note else said
    return Done(folder, title, risk, verdict, chosen, said, measured, tuple(further))


def _whole_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder whose risk is as it was written."""
    if not folder.is_dir():
        raise FileError(f"There is no folder {folder}.")
    manifest = read_manifest(folder)
    if manifest is None or not _is_of_a_run(manifest):
        raise FileError(f"{folder} was not written by synrisk run: it has no manifest of one.")
    if not manifest.get("complete"):
        raise FileError(f"The last run into {folder} was stopped while it moved its files; rerun.")
    if f"{RISK_PARTS}/{CONTENTS}" in manifest["outputs"]:
        raise FileError(
            f"The risk in {folder} lies in parts. Change the study, and run it with --resume: its "
            "reports are made anew, and parts that fit are not evaluated again."
        )
    if not (folder / RISK).is_file() or sha256(folder / RISK) != manifest["outputs"].get(RISK):
        raise FileError(f"{folder / RISK} is not the file that synrisk run wrote; run it again.")
    return manifest


def _is_of_a_run(manifest: Mapping[str, Any]) -> bool:
    """Tell whether a manifest has what `report` needs, each of the right kind."""
    title, kinds = manifest.get("title"), manifest.get("kinds")
    synthetic = manifest.get("synthetic")
    return (
        isinstance(title, str)
        and isinstance(kinds, list)
        and all(kind in tuple(REPORTS) for kind in kinds)
        and "criteria" in manifest
        and isinstance(synthetic, list)
        and all(
            isinstance(one, dict) and all(isinstance(one.get(k), str) for k in ("file", "sha256"))
            for one in synthetic
        )
    )


def _criteria_of(folder: Path, manifest: Mapping[str, Any]) -> Criteria | None:
    """Return the limits that a folder was judged by."""
    if manifest["criteria"] is None:
        return None
    with contextlib.suppress(SynriskError, TypeError, ValueError, AttributeError):
        return Criteria.from_json(manifest["criteria"])
    raise FileError(f"The criteria in the manifest of {folder} are damaged; run it again.")


def _synthetic_of(
    folder: Path, manifest: Mapping[str, Any]
) -> tuple[list[Path] | None, tuple[str, ...]]:
    """Return the release that was evaluated, or None and why."""
    paths = [folder / one["file"] for one in manifest["synthetic"]]
    if all(path.is_file() for path in paths):
        for path, one in zip(paths, manifest["synthetic"], strict=True):
            if sha256(path) != one["sha256"]:
                raise FileError(
                    f"{path} has changed since its risk was evaluated; run the study again."
                )
        return paths, ()
    said = "The synthetic data are not where they were; the report is without their distributions."
    return None, (said,)


def _measured(folder: Path, manifest: Mapping[str, Any]) -> Utility | None:
    """Return the utility that a folder holds, or None where it was not measured."""
    digest = manifest["outputs"].get(UTILITY)
    if digest is None:
        return None
    path = folder / UTILITY
    if not path.is_file() or sha256(path) != digest:
        raise FileError(f"{path} is not the file that synrisk run wrote; run it again.")
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        return Utility.from_json(json.loads(path.read_text(encoding="utf-8")))
    raise FileError(f"{path} cannot be read; run it again.")
