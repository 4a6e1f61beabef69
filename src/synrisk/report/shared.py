"""What a report for sharing says, as JSON has it: nothing that would give a record away.

The release is public, and the intruder of the worst case knows everybody else: he can try values of
one record, make the whole report for each, and keep those for which it comes out as it was written.
A count, a quantile or a digit of a mean is enough for him. So a report for sharing says whether the
limits are kept, of a release that passes a few quantities in wide public bands, what was assumed
and what was released, and shows pictures of the release itself. All else is inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from synrisk.core.measures import JOINT, RecordMeasures
from synrisk.report.facts import (
    Source,
    evaluated,
    intruder,
    learnt,
    models,
    number,
    today,
    told,
    versions,
)  # fmt: skip
from synrisk.report.pictures import pictures_of_release
from synrisk.report.usefulness import usefulness
from synrisk.synthesis.release import Released
from synrisk.verdict.reasons import PASSED
from synrisk.verdict.verdict import Verdict

# In percentage points. The first is the default limit, which the verdict tells anyway.
_GAINS = (10, 50)
_SHARES = (0.01, 0.1)  # of the records


def collect_shared(
    source: Source, release: Sequence[Released] | None, hashes: list[dict[str, str]], title: str
) -> dict[str, Any]:
    """Return all that a report for sharing says."""
    drawn = source.drawn
    facts: dict[str, Any] = {
        "title": title,
        "kind": "sharing",
        "date": today(),
        "verdict": None if source.verdict is None else told(source.verdict, sharing=True),
        "gains": gains_in_bands((piece.measures for piece in drawn.pieces()), source.verdict),
        "evaluated": evaluated(source),
        "figures": [] if release is None else pictures_of_release(drawn, release),
        "intruder": intruder(source),
        "guesses": [_guesses(source, axis) for axis in range(len(drawn.labels.names))],
        "models": models(source),
        "versions": versions(),
        "hashes": hashes,
    }
    if source.utility is not None:
        facts["utility"] = usefulness(source.utility, sharing=True)
    return facts


def gains_in_bands(measures: Iterable[RecordMeasures], verdict: Verdict | None) -> dict[str, str]:
    """Return the largest gain, of all variables together or of one, and how many have a large one.

    Both in bands, and not by variable: every band has ends that one record may lie at. Nothing of a
    release that does not pass: where many gains are large, one record moves many across an end.
    """
    if verdict is None or verdict.outcome != PASSED:
        return {}
    largest, n_above, n_records = [], 0, 0
    for some in measures:
        all_gains = [some[of, "gain"].value for of in (JOINT, *some.variables)]
        gain = 100.0 * np.max(all_gains, axis=0)
        largest.append(gain.max())
        n_above += int((gain > _GAINS[0]).sum())
        n_records += some.n_records
    return {"largest": _points(float(np.max(largest))), "above": _share(n_above / n_records)}


def _points(gain: float) -> str:
    """Return a gain by its band."""
    if not np.isfinite(gain):
        return "not known"
    if gain <= _GAINS[0]:
        return f"at most {_GAINS[0]} percentage points"
    for low, high in pairwise(_GAINS):
        if gain <= high:
            return f"{low} to {high} percentage points"
    return f"more than {_GAINS[-1]} percentage points"


def _share(share: float) -> str:
    """Return a share by its band."""
    low, high = (f"{100 * edge:g} %" for edge in _SHARES)
    if share == 0.0:
        return "none"
    if share <= _SHARES[0]:
        return f"up to {low}"
    return f"{low} to {high}" if share <= _SHARES[1] else f"more than {high}"


def _guesses(source: Source, axis: int) -> dict[str, Any]:
    """Return which values were considered: of a range its ends only where they were declared."""
    drawn = source.drawn
    question, name = drawn.evaluation.question, drawn.labels.names[axis]
    if drawn.around_truth(axis):
        lines = ["Laid out about each record's own truth."]
    elif question is None or not question.is_of_range(name):
        lines = ["The same for every record, chosen without the truth."]
    elif (declared := question.declared(name, drawn.evaluation.synthesizer)) is not None:
        low, high = map(number, declared)
        lines = [f"Every value in a range that was declared: {low} to {high}."]
    else:
        lines = ["Every value that the variable may have. Where they end is not told here."]
    return {"variable": name, "lines": [*lines, learnt(source, axis)]}
