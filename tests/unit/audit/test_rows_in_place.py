"""Values in their people's rows: found in part, coded anew and nearly; not in sorted files."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.audit.rows_in_place import in_place
from synrisk.audit.two_files import read_two_files

N = 200


def people(seed, n=N):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n).astype(float)
    return pd.DataFrame(
        {
            "Age": age,
            "Region": rng.choice(list("NSWE"), n),
            "Income": np.exp(9 + 0.01 * age + 0.6 * rng.normal(size=n)).round(2),
            "Ill": rng.choice(["yes", "no"], n, p=[0.1, 0.9]),
        }
    )


def found(real, release, sensitive=("Income", "Ill")):
    return in_place(read_two_files(real, release, None, None, list(sensitive), None))


REAL = people(1)
CHANGES = {
    "of one dataset": lambda fresh: [fresh, people(3).assign(Income=REAL["Income"])],
    "of fewer rows": lambda fresh: fresh.assign(Income=REAL["Income"]).iloc[: N - 20],
    "of more rows": lambda fresh: pd.concat([fresh.assign(Income=REAL["Income"]), people(4, 20)]),
    "rounded": lambda fresh: fresh.assign(Income=REAL["Income"].round(-2)),
    "with noise": lambda fresh: fresh.assign(
        Income=REAL["Income"] * np.exp(0.03 * np.random.default_rng(5).normal(size=N))
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_confidential_numbers_in_place_are_found(change):
    assert found(REAL, CHANGES[change](people(2))).surely == ("Income",)


@pytest.mark.parametrize("coded", [lambda one: one, lambda one: {"yes": "no", "no": "yes"}[one]])
def test_levels_in_place_are_found_also_coded_anew(coded):
    made = people(2).assign(Ill=REAL["Ill"].map(coded)).iloc[: N - 20]
    assert found(REAL, made).surely == ("Ill",)


def test_few_levels_that_agree_in_every_row_are_left_open():
    own = REAL.iloc[:40].assign(Ill=["yes"] * 2 + ["no"] * 38)
    made = people(2, 40).assign(Ill=own["Ill"])
    one = found(own, made)
    assert (one.surely, one.perhaps) == ((), ("Ill",))
    assert sr.audit(own, made, sensitive="Ill", seed=1).verdict().outcome == "cannot be judged"


def test_a_verdict_fails_and_says_so_in_both_reports():
    made = CHANGES["of fewer rows"](people(2))
    verdict = sr.audit(REAL, made, sensitive="Income", seed=1).verdict()
    assert verdict.outcome == "failed"
    [inside] = [one for one in verdict.sentences() if "in the order of the records" in one]
    assert "Income" in inside
    shared = verdict.sentences(sharing=True)
    assert any("The order of the rows may tell of the records" in one for one in shared)
    assert not any("in the order of the records" in one for one in shared)


def test_what_is_shared_does_not_say_that_every_value_stands_in_its_row():
    """Whoever has the release would read each from it."""
    own = REAL.iloc[:40].assign(Ill=["yes"] * 2 + ["no"] * 38)
    made = people(2, 40).assign(Ill=own["Ill"])
    told = sr.audit(own, made, sensitive="Ill", seed=1).verdict().sentences(sharing=True)
    assert any("The order of the rows may tell of the records" in one for one in told)
    assert not any("Every row" in one for one in told)


@pytest.mark.parametrize("by", ["Age", "Region", "Income"])
def test_sorted_files_agree_in_place_by_chance(by):
    for seed in range(10, 20):
        real, release = (people(s).sort_values(by, ignore_index=True) for s in (seed, seed + 100))
        assert not found(real, release, list(real)).surely


def test_what_follows_from_columns_that_are_released_in_place_is_not_taken_for_a_copy():
    rng = np.random.default_rng(6)
    made = REAL.assign(
        Income=np.exp(9 + 0.01 * REAL["Age"] + 0.6 * rng.normal(size=N)).round(2),
        Ill=rng.choice(["yes", "no"], N, p=[0.1, 0.9]),
    )
    assert found(REAL, made) == found(REAL, people(2))
    assert found(REAL, made.assign(Income=REAL["Income"]).iloc[: N - 9]).surely == ("Income",)


def test_honest_releases_raise_no_alarm():
    """Of 1,080 of nine kinds of tables, 60 and 300 people, none did."""
    for seed in range(40):
        one = found(people(seed + 200), people(seed + 300), list(REAL))
        assert (one.surely, one.perhaps) == ((), ())
