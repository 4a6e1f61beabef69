"""The report's pictures as SVG that takes its ink from the page, in light and in dark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from io import StringIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, PercentFormatter

from synrisk.plots.style import (
    COLOURS,
    DASHES,
    GREY,
    MARKERS,
    VERMILLION,
    PlainNumbers,
    legend,
    level_ticks,
    plain_axis,
    text,
    wide,
)

_INK = "#010203"  # stands for the page's own colour of text
_BAR = "#3B8FC4"  # stands out on light and on dark
_SIZE = (5.6, 3.3)
_MOST_TOLD_APART = 5
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small, sharp, and can be searched
    "svg.hashsalt": "synrisk",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.0,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "hatch.color": _INK,
}


def draw(picture: Mapping[str, Any], number: int) -> str:
    """Return a picture as an SVG element; `number` makes its ids its own."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        figure = Figure(figsize=_size(picture), layout="constrained")
        ax = figure.add_subplot()
        _DRAWN[picture["kind"]](ax, picture)
        ax.set_xlabel(text(picture["x"], 60))
        ax.set_ylabel(text(picture["y"], 60))
        out = StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=nothing)
    return _embedded(out.getvalue(), f"figure-{number}", described(picture))


def described(picture: Mapping[str, Any]) -> str:
    """Return in words what a picture shows."""
    title, n = picture["title"], picture["n"]
    if picture["kind"] == "histogram":
        edges, shares = picture["edges"], picture["shares"]
        top = int(np.argmax(np.array(shares) / np.diff(edges)))
        line = picture["line"]
        dashed = "" if line is None else f" The dashed line, {picture['line_label']}: {line:.4g}."
        return (
            f"{title}. Histogram, n = {n}, highest from {edges[top]:.4g} to "
            f"{edges[top + 1]:.4g}.{dashed}"
        )
    if picture["kind"] == "levels":
        shown = zip(picture["levels"], picture["shares"], strict=True)
        bars = ", ".join(f"{level} {share:.1%}" for level, share in shown)
        return f"{title}. Bars, n = {n}: {bars}."
    ends = "; ".join(
        f"{curve['of']}: {curve['shares'][0]:.1%} over {curve['thresholds'][0]:.4g}, "
        f"{curve['shares'][-1]:.1%} over {curve['thresholds'][-1]:.4g}"
        for curve in picture["curves"]
    )
    return f"{title}, n = {n}. {ends}."


def _size(picture: Mapping[str, Any]) -> tuple[float, float]:
    n_levels = len(picture.get("levels", ()))
    return _SIZE if n_levels <= 15 else wide(n_levels)


def _embedded(svg: str, prefix: str, alt: str) -> str:
    """Return the element alone: its ids unlike those of others, its ink the page's."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    svg = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{prefix}-\1"', svg)
    svg = re.sub(r' xmlns(:xlink)?="[^"]+"', "", svg)  # HTML knows them
    svg = re.sub(r'<svg ([^>]*?)width="[^"]+"', r"<svg \1", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)height="[^"]+"', r"<svg \1", svg, count=1)
    svg = re.sub(r'\s+version="1.1"', "", svg, count=1)
    name = f'role="img" aria-label="{escape(alt)}"'
    return svg.replace("<svg ", f"<svg {name} ", 1).replace(_INK, "currentColor").strip()


def _draw_histogram(ax: Axes, picture: Mapping[str, Any]) -> None:
    edges, shares = np.array(picture["edges"]), np.array(picture["shares"])
    heights = shares / np.diff(edges)
    bars = ax.stairs(heights, edges, fill=True, color=_BAR, linewidth=0)
    handles: list[Any] = []
    labels: list[str] = []
    synthetic = picture.get("synthetic", ())
    if synthetic:
        handles, labels = [bars], ["confidential"]
    highest = float(heights.max())
    for k, of_dataset in enumerate(synthetic):
        few = len(synthetic) <= _MOST_TOLD_APART
        outline = np.array(of_dataset) / np.diff(edges)
        highest = max(highest, float(outline.max()))
        line = ax.stairs(
            outline,
            edges,
            color=COLOURS[1 + k] if few else VERMILLION,
            linestyle=DASHES[k] if few else "-",
            linewidth=1.3,
        )
        if few or k == 0:
            handles.append(line)
            labels.append(_name(k, len(synthetic)))
    if picture["line"] is not None:
        handles.append(ax.axvline(picture["line"], color=_INK, linestyle="--", linewidth=1.4))
        labels.append(f"{picture['line_label']} ({picture['line']:.4g})")
    ax.set_ylim(0.0, 1.04 * highest)
    plain_axis(ax)
    ax.yaxis.set_major_formatter(PlainNumbers())
    if picture["whole"]:
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    _legend(ax, handles, labels)


def _legend(ax: Axes, handles: list[Any], labels: list[str]) -> None:
    """Add a legend over the axes, where it hides nothing."""
    n_columns = 1 if max((len(label) for label in labels), default=0) > 34 else 2
    legend(ax, handles, labels, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=n_columns)


def _name(k: int, m: int) -> str:
    if m > _MOST_TOLD_APART:
        return f"synthetic 1 to {m:,}"
    return "synthetic" if m == 1 else f"synthetic {k + 1}"


def _draw_levels(ax: Axes, picture: Mapping[str, Any]) -> None:
    shares, synthetic = picture["shares"], picture["synthetic"]
    places = np.arange(len(shares))
    bars = ax.bar(places, shares, width=0.8, color=_BAR)
    handles: list[Any] = [bars] if synthetic else []
    labels = ["confidential"] if synthetic else []
    m = len(synthetic)
    for k, of_dataset in enumerate(synthetic):
        few = m <= _MOST_TOLD_APART
        aside = 0.0 if m == 1 else 0.5 * (k / (m - 1) - 0.5)
        points = ax.plot(
            places + aside,
            of_dataset,
            marker=MARKERS[k] if few else "o",
            color=COLOURS[1 + k] if few else VERMILLION,
            linestyle="none",
            markersize=5,
        )[0]
        if few or k == 0:
            handles.append(points)
            labels.append(_name(k, m))
    level_ticks(ax, list(picture["levels"]))
    ax.set_xlim(-0.7, len(shares) - 0.3)
    highest = max([*shares, *(share for one in synthetic for share in one)])
    ax.set_ylim(0.0, 1.04 * highest)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    _legend(ax, handles, labels)


def _draw_exceedance(ax: Axes, picture: Mapping[str, Any]) -> None:
    handles: list[Any] = []
    labels: list[str] = []
    for k, curve in enumerate(picture["curves"]):
        colour = _INK if k == 0 else COLOURS[(k - 1) % len(COLOURS)]
        line = ax.plot(
            curve["thresholds"],
            curve["shares"],
            color=colour,
            linestyle=DASHES[k % len(DASHES)],
            marker="." if len(curve["shares"]) < 3 else None,
            linewidth=1.7,
        )[0]
        handles.append(line)
        labels.append(text(curve["of"]))
    handles.append(ax.axvline(1.0, color=GREY, linestyle=":", linewidth=1.3))
    labels.append("1: the release told nothing")
    ax.set_yscale("log")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    plain_axis(ax)
    _legend(ax, handles, labels)


_DRAWN = {
    "histogram": _draw_histogram,
    "levels": _draw_levels,
    "exceedance": _draw_exceedance,
}
