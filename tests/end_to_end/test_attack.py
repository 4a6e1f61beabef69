"""A small part of benchmarks/attack.py: damaged and hostile inputs for everything that reads."""

import sys
from pathlib import Path

import pytest
from helpers.attack_cases import Attack, people
from helpers.attack_workers import Tally, attack, try_one
from helpers.attacks import ATTACKS

SEED = 17
SLOW = ("study", "manifest", "utility.json", "names", "names in studies", "archives", "audit")


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
