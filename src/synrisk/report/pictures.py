"""What the report's pictures show, as numbers: bars, each of enough records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.core.measures import JOINT
from synrisk.data.schema import Factor
from synrisk.plots.view import Drawn, Numbers
from synrisk.report.disclosure_control import Bins, DisclosureRules, pooled_levels
from synrisk.synthesis.release import Released

MOST_VARIABLES = 12  # with pictures of their own
_MOST_RANK_BARS = 60


def pictures(
    drawn: Drawn, release: Sequence[Released] | None, rules: DisclosureRules
) -> list[dict[str, Any]]:
    """Return the pictures in order, each with a title, a caption and the numbers that it shows."""
    names = drawn.labels.names[:MOST_VARIABLES]
    of_all = (JOINT,) if len(drawn.labels.names) == 1 else (JOINT, *names)
    made = [_probability(drawn.numbers(of), _said(drawn, of), rules) for of in of_all]
    made.append(_exceedance(drawn, of_all, rules))
    # In a range guesses stand closer about the truth, and how many there are tells its ends.
    if not any(map(drawn.is_of_range, range(len(drawn.grids)))):
        made.append(_ranks(drawn.numbers(JOINT), _said(drawn, JOINT), rules))
    made += [_difference(drawn, axis, rules) for axis in range(len(names))]
    if release is not None:
        made += [_distribution(drawn, axis, release, rules) for axis in range(len(names))]
    return [one for one in made if one is not None]


def _said(drawn: Drawn, of: str) -> str:
    names = drawn.labels.names
    if of != JOINT or len(names) == 1:
        return names[0] if of == JOINT else of
    return "all variables together"


def _json(bins: Bins, n: str) -> dict[str, Any]:
    """Return edges and shares without digits that rounding made."""
    shares = bins.counts / max(float(bins.counts.sum()), 1.0)
    return {
        "n": n,
        "edges": [float(f"{edge:.10g}") for edge in bins.edges],
        "shares": [float(f"{share:.4g}") for share in shares],
    }


def _probability_bins(numbers: Numbers, rules: DisclosureRules) -> Bins | None:
    # Edges are laid from the prior, so that no bar lies across it.
    prior = rules.common(numbers.prior)
    anchor = float(f"{numbers.prior.mean():.2g}") if prior is None else prior
    return rules.bins(numbers.probability, anchor=anchor, low=0.0)


def _probability(numbers: Numbers, said: str, rules: DisclosureRules) -> dict[str, Any] | None:
    if rules.common(numbers.prior) is None:
        return _gain(numbers, said, rules)
    bins = _probability_bins(numbers, rules)
    if bins is None:
        return None
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
        "line": rules.usual(numbers.prior),
        "line_label": "prior",
        **_json(bins, rules.size(len(numbers.probability))),
    }


def _gain(numbers: Numbers, said: str, rules: DisclosureRules) -> dict[str, Any] | None:
    """Return what the release added, where every record has a prior of its own."""
    bins = rules.bins(numbers.probability - numbers.prior, anchor=0.0)
    if bins is None:
        return None
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
        **_json(bins, rules.size(len(numbers.probability))),
    }


def _exceedance(
    drawn: Drawn, of_all: Sequence[str], rules: DisclosureRules
) -> dict[str, Any] | None:
    """Return how many are over a threshold, at the edges of the bars of the probabilities."""
    curves = []
    for of in of_all[:7]:
        numbers = drawn.numbers(of)
        prior, bins = rules.common(numbers.prior), _probability_bins(numbers, rules)
        if prior is None or bins is None or len(bins.counts) < 2:
            continue
        over = np.cumsum(bins.counts[::-1])[::-1] / bins.counts.sum()
        curves.append(
            {
                "of": _said(drawn, of),
                "thresholds": [float(f"{edge / prior:.6g}") for edge in bins.edges[1:-1]],
                "shares": [float(f"{share:.4g}") for share in over[1:]],
            }
        )
    if not curves:
        return None
    cut_off = " Curves end where too few records are left to be shown." if rules.sharing else ""
    return {
        "kind": "exceedance",
        "title": "How many are over a threshold",
        "caption": "How to read it: choose a lift on the horizontal axis, the factor by which the "
        "release multiplied the probability of the truth; the curve shows the share of records "
        f"whose lift is larger. At 1 the release told nothing.{cut_off}",
        "x": "lift: probability after the release over before",
        "y": "share of records over it (log scale)",
        "n": rules.size(len(drawn.labels.records)),
        "curves": curves,
    }


def _ranks(numbers: Numbers, said: str, rules: DisclosureRules) -> dict[str, Any] | None:
    # Few records with more guesses than others would show by the axis.
    most = int(np.sort(numbers.n_guesses)[-min(rules.least, len(numbers.n_guesses))])
    width = -(-most // rules.most_bars(len(numbers.rank), _MOST_RANK_BARS))
    edges = 0.5 + width * np.arange(-(-most // width) + 1, dtype=np.float64)
    bins = rules.pooled(numbers.rank, edges)
    if bins is None:
        return None
    return {
        "kind": "histogram",
        "title": f"Rank of the truth: {said}",
        "caption": "How to read it: the intruder's guesses are put in order, 1 the most probable; "
        "bars show where the truth stands. The dashed line is where it would stand on average if "
        "the order were random; bars at the left are those whose truth is among the best guesses.",
        "x": "rank of the truth among the guesses",
        "whole": True,
        "y": "density of records",
        "line": rules.usual((numbers.n_guesses + 1) / 2.0),
        "line_label": "if the order were random",
        **_json(bins, rules.size(len(numbers.rank))),
    }


def _difference(drawn: Drawn, axis: int, rules: DisclosureRules) -> dict[str, Any] | None:
    name, family = drawn.labels.names[axis], drawn.labels.families[axis]
    off = drawn.difference(axis)
    common = {
        "title": f"How far the best guess is off: {name}",
        "y": "density of records",
        "line": None,
    }
    if not family.is_ordered:
        right = int((off == 0).sum())
        if not rules.tells(right, len(off)) or not rules.describes(len(off)):
            return None
        counts = np.array([rules.rounded(right), rules.rounded(len(off) - right)])
        shares = [float(f"{share:.4g}") for share in counts / counts.sum()]
        return {
            **common,
            "kind": "levels",
            "caption": "How to read it: for how many records the most probable level is the truth.",
            "x": "the best guess is …",
            "y": "share of records",
            "n": rules.size(len(off)),
            "levels": ["the truth", "another level"],
            "confidential": shares,
            "synthetic": [],
        }
    bins = (
        rules.bins(off, low=0.0)
        if family.is_continuous
        else rules.pooled(off, _whole_edges(off, rules, family.grid_step))
    )
    if bins is None:
        return None
    return {
        **common,
        "kind": "histogram",
        "caption": "How to read it: the distance between the most probable guess and the truth, in "
        "the variable's own units. At 0 the best guess is the truth; no guess is farther than the "
        "guesses reach.",
        "x": f"|best guess − truth| of {name}",
        "whole": not family.is_continuous and family.grid_step >= 1.0,
        **_json(bins, rules.size(len(off))),
    }


def _whole_edges(values: FloatArray, rules: DisclosureRules, step: float) -> FloatArray:
    """Return an edge between multiples of `step`, from the `least`-th smallest to largest."""
    ordered = np.sort(values / step)
    first = min(rules.least, len(values)) - 1
    low, high = round(ordered[first]), round(ordered[len(values) - 1 - first])
    low, high = min(low, high), max(low, high)
    width = -(-(high - low + 1) // rules.most_bars(len(values), _MOST_RANK_BARS))
    n_bars = -(-(high - low + 1) // width)
    return np.asarray(step * (low - 0.5 + width * np.arange(n_bars + 1, dtype=np.float64)))


def _distribution(
    drawn: Drawn, axis: int, release: Sequence[Released], rules: DisclosureRules
) -> dict[str, Any] | None:
    name, family = drawn.labels.names[axis], drawn.labels.families[axis]
    variable = drawn.labels.variables[axis]
    own = drawn.evaluation.synthesizer.columns[name]
    datasets = [dataset.columns[name] for dataset in release]
    common = {
        "title": f"Confidential and synthetic values: {name}",
        "caption": "How to read it: the closer the synthetic outlines lie to the confidential "
        "bars, the more useful the release is for this variable by itself. Closeness here is "
        "neither safe nor unsafe.",
        "x": f"{name}, in its own units",
        "line": None,
    }
    if isinstance(variable, Factor):
        return _levels(own, datasets, variable, common, rules)
    values = own.astype(np.float64)
    bins = (
        rules.bins(values)
        if family.is_continuous
        else rules.pooled(values, _whole_edges(values, rules, family.grid_step))
    )
    if bins is None:
        return None
    ends = (bins.edges[0], bins.edges[-1])
    outlines = [np.histogram(np.clip(one, *ends), bins.edges)[0] for one in datasets]
    return {
        **common,
        "kind": "histogram",
        "y": "density of records",
        "whole": not family.is_continuous and family.grid_step >= 1.0,
        "synthetic": [[float(f"{s:.4g}") for s in one / one.sum()] for one in outlines],
        **_json(bins, rules.size(len(own))),
    }


def _levels(
    own: Any,
    datasets: Sequence[Any],
    variable: Factor,
    common: dict[str, Any],
    rules: DisclosureRules,
) -> dict[str, Any] | None:
    if not rules.describes(len(own)):
        return None
    sizes = np.bincount(own, minlength=len(variable.levels)).tolist()
    codes = pooled_levels(sizes, rules.least if rules.sharing else 0)
    counts = np.array([rules.rounded(sum(sizes[code] for code in members)) for members in codes])
    labels = [
        str(variable.levels[members[0]]) if len(members) == 1 else f"({len(members)} pooled)"
        for members in codes
    ]
    synthetic = [
        [float(f"{np.isin(one, members).mean():.4g}") for members in codes] for one in datasets
    ]
    return {
        **common,
        "kind": "levels",
        "x": "level",
        "y": "share of records",
        "n": rules.size(len(own)),
        "levels": labels,
        "confidential": [float(f"{share:.4g}") for share in counts / counts.sum()],
        "synthetic": synthetic,
    }
