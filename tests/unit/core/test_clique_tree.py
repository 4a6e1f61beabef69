"""Sums over a tree of cliques against naive loops over every joint cell."""

import itertools

import numpy as np
import pytest

from synrisk.core.clique_tree import Distribution, clique_tree, cliques_of, extremes

PLANS = {
    "one variable": (((0,),), (4,)),
    "apart": (((0,), (1,), (2,)), (3, 2, 4)),
    "chain": (((0,), (0, 1), (1, 2), (2, 3)), (3, 2, 4, 2)),
    "common cause": (((0,), (0, 1), (0, 2), (0, 3)), (2, 3, 2, 3)),
    "common effect": (((0,), (1,), (2,), (0, 1, 2, 3)), (2, 3, 2, 2)),
    "loop": (((0,), (0, 1), (0, 2), (1, 2, 3), (3, 4)), (3, 2, 2, 3, 2)),
    "two parts": (((0,), (0, 1), (2,), (2, 3), (1, 4)), (2, 3, 3, 2, 2)),
    "axes in another order": (((0,), (0, 1), (1, 0, 2), (2, 1, 3)), (2, 3, 2, 3)),
}


def tables_of(axes, shape, spread=1.0, n_records=3):
    rng = np.random.default_rng(len(axes))
    return [spread * rng.normal(size=(n_records, np.prod([shape[a] for a in own]))) for own in axes]


def log_product(tables, axes, shape, record, cell):
    total = 0.0
    for table, own in zip(tables, axes, strict=True):
        place = 0
        for axis in own:
            place = place * shape[axis] + cell[axis]
        total += table[record, place]
    return total


def every_cell(tables, axes, shape, record):
    """Return each joint cell with its log, by loops."""
    return {
        cell: log_product(tables, axes, shape, record, cell)
        for cell in itertools.product(*(range(n) for n in shape))
    }


@pytest.mark.parametrize("spread", [1.0, 400.0], ids=["even", "extreme"])
@pytest.mark.parametrize(("axes", "shape"), PLANS.values(), ids=PLANS)
def test_probabilities_are_those_of_the_whole_joint(axes, shape, spread):
    tables = tables_of(axes, shape, spread)
    rng = np.random.default_rng(5)
    near = [rng.random((3, n)) < 0.6 for n in shape]
    near[0] = None
    found = Distribution.of(clique_tree(axes, shape), tables)
    all_near, within_all = found.within_all(near)
    of_cells, last = found.over_tables(), len(shape) - 1
    sets = rng.random((3, shape[last])) < 0.5
    within_one = found.within_one(last, sets)
    for i in range(3):
        logs = every_cell(tables, axes, shape, i)
        top = max(logs.values())
        total = sum(np.exp(one - top) for one in logs.values())
        p = {cell: np.exp(one - top) / total for cell, one in logs.items()}
        assert found.log_total[i] == pytest.approx(top + np.log(total), rel=1e-12)
        for axis, n in enumerate(shape):
            wanted = [sum(v for c, v in p.items() if c[axis] == k) for k in range(n)]
            np.testing.assert_allclose(found.marginal(axis)[i], wanted, rtol=1e-9, atol=1e-15)
        inside = {c for c in p if all(own is None or own[i, c[a]] for a, own in enumerate(near))}
        assert all_near[i] == pytest.approx(sum(p[c] for c in inside), rel=1e-9, abs=1e-15)
        for number, own in enumerate(axes):
            sizes = tuple(shape[axis] for axis in own)
            wanted = np.zeros((3, *sizes))
            for cell, value in p.items():
                place = tuple(cell[axis] for axis in own)
                wanted[(0, *place)] += value
                wanted[(1, *place)] += value if cell in inside else 0.0
                wanted[(2, *place)] += value if sets[i, cell[last]] else 0.0
            got = [of_cells[number][i], within_all[number][i], within_one[number][i]]
            np.testing.assert_allclose(got, wanted.reshape(3, -1), rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize(("axes", "shape"), PLANS.values(), ids=PLANS)
def test_extremes_are_those_of_all_cells_that_are_there(axes, shape):
    tables = tables_of(axes, shape)
    absent = [np.zeros((3, n), dtype=bool) for n in shape]
    absent[-1][:, 0] = True
    ends, guesses = extremes(clique_tree(axes, shape), tables, absent)
    for i in range(3):
        logs = {
            cell: one for cell, one in every_cell(tables, axes, shape, i).items() if cell[-1] > 0
        }
        np.testing.assert_allclose(ends[i], [min(logs.values()), max(logs.values())], rtol=1e-12)
        for end in range(2):
            assert logs[tuple(guesses[i, end])] == pytest.approx(ends[i, end], rel=1e-12)


def test_an_impossible_guess_has_no_part_in_anything():
    axes, shape = PLANS["chain"]
    tables = tables_of(axes, shape)
    tables[1][:, :2] = -np.inf  # the first guess of the first variable, with any of the second
    found = Distribution.of(clique_tree(axes, shape), tables)
    assert (found.marginal(0)[:, 0] == 0.0).all()
    for axis in range(4):
        np.testing.assert_allclose(found.marginal(axis).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("n", [4, 8, 16, 40])
def test_a_chain_costs_as_much_as_it_is_long(n):
    axes = tuple((k - 1, k) if k else (0,) for k in range(n))
    tree = clique_tree(axes, (20,) * n)
    assert max(len(clique.axes) for clique in tree.cliques) == 2
    assert tree.size == 400 * (n - 1) + 20


def test_the_order_keeps_cliques_small():
    """A common cause of many effects: summed out first, it would make all of them hang together."""
    axes = ((0,), *((0, k) for k in range(1, 9)))
    assert max(map(len, cliques_of(axes, 9))) == 2
    grid = tuple(  # three rows of four, each predicted by the one above and the one before
        (*tuple(a for a in (k - 4, k - 1 if k % 4 else -1) if a >= 0), k) for k in range(12)
    )
    assert max(map(len, cliques_of(grid, 12))) == 4


def test_a_record_has_the_same_bits_whatever_the_others_are():
    axes, shape = PLANS["loop"]
    tables = tables_of(axes, shape, n_records=9)
    tree = clique_tree(axes, shape)
    near = [np.arange(n)[None].repeat(9, axis=0) < 1 for n in shape]
    whole = Distribution.of(tree, tables)
    for rows in (slice(0, 1), slice(4, 6), slice(2, 9)):
        part = Distribution.of(tree, [table[rows] for table in tables])
        some = [own[rows] for own in near]
        for axis in range(len(shape)):
            np.testing.assert_array_equal(part.marginal(axis), whole.marginal(axis)[rows])
        np.testing.assert_array_equal(part.within_all(some)[0], whole.within_all(near)[0][rows])
        for one, other in zip(
            part.within_one(4, some[4]), whole.within_one(4, near[4]), strict=True
        ):
            np.testing.assert_array_equal(one, other[rows])
