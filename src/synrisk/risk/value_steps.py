"""Values that were rounded: to which steps, and spread out over these.

A value that was rounded stands for all within half a step. Two that agree are then as near as
chance makes them, not at distance zero.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray

_DIGITS = 7  # a number of no more significant ones was rounded
_NEARLY_ALL = 0.95  # of the values
_LEAST_IN_DECADE = 4  # values, for it to have a step of its own
_TRIED_FIRST, _TRIED = 50, 1000  # values that are looked at
_HEAP = 0.01  # of the values, at one of many digits
_OFF_GRID = 1e-12  # relative

_COARSER = (5, 10, 50, 100, 500, 1000)  # times the finest step
_LEAST_HEAPED = 0.1  # of values, on a coarser grid


def is_rounded(values: FloatArray) -> bool:
    """Tell whether nearly all values, or their exponentials, are written with few digits."""
    return _scale_of(values) is not None


def spread_out(
    own: FloatArray, rows: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return records' and rows' values, spread over the steps to which the rows were rounded."""
    scale = _scale_of(rows)
    if scale is None:
        return own, rows
    there, back = scale
    parts = []
    given = there(rows)
    steps = _steps(given)
    for values in (there(own), given):
        width = steps(values)
        jittered = values + width * (rng.random(len(values)) - 0.5)
        parts.append(back(jittered))
    return parts[0], parts[1]


def heap_widths(values: FloatArray, among: FloatArray) -> FloatArray:
    """Return how far apart the values are to which some were brought, such as hundreds; else 0.

    Where far more of the values `among` which they are stand on a coarser grid than its finest
    would give, those on it are as rough as the grid.
    """
    width = np.zeros(len(values))
    if not is_rounded(among):
        return width
    finest = common_step(among)
    if not finest or finest > np.median(np.abs(among[among != 0.0])):
        return width  # beside one of another size all values count as none
    for times in _COARSER:
        if _share(_on_grid(among, times * finest)) > max(_LEAST_HEAPED, 3.0 / times):
            width[_on_grid(values, times * finest)] = times * finest
    return width


def is_heaped(values: FloatArray) -> BoolArray:
    """Tell which values were brought to a common one: a bound, or zero.

    Of rounded values, a smallest or largest one that is far more frequent than the next.
    """
    ordered = np.sort(values)
    if is_rounded(values):
        distinct, n_each = np.unique(ordered, return_counts=True)
        ends = [(0, 1), (-1, -2)] if len(distinct) > 1 else []
        heaps = [
            distinct[end] for end, following in ends if n_each[end] > max(2, 3 * n_each[following])
        ]
        return np.isin(values, heaps)
    repeated = ordered[1:] == ordered[:-1]
    if not repeated.any():
        return np.zeros(len(values), dtype=bool)
    distinct, n_each = np.unique(ordered, return_counts=True)
    heaped = n_each >= max(3, _HEAP * len(values))
    heaped[[0, -1]] |= n_each[[0, -1]] > 1
    return np.isin(values, distinct[heaped])


_Scale = Callable[[FloatArray], FloatArray]


def _scale_of(values: FloatArray) -> tuple[_Scale, _Scale] | None:
    """Return the scale on which values are rounded, there and back; None for those that are not."""
    few = values[:: max(len(values) // _TRIED_FIRST, 1)]
    if not any(
        _share(found) > 0.5 for found in (_is_short(few), _is_single(few), _is_short(_raised(few)))
    ):
        return None
    some = values[:: max(len(values) // _TRIED, 1)]
    if _share(_is_short(some)) >= _NEARLY_ALL or _share(_is_single(some)) >= _NEARLY_ALL:
        return _same, _same
    raised = _raised(some)
    if np.isfinite(raised).all() and _share(_is_short(raised)) >= _NEARLY_ALL:
        return _raised, _logged
    return None


def _same(values: FloatArray) -> FloatArray:
    return values


def _raised(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(values))


def _logged(values: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(values, 1e-300)))


def _share(found: BoolArray) -> float:
    return float(found.mean()) if len(found) else 0.0


def _decade(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        decade = np.floor(np.log10(np.abs(values)))
    return np.where(np.isfinite(decade), decade, -np.inf)


def _is_short(values: FloatArray) -> BoolArray:
    """Tell which numbers have few significant digits."""
    decade = _decade(values)
    unit = 10.0 ** (np.where(np.isfinite(decade), decade, 0.0) - _DIGITS + 1)
    return _on_grid(values, unit)


def _is_single(values: FloatArray) -> BoolArray:
    """Tell which numbers are of single precision."""
    with np.errstate(over="ignore"):
        return np.asarray(values.astype(np.float32).astype(np.float64) == values)


def _on_grid(values: FloatArray, step: FloatArray | float) -> BoolArray:
    with np.errstate(all="ignore"):
        multiple = values / step
        off = np.abs(multiple - np.rint(multiple))
        return np.asarray(off <= _OFF_GRID * np.maximum(np.abs(multiple), 1.0))


def _steps(values: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the step at each value: that of its decade, or of all where it holds few.

    Amounts of three significant digits have one that grows with them.
    """
    decades = _decade(values)
    common = common_step(values)
    by_decade = {
        decade: common_step(values[decades == decade])
        for decade in np.unique(decades[np.isfinite(decades)])
        if (decades == decade).sum() >= _LEAST_IN_DECADE
    }

    def at(of: FloatArray) -> FloatArray:
        own = _decade(of)
        step = np.full(len(of), common)
        for decade, width in by_decade.items():
            step[own == decade] = width
        return step

    return at


def common_step(values: FloatArray) -> float:
    """Return the largest step of which nearly all are multiples: a power of ten, or a part."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    top = int(np.floor(np.log10(largest)))
    for power in range(top, top - _DIGITS - 2, -1):
        for part in (1.0, 0.5, 0.25, 0.2):
            if _share(_on_grid(values, part * 10.0**power)) >= _NEARLY_ALL:
                return part * 10.0**power
    return float(np.spacing(np.float32(largest)))
