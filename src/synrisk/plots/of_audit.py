"""The plots of an audit: ``audit.plot.before_after()`` and the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from synrisk.audit.copies import Copies
from synrisk.base.errors import OptionError, counted, got, one_of
from synrisk.core.measures import JOINT, RecordMeasures
from synrisk.core.spread import Spread
from synrisk.plots.plot_list import PlotList

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LIMITED = ("gain", "probability", "lift")
_LEAST = 1e-6  # of a probability that is drawn


class AuditPlots(PlotList):
    """Plots of an audit; each returns its matplotlib Axes.

    Without ``ax=`` a plot has a figure of its own, ``axes.figure``. Plots show what was found about
    people: for figures that may be shared see `Audit.report`.
    """

    def __init__(self, measures: RecordMeasures, copies: Copies) -> None:
        self._measures = measures
        self._copies = copies

    def before_after(self, *, of: str = JOINT, ax: Axes | None = None) -> Axes:
        """Draw the probability of each person's truth with the release against that without it.

        Parameters
        ----------
        of
            ``"joint"``, of each person the column of which most is learnt, or a sensitive column.
        ax
            Where to draw.
        """
        from synrisk.plots import style

        gain = self._measures[self._checked(of), "gain"]
        (axes,) = style.panels(1, ax)
        over = gain.value > 0.1
        handles: list[Any] = []
        labels = []
        for rows, colour, marker, said in (
            (~over, style.BLUE, "o", "up to 0.1 more"),
            (over, style.VERMILLION, "X", "more than 0.1 more"),
        ):
            if rows.any():
                points = axes.scatter(
                    gain.before[rows], gain.after[rows], s=12 if marker == "o" else 22,
                    color=colour, marker=marker, linewidths=0,
                    alpha=style.shade(gain.before), rasterized=len(rows) > 500,
                )  # fmt: skip
                handles.append(points)
                labels.append(f"{said} ({int(rows.sum()):,})")
        handles.append(axes.plot([0, 1], [0, 1], color=style.ink(), linestyle="--", linewidth=1)[0])
        labels.append("the release added nothing")
        style.caption(axes, self._said(of), f"n = {counted(len(over), 'record')}")
        axes.set_xlabel("probability of the truth before the release")
        axes.set_ylabel("after the release")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        style.legend(axes, handles, labels, loc="lower right")
        return axes

    def exceedance(
        self,
        *,
        measure: str = "gain",
        of: str | Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the share of people whose risk is over a threshold, against the threshold.

        Parameters
        ----------
        measure
            ``"gain"``, ``"probability"`` or ``"lift"``.
        of
            ``"joint"``, a sensitive column, or a list of these; None draws all that there are.
        ax
            Where to draw.
        """
        from synrisk.plots import probabilities, style

        one_of("measure", measure, _LIMITED)
        names = [JOINT, *self._measures.variables] if of is None else of
        if not isinstance(names, str | list | tuple) or not names:
            raise OptionError(f"of= is a name or a list of names; got {got(of)}.")
        chosen = [self._checked(name) for name in ([names] if isinstance(names, str) else names)]
        (axes,) = style.panels(1, ax)
        drawn = {
            name: Spread.of(self._measures[name, measure].value) for name in dict.fromkeys(chosen)
        }
        probabilities.draw_exceedance(axes, drawn, measure)
        return axes

    def closeness(self, *, ax: Axes | None = None) -> Axes:
        """Draw how many people have a row nearer than chance would bring it.

        Of an honest release the curve follows the line; copied people lift its left end.

        Parameters
        ----------
        ax
            Where to draw.
        """
        from synrisk.plots import style

        (axes,) = style.panels(1, ax)
        p = np.sort(np.maximum(self._copies.p, _LEAST))
        share = np.arange(1, len(p) + 1) / len(p)
        handles: list[Any] = [
            axes.step(p, share, where="post", color=style.BLUE, linewidth=1.7)[0],
            axes.plot([_LEAST, 1], [_LEAST, 1], color=style.ink(), linestyle="--", linewidth=1)[0],
        ]
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(_LEAST, 1.0)
        axes.set_ylim(0.5 / len(p), 1.3)
        n_named = int(self._copies.named.sum())
        style.caption(axes, f"n = {counted(len(p), 'record')}; {n_named:,} named as too close")
        axes.set_xlabel("probability of a row as near by chance")
        axes.set_ylabel("share of records with such a row")
        axes.grid(visible=True, which="major", alpha=0.3)
        style.legend(axes, handles, ["this release", "by chance"], loc="lower right")
        return axes

    def _checked(self, of: Any) -> str:
        return one_of("of=", of, (JOINT, *self._measures.variables))

    def _said(self, of: str) -> str:
        from synrisk.plots.style import text

        return "the column of which most is learnt" if of == JOINT else text(of)
