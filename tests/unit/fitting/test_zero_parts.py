"""Families with a part for zeros: draws made elsewhere, limits, and what they have in common."""

import numpy as np
import pandas as pd
import pytest
from helpers.family_cases import data_of

import synrisk as sr
from synrisk.models.families import HurdleLogNormal, Poisson, ZeroInflatedPoisson, family

PROBABILITY = {"hurdle_poisson": "hu", "zero_inflated_poisson": "zi", "hurdle_lognormal": "hu"}
every = pytest.mark.parametrize("name", PROBABILITY)


@every
def test_draws_of_brms_have_the_probability_or_its_logit(name):
    people = data_of(name, 40)
    own = sr.fit(sr.Regression("y ~ x", name), people, seed=1, n_draws=50).draws("y")
    odds = own["odds_of_zero"].to_numpy()
    theirs = own.rename(columns={"Intercept": "b_Intercept", "x": "b_x"})
    theirs = theirs.drop(columns=["weight", "odds_of_zero"])
    called = PROBABILITY[name]
    tables = (
        theirs.assign(**{called: odds / (1 + odds)}),
        theirs.assign(**{f"b_{called}_Intercept": np.log(odds)}),
        theirs.assign(**{f"b_{called}_Intercept": np.log(odds), f"Intercept_{called}": 0.0}),
    )
    for table in tables:
        read = sr.Synthesizer.from_draws(sr.Regression("y ~ x", name), people, table)
        np.testing.assert_allclose(read.draws("y")[own.columns[:-1]], own[own.columns[:-1]])
    for wrong in (1.0, 1.5, -0.1, np.nan):
        with pytest.raises(sr.DrawsError):
            sr.Synthesizer.from_draws(
                sr.Regression("y ~ x", name), people, theirs.assign(**{called: wrong})
            )


@every
def test_the_share_of_zeros_is_fitted_whatever_it_is(name):
    rng = np.random.default_rng(2)
    for share in (0.05, 0.95):
        n = 400
        y = np.where(rng.random(n) < share, 0.0, 3.0 + rng.poisson(9.0, n))
        people = pd.DataFrame({"y": y})
        (released,) = sr.fit(sr.Regression("y ~ 1", name), people, seed=1).synthesize(seed=3)
        # Of data, of the posterior and of a release: three binomial errors.
        error = np.sqrt(3 * share * (1 - share) / n)
        assert abs((released["y"] == 0).mean() - share) < 4 * error


def test_without_a_part_for_zeros_it_is_poissons():
    y, eta = np.arange(6.0), np.full((6, 1), 0.4)
    found = ZeroInflatedPoisson().log_density(y, eta, np.full((6, 1), 1e-300))
    np.testing.assert_allclose(found, Poisson().log_density(y, eta, np.empty((6, 0))), rtol=1e-14)


def test_amounts_on_a_fine_grid_have_the_density_of_the_continuous_model():
    """As brms has it: the probability of a cent is the density times a cent."""
    from scipy.stats import lognorm

    y, eta, auxiliary = np.array([20.0, 150.25, 4000.5]), np.full((3, 1), 5.0), np.array([1.2, 0.5])
    found = HurdleLogNormal(0.01).log_density(y, eta, auxiliary)
    expected = lognorm.logpdf(y, 1.2, 0, np.exp(5.0)) + np.log(0.01) - np.log(1.5)
    # Its relative error is (step/(sigma·y))²/24, 1e-8 at the least amount.
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@every
def test_uniform_numbers_rise_with_what_they_draw(name):
    """One number each, zeros first: what the check of seeds and coupling need."""

    class Given:
        def random(self, shape):
            return np.linspace(0.0, 1.0, 1001)[:-1].reshape(shape)

    known = family(name)
    auxiliary = np.full((1000, len(known.auxiliary)), 0.7)
    drawn = known.draw(np.full((1000, 1), 0.8), auxiliary, Given())
    assert (np.diff(drawn) >= 0).all()
    upto = known.cdf(drawn, np.full((1000, 1), 0.8), auxiliary)
    assert (upto >= np.linspace(0.0, 1.0, 1001)[:-1] - 1e-12).all()


@pytest.mark.parametrize("step", [0, -1, np.inf, "a", True])
def test_a_step_is_a_number_above_0(step):
    with pytest.raises(sr.OptionError, match="step of rounded values"):
        HurdleLogNormal(step)


def test_amounts_off_the_grid_are_refused_without_being_told():
    people = pd.DataFrame({"y": [0.0, 1.5, 4711.25, 3.0] * 5})
    with pytest.raises(sr.DataError, match=r"multiples of 0\.5 from 0") as caught:
        sr.fit(sr.Regression("y ~ 1", HurdleLogNormal(0.5)), people)
    assert "4711" not in str(caught.value)


def test_risks_do_not_depend_on_the_unit_of_amounts():
    """Units with a step of 1, and hundreds with one of 0.01: the same people, the same numbers."""
    people = data_of("hurdle_lognormal", 40)
    risks = []
    for unit in (1.0, 100.0):
        data = people.assign(y=people["y"] / unit)
        model = sr.Regression("y ~ x", HurdleLogNormal(1.0 / unit))
        synthesizer = sr.fit(model, data, seed=1, n_draws=400)
        with pytest.warns(sr.ReliabilityWarning):  # the seed is one that people choose
            risk = sr.attribute_risk(
                synthesizer, synthesizer.synthesize(seed=2), on_unreliable="flag"
            )
        risks.append(risk.records[["before", "after", "n_guesses"]].to_numpy())
    # The mode is found to 1e-8 of a standard deviation.
    np.testing.assert_allclose(risks[0], risks[1], rtol=1e-5)
    assert np.abs(risks[0][:, 1] - risks[0][:, 0]).max() > 1e-4
