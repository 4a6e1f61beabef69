"""The pictures of docs/explanation/what-the-number-means.md, computed and drawn.

    python examples/figures.py                 # docs/explanation/*.svg
    python examples/figures.py FOLDER --small  # rough ones of small models, into FOLDER

The errors are those of `benchmarks/errors.py`, on the built-in sample with more predictors.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

import synrisk as sr

mpl.use("agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
from errors import errors, people  # noqa: E402 - it lies beside, not in the package

N_DRAWS, N_RELEASES = 500, 24
N_PREDICTORS = (0, 1, 3, 8, 18, 28, 48)  # of one model; two models have half of them each
BLUE, VERMILLION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#6E6E6E"
LINES: dict[str, dict[str, Any]] = {
    "paper": {"color": VERMILLION, "marker": "o", "linestyle": "-"},
    "importance": {"color": GREEN, "marker": "s", "linestyle": "--"},
    "stacked": {"color": BLUE, "marker": "^", "linestyle": "-."},
}
# The same bytes from every run; text as outlines, on white, is seen on pages of any colour.
STYLE = {
    "svg.hashsalt": "synrisk",
    "svg.fonttype": "path",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def plan_of(kind: str, n_predictors: int) -> tuple[list[sr.Regression], int]:
    """Return models with so many predictors of no use, and their number of parameters."""

    def formula(response: str, n: int, *others: str) -> str:
        return f"{response} ~ {' + '.join(['1', *others, *(f'z{k}' for k in range(n))])}"

    if kind == "linear":
        return [sr.Regression(formula("LogIncome", n_predictors))], n_predictors + 2
    if kind == "Poisson":
        plan = [sr.Regression(formula("KidsCount", n_predictors, "LogIncome"), "poisson")]
        return plan, n_predictors + 2
    half = n_predictors // 2
    plan = [
        sr.Regression(formula("LogExpenditure", half)),
        sr.Regression(formula("LogIncome", half, "LogExpenditure")),
    ]
    return plan, 2 * half + 5


def errors_by_size(kind: str, data: pd.DataFrame, *, small: bool) -> pd.DataFrame:
    """Return the error of each estimator, a row a number of parameters."""
    effort = {"n_fits": 1, "many": N_DRAWS} if small else {}
    rows = {}
    for size in (0, 2) if small else N_PREDICTORS:
        plan, n_parameters = plan_of(kind, size)
        if n_parameters not in rows:
            rows[n_parameters] = errors(plan, N_DRAWS, data, **effort)
            print(kind, n_parameters, rows[n_parameters], flush=True)
    return pd.DataFrame(rows).T


def draw_errors(ax: Axes, table: pd.DataFrame, title: str, *, paired: bool, exact: bool) -> None:
    """Draw the errors of one kind of model."""
    spread = table["spread"].to_numpy()
    ax.fill_between(table.index, spread, 1.0, color=GREY, alpha=0.12, linewidth=0)
    ax.plot(table.index, spread, color=GREY, linewidth=1)
    for name, look in LINES.items():
        if paired or name != "importance":
            ax.plot(table.index, table[name], markersize=4, **look)
    if exact:
        ax.plot(
            table.index, np.full(len(table), 0.03), "kD", markersize=4, clip_on=False,
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
    ax.set_title(title)
    ax.set_yscale("log")
    ax.set_xlim(0, None)
    ax.set_xlabel("parameters")
    ax.grid(axis="y", alpha=0.3)


def errors_picture(tables: dict[str, pd.DataFrame]) -> Figure:
    """Draw the error against the number of parameters, a panel a kind of model."""
    fig, axes = plt.subplots(1, 3, figsize=(9, 3.9), sharey=True, layout="constrained")
    draw_errors(axes[0], tables["linear"], "one linear model", paired=False, exact=True)
    draw_errors(axes[1], tables["two"], "two linear models in a row", paired=True, exact=True)
    draw_errors(axes[2], tables["Poisson"], "one Poisson model", paired=False, exact=False)
    axes[0].set_ylabel("root mean square error\nof the probability of the truth")
    axes[0].set_ylim(1e-8, 0.1)  # exact ones stand at the foot
    handles = [
        axes[0].plot([], [], markersize=4, **LINES["paper"])[0],
        axes[0].plot([], [], markersize=4, **LINES["importance"])[0],
        axes[0].plot([], [], markersize=4, **LINES["stacked"])[0],
        axes[0].plot([], [], "kD", markersize=4)[0],
        axes[0].plot([], [], color=GREY, linewidth=1)[0],
    ]
    labels = [
        "paper (as importance for one model)",
        "importance",
        "stacked",
        "exact: 0, no Monte Carlo",
        "what there is to see: standard deviation\nof the true probabilities over the records",
    ]
    fig.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return fig


def coin(n_releases: int) -> list[pd.Series]:
    """Return the records' lifts in each of many releases of one fit of application 2."""
    data = sr.load_households()[["LogExpenditure", "LogIncome"]]
    plan = [sr.Regression("LogExpenditure ~ 1"), sr.Regression("LogIncome ~ LogExpenditure")]
    synthesizer = sr.fit(plan, data, prior="paper", seed=1)
    return [
        sr.attribute_risk(synthesizer, release, question="paper", diagnostics=False).records["lift"]
        for release in synthesizer.synthesize(n_releases, seed=2)
    ]


def coin_picture(lifts: list[pd.Series]) -> Figure:
    """Draw how many records are below the prior in each release, and their lifts."""
    shares = np.array([(lift < 1.0).mean() for lift in lifts])
    print("share below the prior", np.sort(shares).round(2))
    print("mean log lift", np.mean([np.log(lift).mean() for lift in lifts]))
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    bins = np.minimum((20 * shares).astype(int), 19)
    for b in np.unique(bins):
        n = int((bins == b).sum())
        colour, marker = (VERMILLION, "o") if b < 10 else (BLUE, "s")
        left.plot(np.full(n, 5 * b + 2.5), np.arange(n) + 0.5, marker, color=colour, markersize=6)
    left.set_xlim(0, 100)
    left.set_ylim(0, max(8, np.bincount(bins).max() + 1))
    left.set_xlabel("records below the prior (% of 5,126)")
    left.set_ylabel("releases")
    left.set_title(f"{len(lifts)} releases of one fit, a dot each")
    for place, k in enumerate(np.argsort(shares), 1):
        low, middle, high = np.quantile(lifts[k], (0.05, 0.5, 0.95))
        colour = VERMILLION if shares[k] < 0.5 else BLUE
        right.plot([place, place], [low, high], color=colour, linewidth=2)
        right.plot(place, middle, "o" if shares[k] < 0.5 else "s", color=colour, markersize=4)
    right.axhline(1.0, color=GREY, linewidth=1)
    right.set_xlabel("releases, by their share of records below the prior")
    right.set_ylabel("lift of the records")
    right.set_title("the middle 90 % of each release's records, and their median")
    right.ticklabel_format(useOffset=False)
    right.grid(axis="y", alpha=0.3)
    return fig


def write(fig: Figure, path: Path) -> None:
    """Write a picture."""
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def main() -> None:
    """Compute and draw everything."""
    words = [word for word in sys.argv[1:] if word != "--small"]
    small = len(words) < len(sys.argv) - 1
    folder = Path(words[0]) if words else ROOT / "docs" / "explanation"
    folder.mkdir(parents=True, exist_ok=True)
    data = people()
    with warnings.catch_warnings(), mpl.rc_context(STYLE):
        warnings.simplefilter("ignore", sr.ReliabilityWarning)
        write(coin_picture(coin(4 if small else N_RELEASES)), folder / "releases.svg")
        tables = {
            kind: errors_by_size(kind, data, small=small) for kind in ("linear", "two", "Poisson")
        }
        write(errors_picture(tables), folder / "errors.svg")
    print(f"Written: errors.svg and releases.svg in {folder}.")


if __name__ == "__main__":
    main()
