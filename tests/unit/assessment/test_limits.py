"""What is too large or too far away is refused before it is begun, with what would do."""

import numpy as np
import pandas as pd
import pytest
from helpers.cases import people
from helpers.secret import SECRET

import synrisk as sr
from synrisk.base import memory_limit
from synrisk.base.errors import within_memory


@pytest.fixture(scope="module")
def fitted():
    return sr.fit(sr.Regression("b ~ x"), people(200)[["x", "b"]], n_draws=100, seed=1)


@pytest.fixture
def little_memory(monkeypatch):
    """Let this process have so many bytes."""
    return lambda n_bytes: monkeypatch.setattr(memory_limit, "memory_limit", lambda: n_bytes)


@pytest.mark.parametrize("factor", [1e14, 1e25, 1e200, 1e300])
def test_a_release_in_other_units_by_far(fitted, factor):
    (release,) = fitted.synthesize(seed=SECRET)
    release["b"] *= factor
    with pytest.raises(
        sr.SyntheticDataError, match="'b' has values beyond 1e\\+12 times"
    ) as caught:
        sr.attribute_risk(fitted, release)
    assert "same units" in str(caught.value)


@pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")
@pytest.mark.parametrize("factor", [1e-300, 1e-12, 1e8])
def test_a_release_in_other_units_is_evaluated(fitted, factor):
    (release,) = fitted.synthesize(seed=SECRET)
    release["b"] *= factor
    assert sr.attribute_risk(fitted, release).verdict(further=0).outcome != "passed"


@pytest.mark.parametrize("question", ["release", "paper"])
@pytest.mark.parametrize(
    "guesses",
    [
        sr.Interval(5, -1e300, 1e300),
        sr.Relative(5, 1e300, 1e300),
        sr.Additive(5, 1e200, 1e200),
        sr.Values([-1e300, 0.0, 1e300]),
        sr.Range(within=(-1e300, 1e300)),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_guesses_far_away(fitted, guesses, question):
    release = fitted.synthesize(seed=SECRET)
    with pytest.raises(sr.GuessError, match="go beyond 1e\\+12 times its largest value"):
        sr.attribute_risk(fitted, release, guesses=guesses, question=question)


@pytest.mark.parametrize("guesses", [1000, sr.Range(1000)], ids=["a number", "a range"])
def test_more_guesses_than_fit_into_memory(fitted, guesses, monkeypatch):
    monkeypatch.setattr("synrisk.risk.grid_size.memory_limit", lambda: 5e6)
    with pytest.raises(sr.GuessError, match=r"may have 0.0 GiB; 520 of all variables"):
        sr.attribute_risk(fitted, fitted.synthesize(seed=SECRET), guesses=guesses)


def test_guesses_of_many_records_that_memory_does_not_hold_fit_into_parts(fitted, monkeypatch):
    release = fitted.synthesize(seed=SECRET)
    monkeypatch.setattr("synrisk.risk.grid_size.memory_limit", lambda: 5e6)
    monkeypatch.setattr("synrisk.risk.grid_size.rows_of_part", lambda _: 50)
    with pytest.raises(sr.GuessError, match=r"out='…': they are evaluated in 4 parts"):
        sr.attribute_risk(fitted, release, guesses=1000)


def test_joint_posteriors_that_memory_does_not_hold(fitted, little_memory):
    release = fitted.synthesize(seed=SECRET)
    little_memory(1e4)
    with pytest.raises(sr.ResourceError, match=r"joint posteriors of 200 records .*joint='drop'"):
        sr.attribute_risk(fitted, release, joint="keep", question="paper")


def test_datasets_that_memory_does_not_hold(fitted, little_memory):
    little_memory(1e5)
    fitted.synthesize(2, seed=SECRET)
    with pytest.raises(sr.ResourceError, match=r"10,000 datasets .* in parts, here 10,000 of them"):
        fitted.synthesize(10_000, seed=SECRET)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_that_memory_does_not_hold(kind, tmp_path, little_memory):
    path, data = tmp_path / f"people.{kind}", people(1000)[["x", "b"]]
    data.to_csv(path, index=False) if kind == "csv" else data.to_parquet(path)
    plan = sr.Regression("b ~ x")
    assert sr.fit(plan, path, n_draws=10).n_records == 1000
    little_memory(2e4)
    with pytest.raises(sr.ResourceError, match=f"people.{kind}: to read it .* files or more"):
        sr.fit(plan, path, n_draws=10)


def test_a_part_of_a_folder_that_memory_does_not_hold(tmp_path, little_memory):
    rng = np.random.default_rng(1)
    pd.DataFrame({"a": rng.normal(size=5000)}).to_parquet(tmp_path / "part-0.parquet")
    little_memory(2e4)
    with pytest.raises(sr.ResourceError, match=r"part-0.parquet, row group 1: .* files or more"):
        sr.fit(sr.Regression("a ~ 1"), tmp_path, n_draws=10)


@pytest.mark.parametrize(
    ("regression", "n_coefficients"),
    [(sr.Regression("g ~ x", "categorical"), "3,998"), (sr.Regression("y ~ g"), "2,000")],
    ids=["response", "predictor"],
)
def test_two_thousand_levels(regression, n_coefficients):
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(4000, 2)), columns=["x", "y"])
    data["g"] = [f"level {k % 2000}" for k in range(4000)]
    with pytest.raises(sr.FitError, match=f"{n_coefficients} coefficients and 4,000 records"):
        sr.fit(regression, data)


def test_a_lack_of_memory_is_told_as_such():
    @within_memory
    def greedy():
        raise MemoryError

    with pytest.raises(sr.ResourceError, match="not enough memory") as caught:
        greedy()
    assert caught.value.__context__ is None


def test_an_executor_that_gives_promises(fitted):
    """As a client of Dask does."""

    class Promise:
        def __init__(self, made):
            self.made = made

        def result(self):
            return self.made

    class Client:
        def map(self, function, items):
            return [Promise(function(item)) for item in items]

    release = fitted.synthesize(seed=SECRET)
    own, theirs = (sr.attribute_risk(fitted, release, executor=e) for e in ("serial", Client()))
    pd.testing.assert_frame_equal(own.records, theirs.records, check_exact=True)


@pytest.mark.parametrize("formula", ["y ~ g", "y ~ x + g * h"], ids=["alone", "with another"])
def test_levels_are_counted_before_the_design_is_made(formula, monkeypatch):
    """40,000 records by 20,000 columns would take 6 GB before they are refused."""
    monkeypatch.setattr("synrisk.models.design.Design.freeze", lambda *_: pytest.fail("made"))
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(4000, 2)), columns=["x", "y"])
    n_levels = 600 if "h" in formula else 2000
    data["g"] = [f"level {k % n_levels}" for k in range(4000)]
    data["h"] = ["one", "two", "three", "four"] * 1000
    with pytest.raises(sr.FitError, match="coefficients and 4,000 records are too many"):
        sr.fit(sr.Regression(formula), data)


HUGE = 10**400  # no float holds it


@pytest.mark.parametrize(
    "make",
    [
        lambda: sr.Relative(HUGE),
        lambda: sr.Relative(5, HUGE, 1),
        lambda: sr.Additive(5, HUGE, HUGE),
        lambda: sr.Interval(5, -HUGE, HUGE),
        lambda: sr.Range(HUGE),
        lambda: sr.Range(margin=HUGE),
        lambda: sr.Tolerance(width=HUGE),
        lambda: sr.TruthFactor(HUGE),
        lambda: sr.MostlyModel(HUGE),
        lambda: sr.Radius(HUGE),
        lambda: sr.Criteria(gain=HUGE),
        lambda: sr.RoundedGaussian(HUGE),
        lambda: sr.TruncatedGaussian(HUGE, 0),
        lambda: sr.fit(sr.Regression("b ~ x"), people(60), types={"b": (0, HUGE)}),
    ],
)
def test_whole_numbers_that_no_float_holds(make):
    with pytest.raises(sr.SynriskError):
        make()


@pytest.mark.parametrize("n", [100_001, 10**6, HUGE], ids=["one more", "a million", "huge"])
def test_more_guesses_than_anybody_needs(fitted, n):
    with pytest.raises(sr.GuessError, match="whole number from 2 to 100,000"):
        sr.attribute_risk(fitted, fitted.synthesize(seed=SECRET), guesses=n)


def test_a_column_to_be_released_that_is_no_name():
    with pytest.raises(sr.OptionError, match="there is no column a ndarray"):
        sr.fit(sr.Regression("b ~ x"), people(60), release=[np.array([1, 2])])
