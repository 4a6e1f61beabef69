"""What may be named as an executor, by people and by what they were sent."""

import pytest

import synrisk as sr
from synrisk.base.dask_cluster import is_here
from synrisk.base.workers import MOST_WORKERS, workers


@pytest.mark.parametrize("n", [MOST_WORKERS + 1, 10**6, 10**400])
def test_more_workers_than_any_machine_has_cores_are_refused(n):
    with pytest.raises(sr.OptionError, match="executor may be at most 1,024"):
        workers(n)
    with pytest.raises(sr.OptionError, match="Processes: n may be at most 1,024"):
        sr.Processes(n)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("tcp://127.0.0.1:8786", True),
        ("tls://localhost:8786", True),
        ("tcp://[::1]:8786", True),
        ("tcp://127.9.9.9", True),
        ("tcp://10.0.0.1:8786", False),
        ("tcp://localhost.example.org:8786", False),
        ("tcp://127.0.0.1@example.org:8786", False),
        ("tcp://localhost@example.org", False),
        ("tcp://[::1", False),
        ("tcp://", False),
        ("tcp://0.0.0.0:8786", False),
        ("tcp://2130706433:8786", False),
    ],
)
def test_an_address_of_this_machine_is_told_from_others(address, expected):
    assert is_here(address) is expected


@pytest.mark.parametrize("spec", ["PID700001,22042.729\n" * 3, "PID700001 " * 50])
@pytest.mark.parametrize("argument", ["executor", "missing", "engine", "prior"])
def test_a_table_as_text_in_the_place_of_a_word_is_not_shown(spec, argument):
    people = sr.load_households()[:50]
    plan = sr.Regression("LogIncome ~ LogExpenditure")
    with pytest.raises(sr.SynriskError) as raised:
        sr.fit(plan, people, n_draws=20, seed=1, **{argument: spec})
    assert "PID7" not in str(raised.value)
