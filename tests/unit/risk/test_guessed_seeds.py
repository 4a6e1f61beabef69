"""A release whose seed can be guessed is found; one with a secret seed is not."""

import io
import secrets

import numpy as np
import pandas as pd
import pytest
from helpers.families import Overdispersed
from helpers.secret import SECRET

import synrisk as sr
from synrisk.models import families
from synrisk.risk.guessed_seeds import chosen_seeds, try_seeds
from synrisk.synthesis.release import read_release

PLANS = {
    "gaussian": [("y ~ x", "gaussian")],
    "log": [("log(amount) ~ x", "gaussian")],
    "root": [("sqrt(amount) ~ x", "gaussian")],
    "whole": [("log(whole) ~ x", "gaussian")],
    "rounded": [("few ~ x", "gaussian")],
    "bernoulli": [("owner ~ x", "bernoulli")],
    "categorical": [("region ~ x", "categorical")],
    "poisson": [("count ~ x", "poisson")],
    "large counts": [("many ~ x", "poisson")],
    "sequence": [("region ~ x", "categorical"), ("y ~ region + x", "gaussian")],
}
# Such that rows can stand anywhere: continuous values with their digits.
ANY_ORDER = ("gaussian", "log", "root")


def data(n=300):
    rng = np.random.default_rng(8)
    x = rng.normal(size=n)
    amount = np.exp(3.0 + 0.3 * x + 0.2 * rng.normal(size=n))
    return pd.DataFrame(
        {
            "x": x,
            "y": 5.0 + x + rng.normal(size=n),
            "amount": amount,
            "whole": np.rint(100.0 * np.exp(0.2 * rng.normal(size=n))).astype(np.int64),
            "few": np.rint(4.0 + x + rng.normal(size=n)).astype(np.int64),
            "owner": rng.random(n) < 0.4,
            "region": rng.choice(["north", "south", "west"], n),
            "count": rng.poisson(np.exp(0.5 + 0.3 * x)),
            "many": rng.poisson(np.exp(4.0 + 0.3 * x)),
        }
    )


def fitted(plan, n=300, **options):
    regressions = [sr.Regression(formula, family) for formula, family in plan]
    used = {name for r in regressions for name in (r.response, *r.parsed.predictors)}
    frame = data(n)[[name for name in data().columns if name in used]]
    return sr.fit(regressions, frame, seed=1, n_draws=300, **options)


@pytest.fixture(scope="module", params=PLANS)
def named(request):
    return request.param, fitted(PLANS[request.param])


def guessed(synthesizer, datasets):
    """By the lists of seeds alone: what `synthesize` was given is forgotten."""
    synthesizer.memory.recall("chosen seeds", set).clear()
    release = read_release(synthesizer.confidential, datasets)
    return [trial.is_guessed for trial in try_seeds(synthesizer, release)]


def as_read(frame):
    return pd.read_csv(io.StringIO(frame.to_csv(index=False)))


@pytest.mark.parametrize("seed", [0, 42, 9999, 12345, 20240229, 31122023, 12312023])
def test_a_chosen_seed_is_found(named, seed):
    _, synthesizer = named
    assert guessed(synthesizer, [as_read(f) for f in synthesizer.synthesize(seed=seed)]) == [True]


@pytest.mark.parametrize("m", [2, 3])
def test_it_is_found_whatever_the_order_of_the_datasets(named, m):
    _, synthesizer = named
    assert any(guessed(synthesizer, synthesizer.synthesize(m, seed=2024)[::-1]))


def test_it_is_found_for_one_dataset_of_several(named):
    _, synthesizer = named
    assert guessed(synthesizer, synthesizer.synthesize(5, seed=7)[3]) == [True]


def test_datasets_with_a_seed_each_are_all_found(named):
    _, synthesizer = named
    datasets = [synthesizer.synthesize(seed=seed)[0] for seed in (3, 1, 2)]
    assert guessed(synthesizer, datasets) == [True] * 3


def test_it_is_found_in_the_first_rows_alone(named):
    _, synthesizer = named
    assert guessed(synthesizer, synthesizer.synthesize(seed=7)[0].head(200)) == [True]


@pytest.mark.parametrize("name", ANY_ORDER)
def test_it_is_found_with_rows_shuffled_and_left_out(name):
    synthesizer = fitted(PLANS[name])
    frame = synthesizer.synthesize(seed=7)[0].sample(frac=0.7, random_state=3)
    assert guessed(synthesizer, as_read(frame)) == [True]


def test_it_is_found_in_rounded_values():
    synthesizer = fitted(PLANS["gaussian"])
    assert guessed(synthesizer, synthesizer.synthesize(seed=7)[0].round(1)) == [True]


def test_it_is_found_for_draws_that_were_made_elsewhere():
    own = fitted(PLANS["gaussian"])
    regressions = [sr.Regression("y ~ x", "gaussian")]
    other = sr.Synthesizer.from_draws(regressions, data()[["x", "y"]], [own.draws("y")])
    assert guessed(other, other.synthesize(seed=11)) == [True]


def test_it_is_found_for_a_family_with_draws_of_its_own(monkeypatch):
    monkeypatch.setattr(families, "FAMILIES", (*families.FAMILIES, Overdispersed()))
    synthesizer = fitted([("count ~ x", "overdispersed")], n=100)
    assert guessed(synthesizer, synthesizer.synthesize(seed=42)) == [True]
    assert guessed(synthesizer, synthesizer.synthesize(seed=SECRET)) == [False]


@pytest.mark.parametrize("seed", [77_001_234, 98_765_432_123, 10**18 - 11])
def test_a_seed_in_no_list_is_known_to_the_one_that_was_given_it(named, seed):
    _, synthesizer = named
    synthesizer.synthesize(3, seed=seed + 1)
    datasets = synthesizer.synthesize(3, seed=seed)
    release = read_release(synthesizer.confidential, [as_read(datasets[2]), datasets[0]])
    assert [trial.is_guessed for trial in try_seeds(synthesizer, release)] == [True, True]
    assert guessed(synthesizer, datasets[:1]) == [False]


def test_a_release_of_another_seed_is_not_taken_for_one_that_was_given(named):
    _, synthesizer = named
    synthesizer.synthesize(seed=77_001_234)
    release = read_release(synthesizer.confidential, synthesizer.synthesize(seed=SECRET))
    assert not try_seeds(synthesizer, release)[0].is_guessed


def test_secret_seeds_are_not_found(named):
    """A hundred of each plan, as datasets of one call: nothing agrees by even half of 64 bits."""
    _, synthesizer = named
    datasets = synthesizer.synthesize(100, seed=SECRET)
    for dataset in datasets:
        (trial,) = try_seeds(synthesizer, read_release(synthesizer.confidential, dataset))
        assert not trial.is_guessed
        assert trial.bits < 32


def test_a_release_that_holds_too_little_is_not_accused():
    """Twenty rows of two levels: some of 30,000 seeds agree with all of them by chance."""
    synthesizer = fitted(PLANS["bernoulli"], n=20)
    for k in range(20):
        assert guessed(synthesizer, synthesizer.synthesize(seed=SECRET + k)) == [False]


def test_a_small_release_of_levels_must_agree_in_all_rows():
    """Sixty rows hold some 55 bits: enough only if every row agrees."""
    synthesizer = fitted(PLANS["bernoulli"], n=60)
    (frame,) = synthesizer.synthesize(seed=5)
    assert guessed(synthesizer, frame) == [True]
    frame.loc[59, "owner"] = not frame.loc[59, "owner"]
    assert guessed(synthesizer, frame) == [False]


def test_the_attack_recovers_a_record_and_the_release_is_never_passed():
    """Whoever knows the others and guesses the seed: only the truth gives the release again."""
    plan, people = [sr.Regression("y ~ x", "gaussian")], data(40)[["x", "y"]]
    (release,) = sr.fit(plan, people, seed=1).synthesize(seed=1)
    guesses = np.append(np.linspace(2.0, 8.0, 20), people.loc[7, "y"])
    misses = []
    for value in guesses:
        guess = people.copy()
        guess.loc[7, "y"] = value
        (made,) = sr.fit(plan, guess, seed=1).synthesize(seed=1)
        misses.append(np.abs(made["y"] - release["y"]).max())
    assert misses[-1] == 0.0
    assert min(misses[:-1]) > 1e-6
    risk = sr.attribute_risk(sr.fit(plan, people, seed=1), release, question="paper")
    generous = sr.Criteria(probability=1.0)
    assert risk.release_check.status() == "failed"
    assert risk.verdict(generous).outcome == "failed"
    assert risk.release_check.seeds["bits"].min() >= 64
    secret = sr.attribute_risk(
        sr.fit(plan, people, seed=1), _secret(plan, people), question="paper"
    )
    assert secret.verdict(generous).outcome == "passed"


def _secret(plan, people):
    return sr.fit(plan, people, seed=1).synthesize(seed=SECRET)


def test_what_is_said_does_not_tell_the_seed():
    synthesizer = fitted(PLANS["gaussian"])
    risk = sr.attribute_risk(synthesizer, synthesizer.synthesize(seed=8642), question="paper")
    said = [*risk.release_check.failures, *risk.notes, risk.diagnostics().to_string()]
    said += risk.verdict(sr.Criteria(probability=1.0)).sentences(sharing=True)
    assert risk.release_check.failures
    assert not any("8642" in text or "8,642" in text for text in said)


def test_it_is_kept_in_a_file(tmp_path):
    synthesizer = fitted(PLANS["gaussian"])
    risk = sr.attribute_risk(synthesizer, synthesizer.synthesize(seed=8642), question="paper")
    risk.save(tmp_path / "risk.nc")
    loaded = sr.AttributeRisk.load(tmp_path / "risk.nc")
    assert loaded.release_check.failures == risk.release_check.failures
    pd.testing.assert_frame_equal(loaded.release_check.seeds, risk.release_check.seeds)


def test_the_lists_hold_what_people_choose_and_no_secret():
    short, long = (one.seeds for one in chosen_seeds())
    assert set(short) <= set(long)
    assert {0, 1, 42, 123, 1234, 2026, 9999, 12345, 20260131} <= set(short)
    others = {31012026, 1312026, 19800101, 20300101, 202401, 10001, 200000, 123321, 121212, 2**32}
    assert others <= set(long)
    assert len(long) <= 200_000  # a tenth of a second
    assert secrets.randbits(128) not in long.tolist()


@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("amount ~ x", "gamma"),
        ("amount ~ x", "lognormal"),
        ("share ~ x", "beta"),
        ("y ~ x", "student_t"),
        ("count ~ x", "negative_binomial"),
        ("count ~ x", "zero_inflated_poisson"),
        ("spent ~ x", "hurdle_lognormal"),
    ],
)
def test_it_is_found_for_every_family_among_all_seeds(formula, family):
    rng = np.random.default_rng(1)
    people = data().assign(amount=lambda rows: np.exp(rows["x"] + rng.normal(size=len(rows))))
    people["share"] = rng.beta(2.0, 3.0, len(people))
    people["spent"] = np.rint(100.0 * people["amount"]) * (rng.random(len(people)) < 0.6)
    used = people[["x", formula.split()[0]]]
    synthesizer = sr.fit(sr.Regression(formula, family), used, seed=1)
    assert guessed(synthesizer, synthesizer.synthesize(seed=54321)) == [True]
    assert guessed(synthesizer, synthesizer.synthesize(seed=SECRET)) == [False]
