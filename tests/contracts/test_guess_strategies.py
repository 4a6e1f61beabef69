"""What every guess strategy must do, for each kind of variable that it takes."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.families import HeavyTailed

import synrisk as sr
from synrisk.data.schema import Factor, Numeric
from synrisk.risk.guesses import Everybody, Target, for_target
from synrisk.risk.guesses import lay_out as lay_out_strategy
from synrisk.risk.guesses.all_levels import Neighbourhood


def lay_out(strategy, given):
    return lay_out_strategy(for_target(strategy, given), given)


def target(kind, n=30, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "continuous":
        variable, known, values = Numeric("y"), "gaussian", rng.normal(3.0, 2.0, n)
    elif kind == "count":
        variable, known, values = Numeric("y"), "poisson", rng.poisson(3.0, n).astype(float)
    elif kind == "binary":
        variable, known, values = Numeric("y"), "bernoulli", rng.integers(0, 2, n).astype(float)
    else:
        variable = Factor("y", ("a", "b", "c"))
        known, values = "categorical", rng.integers(0, 3, n).astype(float)
    rows = np.arange(5, 25)
    regression = sr.Regression("y ~ 1", known)
    everybody = Everybody.of(values, is_whole=kind != "continuous")
    given = Target(variable, regression, values[rows], everybody, rows, np.zeros(len(rows)))
    return replace(given, reach=sr.Tolerance().of(given))


STRATEGIES = [
    (sr.Relative(11), ("continuous",)),
    (sr.Relative(8, 0.3, 0.05), ("continuous",)),
    (sr.Relative(8, 1, 1), ("continuous", "count")),
    (sr.Relative(7, within=(-50, 50)), ("continuous",)),
    (sr.Additive(9, 1.5, 2.5), ("continuous", "count")),
    (sr.Additive(6, 4, 4, within=(None, 60)), ("continuous", "count")),
    (sr.Interval(10, -5, 12), ("continuous", "count")),
    (sr.Interval(4, 0, 20, within=(-20, 12)), ("continuous", "count")),
    (sr.Values([0, 1, 2, 5, 9]), ("continuous", "count")),
    (sr.Values([1, 0]), ("binary",)),
    (sr.Values(["c", "a", "b"]), ("factor",)),
    (sr.AllLevels(), ("count", "binary", "factor")),
    (Neighbourhood(5), ("count",)),
    (sr.Range(), ("continuous", "count", "binary", "factor")),
    (sr.Range(15, within=(-8, 80)), ("continuous", "count")),
    (11, ("continuous", "count", "binary", "factor")),
    (2, ("continuous",)),
]
CASES = [(strategy, kind) for strategy, kinds in STRATEGIES for kind in kinds]


@pytest.mark.parametrize(("strategy", "kind"), CASES, ids=str)
def test_guesses_hold_the_truth_and_are_distinct_and_in_the_support(strategy, kind):
    given = target(kind)
    grid = lay_out(strategy, given)
    n_rows, n_guesses = grid.values.shape
    assert n_rows == len(given.truth)
    assert grid.n_guesses == n_guesses == for_target(strategy, given).width(given)
    rows = np.arange(n_rows)
    np.testing.assert_array_equal(grid.values[rows, grid.truth], given.truth)
    assert grid.present[rows, grid.truth].all()
    for i in rows:
        own = grid.values[i][grid.present[i]]
        assert len(own) >= 2
        assert len(np.unique(own)) == len(own)
        assert given.family.supports(own, given.variable).all()


@pytest.mark.parametrize(("strategy", "kind"), CASES, ids=str)
def test_a_records_guesses_do_not_depend_on_the_other_records(strategy, kind):
    given = target(kind)
    whole = lay_out(strategy, given)
    for i in (0, 7, 19):
        own = {name: getattr(given, name)[[i]] for name in ("truth", "rows", "reach")}
        alone = replace(given, **own)
        grid = lay_out(strategy, alone)
        np.testing.assert_array_equal(grid.values[0], whole.values[i])
        np.testing.assert_array_equal(grid.present[0], whole.present[i])
        assert grid.truth[0] == whole.truth[i]


@pytest.mark.parametrize(
    ("strategy", "kind"),
    [
        (sr.AllLevels(), "continuous"),
        (sr.Relative(11), "count"),  # a tenth of a small count is less than one
        (sr.Relative(5), "factor"),
        (sr.Interval(5, 0, 1), "factor"),
        (sr.Values([0.5, 1.0]), "count"),
        (sr.Values([-1, 1]), "count"),
        (sr.Values(["a", "b"]), "factor"),
        (sr.Values([1.0, 1.0, 2.0]), "continuous"),
        (sr.Values([1.0]), "continuous"),
        (sr.Values([[1.0, 2.0]] * 7), "continuous"),
        (sr.Values([[1.0], [1.0, 2.0]]), "continuous"),
        (sr.Values(["x"]), "continuous"),
        (sr.Additive(5, 1, 1, within=(2.9, 3.1)), "continuous"),
    ],
    ids=str,
)
def test_what_does_not_fit_the_variable_is_refused(strategy, kind):
    with pytest.raises(sr.GuessError, match="'y'"):
        lay_out(strategy, target(kind))


@pytest.mark.parametrize(("strategy", "kinds"), STRATEGIES)
def test_the_furthest_guess_is_that_of_a_plain_loop(strategy, kinds):
    for kind in kinds:
        given = target(kind)
        grid = lay_out(strategy, given)
        for scale in (np.asarray, lambda v: -3.0 * v, np.exp):
            expected = max(
                abs(scale(guess) - scale(truth))
                for row, truth in zip(grid.values, given.truth, strict=True)
                for guess in row
            )
            assert grid.furthest(scale) == pytest.approx(expected, rel=1e-14)
        steps = np.diff(np.where(grid.present, grid.values, np.nan), axis=1)
        assert grid.rises == bool((steps > 0).all())


class Positive(HeavyTailed):
    """A continuous family that has positive values alone."""

    def supports(self, y, response):
        return np.isfinite(y) & (y > 0)


def test_a_range_keeps_to_the_values_that_a_family_has():
    given = target("continuous")
    values = np.abs(given.everybody.column) + 1e-3
    given = replace(
        given,
        regression=sr.Regression("y ~ 1", Positive()),
        everybody=Everybody.of(values),
        truth=values[given.rows],
        reach=0.1 * values[given.rows],
    )
    low, high = sr.Range().span(given)
    assert 0 < low <= values.min()
    assert high == pytest.approx(values.max() + 0.1 * np.ptp(values))
    assert lay_out(sr.Range(), given).values.min() > 0
