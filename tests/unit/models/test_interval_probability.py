"""Probabilities between two ends: against closed forms and sums, near and far, wide and narrow."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

import synrisk as sr
from synrisk.models.families import Beta, Family, Gamma, Gaussian, StudentT, rounded
from synrisk.models.families.interval_probability import integrated

SIGMA = np.array([[0.7]])


def normal_ends():
    """Intervals of 1e-6 to 60 standard deviations, as far as 40 of these away, and open ones."""
    middle = np.array([0.0, 0.3, -2.0, 5.0, 12.0, -40.0])
    width = np.array([1e-6, 1e-3, 0.1, 1.0, 6.0, 60.0])
    low = (middle[:, None] - 0.5 * width).ravel()
    high = (middle[:, None] + 0.5 * width).ravel()
    return np.append(low, [-np.inf, 1.0, -np.inf]), np.append(high, [0.5, np.inf, -30.0])


def test_of_a_gaussian_it_is_the_closed_form():
    low, high = (end * 0.7 + 0.2 for end in normal_ends())
    eta = np.full((len(low), 1), 0.2)
    exact = Gaussian().log_interval(low, high, eta, SIGMA)
    for found in (Family.log_interval, integrated):
        np.testing.assert_allclose(
            found(Gaussian(), low, high, eta, SIGMA), exact, rtol=1e-9, atol=3e-9
        )


def test_of_a_gaussian_derivatives_are_the_closed_form():
    low, high = (end * 0.7 + 0.2 for end in normal_ends())
    keep = high - low > 0.05  # of narrower ones the closed form's differences lose their digits
    low, high = low[keep], high[keep]
    eta = np.full((len(low), 1), 0.2)
    exact = Gaussian().interval_derivatives(low, high, eta, SIGMA)
    found = Family.interval_derivatives(Gaussian(), low, high, eta, SIGMA)
    for one, other in zip(found, exact, strict=True):
        scale = np.abs(other).max(axis=tuple(range(1, other.ndim)), keepdims=True)
        assert (np.abs(one - other) <= 1e-8 * np.maximum(scale, 1.0)).all()


def by_many_parts(name, low, high, eta, auxiliary):
    """log P by SciPy's density of the response, over 2,000 parts with five nodes each."""
    at, weight = np.polynomial.legendre.leggauss(5)
    edges = np.linspace(low, high, 2001)
    half = 0.5 * np.diff(edges)[:, None]
    y = edges[:-1, None] + half * (1.0 + at)
    own = auxiliary[0]
    if name == "gamma":
        log_f = stats.gamma.logpdf(np.exp(y), own, 0, np.exp(eta) / own) + y
    elif name == "beta":
        mean, share = expit(eta), expit(y)
        log_f = stats.beta.logpdf(share, mean * own, (1 - mean) * own) + np.log(share * expit(-y))
    else:
        log_f = stats.t.logpdf(y, auxiliary[1], eta, own)
    return logsumexp(log_f + np.log(half * weight))


@pytest.mark.parametrize(
    ("family", "auxiliary"),
    [
        (Gamma(), [0.6]),
        (Gamma(), [30.0]),
        (Beta(), [3.0]),
        (Beta(), [80.0]),
        (StudentT(), [0.5, 4.0]),
    ],
    ids=str,
)
def test_of_others_it_is_that_of_many_parts(family, auxiliary):
    low = np.array([-8.0, -3.0, -0.4, -1e-4, 0.3, 1.5, 1.5])
    high = np.array([-7.0, -2.9, 0.8, 1e-4, 0.300001, 1.6, 3.5])
    eta, own = np.full((len(low), 1), 0.25), np.array([auxiliary])
    expected = [
        by_many_parts(family.name, *ends, 0.25, auxiliary) for ends in zip(low, high, strict=True)
    ]
    # Nine digits of the probability are kept.
    np.testing.assert_allclose(family.log_interval(low, high, eta, own), expected, atol=3e-9)
    np.testing.assert_allclose(integrated(family, low, high, eta, own), expected, atol=3e-9)


def test_a_family_that_cannot_be_rounded_is_told_which_can():
    with pytest.raises(sr.OptionError, match=r"gamma.*got 'poisson'"):
        rounded("poisson", 10)


@pytest.mark.parametrize("step", [0, -1.0, np.inf, True, "one"])
def test_a_step_is_a_number_above_0(step):
    with pytest.raises(sr.OptionError, match="step"):
        rounded("gamma", step)


@pytest.mark.parametrize("step", [0.3, 0.7, 1e-4])
def test_steps_of_shares_part_1(step):
    with pytest.raises(sr.OptionError, match="part 1"):
        rounded("beta", step)
