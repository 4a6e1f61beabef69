"""Missing numbers that are modelled: what is said, fitted, synthesized, read, saved and shown."""

import numpy as np
import pandas as pd
import pytest
from helpers.secret import SECRET
from scipy.special import expit

import synrisk as sr
from synrisk.models.families import Gamma, Gapped, Gaussian, Poisson

SEED = 98765432109876543210
MODEL = {"income": "model"}


def people(n=150, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    income = np.exp(9.0 + 0.5 * x + rng.normal(0, 0.5, n))
    missing = rng.random(n) < expit(-1.0 + x)
    z = 0.3 * np.log(income) - 0.8 * missing + rng.normal(size=n)
    return pd.DataFrame({"x": x, "income": np.where(missing, np.nan, income), "z": z})


def fitted(data=None, formulas=("log(income) ~ x", "z ~ log(income) + x"), **options):
    plan = [sr.Regression(formula) for formula in formulas]
    given = {"missing": MODEL, "n_draws": 200, "seed": 1, **options}
    return sr.fit(plan, people() if data is None else data, **given)


@pytest.mark.parametrize("inner", [Gaussian(), Gamma(), Poisson()])
def test_derivatives_are_those_of_the_log_density(inner):
    family = Gapped(inner, -5.0)
    y = np.array([1.0, np.nan, 3.0, np.nan])
    eta = np.random.default_rng(0).normal(0.3, 0.4, (4, 2))
    logs = np.full(len(family.auxiliary), 0.2)
    step = 1e-5

    def at(j, by):
        moved, auxiliary = eta.copy(), logs.copy()
        if j < 2:
            moved[:, j] += by
        else:
            auxiliary[j - 2] += by
        return moved, np.exp(auxiliary)

    score = family.score(y, eta, np.exp(logs))
    curvature = family.curvature(y, eta, np.exp(logs))
    for j in range(2 + len(logs)):
        low, high = (family.log_density(y, *at(j, by)) for by in (-step, step))
        np.testing.assert_allclose(score[:, j], (high - low) / (2 * step), atol=1e-7)
        low, high = (family.score(y, *at(j, by)) for by in (-step, step))
        np.testing.assert_allclose(curvature[:, j], (high - low) / (2 * step), atol=1e-6)
    assert (score[[1, 3], 0] == 0).all()


def test_probabilities_of_missing_and_of_values_add_up_to_one():
    family, eta = Gapped(Poisson(), -1.5), np.array([0.4, -0.7])
    log_p = family.log_density(np.r_[np.nan, np.arange(40.0)], eta, np.zeros(0))
    assert np.exp(log_p).sum() == pytest.approx(1.0, rel=1e-12)
    drawn = family.draw(np.broadcast_to(eta, (40_000, 2)), np.zeros(0), np.random.default_rng(1))
    share, p = np.isnan(drawn).mean(), expit(-0.7)
    assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / 40_000)
    there = drawn[~np.isnan(drawn)]
    assert abs(there.mean() - np.exp(0.4)) < 4 * np.sqrt(np.exp(0.4) / len(there))


def test_the_two_parts_are_fitted_as_models_of_their_own():
    """Missing as a bernoulli of all records, the value as a gaussian of those who have it."""
    data = people(600)
    both = fitted(data, ["log(income) ~ x"], n_draws=2000).describe().loc["income"]
    answered = data.assign(gap=data["income"].isna().astype(int))
    alone = sr.fit(sr.Regression("gap ~ x", "bernoulli"), answered, n_draws=2000, seed=2)
    values = sr.fit(sr.Regression("log(income) ~ x"), data.dropna(), n_draws=2000, seed=2)
    for name, of_gap, of_value in (
        ("Intercept", "missing:Intercept", None),
        ("x", "missing:x", None),
    ):
        del of_value
        for found, expected in (
            (both.loc[of_gap], alone.describe().loc[("gap", name)]),
            (both.loc[name], values.describe().loc[("income", name)]),
        ):
            # The spread of x, by which priors are scaled, is another among those who answered.
            assert abs(found["mean"] - expected["mean"]) < 0.15 * expected["sd"]
            assert found["sd"] == pytest.approx(expected["sd"], rel=0.12)


def test_a_release_has_gaps_where_the_data_have():
    synthesizer = fitted(people(600))
    (made,) = synthesizer.synthesize(seed=SEED)
    data = synthesizer.data
    assert made["income"].dtype == data["income"].dtype
    assert (made["income"].dropna() > 0).all()
    share, own = made["income"].isna().mean(), data["income"].isna().mean()
    assert abs(share - own) < 4 * np.sqrt(2 * own * (1 - own) / 600)
    # They are other people's, and follow x as those of the data do.
    assert (made["income"].isna() != data["income"].isna()).sum() > 60
    assert made["x"][made["income"].isna()].mean() > made["x"][made["income"].notna()].mean() + 0.5


def test_a_missing_predictor_counts_as_0_beside_its_own_column():
    synthesizer = fitted()
    model = synthesizer.models[1]
    assert [str(column) for column in model.design.columns] == [
        "Intercept", "log(income)", "x", "missing(income)",
    ]  # fmt: skip
    data = synthesizer.data
    gap = data["income"].isna()
    matrix = synthesizer.refits.design(model, None)
    np.testing.assert_array_equal(matrix[:, 3], gap)
    np.testing.assert_allclose(matrix[:, 1], np.where(gap, 0.0, np.log(data["income"].fillna(1.0))))


@pytest.mark.parametrize("dtype", ["Int64", "float64"])
def test_whole_numbers_stay_whole(dtype, tmp_path):
    """Also where a file's gaps made others of them."""
    data = people()
    rng = np.random.default_rng(1)
    data["k"] = pd.array(rng.poisson(2.0, len(data)), dtype="Int64")
    data.loc[::7, "k"] = pd.NA
    data["k"] = data["k"].astype(dtype)
    plan = sr.Regression("k ~ x", "poisson")
    synthesizer = sr.fit(plan, data, missing={"k": "model"}, n_draws=100, seed=1)
    (made,) = synthesizer.synthesize(seed=SEED)
    assert made["k"].dtype == "Int64"
    assert made["k"].isna().any()
    assert (made["k"].dropna() >= 0).all()
    synthesizer.save(tmp_path / "s.nc")
    again = sr.Synthesizer.load(tmp_path / "s.nc").synthesize(seed=SEED)[0]
    pd.testing.assert_series_equal(again["k"], made["k"])


def test_coarsely_rounded_numbers_are_modelled_as_such():
    rng = np.random.default_rng(5)
    data = people(120).drop(columns="income")
    data["k"] = np.rint(30 + 1.5 * data["x"] + rng.normal(0, 2.0, 120))
    data.loc[::4, "k"] = np.nan
    found = sr.fit(sr.Regression("k ~ x"), data, missing={"k": "model"}, n_draws=100, seed=3)
    assert found.plan.regressions[0].distribution.name == "rounded_gaussian, or missing"


def test_saved_and_loaded(tmp_path):
    synthesizer = fitted()
    release = synthesizer.synthesize(seed=SEED)
    synthesizer.save(tmp_path / "s.nc")
    again = sr.Synthesizer.load(tmp_path / "s.nc")
    pd.testing.assert_frame_equal(again.draws("income"), synthesizer.draws("income"))
    pd.testing.assert_frame_equal(again.synthesize(seed=SEED)[0], release[0])


def test_columns_that_are_not_named_must_be_complete():
    data = people()
    data.loc[3, "x"] = np.nan
    with pytest.raises(sr.DataError, match=r"missing values in x \(1\).*missing="):
        fitted(data)
    dropped = fitted(data, missing={**MODEL, "x": "drop"})
    assert dropped.n_dropped == 1
    assert dropped.data["income"].isna().any()


def test_levels_by_column():
    data = people().assign(region=np.where(np.arange(150) % 5 == 0, None, "North"))
    plan = sr.Regression("z ~ region + x")
    found = sr.fit(plan, data, missing={"region": "level"}, n_draws=50, seed=1)
    assert found.schema.variables["region"].levels == ("North", "(missing)")


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ({"incme": "model"}, "Did you mean 'income'"),
        ({"income": "impute"}, "must be one of"),
        ("model", "must be one of"),
        ({"r": "model"}, "for numbers"),
    ],
)
def test_mistakes_are_named(missing, why):
    data = people().assign(r=np.where(np.arange(150) % 5 == 0, None, "a"))
    with pytest.raises(sr.SynriskError, match=why):
        sr.fit(sr.Regression("z ~ x + r"), data, missing=missing)


def test_what_is_declared_is_modelled_also_where_nobody_has_a_gap():
    data = people().fillna(1000.0)
    synthesizer = fitted(data)
    assert "missing:x" in synthesizer.draws("income")
    assert synthesizer.notes == ()
    # Nobody's gap has a mean: as a predictor it counts as the median, in a release too.
    model = synthesizer.models[1]
    assert [str(column) for column in model.design.columns] == ["Intercept", "log(income)", "x"]
    columns = {name: values[:2].copy() for name, values in synthesizer.columns.items()}
    columns["income"][0] = synthesizer.schema.variables["income"].gap
    found = model.design.matrix(columns, 2, "Rows", sr.DataError)[:, 1]
    np.testing.assert_allclose(found, np.log([data["income"].median(), data["income"].iloc[1]]))


def test_draws_made_elsewhere_do_not_tell_what_is_missing():
    table = pd.DataFrame({"Intercept": [9.0], "x": [0.5], "sigma": [1.0]})
    with pytest.raises(sr.SynriskError, match="do not tell which values are missing"):
        sr.Synthesizer.from_draws(sr.Regression("log(income) ~ x"), people(), table, missing=MODEL)


def test_guesses_about_the_truth_are_refused():
    synthesizer = fitted()
    release = synthesizer.synthesize(seed=SEED)
    with pytest.raises(sr.GuessError, match="missing values are modelled"):
        sr.attribute_risk(synthesizer, release, question="paper")


def test_usefulness_is_of_those_who_have_values():
    synthesizer = fitted()
    release = synthesizer.synthesize(seed=SEED)
    found = sr.utility(synthesizer, release).intervals.loc[("means and shares", "income")]
    data, made = synthesizer.data["income"], release[0]["income"]
    both = data.notna() & made.notna()
    assert found["estimate_confidential"] == pytest.approx(data[both].mean())
    assert found["estimate_synthetic"] == pytest.approx(made[both].mean())


@pytest.fixture(scope="module")
def risk():
    """One variable, with its report's pictures."""
    synthesizer = fitted(people(60), formulas=["log(income) ~ x"])
    release = synthesizer.synthesize(seed=SEED)
    return sr.attribute_risk(synthesizer, release, guesses=sr.Range(15), on_unreliable="flag")


def test_what_is_learnt_of_those_without_a_value_is_that_they_have_none(risk):
    data = risk.synthesizer.data
    gap = data["income"].isna().to_numpy()
    marginal = risk.marginal("income")
    values = marginal.coords["value"].to_numpy()
    assert np.isnan(values[:, -1]).all()
    after = risk.records["after_income"].to_numpy()
    np.testing.assert_allclose(after[gap], marginal.to_numpy()[gap, -1], rtol=1e-12)
    near = (
        np.abs(values - data["income"].to_numpy()[:, None])
        <= 0.1 * data["income"].to_numpy()[:, None]
    )
    of_values = np.where(near, marginal.to_numpy(), 0.0).sum(axis=1)
    np.testing.assert_allclose(after[~gap], of_values[~gap], rtol=1e-9)


def test_the_best_guess_is_missing_where_that_is_more_probable_than_all_values(risk):
    likely = risk.marginal("income").to_numpy()[:, -1] > 0.5
    assert likely.any()
    best = risk.records["best_guess_income"].to_numpy()
    np.testing.assert_array_equal(np.isnan(best), likely)
    gap = risk.synthesizer.data["income"].isna().to_numpy()
    off = risk.records["abs_diff_income"].to_numpy()
    np.testing.assert_array_equal(np.isnan(off), likely != gap)
    assert (off[likely & gap] == 0).all()


def test_the_number_that_stands_for_missing_is_never_shown(risk, tmp_path):
    """It tells the ends of the data."""
    code = risk.synthesizer.schema.variables["income"].gap
    shown = [f"{abs(code):,.0f}", f"{abs(code):.0f}", f"{abs(code):.3g}", f"{abs(code):.4g}"]
    release = risk.synthesizer.synthesize(seed=SEED)
    for kind in ("sharing", "inside"):
        risk.report(tmp_path / f"{kind}.html", kind=kind, synthetic=release)
        page = (tmp_path / f"{kind}.html").read_text(encoding="utf-8")
        assert not any(text in page for text in shown)
    assert not (risk.to_dataset().to_array().to_numpy().astype(float) == code).any()


def test_the_gap_of_one_person_is_no_value_that_is_repeated():
    rng = np.random.default_rng(50)
    x = np.round(rng.normal(size=100), 1)
    y = np.where(np.arange(100) == 7, np.nan, 50.0 + 5.0 * x + 10.0 * rng.normal(size=100))
    data = pd.DataFrame({"x": x, "y": y})
    synthesizer = sr.fit(sr.Regression("y ~ x"), data, missing={"y": "model"}, n_draws=200, seed=3)
    release = synthesizer.synthesize(seed=SECRET)[0]
    release.loc[3, "y"] = np.nan
    risk = sr.attribute_risk(
        synthesizer, release, records=[0], guesses=sr.Range(15), on_unreliable="flag"
    )
    assert risk.release_check.closeness.loc["values", "found"].tolist() == [0]
