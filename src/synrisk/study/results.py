"""What a study's folder holds, and what is written whenever its reports are made."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import cast

from synrisk.assessment.attribute_result import AttributeRisk, ReportKind
from synrisk.study.folder import (
    Staging,
)
from synrisk.study.further_risks import (
    FurtherRisk,
    plain_numbers,
)
from synrisk.utility import Utility
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.verdict import Verdict

RISK, RECORDS, SUMMARY, UTILITY = "risk.nc", "records.csv", "summary.json", "utility.json"
REPORTS = {"sharing": "report.html", "inside": "report-inside.html"}  # each with .json beside
_VERSIONS = ("synrisk", "numpy", "numba", "pandas", "scipy")


@dataclass(frozen=True, repr=False)
class Done:
    """What a run made.

    Attributes
    ----------
    folder
        Where it is.
    title
        What the study is called.
    risk, verdict
        The risk; the verdict where there are criteria.
    kinds
        The reports that were written.
    warnings
        What else to know.
    utility
        How useful the release is, where that was measured.
    further
        The risks beside it that the study asks for.
    """

    folder: Path
    title: str
    risk: AttributeRisk
    verdict: Verdict | None
    kinds: tuple[str, ...]
    warnings: tuple[str, ...]
    utility: Utility | None = None
    further: tuple[FurtherRisk, ...] = ()

    @property
    def reports(self) -> dict[str, Path]:
        """The reports by kind."""
        return {kind: self.folder / REPORTS[kind] for kind in self.kinds}

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those of all risks."""
        own = () if self.verdict is None else (self.verdict,)
        return (*own, *(one.verdict for one in self.further))


def report_names(kind: str) -> tuple[str, str]:
    """Return what a report and its facts are called."""
    page = REPORTS[kind]
    return page, str(Path(page).with_suffix(".json"))


def versions() -> dict[str, str]:
    """Return the versions that the numbers depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _VERSIONS}}


def write_findings(
    staging: Staging,
    risk: AttributeRisk,
    synthetic: list[Path] | None,
    kinds: tuple[str, ...],
    criteria: Criteria | None,
    title: str,
    rows: str,
    measured: Utility | None,
    further: Sequence[FurtherRisk],
) -> Verdict:
    """Write the reports, and for machines what was found; return the verdict."""
    verdict = risk.verdict(criteria, rows=rows)
    for kind in kinds:
        risk.report(
            staging.path(REPORTS[kind]),
            kind=cast("ReportKind", kind),
            criteria=criteria,
            synthetic=synthetic,
            title=title,
            utility=measured,
            rows=rows,
        )
    for one in further:
        one.write_pages(staging, kinds, title, rows)
    staging.write_json(
        SUMMARY,
        {
            "title": title,
            "verdict": verdict.to_json(),
            "summary": {str(of): plain_numbers(row) for of, row in risk.summary().iterrows()},
            "estimator": risk.estimator,
            "n_datasets": risk.n_datasets,
            "n_draws": risk.n_draws,
            "notes": list(risk.notes),
            "findings": risk.diagnostics().to_dict("records"),
            "utility": None if measured is None else plain_numbers(measured.summary()["value"]),
            **{one.name: one.to_json() for one in further},
        },
    )
    return verdict
