"""Relations: what is refused, what is not. Shares of attacks found are 1 where nothing is said."""

import numpy as np
import pandas as pd
import pytest

from synrisk.synthesis import relations
from synrisk.synthesis.flexible_prediction import flexible_relations
from synrisk.synthesis.relations import Beside, Hidden, exact_relations


def related(name, n, seed, noise=0.0, altered=0.0, n_others=0):
    """Return synthesized variables, and released columns that give the first away."""
    rng = np.random.default_rng(seed)
    income = np.exp(10 + 0.8 * rng.normal(size=n))
    spent = income**0.6 * np.exp(4 + 0.4 * rng.normal(size=n))
    other = np.exp(8 + 0.5 * rng.normal(size=n))
    region, rank = rng.integers(0, 4, n), rng.integers(0, 3, n)
    height = rng.normal(1.7, 0.1, n)
    weight = 22 * height**2 * np.exp(0.15 * rng.normal(size=n))
    radius = rng.gamma(16, 0.9, n)
    fee = np.exp(rng.normal(5, 1, (4, 3)))[region, rank]
    levels = {"region": np.array(list("abcd"))[region], "rank": np.array(list("xyz"))[rank]}
    fifths = np.quantile(income, [0.2, 0.4, 0.6, 0.8])
    hidden, columns = {
        "sum of two": ({"V": income}, {"total": income + spent, "spent": spent}),
        "sum of three": (
            {"V": income},
            {"total": income + spent + other, "spent": spent, "other": other},
        ),
        "product": ({"V": income}, {"hours": income / spent, "wage": spent}),
        "ratio": ({"V": income}, {"a": income * other, "other": other}),
        "ratio with a power": ({"V": weight / height**2}, {"height": height, "weight": weight}),
        "power": ({"V": radius}, {"area": np.pi * radius**2}),
        "difference of logarithms": (
            {"V": np.log(income)},
            {"a": income * other, "other": other},
        ),
        "band": ({"V": income}, {"band": np.array(list("abcde"))[np.searchsorted(fifths, income)]}),
        "wide band": ({"V": income}, {"rich": income > np.quantile(income, 0.7)}),
        "constant within levels": ({"V": fee}, levels),
        "total of two that are synthesized": ({"V": income, "W": spent}, {"t": income + spent}),
        "ratio of two that are synthesized": ({"V": income, "W": spent}, {"q": income / spent}),
    }[name]
    for key, values in columns.items():
        changed = np.array(values)
        if changed.dtype.kind == "f":
            changed = changed * (1 + noise * rng.normal(size=n))
        rows = rng.random(n) < altered / len(columns)
        changed[rows] = rng.permutation(changed)[rows]
        columns[key] = changed
    for k in range(n_others):
        columns[f"x{k}"] = rng.normal(size=n) if k % 3 else rng.integers(0, 4, n).astype(str)
    return (
        [Hidden.of(key, values, is_factor=False) for key, values in hidden.items()],
        Beside.of({key: pd.Series(values) for key, values in columns.items()}),
    )


ALL = (
    "sum of two", "sum of three", "product", "ratio", "ratio with a power", "power",
    "difference of logarithms", "band", "wide band", "constant within levels",
    "total of two that are synthesized", "ratio of two that are synthesized",
)  # fmt: skip


def refused(hidden, beside):
    found = exact_relations(hidden, beside, {})
    return {relation.variable for relation in found if relation.refused}


@pytest.mark.parametrize("n", [60, 1000, 20_000])
@pytest.mark.parametrize("name", ALL)
def test_a_relation_is_refused(name, n):
    assert "V" in refused(*related(name, n, seed=1))


@pytest.mark.parametrize("name", ALL)
def test_a_relation_is_refused_among_unrelated_columns(name):
    hidden, beside = related(name, 300, seed=2, n_others=10)
    (relation,) = [one for one in exact_relations(hidden, beside, {}) if one.variable == "V"]
    assert relation.refused
    assert not any(column.startswith("x") for column in relation.columns)


@pytest.mark.parametrize("name", ALL)
def test_a_relation_with_a_few_exceptions_is_refused(name):
    assert "V" in refused(*related(name, 1000, seed=3, altered=0.03))


@pytest.mark.parametrize("name", [n for n in ALL if "synthesized" not in n])
def test_a_relation_with_a_little_noise_is_refused(name):
    assert "V" in refused(*related(name, 1000, seed=4, noise=0.01))


def test_a_band_that_the_model_uses_is_found_only():
    hidden, beside = related("wide band", 400, seed=1)
    (relation,) = exact_relations(hidden, beside, {"V": ["rich"]})
    assert not relation.refused


def test_levels_that_lie_apart_are_no_band():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 200)
    hidden = [Hidden.of("V", 10 + 20 * kind + rng.normal(size=200), is_factor=False)]
    beside = Beside.of({"kind": pd.Series(kind.astype(str))})
    assert not any("bands" in one.words for one in exact_relations(hidden, beside, {}))


def honest(seed):
    """Return a variable beside 1 to 30 columns that it has a correlation of at most 0.8 with."""
    rng = np.random.default_rng(seed)
    n, p = int(np.exp(rng.uniform(np.log(20), np.log(1000)))), int(rng.integers(1, 31))
    z, correlation = rng.normal(size=n), rng.uniform(0, 0.8)
    kinds = (
        np.exp(10 + rng.uniform(0.3, 1.2) * z),
        10 + z,
        rng.poisson(np.exp(0.5 + 0.5 * z)),
        (z > 0.3) * 1,
    )
    about = correlation * z + np.sqrt(1 - correlation**2) * rng.normal(size=n)
    columns = {}
    for k in range(p):
        share = rng.choice([0.0, 0.5, 1.0])
        x = share * about + np.sqrt(1 - share**2) * rng.normal(size=n)
        grades = np.array(list("abcdef"))[np.clip(np.rint(x + 2.5), 0, 5).astype(int)]
        shown = (x, np.exp(x), np.rint(5 * x), grades, x > 0)
        columns[f"x{k}"] = pd.Series(shown[rng.integers(0, 5)])
    which = int(rng.integers(0, 4))
    return [Hidden.of("V", kinds[which], is_factor=which == 3)], Beside.of(columns)


def test_of_two_hundred_honest_tables_none_is_refused():
    assert [seed for seed in range(200) if refused(*honest(seed))] == []


def test_trees_refuse_no_honest_table():
    found = [flexible_relations(*honest(seed)) for seed in range(20)]
    assert not any(relation.refused for relations in found for relation in relations)


def test_trees_see_what_is_no_combination():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 6, 600)
    hidden = [Hidden.of("V", 10 + 5 * np.sin(angle), is_factor=False)]
    beside = Beside.of({"angle": pd.Series(angle), "x": pd.Series(rng.normal(size=600))})
    assert exact_relations(hidden, beside, {}) == []
    (relation,) = flexible_relations(hidden, beside)
    assert relation.refused
    assert relation.columns == ("angle",)


@pytest.mark.parametrize("huge", [1e200, 1.7e308, -1e308])
def test_values_that_numbers_can_hardly_hold_do_not_stop_the_search(huge):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 100))
    x[3] = huge
    for values, beside in ((y, x), (x, y), (x, x * 0.5)):
        guess = relations._predict(beside[:80, None], values[:80], beside[80:, None])
        assert guess.shape == (20,)


def test_trees_take_values_that_single_precision_cannot_hold():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 100))
    x[3], x[4] = 1e300, -np.inf
    hidden = Hidden.of("y", y, is_factor=False)
    assert not flexible_relations([hidden], Beside({"x": x}, {}))
