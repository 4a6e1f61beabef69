"""An attack on what is shared: the intruder who knows everybody else tries values of one record.

He has the release, everybody else's values, the plan and the settings, the seed of the fit among
them, and makes the whole page for each value that the record may have. Those that give the page as
it was written are left; the fewer are, the more the page has told.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd

import synrisk as sr
from helpers.secret import SECRET
from synrisk.report.shared import collect_shared
from synrisk.synthesis.release import read_release

PLANS: dict[int, list[sr.Regression]] = {
    1: [sr.Regression("y ~ x")],
    2: [sr.Regression("y ~ x"), sr.Regression("k ~ x", "poisson")],
    3: [
        sr.Regression("y ~ x"),
        sr.Regression("k ~ x", "poisson"),
        sr.Regression("g ~ x", "categorical"),
    ],
}
TYPES = {"g": ["p", "q", "r"]}
SEED = 8147225310946  # of the fit: it is known to the intruder here


def people(n: int, seed: int) -> pd.DataFrame:
    """Return records; the first is an ordinary one, the last the most outlying."""
    rng = np.random.default_rng([17, n, seed])
    x, off = rng.normal(size=n), rng.normal(size=n)
    order = np.argsort(np.abs(off))
    x, off = x[order], off[order]
    y = 50.0 + 5.0 * x + 10.0 * off
    k = rng.poisson(np.exp(0.5 + 0.3 * x))
    g = np.array(["p", "q", "r"])[np.minimum(rng.poisson(np.exp(0.2 * x)), 2)]
    return pd.DataFrame({"x": x, "y": y, "k": k, "g": g})


def facts(fitted: sr.Synthesizer, release: Sequence[pd.DataFrame]) -> str:
    """Return all that is shared about a release, but for the date: the page shows nothing else."""
    risk = sr.attribute_risk(fitted, list(release), joint="drop")
    source = risk._source(None, None, "records", sharing=True)
    told = collect_shared(source, read_release(fitted.confidential, list(release)), [], "")
    return json.dumps({**told, "date": ""})


def fit(data: pd.DataFrame, variables: int) -> sr.Synthesizer:
    """Fit the models of one, two or three variables."""
    plan = PLANS[variables]
    used = ["x", *(one.response for one in plan)]
    types = {name: levels for name, levels in TYPES.items() if name in used}
    return sr.fit(plan, data[used], types=types, seed=SEED)


def left(n: int, variables: int, m: int, record: int, n_guesses: int, *, seed: int) -> list[bool]:
    """Return for values of a record's y over its range whether they give the same page."""
    data = people(n, seed)
    fitted = fit(data, variables)
    release = fitted.synthesize(m, seed=SECRET + seed)
    written = facts(fitted, release)
    found = []
    for guess in _over_the_range(data, n_guesses):
        tried = data.copy()
        tried.loc[data.index[record], "y"] = guess
        found.append(facts(fit(tried, variables), release) == written)
    return found


def believed(n: int, record: int, n_guesses: int, *, seed: int) -> np.ndarray:
    """Return what the intruder believes of the values that `left` tries, before he sees a page."""
    data = people(n, seed)
    others = data.drop(data.index[record])
    slope, start = np.polyfit(others["x"], others["y"], 1)
    spread = np.std(others["y"] - start - slope * others["x"], ddof=2)
    mean = start + slope * data["x"].iloc[record]
    density = np.exp(-0.5 * ((_over_the_range(data, n_guesses) - mean) / spread) ** 2)
    return density / density.sum()


def _over_the_range(data: pd.DataFrame, n_guesses: int) -> np.ndarray:
    return np.linspace(data["y"].min(), data["y"].max(), n_guesses)
