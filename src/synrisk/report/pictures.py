"""What the report's pictures show, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.core.measures import JOINT
from synrisk.core.spread import Spread
from synrisk.data.column_store import AnyColumn, pieces
from synrisk.data.schema import Factor, Variable
from synrisk.plots.view import Drawn
from synrisk.report.bins import Bins, round_bins, whole_bins
from synrisk.synthesis.release import Released

MOST_VARIABLES = 12  # with pictures of their own
_MOST_CURVES = 7
_CLOSENESS = (
    "How to read it: the closer the synthetic outlines lie to the confidential bars, the more "
    "useful the release is for this variable by itself. Closeness here is neither safe nor unsafe."
)
_OF_RELEASE = "The values in the release itself, all datasets together."


def pictures(drawn: Drawn, release: Sequence[Released] | None) -> list[dict[str, Any]]:
    """Return the pictures in order, each with a title, a caption and the numbers that it shows."""
    names = drawn.labels.names[:MOST_VARIABLES]
    of_all = (JOINT,) if len(drawn.labels.names) == 1 else (JOINT, *names)
    made = [_probability(drawn, of) for of in of_all]
    made += _exceedance(drawn, of_all)
    # In a range guesses stand closer about the truth: a rank among them says little.
    ranked = np.isfinite(drawn.spread(JOINT, "rank").ends.largest)
    if ranked and not any(map(drawn.is_of_range, range(len(drawn.labels.names)))):
        made.append(_ranks(drawn))
    made += [_difference(drawn, axis) for axis in range(len(names))]
    if release is not None:
        made += [_distribution(drawn, axis, release) for axis in range(len(names))]
    return made


def pictures_of_release(drawn: Drawn, release: Sequence[Released]) -> list[dict[str, Any]]:
    """Return pictures of the synthesized variables in which nothing but the release is."""
    made = []
    for axis, name in enumerate(drawn.labels.names[:MOST_VARIABLES]):
        variable = drawn.labels.variables[axis]
        values = _there(variable, [dataset.columns[name] for dataset in release])
        common = {
            "title": f"Synthetic values: {name}",
            "caption": _OF_RELEASE,
            "x": f"{name}, in its own units",
            "line": None,
        }
        if isinstance(variable, Factor):
            counts = values.counts(_around_codes(variable))
            there = np.flatnonzero(counts)
            made.append(
                {
                    **common,
                    "kind": "levels",
                    "x": "level",
                    "y": "share of rows",
                    "n": f"{values.ends.n:,}",
                    "levels": [str(variable.levels[code]) for code in there],
                    "shares": [float(f"{n / values.ends.n:.4g}") for n in counts[there]],
                    "synthetic": [],
                }
            )
        else:
            made.append({**common, "y": "density of rows", **_histogram(drawn, axis, values)})
    return made


def _said(drawn: Drawn, of: str) -> str:
    names = drawn.labels.names
    if of != JOINT or len(names) == 1:
        return names[0] if of == JOINT else of
    return "all variables together"


def _there(variable: Variable, columns: Sequence[AnyColumn]) -> Spread:
    """Return the values of encoded columns, one after the other, that are not missing."""
    return Spread(lambda: (variable.there(part) for one in columns for part in pieces(one)))


def _around_codes(factor: Factor) -> FloatArray:
    return np.arange(len(factor.levels) + 1, dtype=np.float64) - 0.5


def _probability(drawn: Drawn, of: str) -> dict[str, Any]:
    prior, said = drawn.spread(of, "prior").same(), _said(drawn, of)
    if prior is None:
        return _gain(drawn.spread(of, "gain"), said)
    return {
        "kind": "histogram",
        "title": f"Probability of the truth: {said}",
        "caption": "How to read it: each bar is a range of probabilities that an intruder gives "
        "the truth after the release, and its area the share of records there; the dashed line "
        "is the prior, the probability before the release. To the right of the line the release "
        "helped the intruder, to the left it misled.",
        "x": "posterior probability of the truth",
        "whole": False,
        "y": "density of records",
        "line": prior,
        "line_label": "prior",
        # Edges are laid from the prior, so that no bar lies across it.
        **round_bins(drawn.spread(of, "probability"), anchor=prior, low=0.0).to_json(),
    }


def _gain(gains: Spread, said: str) -> dict[str, Any]:
    """Return what the release added, where every record has a prior of its own."""
    return {
        "kind": "histogram",
        "title": f"What the release added: {said}",
        "caption": "How to read it: each bar is a range of gains, the probability that an intruder "
        "gives the truth after the release less that before, and its area the share of records "
        "there. To the right of the dashed line the release helped the intruder, to the left it "
        "misled.",
        "x": "gain: probability of the truth after the release less before",
        "whole": False,
        "y": "density of records",
        "line": 0.0,
        "line_label": "nothing added",
        **round_bins(gains).to_json(),
    }


def _exceedance(drawn: Drawn, of_all: Sequence[str]) -> list[dict[str, Any]]:
    """Return how many are over a threshold, at the edges of the bars of the probabilities."""
    curves = []
    for of in of_all[:_MOST_CURVES]:
        prior = drawn.spread(of, "prior").same()
        if prior is None:
            continue
        bins = round_bins(drawn.spread(of, "probability"), anchor=prior, low=0.0)
        if len(bins.counts) > 1:
            over = np.cumsum(bins.counts[::-1])[::-1] / bins.counts.sum()
            curves.append(
                {
                    "of": _said(drawn, of),
                    "thresholds": [float(f"{edge / prior:.6g}") for edge in bins.edges[1:-1]],
                    "shares": [float(f"{share:.4g}") for share in over[1:]],
                }
            )
    if not curves:
        return []
    return [
        {
            "kind": "exceedance",
            "title": "How many are over a threshold",
            "caption": "How to read it: choose a lift on the horizontal axis, the factor by which "
            "the release multiplied the probability of the truth; the curve shows the share of "
            "records whose lift is larger. At 1 the release told nothing.",
            "x": "lift: probability after the release over before",
            "y": "share of records over it (log scale)",
            "n": f"{len(drawn.labels.records):,}",
            "curves": curves,
        }
    ]


def _ranks(drawn: Drawn) -> dict[str, Any]:
    said, n_guesses = _said(drawn, JOINT), drawn.spread(JOINT, "n_guesses")
    guesses = n_guesses.same()
    return {
        "kind": "histogram",
        "title": f"Rank of the truth: {said}",
        "caption": "How to read it: the intruder's guesses are put in order, 1 the most probable; "
        "bars show where the truth stands. The dashed line is where it would stand on average if "
        "the order were random; bars at the left are those whose truth is among the best guesses.",
        "x": "rank of the truth among the guesses",
        "whole": True,
        "y": "density of records",
        "line": ((n_guesses.mean if guesses is None else guesses) + 1.0) / 2.0,
        "line_label": "if the order were random",
        **whole_bins(drawn.spread(JOINT, "rank")).to_json(),
    }


def _difference(drawn: Drawn, axis: int) -> dict[str, Any]:
    name, family = drawn.labels.names[axis], drawn.labels.families[axis]
    off = drawn.differences(axis)
    common = {
        "title": f"How far the best guess is off: {name}",
        "y": "density of records",
        "line": None,
    }
    if not family.is_ordered:
        n_right = off.n_where(lambda distance: distance == 0)
        right = float(f"{n_right / off.ends.n:.4g}")
        return {
            **common,
            "kind": "levels",
            "caption": "How to read it: for how many records the most probable level is the truth.",
            "x": "the best guess is …",
            "y": "share of records",
            "n": f"{off.ends.n:,}",
            "levels": ["the truth", "another level"],
            "shares": [right, float(f"{1.0 - right:.4g}")],
            "synthetic": [],
        }
    bins = round_bins(off, low=0.0) if family.is_continuous else whole_bins(off, family.grid_step)
    return {
        **common,
        "kind": "histogram",
        "caption": "How to read it: the distance between the most probable guess and the truth, in "
        "the variable's own units. At 0 the best guess is the truth; no guess is farther than the "
        "guesses reach.",
        "x": f"|best guess − truth| of {name}",
        "whole": not family.is_continuous and family.grid_step >= 1.0,
        **bins.to_json(),
    }


def _histogram(drawn: Drawn, axis: int, values: Spread) -> dict[str, Any]:
    """Return the bars of a variable's own values."""
    family = drawn.labels.families[axis]
    continuous = family.is_continuous
    bins = round_bins(values) if continuous else whole_bins(values, family.grid_step)
    whole = not continuous and family.grid_step >= 1.0
    return {"kind": "histogram", "whole": whole, **bins.to_json()}


def _distribution(drawn: Drawn, axis: int, release: Sequence[Released]) -> dict[str, Any]:
    name, variable = drawn.labels.names[axis], drawn.labels.variables[axis]
    own = _there(variable, [drawn.evaluation.synthesizer.columns[name]])
    datasets = [_there(variable, [dataset.columns[name]]) for dataset in release]
    common = {
        "title": f"Confidential and synthetic values: {name}",
        "caption": _CLOSENESS,
        "x": f"{name}, in its own units",
        "line": None,
    }
    if isinstance(variable, Factor):
        edges = _around_codes(variable)
        own_shares, *synthetic = (Bins.of(one, edges).shares for one in (own, *datasets))
        return {
            **common,
            "kind": "levels",
            "x": "level",
            "y": "share of records",
            "n": f"{own.ends.n:,}",
            "levels": [str(level) for level in variable.levels],
            "shares": own_shares,
            "synthetic": synthetic,
        }
    bars = _histogram(drawn, axis, own)
    edges = np.array(bars["edges"])
    outlines = [Bins.of(one, edges).shares for one in datasets]
    return {**common, "y": "density of records", "synthetic": outlines, **bars}
