import numpy as np
import pytest
from helpers.plain import (
    ModelBlock,
    TermValues,
    log_ratios,
    log_table,
    row_log_density,
    spread,
)
from scipy.special import logsumexp

from synrisk.models.families import family


def block(guesses, intercepts, sigma=1.0, truth=0, weights=None):
    n_draws = len(intercepts)
    return ModelBlock(
        family("gaussian"),
        np.asarray(intercepts, dtype=float).reshape(n_draws, 1, 1),
        np.full((n_draws, 1), sigma),
        0,
        (),
        (TermValues((), np.ones((1, 1))),),
        np.asarray([guesses], dtype=float),
        np.array([[truth]]),
        weights,
    )


def test_ratios_are_one_at_the_truth():
    ratios = log_ratios(block([1.0, 2.0, 3.0], [0.0, 0.5], truth=1))
    np.testing.assert_array_equal(ratios[0, 1], [0.0, 0.0])
    np.testing.assert_allclose(ratios[0, 0], [(4 - 1) / 2, (1.5**2 - 0.5**2) / 2])


def test_weights_are_exponents():
    plain = log_ratios(block([1.0, 2.0], [0.0, 0.5]))
    weighted = log_ratios(block([1.0, 2.0], [0.0, 0.5], weights=np.array([0.3])))
    np.testing.assert_allclose(weighted, 0.3 * plain)


@pytest.mark.parametrize("far", [0.0, 10.0, 1e3, 1e5])
def test_the_table_is_right_where_densities_underflow(far):
    """The guess favours the last draw by e^(far), the release the first by e^(2000)."""
    intercepts = np.array([0.0, 0.5, 1.0])
    one = block([0.0, far], intercepts)
    log_g = np.array([[0.0, -900.0, -2000.0], [-3.0, 0.0, -1.0]])
    log_v = np.log([0.2, 0.5, 0.3])
    log_w = log_ratios(one)
    expected = sum(
        logsumexp(log_w + log_v + g, axis=-1) - logsumexp(log_w + log_v, axis=-1)
        for g in log_g - log_g.max(axis=1, keepdims=True)
    )
    np.testing.assert_allclose(log_table(one, log_g, log_v), expected, atol=1e-9 * max(far, 1))


def test_a_guess_far_beyond_keeps_log_g():
    """At 1e8 sd log w is −5e15 at both draws; added to it, log g would be rounded to a whole."""
    log_g = np.array([[-5.3, 0.0]])
    table = log_table(block([0.0, 1e8], [0.0, 0.0]), log_g, np.log([0.5, 0.5]))
    np.testing.assert_allclose(table[0], np.log((np.exp(-5.3) + 1) / 2), rtol=1e-12)


def test_draws_of_weight_zero_do_not_count():
    log_g = np.array([[-1.0, 0.0, -50.0]])
    with np.errstate(divide="ignore"):
        log_v = np.log([0.5, 0.5, 0.0])
    three = log_table(block([0.0, 2.0], [0.0, 0.5, 99.0]), log_g, log_v)
    two = log_table(block([0.0, 2.0], [0.0, 0.5]), log_g[:, :2], np.log([0.5, 0.5]))
    np.testing.assert_allclose(three, two, rtol=1e-12)


def test_spread_places_axes():
    table = np.arange(2 * 3 * 5).reshape(2, 3, 5).astype(float)
    assert spread(table, (0, 2), 4).shape == (2, 3, 1, 5, 1)
    assert spread(table, (1,), 2, trailing=1).shape == (2, 1, 3, 5)


def test_rows_are_summed_in_the_linear_predictor():
    rng = np.random.default_rng(0)
    matrix, beta = rng.normal(size=(6, 3)), rng.normal(size=(4, 3, 1))
    y, sigma = rng.normal(size=6), rng.uniform(0.5, 2, (4, 1))
    found = row_log_density(family("gaussian"), y, matrix, beta, sigma)
    z = (y - beta[:, :, 0] @ matrix.T) / sigma
    np.testing.assert_allclose(found, -0.5 * z**2 - np.log(sigma * np.sqrt(2 * np.pi)), rtol=1e-12)
