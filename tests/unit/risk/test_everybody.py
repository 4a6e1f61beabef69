"""What is asked of everybody's values, found by slices alone: as of the whole column."""

import numpy as np
import pytest

import synrisk as sr
from synrisk.base.chunks import rows_at
from synrisk.risk.guesses import Everybody
from synrisk.synthesis.relations import spread

GAP = -99.0


class Sliced:
    """A column that is read by slices alone."""

    def __init__(self, values):
        self.values, self.dtype = values, values.dtype

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return self.values[rows]


def columns(n):
    rng = np.random.default_rng(1)
    return {
        "normal": rng.normal(size=n),
        "amounts": np.exp(rng.normal(9.0, 2.0, n)),
        "counts": rng.poisson(3.0, n).astype(float),
        "rounded": np.round(rng.normal(size=n), 1),
        "zeros": np.where(rng.random(n) < 0.95, 0.0, -1e-300),
        "codes": rng.integers(0, 4, n),
    }


@pytest.mark.parametrize("n", [2, 3, 1000, 65_536, 65_537, 200_001])
@pytest.mark.parametrize("name", columns(2))
def test_it_is_what_numpy_says_of_the_whole_column(name, n):
    values = columns(n)[name]
    found = Everybody.of(Sliced(values), is_whole=True)
    own = values.astype(float)
    assert found.n_records == n
    assert (found.smallest, found.largest) == (own.min(), own.max())
    assert found.median == np.median(own)
    assert found.middle == np.sort(own)[n // 2]
    assert found.spread == pytest.approx(own.std(ddof=1), rel=1e-12)
    assert found.steady_spread == pytest.approx(spread(own), rel=1e-12)
    if spread(own) != np.std(own):
        assert found.steady_spread == spread(own)
    distinct, n_people = np.unique(own, return_counts=True)
    np.testing.assert_array_equal(found.observed, distinct)
    np.testing.assert_array_equal(found.n_people, n_people)
    low, high = np.quantile(own, [0.2, 0.7])
    assert found.n_outside(low, high) == ((own < low) | (own > high)).sum()
    assert found.n_outside(own.min(), own.max()) == 0


@pytest.mark.parametrize("n", [10, 70_000])
def test_missing_values_are_nobodys(n):
    values = columns(n)["amounts"]
    values[::3] = GAP
    found, own = Everybody.of(Sliced(values), GAP), values[values != GAP]
    assert found.n_records == len(own)
    assert (found.smallest, found.median) == (own.min(), np.median(own))
    assert found.middle == np.sort(own)[len(own) // 2]


def test_values_are_listed_only_where_they_may_be_asked_for():
    values = np.arange(1000.0)
    assert not Everybody.of(values).has_few_values
    assert Everybody.of(values % 50).has_few_values
    assert Everybody.of(values, is_whole=True).has_few_values
    with pytest.raises(sr.GuessError, match=r"different values occur.*Range"):
        Everybody.of(values).observed  # noqa: B018


@pytest.mark.parametrize("positions", [[], [7], range(4000, 4200), [9000, 3, 4097, 4096, 3]])
def test_rows_are_taken_by_slices(positions):
    values, positions = np.arange(10_000.0), np.array(positions, dtype=np.int64)
    np.testing.assert_array_equal(rows_at(Sliced(values), positions), values[positions])
    np.testing.assert_array_equal(rows_at(values, positions), values[positions])
