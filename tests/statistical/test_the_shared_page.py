"""What is shared leaves an intruder who knows everybody else nearly every value that he tries.

All settings are tried by ``benchmarks/shared_page.py``, and docs/explanation/the-report.md has what
it found; here those that take seconds.
"""

import pytest
from helpers.shared_page import left

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
