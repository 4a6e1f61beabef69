"""Synthetic data: right distributions, synthetic predictors, types kept, streams that stay."""

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pytest
from helpers.cases import people
from scipy.special import expit, softmax
from scipy.stats import chisquare, kstest

import synrisk as sr

FALSE_ALARM = 1e-4  # of each test of a distribution; the seeds are fixed


def known(formula, family, data, **parameters):
    """A synthesizer with one draw: its parameters are known."""
    draws = pd.DataFrame({name: [float(value)] for name, value in parameters.items()})
    return sr.Synthesizer.from_draws(
        sr.Regression(formula, family), data, draws.rename(columns={"q": "u[T.q]", "s": "u[T.s]"})
    )


def test_gaussian_values_are_normal_about_their_mean():
    data = people(6000)
    made = known("b ~ x", "gaussian", data, Intercept=3.0, x=2.0, sigma=0.5).synthesize(1, seed=1)
    z = (made[0]["b"] - 3.0 - 2.0 * data["x"]) / 0.5
    assert kstest(z, "norm").pvalue > FALSE_ALARM


def test_logged_values_are_lognormal():
    data = people(6000)
    made = known("log(b) ~ x", "gaussian", data, Intercept=1.0, x=0.3, sigma=0.2)
    z = (np.log(made.synthesize(1, seed=1)[0]["b"]) - 1.0 - 0.3 * data["x"]) / 0.2
    assert kstest(z, "norm").pvalue > FALSE_ALARM


def test_counts_are_poisson():
    data = people(6000)
    made = known("k ~ u", "poisson", data, Intercept=0.5, q=-1.0, s=0.7).synthesize(1, seed=1)[0]
    for level, log_rate in (("p", 0.5), ("q", -0.5), ("s", 1.2)):
        counts = made.loc[data["u"] == level, "k"]
        rate, n = np.exp(log_rate), len(counts)
        expected = n * np.exp(-rate) * rate ** np.arange(4) / np.array([1, 1, 2, 6])
        observed = np.bincount(counts, minlength=4)[:4]
        p = chisquare(
            np.append(observed, n - observed.sum()), np.append(expected, n - expected.sum())
        ).pvalue
        assert p > FALSE_ALARM


def test_binary_values_have_their_probability():
    data = people(6000)
    made = known("o ~ x", "bernoulli", data, Intercept=-0.4, x=1.1).synthesize(1, seed=1)[0]
    p = expit(-0.4 + 1.1 * data["x"])
    group = pd.qcut(data["x"], 8, labels=False)
    z = (made["o"] - p).groupby(group).sum() / np.sqrt((p * (1 - p)).groupby(group).sum())
    assert kstest(z, "norm").pvalue > FALSE_ALARM


def test_levels_have_their_probabilities():
    data = people(6000)
    draws = pd.DataFrame({"mid:Intercept": [0.5], "mid:x": [0.3], "top:Intercept": [-0.5],
                          "top:x": [-0.8]})  # fmt: skip
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("r ~ x", "categorical"), data, draws)
    made = synthesizer.synthesize(1, seed=1)[0]
    x = data["x"].to_numpy()
    p = softmax(np.column_stack([0 * x, 0.5 + 0.3 * x, -0.5 - 0.8 * x]), axis=1)
    for k, level in enumerate(["low", "mid", "top"]):
        z = ((made["r"] == level) - p[:, k]).sum() / np.sqrt((p[:, k] * (1 - p[:, k])).sum())
        assert abs(z) < 4.0
        slope = np.sum(x * ((made["r"] == level) - p[:, k]))
        assert abs(slope) < 4.0 * np.sqrt(np.sum(x**2 * p[:, k] * (1 - p[:, k])))


def test_predictors_are_synthetic_values():
    """The confidential b is about 10 and the synthetic about 1000: c follows the synthetic one."""
    data = people(500)
    draws = [
        pd.DataFrame({"Intercept": [1000.0], "sigma": [50.0]}),
        pd.DataFrame({"Intercept": [0.0], "b": [1.0], "sigma": [1e-3]}),
        pd.DataFrame({"Intercept": [0.0], "I(c**2)": [1e-6]}),
    ]
    plan = [
        sr.Regression("b ~ 1"),
        sr.Regression("c ~ b"),
        sr.Regression("k ~ I(c^2)", "poisson"),
    ]
    made = sr.Synthesizer.from_draws(plan, data, draws).synthesize(1, seed=3)[0]
    np.testing.assert_allclose(made["c"], made["b"], atol=0.01)
    assert made["b"].mean() == pytest.approx(1000.0, abs=4.5 * 50 / np.sqrt(500))
    assert made["k"].mean() > 2.0  # exp(1e-6 · 1000²) = 2.7; with confidential values 1


def test_each_dataset_has_its_own_draw_by_weight():
    data = people(5)
    draws = pd.DataFrame({"Intercept": [0.0, 1e6], "sigma": [1.0, 1.0], "weight": [0.3, 0.7]})
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ 1"), data, draws)
    high = [made["b"].mean() > 5e5 for made in synthesizer.synthesize(600, seed=1)]
    assert abs(np.mean(high) - 0.7) < 4.5 * np.sqrt(0.21 / 600)


def test_models_choose_their_draws_independently():
    data = people(5)
    draws = pd.DataFrame({"Intercept": [0.0, 1e6], "sigma": [1.0, 1.0]})
    plan = [sr.Regression("b ~ 1"), sr.Regression("c ~ 1")]
    synthesizer = sr.Synthesizer.from_draws(plan, data, [draws, draws])
    datasets = synthesizer.synthesize(400, seed=1)
    same = [(d["b"].mean() > 5e5) == (d["c"].mean() > 5e5) for d in datasets]
    assert abs(np.mean(same) - 0.5) < 4.5 * 0.5 / np.sqrt(400)


class Backwards:
    """Runs the last block first."""

    def map(self, function, items):
        items = list(items)
        return [function(item) for item in reversed(items)][::-1]


@pytest.mark.parametrize(
    "executor", ["serial", 2, 5, Backwards()], ids=["serial", "2", "5", "backwards"]
)
def test_data_do_not_depend_on_the_workers(executor):
    data = pd.concat([people(3000, seed=s) for s in range(3)], ignore_index=True)  # three chunks
    plan = [sr.Regression("b ~ x"), sr.Regression("k ~ b", "poisson")]
    synthesizer = sr.fit(plan, data, seed=1, n_draws=50)
    for one, two in zip(
        synthesizer.synthesize(2, seed=7),
        synthesizer.synthesize(2, seed=7, executor=executor),
        strict=True,
    ):
        pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_more_datasets_leave_the_first_as_they_are():
    synthesizer = sr.fit(sr.Regression("b ~ x"), people(50), seed=1, n_draws=50)
    one, three = synthesizer.synthesize(1, seed=7), synthesizer.synthesize(3, seed=7)
    pd.testing.assert_frame_equal(one[0], three[0], check_exact=True)
    assert not np.allclose(three[0]["b"], three[1]["b"])
    assert not np.allclose(one[0]["b"], synthesizer.synthesize(1, seed=8)[0]["b"])
    unseeded = [synthesizer.synthesize()[0]["b"] for _ in range(2)]
    assert not np.allclose(*unseeded)


# -- what is kept ---------------------------------------------------------------------------------
def typed():
    rng = np.random.default_rng(3)
    n = 200
    return pd.DataFrame(
        {
            "label": [f"p{i}" for i in range(n)],
            "x": rng.normal(size=n),
            "whole": rng.integers(20_000, 80_000, n).astype("int32"),
            "short": rng.poisson(2.0, n).astype("int8"),
            "nullable": pd.array(rng.poisson(2.0, n), dtype="Int64"),
            "single": rng.normal(size=n).astype("float32"),
            "logical": rng.random(n) < 0.4,
            "text": rng.choice(["yes", "no"], n),
            "graded": pd.Categorical(
                rng.choice(["low", "mid", "top"], n), ["low", "mid", "top"], ordered=True
            ),
            "number": rng.choice([1, 2, 5], n),
            "arrow": pd.array(rng.poisson(1.0, n), dtype="int64[pyarrow]"),
        },
        index=pd.Index([f"id-{i}" for i in range(n)], name="who"),
    )


PLAN = [
    sr.Regression("log(whole) ~ x"),
    sr.Regression("short ~ x", "poisson"),
    sr.Regression("nullable ~ short", "poisson"),
    sr.Regression("single ~ whole"),
    sr.Regression("logical ~ x", "bernoulli"),
    sr.Regression("text ~ logical", "bernoulli"),
    sr.Regression("graded ~ x", "categorical"),
    sr.Regression("number ~ graded", "categorical"),
    sr.Regression("arrow ~ number", "poisson"),
]


def test_types_levels_order_and_what_is_declared_are_kept():
    data = typed()
    synthesizer = sr.fit(PLAN, data, seed=1, release=["label", "who"])
    made = synthesizer.synthesize(2, seed=2)
    for dataset in made:
        assert dataset.columns.tolist() == data.columns.tolist()
        pd.testing.assert_index_equal(dataset.index, data.index)
        assert dataset.dtypes.to_dict() == data.dtypes.to_dict()
        pd.testing.assert_frame_equal(dataset[["label", "x"]], data[["label", "x"]])
        assert set(dataset["number"]) <= {1, 2, 5}
        assert set(dataset["text"]) == {"yes", "no"}
        for name in ("whole", "short", "single", "graded", "number"):
            assert (dataset[name] != data[name]).mean() > 0.3
    risk = sr.attribute_risk(synthesizer, made, guesses=3, joint="drop", question="paper")
    assert risk.records["probability"].between(0, 1).all()


def test_the_data_themselves_are_left_alone():
    data = typed()
    before = data.copy(deep=True)
    sr.fit(PLAN, data, seed=1).synthesize(1, seed=2)
    pd.testing.assert_frame_equal(data, before)


def test_a_change_of_a_released_dataset_reaches_no_other():
    data = people(40)
    synthesizer = known("b ~ x", "gaussian", data, Intercept=3.0, x=2.0, sigma=0.5)
    changed, other = synthesizer.synthesize(2, seed=1)
    changed.loc[:, "x"] = -99.0
    pd.testing.assert_series_equal(other["x"], data["x"])
    pd.testing.assert_series_equal(synthesizer.data["x"], data["x"])


def test_a_fully_synthetic_dataset():
    data = people(100)[["b", "k"]]
    plan = [sr.Regression("b ~ 1"), sr.Regression("k ~ b", "poisson")]
    made = sr.fit(plan, data, seed=1).synthesize(1, seed=2)[0]
    assert made.columns.tolist() == ["b", "k"]
    assert made["k"].dtype == np.int64
    assert not (made["b"] == data["b"]).any()


def test_a_count_too_large_for_its_type_widens_it():
    data = people(50).assign(k=lambda d: d["k"].astype("int8"))
    made = known("k ~ 1", "poisson", data, Intercept=6.0).synthesize(1, seed=1)[0]
    assert made["k"].dtype == np.int64
    assert made["k"].mean() == pytest.approx(np.exp(6.0), rel=0.1)


@pytest.mark.parametrize("levels", [["False", "True"], [False, True]], ids=["text", "own"])
@pytest.mark.parametrize("dtype", ["bool", "boolean"])
@pytest.mark.parametrize("family", ["bernoulli", "categorical"])
def test_logical_columns_stay_logical_whatever_their_levels_are_called(levels, dtype, family):
    data = people(200).assign(o=lambda d: (d["o"] == 1).astype(dtype))
    fitted = sr.fit(sr.Regression("o ~ x", family), data, types={"o": levels}, seed=1)
    made = fitted.synthesize(1, seed=3)[0]
    assert made["o"].dtype == data["o"].dtype
    assert 40 < int(made["o"].sum()) < 160


def test_levels_come_back_as_the_columns_own_values():
    data = people(100)
    floats = pd.Categorical(data["o"] + 1.0)
    small = (data["o"] + 1).astype("int8")
    for column, levels in ((floats, ["1", "2"]), (small, ["1.0", "2.0"]), (small, ["1", "2"])):
        with_column = data.drop(columns="o").assign(c=column)
        fitted = sr.fit(
            sr.Regression("c ~ x", "categorical"), with_column, types={"c": levels}, seed=1
        )
        made = fitted.synthesize(1, seed=3)[0]
        assert made["c"].dtype == with_column["c"].dtype
        assert set(made["c"]) == {1, 2}


def test_logical_values_modelled_as_numbers_become_numbers():
    data = people(100).assign(o=lambda d: d["o"] == 1)
    model = sr.Regression("o ~ x")
    made = sr.fit(model, data, types={"o": "numeric"}, seed=1).synthesize(1, seed=3)[0]
    assert made["o"].dtype == np.float64


def test_counts_as_text_stay_whole():
    data = people(100).assign(k=lambda d: d["k"].astype(str).astype(object))
    model = sr.Regression("k ~ x", "poisson")
    made = sr.fit(model, data, types={"k": "numeric"}, seed=1).synthesize(1, seed=3)[0]
    assert made["k"].dtype == np.int64


def test_a_column_may_have_any_name():
    data = people(60).rename(columns={"b": "self", "k": "name with blanks"})
    plan = [sr.Regression("self ~ x"), sr.Regression("`name with blanks` ~ self", "poisson")]
    made = sr.fit(plan, data, seed=1).synthesize(1, seed=1)[0]
    assert not (made["self"] == data["self"]).any()


def test_a_narrow_float_that_overflows_is_refused():
    data = people(60).assign(c=lambda d: np.exp(86 + d["x"]).astype("float32"))
    with pytest.raises(sr.FitError, match="beyond what its column can hold"):
        sr.fit(sr.Regression("log(c) ~ 1"), data.drop(columns="x"), seed=1).synthesize(20, seed=1)


def test_the_label_of_missing_values_is_reserved():
    data = people(60)
    data["r"] = data["r"].astype(object).where(data.index % 4 > 0, "(missing)")
    with pytest.raises(sr.DataError, match="rename that level"):
        sr.fit(sr.Regression("r ~ x", "categorical"), data, seed=1)


class Forgetful:
    """Loses its results."""

    def __init__(self, results):
        self.results = results

    def map(self, function, items):
        return self.results


@pytest.mark.parametrize("results", [None, []], ids=["none", "empty"])
def test_results_that_an_executor_loses_are_missed(results):
    data = people(60)
    with pytest.raises(sr.OptionError, match="its map gave"):
        sr.fit(sr.Regression("k ~ x", "poisson"), data, seed=1, executor=Forgetful(results))
    fitted = sr.fit(sr.Regression("k ~ x", "poisson"), data, seed=1)
    with pytest.raises(sr.OptionError, match="its map gave"):
        fitted.synthesize(2, seed=1, executor=Forgetful(results))


def test_processes_are_refused():
    with (
        ProcessPoolExecutor(1) as processes,
        pytest.raises(sr.OptionError, match=r"use executor=.processes"),
    ):
        sr.fit(sr.Regression("k ~ x", "poisson"), people(60), executor=processes)


def test_missing_values_made_a_level_are_missing_again():
    data = people(200)
    data["r"] = data["r"].astype(object).where(data.index % 4 > 0, None)
    synthesizer = sr.fit(sr.Regression("r ~ x", "categorical"), data, missing="level", seed=1)
    made = synthesizer.synthesize(1, seed=1)[0]
    assert 20 < made["r"].isna().sum() < 80
    assert set(made["r"].dropna()) == {"low", "mid", "top"}
    assert len(sr.attribute_risk(synthesizer, made, question="paper").records) == 200


def test_incomplete_records_that_were_left_out_are_not_released():
    data = people(60)
    data.loc[[3, 5], "x"] = np.nan
    made = sr.fit(sr.Regression("b ~ x"), data, missing="drop", seed=1).synthesize(1, seed=1)[0]
    assert len(made) == 58
    assert made.index.tolist() == list(range(58))  # nor is it told which they were


def test_whole_numbers_stay_in_the_support():
    """An income below one half is rounded up: the logarithm of 0 is no number."""
    data = people(300).assign(income=np.ceil(np.exp(people(300, seed=2)["c"])).astype(int))
    synthesizer = known("log(income) ~ 1", "gaussian", data, Intercept=-1.0, sigma=1.0)
    made = synthesizer.synthesize(1, seed=1)[0]
    assert made["income"].min() == 1
    assert made["income"].dtype == data["income"].dtype


# -- what is refused ------------------------------------------------------------------------------
def test_a_twin_is_not_released():
    data = people(80).assign(income=lambda d: np.exp(d["b"]))
    made = sr.fit(sr.Regression("b ~ x"), data, seed=1).synthesize(1, seed=1)[0]
    assert "income" not in made
    with pytest.raises(sr.DisclosureError, match=r"of 'income', .* the synthesized 'b' away"):
        sr.fit(sr.Regression("b ~ x"), data, seed=1, release=["income"])


@pytest.mark.parametrize("m", [0, -1, 1.5, True, "2"])
def test_m_is_a_whole_number(m):
    with pytest.raises(sr.OptionError, match="m must be a whole number"):
        sr.fit(sr.Regression("b ~ x"), people(), seed=1).synthesize(m)


def test_few_negative_roots_are_squared_and_many_refused():
    data = people(1000)[["x"]].assign(y=people(1000, seed=4)["b"] ** 2)
    with pytest.warns(sr.SynthesisWarning, match=r"4 values of sqrt\(y\) were drawn below"):
        made = known("sqrt(y) ~ 1", "gaussian", data, Intercept=3.0, sigma=1.0).synthesize(
            1, seed=1
        )
    assert (made[0]["y"] >= 0).all()
    with pytest.raises(sr.FitError, match=r"values of sqrt\(y\) were drawn below"):
        known("sqrt(y) ~ 1", "gaussian", data, Intercept=0.5, sigma=1.0).synthesize(1, seed=1)


def test_rates_beyond_numbers_are_refused():
    with pytest.raises(sr.FitError, match="means that are too large"):
        known("k ~ x", "poisson", people(), Intercept=50.0, x=0.0).synthesize(1, seed=1)
    beyond = known("log(b) ~ 1", "gaussian", people(), Intercept=900.0, sigma=1.0)
    with pytest.raises(sr.FitError, match="beyond what its column can hold"):
        beyond.synthesize(1, seed=1)


def test_a_synthetic_value_that_a_later_formula_cannot_take_is_refused():
    data = people(50)
    draws = [
        pd.DataFrame({"Intercept": [0.0], "sigma": [1.0]}),
        pd.DataFrame({"Intercept": [0.0], "log(b)": [1.0], "sigma": [1.0]}),
    ]
    plan = [sr.Regression("b ~ 1"), sr.Regression("c ~ log(b)")]
    with pytest.raises(sr.FitError, match=r"log\(b\) is not a finite number for \d+ rows"):
        sr.Synthesizer.from_draws(plan, data, draws).synthesize(1, seed=1)
