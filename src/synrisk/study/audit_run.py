"""Audits from the command line: files in, a folder out; several folders side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from synrisk.assessment.attribute_result import ReportKind
from synrisk.assessment.audit_result import DEFAULT_CRITERIA, Audit
from synrisk.assessment.comparison import compare
from synrisk.assessment.comparison_result import Comparison
from synrisk.assessment.two_file_audit import audit
from synrisk.base.errors import FileError, OptionError
from synrisk.base.progress import steps
from synrisk.base.seeds import checked_seed
from synrisk.data.output_files import sha256
from synrisk.study.folder import check_folder, refuse_own_inputs, writing
from synrisk.study.further_risks import plain_numbers
from synrisk.study.results import RECORDS, REPORTS, SUMMARY, report_names, versions
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.verdict import Verdict

AUDIT = "audit.nc"


@dataclass(frozen=True, repr=False)
class Audited:
    """What an audit made.

    Attributes
    ----------
    audit, verdict
        What was found.
    folder
        Where it is; None where nothing was written.
    """

    audit: Audit
    verdict: Verdict
    folder: Path | None

    @property
    def reports(self) -> dict[str, Path]:
        """The reports by kind."""
        if self.folder is None:
            return {}
        return {kind: self.folder / name for kind, name in REPORTS.items()}


def run_audit(
    confidential: Path,
    synthetic: Sequence[Path],
    options: dict[str, Any],
    folder: Path | None = None,
    criteria: Criteria | None = None,
    rows: str = "records",
    *,
    progress: bool = False,
) -> Audited:
    """Audit files, and write what was found to a folder if there is one.

    Parameters
    ----------
    confidential, synthetic
        The files.
    options
        Of `audit`.
    folder
        Where to write.
    criteria
        The limits; by default those of `Audit.verdict`.
    rows
        What records are called.
    progress
        Whether to show what is being done, if standard error is a terminal.
    """
    options = {**options, "seed": checked_seed(options.get("seed"))}
    names = [AUDIT, RECORDS, SUMMARY, *(name for kind in REPORTS for name in report_names(kind))]
    holdout = options.get("holdout")
    files = [confidential, *synthetic, *([] if holdout is None else [Path(holdout)])]
    if folder is not None:
        refuse_own_inputs(folder, names, files)
        check_folder(folder, names)
    with steps(progress) as show, show("Auditing"):
        found = audit(confidential, list(synthetic), progress=progress, **options)
    verdict = found.verdict(criteria, rows=rows)
    if folder is None:
        return Audited(found, verdict, None)
    with writing(folder, names) as staging:
        found.save(staging.path(AUDIT))
        found.records.to_csv(staging.path(RECORDS), index_label="record")
        for kind, name in REPORTS.items():
            which = cast("ReportKind", kind)
            found.report(staging.path(name), kind=which, criteria=criteria, rows=rows)
        staging.write_json(
            SUMMARY,
            {
                "verdict": verdict.to_json(),
                "summary": {str(of): plain_numbers(row) for of, row in found.summary().iterrows()},
                "notes": list(found.notes),
            },
        )
        staging.commit(
            {
                "settings": {key: value for key, value in options.items() if key != "seed"}
                | {"holdout": None if holdout is None else str(holdout)},
                "criteria": verdict.criteria.to_json(),
                "rows": rows,
                "seeds": {"audit": options["seed"]},
                "versions": versions(),
                "inputs": {path.name: sha256(path) for path in files},
            }
        )
    return Audited(found, verdict, folder)


def compare_folders(
    paths: Sequence[Path], criteria: Criteria | None = None, *, progress: bool = False
) -> Comparison:
    """Compare audits that were saved.

    Parameters
    ----------
    paths
        Folders that hold one, or the files themselves.
    criteria
        The limits of a verdict on each; by default those of `Audit.verdict`.
    progress
        Whether to show what is being done, if standard error is a terminal.
    """
    if len(paths) < 2:
        raise OptionError("Name two audits or more: synrisk compare first second.")
    if len({str(path) for path in paths}) < len(paths):
        raise OptionError("An audit is named twice.")
    with steps(progress) as show, show("Comparing"):
        audits = {str(path): _saved(path) for path in paths}
        return compare(audits, criteria=DEFAULT_CRITERIA if criteria is None else criteria)


def _saved(path: Path) -> Audit:
    if path.is_dir() and not (path / AUDIT).exists():
        raise FileError(
            f"{path} holds no {AUDIT}: synrisk audit real.csv fake.csv --folder {path} makes one, "
            "and so does a study with [audit]."
        )
    return Audit.load(path / AUDIT if path.is_dir() else path)
