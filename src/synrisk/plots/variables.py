"""Values by variable: how far best guesses are off, and confidential against synthetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import counted
from synrisk.data.schema import Factor
from synrisk.plots.density import draw_density
from synrisk.plots.style import (
    BLUE,
    COLOURS,
    DASHES,
    GREY,
    MARKERS,
    SKY,
    PlainNumbers,
    caption,
    ink,
    legend,
    level_ticks,
    plain_axis,
    text,
)
from synrisk.plots.view import Drawn

_MOST_BARS = 50
_MOST_TOLD_APART = 5  # datasets with a line and a name of their own


def draw_difference(ax: Axes, drawn: Drawn, axis: int) -> None:
    """Draw |best guess − truth| of one variable."""
    family, name = drawn.labels.families[axis], text(drawn.labels.names[axis])
    off = drawn.differences(axis)
    n_records = off.ends.n
    n = f"n = {counted(n_records, 'record')}"
    if not family.is_ordered:
        right = off.n_where(lambda distance: distance == 0)
        shares = [right / n_records, (n_records - right) / n_records]
        ax.bar([0, 1], shares, color=[BLUE, GREY], width=0.7)
        level_ticks(ax, ["the truth", "another level"])
        ax.set_xlim(-0.6, 1.6)
        ax.set_xlabel("the best guess is …")
        ax.set_ylabel("share of records")
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        caption(ax, name, n)
        return
    caption(ax, name, f"{n}; mean {off.mean:.3g}")
    ax.set_xlabel("|best guess − truth|, in the variable's own units")
    if family.is_continuous:
        sample = drawn.sample
        own = sample.difference(axis)
        draw_density(ax, own[~np.isnan(own)], colour=BLUE, low=0.0, fill=True)
        if sample.sampled_from is not None:
            caption(ax, name, f"n = {sample.counted(len(own))}; mean of all {off.mean:.3g}")
        ax.set_ylabel("density of records")
        ax.yaxis.set_major_formatter(PlainNumbers())
        ax.set_ylim(bottom=0)
        plain_axis(ax)
        return
    ends = np.array([off.ends.smallest, off.ends.largest])
    edges = whole_edges(ends, step=family.grid_step)
    shares_of = off.counts(edges) / n_records
    ax.bar(edges[:-1] + np.diff(edges) / 2, shares_of, width=0.9 * np.diff(edges), color=BLUE)
    ax.set_ylabel("share of records")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=family.grid_step >= 1.0))


def whole_edges(*columns: FloatArray | IntArray, step: float = 1.0) -> FloatArray:
    """Return edges of bars over multiples of a step: one a value, or wider where there are many."""
    low = min(round(float(column.min()) / step) for column in columns)
    high = max(round(float(column.max()) / step) for column in columns)
    width = -(-(high - low + 1) // _MOST_BARS)
    n_bars = -(-(high - low + 1) // width)
    return step * (low - 0.5 + width * np.arange(n_bars + 1, dtype=np.float64))


def draw_distribution(
    ax: Axes, drawn: Drawn, axis: int, datasets: Sequence[npt.NDArray[Any]]
) -> None:
    """Draw one variable's confidential and synthetic distributions."""
    name = drawn.labels.names[axis]
    variable, family = drawn.labels.variables[axis], drawn.labels.families[axis]
    own = variable.there(drawn.evaluation.synthesizer.sample.columns[name])
    datasets = [variable.there(values) for values in datasets]
    sizes = {len(values) for values in datasets}
    rows = f"{min(sizes):,}" if len(sizes) == 1 else f"{min(sizes):,} to {max(sizes):,}"
    of_all = drawn.evaluation.synthesizer.n_records
    sampled = "" if of_all == len(drawn.evaluation.synthesizer.sample.data) else ", sampled evenly"
    caption(
        ax,
        text(name),
        f"{len(own):,} confidential records{sampled}; "
        f"{counted(len(datasets), 'synthetic dataset')} of {rows} rows",
    )
    if family.is_continuous:
        transformed = bool(drawn.evaluation.regression(axis).transform.steps)
        # A transform's values have a bound, which is 0 unless numbers are added to them.
        low = 0.0 if transformed and own.min() >= 0.0 else -np.inf
        _draw_densities(ax, own, datasets, low)
        ax.set_xlabel(f"{text(name)}, in its own units")
        return
    if isinstance(variable, Factor):
        levels = [str(level) for level in variable.levels]
        edges = np.arange(len(levels) + 1, dtype=np.float64) - 0.5
        _draw_shares(ax, own, datasets, edges)
        level_ticks(ax, levels)
        ax.set_xlabel("level")
        return
    _draw_shares(ax, own, datasets, whole_edges(own, *datasets, step=family.grid_step))
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=family.grid_step >= 1.0))
    ax.set_xlabel(f"{text(name)}, in its own units")


def _looks(m: int) -> list[dict[str, Any]]:
    """Return how each of m synthetic datasets is drawn: told apart where they are few."""
    if m > _MOST_TOLD_APART:
        return [{"color": BLUE, "k": 0}] * m
    return [{"color": COLOURS[k], "k": k} for k in range(m)]


def _names(m: int) -> list[str]:
    if m > _MOST_TOLD_APART:
        return [f"synthetic 1 to {m:,}"]
    return ["synthetic"] if m == 1 else [f"synthetic {k + 1}" for k in range(m)]


def _draw_densities(ax: Axes, own: FloatArray, datasets: Sequence[FloatArray], low: float) -> None:
    thick = draw_density(ax, own, colour=ink(), low=low, linewidth=2.6)
    lines = [
        draw_density(
            ax,
            values,
            colour=look["color"],
            low=min(low, float(values.min())),
            linewidth=1.4,
            linestyle=DASHES[1 + look["k"]],
            alpha=1.0 if len(datasets) <= _MOST_TOLD_APART else 0.45,
        )
        for values, look in zip(datasets, _looks(len(datasets)), strict=True)
    ]
    names = _names(len(datasets))
    ax.set_ylabel("density of records")
    ax.yaxis.set_major_formatter(PlainNumbers())
    ax.set_ylim(bottom=0)
    plain_axis(ax)
    legend(ax, [thick, *lines[: len(names)]], ["confidential", *names])


def _draw_shares(
    ax: Axes, own: npt.NDArray[Any], datasets: Sequence[npt.NDArray[Any]], edges: FloatArray
) -> None:
    centres, widths = edges[:-1] + np.diff(edges) / 2, np.diff(edges)
    bars = ax.bar(
        centres, np.histogram(own, edges)[0] / len(own), width=0.85 * widths, color=SKY,
        edgecolor=ink(), linewidth=0.6,
    )  # fmt: skip
    m = len(datasets)
    apart = min(m, _MOST_TOLD_APART)
    points = []
    for k, (values, look) in enumerate(zip(datasets, _looks(m), strict=True)):
        shift = 0.0 if m == 1 else 0.5 * ((k % apart) / (apart - 1) - 0.5)
        points.append(
            ax.plot(
                centres + shift * widths, np.histogram(values, edges)[0] / len(values),
                linestyle="none", marker=MARKERS[look["k"]], color=look["color"], markersize=5,
                markeredgecolor="white", markeredgewidth=0.5, alpha=1.0 if m <= apart else 0.6,
            )[0]
        )  # fmt: skip
    names = _names(m)
    ax.set_ylabel("share of records")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    legend(ax, [bars, *points[: len(names)]], ["confidential", *names])
