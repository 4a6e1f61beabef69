"""Whatever runs the blocks, the bits are the same."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from helpers.cases import gaussian_draws, people

import synrisk as sr
from synrisk.base.chunks import ROWS
from synrisk.base.workers import workers


class Backwards:
    """An executor that works from the last block to the first."""

    def map(self, function, items):
        return [function(item) for item in list(items)[::-1]][::-1]


EXECUTORS = [None, 2, 7, Backwards(), ThreadPoolExecutor(3)]


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

    def risk(executor, *, diagnostics):
        options = {"guesses": 3, "estimator": estimator, "question": "paper"}
        return sr.attribute_risk(
            synthesizer, release, executor=executor, diagnostics=diagnostics, **options
        )

    # The checks of the release run in threads of this process, whoever evaluates the records.
    for diagnostics, executors in ((True, [2]), (False, EXECUTORS)):
        expected = risk("serial", diagnostics=diagnostics)
        for executor in executors:
            found = risk(executor, diagnostics=diagnostics)
            pd.testing.assert_frame_equal(found.records, expected.records, check_exact=True)
            assert found.to_dataset().identical(expected.to_dataset())


@pytest.mark.parametrize(("spec", "same"), [("threads", None), (1, "serial")])
def test_one_executor_has_two_names(spec, same):
    with workers(spec).open() as one, workers(same).open() as other:
        assert type(one.own) is type(other.own)
        assert vars(one.own) == vars(other.own)


@pytest.mark.parametrize("estimator", ["paper", "importance"])
@pytest.mark.parametrize("cut", [1, 17, 255])
def test_the_bits_do_not_depend_on_where_blocks_begin(big, estimator, cut):
    """With the first records left out, every block begins elsewhere."""
    synthesizer, release = big
    options = {"guesses": 3, "estimator": estimator, "executor": 2, "question": "paper"}
    options["diagnostics"] = False
    everyone = sr.attribute_risk(synthesizer, release, **options).records
    later = sr.attribute_risk(synthesizer, release, records=range(cut, ROWS + 300), **options)
    pd.testing.assert_frame_equal(later.records, everyone.iloc[cut:], check_exact=True)


def test_a_result_is_the_same_every_time(big):
    synthesizer, release = big
    one, two = (
        sr.attribute_risk(synthesizer, release, guesses=3, question="paper").records
        for _ in range(2)
    )
    pd.testing.assert_frame_equal(one, two, check_exact=True)


@pytest.mark.parametrize("spec", ["process", 0, -1, True, 2.5, object()])
def test_what_is_no_executor(spec):
    with pytest.raises(sr.OptionError, match="executor must be"):
        workers(spec)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_threads_give_results_in_order_and_the_caller_works_too(n):
    seen = set()
    together = threading.Barrier(2, timeout=20)

    def work(item):
        seen.add(threading.get_ident())
        if item < 2:
            together.wait()  # so that one thread cannot do both
        return item * item

    with workers(n).open() as executor:
        assert list(executor.map(work, range(100))) == [k * k for k in range(100)]
        assert list(executor.map(work, [5])) == [25]
        assert list(executor.map(work, [])) == []
    assert 2 <= len(seen) <= n
    assert threading.get_ident() in seen


def test_an_error_in_a_thread_is_raised_and_nothing_goes_on():
    done = []

    def work(item):
        if item == 3:
            raise sr.OptionError("three")
        time.sleep(0.001)
        done.append(item)
        return item

    with workers(2).open() as executor:
        results = executor.map(work, range(1000))
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(sr.OptionError, match="three"):
            next(results)
    assert len(done) < 100


def test_work_within_work_does_not_wait_for_itself():
    with workers(2).open() as executor:

        def work(item):
            return sum(executor.map(lambda k: k * item, range(5)))

        assert list(executor.map(work, range(6))) == [10 * item for item in range(6)]


_ABANDONED = """
import gc, threading
from synrisk.base.workers import workers
begun, left = threading.Event(), threading.Event()

def work(item):
    if threading.current_thread() is not threading.main_thread() and item:
        begun.set()
        left.wait()
        gc.collect()

gc.disable()
with workers(2).open() as executor:
    results = executor.map(work, range(1000))
    next(results)
    begun.wait()
    circle = [results]
    circle.append(circle)
    del results, circle
    left.set()
"""


def test_a_helper_that_clears_away_what_nobody_iterates_does_not_wait_for_itself():
    """The process would never end."""
    subprocess.run([sys.executable, "-c", _ABANDONED], timeout=60, check=True)


def test_nothing_is_begun_after_ctrl_c_in_the_callers_own_work():
    begun, caller = [], threading.get_ident()
    helped, interrupted = threading.Event(), threading.Event()

    def work(item):
        begun.append(item)
        if threading.get_ident() != caller:
            helped.set()
            assert interrupted.wait(20)
            time.sleep(0.05)
        elif item == 0:
            assert helped.wait(20)  # so that there is a result to wait for
        else:
            interrupted.set()
            raise KeyboardInterrupt
        return item

    with workers(2).open() as executor, pytest.raises(KeyboardInterrupt):
        list(executor.map(work, range(1000)))
    assert len(begun) < 10
