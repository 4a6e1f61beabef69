"""The probability of a record's own row by models: what settles it, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from helpers.secret import SECRET
from scipy.stats import poisson

import synrisk as sr
from synrisk.audit import row_posteriors, row_search
from synrisk.base.workers import Serial
from synrisk.synthesis.release import read_release


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "Region": rng.choice(["n", "s", "w"], 60),
            "Owner": rng.choice(["no", "yes"], 60),
            "Age": rng.integers(20, 60, 60).astype(float),
        }
    )
    frame["Kids"] = rng.poisson(np.exp(0.5 + 0.6 * (frame["Region"] == "s")))
    frame["Income"] = 50 + 0.5 * frame["Age"] + 3 * frame["Kids"] + rng.normal(0, 3, 60)
    return frame


@pytest.fixture(scope="module")
def fitted(people):
    plan = [sr.Regression("Kids ~ Region", "poisson"), sr.Regression("Income ~ Kids + Age")]
    return sr.fit(plan, people, n_draws=400, seed=4)


@pytest.fixture(scope="module")
def release(fitted):
    return fitted.synthesize(m=2, seed=SECRET)


def risk(people, release, fitted, **given):
    asked = {"known": ["Region"], "synthesized": ["Kids", "Income"], "radius": 0}
    return sr.identification_risk(people, release, **(asked | given), synthesizer=fitted)


def test_where_the_known_values_have_all_predictors_nothing_is_gained(people, release, fitted):
    found = risk(people, release, fitted, synthesized=["Kids"])
    records = found.records
    assert (records["posterior"] == records["before"]).all()
    assert (records["posterior_mcse"] == 0).all()
    assert records["reliable"].all()
    assert (records["match_risk"] > records["before"]).any()
    verdict = found.verdict(sr.Criteria(gain=0))
    assert verdict.outcome == "passed"
    assert any("all that the models predict by" in one for one in verdict.sentences())


def test_other_columns_tell_rows_apart_and_are_named(people, release, fitted):
    found = risk(people, release, fitted)
    records = found.records
    assert (records["posterior_gain"] > 0.02).any()
    assert np.allclose(records["posterior_gain"], records["posterior"] - records["before"])
    verdict = found.verdict()
    assert any("released as they are: Age." in one for one in verdict.sentences())
    summary = found.summary()["expected_by_models"]
    assert summary["together"] == pytest.approx(records["posterior"].sum())
    assert summary["mean"] == pytest.approx(records["posterior_by_one"].sum())
    assert any("a row is the same record's in each" in note for note in found.notes)


def test_counts_within_a_radius_add_their_probabilities(people, release, fitted):
    """Against draws of the same fit, one value after the other."""
    found = risk(
        people,
        release[0],
        fitted,
        known=["Owner"],
        synthesized=["Kids"],
        radius=sr.Radius(absolute=1.5),
    ).records
    model = fitted.models[0]
    (dataset,) = read_release(fitted.confidential, [release[0]])
    fit = fitted.refits.of_release(model, dataset, Serial()).posterior
    rate = np.exp(fitted.refits.design(model, dataset) @ fit.coefficients[..., 0].T)
    weight = np.exp(fit.log_weights)
    kids, owner = people["Kids"].to_numpy(), people["Owner"].to_numpy()
    for i in range(12):
        near = [k for k in (kids[i] - 1, kids[i], kids[i] + 1) if k >= 0]
        p = sum(poisson.pmf(k, rate) for k in near) @ weight * (owner == owner[i])
        difference = abs(found["posterior"].iloc[i] - p[i] / p.sum())
        assert difference <= 4.5 * found["posterior_mcse"].iloc[i] + 1e-12


def test_levels_that_are_numbers_have_a_radius_too(people):
    frame = people.drop(columns="Kids").assign(Rooms=people["Kids"].clip(upper=3) + 1)
    plan = sr.Regression("Rooms ~ Age", "categorical")
    types = {"Rooms": [1, 2, 3, 4]}
    fitted = sr.fit(plan, frame, n_draws=200, seed=4, types=types)
    release = fitted.synthesize(seed=SECRET)[0]
    asked = {"known": ["Owner"], "synthesized": ["Rooms"], "synthesizer": fitted}
    near, all_ = (
        sr.identification_risk(frame, release, radius=sr.Radius(absolute=r), **asked).records
        for r in (0.5, 9.0)
    )
    exact = sr.identification_risk(frame, release, radius=0, **asked).records
    assert np.allclose(near["posterior"], exact["posterior"])
    # Whoever knows that it is any level knows nothing.
    away = np.abs(all_["posterior"] - all_["before"])
    assert (away <= 4.5 * all_["posterior_mcse"]).all()


def test_a_known_variable_may_be_rough(people, release, fitted):
    radius = {"Age": sr.Radius(absolute=3), "Income": 0, "Kids": 0}
    found = risk(people, release[0], fitted, known=["Age"], radius=radius).records
    age = people["Age"].to_numpy()
    n_near = (np.abs(age[:, None] - age) < 3).sum(axis=1)
    assert np.allclose(found["before"], 1 / n_near)
    alone = n_near == 1
    assert (found["posterior"][alone] == 1.0).all()
    assert found["posterior"].between(0, 1).all()


@pytest.mark.parametrize("synthesized", [["Kids", "Income"], ["Income"]])
def test_a_number_does_not_depend_on_how_many_are_taken_at_once(
    people, release, fitted, synthesized, monkeypatch
):
    monkeypatch.setattr(row_posteriors, "is_little_work", lambda *_: False)
    whole = risk(people, release, fitted, synthesized=synthesized).records
    monkeypatch.setattr(row_search, "_AT_ONCE", 1)
    parts = risk(people, release, fitted, synthesized=synthesized).records
    pd.testing.assert_frame_equal(parts, whole, rtol=1e-12)


def test_many_records_are_approximated_and_it_says_so(people, release, fitted, monkeypatch):
    by_files = risk(people, release, fitted)
    monkeypatch.setattr(row_posteriors, "is_little_work", lambda *_: False)
    found = risk(people, release, fitted)
    assert any("For 60 records posterior is an approximation" in note for note in found.notes)
    assert not any("approximation" in note for note in by_files.notes)
    one, other = found.records, by_files.records
    apart = np.abs(one["posterior"] - other["posterior"])
    assert (apart <= 4.5 * np.hypot(one["posterior_mcse"], other["posterior_mcse"])).all()
    # All together is another probability than that of one dataset.
    assert np.abs(other["posterior"] - other["posterior_by_one"]).max() > 0.02


def test_rows_that_stand_elsewhere_in_another_dataset_are_refused(people, release, fitted):
    moved = release[1].assign(Age=release[1]["Age"].to_numpy()[::-1])
    with pytest.raises(sr.SyntheticDataError, match="datasets 1 and 2 differ in Age, which the"):
        risk(people, [release[0], moved], fitted)


def test_it_is_saved_and_loaded(people, release, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(row_posteriors, "is_little_work", lambda *_: False)
    found = risk(people, release, fitted)
    found.save(tmp_path / "risk.nc")
    again = sr.IdentificationRisk.load(tmp_path / "risk.nc")
    pd.testing.assert_frame_equal(again.records, found.records)
    assert str(again.verdict()) == str(found.verdict())
    assert again.notes == found.notes


def test_a_release_that_follows_its_records_is_not_judged_by_models(people, fitted):
    found = risk(people, people, fitted)
    assert (found.records["match_risk"] == 1.0).all()
    assert found.records["posterior"].max() < 0.9
    verdict = found.verdict(sr.Criteria(gain=0.9))
    assert verdict.outcome == "failed"
    assert "it fails a check" in str(verdict)


def test_an_id_puts_rows_in_place_for_the_models_too(people, fitted, release):
    named = people.assign(Key=[f"k{i}" for i in range(60)])
    moved = release[0].assign(Key=named["Key"]).sample(frac=1, random_state=2)
    found = risk(named, moved, fitted, id="Key").records
    expected = risk(people, release[0], fitted).records
    assert np.array_equal(found["posterior"], expected["posterior"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"synthesizer": "models"}, "is what synrisk.fit returns; got"),
        ({"known": ["Kids"], "synthesized": ["Income"]}, "known= names Kids, which the synthes"),
        ({"synthesized": ["Age"]}, "synthesized= names Age, which the synthesizer does not"),
    ],
)
def test_what_the_models_do_not_have_is_refused(people, release, fitted, change, said):
    asked = {"known": ["Region"], "synthesized": ["Income"], "radius": 0, "synthesizer": fitted}
    with pytest.raises(sr.SynriskError, match=said):
        sr.identification_risk(people, release, **(asked | change))


def test_other_records_are_refused(people, release, fitted):
    with pytest.raises(sr.DataError, match=r"in their order \(synthesizer.data\); they are others"):
        risk(people.iloc[:50], [one.iloc[:50] for one in release], fitted)
    other = people.assign(Income=people["Income"] + 1)
    with pytest.raises(sr.DataError, match="they differ in Income"):
        risk(other, release, fitted)


def test_draws_that_were_made_elsewhere_are_refused(people, release, fitted):
    plan = list(fitted.plan.regressions)
    given = [fitted.draws("Kids"), fitted.draws("Income")]
    foreign = sr.Synthesizer.from_draws(plan, people, given)
    with pytest.raises(sr.OptionError, match="the draws of Kids, Income were made elsewhere"):
        risk(people, release, foreign)


def test_too_many_pairs_are_refused_and_many_take_fewer_draws(people, release, fitted, monkeypatch):
    whole = risk(people, release[0], fitted).records
    monkeypatch.setattr(row_posteriors, "_MANY", 1)
    few = risk(people, release[0], fitted).records
    assert few["posterior_mcse"].mean() > 1.2 * whole["posterior_mcse"].mean()
    errors = np.hypot(few["posterior_mcse"], whole["posterior_mcse"])
    assert (np.abs(few["posterior"] - whole["posterior"]) <= 4.5 * errors).all()
    monkeypatch.setattr(row_posteriors, "_MOST_PAIRS", 100)
    with pytest.raises(sr.OptionError, match=r"pairs of a record and a row .* at most 100"):
        risk(people, release[0], fitted)


def test_a_gap_in_a_release_is_refused(people, release, fitted):
    broken = release[0].copy()
    broken.loc[3, "Income"] = np.nan
    with pytest.raises(sr.SyntheticDataError, match="missing"):
        risk(people, broken, fitted)
