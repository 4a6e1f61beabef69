"""Probabilities of the truth over records: densities, ranks, errors, exceedance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

from synrisk.base.arrays import BoolArray
from synrisk.base.errors import counted
from synrisk.core.measures import JOINT
from synrisk.core.spread import Spread
from synrisk.plots.density import draw_density, few_values
from synrisk.plots.style import (
    BLUE,
    COLOURS,
    DASHES,
    GREY,
    ORANGE,
    VERMILLION,
    PlainNumbers,
    caption,
    ink,
    legend,
    plain_axis,
    shade,
    text,
)
from synrisk.plots.view import MEASURES, Drawn, Piece

_MOST_BARS = 60
_SAME = 1e-9  # priors closer than this, relatively, are one


def draw_probability(ax: Axes, drawn: Piece, of: str, said: str) -> None:
    """Draw the density of the truth's probability, and the prior."""
    numbers = drawn.numbers(of)
    prior, values = numbers.prior, numbers.probability
    few = few_values(values)
    if few is None:
        draw_density(ax, values, colour=BLUE, low=0.0, high=1.0, fill=True)
        ax.set_ylabel("density of records")
        ax.yaxis.set_major_formatter(PlainNumbers())
    else:
        ax.vlines(few[0], 0.0, few[1], color=BLUE, linewidth=4.0)
        ax.set_ylabel("share of records")
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    mean = float(prior.mean())
    line = ax.axvline(mean, color=ink(), linestyle="--", linewidth=1.4)
    if np.ptp(prior) <= _SAME * mean:
        handles: list[Any] = [line]
        labels = [f"prior {said_fraction(mean)}"]
    else:
        span = ax.axvspan(float(prior.min()), float(prior.max()), color=ORANGE, alpha=0.18, lw=0)
        handles = [line, span]
        labels = [f"mean prior {mean:.4g}", "range of the records' priors"]
    below = float((values < prior * (1.0 - _SAME)).mean())
    caption(ax, said, f"n = {drawn.counted(len(values))}, {below:.1%} of them below their prior")
    ax.set_xlabel("posterior probability of the truth")
    ax.set_ylim(bottom=0)
    plain_axis(ax)
    legend(ax, handles, labels)


def said_fraction(prior: float) -> str:
    """Return 1/121 = 0.00826 where a prior is one over a whole number, else the number."""
    one_over = round(1.0 / prior) if prior > 0 else 0
    if 1 < one_over < 1e6 and abs(prior * one_over - 1.0) < _SAME:
        return f"1/{one_over:,} = {prior:.3g}"
    return f"{prior:.4g}"


def draw_ranks(ax: Axes, drawn: Drawn, of: str, said: str) -> None:
    """Draw the histogram of the truth's rank."""
    ranks, n_guesses = drawn.spread(of, "rank"), drawn.spread(of, "n_guesses")
    least, most = int(n_guesses.ends.smallest), int(n_guesses.ends.largest)
    width = -(-most // _MOST_BARS)
    edges = 0.5 + width * np.arange(-(-most // width) + 1, dtype=np.float64)
    ax.bar(edges[:-1], ranks.counts(edges), 0.92 * width, align="edge", color=BLUE)
    random = (n_guesses.mean + 1.0) / 2.0
    line = ax.axvline(random, color=ink(), linestyle="--", linewidth=1.4)
    guesses = f"{most:,} guesses" if least == most else f"{least:,} to {most:,} guesses"
    first = ranks.n_where(lambda rank: rank == 1)
    caption(
        ax,
        said,
        f"n = {counted(ranks.ends.n, 'record')}, {guesses} each; {first:,} truths ranked first",
    )
    each = "" if width == 1 else f" (in bars of {width:,} ranks)"
    ax.set_xlabel(f"rank of the truth; 1 is the most probable{each}")
    ax.set_ylabel("number of records")
    ax.set_xlim(edges[0] - 0.02 * most, edges[-1] + 0.02 * most)
    legend(ax, [line], [f"{random:,.4g}, if the order were random"])


def draw_error(ax: Axes, drawn: Piece, of: str, reliable: BoolArray, said: str) -> None:
    """Draw the standard error against the probability."""
    numbers = drawn.numbers(of)
    known = np.isfinite(numbers.mcse)
    x, y, good = numbers.probability[known], numbers.mcse[known], reliable[known]
    handles: list[Any] = []
    labels: list[str] = []
    for rows, marker, colour, label in (
        (good, "o", BLUE, "reliable"),
        (~good, "X", VERMILLION, "not reliable"),
    ):
        if rows.any():
            points = ax.scatter(
                x[rows], y[rows], s=14 if marker == "o" else 34, marker=marker, color=colour,
                alpha=shade(x) if marker == "o" else 0.9, linewidths=0, rasterized=len(x) > 500,
            )  # fmt: skip
            handles.append(points)
            labels.append(f"{label} ({int(rows.sum()):,})")
    if len(y) and not y.any():
        labels = [f"{label}: exact, no error" for label in labels]
    n_unknown = int((~known).sum())
    unknown = f"; the error of {n_unknown:,} is not known" if n_unknown else ""
    caption(ax, said, f"n = {drawn.counted(len(known))}{unknown}")
    ax.set_xlabel("posterior probability of the truth")
    ax.set_ylabel("Monte-Carlo standard error")
    plain_axis(ax)
    if len(y) and y.min() > 0 and y.max() > 100 * y.min():
        ax.set_yscale("log")
    else:
        plain_axis(ax, "y")
        ax.set_ylim(bottom=0)
    if not y.any():  # exact, or nothing is known: an axis of no length
        ax.set_ylim(-0.5, 1.0)
        ax.set_yticks([0.0] if len(y) else [])
    legend(ax, handles, labels, markerscale=1.3)


def draw_exceedance(ax: Axes, drawn: Mapping[str, Spread], measure: str) -> None:
    """Draw the share of records over a threshold against the threshold."""
    handles, labels = [], []
    n_records = n_unknown = 0
    for k, (name, spread) in enumerate(drawn.items()):
        known = spread.where(np.isfinite)
        n_records = spread.n_where(lambda values: np.ones(len(values), dtype=bool))
        n_unknown = max(n_unknown, n_records - known.ends.n)
        thresholds, shares = known.over()
        colour = ink() if name == JOINT else COLOURS[(k - 1) % len(COLOURS)]
        style = DASHES[k % len(DASHES)]
        (line,) = ax.plot(
            thresholds, shares, drawstyle="steps-pre", color=colour, linestyle=style, linewidth=1.7
        )
        line.sticky_edges.y[:] = [0, 1]
        handles.append(line)
        labels.append(name if name == JOINT else text(name))
    if measure == "lift":
        handles.append(ax.axvline(1.0, color=GREY, linestyle=":", linewidth=1.2))
        labels.append("1: the release told nothing")
    ax.set_yscale("log")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_ylim(0.5 / n_records, 1.3)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    unknown = f"; not known of {n_unknown:,}" if n_unknown else ""
    caption(ax, f"n = {counted(n_records, 'record')}{unknown}")
    ax.set_xlabel(f"threshold of the {MEASURES[measure]}")
    ax.set_ylabel("share of records over it (log scale)")
    ax.grid(visible=True, which="major", alpha=0.3)
    plain_axis(ax)
    legend(ax, handles, labels)
