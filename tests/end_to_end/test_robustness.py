"""Odd input through the public interface: a SynriskError, or the right thing; nothing else."""

import datetime
import io
import os
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers.cases import gaussian_draws, one_gaussian, people

import synrisk as sr

DRAWS = gaussian_draws(10, ("Intercept", "x"), (10.0, 1.0))
PLAN = sr.Regression("b ~ x")


def fit(plan=PLAN, data=None, draws=DRAWS, **options):
    return sr.Synthesizer.from_draws(plan, people() if data is None else data, draws, **options)


def evaluate(**options):
    synthesizer, release = one_gaussian()
    return sr.attribute_risk(
        synthesizer, options.pop("release", release), **options, question="paper"
    )


def objects(values):
    return pd.Series(values, dtype=object)  # pandas 2 takes no list of huge integers


BIG = 10**400
ODD = {
    "types a word": lambda: fit(types="category"),
    "types a number": lambda: fit(types={"x": 5}),
    "types nothing": lambda: fit(types={"x": None}),
    "types a type": lambda: fit(types={"x": float}),
    "id a number": lambda: fit(id=5),
    "id a list": lambda: fit(id=["x"]),
    "weights a number": lambda: sr.Regression("b ~ x", weights=5),
    "weights an array": lambda: sr.Regression("b ~ x", weights=np.ones(3)),
    "plan nothing": lambda: fit(plan=None),
    "plan a number": lambda: fit(plan=5),
    "plan a formula": lambda: fit(plan="b ~ x"),
    "rename a list": lambda: fit(rename=["x"]),
    "list column": lambda: fit(data=people().assign(x=[[1]] * 40)),
    "dict column": lambda: fit(data=people().assign(x=[{}] * 40)),
    "list column of polars": lambda: fit(data=pl.DataFrame({"b": [1.0, 2.0], "x": [[1], [2]]})),
    "list column of arrow": lambda: fit(data=pa.table({"b": [1.0, 2.0], "x": [[1], [2]]})),
    "list ids": lambda: fit(data=people().assign(case=[[i] for i in range(40)]), id="case"),
    "dates": lambda: fit(data=people().assign(x=datetime.date(2020, 1, 1))),
    "time stamps": lambda: fit(data=people().assign(x=pd.Timestamp("2020-01-01"))),
    "complex": lambda: fit(data=people().assign(x=1j)),
    "complex as numeric": lambda: fit(data=people().assign(x=1j), types={"x": "numeric"}),
    "huge integer": lambda: fit(data=people().assign(x=objects([BIG] * 40))),
    "huge integer in draws": lambda: fit(draws=DRAWS.assign(x=objects([BIG] * 10))),
    "complex draws": lambda: fit(draws=DRAWS.assign(x=1j)),
    "dates for draws": lambda: fit(draws=DRAWS.assign(x=pd.Timestamp("2020-01-01"))),
    "long path": lambda: fit(data="x" * 5000 + ".csv"),
    "null in path": lambda: fit(data="x\0.csv"),
    "by a number": lambda: evaluate().summary(by=5),
    "by a list": lambda: evaluate().summary(by=["x"]),
    "joint of a list": lambda: evaluate().joint([1]),
    "records of lists": lambda: evaluate(records=[[1]]),
    "records a slice": lambda: evaluate(records=slice(0, 2)),
    "no records": lambda: evaluate(records=[]),
    "values a number": lambda: evaluate(guesses=sr.Values(5)),
    "values nothing": lambda: evaluate(guesses=sr.Values(None)),
    "values a set": lambda: evaluate(guesses=sr.Values({1.0, 2.0})),
    "values a generator": lambda: evaluate(guesses=sr.Values(i for i in range(3))),
    "values huge": lambda: evaluate(guesses=sr.Values([1.0, BIG])),
    "values complex": lambda: evaluate(guesses=sr.Values([1.0, 2j])),
    "prior complex": lambda: evaluate(guesses=2, intruder_prior=np.array([1j, 2j])),
    "release a number": lambda: evaluate(release=5),
    "release complex": lambda: evaluate(release=people()[["x"]].assign(b=1j)),
    "executor a word": lambda: evaluate(executor="process"),
    "executor zero": lambda: evaluate(executor=0),
    "executor an array": lambda: evaluate(executor=np.array([1, 2])),
    "executor a frame": lambda: evaluate(executor=people()),
    "groups of lists": lambda: sr.attribute_risk(
        fit(data=people().assign(odd=[[1]] * 40)), one_gaussian()[1], question="paper"
    ).summary(by="odd"),
    "no width": lambda: evaluate(guesses=sr.Additive(5, 1e-18, 1e-18)),
    "long sum": lambda: sr.Regression("b ~ I(" + "+".join(["x"] * 990) + ")"),
    "many terms": lambda: sr.Regression(
        "b ~ (" + "+".join(f"v{i}" for i in range(20)) + ")^9"
    ),
    "tower of powers": lambda: fit(plan=sr.Regression("b ~ I(x*9^9^9)")),
    "spline of thousands": lambda: sr.Regression("b ~ bs(x, df=100000)"),
    "polynomial of few values": lambda: fit(plan=sr.Regression("b ~ poly(k, 15)")),
    "reserved name": lambda: sr.Regression("rank ~ x"),
    "predictor sigma": lambda: sr.Regression("b ~ sigma"),
    "weights all zero": lambda: sr.attribute_risk(
        fit(draws=DRAWS.assign(weight=[0.0] * 5 + [1.0] * 5)), one_gaussian()[1],
        n_draws=5, question="paper",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_input_is_refused(name):
    with pytest.raises(sr.SynriskError) as caught:
        ODD[name]()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "call",
    [
        lambda data: sr.Regression("b ~ x", data),
        lambda data: sr.Regression(data),
        lambda data: sr.Regression("b ~ x", weights=data),
        lambda data: fit(missing=data),
        lambda data: fit(id=data),
        lambda data: fit(types={"x": data}),
        lambda data: fit(rename=data),
        lambda data: fit().draws(data),
        lambda data: evaluate(estimator=data),
        lambda data: evaluate(joint=data),
        lambda data: evaluate(guesses=data),
        lambda data: evaluate(guesses={"b": data}),
        lambda data: evaluate(n_draws=data),
        lambda data: evaluate(intruder_prior=data),
        lambda data: evaluate(executor=data),
        lambda data: evaluate(progress=data),
        lambda data: evaluate().marginal(data),
        lambda data: evaluate().summary(by=data),
        lambda data: fit().save(data),
        lambda data: sr.TruthFactor(data),
        lambda data: sr.Relative(data),
        lambda data: sr.Interval(5, data, data),
    ],
)
@pytest.mark.parametrize("whole", [True, False], ids=["frame", "values"])
def test_the_data_in_the_wrong_place_do_not_get_into_a_message(call, whole):
    data = people()[["b", "x"]]
    with pytest.raises(sr.SynriskError) as caught:
        call(data if whole else data["b"].tolist())
    text = str(caught.value)
    assert not any(f"{value:.4g}"[:5] in text for value in data.to_numpy().ravel())
    assert caught.value.__context__ is None


def test_weights_that_no_draw_shares_are_refused_by_the_paper_estimator():
    draws = [
        gaussian_draws(4, ("Intercept",), (10.0,)).assign(weight=[1.0, 1.0, 0.0, 0.0]),
        gaussian_draws(4, ("Intercept", "b"), (0.0, 0.1)).assign(weight=[0.0, 0.0, 1.0, 1.0]),
    ]
    synthesizer = fit([sr.Regression("b ~ 1"), sr.Regression("c ~ b")], draws=draws)
    release = people()[["b", "c"]].iloc[::-1]
    with pytest.raises(sr.DrawsError, match="weight zero"):
        sr.attribute_risk(synthesizer, release, estimator="paper", question="paper")
    assert (
        sr.attribute_risk(synthesizer, release, question="paper")
        .records["probability"]
        .notna()
        .all()
    )


def as_csv(frame, path, **options):
    frame.to_csv(path, index=False, **options)
    return path


def test_logicals_and_codes_in_csv_files(tmp_path):
    data = people()[["b"]].assign(flag=["TRUE", "FALSE"] * 20, code=["01", "02"] * 20)
    for column, term in (("flag", "flagTRUE"), ("code", "code")):
        draws = gaussian_draws(5, ("(Intercept)", term), (10.0, 0.1))
        confidential = as_csv(data, tmp_path / "c.csv")
        synthesizer = fit(sr.Regression(f"b ~ {column}"), confidential, draws)
        release = as_csv(data.assign(b=10.0), tmp_path / "s.csv")
        assert len(sr.attribute_risk(synthesizer, release, question="paper").records) == 40
    draws = gaussian_draws(5, ("(Intercept)", "code02"), (10.0, 0.1))
    types = {"code": ["01", "02"]}
    synthesizer = fit(sr.Regression("b ~ code"), confidential, draws, types=types)
    assert len(sr.attribute_risk(synthesizer, release, question="paper").records) == 40
    floats = data.assign(code=[1.0, 2.0] * 20)
    draws = gaussian_draws(5, ("(Intercept)", "code2"), (10.0, 0.1))
    synthesizer = fit(sr.Regression("b ~ C(code)"), floats, draws)
    release = as_csv(floats.assign(b=10.0), tmp_path / "f.csv")
    assert len(sr.attribute_risk(synthesizer, release, question="paper").records) == 40


def test_a_file_with_more_fields_than_names_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('"(Intercept)","x","sigma"\n"1",10.1,1.0,1.2\n"2",9.9,1.1,1.3\n')
    with pytest.raises(sr.FileError, match="3 columns"):
        fit(draws=path)


def test_a_file_without_a_header_shows_no_value(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("54321.5,Jane Doe,1961-03-02\n1.5,John Doe,1962-04-05\n")
    with pytest.raises(sr.FileError, match="does not hold column names") as caught:
        fit(data=path)
    assert "Doe" not in str(caught.value)
    assert "54321" not in str(caught.value)


def test_ids_in_csv_files_keep_their_zeros(tmp_path):
    data = people()[["b", "x"]]
    zeros = as_csv(data.assign(case=[f"{i:04d}" for i in range(40)]), tmp_path / "z.csv")
    assert sr.attribute_risk(
        fit(data=zeros, id="case"), one_gaussian()[1], records=["0007"], question="paper"
    ).records.index.tolist() == ["0007"]
    plain = as_csv(data.assign(case=range(100, 140)), tmp_path / "p.csv")
    assert sr.attribute_risk(
        fit(data=plain, id="case"), one_gaussian()[1], records=[107], question="paper"
    ).records.index.tolist() == [107]


def test_a_two_level_text_response_must_say_which_level_is_modelled():
    data = people().assign(own=["no", "Yes"] * 20)
    draws = pd.DataFrame({"Intercept": [0.1, 0.2], "x": [0.1, 0.3]})
    plan = sr.Regression("own ~ x", "bernoulli")
    for frame in (data, pl.from_pandas(data.drop(columns=["u", "r"])).with_columns(
        pl.col("own").cast(pl.Categorical))):  # fmt: skip
        with pytest.raises(sr.DataError, match="say which one"):
            fit(plan, frame, draws)
    synthesizer = fit(plan, data, draws, types={"own": ["no", "Yes"]})
    assert set(synthesizer.describe()["probability_of"]) == {"Yes"}
    logical = fit(plan, data.assign(own=[False, True] * 20), draws)
    assert set(logical.describe()["probability_of"]) == {True}


def test_representations_of_parts_hold_no_values():
    synthesizer, release = one_gaussian()
    risk = sr.attribute_risk(
        synthesizer, release, guesses=sr.Values([1.5, 77.25]), question="paper"
    )
    model = synthesizer.models[0]
    parts = (model, model.design, model.posterior, synthesizer.schema, risk, synthesizer)
    text = "".join(repr(part) for part in parts) + repr(sr.Values([77.25]))
    for value in [*synthesizer.data["b"].head(5), 77.25]:
        assert str(value) not in text


def test_large_products_of_guesses_are_evaluated_in_small_blocks():
    data = people()
    draws = [
        gaussian_draws(3, ("Intercept",), (10.0,)),
        gaussian_draws(3, ("Intercept",), (0.0,)),
        gaussian_draws(3, ("Intercept", "b", "c", "b:c"), (0.0, 0.1, 0.1, 0.0)),
    ]
    plan = [sr.Regression("b ~ 1"), sr.Regression("c ~ 1"), sr.Regression("x ~ b*c")]
    synthesizer = fit(plan, data, draws)
    release = data[["b", "c", "x"]].iloc[::-1]
    risk = sr.attribute_risk(
        synthesizer, release, guesses={"b": 80, "c": 80, "x": 2}, joint="drop", question="paper"
    )
    assert risk.records["probability"].notna().all()


@pytest.mark.parametrize(
    "values",
    [[[1]] * 40, [{1: 2}] * 40, [{3}] * 40, [np.ones(2)] * 40, np.arange(40, dtype=np.float16) // 4,
     np.arange(40, dtype=np.longdouble) // 4, [None] * 40, [1j] * 40, [1, "a"] * 20,
     pd.to_datetime(["2020-01-01"] * 40)],
    ids=["list", "dict", "set", "array", "half", "long", "none", "complex", "mixed", "date"],
)  # fmt: skip
def test_odd_columns_beside_the_plans_do_no_harm(values):
    odd = pd.Series(list(values)) if isinstance(values, list) else pd.Series(values)
    data = people().assign(odd=odd)
    release = data[["x", "odd"]].assign(b=10.0)
    for released in (release, release.sample(frac=1.0, random_state=1), release.iloc[:30]):
        assert len(sr.attribute_risk(fit(data=data), released, question="paper").records) == 40


def test_records_may_be_any_iterable():
    for records in (
        {3, 5},
        (i for i in (3, 5)),
        np.array([3, 5]),
        pd.Index([3, 5]),
        range(3, 6, 2),
    ):
        assert sorted(evaluate(records=records).records.index) == [3, 5]
    assert list(evaluate(records=np.array(5)).records.index) == [5]


def test_numpy_numbers_of_threads():
    assert len(evaluate(executor=np.int64(2)).records) == 40


def test_bytes_are_not_a_file():
    with pytest.raises(sr.DataError):
        fit(data=io.BytesIO(b"a,b\n1,2\n"))


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are those of POSIX")
@pytest.mark.parametrize("kind", ["pipe", "device", "NUL", "surrogate"])
@pytest.mark.parametrize("ending", [".nc", ".csv", ".toml", ".html"])
def test_what_is_no_file_is_neither_waited_for_nor_written_over(tmp_path, kind, ending):
    path = tmp_path / f"{'a' if kind != 'NUL' else chr(0)}{ending}"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "surrogate":
        path = tmp_path / f"\ud800{ending}"
    calls = {
        ".nc": [sr.AttributeRisk.load, sr.Synthesizer.load, fit().save, evaluate().save],
        ".csv": [lambda path: fit(data=path), lambda path: fit(draws=path)],
        ".toml": [sr.Criteria.from_toml],
        ".html": [evaluate().report],
    }
    for call in calls[ending]:
        with pytest.raises(sr.SynriskError) as caught:
            call(path)
        assert caught.value.__context__ is None
    if kind == "pipe":
        assert path.is_fifo()


def test_messages_show_control_characters_of_names():
    odd = "x\x1b[2J\n\u202e"
    with pytest.raises(sr.SynriskError) as caught:
        fit(data=people().rename(columns={"x": odd}))
    assert r"x\x1b[2J\n\u202e" in str(caught.value)
    assert odd not in str(caught.value)
