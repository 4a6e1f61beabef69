"""What a shared report tells of few records: nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synrisk.base.notes import Count, for_anyone, for_inside
from synrisk.report.disclosure_control import DisclosureRules, pooled_levels

SHARED = DisclosureRules(sharing=True, n_records=500)
INSIDE = DisclosureRules(sharing=False, n_records=500)


def sample(n, seed=0):
    return np.random.default_rng(seed).lognormal(0.0, 1.0, n)


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (0, "fewer than 10"),
        (1, "fewer than 10"),
        (9, "fewer than 10"),
        (10, "about 10"),
        (126, "about 130"),
        (490, "about 490"),
        (491, "all but fewer than 10"),
        (499, "all but fewer than 10"),
        (500, "all but fewer than 10"),
    ],
)
def test_counts_and_what_they_leave(n, said):
    assert SHARED.count(n, 500) == said
    assert INSIDE.count(n, 500) == f"{n}"


def test_the_size_of_a_part_does_not_tell_the_rest():
    assert SHARED.size(500) == "500"
    assert SHARED.size(495) == "nearly all 500"
    assert SHARED.size(9) == "fewer than 10"
    assert INSIDE.size(495) == "495"
    assert SHARED.records(500) == "500 records"
    assert SHARED.records(400) == "the 400 records evaluated"
    assert SHARED.records(495) == "the records evaluated (nearly all 500)"


def test_quantiles_are_of_ten_records_and_not_of_fewer_beyond():
    values = sample(200)
    ordered = np.sort(values)
    assert INSIDE.quantile(values, 0.5) == np.quantile(values, 0.5)
    rules = SHARED.quantile(values, 0.5)
    assert rules not in values
    assert ordered[80] < rules < ordered[120]
    assert SHARED.quantile(values, 0.95) is not None
    assert SHARED.quantile(values[:199], 0.95) is None
    assert SHARED.quantile(values[:99], 0.5) is None


def test_a_mean_is_told_in_steps_of_ten_records_and_not_of_few():
    values = 1.0 + 0.1 * sample(400)
    rules = SHARED.mean(values)
    assert rules == pytest.approx(round(values.mean() / 0.05) * 0.05)  # 10 / 400, rounded up
    assert SHARED.mean(values[:99]) is None
    assert SHARED.mean(np.ones(100)) == 1.0
    assert INSIDE.mean(values) == values.mean()
    many = 1.0 + 0.1 * sample(100_000)
    assert SHARED.mean(many) == float(f"{many.mean():.4g}")


@pytest.mark.parametrize("n", [100, 200, 1000, 5000])
def test_one_record_seldom_changes_what_is_told_of_a_mean(n):
    values, seen = sample(n), set()
    for guess in np.quantile(values, np.linspace(0.0, 1.0, 50)):
        seen.add(SHARED.mean(np.append(values[1:], guess)))
    assert len(seen) <= 2


def test_few_records_do_not_change_what_all_have():
    values = np.full(400, 11.0)
    values[:9] = np.arange(9)
    assert SHARED.usual(values) == SHARED.usual(np.full(400, 11.0)) == 11.0
    assert INSIDE.common(values) is None
    assert INSIDE.usual(values) == values.mean()
    values[9] = 3.0
    assert SHARED.common(values) is None
    assert SHARED.usual(values) == 11.0  # a mean of 10.8, in steps of 0.5
    values[:100] = 3.0
    assert SHARED.usual(values) == 9.0


def test_a_mean_that_one_record_dominates_is_not_told():
    values = np.append(np.ones(239), 30.0)
    assert SHARED.mean(values) is None
    assert INSIDE.mean(values) == values.mean()
    assert SHARED.mean(np.append(np.ones(239), 20.0)) is not None


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(100, 2000),
    seed=st.integers(0, 50),
    digits=st.integers(0, 3),
    anchor=st.floats(-2.0, 2.0),
)
def test_no_bar_stands_for_few_records(n, seed, digits, anchor):
    values = np.round(sample(n, seed), digits)
    bins = SHARED.bins(values, anchor=anchor)
    if bins is None:  # one bar tells nothing
        return
    inside = values.clip(bins.edges[0], bins.edges[-1])
    counts = np.histogram(inside, bins.edges)[0]
    assert counts.min() >= 50
    assert counts.sum() == n
    assert (bins.counts % 50 == 0).all()
    assert np.abs(bins.counts - counts).max() <= 25


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2000, 4000), seed=st.integers(0, 50), factor=st.floats(1.0, 1e6))
def test_bars_do_not_depend_on_the_extreme_records(n, seed, factor):
    values = sample(n, seed)
    moved = values.copy()
    moved[np.argsort(values)[-9:]] *= factor
    one, other = SHARED.bins(values), SHARED.bins(moved)
    np.testing.assert_array_equal(one.edges, other.edges)
    np.testing.assert_array_equal(one.counts, other.counts)


def test_inside_every_value_has_its_bar():
    values = np.append(sample(100), 1000.0)
    bins = INSIDE.bins(values)
    assert bins.counts.sum() == 101
    assert bins.edges[-1] >= 1000.0


def test_too_few_values_have_no_bars():
    assert SHARED.bins(sample(99)) is None
    assert SHARED.pooled(sample(99), np.array([0.0, 1.0, 9.0])) is None
    assert SHARED.bins(np.full(200, 0.25)) is None
    np.testing.assert_array_equal(INSIDE.bins(np.full(50, 0.25)).counts, [50])


def test_levels_with_few_records_stand_together():
    assert pooled_levels([40, 30, 20], 10) == [[0], [1], [2]]
    assert pooled_levels([40, 3, 20, 12], 10) == [[0], [2], [1, 3]]
    assert pooled_levels([40, 6, 20, 5], 10) == [[0], [2], [3, 1]]
    assert pooled_levels([4, 3], 10) == [[1, 0]]
    assert pooled_levels([4, 0], 0) == [[0], [1]]


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (
            for_anyone(Count(3, "confidential record", of=1500), " left out."),
            "Fewer than 10 confidential records left out.",
        ),
        (
            for_anyone(Count(1, "record is", "records are", of=1500), " not reliable."),
            "Fewer than 10 records are not reliable.",
        ),
        (for_anyone("For ", Count(9, "row", of=1500), "."), "For fewer than 10 rows."),
        (for_anyone("For ", Count(37, "record", of=1500), "."), "For about 40 records."),
        (for_anyone("For ", Count(1234, "record", of=1500), "."), "For about 1,230 records."),
        (
            for_anyone("For ", Count(1497, "record", of=1500), "."),
            "For all but fewer than 10 records.",
        ),
        (for_anyone("For ", Count(37, "record", of=1500), unless_few=True), "For about 40 records"),
        (for_anyone("For ", Count(9, "record", of=1500), unless_few=True), None),
        (for_anyone("For ", Count(1491, "record", of=1500), unless_few=True), None),
        (for_anyone("m is known to anyone."), "m is known to anyone."),
        (for_inside("3 of 5,000 records."), None),
        (for_inside("3 of 5,000 records.", instead="Records."), "Records."),
    ],
    ids=str,
)
def test_of_a_note_the_counts_are_told_as_counts_are(note, said):
    assert SHARED.says(note) == said
    assert INSIDE.says(note) == str(note)


def test_with_m_datasets_one_record_moves_m_times_as_much():
    rng = np.random.default_rng(0)
    values = rng.uniform(0.05, 0.15, 5000)
    one, five = (DisclosureRules(sharing=True, n_records=5000, n_datasets=m) for m in (1, 5))
    assert one.count(43, 5000) == "about 40"
    assert five.count(43, 5000) == "fewer than 50"
    assert five.count(4_960, 5000) == "all but fewer than 50"
    assert five.count(138, 5000) == "about 150"
    assert not five.describes(499)
    assert five.describes(500)
    # A (10/n)th of 0.1 is 0.0002, five of these 0.001.
    assert one.mean(values) == pytest.approx(round(values.mean() / 0.0002) * 0.0002)
    assert five.mean(values) == pytest.approx(round(values.mean() / 0.001) * 0.001)
    assert five.quantile(values[:900], 0.95) is None
    assert one.quantile(values[:900], 0.95) is not None
    bars = five.bins(values)
    assert bars.counts.min() >= 250
    assert set(bars.counts % 250) == {0.0}
    assert DisclosureRules(sharing=False, n_records=5000, n_datasets=5).count(43, 5000) == "43"
