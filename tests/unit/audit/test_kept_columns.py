"""Columns that are released as they are, and those whose counts agree by chance."""

import numpy as np
import pandas as pd

import synrisk as sr
from synrisk.audit.kept_columns import kept_columns


def table(rng, n=200):
    """Coins, a column of three levels, one of numbers."""
    return np.column_stack([rng.integers(0, 2, n), rng.integers(0, 3, n), rng.normal(size=n)])


def same_counts(values, rng):
    return rng.permutation(values)


def test_counts_that_agree_by_chance_are_no_column_as_it_is():
    rng = np.random.default_rng(1)
    own = table(rng)
    made = table(rng)
    made[:, 0] = same_counts(own[:, 0], rng)
    assert kept_columns(own, [made]).tolist() == [False, False, False]


def test_they_do_not_hide_a_column_that_is():
    rng = np.random.default_rng(2)
    own = table(rng)
    made = own.copy()
    made[:, 0] = same_counts(own[:, 0], rng)
    made[:, 1] = table(rng)[:, 1]
    assert kept_columns(own, [made]).tolist() == [False, False, True]
    order = rng.permutation(len(own))
    assert kept_columns(own, [made[order]]).tolist() == [False, False, True]


def test_few_levels_are_told_by_their_place_or_by_other_columns():
    rng = np.random.default_rng(3)
    own = table(rng)
    made = own.copy()
    made[:, 2] = rng.normal(size=len(own))
    assert kept_columns(own, [made]).tolist() == [True, True, False]
    moved = own[rng.permutation(len(own))]
    assert kept_columns(own, [moved]).all()  # numbers show that rows are people's, levels go along
    assert not kept_columns(own, [moved[:-1]]).any()


def test_every_dataset_must_have_it():
    rng = np.random.default_rng(4)
    own = table(rng)
    other = own.copy()
    other[:, 2] = rng.normal(size=len(own))
    assert kept_columns(own, [own.copy(), other]).tolist() == [True, True, False]


def test_honest_coins_are_called_kept_once_in_a_thousand_at_most():
    """Of 1,000 tables of five fair coins none; a fifth had one with the same counts."""
    rng = np.random.default_rng(5)
    n_same = n_kept = 0
    for _ in range(1000):
        own, made = (rng.integers(0, 2, (200, 5)).astype(float) for _ in range(2))
        n_same += bool((own.sum(axis=0) == made.sum(axis=0)).any())
        n_kept += bool(kept_columns(own, [made]).any())
    assert n_same > 100
    assert n_kept <= 4  # one is expected at most: four more in one of 300 choices of the seed


def test_an_audit_does_not_warn_of_it():
    rng = np.random.default_rng(6)

    def people():
        sex, age = rng.permutation(["f", "m"] * 150), rng.normal(50, 9, 300)
        return pd.DataFrame({"sex": sex, "age": age, "pay": 30 + 2 * age + rng.normal(0, 9, 300)})

    audit = sr.audit(people(), people(), seed=1)
    assert not any("as they are" in note for note in audit.notes)
    assert not any("Released as they are" in one for one in audit.verdict().sentences())
