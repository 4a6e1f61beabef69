"""The plots of a utility: ``utility.plot.overlap()`` and the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from synrisk.base.errors import one_of
from synrisk.plots.plot_list import PlotList

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 0.3  # inches
_MOST_ROWS = 40


class UtilityPlots(PlotList):
    """Plots of a utility; each returns its matplotlib Axes."""

    def __init__(self, intervals: pd.DataFrame, marginals: pd.DataFrame, level: float) -> None:
        self._intervals = intervals
        self._marginals = marginals
        self._level = level

    def overlap(self, *, analysis: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the confidence intervals of both sides, and how far they overlap.

        Estimates are drawn in standard errors of the confidential one, from it.

        Parameters
        ----------
        analysis
            One of ``utility.intervals``' analyses; None draws all, the first forty estimates.
        ax
            Where to draw.
        """
        from synrisk.plots import style

        table = self._intervals
        known = list(dict.fromkeys(table.index.get_level_values("analysis")))
        if analysis is not None:
            table = table.loc[[one_of("analysis", analysis, known, or_none=True)]]
        n_all = len(table)
        table = table.iloc[:_MOST_ROWS]
        size = (7.6, 1.5 + _ROW * len(table))
        (axes,) = style.panels(1, ax, size)
        _draw_overlap(axes, table, self._level, n_all, several=analysis is None)
        return axes

    def marginals(self, *, ax: Axes | None = None) -> Axes:
        """Draw each variable's total variation distance beside what chance makes of it.

        Parameters
        ----------
        ax
            Where to draw.
        """
        from synrisk.plots import style

        table = self._marginals.iloc[:_MOST_ROWS]
        (axes,) = style.panels(1, ax, (6.4, 1.5 + _ROW * len(table)))
        _draw_marginals(axes, table, len(self._marginals))
        return axes


def _draw_overlap(
    ax: Axes, table: pd.DataFrame, level: float, n_all: int, *, several: bool
) -> None:
    from synrisk.plots.style import BLUE, GREY, VERMILLION, caption, ink, legend, plain_axis, text

    rows = table.reset_index().to_dict("records")
    widest = 0.0
    handles: list[Any] = []
    for place, row in enumerate(rows):
        se, centre = row["se_confidential"], row["estimate_confidential"]
        if not se > 0:
            continue
        for side, shift, colour, marker in (
            ("confidential", -0.14, ink(), "o"),
            ("synthetic", 0.14, VERMILLION, "s"),
        ):
            low, at, high = (
                (row[f"{what}_{side}"] - centre) / se for what in ("low", "estimate", "high")
            )
            y = place + shift
            ax.plot([low, high], [y, y], color=colour, linewidth=2.0, solid_capstyle="butt")
            point = ax.plot(at, y, color=colour, marker=marker, markersize=4.5, linestyle="none")[0]
            widest = max(widest, min(abs(low), 30.0), min(abs(high), 30.0))
            if len(handles) < 2:
                handles.append(point)
    ax.axvline(0.0, color=GREY, linestyle=":", linewidth=1.2)
    reach = 1.05 * widest or 1.0
    ax.set_xlim(-reach, reach)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    labels = [
        text(row["term"], 28)
        if not several
        else f"{text(row['analysis'], 26)}: {text(row['term'], 24)}"
        for row in rows
    ]
    ax.set_yticks(range(len(rows)), labels, fontsize="small")
    for place, row in enumerate(rows):
        shown = f"{row['overlap']:.2f}" if np.isfinite(row["overlap"]) else "–"
        ax.annotate(
            shown, (1.0, place), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize="small", color=BLUE,
        )  # fmt: skip
    ax.annotate(
        "overlap", (1.0, 1.0), xycoords="axes fraction", xytext=(4, 3), textcoords="offset points",
        fontsize="small", color=BLUE, va="bottom",
    )  # fmt: skip
    ax.set_xlabel("distance from the confidential estimate, in its standard errors")
    more = "" if n_all == len(rows) else f"; the first {len(rows)} of {n_all:,} estimates"
    caption(ax, f"{100 * level:g} % confidence intervals{more}")
    plain_axis(ax)
    ax.yaxis.set_inverted(True)
    legend(
        ax, handles, ["confidential", "synthetic"][: len(handles)], loc="upper left",
        bbox_to_anchor=(0.0, _below(ax)), ncols=2,
    )  # fmt: skip


def _draw_marginals(ax: Axes, table: pd.DataFrame, n_all: int) -> None:
    from synrisk.plots.style import BLUE, caption, ink, legend, plain_axis, text

    places = np.arange(len(table))
    bars = ax.barh(places, table["total_variation"], height=0.62, color=BLUE)
    chance = ax.plot(
        table["by_chance"], places, linestyle="none", marker="|", markersize=13,
        markeredgewidth=2.2, color=ink(),
    )[0]  # fmt: skip
    labels = [
        f"{text(name)}{'' if synthesized else ' (as it was)'}"
        for name, synthesized in zip(table.index, table["synthesized"], strict=True)
    ]
    ax.set_yticks(places, labels, fontsize="small")
    ax.set_ylim(len(table) - 0.4, -0.6)
    top = float(np.nanmax([table["total_variation"].max(), table["by_chance"].max()]))
    ax.set_xlim(0.0, 1.08 * top or 1.0)
    plain_axis(ax)
    ax.set_xlabel("total variation distance between shares of levels or bins")
    more = "" if n_all == len(table) else f"; the first {len(table)} of {n_all:,}"
    caption(ax, f"confidential against synthetic, by variable{more}")
    legend(
        ax, [bars, chance], ["the release", "what chance makes of it"], loc="upper left",
        bbox_to_anchor=(0.0, _below(ax)), ncols=2,
    )  # fmt: skip


def _below(ax: Axes) -> float:
    """Return how far below the axes a legend clears their label, as a share of their height."""
    return -0.62 / max(float(ax.get_window_extent().height) / float(ax.figure.dpi), 0.5)
