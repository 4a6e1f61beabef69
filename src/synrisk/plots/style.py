"""How plots look: figures, colours that the colour-blind can tell apart, and text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, ScalarFormatter

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import OptionError, counted
from synrisk.base.messages import visible

# Okabe and Ito's colours, told apart by all kinds of colour vision; lines differ in dashes too.
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, GREY = "#56B4E9", "#CC79A7", "#8C8C8C"
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P")
HEAT = "cividis"

_LONGEST = 32  # characters of a name
_PANEL = (5.2, 3.6)  # inches
_MOST_TICKS = 42
_PARTED, _SMALLEST_IN_FULL, _LARGEST_IN_FULL = 1e4, 1e-4, 1e10


def ink() -> Any:
    """Return the colour of text in the style that is in force, for lines that must be seen."""
    return mpl.rcParams["text.color"]


def panels(n_panels: int, ax: Any, size: tuple[float, float] = _PANEL) -> list[Axes]:
    """Return `n_panels` Axes: those of `ax`, or those of a new figure."""
    if ax is not None:
        given = [ax] if isinstance(ax, Axes) else list(np.ravel(np.asarray(ax, dtype=object)))
        if len(given) != n_panels or not all(isinstance(one, Axes) for one in given):
            raise OptionError(
                f"ax= must be {counted(n_panels, 'matplotlib Axes', 'matplotlib Axes')}"
                f"{'' if n_panels == 1 else ' in a list or array'}."
            )
        return given
    n_columns = 1 if n_panels == 1 else 2 if n_panels in (2, 4) else 3
    n_rows = -(-n_panels // n_columns)
    figure = _figure((size[0] * n_columns, size[1] * n_rows))
    return [figure.add_subplot(n_rows, n_columns, 1 + k) for k in range(n_panels)]


def wide(n_levels: int) -> tuple[float, float]:
    """Return the size of a panel with a place for each of so many levels."""
    return _PANEL if n_levels <= 15 else (min(1.5 + 0.22 * n_levels, 10.5), 4.6)


def _figure(size: tuple[float, float]) -> Figure:
    """Return a new figure; pyplot knows of it only where that shows it.

    pyplot keeps every figure until it is closed, so a script's figures stand by themselves.
    """
    if _is_shown():
        from matplotlib import pyplot

        return pyplot.figure(figsize=size, layout="constrained")
    return Figure(figsize=size, layout="constrained")


def _is_shown() -> bool:
    """Tell whether figures are shown as they are made: in a notebook, or by pyplot.ion()."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return mpl.is_interactive() or hasattr(shell, "kernel")


def text(name: object, longest: int = _LONGEST) -> str:
    """Return a name as a label shows it: shortened, as plain text, in letters that the font has."""
    shown = visible(" ".join(str(name).split()))
    if len(shown) > longest:
        head = (longest - 1) * 2 // 3
        shown = f"{shown[:head]}…{shown[len(shown) - (longest - 1 - head) :]}"
    known = _characters(tuple(mpl.rcParams["font.family"]), tuple(mpl.rcParams["font.sans-serif"]))
    shown = "".join(c if ord(c) in known else f"[U+{ord(c):04X}]" for c in shown)
    return shown.replace("$", r"\$")  # else two of them begin a formula


@lru_cache(maxsize=8)
def _characters(families: tuple[str, ...], _sans_serif: tuple[str, ...]) -> frozenset[int]:
    """Return the characters of the fonts in force."""
    found: set[int] = set()
    for family in families:
        path = font_manager.findfont(font_manager.FontProperties(family=[family]))
        found |= set(font_manager.get_font(path).get_charmap())
    return frozenset(found)


def caption(ax: Axes, *lines: str) -> None:
    """Write small lines over the axes: what is drawn, and of how many."""
    ax.set_title("\n".join(line for line in lines if line), loc="left", fontsize="small")


def legend(ax: Axes, handles: Sequence[Any], labels: Sequence[str], **options: Any) -> None:
    """Add a legend, its marks never faint.

    Labels are set afterwards, since one that begins with "_" would be left out.
    """
    if not handles:
        return
    made = ax.legend(
        handles, [str(k) for k in range(len(labels))], fontsize="small", framealpha=0.85, **options
    )
    for shown, label in zip(made.get_texts(), labels, strict=True):
        shown.set_text(label)
    for mark in made.legend_handles:
        if isinstance(mark, PathCollection):
            mark.set_alpha(1.0)


class PlainNumbers(ScalarFormatter):
    """Numbers in full, thousands parted: a factor at an axis' end is overlooked, or overlaps."""

    def __init__(self) -> None:
        super().__init__(useOffset=False)
        self.set_scientific(False)
        self._largest = 0.0

    def set_locs(self, locs: Any) -> None:
        """Note where ticks are: their labels are written alike."""
        self._largest = max((abs(float(place)) for place in locs), default=0.0)
        super().set_locs(locs)

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of a tick."""
        largest = self._largest
        if 0 < largest < _SMALLEST_IN_FULL or largest >= _LARGEST_IN_FULL:
            return f"{x:.3g}".replace("-", "\N{MINUS SIGN}")
        if largest >= _PARTED:
            return f"{x:,.10g}".replace("-", "\N{MINUS SIGN}")
        return super().__call__(x, pos)


def plain_axis(ax: Axes, which: str = "x") -> None:
    """Write few numbers, in full."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(PlainNumbers())


def level_ticks(ax: Axes, labels: Sequence[str], which: str = "x") -> None:
    """Label positions 0, 1, … by levels or guesses: turned where long, thinned where many."""
    step = -(-len(labels) // _MOST_TICKS)
    positions = list(range(0, len(labels), step))
    lines = [[text(line, 18) for line in labels[position].split("\n")] for position in positions]
    crowded = sum(max(len(line) for line in label) + 2 for label in lines) > 56
    shown = [(" " if which == "y" or crowded else "\n").join(label) for label in lines]
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(FixedLocator(positions))
    axis.set_major_formatter(FixedFormatter(shown))
    small = "x-small" if len(shown) > 20 else "small" if crowded else "medium"
    ax.tick_params(axis="x" if which == "x" else "y", labelsize=small)
    if which == "x" and crowded:
        ax.tick_params(axis="x", labelrotation=90)


def number_labels(values: npt.NDArray[Any]) -> list[str]:
    """Return labels of guesses: text as it is, numbers with the fewest digits that part them."""
    if values.dtype.kind not in "fiu":
        return [str(value) for value in values]
    if values.dtype.kind in "iu":
        return [f"{value:,d}" for value in values]
    for digits in range(4, 17):
        shown = [_in_full(value, digits) for value in values]
        if len(set(shown)) == len(set(values.tolist())):
            return shown
    return [repr(float(value)) for value in values]


def _in_full(value: float, digits: int) -> str:
    """Return a number to so many digits, thousands parted rather than as a power of ten."""
    short = f"{value:.{digits}g}"
    if _PARTED <= abs(value) < _LARGEST_IN_FULL:
        return f"{float(short):,.16g}"
    return short


def shade(values: FloatArray) -> Any:
    """Return the opacity of points: the more, the fainter."""
    return float(np.clip(60.0 / max(len(values), 1) ** 0.65, 0.12, 0.8))
