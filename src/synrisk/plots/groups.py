"""Risk against a column of the confidential data, and by groups of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.plots.style import (
    BLUE,
    GREY,
    HEAT,
    ORANGE,
    VERMILLION,
    caption,
    ink,
    legend,
    level_ticks,
    plain_axis,
    shade,
    text,
)
from synrisk.plots.view import MEASURES

_MANY = 2000  # points beyond which their number is shaded
_FEW = 30  # records of a group that are drawn one by one
_RUN, _LEAST_RUN = 25, 5  # records of a running median


@dataclass(frozen=True)
class Words:
    """What a plot of a risk is called.

    Attributes
    ----------
    measure
        Of risk.
    of
        Whose probability it is of.
    counted
        Says how many records are drawn.
    """

    measure: str
    of: str
    counted: Callable[[int], str]


def draw_against(ax: Axes, column: pd.Series[Any], risk: FloatArray, words: Words) -> None:
    """Draw risk against numbers, with a running median."""
    x: FloatArray = column.to_numpy(dtype=np.float64, na_value=np.nan)
    known = np.isfinite(x) & np.isfinite(risk)
    x, y = x[known], risk[known]
    if len(x) > _MANY:
        cells = ax.hexbin(x, y, gridsize=45, cmap=HEAT, mincnt=1, bins="log", linewidths=0.1)
        ax.figure.colorbar(cells, ax=ax, label="records in a cell (log scale)")
    else:
        ax.scatter(x, y, s=16, color=BLUE, alpha=shade(x), linewidths=0, rasterized=len(x) > 500)
    _finish(ax, words, known)
    ax.set_xlabel(f"{text(column.name)}, confidential")
    plain_axis(ax)
    run = max(len(x) // 20, min(_RUN, len(x) // 3))
    if run < _LEAST_RUN:
        return
    order = np.argsort(x, kind="stable")
    rolled = pd.DataFrame({"x": x[order], "y": y[order]}).rolling(run, center=True).median()
    ax.plot(rolled["x"], rolled["y"], color="white", linewidth=4.0, zorder=3)  # parts it from cells
    line = ax.plot(rolled["x"], rolled["y"], color=VERMILLION, linewidth=2.0, zorder=4)[0]
    legend(ax, [line], [f"running median of {run:,} records"])


def draw_boxes(
    ax: Axes,
    variable: str,
    parts: Sequence[tuple[str, BoolArray]],
    risk: FloatArray,
    words: Words,
) -> None:
    """Draw risk by group as boxes; of small groups each record."""
    known, groups = _known_groups(parts, risk)
    large = [k for k, (_, values) in enumerate(groups) if len(values) > _FEW]
    if large:
        ax.boxplot(
            [groups[k][1] for k in large],
            positions=large,
            widths=0.6,
            whis=(5, 95),
            showfliers=False,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": BLUE, "alpha": 0.35, "edgecolor": BLUE},
            medianprops={"color": ink(), "linewidth": 1.8},
            whiskerprops={"color": BLUE},
            capprops={"color": BLUE},
        )
    for k, (_, values) in enumerate(groups):
        if k not in large:
            # Spread evenly to the sides, so that points do not hide one another.
            aside = 0.3 * (np.arange(len(values)) / max(len(values) - 1, 1) - 0.5)
            ax.plot(k + aside, values, "o", color=BLUE, alpha=0.7, markersize=4, linestyle="none")
    level_ticks(ax, [f"{label}\n({len(values):,})" for label, values in groups])
    ax.set_xlim(-0.7, len(groups) - 0.3)
    _finish(ax, words, known)
    ax.set_xlabel(f"{text(variable)}, confidential (number of records)\n"
                  f"boxes: middle half; whiskers: 5 % to 95 %; up to {_FEW} records: each",
                  fontsize="small")  # fmt: skip


def _known_groups(
    parts: Sequence[tuple[str, BoolArray]], risk: FloatArray
) -> tuple[BoolArray, list[tuple[str, FloatArray]]]:
    """Return which records have a value, and the values by group, where there are some."""
    known = np.isfinite(risk)
    groups = [(label, risk[rows & known]) for label, rows in parts]
    return known, [(label, values) for label, values in groups if len(values)]


def _finish(ax: Axes, words: Words, known: BoolArray) -> None:
    _say_how_many(ax, words, known)
    ax.set_ylabel(MEASURES[words.measure])
    plain_axis(ax, "y")


def size(n_groups: int) -> tuple[float, float]:
    """Return a figure's size in inches."""
    return (6.0, max(2.6, 1.5 + 0.3 * n_groups))


def draw_by(
    ax: Axes,
    variable: str,
    parts: Sequence[tuple[str, BoolArray]],
    risk: FloatArray,
    words: Words,
) -> None:
    """Draw mean and quantiles of the risk by group, a line a group, the first on top."""
    known, groups = _known_groups(parts, risk)
    for k, (_, values) in enumerate(groups):
        low, lower, median, upper, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
        ax.plot([low, high], [k, k], color=GREY, linewidth=1.5, solid_capstyle="butt")
        ax.plot([lower, upper], [k, k], color=BLUE, linewidth=6, alpha=0.6, solid_capstyle="butt")
        ax.plot([median], [k], "|", color=ink(), markersize=12, markeredgewidth=2)
        ax.plot([values.mean()], [k], "D", color=ORANGE, markeredgecolor="black", markersize=6)
    ax.yaxis.set_major_locator(FixedLocator(range(len(groups))))
    ax.yaxis.set_major_formatter(
        FixedFormatter([f"{text(label, 24)} (n = {len(values):,})" for label, values in groups])
    )
    ax.tick_params(axis="y", labelsize="small")
    ax.set_ylim(len(groups) - 0.4, -0.6)
    ax.set_ylabel(text(variable))
    ax.set_xlabel(
        f"{MEASURES[words.measure]}\ndiamond: mean; bar: median\n"
        "thick: middle half; thin: 5 % to 95 %",
        fontsize="small",
    )
    plain_axis(ax)
    _say_how_many(ax, words, known)


def _say_how_many(ax: Axes, words: Words, known: BoolArray) -> None:
    n_unknown = int((~known).sum())
    unknown = f" ({n_unknown:,} without a value left out)" if n_unknown else ""
    caption(ax, words.of, f"n = {words.counted(int(known.sum()))}{unknown}")
