"""Separation, bounds, and responses that do not vary: families with bounds, trials, rounding."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.models.families import family

N = 60
RNG = np.random.default_rng(12)
LEVEL = np.repeat(["a", "b", "c"], N // 3)
IS_C = LEVEL == "c"
# The level c has one outcome only, so that its coefficient has no finite maximum.
SETTLED = {
    "hurdle_gamma": np.where(IS_C, 0.0, np.ceil(RNG.gamma(3.0, 2.0, N))),
    "hurdle_negative_binomial": np.where(IS_C, 1, 1 + RNG.negative_binomial(2, 0.4, N)),
    "zero_inflated_negative_binomial": np.where(IS_C, 0, RNG.negative_binomial(2, 0.3, N)),
    "rounded_gamma": np.where(IS_C, 0.0, np.rint(1 + RNG.gamma(3.0, 2.0, N))),
    "rounded_lognormal": np.where(IS_C, 0.0, np.rint(1 + RNG.gamma(3.0, 2.0, N))),
    "binomial_trials": np.where(IS_C, 7, RNG.binomial(7, 0.4, N)),
}
TYPES = {"binomial_trials": {"y": (0, 7)}, "truncated_gaussian": {"y": (0.0, 10.0)}}


@pytest.mark.parametrize("name", SETTLED)
def test_a_level_with_one_outcome_is_told(name):
    data = pd.DataFrame({"y": SETTLED[name], "u": LEVEL})
    fitted = sr.fit(sr.Regression("y ~ u", name), data, seed=1, types=TYPES.get(name))
    described = fitted.describe().loc["y"]
    assert list(described.index[described["separated"]]) == ["u[T.c]"]
    assert np.isfinite(described["sd"].astype(float)).all()


@pytest.mark.parametrize("name", ["truncated_gaussian", "rounded_student_t"])
def test_a_response_that_does_not_vary_is_refused(name):
    data = pd.DataFrame({"y": np.full(N, 4.0), "x": RNG.normal(size=N)})
    with pytest.raises(sr.SynriskError, match=r"'y|Formula 'y"):
        sr.fit(sr.Regression("y ~ x", name), data, seed=1, types=TYPES.get(name))


def test_priors_of_amounts_that_do_not_vary_have_a_width():
    """Equal logarithms have a standard deviation of 2e-16: priors were scaled by that."""
    data = pd.DataFrame({"y": np.where(RNG.random(N) < 0.3, 0.0, 4.0), "x": RNG.normal(size=N)})
    fitted = sr.fit(sr.Regression("y ~ x", "hurdle_gamma"), data, seed=1)
    described = fitted.describe().loc["y"]
    assert described.loc["Intercept", "prior"] == "Normal(1.386, 2.5)"
    assert described.loc["Intercept", "sd"] > 1e-3


def test_values_at_a_bound_are_values():
    y = np.clip(RNG.normal(3.0, 3.0, N), 0.0, 10.0)
    data = pd.DataFrame({"y": y, "x": RNG.normal(size=N)})
    assert (y == 0.0).any()
    fitted = sr.fit(sr.Regression("y ~ x", sr.TruncatedGaussian(0, 10)), data, seed=1)
    released = fitted.synthesize(seed=2)[0]["y"]
    assert released.between(0.0, 10.0).all()


def test_a_bound_far_away_changes_nothing():
    known, plain = sr.TruncatedGaussian(lower=-1e6), family("gaussian")
    y, eta, sigma = RNG.normal(size=5), RNG.normal(size=(5, 1)), np.full((5, 1), 1.3)
    np.testing.assert_array_equal(
        known.log_density(y, eta, sigma), plain.log_density(y, eta, sigma)
    )


def test_draws_far_beyond_a_bound_keep_their_digits():
    """A mean forty standard deviations below the lower bound, and above the upper one."""
    for known, eta, sign in (
        (sr.TruncatedGaussian(lower=0.0), -40.0, 1.0),
        (sr.TruncatedGaussian(upper=0.0), 40.0, -1.0),
    ):
        drawn = sign * known.draw(np.full((20_000, 1), eta), np.ones((20_000, 1)), RNG)
        assert (drawn >= 0).all()
        # Beyond a bound at 40 a normal variable is exponential with mean 1/40 but for 1/40² of it.
        assert drawn.mean() == pytest.approx(1 / 40, rel=4 / np.sqrt(20_000) + 2 / 40**2)


@pytest.mark.parametrize(
    ("name", "match"),
    [("truncated_gaussian", "bounds that are declared"), ("binomial_trials", "number of trials")],
)
def test_what_is_not_declared_is_asked_for(name, match):
    data = pd.DataFrame({"y": RNG.integers(0, 5, N), "x": RNG.normal(size=N)})
    with pytest.raises(sr.DataError, match=match) as caught:
        sr.fit(sr.Regression("y ~ x", name), data, seed=1)
    assert "factor" not in str(caught.value)


def test_more_successes_than_trials_are_refused_without_a_value():
    data = pd.DataFrame({"y": [1, 2, 99], "x": [0.1, 0.3, 0.2]})
    with pytest.raises(sr.DataError, match="1 value is not") as caught:
        sr.fit(sr.Regression("y ~ x", sr.Binomial(5)), data, seed=1)
    assert "99" not in str(caught.value)


@pytest.mark.parametrize("trials", [-1, 2.5, True, "7", 10**9])
def test_trials_are_a_whole_number(trials):
    with pytest.raises(sr.OptionError, match="trials"):
        sr.Binomial(trials)


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (0.0, 0.0), ("a", 1.0), (np.nan, 1.0)])
def test_bounds_are_two_numbers_in_order(bounds):
    with pytest.raises(sr.OptionError, match="lower"):
        sr.TruncatedGaussian(*bounds)
