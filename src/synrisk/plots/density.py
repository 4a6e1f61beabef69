"""The density of a column of numbers, by arviz-stats."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from synrisk.base.arrays import FloatArray

_SAME = 1e-9  # values within this of one another, relatively, are one
_BEYOND = 0.6  # standard deviations that a density goes on beyond the last value
_DISTINCT = 12  # values so few that a density would show bumps where there is nothing
_FEW = 100  # values so few are drawn one by one beside the density


def is_constant(values: FloatArray) -> bool:
    """Tell whether values differ by rounding alone."""
    return bool(np.ptp(values) <= _SAME * np.abs(values).max())


def few_values(values: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return the values that occur and the share of each, where they are few but not one."""
    known = np.sort(values[np.isfinite(values)])
    if not len(known) or is_constant(known):
        return None
    apart = np.diff(known) > _SAME * np.abs(known).max()
    starts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    if len(starts) > _DISTINCT or 2 * len(starts) > len(known):
        return None
    return known[starts], np.diff(np.append(starts, len(known))) / len(known)


def density(values: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Return a grid and the density there, for values that lie between `low` and `high`.

    It is reflected at these, so that nothing is smoothed past them.
    """
    from arviz_stats.base import array_stats

    beyond = _BEYOND * float(values.std())
    limits = (max(low, float(values.min()) - beyond), min(high, float(values.max()) + beyond))
    # Half of Silverman's rule is 0 where half of the values are equal.
    spread = np.subtract(*np.quantile(values, [0.75, 0.25]))
    width = "experimental" if spread > 0 else "scott"
    grid, height, _ = array_stats.kde(values, bw=width, custom_lims=limits)
    return np.asarray(grid), np.asarray(height)


def draw_density(
    ax: Axes,
    values: FloatArray,
    *,
    colour: Any,
    low: float = -np.inf,
    high: float = np.inf,
    fill: bool = False,
    **line: Any,
) -> Line2D:
    """Draw the density of values; of one value a spike; of few also each."""
    values = values[np.isfinite(values)]
    if not len(values):
        return ax.plot([], [], color=colour, **line)[0]
    if is_constant(values):
        only = float(values.mean())
        ax.plot([only], [1.0], marker="^", color=colour, clip_on=False)
        spike = ax.plot([only, only], [0.0, 1.0], color=colour, **{"linewidth": 2.4, **line})[0]
        ax.text(
            only, 0.5, "  all the same", color=colour, ha="left", va="center", fontsize="small",
            bbox={"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 1.0},
        )  # fmt: skip
        if fill:  # the only thing drawn: its height says nothing
            ax.set_yticks([])
        return spike
    grid, height = density(values, low, high)
    drawn = ax.plot(grid, height, color=colour, **{"linewidth": 1.7, **line})[0]
    if fill:
        ax.fill_between(grid, height, color=colour, alpha=0.22, linewidth=0)
    if fill and len(values) <= _FEW:
        ax.plot(
            values, np.zeros(len(values)), "|", color=colour, markersize=11, clip_on=False,
            alpha=0.7,
        )  # fmt: skip
    return drawn
