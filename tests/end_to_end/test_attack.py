"""A small part of benchmarks/attack.py: damaged and hostile inputs for everything that reads."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import attack_workers
from helpers.attack_cases import Attack, people
from helpers.attack_workers import Tally, Watch, attack, try_one
from helpers.attacks import ATTACKS

SEED = 17
SLOW = (
    "study",
    "manifest",
    "utility.json",
    "names",
    "names in studies",
    "archives",
    "audit",
    "survey files",
    "folders",
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reader", ATTACKS)
def test_hostile_inputs_are_read_or_refused_and_show_no_value(tmp_path, reader):
    (tmp_path / "good").mkdir()
    good = ATTACKS[reader].prepare(tmp_path / "good")
    outcomes = set()
    for number in range(3 if reader in SLOW else 25):
        outcome, problems = try_one(reader, SEED, number, good, tmp_path)
        assert problems == [], f"--only {reader!r} --seed {SEED} --input {number}"
        outcomes.add(outcome)
    assert {outcome.partition(":")[0] for outcome in outcomes} <= {"taken", "refused", "not made"}


def test_inputs_that_cannot_be_made_are_told_apart_from_what_a_reader_raises(tmp_path, monkeypatch):
    def refuse(*_):
        return "\ud800".encode()

    monkeypatch.setitem(ATTACKS, "made", Attack(Path, refuse, lambda *_: None))
    monkeypatch.setitem(ATTACKS, "read", Attack(Path, lambda _: None, refuse))
    outcome, problems = try_one("made", SEED, 0, None, tmp_path)
    assert outcome.startswith("not made: UnicodeEncodeError at test_attack.py")
    assert problems == []
    outcome, problems = try_one("read", SEED, 0, None, tmp_path)
    assert outcome == "raw exception"
    assert "UnicodeEncodeError" in problems[0]


def test_at_least_a_third_of_the_formulas_are_fitted(tmp_path):
    """What the parser refuses attacks the parser alone."""
    good = {"data": people()}
    outcomes = [try_one("formulas", SEED, k, good, tmp_path)[0] for k in range(60)]
    assert outcomes.count("taken") >= 20


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is that of Linux")
def test_a_process_of_the_attack_tells_what_came_of_its_inputs():
    tally = Tally()
    attack("criteria", SEED, tally, seconds=60, inputs=5)
    assert (tally.n, tally.next_number, tally.problems) == (5, 5, [])
    assert tally.largest > 0


def _watched(program, monkeypatch, **limits):
    """Return what is told of a program that does not end."""
    for name, limit in limits.items():
        monkeypatch.setattr(attack_workers, name, limit)
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, start_new_session=True) as process:
        watch, how, end = Watch(process.pid), "", time.monotonic() + 30
        while not how and time.monotonic() < end:
            time.sleep(0.05)
            how = watch.too_much()
        os.killpg(process.pid, signal.SIGKILL)
    return how


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what a process does is Linux' word")
_DEADLOCK = """
import threading
lock = threading.Lock()
lock.acquire()
threading.Thread(target=lock.acquire).start()
lock.acquire()
"""


@ON_LINUX
@pytest.mark.parametrize(
    ("program", "limits", "told"),
    [
        (_DEADLOCK, {"MOST_SECONDS_ASLEEP": 0.5}, "all its threads sleep"),
        ("while True: pass", {"MOST_SECONDS": 0.5}, "more than 0 s"),
        (
            "import time\nwhile True:\n time.sleep(0.2)\n sum(range(10**6))",
            {"MOST_MINUTES": 0.03, "MOST_SECONDS": 20.0},
            "minutes, though",
        ),
        (
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])",
            {"MOST_SECONDS": 0.5, "MOST_SECONDS_ASLEEP": 20.0},
            "more than 0 s",
        ),
    ],
    ids=["deadlock", "endless", "by little and little", "endless child"],
)
def test_an_input_that_does_not_end_is_seen(monkeypatch, program, limits, told):
    assert told in _watched(program, monkeypatch, **limits)


@ON_LINUX
def test_a_process_that_stands_by_for_a_core_does_not_sleep(monkeypatch):
    """A starved machine and a clock that leaps are no deadlock."""
    monkeypatch.setattr(attack_workers, "_activity", lambda _: (1.0, True))
    watch = Watch(0)
    monkeypatch.setattr(attack_workers.time, "monotonic", lambda: watch._begun + 600.0)
    assert watch.too_much() == ""
    monkeypatch.setattr(attack_workers, "_activity", lambda _: (1.0, False))
    assert watch.too_much() == ""  # one look at it, however long after the last
