import numpy as np
import pytest
from helpers.cases import one_gaussian, two_gaussians

import synrisk as sr


def test_uniform_is_one_over_the_number_of_guesses():
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, guesses=[3, 5], question="paper")
    np.testing.assert_allclose(risk.records["prior"], 1 / 15)
    np.testing.assert_allclose(risk.summary()["prior"], [1 / 15, 1 / 3, 1 / 5])


def test_a_truth_factor_of_one_is_uniform():
    synthesizer, release = two_gaussians()
    one = sr.attribute_risk(
        synthesizer, release, intruder_prior=sr.TruthFactor(1), question="paper"
    )
    uniform = sr.attribute_risk(synthesizer, release, question="paper")
    np.testing.assert_allclose(one.records["probability"], uniform.records["probability"])


@pytest.mark.parametrize("by_record", [False, True])
def test_a_table_multiplies_the_likelihood(by_record):
    synthesizer, release = two_gaussians()
    rng = np.random.default_rng(0)
    shape = (40, 3, 5) if by_record else (3, 5)
    table = rng.gamma(1.0, size=shape)
    table /= table.sum(axis=(-2, -1), keepdims=True)
    uniform = sr.attribute_risk(synthesizer, release, guesses=[3, 5], question="paper")
    risk = sr.attribute_risk(
        synthesizer, release, guesses=[3, 5], intruder_prior=np.log(table), question="paper"
    )
    for i in (0, 21):
        own = table[i] if by_record else table
        expected = uniform.joint(i).to_numpy() * own
        np.testing.assert_allclose(risk.joint(i), expected / expected.sum(), atol=1e-14)
        assert risk.records.loc[i, "prior"] == pytest.approx(own[1, 2])
        ranking = risk.ranking(i)
        assert ranking.loc[ranking["is_truth"], "prior"].item() == pytest.approx(own[1, 2])
    if by_record:
        some = sr.attribute_risk(
            synthesizer,
            release,
            guesses=[3, 5],
            intruder_prior=np.log(table),
            records=[21, 4],
            question="paper",
        )
        np.testing.assert_array_equal(some.joint(21), risk.joint(21))


def test_a_guess_that_the_prior_excludes_stays_excluded():
    synthesizer, release = one_gaussian()
    with np.errstate(divide="ignore"):
        table = np.log([0.0, 0.5, 0.5])
    risk = sr.attribute_risk(
        synthesizer, release, guesses=3, intruder_prior=table, question="paper"
    )
    assert risk.joint(0).to_numpy()[0] == 0.0
    assert (risk.records["rank"] <= 2).all()
    assert (risk.records["n_guesses"] == 2).all()


@pytest.mark.parametrize(
    ("prior", "why"),
    [
        ("flat", "'uniform'"),
        ("modle", "'uniform'"),
        (np.full(3, 1 / 3), "numpy.log"),
        (np.log(np.full(4, 1 / 4)), "shape"),
        (np.log(np.full((7, 3), 1 / 3)), "shape"),
        (np.array([np.nan, -1.0, -1.0]), "natural logarithms"),
        (np.log([0.5, 1e-320, 0.5]) - [0, np.inf, 0], "probability 0 for 40 records"),
        (["a", "b", "c"], "array of real numbers"),
    ],
)
def test_bad_priors(prior, why):
    synthesizer, release = one_gaussian()
    with pytest.raises(sr.PriorError, match=why):
        sr.attribute_risk(synthesizer, release, guesses=3, intruder_prior=prior, question="paper")


@pytest.mark.parametrize("factor", [0, -1, np.inf, np.nan, "2", True])
def test_bad_truth_factors(factor):
    with pytest.raises(sr.PriorError):
        sr.TruthFactor(factor)


def test_a_number_is_told_to_be_a_factor():
    synthesizer, release = one_gaussian()
    with pytest.raises(sr.PriorError, match=r"TruthFactor\(k\)"):
        sr.attribute_risk(synthesizer, release, intruder_prior=5, question="paper")
