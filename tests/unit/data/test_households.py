import numpy as np
import pandas as pd

import synrisk as sr


def test_households_are_in_the_image_of_the_papers_table():
    people = sr.load_households()
    assert people.shape == (5126, 5)
    assert list(people["Urban"].cat.categories) == ["rural", "urban"]
    assert list(people["Race"].cat.categories) == list("123456")
    counts = people["Race"].value_counts()
    rare = sorted(counts)[:2]
    assert all(15 <= n <= 35 for n in rare)
    assert sorted(people["KidsCount"].unique()) == list(range(8))
    assert np.corrcoef(people["LogExpenditure"], people["LogIncome"])[0, 1] > 0.3
    assert not people.isna().any().any()
    assert not {"Income", "Expenditure"} & set(people.columns)  # no raw twins of the logs


def test_households_are_the_same_every_time():
    pd.testing.assert_frame_equal(sr.load_households(), sr.load_households())
