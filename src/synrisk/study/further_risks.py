"""What a study may ask of its release beside the attribute risk: an audit, identification risk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from synrisk.assessment.attribute_result import ReportKind
from synrisk.assessment.audit_result import Audit
from synrisk.assessment.identification_risk import IdentificationRisk, identification_risk
from synrisk.assessment.two_file_audit import audit
from synrisk.base.errors import FileError, SynriskError
from synrisk.data.output_files import sha256
from synrisk.data.schema import require_columns
from synrisk.study.folder import Staging
from synrisk.study.study import AUDIT, BY_MODELS, IDENTIFICATION, Study, attempt
from synrisk.synthesis.synthesizer import Synthesizer
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.verdict import Verdict

PAGES = {"sharing": "audit.html", "inside": "audit-inside.html"}  # each with .json beside
_RESULTS: dict[str, Any] = {AUDIT: Audit, IDENTIFICATION: IdentificationRisk}
_DAMAGED = "What the manifest says of further risks is damaged; run the study again."
_TITLES = {AUDIT: "audit of the release", IDENTIFICATION: "identification risk"}


@dataclass(frozen=True, eq=False, repr=False)
class FurtherRisk:
    """One further risk of a study's release.

    Attributes
    ----------
    name
        "audit" or "identification".
    found
        What was found.
    verdict
        Whether its limits are kept.
    """

    name: str
    found: Audit | IdentificationRisk
    verdict: Verdict

    @property
    def title(self) -> str:
        """It in words."""
        return _TITLES[self.name]

    def write_results(self, staging: Staging) -> None:
        """Write the numbers."""
        self.found.save(staging.path(f"{self.name}.nc"))
        with staging.create(f"{self.name}.csv") as file:
            self.found.records.to_csv(file, index_label="record", mode="wb")

    def write_pages(self, staging: Staging, kinds: Sequence[str], title: str, rows: str) -> None:
        """Write the reports, if there are any of its kind."""
        if not isinstance(self.found, Audit):
            return
        for kind in kinds:
            self.found.report(
                staging.path(PAGES[kind]),
                kind=cast("ReportKind", kind),
                criteria=self.verdict.criteria,
                title=f"{title}: {self.title}",
                rows=rows,
            )

    def to_json(self) -> dict[str, Any]:
        """Return what was found, for machines."""
        return {
            "verdict": self.verdict.to_json(),
            "summary": {str(of): plain_numbers(row) for of, row in self.found.summary().iterrows()},
            "notes": list(self.found.notes),
        }


def plain_numbers(row: Mapping[Any, Any] | pd.Series[Any]) -> dict[str, float | str | None]:
    """Return text, and numbers with None for NaN, which JSON does not have."""
    return {
        str(key): v if isinstance(v, str) else float(v) if np.isfinite(v) else None
        for key, v in row.items()
    }


def further_names(study: Study) -> Iterator[str]:
    """Yield the files that further risks write."""
    for name in study.further:
        yield from (f"{name}.nc", f"{name}.csv")
    if AUDIT in study.further:
        yield from page_names(study.kinds)


def page_names(kinds: Sequence[str]) -> Iterator[str]:
    """Yield what the audit's reports and their facts are called."""
    for kind in kinds:
        yield from (PAGES[kind], str(Path(PAGES[kind]).with_suffix(".json")))


def check_further(study: Study, frame: pd.DataFrame, what: str) -> None:
    """Raise where a named column is not in the data, before any work."""
    for name, asked in study.further.items():
        for key in ("keys", "sensitive", "known", "synthesized"):
            for k, column in enumerate(asked.options.get(key) or ()):
                at = (study.top.section(name), key, k)
                attempt(at, require_columns, frame, [column], what)


def evaluate_further(
    study: Study, name: str, synthesizer: Synthesizer, release: Sequence[Any], seed: int
) -> FurtherRisk:
    """Return a further risk of the release."""
    asked, at = study.further[name], (study.top.section(name),)
    data = synthesizer.data
    found: Audit | IdentificationRisk
    if name == AUDIT:
        types = {column: of for column, of in study.types.items() if column in data.columns}
        found = attempt(
            at, audit, data, list(release), types=types, seed=seed, progress=False, **asked.options
        )
    else:
        options = dict(asked.options)
        by = options.pop("by")
        made_here = all(model.fit is not None for model in synthesizer.models)
        if by == BY_MODELS or (by is None and made_here):
            options["synthesizer"] = synthesizer
        found = attempt(at, identification_risk, data, list(release), **options)
    verdict = attempt((*at, "criteria"), found.verdict, asked.criteria, rows=study.rows)
    return FurtherRisk(name, found, verdict)


def further_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the further risks that a manifest names, with their limits."""
    further = manifest.get("further") or {}
    if not isinstance(further, Mapping):
        raise FileError(_DAMAGED)
    return further


def load_further(folder: Path, manifest: Mapping[str, Any], rows: str) -> list[FurtherRisk]:
    """Return the further risks that a folder holds."""
    loaded = []
    for name, criteria in further_of(manifest).items():
        path = folder / f"{name}.nc"
        if name not in _RESULTS or not path.is_file():
            raise FileError(f"{path} is not there; run the study again.")
        if sha256(path) != manifest["outputs"].get(path.name):
            raise FileError(f"{path} is not the file that synrisk run wrote; run it again.")
        found = _RESULTS[name].load(path)
        loaded.append(FurtherRisk(name, found, found.verdict(_limits(criteria), rows=rows)))
    return loaded


def _limits(criteria: Any) -> Criteria:
    with contextlib.suppress(SynriskError, TypeError, ValueError, AttributeError):
        return Criteria.from_json(criteria)
    raise FileError(_DAMAGED)
