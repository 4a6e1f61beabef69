"""Rows beside the records that they stand for."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers.secret import SECRET

import synrisk as sr
from synrisk.base.workers import Serial
from synrisk.data.archive import pack, unpack
from synrisk.risk.linked_rows import _if_permuted, compare_rows
from synrisk.risk.release_checks import ReleaseChecks, check_release
from synrisk.synthesis.release import read_release


def checked(synthesizer, release):
    return check_release(synthesizer, read_release(synthesizer.confidential, release), Serial())


def sample(n, n_predictors, family, seed):
    rng = np.random.default_rng([n, seed])
    x = rng.normal(size=(n, n_predictors))
    mean = x.sum(axis=1) / np.sqrt(n_predictors)
    y = rng.poisson(np.exp(0.5 * mean)) if family == "poisson" else mean + rng.normal(size=n)
    names = [f"x{k}" for k in range(n_predictors)]
    return pd.DataFrame(x, columns=names).assign(y=y), "y ~ " + " + ".join(names)


def at_their_own(check):
    """Residuals beside those of the same variable of the record that a row stands for."""
    return [row for row in check.residual_correlations if not (row.of_records or row.shift)]


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
@pytest.mark.parametrize("prior", ["default", {"x0": sr.Normal(0.0, 0.05)}])
@pytest.mark.parametrize(("n", "n_predictors"), [(30, 1), (30, 10), (150, 1), (150, 10), (1000, 2)])
def test_residuals_of_honest_rows_have_nothing_in_common(family, prior, n, n_predictors):
    z = []
    for seed in range(10):
        data, formula = sample(n, n_predictors, family, seed)
        regression = sr.Regression(formula, family, prior=prior)
        synthesizer = sr.fit(regression, data, seed=seed, n_draws=200)
        release = read_release(synthesizer.confidential, synthesizer.synthesize(20, seed=seed))
        z += [row.z for row in compare_rows(synthesizer, release)[1]]
    z = np.array(z)
    # Of 200: the standard deviation's own is 0.05, the mean's 0.07.
    assert abs(z.std() - 1.0) < 0.2
    assert abs(z.mean()) < 0.3
    assert z.max() < 4.5


GROUPED = {
    "gaussian": sr.Regression("y ~ x", "gaussian"),
    "skewed": sr.Regression("log(w) ~ x", "gaussian"),
    "poisson": sr.Regression("k ~ x", "poisson"),
    "bernoulli": sr.Regression("g ~ x", "bernoulli"),
    "categorical": sr.Regression("r ~ x", "categorical"),
}


def people_of_cells(n, seed):
    """Records that kept columns tell among a few; models miss their curve and cells."""
    rng = np.random.default_rng([5, n, seed])
    x, region = rng.integers(0, 8, n), rng.choice(list("abc"), n)
    mean = 0.2 * x + 0.05 * x**2 + 0.5 * (region == "a")
    return pd.DataFrame(
        {
            "x": x,
            "region": region,
            "y": mean + rng.exponential(size=n),
            "w": np.exp(0.3 * mean + rng.standard_t(4, size=n)),
            "k": rng.poisson(np.exp(0.3 * mean)),
            "g": np.where(rng.random(n) < 0.2 + 0.1 * x, "u", "v"),
            "r": rng.choice(["low", "mid", "top"], n, p=[0.5, 0.3, 0.2]),
        }
    )


@pytest.mark.parametrize("kind", GROUPED)
def test_groups_of_honest_rows_have_nothing_in_common(kind):
    """Though records of a group have much: the model misses all of it, and so do its rows."""
    z = []
    for seed in range(10):
        data = people_of_cells(120, seed)[["x", "region", GROUPED[kind].response]]
        synthesizer = sr.fit(GROUPED[kind], data, seed=seed, n_draws=200)
        release = read_release(synthesizer.confidential, synthesizer.synthesize(20, seed=seed))
        found = compare_rows(synthesizer, release)[1]
        z += [row.z for row in found if row.n_groups < row.n_rows]
    assert len(z) == (800 if kind == "categorical" else 200)
    # Of 200: the standard deviation's own is 0.05, the mean's 0.07. Those of one release share it.
    assert abs(np.std(z) - 1.0) < 0.25
    assert abs(np.mean(z)) < 0.3
    assert max(z) < 4.5


@pytest.mark.parametrize("kind", GROUPED)
def test_values_that_change_places_within_a_group_are_found(kind):
    """The records' own values, each with another person of the same region and x."""
    data = people_of_cells(400, 1)[["x", "region", GROUPED[kind].response]]
    synthesizer = sr.fit(GROUPED[kind], data, seed=1)
    mixed = data.sample(frac=1, random_state=1).sort_values(["x", "region"], kind="stable")
    name, groups = GROUPED[kind].response, ["x", "region"]
    mixed[name] = mixed.groupby(groups)[name].transform(lambda v: np.roll(v.to_numpy(), 1))
    found = compare_rows(synthesizer, read_release(synthesizer.confidential, [mixed]))[1]
    grouped = [row for row in found if row.n_groups < row.n_rows]
    assert any(row.are_too_alike for row in grouped)
    assert any("with the same values of what is released" in str(row.failure) for row in grouped)


def correlated(synthesizer, data, rho, seed):
    """A release whose residuals have the correlation `rho` with those of the records."""
    release = synthesizer.synthesize(1, seed=seed)[0]
    columns = np.column_stack([np.ones(len(data)), data["x0"]])
    fit = np.linalg.lstsq(columns, data["y"], rcond=None)[0]
    theirs, own = data["y"] - columns @ fit, release["y"] - columns @ fit
    return release.assign(y=columns @ fit + rho * theirs + np.sqrt(1 - rho**2) * own)


def test_rows_that_follow_their_records_by_half_are_found():
    for seed in range(10):
        data, formula = sample(150, 1, "gaussian", seed)
        synthesizer = sr.fit(sr.Regression(formula), data, seed=seed, n_draws=50)
        release = correlated(synthesizer, data, 0.5, seed)
        found = checked(synthesizer, [release])
        (row,) = at_their_own(found)
        # Student's bounds let one release in a thousand go at this size.
        assert row.are_too_alike
        assert row.correlation == pytest.approx(0.5, abs=0.3)
        assert row.failure in found.failures
        assert (found.status(), found.status("y")) == ("failed", "failed")
        # In another order nobody's row is known by its place, but by the predictor.
        shuffled = release.sample(frac=1, random_state=seed)
        assert checked(synthesizer, [shuffled]).residual_correlations[0].are_too_alike


def test_residuals_of_the_opposite_sign_are_found_too():
    data, formula = sample(150, 1, "gaussian", 1)
    synthesizer = sr.fit(sr.Regression(formula), data, seed=1)
    (row,) = at_their_own(checked(synthesizer, [correlated(synthesizer, data, -1.0, 1)]))
    assert row.are_too_alike
    assert row.z < -5
    assert "on the other side than the confidential records" in row.failure


def test_correlations_are_those_of_plain_residuals():
    data, formula = sample(80, 2, "gaussian", 3)
    synthesizer = sr.fit(sr.Regression(formula), data, seed=1)
    release = synthesizer.synthesize(1, seed=1)[0]
    (found,) = at_their_own(checked(synthesizer, [release]))
    columns = np.column_stack([np.ones(80), data[["x0", "x1"]]])

    def left(y):
        return y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]

    expected = np.corrcoef(left(data["y"]), left(release["y"]))[0, 1]
    assert found.correlation == pytest.approx(expected, abs=1e-9)
    assert found.n_rows == 80


def test_sparse_counts_that_meet_by_chance_are_no_copy():
    """Of five events among 1,000 one at a record's own is many standard deviations, but 2.5 %."""
    data = pd.DataFrame({"x": np.linspace(-1, 1, 1000), "k": np.zeros(1000, dtype=int)})
    data.loc[[100, 300, 500, 700, 900], "k"] = 1
    synthesizer = sr.fit(sr.Regression("k ~ x", "poisson"), data, seed=1)
    release = data.assign(k=0)
    release.loc[[150, 350, 500, 750, 950], "k"] = 1
    (found,) = at_their_own(checked(synthesizer, [release]))
    assert found.z > 4
    assert found.p_larger == pytest.approx(0.025, abs=4 * np.sqrt(0.025 / 2000))
    assert not found.are_too_alike


def test_permuted_rows_agree_as_the_formula_says():
    rng = np.random.default_rng(1)
    values, truth = rng.integers(0, 4, 12).astype(float), rng.integers(0, 3, 12).astype(float)
    agree = [(rng.permutation(values) == truth).sum() for _ in range(40_000)]
    mean, variance = _if_permuted(values, truth)
    sd = np.sqrt(variance)
    assert mean == pytest.approx(np.mean(agree), abs=4 * sd / 200)
    assert sd == pytest.approx(np.std(agree), rel=0.02)


def test_a_release_of_the_commonest_level_alone_is_no_copy():
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.normal(size=300), "g": rng.choice(["a", "b"], 300, p=[0.8, 0.2])})
    synthesizer = sr.fit(sr.Regression("g ~ x", "bernoulli"), data, seed=1)
    found = checked(synthesizer, [data.assign(g=np.where(data["x"] > 3, "b", "a"))])
    assert not found.agreements[0].is_too_often
    assert found.distances[0].is_too_far
    assert checked(synthesizer, [data]).agreements[0].is_too_often


def test_what_earlier_versions_saved_is_read_as_it_was():
    arrays = {}
    old = {
        "is": "ReleaseChecks",
        "distances": [
            {"is": "Distance", "variable": "y", "dataset": k, "d2": 1.0, "df": 2.0, "p_smaller": p}
            for k, p in enumerate([0.5, 0.9995, 0.0005, 0.998], 1)
        ],
        "copied_rows": [],
        "agreements": [
            {"is": "Agreement", "variable": "g", "dataset": 1, "n_rows": 100, "agree": agree,
             "expected": 50.0, "sd": 5.0}
            for agree in (60, 90)
        ],
    }  # fmt: skip
    found = unpack(ReleaseChecks, old, arrays)
    assert [one.failure is not None for one in found.distances] == [False, True, True, False]
    assert [one.is_too_often for one in found.agreements] == [False, True]
    assert (found.residual_correlations, found.total) == ((), None)


def test_what_was_found_is_saved():
    data, formula = sample(60, 1, "poisson", 1)
    synthesizer = sr.fit(sr.Regression(formula, "poisson"), data, seed=1)
    found = checked(synthesizer, synthesizer.synthesize(2, seed=1))
    assert found.total is not None
    assert len(at_their_own(found)) == len(found.agreement) == 2
    assert set(found.residuals["shift"]) == {0, 1, -1}
    stored = json.loads(json.dumps(pack(found, {}, "check"), allow_nan=False))
    assert unpack(ReleaseChecks, stored, {}) == found


def test_residuals_of_coarsely_rounded_rows_have_no_bias(monkeypatch):
    """A row and its record have the same predictors, and so the same place between two values.

    Divided by their own information instead of what is expected, residuals had z of 1.6 on average.
    """
    # x gives y away, and such a release would be refused.
    monkeypatch.setattr("synrisk.synthesis.synthesizer.refuse_relations", lambda *_: ())
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=2000)
        data = pd.DataFrame({"x": x, "y": np.rint(3 * x + 0.1 * rng.normal(size=2000)).astype(int)})
        synthesizer = sr.fit(sr.Regression("y ~ x"), data, seed=seed, n_draws=200)
        release = read_release(synthesizer.confidential, synthesizer.synthesize(1, seed=seed))
        found.append(compare_rows(synthesizer, release)[1][0].z)
    assert abs(np.mean(found)) < 4 / np.sqrt(30)
    assert np.max(found) < 4


# -- in another column, or another row -------------------------------------------------------------
@pytest.fixture(name="three", scope="module")
def three_variables():
    rng = np.random.default_rng(3)
    n = 300
    age = rng.integers(18, 90, n)
    data = pd.DataFrame(
        {
            "age": age,
            "region": rng.choice(list("abcd"), n),
            "income": 9.0 + 0.01 * age + 0.5 * rng.normal(size=n),
            "pressure": 120 + 0.3 * age + 12 * rng.normal(size=n),
            "ill": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
        }
    )
    plan = [sr.Regression(f"{name} ~ age") for name in ("income", "pressure")]
    synthesizer = sr.fit([*plan, sr.Regression("ill ~ age", "bernoulli")], data, seed=1)
    return data, synthesizer, synthesizer.synthesize(seed=SECRET)[0]


def beyond(values, data):
    columns = np.column_stack([np.ones(len(data)), data["age"]])
    return values - columns @ np.linalg.lstsq(columns, values, rcond=None)[0]


MOVED = {
    "another column": lambda data, made: made.assign(
        pressure=made["pressure"]
        - beyond(made["pressure"], data)
        + 24 * beyond(data["income"], data)
    ),
    "a level": lambda data, made: made.assign(
        ill=np.where(beyond(data["income"], data) > 0.3, "yes", "no")
    ),
    "the row below": lambda data, made: made.assign(
        income=made["income"] + np.roll(beyond(data["income"], data), 1)
        - beyond(made["income"], data)
    ),
    "the level of the row above": lambda data, made: made.assign(ill=np.roll(data["ill"], -1)),
    "the other level": lambda data, made: made.assign(
        ill=np.where(data["ill"] == "yes", "no", "yes")
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MOVED)
def test_values_that_were_moved_to_another_place_are_found(kind, three):
    data, synthesizer, made = three
    assert not any(row.are_too_alike for row in checked(synthesizer, [made]).residual_correlations)
    found = checked(synthesizer, [MOVED[kind](data, made)])
    assert any(row.are_too_alike for row in found.residual_correlations)
    assert found.status() == "failed"
