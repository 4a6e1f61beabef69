"""What is shared leaves an intruder who knows everybody else nearly every value that he tries.

All settings are tried by ``benchmarks/shared_page.py``, and docs/explanation/the-report.md has what
it found; here those that take seconds.
"""

import numpy as np
import pytest
from helpers.secret import SECRET
from helpers.shared_page import SEED, facts, left, people

import synrisk as sr

N_GUESSES = 20


@pytest.mark.parametrize("record", [0, -1], ids=["ordinary", "outlying"])
@pytest.mark.parametrize(
    ("n", "variables", "m"), [(200, 1, 1), (200, 1, 5), (200, 2, 1), (200, 3, 5), (1000, 2, 1)]
)
def test_the_page_is_the_same_whatever_the_record_is(n, variables, m, record):
    same = left(n, variables, m, record, N_GUESSES, seed=0)
    assert sum(same) >= 0.9 * N_GUESSES


def test_of_a_release_that_fails_the_page_tells_the_verdict_alone():
    """With twenty datasets every value fails; bands of gains would leave half of them."""
    assert all(left(200, 1, 20, -1, 5, seed=0))


def test_a_page_that_told_the_largest_gain_would_give_a_record_away(monkeypatch):
    """The attack sees what it should: a single number in three digits leaves few values."""
    monkeypatch.setattr("synrisk.report.shared._points", lambda gain: f"{gain:.3g}")
    assert sum(left(200, 1, 1, -1, N_GUESSES, seed=0)) <= 0.2 * N_GUESSES


@pytest.mark.parametrize("formula", ["y ~ x", "z ~ y"], ids=["as a response", "as a predictor"])
def test_the_page_does_not_tell_that_one_person_has_a_gap(formula):
    """Whether gaps are modelled is declared; a page that told of one gap would tell whose."""
    data = people(80, seed=1)
    data["z"] = data["y"] + data["x"]
    plan = [sr.Regression("y ~ x"), sr.Regression("z ~ y")][: 1 if formula == "y ~ x" else 2]
    with_gap = data.assign(y=data["y"].where(np.arange(len(data)) != 0))
    both = [
        sr.fit(plan, own, missing={"y": "model"}, n_draws=200, seed=SEED)
        for own in (data, with_gap)
    ]
    (release,) = both[1].synthesize(seed=SECRET)
    without, told = (facts(fitted, [release]) for fitted in both)
    assert "or missing" in told
    assert told == without
