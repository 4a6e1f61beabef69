"""Whether models give such values as the data have: misfits are told, honest fits are not."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr


def table(n=800):
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "overdispersed": rng.negative_binomial(2, 2 / (2 + np.exp(1 + 0.4 * x))),
            "with_zeros": rng.poisson(3, n) * (rng.random(n) < 0.6),
            "amount": np.exp(8 + x + rng.normal(size=n)),
            "spent": np.exp(rng.normal(5, 1, n)) * (rng.random(n) < 0.7),
            "share": rng.beta(0.7, 3, n),
            "heavy": x + rng.standard_t(2.5, n),
        }
    )


def misfits(name, family, response=None):
    data = table()[["x", name]]
    fitted = sr.fit(sr.Regression(f"{response or name} ~ x", family), data, seed=1)
    found = fitted.predictive_checks()
    told = [note for note in fitted.notes if note.startswith(f"{name} does not fit its model: ")]
    assert len(told) == found["is_misfit"].any()
    return set(found["checked"][found["is_misfit"]]), " ".join(told)


@pytest.mark.parametrize(
    ("name", "family", "expected", "remedy"),
    [
        ("overdispersed", "poisson", {"zeros", "variance", "largest"}, "negative_binomial"),
        ("with_zeros", "poisson", {"zeros", "variance", "largest"}, "predictors of the zeros"),
        ("amount", "gaussian", {"impossible", "skewness", "largest"}, "Model log(…) of it"),
        ("spent", "gaussian", {"zeros", "impossible", "skewness", "largest"}, "whether it is 0"),
        ("share", "gaussian", {"impossible", "skewness"}, "within its bounds"),
    ],
)
def test_what_does_not_fit_is_told_with_a_remedy(name, family, expected, remedy):
    found, note = misfits(name, family)
    assert found == expected
    assert remedy in note


def test_heavy_tails_are_told():
    found, _ = misfits("heavy", "gaussian")
    assert {"smallest", "largest"} & found


def test_the_remedy_mends_it():
    assert misfits("amount", "gaussian", response="log(amount)") == (set(), "")


def test_no_persons_value_is_in_a_note():
    data = table()
    fitted = sr.fit(sr.Regression("amount ~ x"), data[["x", "amount"]], seed=1)
    (note,) = fitted.notes
    assert f"{data['amount'].max():.0f}"[:4] not in note


def test_values_outside_a_declared_range_are_told():
    data = table()[["x", "heavy"]]
    data["heavy"] = data["heavy"].clip(-3, 3)
    fitted = sr.fit(sr.Regression("heavy ~ x"), data, seed=1, types={"heavy": (-3, 3)})
    found = fitted.predictive_checks().set_index("checked")
    # By chance a normal with the data's mean and variance is that often outside.
    assert found.loc["impossible", "is_misfit"]
    assert found.loc["impossible", "expected"] == pytest.approx(0.04, abs=0.03)


def test_honest_fits_are_hardly_ever_called_misfits():
    """By the rule less than one table in 100 here; with 60 tables, 4 or more once in 300."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([30, 100, 400]))
        x = rng.normal(size=n)
        data = pd.DataFrame(
            {
                "x": x,
                "b": 10 + x + rng.normal(size=n),
                "k": rng.poisson(np.exp(0.5 + 0.4 * x)),
                "income": np.exp(8 + 0.5 * x + rng.normal(size=n)),
            }
        )
        plan = [
            sr.Regression("b ~ x"),
            sr.Regression("k ~ x", "poisson"),
            sr.Regression("log(income) ~ x + b"),
        ]
        alarms += bool(sr.fit(plan, data, seed=seed).predictive_checks()["is_misfit"].any())
    assert alarms < 4


def test_factors_weights_and_few_records_are_not_compared():
    data = table(19)
    assert sr.fit(sr.Regression("amount ~ x"), data, seed=1).predictive_checks().empty
    weighted = table(60).assign(w=1.5)
    fitted = sr.fit(sr.Regression("amount ~ x", weights="w"), weighted, seed=1)
    assert fitted.predictive_checks().empty
    labels = table(60).assign(o=lambda rows: (rows["x"] > 0).astype(int))[["amount", "o"]]
    fitted = sr.fit(sr.Regression("o ~ amount", "bernoulli"), labels, seed=1)
    assert fitted.predictive_checks().empty
