"""What rows near to people tell: nothing of honest ones, nearly all of copies."""

import numpy as np
import pytest

from synrisk.audit.known_values import N_CLASSES, Known, nearest
from synrisk.audit.learnt_values import People, learn
from synrisk.audit.left_out_parts import Intervals, Scale, Table, predicted, predicted_left_out
from synrisk.audit.trust import trust


def world(n, seed):
    rng = np.random.default_rng(seed)
    x, group = rng.normal(size=n), rng.integers(0, 3, n).astype(float)
    y = x + group + rng.normal(size=n)
    return People(Known(group[:, None], x[:, None]), np.column_stack([x, group]), y)


def within(people, reach=0.25):
    return Intervals(people.value - reach, people.value + reach)


def joined(one, other):
    parts = [
        np.concatenate(pair)
        for pair in (
            (one.known.codes, other.known.codes),
            (one.known.numbers, other.known.numbers),
            (one.given, other.given),
            (one.value, other.value),
        )
    ]
    return People(Known(parts[0], parts[1]), parts[2], parts[3])


def some(people, rows):
    known = Known(people.known.codes[rows], people.known.numbers[rows])
    return People(known, people.given[rows], people.value[rows])


def test_a_leaf_gives_the_share_of_its_values_in_an_interval():
    n = 4000
    rng = np.random.default_rng(0)
    level = rng.integers(0, 2, n).astype(float)
    y = np.where(rng.random(n) < 0.2 + 0.6 * level, 1.0, 0.0)
    ones = Intervals(np.ones(n), np.ones(n))
    table = Table(level[:, None], y)
    found = predicted(table, level[:, None], ones, 1, "y", scale=Scale(20))
    for code, share in ((0.0, 0.2), (1.0, 0.8)):
        error = np.sqrt(share * (1 - share) / (n / 4))
        assert abs(found.probability[level == code].mean() - share) < 3 * error + 0.01


def test_nobody_speaks_for_themselves():
    people = world(400, 1)
    truth = within(people)
    other = people.value.copy()
    other[7] += 100.0  # the record's own value, with the same interval asked for
    found = [
        predicted_left_out(Table(people.given, value), truth, 1, "y").probability[7]
        for value in (people.value, other)
    ]
    assert found[0] == pytest.approx(found[1], abs=0.02)


def test_probabilities_come_true_as_often_as_they_say():
    people = world(3000, 2)
    truth = within(people, 0.5)
    order = np.random.default_rng(3).permutation(len(people))
    asked = Intervals(truth.low[order], truth.high[order])
    p = predicted_left_out(people.table, truth, 1, "y", asked=asked).probability
    hit = (people.value >= asked.low) & (people.value <= asked.high)
    for at in np.array_split(np.argsort(p), 5):
        error = np.sqrt(p[at].mean() * (1 - p[at].mean()) / len(at))
        assert abs(hit[at].mean() - p[at].mean()) < 4 * error


def test_the_nearest_row_has_the_same_levels_and_nobody_is_their_own():
    people = world(200, 4)
    own = nearest(people.known, people.known, own=True)
    rows = own.rows[:, 0]
    has = own.classes > 0
    assert (rows[has] != np.flatnonzero(has)).all()
    assert (people.known.codes[rows[has]] == people.known.codes[has]).all()
    copy = nearest(people.known, people.known)
    assert (copy.rows[:, 0] == np.arange(200)).all()
    assert (copy.classes == 2).all()  # alone in the same place


def test_people_without_a_row_of_their_levels_are_in_a_class_of_their_own():
    people = Known(np.array([[0.0], [5.0]]), np.array([[0.0], [0.0]]))
    rows = Known(np.zeros((30, 1)), np.arange(30.0)[:, None])
    found = nearest(people, rows)
    assert found.classes[1] == 0
    assert found.told(np.zeros(30), np.zeros(2), np.zeros(2)).tolist() == [1.0, 0.0]


def test_trust_is_small_where_rows_are_right_by_chance_and_large_where_always():
    rng = np.random.default_rng(0)
    believed, classes = np.full(300, 0.2), np.zeros(300, dtype=np.int64)
    by_chance = trust(believed, (rng.random(300) < 0.2).astype(float), classes, N_CLASSES)
    always = trust(believed, np.ones(300), classes, N_CLASSES)
    assert by_chance.weight.max() < 0.01
    assert always.weight.min() > 0.95


def test_trust_rests_on_others_alone():
    believed, told = np.full(5, 0.2), np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    lone = np.array([0, 1, 1, 1, 1])
    found = trust(believed, told, lone, 2)
    assert found.weight[0] == pytest.approx(0.0005, rel=0.05)  # the prior, whatever it tells


def test_what_other_people_tell_is_not_counted_twice():
    believed, classes = np.full(500, 0.2), np.zeros(500, dtype=np.int64)
    told = (np.random.default_rng(1).random(500) < 0.6).astype(float)
    usual = trust(believed, told, classes, 1)
    assert usual.by_class[0] == pytest.approx(0.5, abs=0.1)
    again = trust(believed, told, classes, 1, usual.by_class)
    assert again.weight.max() < 0.1


@pytest.mark.parametrize("seed", [1, 2])
def test_honest_rows_teach_nothing_and_copies_nearly_all(seed):
    people, rows = world(800, seed), world(800, seed + 100)
    honest = learn(people, rows, within(people), 1, "y").people
    assert honest.gain.max() < 0.05
    who = np.arange(80)
    made = joined(some(rows, np.arange(720)), some(people, who))
    copied = learn(people, made, within(people), 1, "y").people
    assert (copied.gain[who] > 0.5).all()
    assert copied.gain[80:].max() < 0.1
    assert (copied.gain_error[who] < 0.1).all()


def test_people_held_out_learn_nothing_of_copies():
    people, rows, others = world(600, 5), world(600, 6), world(600, 7)
    made = joined(some(rows, np.arange(500)), some(people, np.arange(100)))
    lesson = learn(people, made, within(people), 1, "y", (others, within(others)))
    assert lesson.people.gain[:100].mean() > 0.5
    assert abs(lesson.others.gain).max() < 0.05
    ratio = np.log(lesson.others.after / lesson.others.before)
    assert abs(ratio.mean()) < 3 * ratio.std() / np.sqrt(600) + 0.01


def test_numbers_do_not_depend_on_anything_but_the_seed():
    people, rows = world(300, 8), world(300, 9)
    one, same, other = (learn(people, rows, within(people), seed, "y").people for seed in (1, 1, 2))
    assert (one.before == same.before).all()
    assert (one.before != other.before).any()
