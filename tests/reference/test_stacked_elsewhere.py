"""Draws given the stacks that were made elsewhere, against the exact estimator."""

import numpy as np
import pandas as pd
import pytest
from helpers.cases import people

import synrisk as sr

PLAN = [sr.Regression("b ~ x"), sr.Regression("c ~ b")]
NAMES = {"Intercept": "const", "sigma": "sd"}


def made_elsewhere(data, release, n_draws, n_stacked):
    """Independent fits to the data and to each stack, as tables."""
    own = sr.fit(PLAN, data, seed=10, n_draws=n_draws)
    tables = [own.draws(name) for name in ("b", "c")]
    stacks = []
    for number, dataset in enumerate(release):
        refits = sr.fit(PLAN, data, seed=20 + number, n_draws=n_stacked).refit(dataset)
        stacks.append({name: refit.posterior.frame() for name, refit in refits.items()})
    return tables, stacks


@pytest.mark.parametrize("n_stacked", [3000, 2000])
@pytest.mark.parametrize("prior", ["uniform", "model"])
def test_stacks_agree_with_the_exact_estimator(prior, n_stacked):
    data = people(30)
    fitted = sr.fit(PLAN, data, seed=1, n_draws=10)
    release = fitted.synthesize(2, seed=2)
    tables, stacks = made_elsewhere(data, release, 3000, n_stacked)
    options = {"guesses": 5, "intruder_prior": prior}
    exact = sr.attribute_risk(fitted, release, **options, question="paper").records
    synthesizer = sr.Synthesizer.from_draws(PLAN, data, tables)
    risk = sr.attribute_risk(synthesizer, release, stacked=stacks, **options, question="paper")
    assert set(risk.estimator.values()) == {"stacked"}
    found = risk.records
    z = (found["probability"] - exact["probability"]) / found["mcse"]
    assert np.abs(z).max() < 4.0
    assert found["mcse"].max() < 0.01
    weighted = sr.attribute_risk(
        synthesizer, release, estimator="importance", **options, question="paper"
    ).records
    errors = [(one["probability"] - exact["probability"]).abs().mean() for one in (found, weighted)]
    assert errors[0] < errors[1]
    assert any("given the stacks" in note for note in risk.notes) == (n_stacked != 3000)


def small():
    data = people(30)
    fitted = sr.fit(PLAN, data, seed=1, n_draws=10)
    release = fitted.synthesize(1, seed=2)
    tables, stacks = made_elsewhere(data, release, 60, 60)
    return data, release, tables, stacks


def test_lists_names_and_the_first_draws():
    data, release, tables, stacks = small()
    synthesizer = sr.Synthesizer.from_draws(PLAN, data, tables)
    by_name = sr.attribute_risk(synthesizer, release, stacked=stacks, n_draws=30, question="paper")
    by_place = sr.attribute_risk(
        synthesizer,
        release,
        estimator="stacked",
        stacked=[list(stacks[0].values())],
        n_draws=30,
        question="paper",
    )
    pd.testing.assert_frame_equal(by_name.records, by_place.records)
    short = {name: table.iloc[:30] for name, table in stacks[0].items()}
    alike = sr.attribute_risk(
        sr.Synthesizer.from_draws(PLAN, data, [table.iloc[:30] for table in tables]),
        release,
        stacked=[short],
        question="paper",
    )
    np.testing.assert_allclose(alike.records["probability"], by_name.records["probability"])


def test_stacks_are_renamed_as_the_draws_were(tmp_path):
    data, release, tables, stacks = small()
    own = [table.rename(columns=NAMES) for table in tables]
    renamed = [{name: table.rename(columns=NAMES) for name, table in stacks[0].items()}]
    rename = {new: old for old, new in NAMES.items()}
    synthesizer = sr.Synthesizer.from_draws(PLAN, data, own, rename=rename)
    synthesizer.save(tmp_path / "s.nc")
    again = sr.Synthesizer.load(tmp_path / "s.nc")
    plain = sr.Synthesizer.from_draws(PLAN, data, tables)
    expected = sr.attribute_risk(plain, release, stacked=stacks, question="paper").records
    for one in (synthesizer, again):
        risk = sr.attribute_risk(one, release, stacked=renamed, question="paper")
        pd.testing.assert_frame_equal(risk.records, expected)
    risk.save(tmp_path / "risk.nc")
    loaded = sr.AttributeRisk.load(tmp_path / "risk.nc")
    pd.testing.assert_frame_equal(loaded.records, expected)
    assert len(loaded._evaluation.estimates[0].error_sets) == 2


def test_what_is_refused():
    data, release, tables, stacks = small()
    synthesizer = sr.Synthesizer.from_draws(PLAN, data, tables)
    with pytest.raises(sr.SynriskError, match="entry for each of the 1 synthetic dataset"):
        sr.attribute_risk(synthesizer, release, stacked=stacks * 2, question="paper")
    with pytest.raises(sr.SynriskError, match="entry for each"):
        sr.attribute_risk(synthesizer, release, stacked=stacks[0], question="paper")
    with pytest.raises(sr.SynriskError, match="stacked= of dataset 1 holds 1 table"):
        sr.attribute_risk(synthesizer, release, stacked=[tables[:1]], question="paper")
    with pytest.raises(sr.SynriskError, match="given the confidential data alone"):
        sr.attribute_risk(synthesizer, release, stacked=[tables], question="paper")
    without = {**stacks[0], "b": stacks[0]["b"].drop(columns="x")}
    with pytest.raises(sr.SynriskError, match="'b' given the stack of dataset 1 do not fit"):
        sr.attribute_risk(synthesizer, release, stacked=[without], question="paper")
    with pytest.raises(sr.SynriskError, match="does not use it"):
        sr.attribute_risk(
            synthesizer, release, stacked=stacks, estimator="importance", question="paper"
        )
    with pytest.raises(sr.SynriskError, match="by stacked="):
        sr.attribute_risk(synthesizer, release, estimator="stacked", question="paper")
    fewer = {**stacks[0], "c": stacks[0]["c"].iloc[:50]}
    with pytest.raises(sr.SynriskError, match="50 draws for 'c' given the stack of dataset 1"):
        sr.attribute_risk(synthesizer, release, stacked=[fewer], n_draws=55, question="paper")
    fitted = sr.fit(PLAN, data, seed=1, n_draws=10)
    with pytest.raises(sr.SynriskError, match=r"made by synrisk\.fit"):
        sr.attribute_risk(fitted, release, stacked=stacks, question="paper")
