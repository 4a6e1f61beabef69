"""The plots of a comparison: a map of risk and utility, and the risk as a curve in m."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from synrisk.base.errors import OptionError, one_of
from synrisk.plots.plot_list import PlotList

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RISKS = {
    "log_odds_range_q95": "how far the release moves log odds\n(95 % quantile over records)",
    "gain_max": "the most that the release adds\nto a truth's probability",
    "gain_q95": "what the release adds to the truth's\nprobability (95 % quantile over records)",
    "lift_q95": "lift of the truth (95 % quantile over records)",
    "lift_mean": "mean lift of the truth over records",
    "lift_max": "largest lift of a record's truth",
    "probability": "mean probability of the truth",
    "share_above_prior": "share of records above their prior",
}
UTILITIES = {
    "pmse_ratio": "pMSE over its expectation\n(1: the right models, 0: a copy)",
    "specks": "SPECKS",
    "overlap": "mean overlap of confidence intervals",
    "overlap_as_data": "mean overlap of confidence intervals,\nthe release taken for the data",
}
# Whether a risk can be judged by what the checks of its release found; "accepted" was not checked,
# and the criteria accept that.
YES, NO, UNCHECKED, ACCEPTED = "yes", "no", "not checked", "accepted"

_LESS_IS_MORE = ("pmse_ratio", "specks")
_STRIP = 0.24  # of the width, for releases whose risk cannot be judged


class ComparisonPlots(PlotList):
    """Plots of a comparison; each returns its matplotlib Axes."""

    def __init__(
        self, table: pd.DataFrame, synthesizers: Sequence[int], cautions: Sequence[str] = ()
    ) -> None:
        self._table = table
        self._synthesizers = synthesizers
        self._caution = f"no fair comparison: {', '.join(cautions)}" if cautions else ""

    def map(
        self,
        *,
        risk: str | None = None,
        utility: str = "pmse_ratio",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw risk against utility, a point a release.

        Releases whose risk cannot be judged stand in a strip of their own, without a place on the
        axis of risk: their number would mislead. Hollow points were not checked, the others in
        the strip were, and failed; a hollow one has a place on the axis where the criteria accept
        it.

        Parameters
        ----------
        risk
            ``"log_odds_range_q95"``, which rises whichever way the release moved the intruder, and
            is the default but of audits, which do not know it; or ``"gain_max"``, their default,
            ``"gain_q95"``, ``"lift_q95"``, ``"lift_mean"``, ``"lift_max"``, ``"probability"``,
            ``"share_above_prior"``: these also fall where the release was lucky.
        utility
            ``"pmse_ratio"``, ``"specks"``, ``"overlap"`` or ``"overlap_as_data"``.
        ax
            Where to draw.
        """
        from synrisk.plots import style

        risk = self._checked(risk)
        one_of("utility", utility, UTILITIES)
        (axes,) = style.panels(1, ax, (7.4, 4.4))
        _draw_map(axes, self._table, risk, utility, self._caution)
        return axes

    def curve(self, *, risk: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the risk against the number of datasets, a line a synthesizer.

        Releases whose risk cannot be judged are left out.

        Parameters
        ----------
        risk
            As in `map`.
        ax
            Where to draw.
        """
        from synrisk.plots import style

        if not self._synthesizers:
            raise OptionError("An audit knows no synthesizer to draw a line of; see map().")
        risk = self._checked(risk)
        (axes,) = style.panels(1, ax, (6.2, 4.0))
        _draw_curve(axes, self._table, self._synthesizers, risk, self._caution)
        return axes

    def _checked(self, risk: str | None) -> str:
        """Return which risk is drawn: by default the first that the table has."""
        known = [name for name in RISKS if name in self._table]
        return known[0] if risk is None else one_of("risk", risk, known)


def _is_placed(table: pd.DataFrame) -> pd.Series[bool]:
    """Tell which releases have a place on the axis of risk."""
    return table["judged"].isin([YES, ACCEPTED])


def _draw_map(ax: Axes, table: pd.DataFrame, risk: str, utility: str, caution: str) -> None:
    from synrisk.plots.style import COLOURS, GREY, MARKERS, caption, legend, text

    placed = _is_placed(table)
    x = np.array(table[risk], dtype=float)
    x[~placed] = _lay_out_risk(ax, x[placed], risk, int((~placed).sum()))
    hollow = table["judged"].isin([UNCHECKED, ACCEPTED])
    handles = []
    for k, (place, y, empty) in enumerate(zip(x, table[utility], hollow, strict=True)):
        colour = COLOURS[k % len(COLOURS)]
        handles.append(
            ax.plot(
                place, y, linestyle="none",
                marker=MARKERS[(k + k // len(COLOURS)) % len(MARKERS)], markersize=9,
                markeredgecolor=colour, markeredgewidth=1.6,
                markerfacecolor="none" if empty else colour, clip_on=False, zorder=3,
            )[0]
        )  # fmt: skip
    if risk.startswith("lift") and placed.any():
        ax.axvline(1.0, color=GREY, linestyle=":", linewidth=1.3)
    _utility_axis(ax, table[utility].dropna().to_numpy(dtype=float), utility)
    caption(ax, "a point a release" + ("; hollow: not checked" if hollow.any() else ""), caution)
    labels = [text(name) for name in table.index]
    legend(ax, handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _lay_out_risk(ax: Axes, known: Any, risk: str, n_unjudged: int) -> Any:
    """Lay out the axis of risk and the strip beside it; return the places of those in the strip."""
    from matplotlib.ticker import FixedLocator

    from synrisk.plots.style import GREY, plain_axis

    low, high = _range(known[np.isfinite(known)], risk)
    left = high + 0.06 * (high - low)  # where the strip begins
    right = left + (left - low) * _STRIP / (1.0 - _STRIP)
    ax.set_xlim(low, high)
    plain_axis(ax)
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    told = " (1: told nothing)" if risk.startswith("lift") else ""
    label = f"{RISKS[risk]}{told}\nmore risk →"
    if not len(known):  # the strip is all there is
        left, ticks, label = low, [], "no risk can be judged, so none is drawn"
    ax.set_xlim(low, right if n_unjudged else left)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.set_xlabel(label)
    if n_unjudged:
        ax.axvspan(left, right, color=GREY, alpha=0.15, linewidth=0)
    if n_unjudged and len(known):
        ax.annotate(
            "risk cannot\nbe judged", (0.5 * (left + right), 1.0),
            xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
            ha="center", va="bottom", fontsize="small",
        )  # fmt: skip
    # Side by side, since two copies have the same utility.
    return left + (right - left) * (np.arange(n_unjudged) + 0.5) / max(n_unjudged, 1)


def _utility_axis(ax: Axes, values: Any, utility: str) -> None:
    """Lay out the axis of utility so that what is higher is more useful."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from synrisk.plots.style import GREY, plain_axis

    ax.set_ylabel(f"{UTILITIES[utility]}\nmore useful →")
    low, high = _range(values, utility)
    if utility == "pmse_ratio":
        top = max(float(values.max(initial=0.0)), 2.0)
        ax.set_yscale("symlog", linthresh=1.0)
        ax.set_ylim(1.6 * top, -0.12)
        powers = 10.0 ** np.arange(0, np.ceil(np.log10(top)) + 1)
        ticks = np.sort(np.concatenate([[0.0, 0.5], powers, 2.0 * powers, 5.0 * powers]))
        ax.yaxis.set_major_locator(FixedLocator([one for one in ticks if one <= 1.6 * top]))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.axhline(1.0, color=GREY, linestyle=":", linewidth=1.3)
        return
    ax.set_ylim(*((high, low) if utility in _LESS_IS_MORE else (low, high)))
    plain_axis(ax, "y")


def _range(values: Any, what: str) -> tuple[float, float]:
    """Return limits with some room; those of shares hold 0 and 1."""
    if what.startswith(("overlap", "share", "specks")):
        return -0.04, 1.04
    if what.startswith(("lift", "log_odds")):
        values = np.append(values, 1.0 if what.startswith("lift") else 0.0)
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def _draw_curve(
    ax: Axes, table: pd.DataFrame, synthesizers: Sequence[int], risk: str, caution: str
) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    from synrisk.plots.style import (
        COLOURS,
        DASHES,
        GREY,
        MARKERS,
        caption,
        legend,
        plain_axis,
        text,
    )

    groups = pd.Series(synthesizers, index=table.index)
    handles, labels = [], []
    for k, group in enumerate(dict.fromkeys(synthesizers)):
        rows = table[groups == group].sort_values("n_datasets", kind="stable")
        colour = COLOURS[k % len(COLOURS)]
        judged = _is_placed(rows)
        line = ax.plot(
            rows.loc[judged, "n_datasets"], rows.loc[judged, risk], color=colour,
            linestyle=DASHES[k % len(DASHES)], marker=MARKERS[k % len(MARKERS)], markersize=6,
        )[0]  # fmt: skip
        if judged.any():
            handles.append(line)
            labels.append(text(", ".join(str(name) for name in rows.index[judged]), 40))
    left_out = int((~_is_placed(table)).sum())
    sizes = sorted(set(table["n_datasets"]))
    if sizes[-1] > 20 * sizes[0]:
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_major_locator(FixedLocator(sizes))
    if risk.startswith("lift"):
        ax.axhline(1.0, color=GREY, linestyle=":", linewidth=1.3)
    plain_axis(ax, "y")
    if risk == "log_odds_range_q95":
        ax.set_ylim(bottom=0.0)
    ax.set_xlabel("m, the number of synthetic datasets")
    ax.set_ylabel(RISKS[risk])
    out = f"; {left_out} that cannot be judged left out" if left_out else ""
    caption(ax, f"a line a synthesizer{out}", caution)
    if left_out == len(table):
        ax.yaxis.set_major_locator(NullLocator())
        ax.text(
            0.5, 0.5, "no risk can be judged, so none is drawn", transform=ax.transAxes,
            ha="center", va="center",
        )  # fmt: skip
    legend(ax, handles, labels, loc="best")
