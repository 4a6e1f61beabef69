"""What a report on an audit says, as JSON has it; for sharing nothing that gives a record away."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from synrisk.audit.board_measure import BoardMeasures
from synrisk.audit.compared_files import Files
from synrisk.audit.copies import FALSE_ALARMS, FALSE_DISCOVERIES, Copies, about, chance
from synrisk.base.errors import OptionError, got, one_of
from synrisk.core.measures import JOINT, RecordMeasures
from synrisk.core.spread import Spread
from synrisk.data.frames import read_table
from synrisk.data.output_files import sha256
from synrisk.data.schema import Factor
from synrisk.report.bins import round_bins, whole_bins
from synrisk.report.facts import N_RISKIEST, today, told, versions
from synrisk.report.pictures import MOST_VARIABLES
from synrisk.report.shared import gains_in_bands
from synrisk.report.write import KINDS, digest_of_frame, targets_of, write_page
from synrisk.verdict.of_two_files import ASSUMED
from synrisk.verdict.verdict import Verdict

_TITLE = "Audit of a synthetic release"
_MOST_NAMED = 50
_WAYS = {
    "values": "numbers repeated to the last digit",
    "rounded": "numbers of few digits that repeat",
    "rows": "rows that agree in every column",
    "beside": "rows that agree, beside those that nearly do",
    "nearest": "the nearest row",
    "moved": "rows that may be people's own, moved a little",
}
_OF_RELEASE = "The values in the release itself, all datasets together."


@dataclass(frozen=True)
class Digest:
    """By what a table is known again."""

    what: str
    of: str
    sha256: str


def digest_of(what: str, source: Any) -> Digest:
    """Return the SHA-256 digest of a file, or of a frame as CSV."""
    if isinstance(source, str | os.PathLike):
        return Digest(what, "the file", sha256(source))
    frame = read_table(source, what)
    return Digest(what, "the frame as CSV, without its index", digest_of_frame(frame, index=False))


@dataclass(frozen=True, eq=False, repr=False)
class AuditSource:
    """What a report on an audit is made of.

    Attributes
    ----------
    files
        What was compared.
    measures, copies, verdict
        What was found.
    records, summary
        A row a record; a row a column.
    within
        What counts as the truth, in words, by column.
    notes
        What a reader should know.
    digests
        Of the confidential data first, then of the datasets.
    rows
        What records are called.
    board
        The measures that boards cite, of the first dataset; None where there are no keys.
    """

    files: Files
    measures: RecordMeasures
    copies: Copies
    verdict: Verdict
    records: pd.DataFrame
    summary: pd.DataFrame
    within: Mapping[str, str]
    notes: tuple[str, ...]
    digests: tuple[Digest, ...]
    rows: str
    board: BoardMeasures | None = None


def write_audit_report(
    path: str | os.PathLike[str], source: AuditSource, *, kind: Any, title: Any
) -> Path:
    """Write a report on an audit and the JSON beside it; return the report's path."""
    sharing = one_of("kind", kind, KINDS) == "sharing"
    if title is not None and not isinstance(title, str):
        raise OptionError(f"title must be text; got {got(title)}.")
    page, beside = targets_of(path)
    facts = {**_for_anyone(source, sharing=sharing), "title": title or _TITLE}
    if not sharing:
        facts |= _for_inside(source)
    write_page(page, beside, facts, f"audit_{kind}.html", owner_only=not sharing)
    return Path(path)


def _for_anyone(source: AuditSource, *, sharing: bool) -> dict[str, Any]:
    """Return what both kinds of report say."""
    files = source.files
    digests = source.digests[1:] if sharing else source.digests
    return {
        "kind": "sharing" if sharing else "inside",
        "date": today(),
        "verdict": told(source.verdict, sharing=sharing),
        "gains": gains_in_bands([source.measures], source.verdict),
        "evaluated": {
            "sensitive": list(files.sensitive),
            "known": None if files.keys is None else list(files.keys),
            "kept": list(files.kept),
            "n_datasets": len(files.release),
            "learnt": [f"{name}: {source.within[name] or 'exactly'}" for name in files.sensitive],
        },
        "assumed": ASSUMED,
        "false_alarms": f"{1 / FALSE_ALARMS:,.0f}",
        "figures": [_of_values(files, name) for name in files.sensitive[:MOST_VARIABLES]],
        "versions": versions(),
        "hashes": [vars(one) for one in digests],
    }


def _for_inside(source: AuditSource) -> dict[str, Any]:
    """Return what only a report for inside says."""
    summary = [
        {
            "of": "the one of which most is learnt" if of == JOINT else str(of),
            **{str(key): _finite(value) for key, value in row.items()},
        }
        for of, row in source.summary.to_dict(orient="index").items()
    ]
    parts = (JOINT, *source.files.sensitive[:MOST_VARIABLES])
    figures = [_of_gains(source, of) for of in parts]
    top = source.records.sort_values(["gain", "closeness"], ascending=[False, True]).head(
        N_RISKIEST
    )
    columns = ["before", "after", "gain", "gain_error", "closeness"]
    columns += [f"gain_{name}" for name in source.files.sensitive]
    return {
        "n_records": f"{len(source.files.people):,}",
        "rows": source.rows,
        "summary": summary,
        "held_out": None if source.files.others is None else f"{len(source.files.others):,}",
        "copies": {
            "combined": chance(source.copies.combined),
            "n_named": f"{int(source.copies.named.sum()):,}",
            "false_discoveries": f"{100 * FALSE_DISCOVERIES:g} %",
            "named": _named(source.records),
            "compared": [
                {
                    "way": _WAYS[one.way],
                    "dataset": one.dataset,
                    "n_compared": f"{one.n_compared:,}",
                    "found": f"{one.found:,}",
                    "expected": about(one.expected),
                    "p": chance(one.p),
                }
                for one in source.copies.compared
            ],
        },
        "board": []
        if source.board is None
        else [
            {
                "name": one.name,
                "of": one.of,
                "value": _finite(one.value),
                "chance": _finite(one.chance),
                "n_records": f"{one.n_records:,}",
                "source": one.source,
            }
            for one in source.board
        ],
        "figures": figures + [_of_values(source.files, name) for name in parts[1:]],
        "notes": list(source.notes),
        "riskiest": [
            {"record": str(label), **{name: _finite(row[name]) for name in columns}}
            for label, row in zip(top.index, top.to_dict("records"), strict=True)
        ],
    }


def _named(records: pd.DataFrame) -> list[str]:
    """Return who is named as copied, the surest first, and no more than fit on a page."""
    named = records[records["too_close"]]
    surest = named.sort_values(["copied", "closeness"], ascending=[False, True])
    return [str(label) for label in surest.index[:_MOST_NAMED]]


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _of_values(files: Files, name: str) -> dict[str, Any]:
    """Return a picture in which nothing but the release is."""
    values = files.column(files.rows, name)
    values, variable = values[~np.isnan(values)], files.variables[name]
    common = {
        "title": f"Synthetic values: {name}",
        "caption": _OF_RELEASE,
        "x": f"{name}, in its own units",
        "y": "density of rows",
        "line": None,
    }
    if isinstance(variable, Factor):
        there = np.unique(values)
        return {
            **common,
            "kind": "levels",
            "x": "level",
            "y": "share of rows",
            "n": f"{len(values):,}",
            "levels": [str(variable.levels[int(code)]) for code in there],
            "shares": [float(f"{(values == code).mean():.4g}") for code in there],
            "synthetic": [],
        }
    whole = bool((values == np.rint(values)).all())
    make = whole_bins if whole else round_bins
    bins = make(Spread.of(values))
    return {**common, "kind": "histogram", "whole": whole, **bins.to_json()}


def _of_gains(source: AuditSource, of: str) -> dict[str, Any]:
    """Return what the release added, over records."""
    said = "the column of which most is learnt" if of == JOINT else of
    return {
        "kind": "histogram",
        "title": f"What the release added: {said}",
        "caption": "How to read it: each bar is a range of gains, the probability of the truth "
        "after the release less that before, and its area the share of records there. To the right "
        "of the dashed line the release helped the intruder.",
        "x": "gain: probability of the truth after the release less before",
        "whole": False,
        "y": "density of records",
        "line": 0.0,
        "line_label": "nothing added",
        **round_bins(Spread.of(source.measures[of, "gain"].value)).to_json(),
    }
