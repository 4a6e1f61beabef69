import hashlib

import numpy as np
import pandas as pd
import pytest
from helpers.cases import gaussian_draws
from helpers.secret import SECRET

import synrisk as sr
from synrisk.synthesis.leaks import determines

RNG = np.random.default_rng(0)
N = 80
INCOME = np.exp(RNG.normal(10, 1, N))
AGE = RNG.integers(18, 90, N)
BAND = (AGE // 10).astype(np.int64)


def altered(column, n_changed=1):
    changed = np.array(column, dtype=object if np.asarray(column).dtype.kind in "US" else float)
    changed[:n_changed] = "typo" if changed.dtype == object else 99.0
    return changed


@pytest.mark.parametrize(
    ("column", "values", "ordered"),
    [
        (INCOME, np.log(INCOME), True),  # a transform
        (-INCOME, np.log(INCOME), True),  # a falling one
        (INCOME**0.3 + 1, np.log(INCOME), True),  # one without a name
        (INCOME, np.round(np.log(INCOME), 2), True),  # of rounded values
        (np.round(INCOME, -2), np.log(INCOME), True),  # nearly one
        (altered(INCOME), np.log(INCOME), True),  # but for one record
        (np.array([f"{v:.2f}" for v in INCOME]), np.log(INCOME), True),  # written as text
        (INCOME[:6], np.log(INCOME[:6]), True),  # of few records
        (np.array([f"level {b}" for b in BAND]), BAND, False),  # a recoding
        (altered([f"level {b}" for b in BAND]), BAND, False),  # but for a typo
        (BAND * 7 % 11, BAND, True),  # a recoding out of order
        (AGE, BAND, True),  # the values that the bands were made of
        (AGE, BAND, False),
        (pd.Series(pd.to_datetime("2000-01-01") + pd.to_timedelta(AGE, "D")), AGE, True),
        (pd.Series(np.where(RNG.random(N) < 0.6, np.nan, INCOME)), np.log(INCOME), True),
    ],
)
def test_what_gives_a_variable_away(column, values, ordered):
    assert determines(pd.Series(column), np.asarray(values), ordered=ordered)


@pytest.mark.parametrize(
    ("column", "values", "ordered"),
    [
        (RNG.permutation(N), np.log(INCOME), True),  # an id: merely all different
        (np.array([f"id{i}" for i in range(N)]), BAND, False),
        (RNG.normal(size=N), np.log(INCOME), True),
        (INCOME + RNG.normal(scale=INCOME.std() / 50, size=N), np.log(INCOME), True),  # correlated
        (BAND, AGE, True),  # coarser
        (np.zeros(N), AGE, True),
        (RNG.integers(0, 2, N), RNG.integers(0, 2, N), False),
        (pd.Series([None] * N), AGE, True),
        (pd.Series(["a", 1] * (N // 2)), AGE, True),  # no order
        (np.r_[1, np.zeros(N - 1)], np.r_[1, np.zeros(N - 1)], True),  # one case: may be chance
    ],
)
def test_what_does_not(column, values, ordered):
    assert not determines(pd.Series(column), np.asarray(values), ordered=ordered)


def test_good_predictors_in_small_tables_are_not_refused():
    refused = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=25)
        column = pd.Series(3 * values + 0.3 * rng.normal(size=25))
        refused += determines(column, values, ordered=True)
    assert refused <= 3  # a correlation of 0.995: once in a hundred would be too often


def test_small_tables_are_not_refused_by_chance():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        column, values = pd.Series(rng.normal(size=6)), rng.normal(size=6)
        assert not determines(column, values, ordered=True)


@pytest.fixture(name="data")
def make_data():
    return pd.DataFrame({"Income": INCOME, "LogIncome": np.log(INCOME), "Age": AGE})


def synthesizer_of(data):
    draws = gaussian_draws(10, ("Intercept",), (10.0,))
    return sr.Synthesizer.from_draws(sr.Regression("LogIncome ~ 1"), data, draws)


def synthetic(data, **columns):
    return pd.DataFrame({"LogIncome": RNG.normal(10, 1, len(data)), **columns})


def test_the_raw_twin_in_a_release_is_refused_by_name(data):
    release = synthetic(data, Income=INCOME, Age=AGE)
    with pytest.raises(sr.DisclosureError, match="'Income' gives the synthesized 'LogIncome' away"):
        sr.attribute_risk(synthesizer_of(data), release, question="paper")
    with pytest.raises(sr.DisclosureError, match="Synthetic dataset 2"):
        sr.attribute_risk(synthesizer_of(data), [synthetic(data), release], question="paper")


def test_shuffled_rows_and_other_names_do_not_hide_it(data):
    shuffled = synthetic(data, Income=INCOME).sample(frac=1.0, random_state=1)
    renamed = synthetic(data, Whatever=INCOME)
    moved = synthetic(data, Whatever=INCOME).sample(frac=0.9, random_state=1)  # index intact
    without_labels = synthetic(data, Income=INCOME).sample(frac=0.9, random_state=1)
    for release in (shuffled, renamed, moved, without_labels.reset_index(drop=True)):
        with pytest.raises(sr.DisclosureError):
            sr.attribute_risk(synthesizer_of(data), release, question="paper")


def test_new_values_under_an_old_name_are_allowed(data):
    data["hh"] = data["LogIncome"].rank().astype(int) + 1000
    fresh = np.random.default_rng(3).permutation(data["hh"])
    sr.attribute_risk(synthesizer_of(data), synthetic(data, hh=fresh, Age=AGE), question="paper")
    with pytest.raises(sr.DisclosureError, match="'hh'"):
        sr.attribute_risk(
            synthesizer_of(data), synthetic(data, hh=data["hh"], Age=AGE), question="paper"
        )


def test_a_row_counter_is_allowed(data):
    release = synthetic(data)
    release["Unnamed: 0"] = np.arange(1, N + 1)
    sr.attribute_risk(synthesizer_of(data), release, question="paper")


def test_a_column_derived_from_the_synthetic_values_is_allowed(data):
    release = synthetic(data)
    release["Income"] = np.exp(release["LogIncome"])
    sr.attribute_risk(synthesizer_of(data), release, question="paper")


def test_an_id_is_allowed(data):
    data["CaseID"] = np.arange(N) + 1000
    release = synthetic(data, CaseID=data["CaseID"], Age=AGE)
    sr.attribute_risk(synthesizer_of(data), release, question="paper")


def test_the_confidential_twin_may_stay_in_the_confidential_data(data):
    sr.attribute_risk(synthesizer_of(data), synthetic(data, Age=AGE), question="paper")


@pytest.mark.parametrize("common", [np.nan, 0.0, "gaps of text"])
def test_a_column_that_is_nearly_constant_does_not_say_that_rows_stayed(common):
    """In a shuffled release its commonest value meets itself; the leak beside it is refused."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.normal(size=500)})
    data["v"] = data["x"] + rng.normal(size=500)
    data["raw"] = np.exp(data["v"])
    text = common == "gaps of text"
    data["sparse"] = pd.Series(None if text else common, index=data.index, dtype="str" if text
                               else float)  # fmt: skip
    data.loc[[3, 9], "sparse"] = ["a", "b"] if text else [1.0, 2.0]
    synthesizer = sr.fit(sr.Regression("v ~ x"), data, seed=1, n_draws=40)
    synthetic = data["x"] + rng.normal(size=500)
    shuffled = data.assign(v=synthetic).sample(frac=1, random_state=1).reset_index(drop=True)
    with pytest.raises(sr.DisclosureError, match="'raw'"):
        sr.attribute_risk(
            synthesizer, shuffled, records=[0, 1], diagnostics=False, question="paper"
        )
    kept = data.drop(columns="raw").assign(v=synthetic)
    own = sr.fit(sr.Regression("v ~ x"), data.drop(columns="raw"), seed=1, n_draws=40)
    sr.attribute_risk(
        own, kept, records=[0, 1], diagnostics=False, question="paper"
    )  # and nothing else is


# -- what a release has of its own -----------------------------------------------------------------
@pytest.fixture(name="office")
def make_office():
    """People who are known again by what is released as it is, and a release of the models."""
    rng = np.random.default_rng(5)
    n = 300
    x = rng.normal(size=n).round(2)
    region = rng.choice(list("abcd"), n)
    data = pd.DataFrame({"x": x, "region": region, "inc": np.exp(9 + 0.5 * x + rng.normal(size=n))})
    synthesizer = sr.fit(sr.Regression("log(inc) ~ x"), data, seed=1, n_draws=100)
    return data, synthesizer, synthesizer.synthesize(seed=SECRET)[0]


@pytest.mark.parametrize("by", [["inc"], ["region", "inc"]])
def test_an_order_by_confidential_values_is_refused(office, by):
    data, synthesizer, release = office
    order = data.sort_values(by).index
    with pytest.raises(
        sr.DisclosureError, match=r"'inc' .* the order of the rows, .* Shuffle them"
    ):
        sr.attribute_risk(synthesizer, release.loc[order].reset_index(drop=True))


@pytest.mark.parametrize("by", ["x", "region", "inc"])
def test_an_order_by_released_values_is_not(office, by):
    _, synthesizer, release = office
    for made in (release.sort_values(by), release.sample(frac=1, random_state=1)):
        sr.attribute_risk(synthesizer, made.reset_index(drop=True))


def test_text_of_a_releases_own_that_may_say_anything_is_refused(office):
    data, synthesizer, release = office
    coded = [hashlib.blake2b(str(one).encode(), digest_size=6).hexdigest() for one in data["inc"]]
    with pytest.raises(sr.DisclosureError, match="no column 'code'") as error:
        sr.attribute_risk(synthesizer, release.assign(code=coded))
    assert not any(one in str(error.value) for one in coded)
    sr.attribute_risk(synthesizer, release.assign(source="synthetic"))


def test_what_tells_who_is_missing_gives_modelled_gaps_away():
    rng = np.random.default_rng(7)
    x, gone = rng.integers(0, 5, 200), rng.random(200) < 0.2
    data = pd.DataFrame(
        {"x": x, "y": np.where(gone, np.nan, 50.0 + 5.0 * x + 20.0 * rng.normal(size=200))}
    )
    for told in (gone.astype(int), np.where(gone, "refused", None)):
        with pytest.raises(sr.DisclosureError, match=r"whether y is missing.*'told'"):
            sr.fit(sr.Regression("y ~ x"), data.assign(told=told), missing={"y": "model"})
    other = data.assign(told=rng.permutation(gone.astype(int)))
    sr.fit(sr.Regression("y ~ x"), other, missing={"y": "model"}, n_draws=20)


def test_gaps_of_a_released_column_give_a_variable_away():
    rng = np.random.default_rng(8)
    ill, x = np.where(rng.random(200) < 0.2, "yes", "no"), rng.integers(0, 5, 200)
    data = pd.DataFrame({"x": x, "ill": ill, "told": np.where(ill == "yes", np.nan, x)})
    model = sr.Regression("ill ~ x", "bernoulli")
    with pytest.raises(sr.DisclosureError, match="'ill' is told by what is missing in 'told'"):
        sr.fit(model, data)
    sr.fit(model, data.assign(told=np.where(rng.random(200) < 0.2, np.nan, x)), n_draws=20)
