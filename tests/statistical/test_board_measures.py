"""Chance levels of the measures that boards cite: what a fresh sample of the same people gives."""

import numpy as np
import pandas as pd
import pytest

from synrisk.audit.count_measures import count_measures

N, N_WORLDS = 300, 40
# DiSDiO has no chance level, and TCAP's is only near.
UNBIASED = ("UiS", "UiOiS", "repU", "iS", "DiS", "DiSCO", "Dsyn", "singling out, univariate",
            "singling out, multivariate", "linkability", "DCR", "DCR share", "NNDR")  # fmt: skip
WITH_ERROR = ("UiOiS", "repU", "iS", "DiS", "DiSCO", "singling out, univariate")


def people(rng, n):
    z = rng.normal(size=n)
    job, region = np.minimum((rng.pareto(1.0, n) * 3).astype(int), 60), rng.integers(0, 6, n)
    ill = (z + rng.normal(size=n) > 0.8).astype(int) + ((region == 2) & (z > -1))
    return pd.DataFrame(
        {"job": job.astype(str), "region": region.astype(str), "age": np.round(z, 2),
         "ill": ill.astype(str), "income": z + rng.normal(size=n)}
    )  # fmt: skip


def measured(own, other):
    keys, targets = ["job", "region", "age"], ["ill", "income"]
    found = count_measures(own, other, keys, targets, bins={"age": 6, "income": 5}, seed=1)
    return found.table()


@pytest.fixture(scope="module")
def worlds():
    rng = np.random.default_rng(20)
    return pd.concat([measured(people(rng, N), people(rng, N)) for _ in range(N_WORLDS)])


@pytest.mark.parametrize("name", UNBIASED)
def test_a_fresh_sample_is_at_the_chance_level(worlds, name):
    for _, of in worlds.loc[[name]].groupby("of"):
        error = of["difference"].std() / np.sqrt(N_WORLDS)
        assert abs(of["difference"].mean()) < 4 * error


def test_tcap_is_near_its_chance_level(worlds):
    for _, of in worlds.loc[["TCAP"]].groupby("of"):
        assert abs(of["difference"].mean()) < 0.05


@pytest.mark.parametrize("name", WITH_ERROR)
def test_the_error_is_how_much_the_difference_varies(worlds, name):
    # The standard deviation of 40 worlds is known within 11 %.
    for _, of in worlds.loc[[name]].groupby("of"):
        assert 0.65 < of["error"].mean() / of["difference"].std() < 1.5


@pytest.mark.parametrize("name", ["UiOiS", "repU", "DiSCO", "singling out, univariate"])
def test_copies_of_every_third_record_are_beyond_chance(name):
    rng = np.random.default_rng(21)
    own, other = people(rng, N), people(rng, N)
    other.iloc[::3] = own.iloc[::3].to_numpy()
    for _, of in measured(own, other.astype(own.dtypes)).loc[[name]].iterrows():
        assert of["difference"] > 2 * of["error"]
