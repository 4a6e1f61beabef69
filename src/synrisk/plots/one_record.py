"""One record's probabilities over its guesses."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from synrisk.plots.style import (
    GREY,
    HEAT,
    VERMILLION,
    caption,
    ink,
    legend,
    level_ticks,
    number_labels,
    text,
)

_MANY = 16  # guesses for which a panel is made larger


def size(joint: xr.DataArray) -> tuple[float, float]:
    """Return the size of a panel in inches."""
    largest = max(joint.shape)
    return (5.2, 4.2) if largest <= _MANY else (7.2, 5.6)


def draw_record(
    axes: Sequence[Axes], joint: xr.DataArray, truth: Sequence[int], label: Hashable
) -> None:
    """Draw the table of one record; `truth` is the index of the true guess on each axis."""
    name = f"record {text(label)}"
    if joint.ndim == 1:
        _draw_bars(axes[0], joint, truth[0], name)
        return
    pairs = list(combinations(range(joint.ndim), 2))
    tables = [_pair(joint, pair) for pair in pairs]
    for ax, pair, table in zip(axes, pairs, tables, strict=True):
        image = _draw_heat(ax, table, (truth[pair[0]], truth[pair[1]]))
        at_truth = float(table.values[truth[pair[0]], truth[pair[1]]])
        caption(ax, name, f"probability of the truth, framed: {at_truth:.3g}")
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.9)
        bar.set_label("probability" if joint.ndim == 2 else "probability, summed over the others")


def _pair(joint: xr.DataArray, pair: tuple[int, int]) -> xr.DataArray:
    names = [str(joint.dims[axis]) for axis in pair]
    return joint.sum([name for name in joint.dims if name not in names]).transpose(*names)


def _draw_bars(ax: Axes, joint: xr.DataArray, truth: int, name: str) -> None:
    values = joint.to_numpy()
    others = np.arange(len(values)) != truth
    positions = np.arange(len(values))
    ax.bar(positions[others], values[others], color=GREY, width=0.85)
    true = ax.bar([truth], values[truth], color=VERMILLION, width=0.85, hatch="///",
                  edgecolor="white")  # fmt: skip
    even = ax.axhline(1.0 / len(values), color=ink(), linestyle="--", linewidth=1.2)
    guesses = joint.coords[str(joint.dims[0])].to_numpy()
    level_ticks(ax, number_labels(guesses))
    ax.set_xlim(-0.6, len(values) - 0.4)
    ax.set_xlabel(f"guess of {text(joint.dims[0])}")
    ax.set_ylabel("posterior probability")
    caption(ax, name, f"{len(values):,} guesses")
    ax.set_ylim(top=1.3 * float(values.max()))  # room for the legend
    legend(ax, [true, even], [f"the truth: {values[truth]:.3g}", f"1/{len(values):,}"], ncols=2)


def _draw_heat(ax: Axes, table: xr.DataArray, truth: tuple[int, int]) -> Any:
    """Draw a table of two variables: the first upwards, the second to the right."""
    image = ax.imshow(
        table.to_numpy(), origin="lower", aspect="auto", cmap=HEAT,
        interpolation="nearest",
    )  # fmt: skip
    corner = (truth[1] - 0.5, truth[0] - 0.5)
    for colour, width in (("black", 4.0), ("white", 2.0)):  # seen on dark and on light cells
        ax.add_patch(
            Rectangle(
                corner, 1, 1, fill=False, edgecolor=colour, linewidth=width, clip_on=False,
                zorder=3,
            )
        )  # fmt: skip
    first, second = (str(name) for name in table.dims)
    level_ticks(ax, number_labels(table.coords[first].to_numpy()), "y")
    level_ticks(ax, number_labels(table.coords[second].to_numpy()))
    ax.set_ylabel(f"guess of {text(first)}")
    ax.set_xlabel(f"guess of {text(second)}")
    return image
