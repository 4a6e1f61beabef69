import numpy as np
import pytest
from scipy.interpolate import BSpline

from synrisk.base.errors import DataError, FormulaError, GuessError
from synrisk.data.schema import Factor, Numeric, Schema
from synrisk.models.design import Design
from synrisk.models.formula.parser import parse

N = 60


@pytest.fixture(name="rows")
def make_rows():
    rng = np.random.default_rng(0)
    return {
        "x": rng.normal(size=N),
        "odd name:[1]": rng.normal(size=N),
        "k": np.r_[0.0, 1.0, 2.0, rng.integers(0, 3, N - 3)],
        "u": np.r_[0, 1, 2, rng.integers(0, 3, N - 3)],
    }


SCHEMA = Schema(
    {
        "x": Numeric("x"),
        "odd name:[1]": Numeric("odd name:[1]"),
        "k": Numeric("k"),
        "u": Factor("u", ("a:b", "T.1]", "<b>é</b>")),
    },
    "error",
)


def freeze(text, rows):
    return Design.freeze(parse(f"y ~ {text}"), SCHEMA, rows, N)


def matrix(design, rows):
    n = len(next(iter(rows.values())))
    return design.matrix(rows, n, "rows", DataError)


def test_odd_names_and_levels_stay_apart(rows):
    design = freeze("`odd name:[1]`*u + x:u", rows)
    assert [str(c) for c in design.columns] == [
        "Intercept", "odd name:[1]", "u[T.T.1]]", "u[T.<b>é</b>]",
        "odd name:[1]:u[T.T.1]]", "odd name:[1]:u[T.<b>é</b>]",
        "x:u[a:b]", "x:u[T.1]]", "x:u[<b>é</b>]",
    ]  # fmt: skip
    o, x, u = rows["odd name:[1]"], rows["x"], rows["u"]
    one, two = (u == 1) * 1.0, (u == 2) * 1.0
    by_hand = [np.ones(N), o, one, two, o * one, o * two, x * (u == 0), x * one, x * two]
    np.testing.assert_allclose(matrix(design, rows), np.column_stack(by_hand))


def test_states_freeze_on_the_confidential_rows(rows):
    design = freeze("scale(x) + center(x) + I(x**2) + poly(x, 2) + log(exp(x))", rows)
    full = matrix(design, rows)
    shifted = {name: values[10:11] for name, values in rows.items()}
    np.testing.assert_allclose(matrix(design, shifted)[0], full[10], rtol=1e-12)
    x = rows["x"]
    np.testing.assert_allclose(full[:, 1], (x - x.mean()) / x.std(ddof=1))


@pytest.mark.parametrize("options", ["", ", df=5", ", degree=2", ", knots=[-0.5, 0.4]"])
def test_splines_are_continued_beyond_the_range_as_r_does(rows, options):
    design = freeze(f"bs(x{options})", rows)
    x = rows["x"]
    degree = 2 if "degree" in options else 3
    inner = {", df=5": np.quantile(x, [1 / 3, 2 / 3]), ", knots=[-0.5, 0.4]": [-0.5, 0.4]}
    knots = np.r_[[x.min()] * (degree + 1), inner.get(options, []), [x.max()] * (degree + 1)]
    n_basis = len(knots) - degree - 1
    beyond = np.r_[x, x.min() - 1.0, x.max() + 2.0]
    basis = [BSpline(knots, np.eye(n_basis)[k], degree)(beyond) for k in range(1, n_basis)]
    extended = {name: np.r_[values, values[:2]] for name, values in rows.items()} | {"x": beyond}
    found = matrix(design, extended)
    np.testing.assert_allclose(found[:, 1:], np.column_stack(basis), rtol=1e-10, atol=1e-12)


def test_terms_know_what_they_mention(rows):
    design = freeze("x + x:u + C(k)", rows)
    assert [term.variables for term in design.terms] == [(), ("x",), ("k",), ("x", "u")]
    values = design.terms[3].evaluate({"x": np.ones(2), "u": np.array([0, 2])}, 2, "", DataError)
    np.testing.assert_array_equal(values, [[0, 0], [0, 1]])


def test_a_value_that_a_frozen_factor_lacks_is_refused(rows):
    design = freeze("C(k)", rows)
    with pytest.raises(GuessError, match=r"C\(k\) has no level for 1 value of 'k'"):
        design.matrix({"k": np.array([1.0, 7.0])}, 2, "Guesses", GuessError)


@pytest.mark.parametrize(
    ("text", "same"),
    [("u + factor(u)", "u"), ("u*C(u)", "u"), ("x + x:u + C(u):x", "x + x:u"), ("C(u) + u", "u")],
)
def test_a_factor_that_is_made_a_factor_again_is_the_same_term(rows, text, same):
    np.testing.assert_array_equal(
        matrix(freeze(text, rows), rows), matrix(freeze(same, rows), rows)
    )


def test_arithmetic_on_a_factor_is_refused(rows):
    with pytest.raises(FormulaError, match="'u' is a factor"):
        freeze("I(u * 2)", rows)


def test_columns_that_are_not_finite_are_refused(rows):
    with pytest.raises(DataError, match=r"log\(x\) is not a finite number for \d+ rows of 60"):
        freeze("log(x)", rows)


def test_options_that_cannot_be_are_refused(rows):
    with pytest.raises(FormulaError, match="df and knots"):
        freeze("bs(x, df=1)", rows)


def test_a_design_that_looks_at_other_rows_is_refused(rows, monkeypatch):
    from synrisk.models.formula import expressions

    def mean_taken_anew(node, column):
        return expressions.write(node, column=column).replace("center(n0)", "I(n0 - n0.mean())")

    monkeypatch.setattr("synrisk.models.design.expressions.write_for_formulaic", mean_taken_anew)
    with pytest.raises(FormulaError, match="depends on the other rows"):
        freeze("center(x)", rows)


def test_rows_do_not_depend_on_their_block_to_the_last_bit(rows):
    design = freeze("bs(x, df=5) + poly(x, 3) + scale(x):u + I(x**3)", rows)
    full = matrix(design, rows)
    for size in (1, 7, 32):
        for start in range(0, N, size):
            part = {name: values[start : start + size] for name, values in rows.items()}
            np.testing.assert_array_equal(matrix(design, part), full[start : start + size])


def test_group_level_terms_have_columns_for_each_level(rows):
    design = freeze("x + (1 + x | u) + (0 + `odd name:[1]` | k)", rows)
    names = [str(c) for c in design.columns]
    assert names[:2] == ["Intercept", "x"]
    assert names[2:5] == ["1|u[a:b]", "1|u[T.1]]", "1|u[<b>é</b>]"]
    assert names[5:8] == ["x|u[a:b]", "x|u[T.1]]", "x|u[<b>é</b>]"]
    assert names[8:] == [f"odd name:[1]|k[{value}]" for value in (0, 1, 2)]
    x, u, k, o = (rows[name] for name in ("x", "u", "k", "odd name:[1]"))
    by_hand = [
        np.ones(N),
        x,
        *((u == c) * 1.0 for c in range(3)),
        *(x * (u == c) for c in range(3)),
    ]
    by_hand += [o * (k == value) for value in (0.0, 1.0, 2.0)]
    np.testing.assert_allclose(matrix(design, rows), np.column_stack(by_hand))


def test_a_slope_may_be_a_factor(rows):
    design = freeze("(u | k)", rows)
    assert [str(c) for c in design.columns[4:7]] == [
        "u[T.T.1]]|k[0]", "u[T.<b>é</b>]|k[0]", "u[T.T.1]]|k[1]",
    ]  # fmt: skip
    k, u = rows["k"], rows["u"]
    expected = [(u == 1) * (k == 0), (u == 2) * (k == 0), (u == 1) * (k == 1)]
    np.testing.assert_array_equal(matrix(design, rows)[:, 4:7], np.column_stack(expected))


@pytest.mark.parametrize("name", ["u", "k"])
def test_a_level_without_coefficients_is_refused(rows, name):
    seen = dict(rows)
    seen[name] = np.minimum(rows[name], 1)
    design = freeze(f"(1 | {name})", seen)
    assert len(design.columns) == 3
    with pytest.raises(GuessError, match="no record of the confidential data has") as told:
        design.matrix(rows, N, "Guesses", GuessError)
    assert "é" not in str(told.value)
