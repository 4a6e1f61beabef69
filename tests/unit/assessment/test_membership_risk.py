"""Membership risk: what a result says, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.audit.membership import alone_with_level

SEED = 2**80


def people(n=80):
    rng = np.random.default_rng(1)
    y = rng.normal(size=n)
    frame = pd.DataFrame({"y": y, "k": rng.poisson(2.0, n), "g": rng.choice(["u", "v"], n)})
    return frame.set_index(pd.Index(np.arange(n) + 500, name="person"))


PLAN = [sr.Regression("y ~ 1"), sr.Regression("k ~ y", "poisson")]


@pytest.fixture(scope="module")
def found():
    synthesizer = sr.fit(PLAN, people()[["y", "k"]], n_draws=400, seed=SEED)
    return sr.membership_risk(synthesizer, synthesizer.synthesize(m=2, seed=SEED + 1))


def test_records_have_the_labels_and_even_odds_before(found):
    records = found.records
    assert records.index.equals(people().index)
    assert (records["before"] == 0.5).all()
    after = 1 / (1 + np.exp(-records["log_ratio"]))
    np.testing.assert_allclose(records["after"], after)
    np.testing.assert_allclose(records["gain"], after - 0.5)
    assert (records["log_ratio_mcse"] > 0).all()


def test_the_summary_has_the_advantage_and_the_bound(found):
    summary, records = found.summary(), found.records
    assert summary["gain_max"] == records["gain"].max()
    assert summary["advantage"] == pytest.approx(
        np.maximum(1 - np.exp(-records["log_ratio"]), 0).mean()
    )
    assert summary["epsilon"] == found.epsilon(0.95)
    assert found.epsilon(0.99) < found.epsilon(0.5) < np.abs(records["log_ratio"]).max()
    assert "ε at least" in repr(found)


def test_a_verdict_is_of_the_limits_and_of_the_release(found):
    assert found.verdict(sr.Criteria(gain=0.49)).outcome == "passed"
    assert found.verdict(sr.Criteria(gain=0.001), rows="people").outcome == "failed"
    assert "probability of the right answer to who was in the data" in str(found.verdict())


def test_columns_that_no_model_makes_tell_who_was_in_the_data_in_any_order():
    synthesizer = sr.fit([sr.Regression("y ~ g")], people()[["y", "g"]], seed=SEED)
    [release] = synthesizer.synthesize(1, seed=SEED + 1)
    shuffled = release.sample(frac=1.0, random_state=1)
    for dataset in (release, shuffled, shuffled.iloc[:-5]):
        verdict = sr.membership_risk(synthesizer, dataset).verdict(sr.Criteria(gain=0.49))
        assert verdict.outcome == "failed"
        told = "Released, and not made by the models: g. Where these are the people's own"
        for sharing in (True, False):
            assert any(told in one for one in verdict.sentences(sharing=sharing))
            assert not any("not judged here" in one for one in verdict.sentences(sharing=sharing))


def test_columns_that_are_added_give_nothing_away():
    data = people()[["y"]]
    synthesizer = sr.fit([sr.Regression("y ~ 1")], data, seed=SEED)
    [release] = synthesizer.synthesize(1, seed=SEED + 1)
    with pytest.raises(sr.DisclosureError, match="'y2'"):
        sr.membership_risk(synthesizer, release.assign(y2=data["y"].to_numpy()))
    other = release.assign(other=np.random.default_rng(3).normal(size=len(release)))
    verdict = sr.membership_risk(synthesizer, other).verdict(sr.Criteria(gain=0.49))
    assert any("not made by the models: other" in one for one in verdict.sentences())


def test_a_release_that_did_not_come_from_the_models_voids_the_limits():
    data = people()[["y"]]
    synthesizer = sr.fit([sr.Regression("y ~ 1")], data, seed=SEED)
    copied = sr.membership_risk(synthesizer, [data.sample(frac=1.0, random_state=1)])
    assert copied.verdict(sr.Criteria(gain=0.49)).outcome == "failed"


def test_who_alone_has_a_level_is_left_open_unless_it_was_declared():
    data = people()[["g"]].assign(g=lambda own: ["w", *own["g"][1:]])
    plan = [sr.Regression("g ~ 1", "categorical")]
    for types, n_alone in ((None, 1), ({"g": ["u", "v", "w"]}, 0)):
        synthesizer = sr.fit(plan, data, types=types, seed=SEED, n_draws=100)
        assert alone_with_level(synthesizer, synthesizer.models[0]).sum() == n_alone
        found = sr.membership_risk(synthesizer, synthesizer.synthesize(seed=SEED + 1))
        if n_alone:
            assert not found.records["reliable"].iloc[0]
            assert any("nothing can be said" in note for note in found.notes)


def test_mistakes_are_told(found):
    synthesizer = sr.fit([sr.Regression("y ~ 1")], people()[["y"]], n_draws=50, seed=SEED)
    draws = synthesizer.draws("y").drop(columns="weight")
    elsewhere = sr.Synthesizer.from_draws([sr.Regression("y ~ 1")], people()[["y"]], [draws])
    release = synthesizer.synthesize(seed=SEED + 1)
    for call, words in (
        (lambda: sr.membership_risk(people(), release), "takes what synrisk.fit returns"),
        (lambda: sr.membership_risk(elsewhere, release), "made elsewhere"),
        (lambda: found.epsilon(95), "between 0 and 1"),
        (lambda: found.verdict(sr.Criteria(log_odds_range=1)), "has no log_odds_range"),
        (lambda: found.verdict(sr.Criteria(variables=sr.Criteria(gain=0.1))), "whole record"),
        (lambda: found.verdict(0.1), "verdict takes criteria"),
    ):
        with pytest.raises(sr.OptionError, match=words):
            call()
