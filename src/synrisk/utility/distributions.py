"""Variables by themselves and by twos: how far the synthetic distribution is from the other.

Nothing here is a value of a record: differences are in standard deviations, quantiles are means of
the values about them, and distances are between shares of bins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import Columns, Factor
from synrisk.utility.reading import Sides, is_numeric, unit_of

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_ABOUT = 0.02  # of the records on each side of a quantile, whose mean stands for it
_LEAST_ABOUT = 5
_N_BINS = 10
_N_BINS_OF_PAIRS = 5

KINDS = ("number", "factor")


def marginal_table(sides: Sides) -> pd.DataFrame:
    """Return a row a variable."""
    rows = [_marginal(sides, name) for name in sides.names]
    return pd.DataFrame(rows).set_index("variable")


def pair_table(sides: Sides) -> pd.DataFrame:
    """Return a row a pair of variables."""
    columns = [
        "first", "second", "correlation_confidential", "correlation_synthetic",
        "correlation_difference", "total_variation", "by_chance", "hellinger",
    ]  # fmt: skip
    rows = list(_pairs(sides))
    return pd.DataFrame(rows, columns=columns).set_index(["first", "second"])


def _marginal(sides: Sides, name: str) -> dict[str, Any]:
    own = sides.confidential[name]
    synthetic = [columns[name] for columns in sides.datasets]
    row: dict[str, Any] = {
        "variable": name,
        "kind": KINDS[0 if is_numeric(sides, name) else 1],
        "synthesized": name in sides.synthesized,
        "mean_difference": np.nan,
        "sd_ratio": np.nan,
        "quantile_difference": np.nan,
    }
    if is_numeric(sides, name):
        row |= _numbers(own, synthetic)
    bins = [_binned(sides, name, values, _N_BINS) for values in (own, *synthetic)]
    return row | _distances(bins[0], bins[1:], _n_bins(sides, name, _N_BINS))


def _numbers(own: FloatArray, synthetic: Sequence[FloatArray]) -> dict[str, float]:
    spread = _spread(own)
    if not spread > 0:
        return {}
    means = np.mean([values.mean() for values in synthetic])
    spreads = np.mean([_spread(values) for values in synthetic])
    quantiles = np.mean([_smooth_quantiles(values) for values in synthetic], axis=0)
    return {
        "mean_difference": float(means - own.mean()) / spread,
        "sd_ratio": float(spreads) / spread,
        "quantile_difference": float(np.abs(quantiles - _smooth_quantiles(own)).max()) / spread,
    }


def _spread(values: FloatArray) -> float:
    """Return the standard deviation, also of numbers whose squares cannot be held."""
    unit = float(unit_of(values))
    return unit * float((values / unit).std(ddof=1)) if len(values) > 1 else 0.0


def _smooth_quantiles(values: FloatArray) -> FloatArray:
    """Return means of the values about quantiles, so that none is a record's own."""
    ordered, n = np.sort(values), len(values)
    reach = max(_LEAST_ABOUT, int(_ABOUT * n))
    centres = [round(q * (n - 1)) for q in QUANTILES]
    return np.array([ordered[max(k - reach, 0) : k + reach + 1].mean() for k in centres])


def _edges(sides: Sides, name: str, n_bins: int) -> FloatArray:
    inner = np.arange(1, n_bins) / n_bins
    return np.unique(np.quantile(sides.confidential[name], inner))


def _binned(sides: Sides, name: str, values: npt.NDArray[Any], n_bins: int) -> IntArray:
    """Return codes: levels, or bins that each hold about as many confidential records."""
    if not is_numeric(sides, name):
        return values.astype(np.int64)
    codes = np.searchsorted(_edges(sides, name, n_bins), values, side="left")
    return codes.astype(np.int64)


def _n_bins(sides: Sides, name: str, n_bins: int) -> int:
    variable = sides.schema.variables[name]
    if isinstance(variable, Factor):
        return len(variable.levels)
    return len(_edges(sides, name, n_bins)) + 1


def _distances(own: IntArray, synthetic: Sequence[IntArray], n_cells: int) -> dict[str, float]:
    """Return mean distances between shares of cells, and what chance makes of the first."""
    p = np.bincount(own, minlength=n_cells) / len(own)
    variations, hellingers, chances = [], [], []
    for codes in synthetic:
        q = np.bincount(codes, minlength=n_cells) / len(codes)
        variations.append(0.5 * np.abs(p - q).sum())
        hellingers.append(np.sqrt(max(1.0 - np.sqrt(p * q).sum(), 0.0)))
        together = (p * len(own) + q * len(codes)) / (len(own) + len(codes))
        variance = together * (1.0 - together) * (1.0 / len(own) + 1.0 / len(codes))
        chances.append(0.5 * np.sqrt(2.0 / np.pi * variance).sum())  # E|x| of a normal x
    return {
        "total_variation": float(np.mean(variations)),
        "by_chance": float(np.mean(chances)),
        "hellinger": float(np.mean(hellingers)),
    }


def _pairs(sides: Sides) -> Iterator[dict[str, Any]]:
    sizes = {name: _n_bins(sides, name, _N_BINS_OF_PAIRS) for name in sides.names}
    codes = [
        {name: _binned(sides, name, side[name], _N_BINS_OF_PAIRS) for name in sides.names}
        for side in (sides.confidential, *sides.datasets)
    ]
    for first, second in combinations(sides.names, 2):
        crossed = [side[first] * sizes[second] + side[second] for side in codes]
        row: dict[str, Any] = {"first": first, "second": second}
        if is_numeric(sides, first) and is_numeric(sides, second):
            own = _correlation(sides.confidential, first, second)
            theirs = float(np.mean([_correlation(d, first, second) for d in sides.datasets]))
            row |= {
                "correlation_confidential": own,
                "correlation_synthetic": theirs,
                "correlation_difference": theirs - own,
            }
        yield row | _distances(crossed[0], crossed[1:], sizes[first] * sizes[second])


def _correlation(columns: Columns, first: str, second: str) -> float:
    a, b = (columns[name] / unit_of(columns[name]) for name in (first, second))
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])
