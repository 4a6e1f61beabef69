"""Points in boxes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synrisk.audit import box_counts
from synrisk.audit.box_counts import count_in_boxes

SIZES = st.integers(0, 30)


@given(st.data(), st.integers(0, 4), SIZES, st.integers(1, 20))
def test_every_box_holds_what_a_loop_finds_in_it(data, n_axes, n_points, n_boxes):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    cell, of_box = rng.integers(0, 3, n_points), rng.integers(0, 4, n_boxes)
    points = rng.integers(-3, 4, (n_points, n_axes)).astype(float)
    low = rng.integers(-4, 4, (n_boxes, n_axes)).astype(float)
    high = low + rng.integers(-1, 5, (n_boxes, n_axes))
    low[rng.random(low.shape) < 0.1] = -np.inf
    high[rng.random(high.shape) < 0.1] = np.inf

    expected = [
        sum(c == own and bool(((a < p) & (p < b)).all())
            for c, p in zip(cell, points, strict=True))
        for own, a, b in zip(of_box, low, high, strict=True)
    ]  # fmt: skip

    assert count_in_boxes(cell, points, of_box, low, high).tolist() == expected


def test_candidates_of_many_coordinates_are_compared_in_parts(monkeypatch):
    monkeypatch.setattr(box_counts, "_PAIRS", 7)
    rng = np.random.default_rng(3)
    points, cell = rng.random((40, 3)), np.zeros(40, dtype=np.int64)
    low, high = points - 0.3, points + 0.3
    expected = ((low[:, None] < points) & (points < high[:, None])).all(axis=2).sum(axis=1)
    assert count_in_boxes(cell, points, cell, low, high).tolist() == expected.tolist()


@pytest.mark.parametrize("n_axes", [0, 1, 2, 3])
def test_no_points_are_in_no_box(n_axes):
    none, box = np.empty(0, dtype=np.int64), np.zeros(2, dtype=np.int64)
    ends = np.zeros((2, n_axes))
    found = count_in_boxes(none, np.empty((0, n_axes)), box, ends - 1, ends + 1)
    assert found.tolist() == [0, 0]
