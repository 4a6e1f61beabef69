"""Records whose risk is not known because of what the question itself gives away."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.secret import SECRET

import synrisk as sr

LIMIT = sr.Criteria(lift=1000)


def evaluated(plan, data, guesses=11, release=None, **settings):
    fitted = sr.fit(plan, data, seed=1, n_draws=400, **settings)
    return sr.attribute_risk(
        fitted, release or fitted.synthesize(1, seed=SECRET + 2), guesses=guesses, question="paper"
    )


def people(n=120):
    rng = np.random.default_rng(3)
    levels = np.array(["a"] * 70 + ["b"] * (n - 71) + ["c"])
    return pd.DataFrame(
        {
            "race": levels,
            "kids": np.append(np.minimum(rng.poisson(1.0, n - 1), 4) % 4, 9),
            "x": rng.normal(size=n),
        }
    ).sample(frac=1, random_state=1, ignore_index=True)


@pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")
@pytest.mark.parametrize("dtype", [object, "category"])
def test_a_level_that_one_person_has_is_undecided(dtype):
    data = people().astype({"race": dtype})
    risk = evaluated(sr.Regression("race ~ 1", "categorical"), data)
    (doubt,) = risk.doubts
    assert np.flatnonzero(doubt.records).tolist() == np.flatnonzero(data["race"] == "c").tolist()
    verdict = risk.verdict(LIMIT)
    assert verdict.outcome == "cannot be judged"
    assert verdict.records["lift"].tolist() == ["undecided"]
    assert "nobody else has their race: declare what is possible, or merge it" in str(verdict)
    assert risk.diagnostics()["what_to_do"].str.contains("list the levels of race").any()
    shared = " ".join(verdict.sentences(sharing=True))
    assert "cannot be said" in shared
    assert "nobody else" not in shared
    assert "c" not in {word.strip(".,:") for word in str(verdict).split()}


@pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")
def test_declared_levels_are_known_to_be_possible():
    plan = sr.Regression("race ~ 1", "categorical")
    risk = evaluated(plan, people(), types={"race": ["a", "b", "c", "d"]})
    assert risk.doubts == ()
    assert "nobody else" not in str(risk.verdict(LIMIT))


def test_merged_levels_are_shared():
    data = people().replace({"race": {"c": "b"}})
    assert evaluated(sr.Regression("race ~ 1", "categorical"), data).doubts == ()


@pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")
def test_an_observed_count_that_one_person_has_is_undecided():
    plan = sr.Regression("kids ~ x", "poisson")
    (doubt,) = evaluated(plan, people()).doubts
    assert doubt.variable == "kids"
    assert np.flatnonzero(doubt.records).tolist() == np.flatnonzero(people()["kids"] == 9).tolist()
    assert evaluated(plan, people(), guesses=sr.Values(range(13))).doubts == ()


def test_zero_and_one_are_possible_whoever_has_them():
    data = people().assign(o=np.arange(120) == 7)
    for column in (data["o"], data["o"].astype(int)):
        risk = evaluated(sr.Regression("o ~ 1", "bernoulli"), data.assign(o=column))
        assert risk.doubts == ()


@pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")
def test_doubts_are_saved(tmp_path):
    risk = evaluated(sr.Regression("race ~ 1", "categorical"), people())
    risk.save(tmp_path / "risk.nc")
    loaded = sr.AttributeRisk.load(tmp_path / "risk.nc")
    assert str(loaded.verdict(LIMIT)) == str(risk.verdict(LIMIT))
    np.testing.assert_array_equal(loaded.doubts[0].records, risk.doubts[0].records)


def whole_numbers(n=200):
    rng = np.random.default_rng(4)
    x = rng.normal(size=n)
    return pd.DataFrame({"y": np.rint(4 + 0.3 * x + rng.normal(0, 0.6, n)).astype(int), "x": x})


@pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")
@pytest.mark.parametrize("settings", [{"prior": "conjugate"}, {"engine": "exact"}])
def test_a_density_asked_for_by_name_does_not_judge_a_rounded_release(settings):
    risk = evaluated(sr.Regression("y ~ x"), whole_numbers(), **settings)
    verdict = risk.verdict(LIMIT)
    assert verdict.outcome == "cannot be judged"
    assert "y is released rounded more coarsely than its model knows" in str(verdict)


@pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")
def test_a_logarithm_of_small_whole_numbers_is_undecided():
    data = whole_numbers().assign(y=lambda d: d["y"] + 1)
    risk = evaluated(sr.Regression("log(y) ~ x"), data)
    assert [doubt.variable for doubt in risk.doubts] == ["y"]
    assert risk.verdict(LIMIT).outcome == "cannot be judged"
    large = data.assign(y=(1000 * np.exp(0.5 * data["x"])).round().astype(int) + data["y"])
    assert evaluated(sr.Regression("log(y) ~ 1"), large).doubts == ()


@pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")
def test_a_release_that_was_rounded_afterwards_is_seen():
    data = whole_numbers()
    data["y"] = data["y"] + np.random.default_rng(5).normal(0, 0.3, len(data))
    fitted = sr.fit(sr.Regression("y ~ x"), data, seed=1)
    (release,) = fitted.synthesize(1, seed=SECRET + 2)
    for digits, outcome in ((0, "cannot be judged"), (2, "passed")):
        risk = sr.attribute_risk(fitted, release.round({"y": digits}), question="paper")
        assert risk.verdict(LIMIT).outcome == outcome


@pytest.mark.parametrize("family", ["gaussian", "rounded_gaussian"])
def test_a_model_of_rounded_values_knows(family):
    risk = evaluated(sr.Regression("y ~ x", family), whole_numbers())
    assert risk.doubts == ()
    assert risk.synthesizer.models[0].family == "rounded_gaussian"
    assert risk.verdict(LIMIT).outcome == "passed"


# -- draws that were made elsewhere ----------------------------------------------------------------
@pytest.mark.parametrize(("shrunk", "doubted"), [(0.0, True), (0.1, True), (1.0, False)])
def test_draws_that_hardly_vary_are_no_posterior(shrunk, doubted):
    """Point estimates make every release look safe, that of an outlier too."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.normal(size=200)})
    data["y"] = 5 * data["x"] + rng.normal(size=200)
    plan = sr.Regression("y ~ x")
    draws = sr.fit(plan, data, seed=1, n_draws=400).draws("y").drop(columns="weight")
    draws = draws.mean() + shrunk * (draws - draws.mean())
    theirs = sr.Synthesizer.from_draws(plan, data, draws)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        risk = sr.attribute_risk(theirs, theirs.synthesize(seed=SECRET))
    said = [doubt.why for doubt in risk.doubts if "vary far less" in doubt.why]
    assert bool(said) == doubted
    if doubted:
        assert risk.verdict(further=0).outcome == "cannot be judged"
