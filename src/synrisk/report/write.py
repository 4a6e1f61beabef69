"""The page rendered, and both files written."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.errors import FileError, OptionError, counted, got, one_of
from synrisk.base.messages import all_visible, in_json
from synrisk.data.column_store import AnyColumn, pieces
from synrisk.data.output_files import sha256, target_of, write_whole
from synrisk.data.partitions import folder_digest
from synrisk.report.facts import Source, collect, number, share
from synrisk.report.shared import collect_shared
from synrisk.synthesis.release import Released, as_datasets, read_release

KINDS = ("sharing", "inside")
_SUFFIXES = (".html", ".htm")
_ENCODED = "the columns of the formulas, one after the other, as 64-bit numbers and codes"
_TITLE = "Attribute disclosure risk of a synthetic release"


def write_report(
    path: str | os.PathLike[str],
    source: Source,
    *,
    kind: Any = "sharing",
    synthetic: Any = None,
    title: Any = None,
) -> Path:
    """Write a report and the JSON beside it; return the report's path.

    Parameters
    ----------
    path
        Where the page goes; its name ends in ``.html``.
    source
        What the report is made of.
    kind
        "sharing", without anything that gives records away, or "inside".
    synthetic
        The release, for the pictures of its distributions and its hash; or None.
    title
        The page's title.
    """
    sharing = one_of("kind", kind, KINDS) == "sharing"
    if title is not None and not isinstance(title, str):
        raise OptionError(f"title must be text; got {got(title)}.")
    page, beside = targets_of(path)
    release = None if synthetic is None else _read(source, synthetic)
    hashes = _hashes(source, synthetic, release, sharing=sharing)
    said = collect_shared if sharing else collect
    facts = said(source, release, hashes, title or _TITLE)
    write_page(page, beside, facts, f"{kind}.html", owner_only=not sharing)
    return Path(path)


def targets_of(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return where a page goes and where its facts do, or raise."""
    page = target_of(path)
    if page.suffix.lower() not in _SUFFIXES:
        raise FileError(f"{page.name!r}: a report is an HTML file, so its name ends in .html.")
    return page, target_of(page.with_suffix(".json"))


def write_page(
    page: Path, beside: Path, facts: Mapping[str, Any], template: str, *, owner_only: bool
) -> None:
    """Write a page, and its facts beside it."""
    html = render(facts, template)
    # Figures are for the page; machines have their numbers.
    stored = in_json(json.dumps(facts, ensure_ascii=False, allow_nan=False, indent=1))
    write_whole(beside, stored.encode(errors="replace"), owner_only=owner_only)
    write_whole(page, html.encode(errors="replace"), owner_only=owner_only)


def _read(source: Source, synthetic: Any) -> list[Released]:
    release = read_release(source.drawn.evaluation.synthesizer.confidential, synthetic)
    if len(release) != source.n_datasets:
        raise OptionError(
            f"synthetic= holds {counted(len(release), 'dataset')}, but the risk was evaluated on "
            f"{source.n_datasets:,}; give the release that was evaluated."
        )
    return release


def _hashes(
    source: Source, synthetic: Any, release: list[Released] | None, *, sharing: bool
) -> list[dict[str, str]]:
    """Return SHA-256 digests of the release, and inside of the confidential data.

    The intruder who knows everybody else could try guesses until a digest of the confidential data
    comes out, so it is not shared.
    """
    hashes = []
    if not sharing:
        hashes.append({"what": "confidential data", **_of_confidential(source)})
    if release is None:
        return hashes
    given = as_datasets(synthetic)
    for position, (one, dataset) in enumerate(zip(given, release, strict=True), 1):
        hashes.append({"what": f"synthetic dataset {position}", **_of_dataset(one, dataset)})
    return hashes


def _of_confidential(source: Source) -> dict[str, str]:
    confidential = source.drawn.evaluation.synthesizer.confidential
    if not confidential.is_stored:
        return {
            "of": "the used records as CSV, with their labels",
            "sha256": digest_of_frame(confidential.data, index=True),
        }
    return {
        "of": _ENCODED,
        "sha256": _digest_of_columns(confidential.columns.values()),
    }


def _of_dataset(given: Any, dataset: Released) -> dict[str, str]:
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        if not path.is_dir():
            return {"of": "the file", "sha256": sha256(path)}
        return {
            "of": "the digests of the folder's files, a line each, in the order of their numbers",
            "sha256": folder_digest(path),
        }
    if dataset.sampled is not None:
        return {
            "of": _ENCODED,
            "sha256": _digest_of_columns(dataset.columns.values()),
        }
    return {
        "of": "the frame as CSV, without its index",
        "sha256": digest_of_frame(dataset.frame, index=False),
    }


def _digest_of_columns(columns: Iterable[AnyColumn]) -> str:
    found = hashlib.sha256()
    for column in columns:
        for part in pieces(column):
            found.update(np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<")).data)
    return found.hexdigest()


def digest_of_frame(frame: pd.DataFrame, *, index: bool) -> str:
    """Return the SHA-256 digest of a frame as CSV."""
    text = frame.to_csv(index=index, lineterminator="\n")
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def render(facts: Mapping[str, Any], template: str | None = None) -> str:
    """Return the page, by default by the template of its kind."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from synrisk.report.svg import draw

    environment = Environment(
        loader=PackageLoader("synrisk.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "share": share}
    facts = all_visible(facts, keep="\t\n")  # names and levels may hold anything
    figures = [
        # The drawing escapes the text in it.
        {**picture, "svg": Markup(draw(picture, k))}  # noqa: S704
        for k, picture in enumerate(facts["figures"], 1)
    ]
    page = environment.get_template(template or f"{facts['kind']}.html")
    return page.render(**{**facts, "figures": figures})
