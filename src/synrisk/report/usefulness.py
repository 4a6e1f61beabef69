"""What a report says about the utility of the release.

The release is public, so whoever knows all records but one can try values of that one until a
number comes out. Where the report is shared, estimates from the confidential data are not in it,
nor are the names of levels; and numbers are so coarse that one record seldom moves them: distances
between shares in steps of ten records or more, overlaps in tenths, ratios in one digit, other
differences in words.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from synrisk.criteria import LEAST_SHARED
from synrisk.report.suppression import Discretion
from synrisk.utility import Utility
from synrisk.utility.intervals import UNCHANGED

_LEAST_RECORDS = 10 * LEAST_SHARED
_MOST_PAIRS = 8
_SMALL, _LARGE = 0.1, 0.2  # differences of means in standard deviations, and of correlations
_MODELS = {"main": "main effects", "interactions": "interactions", "cart": "a tree"}


def usefulness(utility: Utility, told: Discretion) -> dict[str, Any]:
    """Return what is told of a utility."""
    enough = utility.n_records >= _LEAST_RECORDS or not told.sharing
    facts: dict[str, Any] = {
        "level": f"{100 * utility.level:g} %",
        "parameters": utility.parameters,
        "propensity": _propensity(utility, told) if enough else [],
        "overlap": _overlap(utility, told) if enough else [],
        "marginals": _marginals(utility, told) if enough else [],
        "pairs": _pairs(utility, told) if enough else [],
        "enough": enough,
        "notes": [told.blurred(note, utility.n_records) for note in utility.notes],
    }
    if not told.sharing:
        facts["estimates"] = _estimates(utility)
    return facts


def _propensity(utility: Utility, told: Discretion) -> list[dict[str, Any]]:
    exact = () if told.sharing else ("pmse", "expected", "z")
    return [
        {
            "model": _MODELS[model],
            "dataset": int(dataset),
            "ratio": _finite(float(f"{row['ratio']:.1g}") if told.sharing else row["ratio"]),
            "specks": _share(row["specks"], utility, told),
            **{key: _finite(row[key]) for key in exact},
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


def _overlap(utility: Utility, told: Discretion) -> list[dict[str, Any]]:
    """Return a row an analysis: means over the estimates that synthesis touched."""
    rows = []
    for analysis, part in utility.intervals.groupby(level="analysis", sort=False):
        changed = part[part["rule"] != UNCHANGED]
        if len(changed):
            rows.append(
                {
                    "analysis": str(analysis),
                    "n_estimates": len(changed),
                    "overlap": _decimals(changed["overlap"].mean(), 1, told),
                    "overlap_as_data": _decimals(changed["overlap_as_data"].mean(), 1, told),
                    "rules": sorted(set(changed["rule"])),
                }
            )
    return rows


def _marginals(utility: Utility, told: Discretion) -> list[dict[str, Any]]:
    return [
        {
            "variable": str(name),
            "synthesized": bool(row["synthesized"]),
            "mean_difference": _size(row["mean_difference"], " sd", told),
            "total_variation": _share(row["total_variation"], utility, told),
            "by_chance": _share(row["by_chance"], utility, told),
        }
        for name, row in zip(
            utility.marginals.index, utility.marginals.to_dict("records"), strict=True
        )
    ]


def _pairs(utility: Utility, told: Discretion) -> list[dict[str, Any]]:
    """Return the pairs that are furthest beyond chance."""
    beyond = utility.pairs["total_variation"] - utility.pairs["by_chance"]
    first = utility.pairs.loc[beyond.sort_values(ascending=False, kind="stable").index]
    first = first.head(_MOST_PAIRS)
    return [
        {
            "first": str(one),
            "second": str(other),
            "total_variation": _share(row["total_variation"], utility, told),
            "by_chance": _share(row["by_chance"], utility, told),
            "correlation_difference": _size(row["correlation_difference"], "", told),
        }
        for (one, other), row in zip(first.index, first.to_dict("records"), strict=True)
    ]


def _estimates(utility: Utility) -> list[dict[str, Any]]:
    """Return every estimate from both sides, for inside use."""
    table = utility.intervals.reset_index()
    keys = ("estimate_confidential", "se_confidential", "estimate_synthetic", "se_synthetic",
            "difference", "overlap", "overlap_as_data")  # fmt: skip
    return [
        {
            "analysis": row["analysis"],
            "term": row["term"],
            "rule": row["rule"],
            **{key: float(row[key]) if np.isfinite(row[key]) else None for key in keys},
        }
        for row in table.to_dict("records")
    ]


def _share(value: Any, utility: Utility, told: Discretion) -> float | None:
    """Return a distance between shares, where it is shared in steps of ten records or more."""
    decimals = min(int(math.log10(max(utility.n_records / LEAST_SHARED, 1.0))), 2)
    return _decimals(value, decimals, told)


def _decimals(value: Any, decimals: int, told: Discretion) -> float | None:
    if pd.isna(value):
        return None
    return round(float(value), decimals) if told.sharing else float(value)


def _size(value: float, unit: str, told: Discretion) -> str:
    """Return how large a difference is: in words where it is shared."""
    if pd.isna(value):
        return "–"
    if not told.sharing:
        return f"{value:.3f}{unit}"
    if abs(value) < _SMALL:
        return f"less than {_SMALL}{unit}"
    return f"{_SMALL} to {_LARGE}{unit}" if abs(value) < _LARGE else f"more than {_LARGE}{unit}"
