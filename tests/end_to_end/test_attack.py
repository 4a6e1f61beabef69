"""A small part of benchmarks/attack.py: damaged and hostile inputs for everything that reads."""

import sys

import pytest
from helpers.attack_workers import Tally, attack, try_one
from helpers.attacks import ATTACKS

SEED = 17
SLOW = ("study", "manifest", "utility.json", "names", "names in studies", "archives")


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
    assert outcomes <= {"taken", "refused", "not made"}


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is that of Linux")
def test_a_process_of_the_attack_tells_what_came_of_its_inputs():
    tally = Tally()
    attack("criteria", SEED, tally, seconds=60, inputs=5)
    assert (tally.n, tally.next_number, tally.problems) == (5, 5, [])
    assert tally.largest > 0
