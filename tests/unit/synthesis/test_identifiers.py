import numpy as np
import pandas as pd
import pytest

from synrisk.synthesis.identifiers import identifies, is_row_counter

N = 200
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("anything", [f"p{i}" for i in range(N)]),
        ("anything", RNG.permutation(N) + 5000),
        ("anything", RNG.normal(size=N)),
        ("anything", pd.Timestamp("2000-01-01") + pd.to_timedelta(RNG.permutation(N), "D")),
        ("anything", [[i] for i in range(N)]),
        ("household_id", np.repeat(np.arange(N // 4), 4)),
        ("HouseholdID", np.repeat(np.arange(N // 4), 4)),
        ("Surname", RNG.choice([f"name{i}" for i in range(50)], N)),
        ("remarks", RNG.choice([f"was seen on day {i} again" for i in range(60)], N)),
        ("few are known", [*range(5), *[None] * (N - 5)]),
    ],
)
def test_what_may_name_people(name, values):
    assert identifies(pd.Series(values, name=name))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("age", RNG.integers(18, 90, N)),
        ("hospital_id", RNG.integers(0, 8, N)),
        ("postcode area", RNG.choice([f"area {i}" for i in range(60)], N)),
        ("sex", RNG.choice(["f", "m"], N)),
        ("constant", np.ones(N)),
        ("gaps", [None] * N),
        ("idle", RNG.integers(0, 60, N)),  # "id" is no word of it
    ],
)
def test_what_does_not(name, values):
    assert not identifies(pd.Series(values, name=name))


def test_rows_are_counted_from_anywhere_in_order():
    assert is_row_counter(pd.Series([3, 4, 5]))
    assert not is_row_counter(pd.Series([3, 5, 4]))
