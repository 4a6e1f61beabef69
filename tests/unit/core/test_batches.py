"""Units of the Monte-Carlo error: batches that never reach from one chain into another."""

import numpy as np
import pytest

from synrisk.core.batches import Units


def chains(*lengths):
    return np.repeat(np.arange(len(lengths)), lengths)


@pytest.mark.parametrize(
    "lengths", [(1000,) * 4, (997,) * 4, (500, 499), (1, 1, 1), (7, 300, 12), (36, 36, 10)]
)
def test_no_unit_straddles_two_chains(lengths):
    chain = chains(*lengths)
    units = Units.of_chains(chain, len(chain))
    layout = np.arange(len(chain)) if units.layout is None else units.layout
    np.testing.assert_array_equal(layout[layout >= 0], np.arange(len(chain)))
    for start in range(0, len(layout), units.size):
        draws = layout[start : start + units.size]
        assert len(set(chain[draws[draws >= 0]])) == 1


@pytest.mark.parametrize("n", [100, 997, 1000, 4096])
def test_batches_are_about_the_root_of_a_chain_long(n):
    units = Units.of_chains(chains(n, n), 2 * n)
    assert 0.75 <= units.size / np.sqrt(n) <= 1.5
    n_empty = 0 if units.layout is None else int((units.layout < 0).sum())
    assert n_empty < 0.01 * 2 * n


def test_unknown_chains_are_taken_for_one():
    units = Units.of_chains(None, 1000)
    assert (units.size, units.layout) == (31, None)


def test_values_by_place():
    units = Units(2, np.array([0, 1, 2, -1]))
    np.testing.assert_array_equal(units.laid_out(np.array([[5.0, 6.0, 7.0]])), [[5, 6, 7, 5]])
    np.testing.assert_array_equal(units.occupied(3), [1, 1, 1, 0])
