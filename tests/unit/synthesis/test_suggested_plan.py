"""Suggested plans: what columns hold, how they are predicted, and that no value is told."""

import tomllib

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.synthesis.column_kinds import kinds_of_columns
from synrisk.synthesis.formula_search import encode, in_order

N = 400
RNG = np.random.default_rng(20)
ANSWERS, DAYS = [0.1, 0.2, 0.2, 0.2, 0.3], [0.2, 0.1, 0.1, 0.05, 0.05, 0.1, 0.1, 0.3]
WRITTEN = [f"{1 + k % 28:02d}.{1 + k % 12:02d}.19{k % 100:02d}" for k in range(N)]
SCHOOL = np.clip(RNG.normal(12, 2, N).round(), 5, 20)
COLUMNS = {
    "height": (RNG.normal(170, 9, N), "measurement", "gaussian"),
    "change": (RNG.normal(0, 9, N).round(2), "measurement", "gaussian"),
    "returns": (RNG.standard_t(2.5, N), "measurement", "student_t"),
    "school years": (SCHOOL, "measurement", "rounded_gaussian"),
    "income": (np.exp(RNG.normal(10, 0.8, N)), "amount", "lognormal"),
    "waiting": (RNG.gamma(0.7, 3.0, N) + 1e-6, "amount", "gamma"),
    "kids": (RNG.poisson(1.1, N), "count", "poisson"),
    "visits": (RNG.negative_binomial(0.8, 0.15, N), "count", "negative_binomial"),
    "turnout": (RNG.beta(3, 2, N), "share", "beta"),
    "answer": (RNG.choice([1, 2, 3, 4, 5], N, p=ANSWERS), "ordered", "ordered_logit"),
    "days of news": (RNG.choice(8, N, p=DAYS), "ordered", "ordered_logit"),
    "band": (RNG.choice([0.5, 2.5, 6.0, 13.0], N), "ordered", "ordered_logit"),
    "owner": (RNG.integers(0, 2, N), "two classes", "bernoulli"),
    "sex": (RNG.integers(1, 3, N), "two classes", "bernoulli"),
    "flag": (RNG.random(N) < 0.5, "two classes", "bernoulli"),
    "region": (RNG.choice(["Quovadis", "Ramsgate", "Zyxwville"], N), "classes", "categorical"),
    "health": (
        pd.Categorical.from_codes(RNG.integers(0, 3, N), ["bad", "fair", "good"], ordered=True),
        "ordered", "ordered_logit",
    ),
    "day": (pd.date_range("2020-01-01", periods=N), "date", None),
    "written day": (WRITTEN, "date", None),
    "surname": ([f"Person{k}" for k in range(N)], "id", None),
    "case": (np.arange(N) + 100, "id", None),
    "household": (np.arange(N) // 3, "id", None),
    "school_id": (RNG.integers(1, 300, N), "id", None),
    "paid": (RNG.integers(1, 300, N), "amount", "negative_binomial"),
    "remark": ([f"came on foot with {k % 90} others" for k in range(N)], "text", None),
    "fixed": (np.ones(N), "constant", None),
    "empty": (np.full(N, np.nan), "constant", None),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_known_by_its_values(name):
    values, kind, family = COLUMNS[name]
    own = kinds_of_columns(pd.DataFrame({name: values}))[name]
    assert own.kind == kind
    assert next(iter(own.families), None) == family


def test_zeros_among_amounts_are_seen_whole_or_not():
    amounts = np.where(RNG.random(N) < 0.4, 0.0, np.exp(RNG.normal(6, 1, N)))
    frame = pd.DataFrame({"plain": amounts, "whole": np.rint(amounts), "cents": amounts.round(2)})
    kinds = kinds_of_columns(frame)
    assert {own.kind for own in kinds.values()} == {"amount with zeros"}
    assert kinds["plain"].families == ()  # on no grid
    assert [kinds[name].step for name in ("whole", "cents")] == [1.0, 0.01]


def test_amounts_with_zeros_are_released_on_their_grid():
    rng = np.random.default_rng(8)
    spent = (rng.random(N) < 0.6) * np.exp(rng.normal(3, 1, N)).round(2)
    frame = pd.DataFrame({"Spent": spent, "Other": spent / 3.7})
    plan = sr.suggest_plan(frame, sensitive=["Spent"])
    assert "family=sr.HurdleLogNormal(step=0.01)" in plan.code()
    assert tomllib.loads(plan.toml())["model"][0]["step"] == 0.01
    names = {"data": frame}
    exec(plan.code(), names)  # noqa: S102 - that is what is tested
    (released,) = names["synthesizer"].synthesize(seed=1)
    values = released["Spent"].to_numpy()
    assert (values >= 0).all()
    np.testing.assert_array_equal(values, values.round(2))
    # By the binomial error of both shares.
    assert abs((values == 0).mean() - 0.4) < 4 * np.sqrt(2 * 0.24 / N)
    with pytest.raises(sr.OptionError, match=r"cannot be modelled.*round it"):
        sr.suggest_plan(frame, sensitive=["Other"])


def people():
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, N)
    income = np.exp(9 + 0.02 * age + rng.normal(0, 0.3, N))
    return pd.DataFrame(
        {
            "PersonId": np.arange(N) + 7000,
            "Age": age,
            "Region": COLUMNS["region"][0],
            "Income": income,
            "Debt": np.exp(0.9 * np.log(income) + rng.normal(0, 0.2, N)),
            "Sex": COLUMNS["sex"][0],
            "Remark": COLUMNS["remark"][0],
        }
    )


def test_what_is_asked_for_is_synthesized_and_others_are_not():
    plan = sr.suggest_plan(people(), sensitive=["Debt", "Income"])
    assert [(one.formula, one.distribution.name) for one in plan] == [
        ("Income ~ Age", "lognormal"),
        ("Debt ~ log(Income)", "lognormal"),
    ]
    assert plan.id == "PersonId"
    assert plan.drop == ("Remark",)
    assert plan.as_is == ("Age", "Region", "Sex")
    assert "Age explains" in plan.reasons.loc["Income", "reason"]
    synthesizer = sr.fit(plan, people().drop(columns=[*plan.drop]), id=plan.id, seed=1)
    assert len(synthesizer.synthesize(seed=2)[0]) == N


def test_nobody_asked_means_that_every_column_is_synthesized():
    plan = sr.suggest_plan(people())
    assert {one.response for one in plan} == {"Age", "Region", "Income", "Debt", "Sex"}
    assert plan.as_is == ()
    assert plan.types == {"Sex": "category"}


def test_the_code_runs_and_the_toml_says_the_same(tmp_path):
    plan = sr.suggest_plan(people(), sensitive=["Sex", "Income"])
    names = {"data": people()}
    exec(str(plan), names)  # noqa: S102 - that is what is tested
    assert names["synthesizer"].plan.synthesized == tuple(one.response for one in plan)
    study = tomllib.loads(plan.toml())
    assert study["data"] == {
        "id": "PersonId",
        "drop": list(plan.drop),
        "types": {"Sex": "category"},
    }
    assert [one["formula"] for one in study["model"]] == [one.formula for one in plan]


def test_no_value_is_told():
    plan = sr.suggest_plan(people())
    for text in (str(plan), plan.toml(), plan.reasons.to_string(), repr(plan)):
        for value in ("Quovadis", "Ramsgate", "Zyxwville", "foot", "7000", "7399"):
            assert value not in text


def test_every_kind_of_column_predicts_and_is_predicted():
    names = [name for name, (_, _, family) in COLUMNS.items() if family is not None]
    frame = pd.DataFrame({name: COLUMNS[name][0] for name in names})
    kinds = kinds_of_columns(frame)
    encoded = encode(frame, kinds, names)
    for own in encoded.values():
        assert np.isfinite(own.response).all()
        assert own.predictor is None or np.isfinite(own.predictor).all()
    assert len(in_order(encoded, [], names, dict.fromkeys(names, 1))) == len(names)


def test_a_suggestion_is_the_same_each_time():
    assert sr.suggest_plan(people()).code() == sr.suggest_plan(people()).code()


@pytest.mark.parametrize(
    ("sensitive", "message"),
    [
        (["Incom"], "no column 'Incom'. Did you mean 'Income'"),
        ("Income", "a list of columns' names"),
        ([], "is empty"),
        (["Remark"], "cannot be modelled: text"),
        (["PersonId"], "cannot be modelled: counts or names the records"),
    ],
)
def test_what_cannot_be_sensitive_is_said(sensitive, message):
    with pytest.raises(sr.SynriskError, match=message):
        sr.suggest_plan(people(), sensitive=sensitive)


def test_columns_that_most_records_lack_are_left_out_unless_asked_for():
    frame = people()
    frame.loc[: N // 2, "Debt"] = np.nan
    plan = sr.suggest_plan(frame)
    assert "many records lack it" in plan.reasons.loc["Debt", "reason"]
    assert plan.missing == "error"
    assert sr.suggest_plan(frame, sensitive=["Debt"]).missing == "drop"


def left_out_share(y, x):
    """What least squares explain, by as many fits as there are records."""
    errors, about = [], []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        slope = np.linalg.lstsq(x[others], y[others], rcond=None)[0]
        errors.append(y[i] - x[i] @ slope)
        about.append(y[i] - y[others].mean())
    return 1 - np.sum(np.square(errors)) / np.sum(np.square(about))


def test_leverages_give_what_leaving_each_record_out_gives():
    frame = people()[["Age", "Income", "Region"]].head(60)
    kinds = kinds_of_columns(frame)
    encoded = encode(frame, kinds, ["Income"])
    (found,) = in_order(encoded, ["Age", "Region"], ["Income"], {"Income": 1})
    assert found.predictors[0] == "Age"
    design = np.column_stack([np.ones(60), frame["Age"]])
    expected = left_out_share(np.log(frame["Income"].to_numpy()), design)
    assert found.explained[0] == pytest.approx(expected, rel=1e-9)


def test_a_column_of_noise_predicts_nothing():
    frame = people()[["Income"]].assign(noise=np.random.default_rng(3).normal(size=N))
    plan = sr.suggest_plan(frame, sensitive=["Income", "noise"])
    assert [one.formula.split(" ~ ")[1] for one in plan] == ["1", "1"]


def test_columns_of_lists_are_left_out_and_infinite_numbers_are_gaps():
    """Parquet and R have columns of lists; pandas compares these with nothing."""
    height = RNG.normal(170, 9, N)
    assert len(sr.suggest_plan(pd.DataFrame({"self": height}))) == 1  # a name as any other
    lists = [np.array([1.0, 2.0])] * N
    plain = pd.DataFrame({"height": np.where(np.arange(N) == 3, np.nan, height), "parts": lists})
    infinite = plain.assign(height=np.where(np.arange(N) == 3, np.inf, height))
    assert sr.suggest_plan(infinite).code() == sr.suggest_plan(plain).code()
    with pytest.raises(sr.OptionError, match="neither numbers nor text"):
        sr.suggest_plan(plain, sensitive=["parts"])
