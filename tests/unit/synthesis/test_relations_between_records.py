"""Columns that hold of one record what is synthesized of another."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

N = 300


@pytest.fixture(name="people")
def make_people():
    rng = np.random.default_rng(4)
    age = rng.integers(18, 90, N)
    income = np.exp(9 + 0.01 * age + 0.5 * rng.normal(size=N))
    return pd.DataFrame({"age": age, "income": income, "village": [f"v{k // 5}" for k in range(N)]})


def refused(people, formula):
    with pytest.raises(sr.DisclosureError, match="'income' is") as error:
        sr.fit(sr.Regression(formula), people, seed=1)
    return str(error.value)


@pytest.mark.parametrize("digits", [0, 2, None])
def test_a_column_with_the_incomes_of_spouses_is_refused(people, digits):
    income = people["income"] if digits is None else people["income"].round(digits)
    spouse = income.to_numpy()[np.arange(N) ^ 1]
    people = people.assign(income=income, spouse=spouse)
    assert "'spouse'" in refused(people, "log(income) ~ age + log(spouse)")


@pytest.mark.parametrize("as_mean", [True, False])
def test_sums_and_means_of_everybody_else_are_refused(people, as_mean):
    total = people.groupby("village")["income"].transform("sum") - people["income"]
    people["peers"] = total / 4 if as_mean else total
    assert "'peers'" in refused(people, "log(income) ~ age + log(peers)")


@pytest.mark.parametrize("step", [1, 100, 0.01])
def test_amounts_of_the_same_kind_that_meet_by_chance_are_not(step):
    """Whole numbers and hundreds of two skewed columns are often the same."""
    rng = np.random.default_rng(6)
    scale = {1: 4.0, 100: 9.0, 0.01: 1.0}[step]
    income, spent = (
        np.rint(np.exp(scale + 0.7 * rng.normal(size=1500)) / step) * step + step for _ in range(2)
    )
    data = pd.DataFrame({"income": income, "spent": spent, "age": rng.integers(18, 90, 1500)})
    sr.fit(sr.Regression("log(income) ~ age"), data, seed=1)
