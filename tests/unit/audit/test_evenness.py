"""How evenly people lie, told by how near they are to each other."""

import numpy as np
import pytest

from synrisk.audit.evenness import evenness


def test_even_points_are_left_as_they_are():
    p = (np.arange(1000) + 0.5) / 1000
    assert evenness(p) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("power", [0.4, 0.7])
def test_the_power_is_found_with_its_margin(power):
    p = ((np.arange(4000) + 0.5) / 4000) ** (1 / power)
    # Two standard errors of at most √(2/4000)/√0.5 each, a little more than the information has.
    assert power - 4 * power * np.sqrt(1 / 4000) * 2 < evenness(p) < power


def test_a_few_families_say_nothing_of_the_others():
    even = (np.arange(1000) + 0.5) / 1000
    assert evenness(np.r_[even, np.full(100, 1e-9)]) == evenness(even)


def test_people_who_are_all_near_somebody_leave_nothing_to_chance():
    assert evenness(np.full(50, 1e-4)) == pytest.approx(0.1)
