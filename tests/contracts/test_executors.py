"""Whatever runs the blocks, the bits are the same."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from helpers.cases import gaussian_draws, people

import synrisk as sr
from synrisk.chunks import ROWS
from synrisk.executors import workers


class Backwards:
    """An executor that works from the last block to the first."""

    def map(self, function, items):
        return [function(item) for item in list(items)[::-1]][::-1]


EXECUTORS = [None, "threads", "serial", 1, 2, 4, 7, Backwards(), ThreadPoolExecutor(3)]


def case(n):
    data = people(n, seed=n)
    rng = np.random.default_rng(n)
    draws = [
        gaussian_draws(7, ("Intercept", "x"), (10.0, 1.0)),
        pd.DataFrame(rng.normal(scale=0.2, size=(7, 4)), columns=["Intercept", "b", "uq", "us"]),
        pd.DataFrame(
            rng.normal(scale=0.2, size=(7, 8)),
            columns=[f"{v}:{t}" for v in ("mid", "top") for t in ("Intercept", "b", "k", "bs(b)1")]
        ).rename(columns={"mid:bs(b)1": "mid:b:k", "top:bs(b)1": "top:b:k"}),
    ]  # fmt: skip
    plan = [
        sr.Regression("b ~ x"),
        sr.Regression("k ~ b + u", "poisson"),
        sr.Regression("r ~ b*k", "categorical"),
    ]
    release = data[["b", "k", "r", "x", "u"]].sample(frac=1.0, random_state=1)
    return sr.Synthesizer.from_draws(plan, data, draws), release


@pytest.fixture(name="big", scope="module")
def make_big():
    return case(ROWS + 300)


@pytest.mark.parametrize("estimator", ["paper", "importance"])
def test_the_bits_do_not_depend_on_the_executor(big, estimator):
    synthesizer, release = big
    options = {"guesses": 3, "estimator": estimator}
    expected = sr.attribute_risk(synthesizer, release, executor="serial", **options)
    for executor in EXECUTORS:
        found = sr.attribute_risk(synthesizer, release, executor=executor, **options)
        pd.testing.assert_frame_equal(found.records, expected.records, check_exact=True)
        assert found.to_dataset().identical(expected.to_dataset())


@pytest.mark.parametrize("estimator", ["paper", "importance"])
@pytest.mark.parametrize("cut", [1, 17, 255])
def test_the_bits_do_not_depend_on_where_blocks_begin(big, estimator, cut):
    """With the first records left out, every block begins elsewhere."""
    synthesizer, release = big
    options = {"guesses": 3, "estimator": estimator, "executor": 2}
    everyone = sr.attribute_risk(synthesizer, release, **options).records
    later = sr.attribute_risk(synthesizer, release, records=range(cut, ROWS + 300), **options)
    pd.testing.assert_frame_equal(later.records, everyone.iloc[cut:], check_exact=True)


def test_a_result_is_the_same_every_time(big):
    synthesizer, release = big
    one, two = (sr.attribute_risk(synthesizer, release, guesses=3).records for _ in range(2))
    pd.testing.assert_frame_equal(one, two, check_exact=True)


@pytest.mark.parametrize("spec", ["processes", 0, -1, True, 2.5, object()])
def test_what_is_no_executor(spec):
    with pytest.raises(sr.OptionError, match="executor must be"):
        workers(spec)
