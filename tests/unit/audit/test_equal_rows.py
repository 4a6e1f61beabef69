"""Rows of whole numbers: more of them equal than nearly equal are copies."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from synrisk.audit.two_files import read_two_files
from synrisk.risk.value_steps import heap_widths

copies = import_module("synrisk.audit.copies").copies
N, N_COPIED = 300, 15


def counts(rng):
    return pd.DataFrame(
        {name: rng.poisson(mean, N) for name, mean in zip("xyz", (60, 40, 30), strict=True)}
    )


def sizes(rng):
    a = rng.normal(size=N)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, N),
            "height": (40 + 8 * a).round(),
            "weight": (75 + 10 * a + 8 * rng.normal(size=N)).round(),
        }
    )


def amounts(rng):
    return pd.DataFrame(
        {
            "level": rng.choice(list("uvw"), N),
            "age": rng.integers(18, 90, N),
            "income": np.exp(8 + 0.7 * rng.normal(size=N)).round(-1),
        }
    )


def one(rng):
    return pd.DataFrame({"income": np.exp(9 + 0.7 * rng.normal(size=N)).round()})


def heaped(rng):
    wage = rng.lognormal(7, 0.5, N)
    wage = np.where(rng.random(N) < 0.6, wage.round(-2), wage.round())
    return pd.DataFrame({"wage": wage, "height": rng.normal(170, 8, N).round()})


def all_rounded(rng):
    """Who rounds one amount to hundreds rounds the other, too."""
    a, b = (np.exp(8 + 0.7 * rng.normal(size=N)) for _ in range(2))
    rounds = rng.random(N) < 0.3
    return pd.DataFrame(
        {
            "a": np.where(rounds, a.round(-2), a.round(-1)),
            "b": np.where(rounds, b.round(-2), b.round(-1)),
        }
    )


def found(make, seed, n_copied=0):
    rng = np.random.default_rng([seed, n_copied])
    real, release = make(rng), make(rng)
    who = rng.choice(N, n_copied, replace=False)
    release = pd.concat([real.iloc[who], release.iloc[n_copied:]], ignore_index=True)
    return copies(read_two_files(real, release, None, None, None, None), 1)


@pytest.mark.parametrize("make", [sizes, amounts])
def test_copied_whole_numbers_fail(make):
    for seed in range(5):
        assert found(make, seed, N_COPIED).is_too_close


@pytest.mark.parametrize("make", [counts, one])
def test_where_about_ten_agree_by_chance_most_copies_do_not_pass(make):
    """Of 100 each 9 and none passed: 15 copies beside so many are within chance now and then."""
    told = [found(make, seed, N_COPIED) for seed in range(10)]
    assert sum(one.is_too_close or bool(one.doubts) for one in told) >= 7


@pytest.mark.parametrize("make", [counts, sizes, amounts, one, heaped, all_rounded])
def test_honest_whole_numbers_do_not_fail(make):
    # One in a thousand does: two of ten would be no chance.
    assert sum(found(make, seed).is_too_close for seed in range(100, 110)) <= 1


def test_what_was_found_is_told_with_what_chance_gives():
    told = found(sizes, 1, N_COPIED)
    sentences = [one.sentence for one in told.compared if one.way == "beside"]
    assert len(sentences) == 1
    assert "that nearly agree in every number agree in all; chance gives about" in sentences[0]


def test_shuffled_amounts_of_few_digits_fail():
    rng = np.random.default_rng(2)
    real, release = one(rng), one(rng)
    release["income"] = rng.permutation(real["income"].to_numpy() + 0.0)
    release.iloc[:9] += 1.0
    told = copies(read_two_files(real, release, None, None, None, None), 1)
    assert any(way.way == "rounded" for way in told.found)


def test_heaps_are_seen_but_not_beside_a_value_of_another_size():
    amounts = np.random.default_rng(4).integers(1, 5_000, 300).astype(float)
    heaped = np.where(np.arange(300) % 2 == 0, np.round(amounts, -2), amounts)
    assert (heap_widths(np.array([1_200.0, 1_234.0]), heaped) == [100.0, 0.0]).all()
    assert not heap_widths(amounts, amounts).any()
    assert not heap_widths(heaped, np.append(heaped, 1e308)).any()
    assert not heap_widths(np.zeros(3), np.zeros(300)).any()
