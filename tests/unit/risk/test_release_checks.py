"""Copies are counted right, whichever way they are looked for."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.base.workers import Serial
from synrisk.risk import near_copies as checks


def counted_one_by_one(own, rows, k):
    """Rows with k records at their place, and near it: a loop straight from the definition."""
    spread = own.std(axis=0)
    exact, near = 0, 0
    for row in rows / spread:
        apart = np.abs(own / spread - row).max(axis=1)
        exact += (apart == 0).sum() >= k
        near += (apart <= 1e-3).sum() >= k
    return exact, near


def records(n_columns, ties):
    """Records, some of which share a value, and rows of which some are copies or nearly."""
    rng = np.random.default_rng(n_columns)
    own = rng.normal(size=(300, n_columns))
    own[:ties, 0] = 0.0
    own[10:14] = own[:4]
    rows = rng.normal(size=(200, n_columns))
    rows[:30] = own[:30]
    rows[30:60] = own[30:60] + 0.0005 * own.std(axis=0)
    rows[60:70] = own[60:70] + 0.0015 * own.std(axis=0)
    return own, rows


@pytest.mark.parametrize("n_columns", [1, 2, 3])
@pytest.mark.parametrize("ties", [0, 40, 250])
@pytest.mark.parametrize("most", [0, 16, 10_000])
def test_neighbours_are_those_of_a_plain_loop(monkeypatch, n_columns, ties, most):
    own, rows = records(n_columns, ties)
    monkeypatch.setattr(checks, "_MOST_CANDIDATES", most)  # 0: always by the tree
    names = [f"v{k}" for k in range(n_columns)]
    plan = [sr.Regression(f"{name} ~ 1") for name in names]
    synthesizer = sr.fit(plan, pd.DataFrame(own, columns=names), seed=1, n_draws=20)
    found = checks._Neighbours.of(synthesizer, names, Serial())
    assert (found.n_exact, found.n_near) == counted_one_by_one(own, own, 2)
    assert found.count(rows, 1, Serial()) == counted_one_by_one(own, rows, 1)
    assert found.count(rows[:30], 1, Serial())[0] == 30
