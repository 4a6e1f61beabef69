"""What was worked out is remembered, for what it was worked out for."""

import pytest
from helpers.cases import people
from helpers.secret import SECRET

import synrisk as sr
from synrisk.base.cache import Memory


def test_a_thing_is_made_once_and_again_for_something_else():
    memory, made = Memory(), []

    def recall(name, given=None):
        return memory.recall(name, lambda: made.append((name, given)) or len(made), given)

    assert [recall("a"), recall("a"), recall("b"), recall("a")] == [1, 1, 2, 1]
    assert [recall("a", 5), recall("a", 5), recall("a", 6), recall("a", 5)] == [3, 3, 4, 5]


def test_what_could_not_be_made_is_tried_again():
    memory = Memory()

    def fail():
        raise sr.FitError("no")

    with pytest.raises(sr.FitError):
        memory.recall("a", fail)
    assert memory.recall("a", lambda: 3) == 3


class Contended(dict):
    """Where another thread always writes right after one."""

    def __setitem__(self, name, made):
        super().__setitem__(name, made)
        super().__setitem__(name, ("another's", "another's"))


def test_another_threads_is_not_taken_for_ones_own():
    memory = Memory()
    memory._made = Contended()
    assert memory.recall("a", lambda: "own", given=1) == "own"
    assert memory.recall("a", lambda: "own again", given=1) == "own again"


def test_a_synthesizer_that_was_used_before_gives_the_same():
    """Whatever it was used for: other guesses, releases and records."""
    data = people(80)
    plan = [sr.Regression("b ~ x"), sr.Regression("k ~ b", "poisson")]

    def fitted():
        return sr.fit(plan, data, seed=1, n_draws=40)

    used = fitted()
    releases = [used.synthesize(m, seed=SECRET + m) for m in (1, 2)]
    wide = {"guesses": {"b": sr.Interval(9, -400.0, 500.0)}}
    options = [{}, wide, {"records": list(data.index[3:20])}, {"guesses": 5}]
    for release in [*releases, releases[0]]:
        for option in options:
            expected = sr.attribute_risk(fitted(), release, **option, question="paper")
            found = sr.attribute_risk(used, release, **option, question="paper")
            assert found.to_dataset().identical(expected.to_dataset())
            assert found.release_check == expected.release_check
