"""Numbers that are read a piece at a time: what NumPy says of all of them at once."""

import math

import numpy as np
import pytest

from synrisk.core import spread
from synrisk.core.spread import Spread

VALUES = {
    "ordinary": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(-3, 3, n).astype(np.float64),
    "far apart": lambda rng, n: np.exp(50.0 * rng.normal(size=n)) * rng.choice([-1.0, 1.0], n),
    "equal": lambda rng, n: np.full(n, 0.25),
    "both zeros": lambda rng, n: np.where(rng.random(n) < 0.5, -0.0, 0.0),
}


def cut(values, rng):
    """The numbers in a few pieces, some of them empty."""
    at = np.sort(rng.integers(0, len(values) + 1, 4))
    return Spread(lambda: np.split(values, at))


@pytest.mark.parametrize("most_sorted", [20, 1 << 20])
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("n", [1, 2, 7, 3001])
def test_pieces_say_what_all_numbers_say(kind, n, most_sorted, monkeypatch):
    monkeypatch.setattr(spread, "_MOST_SORTED", most_sorted)
    rng = np.random.default_rng(n)
    values = VALUES[kind](rng, n)
    found = cut(values, rng)
    assert (found.ends.n, found.ends.smallest) == (n, values.min())
    assert found.ends.largest == values.max()
    assert found.mean == math.fsum(values) / n
    for share in (0.0, 0.05, 0.37, 0.5, 0.95, 1.0):
        assert found.quantile(share) == np.quantile(values, share)
    edges = np.linspace(-2.0, 2.0, 9)
    expected = np.histogram(np.clip(values, -2.0, 2.0), edges)[0]
    np.testing.assert_array_equal(found.counts(edges), expected)
    assert found.n_where(lambda own: own > 0) == int((values > 0).sum())
    assert found.where(lambda own: own > 0).n_where(lambda own: own > 1) == int((values > 1).sum())
    assert found.same() == (float(np.median(values)) if np.ptp(values) == 0 else None)


@pytest.mark.parametrize("most_sorted", [20, 1 << 20])
def test_shares_over_thresholds_are_exact(most_sorted, monkeypatch):
    monkeypatch.setattr(spread, "_MOST_SORTED", most_sorted)
    rng = np.random.default_rng(1)
    values = np.exp(3.0 * rng.normal(size=2000))
    thresholds, shares = cut(values, rng).over()
    assert (thresholds[0], shares[0]) == (values.min(), 1.0)
    assert (thresholds[-1], shares[-1]) == (values.max(), 0.0)
    for before, share in zip(thresholds[1:-1], shares[2:], strict=True):
        assert share == pytest.approx((values > before).mean(), abs=1e-12)


def test_what_is_not_known_is_said():
    assert math.isnan(Spread(list).mean)
    assert math.isnan(Spread(list).quantile(0.5))
    unknown = Spread.of(np.array([1.0, np.nan]))
    assert math.isnan(unknown.mean)
    assert math.isnan(unknown.quantile(0.5))
    assert unknown.same() is None
    assert Spread.of(np.array([1.0, np.inf])).mean == np.inf
    assert math.isnan(Spread.of(np.array([-np.inf, np.inf])).mean)
