"""What a report says about the utility of the release.

The release is public, so whoever knows all records but one can try values of that one until what
the report says comes out. A digit of a number for each dataset is enough for that: digits add up
over datasets. Where the report is shared there is therefore no number, no estimate, no level and no
count of levels, and nothing by dataset: each measure is told once, over all datasets, by one of
few words that stand far apart. Inside everything is told.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from synrisk.utility import Utility
from synrisk.utility.intervals import UNCHANGED

_LEAST_RECORDS = 100
_MOST_PAIRS = 8
_MODELS = {"main": "main effects", "interactions": "interactions", "cart": "a tree"}
# The limits of the words are beyond what releases from the right models have, so that these are
# seldom near one, and so far apart that a record hardly carries a statistic from one to the other.
# A pMSE goes with the square of a distance.
_PMSE, _DISTANCE = (10.0, 100.0), (3.0, 10.0)
_OVERLAP = 0.2
_COPY = 1e-6  # of a ratio: rounding


def usefulness(utility: Utility, *, sharing: bool) -> dict[str, Any]:
    """Return what is told of a utility."""
    facts: dict[str, Any] = {
        "level": f"{100 * utility.level:g} %",
        "parameters": utility.parameters,
    }
    return facts | (_shared(utility) if sharing else _inside(utility))


def _shared(utility: Utility) -> dict[str, Any]:
    """Return what may leave the office: words, and below a hundred records nothing."""
    enough = utility.n_records >= _LEAST_RECORDS
    return {
        "enough": enough,
        "propensity": _propensity_in_words(utility) if enough else [],
        "overlap": _overlap_in_words(utility) if enough else [],
        "marginals": _marginals_in_words(utility) if enough else [],
        "pairs": _pairs_in_words(utility) if enough else [],
    }


def _inside(utility: Utility) -> dict[str, Any]:
    return {
        "enough": True,
        "propensity": _propensity(utility),
        "overlap": _overlap(utility),
        "marginals": _marginals(utility),
        "pairs": _pairs(utility),
        "estimates": _estimates(utility),
        "notes": list(utility.notes),
    }


def _propensity_in_words(utility: Utility) -> list[dict[str, str]]:
    """Return a row a model, over all datasets."""
    ratios = utility.propensity["ratio"].groupby(level="model", sort=False)
    return [
        {"model": _MODELS[str(model)], "result": _ratio_in_words(of.to_numpy())}
        for model, of in ratios
    ]


def _ratio_in_words(ratios: Any) -> str:
    if not np.isfinite(ratios).all():
        return "could not be compared"
    if (ratios < _COPY).all():
        return "the same as the confidential data"
    return _times(float(ratios.mean()), _PMSE)


def _times(ratio: float, limits: tuple[float, float]) -> str:
    """Return how many times what chance makes something is, in words."""
    low, high = limits
    if ratio < low:
        return f"up to {low:g} times what chance makes"
    if ratio < high:
        return f"{low:g} to {high:g} times what chance makes"
    return f"more than {high:g} times what chance makes"


def _overlap_in_words(utility: Utility) -> list[dict[str, str]]:
    """Return a row an analysis that synthesis touched."""
    return [
        {"analysis": name, "overlap": _overlap_word(float(changed["overlap"].mean()))}
        for name, changed in _touched(utility)
    ]


def _overlap_word(overlap: float) -> str:
    if np.isnan(overlap):
        return "–"
    return f"{_OVERLAP:g} or more" if overlap >= _OVERLAP else f"less than {_OVERLAP:g}"


def _marginals_in_words(utility: Utility) -> list[dict[str, Any]]:
    table = utility.marginals
    return [
        {
            "variable": str(name),
            "synthesized": bool(synthesized),
            "distance": _times(times, _DISTANCE) if synthesized else "as it was",
        }
        for name, synthesized, times in zip(
            table.index, table["synthesized"], _times_chance(table), strict=True
        )
    ]


def _pairs_in_words(utility: Utility) -> list[dict[str, str]]:
    """Return the first pairs beyond chance, as the columns stand: by size they would be ranked."""
    found = [
        {"first": str(one), "second": str(other), "distance": _times(times, _DISTANCE)}
        for (one, other), times in zip(
            utility.pairs.index, _times_chance(utility.pairs), strict=True
        )
        if times >= _DISTANCE[0]
    ]
    return found[:_MOST_PAIRS]


def _times_chance(table: pd.DataFrame) -> list[float]:
    """Return each distance over what chance makes of it; 0 where there is none."""
    return [
        float(distance / chance) if chance > 0 else 0.0
        for distance, chance in zip(table["total_variation"], table["by_chance"], strict=True)
    ]


def _touched(utility: Utility) -> list[tuple[str, pd.DataFrame]]:
    """Return the analyses with those of their estimates that synthesis touched."""
    rules = utility.intervals[utility.intervals["rule"] != UNCHANGED]
    return [(str(name), part) for name, part in rules.groupby(level="analysis", sort=False)]


def _propensity(utility: Utility) -> list[dict[str, Any]]:
    return [
        {
            "model": _MODELS[model],
            "dataset": int(dataset),
            **{key: _finite(row[key]) for key in ("pmse", "expected", "z", "ratio", "specks")},
            "result": _told_apart(float(row["ratio"]), float(row["z"])),
        }
        for (model, dataset), row in zip(
            utility.propensity.index, utility.propensity.to_dict("records"), strict=True
        )
    ]


def _finite(value: float) -> float | None:
    """Return a number, or None for NaN, which JSON does not have."""
    return float(value) if np.isfinite(value) else None


def _told_apart(ratio: float, z: float) -> str:
    if ratio == 0.0:
        return "the same as the confidential data"
    if not np.isfinite(z):
        return "could not be compared"
    if z > 3.0:
        return "can be told apart by more than chance"
    return "no more than chance tells it apart"


def _overlap(utility: Utility) -> list[dict[str, Any]]:
    """Return a row an analysis: means over the estimates that synthesis touched."""
    return [
        {
            "analysis": name,
            "n_estimates": len(changed),
            "overlap": _finite(changed["overlap"].mean()),
            "overlap_as_data": _finite(changed["overlap_as_data"].mean()),
            "rules": sorted(set(changed["rule"])),
        }
        for name, changed in _touched(utility)
    ]


def _marginals(utility: Utility) -> list[dict[str, Any]]:
    return [
        {
            "variable": str(name),
            "synthesized": bool(row["synthesized"]),
            "mean_difference": _finite(row["mean_difference"]),
            "total_variation": _finite(row["total_variation"]),
            "by_chance": _finite(row["by_chance"]),
        }
        for name, row in zip(
            utility.marginals.index, utility.marginals.to_dict("records"), strict=True
        )
    ]


def _pairs(utility: Utility) -> list[dict[str, Any]]:
    """Return the pairs that are furthest beyond chance."""
    beyond = utility.pairs["total_variation"] - utility.pairs["by_chance"]
    first = utility.pairs.loc[beyond.sort_values(ascending=False, kind="stable").index]
    first = first.head(_MOST_PAIRS)
    return [
        {
            "first": str(one),
            "second": str(other),
            "total_variation": _finite(row["total_variation"]),
            "by_chance": _finite(row["by_chance"]),
            "correlation_difference": _finite(row["correlation_difference"]),
        }
        for (one, other), row in zip(first.index, first.to_dict("records"), strict=True)
    ]


def _estimates(utility: Utility) -> list[dict[str, Any]]:
    """Return every estimate from both sides."""
    table = utility.intervals.reset_index()
    keys = ("estimate_confidential", "se_confidential", "estimate_synthetic", "se_synthetic",
            "difference", "overlap", "overlap_as_data")  # fmt: skip
    return [
        {
            "analysis": row["analysis"],
            "term": row["term"],
            "rule": row["rule"],
            **{key: _finite(row[key]) for key in keys},
        }
        for row in table.to_dict("records")
    ]
